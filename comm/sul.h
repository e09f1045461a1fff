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
 * one memfd, the requester's CPU does the work), or "sim" and "simnet" (tests:
 * many ports in one thread; see sul_sim.h).  To ranks of other hosts a port with
 * a listener uses UDP, so one job has both: by itself, or where there is
 * /dev/sul by that ("kmod"); the packets are the same.
 *
 * Order: operations of one port on one target take effect in the order in
 * which they were issued.  An operation may still be under way when the call
 * returns; its source must stay unchanged, and its result is not there, until
 * sul_flush() has returned.  Issue many, flush once: what goes over a network
 * waits for company and leaves with the next sul_flush(), sul_push(), sul_wait(),
 * sul_poll() or sul_send(), or when much has gathered.
 *
 * Errors: 0 or a negative errno unless said otherwise; out-parameters are set
 * on success only.
 *   -EINVAL     bad rank, window, offset, length (nothing was done)
 *   -EHOSTDOWN  the target rank is dead
 *   -ECANCELED  the job is being ended (see sul_job.h)
 *
 * Threads: any thread may issue one-sided operations, flush and wait.  A flush
 * covers at least what the calling thread has issued.  Handlers of the system
 * channel run in whichever thread polls; one at a time.  A port with a listener
 * has a thread of its own, which works for the others while nobody here polls.
 *
 * Signals: a handler may come back into the port (a page fault in it does).  It
 * is kept out (sul_signals_hold()) while its thread has one of the port's locks,
 * unless no_handlers is set.
 */
#ifndef SUL_H
#define SUL_H

#include <signal.h>
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
	SUL_WHY_MAX = 400, /* bytes of an error's text, with the 0 */
};

struct sul_port; /* opaque */
struct sul_sim; /* the simulator's world: sul_sim.h */
struct sul_listener; /* a rank's sockets */
struct sul_kmod_sys; /* the calls of /dev/sul */

/* --- other hosts -------------------------------------------------------------- */

/* What carries operations to ranks that are not reached by shared memory. */
enum sul_far {
	SUL_FAR_UDP, /* packets, by this library */
	SUL_FAR_AUTO, /* the kernel module if it is there, else udp */
	SUL_FAR_KMOD, /* the module, or an error */
};

/**
 * struct sul_listen_config - how other ranks reach this one over a network.
 * @rank:  this one.
 * @far:   by what.
 * @everywhere: also those of the same host, instead of by shared memory.
 * @links: which networks: interfaces, addresses or prefixes with commas between
 *         them; "": those that are there.
 * @mtu:   bytes of an IP packet, 0: as the interface says.
 * @span:  packets under way to one rank, 0: for what there is room.
 * @kmod:  for tests: instead of /dev/sul; else NULL.
 */
struct sul_listen_config {
	struct sul_job *job;
	int rank;
	enum sul_far far;
	bool everywhere;
	const char *links;
	unsigned int mtu;
	unsigned int span;
	const struct sul_kmod_sys *kmod;
};

/*
 * Make the sockets and publish them in the job's block; to be done before the
 * rank is READY.  *@out is NULL if no rank will use them.  -EINVAL, -E2BIG:
 * @links; or what the system says; with a text in @why.
 */
int sul_listen(struct sul_listener **out, const struct sul_listen_config *cfg,
	       char why[SUL_WHY_MAX]);
void sul_listener_close(struct sul_listener *l); /* NULL is fine */

/* How packets are told from forged ones. */
enum sul_auth {
	SUL_AUTH_MAC, /* a keyed code over each: SipHash-2-4 */
	SUL_AUTH_OFF,
	SUL_AUTH_AEAD, /* encrypted: ChaCha20-Poly1305 */
};
/* Whether this build can. */
bool sul_auth_known(enum sul_auth auth);

