/* SPDX-License-Identifier: MIT */
/*
 * test_sul_udp.c - the carrier for other hosts, between processes of this one.
 *
 * What operations, channels and waits do is tested over every carrier (sul_bench.h);
 * here is what only a network has: an agent, loss, strangers.  Ranks that stop are
 * in test_sul_udp_silence.c; how it begins is in test_sul_listen.c, how it ends in
 * test_sul_leave.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sul_bench.h"
#include "sul_udp.h"
#include "tests.h"
#include "unit_seed.h"

enum {
	MUCH = 1 << 20,
	MUCH_ROUNDS = 50
};

/* --- the agent -------------------------------------------------------------------- */

static int serve_while_computing(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), one = 1, was = 0, seen[512];
	struct sul_run run = { 0, 8 };

	(void)ctx;
	if (sul_rank(p)) {
		for (int i = 0; i < 512; i++)
			own[i + 8] = (uint64_t)i * 7;
		MUST(!bench_meet(p, 1));
		MUST(!bench_compute_until(p, &own[2]));
		MUST(own[0] == 5 && own[1] == 1);
		return bench_meet(p, 2);
	}
	MUST(!bench_meet(p, 1));
	for (int i = 0; i < 5; i++) {
		MUST(!sul_amo(p, 1, 0, 0, SUL_AMO_ADD, 1, 0, &was));
		MUST(!sul_flush(p));
		MUST(was == (uint64_t)i);
	}
	MUST(!sul_get(p, 1, 0, 64, seen, sizeof(seen), NULL, 0));
	MUST(!sul_flush(p));
	for (int i = 0; i < 512; i++)
		MUST(seen[i] == (uint64_t)i * 7);
	MUST(!sul_put(p, 1, 0, 8, &one, 8));
	MUST(!sul_putv(p, 1, 0, 16, &one, &run, 1, NULL));
	MUST(!sul_flush(p));
	return bench_meet(p, 2);
}

static void the_agent_serves_while_the_owner_computes(void)
{
	bench_over_networks((struct bench){ .ranks = 2, .spin_us = 20 },
			    serve_while_computing, NULL);
	bench_over_networks((struct bench){ .ranks = 2 }, serve_while_computing,
			    NULL);
}

/* --- waiting ------------------------------------------------------------------------ */

enum {
	ROUNDS = 1000
};

static int ping_pong(struct sul_port *p, void *ctx)
{
	struct sul_word *word = sul_window(p, 0);
	int other = !sul_rank(p);

	(void)ctx;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		if (!sul_rank(p))
			MUST(!sul_notify(p, other, 0, 0, i));
		MUST(!sul_wait(p, word, i - 1, 20000));
		MUST(sul_word_read(word) == i);
		if (sul_rank(p))
			MUST(!sul_notify(p, other, 0, 0, i));
	}
	return 0;
}

static void a_wait_ends_with_a_notify_asleep_or_spinning(void)
{
	static const unsigned int spins[] = { 0, 5, 1000 };

	for (int i = 0; i < 3; i++) {
		struct bench b = { .ranks = 2, .spin_us = spins[i] };

		bench_over_udp(b, ping_pong, NULL);
		bench_in(BENCH_MIXED, b, ping_pong, NULL);
	}
}

/* More than enough rounds for who spins to leave the sockets to the timer; then
 * nobody calls for a while, and once more. */
static int serve_after_chatting(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0), was = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t *word = &own[64 + i];
		int line = ping_pong(p, ctx);

		MUST(!line);
		own[0] = 0;
		MUST(!bench_meet(p, 2 * (uint32_t)i + 1));
		if (sul_rank(p)) {
			MUST(!bench_compute_until(p, word));
		} else {
			for (int k = 0; k < 20; k++) {
				MUST(!sul_amo(p, 1, 0, 256, SUL_AMO_ADD, 1, 0,
					      &was));
				MUST(!sul_flush(p));
				MUST(was == (uint64_t)(i * 20 + k));
			}
			was = 1;
			MUST(!sul_put(p, 1, 0, 512 + 8 * (uint64_t)i, &was, 8));
			MUST(!sul_flush(p));
		}
		MUST(!bench_meet(p, 2 * (uint32_t)i + 2));
	}
	return 0;
}

