/* SPDX-License-Identifier: MIT */
/*
 * test_sul_channel.c - the system channel, over every carrier there is.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "sul_bench.h"
#include "sul_channel.h"
#include "tests.h"

/* --- order ---------------------------------------------------------------------- */

enum {
	H_NUMBER = 3,
	H_PING = 4,
	H_PONG = 63,
	MESSAGES = 300,
	PINGS = 400
};

struct numbers {
	struct sul_port *p;
	uint32_t next[64], total, wrong;
};

static uint32_t messages(const struct sul_port *p)
{
	return sul_ranks(p) > 8 ? MESSAGES / 10 : MESSAGES;
}

/* The length and every byte follow from the number. */
static size_t number_fill(unsigned char *body, int from, uint32_t nr)
{
	size_t len = 4 + (nr * 7 + (uint32_t)from) % (SUL_MESSAGE_MAX - 3);

	memset(body, (int)(nr + (uint32_t)from), len);
	memcpy(body, &nr, 4);
	return len;
}

static void take_number(void *ctx, int from, const void *body, size_t len)
{
	struct numbers *n = ctx;
	unsigned char expected[SUL_MESSAGE_MAX];

	if (number_fill(expected, from, n->next[from]++) != len ||
	    memcmp(expected, body, len))
		n->wrong++;
	if (++n->total == messages(n->p) * (uint32_t)sul_ranks(n->p))
		sul_notify(n->p, sul_rank(n->p), 0, 0, 1);
}

static int everybody_sends_to_everybody(struct sul_port *p, void *ctx)
{
	struct numbers n = { .p = p };
	unsigned char body[SUL_MESSAGE_MAX];
	struct sul_word *done = sul_window(p, 0);
	struct sul_stats s;

	(void)ctx;
	MUST(!sul_handler(p, H_NUMBER, take_number, &n));
	for (uint32_t i = 0; i < messages(p); i++)
		for (int r = 0; r < sul_ranks(p); r++)
			MUST(!sul_send(p, r, H_NUMBER, body,
				       number_fill(body, sul_rank(p), i)));
	MUST(!sul_wait(p, done, 0, 50000));
	MUST(!n.wrong);
	sul_stats_read(p, &s);
	MUST(!s.dropped);
	MUST(s.operations >= messages(p) * (uint64_t)(sul_ranks(p) - 1));
	return 0;
}

static void messages_arrive_whole_and_in_order(void)
{
	bench_everywhere((struct bench){ .ranks = 1 },
			 everybody_sends_to_everybody, NULL);
	bench_everywhere((struct bench){ .ranks = 3, .spin_us = 20 },
			 everybody_sends_to_everybody, NULL);
}

static void many_seeds_keep_the_order(void)
{
	bench_seeds((struct bench){ .ranks = 3 }, 15,
		    everybody_sends_to_everybody, NULL);
}

static void sixty_four_ranks_send_to_each_other(void)
{
	bench_seeds((struct bench){ .ranks = 64 }, 1,
		    everybody_sends_to_everybody, NULL);
	CU_ASSERT(sul_channels_bytes(64) <= 64 * 32768);
	CU_ASSERT(sul_channels_bytes(2) <= 2 * 65536 + 16 * 4 * 65536 + 8192);
}

/* --- credits --------------------------------------------------------------------- */

static int slow_receiver(struct sul_port *p, void *ctx)
{
	struct numbers n = { .p = p };
	struct sul_word *sent = (struct sul_word *)sul_window(p, 0) + 1;
	uint32_t slots = p->channels->at.slots;
	unsigned char body[SUL_MESSAGE_MAX];

	(void)ctx;
	MUST(!sul_handler(p, H_NUMBER, take_number, &n));
	if (sul_rank(p)) {
		for (uint32_t i = 0; i < 2 * MESSAGES; i++) {
			MUST(!sul_send(p, 0, H_NUMBER, body,
				       number_fill(body, 1, i)));
			MUST(!sul_notify(p, 0, 0, 8, i + 1));
		}
		return 0;
	}
	while (sul_word_read(sent) < slots) { /* without taking anything */
		struct sul_watch w = { sent, sul_word_read(sent) };

		if (w.old < slots)
			MUST(!p->ops->wait(p, &w, 1, 50000));
	}
	bench_nap(p);
	MUST(sul_word_read(sent) == slots); /* the sender waits */
	MUST(n.total == 0);
	MUST(!sul_wait(p, sul_window(p, 0), 0, 50000));
	MUST(n.total == 2 * MESSAGES && !n.wrong);
	return 0;
}

static void a_pool_never_overflows(void)
{
	bench_everywhere((struct bench){ .ranks = 2 }, slow_receiver, NULL);
	bench_seeds((struct bench){ .ranks = 2 }, 15, slow_receiver, NULL);
}

