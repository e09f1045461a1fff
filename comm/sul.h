/* SPDX-License-Identifier: MIT */
/*
 * sul.h - semi-user-level messaging: ports, three kinds of channel, carriers.
 *
 * This is all that the dsm layer may use of comm/.  A *port* is one rank's
 * endpoint in a job.  It offers the channels of DAWNING-3000's BCL:
 *
 *   open channel    windows and one-sided operations (as in VMMC): get, put,
 *                   putv, amo, notify, flush;
 *   system channel  short messages, handed to a handler by number, in order
 *                   per sender, with credits (as in Fast Messages);
 *   normal channel  large messages by rendezvous into a buffer the receiver
 *                   has posted.
 *
 * What carries them is chosen once, in sul_open(): "shm" (ranks of one host,
 * one memfd, the requester's CPU does the work) or "sim" (tests: many ports in
 * one thread, a seeded clock and network).
 *
 * Order: operations of one port on one target take effect in the order in
 * which they were issued.  An operation may still be under way when the call
 * returns; its source must stay unchanged, and its result is not there, until
 * sul_flush() has returned.  Issue many, flush once.
 *
 * Errors: 0 or a negative errno unless said otherwise; out-parameters are set
 * on success only.
 *   -EINVAL     bad rank, window, offset, length (nothing was done)
 *   -EHOSTDOWN  the target rank is dead
 *   -ECANCELED  the job is being ended (see sul_job.h)
 *
 * Threads: any thread may issue one-sided operations, flush and wait.  A flush
 * covers at least what the calling thread has issued.  Handlers of the system
 * channel run in whichever thread polls; one at a time.
 */
#ifndef SUL_H
#define SUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sul_abi.h"
#include "sul_job.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default) /* what libsul.so exports */

enum {
	SUL_WINDOWS_MAX = 8, /* windows of one port: the dsm layer needs 4 */
	SUL_RANKS_MAX = 1024, /* ranks of a job: 10 bits in a lock's token */
	SUL_HANDLERS_MAX = 64, /* handler numbers of the system channel */
	SUL_MESSAGE_MAX = 240, /* bytes of a system-channel message */
	SUL_CHANNELS_MAX = 16, /* normal channels of one port */
	SUL_MARKS_MAX = 3, /* marks of one get: one per directory level */
};

struct sul_port; /* opaque */
struct sul_sim; /* the simulator's world: sul_sim.h */

/**
 * struct sul_window_config - one window; the same on every rank.
 * @bytes: size, a multiple of the page size.
 * @hint:  address at which the owner maps it (must be free there), or NULL.
 * @chunk: how many neighbouring pages of a peer's window to map along when one
 *         of them is worked on (1: none); a power of two, at most 512.
 */
struct sul_window_config {
	size_t bytes;
	void *hint;
	unsigned int chunk;
};

/**
 * struct sul_config - how to open a port.
 * @carrier: "shm" or "sim".
 * @job:     the job this port belongs to (shm); NULL for sim.
 * @sim:     the simulated world (sim); NULL for shm.
 * @rank, @ranks: this rank, and how many there are (1 .. SUL_RANKS_MAX).
 * @spin_us: how long sul_wait() spins before it sleeps, microseconds.
 */
struct sul_config {
	const char *carrier;
	struct sul_job *job;
	struct sul_sim *sim;
	int rank, ranks;
	unsigned int spin_us;
	unsigned int windows;
	struct sul_window_config window[SUL_WINDOWS_MAX];
};

/* -ENOMEM, -EMFILE, -EFBIG (file-size limit), -EEXIST (hint is taken), ... */
int sul_open(struct sul_port **out, const struct sul_config *cfg);
void sul_close(struct sul_port *p); /* NULL is fine */
const char *sul_carrier(const struct sul_port *p);
int sul_rank(const struct sul_port *p);
int sul_ranks(const struct sul_port *p);

