/* SPDX-License-Identifier: MIT */
/*
 * jiarun_loop.h - one poll() for all the descriptors of a process.
 *
 * Whoever has a descriptor has a struct jiarun_watch for it, and says with
 * fd and events what it wants to know now.  A watch stays where it is as long as
 * the loop; one with a negative descriptor or without events is not looked at.
 */
#ifndef JIARUN_LOOP_H
#define JIARUN_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jiarun_watch {
	int fd; /* negative: nothing to watch */
	short events; /* 0: not now */
	/* Something has happened; it may change any watch and add more. */
	void (*ready)(void *ctx, short revents);
	void *ctx;
};

struct jiarun_loop {
	struct jiarun_watch **watch;
	struct pollfd *poll;
	size_t nr, room;
};

bool jiarun_loop_add(struct jiarun_loop *l, struct jiarun_watch *w);
/* One poll(), and everybody it concerns is told; @ms < 0: until something
 * happens. */
void jiarun_loop_wait(struct jiarun_loop *l, int64_t ms);
void jiarun_loop_free(struct jiarun_loop *l);

/* Close its descriptor; fine if it has none. */
void jiarun_watch_close(struct jiarun_watch *w);
void jiarun_never_block(int fd);

#endif /* JIARUN_LOOP_H */