/* --- sending from handlers ---------------------------------------------------------- */

struct pinger {
	struct sul_port *p;
	uint32_t pings, pongs, depth, deepest, polled, failed;
};

static void take_ping(void *ctx, int from, const void *body, size_t len)
{
	struct pinger *g = ctx;

	if (++g->depth > g->deepest)
		g->deepest = g->depth;
	if (sul_poll(g->p)) /* does nothing here */
		g->polled++;
	for (int i = 0; i < 3; i++)
		if (sul_send(g->p, from, H_PONG, body, len))
			g->failed++;
	g->pings++;
	g->depth--;
}

static void take_pong(void *ctx, int from, const void *body, size_t len)
{
	struct pinger *g = ctx;

	(void)from, (void)body, (void)len;
	if (++g->depth > g->deepest)
		g->deepest = g->depth;
	if (++g->pongs == 3 * PINGS * (uint32_t)sul_ranks(g->p))
		sul_notify(g->p, sul_rank(g->p), 0, 0, 1);
	g->depth--;
}

static int handlers_send(struct sul_port *p, void *ctx)
{
	struct pinger g = { .p = p };

	(void)ctx;
	MUST(!sul_handler(p, H_PING, take_ping, &g));
	MUST(!sul_handler(p, H_PONG, take_pong, &g));
	for (uint32_t i = 0; i < PINGS; i++)
		for (int r = 0; r < sul_ranks(p); r++)
			MUST(!sul_send(p, r, H_PING, &i, sizeof(i)));
	MUST(!sul_wait(p, sul_window(p, 0), 0, 50000));
	MUST(!bench_meet(p, 1)); /* others may still want their pongs */
	MUST(g.pings == PINGS * (uint32_t)sul_ranks(p));
	MUST(g.deepest == 1);
	MUST(!g.polled && !g.failed);
	return 0;
}

static void ranks_that_answer_each_other_do_not_lock_up(void)
{
	bench_everywhere((struct bench){ .ranks = 1 }, handlers_send, NULL);
	bench_everywhere((struct bench){ .ranks = 2 }, handlers_send, NULL);
	bench_everywhere((struct bench){ .ranks = 4, .spin_us = 20 },
			 handlers_send, NULL);
	bench_seeds((struct bench){ .ranks = 3 }, 20, handlers_send, NULL);
}

/* --- threads of one rank --------------------------------------------------------------- */

enum {
	THREADS = 3
};

struct crowd {
	struct sul_port *p;
	struct sul_word *done; /* in an own window, for the waits */
	uint32_t next[THREADS * 2], total, wrong, inside;
	int failed;
};

static void take_from_crowd(void *ctx, int from, const void *body, size_t len)
{
	struct crowd *c = ctx;
	uint32_t m[2];

	if (__atomic_add_fetch(&c->inside, 1, __ATOMIC_SEQ_CST) != 1)
		c->wrong++;
	memcpy(m, body, sizeof(m));
	if (len != sizeof(m) || c->next[THREADS * from + (int)m[0]]++ != m[1])
		c->wrong++;
	if (++c->total == 2 * THREADS * MESSAGES)
		sul_notify(c->p, sul_rank(c->p), 0, 0, 1);
	__atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
}

struct crowd_thread {
	struct crowd *c;
	uint32_t nr;
	pthread_t thread;
};

static void *send_in_crowd(void *arg)
{
	struct crowd_thread *t = arg;
	struct crowd *c = t->c;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t m[2] = { t->nr, i };

		for (int r = 0; r < 2; r++)
			if (sul_send(c->p, r, H_NUMBER, m, sizeof(m)))
				__atomic_store_n(&c->failed, __LINE__,
						 __ATOMIC_RELAXED);
	}
	if (sul_wait(c->p, c->done, 0, 50000))
		__atomic_store_n(&c->failed, __LINE__, __ATOMIC_RELAXED);
	return NULL;
}

