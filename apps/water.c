/* SPDX-License-Identifier: MIT */
/*
 * water.c - water molecules that attract and repel each other, each one each
 * other one.
 *
 * Role: the program of sums that all ranks add to: each computes forces on all
 *   molecules, adds up its own part of them by itself, and then adds that where
 *   they belong; so each force moves from rank to rank every step.
 * Invariant: positions are written by the owner between two barriers in which
 *   nobody reads them; a force by its owner there, and with its lock held else.
 * Threads: one per rank.
 * Locks: one for each rank's molecules, or with --grain=N for N of them, by the
 *   address of the first one's force.
 *
 * Flexible molecules: springs for bonds and angle, charges, and Lennard-Jones
 * between oxygens.  What two molecules do to each other fades out smoothly
 * towards half the box, so that the energy is conserved; the box is periodic.
 * Velocity Verlet.  Pairs: molecule i with the n/2 that follow it, cyclically.
 *
 * After: Wu, Tepper and Voth, Flexible simple point-charge water model with
 * improved liquid-state properties, J. Chem. Phys. 124 (2006); Swope et al., J.
 * Chem. Phys. 76 (1982), for the integration.
 * In the statistics: as many locks each step as ranks times ranks (--grain=1: times
 * molecules, at most), and time in them; diffs of forces, several ranks' in each
 * page.
 */
#include "app.h"

#include <math.h>

enum {
	ATOMS = 3, /* of a molecule: O, H, H */
	NUMBERS = 3 * ATOMS /* coordinates of a molecule */
};

/* Units: angstrom, picosecond, atomic mass; so energies are 0.01 kJ/mol. */
#define KCAL 418.4
#define COULOMB 138935.458 /* between two unit charges at 1 angstrom */
#define DENSITY 0.0334 /* molecules in a cubic angstrom */
#define BOND 1.012
#define BOND_SPRING (1059.162 * KCAL)
#define ANGLE (113.24 * M_PI / 180)
#define ANGLE_SPRING (75.90 * KCAL)
#define LJ_EPSILON (0.1554253 * KCAL)
#define LJ_SIGMA 3.165492
#define THERMAL 2.5 /* typical velocity at the start, a tenth of it for O */
#define FADE 0.8 /* of the cut-off distance: from there to it forces fade */

/* What is allowed: a drift of the energy, as a part of the kinetic one;
 * a sum of impulses, as a part of their sizes; a difference from a serial run,
 * of the energy as a part of it, and of positions. */
#define DRIFT_MAX 1e-2
#define IMPULSE_MAX 1e-10
#define ENERGY_ERROR 1e-9
#define PLACE_ERROR 1e-6

static const double mass[ATOMS] = { 15.9994, 1.008, 1.008 };
static const double charge[ATOMS] = { -0.82, 0.41, 0.41 };

struct molecule {
	double at[NUMBERS];
};

struct energy {
	double kinetic, potential;
};

struct water {
	const struct app *app;
	long n, steps, step_as; /* attoseconds */
	long grain; /* molecules that a lock guards; 0: those of a rank */
	double box, cutoff, dt;
	long first, count; /* my molecules */
	struct molecule *place, *force; /* shared */
	struct molecule *speed; /* private: of mine */
	struct molecule *sum; /* private: forces on all that I computed */
};

/* --- within a molecule ------------------------------------------------------------------ */

/* The spring between O and H number @h; adds forces, returns the energy. */
static double bond(const double *at, double *force, int h)
{
	double d[3], r = 0, pull;

	for (int i = 0; i < 3; i++) {
		d[i] = at[3 * h + i] - at[i];
		r += d[i] * d[i];
	}
	r = sqrt(r);
	pull = BOND_SPRING * (r - BOND) / r;
	for (int i = 0; i < 3; i++) {
		force[i] += pull * d[i];
		force[3 * h + i] -= pull * d[i];
	}
	return 0.5 * BOND_SPRING * (r - BOND) * (r - BOND);
}

static double angle(const double *at, double *force)
{
	double u[3], v[3], ru = 0, rv = 0, cosine = 0, off, turn;

	for (int i = 0; i < 3; i++) {
		u[i] = at[3 + i] - at[i];
		v[i] = at[6 + i] - at[i];
		ru += u[i] * u[i];
		rv += v[i] * v[i];
		cosine += u[i] * v[i];
	}
	ru = sqrt(ru);
	rv = sqrt(rv);
	cosine /= ru * rv;
	off = acos(cosine) - ANGLE;
	turn = ANGLE_SPRING * off / sqrt(1 - cosine * cosine);
	for (int i = 0; i < 3; i++) {
		double a = turn * (v[i] / rv - cosine * u[i] / ru) / ru;
		double b = turn * (u[i] / ru - cosine * v[i] / rv) / rv;

		force[3 + i] += a;
		force[6 + i] += b;
		force[i] -= a + b;
	}
	return 0.5 * ANGLE_SPRING * off * off;
}

