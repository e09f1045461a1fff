// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_near.c - operations on a rank of this host: done at once, by the caller.
 *
 * Role:      works on the target's pinned pages, one after the other, and copies
 *            straight between them and the caller's memory.
 * Invariant: a page is found and worked on under one hold of the target's lock.
 *            The caller's memory is reached there without faults: what is not
 *            present is faulted in outside, and the page is done again.
 * Context:   process, the caller's.
 * Locks:     the target's lock, for a page at a time; submit for the staging page.
 *
 * What is short goes over the stack: it is read before, or written after, the lock
 * is held, and whole aligned words are then stored and loaded at once, as
 * sul_memory.h promises.  A scatter's bytes go over the staging page, a page of the
 * target at a time: from where its first run begins to where its last one ends.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "sul.h"
#include "sul_compat.h"
#include "sul_memory.h"

enum {
	SHORT_BYTES = 256,
	RUNS_AT_ONCE = 32, /* taken from the caller's memory */
	SPOTS_MAX = 3, /* a scatter: the place, the flag, the mirror; a message:
			  the place, two words */
};

/* A place in a page of the target. */
struct spot {
	unsigned int window;
	u64 off;
	void *at;
};

/* --- pages ------------------------------------------------------------------------------ */

/* NULL, or a spot whose page is not pinned. */
static struct spot *find_spots_locked(struct sul_port *t, struct spot *spot,
				      unsigned int nr)
{
	for (; nr; nr--, spot++) {
		spot->at = sul_window_at_locked(t, spot->window, spot->off);
		if (!spot->at)
			return spot;
	}
	return NULL;
}

static int fault_in_outside(int (*fault_in)(void *ctx), void *ctx)
{
	sul_linger(SUL_PLACE_source);
	return fault_in ? fault_in(ctx) : -EFAULT;
}

/*
 * Call @work with the lock held and all spots found.  It is called anew when it says
 * -EAGAIN, after which @fault_in is called without the lock.  @bytes: of the first
 * spot's window that will be worked on, from there.
 */
