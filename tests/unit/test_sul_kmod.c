/* SPDX-License-Identifier: MIT */
/*
 * test_sul_kmod.c - the carrier by the kernel module, with a module of our own
 * (sul_fake.h): what is gathered, cut, landed, and what it costs.  How it waits is
 * in test_sul_kmod_wait.c, how it begins in test_sul_kmod_open.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sul_bench.h"
#include "tests.h"

/* --- who uses it --------------------------------------------------------------------- */

static int be_carried(struct sul_port *p, void *ctx)
{
	const char *const *name = ctx;

	MUST(!strcmp(sul_carrier(p), name[sul_rank(p)]));
	return bench_meet(p, 1);
}

static void the_module_is_used_where_it_is(void)
{
	static const char *both[] = { "kmod", "kmod" };
	static const char *one[] = { "kmod", "udp" };
	struct bench b = { .ranks = 2 };

	bench_in(BENCH_KMOD_THREADS, b, be_carried, both);
	bench_in(BENCH_KMOD, b, be_carried, both);
	bench_in(BENCH_KMOD_UDP, b, be_carried, one);
}

/* --- batches -------------------------------------------------------------------------- */

enum {
	FEW = 40,
	MANY = 1000,
};

static int count_submits(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), one = 1, old[FEW];
	unsigned long before;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	if (sul_rank(p)) {
		MUST(!bench_compute_until(p, &own[1]));
		return 0;
	}
	before = fake_sul_calls(SUL_IOC_SUBMIT);
	for (int i = 0; i < FEW; i++)
		MUST(!sul_amo(p, 1, 0, 0, SUL_AMO_ADD, 1, 0, &old[i]));
	MUST(fake_sul_calls(SUL_IOC_SUBMIT) == before);
	MUST(!sul_flush(p));
	MUST(fake_sul_calls(SUL_IOC_SUBMIT) == before + 1);
	for (uint64_t i = 0; i < FEW; i++)
		MUST(old[i] == i);
	MUST(!sul_flush(p)); /* nothing to ask for */
	MUST(fake_sul_calls(SUL_IOC_SUBMIT) == before + 1);
	for (int i = 0; i < MANY; i++)
		MUST(!sul_put(p, 1, 0, 64, &one, 8));
	MUST(!sul_put(p, 1, 0, 8, &one, 8));
	MUST(!sul_flush(p));
	MUST(fake_sul_calls(SUL_IOC_SUBMIT) ==
	     before + 1 + (MANY + SUL_KMOD_OPS) / SUL_KMOD_OPS);
	return 0;
}

static void a_batch_is_one_call(void)
{
	struct bench b = { .ranks = 2, .spin_us = 1000000 };

	bench_in(BENCH_KMOD_THREADS, b, count_submits, NULL);
	bench_in(BENCH_KMOD, b, count_submits, NULL);
}

static int message(struct sul_port *p, void *ctx)
{
	struct sul_word *word = sul_window(p, 0);
	unsigned long before, waits;

	(void)ctx;
	MUST(!bench_meet(p, 1));
	before = fake_sul_calls(SUL_IOC_SUBMIT);
	waits = fake_sul_calls(SUL_IOC_WAIT);
	for (uint32_t i = 1; i <= FEW; i++) {
		if (!sul_rank(p))
			MUST(!sul_notify(p, 1, 0, 0, i));
		MUST(!sul_wait(p, word, i - 1, 20000));
		if (sul_rank(p))
			MUST(!sul_notify(p, 0, 0, 0, i));
	}
	/* The last of rank 1 leaves in the meeting. */
	MUST(fake_sul_calls(SUL_IOC_SUBMIT) - before <= FEW);
	MUST(fake_sul_calls(SUL_IOC_WAIT) == waits);
	return bench_meet(p, 2);
}

static void sending_is_one_call_and_receiving_none(void)
{
	struct bench b = { .ranks = 2, .spin_us = 10000000 };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("(one processor: nobody spins) ");
		return;
	}
	bench_in(BENCH_KMOD, b, message, NULL); /* counts of a process each */
}

/* --- messages ------------------------------------------------------------------------- */

enum {
	SHORTEST = 8,
	/* A packet's header, a frame's, two words and their values, the slot's head */
	MESSAGE_WIRE = 64 + 16 + 16 + 8,
};

