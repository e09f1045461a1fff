/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the simulator: random programs on the real protocol, checked.
 *
 * A *run* is made from one 64-bit seed: a world (sul_sim), its nodes, the
 * parameters, a random data-race-free program for each thread, and every
 * interleaving of steps.  A *record* that knows nothing of the protocol says
 * what each load must return.
 *
 * Disciplines.  Each item (1, 2, 4 or 8 bytes; several side by side in a page)
 * follows one: it is guarded by a lock; or it has one writer per epoch, and
 * readers only in other epochs; or, in release mode, whoever took its token in
 * a critical section uses it outside any lock and may give it back under
 * another lock.  So the last value stored is what a load must see.
 *
 * Threads: one; coroutines of sul_sim.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dsm_node.h"
#include "sul_sim.h"

enum {
	SIM_LOCKS_MAX = 16,
	SIM_ALLOCS_MAX = 4,
	SIM_ITEMS_MAX = 1024,
	SIM_RANKS_MAX = SUL_RANKS_MAX,
	SIM_THREADS_MAX = 8,
	SIM_NEST = 3
};

/* --- chance --------------------------------------------------------------------- */

struct sim_rng {
	uint64_t state;
};

uint64_t sim_random(struct sim_rng *r);
uint32_t sim_below(struct sim_rng *r, uint32_t n); /* n > 0 */
bool sim_chance(struct sim_rng *r, uint64_t ppm);

/* --- the plan of a run ------------------------------------------------------------ */

struct sim_plan {
#define PLAN(name, doc) uint64_t name;
#include "sim_plan.def"
	struct dsm_config cfg;
	dsm_name lock[SIM_LOCKS_MAX]; /* what they are called */
};

/* What the command line fixes. */
struct sim_options {
	uint64_t seed, runs, ops;
	uint64_t scale; /* 0: random programs */
	uint64_t crashes; /* of each run, one after the other */
	bool net;
	const char *set[32]; /* name=value */
	unsigned int nr_set;
	bool trace, quiet;
};

void sim_plan_make(struct sim_plan *p, uint64_t seed,
		   const struct sim_options *o);
/* Few small pages and many nodes. */
void sim_plan_scale(struct sim_plan *p, uint64_t seed, uint64_t ranks,
		    const struct sim_options *o);
void sim_plan_print(const struct sim_plan *p);
/* -ENOENT: no such name; -EINVAL: no such value. */
int sim_plan_set(struct sim_plan *p, const char *pair);

/* --- the record ---------------------------------------------------------------------- */

enum sim_rule {
	SIM_RULE_LOCK,
	SIM_RULE_EPOCH,
	SIM_RULE_TOKEN
};

enum {
	SIM_NOBODY = -1,
	SIM_MANY = -2
};

struct sim_item {
	uint32_t alloc, off, size; /* off: bytes from the allocation's start */
	enum sim_rule rule;
	uint32_t which; /* lock or token */
	uint64_t truth, before; /* what was stored last, and before that */
	int writer, reader; /* in this epoch: thread, SIM_NOBODY, SIM_MANY */
};

struct sim_alloc {
	uint32_t pages, page;
	uint32_t made; /* number of its last making */
	uint32_t freed; /* number of the making that followed */
};

struct sim_token {
	int owner; /* thread or SIM_NOBODY */
	uint32_t lock; /* where it lies */
	bool reading; /* put there by one reader of several */
};

/* Items of one discipline: struct sim_record.list[first .. first + nr). */
struct sim_class {
	uint32_t first, nr;
};

struct sim_record {
	uint32_t nr_items;
	struct sim_item item[SIM_ITEMS_MAX];
	uint32_t list[SIM_ITEMS_MAX];
	struct sim_class of_lock[SIM_LOCKS_MAX], of_token[SIM_LOCKS_MAX];
	struct sim_class of_epoch;
	struct sim_alloc alloc[SIM_ALLOCS_MAX];
	struct sim_token token[SIM_LOCKS_MAX];
	int holder[SIM_LOCKS_MAX];
	int readers[SIM_LOCKS_MAX];
	/* The condition under lock 0. */
	uint32_t active; /* threads that will still broadcast */
	uint32_t waiting, woken;
	uint32_t flag; /* number of the rendezvous whose flag is set */
	uint32_t meetings; /* rendezvous over */
	uint32_t arrived; /* threads at the present one */
};

struct sim_thread;

void sim_record_make(struct sim_record *r, const struct sim_plan *p,
		     struct sim_rng *rng);
