/* SPDX-License-Identifier: MIT */
/*
 * matrix.c - see matrix.h.
 *
 * Role: the axes are ranks, threads and every row of dsm_config.def; the values
 *   of a parameter are all words of an ENUM, both of a BOOL, and smallest,
 *   default and largest of a number (and some between).  Each configuration is the best of some
 *   random ones: that which has most pairs of values (of two axes) that none
 *   had before.  So all pairs are had after a few dozen.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"
#include "rng.h"

enum {
	VALUES = 4,
	TRIES = 60,
	CONFIGS = 400,
	NAME_MAX_BYTES = 48
};

enum axis_type {
	U32,
	BYTES,
	POW2,
	BOOL,
	ENUM,
	TEXT
};

struct axis {
	const char *name;
	unsigned int n;
	char value[VALUES][24];
};

struct row {
	enum axis_type type;
	const char *name;
	uint64_t dflt, min, max;
	const char *words;
};

static const struct row rows[] = {
#define CFG(type, name, when, dflt, min, max, words, doc) \
	{ type, #name, dflt, min, max, words },
#include "dsm_config.def"
};

/* Where an end of the range does not fit the test, the one used instead. */
static const struct row ends[] = {
	/* rounds allocate up to 130 MiB; freed addresses need not come back */
	{ BYTES, "region", 0, 4ull << 30, 160ull << 30, "" },
	/* a second of spinning, times ranks beyond the cores, is no test */
	{ U32, "spin_us", 0, 0, 500, "" },
	/* 8 ranks of them must fit the memory of a small machine */
	{ U32, "log", 0, 16, 1u << 20, "" },
	{ U32, "releases", 0, 4, 1u << 15, "" },
	/* every round names locks by addresses of its own */
	{ U32, "names", 0, 1u << 18, 1u << 22, "" },
	/* at least what jia_threads() is told */
	{ U32, "threads", 0, 3, 256, "" },
	/* beyond it retransmission is all that a run does */
	{ U32, "loss", 0, 0, 20000, "" },
	/* a rank may not get a processor for a second or two */
	{ U32, "silence", 0, 10, 60, "" },
};

/* Values between the ends that are worth a place of their own. */
static const struct row between[] = {
	{ BYTES, "block", 65536, 0, 0, "" },
	{ U32, "tree", 8, 0, 0, "" },
	{ U32, "mappings", 16, 0, 0, "" },
	{ U32, "mtu", 1500, 0, 0, "" },
};

enum {
	ROWS = sizeof(rows) / sizeof(rows[0]),
	AXES = ROWS + 2
};

struct matrix {
	struct axis axis[AXES];
	/* pair of (axis, value) twice: seen */
	unsigned char seen[AXES * VALUES][AXES * VALUES];
	struct rng rng;
};

/* --- axes ------------------------------------------------------------------------ */

static void add_value(struct axis *a, const char *text, size_t len)
{
	char v[sizeof(a->value[0])];

	snprintf(v, sizeof(v), "%.*s", (int)len, text);
	for (unsigned int i = 0; i < a->n; i++)
		if (!strcmp(a->value[i], v))
			return;
	if (a->n < VALUES)
		memcpy(a->value[a->n++], v, sizeof(v));
}

static void add_number(struct axis *a, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	add_value(a, text, strlen(text));
}

static void make_numbers(struct axis *a, const struct row *r)
{
	uint64_t min = r->min, max = r->max, dflt = r->dflt;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(ends[i].name, r->name)) {
			min = ends[i].min;
			max = ends[i].max;
		}
	if (dflt > max)
		dflt = max;
	add_number(a, min);
	add_number(a, dflt);
	add_number(a, max);
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
		if (!strcmp(between[i].name, r->name))
			add_number(a, between[i].dflt);
}

/* What this build can do. */
static const char *choices(const struct row *r)
{
#ifndef SUL_SODIUM
	if (!strcmp(r->name, "auth"))
		return "mac|off";
#endif
	return r->words;
}

static void make_parameter(struct axis *a, const struct row *r)
{
	const char *word = choices(r);

	a->name = r->name;
	if (r->type == TEXT) {
		add_value(a, "", 0);
	} else if (r->type == BOOL) {
		add_value(a, "no", 2);
		add_value(a, "yes", 3);
	} else if (r->type == ENUM) {
		for (; *word; word += strspn(word, "|")) {
			add_value(a, word, strcspn(word, "|"));
			word += strcspn(word, "|");
		}
	} else {
		make_numbers(a, r);
	}
}

static void pin(struct matrix *m, const struct job *base)
{
	for (unsigned int i = 0; i < base->nsets; i++) {
		size_t len = strcspn(base->set[i], "=");
		const char *value = base->set[i] + len;

		for (unsigned int k = 2; k < AXES; k++)
			if (*value && strlen(m->axis[k].name) == len &&
			    !strncmp(m->axis[k].name, base->set[i], len)) {
				m->axis[k].n = 0;
				add_value(&m->axis[k], value + 1,
					  strlen(value + 1));
			}
	}
}

static void make_axes(struct matrix *m, const struct job *base)
{
	static const unsigned int ranks[] = { 1, 2, 4, 8 };

	m->axis[0].name = "ranks";
	for (unsigned int i = 0; i < 4; i++)
		add_number(&m->axis[0], ranks[i]);
	m->axis[1].name = "threads of a rank";
	add_number(&m->axis[1], 1);
	add_number(&m->axis[1], 3);
	for (unsigned int i = 0; i < ROWS; i++)
		make_parameter(&m->axis[i + 2], &rows[i]);
	pin(m, base);
}

/* --- configurations ---------------------------------------------------------------- */