struct sent {
	int taken;
	bool wrong;
};

static size_t length_of(int nr)
{
	return nr % 2 ? SHORTEST : SUL_MESSAGE_MAX;
}

static void take_letter(void *ctx, int from, const void *body, size_t len)
{
	struct sent *s = ctx;
	char want[SUL_MESSAGE_MAX];

	(void)from;
	memset(want, s->taken, sizeof(want));
	s->wrong |= len != length_of(s->taken) || memcmp(body, want, len);
	s->taken++;
}

static uint64_t wire_out(struct sul_port *p)
{
	struct sul_stats s;

	sul_stats_read(p, &s);
	return s.wire_out;
}

/* The least that one of FEW puts on the wire, of either length. */
static int send_few(struct sul_port *p, void *ctx)
{
	uint64_t least[2] = { UINT64_MAX, UINT64_MAX };
	struct sent s = { 0 };
	char body[SUL_MESSAGE_MAX];

	MUST(!sul_handler(p, 0, take_letter, &s));
	MUST(!bench_meet(p, 1));
	for (int i = 0; i < FEW && !sul_rank(p); i++) {
		unsigned long calls = fake_sul_calls(SUL_IOC_SUBMIT);
		uint64_t before = wire_out(p), bytes;

		memset(body, i, sizeof(body));
		MUST(!sul_send(p, 1, 0, body, length_of(i)));
		bytes = wire_out(p) - before;
		if (bytes < least[i % 2])
			least[i % 2] = bytes;
		MUST(!ctx || fake_sul_calls(SUL_IOC_SUBMIT) == calls + 1);
		MUST(!sul_flush(p));
	}
	MUST(!bench_meet(p, 2));
	MUST(!sul_rank(p) || (s.taken == FEW && !s.wrong));
	MUST(sul_rank(p) || !ctx ||
	     (least[1] == MESSAGE_WIRE + SHORTEST &&
	      least[0] == MESSAGE_WIRE + SUL_MESSAGE_MAX));
	return 0;
}

static void a_message_is_one_operation_of_one_call(void)
{
	struct bench b = { .ranks = 2 };
	int far = 1;

	bench_in(BENCH_KMOD, b, send_few, &far); /* counts of a process each */
	bench_in(BENCH_KMOD_UDP, b, send_few, &far);
	bench_in(BENCH_KMOD_THREADS, b, send_few, NULL);
}

/* Whatever a SUBMIT leaves is submitted again, and nothing twice. */
static int add_often(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), old;
	int other = !sul_rank(p);

	(void)ctx;
	for (int i = 0; i < MANY; i++)
		MUST(!sul_amo(p, other, 0, 0, SUL_AMO_ADD, 1, 0,
			      i % 3 ? NULL : &old));
	MUST(!sul_flush(p));
	MUST(!bench_meet(p, 1));
	MUST(own[0] == MANY);
	return 0;
}

static void what_a_call_leaves_goes_with_the_next(void)
{
	bench_with_module((struct bench){ .ranks = 2, .module.submit_most = 7 },
			  add_often, NULL);
}

/* --- sizes ------------------------------------------------------------------------------- */

enum {
	BIG = (3 << 20) + 5,
	BIG_WINDOW = 4 << 20,
	ODD = 13, /* offset */
};

static unsigned char *pattern(size_t bytes, int seed)
{
	unsigned char *b = malloc(bytes);

	for (size_t i = 0; b && i < bytes; i++)
		b[i] = (unsigned char)(i * 31 + i / 253 + (size_t)seed);
	return b;
}

