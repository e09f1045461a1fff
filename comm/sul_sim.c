/* SPDX-License-Identifier: MIT */
/*
 * sul_sim.c - carrier and scheduler of the simulator (see sul_sim.h).
 *
 * Role:      one array of coroutines that can run, one of links (pairs of
 *            ranks) with operations under way; each step picks one at random.
 * Invariant: everything that happens depends on the seed only: no clock, no
 *            address, no system call decides anything.
 * Threads:   one.
 */
#include "sul_sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_carrier.h"
#include "sul_coro.h"

enum {
	STACK_BYTES = 128 << 10, /* a coroutine's; deepest use seen is 10 KiB */
	SLOW_FACTOR = 32
};

enum op_kind {
	OP_GET,
	OP_PUT,
	OP_PUTV,
	OP_AMO,
	OP_NOTIFY
};

/* One operation under way. */
struct op {
	struct op *next; /* on the same link, or in the pool */
	enum op_kind kind;
	unsigned int w;
	uint64_t off;
	char *dst;
	const char *src;
	size_t len, done; /* bytes, or runs of a putv */
	const struct sul_run *runs;
	bool has_mirror, mirroring;
	struct sul_mirror mirror;
	struct sul_mark marks[SUL_MARKS_MAX];
	unsigned int nr_marks;
	enum sul_amo_op amo;
	uint64_t operand, comparand, *old;
	uint32_t value;
};

struct link {
	struct op *head, *tail;
	uint32_t active_at; /* index in sul_sim.active, while head is there */
	bool slow;
};

enum task_state {
	TASK_READY,
	TASK_WORD,
	TASK_FLUSH,
	TASK_ENDED
};

struct task {
	struct sul_coro *coro;
	enum task_state state;
	bool slow;
	struct sul_watch watch[SUL_WATCH_MAX]; /* TASK_WORD */
	unsigned int nr_watch;
	int rank; /* TASK_FLUSH */
};

struct sul_sim {
	uint64_t rng, steps;
	struct sul_sim_config cfg;
	struct sul_port **ports; /* by rank; NULL: not open */
	uint32_t *outstanding; /* operations of a rank under way */
	struct link *links; /* [from * ranks + to] */
	uint32_t *active; /* links with operations */
	uint32_t nr_active;
	struct task *tasks;
	uint32_t nr_tasks, room_tasks, live;
	uint32_t *ready; /* tasks that can run */
	uint32_t nr_ready;
	uint32_t current;
	struct op *pool;
};

