/* SPDX-License-Identifier: MIT */
/*
 * app_dsm.c - NAME: ranks are processes that share memory through libjia.
 *
 * Role: the calls of app.h in those of jia.h, and no more.
 * Invariant: the program finds the same calls and guarantees as with threads,
 *   except that what a rank wrote is seen by another only after they have met:
 *   at a barrier, or with the same lock.
 * Threads: one per rank.
 * Locks: libjia's.
 */
#define JIA_NO_MACROS
#include "jia.h"

#include "app_backend.h"

_Static_assert((int)APP_LOCKS == (int)Maxlocks, "all of libjia's locks");

enum {
	/* Touched at once: less than the smallest cache (16 units) holds. */
	TOUCH_BYTES = 8 * APP_PAGE
};

static void join_dsm(int argc, char **argv, int *rank, int *ranks)
{
	jia_init(argc, argv);
	*rank = jia_pid;
	*ranks = hostc;
}

static void *malloc_dsm(const char *label, size_t bytes, int home)
{
	void *p = home < 0 ? jia_malloc(bytes) :
			     jia_malloc_on(bytes, bytes, home);

	jia_name(p, label);
	return p;
}

static void touch(const char *at, size_t bytes, int mode)
{
	while (bytes) {
		size_t len = bytes < TOUCH_BYTES ? bytes : TOUCH_BYTES;

		jia_touch(at, len, mode);
		jia_untouch(at, len);
		at += len;
		bytes -= len;
	}
}

/* A page that was touched stays writable until the next synchronisation, unless
 * the cache is full: then it is sent as it is, and fetched again. */
static void overwrite_dsm(void *p, size_t bytes)
{
	touch(p, bytes, JIA_OVERWRITE);
}

static void fetch_dsm(const void *p, size_t bytes)
{
	touch(p, bytes, JIA_READ);
}

static void reduce_dsm(double *v, int n, bool sum)
{
	double out[APP_SUMS];

	jia_reduce(v, out, n, sum ? SUM_DOUBLE : MAX_DOUBLE, 0);
	memcpy(v, out, (size_t)n * sizeof(*v));
}

static void begin_dsm(void)
{
	jia_startstat();
}

static void end_dsm(struct app_traffic *t)
{
	t->counted = true;
	t->fetched = (double)jia_counter("getp");
	t->refreshed = (double)jia_counter("refreshed");
	t->put_bytes = (double)jia_counter("diff_bytes");
	jia_stopstat();
}

__attribute__((noreturn)) static void die_dsm(const char *text)
{
	jia_error("%s", text);
	abort(); /* it does not return, which its declaration cannot say */
}

static const struct app_backend dsm = {
	.unit = "rank",
	.join = join_dsm,
	.leave = jia_exit,
	.quit = exit,
	.malloc = malloc_dsm,
	.overwrite = overwrite_dsm,
	.fetch = fetch_dsm,
	.barrier = jia_barrier,
	.lock = jia_lock,
	.unlock = jia_unlock,
	.lock_at = jia_lock_at,
	.unlock_at = jia_unlock_at,
	.wait = jia_cond_wait,
	.wake = jia_cond_broadcast,
	.reduce = reduce_dsm,
	.begin = begin_dsm,
	.end = end_dsm,
	.set = jia_set,
	.phase = jia_phase,
	.die = die_dsm,
};

const struct app_backend *const app_backend = &dsm;

int main(int argc, char **argv)
{
	return app_main(argc, argv);
}
