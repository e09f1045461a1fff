/* SPDX-License-Identifier: MIT */
/*
 * raytrace_scene.c - scenes, and what a ray meets in them.
 *
 * Role: raytrace.h says it.
 * Invariant: every shape of a box of the tree lies in it, a box in the one above.
 *   So a ray that misses a box misses all that is in it.
 * Threads: any; a scene is not changed once it is made.
 * Locks: none.
 *
 * The spheres: each has nine of a third of its radius on it, six around and three
 * above, as in Haines, A proposal for standard graphics environments, IEEE
 * Computer Graphics 7 (1987).  Triangles: Moller and Trumbore, Fast, minimum
 * storage ray/triangle intersection (1997).
 */
#include "raytrace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "text_file.h"

enum {
	BOX_SHAPES = 4, /* of a box that is not divided, at most */
	TREE_DEPTH = 64, /* boxes in boxes; each has half the shapes */
	OFF_LINE = 1024, /* bytes of a line */
	OFF_MAX = 4000000, /* corners, and polygons */
	OFF_SIDES = 64 /* corners of a polygon */
};

#define NEAR 1e-9 /* what is nearer is where the ray begins */

/* --- making ---------------------------------------------------------------------------- */

struct maker {
	struct scene *s;
	long room;
};

static void put_shape(struct maker *m, const struct shape *shape)
{
	if (m->s->shapes == m->room) {
		long room = m->room ? 2 * m->room : 256;
		struct shape *p =
			realloc(m->s->shape, (size_t)room * sizeof(*p));

		if (!p)
			app_die("no memory for %ld shapes", room);
		m->s->shape = p;
		m->room = room;
	}
	m->s->shape[m->s->shapes++] = *shape;
}

static struct vec unit(struct vec v)
{
	return scale(1 / sqrt(dot(v, v)), v);
}

/* A sphere that stands on another in direction @up, and those on it. */
static void flake(struct maker *m, struct vec at, double radius, struct vec up,
		  int depth)
{
	struct shape ball = { .a = at,
			      .radius = radius,
			      .surface = SURFACE_METAL };
	struct vec side =
		unit(cross(up, fabs(up.x) < 0.8 ? (struct vec){ 1, 0, 0 } :
						  (struct vec){ 0, 1, 0 }));
	struct vec front = cross(up, side);

	put_shape(m, &ball);
	for (int i = 0; i < 9 && depth > 0; i++) {
		double turn = i < 6 ? i * M_PI / 3 : (2 * i + 1) * M_PI / 3;
		double rise = i < 6 ? 0 : M_PI / 3;
		struct vec out =
			add(scale(sin(rise), up),
			    scale(cos(rise), add(scale(cos(turn), side),
						 scale(sin(turn), front))));

		flake(m, add(at, scale(radius * 4 / 3, out)), radius / 3, out,
		      depth - 1);
	}
}

static void include(struct box *box, struct vec v)
{
	box->low = (struct vec){ lesser(box->low.x, v.x),
				 lesser(box->low.y, v.y),
				 lesser(box->low.z, v.z) };
	box->high = (struct vec){ larger(box->high.x, v.x),
				  larger(box->high.y, v.y),
				  larger(box->high.z, v.z) };
}

static void include_shape(struct box *box, const struct shape *s)
{
	struct vec r = { s->radius, s->radius, s->radius };

	include(box, s->radius > 0 ? add(s->a, r) : s->a);
	include(box, s->radius > 0 ? sub(s->a, r) : s->b);
	if (s->radius <= 0)
		include(box, s->c);
}

static struct box around(const struct shape *shape, long count)
{
	struct box box = { .low = { HUGE_VAL, HUGE_VAL, HUGE_VAL },
			   .high = { -HUGE_VAL, -HUGE_VAL, -HUGE_VAL } };

	for (long i = 0; i < count; i++)
		include_shape(&box, &shape[i]);
	return box;
}

