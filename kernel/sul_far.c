// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_far.c - operations on ranks of other hosts: they become packets.
 *
 * Role:      brings an operation's data into the staging page, a piece at a time, and
 *            gives it to the core, which copies it into packets; waits for room.
 * Invariant: submit is held, so operations are issued in their order.  No memory of
 *            the process is touched with port->lock held.
 * Context:   process, the caller's.
 * Locks:     submit; port->lock for a piece at a time.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "sul_core.h"

enum {
	RUNS_AT_ONCE = 32
};

static_assert((int)SUL_ABI_MESSAGE_MAX == (int)SUL_NET_MESSAGE_MAX);

/* A piece of an operation, as the core takes it. */
struct piece {
	const struct sul_op *op;
	void *data; /* source or destination */
	u64 off;
	u32 len;
	const struct sul_mark *marks; /* GET */
	const struct sul_run *runs; /* PUTV */
	u32 nr_runs;
	size_t done; /* of the core's calls */
};

/* What is under way makes room once it has arrived. */
static void send_all(struct sul_port *p)
{
	struct sk_buff_head out;

	sul_sending_begin(&out);
	spin_lock(&p->lock);
	if (sul_core_lives_locked(p->core))
		sul_core_pump_locked(p->core, &out);
	spin_unlock(&p->lock);
	sul_sending_end(&out);
}

/* Give it to the core, as often as it takes. */
static int give(struct sul_batch *b, struct piece *k,
		int (*issue)(struct sul_net *net, struct piece *k))
{
	struct sul_core *c = b->port->core;
	struct sul_port *p = b->port;
	unsigned int seen;
	int err;

	for (;;) {
		spin_lock_bh(&p->lock);
		err = sul_core_lives_locked(c) ? issue(c->net, k) : -EHOSTDOWN;
		seen = c->arrivals;
		spin_unlock_bh(&p->lock);
		if (likely(err != -EAGAIN))
			return err;
		send_all(p);
		if (wait_event_killable(c->room,
					READ_ONCE(c->arrivals) != seen ||
						READ_ONCE(p->dead)))
			return -EINTR;
	}
}

/* --- put ---------------------------------------------------------------------------------- */

static int issue_put(struct sul_net *net, struct piece *k)
{
	return sul_net_put(net, (int)k->op->rank, k->op->window, k->off,
			   k->data, k->len, &k->done);
}

/* How much of @len bytes at @off the page takes, without cutting a word. */
static u32 piece_of(u64 off, u32 len)
{
	u32 most = PAGE_SIZE - (off & 7);

	return min(len, most);
}

static int put(struct sul_batch *b, const struct sul_op *op)
{
	int err = 0;

	b->bytes_put += op->len;
	for (u32 done = 0; done < op->len && !err;) {
		struct piece k = {
			.op = op,
			.data = b->port->staging,
			.off = op->off + done,
			.len = piece_of(op->off + done, op->len - done),
		};

		if (op->flags & SUL_OP_INLINE)
			k.data = (void *)op->data;
		else if (copy_from_user(k.data,
					u64_to_user_ptr(op->addr + done),
					k.len))
			return -EFAULT;
		err = give(b, &k, issue_put);
		done += k.len;
	}
	return err;
}

/* --- get ---------------------------------------------------------------------------------- */

static int issue_get(struct sul_net *net, struct piece *k)
{
	return sul_net_get(net, (int)k->op->rank, k->op->window, k->op->off,
			   k->data, k->op->len, k->marks, k->op->marks.nr,
			   &k->done);
}

static int get(struct sul_batch *b, const struct sul_op *op)
{
	struct sul_mark marks[SUL_ABI_MARKS_MAX];
	struct sul_port *p = b->port;
	struct piece k = {
		.op = op,
		.data = p->landing + op->land,
		.marks = marks,
	};

	if (op->marks.nr &&
	    copy_from_user(marks, u64_to_user_ptr(op->marks.addr),
			   op->marks.nr * sizeof(marks[0])))
		return -EFAULT;
	for (u32 i = 0; i < op->marks.nr; i++)
		if (!sul_check_mark(&p->shape, &marks[i]))
			return -EINVAL;
	return give(b, &k, issue_get);
}

/* --- scatter ------------------------------------------------------------------------------- */

/* Runs that lie close together: their bytes are in the staging page. */
struct bundle {
	struct sul_run run[RUNS_AT_ONCE];
	u32 nr, first, end; /* what they lie between */
};

static int issue_putv(struct sul_net *net, struct piece *k)
{
	const struct sul_op *op = k->op;
	struct sul_mirror m = {
		.flag_off = op->runs.flag_off,
		.window = op->runs.window,
		.flag_window = op->runs.flag_window,
	};

	return sul_net_putv(net, (int)op->rank, op->window, k->off, k->data,
			    k->runs, k->nr_runs,
			    op->flags & SUL_OP_MIRROR ? &m : NULL, &k->done);
}

static int send_bundle(struct sul_batch *b, const struct sul_op *op,
		       struct bundle *u)
{
	struct piece k = {
		.op = op,
		.data = b->port->staging,
		.off = op->off + u->first,
		.runs = u->run,
		.nr_runs = u->nr,
	};

