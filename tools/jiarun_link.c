/* SPDX-License-Identifier: MIT */
/* jiarun_link.c - see jiarun_link.h. */
#include "jiarun_link.h"

#include <errno.h>
#include <unistd.h>

#include "jiarun.h"

static void link_over(struct jiarun_link *l)
{
	l->over = true;
	jiarun_watch_close(&l->from);
}

/* All messages that have come in whole. */
static void messages_take(struct jiarun_link *l)
{
	struct jiarun_message m;
	int got = 0;

	while (!l->err && !l->over && (got = jiarun_wire_next(&l->in, &m)) == 1)
		l->err = l->take(l->ctx, &m, l->in.why);
	if (!l->err && got < 0)
		l->err = got;
	if (l->err)
		link_over(l);
}

static void from_ready(void *ctx, short revents)
{
	struct jiarun_link *l = ctx;
	size_t room;
	void *to = jiarun_wire_room(&l->in, &room);
	ssize_t n;

	(void)revents;
	if (!to) {
		link_over(l);
		return;
	}
	n = read(l->from.fd, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_over(l);
		return;
	}
	jiarun_wire_added(&l->in, (size_t)n);
	l->heard_ms = jiarun_now_ms();
	messages_take(l);
}

/* Who does not read any more may still have something to say: only this
 * direction ends here. */
static void to_ready(void *ctx, short revents)
{
	struct jiarun_link *l = ctx;
	size_t left = l->out.end - l->out.begin;
	ssize_t n = write(l->to.fd, l->out.buf + l->out.begin, left);

	(void)revents;
	if (n >= 0) {
		jiarun_wire_sent(&l->out, (size_t)n);
		if ((size_t)n == left)
			l->to.events = 0;
	} else if (errno != EAGAIN && errno != EINTR) {
		jiarun_watch_close(&l->to);
	}
}

static void out_changed(struct jiarun_link *l)
{
	l->spoke_ms = jiarun_now_ms();
	if (l->out.failed)
		jiarun_watch_close(&l->to); /* half a message must not go out */
	l->to.events = l->to.fd >= 0 ? POLLOUT : 0;
}

bool jiarun_link_open(struct jiarun_link *l, struct jiarun_loop *loop, int from,
		      int to)
{
	l->from = (struct jiarun_watch){ from, POLLIN, from_ready, l };
	l->to = (struct jiarun_watch){ to, 0, to_ready, l };
	l->heard_ms = jiarun_now_ms();
	jiarun_never_block(from);
	jiarun_never_block(to);
	jiarun_wire_greet(&l->out);
	out_changed(l);
	return jiarun_loop_add(loop, &l->from) && jiarun_loop_add(loop, &l->to);
}

void jiarun_link_put(struct jiarun_link *l, const struct jiarun_message *m)
{
	if (l->to.fd < 0)
		return;
	jiarun_wire_put(&l->out, m);
	out_changed(l);
}

void jiarun_link_flush(struct jiarun_link *l)
{
	if (jiarun_link_pending(l))
		to_ready(l, POLLOUT);
}

void jiarun_link_beat(struct jiarun_link *l, int64_t now_ms, int64_t beat_ms)
{
	/* What is still to be written says the same. */
	if (!jiarun_link_pending(l) && now_ms - l->spoke_ms >= beat_ms)
		jiarun_say(l, alive, );
}

int64_t jiarun_link_silent_ms(const struct jiarun_link *l, int64_t now_ms)
{
	return now_ms - l->heard_ms;
}

bool jiarun_link_is_open(const struct jiarun_link *l)
{
	return !l->over && l->to.fd >= 0;
}

bool jiarun_link_pending(const struct jiarun_link *l)
{
	return l->to.fd >= 0 && l->out.begin < l->out.end;
}

void jiarun_link_close_to(struct jiarun_link *l)
{
	jiarun_watch_close(&l->to);
}

void jiarun_link_close(struct jiarun_link *l)
{
	jiarun_watch_close(&l->from);
	jiarun_watch_close(&l->to);
	jiarun_wire_in_free(&l->in);
	jiarun_wire_out_free(&l->out);
}
