/* SPDX-License-Identifier: MIT */
/*
 * jia_message.c - the public calls that send messages from rank to rank.
 *
 * Role:    checks what the program says; dsm_message.c does it.
 * Threads: any.
 * Locks:   none of its own.
 */
#include "jia.h"

#include "dsm_message.h"
#include "dsm_public.h"

static void check_rank(struct dsm_host *h, int rank)
{
	if (rank < 0 || rank >= hostc)
		dsm_host_fail(h, "rank %d does not exist; 0 to %d do", rank,
			      hostc - 1);
}

static uint64_t check_buffer(struct dsm_host *h, const void *buf, int len)
{
	if (len < 0)
		dsm_host_fail(h, "the length %d is negative", len);
	if (len && !buf)
		dsm_host_fail(h, "the buffer is NULL, and the length %d", len);
	return (uint64_t)len;
}

void jia_send(const void *buf, int len, int toproc, int tag)
{
	struct dsm_host *h = DSM_ENTER("jia_send");
	uint64_t start = dsm_host_now_ns();
	uint64_t bytes = check_buffer(h, buf, len);

	check_rank(h, toproc);
	if (tag == MSG_TAG_ALL)
		dsm_host_fail(
			h,
			"the tag -1 is MSG_TAG_ALL, which stands for any tag; use another");
	dsm_message_send(h, DSM_MESSAGE_USER, toproc, tag, buf, bytes);
	dsm_public_spent(h, DSM_SPOT_send, DSM_SITE, 0, start);
	dsm_public_leave();
}

int jia_recv(void *buf, int len, int fromproc, int tag)
{
	struct dsm_host *h = DSM_ENTER("jia_recv");
	uint64_t start = dsm_host_now_ns();
	uint64_t bytes = check_buffer(h, buf, len);

	if (fromproc != MSG_PROC_ALL)
		check_rank(h, fromproc);
	bytes = dsm_message_recv(h, DSM_MESSAGE_USER, fromproc, tag, buf,
				 bytes);
	dsm_public_spent(h, DSM_SPOT_recv, DSM_SITE, 0, start);
	dsm_public_leave();
	return (int)bytes;
}
