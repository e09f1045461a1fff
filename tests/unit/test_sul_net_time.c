/* SPDX-License-Identifier: MIT */
/*
 * test_sul_net_time.c - how many packets an operation takes, when somebody is
 * asked, and when a peer is dead.
 */
#include <errno.h>

#include "sul_cable.h"
#include "tests.h"

enum {
	US = 1000,
	MS = 1000 * US
};

#define SECOND ((uint64_t)1000 * MS)

static uint64_t word; /* sources and results */
static unsigned char page[4096];

static void put_word(struct cable *c, int from, int to)
{
	size_t done = 0;

	word = 7;
	CU_ASSERT_EQUAL(sul_net_put(c->net[from], to, 0, 64, &word, 8, &done),
			0);
}

static void get_page(struct cable *c, int from, int to)
{
	size_t done = 0;

	CU_ASSERT_EQUAL(sul_net_get(c->net[from], to, 0, 0, page, sizeof(page),
				    NULL, 0, &done),
			0);
}

/* Rank 0 and rank 1 know each other, and owe each other nothing. */
static void open_known(struct cable *c, const char *name)
{
	struct cable_config cfg = cable_plain(2);

	cable_open(c, &cfg, unit_rng(name));
	put_word(c, 0, 1);
	CU_ASSERT(cable_flush(c, 0));
	get_page(c, 0, 1);
	CU_ASSERT(cable_flush(c, 0));
	put_word(c, 1, 0);
	CU_ASSERT(cable_flush(c, 1));
	cable_run(c, 50 * MS);
	c->sent = 0;
}

/* --- packets per operation -------------------------------------------------------------- */

struct count {
	uint64_t until_quiet, afterwards;
};

static struct count count(struct cable *c)
{
	struct count n;

	CU_ASSERT(cable_flush(c, 0));
	n.until_quiet = c->sent;
	cable_run(c, 50 * MS);
	n.afterwards = c->sent - n.until_quiet;
	c->sent = 0;
	return n;
}

static void operations_take_as_few_packets_as_can_be(void)
{
	struct cable c;
	struct count n;
	uint64_t old;

	open_known(&c, "counts");
	put_word(&c, 0, 1);
	n = count(&c);
	CU_ASSERT(n.until_quiet == 2 && n.afterwards == 0);
	for (int i = 0; i < 16; i++)
		put_word(&c, 0, 1);
	n = count(&c);
	CU_ASSERT(n.until_quiet == 2 && n.afterwards == 0);
	CU_ASSERT(!sul_net_notify(c.net[0], 1, 0, 0, 1));
	n = count(&c);
	CU_ASSERT(n.until_quiet == 2 && n.afterwards == 0);
	/* An answer is acknowledged by and by, for all of them at once. */
	CU_ASSERT(!sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0, &old));
	n = count(&c);
	CU_ASSERT(n.until_quiet == 2 && n.afterwards == 1);
	get_page(&c, 0, 1);
	n = count(&c);
	CU_ASSERT(n.until_quiet == 1 + 3 && n.afterwards == 1);
	for (int i = 0; i < 10; i++) {
		get_page(&c, 0, 1);
		CU_ASSERT(cable_flush(&c, 0));
	}
	n = count(&c);
	CU_ASSERT(n.until_quiet == 10 * 4 && n.afterwards == 1);
	cable_close(&c);
}

static void nobody_is_hurried_who_was_not_asked_to(void)
{
	struct cable c;
	uint64_t begin;

	open_known(&c, "leisure");
	put_word(&c, 0, 1);
	begin = c.now_ns;
	while (!sul_net_quiet(c.net[0]))
		CU_ASSERT_FATAL(cable_step(&c));
	CU_ASSERT(c.now_ns - begin >= 10 * MS);
	CU_ASSERT(c.now_ns - begin < 12 * MS);
	CU_ASSERT_EQUAL(c.sent, 2);
	cable_close(&c);
}

/* All has left already: a question of its own. */
static void hurry__asks_even_when_all_has_been_sent(void)
{
	struct cable c;
	uint64_t begin;

	open_known(&c, "late hurry");
	put_word(&c, 0, 1);
	cable_run(&c, 2 * MS);
	CU_ASSERT(!sul_net_quiet(c.net[0]));
	begin = c.now_ns;
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT(c.now_ns - begin < 1 * MS);
	CU_ASSERT_EQUAL(c.sent, 3);
	cable_close(&c);
}

