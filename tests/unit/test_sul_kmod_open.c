/* SPDX-License-Identifier: MIT */
/*
 * test_sul_kmod_open.c - who uses the kernel module (sul_fake.h), and what is said
 * where it cannot be used.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "sul_bench.h"
#include "tests.h"

/* --- refusals -------------------------------------------------------------------------------------- */

/* A job of two ranks in this process, as if they were on two hosts or one. */
struct pair {
	struct sul_job *job;
	struct sul_listener *listener[2];
	struct sul_port *port;
	char why[SUL_WHY_MAX];
};

static int listen_as(struct pair *t, int rank, enum sul_far far)
{
	struct sul_listen_config cfg = { .job = t->job,
					 .rank = rank,
					 .far = far,
					 .kmod = &fake_sul,
					 .everywhere = true };

	return sul_listen(&t->listener[rank], &cfg, t->why);
}

static void pair_begin(struct pair *t, struct fake_sul_config cfg)
{
	memset(t, 0, sizeof(*t));
	fake_sul_begin(&cfg);
	REQUIRE(sul_job_create(&t->job, 2) == 0);
	REQUIRE(listen_as(t, 1, SUL_FAR_UDP) == 0);
}

static int pair_open(struct pair *t, uint64_t pin_bytes)
{
	struct sul_config cfg = { .carrier = "shm",
				  .job = t->job,
				  .ranks = 2,
				  .listener = t->listener[0],
				  .silence_ms = 1000,
				  .pin_bytes = pin_bytes,
				  .why = t->why,
				  .windows = 1,
				  .window = { { .bytes = 1 << 20 } } };

	t->listener[0] = NULL;
	return sul_open(&t->port, &cfg);
}

static void pair_end(struct pair *t)
{
	sul_close(t->port);
	sul_listener_close(t->listener[0]);
	sul_listener_close(t->listener[1]);
	sul_job_close(t->job);
}

static bool publishes_kmod(const struct pair *t)
{
	struct sul_address a;

	return !sul_address_read(&a, t->job, 0) && a.flags & SUL_ADDRESS_KMOD;
}

static void what_is_forced_and_not_there_is_an_error(void)
{
	static const struct {
		struct fake_sul_config cfg;
		int err;
		const char *why;
	} cases[] = {
		{ { .open_err = -ENOENT },
		  -ENOENT,
		  "carrier=kmod: /dev/sul: No such file or directory: the module (sul.ko) is not loaded here" },
		{ { .open_err = -EACCES },
		  -EACCES,
		  "carrier=kmod: /dev/sul: Permission denied: it belongs to the group sul" },
		{ { .version = 7 },
		  -EPROTO,
		  "carrier=kmod: the module behind /dev/sul speaks versions 7 to 7, this library 2" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair t;

		pair_begin(&t, cases[i].cfg);
		CU_ASSERT_EQUAL(listen_as(&t, 0, SUL_FAR_KMOD), cases[i].err);
		ASSERT_TEXT(t.why, cases[i].why);
		pair_end(&t);
	}
}

static void without_the_module_it_is_udp_and_one_line_says_why(void)
{
	static const struct {
		struct fake_sul_config cfg;
		const char *why;
	} cases[] = {
		{ { .open_err = -ENOENT }, "" },
		{ { .open_err = -EACCES },
		  "carrier udp instead of kmod: /dev/sul: Permission denied: it belongs to the group sul" },
		{ { .version = 7 },
		  "carrier udp instead of kmod: the module behind /dev/sul speaks versions 7 to 7, this library 2" },
		{ { .port_err = -EMFILE },
		  "carrier udp instead of kmod: this user has as many ports of /dev/sul as the module gives one (its parameter ports)" },
		{ { .port_err = -ENOBUFS },
		  "carrier udp instead of kmod: the module gives a port less kernel memory (its parameter port_bytes) than 2 ranks, and 64 KiB to be pinned (parameter pin), need" },
		{ { .port_err = -EADDRINUSE },
		  "carrier udp instead of kmod: rank 0 of this job has a port of /dev/sul already" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair t;

		pair_begin(&t, cases[i].cfg);
		CU_ASSERT_EQUAL(listen_as(&t, 0, SUL_FAR_AUTO), 0);
		CU_ASSERT_EQUAL(pair_open(&t, 1), 0);
		ASSERT_TEXT(sul_carrier(t.port), "udp");
		ASSERT_TEXT(t.why, cases[i].why);
		CU_ASSERT(!publishes_kmod(&t));
		pair_end(&t);
	}
}

/* As many pages as a user may lock; root's limit does not count in the kernel,
 * but it does in what is asked for here. */
static void with_limit(rlim_t bytes, void (*fn)(void))
{
	struct rlimit before, now;

	REQUIRE(!getrlimit(RLIMIT_MEMLOCK, &before));
	now = before;
	now.rlim_cur = bytes;
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &now));
	fn();
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &before));
}

static void refuse_pin(void)
{
	struct pair t;

	/* A wish is refused, and told why ... */
	pair_begin(&t, (struct fake_sul_config){ .pin_left = 64 << 10 });
	CU_ASSERT_EQUAL(listen_as(&t, 0, SUL_FAR_KMOD), 0);
	CU_ASSERT(publishes_kmod(&t));
	CU_ASSERT_EQUAL(pair_open(&t, 1 << 20), -ENOMEM);
	ASSERT_TEXT(
		t.why,
		"carrier=kmod: 1024 KiB of memory are to be pinned (parameter pin), and of the limit of 128 KiB for this user (ulimit -l, RLIMIT_MEMLOCK) 64 KiB are left");
	pair_end(&t);
	/* ... without one, what is left will do, ... */
	pair_begin(&t, (struct fake_sul_config){ .pin_left = 64 << 10 });
	CU_ASSERT_EQUAL(listen_as(&t, 0, SUL_FAR_KMOD), 0);
	CU_ASSERT_EQUAL(pair_open(&t, 0), 0);
	ASSERT_TEXT(sul_carrier(t.port), "kmod");
	CU_ASSERT_EQUAL(fake_sul_spec().pin_bytes, 64 << 10);
	pair_end(&t);
	/* ... but not if it is next to nothing. */
	pair_begin(&t, (struct fake_sul_config){ .pin_left = 4096 });
	CU_ASSERT_EQUAL(listen_as(&t, 0, SUL_FAR_AUTO), 0);
	CU_ASSERT_EQUAL(pair_open(&t, 0), 0);
	ASSERT_TEXT(sul_carrier(t.port), "udp");
	CU_ASSERT_PTR_NOT_NULL(strstr(t.why, "4 KiB are left"));
	pair_end(&t);
}

static void the_limit_of_locked_memory_is_named(void)
{
	with_limit(128 << 10, refuse_pin);
}

CU_TestInfo test_sul_kmod_open[] = {
	{ "what is forced and not there is an error",
	  what_is_forced_and_not_there_is_an_error },
	{ "without the module it is udp, and one line says why",
	  without_the_module_it_is_udp_and_one_line_says_why },
	{ "the limit of locked memory is named",
	  the_limit_of_locked_memory_is_named },
	CU_TEST_INFO_NULL,
};