uint64_t sul_sim_random(struct sul_sim *s) /* splitmix64 */
{
	uint64_t z = (s->rng += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t sul_sim_steps(const struct sul_sim *s)
{
	return s->steps;
}

static uint32_t below(struct sul_sim *s, uint32_t n)
{
	return (uint32_t)((sul_sim_random(s) >> 32) * n >> 32);
}

static bool chance(struct sul_sim *s, uint32_t ppm)
{
	return below(s, 1000000) < ppm;
}

static bool draw_slow(struct sul_sim *s)
{
	return s->cfg.slow_ppm && chance(s, s->cfg.slow_ppm);
}

/* Is it too slow for its turn? */
static bool misses_turn(struct sul_sim *s, bool slow)
{
	return slow && below(s, SLOW_FACTOR);
}

/* --- the world ---------------------------------------------------------------- */

int sul_sim_new(struct sul_sim **out, const struct sul_sim_config *cfg)
{
	size_t n = (size_t)cfg->ranks;
	struct sul_sim *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->rng = cfg->seed;
	s->ports = calloc(n, sizeof(struct sul_port *));
	s->outstanding = calloc(n, sizeof(*s->outstanding));
	s->links = calloc(n * n, sizeof(*s->links));
	s->active = calloc(n * n, sizeof(*s->active));
	if (!s->ports || !s->outstanding || !s->links || !s->active) {
		sul_sim_free(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n * n; i++)
		s->links[i].slow = draw_slow(s);
	*out = s;
	return 0;
}

static void free_ops(struct op *o)
{
	while (o) {
		struct op *next = o->next;

		free(o);
		o = next;
	}
}

void sul_sim_free(struct sul_sim *s)
{
	if (!s)
		return;
	free_ops(s->pool);
	for (uint32_t i = 0; i < s->nr_active; i++) /* still under way */
		free_ops(s->links[s->active[i]].head);
	for (uint32_t i = 0; i < s->nr_tasks; i++)
		sul_coro_free(s->tasks[i].coro);
	free(s->tasks);
	free(s->ready);
	free(s->active);
	free(s->links);
	free(s->outstanding);
	free(s->ports);
	free(s);
}

static void make_ready(struct sul_sim *s, uint32_t i)
{
	s->tasks[i].state = TASK_READY;
	s->ready[s->nr_ready++] = i;
}

static int make_room(struct sul_sim *s)
{
	uint32_t room = s->room_tasks ? 2 * s->room_tasks : 64;
	struct task *tasks;
	uint32_t *ready;

	if (s->nr_tasks < s->room_tasks)
		return 0;
	tasks = realloc(s->tasks, room * sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	s->tasks = tasks;
	ready = realloc(s->ready, room * sizeof(*ready));
	if (!ready)
		return -ENOMEM;
	s->ready = ready;
	s->room_tasks = room;
	return 0;
}

int sul_sim_spawn(struct sul_sim *s, void (*fn)(void *arg), void *arg)
{
	struct task *t;
	int err = make_room(s);

	if (err)
		return err;
	t = &s->tasks[s->nr_tasks];
	memset(t, 0, sizeof(*t));
	err = sul_coro_new(&t->coro, fn, arg, STACK_BYTES);
	if (err)
		return err;
	t->slow = draw_slow(s);
	make_ready(s, s->nr_tasks++);
	s->live++;
	return 0;
}

/* --- coroutines ------------------------------------------------------------------ */

static void pause_current(struct sul_sim *s)
{
	sul_coro_pause(s->tasks[s->current].coro);
}

void sul_sim_yield(struct sul_sim *s)
{
	make_ready(s, s->current);
	pause_current(s);
}

void sul_sim_point(struct sul_sim *s)
{
	if (chance(s, s->cfg.yield_ppm))
		sul_sim_yield(s);
}

static bool changed(const struct sul_watch *watch, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (watch[i].word->value != watch[i].old)
			return true;
	return false;
}

static int wait_any(struct sul_sim *s, const struct sul_watch *watch,
		    unsigned int nr)
{
	while (!changed(watch, nr)) {
		struct task *t = &s->tasks[s->current];

		t->state = TASK_WORD;
		memcpy(t->watch, watch, nr * sizeof(*watch));
		t->nr_watch = nr;
		pause_current(s);
	}
	return 0;
}

int sul_sim_wait(struct sul_sim *s, const struct sul_word *word, uint32_t old)
{
	struct sul_watch w = { (struct sul_word *)(uintptr_t)word, old };

	return wait_any(s, &w, 1);
}

/* Only by a notify of a word it watches: a store alone wakes nobody. */
static bool woken_by(const struct task *t, const struct sul_word *word,
		     uint32_t value)
{
	for (unsigned int i = 0; i < t->nr_watch; i++)
		if (t->watch[i].word == word && t->watch[i].old != value)
			return true;
	return false;
}

void sul_sim_notify(struct sul_sim *s, struct sul_word *word, uint32_t value)
{
	word->value = value;
	for (uint32_t i = 0; i < s->nr_tasks; i++) {
		struct task *t = &s->tasks[i];

		if (t->state == TASK_WORD && woken_by(t, word, value))
			make_ready(s, i);
	}
}

static void step_task(struct sul_sim *s)
{
	uint32_t at = below(s, s->nr_ready);
	struct task *t = &s->tasks[s->ready[at]];

	if (misses_turn(s, t->slow))
		return;
	s->current = s->ready[at];
	s->ready[at] = s->ready[--s->nr_ready];
	if (sul_coro_resume(t->coro)) {
		t = &s->tasks[s->current]; /* it may have spawned */
		t->state = TASK_ENDED;
		sul_coro_free(t->coro);
		t->coro = NULL;
		s->live--;
	}
}

/* --- operations under way -------------------------------------------------------- */

static struct op *take_op(struct sul_sim *s)
{
	struct op *o = s->pool;

	if (o)
		s->pool = o->next;
	else
		o = malloc(sizeof(*o));
	if (o)
		memset(o, 0, sizeof(*o));
	return o;
}

static void issue(struct sul_port *p, int rank, struct op *o)
{
	struct sul_sim *s = p->carrier;
	uint32_t nr = (uint32_t)(p->rank * p->ranks + rank);
	struct link *l = &s->links[nr];

	if (l->head) {
		l->tail->next = o;
	} else {
		l->head = o;
		l->active_at = s->nr_active;
		s->active[s->nr_active++] = nr;
	}
	l->tail = o;
	s->outstanding[p->rank]++;
}

static void wake_flushers(struct sul_sim *s, int rank)
{
	for (uint32_t i = 0; i < s->nr_tasks; i++)
		if (s->tasks[i].state == TASK_FLUSH && s->tasks[i].rank == rank)
			make_ready(s, i);
}

static void complete(struct sul_sim *s, uint32_t nr)
{
	struct link *l = &s->links[nr];
	struct op *o = l->head;
	int from = (int)nr / s->cfg.ranks;

	l->head = o->next;
	if (!l->head) {
		uint32_t moved = s->active[--s->nr_active];

		s->active[l->active_at] = moved;
		s->links[moved].active_at = l->active_at;
	}
	o->next = s->pool;
	s->pool = o;
	if (!--s->outstanding[from])
		wake_flushers(s, from);
}

/* How many of @left units this step does. */
static size_t piece(struct sul_sim *s, size_t left)
{
	if (left > 1 && chance(s, s->cfg.piece_ppm))
		return 1 + below(s, (uint32_t)left);
	return left;
}

static bool set_marks(struct op *o, struct sul_port *target)
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
static size_t whole_words(const struct op *o, size_t n)
{
	uint64_t at = o->off + o->done;
	size_t left = o->len - o->done;

	n = (size_t)(((at + n + 7) & ~UINT64_C(7)) - at);
	return n < left ? n : left;
}

static bool do_get(struct sul_sim *s, struct op *o, struct sul_port *target)
{
	size_t n;

	if (o->nr_marks) {
		set_marks(o, target);
		if (chance(s, s->cfg.piece_ppm))
			return false;
	}
	n = whole_words(o, piece(s, o->len - o->done));
	memcpy(o->dst + o->done,
	       (char *)target->window[o->w] + o->off + o->done, n);
	o->done += n;
	return o->done == o->len;
}

static bool do_put(struct sul_sim *s, struct op *o, struct sul_port *target)
{
	size_t n = piece(s, o->len - o->done);

	memcpy((char *)target->window[o->w] + o->off + o->done,
	       o->src + o->done, n);
	o->done += n;
	return o->done == o->len;
}

static bool do_putv(struct sul_sim *s, struct op *o, struct sul_port *target)
{
	unsigned int w = o->mirroring ? o->mirror.window : o->w;
	size_t n = piece(s, o->len - o->done);

	sul_memory_runs((char *)target->window[w] + o->off, o->src,
			o->runs + o->done, n);
	o->done += n;
	if (o->done < o->len)
		return false;
	if (o->mirroring || !o->has_mirror)
		return true;
	if (!((char *)target->window[o->mirror.flag_window])[o->mirror.flag_off])
		return true;
	o->mirroring = true;
	o->done = 0;
	return false;
}

static bool execute(struct sul_sim *s, struct op *o, struct sul_port *target)
{
	char *at = (char *)target->window[o->w] + o->off;
	uint64_t was;

	switch (o->kind) {
	case OP_GET:
		return do_get(s, o, target);
	case OP_PUT:
		return do_put(s, o, target);
	case OP_PUTV:
		return do_putv(s, o, target);
	case OP_AMO:
		was = sul_memory_amo((uint64_t *)(void *)at, o->amo, o->operand,
				     o->comparand);
		if (o->old)
			*o->old = was;
		return true;
	case OP_NOTIFY:
		sul_sim_notify(s, (struct sul_word *)(void *)at, o->value);
		return true;
	}
	return true;
}

static void step_link(struct sul_sim *s)
{
	uint32_t nr = s->active[below(s, s->nr_active)];
	struct sul_port *target = s->ports[(int)nr % s->cfg.ranks];

	if (misses_turn(s, s->links[nr].slow))
		return;
	if (execute(s, s->links[nr].head, target))
		complete(s, nr);
}

int sul_sim_run(struct sul_sim *s, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++) {
		uint32_t can = s->nr_ready + s->nr_active;

		if (!s->live)
			return 0;
		if (!can)
			return -EDEADLK;
		s->steps++;
		if (below(s, can) < s->nr_ready)
			step_task(s);
		else
			step_link(s);
	}
	return s->live ? -ETIMEDOUT : 0;
}

/* --- carrier ----------------------------------------------------------------------- */

static void sim_close(struct sul_port *p)
{
	struct sul_sim *s = p->carrier;

	s->ports[p->rank] = NULL;
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++)
		free(p->window[w]);
}

static int sim_open(struct sul_port *p, const struct sul_config *cfg)
{
	struct sul_sim *s = cfg->sim;

	if (!s || cfg->ranks != s->cfg.ranks || s->ports[p->rank])
		return -EINVAL;
	p->carrier = s;
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		if (!p->window_bytes[w])
			continue;
		p->window[w] = calloc(1, p->window_bytes[w]);
		if (!p->window[w]) {
			sim_close(p);
			return -ENOMEM;
		}
	}
	s->ports[p->rank] = p;
	return 0;
}

static int sim_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	(void)p, (void)w, (void)off, (void)len; /* all of it is present */
	return 0;
}

