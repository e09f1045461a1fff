/* SPDX-License-Identifier: MIT */
/*
 * dsm_public.h - what the files of public calls (jia*.c) share.
 *
 * A public call begins with DSM_ENTER("jia_name"), which ends the job when the
 * call may not be made now, and ends with dsm_public_leave().
 */
#ifndef DSM_PUBLIC_H
#define DSM_PUBLIC_H

#include "dsm_call.h"
#include "dsm_host.h"

#define DSM_SITE __builtin_return_address(0)
#define DSM_ENTER(call) dsm_public_enter(call, DSM_SITE)

struct dsm_host *dsm_public_enter(const char *call, const void *site);
void dsm_public_leave(void);
/* The call at @site has waited since @start_ns (dsm_host_now_ns()); @which: for
 * which condition or flag, or 0.  For `jiarun --stats`. */
void dsm_public_spent(struct dsm_host *h, enum dsm_spot_kind kind,
		      const void *site, uint64_t which, uint64_t start_ns);

/* Note a collective call, made at @site. */
void dsm_public_record(struct dsm_host *h, enum dsm_call_kind kind, uint64_t a,
		       uint64_t b, uint64_t c, const void *site);
/* End the job if several threads are declared: one speaks for its rank. */
void dsm_public_refuse_threads(struct dsm_host *h);
/* A rendezvous of all ranks; not with a lock in hand. */
void dsm_public_meet(struct dsm_host *h, enum dsm_meeting kind,
		     const void *site);
/* The calling thread begins to synchronise: it holds no range any more. */
struct dsm_thread *dsm_public_sync(struct dsm_host *h);
/* The same, and if it is its turn to be the first (dsm_crew.h), it stays so. */
struct dsm_thread *dsm_public_sync_first(struct dsm_host *h);
/* As jia_malloc_on() without its checks of when. */
void *dsm_public_allocate(struct dsm_host *h, uint64_t bytes, uint64_t block,
			  int64_t home, const void *site);
/* The number of a size or count that is an int in JIAJIA's interface. */
uint64_t dsm_public_size(struct dsm_host *h, const char *what, int n);

enum {
	DSM_NAME_TEXT = 32
};

#endif /* DSM_PUBLIC_H */
