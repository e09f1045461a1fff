/* SPDX-License-Identifier: MIT */
/* sul_fake_op.c - operations of the fake module: what is refused, and the rest. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "sul_fake_port.h"

static const void *user(uint64_t addr)
{
	return (const void *)(uintptr_t)addr;
}

bool fake_in_window(const struct fake_port *p, uint64_t w, uint64_t off,
		    uint64_t len)
{
	return w < p->start.windows && off <= p->start.window[w].bytes &&
	       len <= p->start.window[w].bytes - off;
}

static uint64_t runs_end(const struct sul_op *op)
{
	const struct sul_run *r = user(op->runs.addr);
	uint64_t end = 0, bytes = 0;

	for (uint32_t i = 0; i < op->runs.nr; i++) {
		uint64_t e = (uint64_t)r[i].off + r[i].len;

		bytes += r[i].len;
		if (!r[i].len)
			return UINT64_MAX;
		end = e > end ? e : end;
	}
	return bytes <= SUL_ABI_OP_BYTES_MAX ? end : UINT64_MAX;
}

static bool can_land(const struct fake_port *p, const struct sul_op *op,
		     uint32_t len)
{
	return op->land % 8 == 0 && op->land <= p->spec.landing_bytes &&
	       len <= p->spec.landing_bytes - op->land;
}

static bool message_makes_sense(const struct fake_port *p,
				const struct sul_op *op)
{
	if (op->flags & ~SUL_OP_INLINE || op->land ||
	    op->len > (op->flags ? SUL_ABI_MESSAGE_INLINE_MAX :
				   SUL_ABI_MESSAGE_MAX) ||
	    (op->flags && op->addr))
		return false;
	for (int i = 0; i < 2; i++)
		if (op->message.word[i] % 8 ||
		    !fake_in_window(p, op->window, op->message.word[i], 8))
			return false;
	return fake_in_window(p, op->window, op->off, op->len);
}

/* All windows are as large as ours. */
static bool makes_sense(const struct fake_port *p, const struct sul_op *op)
{
	const struct sul_mark *m;

	if (op->rank >= p->spec.ranks || !p->peer[op->rank].known)
		return false;
	switch (op->kind) {
	case SUL_OP_GET:
		m = user(op->marks.addr);
		for (uint32_t i = 0; i < op->marks.nr; i++)
			if (m[i].reserved || m[i].off % 8 ||
			    !fake_in_window(p, m[i].window, m[i].off, 8))
				return false;
		return !op->flags && op->len <= SUL_ABI_OP_BYTES_MAX &&
		       !op->marks.reserved && op->marks.nr <= SUL_MARKS_MAX &&
		       (p->peer[op->rank].near || can_land(p, op, op->len)) &&
		       fake_in_window(p, op->window, op->off, op->len);
	case SUL_OP_PUT:
		if (op->flags & ~SUL_OP_INLINE ||
		    op->len > (op->flags ? SUL_ABI_INLINE_MAX :
					   SUL_ABI_OP_BYTES_MAX))
			return false;
		return fake_in_window(p, op->window, op->off, op->len);
	case SUL_OP_PUTV:
		return !(op->flags & ~SUL_OP_MIRROR) && !op->runs.reserved &&
		       op->runs.nr && op->runs.nr <= SUL_ABI_OP_RUNS_MAX &&
		       fake_in_window(p, op->window, op->off, runs_end(op));
	case SUL_OP_AMO:
		return !(op->flags & ~SUL_OP_OLD) && !op->amo.reserved &&
		       op->amo.op < SUL_AMO_NR && op->off % 8 == 0 &&
		       (!op->flags || can_land(p, op, 8)) &&
		       fake_in_window(p, op->window, op->off, 8);
	case SUL_OP_NOTIFY:
		return !op->flags && !op->notify.reserved && op->off % 8 == 0 &&
		       fake_in_window(p, op->window, op->off, 8);
	case SUL_OP_MESSAGE:
		return message_makes_sense(p, op);
	case SUL_OP_FAREWELL:
		return !p->peer[op->rank].near && !op->flags && !op->len &&
		       !op->off && !op->addr && !op->land && !op->window;
	default:
		return false;
	}
}

/* To a rank of this process: done when it returns. */
char *fake_place(const struct fake_port *to, uint64_t w, uint64_t off)
{
	return (char *)(uintptr_t)to->start.window[w].addr + off;
}

static void get_near(const struct fake_port *to, const struct sul_op *op)
{
	const struct sul_mark *m = user(op->marks.addr);

	for (uint32_t i = 0; i < op->marks.nr; i++)
		sul_memory_mark((uint64_t *)(void *)fake_place(to, m[i].window,
							       m[i].off),
				m[i].bits);
	sul_memory_fence();
	sul_memory_copy_out((void *)(uintptr_t)op->addr,
			    fake_place(to, op->window, op->off), op->len);
}

static void putv_near(const struct fake_port *to, const struct sul_op *op)
{
	const struct sul_run *runs = user(op->runs.addr);

	sul_memory_runs(fake_place(to, op->window, op->off), user(op->addr),
			runs, op->runs.nr);
	if (op->flags & SUL_OP_MIRROR &&
	    sul_memory_flag(
		    fake_place(to, op->runs.flag_window, op->runs.flag_off)))
		sul_memory_runs(fake_place(to, op->runs.window, op->off),
				user(op->addr), runs, op->runs.nr);
}

