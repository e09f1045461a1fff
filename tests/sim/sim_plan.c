/* SPDX-License-Identifier: MIT */
/*
 * sim_plan.c - what a run is made of, drawn from its seed.
 *
 * Role:      draws every parameter, both ends included, and most runs small:
 *            few pages and few items meet more often.
 * Invariant: the draw of one value does not depend on what the command line
 *            fixes, so that a run with an option is the same run otherwise.
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RANKS_DRAWN = 64, /* more take too long; see sim_scale.c */
	RANKS_DRAWN_NET = 16
};

uint64_t sim_random(struct sim_rng *r) /* splitmix64 */
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
	return (uint32_t)((sim_random(r) >> 32) * n >> 32);
}

bool sim_chance(struct sim_rng *r, uint64_t ppm)
{
	return sim_below(r, 1000000) < ppm;
}

static uint64_t from_to(struct sim_rng *r, uint32_t from, uint32_t to)
{
	return from + sim_below(r, to - from + 1);
}

#define PICK(r, ...)                                    \
	(((const uint64_t[]){ __VA_ARGS__ })[sim_below( \
		r, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))])

static void draw_size(struct sim_plan *p, struct sim_rng *r)
{
	uint32_t dice = sim_below(r, 256);

	p->ranks = from_to(r, 2, 4);
	p->threads = PICK(r, 1, 1, 1, 2, 2, 3);
	p->epochs = PICK(r, 2, 4, 6, 6, 12, 30);
	p->length = PICK(r, 4, 4, 12, 12, 40);
	if (dice == 0)
		p->ranks = from_to(r, 17, RANKS_DRAWN);
	else if (dice < 16)
		p->ranks = from_to(r, 5, 16);
	if (p->ranks > 16)
		p->threads = from_to(r, 1, 2);
	if (p->ranks > 4)
		p->length = PICK(r, 2, 4, 8);
	p->locks = PICK(r, 1, 2, 3, 3, 5);
	p->named = from_to(r, 0, 2);
	p->rw_locks = PICK(r, 0, 0, 1, 2, 31);
	p->conds = PICK(r, 0, 0, 1);
	p->page_shift = from_to(r, 6, 7);
	p->allocs = PICK(r, 1, 1, 2, 3);
	p->units = PICK(r, 1, 2, 3, 3, 8);
	p->order = PICK(r, 0, 0, 0, 1, 3);
	p->homes = from_to(r, 0, 2);
	p->items = from_to(r, 2, 5);
}

static void draw_chance(struct sim_plan *p, struct sim_rng *r)
{
	p->piece_ppm = PICK(r, 0, 50000, 300000, 700000);
	p->yield_ppm = PICK(r, 0, 20000, 100000, 400000);
	p->slow_ppm = PICK(r, 0, 0, 100000, 300000);
	p->outside_ppm = PICK(r, 200000, 500000, 500000, 800000);
	p->touch_ppm = PICK(r, 0, 0, 50000, 300000);
	p->forget_ppm = PICK(r, 0, 200000, 1000000);
	p->realloc_ppm = PICK(r, 0, 0, 0, 200000);
	p->undo_ppm = PICK(r, 0, 0, 200000, 700000);
	p->vary_ppm = PICK(r, 0, 0, 0, 500000);
	p->rejoin_ppm = PICK(r, 0, 0, 0, 300000);
	p->epoch = PICK(r, 1, 1, (1u << 22) - 1, (1u << 22) - 3);
	p->probe = PICK(r, 0, 1, 2, 4);
	p->stretch = PICK(r, 1, 1, 2, 3);
	p->news_slots = PICK(r, 1, 1, 2, DSM_NEWS_SLOTS);
	p->watch_min = PICK(r, 0, 2, DSM_WATCH_MIN);
}

