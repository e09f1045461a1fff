/* SPDX-License-Identifier: MIT */
/*
 * test_jiarun_far.c - what the hub takes from other hosts, and what it refuses.
 *
 * A job of four ranks: 0 is here, 1 and 2 are on host b, 3 is on host c.  There
 * is no process and no channel; what the hub would send to c is looked at.
 */
#include <errno.h>
#include <unistd.h>

#include "jiarun_far.h"
#include "tests.h"

static struct jiarun_options options;
static struct jiarun_keeper keeper;
static struct jiarun_remote remote;
static struct jiarun_far far[2];
static struct jiarun_drip drip[8];
static char *line[4];
static const struct jiarun_side side;
static char why[JIARUN_WHY_MAX];
static int sink[2];

static void begin(void)
{
	keeper = (struct jiarun_keeper){ .o = &options, .side = &side };
	options = (struct jiarun_options){ .ranks = 4,
					   .here = 0,
					   .host_of = { 0, 1, 1, 2 } };
	memset(far, 0, sizeof(far));
	memset(drip, 0, sizeof(drip));
	memset(line, 0, sizeof(line));
	remote = (struct jiarun_remote){ .far = far,
					 .nr = 2,
					 .drip = drip,
					 .line = line,
					 .credit = JIARUN_WINDOW_BYTES };
	keeper.others = &remote;
	REQUIRE(sul_job_create(&keeper.job, 4) == 0);
	REQUIRE(jiarun_ranks_open(&keeper.ranks, 4));
	keeper.ranks.alive = 4;
	REQUIRE(pipe(sink) == 0);
	for (int i = 0; i < 2; i++) {
		far[i] = (struct jiarun_far){ .k = &keeper,
					      .index = i + 1,
					      .going = true };
		far[i].alive = i ? 1 : 2;
		far[i].link.from.fd = -1;
		far[i].link.to.fd = dup(sink[1]);
	}
	for (int r = 1; r < 4; r++)
		keeper.ranks.rank[r].far = true;
	for (int i = 0; i < 8; i++) {
		drip[i].taken = jiarun_far_drained;
		drip[i].ctx = &keeper;
		drip[i].id = i;
		drip[i].to.fd = dup(sink[1]);
	}
	why[0] = '\0';
}

static void end(void)
{
	for (int i = 0; i < 2; i++)
		jiarun_link_close(&far[i].link);
	for (int i = 0; i < 8; i++)
		jiarun_drip_close(&drip[i]);
	for (int i = 0; i < 4; i++)
		free(line[i]);
	close(sink[0]);
	close(sink[1]);
	free(keeper.text);
	jiarun_ranks_close(&keeper.ranks);
	sul_job_close(keeper.job);
}

/* Host @i (0: b, 1: c) says this. */
#define says(i, name_, ...)                                                    \
	jiarun_far_take(&far[i],                                               \
			&(struct jiarun_message){ .type = JIARUN_WIRE_##name_, \
						  .name_ = { __VA_ARGS__ } },  \
			why)

static void a_card_is_noted_and_passed_on(void)
{
	begin();
	CU_ASSERT_EQUAL(says(0, card, .rank = 2, .state = SUL_RANK_READY,
			     .address = { "xy", 2 }),
			0);
	CU_ASSERT_EQUAL(sul_job_rank(keeper.job, 2)->state, SUL_RANK_READY);
	CU_ASSERT_EQUAL(sul_job_rank(keeper.job, 2)->address_len, 2);
	CU_ASSERT(far[1].link.out.end > 0);
	CU_ASSERT_EQUAL(far[0].link.out.end, 0);
	end();
}

