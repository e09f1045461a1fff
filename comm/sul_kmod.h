/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod.h - what the parts of the kmod carrier share.
 *
 * Private to sul_kmod.c (operations), sul_kmod_batch.c (what is submitted, and
 * what comes back), sul_kmod_wait.c (waiting), sul_kmod_open.c (how a port of
 * /dev/sul comes about) and sul_kmod_device.c (its system calls).
 *
 * The batch.  Operations are gathered and handed to the kernel together, with one
 * SUBMIT: when somebody flushes, pushes, polls or waits, or when much has
 * gathered.  That an operation has been executed, and all before it, is read from
 * the mapped status page: no system call.
 *
 * The landing area.  A softirq cannot store into memory that may not be there, so
 * what is got from a far rank, and the old value of an atomic word, comes into a
 * mapped area of the port, and is copied to where it was wanted when all that was
 * submitted has been executed.  Places there are given out one behind the other,
 * and all are free again when nothing is under way any more.
 *
 * Who sleeps.  Ranks that reach us through the module store into our words by the
 * kernel's hand, which wakes whoever sleeps in WAIT; so that is where all waiting
 * threads sleep.  Ranks of this host that share memory with us store by
 * themselves: they see in the word that its sleeper is in WAIT (SUL_WORD_SLEEPER)
 * and say WAKE.  One that cannot, having no port of /dev/sul, leaves us asleep:
 * with such ranks around (`blind`) sleeps are short.
 */
#ifndef SUL_KMOD_H
#define SUL_KMOD_H

#include "sul_carrier.h"
#include "sul_listen.h"

enum {
	SUL_KMOD_OPS = SUL_ABI_SUBMIT_MAX,
	/* Runs and marks of a batch. */
	SUL_KMOD_SIDE_BYTES = SUL_ABI_OP_RUNS_MAX * sizeof(struct sul_run),
	SUL_KMOD_LANDING_BYTES = 128 << 10,
	SUL_KMOD_LANDS = 1024, /* gets under way */
	SUL_KMOD_GATHER_BYTES = 64 << 10, /* so much data does not wait */
};

/*
 * The system calls of /dev/sul; tests have an implementation of their own.
 * All return -errno.
 */
struct sul_kmod_sys {
	int (*open)(void); /* a descriptor */
	void (*close)(int fd);
	int (*call)(int fd, unsigned long request, void *arg); /* 0 */
	/* Read-only; @at: SUL_MAP_*. */
	int (*map)(int fd, uint64_t at, size_t bytes, const void **out);
	void (*unmap)(const void *at, size_t bytes);
};
extern const struct sul_kmod_sys sul_kmod_device;

/* Where something that comes into the landing area is to go. */
struct sul_kmod_land {
	void *dst;
	uint64_t ticket; /* it is there when that is executed */
	uint32_t at, len;
};

struct sul_kmod {
	/* Constant once the port is open. */
	struct sul_port *port;
	const struct sul_kmod_sys *sys;
	int fd;
	bool *near; /* [rank]: the module reaches it directly */
	const struct sul_status *status; /* mapped */
	const char *landing; /* mapped */
	struct sul_listener *listener; /* its sockets are the module's */

	/* Atomic: */
	unsigned int gathered; /* operations in the batch */
	uint32_t deaths; /* of status->deaths, those that were looked at; who: */
	uint64_t seen_down[SUL_ABI_RANKS_MAX / 64]; /* of status->down */

	/* Under the lock: */
	pthread_mutex_t lock;
	struct sul_op op[SUL_KMOD_OPS];
	_Alignas(8) unsigned char side[SUL_KMOD_SIDE_BYTES];
	size_t side_used, data_bytes; /* of the batch */
	uint64_t ticket; /* of all that has been submitted ... */
	uint64_t hurried; /* ... and of what the targets were asked about */
	struct sul_kmod_land land[SUL_KMOD_LANDS];
	unsigned int lands, lands_submitted;
	uint32_t landing_used;
	bool *gone; /* [rank]: it takes no more operations */
	bool *known; /* [rank]: it can be woken */
	int error; /* of an operation that was refused: the first one's */
};

static inline struct sul_kmod *sul_kmod_of(const struct sul_port *p)
{
	return p->far;
}

static inline int sul_kmod_call(const struct sul_kmod *k, unsigned long request,
				void *arg)
{
	return k->sys->call(k->fd, request, arg);
}

static inline uint64_t sul_kmod_executed(const struct sul_kmod *k)
{
	return __atomic_load_n(&k->status->executed, __ATOMIC_ACQUIRE);
}

/* sul_kmod_open.c */
/*
 * Open /dev/sul and agree on a version; a text in @why after an error: -ENOENT:
 * there is none; -EPROTO: of another version; or what the system says.
 */
int sul_kmod_find(const struct sul_kmod_sys *sys, int *fd,
		  char why[SUL_WHY_MAX]);
/* Of the kernel memory that the module gives a port, what is left for links if it
 * pins as much as is usual. */
size_t sul_kmod_link_room(void);
/* Become this rank's port of /dev/sul, if the listener has found it: *@far is the
 * carrier then, else as it was.  An error only if nothing else will do. */
int sul_kmod_enter(struct sul_port *p, const struct sul_config *cfg,
		   const struct sul_carrier_ops **far);
int sul_kmod_open(struct sul_port *p, const struct sul_config *cfg);
void sul_kmod_close(struct sul_port *p);

/* sul_kmod_batch.c; all under the lock */
/*
 * An operation on @rank begins, which needs @side bytes for runs or marks, and
 * @land bytes of the landing area: both at most what there is of it.  There is
 * room then, until it is added, or the lock is given away.  May give it away
 * itself.  -EHOSTDOWN, -ECANCELED.
 */
int sul_kmod_begin(struct sul_kmod *k, int rank, size_t side, size_t land);
/* A copy that the operation can refer to. */
uint64_t sul_kmod_aside(struct sul_kmod *k, const void *from, size_t len);
/* A place for what shall go to @dst. */
uint32_t sul_kmod_land(struct sul_kmod *k, void *dst, size_t len);
/* It is in the batch; @data: bytes that it moves.  May submit. */
void sul_kmod_add(struct sul_kmod *k, const struct sul_op *op, size_t data);
/* @hurry: and ask for what is under way. */
void sul_kmod_submit(struct sul_kmod *k, bool hurry);
/* What is executed by now gets to where it was wanted. */
void sul_kmod_settle(struct sul_kmod *k);

/* sul_kmod_wait.c */
/* Under the lock, which is given away meanwhile: until all that had been
 * submitted is executed.  -ECANCELED, -ETIMEDOUT (at @end_ns). */
int sul_kmod_await(struct sul_kmod *k, uint64_t end_ns);
/* Has the module found a rank dead that has not said good-bye?  Then the job
 * ends. */
void sul_kmod_look_for_dead(struct sul_kmod *k);
/* Farewells, ours and others'. */
void sul_kmod_farewell(struct sul_port *p);
bool sul_kmod_has_left(struct sul_port *p, int rank);
int sul_kmod_wait(struct sul_port *p, const struct sul_watch *watch,
		  unsigned int nr, int timeout_ms);
void sul_kmod_wake_rank(struct sul_port *p, int rank);
void sul_kmod_stop(struct sul_port *p, int timeout_ms);

#endif /* SUL_KMOD_H */