/* --- ports -------------------------------------------------------------------- */

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
 * @carrier: "shm", "sim" or "simnet".
 * @job:     the job this port belongs to (shm); NULL in a simulated world.
 * @sim:     the simulated world (sim, simnet); NULL for shm.
 * @rank, @ranks: this rank, and how many there are (1 .. SUL_RANKS_MAX).
 * @spin_us: how long sul_wait() spins before it sleeps, microseconds.
 * @listener: from sul_listen(); all ranks are READY.  The port owns it from now
 *            on, whether it opens or not.  NULL: all ranks are on this host.
 * @auth, @silence_ms: how packets are authenticated, and after how long without
 *            a word a rank is dead.
 * @no_handlers: no signal handler of the program ever comes back into the port:
 *            then nothing is done to keep handlers out.
 * @loss_ppm: of a million packets so many are thrown away: for tests.
 * @pin_bytes: carrier kmod: how much of the windows may be pinned at a time; 0:
 *            what the limit of locked memory has for this rank.
 * @trace:    carrier kmod: note times on the way (sul_trace_read()).
 * @why:      NULL, or room for SUL_WHY_MAX bytes: why it could not be opened;
 *            after success, what the user might want to know; or "".
 */
struct sul_config {
	const char *carrier;
	struct sul_job *job;
	struct sul_sim *sim;
	int rank, ranks;
	unsigned int spin_us;
	struct sul_listener *listener;
	enum sul_auth auth;
	unsigned int silence_ms;
	bool no_handlers;
	unsigned int loss_ppm;
	uint64_t pin_bytes;
	bool trace;
	char *why;
	unsigned int windows;
	struct sul_window_config window[SUL_WINDOWS_MAX];
};

/* -ENOMEM, -EMFILE, -EFBIG (file-size limit), -EEXIST (hint is taken),
 * -ENETUNREACH (no way to a rank), ... */
int sul_open(struct sul_port **out, const struct sul_config *cfg);
void sul_close(struct sul_port *p); /* NULL is fine */

/*
 * The last before a process ends: with it goes what the rank owns, and whoever
 * still has an answer to come asks for it in vain.  So ranks of several hosts
 * wait here for each other, and serve each other meanwhile.  Afterwards no
 * thread of the port is there any more, and nothing may be issued.
 * -ETIMEDOUT: a rank has not come within @timeout_ms; -ECANCELED.
 *
 * Over udp a rank that has waited, in vain, says farewell.  It is not missed then,
 * and ranks that go on without it do; but who needs it ends the job, with a
 * message that names both.
 */
int sul_leave(struct sul_port *p, int timeout_ms);
const char *sul_carrier(const struct sul_port *p);
int sul_rank(const struct sul_port *p);
int sul_ranks(const struct sul_port *p);

/* --- signals -------------------------------------------------------------------- */

/* Belongs to the caller, from hold to release. */
struct sul_quiet {
	bool on; /* the thread holds, ... */
	bool blocked; /* ... by having its signals blocked by the system; ... */
	sigset_t before; /* ... and these were before */
};

/*
 * In between no signal handler of the program runs in this thread, but those of
 * faults.  May be nested.  Without a system call, unless a signal does come, or
 * the program's handlers cannot be seen: sigaction() and signal() are this
 * library's then, when a program uses it, which call libc's; the program notices
 * nothing of it (see sul_signals.c).
 */
void sul_signals_hold(struct sul_quiet *q);
void sul_signals_release(const struct sul_quiet *q); /* !q->on: nothing */

/* --- counting ------------------------------------------------------------------- */

/* What this port has done to other ranks since it was opened. */
struct sul_stats {
	uint64_t operations; /* one-sided operations and messages */
	uint64_t bytes_out; /* data written to others */
	uint64_t bytes_in; /* data read from others */
	uint64_t dropped; /* messages from others that made no sense */
	/* Over a network, with everything that the carrier adds: */
	uint64_t packets_out, packets_in;
	uint64_t wire_out, wire_in; /* bytes in them */
	uint64_t resent, acks; /* of packets_out */
	uint64_t refused; /* packets of nobody's, or of no sense; not in _in */
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
 * A hint: @rank has discarded, or will before anybody uses it again, this range
 * (whole pages) of its window.  The next get from it is a first one.
 */
void sul_window_forget(struct sul_port *p, int rank, unsigned int w,
		       uint64_t off, size_t len);

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

/*
 * What this thread has issued leaves now, and nobody waits for it: its source must
 * stay unchanged until a sul_flush(), or until its target has said that it came.
 */
int sul_push(struct sul_port *p);

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