static int crowds_meet(struct sul_port *p, void *ctx)
{
	struct crowd c = { .p = p, .done = sul_window(p, 0) };
	struct crowd_thread t[THREADS];

	(void)ctx;
	MUST(!sul_handler(p, H_NUMBER, take_from_crowd, &c));
	for (uint32_t i = 0; i < THREADS; i++) {
		t[i] = (struct crowd_thread){ .c = &c, .nr = i };
		MUST(!pthread_create(&t[i].thread, NULL, send_in_crowd, &t[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i].thread, NULL);
	MUST(!c.failed && !c.wrong);
	MUST(c.total == 2 * THREADS * MESSAGES);
	return 0;
}

static void threads_of_a_rank_send_and_poll_together(void)
{
	struct bench b = { .ranks = 2, .spin_us = 10 };

	for (enum bench_world w = BENCH_THREADS; w <= BENCH_MIXED; w++)
		bench_in(w, b, crowds_meet, NULL);
}

/* --- what others write into the rings ----------------------------------------------------- */

static int put_slot(struct sul_port *p, uint32_t nr, uint32_t seq, uint16_t len,
		    uint16_t handler, uint32_t tail)
{
	struct sul_slot m = { .seq = seq, .len = len, .handler = handler };
	const struct sul_layout *at = &p->channels->at;
	uint64_t ring =
		at->ring + (uint64_t)sul_rank(p) * at->slots * SUL_SLOT_BYTES;

	MUST(!sul_port_put(p, 0, SUL_WINDOW_CHANNELS,
			   ring + nr * SUL_SLOT_BYTES, &m, sizeof(m)));
	MUST(!sul_port_notify(p, 0, SUL_WINDOW_CHANNELS,
			      at->tail + (uint64_t)sul_rank(p) * 8, tail));
	MUST(!sul_channel_ring(p, 0));
	return sul_flush(p);
}

static uint64_t dropped(const struct sul_port *p)
{
	struct sul_stats s;

	sul_stats_read(p, &s);
	return s.dropped;
}

static int nonsense_is_dropped(struct sul_port *p, void *ctx)
{
	struct numbers n = { .p = p };

	(void)ctx;
	MUST(!sul_handler(p, H_NUMBER, take_number, &n));
	if (sul_rank(p)) {
		MUST(!put_slot(p, 0, 1, SUL_MESSAGE_MAX + 1, H_NUMBER, 1));
		MUST(!put_slot(p, 1, 2, 0xffff, H_NUMBER, 2));
		MUST(!put_slot(p, 2, 3, 4, SUL_HANDLERS_MAX, 3));
		MUST(!put_slot(p, 3, 4, 4, H_NUMBER + 1, 4)); /* no handler */
		MUST(!put_slot(p, 4, 9, 4, H_NUMBER, 5)); /* wrong number */
		return bench_meet(p, 1) || bench_meet(p, 2) ||
		       put_slot(p, 5, 6, 4, H_NUMBER, 5000) || bench_meet(p, 3);
	}
	MUST(!bench_meet(p, 1));
	sul_poll(p);
	MUST(dropped(p) == 5);
	MUST(!bench_meet(p, 2));
	MUST(!bench_meet(p, 3));
	sul_poll(p);
	MUST(dropped(p) == 6); /* a count that nobody can have reached */
	MUST(n.total == 0);
	MUST(sul_poll(p) == 0);
	return 0;
}

static void what_makes_no_sense_is_counted_and_dropped(void)
{
	bench_everywhere((struct bench){ .ranks = 2 }, nonsense_is_dropped,
			 NULL);
}

/* --- refusals, waits -------------------------------------------------------------------------- */

static int refusals(struct sul_port *p, void *ctx)
{
	char body[SUL_MESSAGE_MAX + 1] = { 0 };
	struct numbers n = { .p = p };

	(void)ctx;
	MUST(sul_handler(p, SUL_HANDLERS_MAX, take_number, &n) == -EINVAL);
	MUST(sul_handler(p, 0, NULL, &n) == -EINVAL);
	MUST(sul_handler(p, 0, take_number, &n) == 0);
	MUST(sul_handler(p, 0, take_number, &n) == -EBUSY);
	MUST(sul_send(p, -1, 0, body, 1) == -EINVAL);
	MUST(sul_send(p, sul_ranks(p), 0, body, 1) == -EINVAL);
	MUST(sul_send(p, 0, SUL_HANDLERS_MAX, body, 1) == -EINVAL);
	MUST(sul_send(p, 0, 0, body, SUL_MESSAGE_MAX + 1) == -EINVAL);
	MUST(sul_send(p, 0, 0, body, SIZE_MAX) == -EINVAL);
	MUST(sul_send(p, 0, 0, NULL, 1) == -EINVAL);
	MUST(sul_poll(p) == 0);
	MUST(n.total == 0);
	return 0;
}

static void bad_arguments_are_refused(void)
{
	bench_everywhere((struct bench){ .ranks = 1 }, refusals, NULL);
}

static void set_word(void *ctx, int from, const void *body, size_t len)
{
	(void)from, (void)body, (void)len;
	sul_notify(ctx, sul_rank(ctx), 0, 16, 7);
}

static int wait_runs_handlers(struct sul_port *p, void *ctx)
{
	struct sul_word *word = (struct sul_word *)sul_window(p, 0) + 2;

	(void)ctx;
	MUST(!sul_handler(p, 0, set_word, p));
	if (sul_rank(p)) {
		bench_nap(p); /* the other one sleeps by now */
		MUST(!sul_send(p, 0, 0, NULL, 0));
		return 0;
	}
	MUST(!sul_wait(p, word, 0, 50000));
	MUST(sul_word_read(word) == 7);
	if (!bench_simulated(p))
		MUST(sul_wait(p, word, 7, 30) == -ETIMEDOUT);
	return 0;
}

static void whoever_waits_runs_handlers(void)
{
	bench_everywhere((struct bench){ .ranks = 2 }, wait_runs_handlers,
			 NULL);
}

static int send_without_end(struct sul_port *p, void *ctx)
{
	int err = 0;

	(void)ctx;
	if (!sul_rank(p))
		return 0; /* and takes nothing */
	while (!err)
		err = sul_send(p, 0, 0, "x", 1);
	MUST(err == -ECANCELED);
	MUST(sul_poll(p) == -ECANCELED);
	return 0;
}

static void the_end_of_the_job_ends_a_send(void)
{
	struct bench b = { .ranks = 2, .cancel = true };

	CU_ASSERT_EQUAL(bench_run(BENCH_THREADS, &b, send_without_end, NULL),
			0);
}

/* --- signals ------------------------------------------------------------------------ */

enum {
	ALARMS = 2000, /* at least, one every ... */
	ALARM_US = 100,
};

/* What a rank has sent and taken; a handler of a signal sends, too. */
static struct flood {
	struct sul_port *p;
	volatile sig_atomic_t alarms, failed;
	uint32_t taken, expected;
} flood;

/* sul.h allows it in a handler; NOLINTBEGIN(bugprone-signal-handler) */
static void send_to_other(void)
{
	uint32_t nothing = 0;

	if (sul_send(flood.p, !sul_rank(flood.p), H_NUMBER, &nothing,
		     sizeof(nothing)))
		flood.failed = 1;
}

static void on_alarm(int sig)
{
	(void)sig;
	send_to_other();
	flood.alarms++;
}
/* NOLINTEND(bugprone-signal-handler) */

static void take_flood(void *ctx, int from, const void *body, size_t len)
{
	(void)ctx, (void)from, (void)body, (void)len;
	flood.taken++;
}

static void take_expected(void *ctx, int from, const void *body, size_t len)
{
	(void)ctx, (void)from;
	memcpy(&flood.expected, body, len);
}

/* Both send all the time, so rings are full and messages are taken to get
 * credits, by whoever sends. */
static int send_under_alarms(struct sul_port *p, void *ctx)
{
	struct itimerval often = { { 0, ALARM_US }, { 0, ALARM_US } },
			 never = { 0 };
	uint32_t sent = 0;

	(void)ctx;
	flood = (struct flood){ .p = p, .expected = UINT32_MAX };
	MUST(!sul_handler(p, H_NUMBER, take_flood, NULL));
	MUST(!sul_handler(p, H_PING, take_expected, NULL));
	MUST(!bench_meet(p, 1));
	signal(SIGALRM, on_alarm);
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	for (; flood.alarms < ALARMS && !flood.failed; sent++)
		send_to_other();
	MUST(!setitimer(ITIMER_REAL, &never, NULL));
	signal(SIGALRM, SIG_IGN);
	sent += (uint32_t)flood.alarms;
	MUST(!flood.failed);
	MUST(!sul_send(p, !sul_rank(p), H_PING, &sent, sizeof(sent)));
	while (flood.taken != flood.expected)
		MUST(sul_poll(p) >= 0);
	return bench_meet(p, 2);
}

static void a_signal_handler_that_sends_does_not_lock_up(void)
{
	struct bench b = { .ranks = 2 };

	if (bench_has(BENCH_PROCESSES))
		CU_ASSERT_EQUAL(bench_run(BENCH_PROCESSES, &b,
					  send_under_alarms, NULL),
				0);
	bench_over_udp(b, send_under_alarms, NULL);
}

CU_TestInfo test_sul_channel[] = {
	{ "messages arrive whole and in order",
	  messages_arrive_whole_and_in_order },
	{ "many seeds keep the order", many_seeds_keep_the_order },
	{ "sixty-four ranks send to each other",
	  sixty_four_ranks_send_to_each_other },
	{ "a pool never overflows", a_pool_never_overflows },
	{ "ranks that answer each other do not lock up",
	  ranks_that_answer_each_other_do_not_lock_up },
	{ "threads of a rank send and poll together",
	  threads_of_a_rank_send_and_poll_together },
	{ "what makes no sense is counted and dropped",
	  what_makes_no_sense_is_counted_and_dropped },
	{ "bad arguments are refused", bad_arguments_are_refused },
	{ "whoever waits runs handlers", whoever_waits_runs_handlers },
	{ "the end of the job ends a send", the_end_of_the_job_ends_a_send },
	{ "a signal handler that sends does not lock up",
	  a_signal_handler_that_sends_does_not_lock_up },
	CU_TEST_INFO_NULL,
};