static void draw_config(struct sim_plan *p, struct sim_rng *r)
{
	struct dsm_config *c = &p->cfg;

	c->consistency = sim_below(r, 2);
	c->update = sim_below(r, 3);
	c->keep = PICK(r, 0, 0, 1, 2, 3, 8);
	c->migrate = sim_below(r, 2);
	c->watch = PICK(r, 0, 0, 1, 100);
	c->watch_new = PICK(r, 0, 1, 4, 1024);
	c->mappings = PICK(r, 0, 0, 2, 4, 10);
	c->prefetch = PICK(r, 0, 1, 3, 64);
	c->history = PICK(r, 0, 1, 4, 64);
	c->predict = sim_below(r, 2);
	c->log = PICK(r, 16, 16, 40, 65536 >> 6);
	c->releases = PICK(r, 4, 4, 10, 1024);
	c->names = 512;
	c->carry = PICK(r, 0, 1, 3, 16, 64);
	c->gather = PICK(r, 0, 1, 3, 16, 128);
	c->tree = from_to(r, 1, 8);
	c->cache = PICK(r, 1, 2, 3, 8, 1000, 1000);
	c->populate = c->block = DSM_CONFIG_PAGE;
}

#define MS(n) (UINT64_C(1000000) * (n))

/* Faults last less than the silence after which a peer is dead; larger pages
 * than elsewhere, for packets that hold but a part of one. */
static void draw_net(struct sim_plan *p, struct sim_rng *r)
{
	p->net = 1;
	if (p->ranks > RANKS_DRAWN_NET)
		p->ranks = RANKS_DRAWN_NET;
	p->page_shift = PICK(r, 6, 7, 7, 9, 11);
	p->latency_ns = PICK(r, 2000, 20000, 100000);
	p->jitter_ns = PICK(r, 0, 5000, 100000, MS(1));
	p->think_ns = PICK(r, 200, 2000, 20000);
	p->loss_ppm = PICK(r, 0, 1000, 10000, 50000, 100000);
	p->dup_ppm = PICK(r, 0, 10000, 50000, 300000);
	p->late_ppm = PICK(r, 0, 0, 50000, 300000);
	p->late_ns = PICK(r, 100000, MS(1), MS(20));
	p->corrupt_ppm = PICK(r, 0, 0, 10000, 100000);
	p->cut_ns = PICK(r, 0, 0, MS(20), MS(500));
	p->cut_for_ns = PICK(r, MS(5), MS(100), MS(1500));
	p->stop_ns = PICK(r, 0, 0, MS(20), MS(500));
	p->stop_for_ns = PICK(r, MS(5), MS(100), MS(1500));
	p->room = PICK(r, 8, 64, 1024);
	p->packet_bytes = PICK(r, SUL_NET_PACKET_MIN, 1472, SUL_NET_PACKET_MAX);
	p->span = PICK(r, SUL_NET_SPAN_MIN, 16, 64, SUL_NET_SPAN_MAX);
	p->auth = PICK(r, SUL_NET_AUTH_MAC, SUL_NET_AUTH_MAC, SUL_NET_AUTH_OFF);
	p->paths = PICK(r, 1, 1, 2, SUL_NET_PATHS_MAX);
	p->silence_ns = MS(10000);
	p->cancel_ns = MS(1000);
}

/* Room for all allocations, whatever their units become. */
static uint64_t region_pages(const struct sim_plan *p)
{
	uint64_t each = (p->units + 1) << p->order;

	return p->allocs * each + (1u << p->order);
}

static void draw_locks(struct sim_plan *p, struct sim_rng *r)
{
	uint32_t stride = 1 + 2 * sim_below(r, 100);
	uint32_t first = sim_below(r, DSM_LOCKS);

	for (uint32_t i = 0; i < SIM_LOCKS_MAX; i++) {
		uint32_t at = (first + i * stride) % DSM_LOCKS;

		p->lock[i] = at;
		if (p->named == 1 || (p->named == 2 && i % 2))
			p->lock[i] = UINT64_C(0x550000000000) + 8 * at;
	}
}

