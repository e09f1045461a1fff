/* SPDX-License-Identifier: MIT */
/*
 * dsm_message.h - messages between ranks, of any size, by sender and tag.
 *
 * A short message goes through the system channel in pieces and lies in the
 * receiver's *inbox* until it is asked for.  The sender of a large one asks
 * first: if the receiver waits for it, it goes through a normal channel right
 * into the receiver's buffer; else in pieces into the inbox.  So a send needs no
 * receive to complete, only that the receiver makes progress (any wait of this
 * library does).
 */
#ifndef DSM_MESSAGE_H
#define DSM_MESSAGE_H

#include "dsm_host.h"

enum {
	DSM_ANY = -1, /* sender or tag */
	DSM_EAGER_BYTES = 32 << 10 /* longer ones ask first */
};

/* Messages of the program, of collective calls, and of the master to its workers
 * (jia_create.c) do not mix. */
enum dsm_message_class {
	DSM_MESSAGE_USER,
	DSM_MESSAGE_OWN,
	DSM_MESSAGE_CREATE
};

struct dsm_inbox;

/* Before any other rank can send.  -ENOMEM. */
int dsm_inbox_open(struct dsm_host *h);

/* Returns when @buf may be used again.  @buf may be shared memory. */
void dsm_message_send(struct dsm_host *h, enum dsm_message_class class, int to,
		      int tag, const void *buf, uint64_t len);
/*
 * The first message of @from (or DSM_ANY) with @tag (or DSM_ANY); its length.
 * Messages of one sender come in order.  A longer one than @room ends the job.
 */
uint64_t dsm_message_recv(struct dsm_host *h, enum dsm_message_class class,
			  int from, int tag, void *buf, uint64_t room);

#endif /* DSM_MESSAGE_H */