static void who_computes_after_much_talk_serves_others(void)
{
	bench_over_udp((struct bench){ .ranks = 2, .spin_us = 1000 },
		       serve_after_chatting, NULL);
	bench_over_udp((struct bench){ .ranks = 2,
				       .no_handlers = true,
				       .spin_us = 1000 },
		       serve_after_chatting, NULL);
	bench_over_udp((struct bench){ .ranks = 2, .no_handlers = true },
		       serve_after_chatting, NULL);
}

/* More than there is room for, with no flush behind it: so it was a user while
 * it issued that, and is none any more.  All of it arrives, and what the other
 * wants is done, in a moment: as often as this would take too long otherwise. */
static int serve_after_issuing(struct sul_port *p, void *ctx)
{
	unsigned char *own = sul_window(p, 0), *src = sul_window(p, 1);
	uint64_t *word = sul_window(p, 2), *last = (void *)(own + MUCH - 8);
	uint64_t was = 0, one = 1;

	(void)ctx;
	memset(src, 1, MUCH);
	for (uint32_t i = 0; i < MUCH_ROUNDS; i++) {
		MUST(!bench_meet(p, 2 * i + 1));
		if (sul_rank(p)) {
			MUST(!sul_put(p, 0, 0, 0, src, MUCH));
			MUST(!bench_compute_until(p, &word[i]));
		} else {
			MUST(!bench_compute_until(p, last));
			MUST(!sul_amo(p, 1, 2, 4096, SUL_AMO_ADD, 1, 0, &was));
			MUST(!sul_flush(p));
			MUST(was == i && own[0] == 1);
			*last = 0;
			MUST(!sul_put(p, 1, 2, 8 * i, &one, 8));
			MUST(!sul_flush(p));
		}
		MUST(!bench_meet(p, 2 * i + 2));
	}
	return 0;
}

static void who_computes_after_issuing_much_serves_others(void)
{
	bench_over_udp(
		(struct bench){
			.ranks = 2, .windows = 3, .bytes = MUCH, .span = 32 },
		serve_after_issuing, NULL);
}

static int wait_in_vain(struct sul_port *p, void *ctx)
{
	struct sul_word *word = sul_window(p, 0);
	uint64_t begin = bench_now_ms();

	(void)ctx;
	MUST(sul_wait(p, word, 0, 150) == -ETIMEDOUT);
	MUST(bench_now_ms() - begin >= 149);
	MUST(sul_wait(p, word, 0, 0) == -ETIMEDOUT);
	MUST(sul_wait(p, word, 1, 0) == 0);
	return bench_meet(p, 1);
}

static void a_wait_ends_with_its_time(void)
{
	bench_over_networks((struct bench){ .ranks = 2, .spin_us = 10 },
			    wait_in_vain, NULL);
}

/* Threads of a rank wait for words that threads of the other notify, while the
 * rest flushes: one of them is the watch, and who that is changes. */
enum {
	WAITERS = 3,
	LAPS = 150
};

struct crowd_thread {
	struct sul_port *p;
	unsigned int nr;
	pthread_t thread;
	int failed;
};

static void *be_one_of_the_crowd(void *arg)
{
	struct crowd_thread *t = arg;
	struct sul_word *word =
		(struct sul_word *)sul_window(t->p, 0) + 8 * t->nr;
	int other = !sul_rank(t->p);
	uint32_t seen;

	for (uint32_t i = 1; i <= LAPS && !t->failed; i++) {
		t->failed |= sul_notify(t->p, other, 0, 64 * t->nr, i) != 0;
		if ((i + t->nr) % 3 == 0)
			t->failed |= sul_flush(t->p) != 0;
		/* Read once: it may become i between two looks. */
		while ((seen = sul_word_read(word)) < i && !t->failed)
			t->failed |= sul_wait(t->p, word, seen, 20000) != 0;
	}
	/* The last notify, too: who has not had to wait has not sent it. */
	t->failed |= sul_flush(t->p) != 0;
	return NULL;
}

