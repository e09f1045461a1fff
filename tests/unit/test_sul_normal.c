/* SPDX-License-Identifier: MIT */
/*
 * test_sul_normal.c - the normal channel: rendezvous over every carrier, with
 * one copy and through the bounce area.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_bench.h"
#include "sul_channel.h"
#include "tests.h"

/* --- without the single copy ----------------------------------------------------- */

static int refuse_private(struct sul_port *p, int rank, uint64_t addr,
			  const void *src, size_t len)
{
	(void)p, (void)rank, (void)addr, (void)src, (void)len;
	return -EPERM;
}

/* @ctx is the body. */
static int in_pieces(struct sul_port *p, void *ctx)
{
	const struct sul_carrier_ops *ops = p->ops;
	struct sul_carrier_ops without = *ops;
	bench_fn *const *fn = ctx;
	int result;

	without.put_private = refuse_private;
	p->ops = &without;
	result = (*fn)(p, NULL);
	p->ops = ops;
	return result;
}

static void in_every_world_and_way(struct bench b, bench_fn *fn)
{
	bench_everywhere(b, fn, NULL);
	bench_everywhere(b, in_pieces, &fn);
	bench_seeds(b, 10, fn, NULL);
	bench_seeds(b, 10, in_pieces, &fn);
}

/* --- contents ----------------------------------------------------------------------- */

enum {
	MOST = 300000
};

/* Valgrind does not see what another process stores here. */
static unsigned char *zeros(size_t len)
{
	return calloc(1, len);
}

static void fill(unsigned char *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(i * 7 + i / 256 + seed);
}

static bool holds(const unsigned char *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != (unsigned char)(i * 7 + i / 256 + seed))
			return false;
	return true;
}

static bool untouched(const unsigned char *buf, size_t from, size_t to)
{
	while (from < to)
		if (buf[from++] != 0xee)
			return false;
	return true;
}

static const size_t sizes[] = { 0, 1, 4095, 65536, 65537, MOST };
enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0])
};

static int take_sizes(struct sul_port *p, unsigned char *buf)
{
	for (unsigned int i = 0; i < SIZES; i++) {
		int from = -1;
		size_t len = 12345;

		memset(buf, 0xee, MOST);
		if (i % 2) /* the sender waits for the buffer */
			bench_nap(p);
		MUST(!sul_recv_post(p, i, buf, sizes[i] + (i == 1)));
		MUST(!sul_recv_wait(p, i, &from, &len, 50000));
		MUST(from == 1 && len == sizes[i]);
		MUST(holds(buf, len, i));
		MUST(untouched(buf, len, MOST));
	}
	return 0;
}

static int every_size(struct sul_port *p, void *ctx)
{
	unsigned char *buf = zeros(MOST);
	int result = 0;

	(void)ctx;
	MUST(buf);
	if (!sul_rank(p))
		result = take_sizes(p, buf);
	for (unsigned int i = 0; sul_rank(p) && i < SIZES && !result; i++) {
		fill(buf, sizes[i], i);
		result = sul_send_large(p, 0, i, buf, sizes[i], 50000);
	}
	free(buf);
	return result;
}

static void a_message_lies_in_the_posted_buffer(void)
{
	in_every_world_and_way((struct bench){ .ranks = 2 }, every_size);
}

/* Over a line so long that everything else takes no time. */
static int send_over_a_long_line(struct sul_port *p, void *ctx)
{
	size_t len = *(size_t *)ctx, came = 0;
	unsigned char *buf = zeros(MOST);
	int err;

	MUST(buf);
	if (!sul_rank(p)) {
		err = sul_recv_post(p, 0, buf, len) ?:
			      sul_recv_wait(p, 0, NULL, &came, -1);
		MUST(err || (came == len && holds(buf, len, 1)));
	} else {
		fill(buf, len, 1);
		err = sul_send_large(p, 0, 0, buf, len, -1);
	}
	free(buf);
	return err;
}

static uint64_t round_trips_of(size_t len)
{
	struct sul_simnet_config line = bench_quiet_wire();
	struct bench b = { .ranks = 2, .wire = &line };

	line.latency_ns = 1000000;
	line.packet_bytes = 8972;
	line.span = 1024;
	CU_ASSERT_EQUAL(bench_run(BENCH_NET, &b, send_over_a_long_line, &len),
			0);
	return b.net.now_ns / (2 * line.latency_ns);
}

