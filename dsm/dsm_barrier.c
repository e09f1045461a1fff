/* SPDX-License-Identifier: MIT */
/*
 * dsm_barrier.c - the rendezvous of all ranks, and what a barrier adds to it.
 *
 * Role:      a tree of ranks over notify words.  Up the tree go the lists of
 *            units written in this epoch, merged at every node; down goes the
 *            result, from which everybody derives the same: which homes move,
 *            and which of its copies to refresh or drop.
 * Invariant: what is said to others, or read by them, is not changed before they
 *            have it: the parent has `up` before it lets the rank go, a child has
 *            `down` before it comes again.
 * Threads:   all threads of a rank meet first; the last to come does the rank's
 *            part, the others sleep.
 * Locks:     the rank mutex for flush and apply, not while waiting.
 */
#include "dsm_node.h"

#include <string.h>

#include "dsm_call.h"

/*
 * What a child says to its parent; of the list, as much as `gather` allows.  Each
 * rank has one to say (`up`), with all of its list, and a slot for each child.
 */
struct arrival {
	struct sul_word word; /* number of the rendezvous */
	uint32_t count; /* of its list */
	uint32_t kind; /* enum dsm_meeting */
	uint64_t calls, hash; /* collective calls: how many, and which */
	uint64_t pad[4];
	struct dsm_notice list[];
};

/* What a parent says to its child, from its own one (`down`) into the child's. */
struct departure {
	struct sul_word word;
	uint64_t count;
	uint64_t pad[6];
	struct dsm_notice list[];
};

enum {
	TREE_MAX = 64 /* the largest `tree` */
};

static uint64_t lines(uint64_t bytes)
{
	return (bytes + 63) & ~UINT64_C(63);
}

static uint64_t slot_bytes(const struct dsm_config *cfg)
{
	return lines(sizeof(struct arrival) +
		     cfg->gather * sizeof(struct dsm_notice));
}

void dsm_barrier_layout(struct dsm_layout *at, const struct dsm_config *cfg,
			uint32_t pages)
{
	uint64_t list = sizeof(struct dsm_notice) * (uint64_t)pages;

	at->meet = at->sync_bytes;
	at->sync_bytes += 64;
	at->arrivals = at->sync_bytes;
	at->sync_bytes += slot_bytes(cfg) * TREE_MAX;
	at->up = at->sync_bytes;
	at->sync_bytes += lines(sizeof(struct arrival) + list);
	at->down = at->sync_bytes;
	at->sync_bytes += lines(sizeof(struct departure) + list);
}

static struct arrival *own_arrival(const struct dsm_node *n)
{
	return (void *)(n->sync + n->at.up);
}

static struct departure *own_departure(const struct dsm_node *n)
{
	return (void *)(n->sync + n->at.down);
}

/* Does all of a list go along with the word? */
static bool goes_along(const struct dsm_node *n, uint64_t count)
{
	return count <= n->cfg.gather;
}

static size_t along_bytes(const struct dsm_node *n, uint64_t count)
{
	return goes_along(n, count) ? count * sizeof(struct dsm_notice) : 0;
}

static int parent_of(const struct dsm_node *n)
{
	return (n->rank - 1) / (int)n->cfg.tree;
}

static int first_child(const struct dsm_node *n)
{
	return n->rank * (int)n->cfg.tree + 1;
}

static int end_child(const struct dsm_node *n)
{
	int64_t end = (int64_t)first_child(n) + (int64_t)n->cfg.tree;

	return end < n->ranks ? (int)end : n->ranks;
}

static uint64_t arrival_off(const struct dsm_node *n, int child)
{
	uint64_t slot = (uint64_t)(child - 1) % n->cfg.tree;

	return n->at.arrivals + slot_bytes(&n->cfg) * slot;
}

/*
 * What a rendezvous costs over a network, and why it is no multicast.
 *
 * An edge of the tree takes 2 packets (jiabench -r wait): arrival and departure,
 * each with its list of notices and its word.  Nobody waits for an
 * acknowledgement: a departure says that the arrival came, and the next arrival
 * that the departure did.  A list longer than `gather` is fetched, which takes a
 * round trip more.  So n hosts send 2 (n - 1) packets, and no host handles more
 * than those of `tree` + 1 edges.
 *
 * A multicast down the tree would make one packet of n - 1, and save half at
 * best: all hosts acknowledge it, for only so is it known to be there, and the
 * n - 1 acknowledgements meet at one host instead of `tree` at each.  Of 1,000
 * hosts that takes longer, at some microsecond each, than the five levels of the
 * tree.  It needs a key that all hosts share, with which each of them could say
 * what rank 0 alone may; and a network that lets it pass, which those of clouds do
 * not.  Nor are bytes saved: a notice is 8 of them, the page that it is about
 * 4,096 for each copy.
 */

/* --- up ------------------------------------------------------------------------------ */

