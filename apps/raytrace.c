/* SPDX-License-Identifier: MIT */
/*
 * raytrace.c - a picture of shining spheres, or of what an OFF file describes.
 *
 * Role: the program that steals work: how long a tile of the picture takes is
 *   not known before, so who is done with its own tiles takes some of others.
 * Invariant: each tile is in one queue, or was taken from it by one rank, which
 *   alone writes its pixels.  The scene is not changed after the first barrier.
 * Threads: one per rank.
 * Locks: one per queue.
 *
 * The tiles are dealt out in the order of the picture, as its pages are, so that
 * a rank's own tiles are at home; a stolen one is written to another's pages.
 *
 * After: Whitted, An improved illumination model for shaded display, CACM 23
 * (1980); a tree of boxes: Rubin and Whitted (1980); stealing: Blumofe and
 * Leiserson, Scheduling multithreaded computations by work stealing (1994).
 * In the statistics: locks are the tiles taken, and looks into empty queues; the
 * scene is fetched once; diffs only of stolen tiles and where two ranks' meet.
 */
#include "app.h"

#include <math.h>

#include "raytrace.h"

enum {
	TILE = 16, /* pixels a side */
	BOUNCES = 5, /* mirrors that a ray is followed to */
	LIGHTS = 2,
	SAMPLES = 300 /* rays that are tried on all shapes, too */
};

/* What a shadow or mirror ray is lifted off the surface, of the scene's size. */
#define LIFT 1e-7

struct news {
	bool bad;
	char why[256];
	long shapes, boxes;
};

/* Tiles next .. end - 1 are left.  Each on a page of its own. */
struct queue {
	long next, end;
};

struct camera {
	struct vec at, corner, right, down; /* of a pixel */
	struct vec light[LIGHTS];
	double size; /* of the scene */
	struct vec low; /* where the squares of the floor begin */
};

struct raytrace {
	const struct app *app;
	long width, height, depth, rays; /* rays a side of a pixel */
	long across, tiles;
	struct scene scene;
	struct camera camera;
	struct queue **queue; /* [rank] */
	uint32_t *pixel; /* shared, 0xRRGGBB */
};

static const struct vec sky = { 0.55, 0.7, 0.95 };

static struct vec unit(struct vec v)
{
	return scale(1 / sqrt(dot(v, v)), v);
}

/* --- light -------------------------------------------------------------------------------- */

static struct vec colour_of(const struct raytrace *r, const struct hit *hit,
			    struct vec at)
{
	double square = r->camera.size / 6;
	struct vec p = scale(1 / square, sub(at, r->camera.low));

	switch ((enum surface)hit->shape->surface) {
	case SURFACE_FLOOR:
		if (((long)floor(p.x) + (long)floor(p.y)) & 1)
			return (struct vec){ 0.9, 0.85, 0.75 };
		return (struct vec){ 0.3, 0.25, 0.35 };
	case SURFACE_METAL:
		return (struct vec){ 0.75, 0.7, 0.6 };
	case SURFACE_CLAY:
		break;
	}
	return (struct vec){ 0.85, 0.5, 0.35 };
}

static double mirror_of(const struct hit *hit)
{
	return hit->shape->surface == SURFACE_METAL ? 0.5 :
	       hit->shape->surface == SURFACE_FLOOR ? 0.15 :
						      0;
}

/* Light that comes directly from the lamps. */
static struct vec lamps(const struct raytrace *r, struct vec at,
			struct vec normal, struct vec away, struct vec colour)
{
	struct vec sum = scale(0.15, colour);

	for (int i = 0; i < LIGHTS; i++) {
		struct vec to = sub(r->camera.light[i], at);
		double distance = sqrt(dot(to, to)), facing, shine;
		struct ray ray = { at, scale(1 / distance, to) };

		facing = dot(normal, ray.along);
		if (facing <= 0 || scene_meet(&r->scene, &ray, distance).shape)
			continue;
		shine = dot(unit(add(ray.along, away)), normal);
		shine = shine > 0 ? 0.4 * pow(shine, 40) : 0;
		sum = add(sum, add(scale(0.45 * facing, colour),
				   (struct vec){ shine, shine, shine }));
	}
	return sum;
}

/* What is seen along a ray: at each surface some of its own colour, and some of
 * what it mirrors. */
static struct vec see(const struct raytrace *r, struct ray ray)
{
	struct vec sum = { 0, 0, 0 };
	double part = 1;

	for (int i = 0; i < BOUNCES && part > 0; i++) {
		struct hit hit = scene_meet(&r->scene, &ray, HUGE_VAL);
		struct vec at, normal, away = scale(-1, ray.along), own;
		double mirror;

		if (!hit.shape)
			return add(sum, scale(part, sky));
		at = add(ray.from, scale(hit.distance, ray.along));
		normal = shape_normal(hit.shape, at);
		if (dot(normal, away) < 0)
			normal = scale(-1, normal);
		at = add(at, scale(LIFT * r->camera.size, normal));
		mirror = mirror_of(&hit);
		own = lamps(r, at, normal, away, colour_of(r, &hit, at));
		sum = add(sum, scale(part * (1 - mirror), own));
		part *= mirror;
		ray.from = at;
		ray.along =
			unit(sub(scale(2 * dot(normal, away), normal), away));
	}
	return sum;
}