static int move_much(struct sul_port *p, void *ctx)
{
	int self = sul_rank(p), other = !self;
	unsigned char *mine = pattern(BIG, self), *back = malloc(BIG);
	unsigned char *theirs = pattern(BIG, other), *own = sul_window(p, 0);
	struct sul_run runs[] = { { 3, 10 },
				  { 100, BIG - 200 },
				  { BIG - 50, 50 } };
	struct sul_mirror mirror = { 8, 1, 2 };
	uint64_t *flag = sul_window(p, 2);

	(void)ctx;
	MUST(mine && back && theirs);
	flag[1] = 1;
	MUST(!bench_meet(p, 1));
	MUST(!sul_put(p, other, 0, ODD, mine, BIG));
	MUST(!sul_get(p, other, 0, ODD, back, BIG, NULL, 0));
	MUST(!sul_flush(p));
	MUST(!memcmp(mine, back, BIG));
	MUST(!bench_meet(p, 2));
	MUST(!memcmp(own + ODD, theirs, BIG));
	memset(own + ODD, 0, BIG);
	MUST(!bench_meet(p, 3));
	MUST(!sul_putv(p, other, 0, ODD, mine, runs, 3, &mirror));
	MUST(!sul_flush(p));
	MUST(!bench_meet(p, 4));
	for (int copy = 0; copy < 2; copy++, own = sul_window(p, 1)) {
		for (int i = 0; i < 3; i++)
			MUST(!memcmp(own + ODD + runs[i].off,
				     theirs + runs[i].off, runs[i].len));
		MUST(!own[ODD + 2] && !own[ODD + 13] && !own[ODD + 99]);
	}
	free(mine);
	free(back);
	free(theirs);
	return bench_meet(p, 5);
}

static void what_is_too_long_is_cut_between_words(void)
{
	bench_with_module(
		(struct bench){ .ranks = 2, .windows = 3, .bytes = BIG_WINDOW },
		move_much, NULL);
}

static int scatter_bytes(struct sul_port *p, void *ctx)
{
	enum {
		RUNS = 3 * SUL_ABI_OP_RUNS_MAX + 7
	};
	unsigned char *mine = pattern(2 * RUNS, sul_rank(p));
	unsigned char *theirs = pattern(2 * RUNS, !sul_rank(p));
	unsigned char *own = sul_window(p, 0);
	struct sul_run *runs = malloc(RUNS * sizeof(*runs));

	(void)ctx;
	MUST(mine && theirs && runs);
	for (uint32_t i = 0; i < RUNS; i++)
		runs[i] = (struct sul_run){ 2 * i, 1 };
	MUST(!sul_putv(p, !sul_rank(p), 0, 8, mine, runs, RUNS, NULL));
	memset(runs, 0xff, RUNS * sizeof(*runs)); /* no source: ours again */
	free(runs);
	MUST(!sul_flush(p));
	MUST(!bench_meet(p, 1));
	for (int i = 0; i < RUNS; i++)
		MUST(own[8 + 2 * i] == theirs[2 * i] && !own[9 + 2 * i]);
	free(mine);
	free(theirs);
	return 0;
}

static void runs_are_taken_along(void)
{
	bench_with_module((struct bench){ .ranks = 2 }, scatter_bytes, NULL);
}

/* --- the landing area ---------------------------------------------------------------------- */

static int land_much(struct sul_port *p, void *ctx)
{
	enum {
		GETS = 3000,
		EACH = 100,
		WINDOW = 64 << 10
	};
	uint64_t *own = sul_window(p, 0), old[16], end = WINDOW / 8 - 1024;
	unsigned char *into = malloc(GETS * EACH);
	int other = !sul_rank(p);

	(void)ctx;
	MUST(into);
	for (uint64_t i = 16; i < end; i++)
		own[i] = i * 3 + (uint64_t)sul_rank(p);
	MUST(!bench_meet(p, 1));
	for (size_t i = 0; i < GETS; i++) {
		MUST(!sul_get(p, other, 0, 128 + 8 * (i % 4096),
			      into + i * EACH, EACH, NULL, 0));
		if (i % 200 == 0)
			MUST(!sul_amo(p, other, 0, 0, SUL_AMO_ADD, 1, 0,
				      &old[i / 200]));
	}
	MUST(!sul_flush(p));
	for (size_t i = 0; i < GETS; i++) {
		uint64_t v;

		memcpy(&v, into + i * EACH, 8);
		MUST(v == (16 + i % 4096) * 3 + (uint64_t)other);
		memcpy(&v, into + i * EACH + 88, 8);
		MUST(v == (16 + 11 + i % 4096) * 3 + (uint64_t)other);
	}
	for (uint64_t i = 0; i < GETS / 200; i++)
		MUST(old[i] == i);
	free(into);
	return bench_meet(p, 2);
}

