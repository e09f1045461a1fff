/* SPDX-License-Identifier: MIT */
/*
 * test_sul_simnet.c - the simulated network: what goes wrong, what must not.
 */
#include <errno.h>

#include "sul_bench.h"
#include "tests.h"

enum {
	RANKS = 4,
	ROUNDS = 200,
	SEEDS = 20,
	MS = 1000000
};

/* --- seeds ----------------------------------------------------------------------- */

/* Everybody adds to words of everybody; what was there is the story. */
static int take_part(struct sul_port *p, void *ctx)
{
	uint64_t *hash = ctx;

	for (uint64_t i = 0; i < ROUNDS / 10; i++) {
		int to = (int)(sul_sim_random(p->carrier) % RANKS);
		uint64_t old;

		MUST(!sul_amo(p, to, 0, 8, SUL_AMO_ADD, i, 0, &old));
		MUST(!sul_flush(p));
		sul_sim_point(p->carrier);
		*hash = (*hash ^ (old * RANKS + (uint64_t)sul_rank(p))) *
			0x100000001b3u;
	}
	return 0;
}

static void one_seed_is_one_execution(void)
{
	unsigned int different = 0;

	if (!bench_has(BENCH_NET))
		return;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct bench a = { .ranks = RANKS, .seed = seed }, b = a;
		uint64_t hash[2] = { 0 };

		CU_ASSERT_EQUAL(bench_run(BENCH_NET, &a, take_part, &hash[0]),
				0);
		CU_ASSERT_EQUAL(bench_run(BENCH_NET, &b, take_part, &hash[1]),
				0);
		CU_ASSERT_EQUAL(hash[0], hash[1]);
		CU_ASSERT_EQUAL(a.steps, b.steps);
		CU_ASSERT_EQUAL(a.net.now_ns, b.net.now_ns);
		CU_ASSERT_EQUAL(a.net.wire.sent, b.net.wire.sent);
		b.seed = seed + 1;
		CU_ASSERT_EQUAL(bench_run(BENCH_NET, &b, take_part, &hash[1]),
				0);
		different += a.steps != b.steps;
	}
	CU_ASSERT_EQUAL(different, SEEDS);
}

/* --- a bad network ------------------------------------------------------------------- */

enum {
	PIECE = 2000 /* bytes: several packets */
};

/* Rank 0 keeps writing a piece of rank 1 and reading it back. */
static int write_and_read(struct sul_port *p, void *ctx)
{
	unsigned char out[PIECE], in[PIECE];
	uint64_t old;

	(void)ctx;
	if (sul_rank(p))
		return 0;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		memset(out, (int)i, PIECE);
		MUST(!sul_put(p, 1, 0, 64, out, PIECE));
		MUST(!sul_amo(p, 1, 0, 8, SUL_AMO_ADD, 1, 0, &old));
		MUST(!sul_get(p, 1, 0, 64, in, PIECE, NULL, 0));
		MUST(!sul_flush(p));
		MUST(old == i);
		MUST(!memcmp(out, in, PIECE));
	}
	return 0;
}

static struct bench_net run_over(struct sul_simnet_config wire, int ranks,
				 bench_fn *fn)
{
	struct bench b = { .ranks = ranks, .seed = 1, .wire = &wire };

	CU_ASSERT_EQUAL(bench_run(BENCH_NET, &b, fn, NULL), 0);
	return b.net;
}

static void nothing_goes_wrong_on_a_quiet_network(void)
{
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	net = run_over(bench_quiet_wire(), 2, write_and_read);
	CU_ASSERT(net.wire.sent > ROUNDS * 4);
	CU_ASSERT_EQUAL(net.wire.lost + net.wire.doubled + net.wire.late +
				net.wire.spoilt + net.wire.cut +
				net.wire.overrun,
			0);
	CU_ASSERT_EQUAL(net.core.timeouts, 0);
	CU_ASSERT(net.now_ns > (uint64_t)ROUNDS * 20000); /* round trips */
}

static void what_is_lost_is_sent_again(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	c.loss_ppm = 200000;
	net = run_over(c, 2, write_and_read);
	CU_ASSERT(net.wire.lost > net.wire.sent / 8);
	CU_ASSERT(net.core.resent > 0);
}

