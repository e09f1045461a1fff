/* SPDX-License-Identifier: MIT */
/* test_jiarun_link.c - two launchers that talk, one that talks nonsense. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "jiarun.h"
#include "jiarun_link.h"
#include "tests.h"

static struct jiarun_loop loop;
static struct jiarun_link one, two;
static int raw[2]; /* the other ends of @one where there is no @two */
static int got, refuse_after;
static uint64_t last;
static size_t bytes;

static int take(void *ctx, const struct jiarun_message *m,
		char why[JIARUN_WHY_MAX])
{
	CU_ASSERT_PTR_EQUAL(ctx, &got);
	got++;
	if (m->type == JIARUN_WIRE_ask)
		last = m->ask.question;
	if (m->type == JIARUN_WIRE_input)
		bytes += m->input.data.len;
	if (refuse_after && got == refuse_after) {
		snprintf(why, JIARUN_WHY_MAX, "enough");
		return -EPROTO;
	}
	return 0;
}

static void begin(bool both)
{
	int up[2], down[2];

	signal(SIGPIPE, SIG_IGN);
	got = refuse_after = 0;
	bytes = 0;
	loop = (struct jiarun_loop){ 0 };
	one = (struct jiarun_link){ .take = take, .ctx = &got };
	two = one;
	two.from.fd = two.to.fd = -1;
	REQUIRE(pipe(up) == 0 && pipe(down) == 0);
	REQUIRE(jiarun_link_open(&one, &loop, up[0], down[1]));
	raw[0] = down[0];
	raw[1] = up[1];
	if (both) {
		REQUIRE(jiarun_link_open(&two, &loop, down[0], up[1]));
		raw[0] = raw[1] = -1;
	}
}

static void end(void)
{
	jiarun_link_close(&one);
	jiarun_link_close(&two);
	jiarun_loop_free(&loop);
	for (int i = 0; i < 2; i++)
		if (raw[i] >= 0)
			close(raw[i]);
	signal(SIGPIPE, SIG_DFL);
}

static void turn(int times)
{
	while (times--)
		jiarun_loop_wait(&loop, 0);
}

static void they_greet_and_talk(void)
{
	begin(true);
	turn(3);
	CU_ASSERT_TRUE(one.in.greeted && two.in.greeted);
	CU_ASSERT_EQUAL(got, 0);
	for (unsigned int i = 1; i <= 10; i++)
		jiarun_say(&one, ask, .question = i);
	CU_ASSERT_TRUE(jiarun_link_pending(&one));
	turn(3);
	CU_ASSERT_FALSE(jiarun_link_pending(&one));
	CU_ASSERT_EQUAL(got, 10);
	CU_ASSERT_EQUAL(last, 10);
	end();
}

static void more_than_a_pipe_takes_arrives(void)
{
	static char data[JIARUN_CHUNK_BYTES];

	begin(true);
	for (int i = 0; i < 100; i++)
		jiarun_say(&two, input, .data = { data, sizeof(data) });
	turn(300);
	CU_ASSERT_EQUAL(bytes, 100 * sizeof(data));
	CU_ASSERT_EQUAL(two.out.begin, two.out.end);
	end();
}

static void a_closed_channel_is_over(void)
{
	begin(true);
	turn(3);
	CU_ASSERT_TRUE(jiarun_link_is_open(&one));
	jiarun_say(&two, ask, .question = 5);
	jiarun_link_flush(&two);
	jiarun_link_close_to(&two);
	turn(3);
	CU_ASSERT_EQUAL(last, 5);
	CU_ASSERT_TRUE(one.over);
	CU_ASSERT_FALSE(one.err);
	end();
}

static void who_does_not_read_can_still_be_heard(void)
{
	begin(true);
	turn(3);
	close(two.from.fd);
	two.from.fd = -1;
	jiarun_say(&one, alive, );
	turn(2);
	CU_ASSERT_FALSE(jiarun_link_is_open(&one));
	CU_ASSERT_FALSE(one.over);
	jiarun_say(&one, alive, ); /* and does no harm */
	jiarun_say(&two, ask, .question = 9);
	turn(3);
	CU_ASSERT_EQUAL(last, 9);
	end();
}

static void nonsense_ends_it_with_the_reason(void)
{
	begin(false);
	REQUIRE(write(raw[1], "Welcome!\n", 9) == 9);
	turn(2);
	CU_ASSERT_EQUAL(one.err, -ENOMSG);
	ASSERT_TEXT(one.in.why, "Welcome!");
	CU_ASSERT_TRUE(one.over);
	end();
}

static void what_is_refused_ends_it_and_nothing_follows(void)
{
	begin(true);
	refuse_after = 2;
	for (unsigned int i = 0; i < 5; i++)
		jiarun_say(&two, ask, .question = i);
	turn(3);
	CU_ASSERT_EQUAL(got, 2);
	CU_ASSERT_EQUAL(one.err, -EPROTO);
	ASSERT_TEXT(one.in.why, "enough");
	end();
}

static void silence_is_counted_and_broken(void)
{
	int64_t now;

	begin(true);
	turn(3);
	now = jiarun_now_ms();
	CU_ASSERT(jiarun_link_silent_ms(&one, now) < 1000);
	CU_ASSERT(jiarun_link_silent_ms(&one, now + 5000) >= 5000);
	jiarun_link_beat(&two, now, 2000);
	CU_ASSERT_FALSE(jiarun_link_pending(&two));
	jiarun_link_beat(&two, now + 3000, 2000);
	CU_ASSERT_TRUE(jiarun_link_pending(&two));
	turn(3);
	CU_ASSERT_EQUAL(got, 1);
	end();
}

CU_TestInfo test_jiarun_link[] = {
	{ "link__they_greet_and_talk", they_greet_and_talk },
	{ "link__more_than_a_pipe_takes_arrives",
	  more_than_a_pipe_takes_arrives },
	{ "link__a_closed_channel_is_over", a_closed_channel_is_over },
	{ "link__who_does_not_read_can_still_be_heard",
	  who_does_not_read_can_still_be_heard },
	{ "link__nonsense_ends_it_with_the_reason",
	  nonsense_ends_it_with_the_reason },
	{ "link__what_is_refused_ends_it_and_nothing_follows",
	  what_is_refused_ends_it_and_nothing_follows },
	{ "link__silence_is_counted_and_broken",
	  silence_is_counted_and_broken },
	CU_TEST_INFO_NULL,
};
