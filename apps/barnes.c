/* SPDX-License-Identifier: MIT */
/*
 * barnes.c - a cluster of stars that attract each other, far ones as groups:
 * the method of Barnes and Hut.
 *
 * Role: the irregular program: a tree of cells is built anew each step in shared
 *   memory, and everybody walks all of it that is near.
 * Invariant: bodies are moved by their owner while nobody reads them, and have
 *   another only after that; a cell's children are written by the one who builds
 *   it, or with its lock held; what kind a node is never changes.  The tree that
 *   results does not depend on who built it: a cell of more than LEAF bodies is
 *   divided, all others are leaves.
 * Threads: one per rank.
 * Locks: with --locked one per cell, by its address.
 *
 * Whose bodies: each rank has some that follow each other, as they are numbered,
 * and as many as make an equal share of the work (bodies and nodes looked at) that
 * the forces on all took the last time.
 *
 * Who builds what: all ranks divide space in the same way until a part has few
 * bodies, and deal the parts out; each builds what is below its parts, and rank 0
 * what is above.  With --locked all put their own bodies into one tree, and lock
 * the cell whose child they look at or replace.
 *
 * After: Barnes and Hut, A hierarchical O(N log N) force-calculation algorithm,
 * Nature 324 (1986); Shan and Singh, Parallel tree building on a range of shared
 * address space multiprocessors (1998); Singh et al., Load balancing and data
 * locality in hierarchical N-body methods (1995), for the shares; Aarseth, Henon
 * and Wielen (1974) for the Plummer model.
 * In the statistics: faults and fetches in phase "forces", which are the parts
 * of the tree that a rank sees; with --locked: locks, and the time in them.
 */
#include "app.h"

#include <math.h>

enum {
	LEAF = 8, /* bodies of a leaf, at most; and children of a cell */
	DEPTH = 64, /* of the tree; bodies that are closer are at one place */
	PARTS = 8, /* that space is divided into for each rank, at least */
	SPARE = 4096, /* nodes of a rank beyond one for each body */
	SAMPLES = 64, /* bodies whose force is computed directly, too */
	KEY_LEVELS = 20 /* of the order in which bodies are numbered */
};

#define SOFTENING 0.05
#define TIME_STEP 0.025
#define RADIUS_MAX 10.0 /* of the cluster at the start */
/* What is allowed: of a force, times theta^2; of places, next to a serial run. */
#define FORCE_ERROR 0.1
#define PLACE_ERROR 1e-9

struct body {
	double at[3], mass;
};

/* A leaf has bodies, a cell children: node numbers, 0 for none. */
struct node {
	double at[3], mass; /* centre of mass, and all of it */
	int32_t count; /* of bodies; -1: a cell */
	int32_t depth;
	int32_t item[LEAF];
};

/* A cube; its octants are numbered by the bits x, y, z. */
struct cube {
	double at[3], half; /* centre, half a side */
};

struct barnes {
	const struct app *app;
	long n, steps, theta; /* theta in hundredths */
	long locked;
	long first, count; /* my bodies */
	/* Shared. */
	struct body *body;
	double (*speed)[3]; /* [body] */
	uint32_t *work; /* [body]: of the last force on it */
	struct node *node; /* node 1 is the root, 0 is not used */
	int32_t pool, used; /* my nodes: pool .. pool + used - 1 */
	long room; /* nodes of a rank */
	struct cube all;
	/* Private. */
	double (*pull)[3]; /* of my bodies */
	int32_t *list, *spare; /* numbers of bodies, while they are sorted */
	int parts, roots; /* handed out so far: in all, to me */
	long dealt; /* bodies in them */
	int *part_of; /* [rank]: parts handed to it */
};

/* --- cubes --------------------------------------------------------------------------------- */

static int octant(const struct cube *c, const double *at)
{
	return (at[0] >= c->at[0]) | (at[1] >= c->at[1]) << 1 |
	       (at[2] >= c->at[2]) << 2;
}

static struct cube inner(const struct cube *c, int o)
{
	struct cube in = { .half = c->half / 2 };

