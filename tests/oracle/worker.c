/* SPDX-License-Identifier: MIT */
/*
 * worker.c - see worker.h.
 *
 * The fast path between a store to shared memory and the jia_ call that must
 * publish it has plain stores only (record.h says why), so a fence that the
 * library lacks is missing here too.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define JIA_NO_MACROS
#include "jia.h"
#include "worker.h"

enum {
	SWEEP = 200
}; /* items in a row, at most */

/* --- items in shared memory ------------------------------------------------- */

struct any16 {
	uint16_t v;
} __attribute__((packed));
struct any32 {
	uint32_t v;
} __attribute__((packed));
struct any64 {
	uint64_t v;
} __attribute__((packed));

static void *item_address(const struct worker *w, uint32_t x)
{
	const struct item *it = &w->plan->item[x];

	return w->plan->area[it->area].base + it->offset;
}

static uint64_t item_load(const struct worker *w, uint32_t x)
{
	const volatile void *p = item_address(w, x);

	switch (w->plan->item[x].size) {
	case 1:
		return *(const volatile uint8_t *)p;
	case 2:
		return ((const volatile struct any16 *)p)->v;
	case 4:
		return ((const volatile struct any32 *)p)->v;
	default:
		return ((const volatile struct any64 *)p)->v;
	}
}

static void item_store(const struct worker *w, uint32_t x, uint64_t v)
{
	volatile void *p = item_address(w, x);

	switch (w->plan->item[x].size) {
	case 1:
		*(volatile uint8_t *)p = (uint8_t)v;
		break;
	case 2:
		((volatile struct any16 *)p)->v = (uint16_t)v;
		break;
	case 4:
		((volatile struct any32 *)p)->v = (uint32_t)v;
		break;
	default:
		((volatile struct any64 *)p)->v = v;
	}
}

/* --- violations --------------------------------------------------------------- */

/* The slot of the first violation; whoever comes later waits for the end. */
static struct record_violation *violation_open(struct worker *w,
					       enum violation_kind kind)
{
	struct record_violation *bad = &w->rec->bad;
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&bad->state, &none, 1)) {
		sleep(2);
		_exit(1);
	}
	bad->kind = kind;
	bad->rank = w->rank;
	bad->thread = w->thread;
	bad->round = w->plan ? w->plan->round : 0;
	bad->epoch = w->epoch;
	bad->burst = w->burst;
	bad->verifying = w->verifying;
	bad->nheld = w->nheld;
	for (unsigned int i = 0; i < w->nheld; i++)
		bad->held[i] = w->held[i];
	return bad;
}

static _Noreturn void violation_close(struct record_violation *bad)
{
	atomic_store(&bad->state, 2);
	_exit(1);
}

void worker_refuse(struct worker *w, enum violation_kind kind, const char *fmt,
		   ...)
{
	struct record_violation *bad = violation_open(w, kind);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(bad->text, sizeof(bad->text), fmt, ap);
	va_end(ap);
	violation_close(bad);
}

static _Noreturn void bad_value(struct worker *w, uint32_t x, uint32_t count,
				uint64_t got)
{
	const struct item *it = &w->plan->item[x];
	struct record_violation *bad = violation_open(w, BAD_VALUE);
	struct timespec ms = { 0, 1000000 };

	nanosleep(&ms, NULL);
	bad->item = x;
	bad->area = it->area;
	bad->offset = it->offset;
	bad->address = (uint64_t)(uintptr_t)item_address(w, x);
	bad->size = it->size;
	bad->count = count;
	bad->writer = atomic_load(&w->rec->truth[x].writer);
	bad->got = got;
	bad->want = plan_value(w->plan, x, count);
	bad->again = item_load(w, x);
	violation_close(bad);
}

static _Noreturn void bad_padding(struct worker *w, unsigned int area,
				  uint32_t offset, unsigned int got)
{
	struct record_violation *bad = violation_open(w, BAD_PADDING);
	unsigned char *p = w->plan->area[area].base + offset;

	bad->area = area;
	bad->offset = offset;
	bad->address = (uint64_t)(uintptr_t)p;
	bad->size = 1;
	bad->got = got;
	bad->again = *(volatile unsigned char *)p;
	violation_close(bad);
}