static int sim_discard(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	memset((char *)p->window[w] + off, 0, len);
	return 0;
}

static int sim_window_file(const struct sul_port *p, int rank, unsigned int w,
			   int *fd, uint64_t *off)
{
	(void)p, (void)rank, (void)w, (void)fd, (void)off;
	return -ENOTSUP;
}

static int sim_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   void *dst, size_t len, const struct sul_mark *marks,
		   unsigned int nr_marks)
{
	struct op *o = take_op(p->carrier);

	if (!o)
		return -ENOMEM;
	o->kind = OP_GET;
	o->w = w;
	o->off = off;
	o->dst = dst;
	o->len = len;
	o->nr_marks = nr_marks;
	for (unsigned int i = 0; i < nr_marks; i++)
		o->marks[i] = marks[i];
	issue(p, rank, o);
	return 0;
}

static int sim_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   const void *src, size_t len)
{
	struct op *o = take_op(p->carrier);

	if (!o)
		return -ENOMEM;
	o->kind = OP_PUT;
	o->w = w;
	o->off = off;
	o->src = src;
	o->len = len;
	issue(p, rank, o);
	return 0;
}

static int sim_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, const struct sul_run *runs, size_t nr_runs,
		    const struct sul_mirror *mirror)
{
	struct op *o = take_op(p->carrier);

	if (!o)
		return -ENOMEM;
	o->kind = OP_PUTV;
	o->w = w;
	o->off = off;
	o->src = src;
	o->runs = runs;
	o->len = nr_runs;
	if (mirror) {
		o->has_mirror = true;
		o->mirror = *mirror;
	}
	issue(p, rank, o);
	return 0;
}