static void a_large_message_does_not_wait_for_each_of_its_pieces(void)
{
	uint64_t one = round_trips_of(65536), four = round_trips_of(4 * 65536);

	/* As many, but for a window that has to grow first. */
	printf("(%llu and %llu round trips) ", (unsigned long long)one,
	       (unsigned long long)four);
	CU_ASSERT(four <= one + 3);
}

/* Both post, both send, and only then both wait. */
static int exchange_buffers(struct sul_port *p, unsigned char *in,
			    unsigned char *out)
{
	int other = (sul_rank(p) + 1) % sul_ranks(p), from = -1;
	size_t len = 0;

	fill(out, MOST, (unsigned int)sul_rank(p));
	MUST(!sul_recv_post(p, 5, in, MOST));
	MUST(!sul_send_large(p, other, 5, out, MOST, 50000));
	MUST(!sul_recv_wait(p, 5, &from, &len, 50000));
	MUST(len == MOST && holds(in, MOST, (unsigned int)from));
	MUST((from + 1) % sul_ranks(p) == sul_rank(p));
	return 0;
}

static int exchange(struct sul_port *p, void *ctx)
{
	unsigned char *mem = zeros(2 * (size_t)MOST);
	int result;

	(void)ctx;
	MUST(mem);
	result = exchange_buffers(p, mem, mem + MOST);
	free(mem);
	return result;
}

static void ranks_that_send_to_each_other_do_not_lock_up(void)
{
	in_every_world_and_way((struct bench){ .ranks = 2 }, exchange);
	in_every_world_and_way((struct bench){ .ranks = 3, .spin_us = 20 },
			       exchange);
}

/* --- several senders -------------------------------------------------------------------- */

enum {
	ROUNDS = 12,
	TOKEN = 40000
};

static int take_from_all(struct sul_port *p, unsigned char *buf)
{
	unsigned int next[8] = { 0 };
	int senders = sul_ranks(p) - 1;

	for (int i = 0; i < ROUNDS * senders; i++) {
		size_t len = 0;
		int from = -1;

		MUST(!sul_recv_post(p, 0, buf, TOKEN));
		MUST(!sul_recv_wait(p, 0, &from, &len, 50000));
		MUST(from > 0 && from <= senders && len == TOKEN);
		MUST(holds(buf, len, (unsigned int)from * 100 + next[from]++));
	}
	return 0;
}

static int one_channel_for_all(struct sul_port *p, void *ctx)
{
	unsigned char *buf = zeros(TOKEN);
	unsigned int me = (unsigned int)sul_rank(p);
	int result = 0;

	(void)ctx;
	MUST(buf);
	if (!me)
		result = take_from_all(p, buf);
	for (unsigned int i = 0; me && i < ROUNDS && !result; i++) {
		fill(buf, TOKEN, me * 100 + i);
		result = sul_send_large(p, 0, 0, buf, TOKEN, -1);
	}
	free(buf);
	return result;
}

static void senders_take_turns_on_a_channel(void)
{
	in_every_world_and_way((struct bench){ .ranks = 4 },
			       one_channel_for_all);
}

/* --- messages that do not fit -------------------------------------------------------------- */

static int too_long(struct sul_port *p, void *ctx)
{
	unsigned char buf[200];
	size_t len = 7;
	int from = -1;

	(void)ctx;
	memset(buf, 0xee, sizeof(buf));
	if (sul_rank(p)) {
		MUST(sul_send_large(p, 0, 1, buf, 101, -1) == -EMSGSIZE);
		MUST(sul_send_large(p, 0, 1, buf, 100, -1) == 0);
		return 0;
	}
	MUST(!sul_recv_post(p, 1, buf, 100));
	MUST(sul_recv_wait(p, 1, &from, &len, -1) == -EMSGSIZE);
	MUST(untouched(buf, 0, sizeof(buf)));
	MUST(from == 1 && len == 7);
	MUST(sul_recv_wait(p, 1, &from, &len, -1) == -EINVAL);
	MUST(!sul_recv_post(p, 1, buf, 100));
	MUST(!sul_recv_wait(p, 1, &from, &len, -1));
	MUST(len == 100);
	return 0;
}

static void a_message_that_does_not_fit_is_refused_on_both_sides(void)
{
	in_every_world_and_way((struct bench){ .ranks = 2 }, too_long);
}

