/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_core.h - the network's side of a port: the pure core, its sockets, and the
 * ways to far ranks.  Shared by sul_core.c, sul_tunnel.c and sul_far.c.
 *
 * A packet comes in by softirq: port->lock is taken, the core takes the packet and
 * executes what it asks for, what is to be sent goes to a list, the lock is dropped,
 * the list is transmitted.  A system call, the timer and the worker that pins pages
 * do the same from the second step on.  All of that happens within an RCU read-side
 * section; so when a port is dead and a grace period is over, nobody is left in here.
 */
#ifndef SUL_CORE_H
#define SUL_CORE_H

#include <linux/hrtimer.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/skbuff.h>
#include <net/dst_cache.h>

#include "sul.h"
#include "sul_net.h"
#include "sul_wire.h"

/* A socket that is ours now. */
struct sul_tunnel {
	struct sul_core *core;
	struct socket *sock; /* with a reference to its file */
	struct socket *joined; /* see sul_route_join(); or NULL */
	unsigned int nr;
};

/* One way to a far rank. */
struct sul_route {
	struct sul_tunnel *tunnel;
	sa_family_t family; /* of the packets; a socket of AF_INET6 does both */
	__be16 port;
	union {
		__be32 v4;
		struct in6_addr v6;
	} addr;
	int interface; /* of a link-local address, or 0 */
	struct dst_cache cache;
};

struct sul_far {
	unsigned int paths;
	struct sul_route path[SUL_ABI_PATHS_MAX];
	/* Under port->lock: a request of this rank waits for these bytes. */
	bool waits;
	unsigned int window;
	u64 off, bytes;
};

struct sul_core {
	struct sul_port *port;
	bool opening; /* memory can be waited for */

	/* Under setup; unchanged from START on. */
	unsigned int tunnels;
	struct sul_tunnel tunnel[SUL_ABI_PATHS_MAX];

	/* Under port->lock. */
	struct sul_net *net; /* from START to the end */
	struct sul_far **far; /* [ranks]; set once, by PEER; gone at the end */
	u64 timer_ns; /* when it rings; KTIME_MAX: it does not */
	u64 random; /* for loss_ppm */
	u32 made[SUL_FRAME_KINDS]; /* for the parameter lose */

	struct hrtimer timer;
	struct delayed_work pinner;
	/* Who waits for room in a lane goes by whether this has changed. */
	wait_queue_head_t room;
	unsigned int arrivals;
};

/* --- sul_core.c -------------------------------------------------------------------- */

/* What is to be sent now, to @out; timer and sul_status.executed are brought up to
 * date.  The port is not dead. */
void sul_core_pump_locked(struct sul_core *c, struct sk_buff_head *out);
/* A packet for us, over socket @nr; and then the same. */
void sul_core_take_locked(struct sul_core *c, unsigned int nr, void *packet,
			  size_t len, struct sk_buff_head *out);
/* Can anything be done with it yet, and still? */
static inline bool sul_core_lives_locked(const struct sul_core *c)
{
	return !c->port->dead && c->net;
}

/* --- sul_loss.c: shall this packet be lost, for a test's sake? ----------------------- */

/* As the port's loss_ppm says; coming or going. */
bool sul_loss_of_any_locked(struct sul_core *c);
/* As the module's parameter lose says; going.  @kind: enum sul_frame_kind. */
bool sul_loss_of_kind_locked(struct sul_core *c, unsigned int kind);

/* --- sul_tunnel.c ------------------------------------------------------------------- */

/* A packet as it will be transmitted; NULL: it is lost. */
struct sk_buff *sul_tunnel_packet_locked(struct sul_core *c,
					 const struct sul_packet *k);
/* Take the socket; -errno as SOCKET. */
int sul_tunnel_open(struct sul_core *c, struct sul_tunnel *t, int fd);
/* No packet comes by it any more after a grace period ... */
void sul_tunnel_stop(struct sul_tunnel *t);
/* ... and then it can be given back. */
void sul_tunnel_close(struct sul_tunnel *t);
/* -EINVAL, -ENOMEM, -EHOSTUNREACH */
int sul_route_open(struct sul_core *c, struct sul_route *r,
		   const struct sul_peer_path *p);
void sul_route_close(struct sul_route *r);
/* Make what comes by it cheaper, if that can be; setup is held. */
void sul_route_join(const struct sul_route *r);

/* --- sul_seal.c ------------------------------------------------------------------------ */

#define SUL_HAS_AEAD IS_REACHABLE(CONFIG_CRYPTO_LIB_CHACHA20POLY1305)

/* As struct sul_net_env wants it. */
void sul_seal(void *ctx, const unsigned char *key, uint64_t nonce,
	      const void *head, size_t head_len, const void *body, size_t len,
	      void *out);
bool sul_seal_open(void *ctx, const unsigned char *key, uint64_t nonce,
		   const void *head, size_t head_len, void *body, size_t len);

#endif /* SUL_CORE_H */