/* --- checked accesses ---------------------------------------------------------- */

/* Counts become visible now and then, and always before a barrier. */
static void count_op(struct worker *w)
{
	w->ops++;
	if (!(w->ops & 15))
		atomic_store_explicit(&w->me->ops, w->ops,
				      memory_order_relaxed);
}

static void checked_load(struct worker *w, uint32_t x)
{
	uint64_t got = item_load(w, x);
	uint32_t count = atomic_load_explicit(&w->rec->truth[x].count,
					      memory_order_acquire);

	record_event(w->me, w->verifying ? EV_VERIFY : EV_LOAD, x, count);
	count_op(w);
	if (got != plan_value(w->plan, x, count))
		bad_value(w, x, count, got);
}

static void counted_store(struct worker *w, uint32_t x)
{
	struct record_truth *truth = &w->rec->truth[x];
	uint32_t count =
		atomic_load_explicit(&truth->count, memory_order_acquire) + 1;

	item_store(w, x, plan_value(w->plan, x, count));
	atomic_store_explicit(&truth->writer, w->id, memory_order_relaxed);
	atomic_store_explicit(&truth->count, count, memory_order_release);
	record_event(w->me, EV_STORE, x, count);
	count_op(w);
}

static bool is_held(const struct worker *w, unsigned int lock)
{
	for (unsigned int i = 0; i < w->nheld; i++)
		if (w->held[i] == lock)
			return true;
	return false;
}

static bool has_token(const struct worker *w, unsigned int k)
{
	return atomic_load_explicit(&w->rec->token[k], memory_order_acquire) ==
	       record_token_with(w->id);
}

/* Whether the discipline of @x lets this thread have it now. */
static bool may(struct worker *w, uint32_t x, bool write)
{
	unsigned int rule = w->plan->item[x].rule;

	if (rule < RULE_EPOCH)
		return is_held(w, rule);
	if (rule == RULE_EPOCH)
		return record_claim(w->rec, x, w->epoch, w->id, write);
	return has_token(w, rule - RULE_TOKEN);
}

/* In rounds with own_percent each page has one rank in an epoch that writes
 * its epoch items: what home migration waits for. */
static bool writes_here(const struct worker *w, uint32_t x)
{
	const struct item *it = &w->plan->item[x];
	struct rng r = rng_at(w->plan->seed, w->epoch, it->area,
			      it->offset / PLAN_PAGE);

	return rng_below(&r, w->plan->ranks) == w->rank;
}

static void access_item(struct worker *w, uint32_t x, struct rng *r)
{
	const struct plan *p = w->plan;
	bool write = rng_percent(r, p->write_percent);
	bool look = rng_percent(r, 25);

	if (write && p->item[x].rule == RULE_EPOCH &&
	    rng_percent(r, p->own_percent) && !writes_here(w, x))
		write = false;
	if (!may(w, x, write))
		return;
	if (!write || look)
		checked_load(w, x);
	if (write)
		counted_store(w, x);
}

/* A rule of which this thread may have items now, as the dice fall. */
static unsigned int draw_rule(const struct worker *w, struct rng *r)
{
	unsigned int x = rng_below(r, 100), k = rng_below(r, REC_TOKENS);
	unsigned int h = rng_below(r, REC_NEST);

	if (w->nheld && x < 70)
		return w->held[h % w->nheld];
	if (w->plan->ntokens && has_token(w, k % w->plan->ntokens) && x < 85)
		return RULE_TOKEN + k % w->plan->ntokens;
	return RULE_EPOCH;
}

static void lose_time(const struct worker *w, struct rng *r)
{
	struct timespec ts = { 0, (long)rng_below(r, 60000) };
	volatile unsigned int n = rng_below(r, 20000);

	if (rng_below(r, 12))
		return;
	switch (w->plan->delay) {
	case DELAY_SPIN:
		while (n)
			n = n - 1;
		break;
	case DELAY_YIELD:
		sched_yield();
		break;
	case DELAY_SLEEP:
		nanosleep(&ts, NULL);
		break;
	default:
		break;
	}
}

