/* SPDX-License-Identifier: MIT */
/*
 * tsp.c - the travelling salesman by branch and bound: a shared pool of open
 * paths and a shared best tour.
 *
 * Role: the irregular program: who works on what depends on who was faster, and
 *   everything shared moves from rank to rank under locks.
 * Invariant: every tour that might be better begins with a path in the pool or
 *   with one that a rank works on; pool->open counts both.  So when it is 0 the
 *   best tour is the optimum.
 * Threads: one per rank.
 * Locks: LOCK_POOL the pool, LOCK_BEST the best tour, LOCK_TOTAL the totals.
 *   No two are held together.
 *
 * A rank takes the path with the lowest bound.  If the pool is short of paths it
 * replaces it by its children; otherwise it searches below it depth first, and
 * gives that up for the children if it takes too long, so that no rank is left
 * alone with most of the work.
 *
 * After: Held and Karp, The traveling-salesman problem and minimum spanning
 * trees: part II, Mathematical Programming 1 (1971).
 * In the statistics: the time in locks, and the diffs of pool and best tour,
 * which go to rank 0 from whoever changed them.
 */
#include "app.h"

#include <limits.h>
#include <time.h>
#include "tsp_search.h"

enum {
	LOCK_TOTAL,
	LOCK_POOL,
	LOCK_BEST,
	POOL_MAX = 1024, /* paths; what does not fit is searched at once */
	POOL_PER_RANK = 4, /* with fewer the pool is short of paths */
	PATIENCE = 4000, /* nodes of a depth-first search until it is cut up */
	NAP_US = 50, /* first wait for paths from others; doubles up to */
	NAP_MAX_US = 1000,
	SETS_MAX = 17 /* cities up to which the optimum is found by sets */
};

struct input {
	bool bad;
	char why[256];
	struct tsp_problem problem;
	double price[TSP_MAX];
};

struct pool {
	int open; /* paths in the pool or being worked on */
	int count;
	struct path path[POOL_MAX]; /* a heap: path[0] has the lowest bound */
};

struct best {
	int length;
	uint8_t tour[TSP_MAX];
};

/* Shared; each on pages of its own, as each has a lock of its own. */
struct tsp {
	const struct app *app;
	struct input *input; /* written by rank 0 before the first barrier */
	struct pool *pool;
	struct best *best;
	long *nodes;
};

/* The optimal lengths that TSPLIB states. */
static const struct known {
	const char *name;
	int n, length;
} known[] = {
	{ "burma14", 14, 3323 },   { "ulysses16", 16, 6859 },
	{ "gr17", 17, 2085 },	   { "gr21", 21, 2707 },
	{ "ulysses22", 22, 7013 }, { "gr24", 24, 1272 },
	{ "fri26", 26, 937 },	   { "bayg29", 29, 1610 },
	{ "bays29", 29, 2020 },	   { "dantzig42", 42, 699 },
	{ "swiss42", 42, 1273 },   { "att48", 48, 10628 },
	{ "gr48", 48, 5046 },	   { "hk48", 48, 11461 },
	{ "eil51", 51, 426 },	   { "berlin52", 52, 7542 },
	{ "brazil58", 58, 25395 },
};

/* --- the pool: all with LOCK_POOL held ---------------------------------------- */

static void pool_push(struct pool *pool, const struct path *p)
{
	int i = pool->count++;

	for (; i && p->bound < pool->path[(i - 1) / 2].bound; i = (i - 1) / 2)
		pool->path[i] = pool->path[(i - 1) / 2];
	pool->path[i] = *p;
}

static void pool_pop(struct pool *pool, struct path *out)
{
	const struct path *last = &pool->path[--pool->count];
	int i = 0, child;

	*out = pool->path[0];
	while ((child = 2 * i + 1) < pool->count) {
		if (child + 1 < pool->count &&
		    pool->path[child + 1].bound < pool->path[child].bound)
			child++;
		if (pool->path[child].bound >= last->bound)
			break;
		pool->path[i] = pool->path[child];
		i = child;
	}
	pool->path[i] = *last;
}

/* --- what the ranks share -------------------------------------------------------- */

/* Take a path.  False if there is none now; *@done if there will be no more.
 * *@is_short: the others need more paths. */
