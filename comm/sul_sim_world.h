/* SPDX-License-Identifier: MIT */
/*
 * sul_sim_world.h - what the parts of the simulator share.
 *
 * sul_sim.c owns coroutines, waiting and chance.  What runs between two ranks
 * is one of two things: links on which operations are executed one after the
 * other (sul_sim_link.c, carrier "sim"), or packets, a network that loses them,
 * and a clock (sul_simnet.c, carrier "simnet").
 *
 * Private to the simulator.
 */
#ifndef SUL_SIM_WORLD_H
#define SUL_SIM_WORLD_H

#include "sul_carrier.h"
#include "sul_coro.h"
#include "sul_sim.h"

enum {
	SUL_SIM_SLOW = 32, /* times slower than others */
	SUL_SIM_CHAINS = 1024 /* of waiting coroutines, by the word's address */
};

enum sul_sim_state {
	SUL_SIM_READY,
	SUL_SIM_WORD, /* waits for one of its words */
	SUL_SIM_PORT, /* waits for its rank's port: operations, or room */
	SUL_SIM_ENDED
};

enum sul_sim_op_kind {
	SUL_SIM_GET,
	SUL_SIM_PUT,
	SUL_SIM_PUTV,
	SUL_SIM_AMO,
	SUL_SIM_NOTIFY
};

/* An operation as it was issued, and how far it is. */
struct sul_sim_op {
	struct sul_sim_op *next;
	enum sul_sim_op_kind kind;
	int rank; /* of the target */
	unsigned int w;
	uint64_t off;
	char *dst;
	const char *src;
	size_t len;
	const struct sul_run *runs;
	size_t nr_runs;
	bool has_mirror;
	struct sul_mirror mirror;
	struct sul_mark marks[SUL_MARKS_MAX];
	unsigned int nr_marks;
	enum sul_amo_op amo;
	uint64_t operand, comparand, *old;
	uint32_t value;

	size_t done;
	size_t part_from, part_to; /* of a scatter: what is being stored ... */
	bool mirroring; /* ... in the mirror */
};

struct sul_sim_task {
	struct sul_coro *coro;
	enum sul_sim_state state;
	int rank;
	bool slow;
	struct sul_watch watch[SUL_WATCH_MAX];
	unsigned int nr_watch;
	/* Next in the chain of that word, or of the port: task and place of its
	 * watch in one number, + 1; 0 is the end. */
	uint32_t next[SUL_WATCH_MAX];
};

struct sul_sim {
	uint64_t rng, steps;
	struct sul_sim_config cfg;
	struct sul_port **ports; /* by rank; NULL: not open */
	struct sul_sim_task *tasks;
	uint32_t nr_tasks, room_tasks, live;
	uint32_t current; /* the task that runs */
	uint32_t *ready; /* tasks that can run, where there is no clock */
	uint32_t nr_ready;
	uint32_t chain[SUL_SIM_CHAINS]; /* who waits for words */
	uint32_t *at_port; /* by rank: who waits for its port */
	struct sul_sim_links *links; /* carrier "sim" */
	struct sul_simnet *net; /* or carrier "simnet" */
	int (*issue)(struct sul_port *p, const struct sul_sim_op *op);
};

/* sul_sim.c */
uint32_t sul_sim_below(struct sul_sim *s, uint32_t n);
bool sul_sim_chance(struct sul_sim *s, uint64_t ppm);
bool sul_sim_draw_slow(struct sul_sim *s);
/* Is it too slow for its turn? */
bool sul_sim_misses_turn(struct sul_sim *s, bool slow);
/* Until one of the words was notified, or sul_sim_wake_rank(). */
void sul_sim_sleep(struct sul_sim *s, const struct sul_watch *watch,
		   unsigned int nr);
bool sul_sim_changed(const struct sul_watch *watch, unsigned int nr);
/* Until sul_sim_wake_port(). */
void sul_sim_wait_port(struct sul_sim *s, int rank);
void sul_sim_wake_port(struct sul_sim *s, int rank);
/* Whatever its coroutines wait for: they look again. */
void sul_sim_wake_rank(struct sul_sim *s, int rank);
/* Let coroutine @i run until it pauses. */
void sul_sim_resume(struct sul_sim *s, uint32_t i);
/* The coroutines of @rank end; the calling one, if it is of that rank, when it
 * pauses next. */
void sul_sim_kill(struct sul_sim *s, int rank);
/* sul_sim_op.c: what both carriers do alike; operations go to issue(). */
int sul_sim_windows_open(struct sul_port *p); /* -ENOMEM */
void sul_sim_windows_close(struct sul_port *p);
int sul_sim_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		    size_t len);
int sul_sim_discard(struct sul_port *p, unsigned int w, uint64_t off,
		    size_t len);
int sul_sim_window_file(const struct sul_port *p, int rank, unsigned int w,
			int *fd, uint64_t *off);
int sul_sim_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		void *dst, size_t len, const struct sul_mark *marks,
		unsigned int nr_marks);
int sul_sim_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		const void *src, size_t len);
int sul_sim_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 const void *src, const struct sul_run *runs, size_t nr_runs,
		 const struct sul_mirror *mirror);
int sul_sim_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		uint64_t *old);
int sul_sim_op_notify(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value);
#define SUL_SIM_OPERATIONS                                            \
	.prepare = sul_sim_prepare, .discard = sul_sim_discard,       \
	.window_file = sul_sim_window_file, .get = sul_sim_get,       \
	.put = sul_sim_put, .putv = sul_sim_putv, .amo = sul_sim_amo, \
	.notify = sul_sim_op_notify

/* sul_sim_link.c */
int sul_sim_links_new(struct sul_sim *s);
void sul_sim_links_free(struct sul_sim *s);
uint32_t sul_sim_links_busy(const struct sul_sim *s); /* links that can step */
void sul_sim_links_step(struct sul_sim *s);

#endif /* SUL_SIM_WORLD_H */
