/* SPDX-License-Identifier: MIT */
/* sul_coro.c - see sul_coro.h. */
#include "sul_coro.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

/*
 * AddressSanitizer marks the frames on a stack and takes the marks back when
 * functions return.  A coroutine that is freed while it is paused leaves them
 * behind, for whoever gets the addresses next.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define FORGET_FRAMES(stack, bytes) ASAN_UNPOISON_MEMORY_REGION(stack, bytes)
#else
#define FORGET_FRAMES(stack, bytes) ((void)(stack), (void)(bytes))
#endif

struct sul_coro {
	void (*fn)(void *arg);
	void *arg;
	void *stack;
	size_t stack_bytes;
	int ended;
#ifdef __x86_64__
	void *sp; /* of the coroutine, while it is paused */
	void *caller_sp;
#else
	ucontext_t self, caller;
#endif
};

static void run(struct sul_coro *c)
{
	c->fn(c->arg);
	c->ended = 1;
	sul_coro_pause(c); /* never comes back */
	abort();
}

#ifdef __x86_64__

/* Saves what a called function must preserve, and exchanges the stacks. */
void sul_coro_exchange(void **save, void *load);
__asm__(".text\n"
	".globl sul_coro_exchange\n"
	".hidden sul_coro_exchange\n"
	".type sul_coro_exchange, @function\n"
	"sul_coro_exchange:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size sul_coro_exchange, .-sul_coro_exchange\n");

/* First entry: %r12 holds the coroutine, as prepare() has laid it down. */
void sul_coro_entry(void);
__asm__(".text\n"
	".globl sul_coro_entry\n"
	".hidden sul_coro_entry\n"
	".type sul_coro_entry, @function\n"
	"sul_coro_entry:\n"
	"	movq %r12, %rdi\n"
	"	call *%r13\n"
	"	hlt\n"
	".size sul_coro_entry, .-sul_coro_entry\n");

static void prepare(struct sul_coro *c)
{
	uint64_t *top = (uint64_t *)((uintptr_t)c->stack + c->stack_bytes);

	*--top = 0; /* end of the call chain */
	*--top = 0;
	*--top = (uintptr_t)sul_coro_entry; /* popped by ret */
	*--top = 0; /* rbp */
	*--top = 0; /* rbx */
	*--top = (uintptr_t)c; /* r12 */
	*--top = (uintptr_t)run; /* r13 */
	*--top = 0; /* r14 */
	*--top = 0; /* r15 */
	c->sp = top;
}

static void enter(struct sul_coro *c)
{
	sul_coro_exchange(&c->caller_sp, c->sp);
}

void sul_coro_pause(struct sul_coro *c)
{
	sul_coro_exchange(&c->sp, c->caller_sp);
}

#else

static void run_split(unsigned int high, unsigned int low)
{
	run((struct sul_coro *)(((uintptr_t)high << 16 << 16) | low));
}

static void prepare(struct sul_coro *c)
{
	getcontext(&c->self);
	c->self.uc_stack.ss_sp = c->stack;
	c->self.uc_stack.ss_size = c->stack_bytes;
	c->self.uc_link = NULL;
	makecontext(&c->self, (void (*)(void))run_split, 2,
		    (unsigned int)((uintptr_t)c >> 16 >> 16),
		    (unsigned int)(uintptr_t)c);
}

static void enter(struct sul_coro *c)
{
	swapcontext(&c->caller, &c->self);
}

void sul_coro_pause(struct sul_coro *c)
{
	swapcontext(&c->self, &c->caller);
}

#endif

int sul_coro_new(struct sul_coro **out, void (*fn)(void *arg), void *arg,
		 size_t stack_bytes)
{
	struct sul_coro *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->stack == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	c->stack_bytes = stack_bytes;
	c->fn = fn;
	c->arg = arg;
	prepare(c);
	*out = c;
	return 0;
}

void sul_coro_free(struct sul_coro *c)
{
	if (!c)
		return;
	FORGET_FRAMES(c->stack, c->stack_bytes);
	munmap(c->stack, c->stack_bytes);
	free(c);
}

int sul_coro_resume(struct sul_coro *c)
{
	enter(c);
	return c->ended;
}
