/* SPDX-License-Identifier: MIT */
/*
 * sul_sim_link.c - carrier "sim": operations under way between two ports.
 *
 * Role:      a *link* for each pair of ranks, with its operations in order; a
 *            step picks one link at random and executes a piece of its first.
 * Invariant: what is executed, and when, depends on the seed only.
 * Threads:   one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_sim_world.h"

struct link {
	struct sul_sim_op *head, *tail;
	uint32_t active_at; /* index in sul_sim.active, while head is there */
	bool slow;
};

struct sul_sim_links {
	struct link *link; /* [from * ranks + to] */
	uint32_t *active; /* links with operations */
	uint32_t nr_active;
	uint32_t *outstanding; /* operations of a rank under way */
	struct sul_sim_op *pool;
};

/* --- operations under way -------------------------------------------------------- */

static struct sul_sim_op *take_op(struct sul_sim_links *l)
{
	struct sul_sim_op *o = l->pool;

	if (!o)
		return malloc(sizeof(*o));
	l->pool = o->next;
	return o;
}

static int issue(struct sul_port *p, const struct sul_sim_op *op)
{
	struct sul_sim_links *all = ((struct sul_sim *)p->carrier)->links;
	uint32_t nr = (uint32_t)(p->rank * p->ranks + op->rank);
	struct link *l = &all->link[nr];
	struct sul_sim_op *o = take_op(all);

	if (!o)
		return -ENOMEM;
	*o = *op;
	if (l->head) {
		l->tail->next = o;
	} else {
		l->head = o;
		l->active_at = all->nr_active;
		all->active[all->nr_active++] = nr;
	}
	l->tail = o;
	all->outstanding[p->rank]++;
	return 0;
}

static void complete(struct sul_sim *s, uint32_t nr)
{
	struct sul_sim_links *all = s->links;
	struct link *l = &all->link[nr];
	struct sul_sim_op *o = l->head;
	int from = (int)nr / s->cfg.ranks;

	l->head = o->next;
	if (!l->head) {
		uint32_t moved = all->active[--all->nr_active];

		all->active[l->active_at] = moved;
		all->link[moved].active_at = l->active_at;
	}
	o->next = all->pool;
	all->pool = o;
	if (!--all->outstanding[from])
		sul_sim_wake_port(s, from);
}

/* How many of @left units this step does. */
static size_t piece(struct sul_sim *s, size_t left)
{
	if (left > 1 && sul_sim_chance(s, s->cfg.piece_ppm))
		return 1 + sul_sim_below(s, (uint32_t)left);
	return left;
}

static bool set_marks(struct sul_sim_op *o, struct sul_port *target)
{
	for (unsigned int i = 0; i < o->nr_marks; i++) {
		uint64_t *word =
			(void *)((char *)target->window[o->marks[i].window] +
				 o->marks[i].off);

		*word |= o->marks[i].bits;
	}
	o->nr_marks = 0;
	return true;
}

/* A get never sees half of an aligned word (sul.h). */
static size_t whole_words(const struct sul_sim_op *o, size_t n)
{
	uint64_t at = o->off + o->done;
	size_t left = o->len - o->done;

	n = (size_t)(((at + n + 7) & ~UINT64_C(7)) - at);
	return n < left ? n : left;
}

static bool do_get(struct sul_sim *s, struct sul_sim_op *o,
		   struct sul_port *target)
{
	size_t n;

	if (o->nr_marks) {
		set_marks(o, target);
		if (sul_sim_chance(s, s->cfg.piece_ppm))
			return false;
	}
	n = whole_words(o, piece(s, o->len - o->done));
	memcpy(o->dst + o->done,
	       (char *)target->window[o->w] + o->off + o->done, n);
	o->done += n;
	return o->done == o->len;
}

static bool do_put(struct sul_sim *s, struct sul_sim_op *o,
		   struct sul_port *target)
{
	size_t n = piece(s, o->len - o->done);

	memcpy((char *)target->window[o->w] + o->off + o->done,
	       o->src + o->done, n);
	o->done += n;
	return o->done == o->len;
}

static bool mirrored(const struct sul_sim_op *o, const struct sul_port *target)
{
	const char *flags = target->window[o->mirror.flag_window];

	return o->has_mirror && flags[o->mirror.flag_off];
}

/* A scatter is cut behind byte @at or a little later: never in the middle of an
 * aligned word, but for the end of a run. */
static size_t cut_behind(const struct sul_sim_op *o, size_t at)
{
	const struct sul_run *r = o->runs;
	uint64_t end;

	for (size_t before = 0;; before += r++->len) {
		if (at > before + r->len)
			continue;
		end = o->off + r->off + (at - before);
		end = ((end + 7) & ~UINT64_C(7)) - o->off - r->off;
		return before + (end < r->len ? end : r->len);
	}
}

static void store_bytes(const struct sul_sim_op *o, char *at, size_t from,
			size_t to)
{
	const struct sul_run *r = o->runs;

	for (size_t before = 0; before < to; before += r++->len) {
		size_t first = from > before ? from - before : 0;
		size_t end = to - before < r->len ? to - before : r->len;
		struct sul_run some = { r->off + (uint32_t)first,
					(uint32_t)(end - first) };

		if (first < end)
			sul_memory_runs(at, o->src, &some, 1);
	}
}