static struct ray ray_at(const struct raytrace *r, double x, double y)
{
	const struct camera *c = &r->camera;
	struct vec to =
		add(c->corner, add(scale(x, c->right), scale(y, c->down)));

	return (struct ray){ c->at, unit(sub(to, c->at)) };
}

static uint32_t byte_of(double x)
{
	x = x < 0 ? 0 : x > 1 ? 1 : x;
	return (uint32_t)(255 * sqrt(x) + 0.5); /* as screens want it */
}

static uint32_t pixel_at(const struct raytrace *r, long x, long y)
{
	struct vec sum = { 0, 0, 0 };
	double n = (double)r->rays;

	for (long i = 0; i < r->rays; i++)
		for (long j = 0; j < r->rays; j++)
			sum = add(
				sum,
				see(r,
				    ray_at(r, (double)x + ((double)j + 0.5) / n,
					   (double)y + ((double)i + 0.5) / n)));
	sum = scale(1 / (n * n), sum);
	return byte_of(sum.x) << 16 | byte_of(sum.y) << 8 | byte_of(sum.z);
}

/* --- tiles --------------------------------------------------------------------------------- */

static void draw(const struct raytrace *r, long tile)
{
	long x0 = tile % r->across * TILE, y0 = tile / r->across * TILE;

	for (long y = y0; y < y0 + TILE && y < r->height; y++)
		for (long x = x0; x < x0 + TILE && x < r->width; x++)
			r->pixel[y * r->width + x] = pixel_at(r, x, y);
}

/* A tile of @rank's queue, or -1: its own are taken from the front, those of
 * others from the back. */
static long take(const struct raytrace *r, int rank)
{
	struct queue *q = r->queue[rank];
	long tile = -1;

	app_lock(r->app, rank);
	if (q->next < q->end)
		tile = rank == r->app->rank ? q->next++ : --q->end;
	app_unlock(r->app, rank);
	return tile;
}

/* My tiles, and then those of others, until there are none.  A queue that was
 * found empty stays so. */
static void draw_all(const struct raytrace *r)
{
	long tile;

	for (int i = 0; i < r->app->ranks; i++)
		while ((tile = take(r, (r->app->rank + i) % r->app->ranks)) >=
		       0)
			draw(r, tile);
}

/* --- the start ------------------------------------------------------------------------------- */

/* Rank 0 makes or reads the scene; all find it in shared memory, or refuse. */
static void load(struct raytrace *r, const char *path)
{
	const struct app *a = r->app;
	struct news *news = app_malloc_on(a, "news", 0, sizeof(*news));
	struct scene mine = { 0 };

	if (a->rank == 0 && path)
		news->bad = scene_read(&mine, path, news->why,
				       sizeof(news->why)) != 0;
	else if (a->rank == 0)
		scene_make(&mine, (int)r->depth);
	if (a->rank == 0) {
		news->shapes = mine.shapes;
		news->boxes = mine.boxes;
	}
	app_barrier(a);
	if (news->bad)
		app_refuse(a, "%s", news->why);
	r->scene.shapes = news->shapes;
	r->scene.boxes = news->boxes;
	r->scene.shape = app_malloc_on(
		a, "shapes", 0, (size_t)news->shapes * sizeof(struct shape));
	r->scene.box = app_malloc_on(a, "boxes", 0,
				     (size_t)news->boxes * sizeof(struct box));
	if (a->rank == 0) {
		memcpy(r->scene.shape, mine.shape,
		       (size_t)mine.shapes * sizeof(struct shape));
		memcpy(r->scene.box, mine.box,
		       (size_t)mine.boxes * sizeof(struct box));
		scene_free(&mine);
	}
	app_barrier(a);
}

/* Look at the scene, which lies on its floor, from above and aside. */
static void aim(struct raytrace *r)
{
	const struct shape *s = r->scene.shape;
	struct vec low = { HUGE_VAL, HUGE_VAL, HUGE_VAL };
	struct vec high = scale(-1, low), middle, ahead, right, up, out;
	struct camera *c = &r->camera;
	double pixel;

	for (long i = 0; i < r->scene.shapes; i++) {
		struct vec v = s[i].a;
		double d = s[i].radius;

		if (s[i].surface == SURFACE_FLOOR)
			continue;
		low = (struct vec){ lesser(low.x, v.x - d),
				    lesser(low.y, v.y - d),
				    lesser(low.z, v.z - d) };
		high = (struct vec){ larger(high.x, v.x + d),
				     larger(high.y, v.y + d),
				     larger(high.z, v.z + d) };
	}
	middle = scale(0.5, add(low, high));
	out = sub(high, low);
	c->size = sqrt(dot(out, out));
	c->low = low;
	ahead = unit((struct vec){ -0.5, 0.8, -0.35 });
	right = unit(cross(ahead, (struct vec){ 0, 0, 1 }));
	up = cross(right, ahead);
	c->at = sub(middle, scale(1.6 * c->size, ahead));
	pixel = 1.0 / (double)(r->width > r->height ? r->height : r->width) *
		c->size;
	c->right = scale(pixel, right);
	c->down = scale(-pixel, up);
	c->corner = sub(middle, add(scale(0.5 * (double)r->width, c->right),
				    scale(0.5 * (double)r->height, c->down)));
	c->light[0] =
		add(middle, scale(2 * c->size, (struct vec){ -0.3, -1, 1.5 }));
	c->light[1] =
		add(middle, scale(2 * c->size, (struct vec){ 1.2, -0.2, 1 }));
}

