/* SPDX-License-Identifier: MIT */
/*
 * sul_udp_wait.c - the udp carrier's users: polling, spinning, sleeping.
 *
 * Role:      how a thread waits for packets (sul_udp_step), or for a word
 *            (sul_udp_wait); see "who polls" and "who sleeps" in sul_udp.h.
 * Invariant: a sleeper has said so, full fence, and looked once more; whoever
 *            may have done what it waits for does that, full fence, and looks
 *            for sleepers.  A sleep ends after 100 ms at the latest.
 * Threads:   any but the agent.
 * Locks:     the carrier's; not held while asleep.
 *
 * Signals.  A handler of the program may touch shared memory, and so come back
 * into the port.  So they are kept out while a waiting thread holds the lock,
 * and let in while it sleeps; but for a program that says it has no such handler.
 * One that comes between the last look and the sleep has kicked, if it changed
 * anything.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#include "sul_clock.h"
#include "sul_signals.h"
#include "sul_udp.h"

enum {
	NAP_MS = 100, /* the longest sleep */
	PAUSE_WEIGHT = 32,
};
#define NS_PER_MS UINT64_C(1000000)

static bool job_failed(const struct sul_udp *u)
{
	return sul_job_failed(u->port->job);
}

/* --- users (under the lock) --------------------------------------------------------- */

/* One that is long outweighs so many short ones; but it may be the system's. */
static void note_pause(struct sul_udp *u, bool brief)
{
	if (!brief)
		u->pauses -= u->pauses < PAUSE_WEIGHT ? u->pauses :
							PAUSE_WEIGHT;
	else if (u->pauses < 2 * SUL_UDP_PAUSES)
		u->pauses++;
}

void sul_udp_join(struct sul_udp *u, bool issuing)
{
	u->now_ns = sul_now_ns();
	if (!u->users && !issuing)
		note_pause(u, u->now_ns - u->left_ns < SUL_UDP_PAUSE_NS);
	__atomic_store_n(&u->users, u->users + 1, __ATOMIC_RELAXED);
	if (u->armed)
		sul_udp_arm(u, false);
}

static bool others_watch(const struct sul_udp *u)
{
	return u->watch && !pthread_equal(u->watcher, pthread_self());
}

/* The watch, too, whose sleep was interrupted for this, looks once more: what has
 * been seen here is not seen again. */
static void leave(struct sul_udp *u, bool soon_back)
{
	__atomic_store_n(&u->users, u->users - 1, __ATOMIC_SEQ_CST);
	if (!u->users) {
		u->left_ns = u->now_ns;
		if (soon_back) { /* what is ready waits for company */
			sul_udp_guard(u);
			return;
		}
		sul_udp_set_timer(u);
		if (!sul_udp_guarded(u))
			sul_udp_arm(u, true);
	} else if (u->watching && (!others_watch(u) ||
				   sul_net_deadline(u->net) < u->watch_ns)) {
		eventfd_write(u->kick, 1);
	}
}

void sul_udp_part(struct sul_udp *u)
{
	leave(u, false);
}

void sul_udp_pause(struct sul_udp *u)
{
	leave(u, true);
}

/* Spinning: let others have the lock.  No pause: each look is a system call. */
static void give_way(struct sul_udp *u)
{
	if (!__atomic_load_n(&u->wanted, __ATOMIC_RELAXED))
		return;
	sul_udp_unlock(u);
	sul_relax();
	sul_udp_lock(u);
}

/* With more ranks than processors, what is waited for needs ours: spinning, even
 * if it yields, takes a hundred times as long as sleeping at once. */
static uint64_t spin_end(struct sul_udp *u)
{
	struct sul_spin *s = &u->port->spin;

	u->spun_ns = s->yield ? 0 : sul_spin_begin(s);
	return u->now_ns + u->spun_ns;
}

/* Something has come; was it worth while? */
static void count_spin(struct sul_udp *u)
{
	if (u->spun_ns)
		sul_spin_found(&u->port->spin);
}

/* --- sleeping ------------------------------------------------------------------------ */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Until something comes in, somebody kicks, or @until. */
static void poll_sockets(const struct sul_udp *u, uint64_t until,
			 const sigset_t *mask)
{
	struct pollfd p[SUL_SOCKETS_MAX + 1];
	unsigned int nr = u->listener->sockets;
	uint64_t now = sul_now_ns(), ns = until > now ? until - now : 0;
	struct timespec t = { (time_t)(ns / 1000000000u),
			      (long)(ns % 1000000000u) };

	for (unsigned int i = 0; i < nr; i++)
		p[i] = (struct pollfd){ u->listener->socket[i].fd, POLLIN, 0 };
	p[nr] = (struct pollfd){ u->kick, POLLIN, 0 };
	ppoll(p, nr + 1, &t, mask);
}

/*
 * Be the watch, until @until at the latest, unless one of the @nr words has
 * changed.  Under the lock, which is given away meanwhile; handlers are let in as
 * before @q.
 */