/* --- between molecules ------------------------------------------------------------------- */

/* How much of a pair counts at the distance @r: 1, then less, 0 from the cut-off
 * on; with two continuous derivatives.  *@slope is the first. */
static double fade(const struct water *w, double r, double *slope)
{
	double width = (1 - FADE) * w->cutoff;
	double x = (r - FADE * w->cutoff) / width;

	*slope = 0;
	if (x <= 0)
		return 1;
	if (x >= 1)
		return 0;
	*slope = -30 * x * x * (1 - x) * (1 - x) / width;
	return 1 - x * x * x * (10 - x * (15 - 6 * x));
}

/* Charges: forces on the atoms of both, times @part; returns the energy.  The
 * second molecule is @shift away from where it says. */
static double charges(const double *a, const double *b, const double *shift,
		      double part, double *on_a, double *on_b)
{
	double energy = 0;

	for (size_t i = 0; i < ATOMS; i++)
		for (size_t j = 0; j < ATOMS; j++) {
			double x = b[3 * j] - a[3 * i] + shift[0];
			double y = b[3 * j + 1] - a[3 * i + 1] + shift[1];
			double z = b[3 * j + 2] - a[3 * i + 2] + shift[2];
			double square = x * x + y * y + z * z;
			double e =
				COULOMB * charge[i] * charge[j] / sqrt(square);
			double f = part * e / square;

			energy += e;
			on_a[3 * i] -= f * x;
			on_a[3 * i + 1] -= f * y;
			on_a[3 * i + 2] -= f * z;
			on_b[3 * j] += f * x;
			on_b[3 * j + 1] += f * y;
			on_b[3 * j + 2] += f * z;
		}
	return energy;
}

/* What molecules @i and @j do to each other; returns the energy. */
static double pair(const struct water *w, long i, long j)
{
	const double *a = w->place[i].at, *b = w->place[j].at;
	double *on_a = w->sum[i].at, *on_b = w->sum[j].at;
	double d[3], shift[3], r = 0, part, slope, energy, six, pull;

	for (int k = 0; k < 3; k++) {
		d[k] = b[k] - a[k];
		shift[k] = -w->box * rint(d[k] / w->box);
		d[k] += shift[k];
		r += d[k] * d[k];
	}
	if (r >= w->cutoff * w->cutoff)
		return 0;
	six = pow(LJ_SIGMA * LJ_SIGMA / r, 3);
	r = sqrt(r);
	part = fade(w, r, &slope);
	energy = 4 * LJ_EPSILON * (six * six - six);
	energy += charges(a, b, shift, part, on_a, on_b);
	pull = -part * 24 * LJ_EPSILON * (2 * six * six - six) / (r * r) +
	       slope * energy / r;
	for (int k = 0; k < 3; k++) {
		on_a[k] += pull * d[k];
		on_b[k] -= pull * d[k];
	}
	return part * energy;
}

/* --- a step ----------------------------------------------------------------------------------- */

/* Forces of my pairs into the private sums; returns their energy. */
static double my_forces(struct water *w)
{
	double energy = 0;

	memset(w->sum, 0, (size_t)w->n * sizeof(*w->sum));
	for (long i = w->first; i < w->first + w->count; i++) {
		const double *at = w->place[i].at;
		double *force = w->sum[i].at;
		long others = (w->n - 1) / 2;

		if (w->n % 2 == 0 && i < w->n / 2)
			others++;
		energy += bond(at, force, 1) + bond(at, force, 2) +
			  angle(at, force);
		for (long k = 1; k <= others; k++)
			energy += pair(w, i, (i + k) % w->n);
	}
	return energy;
}

/* Whether I have computed any force on molecule @i. */
static bool has_force(const struct water *w, long i)
{
	for (int c = 0; c < NUMBERS; c++)
		if (w->sum[i].at[c] < 0 || w->sum[i].at[c] > 0)
			return true;
	return false;
}