static bool take(struct tsp *t, struct path *p, bool *done, bool *is_short)
{
	bool got;

	app_lock(t->app, LOCK_POOL);
	got = t->pool->count > 0;
	if (got)
		pool_pop(t->pool, p);
	*done = !t->pool->open;
	*is_short = t->pool->count < POOL_PER_RANK * t->app->ranks;
	app_unlock(t->app, LOCK_POOL);
	return got;
}

/* Add up to @count paths; returns how many the pool took. */
static int give(struct tsp *t, const struct path *p, int count)
{
	int taken = 0;

	app_lock(t->app, LOCK_POOL);
	while (taken < count && t->pool->count < POOL_MAX)
		pool_push(t->pool, &p[taken++]);
	t->pool->open += taken;
	app_unlock(t->app, LOCK_POOL);
	return taken;
}

/* The path taken last is dealt with. */
static void finish(struct tsp *t)
{
	app_lock(t->app, LOCK_POOL);
	t->pool->open--;
	app_unlock(t->app, LOCK_POOL);
}

/* search->exchange(): the better of the shared tour and ours becomes both. */
static void exchange(struct search *s, void *arg)
{
	const struct tsp *t = arg;
	struct best *best = t->best;

	app_lock(t->app, LOCK_BEST);
	if (s->best < best->length) {
		best->length = s->best;
		memcpy(best->tour, s->tour, sizeof(best->tour));
	} else if (s->best > best->length) {
		s->best = best->length;
		memcpy(s->tour, best->tour, sizeof(s->tour));
	}
	app_unlock(t->app, LOCK_BEST);
}

/* --- work ---------------------------------------------------------------------- */

/* Replace @p by its children in the pool. */
static void split(struct tsp *t, struct search *s, const struct path *p)
{
	struct path child[TSP_MAX];
	double price[TSP_MAX];
	int count, taken;

	memcpy(price, s->root_price, sizeof(price));
	count = expand(s, p, price, child);
	taken = count ? give(t, child, count) : 0;
	for (int i = taken; i < count; i++)
		descend(s, &child[i], price, LONG_MAX);
}

static void work_on(struct tsp *t, struct search *s, const struct path *p,
		    bool is_short)
{
	exchange(s, t);
	if (hopeless(s, p->bound))
		return;
	if (is_short || !descend(s, p, s->root_price, s->nodes + PATIENCE))
		split(t, s, p);
}

static void work(struct tsp *t, struct search *s)
{
	bool done = false, is_short;
	long nap_us = NAP_US;
	struct path p;

	while (!done) {
		if (take(t, &p, &done, &is_short)) {
			work_on(t, s, &p, is_short);
			finish(t);
			nap_us = NAP_US;
		} else if (!done) {
			struct timespec nap = { .tv_nsec = nap_us * 1000 };

			nanosleep(&nap, NULL);
			nap_us = nap_us < NAP_MAX_US ? 2 * nap_us : NAP_MAX_US;
		}
	}
}

/* --- the problem --------------------------------------------------------------- */

/* @n cities at random places of a square. */
static void random_problem(struct tsp_problem *p, int n, long seed)
{
	double at[TSP_MAX][2] = { { 0 } };

	p->n = n;
	snprintf(p->name, sizeof(p->name), "random%d-%ld", n, seed);
	for (int i = 0; i < 2 * n; i++)
		at[i / 2][i % 2] =
			1000 * app_fraction((uint64_t)seed << 8 | (uint64_t)i);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			p->dist[i][j] = (int)euc_2d(at[i], at[j]);
}

/* Rank 0: a first tour, the first path, and prices for the search. */
static void prepare(struct tsp *t, long rounds)
{
	struct search s = { .p = &t->input->problem, .rounds = (int)rounds };
	struct path root = { .cities = 1 };

	nearest_neighbours(&s);
	root_prices(&s, &root);
	memcpy(t->input->price, s.root_price, sizeof(s.root_price));
	t->best->length = s.best;
	memcpy(t->best->tour, s.tour, sizeof(s.tour));
	pool_push(t->pool, &root);
	t->pool->open = 1;
}

