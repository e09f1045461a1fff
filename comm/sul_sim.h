/* SPDX-License-Identifier: MIT */
/*
 * sul_sim.h - a whole job inside one thread: ports, network, clock, threads.
 *
 * The simulator owns every source of chance.  What would be threads are
 * coroutines; whenever one waits, flushes or yields, a generator seeded once
 * decides who goes on: a coroutine, or an operation that is under way between
 * two ports.  Operations of one port on one target are executed in order, at a
 * random later time, and not at once: a get or a putv is done in pieces, with
 * everything else going on between them, as between two real machines.
 * One seed gives one execution.
 *
 * Threads: one; nothing here may be shared.
 */
#ifndef SUL_SIM_H
#define SUL_SIM_H

#include <stdint.h>

#include "sul_abi.h"

#pragma GCC visibility push(default) /* what libsul.so exports */

struct sul_sim;

/**
 * struct sul_sim_config - a world.
 * @seed:      the only source of chance.
 * @ranks:     ports it can hold.
 * @piece_ppm: chance, in a million, that an operation is done in pieces.
 * @yield_ppm: chance, in a million, that sul_sim_point() lets others run.
 * @slow_ppm:  chance, in a million, that a link or a coroutine is slow: of its
 *             steps only one in 32 takes place when it is its turn.
 */
struct sul_sim_config {
	uint64_t seed;
	int ranks;
	uint32_t piece_ppm;
	uint32_t yield_ppm;
	uint32_t slow_ppm;
};

int sul_sim_new(struct sul_sim **out, const struct sul_sim_config *cfg);
void sul_sim_free(struct sul_sim *s); /* all coroutines have ended */

/* A thread of the simulated job; it runs when sul_sim_run() does. */
int sul_sim_spawn(struct sul_sim *s, void (*fn)(void *arg), void *arg);

/* Until all coroutines have ended (0), nobody can go on (-EDEADLK), or @steps
 * were made (-ETIMEDOUT). */
int sul_sim_run(struct sul_sim *s, uint64_t steps);

/* The rest is called by coroutines. */
void sul_sim_yield(struct sul_sim *s); /* others run now */
void sul_sim_point(struct sul_sim *s); /* others run now, perhaps */
int sul_sim_wait(struct sul_sim *s, const struct sul_word *word, uint32_t old);
void sul_sim_notify(struct sul_sim *s, struct sul_word *word, uint32_t value);

uint64_t sul_sim_random(struct sul_sim *s);
uint64_t sul_sim_steps(const struct sul_sim *s); /* the clock */

#pragma GCC visibility pop

#endif /* SUL_SIM_H */