/* What this port has done to other ranks since it was opened. */
struct sul_stats {
	uint64_t operations; /* one-sided operations and messages */
	uint64_t bytes_out; /* data written to others */
	uint64_t bytes_in; /* data read from others */
	uint64_t dropped; /* messages from others that made no sense */
};
void sul_stats_read(const struct sul_port *p, struct sul_stats *out);

/* --- open channel --------------------------------------------------------- */

/* This port's own window @w; zero-filled at first.  Never NULL. */
void *sul_window(const struct sul_port *p, unsigned int w);

/*
 * A hint: the owner is about to work on this range of its own window.  Makes it
 * present in the mapping (a first touch costs a trap of its own), and where
 * ranges are prepared in sequence the rest of a chunk along with it.  -ENOMEM.
 * A get into an own window needs no preparation.
 */
int sul_window_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);

/*
 * Give back the memory of a range (whole pages) of this port's own window; it
 * reads as zeros afterwards.
 */
int sul_window_discard(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);

/*
 * The file and offset behind @rank's window, for a second mapping of it.
 * -ENOTSUP where there is none (other hosts, sim).
 */
int sul_window_file(const struct sul_port *p, int rank, unsigned int w, int *fd,
		    uint64_t *off);

/*
 * Read @len bytes at @off of @rank's window @w into @dst.  @marks (at most
 * SUL_MARKS_MAX) are set first: this is how a getter registers as a sharer.
 * Up to 64 bytes, of an aligned word never half is old and half new.
 */
int sul_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    void *dst, size_t len, const struct sul_mark *marks,
	    unsigned int nr_marks);

int sul_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    const void *src, size_t len);

/*
 * Scatter: for each run, @src + run.off goes to @off + run.off of the window;
 * then, if @mirror is given and its flag is set, to the mirror window too.
 */
int sul_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	     const void *src, const struct sul_run *runs, size_t nr_runs,
	     const struct sul_mirror *mirror);

/* One atomic operation on an aligned 64-bit word; @old (may be NULL) gets the
 * word's value from before. Exactly once, with full-fence semantics. */
int sul_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    enum sul_amo_op op, uint64_t operand, uint64_t comparand,
	    uint64_t *old);

/* Store @value into the struct sul_word at @off and wake whoever waits. */
int sul_notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	       uint32_t value);

/* Everything issued so far has taken effect at its target. */
int sul_flush(struct sul_port *p);

/* --- waiting --------------------------------------------------------------- */

/*
 * Wait until @word (in an own window) differs from @old: spin, then sleep.
 * Whoever waits also makes progress for the port.
 * @timeout_ms: <0: for ever.  -ETIMEDOUT, -ECANCELED.
 */
int sul_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
	     int timeout_ms);

/* The word's value, with acquire semantics. */
uint32_t sul_word_read(const struct sul_word *word);

/* --- system channel -------------------------------------------------------- */

typedef void sul_handler_fn(void *ctx, int from, const void *body, size_t len);

/* Before the first message can arrive, i.e. before a peer may send. */
int sul_handler(struct sul_port *p, unsigned int nr, sul_handler_fn *fn,
		void *ctx);

/* At most SUL_MESSAGE_MAX bytes; waits for a credit while the receiver's pool
 * is full, and polls meanwhile. */
int sul_send(struct sul_port *p, int rank, unsigned int handler,
	     const void *body, size_t len);

/* Run the handlers of what has arrived; how many messages, or <0. */
int sul_poll(struct sul_port *p);

/* --- normal channel -------------------------------------------------------- */

/* Post @buf for one message on @channel; sul_recv_wait() gives its length.
 * -EBUSY: the channel has a buffer already. */
int sul_recv_post(struct sul_port *p, unsigned int channel, void *buf,
		  size_t len);
/* -EMSGSIZE: the message did not fit; nothing of it was stored. */
int sul_recv_wait(struct sul_port *p, unsigned int channel, int *from,
		  size_t *len, int timeout_ms);
/* Waits for the buffer to be posted; returns when the data is in it. */
int sul_send_large(struct sul_port *p, int rank, unsigned int channel,
		   const void *buf, size_t len, int timeout_ms);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif /* SUL_H */
