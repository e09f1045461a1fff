/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod_wait.c - the kmod carrier's waits: spinning on memory, then WAIT.
 *
 * Role:      how a thread waits for a word, or for what it has submitted.
 * Invariant: a sleeper has said so in the word, full fence, and the kernel looks
 *            once more; whoever stores looks for sleepers behind a full fence.  A
 *            sleep ends after 100 ms at the latest.  No system call while what is
 *            waited for comes in time, but those that submit.
 * Threads:   any.
 * Locks:     the carrier's; not held while waiting.
 */
#include "sul_kmod.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "sul_clock.h"

enum {
	NAP_MS = 100, /* the longest sleep */
	NAP_BLIND_MS = 1, /* while somebody is around who cannot wake us */
	NAP_PLAIN_NS =
		50000, /* where the module cannot tell what was executed */
	VERDICT_MS = 1000,
	SPINS_PER_LOOK = 32, /* at the clock */
	WORD_BITS = 64,
};
#define NS_PER_MS UINT64_C(1000000)

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- ranks that are not there any more ------------------------------------------------ */

static bool has_said_good_bye(const struct sul_kmod *k, int rank)
{
	return atomic_load(&sul_job_rank(k->port->job, rank)->state) ==
	       SUL_RANK_EXITED;
}

/*
 * The process of a rank on this host is gone.  Whoever started it will know why;
 * his text is better than ours.
 */
static void await_verdict(struct sul_kmod *k, int rank)
{
	struct sul_word never = { 0 };
	struct sul_watch w = { &never, 0 };
	char text[SUL_WHY_MAX];

	if (sul_sleep_wait(&w, 1, sul_job_abort_word(k->port->job), NULL,
			   VERDICT_MS) == -ECANCELED)
		return;
	snprintf(text, sizeof(text),
		 "rank %d has closed its port of /dev/sul: its process is gone",
		 rank);
	sul_job_fail(k->port->job, rank, 1, text);
}

/* What the module was promised is not there; others have been refused by then. */
static void given_up(const struct sul_kmod *k)
{
	char text[SUL_WHY_MAX];

	snprintf(
		text, sizeof(text),
		"rank %d has unmapped or protected memory that others are to work on: the module has given up its port of /dev/sul",
		k->port->rank);
	sul_job_fail(k->port->job, k->port->rank, 1, text);
}

static void judge(struct sul_kmod *k, int rank)
{
	if (has_said_good_bye(k, rank))
		return;
	if (rank == k->port->rank)
		given_up(k);
	else if (k->near[rank])
		await_verdict(k, rank);
	else if (sul_kmod_has_left(k->port, rank))
		sul_port_left(k->port, rank);
	else
		sul_port_silent(k->port, rank);
}

/* Those that nobody else has looked at. */
static uint64_t newly_down(struct sul_kmod *k, unsigned int word)
{
	uint64_t down =
		__atomic_load_n(&k->status->down[word], __ATOMIC_ACQUIRE);

	return down &
	       ~__atomic_fetch_or(&k->seen_down[word], down, __ATOMIC_RELAXED);
}

void sul_kmod_look_for_dead(struct sul_kmod *k)
{
	uint32_t deaths = __atomic_load_n(&k->status->deaths, __ATOMIC_ACQUIRE);
	int ranks = k->port->ranks;

	if (deaths == __atomic_exchange_n(&k->deaths, deaths, __ATOMIC_RELAXED))
		return;
	for (int first = 0; first < ranks; first += WORD_BITS) {
		uint64_t down = newly_down(k, (unsigned int)first / WORD_BITS);

		for (int r = first; down && r < ranks; r++, down >>= 1)
			if (down & 1)
				judge(k, r);
	}
}

/* --- sleeping ------------------------------------------------------------------------------ */

/* Ranks of this host that store into our words by themselves, and cannot say
 * WAKE: they had no use for the module, or it none for them. */
static bool is_blind(const struct sul_kmod *k, int rank)
{
	struct sul_port *p = k->port;
	struct sul_address a;

	if (rank == p->rank || sul_port_far(p, rank))
		return false;
	return sul_address_read(&a, p->job, rank) ||
	       !(a.flags & SUL_ADDRESS_KMOD);
}

static uint64_t longest_nap(const struct sul_kmod *k)
{
	for (int r = 0; r < k->port->ranks; r++)
		if (is_blind(k, r))
			return NAP_BLIND_MS * NS_PER_MS;
	return NAP_MS * NS_PER_MS;
}