static void a_stream_is_acknowledged_now_and_then(void)
{
	static unsigned char src[CABLE_WINDOW_BYTES];
	struct cable c;
	size_t done = 0;

	open_known(&c, "stream");
	while (sul_net_put(c.net[0], 1, 0, 0, src, sizeof(src), &done))
		CU_ASSERT_FATAL(cable_step(&c));
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT(c.sent > sizeof(src) / 1400);
	CU_ASSERT(sul_net_stats(c.net[1])->acks_out < c.sent / 8);
	CU_ASSERT(sul_net_stats(c.net[0])->acks_out <= 2);
	cable_close(&c);
}

/* Loses the next *ctx packets of rank 1. */
static bool lose_some(struct cable *c, struct cable_packet *p)
{
	unsigned int *nr = c->tap_ctx;

	return !(p->from == 1 && *nr && (*nr)--);
}

/* The home is in no hurry to ask whether its answer has come. */
static void an_answer_that_was_lost_is_asked_for(void)
{
	unsigned int lost;
	uint64_t begin;
	struct cable c;

	open_known(&c, "lost answer");
	c.tap = lose_some;
	c.tap_ctx = &lost;
	for (int i = 0; i < 3; i++) {
		lost = 1; /* the whole answer, or the first part of it */
		begin = c.now_ns;
		if (i) {
			get_page(&c, 0, 1);
		} else {
			CU_ASSERT(!sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD,
					       1, 0, &word));
		}
		CU_ASSERT(cable_flush(&c, 0));
		CU_ASSERT(c.now_ns - begin < 4 * MS);
		cable_run(&c, 50 * MS);
	}
	cable_close(&c);
}

/* --- nothing to do ---------------------------------------------------------------------------- */

static void ranks_that_never_spoke_stay_silent(void)
{
	struct cable_config cfg = cable_plain(3);
	struct cable c;

	cable_open(&c, &cfg, unit_rng("strangers"));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sul_net_deadline(c.net[i]), UINT64_MAX);
	put_word(&c, 0, 1);
	cable_run(&c, 100 * SECOND);
	CU_ASSERT_EQUAL(sul_net_deadline(c.net[2]), UINT64_MAX);
	CU_ASSERT_EQUAL(sul_net_stats(c.net[2])->packets_in, 0);
	cable_close(&c);
}

static void an_idle_link_is_asked_now_and_then(void)
{
	struct cable c;

	open_known(&c, "idle");
	cable_run(&c, 100 * SECOND);
	CU_ASSERT(c.sent >= 2 * 35 && c.sent <= 2 * 45);
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	c.cfg.loss_ppm = 300000; /* nearly every second question in vain */
	cable_run(&c, 10000 * SECOND);
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	cable_close(&c);
}

/* --- death ---------------------------------------------------------------------------------------- */

/* Rank 1 says farewell; its cable is cut afterwards. */
static void open_left(struct cable *c, const char *what)
{
	open_known(c, what);
	CU_ASSERT(!sul_net_farewell(c->net[1], 0));
	CU_ASSERT(cable_flush(c, 1));
	c->cut[1] = true;
	CU_ASSERT(sul_net_has_left(c->net[0], 1));
	CU_ASSERT(!sul_net_has_left(c->net[1], 0));
}

static void nobody_misses_who_has_said_farewell(void)
{
	struct cable c;

	open_left(&c, "farewell");
	cable_run(&c, 100 * c.cfg.silence_ns);
	CU_ASSERT_EQUAL(c.dead[0][1] + c.left[0][1], 0);
	CU_ASSERT(sul_net_quiet(c.net[0]));
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0);
	cable_close(&c);
}

