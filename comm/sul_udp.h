/* SPDX-License-Identifier: MIT */
/*
 * sul_udp.h - what the parts of the udp carrier share.
 *
 * Private to sul_udp.c (operations, polling), sul_udp_wait.c (waiting) and
 * sul_udp_agent.c (the agent thread).
 *
 * Who polls.  A thread that flushes or waits is a *user*: it takes in packets,
 * executes what others want, and sends what is to be sent, under the one lock.
 * While there is no user the agent does that: it sleeps on the sockets, which
 * are *armed* for it then.  A user disarms them, so that the packets he spins
 * for wake nobody.  Arming looks at the socket (epoll_ctl() does, as poll()
 * would), so a packet that has come in between wakes the agent: none waits
 * unseen.
 *
 * Who guards.  Arming and disarming take a quarter of the time of a packet.
 * After so many pauses that were short, and hardly any long one, the next is
 * expected to be short, too: then the last user leaves the sockets disarmed, and the agent's
 * timer rings within a millisecond for the case that he does not come back.  A
 * user who spins for nothing, and so has time, puts it off.  It cannot ring much
 * sooner: to set a processor's next timer takes as long as some packets.  So a
 * rank that begins to compute may answer late once, and is guarded by the sockets
 * until it has long exchanged messages again.
 * So is it after an operation for which there was no room at first: it is one of
 * many, or a flush comes next, and meanwhile acknowledgements pour in, each of
 * which would wake the agent to fight for the lock.
 *
 * An agent that wakes up while there are users does not even ask for the lock; that
 * the timer has rung it leaves in `rang` for them.
 *
 * Who sleeps.  One user at a time, the *watch*, sleeps on the sockets
 * themselves.  Other users, who wait for packets too, sleep on `news`, which
 * changes when somebody has taken in a packet or the watch has left.  Whoever
 * waits for a word that a rank of this host may write sleeps on that word, and
 * is no user then.  A handler of a signal that comes back here in the middle of
 * the watch's sleep is the watch itself: nobody else would take its packets in.
 */
#ifndef SUL_UDP_H
#define SUL_UDP_H

#include "sul_carrier.h"
#include "sul_listen.h"
#include "sul_net.h"

enum {
	/* Sockets of their own for ways to ranks: the program wants descriptors,
	 * too. */
	SUL_UDP_JOINED_MAX = 64,
};

/* Who comes back within this time has made a short pause ... */
#define SUL_UDP_PAUSE_NS UINT64_C(20000)
/* ... and after so many of them nobody else takes over ... */
#define SUL_UDP_PAUSES 128
/* ... for this time. */
#define SUL_UDP_GUARD_NS UINT64_C(1000000)

struct sul_udp_peer {
	unsigned int paths; /* 0: no rank that is reached this way */
	struct sul_path path[SUL_NET_PATHS_MAX];
	struct sul_socket joined[SUL_NET_PATHS_MAX]; /* to each, or closed */
};

struct sul_udp {
	/* Constant once the port is open. */
	struct sul_port *port;
	struct sul_listener *listener;
	struct sul_udp_peer *peer; /* [rank] */
	bool mixed; /* ranks of this host write our words by themselves */
	uint64_t spun_ns; /* in vain, or on the way to that: sul_spin_slept() */
	unsigned int loss_ppm;
	int epoll, timer,
		kick; /* descriptors: the agent's, to wake the watch */
	pthread_t agent;
	bool agent_runs;

	pthread_mutex_t next; /* held by who waits for the lock; a lock itself */

	/* Atomic: */
	bool wanted; /* somebody waits for the lock */
	bool rang; /* the timer has, and nobody has set it since, likely */
	unsigned int watching; /* the watch sleeps, or is about to */
	struct sul_word news; /* stored under the lock */

	/* Under the lock: */
	pthread_mutex_t lock;
	struct sul_net *net;
	struct sul_batch *batch;
	unsigned int users; /* atomic, too: the agent looks at it from outside */
	bool armed; /* the sockets, for the agent */
	unsigned int pauses; /* without a user: how many short ones more ... */
	uint64_t left_ns; /* ... and this one has begun then */
	unsigned int joined; /* sockets of peers */
	bool watch; /* somebody is the watch, ... */
	pthread_t watcher; /* ... this one, ... */
	uint64_t watch_ns; /* ... and looks again then */
	bool stop; /* the agent shall end */
	uint64_t timer_ns; /* when the agent's timer rings; UINT64_MAX: never */
	uint64_t reviewed_ns; /* the core's deadline is this one indeed */
	uint64_t random; /* for loss_ppm */
	uint64_t now_ns; /* of the poll that goes on */
	unsigned int link; /* of the packet that is being taken in */
};

static inline struct sul_udp *sul_udp_of(const struct sul_port *p)
{
	return p->far;
}

/* sul_udp.c */
void sul_udp_lock(struct sul_udp *u);
void sul_udp_unlock(struct sul_udp *u);
/* Under the lock: send what is to be sent, at u->now_ns; see what time it is,
 * take in what has come, too, true if a packet has. */
void sul_udp_send(struct sul_udp *u);
bool sul_udp_poll(struct sul_udp *u);

/* sul_udp_wait.c */
/* Become a user, and be none any more; under the lock.  @issuing: how long the
 * pause was is not known, as some of it was spent issuing.  Who pauses goes on, or
 * flushes, in a moment: the timer guards. */
void sul_udp_join(struct sul_udp *u, bool issuing);
void sul_udp_part(struct sul_udp *u);
void sul_udp_pause(struct sul_udp *u);

/* How long a user has waited for packets. */
struct sul_patience {
	uint64_t spin_end; /* 0: not begun */
};
/* One step of it, under the lock, which is given away meanwhile: poll; spin for
 * a time, then sleep until something comes.  -ECANCELED. */
int sul_udp_step(struct sul_udp *u, struct sul_patience *t);

int sul_udp_wait(struct sul_port *p, const struct sul_watch *watch,
		 unsigned int nr, int timeout_ms);
void sul_udp_wake(struct sul_port *p);
void sul_udp_stop(struct sul_port *p, int timeout_ms);

/* sul_udp_agent.c */
int sul_udp_agent_open(
	struct sul_udp *u); /* sockets, timer and thread; -errno */
void sul_udp_agent_stop(struct sul_udp *u); /* no thread any more */
void sul_udp_agent_close(struct sul_udp *u);
void sul_udp_arm(struct sul_udp *u, bool armed); /* under the lock */
void sul_udp_set_timer(
	struct sul_udp *u); /* for the core's deadline; under the lock */
/* The timer rings between half and all of the guard's time from now. */
void sul_udp_guard(struct sul_udp *u);
/* The same, for a user who has the time to do it and will soon be back. */
void sul_udp_put_off(struct sul_udp *u);
/* Does the timer ring soon enough for the sockets to be left as they are? */
bool sul_udp_guarded(const struct sul_udp *u);

/* sul_aead.c */
bool sul_aead_known(void);
void sul_aead_seal(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, const void *body,
		   size_t len, void *out);
bool sul_aead_open(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, void *body, size_t len);

#endif /* SUL_UDP_H */