static void be_the_watch(struct sul_udp *u, const struct sul_watch *watch,
			 unsigned int nr, uint64_t until,
			 const struct sul_quiet *q)
{
	bool above = u->watch; /* a handler has interrupted its sleep */
	const sigset_t *mask;
	uint64_t spun = u->spun_ns, begin;
	eventfd_t kicks;

	u->spun_ns = 0;
	u->watch = true;
	u->watcher = pthread_self();
	u->watch_ns = sooner(until, sul_net_deadline(u->net));
	__atomic_store_n(&u->watching, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sul_udp_unlock(u);
	mask = sul_signals_let_in(q);
	begin = sul_now_ns();
	if (!sul_watch_changed(watch, nr))
		poll_sockets(u, u->watch_ns, mask);
	sul_spin_slept(&u->port->spin, spun, sul_now_ns() - begin);
	sul_signals_let_no_more(q);
	sul_udp_lock(u);
	eventfd_read(u->kick, &kicks);
	u->watch = above;
	__atomic_store_n(&u->watching, above, __ATOMIC_RELAXED);
	/* One of them is the watch now, should this thread go. */
	if (u->users > 1)
		sul_sleep_notify(&u->news, u->news.value + 1);
}

/* Until somebody else has taken in a packet, or the watch goes. */
static void wait_for_news(struct sul_udp *u, uint64_t until)
{
	struct sul_watch news = { &u->news, u->news.value };
	uint64_t now = sul_now_ns();
	uint64_t ms = (until > now ? until - now : 0) / NS_PER_MS + 1;

	sul_udp_unlock(u);
	sul_sleep_wait(&news, 1, sul_job_abort_word(u->port->job), NULL,
		       (int)ms);
	sul_udp_lock(u);
}

int sul_udp_step(struct sul_udp *u, struct sul_patience *t)
{
	uint64_t until;

	if (job_failed(u))
		return -ECANCELED;
	if (sul_udp_poll(u)) {
		if (t->spin_end)
			count_spin(u);
		return 0;
	}
	if (!t->spin_end)
		t->spin_end = spin_end(u);
	if (u->now_ns < t->spin_end) {
		sul_udp_put_off(u); /* in vain: the agent may sleep on */
		give_way(u);
		return 0;
	}
	until = u->now_ns + NAP_MS * NS_PER_MS;
	if (others_watch(u))
		wait_for_news(u, sooner(until, sul_net_deadline(u->net)));
	else
		be_the_watch(u, NULL, 0, until, NULL);
	return 0;
}

/* --- waiting for a word --------------------------------------------------------------- */

/* Under the lock.  True: one of the words has changed.  Who works for others
 * meanwhile goes on spinning: they will want more. */
static bool spin(struct sul_udp *u, const struct sul_watch *watch,
		 unsigned int nr)
{
	uint64_t end = 0;

	sul_udp_send(u);
	while (!sul_watch_changed(watch, nr)) {
		bool came = sul_udp_poll(u);

		if (came && end)
			count_spin(u);
		if (came && sul_watch_changed(watch, nr))
			break; /* no more is to be done for it */
		if (came || !end)
			end = spin_end(u);
		if (u->now_ns >= end || job_failed(u))
			return sul_watch_changed(watch, nr);
		if (!came)
			sul_udp_put_off(u);
		give_way(u);
	}
	return true;
}

static int check(const struct sul_udp *u, const struct sul_watch *watch,
		 unsigned int nr, uint64_t end)
{
	if (sul_watch_changed(watch, nr))
		return 0;
	if (job_failed(u))
		return -ECANCELED;
	return sul_now_ns() >= end ? -ETIMEDOUT : -EAGAIN;
}

/* Under the lock, as long as nobody else is the watch; -EAGAIN: he is. */
static int sleep_on_sockets(struct sul_udp *u, const struct sul_watch *watch,
			    unsigned int nr, uint64_t end,
			    const struct sul_quiet *q)
{
	int err = check(u, watch, nr, end);

	while (err == -EAGAIN && !others_watch(u)) {
		uint64_t nap = sul_now_ns() + NAP_MS * NS_PER_MS;

		be_the_watch(u, watch, nr, sooner(nap, end), q);
		spin(u, watch, nr);
		err = check(u, watch, nr, end);
	}
	return err;
}

int sul_udp_wait(struct sul_port *p, const struct sul_watch *watch,
		 unsigned int nr, int timeout_ms)
{
	struct sul_udp *u = sul_udp_of(p);
	uint64_t end = sul_sleep_end(timeout_ms);
	uint64_t spun, begin;
	struct sul_quiet q;
	int err = 0;

	sul_quiet_begin(p, &q);
	sul_udp_lock(u);
	sul_udp_join(u, false);
	if (!spin(u, watch, nr))
		err = u->mixed ? -EAGAIN :
				 sleep_on_sockets(u, watch, nr, end, &q);
	spun = u->spun_ns;
	sul_udp_part(u);
	sul_udp_unlock(u);
	sul_quiet_end(&q);
	if (err != -EAGAIN)
		return err;
	begin = sul_now_ns();
	err = sul_sleep_wait(watch, nr, sul_job_abort_word(p->job), NULL,
			     sul_sleep_left_ms(end));
	if (!err)
		sul_spin_slept(&p->spin, spun, sul_now_ns() - begin);
	return err;
}

void sul_udp_wake(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&u->watching, __ATOMIC_RELAXED))
		eventfd_write(u->kick, 1);
}

/* --- the end ------------------------------------------------------------------------------ */

void sul_udp_stop(struct sul_port *p, int timeout_ms)
{
	struct sul_udp *u = sul_udp_of(p);
	uint64_t end = sul_sleep_end(timeout_ms);
	struct sul_patience patience = { 0 };
	struct sul_quiet q;

	sul_quiet_begin(p, &q);
	sul_udp_lock(u);
	sul_udp_join(u, false);
	sul_net_hurry(u->net);
	while (!sul_net_quiet(u->net) && sul_now_ns() < end)
		if (sul_udp_step(u, &patience))
			break;
	sul_udp_unlock(u);
	sul_quiet_end(&q);
	sul_udp_agent_stop(u);
}
