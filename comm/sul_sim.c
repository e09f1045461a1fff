/* SPDX-License-Identifier: MIT */
/*
 * sul_sim.c - the simulated world: coroutines, waiting, chance (sul_sim.h).
 *
 * Role:      who can run, who waits for what, and whose turn it is.
 * Invariant: everything that happens depends on the seed only: no clock, no
 *            address, no system call decides anything.  (Addresses choose the
 *            chain in which a waiting coroutine is found again, not its order.)
 * Threads:   one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_simnet.h"

enum {
	STACK_BYTES = 128 << 10 /* a coroutine's; deepest use seen is 10 KiB */
};

#define NOBODY UINT32_MAX /* as sul_sim.current: no coroutine runs */

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

uint32_t sul_sim_below(struct sul_sim *s, uint32_t n)
{
	return (uint32_t)((sul_sim_random(s) >> 32) * n >> 32);
}

bool sul_sim_chance(struct sul_sim *s, uint64_t ppm)
{
	return sul_sim_below(s, 1000000) < ppm;
}

bool sul_sim_draw_slow(struct sul_sim *s)
{
	return s->cfg.slow_ppm && sul_sim_chance(s, s->cfg.slow_ppm);
}

bool sul_sim_misses_turn(struct sul_sim *s, bool slow)
{
	return slow && sul_sim_below(s, SUL_SIM_SLOW);
}

/* --- the world ---------------------------------------------------------------- */

int sul_sim_new(struct sul_sim **out, const struct sul_sim_config *cfg)
{
	size_t n = (size_t)cfg->ranks;
	struct sul_sim *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err;
	s->cfg = *cfg;
	s->rng = cfg->seed;
	s->current = NOBODY;
	s->ports = calloc(n, sizeof(struct sul_port *));
	s->at_port = calloc(n, sizeof(*s->at_port));
	if (s->ports && s->at_port)
		err = cfg->net ? sul_simnet_new(s) : sul_sim_links_new(s);
	if (err)
		sul_sim_free(s);
	else
		*out = s;
	return err;
}

void sul_sim_free(struct sul_sim *s)
{
	if (!s)
		return;
	sul_sim_links_free(s);
	sul_simnet_free(s);
	for (uint32_t i = 0; i < s->nr_tasks; i++)
		sul_coro_free(s->tasks[i].coro);
	free(s->tasks);
	free(s->ready);
	free(s->at_port);
	free(s->ports);
	free(s);
}

static void make_ready(struct sul_sim *s, uint32_t i)
{
	s->tasks[i].state = SUL_SIM_READY;
	if (s->net)
		sul_simnet_ready(s, i);
	else
		s->ready[s->nr_ready++] = i;
}