/* New pairs that @pick has; @mark them as seen. */
static unsigned int new_pairs(struct matrix *m, const unsigned int pick[AXES],
			      bool mark)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < AXES; i++)
		for (unsigned int k = 0; k < i; k++) {
			unsigned char *seen = &m->seen[i * VALUES + pick[i]]
						      [k * VALUES + pick[k]];

			n += !*seen;
			if (mark)
				*seen = 1;
		}
	return n;
}

static void draw(struct matrix *m, unsigned int pick[AXES])
{
	for (unsigned int i = 0; i < AXES; i++) {
		pick[i] = rng_below(&m->rng, m->axis[i].n);
		/* Without a protocol there is little to find: seldom. */
		if (!strcmp(m->axis[i].name, "hardware") && pick[i])
			pick[i] = rng_percent(&m->rng, 15);
	}
}

/* The new pairs of the configuration chosen. */
static unsigned int choose(struct matrix *m, unsigned int pick[AXES])
{
	unsigned int best = 0, other[AXES];

	draw(m, pick);
	for (unsigned int i = 0; i < TRIES; i++) {
		unsigned int n;

		draw(m, other);
		n = new_pairs(m, other, false);
		if (n > best) {
			best = n;
			memcpy(pick, other, sizeof(other));
		}
	}
	return new_pairs(m, pick, true);
}

/* How many configurations it takes until there is no new pair. */
static unsigned int count_configs(struct matrix *m)
{
	struct rng saved = m->rng;
	unsigned int n = 0, pick[AXES], dry = 0;

	while (n < CONFIGS && dry < 3) {
		dry = choose(m, pick) ? 0 : dry + 1;
		n++;
	}
	memset(m->seen, 0, sizeof(m->seen));
	m->rng = saved;
	return n - dry;
}

/* Which value of axis @name was picked. */
static const char *value_of(const struct matrix *m,
			    const unsigned int pick[AXES], const char *name)
{
	for (unsigned int i = 0; i < AXES; i++)
		if (!strcmp(m->axis[i].name, name))
			return m->axis[i].value[pick[i]];
	return "";
}

/* The same as a number. */
static uint64_t picked(const struct matrix *m, const unsigned int pick[AXES],
		       const char *name)
{
	return strtoull(value_of(m, pick, name), NULL, 0);
}

/* The rules of the parameters that the axes do not know.  A cache holds so many
 * units for each thread; less is refused, so the least is taken.  Without a
 * protocol there is nothing for a network to carry; without the module it is udp
 * that carries. */
static uint64_t least_cache(const struct matrix *m,
			    const unsigned int pick[AXES])
{
	return 16 * picked(m, pick, "threads of a rank") *
	       picked(m, pick, "block");
}

static void put_setting(const struct matrix *m, const unsigned int pick[AXES],
			unsigned int i, char set[NAME_MAX_BYTES])
{
	const struct axis *a = &m->axis[i];
	uint64_t least = least_cache(m, pick);

	if (!strcmp(a->name, "cache") && picked(m, pick, "cache") < least)
		snprintf(set, NAME_MAX_BYTES, "cache=%" PRIu64, least);
	else if (!strcmp(a->name, "carrier") &&
		 !strcmp(value_of(m, pick, "hardware"), "yes"))
		snprintf(set, NAME_MAX_BYTES, "carrier=auto");
	else if (!strcmp(value_of(m, pick, a->name), "kmod") &&
		 access("/dev/sul", R_OK | W_OK))
		snprintf(set, NAME_MAX_BYTES, "%s=udp", a->name);
	else
		snprintf(set, NAME_MAX_BYTES, "%s=%s", a->name,
			 a->value[pick[i]]);
}

static int run_config(struct matrix *m, const struct job *base, uint64_t ops,
		      unsigned int number, unsigned int of, uint64_t *sum)
{
	char set[AXES][NAME_MAX_BYTES];
	struct job_result res = { 0 };
	unsigned int pick[AXES];
	struct job job = *base;
	int rc;

	choose(m, pick);
	job.ops = ops;
	job.seed = rng_next(&m->rng);
	job.ranks = (unsigned int)picked(m, pick, "ranks");
	job.threads = (unsigned int)picked(m, pick, "threads of a rank");
	job.nsets = 0;
	for (unsigned int i = 2; i < AXES; i++) {
		put_setting(m, pick, i, set[i]);
		job.set[job.nsets++] = set[i];
	}
	rc = job_run(&job, &res);
	*sum += res.ops;
	printf("%s - oracle %u/%u ranks=%u threads=%u", rc ? "not ok" : "ok",
	       number, of, job.ranks, job.threads);
	for (unsigned int i = 0; i < job.nsets; i++)
		printf(" %s", job.set[i]);
	printf(": %" PRIu64 " operations, %u rounds, %.2f s, %.0f/s\n", res.ops,
	       res.rounds, res.seconds, (double)res.ops / res.seconds);
	fflush(stdout);
	return rc;
}

int matrix_run(const struct job *base, uint64_t ops_total, unsigned int configs)
{
	struct matrix *m = calloc(1, sizeof(*m));
	unsigned int bad = 0;
	uint64_t sum = 0;
	int rc = 0;

	if (!m)
		return -ENOMEM;
	m->rng = rng_at(base->seed, 0, 0, 0);
	make_axes(m, base);
	if (!configs)
		configs = count_configs(m);
	for (unsigned int i = 1; i <= configs && rc >= 0; i++) {
		rc = run_config(m, base, ops_total / configs, i, configs, &sum);
		bad += rc > 0;
	}
	free(m);
	if (rc < 0)
		return rc;
	printf("oracle: %" PRIu64
	       " operations, %u configurations, %u of them with violations\n",
	       sum, configs, bad);
	return bad != 0;
}