static void deal(struct raytrace *r)
{
	const struct app *a = r->app;

	r->across = (r->width + TILE - 1) / TILE;
	r->tiles = r->across * ((r->height + TILE - 1) / TILE);
	r->queue = app_calloc((size_t)a->ranks, sizeof(struct queue *));
	for (int i = 0; i < a->ranks; i++) {
		long first, count = app_share(a, r->tiles, i, &first);

		r->queue[i] =
			app_malloc_on(a, "queues", i, sizeof(*r->queue[i]));
		if (i == a->rank)
			*r->queue[i] = (struct queue){ first, first + count };
	}
	r->pixel =
		app_malloc(a, "picture",
			   (size_t)(r->width * r->height) * sizeof(*r->pixel));
	app_barrier(a);
}

/* --- the check ---------------------------------------------------------------------------------- */

/* Rank 0: how many pixels are not those of a serial run. */
static long differences(const struct raytrace *r)
{
	long bad = 0;

	for (long y = 0; y < r->height; y++)
		for (long x = 0; x < r->width; x++)
			bad += r->pixel[y * r->width + x] != pixel_at(r, x, y);
	return bad;
}

/* Rank 0: how many rays meet something else if all shapes are tried.  *@met:
 * how many meet anything. */
static long wrong_rays(const struct raytrace *r, long *met)
{
	long wrong = 0;

	*met = 0;
	for (int i = 0; i < SAMPLES; i++) {
		double x = (double)r->width * app_fraction(2 * (uint64_t)i);
		double y =
			(double)r->height * app_fraction(2 * (uint64_t)i + 1);
		struct ray ray = ray_at(r, x, y);
		struct hit a = scene_meet(&r->scene, &ray, HUGE_VAL);
		struct hit b = scene_try_all(&r->scene, &ray, HUGE_VAL);

		wrong += a.distance < b.distance || a.distance > b.distance;
		*met += b.shape != NULL;
	}
	return wrong;
}

static uint64_t fingerprint(const struct raytrace *r)
{
	uint64_t hash = 0;

	for (long i = 0; i < r->width * r->height; i++)
		hash = app_hash(hash ^ r->pixel[i]);
	return hash;
}

/* Rank 0. */
static void write_picture(const struct app *a, const struct raytrace *r)
{
	int err = image_write(a->output, r->pixel, r->width, r->height);

	if (err)
		app_die("%s: cannot write %s: %s", a->name, a->output,
			strerror(-err));
}

int app_main(int argc, char **argv)
{
	struct raytrace r = { 0 };
	const struct app_opt opts[] = {
		{ 'x', "width", "N", &r.width, 320, 96, 1, 20000,
		  "pixels across" },
		{ 'y', "height", "N", &r.height, 240, 72, 1, 20000,
		  "pixels down" },
		{ 'r', "rays", "N", &r.rays, 1, 1, 1, 16,
		  "rays a side of a pixel: more are smoother" },
		{ 'd', "depth", "N", &r.depth, 3, 2, 0, 6,
		  "spheres on spheres, without FILE" },
	};
	struct app a = { .name = "raytrace",
			 .about = "A picture of a scene, by following rays of "
				  "light; compared with a serial run.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]),
			 .operand = "FILE",
			 .operand_help = "polygons in the format OFF",
			 .output_help = "write the picture: .png or .ppm\n" };
	const char *why;
	long bad = 0, wrong = 0, met = 1;

	app_init(&a, argc, argv);
	if (a.output && !image_can_write(a.output, &why))
		app_refuse(&a, "--output=%s: %s", a.output, why);
	if (a.ranks > APP_LOCKS)
		app_refuse(&a, "%d ranks: at most %d", a.ranks, APP_LOCKS);
	r.app = &a;
	load(&r, a.operand_value);
	aim(&r);
	deal(&r);
	app_begin(&a);
	draw_all(&r);
	app_end(&a);
	app_report(&a, "%ld x %ld pixels, %ld shapes", r.width, r.height,
		   r.scene.shapes);
	if (a.rank == 0) {
		bad = differences(&r);
		wrong = wrong_rays(&r, &met);
	}
	if (a.rank == 0 && a.output)
		write_picture(&a, &r);
	free(r.queue);
	return app_verdict(&a, !bad && !wrong && met,
			   "%ld of %ld pixels differ from a serial run, %ld of "
			   "%d rays from trying all shapes; picture %016llx",
			   bad, r.width * r.height, wrong, SAMPLES,
			   a.rank ? 0 : (unsigned long long)fingerprint(&r));
}