	for (int i = 0; i < 3; i++)
		in.at[i] = c->at[i] + (o >> i & 1 ? in.half : -in.half);
	return in;
}

/* Sort list[begin .. begin + count) by octant; from[o] is where each begins, and
 * from[8] the end. */
static void divide(struct barnes *b, const struct cube *c, long begin,
		   long count, long *from)
{
	long at[9] = { 0 };

	for (long i = 0; i < count; i++)
		at[octant(c, b->body[b->list[begin + i]].at) + 1]++;
	from[0] = at[0] = begin;
	for (int o = 1; o <= 8; o++)
		from[o] = at[o] += at[o - 1];
	memcpy(b->spare, b->list + begin, (size_t)count * sizeof(*b->list));
	for (long i = 0; i < count; i++) {
		int32_t k = b->spare[i];

		b->list[at[octant(c, b->body[k].at)]++] = k;
	}
}

/* --- nodes ----------------------------------------------------------------------------------- */

static int32_t new_node(struct barnes *b, int32_t count, int depth)
{
	int32_t i = b->pool + b->used++;

	if (b->used > b->room || depth > DEPTH)
		app_die("more than %d bodies at one place", LEAF);
	memset(&b->node[i], 0, sizeof(b->node[i]));
	b->node[i].count = count;
	b->node[i].depth = depth;
	return i;
}

static int32_t new_leaf(struct barnes *b, const int32_t *body, long count,
			int depth)
{
	int32_t leaf = new_node(b, (int32_t)count, depth);

	memcpy(b->node[leaf].item, body, (size_t)count * sizeof(*body));
	return leaf;
}

static void add_mass(struct node *n, const double *at, double mass)
{
	n->mass += mass;
	for (int i = 0; i < 3; i++)
		n->at[i] += mass * at[i];
}

/* The centre of mass from what is below. */
static void weigh(const struct barnes *b, struct node *n)
{
	memset(n->at, 0, sizeof(n->at));
	n->mass = 0;
	for (int i = 0; i < LEAF; i++)
		if (n->count < 0 && n->item[i])
			add_mass(n, b->node[n->item[i]].at,
				 b->node[n->item[i]].mass);
		else if (i < n->count)
			add_mass(n, b->body[n->item[i]].at,
				 b->body[n->item[i]].mass);
	for (int i = 0; i < 3 && n->mass > 0; i++)
		n->at[i] /= n->mass;
}

/* The tree of list[begin .. begin + count); @at is the node to use, or 0. */
static int32_t build(struct barnes *b, const struct cube *c, long begin,
		     long count, int depth, int32_t at)
{
	int32_t i = at ? at : new_node(b, -1, depth);
	struct node *n = &b->node[i];
	long from[9];

	n->depth = depth;
	n->count = count <= LEAF ? (int32_t)count : -1;
	if (count <= LEAF)
		memcpy(n->item, b->list + begin,
		       (size_t)count * sizeof(*b->list));
	else
		divide(b, c, begin, count, from);
	for (int o = 0; o < 8 && count > LEAF; o++) {
		struct cube in = inner(c, o);

		n->item[o] = from[o] == from[o + 1] ?
				     0 :
				     build(b, &in, from[o],
					   from[o + 1] - from[o], depth + 1, 0);
	}
	weigh(b, n);
	return i;
}

/* --- space is dealt out --------------------------------------------------------------------- */

/* The rank that gets the next part, of @count bodies: parts lie in the order of
 * their places, and each rank gets neighbours. */
static int next_owner(struct barnes *b, long count)
{
	long middle = b->dealt + count / 2;

	b->dealt += count;
	return (int)(middle * b->app->ranks / b->n);
}

static int32_t first_node(const struct barnes *b, int rank)
{
	return (int32_t)(1 + rank * b->room);
}

/* Divide space until a part has few bodies.  My parts are built; all others are
 * known by the node that their owner will use.  Rank 0 makes what is above. */
