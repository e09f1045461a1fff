/* SPDX-License-Identifier: MIT */
/*
 * ep.c - the "embarrassingly parallel" kernel of the NAS benchmarks: pairs of
 * normally distributed numbers by the polar method, counted in square annuli.
 *
 * Role: the program that computes alone and meets others once: its time should
 *   not depend on the shared memory at all.
 * Invariant: the k-th pair is the same whatever the number of ranks, since a
 *   rank jumps to its place in the one sequence of random numbers.
 * Threads: one per rank.
 * Locks: lock 0 guards the shared totals.
 *
 * The generator is NAS's: x' = 5^13 x mod 2^46, in whole numbers here.  NAS does
 * it in doubles, exactly too, so that counts agree to the last pair.
 *
 * After: Bailey et al., The NAS parallel benchmarks, RNR-94-007 (1994).
 * In the statistics: one lock and two barriers a rank, one page; all time else
 * is the program's.
 */
#include "app.h"

#include <math.h>

#define SEED 271828183u
#define FACTOR 1220703125u /* 5^13 */
#define MASK ((1ull << 46) - 1)

enum {
	ANNULI = 10
};

struct tally {
	uint64_t count[ANNULI]; /* pairs by the larger of |X|, |Y| */
	double x, y; /* sums */
};

/* NAS's published sums, and the pairs accepted, where they are known. */
static const struct known {
	long m;
	uint64_t pairs;
	double x, y;
} known[] = {
	{ 24, 13176389, -3.247834652034740e3, -6.958407078382297e3 },
	{ 25, 26354769, -2.863319731645753e3, -6.320053679109499e3 },
	{ 28, 210832767, -4.295875165629892e3, -1.580732573678431e4 },
};

static uint64_t accepted(const struct tally *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < ANNULI; i++)
		sum += t->count[i];
	return sum;
}

/* The @k-th random number after the seed, as the generator's state. */
static uint64_t jump(uint64_t k)
{
	uint64_t x = SEED, f = FACTOR;

	for (; k; k >>= 1) {
		if (k & 1)
			x = x * f & MASK;
		f = f * f & MASK;
	}
	return x;
}

/* The next random number in -1 .. 1. */
static double next(uint64_t *state)
{
	*state = *state * FACTOR & MASK;
	return 2 * ((double)*state * 0x1p-46) - 1;
}

/* Count @pairs pairs whose random numbers follow @state. */
static void tally_pairs(struct tally *t, uint64_t state, uint64_t pairs)
{
	for (uint64_t i = 0; i < pairs; i++) {
		double x = next(&state), y = next(&state);
		double square = x * x + y * y, f;

		if (square > 1)
			continue;
		f = sqrt(-2 * log(square) / square);
		x *= f;
		y *= f;
		t->count[(int)fmax(fabs(x), fabs(y))]++;
		t->x += x;
		t->y += y;
	}
}

static void tally_add(struct tally *sum, const struct tally *t)
{
	for (int i = 0; i < ANNULI; i++)
		sum->count[i] += t->count[i];
	sum->x += t->x;
	sum->y += t->y;
}

/* Sums in another order differ in the last digits; NAS allows 1e-8.  Not true
 * for a NaN. */
static bool is_close(double a, double b)
{
	return fabs(a - b) <= 1e-8 * fabs(b);
}

/* Is the result right?  What it was compared with goes to @reference. */
static bool check(const struct tally *t, long m, const char **reference)
{
	struct tally serial = { 0 };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].m == m) {
			*reference = "NAS's published result";
			return accepted(t) == known[i].pairs &&
			       is_close(t->x, known[i].x) &&
			       is_close(t->y, known[i].y);
		}
	*reference = "a serial run";
	tally_pairs(&serial, SEED, 1ull << m);
	return !memcmp(t->count, serial.count, sizeof(serial.count)) &&
	       is_close(t->x, serial.x) && is_close(t->y, serial.y);
}

int app_main(int argc, char **argv)
{
	long m, first, count;
	const struct app_opt opts[] = {
		{ 'm', "log2-pairs", "M", &m, 24, 18, 1, 32,
		  "2^M pairs of random numbers" },
	};
	struct app a = { .name = "ep",
			 .about = "Pairs of normally distributed numbers, as "
				  "in the NAS benchmark EP.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	const char *reference = "";
	struct tally mine = { 0 }, *all;
	bool good = true;

	app_init(&a, argc, argv);
	all = app_malloc_on(&a, "totals", 0, sizeof(*all));
	app_begin(&a);
	count = app_share(&a, 1l << m, a.rank, &first);
	tally_pairs(&mine, jump(2 * (uint64_t)first), (uint64_t)count);
	app_lock(&a, 0);
	tally_add(all, &mine);
	app_unlock(&a, 0);
	app_end(&a);
	app_report(&a, "2^%ld pairs, sums %.9e %.9e", m, all->x, all->y);
	if (a.rank == 0)
		good = check(all, m, &reference);
	return app_verdict(&a, good, "%llu accepted pairs, compared with %s",
			   (unsigned long long)accepted(all), reference);
}
