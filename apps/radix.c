/* SPDX-License-Identifier: MIT */
/*
 * radix.c - sort 32-bit keys by their digits, the lowest first.
 *
 * Role: the program that writes into everybody's memory: a pass sends each key
 *   to whoever holds its new place, which is nearly always another rank.
 * Invariant: the keys of a band are only changed between the second barrier of
 *   a pass and the first of the next, by their owner; an inbox only between the
 *   two, by its one sender.
 * Threads: one per rank.
 * Locks: lock 0 guards the shared totals.
 *
 * A pass: each rank sorts its band by one digit by itself, and counts its keys
 * by digit; barrier; everybody adds up all counts, and so knows where the keys
 * of each digit and rank go; they are packed into an inbox at their new owner,
 * which is overwritten without being fetched; barrier; the owner puts them in
 * their places.  With --scatter a rank stores each key in its place itself: then
 * several write in one page, which is fetched first and compared afterwards.
 *
 * After: Blelloch et al., A comparison of sorting algorithms for the Connection
 * Machine CM-2 (1991).
 * In the statistics: bytes of changes next to bytes of keys that moved, which
 * the program compares; pages fetched are those of the counts only.  With
 * --scatter: fetches, and pages written by several ranks.
 */
#include "app.h"

enum {
	KEY_BITS = 32
};

struct totals {
	uint64_t keys, sum, hashes; /* of all keys, modulo 2^64 */
	uint64_t wrong; /* keys smaller than the one before */
};

struct radix {
	const struct app *app;
	long n, bits, scatter;
	long warm; /* sorts before time and counters start */
	long digits; /* 2^bits */
	long count, *first; /* of my band; [rank]: where bands begin */
	uint32_t **band; /* [rank] */
	uint32_t **inbox; /* [to * ranks + from] */
	uint64_t **counted; /* [rank]: keys by digit, in shared memory */
	struct totals *totals; /* shared: before and after */
	/* Private. */
	uint32_t *sorted; /* my keys by the digit of this pass */
	long *begin; /* [digit]: where in sorted they begin, and the end */
	long *start; /* [digit * ranks + rank]: where those of a rank go */
	uint64_t moved; /* bytes of keys sent to other ranks */
};

static uint32_t key_of(long i)
{
	return (uint32_t)(app_hash((uint64_t)i) >> 32);
}

static long digit_of(const struct radix *r, uint32_t key, int shift)
{
	return (long)(key >> shift) & (r->digits - 1);
}

/* --- memory ------------------------------------------------------------------------- */

static void allocate_inboxes(struct radix *r)
{
	int ranks = r->app->ranks;
	long first;

	for (int to = 0; to < ranks; to++)
		for (int from = 0; from < ranks; from++) {
			long room = app_share(r->app, r->n, from, &first);
			long most = app_share(r->app, r->n, to, &first);

			room = room < most ? room : most;
			if (to != from)
				r->inbox[to * ranks + from] = app_malloc_on(
					r->app, "inboxes", to,
					(size_t)room * sizeof(uint32_t));
		}
}

static void allocate(struct radix *r, const struct app *a)
{
	size_t ranks = (size_t)a->ranks;

	r->app = a;
	r->digits = 1l << r->bits;
	r->first = app_calloc(ranks + 1, sizeof(*r->first));
	r->band = app_calloc(ranks, sizeof(*r->band));
	r->counted = app_calloc(ranks, sizeof(*r->counted));
	r->inbox = app_calloc(ranks * ranks, sizeof(*r->inbox));
	for (int i = 0; i < a->ranks; i++) {
		long count = app_share(a, r->n, i, &r->first[i]);

		r->band[i] = app_malloc_on(a, "keys", i,
					   (size_t)count * sizeof(uint32_t));
		r->counted[i] = app_malloc_on(
			a, "counts", i, (size_t)r->digits * sizeof(uint64_t));
		if (i == a->rank)
			r->count = count;
	}
	r->first[ranks] = r->n;
	if (!r->scatter)
		allocate_inboxes(r);
	r->totals = app_malloc_on(a, "totals", 0, 2 * sizeof(*r->totals));
	r->sorted = app_calloc((size_t)r->count, sizeof(*r->sorted));
	r->begin = app_calloc((size_t)r->digits + 1, sizeof(*r->begin));
	r->start = app_calloc((size_t)r->digits * ranks, sizeof(*r->start));
}

