/* SPDX-License-Identifier: MIT */
/*
 * test_sul_port.c - what every carrier does alike: the one-sided operations,
 * and what is refused before a carrier sees it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sul_bench.h"
#include "tests.h"

/* --- opening ------------------------------------------------------------------- */

static int open_and_close(struct sul_config cfg)
{
	struct sul_port *p;
	int err = sul_open(&p, &cfg);

	if (!err)
		sul_close(p);
	return err;
}

static struct sul_config good_config(struct sul_job *job)
{
	return (struct sul_config){ .carrier = "shm",
				    .job = job,
				    .ranks = 2,
				    .windows = 1,
				    .window = { { .bytes = 8192 } } };
}

static void bad_configurations_are_refused(void)
{
	struct sul_config c;
	struct sul_job *job;

#define REFUSED(error, field, value)                          \
	do {                                                  \
		c = good_config(job);                         \
		c.field = value;                              \
		CU_ASSERT_EQUAL(open_and_close(c), -(error)); \
	} while (0)
	CU_ASSERT_EQUAL_FATAL(sul_job_create(&job, 2), 0);
	CU_ASSERT_EQUAL(open_and_close(good_config(job)), 0);
	REFUSED(ENOENT, carrier, "pigeon");
	REFUSED(ENOENT, carrier, NULL);
	REFUSED(EINVAL, ranks, 0);
	REFUSED(EINVAL, ranks, -1);
	REFUSED(EINVAL, ranks, 3); /* the job has two */
	REFUSED(EINVAL, ranks, SUL_RANKS_MAX + 1);
	REFUSED(EINVAL, rank, 2);
	REFUSED(EINVAL, rank, -1);
	REFUSED(EINVAL, windows, SUL_WINDOWS_MAX + 1);
	REFUSED(EINVAL, windows, 2); /* the second has no size */
	REFUSED(EINVAL, window[0].bytes, 0);
	REFUSED(EINVAL, window[0].chunk, 3);
	REFUSED(EINVAL, window[0].chunk, 1024);
	REFUSED(EINVAL, job, NULL);
	REFUSED(EINVAL, carrier, "sim"); /* without a world */
	REFUSED(EFBIG, window[0].bytes, SIZE_MAX / 4 & ~(size_t)4095);
#undef REFUSED
	sul_job_close(job);
	sul_close(NULL);
}

