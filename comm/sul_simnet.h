/* SPDX-License-Identifier: MIT */
/*
 * sul_simnet.h - a network, a clock, and what goes wrong.  Private to the
 * simulator.
 *
 * sul_simnet_world.c owns clock, nodes and faults, sul_simnet_wire.c what
 * happens to a packet, sul_simnet.c the ports.
 */
#ifndef SUL_SIMNET_H
#define SUL_SIMNET_H

#include "sul_net.h"
#include "sul_sim_queue.h"
#include "sul_sim_world.h"

enum sul_simnet_event {
	/* Of a node: they wait while it is stopped. */
	SUL_SIMNET_TASK, /* coroutine @which goes on */
	SUL_SIMNET_PACKET, /* @what arrives */
	SUL_SIMNET_PUMP, /* the node's agent looks what is to be sent */
	SUL_SIMNET_CANCEL, /* it hears that the job has failed */
	/* Of the world. */
	SUL_SIMNET_CUT,
	SUL_SIMNET_HEAL,
	SUL_SIMNET_STOP,
	SUL_SIMNET_GO
};

struct sul_simnet_packet {
	unsigned int path;
	size_t len;
	unsigned char bytes[];
};

struct sul_simnet_node {
	struct sul_net *net;
	struct sul_sim_op *first, **last; /* issued, but there was no room */
	unsigned int flushing; /* coroutines that wait until all is done */
	uint64_t pump_at; /* the next pump; UINT64_MAX: none */
	uint64_t greeting; /* what has come of a first get */
	uint32_t session;
	unsigned int packet_bytes;
	int error; /* of an operation; its flush says so */
	bool slow, crashed, cancelled, stopped;
	struct sul_sim_queue kept; /* events of a stopped node */
	uint64_t kept_packets;
};

enum sul_simnet_cut_kind {
	SUL_SIMNET_WHOLE, /* there is no partition */
	SUL_SIMNET_HALVES, /* who has which bit (of rank and @salt) */
	SUL_SIMNET_ALONE, /* rank @a */
	SUL_SIMNET_ONE_WAY, /* rank @b does not hear rank @a */
	SUL_SIMNET_PATH /* nothing comes over path @a */
};

struct sul_simnet_cut {
	enum sul_simnet_cut_kind kind;
	uint64_t salt;
	int a, b;
};

struct sul_simnet {
	struct sul_sim_queue queue;
	uint64_t now;
	struct sul_simnet_node *node; /* by rank */
	struct sul_simnet_cut cut;
	struct sul_simnet_stats stats;
	int error; /* of the simulator: -ENOMEM */
	unsigned char key[SUL_NET_KEY_BYTES];
	uint64_t crash_ns; /* when crash_step was */
	uint64_t stopped_ns; /* of all nodes, in stops that ended since then */
	int failed; /* the rank that is said to be dead; -1: none */
};

static inline const struct sul_simnet_config *
sul_simnet_cfg(const struct sul_sim *s)
{
	return &s->cfg.wire;
}

/* sul_simnet_world.c */
int sul_simnet_new(struct sul_sim *s);
void sul_simnet_free(struct sul_sim *s);
/* False: nothing will ever happen. */
bool sul_simnet_step(struct sul_sim *s);
void sul_simnet_at(struct sul_sim *s, uint64_t delay_ns, int kind, int rank,
		   uint64_t which, void *what);
/* Coroutine @i can go on. */
void sul_simnet_ready(struct sul_sim *s, uint32_t i);
/* The agent of @rank shall look soon; or at the latest then. */
void sul_simnet_pump_soon(struct sul_sim *s, int rank);
void sul_simnet_pump_at(struct sul_sim *s, int rank, uint64_t at);
/* @rank has found that @dead is: all others will hear of it. */
void sul_simnet_fail(struct sul_sim *s, int rank, int dead);
/* Some time up to @most. */
uint64_t sul_simnet_time(struct sul_sim *s, uint64_t most);

/* sul_simnet_wire.c: a packet from @from to p->rank is on its way. */
void sul_simnet_send(struct sul_sim *s, int from, const struct sul_packet *p);

/* sul_simnet.c: what happens to a node that runs */
void sul_simnet_arrive(struct sul_sim *s, int rank,
		       struct sul_simnet_packet *p);
void sul_simnet_pump(struct sul_sim *s, int rank);

#endif /* SUL_SIMNET_H */