/* Add the private sums of molecules @i .. @end - 1, which have one lock. */
static void add_part(const struct water *w, long i, long end)
{
	const void *lock = w->force[i].at;

	while (i < end && !has_force(w, i))
		i++;
	if (i == end)
		return;
	app_lock_at(w->app, lock);
	for (; i < end; i++)
		for (int c = 0; c < NUMBERS; c++)
			w->force[i].at[c] += w->sum[i].at[c];
	app_unlock_at(w->app, lock);
}

/* Add the private sums where they belong, mine first. */
static void add_forces(const struct water *w)
{
	const struct app *a = w->app;

	for (int r = 0; r < a->ranks; r++) {
		long i, end, part;

		part = app_share(a, w->n, (a->rank + r) % a->ranks, &i);
		end = i + part;
		part = w->grain ? w->grain : part;
		for (; i < end; i += part)
			add_part(w, i, i + part < end ? i + part : end);
	}
}

/* Half a step of the speeds of mine. */
static void push(const struct water *w)
{
	for (long i = 0; i < w->count; i++)
		for (int c = 0; c < NUMBERS; c++)
			w->speed[i].at[c] += 0.5 * w->dt *
					     w->force[w->first + i].at[c] /
					     mass[c / 3];
}

static double compute_forces(struct water *w)
{
	double energy;

	app_barrier(w->app);
	app_phase(w->app, "forces");
	energy = my_forces(w);
	app_phase(w->app, "adding up");
	add_forces(w);
	app_barrier(w->app);
	app_phase(w->app, "moving");
	return energy;
}

static void move(const struct water *w)
{
	for (long i = 0; i < w->count; i++)
		for (int c = 0; c < NUMBERS; c++) {
			w->place[w->first + i].at[c] +=
				w->dt * w->speed[i].at[c];
			w->force[w->first + i].at[c] = 0;
		}
}

/* The energies of all, given mine of pairs.  *@impulse: the sum of all impulses
 * as a part of the sum of their sizes. */
static struct energy energy_of(const struct water *w, double potential,
			       double *impulse)
{
	double v[6] = { potential };

	for (long i = 0; i < w->count; i++)
		for (int c = 0; c < NUMBERS; c++) {
			double p = mass[c / 3] * w->speed[i].at[c];

			v[1] += 0.5 * p * w->speed[i].at[c];
			v[2] += fabs(p);
			v[3 + c % 3] += p;
		}
	app_sum(w->app, v, 6);
	*impulse = (fabs(v[3]) + fabs(v[4]) + fabs(v[5])) / v[2];
	return (struct energy){ .kinetic = v[1], .potential = v[0] };
}

static void run(struct water *w, struct energy *before, struct energy *after,
		double *impulse)
{
	double potential = compute_forces(w);

	*before = energy_of(w, potential, impulse);
	for (long i = 0; i < w->steps; i++) {
		push(w);
		move(w);
		potential = compute_forces(w);
		push(w);
	}
	*after = energy_of(w, potential, impulse);
}

/* --- the start ----------------------------------------------------------------------------------- */

/* A random direction that depends on @seed only. */
static void direction(uint64_t seed, double *d)
{
	double z = 2 * app_fraction(seed) - 1;
	double turn = 2 * M_PI * app_fraction(~seed);

	d[0] = sqrt(1 - z * z) * cos(turn);
	d[1] = sqrt(1 - z * z) * sin(turn);
	d[2] = z;
}

/* A molecule at a place of the lattice, turned at random. */
static void put(const struct water *w, long i, double *at)
{
	long side = (long)ceil(cbrt((double)w->n) - 1e-9);
	long cell[3] = { i % side, i / side % side, i / side / side };
	double u[3], v[3], dot = 0, norm = 0;

	direction(2 * (uint64_t)i, u);
	direction(2 * (uint64_t)i + 1, v);
	for (int c = 0; c < 3; c++)
		dot += u[c] * v[c];
	for (int c = 0; c < 3; c++) { /* v: across u */
		v[c] -= dot * u[c];
		norm += v[c] * v[c];
	}
	for (int c = 0; c < 3; c++) {
		double along = BOND * cos(ANGLE / 2) * u[c];
		double across = BOND * sin(ANGLE / 2) * v[c] / sqrt(norm);

		at[c] = ((double)cell[c] + 0.5) * w->box / (double)side;
		at[3 + c] = at[c] + along + across;
		at[6 + c] = at[c] + along - across;
	}
}

/* Random speeds, so that the sum of impulses is zero: hydrogens of one molecule
 * move against each other, oxygens against the next molecule's. */
