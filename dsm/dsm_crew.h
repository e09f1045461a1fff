/* SPDX-License-Identifier: MIT */
/*
 * dsm_crew.h - a program that begins alone: its master, and workers that wait.
 *
 * Private to jia_create.c (orders, turns), jia_shared.c (memory and objects) and
 * dsm_share.c (global variables as shared memory).
 */
#ifndef DSM_CREW_H
#define DSM_CREW_H

#include "dsm_host.h"
#include "dsm_program.h"

enum {
	DSM_ARENA_CLASSES = 480,
	DSM_ARENA_BLOCK = 64 << 10, /* bytes of the reserve on a rank in turn */
};

/* In shared memory, the first page of all; under the lock of its own address. */
struct dsm_root {
	uint64_t next, end; /* addresses: what has never been given away */
	uint64_t free[DSM_ARENA_CLASSES]; /* first of a list, by size */
};

/* Whose turn it is to synchronise for the first time after CREATE. */
enum dsm_turn {
	DSM_TURN_OVER,
	DSM_TURN_AWAITED, /* of the rank before */
	DSM_TURN_HERE, /* to be passed on */
};

struct dsm_crew {
	struct dsm_program program;
	bool shared; /* its global variables are */
	struct dsm_root *root;
	int running; /* master: workers that have been created; worker: 1 */
	bool reserved; /* memory for when workers run */
	int batch; /* counts CREATEs that found no worker running */
	enum dsm_turn turn;
};

/* --- jia_create.c ------------------------------------------------------------------- */

/* A call that synchronises begins; and what it waits for may depend on others,
 * who wait for their turn. */
void dsm_crew_await_turn(struct dsm_host *h);
void dsm_crew_pass_turn(struct dsm_host *h);
/* True: no worker runs, and this is the master. */
bool dsm_crew_alone(const struct dsm_host *h);
/* Memory of all ranks, made by the master while it is alone. */
void *dsm_crew_allocate(struct dsm_host *h, uint64_t bytes, uint64_t block,
			int home, const void *site);

/* --- jia_shared.c ------------------------------------------------------------------- */

/* The lock of the root, which is nobody's first. */
struct dsm_thread *dsm_crew_lock(struct dsm_host *h);
void dsm_crew_unlock(struct dsm_host *h, struct dsm_thread *t);

/* --- dsm_share.c ----------------------------------------------------------------------- */

/* From now on the program's global variables are shared memory.  Collective. */
void dsm_share_globals(struct dsm_host *h, const struct dsm_program *p,
		       const void *site);

#endif /* DSM_CREW_H */