	if (!u->nr)
		return 0;
	if (copy_from_user(k.data, u64_to_user_ptr(op->addr + u->first),
			   u->end - u->first))
		return -EFAULT;
	for (u32 i = 0; i < u->nr; i++)
		u->run[i].off -= u->first;
	u->nr = 0;
	return give(b, &k, issue_putv);
}

/* It fits, unless there are others that are too far from it. */
static bool fits(const struct bundle *u, struct sul_run r)
{
	return u->nr < RUNS_AT_ONCE &&
	       max(u->end, r.off + r.len) - min(u->first, r.off) <= PAGE_SIZE;
}

static int add_run(struct sul_batch *b, const struct sul_op *op,
		   struct bundle *u, struct sul_run run)
{
	while (run.len) {
		struct sul_run r = {
			.off = run.off,
			.len = piece_of(op->off + run.off, run.len),
		};

		if (u->nr && !fits(u, r)) {
			int err = send_bundle(b, op, u);

			if (err)
				return err;
		}
		u->first = u->nr ? min(u->first, r.off) : r.off;
		u->end = u->nr ? max(u->end, r.off + r.len) : r.off + r.len;
		u->run[u->nr++] = r;
		run.off += r.len;
		run.len -= r.len;
	}
	return 0;
}

static int putv(struct sul_batch *b, const struct sul_op *op)
{
	const struct sul_run __user *runs = u64_to_user_ptr(op->runs.addr);
	struct bundle u = { .nr = 0 };
	u64 bytes = 0;
	int err = 0;

	for (u32 i = 0; i < op->runs.nr && !err; i++) {
		struct sul_run run;

		if (copy_from_user(&run, runs + i, sizeof(run)))
			return -EFAULT;
		if (!sul_check_run(&b->port->shape, op, &run, &bytes))
			return -EINVAL;
		err = add_run(b, op, &u, run);
	}
	b->bytes_put += bytes;
	return err ? err : send_bundle(b, op, &u);
}

/* --- words ---------------------------------------------------------------------------------- */

static int issue_amo(struct sul_net *net, struct piece *k)
{
	const struct sul_op *op = k->op;

	return sul_net_amo(net, (int)op->rank, op->window, op->off, op->amo.op,
			   op->amo.operand, op->amo.comparand, k->data);
}

static int amo(struct sul_batch *b, const struct sul_op *op)
{
	struct piece k = { .op = op };

	if (op->flags & SUL_OP_OLD)
		k.data = b->port->landing + op->land;
	return give(b, &k, issue_amo);
}

static int issue_notify(struct sul_net *net, struct piece *k)
{
	const struct sul_op *op = k->op;

	return sul_net_notify(net, (int)op->rank, op->window, op->off,
			      op->notify.value);
}

static int notify(struct sul_batch *b, const struct sul_op *op)
{
	struct piece k = { .op = op };

	return give(b, &k, issue_notify);
}

/* --- messages ------------------------------------------------------------------------------ */

static int issue_message(struct sul_net *net, struct piece *k)
{
	const struct sul_op *op = k->op;
	const struct sul_message m = {
		.window = op->window,
		.off = op->off,
		.src = k->data,
		.len = op->len,
		.word = { op->message.word[0], op->message.word[1] },
		.value = { op->message.value[0], op->message.value[1] },
	};

	return sul_net_message(net, (int)op->rank, &m);
}

static int message(struct sul_batch *b, const struct sul_op *op)
{
	struct piece k = { .op = op, .data = b->port->staging };

	if (op->flags & SUL_OP_INLINE)
		k.data = (void *)op->message.data;
	else if (copy_from_user(k.data, u64_to_user_ptr(op->addr), op->len))
		return -EFAULT;
	b->bytes_put += op->len;
	return give(b, &k, issue_message);
}

/* Who has no room for it finds us silent. */
static int issue_farewell(struct sul_net *net, struct piece *k)
{
	int err = sul_net_farewell(net, (int)k->op->rank);

	return err == -EAGAIN ? 0 : err;
}

static int farewell(struct sul_batch *b, const struct sul_op *op)
{
	struct piece k = { .op = op };

	return give(b, &k, issue_farewell);
}

/* --- all of them ------------------------------------------------------------------------------ */

int sul_far_issue(struct sul_batch *b, const struct sul_op *op)
{
	int err;

	if (!b->port->core)
		return -EINVAL;
	err = sul_check_op(op, &b->port->shape, b->port->spec.landing_bytes,
			   false);
	if (!err)
		err = sul_batch_stage(b);
	if (err)
		return err;
	sul_trace(b->port, SUL_TRACE_CHECKED);
	switch (op->kind) {
	case SUL_OP_GET:
		return get(b, op);
	case SUL_OP_PUT:
		return put(b, op);
	case SUL_OP_PUTV:
		return putv(b, op);
	case SUL_OP_AMO:
		return amo(b, op);
	case SUL_OP_MESSAGE:
		return message(b, op);
	case SUL_OP_FAREWELL:
		return farewell(b, op);
	default:
		return notify(b, op);
	}
}

void sul_far_finish_locked(struct sul_port *p, bool hurry,
			   struct sk_buff_head *out)
{
	if (!sul_core_lives_locked(p->core))
		return;
	if (hurry)
		sul_net_hurry(p->core->net);
	sul_core_pump_locked(p->core, out);
}
