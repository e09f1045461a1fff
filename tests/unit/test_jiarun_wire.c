/* SPDX-License-Identifier: MIT */
/* test_jiarun_wire.c - frames between launchers, whole, in pieces and broken. */
#include <errno.h>

#include "jia.h"
#include "jiarun_wire.h"
#include "tests.h"
#include "unit_seed.h"

static struct jiarun_wire_out out;
static struct jiarun_wire_in in;

static void begin(void)
{
	out = (struct jiarun_wire_out){ 0 };
	in = (struct jiarun_wire_in){ 0 };
}

static void end(void)
{
	jiarun_wire_out_free(&out);
	jiarun_wire_in_free(&in);
}

static void feed(const void *data, size_t n)
{
	size_t room;
	void *to = jiarun_wire_room(&in, &room);

	REQUIRE(to && n <= room);
	memcpy(to, data, n);
	jiarun_wire_added(&in, n);
}

/* All that was put, in pieces of @piece bytes. */
static void carry(size_t piece)
{
	while (out.begin < out.end) {
		size_t n = out.end - out.begin < piece ? out.end - out.begin :
							 piece;

		feed(out.buf + out.begin, n);
		jiarun_wire_sent(&out, n);
	}
}

/* A greeting that was said and heard. */
static void greet(void)
{
	struct jiarun_message m;

	begin();
	jiarun_wire_greet(&out);
	carry(1000);
	CU_ASSERT_EQUAL(jiarun_wire_next(&in, &m), 0);
	CU_ASSERT_TRUE(in.greeted);
}

static struct jiarun_message sample_card(void)
{
	return (struct jiarun_message){
		.type = JIARUN_WIRE_card,
		.card = { .rank = 7,
			  .state = SUL_RANK_READY,
			  .pid = INT32_MAX,
			  .program = { "./prog", 6 },
			  .blob = { "\0\1\2", 3 },
			  .address = { "", 0 } },
	};
}

static void assert_card(const struct jiarun_message *m)
{
	CU_ASSERT_EQUAL(m->type, JIARUN_WIRE_card);
	CU_ASSERT_EQUAL(m->card.rank, 7);
	CU_ASSERT_EQUAL(m->card.state, SUL_RANK_READY);
	CU_ASSERT_EQUAL(m->card.pid, INT32_MAX);
	REQUIRE(m->card.program.len == 6 && m->card.blob.len == 3);
	CU_ASSERT(!memcmp(m->card.program.at, "./prog", 6));
	CU_ASSERT(!memcmp(m->card.blob.at, "\0\1\2", 3));
	CU_ASSERT_EQUAL(m->card.address.len, 0);
}

static void what_was_put_comes_out(void)
{
	struct jiarun_message m = sample_card();

	greet();
	jiarun_wire_put(&out, &m);
	jiarun_wire_put(&out,
			&(struct jiarun_message){ .type = JIARUN_WIRE_go });
	carry(100000);
	REQUIRE(jiarun_wire_next(&in, &m) == 1);
	assert_card(&m);
	REQUIRE(jiarun_wire_next(&in, &m) == 1);
	CU_ASSERT_EQUAL(m.type, JIARUN_WIRE_go);
	CU_ASSERT_EQUAL(jiarun_wire_next(&in, &m), 0);
	end();
}

static void byte_by_byte_it_is_the_same(void)
{
	struct jiarun_message m = sample_card(), got;
	int messages = 0, n;

	begin();
	jiarun_wire_greet(&out);
	for (int i = 0; i < 3; i++)
		jiarun_wire_put(&out, &m);
	while (out.begin < out.end) {
		feed(out.buf + out.begin, 1);
		jiarun_wire_sent(&out, 1);
		n = jiarun_wire_next(&in, &got);
		REQUIRE(n >= 0);
		messages += n;
		if (n)
			assert_card(&got);
	}
	CU_ASSERT_EQUAL(messages, 3);
	end();
}

static void the_longest_string_passes_and_a_longer_one_is_cut(void)
{
	struct jiarun_message m = { .type = JIARUN_WIRE_argument };
	char *text = calloc(1, JIARUN_STRING_MAX + 1);

	REQUIRE(text);
	greet();
	for (size_t more = 0; more < 2; more++) {
		m.argument.text =
			(struct jiarun_bytes){ text, JIARUN_STRING_MAX + more };
		jiarun_wire_put(&out, &m);
		carry(60000);
		REQUIRE(jiarun_wire_next(&in, &m) == 1);
		CU_ASSERT_EQUAL(m.argument.text.len, JIARUN_STRING_MAX);
	}
	end();
	free(text);
}

/* --- greetings ------------------------------------------------------------------ */

static int heard(const char *text)
{
	struct jiarun_message m;

	begin();
	feed(text, strlen(text));
	return jiarun_wire_next(&in, &m);
}

static void a_shell_that_prints_is_no_greeting(void)
{
	CU_ASSERT_EQUAL(heard("Welcome to nodeA!\nLast login"), -ENOMSG);
	ASSERT_TEXT(in.why, "Welcome to nodeA!");
	end();
	CU_ASSERT_EQUAL(heard("\033[1mHi"), -ENOMSG);
	ASSERT_TEXT(in.why, "?[1mHi");
	end();
	CU_ASSERT_EQUAL(heard("daja"), -ENOMSG);
	end();
	CU_ASSERT_EQUAL(heard("dajia-ji"), 0); /* it may become one */
	end();
}

