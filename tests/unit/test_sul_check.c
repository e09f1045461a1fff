/* SPDX-License-Identifier: MIT */
/*
 * test_sul_check.c - what the module takes and what it refuses: a good operation of
 * each kind, and each with one thing wrong.
 */
#include "sul_check.h"
#include "tests.h"

enum {
	PAGE = 4096,
	WINDOW = 16 * PAGE,
	LANDING = PAGE
};

static const struct sul_shape shape = {
	.windows = 3,
	.bytes = { WINDOW, 0, 2 * WINDOW },
};

static int check(struct sul_op op)
{
	return sul_check_op(&op, &shape, LANDING, false);
}

#define REFUSED(op_, ...)                            \
	do {                                         \
		struct sul_op op = op_;              \
		__VA_ARGS__;                         \
		CU_ASSERT_EQUAL(check(op), -EINVAL); \
	} while (0)
#define TAKEN(op_, ...)                        \
	do {                                   \
		struct sul_op op = op_;        \
		__VA_ARGS__;                   \
		CU_ASSERT_EQUAL(check(op), 0); \
	} while (0)

static void ranges__end_where_the_window_does(void)
{
	CU_ASSERT(sul_check_range(&shape, 0, 0, WINDOW));
	CU_ASSERT(sul_check_range(&shape, 0, WINDOW, 0));
	CU_ASSERT(!sul_check_range(&shape, 0, 1, WINDOW));
	CU_ASSERT(!sul_check_range(&shape, 0, WINDOW + 1, 0));
	CU_ASSERT(!sul_check_range(&shape, 0, UINT64_MAX, 2));
	CU_ASSERT(!sul_check_range(&shape, 0, 8, UINT64_MAX - 4));
	CU_ASSERT(!sul_check_range(&shape, 1, 0, 1)); /* there is none */
	CU_ASSERT(!sul_check_range(&shape, 3, 0, 0));
	CU_ASSERT(!sul_check_range(&shape, UINT32_MAX, 0, 0));
	CU_ASSERT(sul_check_word(&shape, 2, 2 * WINDOW - 8));
	CU_ASSERT(!sul_check_word(&shape, 2, 2 * WINDOW - 4));
	CU_ASSERT(!sul_check_word(&shape, 2, 4));
}

static void get__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = { .kind = SUL_OP_GET, .len = 256 };

	TAKEN(good);
	TAKEN(good, op.len = 0);
	TAKEN(good, op.marks.nr = SUL_ABI_MARKS_MAX);
	TAKEN(good, op.land = LANDING - 256);
	REFUSED(good, op.land = LANDING - 248);
	REFUSED(good, op.land = 4);
	REFUSED(good, op.land = UINT32_MAX & ~7u);
	REFUSED(good, op.marks.nr = SUL_ABI_MARKS_MAX + 1);
	REFUSED(good, op.marks.reserved = 1);
	REFUSED(good, op.flags = 1);
	REFUSED(good, op.window = 1);
	REFUSED(good, op.off = WINDOW - 255);
	REFUSED(good, op.len = SUL_ABI_OP_BYTES_MAX + 1);
}

static void get__of_a_near_rank_needs_no_landing_area(void)
{
	const struct sul_op op = { .kind = SUL_OP_GET, .len = 2 * LANDING };

	CU_ASSERT_EQUAL(sul_check_op(&op, &shape, 0, true), 0);
	CU_ASSERT_EQUAL(sul_check_op(&op, &shape, 0, false), -EINVAL);
}

static void put__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = { .kind = SUL_OP_PUT, .len = WINDOW };

	TAKEN(good);
	TAKEN(good, op.flags = SUL_OP_INLINE; op.len = SUL_ABI_INLINE_MAX);
	REFUSED(good, op.flags = SUL_OP_INLINE;
		op.len = SUL_ABI_INLINE_MAX + 1);
	REFUSED(good, op.flags = 2);
	REFUSED(good, op.land = 8);
	REFUSED(good, op.off = 1);
	REFUSED(good, op.window = 9);
}

