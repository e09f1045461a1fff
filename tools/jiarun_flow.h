/* SPDX-License-Identifier: MIT */
/*
 * jiarun_flow.h - bytes from pipes to messages (a tap) and from messages to
 * pipes (a drip), for standard input, output and errors of ranks elsewhere.
 *
 * A tap reads only what it has credit for; credit comes back as the other side's
 * drip gets rid of the bytes.  So a reader who does not read stops the writer, as
 * a pipe would, and never the channel, over which everything else goes too.
 *
 * Invariant: nothing blocks; bytes come out in order and complete, or not at all
 * once the reader has gone.
 */
#ifndef JIARUN_FLOW_H
#define JIARUN_FLOW_H

#include "jiarun_loop.h"

/* --- out of a pipe ------------------------------------------------------------- */

struct jiarun_tap {
	struct jiarun_watch from;
	size_t *credit; /* bytes; may be shared with other taps */
	/* What was read; @n 0: it has ended. */
	void (*take)(void *ctx, int id, const void *data, size_t n);
	void *ctx;
	int id;
};

/* take, ctx, id and credit are set; takes over @fd. */
bool jiarun_tap_open(struct jiarun_tap *t, struct jiarun_loop *loop, int fd);
/* There is credit again. */
void jiarun_tap_resume(struct jiarun_tap *t);
bool jiarun_tap_is_open(const struct jiarun_tap *t);
void jiarun_tap_close(struct jiarun_tap *t);

/* --- into a pipe ----------------------------------------------------------------- */

struct jiarun_drip {
	struct jiarun_watch to;
	char *buf; /* [begin, end) is still to be written */
	size_t begin, end, room;
	bool last; /* nothing more will come */
	/* @n bytes are out of the way; @gone: nobody reads any more. */
	void (*taken)(void *ctx, int id, size_t n, bool gone);
	void *ctx;
	int id;
};

/* taken, ctx and id are set; takes over @fd. */
bool jiarun_drip_open(struct jiarun_drip *d, struct jiarun_loop *loop, int fd);
void jiarun_drip_put(struct jiarun_drip *d, const void *data, size_t n);
/* Close it once all is written. */
void jiarun_drip_end(struct jiarun_drip *d);
void jiarun_drip_close(struct jiarun_drip *d);

#endif /* JIARUN_FLOW_H */
