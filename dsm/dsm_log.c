/* SPDX-License-Identifier: MIT */
/*
 * dsm_log.c - what this rank has published: notices and releases.
 *
 * Role:      two rings in the SYNC window that others read.  The *interval log*
 *            holds the unit of every notice, in order; a position in it is an
 *            absolute count.  The ring of *releases* says which stretch of the
 *            log belongs to an unlock, and which release of the same lock came
 *            before it, on whatever rank: a lock carries a reference to its
 *            last release, and an acquirer walks back from there to what it
 *            has seen already.  The last notices it finds beside the reference
 *            (dsm_news.c), and mostly that is all.
 * Invariant: a scope is a stretch of the log: a notice is in every scope that
 *            was open in the process when it was published, without merging.
 * Threads:   written under the own rank mutex; read by any rank at any time.
 *
 * Scope mode: an acquirer reads the stretches of the releases it has not seen.
 * Release mode: a release carries a vector of positions, one per rank (counted
 * from the start of the epoch), of all its rank had written or learnt; an
 * acquirer reads what lies between its own vector and that one.  Vectors of a rank
 * only grow: who has acquired one of its releases need not look at an older one,
 * whichever lock that comes with.  (Vectors of intervals: TreadMarks.  Notices by
 * scope: JIAJIA.)
 *
 * Why an overwritten entry is harmless (race 7).  A reader copies an entry or a
 * stretch and then looks whether the writer's count shows that it may have been
 * overwritten meanwhile.  If so it has missed more than the log keeps, and looks
 * at every page that it caches.  Before it begins it notes how far the logs
 * were, so that it need not do so again for what is older: not up to their
 * heads, though, but to where the diffs had been executed (`done`), since a
 * notice is written when its diff is issued.
 */
#include "dsm_news.h"

#include <string.h>

struct dsm_release {
	dsm_ref ref; /* of this entry; 0 while it is being written */
	dsm_ref prev; /* the lock's release before it, if of this epoch */
	uint64_t from, to; /* its scope: a stretch of the log */
	dsm_name lock;
	uint64_t slot; /* of the thread; only a mutant looks at it */
	uint64_t vec[]; /* [ranks], in release mode */
};

enum {
	EPOCH_BITS = 22,
	SLOT_SHIFT = 24 /* mutant own_scopes_only tags notices with the slot */
};

#define UNIT_MASK ((UINT32_C(1) << SLOT_SHIFT) - 1)

uint32_t dsm_log_unit(uint32_t notice, uint32_t slot)
{
	if (!DSM_BROKEN(own_scopes_only))
		return notice;
	return notice >> SLOT_SHIFT == slot ? notice & UNIT_MASK : DSM_BITS_END;
}

int dsm_ref_rank(dsm_ref ref)
{
	return (int)(ref >> (EPOCH_BITS + 32));
}

static uint32_t ref_epoch(dsm_ref ref)
{
	return (uint32_t)(ref >> 32) & ((1u << EPOCH_BITS) - 1);
}

static dsm_ref make_ref(const struct dsm_node *n, uint64_t nr)
{
	return (uint64_t)(unsigned int)n->rank << (EPOCH_BITS + 32) |
	       (uint64_t)n->epoch << 32 | (uint32_t)nr;
}

bool dsm_ref_current(const struct dsm_node *n, dsm_ref ref)
{
	return ref && ref_epoch(ref) == n->epoch;
}

static bool release_mode(const struct dsm_node *n)
{
	return n->cfg.consistency == DSM_CONSISTENCY_RELEASE;
}

/* --- writing ------------------------------------------------------------------- */

void dsm_log_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		    int ranks)
{
	uint64_t bytes = sizeof(struct dsm_release);

	if (cfg->consistency == DSM_CONSISTENCY_RELEASE)
		bytes += 8 * (uint64_t)ranks;
	at->release_bytes = bytes;
	at->log_head = at->sync_bytes;
	at->sync_bytes += 64; /* a line of its own */
	at->log = at->sync_bytes;
	at->sync_bytes += (4 * cfg->log + 63) & ~UINT64_C(63);
	at->releases = at->sync_bytes;
	at->sync_bytes += (bytes * cfg->releases + 63) & ~UINT64_C(63);
}

static struct dsm_log_head *own_head(const struct dsm_node *n)
{
	return (void *)(n->sync + n->at.log_head);
}

void dsm_log_open(struct dsm_node *n)
{
	n->epoch = 1;
	__atomic_store_n(&own_head(n)->epoch, 1, __ATOMIC_RELEASE);
}