static void putv__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = { .kind = SUL_OP_PUTV, .runs.nr = 1 };

	TAKEN(good);
	TAKEN(good, op.runs.nr = SUL_ABI_OP_RUNS_MAX);
	TAKEN(good, op.flags = SUL_OP_MIRROR; op.runs.flag_off = WINDOW - 1);
	REFUSED(good, op.flags = SUL_OP_MIRROR; op.runs.flag_off = WINDOW);
	REFUSED(good, op.flags = SUL_OP_MIRROR; op.runs.flag_window = 1);
	REFUSED(good, op.flags = 2);
	REFUSED(good, op.runs.nr = 0);
	REFUSED(good, op.runs.nr = SUL_ABI_OP_RUNS_MAX + 1);
	REFUSED(good, op.runs.reserved = 1);
	REFUSED(good, op.runs.window = 1);
	REFUSED(good, op.runs.flag_window = 1);
	REFUSED(good, op.runs.flag_off = 1);
	REFUSED(good, op.len = 1);
	REFUSED(good, op.land = 8);
}

static void message__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = {
		.kind = SUL_OP_MESSAGE,
		.off = 64,
		.len = SUL_ABI_MESSAGE_MAX,
		.message = { .word = { 8, WINDOW - 8 } },
	};

	TAKEN(good);
	TAKEN(good, op.len = 0);
	TAKEN(good, op.addr = 1); /* whether it is there is seen later */
	TAKEN(good, op.off = WINDOW - SUL_ABI_MESSAGE_MAX);
	TAKEN(good, op.flags = SUL_OP_INLINE;
	      op.len = SUL_ABI_MESSAGE_INLINE_MAX);
	REFUSED(good, op.len = SUL_ABI_MESSAGE_MAX + 1);
	REFUSED(good, op.flags = SUL_OP_INLINE;
		op.len = SUL_ABI_MESSAGE_INLINE_MAX + 1);
	REFUSED(good, op.flags = SUL_OP_INLINE; op.len = 8; op.addr = 1);
	REFUSED(good, op.flags = 2);
	REFUSED(good, op.land = 8);
	REFUSED(good, op.off = WINDOW - SUL_ABI_MESSAGE_MAX + 1);
	REFUSED(good, op.window = 1);
	for (int i = 0; i < 2; i++) {
		REFUSED(good, op.message.word[i] = 4);
		REFUSED(good, op.message.word[i] = WINDOW);
		REFUSED(good, op.message.word[i] = UINT32_MAX & ~7u);
	}
}

static void farewell__has_a_rank_and_nothing_else(void)
{
	const struct sul_op good = { .kind = SUL_OP_FAREWELL, .rank = 3 };

	TAKEN(good);
	REFUSED(good, op.flags = 1);
	REFUSED(good, op.window = 1);
	REFUSED(good, op.off = 8);
	REFUSED(good, op.addr = 8);
	REFUSED(good, op.len = 1);
	REFUSED(good, op.land = 8);
	for (int i = 0; i < SUL_ABI_INLINE_MAX; i++)
		REFUSED(good, op.data[i] = 1);
	CU_ASSERT_EQUAL(sul_check_op(&good, &shape, LANDING, true), -EINVAL);
}

static void run__must_fit_both_places(void)
{
	struct sul_op op = {
		.kind = SUL_OP_PUTV, .window = 2, .off = WINDOW, .runs.nr = 1
	};
	struct sul_run run = { WINDOW - 8, 8 };
	uint64_t bytes = 0;

	CU_ASSERT(sul_check_run(&shape, &op, &run, &bytes));
	CU_ASSERT_EQUAL(bytes, 8);
	op.flags = SUL_OP_MIRROR; /* window 0 is smaller */
	CU_ASSERT(!sul_check_run(&shape, &op, &run, &bytes));
	op.flags = 0;
	run.len = 9;
	CU_ASSERT(!sul_check_run(&shape, &op, &run, &bytes));
	run.len = 0;
	CU_ASSERT(!sul_check_run(&shape, &op, &run, &bytes));
	run = (struct sul_run){ UINT32_MAX, UINT32_MAX };
	bytes = 0;
	CU_ASSERT(!sul_check_run(&shape, &op, &run, &bytes));
}