static int32_t deal(struct barnes *b, const struct cube *c, long begin,
		    long count, int depth)
{
	long few = b->n / ((long)PARTS * b->app->ranks);
	int32_t top = 0, child;
	long from[9];

	if (depth && (count <= few || count <= LEAF)) {
		int owner = next_owner(b, count);

		/* The first nodes of a rank are its parts; rank 0 has the
		 * tops, too. */
		child = first_node(b, owner) + 2 * b->part_of[owner]++ + 1;
		if (owner == b->app->rank)
			build(b, c, begin, count, depth, child);
		return child;
	}
	top = first_node(b, 0) + 2 * b->parts++;
	divide(b, c, begin, count, from);
	for (int o = 0; o < 8; o++) {
		struct cube in = inner(c, o);

		child = from[o] == from[o + 1] ?
				0 :
				deal(b, &in, from[o], from[o + 1] - from[o],
				     depth + 1);
		if (b->app->rank == 0)
			b->node[top].item[o] = child;
	}
	if (b->app->rank == 0) {
		b->node[top].count = -1;
		b->node[top].depth = depth;
	}
	return top;
}

/* Rank 0: the centres of mass above the parts. */
static void weigh_top(const struct barnes *b, int32_t i)
{
	struct node *n = &b->node[i];

	if (i >= first_node(b, 1) || (i - first_node(b, 0)) % 2 ||
	    (i - first_node(b, 0)) / 2 >= b->parts)
		return;
	for (int o = 0; o < 8; o++)
		if (n->item[o])
			weigh_top(b, n->item[o]);
	weigh(b, n);
}

static void build_dealt(struct barnes *b)
{
	for (long i = 0; i < b->n; i++)
		b->list[i] = (int32_t)i;
	b->dealt = b->parts = 0;
	memset(b->part_of, 0, (size_t)b->app->ranks * sizeof(int));
	b->used = (int32_t)(b->room / 2);
	deal(b, &b->all, 0, b->n, 0);
	app_barrier(b->app);
	if (b->app->rank == 0)
		weigh_top(b, first_node(b, 0));
	app_barrier(b->app);
}

/* --- with locks ------------------------------------------------------------------------------- */

static void put_into(struct barnes *b, int32_t cell, const struct cube *c,
		     const int32_t *body, long count);

/* Put bodies into child @o of a cell.  Its lock is held only to look at that
 * child and to replace it: a cell is made empty, and filled with no lock held. */
static void put_child(struct barnes *b, int32_t cell, const struct cube *c,
		      int o, const int32_t *body, long count)
{
	struct node *n = &b->node[cell];
	struct cube in = inner(c, o);
	int32_t more[LEAF], child;
	long others = 0;

	app_lock_at(b->app, n);
	child = n->item[o];
	if (child && b->node[child].count >= 0) {
		others = b->node[child].count;
		memcpy(more, b->node[child].item, sizeof(more));
	}
	if (!child && count <= LEAF) {
		child = n->item[o] = new_leaf(b, body, count, n->depth + 1);
	} else if (!child || (others && others + count > LEAF)) {
		child = n->item[o] = new_node(b, -1, n->depth + 1);
	} else if (others) {
		memcpy(b->node[child].item + others, body,
		       (size_t)count * sizeof(*body));
		b->node[child].count += (int32_t)count;
	}
	if (b->node[child].count >= 0)
		child = 0; /* done */
	app_unlock_at(b->app, n);
	if (child && others)
		put_into(b, child, &in, more, others);
	if (child)
		put_into(b, child, &in, body, count);
}

static void put_into(struct barnes *b, int32_t cell, const struct cube *c,
		     const int32_t *body, long count)
{
	int32_t *sorted = app_calloc((size_t)count, sizeof(*sorted));
	long at[9] = { 0 };

	for (long i = 0; i < count; i++)
		at[octant(c, b->body[body[i]].at) + 1]++;
	for (int o = 1; o <= 8; o++)
		at[o] += at[o - 1];
	for (long i = 0; i < count; i++)
		sorted[at[octant(c, b->body[body[i]].at)]++] = body[i];
	for (int k = 0; k < 8; k++) { /* each rank begins elsewhere */
		int o = (k + b->app->rank) % 8;
		long begin = o ? at[o - 1] : 0;

		if (at[o] > begin)
			put_child(b, cell, c, o, sorted + begin, at[o] - begin);
	}
	free(sorted);
}