/* Some accesses near each other, or many items of a rule one after another. */
static void access_some(struct worker *w, struct rng *r, unsigned int most)
{
	const struct plan *p = w->plan;
	unsigned int rule = draw_rule(w, r);
	bool sweep = rng_percent(r, p->sweep_percent);
	unsigned int at = rng_below(r, REC_ITEMS);
	unsigned int n = rng_between(r, 1, most);

	if (!p->count[rule])
		return;
	if (sweep)
		n = p->count[rule] < SWEEP ? p->count[rule] : SWEEP;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int k = at + (sweep ? i : rng_below(r, 4));

		access_item(w, p->list[p->first[rule] + k % p->count[rule]], r);
		lose_time(w, r);
	}
}

/* --- locks and tokens ---------------------------------------------------------- */

/* Every third lock is named by an address, and every third of those and of the
 * others is also tried. */
static const char *lock_name(const struct worker *w, unsigned int l)
{
	int id = w->plan->lock_id[l];

	return id % 3 ? NULL : (const char *)0x200000000000 + 8L * id;
}

static void lock_it(struct worker *w, unsigned int l)
{
	const char *name = lock_name(w, l);
	int id = w->plan->lock_id[l];

	if (id % 9 < 3 && (name ? jia_trylock_at(name) : jia_trylock(id)))
		return;
	if (name)
		jia_lock_at(name);
	else
		jia_lock(id);
}

static void unlock_it(struct worker *w, unsigned int l)
{
	if (lock_name(w, l))
		jia_unlock_at(lock_name(w, l));
	else
		jia_unlock(w->plan->lock_id[l]);
}

static void take_lock(struct worker *w, unsigned int l)
{
	uint32_t holder = 0;

	record_event(w->me, EV_WANT, l, 0);
	lock_it(w, l);
	record_event(w->me, EV_LOCK, l, 0);
	if (!atomic_compare_exchange_strong(&w->rec->holder[l], &holder,
					    w->id + 1))
		worker_refuse(
			w, BAD_LOCK,
			"lock id %d was given to rank %u thread %u while rank %u thread %u held it",
			w->plan->lock_id[l], w->rank, w->thread,
			(holder - 1) / w->rec->threads,
			(holder - 1) % w->rec->threads);
	w->held[w->nheld++] = l;
	count_op(w);
}

static void drop_lock(struct worker *w)
{
	unsigned int l = w->held[--w->nheld];

	record_event(w->me, EV_UNLOCK, l, 0);
	atomic_store_explicit(&w->rec->holder[l], 0, memory_order_release);
	unlock_it(w, l);
	record_event(w->me, EV_UNLOCKED, l, 0);
	count_op(w);
}

/* Take the tokens that lie under lock @l, just taken; put down some here. */
static void move_tokens(struct worker *w, unsigned int l, struct rng *r)
{
	for (unsigned int k = 0; k < w->plan->ntokens; k++) {
		bool give = rng_percent(r, 60);
		uint32_t now = atomic_load_explicit(&w->rec->token[k],
						    memory_order_acquire);

		if (now == record_token_lies(l)) {
			now = record_token_with(w->id);
			record_event(w->me, EV_TAKE, k, l);
		} else if (now == record_token_with(w->id) && give) {
			now = record_token_lies(l);
			record_event(w->me, EV_GIVE, k, l);
		} else {
			continue;
		}
		atomic_store_explicit(&w->rec->token[k], now,
				      memory_order_release);
	}
}

/* Write an item until it has the value that it had: a page that changes while
 * it is looked at, and has not changed in the end. */
static void blink(struct worker *w, struct rng *r)
{
	const struct plan *p = w->plan;
	unsigned int l = rng_below(r, p->nlocks);
	unsigned int at = rng_below(r, REC_ITEMS);
	uint32_t x;

	take_lock(w, l);
	if (p->count[l]) {
		x = p->list[p->first[l] + at % p->count[l]];
		checked_load(w, x);
		for (unsigned int i = plan_period(p, x); i > 0; i--) {
			counted_store(w, x);
			lose_time(w, r);
		}
	}
	drop_lock(w);
}

