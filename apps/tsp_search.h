/* SPDX-License-Identifier: MIT */
/*
 * tsp_search.h - the part of the travelling salesman that one rank does alone:
 * lower bounds and depth-first search below a given path.
 *
 * Role: given a path from city 0, finds the best tour that begins with it, or
 *   lists the paths one city longer that may still lead to a better one.
 * Invariant: search->best is the length of search->tour, a tour that exists;
 *   nothing is cut off that is shorter than it.
 * Threads: one per struct search.
 * Locks: none; search->exchange() is where the caller meets the other ranks.
 *
 * The bound (Held and Karp): a tour that begins with a path is the path, a
 * spanning tree of the other cities, and an edge from either end of the path
 * into it.  The cheapest such thing bounds the tour from below.  Adding a price
 * to every edge of a city changes all tours by the same amount (each uses two)
 * but not all trees, so prices are raised where the tree has too many edges and
 * lowered where it has too few, and the best bound met counts.
 */
#ifndef TSP_SEARCH_H
#define TSP_SEARCH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tsplib.h"

enum {
	ROOT_ROUNDS = 2000, /* price adjustments before the search */
	EXCHANGE_NODES = 256 /* nodes between looks at the shared bound */
};

struct path {
	double bound; /* no tour with this beginning is shorter */
	int length, cities;
	uint8_t city[TSP_MAX];
};

struct search {
	const struct tsp_problem *p;
	int rounds; /* price adjustments at a node; 0: no prices at all */
	double root_price[TSP_MAX];
	int best;
	uint8_t tour[TSP_MAX];
	long nodes;
	/* Called from time to time and after every improvement: takes over a
	 * better tour of another rank, or hands out ours. */
	void (*exchange)(struct search *s, void *arg);
	void *arg;
};

/* Lengths are whole numbers: a bound above best - 1 leaves nothing better. */
static bool hopeless(const struct search *s, double bound)
{
	return bound > s->best - 1 + 1e-6;
}

static bool visits(const struct path *p, int city)
{
	return memchr(p->city, city, (size_t)p->cities) != NULL;
}

/* A tour can be walked both ways; only those that meet city 1 before city 2
 * are looked at. */
static bool may_follow(const struct path *p, int city)
{
	return !visits(p, city) && (city != 2 || visits(p, 1));
}

static void path_append(const struct search *s, struct path *p, int city)
{
	p->length += s->p->dist[p->city[p->cities - 1]][city];
	p->city[p->cities++] = (uint8_t)city;
}

/* --- the lower bound ------------------------------------------------------------ */

/* The cities that a path leaves over, and the edges a tree gives each. */
struct rest {
	int count;
	int city[TSP_MAX], degree[TSP_MAX];
};

static void rest_of(const struct search *s, const struct path *p,
		    struct rest *r)
{
	uint64_t seen = 0;

	for (int i = 0; i < p->cities; i++)
		seen |= 1ull << p->city[i];
	r->count = 0;
	for (int c = 0; c < s->p->n; c++)
		if (!(seen >> c & 1))
			r->city[r->count++] = c;
}

/* Prim's algorithm over the rest, with prices; counts degrees. */
static double spanning_tree(const struct search *s, struct rest *r,
			    const double *price)
{
	double cost[TSP_MAX] = { 0 }, sum = 0;
	int from[TSP_MAX] = { 0 }, open[TSP_MAX] = { 0 };
	int left = r->count - 1, now = 0;

	for (int i = 0; i < left; i++) {
		open[i] = i + 1;
		cost[i + 1] = HUGE_VAL;
		from[i + 1] = 0;
	}
	while (left) {
		const int *dist = s->p->dist[r->city[now]];
		int next = 0;

		for (int i = 0; i < left; i++) {
			int c = open[i];
			double w = dist[r->city[c]] + price[r->city[now]] +
				   price[r->city[c]];

			if (w < cost[c]) {
				cost[c] = w;
				from[c] = now;
			}
			if (cost[c] < cost[open[next]])
				next = i;
		}
		now = open[next];
		open[next] = open[--left];
		sum += cost[now];
		r->degree[now]++;
		r->degree[from[now]]++;
	}
	return sum;
}