/* Level by level, the lowest first, everybody weighs the nodes that it made. */
static void weigh_levels(const struct barnes *b)
{
	double deepest = 0;

	for (int32_t i = b->pool; i < b->pool + b->used; i++)
		deepest = fmax(deepest, b->node[i].depth);
	app_max(b->app, &deepest, 1);
	for (int32_t depth = (int32_t)deepest; depth >= 0; depth--) {
		for (int32_t i = b->pool; i < b->pool + b->used; i++)
			if (b->node[i].depth == depth)
				weigh(b, &b->node[i]);
		app_barrier(b->app);
	}
}

static void build_locked(struct barnes *b)
{
	b->used = 0;
	if (b->app->rank == 0)
		new_node(b, -1,
			 0); /* the root is a cell however few there are */
	for (long i = 0; i < b->count; i++)
		b->list[i] = (int32_t)(b->first + i);
	app_barrier(b->app);
	put_into(b, first_node(b, 0), &b->all, b->list, b->count);
	app_barrier(b->app);
	weigh_levels(b);
}

/* --- forces ------------------------------------------------------------------------------------- */

static inline void attract(const double *at, const double *to, double mass,
			   double *pull)
{
	double d[3], square = SOFTENING * SOFTENING, f;

	for (int i = 0; i < 3; i++) {
		d[i] = to[i] - at[i];
		square += d[i] * d[i];
	}
	f = mass / (square * sqrt(square));
	for (int i = 0; i < 3; i++)
		pull[i] += f * d[i];
}

/* Whether a node is so far from @at that it counts as one body. */
static bool is_far(const struct node *n, const double *at, double side,
		   double theta)
{
	double square = 0;

	for (int i = 0; i < 3; i++)
		square += (n->at[i] - at[i]) * (n->at[i] - at[i]);
	return side * side < theta * theta * square;
}

/* Returns the work it took. */
static uint32_t pull_of(const struct barnes *b, int32_t i, long body,
			double side, double *pull)
{
	const struct node *n = &b->node[i];
	const double *at = b->body[body].at;
	uint32_t work = 1;

	if (n->count < 0 && is_far(n, at, side, 0.01 * (double)b->theta)) {
		attract(at, n->at, n->mass, pull);
		return work;
	}
	for (int k = 0; k < LEAF; k++)
		if (n->count < 0 && n->item[k]) {
			work += pull_of(b, n->item[k], body, side / 2, pull);
		} else if (k < n->count && n->item[k] != body) {
			attract(at, b->body[n->item[k]].at,
				b->body[n->item[k]].mass, pull);
			work++;
		}
	return work;
}

/* --- a step ------------------------------------------------------------------------------------- */

/* The cube around all bodies; its side is a power of two. */
static void enclose(struct barnes *b)
{
	double most = 0;

	for (long i = b->first; i < b->first + b->count; i++)
		for (int c = 0; c < 3; c++)
			most = app_worse(most, fabs(b->body[i].at[c]));
	app_max(b->app, &most, 1);
	if (!isfinite(most))
		app_die("a body has left space");
	b->all = (struct cube){ .half = 1 };
	while (b->all.half <= most)
		b->all.half *= 2;
}

/* Deal out the bodies, by the work that each was the last time. */
static void share_work(struct barnes *b)
{
	uint64_t all = 0, before = 0, ranks = (uint64_t)b->app->ranks;
	uint64_t rank = (uint64_t)b->app->rank;
	long end = 0;

	for (long i = 0; i < b->n; i++)
		all += b->work[i];
	b->first = b->n;
	for (long i = 0; i < b->n; before += b->work[i++]) {
		if (before >= all * rank / ranks && i < b->first)
			b->first = i;
		if (before < all * (rank + 1) / ranks)
			end = i + 1;
	}
	b->count = end > b->first ? end - b->first : 0;
}