static void a_window_lies_where_it_was_asked_for(void)
{
	struct sul_config c;
	struct sul_port *p;
	struct sul_job *job;
	void *there =
		mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_NOT_EQUAL_FATAL(there, MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(sul_job_create(&job, 2), 0);
	c = good_config(job);
	c.window[0].hint = there;
	CU_ASSERT_EQUAL(open_and_close(c), -EEXIST);
	munmap(there, 8192);
	CU_ASSERT_EQUAL_FATAL(sul_open(&p, &c), 0);
	CU_ASSERT_PTR_EQUAL(sul_window(p, 0), there);
	sul_close(p);
	sul_job_close(job);
}

static void a_rank_of_a_simulated_world_opens_once(void)
{
	struct sul_sim_config cfg = { .ranks = 2 };
	struct sul_config c = good_config(NULL);
	struct sul_port *p;

	CU_ASSERT_EQUAL_FATAL(sul_sim_new(&c.sim, &cfg), 0);
	c.carrier = "sim";
	CU_ASSERT_EQUAL_FATAL(sul_open(&p, &c), 0);
	CU_ASSERT_EQUAL(open_and_close(c), -EINVAL);
	c.rank = 1;
	c.ranks = 3;
	CU_ASSERT_EQUAL(open_and_close(c), -EINVAL);
	CU_ASSERT_STRING_EQUAL(sul_carrier(p), "sim");
	sul_close(p);
	sul_sim_free(c.sim);
}

/* --- refusals of operations --------------------------------------------------------- */

enum {
	BYTES = 64 << 10
};

struct place {
	int rank;
	unsigned int w;
	uint64_t off;
	size_t len;
};

/* Two windows of BYTES on two ranks; 0 .. 3 are good. */
static const struct place places[] = {
	{ 1, 0, 0, 8 },
	{ 1, 1, BYTES - 8, 8 },
	{ 1, 0, BYTES, 0 },
	{ 0, 1, BYTES - 1, 1 },
	{ -1, 0, 0, 8 },
	{ 2, 0, 0, 8 },
	{ INT_MAX, 0, 0, 8 },
	{ INT_MIN, 0, 0, 8 },
	{ 1, 2, 0, 8 }, /* no such window */
	{ 1, SUL_WINDOW_CHANNELS, 0, 8 }, /* not for users */
	{ 1, SUL_WINDOWS_ALL, 0, 8 },
	{ 1, UINT_MAX, 0, 8 },
	{ 1, 0, BYTES - 7, 8 },
	{ 1, 0, BYTES + 1, 0 },
	{ 1, 0, UINT64_MAX - 3, 8 }, /* the end wraps around */
	{ 1, 0, 8, SIZE_MAX - 7 },
};
enum {
	GOOD_PLACES = 4,
	PLACES = sizeof(places) / sizeof(places[0])
};

static int try_places(struct sul_port *p)
{
	char buf[8] = { 0 };

	for (int i = 0; i < PLACES; i++) {
		const struct place *a = &places[i];
		int expected = i < GOOD_PLACES ? 0 : -EINVAL;
		struct sul_run run = { 0, (uint32_t)a->len };

		MUST(sul_get(p, a->rank, a->w, a->off, buf, a->len, NULL, 0) ==
		     expected);
		MUST(sul_put(p, a->rank, a->w, a->off, buf, a->len) ==
		     expected);
		if (a->len == 8) {
			MUST(sul_putv(p, a->rank, a->w, a->off, buf, &run, 1,
				      NULL) == expected);
			MUST(sul_amo(p, a->rank, a->w, a->off, SUL_AMO_OR, 0, 0,
				     NULL) == expected);
			MUST(sul_notify(p, a->rank, a->w, a->off, 0) ==
			     expected);
		}
		if (a->rank == 0)
			MUST(sul_window_discard(p, a->w, 0, 4096) == expected);
		MUST(!sul_flush(p));
	}
	return 0;
}

static int try_words(struct sul_port *p)
{
	for (uint64_t off = 1; off < 8; off++) {
		MUST(sul_amo(p, 1, 0, off, SUL_AMO_ADD, 1, 0, NULL) == -EINVAL);
		MUST(sul_notify(p, 1, 0, off, 1) == -EINVAL);
	}
	MUST(sul_amo(p, 1, 0, 0, SUL_AMO_NR, 1, 0, NULL) == -EINVAL);
	MUST(sul_amo(p, 1, 0, 0, (enum sul_amo_op) - 1, 1, 0, NULL) == -EINVAL);
	return 0;
}

static int try_runs(struct sul_port *p)
{
	char src[16] = { 1 };
	struct sul_run empty[] = { { 0, 1 }, { 4, 0 } };
	struct sul_run beyond[] = { { 0, 1 }, { BYTES - 8, 1 } };
	struct sul_run huge[] = { { UINT32_MAX, UINT32_MAX } };
	struct sul_run one = { 0, 1 };
	struct sul_mirror m[] = {
		{ .window = 2, .flag_window = 1 },
		{ .window = 1, .flag_window = 2 },
		{ .window = 1, .flag_window = 1, .flag_off = BYTES },
		{ .window = SUL_WINDOW_CHANNELS, .flag_window = 1 },
	};

	MUST(sul_putv(p, 1, 0, 8, src, empty, 2, NULL) == -EINVAL);
	MUST(sul_putv(p, 1, 0, 8, src, beyond, 2, NULL) == -EINVAL);
	MUST(sul_putv(p, 1, 0, 0, src, huge, 1, NULL) == -EINVAL);
	for (size_t i = 0; i < sizeof(m) / sizeof(m[0]); i++)
		MUST(sul_putv(p, 1, 0, 0, src, &one, 1, &m[i]) == -EINVAL);
	MUST(sul_putv(p, 1, 0, 0, src, NULL, 0, NULL) == 0);
	return 0;
}

static int try_marks(struct sul_port *p)
{
	struct sul_mark good = { .off = 8, .bits = 1, .window = 1 };
	struct sul_mark bad[] = {
		{ .off = 8, .bits = 1, .window = 2 },
		{ .off = 4, .bits = 1, .window = 1 },
		{ .off = BYTES, .bits = 1, .window = 1 },
		{ .off = UINT64_MAX - 7, .bits = 1, .window = 1 },
	};
	struct sul_mark many[SUL_MARKS_MAX + 1] = { good, good, good, good };
	char buf[8];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sul_mark two[] = { good, bad[i] };

		MUST(sul_get(p, 1, 0, 0, buf, 8, two, 2) == -EINVAL);
	}
	MUST(sul_get(p, 1, 0, 0, buf, 8, many, SUL_MARKS_MAX + 1) == -EINVAL);
	return 0;
}

