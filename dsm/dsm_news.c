/* SPDX-License-Identifier: MIT */
/*
 * dsm_news.c - what a lock brings along: the last notices, inline.
 *
 * Role:      who takes a lock would have to read the last release, and then the
 *            log, from other ranks: three round trips.  So whoever gives a lock
 *            away puts the last few notices (`carry`) beside the reference to
 *            his release: into the queue node of the successor, or, when the
 *            lock becomes free, beside its words at the manager.
 * Invariant: what has the right sum and the right reference is exactly what was
 *            made for that release, and never changes: a copy, which no log can
 *            overrun.
 * Threads:   a record lies in a thread's queue node while it has the lock.
 * Locks:     the rank mutex, or nobody else is there (dsm_lock.c).
 *
 * Scope mode.  The record has the notices of the last releases of the lock, as
 * many as find room; each was made by extending the one that came with the lock.
 * An acquirer goes from release to release as he would in the logs, until he
 * comes to one that he knows; what the record does not reach back to is read
 * from the logs.
 *
 * Release mode.  The record has the release's vector, and the last notices that
 * its rank had published or heard of, each with rank and position, whichever
 * lock they came with.  An acquirer looks whether every position between his own
 * vector and that one is there; if not, he reads the logs.
 *
 * Why a stale or torn record is harmless.  The record in a queue node, and that
 * of a numbered lock, is written by nobody but the holder, before the lock is
 * another's.  Locks with a name share a few places at the manager, so a record
 * may be another lock's, an older one's, or half of each: the sum is over the
 * reference, too, and a reference is used once.  (The reference has the epoch's
 * number: a record from before the last barrier is for nobody.)
 */
#include "dsm_news.h"

#include <string.h>

enum {
	POS_BITS = 22 /* of a position, in what was heard; the rank is above */
};

struct scope_news {
	struct dsm_news head;
	uint8_t of[DSM_NEWS_RELEASES]; /* how many notices each has */
	dsm_ref before[]; /* what came before each; then the notices */
};

struct vector_news {
	struct dsm_news head;
	uint64_t words[]; /* vector, then what was heard */
};

static bool by_vector(const struct dsm_node *n)
{
	return n->cfg.consistency == DSM_CONSISTENCY_RELEASE;
}

static size_t scope_bytes(uint64_t nr, uint64_t releases)
{
	return sizeof(struct scope_news) + 8 * releases +
	       ((4 * nr + 7) & ~UINT64_C(7));
}

static size_t vector_bytes(uint64_t nr, int ranks)
{
	return sizeof(struct vector_news) + 8 * ((unsigned int)ranks + nr);
}

void dsm_news_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		     int ranks)
{
	bool vectors = cfg->consistency == DSM_CONSISTENCY_RELEASE;

	if (!cfg->carry || (vectors && ranks > DSM_NEWS_RANKS))
		return;
	at->news_bytes = vectors ? vector_bytes(cfg->carry, ranks) :
				   scope_bytes(cfg->carry, DSM_NEWS_RELEASES);
	at->news = at->sync_bytes;
	at->sync_bytes += (at->news_bytes * DSM_NEWS_SLOTS + 63) &
			  ~UINT64_C(63);
}

size_t dsm_news_used(const struct dsm_node *n, const struct dsm_news *w)
{
	return by_vector(n) ? vector_bytes(w->nr, n->ranks) :
			      scope_bytes(w->nr, w->releases);
}

static uint64_t sum_of(const struct dsm_node *n, const struct dsm_news *w)
{
	const uint64_t *word = (const void *)w;
	size_t nr = dsm_news_used(n, w) / sizeof(*word);
	uint64_t sum = 0;

	for (size_t i = 1; i < nr; i++) { /* [0] is the sum itself */
		sum = (sum ^ word[i]) * UINT64_C(0xbf58476d1ce4e5b9);
		sum ^= sum >> 29;
	}
	return sum;
}

static bool is_whole(const struct dsm_node *n, const struct dsm_news *w)
{
	return w->nr <= n->cfg.carry && w->releases <= DSM_NEWS_RELEASES &&
	       (w->sum == sum_of(n, w) || DSM_BROKEN(news_torn));
}

