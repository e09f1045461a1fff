/* SPDX-License-Identifier: MIT */
/* dsm_tally.c - see dsm_tally.h. */
#include "dsm_tally.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sul_job.h"

_Static_assert(sizeof(struct dsm_tally) <= SUL_JOB_MORE_BYTES,
	       "the tables of a rank fit into its part of the job");

unsigned int dsm_place_stat(unsigned int i)
{
	static const size_t at[DSM_PLACE_NR] = {
#define PLACE(name, cost) offsetof(struct dsm_stats, name),
#include "dsm_place.def"
	};

	return (unsigned int)(at[i] / sizeof(uint64_t));
}

bool dsm_tally_name_ok(const char *name)
{
	size_t len = strnlen(name, DSM_TALLY_NAME_MAX);

	if (!len || len == DSM_TALLY_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 127)
			return false;
	return true;
}

/* --- phases ----------------------------------------------------------------------- */

/* @sum += @now - @base, each counter read once, and @base = @now. */
static void take_difference(struct dsm_stats *sum, struct dsm_stats *base,
			    const struct dsm_stats *now)
{
	const uint64_t *is = (const uint64_t *)now;
	uint64_t *to = (uint64_t *)sum, *was = (uint64_t *)base;

	for (unsigned int i = 0; i < DSM_STAT_NR; i++) {
		uint64_t v = dsm_stat_read(&is[i]);

		dsm_stat_add_u64(&to[i], v - was[i]);
		was[i] = v;
	}
}

static void close_phase(struct dsm_tally *t, const struct dsm_stats *now,
			uint64_t ns)
{
	struct dsm_stats nobody = { 0 };
	struct dsm_phase *p = t->current ? &t->phase[t->current - 1] : NULL;

	if (t->stopped)
		return;
	take_difference(p ? &p->sum : &nobody, &t->base, now);
	if (p)
		p->ns += ns - t->since_ns;
	t->since_ns = ns;
}

/* The row of @name + 1; 0: there is no room for it. */
static uint32_t phase_row(struct dsm_tally *t, const char *name)
{
	for (uint32_t i = 0; i < t->phases; i++)
		if (!strcmp(t->phase[i].name, name))
			return i + 1;
	if (t->phases == DSM_PHASES_MAX)
		return 0;
	strncpy(t->phase[t->phases].name, name, DSM_TALLY_NAME_MAX - 1);
	return ++t->phases;
}

int dsm_tally_phase(struct dsm_tally *t, const struct dsm_stats *now,
		    uint64_t ns, const char *name)
{
	uint32_t next = name ? phase_row(t, name) : 0;

	if (name && !next)
		return -ENOSPC;
	close_phase(t, now, ns);
	t->current = next;
	if (next && !t->stopped)
		t->phase[next - 1].entered++;
	return 0;
}

/* --- places ----------------------------------------------------------------------- */

int dsm_tally_place(struct dsm_tally *t, const char *name, unsigned int *row)
{
	uint32_t i = 1;

	while (i < t->places && strcmp(t->place_name[i], name) != 0)
		i++;
	if (i == DSM_PLACES_MAX)
		return -ENOSPC;
	if (i >= t->places) {
		strncpy(t->place_name[i], name, DSM_TALLY_NAME_MAX - 1);
		t->places = i + 1;
	}
	*row = i;
	return 0;
}

void dsm_tally_maker(struct dsm_tally *t, uint64_t page, uint64_t pages,
		     uint64_t site)
{
	t->maker[t->makers++ % DSM_MAKERS_MAX] =
		(struct dsm_maker){ page, pages, site };
}

/* --- both ------------------------------------------------------------------------- */

void dsm_tally_start(struct dsm_tally *t, const struct dsm_stats *now,
		     uint64_t ns)
{
	struct dsm_stats nobody = { 0 };

	for (uint32_t i = 0; i < t->phases; i++) {
		t->phase[i].entered = t->current == i + 1;
		t->phase[i].ns = 0;
		dsm_stat_zero(&t->phase[i].sum);
	}
	memset(t->place, 0, sizeof(t->place));
	memset(&t->spots, 0, sizeof(t->spots));
	take_difference(&nobody, &t->base, now);
	t->since_ns = ns;
	t->stopped = 0;
}

void dsm_tally_stop(struct dsm_tally *t, const struct dsm_stats *now,
		    uint64_t ns)
{
	close_phase(t, now, ns);
	t->stopped = 1;
}
