/* SPDX-License-Identifier: MIT */
/*
 * sul_story.c - random operations and their reference execution (sul_story.h).
 */
#include "sul_story.h"

#include <errno.h>

#include "tests.h"

enum {
	PART_BYTES = CABLE_WINDOW_BYTES / CABLE_RANKS_MAX,
	FLAG_AT = PART_BYTES - 64, /* the mirror's flag: a byte of window 2 */
	WORDS_AT = PART_BYTES - 32, /* for notify() */
	ROUND_OPS_MAX = 48,
	RUNS_MAX = 64,
	SOURCES_BYTES = 1 << 21
};

/* A result that is to come, and what it should be. */
struct result {
	unsigned char *got, *expected;
	size_t len;
};

/* One rank's operations on another one. */
struct teller {
	int rank, to;
	unsigned char *shadow[CABLE_WINDOWS];
	unsigned char *arena; /* sources, runs, results: until quiet */
	size_t used;
	struct result results[ROUND_OPS_MAX];
	unsigned int nr_results;
};

struct story {
	struct cable *c;
	struct teller *tellers;
	int nr;
	char wrong[200];
};

static void *take(struct teller *t, size_t bytes)
{
	void *at = t->arena + t->used;

	t->used += (bytes + 7) & ~(size_t)7;
	REQUIRE(t->used <= SOURCES_BYTES);
	return at;
}

static uint32_t below(struct story *s, uint32_t n)
{
	return unit_below(&s->c->rng, n);
}

/* Mostly small, now and then many packets. */
static size_t some_length(struct story *s)
{
	switch (below(s, 8)) {
	case 0:
		return 4096;
	case 1:
		return 1 + below(s, 20000);
	case 2:
		return 1 + below(s, 1500);
	default:
		return 1 + below(s, 64);
	}
}

static uint64_t base_of(const struct teller *t)
{
	return (uint64_t)t->rank * PART_BYTES;
}

/* Drive the world until the core takes it. */
static int patiently(struct story *s, int err)
{
	if (err == -EAGAIN)
		return cable_step(s->c) ? -EAGAIN : -EDEADLK;
	return err;
}

/* --- the operations --------------------------------------------------------------------- */

static unsigned char *random_bytes(struct story *s, struct teller *t,
				   size_t len)
{
	unsigned char *at = take(t, len);

	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = unit_next(&s->c->rng);

		memcpy(at + i, &v, len - i < 8 ? len - i : 8);
	}
	return at;
}

static int do_put(struct story *s, struct teller *t)
{
	size_t len = some_length(s), done = 0;
	uint64_t off = below(s, (uint32_t)(FLAG_AT - len));
	unsigned int w = below(s, CABLE_WINDOWS);
	unsigned char *src = random_bytes(s, t, len);
	int err;

	memcpy(t->shadow[w] + off, src, len);
	do
		err = patiently(s,
				sul_net_put(s->c->net[t->rank], t->to, w,
					    base_of(t) + off, src, len, &done));
	while (err == -EAGAIN);
	return err;
}

static void expect(struct teller *t, void *got, const void *expected,
		   size_t len)
{
	struct result *r = &t->results[t->nr_results++];

	r->got = got;
	r->len = len;
	r->expected = take(t, len);
	memcpy(r->expected, expected, len);
}

static int do_get(struct story *s, struct teller *t)
{
	size_t len = some_length(s), done = 0;
	uint64_t off = below(s, (uint32_t)(FLAG_AT - len));
	unsigned int w = below(s, CABLE_WINDOWS), nr = below(s, 4);
	unsigned char *dst = take(t, len);
	struct sul_mark marks[3] = { 0 };
	int err;

	if (!below(s, 16))
		len = 0;
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t at = below(s, FLAG_AT / 8) * (uint64_t)8, v;

		marks[i].window = below(s, CABLE_WINDOWS);
		marks[i].off = base_of(t) + at;
		marks[i].bits = (uint64_t)1 << below(s, 64);
		memcpy(&v, t->shadow[marks[i].window] + at, 8);
		v |= marks[i].bits;
		memcpy(t->shadow[marks[i].window] + at, &v, 8);
	}
	if (len)
		expect(t, dst, t->shadow[w] + off, len);
	do
		err = patiently(s, sul_net_get(s->c->net[t->rank], t->to, w,
					       base_of(t) + off, dst, len,
					       marks, nr, &done));
	while (err == -EAGAIN);
	return err;
}