static void operations_on_who_has_left_are_refused_at_once(void)
{
	struct sul_message m = { .len = 0 };
	struct sul_run run = { 0, 8 };
	uint64_t v = 0;
	struct cable c;
	size_t done = 0;

	open_left(&c, "left");
	CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, 0, &v, 8, &done),
			-EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_get(c.net[0], 1, 0, 0, &v, 8, NULL, 0, &done),
			-EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_putv(c.net[0], 1, 0, 0, &v, &run, 1, NULL,
				     &done),
			-EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0, &v),
			-EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_notify(c.net[0], 1, 0, 0, 1), -EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_message(c.net[0], 1, &m), -EHOSTDOWN);
	CU_ASSERT(sul_net_quiet(c.net[0]));
	CU_ASSERT_EQUAL(c.dead[0][1] + c.left[0][1], 0);
	cable_close(&c);
}

static bool lose_requests(struct cable *c, struct cable_packet *p)
{
	(void)c;
	return p->to != 1;
}

/* What has been issued before the farewell comes, and is lost. */
static void what_is_under_way_to_who_leaves_fails_soon(void)
{
	struct cable c;
	uint64_t begin, old;

	open_known(&c, "too late");
	CU_ASSERT(!sul_net_farewell(c.net[1], 0));
	c.tap = lose_requests;
	CU_ASSERT(!sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0, &old));
	begin = c.now_ns;
	while (!sul_net_quiet(c.net[0]) && cable_step(&c))
		;
	CU_ASSERT(c.now_ns - begin >= 200 * MS);
	CU_ASSERT(c.now_ns - begin < 300 * MS);
	CU_ASSERT_EQUAL(c.left[0][1], 1);
	CU_ASSERT_EQUAL(c.dead[0][1], 0);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), -EHOSTDOWN);
	cable_close(&c);
}

static void what_is_under_way_to_who_leaves_may_still_be_done(void)
{
	struct cable c;
	uint64_t old = 1;

	open_known(&c, "just in time");
	CU_ASSERT(!sul_net_farewell(c.net[1], 0));
	CU_ASSERT(!sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0, &old));
	CU_ASSERT(cable_flush(&c, 1));
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT(sul_net_has_left(c.net[0], 1));
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0);
	CU_ASSERT_EQUAL(c.left[0][1] + c.dead[0][1], 0);
	cable_close(&c);
}

static void a_peer_that_is_silent_is_dead_once(void)
{
	struct cable c;
	uint64_t begin, old;

	open_known(&c, "death");
	c.cut[1] = true;
	begin = c.now_ns;
	put_word(&c, 0, 1);
	get_page(&c, 0, 1);
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT(c.now_ns - begin <= 10 * SECOND);
	CU_ASSERT(c.now_ns - begin >= 9 * SECOND);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), -EHOSTDOWN);
	CU_ASSERT_EQUAL(sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0, &old),
			-EHOSTDOWN);
	c.cut[1] = false; /* too late */
	cable_run(&c, 100 * SECOND);
	CU_ASSERT_EQUAL(c.dead[0][1], 1);
	cable_close(&c);
}

static void a_peer_that_dies_in_silence_is_missed(void)
{
	struct cable c;
	uint64_t begin;

	open_known(&c, "silent death");
	cable_run(&c, 33 * SECOND);
	c.stopped[1] = true; /* and nobody wants anything of it */
	begin = c.now_ns;
	while (!c.dead[0][1])
		CU_ASSERT_FATAL(cable_step(&c));
	CU_ASSERT(c.now_ns - begin <= 10 * SECOND);
	CU_ASSERT(c.now_ns - begin >= 7 * SECOND);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0); /* nothing was lost */
	cable_close(&c);
}

/* A link that has never carried a packet. */
static void expect_missed(struct cable *c)
{
	uint64_t begin = c->now_ns;

	c->cut[1] = true;
	while (!c->dead[0][1] && cable_step(c))
		;
	CU_ASSERT_EQUAL(c->dead[0][1], 1);
	CU_ASSERT(c->now_ns - begin <= 13 * SECOND);
	CU_ASSERT(c->now_ns - begin >= 9 * SECOND);
	cable_close(c);
}

static void a_peer_that_was_asked_for_nothing_is_missed(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	size_t done = 0;

	cable_open(&c, &cfg, unit_rng("a get of nothing"));
	CU_ASSERT(!sul_net_get(c.net[0], 1, 0, 0, page, 0, NULL, 0, &done));
	expect_missed(&c);
	cable_open(&c, &cfg, unit_rng("watched"));
	CU_ASSERT_EQUAL(sul_net_watch(c.net[0], 1), 0);
	CU_ASSERT_EQUAL(sul_net_watch(c.net[0], 0), -EINVAL);
	CU_ASSERT_EQUAL(sul_net_watch(c.net[0], 2), -EINVAL);
	expect_missed(&c);
}