void dsm_log_notice(struct dsm_node *n, uint32_t unit)
{
	uint32_t *log = (void *)(n->sync + n->at.log);
	uint32_t tag = DSM_BROKEN(own_scopes_only) ? n->acting << SLOT_SHIFT :
						     0;

	__atomic_store_n(&log[n->log_pos % n->cfg.log], unit | tag,
			 __ATOMIC_RELAXED);
	if (n->at.news_bytes && release_mode(n))
		dsm_news_remember(n, dsm_news_heard(unit, n->rank,
						    n->log_pos - n->epoch_pos));
	n->log_pos++;
	__atomic_store_n(&own_head(n)->head, n->log_pos, __ATOMIC_RELEASE);
	dsm_bits_set(&n->written, unit);
	dsm_stat_add(n->stats, notices, 1);
}

void dsm_log_done(struct dsm_node *n)
{
	__atomic_store_n(&own_head(n)->done, n->log_pos, __ATOMIC_RELEASE);
}

static uint64_t release_off(const struct dsm_node *n, uint64_t nr)
{
	return n->at.releases + n->at.release_bytes * (nr % n->cfg.releases);
}

void dsm_log_vector(const struct dsm_node *n, uint64_t *vec)
{
	for (int r = 0; r < n->ranks; r++)
		vec[r] = DSM_BROKEN(own_only) ? 0 : n->seen_pos[r];
	vec[n->rank] = n->log_pos - n->epoch_pos;
}

static uint64_t scope_start(const struct dsm_node *n, const struct dsm_scope *s)
{
	return s->from > n->epoch_pos ? s->from : n->epoch_pos;
}

bool dsm_log_empty(const struct dsm_node *n, const struct dsm_scope *s)
{
	return !release_mode(n) && scope_start(n, s) == n->log_pos;
}

dsm_ref dsm_log_release(struct dsm_node *n, const struct dsm_thread *t,
			const struct dsm_scope *s)
{
	uint64_t nr = ++n->release_nr;
	struct dsm_release *e = (void *)(n->sync + release_off(n, nr));
	dsm_ref ref = make_ref(n, nr);

	__atomic_store_n(&e->ref, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	e->prev = dsm_ref_current(n, s->prev) ? s->prev : 0;
	e->from = scope_start(n, s);
	e->to = n->log_pos;
	e->lock = s->lock;
	e->slot = t->slot;
	if (release_mode(n))
		dsm_log_vector(n, e->vec);
	__atomic_store_n(&e->ref, ref, __ATOMIC_RELEASE);
	*dsm_name_seen(n, s->lock) = ref;
	return ref;
}

/*
 * A thread that is not at the barrier does not exist, but a signal handler of
 * the program may run while the rank waits there, and make it publish a notice:
 * that one belongs to the next epoch, since the list of this one is made.
 */
void dsm_log_epoch_cut(struct dsm_node *n)
{
	if (n->written.members)
		dsm_bits_empty(&n->written);
	n->next_pos = n->log_pos;
}

void dsm_log_epoch_end(struct dsm_node *n)
{
	n->epoch = (n->epoch + 1) & ((1u << EPOCH_BITS) - 1);
	if (!n->epoch)
		n->epoch = 1; /* 0 would make a reference of nothing */
	n->epoch_pos = n->next_pos;
	n->heard_nr = 0;
	memset(n->seen_pos, 0, (size_t)n->ranks * sizeof(*n->seen_pos));
	__atomic_store_n(&own_head(n)->start, n->epoch_pos, __ATOMIC_RELAXED);
	__atomic_store_n(&own_head(n)->epoch, n->epoch, __ATOMIC_RELEASE);
}

/* --- reading ------------------------------------------------------------------- */

static void get_head(struct dsm_node *n, int rank, struct dsm_log_head *h)
{
	dsm_must(n,
		 sul_get(n->port, rank, DSM_W_SYNC, n->at.log_head, h,
			 sizeof(*h), NULL, 0),
		 "reading the head of a log");
}

static void read_head(struct dsm_node *n, int rank, struct dsm_log_head *h)
{
	get_head(n, rank, h);
	dsm_flush_port(n);
}

/*
 * The same, and the epoch, too, is the one to which the start belongs, or an
 * older one: a rank that ends its epoch stores the start first, and a get may
 * be done in pieces.
 */
static void read_head_of_epoch(struct dsm_node *n, int rank,
			       struct dsm_log_head *h)
{
	uint64_t epoch;

	dsm_must(n,
		 sul_get(n->port, rank, DSM_W_SYNC,
			 n->at.log_head + offsetof(struct dsm_log_head, epoch),
			 &epoch, sizeof(epoch), NULL, 0),
		 "reading the head of a log");
	read_head(n, rank, h);
	h->epoch = epoch;
}

/* Is @ref, of this epoch, older than @other of the same rank, or the same? */
static bool is_up_to(const struct dsm_node *n, dsm_ref ref, dsm_ref other)
{
	return dsm_ref_current(n, other) &&
	       dsm_ref_rank(ref) == dsm_ref_rank(other) &&
	       (int32_t)((uint32_t)ref - (uint32_t)other) <= 0;
}

/*
 * Copy the entry in which @ref is, and which was whole before, into n->entry;
 * the reference that is in it now.
 */
static dsm_ref read_entry(struct dsm_node *n, dsm_ref ref)
{
	uint64_t off = release_off(n, (uint32_t)ref);
	dsm_ref again = 0;

	dsm_must(n,
		 sul_get(n->port, dsm_ref_rank(ref), DSM_W_SYNC, off, n->entry,
			 n->at.release_bytes, NULL, 0),
		 "reading a release");
	dsm_must(n,
		 sul_get(n->port, dsm_ref_rank(ref), DSM_W_SYNC, off, &again,
			 sizeof(again), NULL, 0),
		 "reading a release");
	dsm_flush_port(n);
	return n->entry->ref == ref || again != ref ? again : 0;
}

/*
 * Copy the release @ref into n->entry; false if it has been overwritten.  In
 * release mode one more look is taken then, since the younger release that is
 * there is just as good: its vector has all that the older one had (and no
 * more than others may see: a release is published when its diffs have been
 * executed).
 */
static bool read_release(struct dsm_node *n, dsm_ref ref, dsm_name lock)
{
	dsm_ref there = read_entry(n, ref);

	if (there == ref)
		return release_mode(n) || n->entry->lock == lock;
	return release_mode(n) && is_up_to(n, ref, there) &&
	       read_entry(n, there) == there;
}

static void want(struct dsm_node *n, uint32_t unit)
{
	if (unit >= n->pages || !dsm_bits_test(&n->cached, unit))
		return;
	dsm_bits_set(&n->pending, unit);
}

/* A stretch of @rank's log that is to be read. */
struct stretch {
	int rank;
	uint64_t from, to;
	uint64_t start; /* of the epoch (release mode) */
	uint32_t slot; /* see dsm_log_unit() */
};

static void take_notices(struct dsm_node *n, const struct stretch *s,
			 uint64_t pos, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t unit = n->incoming[i];

		if (!release_mode(n))
			unit = dsm_log_unit(unit, s->slot);
		else if (n->at.news_bytes)
			dsm_news_remember(n,
					  dsm_news_heard(unit, s->rank,
							 pos + i - s->start));
		want(n, unit);
	}
	dsm_stat_add(n->stats, notices_seen, nr);
}

