/* SPDX-License-Identifier: MIT */
/*
 * sul_net.h - one-sided operations over packets that get lost.
 *
 * The pure core of every carrier that has a network below it: it turns
 * operations into packets and packets into operations executed on the windows
 * here.  Who really sends and receives (sockets, a kernel, a simulator), what
 * time it is and who holds which lock is the caller's business:
 *
 *   issue     sul_net_put() and so on; -EAGAIN: take part and try again
 *   output    the packets to be sent now, one by one
 *   input     a packet that has arrived
 *   deadline  when to ask for output again at the latest
 *
 * It compiles as kernel code: no libc beyond memcpy and the like, no floating
 * point, and memory only through its environment, when a link is first used.
 *
 * Reliability.  Between two ranks there is a *link* with two *lanes* a
 * direction: requests (get, put, putv, amo, notify), and what answers them (a
 * get's data, an amo's old value).  A lane is a sequence of packets with a
 * window; the receiver executes them in order and exactly once, keeps those
 * that come early, and acknowledges cumulatively - what has been *executed* -
 * and selectively.  A requester never has more answers outstanding than the
 * answering lane holds, so answering never waits and the two lanes cannot
 * block each other.
 *
 * Trust.  Every packet names its session and carries a packet number that is
 * used once, and a MAC over header and payload; what is forged, replayed, cut
 * or nonsense is dropped and counted.  Windows and ranges are checked by the
 * target, whatever the sender has checked.
 *
 * Threads: none of its own; calls on one struct sul_net exclude each other.
 */
#ifndef SUL_NET_H
#define SUL_NET_H

#include "sul_pure.h"

#include "sul_abi.h"

enum {
	SUL_NET_WINDOWS_MAX = 9,
	SUL_NET_PATHS_MAX = 4, /* addresses of a rank (trunking) */
	SUL_NET_KEY_BYTES = 16,
	SUL_NET_SEAL_KEY_BYTES = 32, /* what seal() and open() get */
	SUL_NET_SEAL_TAG_BYTES = 16, /* what seal() adds */
	/* Bytes of a packet, without what the network adds to it. */
	SUL_NET_PACKET_MIN = 576 - 28,
	SUL_NET_PACKET_MAX = 9000 - 28,
	SUL_NET_MESSAGE_MAX = 256,
	SUL_NET_SPAN_MIN = 8, /* packets under way on a lane */
	SUL_NET_SPAN_MAX = 1024,
};

enum sul_net_auth {
	SUL_NET_AUTH_MAC, /* SipHash-2-4; NH below it for longer payloads */
	SUL_NET_AUTH_OFF,
	SUL_NET_AUTH_AEAD, /* by the environment's seal() and open() */
};

struct sul_net; /* opaque */

/* What the core asks of its surroundings; @ctx is sul_net_config.env_ctx. */
struct sul_net_env {
	/* Zero-filled; NULL: none.  When the core is opened, and at the first
	 * use of a link, unless sul_net_link_make() has made it before. */
	void *(*alloc)(void *ctx, size_t bytes);
	void (*free)(void *ctx, void *at, size_t bytes);
	/*
	 * Where byte @off of own window @w lies; NULL: not now.  In *@len: how
	 * many bytes from there on are wanted; out: how many lie one behind the
	 * other, at least one, and an aligned word is never cut.  What was there
	 * is there until the call of the core that asked returns.  No such
	 * function: windows lie at their base, all of them.
	 */
	void *(*at)(void *ctx, unsigned int w, uint64_t off, uint64_t *len,
		    bool write);
	/*
	 * A request of @rank waits until (some of) these bytes are there, and all
	 * later ones of that rank wait behind it; call sul_net_resume() then,
	 * not from here.  Needed where there is at().
	 */
	void (*missing)(void *ctx, int rank, unsigned int w, uint64_t off,
			uint64_t len);
	/* A packet has been found genuine, and what it asks for is next; may be
	 * NULL. */
	void (*genuine)(void *ctx);
	/* Store into a word of a window here and wake whoever waits. */
	void (*notify)(void *ctx, struct sul_word *word, uint32_t value);
	/* @rank has been silent for too long; called once, by
	 * sul_net_output().  All operations on it, under way or to come, end
	 * with -EHOSTDOWN. */
	void (*dead)(void *ctx, int rank);
	/* @rank has said farewell, and something that was under way to it has
	 * not been executed; called once.  NULL: no farewell is heeded. */
	void (*left)(void *ctx, int rank);
	/* A farewell of @rank is heeded; may be NULL. */
	void (*farewell)(void *ctx, int rank);
	/*
	 * AEAD.  seal: encrypt [body, body+len) to @out, which is @body, and put
	 * SUL_NET_SEAL_TAG_BYTES of tag behind; open: the reverse in place, false
	 * if the tag is wrong.  @key: SUL_NET_SEAL_KEY_BYTES; @nonce is used
	 * once under it; @head is authenticated only.
	 */
	void (*seal)(void *ctx, const unsigned char *key, uint64_t nonce,
		     const void *head, size_t head_len, const void *body,
		     size_t len, void *out);
	bool (*open)(void *ctx, const unsigned char *key, uint64_t nonce,
		     const void *head, size_t head_len, void *body, size_t len);
};

