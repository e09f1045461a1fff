/* SPDX-License-Identifier: MIT */
/* jiarun_flow.c - see jiarun_flow.h. */
#include "jiarun_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jiarun_wire.h"

/* --- out of a pipe ------------------------------------------------------------- */

static void tap_ready(void *ctx, short revents)
{
	struct jiarun_tap *t = ctx;
	char buf[JIARUN_CHUNK_BYTES];
	size_t most = *t->credit < sizeof(buf) ? *t->credit : sizeof(buf);
	ssize_t n;

	(void)revents;
	if (!most) {
		t->from.events = 0;
		return;
	}
	n = read(t->from.fd, buf, most);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		jiarun_watch_close(&t->from);
	else
		*t->credit -= (size_t)n;
	t->take(t->ctx, t->id, buf, n > 0 ? (size_t)n : 0);
}

bool jiarun_tap_open(struct jiarun_tap *t, struct jiarun_loop *loop, int fd)
{
	t->from = (struct jiarun_watch){ fd, POLLIN, tap_ready, t };
	jiarun_never_block(fd);
	return jiarun_loop_add(loop, &t->from);
}

void jiarun_tap_resume(struct jiarun_tap *t)
{
	t->from.events = POLLIN;
}

bool jiarun_tap_is_open(const struct jiarun_tap *t)
{
	return t->from.fd >= 0;
}

void jiarun_tap_close(struct jiarun_tap *t)
{
	jiarun_watch_close(&t->from);
}

/* --- into a pipe ----------------------------------------------------------------- */

/* Whoever should have it is gone, or there is no memory to keep it. */
static void drip_break(struct jiarun_drip *d, size_t lost)
{
	lost += d->end - d->begin;
	jiarun_watch_close(&d->to);
	d->begin = d->end = 0;
	d->taken(d->ctx, d->id, lost, true);
}

static void drip_ready(void *ctx, short revents)
{
	struct jiarun_drip *d = ctx;
	ssize_t n;

	(void)revents;
	n = write(d->to.fd, d->buf + d->begin, d->end - d->begin);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		drip_break(d, 0);
		return;
	}
	if (n <= 0)
		return;
	d->begin += (size_t)n;
	if (d->begin == d->end) {
		d->begin = d->end = 0;
		d->to.events = 0;
		if (d->last)
			jiarun_watch_close(&d->to);
	}
	d->taken(d->ctx, d->id, (size_t)n, false);
}

bool jiarun_drip_open(struct jiarun_drip *d, struct jiarun_loop *loop, int fd)
{
	d->to = (struct jiarun_watch){ fd, 0, drip_ready, d };
	jiarun_never_block(fd);
	return jiarun_loop_add(loop, &d->to);
}

static bool drip_room(struct jiarun_drip *d, size_t n)
{
	char *more;

	if (d->begin) {
		memmove(d->buf, d->buf + d->begin, d->end - d->begin);
		d->end -= d->begin;
		d->begin = 0;
	}
	if (d->end + n <= d->room)
		return true;
	more = realloc(d->buf, 2 * (d->end + n));
	if (!more)
		return false;
	d->buf = more;
	d->room = 2 * (d->end + n);
	return true;
}

void jiarun_drip_put(struct jiarun_drip *d, const void *data, size_t n)
{
	if (d->to.fd < 0 || d->last) {
		d->taken(d->ctx, d->id, n, false);
		return;
	}
	if (!drip_room(d, n)) {
		drip_break(d, n);
		return;
	}
	memcpy(d->buf + d->end, data, n);
	d->end += n;
	d->to.events = POLLOUT;
}

void jiarun_drip_end(struct jiarun_drip *d)
{
	d->last = true;
	if (d->begin == d->end)
		jiarun_watch_close(&d->to);
}

void jiarun_drip_close(struct jiarun_drip *d)
{
	jiarun_watch_close(&d->to);
	free(d->buf);
	d->buf = NULL;
}