/* False if some of them were overwritten. */
static bool read_stretch(struct dsm_node *n, const struct stretch *s)
{
	struct dsm_log_head h = { 0 };

	for (uint64_t pos = s->from; pos < s->to;) {
		uint64_t at = pos % n->cfg.log;
		uint64_t nr = s->to - pos;

		if (nr > n->cfg.log - at)
			nr = n->cfg.log - at;
		if (nr > DSM_INCOMING)
			nr = DSM_INCOMING;
		dsm_must(n,
			 sul_get(n->port, s->rank, DSM_W_SYNC,
				 n->at.log + 4 * at, n->incoming, 4 * nr, NULL,
				 0),
			 "reading notices");
		get_head(n, s->rank, &h);
		dsm_flush_port(n);
		take_notices(n, s, pos, (uint32_t)nr);
		pos += nr;
	}
	/* The slot of position head may be half written already. */
	return h.head < s->from + n->cfg.log;
}

static void overrun(struct dsm_node *n)
{
	if (DSM_BROKEN(skip_overrun))
		return;
	dsm_stat_add(n->stats, overruns, 1);
	n->heard_nr = 0; /* there is a gap now */
	for (int r = 0; r < n->ranks; r++) {
		struct dsm_log_head h;

		if (r == n->rank)
			continue;
		read_head_of_epoch(n, r, &h);
		n->floor_pos[r] = h.done;
		if (h.epoch == n->epoch && h.done > h.start + n->seen_pos[r])
			n->seen_pos[r] = h.done - h.start;
	}
	for (uint32_t u = dsm_bits_next(&n->cached, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->cached, u + 1))
		dsm_bits_set(&n->pending, u);
}

/* In release mode who knows a release of a rank knows all that it had before. */
static bool is_known(const struct dsm_node *n, dsm_ref ref)
{
	dsm_ref known = n->known_ref[dsm_ref_rank(ref)];

	if (DSM_BROKEN(known_any))
		return dsm_ref_current(n, known);
	return is_up_to(n, ref, known);
}

