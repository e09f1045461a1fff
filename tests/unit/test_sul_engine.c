/* SPDX-License-Identifier: MIT */
/*
 * test_sul_engine.c - one lane: order, losses, windows and timers, by hand and
 * over a lane that is as bad as it gets.
 */
#include "sul_engine.h"
#include "tests.h"
#include "unit_seed.h"

enum {
	US = 1000,
	MS = 1000 * US,
	SPAN = 64,
	RTT = 100 * US,
	DELAY = 10 * MS
};

#define MOST ((uint64_t)1000 * MS)

struct lane {
	struct sul_sender out;
	struct sul_receiver in;
	struct sul_sent sent[SPAN];
	uint64_t bits[1];
	struct sul_paths paths;
	uint64_t now;
};

static void open_lane(struct lane *l, uint32_t first)
{
	memset(l, 0, sizeof(*l));
	sul_paths_init(&l->paths, 1);
	sul_sender_init(&l->out, l->sent, SPAN, first, &l->paths);
	sul_receiver_init(&l->in, l->bits, SPAN, first);
	l->now = 1000 * MS;
}

/* Send what may be sent now; how much that is. */
static unsigned int send_all(struct lane *l)
{
	unsigned int nr = 0;
	uint32_t seq;

	while (sul_sender_pick(&l->out, &seq)) {
		sul_sender_sent(&l->out, seq, false, l->now);
		l->now += US;
		nr++;
	}
	return nr;
}

static void make(struct lane *l, unsigned int nr)
{
	while (nr--)
		sul_sender_push(&l->out);
}

/* The peer has seen something sent at @stamp, one round trip ago. */
static uint32_t ack(struct lane *l, uint32_t next, uint64_t kept,
		    uint64_t stamp)
{
	struct sul_ack a = { .next = next,
			     .credit = SPAN,
			     .first = next + 1,
			     .bits = &kept,
			     .nr_bits = 64 };

	if (l->now < stamp + RTT)
		l->now = stamp + RTT;
	sul_paths_seen(&l->paths, 0, stamp, 0, l->now);
	return sul_sender_ack(&l->out, &a, l->now);
}

static uint64_t stamp_of(const struct lane *l, uint32_t seq)
{
	return sul_sender_at(&l->out, seq)->at_ns;
}

static uint64_t deadline(const struct lane *l)
{
	return sul_sender_deadline(&l->out, DELAY, MOST);
}

static bool expire(struct lane *l, uint64_t at)
{
	l->now = at;
	return sul_sender_expire(&l->out, DELAY, MOST, at);
}

/* --- sending ------------------------------------------------------------------------ */

static void pick__stays_within_what_was_granted(void)
{
	struct lane l;

	open_lane(&l, 0);
	make(&l, SPAN);
	CU_ASSERT_EQUAL(sul_sender_room(&l.out), 0);
	CU_ASSERT_EQUAL(send_all(&l), SUL_ENGINE_CREDIT_FIRST);
	CU_ASSERT_EQUAL(ack(&l, 8, 0, stamp_of(&l, 7)), 8);
	CU_ASSERT_EQUAL(sul_sender_room(&l.out), 8);
	CU_ASSERT_EQUAL(send_all(&l), SUL_ENGINE_WINDOW_FIRST);
}

static void ack__opens_the_window_while_all_goes_well(void)
{
	struct lane l;
	uint32_t at = 0;

	open_lane(&l, 0);
	for (int round = 0; round < 6; round++) {
		make(&l, sul_sender_room(&l.out));
		at += send_all(&l);
		ack(&l, at, 0, stamp_of(&l, at - 1));
	}
	CU_ASSERT_EQUAL(l.out.window, SPAN);
	make(&l, SPAN);
	CU_ASSERT_EQUAL(send_all(&l), SPAN);
}

static void ack__does_not_open_a_window_that_nobody_fills(void)
{
	struct lane l;

	open_lane(&l, 0);
	for (uint32_t i = 0; i < 100; i++) {
		make(&l, 1);
		CU_ASSERT_EQUAL(send_all(&l), 1);
		ack(&l, i + 1, 0, stamp_of(&l, i));
	}
	CU_ASSERT_EQUAL(l.out.window, SUL_ENGINE_WINDOW_FIRST);
}