static void what_comes_twice_is_done_once(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	c.dup_ppm = 500000;
	c.late_ppm = 500000;
	c.late_ns = 200000;
	net = run_over(c, 2, write_and_read);
	CU_ASSERT(net.wire.doubled > net.wire.sent / 3);
	CU_ASSERT(net.wire.late > net.wire.sent / 3);
	CU_ASSERT(net.core.early > 0);
}

static uint64_t dropped(const struct sul_net_stats *s)
{
	return s->dropped_short + s->dropped_session + s->dropped_mac +
	       s->dropped_replay + s->dropped_range + s->dropped_room;
}

static void nothing_that_is_spoilt_is_accepted(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	c.corrupt_ppm = 200000;
	net = run_over(c, 2, write_and_read);
	CU_ASSERT(net.wire.spoilt > net.wire.sent / 8);
	CU_ASSERT(net.core.packets_in + net.wire.spoilt <= net.wire.sent);
	CU_ASSERT(dropped(&net.core) > net.wire.spoilt / 2);
	CU_ASSERT_EQUAL(net.core.dropped_range + net.core.dropped_room, 0);
}

static void a_checksum_stands_in_for_the_code(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	c.auth = SUL_NET_AUTH_OFF;
	c.corrupt_ppm = 200000;
	net = run_over(c, 2, write_and_read);
	CU_ASSERT(net.wire.spoilt > net.wire.sent / 8);
	CU_ASSERT_EQUAL(dropped(&net.core), 0);
}

/* Each partition and each stop lasts longer than any retransmission timer was
 * when it began. */
static void cuts_and_stops_are_survived(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	struct bench_net net;

	if (!bench_has(BENCH_NET))
		return;
	c.cut_ns = c.stop_ns = 2 * MS;
	c.cut_for_ns = c.stop_for_ns = UINT64_C(2000) * MS;
	c.room = 2;
	net = run_over(c, 2, write_and_read);
	CU_ASSERT(net.wire.cuts > 0 && net.wire.stops > 0);
	CU_ASSERT(net.wire.cut > 0);
	CU_ASSERT_EQUAL(net.failed, -1);
}

/* --- room ------------------------------------------------------------------------------- */

static int issue_many(struct sul_port *p, void *ctx)
{
	static unsigned char out[1 << 15];
	uint64_t before = sul_simnet_now_ns(p->carrier), sum = 0;

	(void)ctx;
	if (sul_rank(p))
		return 0;
	for (uint64_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 7 + i / 256);
	for (uint64_t i = 0; i < sizeof(out); i += 64)
		MUST(!sul_put(p, 1, 0, i, out + i, 64));
	MUST(!sul_put(p, 0, 0, 0, out, sizeof(out))); /* to itself */
	MUST(!sul_amo(p, 1, 0, 0, SUL_AMO_ADD, 0, 0, &sum));
	MUST(sul_simnet_now_ns(p->carrier) == before); /* nobody has waited */
	MUST(!sul_flush(p));
	MUST(!memcmp(&sum, out, 8));
	MUST(!memcmp(sul_window(p, 0), out, sizeof(out)));
	memset(sul_window(p, 0), 0, sizeof(out));
	MUST(!sul_get(p, 1, 0, 0, sul_window(p, 0), sizeof(out), NULL, 0));
	MUST(!sul_flush(p));
	MUST(!memcmp(sul_window(p, 0), out, sizeof(out)));
	return 0;
}

static void issuing_does_not_wait_for_room(void)
{
	struct sul_simnet_config c = bench_bad_wire();

	c.span = SUL_NET_SPAN_MIN;
	bench_seeds((struct bench){ .ranks = 2, .wire = &c }, SEEDS, issue_many,
		    NULL);
}

/* --- crashes ------------------------------------------------------------------------------ */

/* Goes on for ever, unless somebody crashes; *@ctx counts who noticed. */
static int talk_for_ever(struct sul_port *p, void *ctx)
{
	int next = (sul_rank(p) + 1) % RANKS;
	struct sul_word *word = sul_window(p, 0);
	unsigned int *noticed = ctx;

	for (uint32_t i = 1;; i++) {
		int err = sul_notify(p, next, 0, 0, i);

		if (!err)
			err = sul_flush(p);
		if (!err)
			err = sul_wait(p, word, i - 1, -1);
		if (!err &&
		    sul_simnet_now_ns(p->carrier) > UINT64_C(3600) * 1000 * MS)
			return -ETIMEDOUT;
		if (!err)
			continue;
		MUST(err == -EHOSTDOWN || err == -ECANCELED);
		++*noticed;
		return 0;
	}
}

