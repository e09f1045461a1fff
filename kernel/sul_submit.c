// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_submit.c - SUBMIT: operations by the batch.
 *
 * Role:    takes them in, a few at a time, finds the target of each, and says how
 *          far it came.
 * Context: process, the caller's; several threads of a port at a time.
 * Locks:   submit, once an operation needs it; lock at the end.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "sul.h"
#include "sul_compat.h"

enum {
	OPS_AT_ONCE = 8 /* on the stack */
};

int sul_batch_stage(struct sul_batch *b)
{
	if (b->staged)
		return 0;
	if (mutex_lock_killable(&b->port->submit))
		return -EINTR;
	b->staged = true;
	return 0;
}

static int issue(struct sul_batch *b, const struct sul_op *op)
{
	struct sul_port *target = sul_port_near(b->port, op->rank);

	return target ? sul_near_issue(b, target, op) : sul_far_issue(b, op);
}

/* By the word: for so little that is quicker than any copy_from_user(). */
static int take_ops(struct sul_op *ops, const struct sul_op __user *from,
		    u32 nr)
{
	size_t words = nr * sizeof(*ops) / sizeof(u64);
	const u64 __user *src = (const u64 __user *)from;
	u64 *dst = (u64 *)ops;

	if (!user_read_access_begin(src, words * sizeof(u64)))
		return -EFAULT;
	for (size_t i = 0; i < words; i++)
		unsafe_get_user(dst[i], src + i, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

/* Those from s->done on. */
static int issue_some(struct sul_batch *b, struct sul_submit *s)
{
	const struct sul_op __user *from = u64_to_user_ptr(s->ops);
	u32 nr = min_t(u32, s->nr - s->done, OPS_AT_ONCE);
	struct sul_op ops[OPS_AT_ONCE] SUL_NOT_CLEARED; /* @nr are filled */

	if (take_ops(ops, from + s->done, nr))
		return -EFAULT;
	sul_trace(b->port, SUL_TRACE_COPIED);
	for (u32 i = 0; i < nr; i++) {
		int err = issue(b, &ops[i]);

		if (err)
			return err;
		s->done++;
	}
	return 0;
}

static int issue_all(struct sul_batch *b, struct sul_submit *s)
{
	while (s->done < s->nr) {
		int err = issue_some(b, s);

		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Everything so far has the next ticket. */
static void finish(struct sul_batch *b, struct sul_submit *s, int err)
{
	struct sul_port *p = b->port;
	struct sk_buff_head out;

	sul_sending_begin(&out);
	spin_lock(&p->lock);
	p->count[SUL_COUNT_submits]++;
	p->count[SUL_COUNT_operations] += s->done;
	p->count[SUL_COUNT_near] += b->near;
	p->count[SUL_COUNT_bytes_put] += b->bytes_put;
	p->count[SUL_COUNT_bytes_got] += b->bytes_got;
	p->count[SUL_COUNT_refused] += err != 0;
	s->ticket = ++p->tickets;
	if (p->core)
		sul_far_finish_locked(p, s->flags & SUL_SUBMIT_HURRY, &out);
	else
		smp_store_release(&p->status->executed, s->ticket);
	spin_unlock(&p->lock);
	sul_trace(p, SUL_TRACE_BUILT);
	sul_sending_end(&out);
	sul_trace(p, SUL_TRACE_SENT);
	if (b->staged)
		mutex_unlock(&p->submit);
}

long sul_submit(struct sul_port *p, struct sul_submit *s)
{
	struct sul_batch b = { .port = p };
	int err;

	if (s->flags & ~SUL_SUBMIT_HURRY || s->nr > SUL_ABI_SUBMIT_MAX ||
	    s->done || s->ticket)
		return -EINVAL;
	err = issue_all(&b, s);
	finish(&b, s, err);
	return err;
}
