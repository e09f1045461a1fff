/* SPDX-License-Identifier: MIT */
/*
 * sul_channel.h - what the system and the normal channel share.
 *
 * Private to sul_channel.c and sul_normal.c.  Both are built from one-sided
 * operations on one more window of every rank, so they work over any carrier:
 *
 *   doorbell   one word: changed by whoever has done something for this rank
 *   leave      some words: how far the ranks are with leaving (sul_leave.c)
 *   tail[r]    rank r has sent this rank that many messages
 *   credit[r]  rank r has taken that many of this rank's messages
 *   post[c]    what is posted on normal channel c, and who fills it
 *   wanted[c]  bit r: rank r waits for a buffer to be posted on channel c
 *   bounce[c]  pieces of a large message, where one copy is not possible
 *   ring[r]    slots that rank r fills
 *
 * The doorbell essay.  Everything a rank can wait for here ends with a ring of
 * its doorbell, after the thing itself (operations on one target are in order).
 * So there is one way to wait: read the doorbell, look whether what is wanted
 * is there, make progress, and sleep until the doorbell differs from what was
 * read.  No ring may store the value that the sleeper has read: a value is the
 * ringer's rank and a count of its rings, and between two rings with the same
 * value lie 2^22 others, far more than credits permit without the receiver
 * having looked.
 */
#ifndef SUL_CHANNEL_H
#define SUL_CHANNEL_H

#include <pthread.h>

#include "sul_carrier.h"

enum {
	SUL_SLOT_BYTES = 256, /* a message of 240 bytes and its head */
	SUL_BELL_BITS = 22, /* count of rings; the rank is above */
	SUL_PIECES = 4, /* of a large message, at once */
	SUL_LEAVE_AT = 8, /* in the doorbell's line */
	SUL_LEAVE_WORDS = SUL_LEAVE_NEIGHBOURS,
};

/* One message.  The first 8 bytes are its head. */
struct sul_slot {
	uint32_t seq; /* the sender's count of messages, from 1 */
	uint16_t len;
	uint16_t handler;
	unsigned char body[SUL_MESSAGE_MAX];
};

enum sul_post_state {
	SUL_POST_FREE,
	SUL_POST_HELD, /* by its owner, who fills it in or takes it apart */
	SUL_POST_POSTED,
	SUL_POST_CLAIMED, /* by the rank in the word; it moves the data */
	SUL_POST_DONE
};

/* A piece of a large message in the bounce area, at its number's place. */
struct sul_piece {
	uint64_t off; /* in the buffer */
	uint32_t len;
	uint32_t reserved;
};

/* How a message ended; written by the claimer. */
struct sul_outcome {
	uint64_t len;
	uint32_t from;
	int32_t status;
};

/* A posted buffer, in its owner's window. */
struct sul_post {
	uint64_t claim; /* generation, rank + 1 of the claimer, state */
	/* Written by the owner, read by the claimer in one get. */
	struct sul_post_info {
		uint64_t addr, len;
		uint64_t taken; /* pieces */
		struct sul_word filled; /* pieces; this one by the claimer */
	} info;
	struct sul_piece piece[SUL_PIECES]; /* by number, as their bytes */
	struct sul_outcome outcome;
	uint64_t reserved;
};
_Static_assert(sizeof(struct sul_post) == 128, "posts share no cache line");

/* Offsets in the window; the same on every rank. */
struct sul_layout {
	unsigned int slots; /* of a ring; a power of two */
	unsigned int piece; /* bytes of one in the bounce area */
	uint64_t tail, credit, post, wanted, bounce, ring, bytes;
};

/* What this rank keeps about the messages it sends to one other. */
struct sul_lane {
	pthread_mutex_t lock; /* one message after the other */
	uint32_t sent;
	/* Sources of the puts under way: a slot is used again when its credit
	 * has come back, that is, when the put has long been executed. */
	struct sul_slot stage[];
};

struct sul_backlog {
	struct sul_slot *slot;
	int *from;
	uint32_t first, nr, room; /* room: a power of two; nr is atomic */
};

/* A buffer posted by this rank: its own record, which no other rank can
 * spoil. */
struct sul_posted {
	void *buf;
	size_t len;
	int busy; /* a thread copies a piece */
};

struct sul_channels {
	struct sul_layout at;
	unsigned int users; /* handlers and posted buffers: 0, nobody polls */
	unsigned int posts; /* posted buffers */

	struct {
		sul_handler_fn *fn;
		void *ctx;
	} handler[SUL_HANDLERS_MAX];
	int delivering; /* a thread runs handlers */

	pthread_mutex_t rx; /* rings and backlog; never held over a callback */
	uint32_t seen; /* doorbell before the last look that found nothing */
	uint32_t *head; /* [rank]: messages taken ... */
	uint32_t *returned; /* ... and credits given back */
	int next; /* ring to look at first, ... */
	unsigned int burst; /* ... after so many messages from it */
	struct sul_backlog backlog;

	struct sul_lane **lane; /* [rank]: made at the first message */
	uint32_t *rings; /* [rank]: doorbells rung there */
	struct sul_posted posted[SUL_CHANNELS_MAX];
};

/* sul_channel.c */
void *sul_channel_at(const struct sul_port *p, uint64_t off);
struct sul_word *sul_channel_doorbell(const struct sul_port *p);
int sul_channel_ring(struct sul_port *p, int rank);
/* The same, between sul_quiet_begin() and sul_quiet_end(). */
int sul_channel_ring_quiet(struct sul_port *p, int rank);
void sul_channel_drop(struct sul_port *p); /* count what made no sense */
/* Run handlers and take pieces: how many messages, or -ECANCELED. */
int sul_channel_progress(struct sul_port *p);
/* Until the doorbell differs from @bell; @end from sul_sleep_end(). */
int sul_channel_sleep(struct sul_port *p, uint32_t bell, uint64_t end);

/* sul_normal.c */
void sul_normal_progress(struct sul_port *p);
void sul_normal_close(struct sul_port *p);

#endif /* SUL_CHANNEL_H */
