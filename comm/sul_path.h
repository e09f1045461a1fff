/* SPDX-License-Identifier: MIT */
/*
 * sul_path.h - the paths of a link: how long they take, and which are alive.
 *
 * Two ranks may reach each other over several networks (trunking).  Packets take
 * turns on them.  A path is judged by the stamps that come back: every packet
 * carries its sender's clock and its path, and is echoed with both.
 *
 * A path on which packet after packet is lost while others get through is put
 * aside, and tried again ever more rarely.  The last path is never put aside:
 * whether the peer is dead is not decided here.
 *
 * Threads: none of its own; the owner of the link excludes.
 */
#ifndef SUL_PATH_H
#define SUL_PATH_H

#include "sul_pure.h"

enum {
	SUL_PATHS_MAX = 4
};

/* RFC 6298, from round trips of which it is known which packet they are of. */
struct sul_rtt {
	uint64_t smooth_ns, variation_ns, least_ns;
	bool known;
};

void sul_rtt_sample(struct sul_rtt *r, uint64_t ns);
/* After how long without an answer to ask again; @delay_ns: how long the other
 * side may wait before it answers. */
uint64_t sul_rtt_timeout(const struct sul_rtt *r, uint64_t delay_ns);

/* The same for somebody who has just been heard, once nothing else is under way:
 * there is no queue any more to wait in. */
uint64_t sul_rtt_timeout_drained(const struct sul_rtt *r);

struct sul_path {
	uint64_t seen_ns; /* our latest stamp that has arrived by it */
	uint64_t trip_ns; /* how long it took to hear of that */
	uint32_t lost; /* packets in a row */
	uint64_t again_ns; /* put aside: when to try it again; 0: it is not */
	uint64_t rest_ns; /* how long it was put aside */
};

struct sul_paths {
	unsigned int nr;
	unsigned int now; /* the one whose turn it is ... */
	unsigned int turn; /* ... and packets sent by it in a row */
	struct sul_rtt rtt; /* of whatever path */
	uint64_t seen_ns, trip_ns; /* of the latest one */
	struct sul_path at[SUL_PATHS_MAX];
};

void sul_paths_init(struct sul_paths *p, unsigned int nr);
/* The path for the next packet, if it is not better to be @not (-1: any). */
unsigned int sul_paths_pick(struct sul_paths *p, int not );
/* A packet of @stamp_ns is there by @path, and was @held_ns there before that
 * was said.  Old news are ignored. */
void sul_paths_seen(struct sul_paths *p, unsigned int path, uint64_t stamp_ns,
		    uint64_t held_ns, uint64_t now_ns);
void sul_paths_lost(struct sul_paths *p, unsigned int path, uint64_t now_ns);
/* When to send something by a path that was put aside; UINT64_MAX. */
uint64_t sul_paths_deadline(const struct sul_paths *p);
/* Which one, if it is time; the next try is later.  -1: none. */
int sul_paths_retry(struct sul_paths *p, uint64_t now_ns);

#endif /* SUL_PATH_H */
