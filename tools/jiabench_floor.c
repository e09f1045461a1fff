/* SPDX-License-Identifier: MIT */
/*
 * jiabench_floor.c - what the machine itself takes: nothing can be faster.
 *
 * Role:    a page fault repaired in the least possible way; a cache line to
 *          another process and back; waking a process; copying a page.
 * Threads: the rank's only one.  Collective: rank 1 is the other process.
 *
 * The fault.  A page of a memory file is mapped twice, both mappings are
 * populated, the first is PROT_NONE.  A load faults; a plain sigaction handler
 * copies 4 KiB into the second mapping and makes the page readable.  The order
 * is that of the rows: not sequential.  libjia's handler is set aside for the
 * while: no shared memory may be used then.
 */
#include "jiabench.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jia.h"

enum {
	PAGE = 4096,
	PAGES = 128, /* a power of two */
	FAULTS = 16, /* samples a call */
	ROUNDS = 200, /* round trips in a sample */
	WAKES = 20,
	COPIES = 64
};

struct bench_floors {
	char *app, *sys; /* the same pages twice */
	char *source; /* what is copied */
	unsigned int next;
	struct sigaction before;
};

/* The handler gets no argument of ours. */
static struct bench_floors *current;

static void repair(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
	size_t off = at - (uintptr_t)current->app;

	(void)sig, (void)context;
	if (off >= (size_t)PAGES * PAGE) {
		signal(SIGSEGV, SIG_DFL);
		return;
	}
	memcpy(current->sys + off, current->source + off, PAGE);
	mprotect(current->app + off, PAGE, PROT_READ);
}

static _Noreturn void give_up(void)
{
	jia_error("no memory for the floors: %s", strerror(errno));
	abort();
}

static void *map(int fd)
{
	void *p = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, fd, 0);

	if (p == MAP_FAILED)
		give_up();
	return p;
}

struct bench_floors *bench_floors_open(void)
{
	struct bench_floors *f = calloc(1, sizeof(*f));
	int fd = memfd_create("jiabench", MFD_CLOEXEC);
	int other = memfd_create("jiabench", MFD_CLOEXEC);

	if (!f || fd < 0 || other < 0 || ftruncate(fd, (off_t)PAGES * PAGE) ||
	    ftruncate(other, (off_t)PAGES * PAGE))
		give_up();
	f->app = map(fd);
	f->sys = map(fd);
	f->source = map(other);
	memset(f->sys, 1, (size_t)PAGES * PAGE);
	memset(f->source, 2, (size_t)PAGES * PAGE);
	close(fd);
	close(other);
	return f;
}

void bench_floors_close(struct bench_floors *f)
{
	munmap(f->app, (size_t)PAGES * PAGE);
	munmap(f->sys, (size_t)PAGES * PAGE);
	munmap(f->source, (size_t)PAGES * PAGE);
	free(f);
}

static void add(struct bench *b, enum bench_floor kind,
		struct bench_samples *also, uint64_t start, double ops)
{
	double us = (double)(bench_now_ns() - start) / 1e3 / ops;

	bench_add(&b->board->floor[kind], us);
	if (also)
		bench_add(also, us);
}

static void take_fault(struct bench *b, struct bench_samples *also)
{
	struct bench_floors *f = b->floors;
	struct sigaction sa = { .sa_sigaction = repair,
				.sa_flags = SA_SIGINFO | SA_NODEFER };

	current = f;
	mprotect(f->app, (size_t)PAGES * PAGE, PROT_NONE);
	sigaction(SIGSEGV, &sa, &f->before);
	for (unsigned int i = 0; i < FAULTS; i++) {
		/* Triangular numbers: each page once, no constant stride. */
		unsigned int page = (f->next + i * (i + 1) / 2) % PAGES;
		const volatile char *p = f->app + (size_t)page * PAGE;
		uint64_t start = bench_now_ns();

		(void)*p;
		add(b, BENCH_FAULT, also, start, 1);
	}
	sigaction(SIGSEGV, &f->before, NULL);
	f->next += FAULTS;
}

static void take_copy(struct bench *b, struct bench_samples *also)
{
	struct bench_floors *f = b->floors;
	uint64_t start = bench_now_ns();

	for (unsigned int i = 0; i < COPIES; i++)
		memcpy(f->sys + (size_t)i * PAGE, f->source + (size_t)i * PAGE,
		       PAGE);
	__asm__ volatile("" : : "r"(f->sys) : "memory");
	add(b, BENCH_COPY, also, start, COPIES);
}

/* --- two processes -------------------------------------------------------------- */

static void take_pair(struct bench *b, enum bench_floor kind,
		      struct bench_samples *also)
{
	struct bench_word *ping = &b->board->ping, *pong = &b->board->pong;
	uint32_t rounds = kind == BENCH_SPIN ? ROUNDS : WAKES;
	uint32_t from = ping->value;
	uint64_t start;

	jia_wait(); /* both are awake, and have seen where it begins */
	start = bench_now_ns();
	for (uint32_t i = from + 1; i != from + rounds + 1; i++) {
		if (kind == BENCH_SPIN && jia_pid) {
			bench_await(ping, i);
			bench_set(pong, i);
		} else if (kind == BENCH_SPIN) {
			bench_set(ping, i);
			bench_await(pong, i);
		} else if (jia_pid) {
			bench_await_sleeping(ping, i);
			bench_set_and_wake(pong, i);
		} else {
			bench_set_and_wake(ping, i);
			bench_await_sleeping(pong, i);
		}
	}
	/* A round trip is two wake-ups. */
	if (!jia_pid)
		add(b, kind, also, start,
		    kind == BENCH_SPIN ? rounds : rounds * 2);
}

void bench_floor_take(struct bench *b, enum bench_floor kind,
		      struct bench_samples *also)
{
	jia_wait();
	if (kind == BENCH_SPIN || kind == BENCH_WAKE) {
		if (jia_pid < 2)
			take_pair(b, kind, also);
		else
			jia_wait(); /* the one in take_pair() */
	} else if (jia_pid == 0) {
		if (kind == BENCH_FAULT)
			take_fault(b, also);
		else
			take_copy(b, also);
	}
	jia_wait();
}