/* What the command line fixes, and what follows from the rest. */
static void complete(struct sim_plan *p, struct sim_rng *rng,
		     const struct sim_options *o)
{
	for (unsigned int i = 0; i < o->nr_set; i++)
		sim_plan_set(p, o->set[i]);
	draw_locks(p, rng);
	p->cfg.threads = p->threads;
	p->cfg.region = region_pages(p) << p->page_shift;
	p->cfg.cache <<= p->page_shift;
}

void sim_plan_make(struct sim_plan *p, uint64_t seed,
		   const struct sim_options *o)
{
	struct sim_rng rng = { seed };

	memset(p, 0, sizeof(*p));
	draw_size(p, &rng);
	draw_chance(p, &rng);
	draw_config(p, &rng);
	if (o->net)
		draw_net(p, &rng);
	complete(p, &rng, o);
}

void sim_plan_scale(struct sim_plan *p, uint64_t seed, uint64_t ranks,
		    const struct sim_options *o)
{
	struct sim_rng rng = { seed };

	*p = (struct sim_plan){ .ranks = ranks,
				.threads = 1,
				.locks = o->net ? SIM_LOCKS_MAX : 3,
				.page_shift = 6,
				.allocs = 1,
				.units = 64,
				.epochs = 4,
				.piece_ppm = 50000,
				.epoch = 1,
				.cfg = { .log = 64,
					 .carry = 16,
					 .gather = 16,
					 .releases = 16,
					 .names = 16,
					 .tree = 4,
					 .cache = 1000,
					 .populate = DSM_CONFIG_PAGE,
					 .block = DSM_CONFIG_PAGE },
				.net = o->net,
				.latency_ns = 20000,
				.jitter_ns = 20000,
				.think_ns = 1000,
				.packet_bytes = SUL_NET_PACKET_MIN,
				.span = SUL_NET_SPAN_MIN,
				.paths = 1,
				.silence_ns = MS(10000) };
	complete(p, &rng, o);
}

/* --- values by their names -------------------------------------------------------- */

struct field {
	const char *name, *words; /* "first|second", for 0, 1; or "" */
	size_t at; /* in struct sim_plan */
};

static const struct field fields[] = {
#define PLAN(name, doc) { #name, "", offsetof(struct sim_plan, name) },
#include "sim_plan.def"
#define CFG(type, name, when, dflt, min, max, words, doc) \
	{ #name, words, offsetof(struct sim_plan, cfg.name) },
#include "dsm_config.def"
};

enum {
	FIELDS = sizeof(fields) / sizeof(fields[0])
};

void sim_plan_print(const struct sim_plan *p)
{
	for (int i = 0; i < FIELDS; i++) {
		const void *value = (const char *)p + fields[i].at;

		printf(" %s=%" PRIu64, fields[i].name,
		       *(const uint64_t *)value);
	}
	printf("\n");
}

/* Where @word is among "first|second|third", or -1. */
static int word_position(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (int i = 0; words; i++) {
		const char *bar = strchr(words, '|');
		size_t n = bar ? (size_t)(bar - words) : strlen(words);

		if (n == len && !memcmp(words, word, n))
			return i;
		words = bar ? bar + 1 : NULL;
	}
	return -1;
}

static int parse(const char *words, const char *text, uint64_t *out)
{
	int at = word_position(words, text);
	char *end;

	if (at >= 0) {
		*out = (uint64_t)at;
		return 0;
	}
	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

int sim_plan_set(struct sim_plan *p, const char *pair)
{
	const char *eq = strchr(pair, '=');
	size_t len = eq ? (size_t)(eq - pair) : 0;

	if (!len)
		return -EINVAL;
	for (int i = 0; i < FIELDS; i++) {
		void *value = (char *)p + fields[i].at;

		if (len == strlen(fields[i].name) &&
		    !memcmp(pair, fields[i].name, len))
			return parse(fields[i].words, eq + 1, value);
	}
	return -ENOENT;
}