/* WAIT; false: the module does not know this kind. */
static bool nap(const struct sul_kmod *k, struct sul_wait *w, uint64_t ns)
{
	w->size = sizeof(*w);
	w->timeout_ns = ns;
	w->deaths = __atomic_load_n(&k->deaths, __ATOMIC_RELAXED);
	return sul_kmod_call(k, SUL_IOC_WAIT, w) != -EINVAL;
}

static uint64_t left(uint64_t end, uint64_t most)
{
	uint64_t now = sul_now_ns();

	return sooner(end > now ? end - now : 0, most);
}

/* --- waiting for what was submitted ------------------------------------------------------------ */

/* For @ns; false: in vain. */
static bool spin_for(struct sul_kmod *k, uint64_t ticket, uint64_t ns)
{
	uint64_t end = 0;

	for (;;) {
		for (int i = 0; i < SPINS_PER_LOOK; i++) {
			if (sul_kmod_executed(k) >= ticket) {
				if (end)
					sul_spin_found(&k->port->spin);
				return true;
			}
			sul_relax();
		}
		if (!ns || sul_job_failed(k->port->job))
			return false;
		if (!end)
			end = sul_now_ns() + ns;
		else if (sul_now_ns() > end)
			return false;
	}
}

static void doze_for(struct sul_kmod *k, uint64_t end)
{
	const struct timespec plain = { 0, NAP_PLAIN_NS };
	struct sul_wait all_executed = { .nr = 0 };

	if (!nap(k, &all_executed, left(end, NAP_MS * NS_PER_MS)))
		nanosleep(&plain, NULL);
}

static int await_unlocked(struct sul_kmod *k, uint64_t ticket, uint64_t end)
{
	struct sul_spin *s = &k->port->spin;
	uint64_t spun = s->yield ? 0 : sul_spin_begin(s), begin;

	if (spin_for(k, ticket, spun))
		return 0;
	begin = sul_now_ns();
	while (sul_kmod_executed(k) < ticket) {
		sul_kmod_look_for_dead(k);
		if (sul_job_failed(k->port->job))
			return -ECANCELED;
		if (sul_now_ns() >= end)
			return -ETIMEDOUT;
		doze_for(k, end);
	}
	sul_spin_slept(s, spun, sul_now_ns() - begin);
	return 0;
}

int sul_kmod_await(struct sul_kmod *k, uint64_t end_ns)
{
	uint64_t ticket = k->ticket;
	int err;

	if (sul_kmod_executed(k) >= ticket)
		return 0;
	pthread_mutex_unlock(&k->lock);
	err = await_unlocked(k, ticket, end_ns);
	pthread_mutex_lock(&k->lock);
	return err;
}

/* --- waiting for a word ---------------------------------------------------------------------------- */

static void count_sleeper(const struct sul_watch *watch, unsigned int nr,
			  uint32_t n)
{
	for (unsigned int i = 0; i < nr; i++)
		__atomic_fetch_add(&watch[i].word->sleepers, n,
				   __ATOMIC_SEQ_CST);
}

/* Which own window a word lies in; SUL_WINDOWS_ALL: none. */
static unsigned int window_of(const struct sul_port *p,
			      const struct sul_word *word)
{
	unsigned int w;

	for (w = 0; w < SUL_WINDOWS_ALL; w++)
		if ((uintptr_t)word - (uintptr_t)p->window[w] <
		    p->window_bytes[w])
			break;
	return w;
}

/* False: one of the words lies elsewhere. */
static bool describe(const struct sul_port *p, const struct sul_watch *watch,
		     unsigned int nr, struct sul_wait *out)
{
	*out = (struct sul_wait){ .nr = nr };
	for (unsigned int i = 0; i < nr; i++) {
		unsigned int w = window_of(p, watch[i].word);

		if (w == SUL_WINDOWS_ALL)
			return false;
		out->word[i].window = w;
		out->word[i].old = watch[i].old;
		out->word[i].off =
			(uintptr_t)watch[i].word - (uintptr_t)p->window[w];
	}
	return true;
}

static int sleep_on(struct sul_kmod *k, const struct sul_watch *watch,
		    unsigned int nr, struct sul_wait *w, uint64_t end)
{
	uint64_t most = longest_nap(k);

	while (!sul_watch_changed(watch, nr)) {
		sul_kmod_look_for_dead(k);
		if (sul_job_failed(k->port->job))
			return -ECANCELED;
		if (sul_now_ns() >= end)
			return -ETIMEDOUT;
		nap(k, w, left(end, most));
	}
	return 0;
}

