/* SPDX-License-Identifier: MIT */
/*
 * sul_carrier.h - what a carrier gives, and what a port is made of.
 *
 * Private to comm/.  A carrier moves bytes between the windows of ranks; all
 * that can be said without knowing how (checks of arguments, the system and
 * the normal channel, counting) is done once, above it, in sul_port.c and
 * sul_channel.c.  A new carrier (udp, kmod, ofi) is one more table.
 */
#ifndef SUL_CARRIER_H
#define SUL_CARRIER_H

#include <pthread.h>

#include "sul.h"
#include "sul_memory.h"
#include "sul_sleep.h"

/* The channels keep their rings in one more window, behind the user's. */
#define SUL_WINDOW_CHANNELS SUL_WINDOWS_MAX
#define SUL_WINDOWS_ALL (SUL_WINDOWS_MAX + 1)

enum {
	SUL_LEAVE_NEIGHBOURS = 5
};

struct sul_message; /* sul_net.h */

/*
 * The arguments of every function have been checked: ranks and windows exist,
 * ranges lie inside them, words are aligned.  Semantics: sul.h.
 */
struct sul_carrier_ops {
	const char *name;
	int (*open)(struct sul_port *p, const struct sul_config *cfg);
	void (*close)(struct sul_port *p);
	int (*prepare)(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);
	int (*discard)(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);
	void (*forget)(struct sul_port *p, int rank, unsigned int w,
		       uint64_t off, size_t len); /* NULL: nothing to */
	int (*window_file)(const struct sul_port *p, int rank, unsigned int w,
			   int *fd, uint64_t *off);
	int (*get)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   void *dst, size_t len, const struct sul_mark *marks,
		   unsigned int nr_marks);
	int (*put)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   const void *src, size_t len);
	int (*putv)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, const struct sul_run *runs, size_t nr_runs,
		    const struct sul_mirror *mirror);
	int (*amo)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		   uint64_t *old);
	int (*notify)(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value);
	int (*flush)(struct sul_port *p);
	/* Until one of @nr (1 or 2) own words has changed. */
	int (*wait)(struct sul_port *p, const struct sul_watch *watch,
		    unsigned int nr, int timeout_ms);
	/*
	 * Store @len bytes at address @addr of @rank's process, in one copy:
	 * the normal channel's data.  Complete when it returns.  After any
	 * error (-EPERM: the system forbids it) the channel goes through its
	 * window instead, so a part may have been stored.
	 */
	int (*put_private)(struct sul_port *p, int rank, uint64_t addr,
			   const void *src, size_t len);
	/* A message (sul_net.h), which leaves at once.  NULL or -ENOTSUP, and
	 * nothing was done: in parts, as put, notify, notify and push. */
	int (*message)(struct sul_port *p, int rank,
		       const struct sul_message *m);
	/* Of carriers for other hosts only: */
	/* Fill in what was counted of the network. */
	void (*stats)(const struct sul_port *p, struct sul_stats *out);
	/* What has been issued leaves now; poll: and what has come is taken. */
	void (*push)(struct sul_port *p);
	void (*poll)(struct sul_port *p);
	/* A thread of this rank has notified a word of its own; NULL: nothing to
	 * do then. */
	void (*wake)(struct sul_port *p);
	/* A word of @rank, which is here, has been stored; whoever waits for it
	 * sleeps where no futex wakes him (SUL_WORD_SLEEPER).  May be NULL. */
	void (*wake_rank)(struct sul_port *p, int rank);
	/* Tell all that this rank leaves, though they may not; has @rank told so?
	 * Both NULL: nobody is told. */
	void (*farewell)(struct sul_port *p);
	bool (*has_left)(struct sul_port *p, int rank);
	/* The last: try to bring to an end what has been issued, at most
	 * @timeout_ms, and then no thread is there any more. */
	void (*stop)(struct sul_port *p, int timeout_ms);
};

extern const struct sul_carrier_ops sul_shm_ops;
extern const struct sul_carrier_ops sul_sim_ops;
extern const struct sul_carrier_ops sul_udp_ops;
extern const struct sul_carrier_ops sul_kmod_ops;
extern const struct sul_carrier_ops sul_simnet_ops;