static void allocate(struct tsp *t)
{
	t->input = app_malloc_on(t->app, "problem", 0, sizeof(*t->input));
	t->pool = app_malloc_on(t->app, "pool", 0, sizeof(*t->pool));
	t->best = app_malloc_on(t->app, "best tour", 0, sizeof(*t->best));
	t->nodes = app_malloc_on(t->app, "totals", 0, sizeof(*t->nodes));
}

/* All ranks: get the problem from the file or make one; or refuse. */
static void load(struct app *a, struct tsp *t, long cities, long seed)
{
	struct input *in = t->input;

	if (!a->operand_value && !cities)
		app_refuse(a, "which FILE? (or --random=N)");
	if (a->operand_value && cities && !a->test)
		app_refuse(a, "either FILE or --random, not both");
	if (a->rank == 0 && a->operand_value)
		in->bad = tsplib_read(a->operand_value, &in->problem, in->why,
				      sizeof(in->why)) != 0;
	else if (a->rank == 0)
		random_problem(&in->problem, (int)cities, seed);
	app_barrier(a);
	if (in->bad)
		app_refuse(a, "%s", in->why);
}

/* --- verdict ---------------------------------------------------------------------- */

/* The length the tour must have, and who says so; 0 if nobody does. */
static long reference(const struct tsp_problem *p, long given, const char **who)
{
	*who = "--optimum";
	if (given)
		return given;
	*who = "the optimum TSPLIB states";
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(p->name, known[i].name) && p->n == known[i].n)
			return known[i].length;
	*who = "dynamic programming";
	return p->n <= SETS_MAX ? optimum_by_sets(p) : 0;
}

static int verdict(const struct app *a, const struct tsp *t, long given)
{
	const struct tsp_problem *p = &t->input->problem;
	const char *who = "";
	int length = tour_length(p, t->best->tour);
	bool exists = length == t->best->length;
	long right = a->rank ? length : reference(p, given, &who);

	if (right || !exists)
		return app_verdict(a, a->rank || (exists && length == right),
				   "tour of length %d through the %d cities of "
				   "%s, %ld by %s",
				   t->best->length, p->n, p->name, right, who);
	if (a->rank == 0)
		printf("%s: tour of length %d, not compared: no optimum of "
		       "%s is known (--optimum)\n",
		       a->name, length, p->name);
	return app_leave(a, APP_GOOD);
}

static void print_tour(const struct app *a, const struct tsp *t)
{
	if (a->rank)
		return;
	printf("%s: tour", a->name);
	for (int i = 0; i < t->input->problem.n; i++)
		printf(" %d", t->best->tour[i] + 1);
	putchar('\n');
}

int app_main(int argc, char **argv)
{
	long optimum, cities, seed, rounds;
	const struct app_opt opts[] = {
		{ 'o', "optimum", "L", &optimum, 0, 0, 1, 1000000000,
		  "length the shortest tour must have" },
		{ 'r', "random", "N", &cities, 0, 12, 3, TSP_MAX,
		  "cities at random places instead of FILE" },
		{ 'p', "prices", "N", &rounds, 8, 8, 0, 1000,
		  "price adjustments at a node: fewer give a weaker bound, "
		  "more nodes, and work for more ranks" },
		{ 's', "seed", "S", &seed, 1, 1, 0, 1000000000,
		  "which random places" },
	};
	struct app a = { .name = "tsp",
			 .about = "The shortest tour through all cities, by "
				  "branch and bound.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]),
			 .operand = "FILE",
			 .operand_help =
				 "a symmetric problem in TSPLIB format, "
				 "of 3 to 64 cities" };
	struct search s = { .exchange = exchange };
	struct tsp t;

	app_init(&a, argc, argv);
	t.app = &a;
	allocate(&t);
	load(&a, &t, cities, seed);
	if (a.rank == 0)
		prepare(&t, rounds);
	app_begin(&a);
	s.p = &t.input->problem;
	s.rounds = (int)rounds;
	s.arg = &t;
	s.best = INT_MAX;
	memcpy(s.root_price, t.input->price, sizeof(s.root_price));
	work(&t, &s);
	app_lock(&a, LOCK_TOTAL);
	*t.nodes += s.nodes;
	app_unlock(&a, LOCK_TOTAL);
	app_end(&a);
	app_report(&a, "%s, %ld nodes", t.input->problem.name, *t.nodes);
	print_tour(&a, &t);
	return verdict(&a, &t, optimum);
}