/* One run may come many times: all together they have a limit. */
static void runs__together_are_bounded(void)
{
	struct sul_op op = { .kind = SUL_OP_PUTV, .runs.nr = 2 };
	struct sul_run run = { 0, WINDOW };
	uint64_t bytes = SUL_ABI_OP_BYTES_MAX - WINDOW;

	CU_ASSERT(sul_check_run(&shape, &op, &run, &bytes));
	run.len = 1;
	CU_ASSERT(!sul_check_run(&shape, &op, &run, &bytes));
}

static void amo__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = { .kind = SUL_OP_AMO, .off = 8 };

	TAKEN(good);
	TAKEN(good, op.amo.op = SUL_AMO_NR - 1);
	TAKEN(good, op.flags = SUL_OP_OLD; op.land = LANDING - 8);
	REFUSED(good, op.flags = SUL_OP_OLD; op.land = LANDING);
	REFUSED(good, op.flags = SUL_OP_OLD; op.land = 4);
	REFUSED(good, op.land = 8);
	REFUSED(good, op.amo.op = SUL_AMO_NR);
	REFUSED(good, op.amo.reserved = 1);
	REFUSED(good, op.off = 4);
	REFUSED(good, op.off = WINDOW);
	REFUSED(good, op.len = 8);
	REFUSED(good, op.addr = 8);
	REFUSED(good, op.flags = 2);
}

static void notify__with_one_thing_wrong_is_refused(void)
{
	const struct sul_op good = { .kind = SUL_OP_NOTIFY, .off = 8 };

	TAKEN(good);
	REFUSED(good, op.off = 9);
	REFUSED(good, op.flags = 1);
	REFUSED(good, op.notify.reserved = 1);
	REFUSED(good, op.land = 8);
	REFUSED(good, op.addr = 8);
	REFUSED(good, op.len = 4);
}

static void op__of_no_kind_is_refused(void)
{
	REFUSED((struct sul_op){ .kind = SUL_OP_NR });
	REFUSED((struct sul_op){ .kind = 255 });
}

static void mark__must_be_a_word_of_a_window(void)
{
	CU_ASSERT(sul_check_mark(&shape, &(struct sul_mark){ .off = 8 }));
	CU_ASSERT(!sul_check_mark(&shape, &(struct sul_mark){ .off = 4 }));
	CU_ASSERT(!sul_check_mark(&shape, &(struct sul_mark){ .window = 1 }));
	CU_ASSERT(!sul_check_mark(&shape, &(struct sul_mark){ .reserved = 1 }));
}

/* --- PORT and START ----------------------------------------------------------------- */

static const struct sul_port_spec good_port = {
	.size = sizeof(good_port),
	.rank = 1,
	.ranks = 2,
	.key = { 1 },
	.session = 1,
	.span = 64,
	.packet_bytes = 1472,
	.silence_ns = 1,
	.pin_bytes = 16 * PAGE,
	.landing_bytes = PAGE,
};

#define PORT_IS(result, ...)                                         \
	do {                                                         \
		struct sul_port_spec s = good_port;                  \
		__VA_ARGS__;                                         \
		CU_ASSERT_EQUAL(sul_port_check(&s, PAGE), (result)); \
	} while (0)