static void start_moving(const struct water *w, long i, double *speed)
{
	long other = i ^ 1;
	double d[3];

	direction(~(uint64_t)i, d);
	for (int c = 0; c < 3; c++) {
		speed[3 + c] = THERMAL * d[c];
		speed[6 + c] = -THERMAL * d[c];
	}
	direction(~(uint64_t)(i / 2) ^ 1ull << 40, d);
	for (int c = 0; c < 3; c++)
		speed[c] = other < w->n ?
				   0.1 * THERMAL * (i & 1 ? -d[c] : d[c]) :
				   0;
}

static void prepare(struct water *w, const struct app *a)
{
	size_t bytes = (size_t)w->n * sizeof(struct molecule);

	w->app = a;
	w->dt = 1e-6 * (double)w->step_as;
	w->box = cbrt((double)w->n / DENSITY);
	w->cutoff = w->box / 2;
	w->count = app_share(a, w->n, a->rank, &w->first);
	w->place = app_malloc(a, "places", bytes);
	w->force = app_malloc(a, "forces", bytes);
	w->speed = app_calloc((size_t)w->count, sizeof(*w->speed));
	w->sum = app_calloc((size_t)w->n, sizeof(*w->sum));
	for (long i = 0; i < w->count; i++) {
		put(w, w->first + i, w->place[w->first + i].at);
		start_moving(w, w->first + i, w->speed[i].at);
	}
}

static void release(struct water *w)
{
	free(w->speed);
	free(w->sum);
}

/* --- the check --------------------------------------------------------------------------------------- */

/* Rank 0: whether one rank alone gets the same. */
static bool same_alone(const struct app *a, const struct water *w,
		       const struct energy *want)
{
	struct water serial = { .n = w->n,
				.steps = w->steps,
				.step_as = w->step_as };
	struct app alone = app_alone(a);
	struct energy before, after;
	double impulse, off = 0, size;

	prepare(&serial, &alone);
	run(&serial, &before, &after, &impulse);
	for (long i = 0; i < w->n; i++)
		for (int c = 0; c < NUMBERS; c++)
			off = app_worse(off, fabs(w->place[i].at[c] -
						  serial.place[i].at[c]));
	release(&serial);
	size = fabs(after.kinetic) + fabs(after.potential);
	return off <= PLACE_ERROR &&
	       fabs(after.kinetic - want->kinetic) <= ENERGY_ERROR * size &&
	       fabs(after.potential - want->potential) <= ENERGY_ERROR * size;
}

int app_main(int argc, char **argv)
{
	struct water w = { 0 };
	const struct app_opt opts[] = {
		{ 'n', "molecules", "N", &w.n, 512, 64, 8, 1000000,
		  "molecules" },
		{ 's', "steps", "N", &w.steps, 10, 10, 1, 1000000,
		  "steps of time" },
		{ 't', "step", "AS", &w.step_as, 200, 200, 1, 2000,
		  "length of a step in attoseconds" },
		{ 'g', "grain", "N", &w.grain, 0, 0, 0, 1000000,
		  "molecules that a lock guards; 0: those of a rank" },
	};
	struct app a = { .name = "water",
			 .about =
				 "Water molecules, each of which acts on all "
				 "others; energies compared with a serial run.",
			 .opts = opts,
			 .nopts = sizeof(opts) / sizeof(opts[0]) };
	struct energy before, after;
	double impulse, drift;
	bool same = true, good;

	app_init(&a, argc, argv);
	prepare(&w, &a);
	app_begin(&a);
	run(&w, &before, &after, &impulse);
	app_end(&a);
	app_report(&a, "%ld molecules, %ld steps of %ld as", w.n, w.steps,
		   w.step_as);
	drift = fabs(after.kinetic + after.potential - before.kinetic -
		     before.potential) /
		after.kinetic;
	if (a.rank == 0)
		same = same_alone(&a, &w, &after);
	release(&w);
	good = same && drift <= DRIFT_MAX && impulse <= IMPULSE_MAX;
	return app_verdict(
		&a, a.rank || good,
		"energy %.4f kJ/mol a molecule, drift %.1e (limit "
		"%.0e), impulses sum up to 0: %s, as in a serial "
		"run: %s",
		0.01 * (after.kinetic + after.potential) / (double)w.n, drift,
		DRIFT_MAX, impulse <= IMPULSE_MAX ? "yes" : "NO",
		same ? "yes" : "NO");
}