/* The cheapest edge from @end into the rest but for city index @except. */
static double tie(const struct search *s, struct rest *r, const double *price,
		  int end, int *except)
{
	double least = HUGE_VAL;
	int at = 0;

	for (int i = 0; i < r->count; i++) {
		double w = s->p->dist[end][r->city[i]] + price[r->city[i]];

		if (i != *except && w < least) {
			least = w;
			at = i;
		}
	}
	r->degree[at]++;
	*except = at;
	return least;
}

/* The bound for one set of prices; leaves the degrees in @r.  Prices of cities
 * on the path cancel out. */
static double bound_once(const struct search *s, const struct path *p,
			 struct rest *r, const double *price)
{
	int first = p->city[0], last = p->city[p->cities - 1], used = -1;
	double bound = p->length;

	memset(r->degree, 0, sizeof(r->degree));
	bound += spanning_tree(s, r, price);
	bound += tie(s, r, price, last, &used);
	if (p->cities > 1)
		used = -1; /* two ends: both may lead to the same city */
	bound += tie(s, r, price, first, &used);
	for (int i = 0; i < r->count; i++)
		bound -= 2 * price[r->city[i]];
	return bound;
}

/* Move prices towards a tour; false if the tree is one already. */
static bool adjust(const struct search *s, const struct rest *r, double *price,
		   double bound, double pace)
{
	int squares = 0;
	double step;

	for (int i = 0; i < r->count; i++)
		squares += (r->degree[i] - 2) * (r->degree[i] - 2);
	if (!squares)
		return false;
	step = pace * (s->best - bound) / squares;
	for (int i = 0; i < r->count; i++)
		price[r->city[i]] += step * (r->degree[i] - 2);
	return true;
}

/* A lower bound for tours that begin with @p, which leaves cities over; adjusts
 * @price up to @rounds - 1 times. */
static double lower_bound(const struct search *s, const struct path *p,
			  double *price, int rounds)
{
	double bound, best = -HUGE_VAL;
	struct rest r = { 0 };

	rest_of(s, p, &r);
	for (int i = 0; i < rounds; i++) {
		bound = bound_once(s, p, &r, price);
		best = fmax(best, bound);
		if (hopeless(s, best) || i + 1 == rounds ||
		    !adjust(s, &r, price, bound, 1))
			break;
	}
	return best;
}

/* Prices that make the bound of the whole problem high: the start of all other
 * searches for prices. */
static void root_prices(struct search *s, const struct path *root)
{
	double price[TSP_MAX] = { 0 }, best = -HUGE_VAL, pace = 2;
	int stale = 0;
	struct rest r = { 0 };

	rest_of(s, root, &r);
	for (int i = 0; s->rounds && i < ROOT_ROUNDS; i++) {
		double bound = bound_once(s, root, &r, price);

		if (bound > best) {
			best = bound;
			memcpy(s->root_price, price, sizeof(price));
			stale = 0;
		} else if (++stale == s->p->n) {
			pace /= 2;
			stale = 0;
		}
		if (!adjust(s, &r, price, bound, pace))
			break;
	}
}

/* --- search --------------------------------------------------------------------- */

/* Take a complete path as the best tour if it is. */
static void consider(struct search *s, const struct path *p)
{
	int length = p->length + s->p->dist[p->city[p->cities - 1]][p->city[0]];

	if (length >= s->best)
		return;
	s->best = length;
	memcpy(s->tour, p->city, sizeof(s->tour));
	if (s->exchange)
		s->exchange(s, s->arg);
}

static int by_bound(const void *a, const void *b)
{
	const struct path *x = a, *y = b;

	return (x->bound > y->bound) - (x->bound < y->bound);
}

/* The paths one city longer than @p that may lead to a better tour, the most
 * promising first; returns how many.  Adjusts @price for @p. */