static int do_amo(struct story *s, struct teller *t)
{
	uint64_t at = below(s, FLAG_AT / 8) * (uint64_t)8;
	uint64_t *old = below(s, 3) ? take(t, 8) : NULL;
	enum sul_amo_op op = below(s, SUL_AMO_NR);
	uint64_t operand = unit_next(&s->c->rng), comparand, was, is;
	unsigned int w = below(s, CABLE_WINDOWS);
	int err;

	memcpy(&was, t->shadow[w] + at, 8);
	comparand = below(s, 2) ? was : operand;
	is = op == SUL_AMO_SWAP ? operand :
	     op == SUL_AMO_CAS	? (was == comparand ? operand : was) :
	     op == SUL_AMO_ADD	? was + operand :
	     op == SUL_AMO_OR	? (was | operand) :
				  (was & ~operand);
	memcpy(t->shadow[w] + at, &is, 8);
	if (old)
		expect(t, old, &was, 8);
	do
		err = patiently(s, sul_net_amo(s->c->net[t->rank], t->to, w,
					       base_of(t) + at, op, operand,
					       comparand, old));
	while (err == -EAGAIN);
	return err;
}

static int do_notify(struct story *s, struct teller *t)
{
	uint64_t at = WORDS_AT + 8 * (uint64_t)below(s, 4);
	uint32_t value = (uint32_t)unit_next(&s->c->rng);
	int err;

	memcpy(t->shadow[0] + at, &value, 4);
	do
		err = patiently(s, sul_net_notify(s->c->net[t->rank], t->to, 0,
						  base_of(t) + at, value));
	while (err == -EAGAIN);
	return err;
}

static int do_message(struct story *s, struct teller *t)
{
	uint32_t values[2] = { (uint32_t)unit_next(&s->c->rng), below(s, 9) };
	size_t len = below(s, SUL_NET_MESSAGE_MAX + 1);
	uint64_t off = below(s, (uint32_t)(FLAG_AT - len));
	unsigned char *src = random_bytes(s, t, len);
	struct sul_message m = { 0, base_of(t) + off, src, len, { 0 }, { 0 } };
	int err;

	memcpy(t->shadow[0] + off, src, len);
	for (int i = 0; i < 2; i++) {
		uint64_t at = WORDS_AT + 8 * (uint64_t)below(s, 4);

		m.word[i] = base_of(t) + at;
		m.value[i] = values[i];
		memcpy(t->shadow[0] + at, &values[i], 4);
	}
	do
		err = patiently(s,
				sul_net_message(s->c->net[t->rank], t->to, &m));
	while (err == -EAGAIN);
	memset(src, 0x5a, len); /* it has been copied */
	return err;
}

/* Runs in rising order with gaps, at most @most bytes from the first on. */
static size_t some_runs(struct story *s, struct sul_run *runs, uint32_t most)
{
	bool long_ones = !below(s, 4);
	uint32_t at = below(s, 64);
	size_t nr = 0;

	while (nr < RUNS_MAX) {
		uint32_t len = 1 + below(s, long_ones ? 3000 : 24);

		if (at + len > most)
			break;
		runs[nr++] = (struct sul_run){ at, len };
		at += len + below(s, 100);
		if (!below(s, 16))
			break;
	}
	return nr;
}

static void store_runs(unsigned char *to, const unsigned char *src,
		       const struct sul_run *runs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		memcpy(to + runs[i].off, src + runs[i].off, runs[i].len);
}

static int do_putv(struct story *s, struct teller *t)
{
	struct sul_run *runs = take(t, RUNS_MAX * sizeof(*runs));
	size_t nr = some_runs(s, runs, 16384), done = 0;
	size_t reach = nr ? runs[nr - 1].off + runs[nr - 1].len : 0;
	unsigned char *src = random_bytes(s, t, reach);
	uint64_t off = below(s, (uint32_t)(FLAG_AT - reach));
	struct sul_mirror m = { base_of(t) + FLAG_AT, 1, 2 };
	bool mirror = below(s, 2);
	int err;

	store_runs(t->shadow[0] + off, src, runs, nr);
	if (mirror && t->shadow[2][FLAG_AT])
		store_runs(t->shadow[1] + off, src, runs, nr);
	do
		err = patiently(s, sul_net_putv(s->c->net[t->rank], t->to, 0,
						base_of(t) + off, src, runs, nr,
						mirror ? &m : NULL, &done));
	while (err == -EAGAIN);
	return err;
}

