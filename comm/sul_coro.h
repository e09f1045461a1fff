/* SPDX-License-Identifier: MIT */
/*
 * sul_coro.h - coroutines: many stacks in one thread, for the simulator.
 *
 * With them the simulator runs the runtime's own blocking code, unchanged, and
 * decides at every point where it could block or be overtaken who goes on.  A
 * switch costs some ten instructions on x86-64 (swapcontext() makes two system
 * calls; elsewhere it is used all the same).
 */
#ifndef SUL_CORO_H
#define SUL_CORO_H

#include <stddef.h>

struct sul_coro;

/* A coroutine that will run fn(arg) on a stack of @stack_bytes; -ENOMEM. */
int sul_coro_new(struct sul_coro **out, void (*fn)(void *arg), void *arg,
		 size_t stack_bytes);
void sul_coro_free(struct sul_coro *c); /* NULL is fine; not the running one */

/* Run @c until it calls sul_coro_pause() or ends; 1 if it has ended. */
int sul_coro_resume(struct sul_coro *c);

/* Called on @c's own stack: back to whoever resumed it. */
void sul_coro_pause(struct sul_coro *c);

#endif /* SUL_CORO_H */