static void a_host_speaks_of_its_own_ranks_only(void)
{
	begin();
	CU_ASSERT_EQUAL(says(0, card, .rank = 3, .state = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(0, card, .rank = 0, .state = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(0, card, .rank = 4, .state = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(1, ended, .rank = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(1, output, .rank = 2), -EPROTO);
	CU_ASSERT_EQUAL(says(1, line, .rank = 2), -EPROTO);
	CU_ASSERT_EQUAL(says(1, counters, .rank = 0), -EPROTO);
	CU_ASSERT_EQUAL(says(1, more, .rank = 1023), -EPROTO);
	ASSERT_TEXT(why, "something of a rank not its own");
	end();
}

static void what_only_the_hub_says_is_refused(void)
{
	begin();
	CU_ASSERT_EQUAL(says(0, job, .ranks = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(0, go, ), -EPROTO);
	CU_ASSERT_EQUAL(says(0, ask, .question = 1), -EPROTO);
	CU_ASSERT_EQUAL(says(0, input, ), -EPROTO);
	CU_ASSERT_EQUAL(says(0, closed, ), -EPROTO);
	CU_ASSERT_EQUAL(says(0, hurry, ), -EPROTO);
	ASSERT_TEXT(why, "a message that is not its to send");
	end();
}

static void before_the_job_and_behind_its_end_it_is_silent(void)
{
	begin();
	far[0].going = false;
	CU_ASSERT_EQUAL(says(0, alive, ), 0);
	CU_ASSERT_EQUAL(says(0, done, ), -EPROTO);
	CU_ASSERT_EQUAL(says(0, card, .rank = 1, .state = 1), -EPROTO);
	far[0].going = true;
	far[0].done = true;
	CU_ASSERT_EQUAL(says(0, ended, .rank = 1), -EPROTO);
	end();
}

static void ranks_end_once_and_then_the_host_is_done(void)
{
	begin();
	sul_job_rank(keeper.job, 1)->state = SUL_RANK_EXITED;
	CU_ASSERT_EQUAL(says(0, done, ), -EPROTO);
	CU_ASSERT_EQUAL(says(0, ended, .rank = 1, .pid = 9), 0);
	CU_ASSERT_EQUAL(says(0, ended, .rank = 1, .pid = 9), -EPROTO);
	CU_ASSERT_EQUAL(says(0, ended, .rank = 2, .pid = 8, .status = 9), 0);
	CU_ASSERT_EQUAL(keeper.ranks.alive, 2);
	CU_ASSERT_EQUAL(says(0, done, ), 0);
	CU_ASSERT_TRUE(far[0].done);
	CU_ASSERT_PTR_NULL(keeper.text);
	end();
}

static void who_left_early_fails_the_job_once_somebody_attached(void)
{
	begin();
	CU_ASSERT_EQUAL(says(0, ended, .rank = 1, .pid = 9), 0);
	CU_ASSERT_PTR_NULL(keeper.text);
	CU_ASSERT_EQUAL(says(1, card, .rank = 3, .state = SUL_RANK_UP), 0);
	ASSERT_TEXT(keeper.text, "rank 1 (pid 9) left (exit status 0) without "
				 "jia_init(), which others called");
	end();
}

static void the_first_failure_counts_and_may_find_better_words(void)
{
	begin();
	CU_ASSERT_EQUAL(
		says(1, fail, .status = 7, .text = { "c at @{0x1}", 11 }), 0);
	CU_ASSERT_EQUAL(says(0, fail, .status = 8, .text = { "b", 1 }), 0);
	ASSERT_TEXT(keeper.text, "c at @{0x1}");
	CU_ASSERT_EQUAL(keeper.status, 7);
	CU_ASSERT_TRUE(sul_job_failed(keeper.job));
	CU_ASSERT_EQUAL(says(0, words, .text = { "b at b.c:1", 10 }), 0);
	ASSERT_TEXT(keeper.text, "c at @{0x1}");
	CU_ASSERT_EQUAL(says(1, words, .text = { "c at c.c:1", 10 }), 0);
	ASSERT_TEXT(keeper.text, "c at c.c:1");
	end();
}

static void a_failure_without_a_status_is_one(void)
{
	begin();
	CU_ASSERT_EQUAL(says(1, fail, .status = 0, .text = { "", 0 }), 0);
	CU_ASSERT_EQUAL(keeper.status, 1);
	end();
}

static void output_is_held_up_to_the_window(void)
{
	static char data[JIARUN_CHUNK_BYTES];
	int i = 0;

	begin();
	while (says(0, output, .rank = 1, .stream = 1,
		    .data = { data, sizeof(data) }) == 0)
		i++;
	CU_ASSERT_EQUAL(i, JIARUN_WINDOW_BYTES / JIARUN_CHUNK_BYTES);
	ASSERT_TEXT(why, "more output than it was asked for");
	CU_ASSERT_EQUAL(drip[3].end, JIARUN_WINDOW_BYTES);
	jiarun_far_drained(&keeper, 3, 1000, false);
	CU_ASSERT_EQUAL(says(0, output, .rank = 2, .data = { data, 1000 }), 0);
	CU_ASSERT_EQUAL(says(0, output, .rank = 2, .data = { data, 1 }),
			-EPROTO);
	CU_ASSERT_EQUAL(says(1, output, .rank = 3, .data = { data, 1 }), 0);
	end();
}

static void input_is_not_taken_twice(void)
{
	begin();
	CU_ASSERT_EQUAL(says(0, taken, .bytes = 1), -EPROTO);
	remote.credit -= 10;
	CU_ASSERT_EQUAL(says(0, taken, .bytes = 10), 0);
	CU_ASSERT_EQUAL(remote.credit, JIARUN_WINDOW_BYTES);
	end();
}

static void counters_and_lines_are_kept(void)
{
	uint64_t words[2] = { 5, 6 };

	begin();
	CU_ASSERT_EQUAL(says(1, counters, .rank = 3,
			     .words = { words, sizeof(words) }),
			0);
	CU_ASSERT_EQUAL(sul_job_rank(keeper.job, 3)->counters[1], 6);
	CU_ASSERT_EQUAL(says(1, more, .rank = 3, .bytes = { "abc", 3 }), 0);
	CU_ASSERT(!memcmp(sul_job_more(keeper.job, 3), "abc", 3));
	CU_ASSERT_EQUAL(says(1, line, .rank = 3, .text = { "waits", 5 }), 0);
	CU_ASSERT_EQUAL(says(1, line, .rank = 3, .text = { "runs", 4 }), 0);
	ASSERT_TEXT(line[3], "runs");
	CU_ASSERT_EQUAL(says(1, answered, .question = 4), 0);
	CU_ASSERT_EQUAL(far[1].answered, 4);
	end();
}

CU_TestInfo test_jiarun_far[] = {
	{ "card__is_noted_and_passed_on", a_card_is_noted_and_passed_on },
	{ "ranks__a_host_speaks_of_its_own_only",
	  a_host_speaks_of_its_own_ranks_only },
	{ "message__what_only_the_hub_says_is_refused",
	  what_only_the_hub_says_is_refused },
	{ "message__before_the_job_and_behind_its_end_it_is_silent",
	  before_the_job_and_behind_its_end_it_is_silent },
	{ "ended__once_and_then_the_host_is_done",
	  ranks_end_once_and_then_the_host_is_done },
	{ "ended__who_left_early_fails_the_job_once_somebody_attached",
	  who_left_early_fails_the_job_once_somebody_attached },
	{ "fail__the_first_counts_and_may_find_better_words",
	  the_first_failure_counts_and_may_find_better_words },
	{ "fail__without_a_status_is_one", a_failure_without_a_status_is_one },
	{ "output__is_held_up_to_the_window", output_is_held_up_to_the_window },
	{ "input__is_not_taken_twice", input_is_not_taken_twice },
	{ "counters__and_lines_are_kept", counters_and_lines_are_kept },
	CU_TEST_INFO_NULL,
};