/* Half of what came before is executed by the peer; the rest ends. */
static void the_others_live_on(void)
{
	struct cable_config cfg = cable_plain(3);
	struct cable c;

	cable_open(&c, &cfg, unit_rng("others"));
	put_word(&c, 0, 1);
	put_word(&c, 0, 2);
	CU_ASSERT(cable_flush(&c, 0));
	c.cut[1] = true;
	for (int i = 0; i < 300; i++) {
		put_word(&c, 0, 2);
		CU_ASSERT(cable_flush(&c, 0));
		cable_run(&c, 100 * MS);
	}
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[2][1], 1);
	CU_ASSERT_EQUAL(c.dead[0][2] + c.dead[2][0], 0);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0);
	put_word(&c, 0, 2);
	CU_ASSERT(cable_flush(&c, 0));
	cable_close(&c);
}

static void a_peer_that_is_stopped_for_a_while_loses_nothing(void)
{
	struct cable c;

	open_known(&c, "stop");
	for (int i = 0; i < 5; i++) {
		uint64_t old = 0;

		c.stopped[1] = true;
		CU_ASSERT(!sul_net_amo(c.net[0], 1, 0, 0, SUL_AMO_ADD, 1, 0,
				       &old));
		cable_run(&c, 7 * SECOND);
		CU_ASSERT(!sul_net_quiet(c.net[0]));
		c.stopped[1] = false;
		CU_ASSERT(cable_flush(&c, 0));
		CU_ASSERT_EQUAL(old, (uint64_t)i);
		cable_run(&c, 5 * SECOND);
	}
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0);
	/* What piled up meanwhile was few packets: they were ever rarer. */
	CU_ASSERT(sul_net_stats(c.net[0])->resent < 5 * 40);
	cable_close(&c);
}

/* It was this rank that was stopped: the others may be well. */
static void who_was_stopped_declares_nobody_dead(void)
{
	struct cable c;

	open_known(&c, "own stop");
	put_word(&c, 0, 1);
	cable_run(&c, 20 * US);
	c.stopped[0] = true;
	cable_run(&c, 8 * SECOND); /* rank 1 may be patient for 10 */
	c.stopped[0] = false;
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	c.cfg.silence_ns = 0; /* of the core: still 10 s */
	c.stopped[1] = true; /* nobody can hear anybody, ... */
	c.stopped[0] = true;
	c.now_ns += 100 * SECOND; /* ... as when a machine is suspended */
	c.stopped[0] = c.stopped[1] = false;
	put_word(&c, 0, 1);
	put_word(&c, 1, 0);
	CU_ASSERT(cable_flush(&c, 0) && cable_flush(&c, 1));
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	cable_close(&c);
}

static bool lose_every_second(struct cable *c, struct cable_packet *p)
{
	return p->from == 0 || unit_below(&c->rng, 2);
}

/*
 * Rank 0 gets a processor for a moment each 4.9 s, too often to be stopped, and
 * half of what it would hear then is lost.  Rank 1 always answers.
 */
static void who_is_short_of_time_declares_nobody_dead(void)
{
	struct cable c;

	open_known(&c, "starving");
	c.tap = lose_every_second;
	for (int i = 0; i < 100; i++) {
		c.stopped[0] = true;
		cable_run(&c, (uint64_t)4900 * MS);
		c.stopped[0] = false;
		cable_run(&c, 200 * US);
	}
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	/* Nor does it live for ever in its eyes: it is listened to a little. */
	c.stopped[1] = true;
	for (int i = 0; i < 500 && !c.dead[0][1]; i++) {
		c.stopped[0] = true;
		cable_run(&c, 900 * MS);
		c.stopped[0] = false;
		cable_run(&c, 200 * US);
	}
	CU_ASSERT_EQUAL(c.dead[0][1], 1);
	cable_close(&c);
}