static int crowds(struct sul_port *p, void *ctx)
{
	struct crowd_thread t[WAITERS] = { 0 };

	(void)ctx;
	for (unsigned int i = 0; i < WAITERS; i++) {
		t[i].p = p;
		t[i].nr = i;
		MUST(!pthread_create(&t[i].thread, NULL, be_one_of_the_crowd,
				     &t[i]));
	}
	for (unsigned int i = 0; i < WAITERS; i++)
		pthread_join(t[i].thread, NULL);
	for (unsigned int i = 0; i < WAITERS; i++)
		MUST(!t[i].failed);
	return 0;
}

static void threads_of_a_rank_wait_and_flush_together(void)
{
	static const unsigned int spins[] = { 0, 30 };

	for (int i = 0; i < 2; i++) {
		struct bench b = { .ranks = 2, .spin_us = spins[i] };

		for (enum bench_world w = BENCH_UDP_THREADS; w < BENCH_WORLDS;
		     w++)
			bench_in(w, b, crowds, NULL);
	}
}

/* A word of one's own, notified by another thread of the rank: the waiter sleeps
 * on sockets, to which nothing comes.  Who is woken may be slow on a busy machine,
 * but not always; who sleeps until the end of a nap is never quick. */
enum {
	NAP_MS = 90, /* a bit less than the longest sleep */
	TRIES = 10,
};

struct own_word {
	struct sul_port *p;
	uint32_t value;
};

static void *notify_after_a_while(void *arg)
{
	struct own_word *w = arg;

	bench_nap(w->p);
	sul_notify(w->p, sul_rank(w->p), 0, 0, w->value);
	return NULL;
}

/* How long a wait took, in ms. */
static int wait_for_own_thread(struct sul_port *p, uint32_t value, uint64_t *ms)
{
	struct own_word w = { p, value };
	uint64_t begin = bench_now_ms();
	pthread_t t;

	MUST(!pthread_create(&t, NULL, notify_after_a_while, &w));
	MUST(!sul_wait(p, sul_window(p, 0), value - 1, 20000));
	*ms = bench_now_ms() - begin;
	pthread_join(t, NULL);
	return 0;
}

static int own_thread_wakes(struct sul_port *p, void *ctx)
{
	uint64_t ms = NAP_MS;

	(void)ctx;
	for (uint32_t i = 1; i <= TRIES && ms >= NAP_MS; i++)
		MUST(!wait_for_own_thread(p, i, &ms));
	MUST(ms < NAP_MS);
	return bench_meet(p, 1);
}

static void a_thread_of_ones_own_rank_wakes_a_sleeper(void)
{
	struct bench b = { .ranks = 2 };

	bench_over_networks(b, own_thread_wakes, NULL);
}

/* --- signals -------------------------------------------------------------------------- */

static struct sul_port *handlers_port; /* what a handler has */
static volatile sig_atomic_t handled;

static void touch_shared_memory(int sig)
{
	uint64_t v;

	(void)sig;
	/* A fault in a handler comes here: sul.h allows it. */
	/* NOLINTBEGIN(bugprone-signal-handler) */
	if (!sul_get(handlers_port, !sul_rank(handlers_port), 0, 512, &v, 8,
		     NULL, 0) &&
	    !sul_flush(handlers_port) && v == 4711)
		handled++;
	/* NOLINTEND(bugprone-signal-handler) */
}

static int notify_other(struct sul_port *p, uint32_t value)
{
	return sul_notify(p, !sul_rank(p), 0, 0, value) ?: sul_flush(p);
}

static int wait_under_signals(struct sul_port *p, void *ctx)
{
	struct itimerval often = { { 0, 700 }, { 0, 700 } }, never = { 0 };
	struct sul_word *word = sul_window(p, 0);
	uint64_t *own = sul_window(p, 0);

	(void)ctx;
	own[64] = 4711;
	handlers_port = p;
	MUST(!bench_meet(p, 1));
	signal(SIGALRM, touch_shared_memory);
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		if (!sul_rank(p))
			MUST(!notify_other(p, i));
		MUST(!sul_wait(p, word, i - 1, 20000));
		if (sul_rank(p))
			MUST(!notify_other(p, i));
	}
	while (handled < 100)
		sul_wait(p, word, ROUNDS, 1);
	MUST(!setitimer(ITIMER_REAL, &never, NULL));
	return bench_meet(p, 2);
}