static void release(struct radix *r)
{
	free(r->first);
	free(r->band);
	free(r->counted);
	free(r->inbox);
	free(r->sorted);
	free(r->begin);
	free(r->start);
}

/* --- a pass --------------------------------------------------------------------------- */

/* My keys by their digit into sorted[], in the order in which they lie. */
static void sort_mine(struct radix *r, int shift)
{
	const uint32_t *key = r->band[r->app->rank];
	uint64_t *counted = r->counted[r->app->rank];
	long at = 0;

	memset(counted, 0, (size_t)r->digits * sizeof(*counted));
	for (long i = 0; i < r->count; i++)
		counted[digit_of(r, key[i], shift)]++;
	for (long d = 0; d < r->digits; d++) {
		r->begin[d] = at;
		at += (long)counted[d];
	}
	for (long i = 0; i < r->count; i++)
		r->sorted[r->begin[digit_of(r, key[i], shift)]++] = key[i];
	for (long d = r->digits; d; d--) /* each is where the next begins now */
		r->begin[d] = r->begin[d - 1];
	r->begin[0] = 0;
}

/* Where the keys of each digit and rank go: digit by digit, rank by rank. */
static void add_up(struct radix *r)
{
	int ranks = r->app->ranks;
	long at = 0;

	for (long d = 0; d < r->digits; d++)
		for (int q = 0; q < ranks; q++) {
			r->start[d * ranks + q] = at;
			at += (long)r->counted[q][d];
		}
}

/* How many keys of digit @d and rank @from go to @to, and where in that band
 * they begin; and how many of that digit and rank lie before them. */
static long piece(const struct radix *r, long d, int from, int to, long *place,
		  long *before)
{
	long i = d * r->app->ranks + from;
	long at = r->start[i];
	long end = i + 1 < r->digits * r->app->ranks ? r->start[i + 1] : r->n;
	long lo = at > r->first[to] ? at : r->first[to];
	long hi = end < r->first[to + 1] ? end : r->first[to + 1];

	*place = lo - r->first[to];
	*before = lo - at;
	return hi > lo ? hi - lo : 0;
}

/* Store my keys in their places in @to's band. */
static void place_at(const struct radix *r, int to)
{
	long place, before, count;

	for (long d = 0; d < r->digits; d++) {
		count = piece(r, d, r->app->rank, to, &place, &before);
		if (count)
			memcpy(r->band[to] + place,
			       r->sorted + r->begin[d] + before,
			       (size_t)count * sizeof(uint32_t));
	}
}

/* How many of @from's keys go to @to. */
static long sent(const struct radix *r, int from, int to)
{
	long place, before, sum = 0;

	for (long d = 0; d < r->digits; d++)
		sum += piece(r, d, from, to, &place, &before);
	return sum;
}

/* Pack my keys for @to into its inbox, which may be larger by part of a page:
 * so all of its pages that are used can be overwritten. */
static void pack(const struct radix *r, int to)
{
	uint32_t *box = r->inbox[to * r->app->ranks + r->app->rank];
	size_t bytes = (size_t)sent(r, r->app->rank, to) * sizeof(*box);
	long place, before;

	app_overwrite(r->app, box,
		      (bytes + APP_PAGE - 1) / APP_PAGE * APP_PAGE);
	for (long d = 0; d < r->digits; d++) {
		long count = piece(r, d, r->app->rank, to, &place, &before);

		if (count)
			memcpy(box, r->sorted + r->begin[d] + before,
			       (size_t)count * sizeof(*box));
		box += count;
	}
}

/* The keys that @from sent, to their places. */
static void unpack(const struct radix *r, int from)
{
	const uint32_t *box = r->inbox[r->app->rank * r->app->ranks + from];
	long place, before;

	for (long d = 0; d < r->digits; d++) {
		long count = piece(r, d, from, r->app->rank, &place, &before);

		if (count)
			memcpy(r->band[r->app->rank] + place, box,
			       (size_t)count * sizeof(*box));
		box += count;
	}
}

