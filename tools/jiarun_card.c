/* SPDX-License-Identifier: MIT */
/* jiarun_card.c - see jiarun_card.h. */
#include "jiarun_card.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

bool jiarun_card_make(struct sul_job *job, int rank, uint32_t *told,
		      struct jiarun_message *m)
{
	struct sul_job_rank *r = sul_job_rank(job, rank);
	uint32_t state = atomic_load(&r->state);
	uint32_t pid = atomic_load(&r->pid);
	struct jiarun_wire_card *c = &m->card;

	if (state <= *told || state > SUL_RANK_EXITED)
		return false;
	*m = (struct jiarun_message){ .type = JIARUN_WIRE_card };
	c->rank = (uint64_t)rank;
	c->state = state;
	c->pid = pid <= INT32_MAX ? pid : 0;
	if (*told < SUL_RANK_READY) { /* its bytes are final when it is READY */
		c->program = (struct jiarun_bytes){
			r->program, strnlen(r->program, sizeof(r->program) - 1)
		};
		c->blob = (struct jiarun_bytes){
			r->blob, least(r->blob_len, sizeof(r->blob))
		};
		c->address = (struct jiarun_bytes){
			r->address, least(r->address_len, sizeof(r->address))
		};
	}
	*told = state;
	return true;
}

void jiarun_card_take(struct sul_job *job, const struct jiarun_wire_card *c)
{
	struct sul_job_rank r = *sul_job_rank(job, (int)c->rank);

	atomic_store(&r.state, (uint32_t)c->state);
	atomic_store(&r.pid, (uint32_t)c->pid);
	if (c->program.len)
		jiarun_wire_text(c->program, r.program, sizeof(r.program));
	if (c->blob.len) {
		memcpy(r.blob, c->blob.at, c->blob.len);
		atomic_store(&r.blob_len, (uint32_t)c->blob.len);
	}
	if (c->address.len) {
		memcpy(r.address, c->address.at, c->address.len);
		r.address_len = (uint32_t)c->address.len;
	}
	sul_job_mirror(job, (int)c->rank, &r);
}