static void compute_forces(struct barnes *b)
{
	app_phase(b->app, "shares");
	share_work(b);
	app_phase(b->app, "tree");
	enclose(b);
	if (b->locked)
		build_locked(b);
	else
		build_dealt(b);
	app_phase(b->app, "forces");
	memset(b->pull, 0, (size_t)b->count * sizeof(*b->pull));
	for (long i = 0; i < b->count; i++)
		b->work[b->first + i] = pull_of(b, first_node(b, 0),
						b->first + i, 2 * b->all.half,
						b->pull[i]);
	app_barrier(b->app);
}

static void move(const struct barnes *b)
{
	for (long i = b->first; i < b->first + b->count; i++)
		for (int c = 0; c < 3; c++) {
			b->speed[i][c] += TIME_STEP * b->pull[i - b->first][c];
			b->body[i].at[c] += TIME_STEP * b->speed[i][c];
		}
	app_barrier(b->app);
}

static void run(struct barnes *b)
{
	compute_forces(b);
	for (long i = 0; i < b->steps; i++) {
		move(b);
		compute_forces(b);
	}
}

/* --- the start ------------------------------------------------------------------------------------ */

struct star {
	uint64_t key; /* place along a curve that keeps neighbours together */
	double at[3], speed[3];
};

static void in_direction(uint64_t seed, double size, double *v)
{
	double z = 2 * app_fraction(seed) - 1;
	double turn = 2 * M_PI * app_fraction(seed + 1);

	v[0] = size * sqrt(1 - z * z) * cos(turn);
	v[1] = size * sqrt(1 - z * z) * sin(turn);
	v[2] = size * z;
}

/* A star of Plummer's model, in units in which mass and constant are 1. */
static void make_star(struct star *s, long i)
{
	uint64_t seed = app_hash((uint64_t)i) & ~0xfffull;
	double r = RADIUS_MAX, q, g;

	while (r >= RADIUS_MAX)
		r = 1 / sqrt(pow(app_fraction(seed++), -2.0 / 3) - 1);
	do {
		q = app_fraction(seed++);
		g = 0.1 * app_fraction(seed++);
	} while (g > q * q * pow(1 - q * q, 3.5));
	in_direction(seed, r, s->at);
	in_direction(seed + 2, q * M_SQRT2 * pow(1 + r * r, -0.25), s->speed);
	s->key = 0;
	for (int level = 0; level < KEY_LEVELS; level++)
		for (int c = 0; c < 3; c++) {
			double scaled = (s->at[c] + RADIUS_MAX) /
					(2 * RADIUS_MAX) * (1 << KEY_LEVELS);
			uint64_t bit = (uint64_t)scaled >> level & 1;

			s->key |= bit << (3 * level + c);
		}
}