static int expand(struct search *s, const struct path *p, double *price,
		  struct path *child)
{
	int count = 0;

	s->nodes++;
	if (hopeless(s, lower_bound(s, p, price, 1 + s->rounds)))
		return 0;
	for (int city = 0; city < s->p->n; city++) {
		struct path *c = &child[count];

		if (!may_follow(p, city))
			continue;
		*c = *p;
		path_append(s, c, city);
		if (c->cities == s->p->n) {
			consider(s, c);
			continue;
		}
		c->bound = fmax(p->bound, lower_bound(s, c, price, 1));
		count += !hopeless(s, c->bound);
	}
	qsort(child, (size_t)count, sizeof(*child), by_bound);
	return count;
}

/* Search below @p, which leaves cities over, until @limit nodes have been
 * visited in all; false if that was not enough. */
static bool descend(struct search *s, const struct path *p, const double *price,
		    long limit)
{
	double mine[TSP_MAX];
	struct path child[TSP_MAX];
	int count;

	if (s->nodes >= limit)
		return false;
	if (s->exchange && s->nodes % EXCHANGE_NODES == EXCHANGE_NODES - 1)
		s->exchange(s, s->arg);
	memcpy(mine, price, sizeof(mine));
	count = expand(s, p, mine, child);
	for (int i = 0; i < count && !hopeless(s, child[i].bound); i++)
		if (!descend(s, &child[i], mine, limit))
			return false;
	return true;
}

/* --- a first tour, and an independent check -------------------------------------- */

/* From city 0 always to the nearest city left. */
static void nearest_neighbours(struct search *s)
{
	struct path p = { .cities = 1 };

	while (p.cities < s->p->n) {
		int at = p.city[p.cities - 1], next = -1;

		for (int c = 0; c < s->p->n; c++)
			if (!visits(&p, c) &&
			    (next < 0 ||
			     s->p->dist[at][c] < s->p->dist[at][next]))
				next = c;
		path_append(s, &p, next);
	}
	s->best = p.length + s->p->dist[p.city[p.cities - 1]][0];
	memcpy(s->tour, p.city, sizeof(s->tour));
}

/* Length of @tour, or -1 if it does not visit every city once. */
static int tour_length(const struct tsp_problem *p, const uint8_t *tour)
{
	uint64_t seen = 0;
	int length = 0;

	for (int i = 0; i < p->n; i++) {
		if (tour[i] >= p->n || (seen >> tour[i] & 1))
			return -1;
		seen |= 1ull << tour[i];
		length += p->dist[tour[i]][tour[(i + 1) % p->n]];
	}
	return length;
}

/* The optimum by dynamic programming over sets of cities: 4 n 2^n bytes.
 * -1 if there is no memory for that. */
static int optimum_by_sets(const struct tsp_problem *p)
{
	int m = p->n - 1, best = TSP_FAR * TSP_MAX;
	size_t sets = (size_t)1 << m;
	int *least = malloc(sets * (size_t)m * sizeof(*least));

	if (!least)
		return -1;
	for (size_t i = 0; i < sets * (size_t)m; i++)
		least[i] = TSP_FAR * TSP_MAX;
	for (int i = 0; i < m; i++)
		least[((size_t)1 << i) * (size_t)m + (size_t)i] =
			p->dist[0][i + 1];
	for (size_t set = 1; set < sets; set++)
		for (int i = 0; i < m; i++)
			for (int j = 0; (set >> i & 1) && j < m; j++) {
				size_t to = set | (size_t)1 << j;
				int *at = &least[to * (size_t)m + (size_t)j];
				int via = least[set * (size_t)m + (size_t)i] +
					  p->dist[i + 1][j + 1];

				if (to != set && via < *at)
					*at = via;
			}
	for (int i = 0; i < m; i++) {
		int tour = least[(sets - 1) * (size_t)m + (size_t)i] +
			   p->dist[i + 1][0];

		best = tour < best ? tour : best;
	}
	free(least);
	return best;
}

#endif /* TSP_SEARCH_H */
