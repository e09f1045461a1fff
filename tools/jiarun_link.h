/* SPDX-License-Identifier: MIT */
/*
 * jiarun_link.h - the channel between two launchers: two descriptors, messages
 * over both, and whether the other side is alive.
 *
 * Each side says something every now and then, if only that it is alive; one
 * that has said nothing for too long is dead, whatever the descriptors say: a
 * cable may be cut.  Only what has been read counts, so a side that was stopped
 * itself reads what has come in meanwhile before it judges.
 *
 * Invariant: nothing here blocks; what cannot be written yet waits in @out.
 */
#ifndef JIARUN_LINK_H
#define JIARUN_LINK_H

#include "jiarun_loop.h"
#include "jiarun_wire.h"

struct jiarun_link {
	struct jiarun_watch from, to;
	struct jiarun_wire_in in;
	struct jiarun_wire_out out;
	int64_t heard_ms, spoke_ms;
	bool over; /* nothing more will come in */
	int err; /* of jiarun_wire_next(), the reason is in in.why; 0: none */
	/* 0, or -EPROTO with the reason in @why: it was not allowed. */
	int (*take)(void *ctx, const struct jiarun_message *m,
		    char why[JIARUN_WHY_MAX]);
	void *ctx;
};

/* Takes over both descriptors, and says the greeting. */
bool jiarun_link_open(struct jiarun_link *l, struct jiarun_loop *loop, int from,
		      int to);
void jiarun_link_put(struct jiarun_link *l, const struct jiarun_message *m);

#define jiarun_say(link, name_, ...)                                           \
	jiarun_link_put(link,                                                  \
			&(struct jiarun_message){ .type = JIARUN_WIRE_##name_, \
						  .name_ = { __VA_ARGS__ } })

/* Write what can be written now, without waiting for the loop. */
void jiarun_link_flush(struct jiarun_link *l);
/* Say that we are alive if nothing was said for @beat_ms. */
void jiarun_link_beat(struct jiarun_link *l, int64_t now_ms, int64_t beat_ms);
/* How long it has said nothing. */
int64_t jiarun_link_silent_ms(const struct jiarun_link *l, int64_t now_ms);
bool jiarun_link_is_open(const struct jiarun_link *l); /* both directions */
bool jiarun_link_pending(const struct jiarun_link *l); /* not yet written */
void jiarun_link_close_to(struct jiarun_link *l); /* it shall see an end */
void jiarun_link_close(struct jiarun_link *l);

#endif /* JIARUN_LINK_H */