/* What comes of a deadline that was not looked at anew is a look in vain. */
static void review__forgets_what_has_been_done(void)
{
	struct cable c;

	open_known(&c, "done");
	put_word(&c, 0, 1);
	CU_ASSERT(cable_flush(&c, 0));
	cable_run(&c, 1 * US);
	CU_ASSERT(sul_net_deadline(c.net[0]) < c.now_ns + 20 * MS);
	CU_ASSERT(sul_net_review(c.net[0]) > c.now_ns + 20 * MS);
	CU_ASSERT_EQUAL(sul_net_deadline(c.net[0]), sul_net_review(c.net[0]));
	cable_close(&c);
}

static void review__forgets_nothing_that_may_be_lost(void)
{
	struct cable c;
	uint64_t begin;

	open_known(&c, "lost");
	c.cut[1] = true;
	put_word(&c, 0, 1);
	sul_net_hurry(c.net[0]);
	cable_run(&c, 100 * US);
	c.cut[1] = false;
	begin = c.now_ns;
	while (!sul_net_quiet(c.net[0])) {
		CU_ASSERT(sul_net_review(c.net[0]) < begin + 5 * MS);
		CU_ASSERT_FATAL(cable_step(&c));
	}
	CU_ASSERT(c.now_ns - begin < 5 * MS);
	cable_close(&c);
}

static void time_that_goes_back_does_no_harm(void)
{
	struct cable c;

	open_known(&c, "back");
	for (int i = 0; i < 100; i++) {
		c.now_ns -= unit_below(&c.rng, 100 * MS);
		put_word(&c, 0, 1);
		for (int k = 0; k < 1000 && !sul_net_quiet(c.net[0]); k++) {
			struct sul_packet p;

			sul_net_hurry(c.net[0]);
			for (int r = 0; r < 2; r++)
				while (sul_net_output(c.net[r], c.now_ns, &p))
					cable_send(&c, r, 1 - r, p.head,
						   p.head_len);
			c.now_ns += 100 * US;
			cable_deliver(&c);
		}
		CU_ASSERT(sul_net_quiet(c.net[0]));
	}
	CU_ASSERT_EQUAL(c.dead[0][1] + c.dead[1][0], 0);
	cable_close(&c);
}

CU_TestInfo test_sul_net_time[] = {
	{ "operations take as few packets as can be",
	  operations_take_as_few_packets_as_can_be },
	{ "nobody is hurried who was not asked to",
	  nobody_is_hurried_who_was_not_asked_to },
	{ "hurry: asks even when all has been sent",
	  hurry__asks_even_when_all_has_been_sent },
	{ "a stream is acknowledged now and then",
	  a_stream_is_acknowledged_now_and_then },
	{ "an answer that was lost is asked for",
	  an_answer_that_was_lost_is_asked_for },
	{ "ranks that never spoke stay silent",
	  ranks_that_never_spoke_stay_silent },
	{ "an idle link is asked now and then",
	  an_idle_link_is_asked_now_and_then },
	{ "nobody misses who has said farewell",
	  nobody_misses_who_has_said_farewell },
	{ "operations on who has left are refused at once",
	  operations_on_who_has_left_are_refused_at_once },
	{ "what is under way to who leaves fails soon",
	  what_is_under_way_to_who_leaves_fails_soon },
	{ "what is under way to who leaves may still be done",
	  what_is_under_way_to_who_leaves_may_still_be_done },
	{ "a peer that is silent is dead once",
	  a_peer_that_is_silent_is_dead_once },
	{ "a peer that dies in silence is missed",
	  a_peer_that_dies_in_silence_is_missed },
	{ "a peer that was asked for nothing is missed",
	  a_peer_that_was_asked_for_nothing_is_missed },
	{ "the others live on", the_others_live_on },
	{ "a peer that is stopped for a while loses nothing",
	  a_peer_that_is_stopped_for_a_while_loses_nothing },
	{ "who was stopped declares nobody dead",
	  who_was_stopped_declares_nobody_dead },
	{ "who is short of time declares nobody dead",
	  who_is_short_of_time_declares_nobody_dead },
	{ "review: forgets what has been done",
	  review__forgets_what_has_been_done },
	{ "review: forgets nothing that may be lost",
	  review__forgets_nothing_that_may_be_lost },
	{ "time that goes back does no harm",
	  time_that_goes_back_does_no_harm },
	CU_TEST_INFO_NULL,
};
