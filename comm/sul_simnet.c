/* SPDX-License-Identifier: MIT */
/*
 * sul_simnet.c - carrier "simnet": the real network core on a simulated network.
 *
 * Role:      every port has a struct sul_net.  What is issued goes into it, or
 *            waits in line until it has room; what it wants to send goes to the
 *            simulated wire; what arrives there goes into it.
 * Invariant: issuing never waits, since callers may hold locks that another
 *            coroutine of the rank wants.
 * Threads:   one.
 *
 * The agent of a node is an event, the *pump*: it comes soon after something
 * was issued or has arrived, and when the core's deadline is over.  A flush is a
 * pump at once.
 */
#include "sul_simnet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_heap.h"

static struct sul_simnet_node *node_of(const struct sul_port *p)
{
	const struct sul_sim *s = p->carrier;

	return &s->net->node[p->rank];
}

/* --- operations on the own windows ------------------------------------------------- */

static void set_marks(struct sul_port *p, const struct sul_sim_op *o)
{
	for (unsigned int i = 0; i < o->nr_marks; i++) {
		char *window = p->window[o->marks[i].window];

		*(uint64_t *)(void *)(window + o->marks[i].off) |=
			o->marks[i].bits;
	}
}

static void scatter(struct sul_port *p, const struct sul_sim_op *o)
{
	const struct sul_mirror *m = &o->mirror;

	sul_memory_runs((char *)p->window[o->w] + o->off, o->src, o->runs,
			o->nr_runs);
	if (o->has_mirror && ((char *)p->window[m->flag_window])[m->flag_off])
		sul_memory_runs((char *)p->window[m->window] + o->off, o->src,
				o->runs, o->nr_runs);
}

static void execute_here(struct sul_port *p, const struct sul_sim_op *o)
{
	char *at = (char *)p->window[o->w] + o->off;
	uint64_t was;

	switch (o->kind) {
	case SUL_SIM_GET:
		set_marks(p, o);
		memcpy(o->dst, at, o->len);
		break;
	case SUL_SIM_PUT:
		memcpy(at, o->src, o->len);
		break;
	case SUL_SIM_PUTV:
		scatter(p, o);
		break;
	case SUL_SIM_AMO:
		was = sul_memory_amo((void *)at, o->amo, o->operand,
				     o->comparand);
		if (o->old)
			*o->old = was;
		break;
	case SUL_SIM_NOTIFY:
		sul_sim_notify(p->carrier, (void *)at, o->value);
		break;
	}
}

/* --- operations on others -------------------------------------------------------------- */

/* As far as there is room: 0, -EAGAIN, or what is wrong. */
static int try_op(struct sul_net *net, struct sul_sim_op *o)
{
	switch (o->kind) {
	case SUL_SIM_GET:
		return sul_net_get(net, o->rank, o->w, o->off, o->dst, o->len,
				   o->marks, o->nr_marks, &o->done);
	case SUL_SIM_PUT:
		return sul_net_put(net, o->rank, o->w, o->off, o->src, o->len,
				   &o->done);
	case SUL_SIM_PUTV:
		return sul_net_putv(net, o->rank, o->w, o->off, o->src, o->runs,
				    o->nr_runs,
				    o->has_mirror ? &o->mirror : NULL,
				    &o->done);
	case SUL_SIM_AMO:
		return sul_net_amo(net, o->rank, o->w, o->off, o->amo,
				   o->operand, o->comparand, o->old);
	case SUL_SIM_NOTIFY:
		return sul_net_notify(net, o->rank, o->w, o->off, o->value);
	}
	return -EINVAL;
}

static int stand_in_line(struct sul_simnet_node *n, const struct sul_sim_op *o)
{
	struct sul_sim_op *mine = malloc(sizeof(*mine));

	if (!mine)
		return -ENOMEM;
	*mine = *o;
	mine->next = NULL;
	*n->last = mine;
	n->last = &mine->next;
	return 0;
}

static void leave_line(struct sul_simnet_node *n)
{
	struct sul_sim_op *o = n->first;

	n->first = o->next;
	if (!n->first)
		n->last = &n->first;
	free(o);
}

static void work_off_line(struct sul_simnet_node *n)
{
	while (n->first) {
		int err = try_op(n->net, n->first);

		if (err == -EAGAIN)
			return;
		if (err)
			n->error = err;
		leave_line(n);
	}
}

static int issue(struct sul_port *p, const struct sul_sim_op *op)
{
	struct sul_simnet_node *n = node_of(p);
	struct sul_sim_op o = *op;
	int err;

	if (n->cancelled)
		return -ECANCELED;
	if (o.rank == p->rank) {
		execute_here(p, &o);
		return 0;
	}
	err = n->first ? -EAGAIN : try_op(n->net, &o);
	if (err == -EAGAIN)
		err = stand_in_line(n, &o);
	if (!err)
		sul_simnet_pump_soon(p->carrier, p->rank);
	return err;
}

/* In parts if others are in line before it, or it would have to wait itself. */
static int simnet_message(struct sul_port *p, int rank,
			  const struct sul_message *m)
{
	struct sul_simnet_node *n = node_of(p);
	int err = -EAGAIN;

	if (n->cancelled)
		return -ECANCELED;
	if (!n->first && rank != p->rank)
		err = sul_net_message(n->net, rank, m);
	if (!err)
		sul_simnet_pump_soon(p->carrier, p->rank);
	return err == -EAGAIN ? -ENOTSUP : err;
}

static bool idle(const struct sul_simnet_node *n)
{
	return !n->first && sul_net_quiet(n->net);
}

/* --- the agent ----------------------------------------------------------------------------- */