static int sim_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		   uint64_t *old)
{
	struct op *o = take_op(p->carrier);

	if (!o)
		return -ENOMEM;
	o->kind = OP_AMO;
	o->w = w;
	o->off = off;
	o->amo = op;
	o->operand = operand;
	o->comparand = comparand;
	o->old = old;
	issue(p, rank, o);
	return 0;
}

static int sim_notify(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value)
{
	struct op *o = take_op(p->carrier);

	if (!o)
		return -ENOMEM;
	o->kind = OP_NOTIFY;
	o->w = w;
	o->off = off;
	o->value = value;
	issue(p, rank, o);
	return 0;
}

static int sim_flush(struct sul_port *p)
{
	struct sul_sim *s = p->carrier;

	while (s->outstanding[p->rank]) {
		s->tasks[s->current].state = TASK_FLUSH;
		s->tasks[s->current].rank = p->rank;
		pause_current(s);
	}
	return 0;
}

static int sim_wait(struct sul_port *p, const struct sul_watch *watch,
		    unsigned int nr, int timeout_ms)
{
	(void)timeout_ms; /* nobody is late here: a missing notify is a deadlock */
	return wait_any(p->carrier, watch, nr);
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
	.prepare = sim_prepare,
	.discard = sim_discard,
	.window_file = sim_window_file,
	.get = sim_get,
	.put = sim_put,
	.putv = sim_putv,
	.amo = sim_amo,
	.notify = sim_notify,
	.flush = sim_flush,
	.wait = sim_wait,
	.put_private = sim_put_private,
};