/* --- time ------------------------------------------------------------------------------------ */

static int too_late(struct sul_port *p, void *ctx)
{
	char buf[8] = "late";
	size_t len;

	(void)ctx;
	if (sul_rank(p)) {
		MUST(sul_send_large(p, 0, 2, buf, 4, 30) == -ETIMEDOUT);
		MUST(!bench_meet(p, 1));
		MUST(!bench_meet(p, 2));
		MUST(sul_send_large(p, 0, 2, buf, 4, 50000) == 0);
		return 0;
	}
	MUST(!bench_meet(p, 1));
	MUST(!sul_recv_post(p, 2, buf, 8));
	MUST(sul_recv_wait(p, 2, NULL, &len, 30) == -ETIMEDOUT);
	MUST(sul_recv_post(p, 2, buf, 8) == -EBUSY); /* it is still posted */
	MUST(!bench_meet(p, 2));
	MUST(!sul_recv_wait(p, 2, NULL, &len, 50000));
	MUST(len == 4);
	return 0;
}

static void who_comes_too_late_is_told_so(void)
{
	struct bench b = { .ranks = 2 };

	CU_ASSERT_EQUAL(bench_run(BENCH_THREADS, &b, too_late, NULL), 0);
}

/* Rank 1 gives up after its first piece; rank 2's message comes through. */
static int give_up(struct sul_port *p, void *ctx)
{
	unsigned char *buf = zeros(MOST);
	struct sul_word *word = sul_window(p, 0);
	size_t len = 0;
	int from = -1;

	(void)ctx;
	MUST(buf);
	fill(buf, MOST, (unsigned int)sul_rank(p));
	if (sul_rank(p) == 1) {
		MUST(sul_send_large(p, 0, 0, buf, MOST, 100) == -ETIMEDOUT);
		MUST(!sul_notify(p, 2, 0, 0, 1));
		MUST(!sul_notify(p, 0, 0, 0, 1));
	} else if (sul_rank(p) == 2) {
		MUST(!sul_wait(p, word, 0, -1));
		MUST(!sul_send_large(p, 0, 0, buf, MOST / 2, -1));
	} else {
		struct sul_watch w = { word, 0 };

		MUST(!sul_recv_post(p, 0, buf, MOST));
		MUST(!p->ops->wait(p, &w, 1, -1)); /* without progress */
		MUST(!sul_recv_wait(p, 0, &from, &len, -1));
		MUST(from == 2 && len == MOST / 2 && holds(buf, len, 2));
	}
	free(buf);
	return 0;
}

static void a_sender_that_gives_up_leaves_the_buffer_posted(void)
{
	struct bench b = { .ranks = 3 };
	bench_fn *fn = give_up;

	CU_ASSERT_EQUAL(bench_run(BENCH_THREADS, &b, in_pieces, &fn), 0);
}

static int wait_without_end(struct sul_port *p, void *ctx)
{
	char buf[8];

	(void)ctx;
	if (sul_rank(p)) {
		MUST(sul_send_large(p, 0, 3, buf, 8, -1) == -ECANCELED);
		return 0;
	}
	MUST(!sul_recv_post(p, 4, buf, 8));
	MUST(sul_recv_wait(p, 4, NULL, NULL, -1) == -ECANCELED);
	return 0;
}

static void the_end_of_the_job_ends_the_waits(void)
{
	struct bench b = { .ranks = 2, .cancel = true };

	CU_ASSERT_EQUAL(bench_run(BENCH_THREADS, &b, wait_without_end, NULL),
			0);
}

/* --- refusals, nonsense ------------------------------------------------------------------------- */

static int refusals(struct sul_port *p, void *ctx)
{
	char buf[8];

	(void)ctx;
	MUST(sul_recv_post(p, SUL_CHANNELS_MAX, buf, 8) == -EINVAL);
	MUST(sul_recv_post(p, 0, NULL, 8) == -EINVAL);
	MUST(sul_recv_wait(p, SUL_CHANNELS_MAX, NULL, NULL, 0) == -EINVAL);
	MUST(sul_recv_wait(p, 0, NULL, NULL, 0) == -EINVAL);
	MUST(sul_send_large(p, -1, 0, buf, 8, 0) == -EINVAL);
	MUST(sul_send_large(p, sul_ranks(p), 0, buf, 8, 0) == -EINVAL);
	MUST(sul_send_large(p, 0, SUL_CHANNELS_MAX, buf, 8, 0) == -EINVAL);
	MUST(sul_send_large(p, 0, 0, NULL, 8, 0) == -EINVAL);
	MUST(sul_recv_post(p, 0, buf, 8) == 0);
	MUST(sul_recv_post(p, 0, buf, 8) == -EBUSY);
	return 0;
}