static bool all_zero(const void *mem, size_t bytes)
{
	const char *c = mem;

	return !c[0] && !memcmp(c, c + 1, bytes - 1);
}

static int refusals(struct sul_port *p, void *ctx)
{
	int fd, err;
	uint64_t off;

	(void)ctx;
	if (sul_rank(p))
		return bench_meet(p, 1);
	err = try_places(p) ?: try_words(p) ?: try_runs(p) ?: try_marks(p);
	if (err)
		return err;
	MUST(sul_window_file(p, 2, 0, &fd, &off) == -EINVAL);
	MUST(sul_window_file(p, 0, 2, &fd, &off) == -EINVAL);
	MUST(sul_window_file(p, 1, 0, &fd, &off) ==
	     (bench_simulated(p) || sul_port_far(p, 1) ? -ENOTSUP : 0));
	return bench_meet(p, 1);
}

/* Nothing of all that has been stored anywhere. */
static int refusals_store_nothing(struct sul_port *p, void *ctx)
{
	int err = refusals(p, ctx);

	if (err)
		return err;
	MUST(all_zero(sul_window(p, 0), BYTES - 8192));
	MUST(all_zero(sul_window(p, 1), BYTES));
	return 0;
}

static void what_does_not_exist_is_refused(void)
{
	bench_everywhere((struct bench){ .ranks = 2, .windows = 2 },
			 refusals_store_nothing, NULL);
}

/* --- operations ------------------------------------------------------------------------ */

static int puts_and_gets(struct sul_port *p)
{
	static const char text[] = "put across the border of two pages";
	char back[sizeof(text)];

	MUST(!sul_put(p, 1, 0, 4090, text, sizeof(text)));
	MUST(!sul_get(p, 1, 0, 4090, back, sizeof(back), NULL, 0));
	MUST(!sul_flush(p));
	MUST(!strcmp(back, text));
	return 0;
}

static int scatters(struct sul_port *p, unsigned char flag)
{
	static const char src[32] = "abcdefghijklmnopqrstuvwxyz01234";
	const struct sul_run runs[] = { { 1, 3 }, { 8, 8 }, { 30, 1 } };
	const char expected[32] = { [1] = 'b', 'c', 'd', [8] = 'i',
				    'j',       'k', 'l', 'm',
				    'n',       'o', 'p', [30] = '4' };
	const struct sul_mirror m = { .window = 1,
				      .flag_window = 0,
				      .flag_off = 100 };
	char back[2][32], zeros[32] = { 0 };

	MUST(!sul_put(p, 1, 0, 100, &flag, 1));
	MUST(!sul_put(p, 1, 0, 8192, zeros, 32));
	MUST(!sul_putv(p, 1, 0, 8192, src, runs, 3, &m));
	for (unsigned int w = 0; w < 2; w++)
		MUST(!sul_get(p, 1, w, 8192, back[w], 32, NULL, 0));
	MUST(!sul_flush(p));
	MUST(!memcmp(back[0], expected, 32));
	MUST(!memcmp(back[1], flag ? expected : zeros, 32));
	return 0;
}