static void a_handler_may_come_back_whatever_its_thread_does(void)
{
	static const unsigned int spins[] = { 0, 100 };

	for (int i = 0; i < 2; i++)
		bench_over_udp((struct bench){ .ranks = 2,
					       .spin_us = spins[i] },
			       wait_under_signals, NULL);
}

/* --- children -------------------------------------------------------------------- */

static int fork_and_go_on(struct sul_port *p, void *ctx)
{
	int status = 0;

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child)
			_exit(7);
		MUST(waitpid(child, &status, 0) == child);
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		MUST(!bench_meet(p, (uint32_t)i + 1));
	}
	return ping_pong(p, ctx);
}

static void children_do_not_disturb(void)
{
	bench_over_networks((struct bench){ .ranks = 2 }, fork_and_go_on, NULL);
}

/* --- bad networks ----------------------------------------------------------------------------- */

enum {
	BIG = 40000
};

/* Everything, in both directions, and checked. */
static int work_hard(struct sul_port *p, void *ctx)
{
	unsigned char mine[BIG], theirs[BIG];
	int other = !sul_rank(p);
	uint64_t *own = sul_window(p, 1), was;

	(void)ctx;
	for (size_t i = 0; i < BIG; i++)
		mine[i] = (unsigned char)(i * 13 + (size_t)sul_rank(p));
	for (uint32_t round = 1; round <= 20; round++) {
		MUST(!sul_put(p, other, 0, 0, mine, BIG));
		for (int i = 0; i < 50; i++)
			MUST(!sul_amo(p, other, 1, 0, SUL_AMO_ADD, 1, 0, &was));
		MUST(!sul_flush(p));
		MUST(!sul_get(p, other, 0, 0, theirs, BIG, NULL, 0));
		MUST(!sul_flush(p));
		MUST(!memcmp(mine, theirs, BIG));
		MUST(!bench_meet(p, round));
		MUST(__atomic_load_n(own, __ATOMIC_ACQUIRE) >= 50 * round);
	}
	MUST(!bench_meet(p, 21));
	MUST(__atomic_load_n(own, __ATOMIC_ACQUIRE) == 20 * 50);
	return 0;
}

static void a_network_that_loses_packets_loses_nothing(void)
{
	static const struct bench worlds[] = {
		{ .loss_ppm = 10000 },
		{ .loss_ppm = 50000, .mtu = 576, .span = 8 },
		{ .loss_ppm = 50000, .mtu = 9000, .auth = SUL_AUTH_OFF },
		{ .mtu = 576 },
		{ .span = 8, .spin_us = 50 },
	};

	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct bench b = worlds[i];

		b.ranks = 2;
		b.windows = 2;
		bench_over_networks(b, work_hard, NULL);
		if (!bench_has(BENCH_UDP))
			CU_ASSERT_EQUAL(bench_run(BENCH_UDP_THREADS, &b,
						  work_hard, NULL),
					0);
	}
}

static void encrypted_packets_arrive_too(void)
{
	struct bench b = { .ranks = 2,
			   .windows = 2,
			   .auth = SUL_AUTH_AEAD,
			   .loss_ppm = 10000 };

	if (!sul_auth_known(SUL_AUTH_AEAD)) {
		printf("(no libsodium) ");
		return;
	}
	bench_over_networks(b, work_hard, NULL);
}

/* --- strangers ------------------------------------------------------------------------------- */

enum {
	BURST = 32, /* of these packets any socket has room for so many */
	BURSTS = 625,
	STRANGE = BURSTS * BURST
};

static union sul_sockaddr address_of(const struct sul_port *p, int rank)
{
	union sul_sockaddr to = { 0 };
	struct sul_address a;

	memcpy(&a, sul_job_rank(p->job, rank)->address, sizeof(a));
	to.v4.sin_family = AF_INET;
	to.v4.sin_port = htons(a.at[0].port);
	memcpy(&to.v4.sin_addr, a.at[0].bytes, 4);
	return to;
}