static void ack__that_is_old_or_nonsense_changes_nothing(void)
{
	struct lane l;

	open_lane(&l, 0);
	make(&l, 8);
	send_all(&l);
	CU_ASSERT_EQUAL(ack(&l, 4, 0, stamp_of(&l, 3)), 4);
	CU_ASSERT_EQUAL(ack(&l, 3, ~UINT64_C(0), stamp_of(&l, 3)), 0);
	CU_ASSERT_EQUAL(ack(&l, 9, ~UINT64_C(0), stamp_of(&l, 3)), 0);
	CU_ASSERT_EQUAL(ack(&l, 0x80000000, 0, stamp_of(&l, 3)), 0);
	CU_ASSERT_EQUAL(l.out.una, 4);
	CU_ASSERT_EQUAL(l.out.flying, 4);
	CU_ASSERT_EQUAL(l.out.kept, 0);
	/* What it keeps beyond what was sent is nonsense, too. */
	CU_ASSERT_EQUAL(ack(&l, 4, ~UINT64_C(0), stamp_of(&l, 7)), 0);
	CU_ASSERT_EQUAL(l.out.kept, 3);
}

static void sent__hurries_when_the_window_closes(void)
{
	struct lane l;
	uint32_t seq;
	bool hurry = false;
	unsigned int nr = 0;

	open_lane(&l, 0);
	make(&l, SUL_ENGINE_CREDIT_FIRST + 1);
	while (sul_sender_pick(&l.out, &seq)) {
		hurry = sul_sender_sent(&l.out, seq, false, l.now);
		nr += hurry;
	}
	CU_ASSERT(hurry);
	CU_ASSERT_EQUAL(nr, 2); /* and at every quarter of it */
}

/* --- losses -------------------------------------------------------------------------- */

static void ack__of_a_later_packet_finds_the_lost_one(void)
{
	struct lane l;
	uint32_t seq;

	open_lane(&l, 0);
	make(&l, 8);
	send_all(&l);
	ack(&l, 1, 0, stamp_of(&l, 0)); /* round trips are known */
	l.now += RTT;
	ack(&l, 1, 0x20, stamp_of(&l, 7)); /* 7 is there, 1 to 6 are not */
	l.now += RTT; /* the reordering window is over */
	expire(&l, l.now);
	CU_ASSERT_EQUAL(l.out.lost, 6);
	CU_ASSERT(sul_sender_pick(&l.out, &seq));
	CU_ASSERT_EQUAL(seq, 1);
	CU_ASSERT(sul_sender_sent(&l.out, seq, false, l.now)); /* hurries */
	CU_ASSERT_EQUAL(send_all(&l), 5);
}

static void ack__gives_reordered_packets_their_time(void)
{
	struct lane l;
	uint64_t soon;

	open_lane(&l, 0);
	make(&l, 3);
	send_all(&l);
	ack(&l, 0, 1, stamp_of(&l, 1)); /* 1 is there, 0 is not */
	CU_ASSERT_EQUAL(l.out.lost, 0);
	soon = deadline(&l);
	CU_ASSERT(soon > l.now && soon <= l.now + RTT);
	CU_ASSERT(!expire(&l, soon - 1));
	CU_ASSERT_EQUAL(l.out.lost, 0);
	expire(&l, soon);
	CU_ASSERT_EQUAL(l.out.lost, 1);
}

static void ack__with_part_of_the_news_loses_nothing_behind_it(void)
{
	struct lane l;
	uint64_t kept = 1;
	struct sul_ack a = { .next = 0,
			     .credit = SPAN,
			     .first = 1,
			     .bits = &kept,
			     .nr_bits = 1,
			     .part = true };

	open_lane(&l, 0);
	make(&l, 8);
	send_all(&l);
	l.now += 10 * RTT;
	sul_paths_seen(&l.paths, 0, stamp_of(&l, 7), 0, l.now);
	l.now += 10 * RTT;
	sul_sender_ack(&l.out, &a, l.now);
	CU_ASSERT_EQUAL(l.out.lost, 1); /* 0; 1 is kept; 2 to 6: who knows */
	a.part = false;
	sul_sender_ack(&l.out, &a, l.now);
	CU_ASSERT_EQUAL(l.out.lost, 6);
}

/* Sent again while the first one was only late. */
static void ack__of_a_packet_sent_again_in_vain_widens_the_reordering(void)
{
	struct lane l;
	uint64_t before;

	open_lane(&l, 0);
	make(&l, 8);
	send_all(&l);
	ack(&l, 0, 0x3f, stamp_of(&l, 7));
	l.now += RTT;
	expire(&l, l.now);
	CU_ASSERT_EQUAL(l.out.lost, 1);
	before = l.out.reorder_ns;
	CU_ASSERT_EQUAL(send_all(&l), 1);
	/* Nothing sent since has been seen, but it is there. */
	ack(&l, 8, 0, stamp_of(&l, 7));
	CU_ASSERT(l.out.reorder_ns >= 2 * before);
}