static void pass(struct radix *r, int shift)
{
	const struct app *a = r->app;

	app_phase(a, "sort");
	sort_mine(r, shift);
	app_barrier(a);
	add_up(r);
	app_phase(a, "send");
	for (int i = 1; i < a->ranks; i++) {
		int to = (a->rank + i) % a->ranks;

		if (r->scatter)
			place_at(r, to);
		else
			pack(r, to);
		r->moved += (uint64_t)sent(r, a->rank, to) * sizeof(uint32_t);
	}
	place_at(r, a->rank);
	app_barrier(a);
	app_phase(a, "receive");
	for (int i = 1; i < a->ranks && !r->scatter; i++)
		unpack(r, (a->rank + i) % a->ranks);
}

static void fill(const struct radix *r)
{
	int rank = r->app->rank;

	for (long i = 0; i < r->count; i++)
		r->band[rank][i] = key_of(r->first[rank] + i);
	app_barrier(r->app);
}

static void sort(struct radix *r)
{
	r->moved = 0;
	for (int shift = 0; shift < KEY_BITS; shift += (int)r->bits)
		pass(r, shift);
}

/* --- the check ----------------------------------------------------------------------- */

/* Add my band to @t.  Keys must not be smaller than the one before, which may
 * be the last of an earlier band. */
static void check_band(const struct radix *r, struct totals *t)
{
	const uint32_t *key = r->band[r->app->rank];
	struct totals mine = { 0 };
	uint32_t last = 0;

	for (int q = r->app->rank - 1; q >= 0 && !last; q--)
		if (r->first[q + 1] > r->first[q])
			last = r->band[q][r->first[q + 1] - r->first[q] - 1];
	for (long i = 0; i < r->count; i++) {
		mine.wrong += key[i] < last;
		last = key[i];
		mine.keys++;
		mine.sum += key[i];
		mine.hashes += app_hash(key[i]);
	}
	app_lock(r->app, 0);
	t->keys += mine.keys;
	t->sum += mine.sum;
	t->hashes += mine.hashes;
	t->wrong += mine.wrong;
	app_unlock(r->app, 0);
}

/* What was sent, next to what had to be. */
static void report_traffic(const struct radix *r)
{
	const struct app *a = r->app;
	double v[3] = { (double)r->moved, a->traffic.put_bytes,
			a->traffic.fetched };

	if (!a->traffic.counted || a->ranks == 1)
		return;
	app_sum(a, v, 3);
	if (a->rank == 0)
		printf("radix: sent by %d ranks: %.0f bytes for %.0f bytes of "
		       "keys that moved (%.3f); %.0f pages fetched\n",
		       a->ranks, v[1], v[0], v[0] > 0 ? v[1] / v[0] : 0, v[2]);
}

int app_main(int argc, char **argv)
{
	struct radix r = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "keys", "N", &r.n, 1048576, 50000, 1, 2000000000,
		  "keys" },
		{ 'b', "bits", "B", &r.bits, 8, 8, 1, 16, "bits of a digit" },
		{ 'w', "warm", "N", &r.warm, 0, 0, 0, 1000,
		  "sorts before time and counters start: then all memory is "
		  "there" },
		{ '\0', "scatter", NULL, &r.scatter, 0, 0, 0, 1,
		  "store keys in their places one by one" },
	};
	struct app a = { .name = "radix",
			 .about = "Sorts 32-bit keys by their digits.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	const struct totals *t;
	bool good;

	app_init(&a, argc, argv);
	allocate(&r, &a);
	for (long i = 0; i < r.warm; i++) {
		fill(&r);
		sort(&r);
		app_barrier(&a);
	}
	fill(&r);
	check_band(&r, &r.totals[0]);
	app_begin(&a);
	sort(&r);
	app_end(&a);
	app_report(&a, "%ld keys of 32 bits, %ld at a time", r.n, r.bits);
	report_traffic(&r);
	check_band(&r, &r.totals[1]);
	app_barrier(&a);
	t = r.totals;
	good = !t[1].wrong && t[0].keys == t[1].keys && t[0].sum == t[1].sum &&
	       t[0].hashes == t[1].hashes;
	release(&r);
	return app_verdict(&a, a.rank || good,
			   "%llu of %llu keys out of order, sum %llx before "
			   "and %llx after",
			   (unsigned long long)t[1].wrong,
			   (unsigned long long)t[1].keys,
			   (unsigned long long)(t[0].sum ^ t[0].hashes),
			   (unsigned long long)(t[1].sum ^ t[1].hashes));
}