/* An item that a thread which holds these locks may use, or NULL. */
struct sim_item *sim_record_choose(struct sim_thread *t);
/* May @t load or store @it now?  Notes that it does. */
bool sim_record_may(const struct sim_thread *t, struct sim_item *it,
		    bool store);
/* Whether @t, about to wait at the condition, is sure to be woken. */
bool sim_record_waits(struct sim_record *r);
/* The condition was signalled (broadcast: to all); a waiter went on. */
void sim_record_signal(struct sim_record *r, bool all);
void sim_record_woken(struct sim_thread *t);
/* A thread came to, and left, rendezvous number @nr. */
void sim_record_arrive(struct sim_record *r);
void sim_record_depart(struct sim_thread *t, uint32_t nr, bool epoch_ends);
/* Allocation @a is gone, and what was in it; making number @made follows. */
void sim_record_free(struct sim_record *r, uint32_t a, uint32_t made);

/* --- nodes and threads -------------------------------------------------------------------- */

struct sim_run;

struct sim_node {
	struct sim_run *run;
	struct sul_port *port;
	struct dsm_node *dsm;
	struct sul_word mutex;
	uint32_t mutex_waiters;
	struct sul_word made; /* allocations made by its first thread */
	int rank;
	uint8_t *access; /* enum dsm_access, per page */
	bool gave_up; /* because another one is dead */
	uint64_t gave_up_ns;
};

struct sim_thread {
	struct sim_run *run;
	struct sim_node *node;
	struct dsm_thread *dsm;
	int id, slot;
	uint32_t meetings;
	uint32_t touched; /* page that is held accessible, + 1 */
	bool touched_rw;
	uint32_t held[SIM_NEST], nr_held; /* indices of locks */
	bool reading[SIM_NEST]; /* ... held for reading */
	bool at_last; /* it has come to its last barrier ... */
	bool ended; /* ... and left it */
	const char *doing; /* for the report of a deadlock */
	uint64_t doing_what;
};

struct sim_run {
	uint64_t seed;
	const struct sim_options *options;
	struct sim_plan plan;
	struct sim_rng rng;
	struct sul_sim *world;
	struct sim_record record;
	struct sim_node node[SIM_RANKS_MAX];
	struct sim_thread thread[SIM_RANKS_MAX * SIM_THREADS_MAX];
	uint64_t ops;
	struct dsm_stats *stats; /* summed over runs */
	struct sim_count {
		uint64_t messages, bytes;
	} of_barriers, of_locks; /* sim_scale.c: summed over nodes */
	struct sul_simnet_stats wire; /* summed over runs */
	struct sul_net_stats core;
	uint64_t gave_up; /* nodes, of runs with a crash */
};

/* sim_node.c */
void sim_node_open(struct sim_run *run, int rank);
void sim_node_close(struct sim_node *n);
uint32_t sim_page(const struct sim_thread *t, const struct sim_item *it);
uint64_t sim_load(struct sim_thread *t, const struct sim_item *it);
void sim_store(struct sim_thread *t, const struct sim_item *it, uint64_t value);

/* sim_run.c: all of a run; or its parts.  sim_world_run() returns when all
 * threads have ended, and close when their nodes are in order. */
void sim_run_once(struct sim_run *run, uint64_t seed);
void sim_world_open(struct sim_run *run, void (*program)(void *arg));
void sim_world_run(struct sim_run *run);
void sim_world_close(struct sim_run *run);

/* sim_scale.c: barriers and locks on many nodes; how many runs. */
uint64_t sim_scale(struct sim_run *run, uint64_t seed);

/* sim_program.c: a thread's program; @arg is its struct sim_thread. */
void sim_program(void *arg);

/* sim_net.c */
/* A call on @n failed because of another node: the process of @n ends.  Unless
 * that node has crashed, it must not have. */
_Noreturn void sim_give_up(struct sim_node *n, int err, const char *text);
/* After a crash: has everybody else ended, in time, and why? */
void sim_check_crash(struct sim_run *run);
void sim_add_wire(struct sim_run *run); /* to what is printed */
void sim_print_wire(const struct sim_run *run);

/* sim_check.c: when all has ended, are the nodes in order? */
void sim_check(struct sim_run *run);

/* sim.c: print what happened where, and end. */
_Noreturn void sim_violation(struct sim_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void sim_trace(struct sim_run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool sim_is_rw(const struct sim_plan *p, uint32_t lock)
{
	return p->rw_locks >> lock & 1;
}

static inline uint32_t sim_threads(const struct sim_plan *p)
{
	return (uint32_t)(p->ranks * p->threads);
}

static inline uint64_t sim_mask(uint32_t size)
{
	return size == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

#endif /* SIM_H */