static int make_room(struct sul_sim *s)
{
	uint32_t room = s->room_tasks ? 2 * s->room_tasks : 64;
	struct sul_sim_task *tasks;
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

int sul_sim_spawn(struct sul_sim *s, int rank, void (*fn)(void *arg), void *arg)
{
	struct sul_sim_task *t;
	int err = make_room(s);

	if (err)
		return err;
	t = &s->tasks[s->nr_tasks];
	memset(t, 0, sizeof(*t));
	err = sul_coro_new(&t->coro, fn, arg, STACK_BYTES);
	if (err)
		return err;
	t->rank = rank;
	t->slow = sul_sim_draw_slow(s);
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
	if (sul_sim_chance(s, s->cfg.yield_ppm))
		sul_sim_yield(s);
}

static void end_task(struct sul_sim *s, uint32_t i)
{
	if (s->tasks[i].state != SUL_SIM_ENDED)
		s->live--;
	s->tasks[i].state = SUL_SIM_ENDED;
	if (i == s->current)
		return; /* its stack is in use */
	sul_coro_free(s->tasks[i].coro);
	s->tasks[i].coro = NULL;
}

void sul_sim_resume(struct sul_sim *s, uint32_t i)
{
	bool ended;

	s->current = i;
	ended = sul_coro_resume(s->tasks[i].coro);
	s->current = NOBODY;
	if (ended || s->tasks[i].state == SUL_SIM_ENDED)
		end_task(s, i);
}

/* Without a clock: anything that can happen is as likely as anything else. */
static void step_task(struct sul_sim *s)
{
	uint32_t at = sul_sim_below(s, s->nr_ready);
	uint32_t i = s->ready[at];

	if (sul_sim_misses_turn(s, s->tasks[i].slow))
		return;
	s->ready[at] = s->ready[--s->nr_ready];
	sul_sim_resume(s, i);
}

static bool step(struct sul_sim *s)
{
	uint32_t can = s->nr_ready + sul_sim_links_busy(s);

	if (!can)
		return false;
	if (sul_sim_below(s, can) < s->nr_ready)
		step_task(s);
	else
		sul_sim_links_step(s);
	return true;
}

int sul_sim_run(struct sul_sim *s, uint64_t steps)
{
	for (; s->live && steps; steps--) {
		s->steps++;
		if (!(s->net ? sul_simnet_step(s) : step(s)))
			return -EDEADLK;
		if (s->net && s->net->error)
			return s->net->error;
	}
	return s->live ? -ETIMEDOUT : 0;
}

/* --- waiting for a word -------------------------------------------------------------- */

static uint32_t *chain_of(struct sul_sim *s, const struct sul_word *word)
{
	return &s->chain[(uintptr_t)word / sizeof(*word) % SUL_SIM_CHAINS];
}

static void chain_in(struct sul_sim *s, uint32_t i)
{
	struct sul_sim_task *t = &s->tasks[i];

	for (uint32_t k = 0; k < t->nr_watch; k++) {
		uint32_t *head = chain_of(s, t->watch[k].word);

		t->next[k] = *head;
		*head = i * SUL_WATCH_MAX + k + 1;
	}
}

static uint32_t *next_of(struct sul_sim *s, uint32_t at)
{
	return &s->tasks[(at - 1) / SUL_WATCH_MAX]
			.next[(at - 1) % SUL_WATCH_MAX];
}

static void chain_out(struct sul_sim *s, uint32_t i)
{
	struct sul_sim_task *t = &s->tasks[i];

	for (uint32_t k = 0; k < t->nr_watch; k++) {
		uint32_t *at = chain_of(s, t->watch[k].word);

		while (*at != i * SUL_WATCH_MAX + k + 1)
			at = next_of(s, *at);
		*at = t->next[k];
	}
}

bool sul_sim_changed(const struct sul_watch *watch, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (watch[i].word->value != watch[i].old)
			return true;
	return false;
}

void sul_sim_sleep(struct sul_sim *s, const struct sul_watch *watch,
		   unsigned int nr)
{
	struct sul_sim_task *t = &s->tasks[s->current];

	t->state = SUL_SIM_WORD;
	memcpy(t->watch, watch, nr * sizeof(*watch));
	t->nr_watch = nr;
	chain_in(s, s->current);
	pause_current(s);
}

int sul_sim_wait(struct sul_sim *s, const struct sul_word *word, uint32_t old)
{
	struct sul_watch w = { (struct sul_word *)(uintptr_t)word, old };

	while (!sul_sim_changed(&w, 1))
		sul_sim_sleep(s, &w, 1);
	return 0;
}

static void wake(struct sul_sim *s, uint32_t i)
{
	chain_out(s, i);
	make_ready(s, i);
}

/* Only who watches this word is woken: a store alone wakes nobody. */
void sul_sim_notify(struct sul_sim *s, struct sul_word *word, uint32_t value)
{
	uint32_t at = *chain_of(s, word);

	word->value = value;
	while (at) {
		uint32_t i = (at - 1) / SUL_WATCH_MAX;
		const struct sul_watch *w =
			&s->tasks[i].watch[(at - 1) % SUL_WATCH_MAX];

		at = *next_of(s, at);
		if (w->word != word || w->old == value)
			continue;
		/* Its other watch may come next in this chain. */
		while (at && (at - 1) / SUL_WATCH_MAX == i)
			at = *next_of(s, at);
		wake(s, i);
	}
}

/* --- waiting for a port ------------------------------------------------------------- */

void sul_sim_wait_port(struct sul_sim *s, int rank)
{
	struct sul_sim_task *t = &s->tasks[s->current];

	t->state = SUL_SIM_PORT;
	t->next[0] = s->at_port[rank];
	s->at_port[rank] = s->current + 1;
	pause_current(s);
}

void sul_sim_wake_port(struct sul_sim *s, int rank)
{
	uint32_t at = s->at_port[rank];

	s->at_port[rank] = 0;
	for (; at; at = s->tasks[at - 1].next[0])
		make_ready(s, at - 1);
}

/* --- all of a rank ---------------------------------------------------------------------- */

/* Nobody finds @i where it waits any more. */
static void leave_chains(struct sul_sim *s, uint32_t i)
{
	if (s->tasks[i].state == SUL_SIM_WORD)
		chain_out(s, i);
	if (s->tasks[i].state == SUL_SIM_PORT)
		s->at_port[s->tasks[i].rank] = 0; /* all of them leave */
}

void sul_sim_wake_rank(struct sul_sim *s, int rank)
{
	for (uint32_t i = 0; i < s->nr_tasks; i++) {
		struct sul_sim_task *t = &s->tasks[i];

		if (t->rank != rank || t->state == SUL_SIM_READY ||
		    t->state == SUL_SIM_ENDED)
			continue;
		leave_chains(s, i);
		make_ready(s, i);
	}
}

void sul_sim_kill(struct sul_sim *s, int rank)
{
	for (uint32_t i = 0; i < s->nr_tasks; i++) {
		if (s->tasks[i].rank != rank)
			continue;
		leave_chains(s, i);
		end_task(s, i);
	}
}
