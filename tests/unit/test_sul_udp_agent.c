/* SPDX-License-Identifier: MIT */
/*
 * test_sul_udp_agent.c - when the agent's timer is set; what the agent does is in
 * test_sul_udp.c.
 *
 * Time is simulated: a rank that holds its carrier's lock says what time it is.
 */
#include "sul_bench.h"
#include "sul_clock.h"
#include "sul_udp.h"
#include "tests.h"

enum {
	LOOK_NS = 10000, /* from one look in vain to the next */
	TRIES = 100,
};

#define FAR_NS UINT64_C(100000000)

struct settings {
	unsigned int nr, looks;
};

static void note(struct settings *s, uint64_t *was, uint64_t now)
{
	s->nr += now != *was;
	*was = now;
}

/* A user who spins until @end, and after each look leaves and comes back: how
 * often is the timer set? */
static struct settings spin_until(struct sul_udp *u, uint64_t end)
{
	struct settings s = { 0 };
	uint64_t timer = u->timer_ns;

	u->pauses = SUL_UDP_PAUSES;
	for (; u->now_ns < end; u->now_ns += LOOK_NS, s.looks++) {
		sul_udp_put_off(u);
		note(&s, &timer, u->timer_ns);
		sul_udp_set_timer(u);
		note(&s, &timer, u->timer_ns);
	}
	return s;
}

/* Once in half the time that others are left alone, and at both ends. */
static bool few(const struct settings *s)
{
	uint64_t halves = (uint64_t)s->looks * LOOK_NS / (SUL_UDP_GUARD_NS / 2);

	return s->nr <= halves + 3;
}

/* Nothing is under way any more for which the core wanted to be asked: true, if
 * that would have been soon. */
static bool look_after_a_flush(struct sul_udp *u, struct settings *s)
{
	uint64_t due;
	bool soon;

	sul_udp_lock(u);
	sul_udp_join(u, false);
	due = sul_net_deadline(u->net);
	soon = due > u->now_ns + SUL_UDP_GUARD_NS / 4 &&
	       due < u->now_ns + FAR_NS;
	if (soon)
		*s = spin_until(u, due);
	u->now_ns = sul_now_ns();
	sul_udp_part(u);
	sul_udp_unlock(u);
	return soon;
}

static int flush_and_look(struct sul_port *p, void *ctx)
{
	struct settings s = { 0 };
	bool soon = false;

	(void)ctx;
	for (uint32_t i = 1; i <= TRIES && !soon && !sul_rank(p); i++) {
		MUST(!sul_notify(p, 1, 0, 0, i));
		MUST(!sul_flush(p));
		soon = look_after_a_flush(sul_udp_of(p), &s);
	}
	MUST(soon || sul_rank(p));
	MUST(few(&s));
	return bench_meet(p, 1);
}

static void what_is_done_already_does_not_set_the_timer_for_each_packet(void)
{
	bench_over_udp((struct bench){ .ranks = 2 }, flush_and_look, NULL);
}

/* What has just been sent may have to be sent again. */
static int send_and_look(struct sul_port *p, void *ctx)
{
	struct sul_udp *u = sul_udp_of(p);
	struct settings s;
	uint64_t due, rings;

	(void)ctx;
	if (sul_rank(p))
		return bench_meet(p, 1);
	MUST(!sul_notify(p, 1, 0, 0, 1));
	sul_udp_lock(u);
	sul_udp_join(u, false);
	sul_net_hurry(u->net);
	sul_udp_send(u);
	due = sul_net_review(u->net);
	s = spin_until(u, due);
	sul_udp_put_off(u);
	sul_udp_set_timer(u);
	rings = u->timer_ns;
	u->now_ns = sul_now_ns();
	sul_udp_part(u);
	sul_udp_unlock(u);
	MUST(few(&s));
	MUST(rings <= due);
	MUST(!sul_flush(p));
	return bench_meet(p, 1);
}

static void what_may_be_sent_again_sets_the_timer_once(void)
{
	bench_over_udp((struct bench){ .ranks = 2 }, send_and_look, NULL);
}

CU_TestInfo test_sul_udp_agent[] = {
	{ "what is done already does not set the timer for each packet",
	  what_is_done_already_does_not_set_the_timer_for_each_packet },
	{ "what may be sent again sets the timer once",
	  what_may_be_sent_again_sets_the_timer_once },
	CU_TEST_INFO_NULL,
};