void dsm_news_check(const struct dsm_node *n, struct dsm_news *w, dsm_ref ref)
{
	if (DSM_BROKEN(news_stale) && w->ref && is_whole(n, w))
		w->ref = ref;
	else if (w->ref != ref || !is_whole(n, w))
		w->ref = 0;
}

/* --- scope mode -------------------------------------------------------------------- */

const uint32_t *dsm_news_units(const struct dsm_news *w, uint32_t i,
			       uint32_t *nr)
{
	const struct scope_news *s = (const void *)w;
	const uint32_t *units = (const void *)(s->before + w->releases);

	for (uint32_t k = 0; k < i; k++)
		units += s->of[k];
	*nr = s->of[i];
	return units;
}

dsm_ref dsm_news_before(const struct dsm_news *w, uint32_t i)
{
	return ((const struct scope_news *)(const void *)w)->before[i];
}

/* A list under way. */
struct list {
	uint32_t nr, most;
	uint32_t unit[DSM_CARRY_MAX];
};

/* False: it is full. */
static bool add(struct list *l, uint32_t unit)
{
	for (uint32_t i = 0; i < l->nr; i++)
		if (l->unit[i] == unit)
			return true;
	if (l->nr == l->most)
		return false;
	l->unit[l->nr++] = unit;
	return true;
}

/* All of @units, or nothing and false. */
static bool add_all(struct list *l, const uint32_t *units, uint32_t nr)
{
	uint32_t before = l->nr;

	for (uint32_t i = 0; i < nr; i++)
		if (!add(l, units[i])) {
			l->nr = before;
			return false;
		}
	return true;
}

/* The notices of @s from the own log; false if there is no room for them. */
static bool add_own(struct list *l, const struct dsm_node *n,
		    const struct dsm_thread *t, const struct dsm_scope *s)
{
	const uint32_t *log = (const void *)(n->sync + n->at.log);
	uint64_t from = s->from > n->epoch_pos ? s->from : n->epoch_pos;

	if (n->log_pos - from > n->cfg.log)
		return false;
	for (uint64_t pos = from; pos < n->log_pos; pos++) {
		uint32_t unit = dsm_log_unit(log[pos % n->cfg.log], t->slot);

		if (unit != DSM_BITS_END && !add(l, unit))
			return false;
	}
	return true;
}

/* A record under way. */
struct draft {
	struct list list;
	uint32_t releases;
	uint8_t of[DSM_NEWS_RELEASES];
	dsm_ref before[DSM_NEWS_RELEASES];
	uint64_t ranks; /* bit r: a release of rank r comes before one of these */
};

static void add_release(struct draft *d, uint32_t nr, dsm_ref before)
{
	d->of[d->releases] = (uint8_t)nr;
	d->before[d->releases++] = before;
	if (before)
		d->ranks |= UINT64_C(1) << (dsm_ref_rank(before) % 64);
}

/* Would every rank but this find a release of its own in the list? */
static bool reaches_all(const struct dsm_node *n, const struct draft *d)
{
	uint64_t others = d->ranks & ~(UINT64_C(1) << (n->rank % 64));

	return n->ranks <= 64 && __builtin_popcountll(others) == n->ranks - 1;
}

/* What finds room of the older releases, as far as somebody may ask for it. */
static void add_older(const struct dsm_node *n, struct draft *d,
		      const struct dsm_news *old)
{
	for (uint32_t i = 0; i < old->releases; i++) {
		uint32_t nr, had = d->list.nr;
		const uint32_t *units = dsm_news_units(old, i, &nr);

		if (d->releases == DSM_NEWS_RELEASES || reaches_all(n, d) ||
		    !add_all(&d->list, units, nr))
			return;
		add_release(d, d->list.nr - had, dsm_news_before(old, i));
	}
}