/* Part by part, as a network does it: each has its own look at the flag. */
static bool do_putv(struct sul_sim *s, struct sul_sim_op *o,
		    struct sul_port *target)
{
	char *at =
		(char *)target->window[o->mirroring ? o->mirror.window : o->w] +
		o->off;
	size_t to;

	if (o->part_to == o->part_from)
		o->part_to = cut_behind(
			o, o->done + piece(s, o->len - o->part_from));
	to = cut_behind(o, o->done + piece(s, o->part_to - o->done));
	store_bytes(o, at, o->done, to);
	o->done = to;
	if (o->done < o->part_to)
		return false;
	if (!o->mirroring && mirrored(o, target)) {
		o->mirroring = true;
		o->done = o->part_from;
		return false;
	}
	o->mirroring = false;
	o->part_from = o->part_to;
	return o->done == o->len;
}

static bool execute(struct sul_sim *s, struct sul_sim_op *o,
		    struct sul_port *target)
{
	char *at = (char *)target->window[o->w] + o->off;
	uint64_t was;

	switch (o->kind) {
	case SUL_SIM_GET:
		return do_get(s, o, target);
	case SUL_SIM_PUT:
		return do_put(s, o, target);
	case SUL_SIM_PUTV:
		return do_putv(s, o, target);
	case SUL_SIM_AMO:
		was = sul_memory_amo((uint64_t *)(void *)at, o->amo, o->operand,
				     o->comparand);
		if (o->old)
			*o->old = was;
		return true;
	case SUL_SIM_NOTIFY:
		sul_sim_notify(s, (struct sul_word *)(void *)at, o->value);
		return true;
	}
	return true;
}

void sul_sim_links_step(struct sul_sim *s)
{
	struct sul_sim_links *all = s->links;
	uint32_t nr = all->active[sul_sim_below(s, all->nr_active)];
	struct sul_port *target = s->ports[(int)nr % s->cfg.ranks];

	if (sul_sim_misses_turn(s, all->link[nr].slow))
		return;
	if (execute(s, all->link[nr].head, target))
		complete(s, nr);
}

/* --- the links -------------------------------------------------------------------- */

int sul_sim_links_new(struct sul_sim *s)
{
	size_t n = (size_t)s->cfg.ranks;
	struct sul_sim_links *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	s->links = l;
	s->issue = issue;
	l->outstanding = calloc(n, sizeof(*l->outstanding));
	l->link = calloc(n * n, sizeof(*l->link));
	l->active = calloc(n * n, sizeof(*l->active));
	if (!l->outstanding || !l->link || !l->active)
		return -ENOMEM;
	for (size_t i = 0; i < n * n && s->cfg.slow_ppm; i++)
		l->link[i].slow = sul_sim_draw_slow(s);
	return 0;
}

static void free_ops(struct sul_sim_op *o)
{
	while (o) {
		struct sul_sim_op *next = o->next;

		free(o);
		o = next;
	}
}

void sul_sim_links_free(struct sul_sim *s)
{
	struct sul_sim_links *l = s->links;

	if (!l)
		return;
	free_ops(l->pool);
	for (uint32_t i = 0; i < l->nr_active; i++) /* still under way */
		free_ops(l->link[l->active[i]].head);
	free(l->active);
	free(l->link);
	free(l->outstanding);
	free(l);
}

uint32_t sul_sim_links_busy(const struct sul_sim *s)
{
	return s->links->nr_active;
}

/* --- carrier ----------------------------------------------------------------------- */

static void sim_close(struct sul_port *p)
{
	struct sul_sim *s = p->carrier;

	s->ports[p->rank] = NULL;
	sul_sim_windows_close(p);
}

static int sim_open(struct sul_port *p, const struct sul_config *cfg)
{
	struct sul_sim *s = cfg->sim;
	int err;

	if (!s || !s->links || cfg->ranks != s->cfg.ranks || s->ports[p->rank])
		return -EINVAL;
	err = sul_sim_windows_open(p);
	if (err)
		return err;
	p->carrier = s;
	s->ports[p->rank] = p;
	return 0;
}

static int sim_flush(struct sul_port *p)
{
	struct sul_sim *s = p->carrier;

	while (s->links->outstanding[p->rank])
		sul_sim_wait_port(s, p->rank);
	return 0;
}

static int sim_wait(struct sul_port *p, const struct sul_watch *watch,
		    unsigned int nr, int timeout_ms)
{
	(void)timeout_ms; /* nobody is late here: a missing notify is a deadlock */
	while (!sul_sim_changed(watch, nr))
		sul_sim_sleep(p->carrier, watch, nr);
	return 0;
}

static int sim_put_private(struct sul_port *p, int rank, uint64_t addr,
			   const void *src, size_t len)
{
	(void)p, (void)rank;
	memcpy((void *)(uintptr_t)addr, src, len);
	return 0;
}

const struct sul_carrier_ops sul_sim_ops = {
	.name = "sim",
	.open = sim_open,
	.close = sim_close,
	SUL_SIM_OPERATIONS,
	.flush = sim_flush,
	.wait = sim_wait,
	.put_private = sim_put_private,
};