static uint32_t own_list(struct dsm_node *n, struct dsm_notice *list)
{
	uint32_t nr = 0;

	for (uint32_t u = dsm_bits_next(&n->written, 0); u != DSM_BITS_END;
	     u = dsm_bits_next(&n->written, u + 1)) {
		bool valid = dsm_home_here(n, u) ||
			     n->state[u] != DSM_PG_INVALID;

		if (dsm_home(n, u) < 0)
			continue; /* freed since */
		list[nr++] = (struct dsm_notice){
			.unit = u,
			.writer = (uint16_t)n->rank,
			.flags = valid ? DSM_NOTICE_VALID : 0,
		};
	}
	return nr;
}

static void check_calls(struct dsm_node *n, int child, const struct arrival *a,
			enum dsm_meeting kind)
{
	if (a->calls == n->calls && a->hash == n->calls_hash &&
	    a->kind == (uint32_t)kind)
		return;
	dsm_call_differ(n, child, a->calls);
}

/* The list of @child, which has arrived. */
static const struct dsm_notice *child_list(struct dsm_node *n, int child,
					   const struct arrival *a)
{
	if (goes_along(n, a->count))
		return a->list;
	dsm_must(n,
		 sul_get(n->port, child, DSM_W_SYNC,
			 n->at.up + offsetof(struct arrival, list), n->list[1],
			 a->count * sizeof(struct dsm_notice), NULL, 0),
		 "gathering notices");
	dsm_must(n, sul_flush(n->port), "gathering notices");
	return n->list[1];
}

/* Add @child's list to n->list[0]; the new length. */
static uint32_t add_child(struct dsm_node *n, int child, uint32_t nr,
			  enum dsm_meeting kind)
{
	struct arrival *a = (void *)(n->sync + arrival_off(n, child));
	struct dsm_notice *merged;

	dsm_wait_word(n, &a->word, n->tree_nr - 1, DSM_WAIT_CHILD, child, 0);
	check_calls(n, child, a, kind);
	if (!a->count)
		return nr;
	nr = (uint32_t)dsm_notice_merge(n->list[2], n->list[0], nr,
					child_list(n, child, a), a->count);
	merged = n->list[2];
	n->list[2] = n->list[0];
	n->list[0] = merged;
	return nr;
}

static void arrive(struct dsm_node *n, uint32_t nr, enum dsm_meeting kind)
{
	struct arrival *a = own_arrival(n);
	uint64_t off = arrival_off(n, n->rank);

	a->count = nr;
	a->kind = (uint32_t)kind;
	a->calls = n->calls;
	a->hash = n->calls_hash;
	memcpy(a->list, n->list[0], nr * sizeof(*n->list[0]));
	dsm_must(n,
		 sul_put(n->port, parent_of(n), DSM_W_SYNC,
			 off + offsetof(struct arrival, count), &a->count,
			 sizeof(*a) - offsetof(struct arrival, count) +
				 along_bytes(n, nr)),
		 "arriving at a barrier");
	dsm_must(n,
		 sul_notify(n->port, parent_of(n), DSM_W_SYNC, off, n->tree_nr),
		 "arriving at a barrier");
	dsm_must(n, sul_push(n->port), "arriving at a barrier");
}

/* --- down ----------------------------------------------------------------------------- */

/* The result from the parent, into `down`; its length. */
static uint32_t depart(struct dsm_node *n)
{
	struct departure *d = own_departure(n);
	uint32_t nr;

	dsm_wait_word(n, &d->word, n->tree_nr - 1, DSM_WAIT_OTHERS, 0, 0);
	nr = (uint32_t)d->count;
	if (goes_along(n, nr))
		return nr;
	dsm_must(n,
		 sul_get(n->port, parent_of(n), DSM_W_SYNC,
			 n->at.down + offsetof(struct departure, list), d->list,
			 nr * sizeof(struct dsm_notice), NULL, 0),
		 "leaving a barrier");
	dsm_must(n, sul_flush(n->port), "leaving a barrier");
	return nr;
}

static void let_go(struct dsm_node *n)
{
	const struct departure *d = own_departure(n);
	size_t bytes = sizeof(*d) - offsetof(struct departure, count) +
		       along_bytes(n, d->count);

	for (int c = first_child(n); c < end_child(n); c++) {
		dsm_must(n,
			 sul_put(n->port, c, DSM_W_SYNC,
				 n->at.down + offsetof(struct departure, count),
				 &d->count, bytes),
			 "letting others leave a barrier");
		dsm_must(n,
			 sul_notify(n->port, c, DSM_W_SYNC, n->at.down,
				    n->tree_nr),
			 "letting others leave a barrier");
	}
	dsm_must(n, sul_push(n->port), "letting others leave a barrier");
}