/* After 200 full windows, of which each @one_in-th packet is lost once. */
static uint32_t window_after(unsigned int one_in)
{
	struct lane l;

	open_lane(&l, 0);
	for (int round = 0; round < 200; round++) {
		uint32_t gap = (l.out.una + one_in - 1) / one_in * one_in;
		uint64_t kept = ~(uint64_t)0;

		make(&l, sul_sender_room(&l.out));
		send_all(&l);
		for (uint32_t i = one_in; i <= 64; i += one_in)
			kept &= ~((uint64_t)1 << (i - 1));
		if (sul_seq_before(gap, l.out.fresh)) {
			ack(&l, gap, kept, l.now - US);
			expire(&l, l.now + RTT);
			send_all(&l);
		}
		ack(&l, l.out.fresh, 0, l.now - US);
	}
	return l.out.window;
}

static void window__is_halved_by_congestion_and_not_by_noise(void)
{
	CU_ASSERT_EQUAL(window_after(100), SPAN);
	CU_ASSERT(window_after(8) < SPAN / 2);
}

/* --- timers ------------------------------------------------------------------------------ */

static void expire__probes_ever_more_rarely(void)
{
	struct lane l;
	uint64_t at, wait = 0, first = 0;
	uint32_t seq;

	open_lane(&l, 0);
	CU_ASSERT_EQUAL(deadline(&l), SUL_ENGINE_NEVER);
	make(&l, 2);
	send_all(&l);
	for (int i = 0; i < 20; i++) {
		uint64_t then = l.now;

		at = deadline(&l);
		CU_ASSERT(!expire(&l, at - 1));
		CU_ASSERT(expire(&l, at));
		CU_ASSERT(sul_sender_pick(&l.out, &seq));
		CU_ASSERT_EQUAL(seq, 0);
		CU_ASSERT(sul_sender_sent(&l.out, seq, false, l.now));
		CU_ASSERT(at - then >= wait || at - then == MOST);
		wait = at - then;
		first = first ?: wait;
	}
	CU_ASSERT_EQUAL(wait, MOST);
	CU_ASSERT(first >= 20 * MS && first < 40 * MS);
	CU_ASSERT_EQUAL(l.out.window, SUL_ENGINE_WINDOW_MIN);
	/* An answer to the probe: 1 is lost, and probes are prompt again. */
	ack(&l, 1, 0, stamp_of(&l, 0));
	CU_ASSERT_EQUAL(send_all(&l), 1);
	CU_ASSERT(deadline(&l) < l.now + 30 * MS);
}

static void deadline__waits_for_a_leisurely_receiver_unless_hurried(void)
{
	struct lane l;
	uint32_t seq;

	open_lane(&l, 0);
	make(&l, 1);
	send_all(&l);
	ack(&l, 1, 0, stamp_of(&l, 0));
	make(&l, 1);
	CU_ASSERT(sul_sender_pick(&l.out, &seq));
	CU_ASSERT(!sul_sender_sent(&l.out, seq, false, l.now));
	CU_ASSERT(deadline(&l) > l.now + DELAY);
	make(&l, 1);
	CU_ASSERT(sul_sender_pick(&l.out, &seq));
	CU_ASSERT(sul_sender_sent(&l.out, seq, true, l.now));
	CU_ASSERT(deadline(&l) < l.now + DELAY);
}

/* --- receiving ---------------------------------------------------------------------------- */

static void verdict__knows_next_early_double_and_beyond(void)
{
	struct lane l;

	open_lane(&l, UINT32_MAX - 1);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, UINT32_MAX - 1),
			SUL_EXECUTE);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, 0), SUL_KEEP);
	sul_receiver_keep(&l.in, 0);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, 0), SUL_DUPLICATE);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, UINT32_MAX - 2),
			SUL_DUPLICATE);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, SPAN - 3), SUL_KEEP);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, SPAN - 2), SUL_BEYOND);
	CU_ASSERT_EQUAL(sul_receiver_verdict(&l.in, 0x70000000), SUL_BEYOND);
	CU_ASSERT_EQUAL(sul_receiver_bits(&l.in, UINT32_MAX), 2);
	CU_ASSERT_EQUAL(sul_receiver_reach(&l.in), 2);
	CU_ASSERT(!sul_receiver_done(&l.in)); /* the next one is missing */
	CU_ASSERT(sul_receiver_done(&l.in)); /* and now 0 was kept */
	CU_ASSERT_EQUAL(l.in.kept, 0);
	CU_ASSERT_EQUAL(sul_receiver_bits(&l.in, 1), 0);
}

/* --- both ends --------------------------------------------------------------------------------- */

struct flight {
	uint64_t at;
	uint32_t seq;
	uint64_t stamp;
};

struct storm {
	struct unit_rng *r;
	struct lane l;
	struct flight air[4 * SPAN];
	uint32_t nr; /* packets in the air */
	uint32_t executed;
	uint64_t stamp; /* of the newest packet that has come */
};