/* Two triangles below all that is there, three times as wide. */
static void put_floor(struct maker *m)
{
	struct box all = around(m->s->shape, m->s->shapes);
	struct vec middle = scale(0.5, add(all.low, all.high));
	double half =
		3 * larger(all.high.x - all.low.x, all.high.y - all.low.y);
	struct shape t = { .a = { middle.x - half, middle.y - half, all.low.z },
			   .b = { middle.x + half, middle.y - half, all.low.z },
			   .c = { middle.x + half, middle.y + half, all.low.z },
			   .surface = SURFACE_FLOOR };

	put_shape(m, &t);
	t.b = t.c;
	t.c = (struct vec){ middle.x - half, middle.y + half, all.low.z };
	put_shape(m, &t);
}

/* --- the tree ----------------------------------------------------------------------------- */

static double middle(const struct shape *s, int axis)
{
	struct vec v = s->radius > 0 ?
			       s->a :
			       scale(1.0 / 3, add(s->a, add(s->b, s->c)));

	return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

static int by_x(const void *a, const void *b)
{
	double x = middle(a, 0), y = middle(b, 0);

	return (x > y) - (x < y);
}

static int by_y(const void *a, const void *b)
{
	double x = middle(a, 1), y = middle(b, 1);

	return (x > y) - (x < y);
}

static int by_z(const void *a, const void *b)
{
	double x = middle(a, 2), y = middle(b, 2);

	return (x > y) - (x < y);
}

/* Put shapes first .. first + count - 1 into box @at: halves along its longest
 * side. */
static void grow(struct scene *s, long at, long first, long count)
{
	static int (*const by[])(const void *, const void *) = { by_x, by_y,
								 by_z };
	struct box *box = &s->box[at];
	struct vec size;
	int axis;

	*box = around(s->shape + first, count);
	box->first = (int32_t)first;
	box->count = (int32_t)count;
	if (count <= BOX_SHAPES)
		return;
	size = sub(box->high, box->low);
	axis = size.x > size.y ? 0 : 1;
	if (size.z > larger(size.x, size.y))
		axis = 2;
	qsort(s->shape + first, (size_t)count, sizeof(*s->shape), by[axis]);
	box->first = (int32_t)s->boxes;
	box->count = 0;
	s->boxes += 2;
	grow(s, box->first, first, count / 2);
	grow(s, box->first + 1, first + count / 2, count - count / 2);
}

static void finish(struct maker *m)
{
	put_floor(m);
	m->s->box = app_calloc((size_t)m->s->shapes * 2, sizeof(*m->s->box));
	m->s->boxes = 1;
	grow(m->s, 0, 0, m->s->shapes);
}

void scene_make(struct scene *s, int depth)
{
	struct maker m = { .s = s };

	memset(s, 0, sizeof(*s));
	flake(&m, (struct vec){ 0, 0, 0 }, 1, (struct vec){ 0, 0, 1 }, depth);
	finish(&m);
}

void scene_free(struct scene *s)
{
	free(s->shape);
	free(s->box);
}

/* --- OFF files ------------------------------------------------------------------------------ */

struct off_file {
	struct text_file in;
	long corners, polygons;
	struct vec *corner;
};

/* The next line that has something before a '#', without that. */
static int off_line(struct off_file *t, char *line)
{
	int err;

	do {
		err = text_line(&t->in, line, OFF_LINE + 1);
		if (!err)
			line[strcspn(line, "#\r\n")] = '\0';
	} while (!err && line[strspn(line, " \t")] == '\0');
	return err;
}

/* The first three numbers of a line; false if there are less. */
static bool off_numbers(const char *line, double v[3])
{
	for (int i = 0; i < 3; i++) {
		char *end;

		v[i] = strtod(line, &end);
		if (end == line)
			return false;
		line = end;
	}
	return true;
}

static int off_head(struct off_file *t)
{
	char line[OFF_LINE + 1], word[8] = "";
	double size[3]; /* corners, polygons, edges */
	int err = off_line(t, line);

	if (err)
		return err;
	if (sscanf(line, "%7s", word) != 1 || strcmp(word, "OFF") != 0)
		return text_bad(&t->in, "'%s' where OFF is expected", word);
	err = off_line(t, line);
	if (err)
		return err;
	if (!off_numbers(line, size))
		return text_bad(&t->in, "not a size: corners, polygons, edges");
	if (!(size[0] >= 3 && size[0] <= OFF_MAX && size[1] >= 1 &&
	      size[1] <= OFF_MAX))
		return text_bad(&t->in,
				"%.0f corners (3..%d), %.0f polygons (1..%d)",
				size[0], OFF_MAX, size[1], OFF_MAX);
	t->corners = (long)size[0];
	t->polygons = (long)size[1];
	return 0;
}

static int off_corner(struct off_file *t, struct vec *v)
{
	char line[OFF_LINE + 1];
	int err = off_line(t, line);
	double at[3];

	if (err)
		return err;
	if (!off_numbers(line, at))
		return text_bad(&t->in, "not a corner: x, y, z");
	*v = (struct vec){ at[0], at[1], at[2] };
	if (!(fabs(v->x) < 1e9 && fabs(v->y) < 1e9 && fabs(v->z) < 1e9))
		return text_bad(&t->in, "a corner farther than 1e9 away");
	return 0;
}

/* A polygon becomes triangles that have its first corner in common. */
static int off_polygon(struct off_file *t, struct maker *m)
{
	char line[OFF_LINE + 1], *at = line, *end;
	long sides, corner[OFF_SIDES];
	int err = off_line(t, line);

	if (err)
		return err;
	sides = strtol(at, &end, 10);
	if (end == at || sides < 3 || sides > OFF_SIDES)
		return text_bad(&t->in, "not a polygon of 3 to %d corners",
				OFF_SIDES);
	for (long i = 0; i < sides; i++) {
		at = end;
		corner[i] = strtol(at, &end, 10);
		if (end == at || corner[i] < 0 || corner[i] >= t->corners)
			return text_bad(&t->in,
					"corner %ld of the polygon is not 0 "
					"to %ld",
					i + 1, t->corners - 1);
	}
	for (long i = 2; i < sides; i++) {
		struct shape s = { .a = t->corner[corner[0]],
				   .b = t->corner[corner[i - 1]],
				   .c = t->corner[corner[i]],
				   .surface = SURFACE_CLAY };
		struct vec across = cross(sub(s.b, s.a), sub(s.c, s.a));

		if (dot(across, across) > 0) /* else nothing can be seen */
			put_shape(m, &s);
	}
	return 0;
}

static int off_all(struct off_file *t, struct maker *m)
{
	int err = off_head(t);

	if (err)
		return err;
	t->corner = app_calloc((size_t)t->corners, sizeof(*t->corner));
	for (long i = 0; !err && i < t->corners; i++)
		err = off_corner(t, &t->corner[i]);
	for (long i = 0; !err && i < t->polygons; i++)
		err = off_polygon(t, m);
	if (!err && !m->s->shapes)
		err = text_bad(&t->in, "no polygon has an area");
	free(t->corner);
	return err;
}

int scene_read(struct scene *s, const char *path, char *why, size_t size)
{
	struct off_file t = { .in = { .path = path, .why = why, .size = size } };
	struct maker m = { .s = s };
	int err;

	memset(s, 0, sizeof(*s));
	err = text_open(&t.in);
	if (err)
		return err;
	err = off_all(&t, &m);
	fclose(t.in.f);
	if (err)
		scene_free(s);
	else
		finish(&m);
	return err;
}

/* --- rays --------------------------------------------------------------------------------------- */

static double meet_sphere(const struct shape *s, const struct ray *ray)
{
	struct vec to = sub(s->a, ray->from);
	double along = dot(to, ray->along);
	double root = s->radius * s->radius - dot(to, to) + along * along;

	if (root < 0)
		return HUGE_VAL;
	root = sqrt(root);
	if (along - root > NEAR)
		return along - root;
	return along + root > NEAR ? along + root : HUGE_VAL;
}

static double meet_triangle(const struct shape *s, const struct ray *ray)
{
	struct vec ab = sub(s->b, s->a), ac = sub(s->c, s->a);
	struct vec p = cross(ray->along, ac), to = sub(ray->from, s->a), q;
	double det = dot(ab, p), u, v, distance;

	if (fabs(det) < 1e-300)
		return HUGE_VAL;
	u = dot(to, p) / det;
	if (u < 0 || u > 1)
		return HUGE_VAL;
	q = cross(to, ab);
	v = dot(ray->along, q) / det;
	distance = dot(ac, q) / det;
	return v < 0 || u + v > 1 || distance < NEAR ? HUGE_VAL : distance;
}

static void try_shape(const struct shape *s, const struct ray *ray,
		      struct hit *best)
{
	double distance = s->radius > 0 ? meet_sphere(s, ray) :
					  meet_triangle(s, ray);

	if (distance < best->distance) {
		best->distance = distance;
		best->shape = s;
	}
}

/* Where @ray enters a box; HUGE_VAL if it does not, before @limit. */
static double enter(const struct box *b, const struct ray *ray,
		    const struct vec *inverse, double limit)
{
	double x0 = (b->low.x - ray->from.x) * inverse->x;
	double x1 = (b->high.x - ray->from.x) * inverse->x;
	double y0 = (b->low.y - ray->from.y) * inverse->y;
	double y1 = (b->high.y - ray->from.y) * inverse->y;
	double z0 = (b->low.z - ray->from.z) * inverse->z;
	double z1 = (b->high.z - ray->from.z) * inverse->z;
	double in = larger(larger(lesser(x0, x1), lesser(y0, y1)),
			   larger(lesser(z0, z1), 0));
	double out = lesser(lesser(larger(x0, x1), larger(y0, y1)),
			    lesser(larger(z0, z1), limit));

	/* What is flat or just touched counts as met. */
	return in <= out * (1 + 1e-12) ? in : HUGE_VAL;
}

struct hit scene_meet(const struct scene *s, const struct ray *ray,
		      double limit)
{
	struct vec inverse = { 1 / ray->along.x, 1 / ray->along.y,
			       1 / ray->along.z };
	struct hit best = { .distance = limit };
	int32_t todo[TREE_DEPTH];
	int left = 1;

	todo[0] = 0;
	while (left) {
		const struct box *b = &s->box[todo[--left]];

		if (enter(b, ray, &inverse, best.distance) >= HUGE_VAL)
			continue;
		for (int32_t i = 0; i < b->count; i++)
			try_shape(&s->shape[b->first + i], ray, &best);
		if (!b->count) {
			double one = enter(&s->box[b->first], ray, &inverse,
					   best.distance);
			double two = enter(&s->box[b->first + 1], ray, &inverse,
					   best.distance);

			/* The nearer one is looked at first. */
			todo[left++] = b->first + (one <= two);
			todo[left++] = b->first + !(one <= two);
		}
	}
	return best;
}

struct hit scene_try_all(const struct scene *s, const struct ray *ray,
			 double limit)
{
	struct hit best = { .distance = limit };

	for (long i = 0; i < s->shapes; i++)
		try_shape(&s->shape[i], ray, &best);
	return best;
}

struct vec shape_normal(const struct shape *s, struct vec at)
{
	if (s->radius > 0)
		return scale(1 / s->radius, sub(at, s->a));
	return unit(cross(sub(s->b, s->a), sub(s->c, s->a)));
}