static void another_release_is_named(void)
{
	CU_ASSERT_EQUAL(heard("dajia-jiarun 7.3 wire 9 layout 1\n"),
			-EPROTONOSUPPORT);
	ASSERT_TEXT(in.why, "7.3 wire 9 layout 1");
	end();
	CU_ASSERT_EQUAL(heard("dajia-jiarun 0.1 wire 1 layo"), 0);
	end();
}

static void a_greeting_without_end_is_refused(void)
{
	char text[JIARUN_GREETING_MAX + 1] = "dajia-jiarun ";

	memset(text + strlen(text), 'x', sizeof(text) - 1 - strlen(text));
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(heard(text), -EPROTONOSUPPORT);
	end();
}

/* --- broken frames ---------------------------------------------------------------- */

/* A frame of these bytes after a good greeting. */
static int frame(const void *bytes, size_t n)
{
	struct jiarun_message m;

	greet();
	feed(bytes, n);
	return jiarun_wire_next(&in, &m);
}

static void refused(const void *bytes, size_t n, const char *why)
{
	CU_ASSERT_EQUAL(frame(bytes, n), -EPROTO);
	ASSERT_TEXT(in.why, why);
	end();
}

static void frames_that_are_none_are_refused(void)
{
	refused("\4\0\0\0\0\0XX", 8, "something that is no message");
	refused("\4\0\0\0\xff\1JR", 8, "a message of an unknown type, 511");
	refused("\3\0\0\0\0\0JR", 8, "a message of 3 bytes");
	refused("\0\0\0\1\0\0JR", 8, "a message of 16777216 bytes");
	refused("\5\0\0\0\0\0JR_", 9, "a message 'alive' that is too long");
}

static void put_le32(unsigned char *at, size_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(v >> 8 * i);
}

/* Output of rank @rank, @len bytes of which @real are there. */
static size_t make_output(unsigned char *buf, uint64_t rank, size_t len,
			  size_t real)
{
	size_t n = 8 + 8 + 8 + 4 + real;

	memset(buf, 0, n);
	put_le32(buf, n - 4);
	buf[4] = JIARUN_WIRE_output;
	buf[6] = 'J';
	buf[7] = 'R';
	put_le32(buf + 8, (size_t)rank);
	put_le32(buf + 24, len);
	return n;
}

static void fields_beyond_their_limits_are_refused(void)
{
	unsigned char buf[64];
	size_t n = make_output(buf, SUL_RANKS_MAX - 1, 3, 3);

	CU_ASSERT_EQUAL(frame(buf, n), 1);
	end();
	n = make_output(buf, SUL_RANKS_MAX, 3, 3);
	refused(buf, n, "a message 'output' whose rank is too large");
	n = make_output(buf, 0, 3, 2);
	refused(buf, n, "a message 'output' whose data is cut off");
	n = make_output(buf, 0, 0xffffffff, 2);
	refused(buf, n, "a message 'output' whose data is too long");
	n = make_output(buf, 0, 2, 3);
	refused(buf, n, "a message 'output' that is too long");
	n = make_output(buf, 0, 0, 0);
	put_le32(buf, n - 4 - 6);
	refused(buf, n - 6, "a message 'output' whose stream is cut off");
}

/* Random bytes in a stream of good frames: an error or a good message, never
 * more; and nothing is read that was not fed (the sanitizers see to that). */
static void noise_is_refused_and_does_no_harm(void)
{
	struct unit_rng rng = unit_rng("noise");
	struct jiarun_message m = sample_card();
	size_t whole;
	int bad = 0;

	for (int i = 0; i < 20000; i++) {
		int got = 1;

		greet();
		jiarun_wire_put(&out, &m);
		jiarun_wire_put(&out, &m);
		whole = out.end - out.begin;
		for (uint32_t n = unit_below(&rng, 4) + 1; n; n--)
			out.buf[out.begin + unit_below(&rng, (uint32_t)whole)] =
				(unsigned char)unit_next(&rng);
		carry(unit_below(&rng, 100) + 1);
		while (got == 1) {
			struct jiarun_message heard_one;

			got = jiarun_wire_next(&in, &heard_one);
		}
		CU_ASSERT(got == 0 || got == -EPROTO);
		bad += got != 0;
		end();
	}
	CU_ASSERT(bad > 1000);
}

static void text_is_cut_and_has_no_zeros(void)
{
	char text[4];

	jiarun_wire_text((struct jiarun_bytes){ "a\0b", 3 }, text,
			 sizeof(text));
	ASSERT_TEXT(text, "a?b");
	jiarun_wire_text((struct jiarun_bytes){ "abcd", 4 }, text,
			 sizeof(text));
	ASSERT_TEXT(text, "abc");
}

CU_TestInfo test_jiarun_wire[] = {
	{ "frames__what_was_put_comes_out", what_was_put_comes_out },
	{ "frames__byte_by_byte_it_is_the_same", byte_by_byte_it_is_the_same },
	{ "frames__the_longest_string_passes_and_a_longer_one_is_cut",
	  the_longest_string_passes_and_a_longer_one_is_cut },
	{ "greeting__a_shell_that_prints_is_none",
	  a_shell_that_prints_is_no_greeting },
	{ "greeting__another_release_is_named", another_release_is_named },
	{ "greeting__without_end_is_refused",
	  a_greeting_without_end_is_refused },
	{ "frames__that_are_none_are_refused",
	  frames_that_are_none_are_refused },
	{ "frames__fields_beyond_their_limits_are_refused",
	  fields_beyond_their_limits_are_refused },
	{ "frames__noise_is_refused_and_does_no_harm",
	  noise_is_refused_and_does_no_harm },
	{ "text__is_cut_and_has_no_zeros", text_is_cut_and_has_no_zeros },
	CU_TEST_INFO_NULL,
};