static void port__with_one_thing_wrong_is_refused(void)
{
	PORT_IS(0);
	PORT_IS(0, s.flags = SUL_PORT_TRACE);
	PORT_IS(0, s.landing_bytes = 0);
	PORT_IS(-EINVAL, s.flags = 2);
	PORT_IS(-EINVAL, s.rank = 2);
	PORT_IS(-EINVAL, s.ranks = 0);
	PORT_IS(-EINVAL, s.ranks = SUL_ABI_RANKS_MAX + 1);
	PORT_IS(-EINVAL, s.key[0] = 0);
	PORT_IS(-EINVAL, s.auth = SUL_ABI_AUTH_NR);
	PORT_IS(-EINVAL, s.session = 0);
	PORT_IS(-EINVAL, s.span = 4);
	PORT_IS(-EINVAL, s.span = 48);
	PORT_IS(-EINVAL, s.span = 2048);
	PORT_IS(-EINVAL, s.packet_bytes = 547);
	PORT_IS(-EINVAL, s.packet_bytes = 8973);
	PORT_IS(-EINVAL, s.silence_ns = 0);
	PORT_IS(-EINVAL, s.pin_bytes = 16 * PAGE - 1);
	PORT_IS(-EINVAL, s.pin_bytes = UINT64_MAX);
	PORT_IS(-EINVAL, s.landing_bytes = 100);
	PORT_IS(-EINVAL, s.landing_bytes = SUL_ABI_LANDING_MAX + PAGE);
	PORT_IS(-EINVAL, s.loss_ppm = 1000001);
}

static void peer__takes_packets_of_a_size_that_there_is(void)
{
	struct sul_peer_spec s = { .packet_bytes = 548 };

	CU_ASSERT_EQUAL(sul_peer_check(&s), 0);
	s.packet_bytes = 8972;
	CU_ASSERT_EQUAL(sul_peer_check(&s), 0);
	s.packet_bytes = 547;
	CU_ASSERT_EQUAL(sul_peer_check(&s), -EINVAL);
	s.packet_bytes = 8973;
	CU_ASSERT_EQUAL(sul_peer_check(&s), -EINVAL);
}

#define START_IS(result, ...)                                         \
	do {                                                          \
		struct sul_start s = { .windows = 2,                  \
				       .window[1] = { PAGE, PAGE } }; \
		__VA_ARGS__;                                          \
		CU_ASSERT_EQUAL(sul_start_check(&s, PAGE), (result)); \
	} while (0)

static void start__with_one_thing_wrong_is_refused(void)
{
	START_IS(0);
	START_IS(-EINVAL, s.windows = 0);
	START_IS(-EINVAL, s.windows = SUL_ABI_WINDOWS_MAX + 1);
	START_IS(-EINVAL, s.windows = 1); /* but there are two */
	START_IS(-EINVAL, s.window[0].addr = PAGE);
	START_IS(-EINVAL, s.window[1].addr = PAGE + 8);
	START_IS(-EINVAL, s.window[1].bytes = PAGE + 8);
	START_IS(-EINVAL, s.window[1].addr = UINT64_MAX - PAGE + 1;
		 s.window[1].bytes = 2 * PAGE);
}

CU_TestInfo test_sul_check[] = {
	{ "ranges: end where the window does",
	  ranges__end_where_the_window_does },
	{ "get: with one thing wrong is refused",
	  get__with_one_thing_wrong_is_refused },
	{ "get: of a near rank needs no landing area",
	  get__of_a_near_rank_needs_no_landing_area },
	{ "put: with one thing wrong is refused",
	  put__with_one_thing_wrong_is_refused },
	{ "putv: with one thing wrong is refused",
	  putv__with_one_thing_wrong_is_refused },
	{ "run: must fit both places", run__must_fit_both_places },
	{ "runs: together are bounded", runs__together_are_bounded },
	{ "amo: with one thing wrong is refused",
	  amo__with_one_thing_wrong_is_refused },
	{ "notify: with one thing wrong is refused",
	  notify__with_one_thing_wrong_is_refused },
	{ "message: with one thing wrong is refused",
	  message__with_one_thing_wrong_is_refused },
	{ "farewell: has a rank and nothing else",
	  farewell__has_a_rank_and_nothing_else },
	{ "op: of no kind is refused", op__of_no_kind_is_refused },
	{ "mark: must be a word of a window",
	  mark__must_be_a_word_of_a_window },
	{ "port: with one thing wrong is refused",
	  port__with_one_thing_wrong_is_refused },
	{ "peer: takes packets of a size that there is",
	  peer__takes_packets_of_a_size_that_there_is },
	{ "start: with one thing wrong is refused",
	  start__with_one_thing_wrong_is_refused },
	CU_TEST_INFO_NULL,
};