static int by_key(const void *a, const void *b)
{
	const struct star *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static void make_stars(struct barnes *b)
{
	struct star *star = app_calloc((size_t)b->n, sizeof(*star));

	for (long i = 0; i < b->n; i++)
		make_star(&star[i], i);
	qsort(star, (size_t)b->n, sizeof(*star), by_key);
	for (long i = b->first; i < b->first + b->count; i++) {
		memcpy(b->body[i].at, star[i].at, sizeof(b->body[i].at));
		b->body[i].mass = 1 / (double)b->n;
		memcpy(b->speed[i], star[i].speed, sizeof(b->speed[i]));
		b->work[i] = 1;
	}
	free(star);
}

static void prepare(struct barnes *b, const struct app *a)
{
	b->app = a;
	b->count = app_share(a, b->n, a->rank, &b->first);
	b->room = b->n + SPARE;
	b->pool = first_node(b, a->rank);
	b->body = app_malloc(a, "bodies", (size_t)b->n * sizeof(*b->body));
	b->speed = app_malloc(a, "speeds", (size_t)b->n * sizeof(*b->speed));
	b->work = app_malloc(a, "work", (size_t)b->n * sizeof(*b->work));
	b->node = app_malloc(
		a, "tree", (size_t)(1 + a->ranks * b->room) * sizeof(*b->node));
	b->pull = app_calloc((size_t)b->n, sizeof(*b->pull));
	/* So that the memory is there. */
	memset(&b->node[b->pool], 0, (size_t)b->room * sizeof(*b->node));
	b->list = app_calloc((size_t)b->n, sizeof(*b->list));
	b->spare = app_calloc((size_t)b->n, sizeof(*b->spare));
	b->part_of = app_calloc((size_t)a->ranks, sizeof(*b->part_of));
	make_stars(b);
	app_barrier(a);
}

static void release(struct barnes *b)
{
	free(b->pull);
	free(b->list);
	free(b->spare);
	free(b->part_of);
}

/* --- the check --------------------------------------------------------------------------------------- */

/* How far the forces on some bodies are from the sum over all others, as a part
 * of it, in the mean of squares. */
static double force_error(const struct barnes *b)
{
	double v[2] = { 0, 0 };

	for (long s = 0; s < SAMPLES; s++) {
		long k = (long)(app_hash((uint64_t)s) % (uint64_t)b->n);
		double want[3] = { 0, 0, 0 };

		if (k < b->first || k >= b->first + b->count)
			continue;
		for (long i = 0; i < b->n; i++)
			if (i != k)
				attract(b->body[k].at, b->body[i].at,
					b->body[i].mass, want);
		for (int c = 0; c < 3; c++) {
			double off = b->pull[k - b->first][c] - want[c];

			v[0] += off * off;
			v[1] += want[c] * want[c];
		}
	}
	app_sum(b->app, v, 2);
	return v[1] > 0 ? sqrt(v[0] / v[1]) : v[0];
}

/* Rank 0: whether one rank alone, without locks, moves the bodies to the same
 * places. */
static bool same_alone(const struct app *a, const struct barnes *b)
{
	struct barnes serial = { .n = b->n,
				 .steps = b->steps,
				 .theta = b->theta };
	struct app alone = app_alone(a);
	double off = 0;

	prepare(&serial, &alone);
	run(&serial);
	for (long i = 0; i < b->n; i++)
		for (int c = 0; c < 3; c++)
			off = app_worse(off, fabs(b->body[i].at[c] -
						  serial.body[i].at[c]));
	release(&serial);
	return off <= PLACE_ERROR;
}

int app_main(int argc, char **argv)
{
	struct barnes b = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "bodies", "N", &b.n, 8192, 1000, 2, 4000000, "bodies" },
		{ 's', "steps", "N", &b.steps, 3, 2, 0, 100000,
		  "steps of time" },
		{ 't', "theta", "T", &b.theta, 80, 80, 0, 100,
		  "size over distance, in hundredths, from which a cell "
		  "counts as one body" },
		{ '\0', "locked", NULL, &b.locked, 0, 0, 0, 1,
		  "all build one tree, with a lock for each cell" },
	};
	struct app a = { .name = "barnes",
			 .about =
				 "Stars that attract each other, by the method "
				 "of Barnes and Hut; forces compared with "
				 "direct sums.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	double error, limit;
	bool same = true;

	app_init(&a, argc, argv);
	prepare(&b, &a);
	app_begin(&a);
	run(&b);
	app_end(&a);
	app_report(&a, "%ld bodies, %ld steps, theta %.2f", b.n, b.steps,
		   0.01 * (double)b.theta);
	error = force_error(&b);
	limit = FORCE_ERROR * 1e-4 * (double)(b.theta * b.theta) + PLACE_ERROR;
	if (a.rank == 0)
		same = same_alone(&a, &b);
	release(&b);
	return app_verdict(&a, a.rank || (same && error <= limit),
			   "forces are off by %.4f%% (limit %.2f%%), places "
			   "are those of a serial run: %s",
			   100 * error, 100 * limit, same ? "yes" : "NO");
}
