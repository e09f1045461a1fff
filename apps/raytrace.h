/* SPDX-License-Identifier: MIT */
/*
 * raytrace.h - the scene and the picture of raytrace.c.
 *
 * Role: raytrace_scene.c makes or reads a scene and finds what a ray meets;
 *   raytrace_image.c writes pictures to files; raytrace.c does all else.
 */
#ifndef RAYTRACE_H
#define RAYTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vec {
	double x, y, z;
};

static inline struct vec add(struct vec a, struct vec b)
{
	return (struct vec){ a.x + b.x, a.y + b.y, a.z + b.z };
}

static inline struct vec sub(struct vec a, struct vec b)
{
	return (struct vec){ a.x - b.x, a.y - b.y, a.z - b.z };
}

static inline struct vec scale(double f, struct vec a)
{
	return (struct vec){ f * a.x, f * a.y, f * a.z };
}

static inline double dot(struct vec a, struct vec b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vec cross(struct vec a, struct vec b)
{
	return (struct vec){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
			     a.x * b.y - a.y * b.x };
}

/* One instruction each, which fmin() and fmax() are not: they mind NaNs. */
static inline double lesser(double a, double b)
{
	return a < b ? a : b;
}

static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

enum surface {
	SURFACE_FLOOR, /* squares in two colours */
	SURFACE_METAL, /* mirrors */
	SURFACE_CLAY
};

/* A sphere (centre a, radius) or, with radius 0, a triangle. */
struct shape {
	struct vec a, b, c;
	double radius;
	int32_t surface;
};

/* A box of the tree: two boxes from @first on, or @count shapes. */
struct box {
	struct vec low, high;
	int32_t first, count; /* count 0: boxes */
};

struct scene {
	long shapes, boxes;
	struct shape *shape; /* in the order of the tree */
	struct box *box; /* box[0] has everything in it */
};

struct ray {
	struct vec from, along; /* along has length 1 */
};

struct hit {
	double distance;
	const struct shape *shape; /* NULL: nothing */
};

/* Spheres on spheres, @depth times, on a floor.  In private memory. */
void scene_make(struct scene *s, int depth);
/* The polygons of an OFF file, on a floor.  0, or a negative errno and a text in
 * @why[@size]. */
int scene_read(struct scene *s, const char *path, char *why, size_t size);
void scene_free(struct scene *s);

/* The first shape that @ray meets before @limit. */
struct hit scene_meet(const struct scene *s, const struct ray *ray,
		      double limit);
/* The same without the tree: every shape is tried. */
struct hit scene_try_all(const struct scene *s, const struct ray *ray,
			 double limit);
/* The direction that the surface faces at @at. */
struct vec shape_normal(const struct shape *s, struct vec at);

/* Whether image_write() can write a file of this name; if not, @why says it. */
bool image_can_write(const char *path, const char **why);
/* Pixels are 0xRRGGBB, by rows.  0 or a negative errno. */
int image_write(const char *path, const uint32_t *pixel, long width,
		long height);

#endif /* RAYTRACE_H */