static int atomics(struct sul_port *p)
{
	static const struct {
		enum sul_amo_op op;
		uint64_t operand, comparand, after;
	} steps[] = {
		{ SUL_AMO_SWAP, 0xf0, 0, 0xf0 },
		{ SUL_AMO_CAS, 1, 0xf1, 0xf0 },
		{ SUL_AMO_CAS, 0xff, 0xf0, 0xff },
		{ SUL_AMO_ADD, UINT64_MAX, 0, 0xfe },
		{ SUL_AMO_OR, 0x100, 0, 0x1fe },
		{ SUL_AMO_ANDNOT, 0xf, 0, 0x1f0 },
	};
	uint64_t expected = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t old = 77, now;

		MUST(!sul_amo(p, 1, 0, 64, steps[i].op, steps[i].operand,
			      steps[i].comparand, &old));
		MUST(!sul_get(p, 1, 0, 64, &now, 8, NULL, 0));
		MUST(!sul_flush(p));
		MUST(old == expected);
		expected = steps[i].after;
		MUST(now == expected);
	}
	MUST(!sul_amo(p, 1, 0, 64, SUL_AMO_SWAP, 0, 0, NULL));
	return sul_flush(p);
}

static int marks(struct sul_port *p)
{
	const struct sul_mark m[] = { { .off = 128, .bits = 2, .window = 1 },
				      { .off = 136, .bits = 4, .window = 1 },
				      { .off = 144, .bits = 8, .window = 1 } };
	uint64_t words[3], byte, zero = 0;

	MUST(!sul_get(p, 1, 0, 0, &byte, 8, m, 3));
	MUST(!sul_get(p, 1, 1, 128, words, 24, NULL, 0));
	MUST(!sul_flush(p));
	MUST(words[0] == 2 && words[1] == 4 && words[2] == 8);

	MUST(!sul_put(p, 1, 1, 136, &zero, 8)); /* the others stay */
	MUST(!sul_get(p, 1, 0, 0, &byte, 8, m, 3));
	MUST(!sul_get(p, 1, 1, 128, words, 24, NULL, 0));
	MUST(!sul_flush(p));
	MUST(words[0] == 2 && words[1] == 4 && words[2] == 8);
	return 0;
}

static int operations(struct sul_port *p, void *ctx)
{
	struct sul_stats before, after;
	char back[7];
	int err;

	(void)ctx;
	if (sul_rank(p))
		return bench_meet(p, 1);
	err = puts_and_gets(p)	     ?:
		      scatters(p, 0) ?:
		      scatters(p, 1) ?:
		      atomics(p)     ?:
				       marks(p);
	if (err)
		return err;
	sul_stats_read(p, &before);
	MUST(!sul_put(p, 1, 0, 0, "12345", 5));
	MUST(!sul_put(p, 0, 0, 0, "12345",
		      5)); /* a rank's own does not count */
	MUST(!sul_get(p, 1, 0, 0, back, 7, NULL, 0));
	MUST(!sul_flush(p));
	sul_stats_read(p, &after);
	MUST(after.operations == before.operations + 2);
	MUST(after.bytes_out == before.bytes_out + 5);
	MUST(after.bytes_in == before.bytes_in + 7);
	return bench_meet(p, 1);
}

static void operations_do_what_they_say(void)
{
	struct bench b = { .ranks = 2, .windows = 2 };

	bench_everywhere(b, operations, NULL);
	bench_seeds(b, 50, operations, NULL);
}

static int discards(struct sul_port *p, void *ctx)
{
	char *mem = sul_window(p, 0);

	(void)ctx;
	memset(mem, 5, 3 * 4096);
	MUST(!sul_window_discard(p, 0, 4096, 4096));
	MUST(mem[4095] == 5 && mem[8192] == 5);
	MUST(all_zero(mem + 4096, 4096));
	return 0;
}

static void discarded_memory_reads_as_zeros(void)
{
	bench_everywhere((struct bench){ .ranks = 1 }, discards, NULL);
}

CU_TestInfo test_sul_port[] = {
	{ "bad configurations are refused", bad_configurations_are_refused },
	{ "a window lies where it was asked for",
	  a_window_lies_where_it_was_asked_for },
	{ "a rank of a simulated world opens once",
	  a_rank_of_a_simulated_world_opens_once },
	{ "what does not exist is refused", what_does_not_exist_is_refused },
	{ "operations do what they say", operations_do_what_they_say },
	{ "discarded memory reads as zeros", discarded_memory_reads_as_zeros },
	CU_TEST_INFO_NULL,
};