/* What may be sent takes off: lost, once or twice. */
static void take_off(struct storm *s, uint32_t end)
{
	struct lane *l = &s->l;
	uint32_t seq;

	while (sul_sender_room(&l->out) && l->out.next != end)
		sul_sender_push(&l->out);
	while (s->nr + 2 < 4 * SPAN && sul_sender_pick(&l->out, &seq)) {
		sul_sender_sent(&l->out, seq, false, l->now);
		for (int copies = unit_below(s->r, 10) ? 1 : 2; copies;
		     copies--)
			if (unit_below(s->r, 5))
				s->air[s->nr++] = (struct flight){
					l->now + unit_below(s->r, 200 * US),
					seq, stamp_of(l, seq)
				};
	}
}

static void receive(struct storm *s, uint32_t seq)
{
	struct lane *l = &s->l;

	switch (sul_receiver_verdict(&l->in, seq)) {
	case SUL_EXECUTE:
		do {
			CU_ASSERT_FATAL(l->in.next == s->executed);
			s->executed++;
		} while (sul_receiver_done(&l->in));
		break;
	case SUL_KEEP:
		sul_receiver_keep(&l->in, seq);
		break;
	case SUL_DUPLICATE:
		break;
	case SUL_BEYOND:
		CU_FAIL_FATAL("more than was granted");
	}
}

static void land(struct storm *s)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		struct flight f = s->air[i];

		if (f.at > s->l.now)
			continue;
		s->air[i--] = s->air[--s->nr];
		s->stamp = f.stamp > s->stamp ? f.stamp : s->stamp;
		receive(s, f.seq);
	}
}

static void acknowledge(struct storm *s)
{
	struct lane *l = &s->l;
	uint64_t bits = sul_receiver_bits(&l->in, l->in.next + 1);
	struct sul_ack a = { .next = l->in.next,
			     .credit = SPAN,
			     .first = l->in.next + 1,
			     .bits = &bits,
			     .nr_bits = 64 };

	sul_paths_seen(&l->paths, 0, s->stamp, 0, l->now);
	sul_sender_ack(&l->out, &a, l->now);
}

/*
 * A lane over which packets and acknowledgements get lost, doubled and late;
 * what is executed must be 0, 1, 2 ... of what was pushed.
 */
static void endure(struct unit_rng *r, uint32_t first, uint32_t packets)
{
	static struct storm s;
	struct lane *l = &s.l;
	uint32_t steps = 0;

	s = (struct storm){ .r = r, .executed = first };
	open_lane(l, first);
	l->now = 1000 * MS;
	while (l->out.una != first + packets) {
		CU_ASSERT_FATAL(++steps < 1000 * packets);
		take_off(&s, first + packets);
		l->now += unit_below(r, 100 * US);
		land(&s);
		if (s.stamp && unit_below(r, 4))
			acknowledge(&s);
		sul_sender_expire(&l->out, DELAY, 100 * MS, l->now);
		CU_ASSERT_FATAL(l->out.flying + l->out.lost + l->out.kept ==
				l->out.fresh - l->out.una);
	}
	CU_ASSERT_EQUAL(s.executed, first + packets);
}

static void lane__is_in_order_and_complete_whatever_happens(void)
{
	struct unit_rng r = unit_rng("lane");

	endure(&r, 0, 20000);
	endure(&r, (uint32_t)-1000, 20000);
}

CU_TestInfo test_sul_engine[] = {
	{ "pick: stays within what was granted",
	  pick__stays_within_what_was_granted },
	{ "ack: opens the window while all goes well",
	  ack__opens_the_window_while_all_goes_well },
	{ "ack: does not open a window that nobody fills",
	  ack__does_not_open_a_window_that_nobody_fills },
	{ "ack: that is old or nonsense changes nothing",
	  ack__that_is_old_or_nonsense_changes_nothing },
	{ "sent: hurries when the window closes",
	  sent__hurries_when_the_window_closes },
	{ "ack: of a later packet finds the lost one",
	  ack__of_a_later_packet_finds_the_lost_one },
	{ "ack: gives reordered packets their time",
	  ack__gives_reordered_packets_their_time },
	{ "ack: with part of the news loses nothing behind it",
	  ack__with_part_of_the_news_loses_nothing_behind_it },
	{ "ack: of a packet sent again in vain widens the reordering",
	  ack__of_a_packet_sent_again_in_vain_widens_the_reordering },
	{ "window: is halved by congestion and not by noise",
	  window__is_halved_by_congestion_and_not_by_noise },
	{ "expire: probes ever more rarely", expire__probes_ever_more_rarely },
	{ "deadline: waits for a leisurely receiver unless hurried",
	  deadline__waits_for_a_leisurely_receiver_unless_hurried },
	{ "verdict: knows next, early, double and beyond",
	  verdict__knows_next_early_double_and_beyond },
	{ "lane: is in order and complete whatever happens",
	  lane__is_in_order_and_complete_whatever_happens },
	CU_TEST_INFO_NULL,
};
