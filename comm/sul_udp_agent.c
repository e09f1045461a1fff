/* SPDX-License-Identifier: MIT */
/*
 * sul_udp_agent.c - the thread that works for others while nobody here polls.
 *
 * Role:      sleeps until a packet comes to an armed socket or the timer rings,
 *            then does what a user does in a poll.
 * Invariant: it does nothing while there are users.
 * Threads:   this is one; it runs no code of the program, and all signals but
 *            those of its own faults are blocked in it.
 * Locks:     the carrier's.
 *
 * A forked child has no agent, and the lock may be held there for ever: it must
 * not use the port.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sul_udp.h"

enum {
	STACK_BYTES = 256 << 10,
	EVENTS = SUL_SOCKETS_MAX + 2,
};

/* --- arming (under the lock) ----------------------------------------------------------- */

void sul_udp_arm(struct sul_udp *u, bool armed)
{
	struct epoll_event e = {
		.events = armed ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT,
	};

	for (unsigned int i = 0; i < u->listener->sockets; i++) {
		e.data.fd = u->listener->socket[i].fd;
		epoll_ctl(u->epoll, EPOLL_CTL_MOD, e.data.fd, &e);
	}
	u->armed = armed;
}

static void ring_at(struct sul_udp *u, uint64_t ns)
{
	struct itimerspec t = {
		.it_value = { (time_t)(ns / 1000000000u),
			      (long)(ns % 1000000000u) },
	};

	u->timer_ns = ns;
	if (!ns)
		t.it_value.tv_nsec = 1; /* 0 would stop it */
	timerfd_settime(u->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Has it rung, and the agent left it to the users?  It may have been set anew
 * meanwhile: then once more. */
static void note_ring(struct sul_udp *u)
{
	if (!__atomic_load_n(&u->rang, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&u->rang, false, __ATOMIC_SEQ_CST);
	u->timer_ns = UINT64_MAX;
}

/* Never later than the core's deadline; earlier costs one look. */
void sul_udp_set_timer(struct sul_udp *u)
{
	uint64_t ns = sul_net_deadline(u->net);

	note_ring(u);
	if (ns < u->timer_ns)
		ring_at(u, ns);
}

static bool soon_back(const struct sul_udp *u)
{
	return u->pauses >= SUL_UDP_PAUSES;
}

void sul_udp_guard(struct sul_udp *u)
{
	uint64_t half = u->now_ns + SUL_UDP_GUARD_NS / 2;

	note_ring(u);
	if (u->timer_ns - half > SUL_UDP_GUARD_NS / 2)
		ring_at(u, u->now_ns + SUL_UDP_GUARD_NS);
}

/*
 * When the core wants to be asked, at the latest @most.  What seems due before
 * @near is likely to have been done since: to look for that once costs less than a
 * timer that is set back for each packet.
 */
static uint64_t due_at(struct sul_udp *u, uint64_t near, uint64_t most)
{
	uint64_t ns = sul_net_deadline(u->net);

	if (ns < near && ns != u->reviewed_ns)
		ns = u->reviewed_ns = sul_net_review(u->net);
	return ns < most ? ns : most;
}

/* Between half and all of the guard's time from now is fine; sooner only if the
 * core wants it. */
void sul_udp_put_off(struct sul_udp *u)
{
	uint64_t most = u->now_ns + SUL_UDP_GUARD_NS;
	uint64_t half = u->now_ns + SUL_UDP_GUARD_NS / 2, ns;

	if (!soon_back(u))
		return;
	note_ring(u);
	if (u->timer_ns >= half && u->timer_ns <= most)
		return;
	ns = due_at(u, half, most);
	if (u->timer_ns > ns || (u->timer_ns < half && ns >= half))
		ring_at(u, ns);
}

bool sul_udp_guarded(const struct sul_udp *u)
{
	return soon_back(u) && !u->armed &&
	       u->timer_ns <= u->now_ns + SUL_UDP_GUARD_NS;
}

/* --- the thread --------------------------------------------------------------------------- */

/* A thread that wants the lock becomes a user, likely: the rest is its. */
static void serve(struct sul_udp *u)
{
	while (sul_udp_poll(u) &&
	       !__atomic_load_n(&u->wanted, __ATOMIC_RELAXED))
		;
	sul_udp_set_timer(u);
	sul_udp_arm(u, true);
}

static bool rings(const struct sul_udp *u, const struct epoll_event *e, int nr)
{
	for (int i = 0; i < nr; i++)
		if (e[i].data.fd == u->timer)
			return true;
	return false;
}

static void take_ring(struct sul_udp *u)
{
	uint64_t rings;

	if (read(u->timer, &rings, sizeof(rings)) == sizeof(rings))
		__atomic_store_n(&u->rang, true, __ATOMIC_SEQ_CST);
}

/* Users need no help, and shall not have to wait for one who finds out just that.
 * Whoever is the last to go looks whether the timer has rung after he has said
 * so, and here it is the other way round: one of the two sees the other. */
static bool has_work(const struct sul_udp *u)
{
	return !__atomic_load_n(&u->users, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&u->stop, __ATOMIC_RELAXED);
}

static bool work(struct sul_udp *u)
{
	bool stop;

	sul_udp_lock(u);
	stop = u->stop;
	if (!stop && !u->users)
		serve(u);
	sul_udp_unlock(u);
	return !stop;
}

static void *agent(void *arg)
{
	struct epoll_event e[EVENTS];
	struct sul_udp *u = arg;
	int nr;

	do {
		nr = epoll_wait(u->epoll, e, EVENTS, -1);
		if (rings(u, e, nr))
			take_ring(u);
	} while (!has_work(u) || work(u));
	return NULL;
}

/* --- opening and closing -------------------------------------------------------------------- */

static int add(struct sul_udp *u, int fd, unsigned int events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	return epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_descriptors(struct sul_udp *u)
{
	int err = 0;

	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	u->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	u->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->epoll < 0 || u->timer < 0 || u->kick < 0)
		return -errno;
	for (unsigned int i = 0; i < u->listener->sockets && !err; i++)
		err = add(u, u->listener->socket[i].fd, EPOLLONESHOT);
	return err ? err : add(u, u->timer, EPOLLIN);
}

static int start(struct sul_udp *u)
{
	pthread_attr_t attr;
	sigset_t before;
	int err;

	sul_sleep_signals_block(&before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(&u->agent, &attr, agent, u);
	if (err == EINVAL) /* the program's thread-local data are larger */
		err = pthread_create(&u->agent, NULL, agent, u);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	pthread_setname_np(u->agent, "sul-agent");
	u->agent_runs = true;
	return 0;
}

int sul_udp_agent_open(struct sul_udp *u)
{
	int err = open_descriptors(u);

	if (!err)
		err = start(u);
	if (err)
		return err;
	sul_udp_lock(u);
	sul_udp_set_timer(u);
	sul_udp_arm(u, true);
	sul_udp_unlock(u);
	return 0;
}

/* The timer wakes it for the last time. */
static void stop(struct sul_udp *u)
{
	struct itimerspec now = { .it_value = { 0, 1 } };

	sul_udp_lock(u);
	__atomic_store_n(&u->stop, true, __ATOMIC_RELAXED);
	timerfd_settime(u->timer, 0, &now, NULL);
	sul_udp_unlock(u);
	pthread_join(u->agent, NULL);
	u->agent_runs = false;
}

void sul_udp_agent_stop(struct sul_udp *u)
{
	if (u->agent_runs)
		stop(u);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void sul_udp_agent_close(struct sul_udp *u)
{
	sul_udp_agent_stop(u);
	close_fd(&u->epoll);
	close_fd(&u->timer);
	close_fd(&u->kick);
}