static __always_inline int
on_spots(struct sul_port *t, struct spot *spot, unsigned int nr, u64 bytes,
	 int (*work)(struct sul_port *t, const struct spot *spot, void *ctx),
	 int (*fault_in)(void *ctx), void *ctx)
{
	for (;;) {
		struct spot *missing = NULL;
		int err = -EHOSTDOWN;

		spin_lock_bh(&t->lock);
		if (likely(!t->dead)) {
			missing = SUL_BROKEN(spot_kept) && spot->at ?
					  NULL :
					  find_spots_locked(t, spot, nr);
			err = missing ? 0 : work(t, spot, ctx);
		}
		spin_unlock_bh(&t->lock);
		if (missing)
			err = sul_window_pin(t, missing->window, missing->off,
					     missing == spot ? bytes : 1);
		else if (err != -EAGAIN)
			return err;
		else
			err = fault_in_outside(fault_in, ctx);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
}

static u32 bytes_to_page_end(u64 off, u64 len)
{
	return (u32)min_t(u64, len, PAGE_SIZE - offset_in_page(off));
}

/* --- copies --------------------------------------------------------------------------------- */

/* A piece of a copy, within a page of the target. */
struct piece {
	void *kernel; /* or NULL, and then: */
	char __user *user;
	u32 len;
};

static int store(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct piece *c = ctx;
	unsigned long left;

	if (c->kernel) {
		sul_memory_copy_in(spot->at, c->kernel, c->len);
		return 0;
	}
	pagefault_disable();
	left = __copy_from_user_inatomic(spot->at, c->user, c->len);
	pagefault_enable();
	return left ? -EAGAIN : 0;
}

static int load(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct piece *c = ctx;
	unsigned long left;

	if (c->kernel) {
		sul_memory_copy_out(c->kernel, spot->at, c->len);
		return 0;
	}
	pagefault_disable();
	left = __copy_to_user_inatomic(c->user, spot->at, c->len);
	pagefault_enable();
	return left ? -EAGAIN : 0;
}

static int fault_in_source(void *ctx)
{
	const struct piece *c = ctx;

	return fault_in_readable(c->user, c->len) ? -EFAULT : 0;
}

static int fault_in_target(void *ctx)
{
	const struct piece *c = ctx;

	return fault_in_writeable(c->user, c->len) ? -EFAULT : 0;
}

static __always_inline int
copy(struct sul_port *t, const struct sul_op *op, void *kernel,
     int (*work)(struct sul_port *t, const struct spot *spot, void *ctx),
     int (*fault_in)(void *ctx))
{
	for (u32 done = 0; done < op->len;) {
		struct spot spot = { op->window, op->off + done };
		struct piece c = {
			.kernel = kernel ? (char *)kernel + done : NULL,
			.user = u64_to_user_ptr(op->addr + done),
			.len = bytes_to_page_end(spot.off, op->len - done),
		};
		int err = on_spots(t, &spot, 1, op->len - done, work, fault_in,
				   &c);

		if (err)
			return err;
		done += c.len;
	}
	return 0;
}

static int put(struct sul_batch *b, struct sul_port *t, const struct sul_op *op)
{
	u64 words[SHORT_BYTES / sizeof(u64)];
	void *data = NULL;

	b->bytes_put += op->len;
	if (op->flags & SUL_OP_INLINE) {
		data = (void *)op->data;
	} else if (op->len <= SHORT_BYTES) {
		if (copy_from_user(words, u64_to_user_ptr(op->addr), op->len))
			return -EFAULT;
		data = words;
	} else if (!access_ok(u64_to_user_ptr(op->addr), op->len)) {
		return -EFAULT;
	}
	return copy(t, op, data, store, fault_in_source);
}

/* --- get ---------------------------------------------------------------------------------------- */

static int set_mark(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct sul_mark *m = ctx;

	sul_memory_mark(spot->at, m->bits);
	sul_memory_fence();
	return 0;
}

static int set_marks(struct sul_port *t, const struct sul_op *op)
{
	struct sul_mark marks[SUL_ABI_MARKS_MAX];
	unsigned int nr = op->marks.nr;
	int err = 0;

	if (copy_from_user(marks, u64_to_user_ptr(op->marks.addr),
			   nr * sizeof(marks[0])))
		return -EFAULT;
	for (unsigned int i = 0; i < nr; i++)
		if (!sul_check_mark(&t->shape, &marks[i]))
			return -EINVAL;
	for (unsigned int i = 0; i < nr && !err; i++) {
		struct spot spot = { marks[i].window, marks[i].off };

		err = on_spots(t, &spot, 1, sizeof(u64), set_mark, NULL,
			       &marks[i]);
	}
	return err;
}

static int get(struct sul_batch *b, struct sul_port *t, const struct sul_op *op)
{
	char __user *dst = u64_to_user_ptr(op->addr);
	u64 words[SHORT_BYTES / sizeof(u64)];
	int err;

	if (op->marks.nr) {
		err = set_marks(t, op);
		if (err)
			return err;
	}
	b->bytes_got += op->len;
	if (op->len > SHORT_BYTES)
		return access_ok(dst, op->len) ?
			       copy(t, op, NULL, load, fault_in_target) :
			       -EFAULT;
	err = copy(t, op, words, load, NULL);
	if (err)
		return err;
	return copy_to_user(dst, words, op->len) ? -EFAULT : 0;
}

/* --- scatter ------------------------------------------------------------------------------------ */

/* Pieces of runs that lie in one page of the target, their bytes in the staging page. */
struct heap {
	struct sul_run piece[RUNS_AT_ONCE]; /* off: in the page */
	unsigned int nr;
	u64 page; /* of the window: where it begins */
	u32 first, end; /* what of it all pieces lie between */
	const char *staging; /* as the page would be */
	bool mirror;
};

static void store_pieces(const struct heap *h, void *page)
{
	sul_memory_runs(page, h->staging, h->piece, h->nr);
}

static int store_heap(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct heap *h = ctx;

	store_pieces(h, spot[0].at);
	if (h->mirror && sul_memory_flag(spot[1].at))
		store_pieces(h, spot[2].at);
	return 0;
}

/* @source: where the byte at the page's beginning would be. */
static int flush_heap(struct sul_batch *b, struct sul_port *t,
		      const struct sul_op *op, struct heap *h)
{
	struct spot spot[SPOTS_MAX] = {
		{ op->window, h->page },
		{ op->runs.flag_window, op->runs.flag_off },
		{ op->runs.window, h->page },
	};
	u64 source = op->addr + (h->page - op->off) + h->first;
	int err;

	if (!h->nr)
		return 0;
	if (copy_from_user(b->port->staging + h->first, u64_to_user_ptr(source),
			   h->end - h->first))
		return -EFAULT;
	h->staging = b->port->staging;
	err = on_spots(t, spot, h->mirror ? SPOTS_MAX : 1, PAGE_SIZE,
		       store_heap, NULL, h);
	h->nr = 0;
	return err;
}

static int heap_piece(struct sul_batch *b, struct sul_port *t,
		      const struct sul_op *op, struct heap *h, u64 off, u32 len)
{
	u32 in_page = offset_in_page(off);
	int err;

	if (h->nr == RUNS_AT_ONCE || h->page != off - in_page) {
		err = flush_heap(b, t, op, h);
		if (err)
			return err;
	}
	if (!h->nr) {
		h->page = off - in_page;
		h->first = in_page;
		h->end = in_page;
	}
	h->first = min(h->first, in_page);
	h->end = max(h->end, in_page + len);
	h->piece[h->nr++] = (struct sul_run){ in_page, len };
	return 0;
}

static int heap_run(struct sul_batch *b, struct sul_port *t,
		    const struct sul_op *op, struct heap *h,
		    const struct sul_run *run)
{
	u64 off = op->off + run->off;
	u32 left = run->len;

	while (left) {
		u32 n = bytes_to_page_end(off, left);
		int err = heap_piece(b, t, op, h, off, n);

		if (err)
			return err;
		off += n;
		left -= n;
	}
	return 0;
}

static int putv(struct sul_batch *b, struct sul_port *t,
		const struct sul_op *op)
{
	struct heap h = { .mirror = op->flags & SUL_OP_MIRROR };
	const struct sul_run __user *runs = u64_to_user_ptr(op->runs.addr);
	struct sul_run run[RUNS_AT_ONCE];
	u64 bytes = 0;
	int err = sul_batch_stage(b);

	for (u32 i = 0; i < op->runs.nr && !err; i++) {
		u32 at = i % RUNS_AT_ONCE;

		if (!at &&
		    copy_from_user(run, runs + i,
				   min_t(u32, op->runs.nr - i, RUNS_AT_ONCE) *
					   sizeof(run[0])))
			return -EFAULT;
		if (!sul_check_run(&t->shape, op, &run[at], &bytes))
			return -EINVAL;
		err = heap_run(b, t, op, &h, &run[at]);
	}
	b->bytes_put += bytes;
	return err ? err : flush_heap(b, t, op, &h);
}

/* --- words ---------------------------------------------------------------------------------------- */

struct change {
	const struct sul_op *op;
	u64 old;
};

static int change_word(struct sul_port *t, const struct spot *spot, void *ctx)
{
	struct change *c = ctx;

	c->old = sul_memory_amo(spot->at, c->op->amo.op, c->op->amo.operand,
				c->op->amo.comparand);
	return 0;
}

static int amo(struct sul_batch *b, struct sul_port *t, const struct sul_op *op)
{
	struct spot spot = { op->window, op->off };
	struct change c = { op };
	int err = on_spots(t, &spot, 1, sizeof(u64), change_word, NULL, &c);

	if (!err && op->flags & SUL_OP_OLD)
		WRITE_ONCE(*(u64 *)(b->port->landing + op->land), c.old);
	return err;
}

static int store_word(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct sul_op *op = ctx;

	sul_notify_locked(t, spot->at, op->notify.value);
	return 0;
}

static int notify(struct sul_batch *b, struct sul_port *t,
		  const struct sul_op *op)
{
	struct spot spot = { op->window, op->off };

	return on_spots(t, &spot, 1, sizeof(struct sul_word), store_word, NULL,
			(void *)op);
}

/* --- messages -------------------------------------------------------------------------------------- */

/* What is not in the operation was copied before. */
struct letter {
	const struct sul_op *op;
	const void *data;
};

static void tell(struct sul_port *t, const struct spot word[2],
		 const struct sul_op *op)
{
	sul_memory_word(word[0].at, op->message.value[0]);
	sul_notify_locked(t, word[1].at, op->message.value[1]);
}

static int store_letter(struct sul_port *t, const struct spot *spot, void *ctx)
{
	const struct letter *l = ctx;

	sul_memory_copy_in(spot[0].at, l->data, l->op->len);
	tell(t, &spot[1], l->op);
	return 0;
}

static int store_words(struct sul_port *t, const struct spot *spot, void *ctx)
{
	tell(t, spot, ((const struct letter *)ctx)->op);
	return 0;
}

/* Its bytes lie in two pages. */
static int store_apart(struct sul_port *t, const struct letter *l,
		       struct spot word[2])
{
	int err = copy(t, l->op, (void *)l->data, store, NULL);

	if (err)
		return err;
	return on_spots(t, word, 2, sizeof(struct sul_word), store_words, NULL,
			(void *)l);
}

static int message(struct sul_batch *b, struct sul_port *t,
		   const struct sul_op *op)
{
	u64 words[SUL_ABI_MESSAGE_MAX / sizeof(u64)] SUL_NOT_CLEARED;
	struct letter l = { op, op->message.data };
	struct spot spot[SPOTS_MAX] = {
		{ op->window, op->off },
		{ op->window, op->message.word[0] },
		{ op->window, op->message.word[1] },
	};

	if (!(op->flags & SUL_OP_INLINE)) {
		if (copy_from_user(words, u64_to_user_ptr(op->addr), op->len))
			return -EFAULT;
		l.data = words;
	}
	b->bytes_put += op->len;
	if (!op->len)
		return on_spots(t, spot + 1, 2, sizeof(struct sul_word),
				store_words, NULL, &l);
	if (offset_in_page(op->off) + op->len > PAGE_SIZE)
		return store_apart(t, &l, spot + 1);
	return on_spots(t, spot, SPOTS_MAX, op->len, store_letter, NULL, &l);
}

/* --- all of them ------------------------------------------------------------------------------------ */

int sul_near_issue(struct sul_batch *b, struct sul_port *target,
		   const struct sul_op *op)
{
	int err = sul_check_op(op, &target->shape, b->port->spec.landing_bytes,
			       true);

	if (err)
		return err;
	sul_trace(b->port, SUL_TRACE_CHECKED);
	b->near++;
	switch (op->kind) {
	case SUL_OP_GET:
		return get(b, target, op);
	case SUL_OP_PUT:
		return put(b, target, op);
	case SUL_OP_PUTV:
		return putv(b, target, op);
	case SUL_OP_AMO:
		return amo(b, target, op);
	case SUL_OP_MESSAGE:
		return message(b, target, op);
	default:
		return notify(b, target, op);
	}
}
