/* SPDX-License-Identifier: MIT */
/* jiarun_loop.c - see jiarun_loop.h. */
#include "jiarun_loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static bool loop_grow(struct jiarun_loop *l)
{
	size_t room = l->room ? 2 * l->room : 16;
	struct jiarun_watch **watch =
		realloc(l->watch, room * sizeof(struct jiarun_watch *));
	struct pollfd *p;

	if (!watch)
		return false;
	l->watch = watch;
	p = realloc(l->poll, room * sizeof(*p));
	if (!p)
		return false;
	l->poll = p;
	l->room = room;
	return true;
}

bool jiarun_loop_add(struct jiarun_loop *l, struct jiarun_watch *w)
{
	if (l->nr == l->room && !loop_grow(l))
		return false;
	l->watch[l->nr++] = w;
	return true;
}

void jiarun_loop_wait(struct jiarun_loop *l, int64_t ms)
{
	size_t nr = l->nr;

	for (size_t i = 0; i < nr; i++) {
		/* Without events poll() would still tell of hang-ups. */
		l->poll[i].fd = l->watch[i]->events ? l->watch[i]->fd : -1;
		l->poll[i].events = l->watch[i]->events;
		l->poll[i].revents = 0;
	}
	if (poll(l->poll, nr, ms > INT32_MAX ? INT32_MAX : (int)ms) <= 0)
		return;
	for (size_t i = 0; i < nr; i++) {
		struct jiarun_watch *w = l->watch[i];

		if (l->poll[i].revents && w->events && w->fd == l->poll[i].fd)
			w->ready(w->ctx, l->poll[i].revents);
	}
}

void jiarun_loop_free(struct jiarun_loop *l)
{
	free(l->watch);
	free(l->poll);
	*l = (struct jiarun_loop){ 0 };
}

void jiarun_watch_close(struct jiarun_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->events = 0;
}

void jiarun_never_block(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}
