/* SPDX-License-Identifier: MIT */
/*
 * app_alone.c - one rank by itself: nothing is shared, nobody is waited for.
 *
 * Role: what NAME-serial runs on, and what app_alone() gives one rank of a job
 *   that wants to compute a result again to compare it.
 * Invariant: a wait here would never end, since nobody is there to wake; it is
 *   a fault of the program.
 * Threads: any; there is no state.
 * Locks: none.
 */
#include "app_backend.h"

#include <sys/mman.h>

void *app_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		app_die("no memory for %zu bytes", bytes);
	return p;
}

static void join_alone(int argc, char **argv, int *rank, int *ranks)
{
	(void)argc;
	(void)argv;
	*rank = 0;
	*ranks = 1;
}

static void nothing(void)
{
}

static void *malloc_alone(const char *label, size_t bytes, int home)
{
	(void)label;
	(void)home;
	return app_pages(bytes);
}

static void overwrite_alone(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

static void fetch_alone(const void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

static void lock_alone(int lock)
{
	(void)lock;
}

static void lock_at_alone(const void *addr)
{
	(void)addr;
}

static void wait_alone(const void *cond)
{
	(void)cond;
	app_die("the only rank waits for another");
}

static void reduce_alone(double *v, int n, bool sum)
{
	(void)v;
	(void)n;
	(void)sum;
}

static void end_alone(struct app_traffic *t)
{
	memset(t, 0, sizeof(*t));
}

static void set_alone(const char *name, const char *value)
{
	(void)name;
	(void)value;
}

static void phase_alone(const char *name)
{
	(void)name;
}

__attribute__((noreturn)) static void die_alone(const char *text)
{
	fprintf(stderr, "%s\n", text);
	exit(APP_WRONG);
}

const struct app_backend app_alone_backend = {
	.join = join_alone,
	.leave = nothing,
	.quit = exit,
	.malloc = malloc_alone,
	.overwrite = overwrite_alone,
	.fetch = fetch_alone,
	.barrier = nothing,
	.lock = lock_alone,
	.unlock = lock_alone,
	.lock_at = lock_at_alone,
	.unlock_at = lock_at_alone,
	.wait = wait_alone,
	.wake = lock_at_alone,
	.reduce = reduce_alone,
	.begin = nothing,
	.end = end_alone,
	.set = set_alone,
	.phase = phase_alone,
	.die = die_alone,
};