struct sul_channels; /* sul_channel.c */

/*
 * Two carriers.  The base carrier has the windows, and reaches the ranks that
 * can be reached without a network, this one always.  The far carrier, if there
 * is one, reaches the others.
 */
struct sul_port {
	const struct sul_carrier_ops *ops; /* the base carrier */
	void *carrier; /* its own part */
	const struct sul_carrier_ops *far_ops; /* NULL: no rank is far */
	void *far; /* the far carrier's own part */
	bool *is_far; /* [rank]; NULL if there is no far carrier */
	struct sul_job *job; /* NULL in the simulator */
	int rank, ranks;
	unsigned int windows;
	struct sul_spin spin; /* of its waits */
	unsigned int silence_ms;
	bool handlers; /* of the program may come back into the port */
	size_t window_bytes[SUL_WINDOWS_ALL]; /* 0: no such window */
	unsigned int window_chunk[SUL_WINDOWS_ALL];
	void *window[SUL_WINDOWS_ALL]; /* own ones, set by ops->open */
	struct sul_channels *channels;
	struct sul_stats stats; /* relaxed atomic adds */
};

static inline bool sul_port_far(const struct sul_port *p, int rank)
{
	return p->is_far && p->is_far[rank];
}

/* The carrier that reaches @rank. */
static inline const struct sul_carrier_ops *
sul_port_to(const struct sul_port *p, int rank)
{
	return sul_port_far(p, rank) ? p->far_ops : p->ops;
}

/*
 * For what the program's signals may interrupt: whoever holds a lock of the port
 * does it between these.  No handler of the program runs in this thread meanwhile,
 * if there is any that could come back.
 */
static inline void sul_quiet_begin(const struct sul_port *p,
				   struct sul_quiet *q)
{
	q->on = false;
	if (p->handlers)
		sul_signals_hold(q);
}

static inline void sul_quiet_end(const struct sul_quiet *q)
{
	sul_signals_release(q);
}

/* sul_port.c: for the channels. */
int sul_port_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 void *dst, size_t len);
int sul_port_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 const void *src, size_t len);
int sul_port_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		 uint64_t *old);
int sul_port_notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    uint32_t value);
int sul_port_flush(struct sul_port *p);
void sul_port_push(struct sul_port *p, int rank);
/* On its own. */
void sul_port_poll(struct sul_port *p);
/* With the far carrier's help, if there is one. */
int sul_port_wait(struct sul_port *p, const struct sul_watch *watch,
		  unsigned int nr, int timeout_ms);

/* Nothing has come from @rank for too long: end the job, and say so. */
void sul_port_silent(const struct sul_port *p, int rank);
/* @rank has left the job, properly, and is needed here: the same. */
void sul_port_left(const struct sul_port *p, int rank);
/* @err is how an operation on @rank has ended that was the program's own: if that
 * has left, say so. */
int sul_port_blame(struct sul_port *p, int rank, int err);
/* Why opening fails, or what else is to be said (struct sul_config's why). */
void sul_port_why(const struct sul_config *cfg, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* sul_channel.c */
size_t sul_channels_bytes(int ranks); /* of the channels' window */
int sul_channels_open(struct sul_port *p);
void sul_channels_close(struct sul_port *p);
/* Does anybody here expect messages?  If so, waits go through
 * sul_channels_wait(), which makes progress for the port. */
bool sul_channels_used(const struct sul_port *p);
int sul_channels_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
		      int timeout_ms);

/*
 * sul_leave.c: the ranks without which this one cannot leave, @i below
 * SUL_LEAVE_NEIGHBOURS; -1: none of that number.  They join all ranks of a job
 * to one tree.
 */
int sul_leave_neighbour(const struct sul_port *p, unsigned int i);

/* sul_port.c: count an operation on @rank */
void sul_port_count(struct sul_port *p, int rank, size_t out, size_t in);

#endif /* SUL_CARRIER_H */