static void make_scope(const struct dsm_node *n, const struct dsm_thread *t,
		       const struct dsm_scope *s, struct dsm_news *w)
{
	struct draft d = { .list.most = (uint32_t)n->cfg.carry };
	struct scope_news *to = (void *)w;
	uint32_t *units;

	if (add_own(&d.list, n, t, s)) {
		add_release(&d, d.list.nr,
			    dsm_ref_current(n, s->prev) ? s->prev : 0);
		if (d.before[0] && w->ref == s->prev)
			add_older(n, &d, w);
	} else {
		d.list.nr = 0;
	}
	w->nr = d.list.nr;
	w->releases = d.releases;
	memcpy(to->of, d.of, sizeof(d.of));
	memcpy(to->before, d.before, d.releases * sizeof(*d.before));
	units = (void *)(to->before + d.releases);
	memcpy(units, d.list.unit, d.list.nr * sizeof(*units));
	if (d.list.nr % 2)
		units[d.list.nr] = 0; /* the rest of the last word */
}

/* --- release mode ------------------------------------------------------------------- */

const uint64_t *dsm_news_vector(const struct dsm_news *w)
{
	return ((const struct vector_news *)(const void *)w)->words;
}

uint64_t dsm_news_heard(uint32_t unit, int rank, uint64_t pos)
{
	uint64_t low = pos & ((1u << POS_BITS) - 1);

	return ((uint64_t)(unsigned int)rank << POS_BITS | low) << 32 | unit;
}

void dsm_news_remember(struct dsm_node *n, uint64_t heard)
{
	n->heard[n->heard_nr++ % DSM_CARRY_MAX] = heard;
}

/* What is remembered of a rank is the end of what is known of it, without a
 * gap (an overrun forgets it all): so the low bits of a position will do. */
static void make_vector(const struct dsm_node *n, struct dsm_news *w)
{
	struct vector_news *to = (void *)w;
	uint64_t *heard = to->words + n->ranks;
	uint64_t most = n->heard_nr < n->cfg.carry ? n->heard_nr : n->cfg.carry;

	dsm_log_vector(n, to->words);
	w->nr = (uint32_t)most;
	w->releases = 0;
	for (uint64_t i = 0; i < most; i++)
		heard[i] = n->heard[(n->heard_nr - most + i) % DSM_CARRY_MAX];
}

/* Where the positions that are missing of each rank begin, in a list of all
 * that are; their number, or -1 if they are too many. */
static int count_missing(const struct dsm_node *n, const uint64_t *vec,
			 uint8_t *first)
{
	uint64_t nr = 0;

	for (int r = 0; r < n->ranks; r++) {
		first[r] = (uint8_t)nr;
		if (r != n->rank && vec[r] > n->seen_pos[r])
			nr += vec[r] - n->seen_pos[r];
		if (nr > DSM_CARRY_MAX)
			return -1;
	}
	return (int)nr;
}

int dsm_news_unseen(const struct dsm_node *n, const struct dsm_news *w,
		    uint64_t *heard)
{
	const uint64_t *vec = dsm_news_vector(w), *all = vec + n->ranks;
	uint8_t first[DSM_NEWS_RANKS];
	int missing = count_missing(n, vec, first), found = 0;
	uint64_t have = 0; /* a bit for each of them */

	for (uint32_t i = 0; i < w->nr && found < missing; i++) {
		uint32_t origin = (uint32_t)(all[i] >> 32);
		uint32_t r = origin >> POS_BITS, at;

		if (r >= (uint32_t)n->ranks || (int)r == n->rank ||
		    vec[r] <= n->seen_pos[r])
			continue;
		at = (origin - (uint32_t)n->seen_pos[r]) &
		     ((1u << POS_BITS) - 1);
		if (at >= vec[r] - n->seen_pos[r] ||
		    have >> (first[r] + at) & 1)
			continue;
		have |= UINT64_C(1) << (first[r] + at);
		heard[found++] = all[i];
	}
	return found == missing ? found : -1;
}

/* --- both ------------------------------------------------------------------------------ */

void dsm_news_make(const struct dsm_node *n, const struct dsm_thread *t,
		   const struct dsm_scope *s, dsm_ref ref, struct dsm_news *w)
{
	if (by_vector(n))
		make_vector(n, w);
	else
		make_scope(n, t, s, w);
	w->ref = ref;
	w->sum = sum_of(n, w);
}
