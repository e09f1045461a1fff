/* SPDX-License-Identifier: MIT */
/*
 * race.h - what the races share: places where a rank stays, waiting, ranks.
 *
 * Each race has a process that sees to it, and one for each rank; what they tell each
 * other is in the scene.  Nothing goes by time: all that is waited for is seen.
 */
#ifndef RACE_H
#define RACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"

enum {
	RACE_OWNER = 1, /* the ranks: whose window it is, and who works on it */
	RACE_OTHER = 0,
	RACE_RANKS = 2,
	RACE_PATIENCE_MS = 40000,
	RACE_WORD = 0, /* offsets in the window */
	RACE_DATA = 64,
	RACE_VALUE = 0x5a,
};

/* Shared by all processes of a race. */
struct race_scene {
	char *window; /* the owner's, private to it; at this address in all */
	uint32_t started; /* ranks that have */
	uint32_t go; /* told to the owner */
	uint32_t went; /* it has done so */
	uint32_t keeper; /* the process that has its descriptor, too */
	uint32_t look; /* told to the owner: what is there? */
	uint8_t seen; /* what it has found in its window in the end */
	uint32_t did; /* the other: how many of its calls are over */
	uint32_t again; /* told to the other: one more */
	uint32_t enough; /* told to the other: and no more after that */
	int result; /* of its call */
};
extern struct race_scene *race_scene;

/* --- places ------------------------------------------------------------------------ */

/* "PLACE,...": who comes there stays; "": nobody does. */
void race_stay_at(const char *places);
/* How many have been at a place since there is a rule for it. */
long race_been_at(const char *place);

/* --- waiting: false after RACE_PATIENCE_MS ------------------------------------------ */

bool race_comes_true(bool (*is)(const void *of), const void *of);
#define AWAIT(is, of) CHECK(race_comes_true(is, of), #is " " #of)

bool race_is_there(const void *place); /* somebody is at that place */
bool race_is_nonzero(const void *at); /* a uint32_t of the scene */
bool race_have_started(const void *ranks); /* as many as the uint32_t says */
/* As many ports as that long are left in this namespace. */
bool race_are_left(const void *ports);
void race_tell(uint32_t *at); /* it is 1 more */

/* Does this task, which does not wait for anything else, wait in the kernel for what
 * cannot be interrupted (and not end)?  Looks until it is sure. */
bool race_is_held(pid_t pid);

/* --- ranks --------------------------------------------------------------------------- */

struct abi_port race_open(uint32_t rank, bool far);
void race_meet(const struct abi_port *p, bool far);
/* A byte, RACE_VALUE, at that offset of the owner's window. */
int race_put(const struct abi_port *p, uint64_t off);
/* All that was submitted has been executed. */
void race_flush(const struct abi_port *p);

/* @fn in a process of its own; what it finds counts. */
pid_t race_run(void (*fn)(void));
void race_ends_well(pid_t pid);
void race_kill(pid_t pid); /* and it is gone */

#endif /* RACE_H */