/* Is there more to be learnt from @ref, when @seen is known? */
static bool is_news(const struct dsm_node *n, dsm_ref ref, dsm_ref seen)
{
	/* What is older than an own release was seen before that. */
	return dsm_ref_current(n, ref) && ref != seen &&
	       dsm_ref_rank(ref) != n->rank &&
	       !(release_mode(n) && is_known(n, ref));
}

/* Take what came along; the release from which to go on in the logs. */
static dsm_ref take_news(struct dsm_node *n, dsm_ref ref, dsm_ref seen,
			 const struct dsm_news *news)
{
	uint32_t i, nr;

	if (!news || news->ref != ref)
		return ref;
	for (i = 0; i < news->releases && is_news(n, ref, seen); i++) {
		const uint32_t *units = dsm_news_units(news, i, &nr);

		for (uint32_t k = 0; k < nr; k++)
			want(n, units[k]);
		dsm_stat_add(n->stats, notices_seen, nr);
		ref = dsm_news_before(news, i);
	}
	if (i && !is_news(n, ref, seen))
		dsm_stat_add(n->stats, locks_carried, 1);
	return DSM_BROKEN(news_short) && i ? 0 : ref;
}

static bool acquire_scope(struct dsm_node *n, dsm_name lock, dsm_ref ref,
			  const struct dsm_news *news)
{
	dsm_ref seen = *dsm_name_seen(n, lock);

	for (ref = take_news(n, ref, seen, news); is_news(n, ref, seen);) {
		struct stretch s = { .rank = dsm_ref_rank(ref) };

		if (!read_release(n, ref, lock))
			return false;
		s.from = n->entry->from;
		s.to = n->entry->to;
		s.slot = (uint32_t)n->entry->slot;
		ref = n->entry->prev;
		if (s.from < s.to && s.to > n->floor_pos[s.rank] &&
		    !read_stretch(n, &s))
			return false;
	}
	return true;
}

/* What is missing up to the vector that came along, if that has it all. */
static bool take_unseen(struct dsm_node *n, const struct dsm_news *news)
{
	const uint64_t *vec = dsm_news_vector(news);
	uint64_t heard[DSM_CARRY_MAX];
	int nr = dsm_news_unseen(n, news, heard);

	if (nr < 0)
		return false;
	for (int i = 0; i < nr; i++) {
		want(n, dsm_news_unit(heard[i]));
		dsm_news_remember(n, heard[i]);
	}
	for (int r = 0; r < n->ranks; r++)
		if (r != n->rank && n->seen_pos[r] < vec[r])
			n->seen_pos[r] = vec[r];
	dsm_stat_add(n->stats, notices_seen, (uint64_t)nr);
	dsm_stat_add(n->stats, locks_carried, 1);
	return true;
}

/* Read all that lies between the own vector and @vec. */
static bool read_unseen(struct dsm_node *n, const uint64_t *vec)
{
	for (int r = 0; r < n->ranks; r++) {
		struct dsm_log_head h;
		struct stretch s;

		if (r == n->rank || vec[r] <= n->seen_pos[r])
			continue;
		read_head(n, r, &h);
		s = (struct stretch){ .rank = r,
				      .from = h.start + n->seen_pos[r],
				      .to = h.start + vec[r],
				      .start = h.start };
		if (!read_stretch(n, &s))
			return false;
		n->seen_pos[r] = vec[r];
	}
	return true;
}

static bool acquire_vector(struct dsm_node *n, dsm_name lock, dsm_ref ref,
			   const struct dsm_news *news)
{
	if (!is_news(n, ref, *dsm_name_seen(n, lock)))
		return true;
	if (news && news->ref == ref)
		return take_unseen(n, news) ||
		       read_unseen(n, dsm_news_vector(news));
	return read_release(n, ref, lock) && read_unseen(n, n->entry->vec);
}

bool dsm_log_news(struct dsm_node *n, dsm_name lock, dsm_ref ref)
{
	return is_news(n, ref, *dsm_name_seen(n, lock));
}

void dsm_log_acquire(struct dsm_node *n, dsm_name lock, dsm_ref ref,
		     const struct dsm_news *news)
{
	bool whole = release_mode(n) ? acquire_vector(n, lock, ref, news) :
				       acquire_scope(n, lock, ref, news);

	if (!whole)
		overrun(n);
	*dsm_name_seen(n, lock) = ref;
	if (release_mode(n) && dsm_ref_current(n, ref) && !is_known(n, ref))
		n->known_ref[dsm_ref_rank(ref)] = ref;
}