static void a_crash_ends_everybody_else_in_time(void)
{
	struct sul_simnet_config c = bench_bad_wire();
	struct bench b = { .ranks = RANKS, .wire = &c };

	if (!bench_has(BENCH_NET))
		return;
	for (b.seed = 0; b.seed < 10 * (uint64_t)SEEDS; b.seed++) {
		unsigned int noticed = 0;

		c.crash_step = 1 + b.seed * b.seed;
		c.crash_rank = b.seed % RANKS;
		CU_ASSERT_EQUAL(
			bench_run(BENCH_NET, &b, talk_for_ever, &noticed), 0);
		CU_ASSERT_EQUAL(noticed, RANKS - 1);
		CU_ASSERT_EQUAL(b.net.failed, (int)c.crash_rank);
		CU_ASSERT(b.net.now_ns - b.net.crash_ns <
			  c.silence_ns + c.cancel_ns + UINT64_C(1000) * MS);
	}
}

static int exit_in_the_midst(struct sul_port *p, void *ctx)
{
	unsigned int *left = ctx;
	int err;

	if (!sul_rank(p)) {
		++*left;
		sul_simnet_exit(p->carrier, 0);
	}
	err = sul_wait(p, sul_window(p, 0), 0, -1);
	MUST(err == -ECANCELED);
	++*left;
	return 0;
}

static void a_process_that_exits_is_silent(void)
{
	struct sul_simnet_config c = bench_quiet_wire();
	unsigned int left = 0;
	struct bench b = { .ranks = 2, .wire = &c };

	if (!bench_has(BENCH_NET))
		return;
	CU_ASSERT_EQUAL(bench_run(BENCH_NET, &b, exit_in_the_midst, &left), 0);
	CU_ASSERT_EQUAL(left, 2);
	CU_ASSERT_EQUAL(b.net.failed, 0);
}

/* --- worlds ---------------------------------------------------------------------------------- */

static void packets_have_a_size(void)
{
	struct sul_sim_config cfg = { .ranks = 1,
				      .net = true,
				      .wire = bench_quiet_wire() };
	struct sul_sim *s;

	cfg.wire.packet_bytes = SUL_NET_PACKET_MIN - 1;
	CU_ASSERT_EQUAL(sul_sim_new(&s, &cfg), -EINVAL);
	cfg.wire.packet_bytes = SUL_NET_PACKET_MAX + 1;
	CU_ASSERT_EQUAL(sul_sim_new(&s, &cfg), -EINVAL);
}

static void a_port_belongs_to_its_kind_of_world(void)
{
	struct sul_sim_config cfg = { .ranks = 1, .wire = bench_quiet_wire() };
	struct sul_config port = { .ranks = 1 };
	struct sul_port *p;

	for (int net = 0; net < 2; net++) {
		cfg.net = net;
		CU_ASSERT_EQUAL_FATAL(sul_sim_new(&port.sim, &cfg), 0);
		port.carrier = net ? "sim" : "simnet";
		CU_ASSERT_EQUAL(sul_open(&p, &port), -EINVAL);
		port.carrier = net ? "simnet" : "sim";
		CU_ASSERT_EQUAL(sul_open(&p, &port), 0);
		sul_close(p);
		sul_sim_free(port.sim);
	}
}

CU_TestInfo test_sul_simnet[] = {
	{ "one seed is one execution", one_seed_is_one_execution },
	{ "nothing goes wrong on a quiet network",
	  nothing_goes_wrong_on_a_quiet_network },
	{ "what is lost is sent again", what_is_lost_is_sent_again },
	{ "what comes twice is done once", what_comes_twice_is_done_once },
	{ "nothing that is spoilt is accepted",
	  nothing_that_is_spoilt_is_accepted },
	{ "a checksum stands in for the code",
	  a_checksum_stands_in_for_the_code },
	{ "cuts and stops are survived", cuts_and_stops_are_survived },
	{ "issuing does not wait for room", issuing_does_not_wait_for_room },
	{ "a crash ends everybody else in time",
	  a_crash_ends_everybody_else_in_time },
	{ "a process that exits is silent", a_process_that_exits_is_silent },
	{ "packets have a size", packets_have_a_size },
	{ "a port belongs to its kind of world",
	  a_port_belongs_to_its_kind_of_world },
	CU_TEST_INFO_NULL,
};