static void more_than_the_landing_area_holds_is_got_in_turns(void)
{
	bench_with_module((struct bench){ .ranks = 2 }, land_much, NULL);
	bench_with_module((struct bench){ .ranks = 2, .spin_us = 100 },
			  land_much, NULL);
}

/* Threads that share one: each finds its own. */
enum {
	GETTERS = 3,
	LAPS = 300
};

struct getter {
	struct sul_port *p;
	uint64_t nr;
	pthread_t thread;
	int failed;
};

static void *get_own(void *arg)
{
	struct getter *g = arg;
	uint64_t seen[64], old, other = !sul_rank(g->p);

	for (uint64_t i = 0; i < LAPS && !g->failed; i++) {
		memset(seen, 0, sizeof(seen));
		g->failed |= sul_get(g->p, (int)other, 0, 512 * (1 + g->nr),
				     seen, sizeof(seen), NULL, 0);
		g->failed |= sul_amo(g->p, (int)other, 0, 8 * g->nr,
				     SUL_AMO_ADD, 1, 0, &old);
		g->failed |= sul_flush(g->p);
		for (uint64_t k = 0; k < 64; k++)
			g->failed |= seen[k] != g->nr * 1000 + k + other;
		g->failed |= old != i;
	}
	return NULL;
}

static int get_together(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0);
	struct getter g[GETTERS] = { 0 };
	int failed = 0;

	(void)ctx;
	for (uint64_t n = 0; n < GETTERS; n++)
		for (uint64_t k = 0; k < 64; k++)
			own[64 * (1 + n) + k] =
				n * 1000 + k + (uint64_t)sul_rank(p);
	MUST(!bench_meet(p, 1));
	for (uint64_t n = 0; n < GETTERS; n++) {
		g[n].p = p;
		g[n].nr = n;
		MUST(!pthread_create(&g[n].thread, NULL, get_own, &g[n]));
	}
	for (int n = 0; n < GETTERS; n++) {
		pthread_join(g[n].thread, NULL);
		failed |= g[n].failed;
	}
	MUST(!failed);
	return bench_meet(p, 2);
}

static void threads_find_their_own_results(void)
{
	bench_with_module((struct bench){ .ranks = 2 }, get_together, NULL);
	bench_with_module((struct bench){ .ranks = 2, .spin_us = 30 },
			  get_together, NULL);
}
static void a_module_that_cannot_tell_is_asked_again(void)
{
	bench_with_module((struct bench){ .ranks = 2,
					  .module.no_wait_all = true },
			  get_together, NULL);
}

static int look_at_stats(struct sul_port *p, void *ctx)
{
	struct sul_stats s;
	uint64_t v = 1;

	(void)ctx;
	for (int i = 0; i < FEW; i++) {
		MUST(!sul_put(p, !sul_rank(p), 0, 0, &v, 8));
		MUST(!sul_flush(p));
	}
	sul_stats_read(p, &s);
	MUST(s.packets_out >= FEW && s.packets_in >= FEW);
	MUST(s.wire_out > 64 * s.packets_out && s.wire_in >= 64 * s.packets_in);
	return bench_meet(p, 1);
}

static void packets_are_counted(void)
{
	bench_in(BENCH_KMOD, (struct bench){ .ranks = 2 }, look_at_stats, NULL);
}

CU_TestInfo test_sul_kmod[] = {
	{ "the module is used where it is", the_module_is_used_where_it_is },
	{ "a batch is one call", a_batch_is_one_call },
	{ "sending is one call and receiving none",
	  sending_is_one_call_and_receiving_none },
	{ "a message is one operation of one call",
	  a_message_is_one_operation_of_one_call },
	{ "what a call leaves goes with the next",
	  what_a_call_leaves_goes_with_the_next },
	{ "what is too long is cut between words",
	  what_is_too_long_is_cut_between_words },
	{ "runs are taken along", runs_are_taken_along },
	{ "more than the landing area holds is got in turns",
	  more_than_the_landing_area_holds_is_got_in_turns },
	{ "threads find their own results", threads_find_their_own_results },
	{ "a module that cannot tell is asked again",
	  a_module_that_cannot_tell_is_asked_again },
	{ "packets are counted", packets_are_counted },
	CU_TEST_INFO_NULL,
};
