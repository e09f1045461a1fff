/* SPDX-License-Identifier: MIT */
/* jiarun_card.h - what one launcher tells of its ranks, and another notes. */
#ifndef JIARUN_CARD_H
#define JIARUN_CARD_H

#include "jiarun_wire.h"

/*
 * What is new of @rank since its state was *@told: true with a message, whose
 * bytes are in the block, and *@told grown; false: nothing.
 */
bool jiarun_card_make(struct sul_job *job, int rank, uint32_t *told,
		      struct jiarun_message *m);
/* Note what another launcher says of one of its ranks. */
void jiarun_card_take(struct sul_job *job, const struct jiarun_wire_card *c);

#endif /* JIARUN_CARD_H */
