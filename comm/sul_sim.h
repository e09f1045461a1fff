/* SPDX-License-Identifier: MIT */
/*
 * sul_sim.h - a whole job inside one thread: ports, network, clock, threads.
 *
 * The simulator owns every source of chance.  What would be threads are
 * coroutines; a generator seeded once decides who goes on.  One seed gives one
 * execution.  There are two kinds of world:
 *
 * Without a network (carrier "sim"), whenever a coroutine waits, flushes or
 * yields, any other one may go on, or an operation that is under way between two
 * ports.  Operations of one port on one target are executed in order, at a
 * random later time, and not at once: a get or a putv is done in pieces, with
 * everything else going on between them, as between two real machines.
 *
 * With a network (carrier "simnet") there is a clock, and between the ports are
 * packets: every rank has a struct sul_net, the core that real networks use.
 * Packets are lost, doubled, overtaken and spoilt; parts of the network are cut
 * off for a while; nodes are slow, stop for a while, or crash.
 *
 * Threads: one; nothing here may be shared.
 */
#ifndef SUL_SIM_H
#define SUL_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sul_abi.h"
#include "sul_net.h"

#pragma GCC visibility push(default) /* what libsul.so exports */

struct sul_sim;

struct sul_simnet_config {
#define SIMNET(name, doc) uint64_t name;
#include "sul_simnet.def"
};

/**
 * struct sul_sim_config - a world.
 * @seed:      the only source of chance.
 * @ranks:     ports it can hold.
 * @piece_ppm: chance, in a million, that an operation is done in pieces.
 * @yield_ppm: chance, in a million, that sul_sim_point() lets others run.
 * @slow_ppm:  chance, in a million, that a link or a coroutine, or a node where
 *             there is a network, is 32 times slower than others.
 * @net:       there is a network:
 * @wire:      what it is like.
 */
struct sul_sim_config {
	uint64_t seed;
	int ranks;
	uint32_t piece_ppm;
	uint32_t yield_ppm;
	uint32_t slow_ppm;
	bool net;
	struct sul_simnet_config wire;
};

/* -ENOMEM; -EINVAL: packets of such a size cannot be. */
int sul_sim_new(struct sul_sim **out, const struct sul_sim_config *cfg);
void sul_sim_free(struct sul_sim *s); /* all coroutines have ended */

/* A thread of @rank of the simulated job; it runs when sul_sim_run() does. */
int sul_sim_spawn(struct sul_sim *s, int rank, void (*fn)(void *arg),
		  void *arg);

/* Until all coroutines have ended (0), nobody can go on (-EDEADLK), or @steps
 * were made (-ETIMEDOUT). */
int sul_sim_run(struct sul_sim *s, uint64_t steps);

/* The rest is called by coroutines. */
void sul_sim_yield(struct sul_sim *s); /* others run now */
void sul_sim_point(struct sul_sim *s); /* others run now, perhaps */
int sul_sim_wait(struct sul_sim *s, const struct sul_word *word, uint32_t old);
void sul_sim_notify(struct sul_sim *s, struct sul_word *word, uint32_t value);

uint64_t sul_sim_random(struct sul_sim *s);
uint64_t sul_sim_steps(const struct sul_sim *s); /* made so far */

/* --- with a network ----------------------------------------------------------- */

struct sul_simnet_stats {
#define SIMNET_COUNT(name, doc) uint64_t name;
#include "sul_simnet.def"
};

uint64_t sul_simnet_now_ns(const struct sul_sim *s);
const struct sul_simnet_stats *sul_simnet_stats(const struct sul_sim *s);
/* What the ranks' network cores have counted, summed. */
void sul_simnet_core_stats(const struct sul_sim *s, struct sul_net_stats *sum);
/* The rank of which a peer has said that it is dead; -1: none. */
int sul_simnet_failed(const struct sul_sim *s);
bool sul_simnet_crashed(const struct sul_sim *s, int rank);
uint64_t sul_simnet_crash_ns(const struct sul_sim *s); /* of crash_step */
/* For how long nodes were stopped, in all the stops that ended since then. */
uint64_t sul_simnet_stopped_ns(const struct sul_sim *s);
/* The process of @rank ends at once, with all its threads.  Called by one of
 * them. */
_Noreturn void sul_simnet_exit(struct sul_sim *s, int rank);

#pragma GCC visibility pop

#endif /* SUL_SIM_H */