/**
 * struct sul_net_config - one rank's view of a job.
 * @window:     own windows; others know them by number.  The ranks' windows
 *              have the same sizes, so arguments can be checked before a packet
 *              is made.
 * @packet_bytes: the largest packet this rank sends or takes.
 * @span:       packets under way on a lane; a power of two.
 * @key:        the job's secret; link keys are derived from it.
 * @session:    of this life of the rank, drawn at random; never 0.
 * @silence_ns: after how long without a word a peer is dead, if it owes one.
 * @copy:       sources may be changed once a call has returned: all is copied.
 * @batch:      packets of sul_net_output() that stay as they are, at most
 *              SUL_NET_BATCH_MAX; 0: so many.
 */
struct sul_net_config {
	int rank, ranks;
	unsigned int windows;
	struct {
		void *base;
		uint64_t bytes; /* 0: no such window */
	} window[SUL_NET_WINDOWS_MAX];
	unsigned int packet_bytes;
	unsigned int span;
	enum sul_net_auth auth;
	unsigned char key[SUL_NET_KEY_BYTES];
	uint32_t session;
	uint64_t silence_ns;
	bool copy;
	unsigned int batch;
	const struct sul_net_env *env;
	void *env_ctx;
};

/* -EINVAL, -ENOMEM. */
int sul_net_open(struct sul_net **out, const struct sul_net_config *cfg);
void sul_net_close(struct sul_net *n); /* NULL is fine */

/*
 * What is known of @rank from the start of the job: its session, the largest
 * packet it takes, and over how many paths (1 .. SUL_NET_PATHS_MAX) it can be
 * reached.  Before that, operations on it are refused with -EINVAL.  -EINVAL;
 * -EEXIST: it has been said before.
 */
int sul_net_peer(struct sul_net *n, int rank, uint32_t session,
		 unsigned int packet_bytes, unsigned int paths);

/*
 * The memory of the link to a peer: most of what a core takes.  Two lanes each
 * keep what was sent and what came early.
 */
size_t sul_net_link_bytes(unsigned int packet_bytes, unsigned int span);
/*
 * Make it now, where memory can be waited for, in @memory: zero-filled, of so
 * many bytes, given back by env->free().  The peer is asked from then on, now and
 * then, whether it is there.  -EINVAL: no such peer; -EEXIST: there is one.
 */
int sul_net_link_make(struct sul_net *n, int rank, void *memory);
/*
 * @rank is needed: that it falls silent is found out even if nothing is ever
 * issued to it.  Of others only once they are worked on, or heard of.  Errors
 * as of the operations.
 */
int sul_net_watch(struct sul_net *n, int rank);

/* --- issuing ------------------------------------------------------------------ */

