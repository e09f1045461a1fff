/* SPDX-License-Identifier: MIT */
/*
 * sul_spin.h - how long a wait spins before it sleeps.
 *
 * Spinning is for those on whom another processor works.  When the scheduler has
 * put both on one, whoever spins keeps away what he waits for: a barrier of two
 * ranks then takes twice the time of the spinning, a hundred times what it takes
 * otherwise.  This shows by itself: the spinning is in vain, and what was waited
 * for comes as soon as one sleeps.  After a few such waits in a row
 *
 *   - who sees another rank of the job on his processor leaves it for one where
 *     none is: the system would not part them, since as soon as they sleep there
 *     is never more than one to run;
 *   - who does not, or cannot, or did so before, sleeps at once the next times, and
 *     tries again now and then.
 *
 * Threads: any; what is counted may be off by a few when several wait at a time.
 */
#ifndef SUL_SPIN_H
#define SUL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "sul_job.h"

enum {
	SUL_SPIN_VAIN = 3, /* waits in a row that say so */
	SUL_SPIN_REST_FIRST =
		16, /* waits that sleep at once then; doubled ... */
	SUL_SPIN_REST_MAX = 256, /* ... up to here: 1 % of them try */
};

struct sul_spin {
	uint32_t us; /* as told by the user; 0: never */
	bool yield; /* more ranks than processors: the others have to run */
	struct sul_job *job; /* NULL: of no other rank's place is known */
	int rank;
	uint32_t vain, rest, pause, moved;
};

/* For the waits of @rank of @job, which may be NULL. */
void sul_spin_init(struct sul_spin *s, unsigned int us, struct sul_job *job,
		   int rank);
/* For how long the wait that begins now shall spin, nanoseconds; 0: not at all. */
uint64_t sul_spin_begin(struct sul_spin *s);
/* It was there before that was over. */
void sul_spin_found(struct sul_spin *s);
/* It was not, @spun_ns having been spun (0: nothing is learnt), and came when this
 * thread had slept for @slept_ns. */
void sul_spin_slept(struct sul_spin *s, uint64_t spun_ns, uint64_t slept_ns);

/* Processors that this process may use. */
unsigned int sul_spin_processors(void);

#endif /* SUL_SPIN_H */