void sul_simnet_pump(struct sul_sim *s, int rank)
{
	struct sul_simnet_node *n = &s->net->node[rank];
	struct sul_packet p;
	uint64_t next;

	n->pump_at = UINT64_MAX;
	work_off_line(n);
	if (n->flushing)
		sul_net_hurry(n->net);
	while (sul_net_output(n->net, s->net->now, &p))
		sul_simnet_send(s, rank, &p);
	if (idle(n))
		sul_sim_wake_port(s, rank);
	next = sul_net_deadline(n->net);
	if (next != UINT64_MAX)
		sul_simnet_pump_at(s, rank,
				   next > s->net->now ? next : s->net->now + 1);
}

void sul_simnet_arrive(struct sul_sim *s, int rank, struct sul_simnet_packet *p)
{
	struct sul_simnet_node *n = &s->net->node[rank];

	if (n->net)
		sul_net_input(n->net, s->net->now, p->path, p->bytes, p->len);
	free(p);
	if (n->net)
		sul_simnet_pump_soon(s, rank);
}

/* --- what the core asks for ------------------------------------------------------------------ */

static void notify(void *ctx, struct sul_word *word, uint32_t value)
{
	struct sul_port *p = ctx;

	sul_sim_notify(p->carrier, word, value);
}

static void dead(void *ctx, int rank)
{
	struct sul_port *p = ctx;

	sul_simnet_fail(p->carrier, p->rank, rank);
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = notify,
	.dead = dead,
};

/* --- carrier ------------------------------------------------------------------------------------ */

static int open_core(struct sul_port *p)
{
	const struct sul_sim *s = p->carrier;
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_simnet_node *n = node_of(p);
	struct sul_net_config cfg = { .rank = p->rank,
				      .ranks = p->ranks,
				      .windows = SUL_WINDOWS_ALL,
				      .packet_bytes = n->packet_bytes,
				      .span = (unsigned int)c->span,
				      .auth = (enum sul_net_auth)c->auth,
				      .session = n->session,
				      .silence_ns = c->silence_ns,
				      .env = &env,
				      .env_ctx = p };

	memcpy(cfg.key, s->net->key, sizeof(cfg.key));
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		cfg.window[w].base = p->window[w];
		cfg.window[w].bytes = p->window_bytes[w];
	}
	return sul_net_open(&n->net, &cfg);
}

static int meet_peers(struct sul_port *p)
{
	const struct sul_sim *s = p->carrier;
	unsigned int paths = (unsigned int)sul_simnet_cfg(s)->paths;

	for (int r = 0; r < p->ranks; r++) {
		const struct sul_simnet_node *n = &s->net->node[r];
		int err;

		if (r == p->rank)
			continue;
		err = sul_net_peer(node_of(p)->net, r, n->session,
				   n->packet_bytes, paths);
		if (err)
			return err;
	}
	return 0;
}

/* Every rank is heard by one other at least, from the start: the core knows of
 * silence where there was a word before. */
static int greet_next(struct sul_port *p)
{
	struct sul_simnet_node *n = node_of(p);
	int next = (p->rank + 1) % p->ranks;
	size_t done = 0;

	if (next == p->rank)
		return 0;
	sul_simnet_pump_soon(p->carrier, p->rank);
	return sul_net_get(n->net, next, SUL_WINDOW_CHANNELS, 0, &n->greeting,
			   sizeof(n->greeting), NULL, 0, &done);
}

static void simnet_close(struct sul_port *p)
{
	struct sul_simnet_node *n = node_of(p);
	struct sul_sim *s = p->carrier;

	while (n->first)
		leave_line(n);
	sul_net_close(n->net);
	n->net = NULL;
	s->ports[p->rank] = NULL;
	sul_sim_windows_close(p);
}

static int simnet_open(struct sul_port *p, const struct sul_config *cfg)
{
	struct sul_sim *s = cfg->sim;
	int err;

	if (!s || !s->net || cfg->ranks != s->cfg.ranks || s->ports[p->rank])
		return -EINVAL;
	err = sul_sim_windows_open(p);
	if (err)
		return err;
	p->carrier = s;
	s->issue = issue;
	s->ports[p->rank] = p;
	err = open_core(p);
	if (!err)
		err = meet_peers(p);
	if (!err)
		err = greet_next(p);
	if (err)
		simnet_close(p);
	return err;
}

static int simnet_flush(struct sul_port *p)
{
	struct sul_simnet_node *n = node_of(p);
	struct sul_sim *s = p->carrier;

	n->flushing++;
	if (!idle(n))
		sul_simnet_pump(s, p->rank);
	while (!idle(n) && !n->cancelled)
		sul_sim_wait_port(s, p->rank);
	n->flushing--;
	if (n->cancelled)
		return -ECANCELED;
	return n->error ? n->error : sul_net_error(n->net);
}

static int simnet_wait(struct sul_port *p, const struct sul_watch *watch,
		       unsigned int nr, int timeout_ms)
{
	(void)timeout_ms; /* nobody is late here, see the carrier "sim" */
	while (!sul_sim_changed(watch, nr)) {
		if (node_of(p)->cancelled)
			return -ECANCELED;
		sul_sim_sleep(p->carrier, watch, nr);
	}
	return 0;
}

/* No process reaches another one's memory but through its windows. */
static int simnet_put_private(struct sul_port *p, int rank, uint64_t addr,
			      const void *src, size_t len)
{
	(void)p, (void)rank, (void)addr, (void)src, (void)len;
	return -EPERM;
}

const struct sul_carrier_ops sul_simnet_ops = {
	.name = "simnet",
	.open = simnet_open,
	.close = simnet_close,
	SUL_SIM_OPERATIONS,
	.flush = simnet_flush,
	.wait = simnet_wait,
	.put_private = simnet_put_private,
	.message = simnet_message,
};