/* What is here leaves; no system call if there is nothing. */
static void let_leave(struct sul_port *p)
{
	struct sul_quiet q;

	if (!__atomic_load_n(&sul_kmod_of(p)->gathered, __ATOMIC_RELAXED))
		return;
	sul_quiet_begin(p, &q);
	sul_kmod_ops.push(p);
	sul_quiet_end(&q);
}

int sul_kmod_wait(struct sul_port *p, const struct sul_watch *watch,
		  unsigned int nr, int timeout_ms)
{
	struct sul_kmod *k = sul_kmod_of(p);
	struct sul_word *abort = sul_job_abort_word(p->job);
	uint64_t end = sul_sleep_end(timeout_ms), spun, begin;
	struct sul_wait w;
	int err;

	let_leave(p);
	if (sul_sleep_spin(watch, nr, abort, &p->spin, &spun))
		return 0;
	if (!describe(p, watch, nr, &w)) /* no rank but this one writes it */
		return sul_sleep_wait(watch, nr, abort, NULL,
				      sul_sleep_left_ms(end));
	begin = sul_now_ns();
	count_sleeper(watch, nr, SUL_WORD_SLEEPER);
	err = sleep_on(k, watch, nr, &w, end);
	count_sleeper(watch, nr, -SUL_WORD_SLEEPER);
	if (!err)
		sul_spin_slept(&p->spin, spun, sul_now_ns() - begin);
	return err;
}

/* --- waking ------------------------------------------------------------------------------------------- */

/* The module knows whom we may wake when it has been told of him. */
static bool introduce(struct sul_kmod *k, int rank)
{
	struct sul_peer_spec peer = { .size = sizeof(peer),
				      .flags = SUL_PEER_NEAR,
				      .rank = (uint32_t)rank };
	struct sul_address a;
	bool known;

	pthread_mutex_lock(&k->lock);
	known = k->known[rank] || rank == k->port->rank;
	if (!known && !sul_address_read(&a, k->port->job, rank)) {
		peer.session = a.session;
		peer.packet_bytes = SUL_NET_PACKET_MAX;
		known = !sul_kmod_call(k, SUL_IOC_PEER, &peer);
	}
	k->known[rank] = known;
	pthread_mutex_unlock(&k->lock);
	return known;
}

void sul_kmod_wake_rank(struct sul_port *p, int rank)
{
	struct sul_kmod *k = sul_kmod_of(p);
	struct sul_wake w = { .size = sizeof(w), .rank = (uint32_t)rank };
	struct sul_quiet q;
	bool known;

	sul_quiet_begin(p, &q);
	known = introduce(k, rank);
	sul_quiet_end(&q);
	if (known)
		sul_kmod_call(k, SUL_IOC_WAKE, &w);
}

/* --- farewells ------------------------------------------------------------------------------------------- */

bool sul_kmod_has_left(struct sul_port *p, int rank)
{
	const __u64 *word = &sul_kmod_of(p)->status->left[rank / WORD_BITS];

	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >> rank % WORD_BITS & 1;
}

/* Those of this host see our port closed. */
void sul_kmod_farewell(struct sul_port *p)
{
	struct sul_kmod *k = sul_kmod_of(p);
	struct sul_quiet q;

	sul_quiet_begin(p, &q);
	pthread_mutex_lock(&k->lock);
	for (int r = 0; r < p->ranks; r++) {
		struct sul_op op = { .kind = SUL_OP_FAREWELL,
				     .rank = (uint32_t)r };

		if (sul_port_far(p, r) && !k->near[r] &&
		    !sul_kmod_begin(k, r, 0, 0))
			sul_kmod_add(k, &op, 0);
	}
	sul_kmod_submit(k, false);
	pthread_mutex_unlock(&k->lock);
	sul_quiet_end(&q);
}

/* --- the end --------------------------------------------------------------------------------------------- */

void sul_kmod_stop(struct sul_port *p, int timeout_ms)
{
	struct sul_kmod *k = sul_kmod_of(p);
	struct sul_quiet q;

	sul_quiet_begin(p, &q);
	pthread_mutex_lock(&k->lock);
	sul_kmod_submit(k, true);
	if (!sul_kmod_await(k, sul_sleep_end(timeout_ms)))
		sul_kmod_settle(k);
	pthread_mutex_unlock(&k->lock);
	sul_quiet_end(&q);
}
