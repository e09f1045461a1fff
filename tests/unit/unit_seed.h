/* SPDX-License-Identifier: MIT */
/*
 * unit_seed.h - random numbers for unit tests: the seed is printed, and
 * SEED=0x... in the environment replays it.
 */
#ifndef UNIT_SEED_H
#define UNIT_SEED_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

struct unit_rng {
	uint64_t state;
};

/* A generator for the test @name. */
static inline struct unit_rng unit_rng(const char *name)
{
	const char *given = getenv("SEED");
	struct unit_rng r = { 1 };

	if (given)
		r.state = strtoull(given, NULL, 0);
	else if (getrandom(&r.state, sizeof(r.state), 0) !=
		 (ssize_t)sizeof(r.state))
		r.state = 1;
	printf("\n    SEED=0x%" PRIx64 " %s ", r.state, name);
	fflush(stdout);
	return r;
}

/* The next 64 random bits (splitmix64). */
static inline uint64_t unit_next(struct unit_rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* A number from 0 to @n - 1. */
static inline uint32_t unit_below(struct unit_rng *r, uint32_t n)
{
	return (uint32_t)((unit_next(r) >> 32) * n >> 32);
}

#endif /* UNIT_SEED_H */
