/* SPDX-License-Identifier: MIT */
/*
 * dsm_call.h - noticing that ranks do not make the same collective calls.
 *
 * Each rank keeps its last collective calls in its SYNC window, and a running
 * hash over all of them.  Count and hash travel with every rendezvous; where
 * they differ, the first call that differs is looked up on both sides and both
 * are named with the place they were made from.  (Message checkers for MPI, as
 * MUST, do the same with one process more.)
 */
#ifndef DSM_CALL_H
#define DSM_CALL_H

#include "dsm_node.h"

enum dsm_call_kind {
#define CALL(name, nr, a, b, c) DSM_CALL_##name,
#include "dsm_call.def"
	DSM_CALL_NR
};

void dsm_call_layout(struct dsm_layout *at);

/* One thread of a rank makes a collective call, from @site (a return address,
 * or 0).  Under the rank mutex, or before a second thread. */
void dsm_call_record(struct dsm_node *n, enum dsm_call_kind kind,
		     const uint64_t *args, uintptr_t site); /* 3, or NULL */

/*
 * A wait for @peer in a collective call takes long: end the job if @peer is in
 * another one.
 */
void dsm_call_check(struct dsm_node *n, int peer);

/* End the job: @child's calls differ from ours; it has made @child_calls. */
_Noreturn void dsm_call_differ(struct dsm_node *n, int child,
			       uint64_t child_calls);

#endif /* DSM_CALL_H */