static void bad_arguments_are_refused(void)
{
	bench_everywhere((struct bench){ .ranks = 1 }, refusals, NULL);
}

static uint64_t dropped(const struct sul_port *p)
{
	struct sul_stats s;

	sul_stats_read(p, &s);
	return s.dropped;
}

/* What a claimer may write, in the own window: a piece, an outcome. */
static void claim_own(struct sul_post *o, enum sul_post_state state)
{
	o->claim = (o->claim & ~UINT64_C(0xffffffff)) | 1u << 8 | state;
}

static int nonsense(struct sul_port *p, void *ctx)
{
	const struct sul_outcome bad[] = {
		{ .len = 4, .from = 1 }, /* there is no rank 1 */
		{ .len = 9, .from = 0 }, /* longer than the buffer */
		{ .len = 4, .from = 0, .status = 1 },
		{ .len = 4, .from = 0, .status = -ENOMEM },
	};
	const struct sul_piece far[] = {
		{ .off = 9, .len = 1 },
		{ .off = UINT64_MAX - 3, .len = 8 },
		{ .off = 4, .len = 5 },
		{ .off = 0, .len = UINT32_MAX },
	};
	struct sul_post *o = sul_channel_at(p, p->channels->at.post);
	unsigned char buf[16];
	uint64_t seen = 0;

	(void)ctx;
	memset(buf, 0xee, sizeof(buf));
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		MUST(!sul_recv_post(p, 0, buf, 8));
		claim_own(o, SUL_POST_CLAIMED);
		o->piece[(o->info.filled.value + 1) % SUL_PIECES] = far[i];
		o->info.filled.value++;
		MUST(sul_poll(p) == 0);
		MUST(dropped(p) == ++seen);
		MUST(untouched(buf, 0, sizeof(buf)));
		o->outcome = bad[i];
		claim_own(o, SUL_POST_DONE);
		MUST(sul_recv_wait(p, 0, NULL, NULL, 0) == -EIO);
		MUST(dropped(p) == ++seen);
	}
	/* More pieces than there are places. */
	MUST(!sul_recv_post(p, 0, buf, 8));
	claim_own(o, SUL_POST_CLAIMED);
	o->info.filled.value += SUL_PIECES + 1;
	MUST(sul_poll(p) == 0);
	MUST(dropped(p) == ++seen);
	MUST(o->info.taken == o->info.filled.value);
	MUST(untouched(buf, 0, sizeof(buf)));
	claim_own(o, SUL_POST_DONE);
	MUST(sul_recv_wait(p, 0, NULL, NULL, 0) == -EIO);
	return 0;
}

static void what_makes_no_sense_is_counted_and_dropped(void)
{
	bench_everywhere((struct bench){ .ranks = 1 }, nonsense, NULL);
}

CU_TestInfo test_sul_normal[] = {
	{ "a message lies in the posted buffer",
	  a_message_lies_in_the_posted_buffer },
	{ "a large message does not wait for each of its pieces",
	  a_large_message_does_not_wait_for_each_of_its_pieces },
	{ "ranks that send to each other do not lock up",
	  ranks_that_send_to_each_other_do_not_lock_up },
	{ "senders take turns on a channel", senders_take_turns_on_a_channel },
	{ "a message that does not fit is refused on both sides",
	  a_message_that_does_not_fit_is_refused_on_both_sides },
	{ "who comes too late is told so", who_comes_too_late_is_told_so },
	{ "a sender that gives up leaves the buffer posted",
	  a_sender_that_gives_up_leaves_the_buffer_posted },
	{ "the end of the job ends the waits",
	  the_end_of_the_job_ends_the_waits },
	{ "bad arguments are refused", bad_arguments_are_refused },
	{ "what makes no sense is counted and dropped",
	  what_makes_no_sense_is_counted_and_dropped },
	CU_TEST_INFO_NULL,
};
