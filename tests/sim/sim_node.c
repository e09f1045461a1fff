/* SPDX-License-Identifier: MIT */
/*
 * sim_node.c - a node of the simulated world, and its loads and stores.
 *
 * Role:      gives struct dsm_node the surroundings it asks for.  What the
 *            processor and mprotect are in a real job is here an array of access
 *            rights that every load and store obeys.
 * Invariant: between looking at the right and touching the memory nobody else
 *            runs, as in one instruction.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static int protect(void *ctx, uint32_t page, uint32_t pages,
		   enum dsm_access access)
{
	struct sim_node *n = ctx;

	sim_trace(n->run, "node %d: pages %u+%u access %d", n->rank, page,
		  pages, (int)access);
	memset(n->access + page, (int)access, pages);
	return 0;
}

static void enter(void *ctx)
{
	struct sim_node *n = ctx;

	n->mutex_waiters++;
	while (n->mutex.value)
		sul_sim_wait(n->run->world, &n->mutex, 1);
	n->mutex_waiters--;
	n->mutex.value = 1;
}

static void leave(void *ctx)
{
	struct sim_node *n = ctx;

	if (n->mutex_waiters)
		sul_sim_notify(n->run->world, &n->mutex, 0);
	n->mutex.value = 0;
}

static void note(void *ctx, const char *text)
{
	(void)ctx, (void)text;
}

static void note_end(void *ctx)
{
	(void)ctx;
}

static uint64_t now_ns(void *ctx)
{
	struct sim_node *n = ctx;

	return n->run->plan.net ? sul_simnet_now_ns(n->run->world) :
				  sul_sim_steps(n->run->world);
}

__attribute__((noreturn)) static void fail(void *ctx, int err, const char *text)
{
	struct sim_node *n = ctx;

	sim_give_up(n, err, text);
}

static void point(void *ctx)
{
	struct sim_node *n = ctx;

	sul_sim_point(n->run->world);
}

static const struct dsm_env env = {
	.protect = protect,
	.enter = enter,
	.leave = leave,
	.note = note,
	.note_end = note_end,
	.now_ns = now_ns,
	.fail = fail,
	.point = point,
};

static void must(struct sim_run *run, int err, const char *what)
{
	if (err)
		sim_violation(run, "%s: %s", what, strerror(-err));
}

/* As if so many barriers had been passed: the number is 22 bits wide. */
static void start_epoch(struct dsm_node *d, uint32_t epoch)
{
	struct dsm_log_head *h = (void *)(d->sync + d->at.log_head);

	d->epoch = epoch;
	h->epoch = epoch;
}

void sim_node_open(struct sim_run *run, int rank)
{
	const struct sim_plan *p = &run->plan;
	struct sim_node *n = &run->node[rank];
	struct dsm_node_config c = { .cfg = &p->cfg,
				     .rank = rank,
				     .ranks = (int)p->ranks,
				     .page_shift = (uint32_t)p->page_shift,
				     .env = &env,
				     .env_ctx = n };
	struct sul_config port = { .carrier = p->net ? "simnet" : "sim",
				   .sim = run->world,
				   .rank = rank,
				   .ranks = (int)p->ranks };

	*n = (struct sim_node){ .run = run, .rank = rank };
	dsm_node_windows(&c, &port);
	must(run, sul_open(&n->port, &port), "opening a port");
	must(run, dsm_node_open(&n->dsm, &c, n->port), "opening a node");
	n->dsm->threads = (uint32_t)p->threads;
	n->dsm->watch_min = (uint32_t)p->watch_min;
	n->dsm->news_slots = (uint32_t)p->news_slots;
	n->dsm->stretch_shift = (uint32_t)(p->order + p->stretch);
	start_epoch(n->dsm, (uint32_t)p->epoch);
	n->access = calloc(n->dsm->pages, 1);
	for (uint32_t i = 0; i < n->dsm->pages; i++)
		n->dsm->probe[i] = (uint16_t)p->probe;
}

void sim_node_close(struct sim_node *n)
{
	dsm_node_close(n->dsm);
	sul_close(n->port);
	free(n->access);
}

/* --- loads and stores -------------------------------------------------------------- */

/* The real limits are made for large memories: with few pages all of them
 * would count as used recently, and nothing would ever be evicted. */
static void forget_recent(struct sim_node *n)
{
	for (uint32_t i = 0; i < n->dsm->thread_nr; i++)
		for (int k = 0; k < DSM_RECENT_PER_THREAD; k++)
			n->dsm->thread[i].recent[k] = DSM_BITS_END;
}

static void fault(struct sim_thread *t, uint32_t page, bool store)
{
	struct sim_run *run = t->run;

	sim_trace(run, "node %d thread %d: fault on page %u, %s", t->node->rank,
		  t->slot, page, store ? "store" : "load");
	if (sim_chance(&run->rng, run->plan.forget_ppm))
		forget_recent(t->node);
	must(run, dsm_fault(t->node->dsm, t->dsm, page, store), "a fault");
	sul_sim_point(run->world);
}

uint32_t sim_page(const struct sim_thread *t, const struct sim_item *it)
{
	return t->run->record.alloc[it->alloc].page +
	       (it->off >> t->run->plan.page_shift);
}

/* Where @it is, once it may be touched. */
static char *reach(struct sim_thread *t, const struct sim_item *it, bool store)
{
	struct sim_node *n = t->node;
	const struct sim_alloc *a = &t->run->record.alloc[it->alloc];
	uint64_t at = ((uint64_t)a->page << n->dsm->page_shift) + it->off;
	uint32_t page = (uint32_t)(at >> n->dsm->page_shift);
	enum dsm_access need = store ? DSM_ACCESS_RW : DSM_ACCESS_R;

	if (t->touched == page + 1 && n->access[page] < (uint8_t)need &&
	    (!store || t->touched_rw))
		sim_violation(
			t->run,
			"node %d thread %d: page %u is held and yet not accessible",
			n->rank, t->slot, page);
	while (n->access[page] < (uint8_t)need)
		fault(t, page, store);
	return n->dsm->frame + at;
}

uint64_t sim_load(struct sim_thread *t, const struct sim_item *it)
{
	uint64_t value = 0;

	memcpy(&value, reach(t, it, false), it->size);
	return value;
}

void sim_store(struct sim_thread *t, const struct sim_item *it, uint64_t value)
{
	memcpy(reach(t, it, true), &value, it->size);
}
