/* SPDX-License-Identifier: MIT */
/*
 * dsm_unit.c - what is done to one unit of coherence.
 *
 * Role:      carries out the acts of the page table (dsm_page.c).
 * Invariant: a unit's state, its twin flag, its place in the sets and the
 *            protection of its pages change together, here and nowhere else.
 * Threads:   the program's threads load and store meanwhile.
 * Locks:     the rank mutex is held.
 */
#include "dsm_node.h"

#include <string.h>

#include "dsm_diff.h"

#ifdef DSM_POINTS
enum {
	STEP = 8 /* bytes between two places where others may overtake */
};
#else
#define STEP len
#endif

/* Copy a page while others may be writing to it; in tests word by word, and
 * others overtake between reading one and storing it. */
static void copy(struct dsm_node *n, char *dst, const char *src, size_t len)
{
#ifdef DSM_POINTS
	char word[STEP];

	for (size_t i = 0; i < len; i += STEP) {
		memcpy(word, src + i, STEP);
		DSM_POINT(n);
		memcpy(dst + i, word, STEP);
	}
#else
	(void)n;
	memcpy(dst, src, len);
#endif
}

static void prepare_frame(struct dsm_node *n, uint32_t unit)
{
	dsm_must(n,
		 sul_window_prepare(n->port, DSM_W_FRAME, dsm_unit_off(n, unit),
				    dsm_unit_bytes(n, unit)),
		 "making room for a page");
}

/* If it has faulted, and was dropped to see whether it is still used, ask more
 * rarely from now on. */
static void count_fetch(struct dsm_node *n, uint32_t unit, enum dsm_fetch why)
{
	uint32_t probe = n->probe[unit] * 2u;

	dsm_bits_clear(&n->dropped, unit);
	n->fetched[unit] = (uint16_t)n->epoch;
	dsm_count(n, unit, getp, 1);
	if (why == DSM_FETCH_RECALL) {
		n->age[unit]++;
		return;
	}
	if (n->age[unit])
		n->probe[unit] = (uint16_t)(probe < DSM_PROBE_MAX ?
						    probe :
						    DSM_PROBE_MAX);
	n->age[unit] = 0;
}

void dsm_unit_fetch(struct dsm_node *n, uint32_t unit, uint32_t nr, bool twins,
		    enum dsm_fetch why)
{
	uint32_t step = dsm_unit_pages(n, unit);
	struct dsm_get get[DSM_RUN_MAX] = { 0 };
	bool all;

	for (uint32_t i = 0; twins && i < nr; i++)
		prepare_frame(n, unit + i * step);
	do {
		for (uint32_t i = 0; i < nr; i++)
			if (!get[i].done)
				dsm_dir_get(n, unit + i * step,
					    n->frame +
						    dsm_unit_off(
							    n, unit + i * step),
					    NULL, &get[i]);
		dsm_flush_port(n);
		all = true;
		for (uint32_t i = 0; i < nr; i++)
			all &= dsm_dir_got(n, unit + i * step, NULL, NULL,
					   &get[i]);
	} while (!all);
	for (uint32_t i = 0; i < nr; i++)
		count_fetch(n, unit + i * step, why);
}

void dsm_unit_enrol(struct dsm_node *n, uint32_t unit, uint32_t nr)
{
	uint32_t step = dsm_unit_pages(n, unit);

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t u = unit + i * step;

		dsm_bits_clear(&n->dropped, u);
		dsm_dir_enrol(n, u);
		n->whole[u] = !DSM_BROKEN(overwrite_diff);
	}
	dsm_flush_port(n);
}

/*
 * The flag is up before the frame is read (and the remote writer looks at it
 * after he has written the frame): either he sees it and stores into the twin
 * as well, or we copy what he wrote.  When both happen the twin may keep an old
 * byte for a new one; the next release then takes it for the home's own write,
 * and publishes a notice too many.
 */