/* Locks are taken in ascending order, so threads cannot wait in a circle. */
static void critical_section(struct worker *w, struct rng *r)
{
	const struct plan *p = w->plan;
	unsigned int next = rng_below(r, p->nlocks);

	while (w->nheld < REC_NEST && next < p->nlocks) {
		take_lock(w, next);
		lose_time(w, r);
		if (!rng_percent(r, 20))
			access_some(w, r, p->accesses);
		move_tokens(w, next, r);
		next += 1 + rng_below(r, 2);
		if (!rng_percent(r, p->nest_percent))
			break;
	}
	while (w->nheld) {
		drop_lock(w);
		if (w->nheld && rng_percent(r, 60))
			access_some(w, r, 3);
	}
}

/* --- barriers and epochs -------------------------------------------------------- */

void worker_barrier(struct worker *w, bool alone)
{
	unsigned int n = w->rec->ranks * w->rec->threads;
	uint64_t mine =
		atomic_load_explicit(&w->me->entered, memory_order_relaxed) + 1;

	record_event(w->me, EV_BARRIER, w->epoch, 0);
	atomic_store_explicit(&w->me->ops, ++w->ops, memory_order_relaxed);
	atomic_store_explicit(&w->me->entered, mine, memory_order_release);
	jia_barrier();
	for (unsigned int i = 0; i < n; i += alone ? w->rec->threads : 1)
		if (atomic_load_explicit(&w->rec->thread[i].entered,
					 memory_order_acquire) < mine)
			worker_refuse(
				w, BAD_BARRIER,
				"rank %u thread %u passed a barrier that rank %u thread %u had not reached",
				w->rank, w->thread, i / w->rec->threads,
				i % w->rec->threads);
	record_event(w->me, EV_PASSED, w->epoch, 0);
	w->epoch++;
}

/* Right after a barrier, with another to follow: look at everything. */
static void verify_page(struct worker *w, unsigned int area, uint32_t page)
{
	const struct area *a = &w->plan->area[area];
	uint32_t o = page * PLAN_PAGE, end = o + PLAN_PAGE;
	uint32_t done = 0;

	if (end > a->bytes)
		end = a->bytes;
	for (; o < end; o++) {
		uint32_t x = a->owner[o];
		volatile unsigned char *p = a->base + o;

		if (!x && *p)
			bad_padding(w, area, o, *p);
		if (x && x != done)
			checked_load(w, x - 1);
		done = x;
	}
}

static void verify(struct worker *w, struct rng *r)
{
	const struct plan *p = w->plan;

	w->verifying = true;
	for (unsigned int i = 0; i < p->nareas; i++) {
		uint32_t pages = (p->area[i].bytes + PLAN_PAGE - 1) / PLAN_PAGE;
		uint32_t start = rng_below(r, pages);

		for (uint32_t k = 0; k < pages; k++) {
			uint32_t page = (start + k) % pages;

			if (page % p->stride == 0 &&
			    page / p->stride % p->threads == w->thread)
				verify_page(w, i, page);
		}
	}
	w->verifying = false;
	worker_barrier(w, false);
}

static void work_epoch(struct worker *w)
{
	const struct plan *p = w->plan;
	struct rng r = rng_at(p->seed, p->round, w->epoch, w->id + 1);
	unsigned int bursts = rng_below(&r, 2 * p->bursts + 1);

	for (w->burst = 0; w->burst < bursts; w->burst++) {
		if (!rng_percent(&r, p->lock_percent))
			access_some(w, &r, p->accesses);
		else if (rng_percent(&r, p->blink_percent))
			blink(w, &r);
		else
			critical_section(w, &r);
	}
	lose_time(w, &r);
	worker_barrier(w, false);
}

void worker_run(struct worker *w, const struct plan *plan)
{
	w->plan = plan;
	w->me = &w->rec->thread[w->id];
	w->ops = atomic_load(&w->me->ops);
	w->epoch = 1;
	for (unsigned int e = 1; e <= plan->epochs; e++) {
		struct rng all = rng_at(plan->seed, plan->round, e, 0);
		struct rng mine =
			rng_at(plan->seed, plan->round, e, w->id + 1000);

		work_epoch(w);
		if (e == plan->epochs || rng_percent(&all, plan->look_percent))
			verify(w, &mine);
	}
	atomic_store(&w->me->ops, w->ops);
}