static const void *letter(const struct sul_op *op)
{
	return op->flags & SUL_OP_INLINE ? op->message.data : user(op->addr);
}

static void message_near(const struct fake_port *to, const struct sul_op *op)
{
	sul_memory_copy_in(fake_place(to, op->window, op->off), letter(op),
			   op->len);
	sul_memory_word((void *)fake_place(to, op->window, op->message.word[0]),
			op->message.value[0]);
	fake_store_word(op->rank,
			(void *)fake_place(to, op->window, op->message.word[1]),
			op->message.value[1]);
}

static int issue_near(struct fake_port *p, const struct sul_op *op)
{
	struct fake_port *to;
	uint64_t old;

	to = fake_near_get(op->rank);
	if (!to)
		return -EHOSTDOWN;
	switch (op->kind) {
	case SUL_OP_GET:
		get_near(to, op);
		break;
	case SUL_OP_PUT:
		sul_memory_copy_in(fake_place(to, op->window, op->off),
				   op->flags & SUL_OP_INLINE ? op->data :
							       user(op->addr),
				   op->len);
		break;
	case SUL_OP_PUTV:
		putv_near(to, op);
		break;
	case SUL_OP_AMO:
		old = sul_memory_amo(
			(uint64_t *)(void *)fake_place(to, op->window, op->off),
			(enum sul_amo_op)op->amo.op, op->amo.operand,
			op->amo.comparand);
		if (op->flags & SUL_OP_OLD)
			memcpy(p->landing + op->land, &old, sizeof(old));
		break;
	case SUL_OP_MESSAGE:
		message_near(to, op);
		break;
	default:
		fake_store_word(op->rank,
				(void *)fake_place(to, op->window, op->off),
				op->notify.value);
	}
	fake_near_put();
	return 0;
}

static int putv_far(struct fake_port *p, const struct sul_op *op,
		    const char *src, size_t *done)
{
	struct sul_mirror m = { op->runs.flag_off, op->runs.window,
				op->runs.flag_window };

	return sul_net_putv(p->net, (int)op->rank, op->window, op->off, src,
			    user(op->runs.addr), op->runs.nr,
			    op->flags & SUL_OP_MIRROR ? &m : NULL, done);
}

static int message_far(struct fake_port *p, const struct sul_op *op)
{
	const struct sul_message m = {
		.window = op->window,
		.off = op->off,
		.src = letter(op),
		.len = op->len,
		.word = { op->message.word[0], op->message.word[1] },
		.value = { op->message.value[0], op->message.value[1] },
	};

	return sul_net_message(p->net, (int)op->rank, &m);
}

/* One try; @src: of what is put. */
static int try_far(struct fake_port *p, const struct sul_op *op,
		   const char *src, size_t *done)
{
	int rank = (int)op->rank;

	switch (op->kind) {
	case SUL_OP_GET:
		return sul_net_get(p->net, rank, op->window, op->off,
				   p->landing + op->land, op->len,
				   user(op->marks.addr), op->marks.nr, done);
	case SUL_OP_PUT:
		return sul_net_put(p->net, rank, op->window, op->off, src,
				   op->len, done);
	case SUL_OP_PUTV:
		return putv_far(p, op, src, done);
	case SUL_OP_AMO:
		return sul_net_amo(p->net, rank, op->window, op->off,
				   (enum sul_amo_op)op->amo.op, op->amo.operand,
				   op->amo.comparand,
				   op->flags & SUL_OP_OLD ?
					   (void *)(p->landing + op->land) :
					   NULL);
	case SUL_OP_MESSAGE:
		return message_far(p, op);
	case SUL_OP_FAREWELL:
		return sul_net_farewell(p->net, rank);
	default:
		return sul_net_notify(p->net, rank, op->window, op->off,
				      op->notify.value);
	}
}

static const char *source_of(struct fake_port *p, const struct sul_op *op)
{
	if (op->kind == SUL_OP_PUT)
		return fake_wire_keep(p,
				      op->flags & SUL_OP_INLINE ?
					      (uintptr_t)op->data :
					      op->addr,
				      op->len);
	if (op->kind == SUL_OP_PUTV)
		return fake_wire_keep(p, op->addr, runs_end(op));
	return NULL;
}

static int issue_far(struct fake_port *p, const struct sul_op *op)
{
	const char *src = source_of(p, op);
	size_t done = 0;
	int err;

	while ((err = try_far(p, op, src, &done)) == -EAGAIN) {
		struct pollfd f = { p->socket[0], POLLIN, 0 };

		fake_wire_pump(p);
		poll(&f, 1, FAKE_LOOK_MS);
	}
	return err;
}

/* @op goes on where the one before it has ended, within a word. */
static bool cuts_a_word(const struct sul_op *before, const struct sul_op *op)
{
	return op->off % 8 && op->kind == before->kind &&
	       op->rank == before->rank && op->window == before->window &&
	       (op->kind == SUL_OP_GET || op->kind == SUL_OP_PUT) &&
	       op->off == before->off + before->len;
}

int fake_issue(struct fake_port *p, const struct sul_op *op)
{
	if (!makes_sense(p, op) || cuts_a_word(&p->before, op))
		return -EINVAL;
	p->before = *op;
	if (p->peer[op->rank].gone)
		return -EHOSTDOWN;
	return p->peer[op->rank].near ? issue_near(p, op) : issue_far(p, op);
}