/* Of any length and content; most look like ours at first sight. */
static void send_burst(int fd, const union sul_sockaddr *to,
		       struct unit_rng *rng)
{
	unsigned char bytes[2000];

	for (int i = 0; i < BURST; i++) {
		size_t len = unit_below(rng, sizeof(bytes));

		for (size_t k = 0; k < sizeof(bytes); k += 8) {
			uint64_t v = unit_next(rng);

			memcpy(bytes + k, &v, 8);
		}
		if (i % 4) {
			bytes[0] = 2; /* SUL_WIRE_VERSION, and ... */
			bytes[4] = 0; /* ... from rank 0 to 1 */
			bytes[5] = 0;
			bytes[6] = 1;
			bytes[7] = 0;
		}
		sendto(fd, bytes, len, 0, &to->any, sizeof(to->v4));
	}
}

/* What is answered after a burst has come in after it: so none gets lost, however
 * slow the other is. */
static int disturb(struct sul_port *p, uint64_t seed)
{
	union sul_sockaddr to = address_of(p, 1);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct unit_rng rng = { seed };
	uint64_t was = 0;

	MUST(fd >= 0);
	for (uint64_t i = 0; i < BURSTS; i++) {
		send_burst(fd, &to, &rng);
		MUST(!sul_amo(p, 1, 0, 0, SUL_AMO_ADD, 1, 0, &was));
		MUST(!sul_flush(p));
		MUST(was == i);
	}
	close(fd);
	return 0;
}

static int be_disturbed(struct sul_port *p, void *ctx)
{
	uint64_t *own = sul_window(p, 0);
	struct sul_stats s;

	MUST(!bench_meet(p, 1));
	if (!sul_rank(p))
		MUST(!disturb(p, *(uint64_t *)ctx));
	MUST(!bench_meet(p, 2));
	if (sul_rank(p)) {
		MUST(own[0] == BURSTS);
		sul_stats_read(p, &s);
		MUST(s.refused > STRANGE - STRANGE / 10);
		MUST(s.refused <= STRANGE);
		/* A request and an answer a burst, two meetings, some bare
		 * acknowledgements. */
		MUST(s.packets_in >= BURSTS && s.packets_in < STRANGE / 4);
		MUST(s.packets_out >= BURSTS && s.packets_out < STRANGE / 4);
		MUST(s.wire_in > s.packets_in * 64);
		MUST(s.wire_out > s.packets_out * 64);
	}
	return 0;
}

static void packets_of_strangers_are_dropped_and_counted(void)
{
	struct unit_rng rng = unit_rng("strangers");
	uint64_t seed = unit_next(&rng);

	bench_over_networks((struct bench){ .ranks = 2 }, be_disturbed, &seed);
}

CU_TestInfo test_sul_udp[] = {
	{ "the agent serves while the owner computes",
	  the_agent_serves_while_the_owner_computes },
	{ "a wait ends with a notify, asleep or spinning",
	  a_wait_ends_with_a_notify_asleep_or_spinning },
	{ "who computes after much talk serves others",
	  who_computes_after_much_talk_serves_others },
	{ "who computes after issuing much serves others",
	  who_computes_after_issuing_much_serves_others },
	{ "a wait ends with its time", a_wait_ends_with_its_time },
	{ "threads of a rank wait and flush together",
	  threads_of_a_rank_wait_and_flush_together },
	{ "a thread of one's own rank wakes a sleeper",
	  a_thread_of_ones_own_rank_wakes_a_sleeper },
	{ "a handler may come back, whatever its thread does",
	  a_handler_may_come_back_whatever_its_thread_does },
	{ "children do not disturb", children_do_not_disturb },
	{ "a network that loses packets loses nothing",
	  a_network_that_loses_packets_loses_nothing },
	{ "encrypted packets arrive, too", encrypted_packets_arrive_too },
	{ "packets of strangers are dropped and counted",
	  packets_of_strangers_are_dropped_and_counted },
	CU_TEST_INFO_NULL,
};