static void make_twin(struct dsm_node *n, uint32_t unit)
{
	uint64_t off = dsm_unit_off(n, unit);

	prepare_frame(n, unit);
	dsm_ready_twin(n, unit);
	__atomic_store_n(dsm_dir_flag(n, unit), DSM_TWIN_MAKING,
			 __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	copy(n, n->twin + off, n->frame + off, dsm_unit_bytes(n, unit));
	__atomic_store_n(dsm_dir_flag(n, unit), DSM_TWIN_VALID,
			 __ATOMIC_SEQ_CST);
	if (dsm_bits_set(&n->watched, unit))
		n->watched_pages += dsm_unit_pages(n, unit);
	n->idle[unit] = 0;
	n->wrote[unit] = n->wrote[unit] & DSM_WROTE ? DSM_WROTE_BEFORE : 0;
	dsm_stat_add(n->stats, twins, 1);
}

static void drop_twin(struct dsm_node *n, uint32_t unit)
{
	__atomic_store_n(dsm_dir_flag(n, unit), DSM_TWIN_NONE,
			 __ATOMIC_SEQ_CST);
	if (dsm_bits_clear(&n->watched, unit))
		n->watched_pages -= dsm_unit_pages(n, unit);
}

#ifdef DSM_POINTS
/* dsm_diff_take() of a word, and others overtake before it is kept, the more so
 * if it has changed. */
static size_t take_step(struct dsm_node *n, const char *frame, char *twin,
			uint32_t base, struct sul_run *runs, size_t nr)
{
	char was[STEP], is[STEP];

	memcpy(was, twin, STEP);
	memcpy(is, frame, STEP);
	DSM_POINT(n);
	if (memcmp(is, was, STEP))
		for (int i = 0; i < STEP; i++)
			DSM_POINT(n);
	for (size_t i = 0; i < STEP; i++)
		if (is[i] != was[i])
			twin[i] = is[i];
	return dsm_diff_take(is, was, STEP, base, runs, nr);
}
#endif

static size_t take_changes(struct dsm_node *n, uint32_t unit)
{
	size_t len = dsm_unit_bytes(n, unit);
	char *frame = n->frame + dsm_unit_off(n, unit);
	char *twin = n->twin + dsm_unit_off(n, unit);
	struct sul_run *runs = n->runs + n->runs_nr;
	size_t nr = 0;

#ifdef DSM_POINTS
	for (size_t i = 0; i < len; i += STEP)
		nr = take_step(n, frame + i, twin + i, (uint32_t)i, runs, nr);
#else
	nr = dsm_diff_take(frame, twin, len, 0, runs, nr);
#endif
	if (DSM_BROKEN(read_twice))
		memcpy(twin, frame, len);
	return nr;
}

/* Its twin was never equal to the home's page: all of it is new. */
static size_t take_whole(struct dsm_node *n, uint32_t unit)
{
	size_t len = dsm_unit_bytes(n, unit);

	copy(n, n->twin + dsm_unit_off(n, unit),
	     n->frame + dsm_unit_off(n, unit), len);
	n->runs[n->runs_nr] = (struct sul_run){ .len = (uint32_t)len };
	n->whole[unit] = 0;
	return 1;
}

/* Which bytes of @unit this rank writes, for who shares a page with whom. */
static void note_changed(struct dsm_node *n, uint32_t unit,
			 const struct sul_run *runs, size_t nr)
{
	dsm_spot_wrote(n->spots, unit, runs[0].off,
		       runs[nr - 1].off + runs[nr - 1].len);
}

bool dsm_unit_publish(struct dsm_node *n, uint32_t unit)
{
	uint64_t off = dsm_unit_off(n, unit);
	size_t nr, bytes = 0;

	/* Runs stay untouched until their operation has been executed. */
	if (n->runs_max - n->runs_nr <
	    DSM_DIFF_RUNS_MAX(dsm_unit_bytes(n, unit))) {
		dsm_flush_port(n);
		n->runs_nr = 0;
	}
	dsm_stat_add(n->stats, compares, 1);
	nr = n->whole[unit] ? take_whole(n, unit) : take_changes(n, unit);
	if (!nr)
		return false;
	n->wrote[unit] |= DSM_WROTE;
	note_changed(n, unit, n->runs + n->runs_nr, nr);
	if (!dsm_home_here(n, unit)) {
		const struct sul_run *runs = n->runs + n->runs_nr;
		struct sul_mirror mirror = dsm_dir_mirror(n, unit);

		/* From the twin: it keeps what was compared. */
		dsm_must(n,
			 sul_putv(n->port, dsm_home(n, unit), DSM_W_FRAME, off,
				  n->twin + off, runs, nr, &mirror),
			 "sending a diff");
		for (size_t i = 0; i < nr; i++)
			bytes += runs[i].len;
		dsm_count(n, unit, diffs, 1);
		dsm_stat_add(n->stats, diff_runs, nr);
		dsm_count(n, unit, diff_bytes, bytes);
		n->runs_nr += nr;
	}
	return true;
}

static void lower(struct dsm_node *n, uint32_t unit, enum dsm_access access)
{
	dsm_view_lower(n, unit, dsm_unit_pages(n, unit), access);
	DSM_POINT(n);
}

void dsm_unit_raise(struct dsm_node *n, uint32_t unit, uint32_t pages,
		    enum dsm_access access)
{
	dsm_view_raise(n, unit, pages, access);
	dsm_ready_view(n, unit, pages, access);
	DSM_POINT(n);
}

void dsm_unit_lower_set(struct dsm_node *n, const struct dsm_bits *set,
			enum dsm_access access)
{
	uint32_t from = dsm_bits_next(set, 0);

	while (from != DSM_BITS_END) {
		uint32_t end = from + dsm_unit_pages(n, from);
		uint32_t next = dsm_bits_next(set, from + 1);

		while (next == end) {
			end += dsm_unit_pages(n, next);
			next = dsm_bits_next(set, next + 1);
		}
		dsm_view_lower(n, from, end - from, access);
		DSM_POINT(n);
		from = next;
	}
}

static void publish_dropped(struct dsm_node *n, uint32_t unit,
			    enum dsm_page_event e)
{
	bool changed;

	if (e == DSM_EV_DROP && DSM_BROKEN(drop_dirty))
		return;
	changed = dsm_unit_publish(n, unit);
	if (e == DSM_EV_DROP && DSM_BROKEN(drop_silent))
		return;
	if (changed)
		dsm_log_notice(n, unit);
}

static void count_cached(struct dsm_node *n, uint32_t unit, bool in)
{
	if (in && dsm_bits_set(&n->cached, unit))
		n->cached_pages += dsm_unit_pages(n, unit);
	if (!in && dsm_bits_clear(&n->cached, unit))
		n->cached_pages -= dsm_unit_pages(n, unit);
}

void dsm_unit_event(struct dsm_node *n, uint32_t unit, enum dsm_page_event e,
		    unsigned int done)
{
	enum dsm_page_state was = (enum dsm_page_state)n->state[unit];
	const struct dsm_page_rule *rule = dsm_page_rule(was, e);
	unsigned int acts = rule->acts & ~done;

	if (rule->kind == DSM_RULE_NOP)
		return;
	if (rule->kind != DSM_RULE_GO)
		dsm_die(n, "page %u is %s, which does not go with %s: %s", unit,
			dsm_page_state_name(was), dsm_page_event_name(e),
			rule->why ?: "no rule");
	if (acts & DSM_ACT_FETCH)
		dsm_unit_fetch(n, unit, 1, acts & DSM_ACT_TWIN,
			       DSM_FETCH_FAULT);
	if (acts & DSM_ACT_ENROL)
		dsm_unit_enrol(n, unit, 1);
	if (acts & DSM_ACT_LOWER_NONE)
		lower(n, unit, DSM_ACCESS_NONE);
	if (acts & DSM_ACT_LOWER_R)
		lower(n, unit, DSM_ACCESS_R);
	if (acts & DSM_ACT_DIFF)
		publish_dropped(n, unit, e);
	if (acts & DSM_ACT_TWIN)
		make_twin(n, unit);
	if (acts & DSM_ACT_UNTWIN)
		drop_twin(n, unit);
	if (acts & DSM_ACT_NOTICE && !DSM_BROKEN(no_first_notice))
		dsm_log_notice(n, unit);
	if (acts & DSM_ACT_DEREGISTER)
		dsm_dir_deregister(n, unit);
	n->state[unit] = (uint8_t)rule->next;
	if (acts & (DSM_ACT_CACHED | DSM_ACT_UNCACHED))
		count_cached(n, unit, acts & DSM_ACT_CACHED);
	if (acts & DSM_ACT_RAISE_R)
		dsm_unit_raise(n, unit, dsm_unit_pages(n, unit), DSM_ACCESS_R);
	if (acts & DSM_ACT_RAISE_RW)
		dsm_unit_raise(n, unit, dsm_unit_pages(n, unit), DSM_ACCESS_RW);
}

/* --- refresh ------------------------------------------------------------------ */

static void merge(struct dsm_node *n, uint32_t unit, const char *news)
{
	size_t len = dsm_unit_bytes(n, unit);
	char *frame = n->frame + dsm_unit_off(n, unit);
	char *twin = n->twin + dsm_unit_off(n, unit);
	bool watched = n->state[unit] == DSM_PG_WATCH;

	prepare_frame(n, unit);
	for (size_t i = 0; i < len; i += STEP) {
		if (watched && DSM_BROKEN(refresh_all)) {
			memcpy(frame + i, news + i, STEP);
			memcpy(twin + i, news + i, STEP);
		} else {
			dsm_diff_merge(frame + i,
				       watched ? twin + i : frame + i, news + i,
				       STEP);
		}
		DSM_POINT(n);
	}
}

/* Get those of @units that have not been got; true if all are now. */
static bool get_batch(struct dsm_node *n, const uint32_t *units, size_t nr,
		      struct dsm_get *get)
{
	char *frames = n->scratch, *twins = n->scratch + n->scratch_bytes;
	size_t at = 0;
	bool all = true;

	for (size_t i = 0; i < nr; i++) {
		if (!get[i].done)
			dsm_dir_get(n, units[i], frames + at, twins + at,
				    &get[i]);
		at += dsm_unit_bytes(n, units[i]);
	}
	dsm_flush_port(n);
	at = 0;
	for (size_t i = 0; i < nr; i++) {
		all &= dsm_dir_got(n, units[i], frames + at, twins + at,
				   &get[i]);
		at += dsm_unit_bytes(n, units[i]);
	}
	return all;
}

void dsm_unit_refresh(struct dsm_node *n, const uint32_t *units, size_t nr)
{
	struct dsm_get get[DSM_REFRESH_UNITS] = { 0 };
	char *news = n->scratch;

	while (!get_batch(n, units, nr, get))
		;
	for (size_t i = 0; i < nr; i++) {
		merge(n, units[i], news);
		news += dsm_unit_bytes(n, units[i]);
		n->age[units[i]]++;
		dsm_count(n, units[i], refreshed, 1);
	}
}
