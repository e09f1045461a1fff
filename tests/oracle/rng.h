/* SPDX-License-Identifier: MIT */
/*
 * rng.h - random numbers that are a function of where they are drawn.
 *
 * Role: splitmix64.  rng_at() gives a generator for one place of a program
 * (thread, round, epoch, burst), so that what happens there depends on the seed
 * alone and not on how many numbers were drawn before.
 */
#ifndef ORACLE_RNG_H
#define ORACLE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return rng_mix(r->state);
}

/* A number in 0 .. n-1; n is 1 .. 2^32-1. */
static inline unsigned int rng_below(struct rng *r, unsigned int n)
{
	return (unsigned int)(((rng_next(r) >> 32) * n) >> 32);
}

static inline unsigned int rng_between(struct rng *r, unsigned int lo,
				       unsigned int hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

static inline bool rng_percent(struct rng *r, unsigned int percent)
{
	return rng_below(r, 100) < percent;
}

static inline struct rng rng_at(uint64_t seed, uint64_t a, uint64_t b,
				uint64_t c)
{
	uint64_t x = rng_mix(seed + 0x9e3779b97f4a7c15ull);

	x = rng_mix(x ^ (a + 0x632be59bd9b4e019ull));
	x = rng_mix(x ^ (b + 0xd1b54a32d192ed03ull));
	x = rng_mix(x ^ (c + 0xaef17502108ef2d9ull));
	return (struct rng){ x };
}

#endif /* ORACLE_RNG_H */