/* Meet all ranks; the length of the merged list in `down`. */
static uint32_t rendezvous(struct dsm_node *n, uint32_t nr,
			   enum dsm_meeting kind)
{
	n->tree_nr++;
	for (int c = first_child(n); c < end_child(n); c++)
		nr = add_child(n, c, nr, kind);
	if (n->rank) {
		arrive(n, nr, kind);
		nr = depart(n);
	} else {
		own_departure(n)->count = nr;
		memcpy(own_departure(n)->list, n->list[0],
		       nr * sizeof(*n->list[0]));
	}
	let_go(n);
	return nr;
}

/* --- what a barrier adds ------------------------------------------------------------------ */

static void count_together(struct dsm_node *n, uint32_t unit)
{
	struct dsm_hot *hot = dsm_spot_page(n->spots, unit, DSM_COST_together);

	dsm_stat_add(n->stats, mwdiffs, 1);
	if (!hot)
		return;
	hot->together++;
	hot->place = n->place_of[unit];
	hot->bytes = (uint32_t)dsm_unit_bytes(n, unit);
}

static void end_epoch(struct dsm_node *n, uint32_t nr)
{
	const struct dsm_notice *list = own_departure(n)->list;

	dsm_log_epoch_end(n);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t u = list[i].unit;
		int writer = list[i].writer;
		bool moves = n->cfg.migrate && writer != DSM_WRITER_MANY &&
			     list[i].flags & DSM_NOTICE_VALID &&
			     writer != dsm_home(n, u);

		if (moves)
			dsm_home_move(n, u, writer);
		if (moves && DSM_BROKEN(move_quiet))
			continue;
		if (writer == DSM_WRITER_MANY && !n->rank)
			count_together(n, u);
		if (writer != n->rank && dsm_bits_test(&n->cached, u))
			dsm_bits_set(&n->pending, u);
	}
	dsm_apply(n);
}

/* What this rank has written; the length of n->list[0]. */
static uint32_t release_all(struct dsm_node *n, const struct dsm_thread *t)
{
	uint32_t nr;

	if (dsm_alone(n) && dsm_flush_idle(n) && !n->written.members) {
		dsm_log_epoch_cut(n);
		return 0;
	}
	dsm_enter(n, t);
	dsm_flush(n);
	nr = own_list(n, n->list[0]);
	dsm_log_epoch_cut(n);
	dsm_leave(n);
	return nr;
}

static void rank_barrier(struct dsm_thread *t, enum dsm_meeting kind)
{
	struct dsm_node *n = t->node;
	uint32_t nr;
	bool work;

	if (kind == DSM_MEET_WAIT) {
		rendezvous(n, 0, kind);
		dsm_stat_add(n->stats, waits, 1);
		return;
	}
	nr = rendezvous(n, release_all(n, t), kind);
	work = nr || !dsm_alone(n);
	if (work)
		dsm_enter(n, t);
	end_epoch(n, nr);
	dsm_stat_add(n->stats, barriers, 1);
	dsm_stats_update(n);
	if (work)
		dsm_leave(n);
}

static struct sul_word *meet_word(const struct dsm_node *n)
{
	return (void *)(n->sync + n->at.meet);
}

/* False: another thread of this rank came later, and has done the rest. */
static bool all_here(struct dsm_thread *t)
{
	struct dsm_node *n = t->node;
	uint32_t meeting;

	dsm_enter(n, t);
	meeting = n->meet_nr;
	if (++n->meeting < n->threads) {
		dsm_leave(n);
		dsm_wait_word(n, meet_word(n), meeting, DSM_WAIT_THREADS, 0, 0);
		return false;
	}
	n->meeting = 0;
	dsm_leave(n);
	return true;
}

static void wake_threads(struct dsm_node *n)
{
	n->meet_nr++;
	dsm_must(n,
		 sul_notify(n->port, n->rank, DSM_W_SYNC, n->at.meet,
			    n->meet_nr),
		 "leaving a barrier");
	dsm_must(n, sul_flush(n->port), "leaving a barrier");
}

void dsm_barrier(struct dsm_thread *t, enum dsm_meeting kind)
{
	static const enum dsm_call_kind call[] = {
		[DSM_MEET_BARRIER] = DSM_CALL_jia_barrier,
		[DSM_MEET_WAIT] = DSM_CALL_jia_wait,
		[DSM_MEET_EXIT] = DSM_CALL_jia_exit,
	};
	struct dsm_node *n = t->node;
	uint64_t start = n->env->now_ns(n->env_ctx);

	if (!dsm_alone(n) && !all_here(t))
		return;
	dsm_call_record(n, call[kind], NULL, t->site);
	rank_barrier(t, kind);
	start = n->env->now_ns(n->env_ctx) - start;
	dsm_stat_add(n->stats, barrier_ns, start);
	dsm_spot_add(n->spots, DSM_SPOT_barrier, t->site, 0, start);
	if (n->threads > 1)
		wake_threads(n);
}