/*
 * Arguments and semantics as of the port's functions of that name (sul.h);
 * @rank is another than this.  0: it is under way; sources stay unchanged and
 * results are not there until sul_net_quiet().  -EAGAIN: the window is full,
 * nothing was done: output, input, try again.  A long operation may be under
 * way in part: then *@done tells how far (in a way of its own: only that it is
 * 0 at first is the caller's business), and it is to be gone on with by the same
 * call with the same arguments.  -EHOSTDOWN, -ENOMEM, -EINVAL.
 *
 * Packets leave when output is asked for; so operations issued together travel
 * together.
 */
int sul_net_get(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		void *dst, size_t len, const struct sul_mark *marks,
		unsigned int nr_marks, size_t *done);
int sul_net_put(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		const void *src, size_t len, size_t *done);
/*
 * A scatter may be executed in several parts, each a scatter of its own with
 * its own look at the mirror's flag; never in the middle of an aligned word.
 */
int sul_net_putv(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		 const void *src, const struct sul_run *runs, size_t nr_runs,
		 const struct sul_mirror *mirror, size_t *done);
int sul_net_amo(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		uint64_t *old);
int sul_net_notify(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		   uint32_t value);

/**
 * struct sul_message - bytes, and two words of the same window that tell of them.
 * @word:  where the words lie, below 4 GiB: the first gets value[0] when the
 *         bytes are there, the second is notified with value[1] then.
 */
struct sul_message {
	unsigned int window;
	uint64_t off;
	const void *src;
	size_t len; /* at most SUL_NET_MESSAGE_MAX */
	uint64_t word[2];
	uint32_t value[2];
};
/*
 * A put and two such notifications that travel in one packet and cost little more
 * than the put; but for the first word nobody is woken.  All or nothing: -EAGAIN;
 * the bytes are copied.
 */
int sul_net_message(struct sul_net *n, int rank, const struct sul_message *m);

/*
 * The last that is issued to @rank: this one leaves.  There, nobody takes its
 * silence for a failure any more; but whatever is issued to it ends with
 * -EHOSTDOWN, and it has left (sul_net_has_left()).  -EAGAIN and so on.
 */
int sul_net_farewell(struct sul_net *n, int rank);
bool sul_net_has_left(const struct sul_net *n, int rank);

/*
 * True: everything issued so far has been executed at its target and every
 * result is here.  sul_net_hurry() asks the targets to say so at once.
 * -EHOSTDOWN from sul_net_error(): a peer on which something was outstanding
 * is dead (that no longer keeps it from being quiet).
 */
bool sul_net_quiet(const struct sul_net *n);
void sul_net_hurry(struct sul_net *n);
int sul_net_error(const struct sul_net *n);

/* --- packets ------------------------------------------------------------------- */

/*
 * A packet to be sent: two pieces one behind the other.  They stay as they are
 * until the next call but sul_net_output(), of which sul_net_config.batch can be
 * made in a row.
 */
enum {
	SUL_NET_BATCH_MAX = 128
};

struct sul_packet {
	int rank;
	unsigned int path;
	const void *head, *body; /* @body may be NULL */
	unsigned int head_len, body_len;
	unsigned int kind; /* enum sul_frame_kind: of its first frame */
};

/* False: nothing is to be sent now. */
bool sul_net_output(struct sul_net *n, uint64_t now_ns, struct sul_packet *out);

/* One packet has come in over @path, from wherever; the bytes may be changed.
 * False: it was dropped (and counted). */
bool sul_net_input(struct sul_net *n, uint64_t now_ns, unsigned int path,
		   void *packet, size_t len);

/* What env->missing() said of @rank is there: its requests go on, and there may
 * be output. */
void sul_net_resume(struct sul_net *n, int rank);

/* Ask for output again then, should nothing arrive before; UINT64_MAX: never. */
uint64_t sul_net_deadline(const struct sul_net *n);
/* The same.  What was given before may be of something that has been done since;
 * now every link is looked at. */
uint64_t sul_net_review(struct sul_net *n);

/* --- counting -------------------------------------------------------------------- */

/* Of this rank since it was opened; the rows of sul_net.def. */
struct sul_net_stats {
#define NET(name, doc) uint64_t name;
#include "sul_net.def"
};
const struct sul_net_stats *sul_net_stats(const struct sul_net *n);

#endif /* SUL_NET_H */