static int set_flag(struct story *s, struct teller *t)
{
	unsigned char *flag = take(t, 1);
	size_t done = 0;
	int err;

	*flag = (unsigned char)below(s, 2);
	t->shadow[2][FLAG_AT] = *flag;
	do
		err = patiently(s, sul_net_put(s->c->net[t->rank], t->to, 2,
					       base_of(t) + FLAG_AT, flag, 1,
					       &done));
	while (err == -EAGAIN);
	return err;
}

static int do_something(struct story *s, struct teller *t)
{
	static int (*const all[])(struct story *, struct teller *) = {
		do_put,	   do_get, do_putv,    do_amo,
		do_notify, do_amo, do_message, set_flag
	};

	return all[below(s, sizeof(all) / sizeof(all[0]))](s, t);
}

/* --- rounds -------------------------------------------------------------------------------- */

static const char *complain(struct story *s, const struct teller *t,
			    const char *what, uint64_t value)
{
	snprintf(s->wrong, sizeof(s->wrong), "rank %d on %d: %s %" PRIu64,
		 t->rank, t->to, what, value);
	return s->wrong;
}

static const char *compare(struct story *s, struct teller *t)
{
	for (unsigned int i = 0; i < t->nr_results; i++)
		if (memcmp(t->results[i].got, t->results[i].expected,
			   t->results[i].len))
			return complain(s, t, "wrong result of operation", i);
	for (unsigned int w = 0; w < CABLE_WINDOWS; w++) {
		const unsigned char *is = s->c->window[t->to][w] + base_of(t);

		if (!memcmp(is, t->shadow[w], PART_BYTES))
			continue;
		for (size_t i = 0; i < PART_BYTES; i++)
			if (is[i] != t->shadow[w][i])
				return complain(s, t, "wrong byte at",
						w * (uint64_t)PART_BYTES + i);
	}
	return NULL;
}

static const char *round_of(struct story *s, uint64_t ops)
{
	for (uint64_t i = 0; i < ops; i++) {
		struct teller *t = &s->tellers[below(s, (uint32_t)s->nr)];
		int err;

		if (t->nr_results == ROUND_OPS_MAX)
			break;
		err = do_something(s, t);
		if (err)
			return complain(s, t, "an operation failed with",
					(uint64_t)-err);
	}
	for (int rank = 0; rank < s->c->cfg.ranks; rank++)
		if (!cable_flush(s->c, rank))
			return complain(s, &s->tellers[0], "no end of it",
					(uint64_t)rank);
	for (int i = 0; i < s->nr; i++) {
		const char *wrong = compare(s, &s->tellers[i]);

		if (wrong)
			return wrong;
		s->tellers[i].used = 0;
		s->tellers[i].nr_results = 0;
	}
	return NULL;
}

const char *story_run(struct story *s, uint64_t ops)
{
	while (ops) {
		uint64_t n = 1 + below(s, below(s, 8) ? 8 : ROUND_OPS_MAX);
		const char *wrong;

		n = n < ops ? n : ops;
		wrong = round_of(s, n);
		if (wrong)
			return wrong;
		ops -= n;
	}
	return NULL;
}

static void open_teller(struct teller *t, int rank, int to)
{
	t->rank = rank;
	t->to = to;
	t->arena = malloc(SOURCES_BYTES);
	REQUIRE(t->arena);
	for (int w = 0; w < CABLE_WINDOWS; w++) {
		t->shadow[w] = calloc(1, PART_BYTES);
		REQUIRE(t->shadow[w]);
	}
}

struct story *story_new(struct cable *c)
{
	struct story *s = calloc(1, sizeof(*s));

	REQUIRE(s);
	s->c = c;
	s->tellers =
		calloc(CABLE_RANKS_MAX * CABLE_RANKS_MAX, sizeof(*s->tellers));
	REQUIRE(s->tellers);
	for (int i = 0; i < c->cfg.ranks; i++)
		for (int k = 0; k < c->cfg.ranks; k++)
			if (i != k)
				open_teller(&s->tellers[s->nr++], i, k);
	return s;
}

void story_free(struct story *s)
{
	for (int i = 0; i < s->nr; i++) {
		for (int w = 0; w < CABLE_WINDOWS; w++)
			free(s->tellers[i].shadow[w]);
		free(s->tellers[i].arena);
	}
	free(s->tellers);
	free(s);
}
