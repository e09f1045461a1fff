/* SPDX-License-Identifier: MIT */
/*
 * dsm_node.h - one rank of the shared memory: its state, and who may touch it.
 *
 * A node is everything one rank knows about the region.  The library has one;
 * the simulator holds many in one process.  Its code is pure: no clock, socket,
 * thread, signal or allocation on its paths.  What it needs of its surroundings
 * is in struct dsm_env; other ranks are reached through comm/ only.
 *
 * Locks.  The *rank mutex* (env->enter, env->leave) serialises flush, apply and
 * faults of a rank.  It is held until the operations have been executed at
 * their targets, because another thread's bytes may travel in them (race 5).
 * Loads and stores of the program's threads take no lock.  Nobody waits for
 * another rank's thread while holding it, except for one-sided operations.
 *
 * Windows.  What others may work on, at the same offsets on every rank:
 *   FRAME  the pages themselves (the *system view*; always writable)
 *   TWIN   the twin of a page, at the page's own offset, never another's
 *   DIR    the directory: who shares the pages of this home (dsm_dir.c)
 *   SYNC   interval log, releases, lock words and names, queue nodes, flags,
 *          barrier (dsm_log.c, dsm_name.c, dsm_lock.c, dsm_flag.c,
 *          dsm_barrier.c)
 */
#ifndef DSM_NODE_H
#define DSM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dsm_bits.h"
#include "dsm_config.h"
#include "dsm_heap.h"
#include "dsm_limits.h"
#include "dsm_mutant.h"
#include "dsm_notice.h"
#include "dsm_page.h"
#include "dsm_stat.h"
#include "dsm_tally.h"
#include "sul.h"

enum dsm_window {
	DSM_W_FRAME,
	DSM_W_TWIN,
	DSM_W_DIR,
	DSM_W_SYNC,
	DSM_WINDOWS
};

enum dsm_access {
	DSM_ACCESS_NONE,
	DSM_ACCESS_R,
	DSM_ACCESS_RW
};

/* A reference to one release of one rank, small enough for a lock's word:
 * rank (10 bits), epoch (22), index (32); 0: none. */
typedef uint64_t dsm_ref;

/*
 * What a lock or condition is called: a number below DSM_LOCKS or an address,
 * and in the uppermost bits what is meant by it.  See dsm_name.c.
 */
typedef uint64_t dsm_name;
#define DSM_NAME_BARE ((UINT64_C(1) << 60) - 1)
#define DSM_NAME_READERS (UINT64_C(1) << 60) /* of a reader-writer lock */
#define DSM_NAME_COND (UINT64_C(2) << 60)

struct dsm_node;
struct dsm_news; /* what a lock brings along: dsm_news.c */

/* What a node asks of its surroundings; @ctx is dsm_node.env_ctx. */
struct dsm_env {
	/* Change what the program may do with pages [page, page + pages).
	 * -ENOMEM: too many mappings. */
	int (*protect)(void *ctx, uint32_t page, uint32_t pages,
		       enum dsm_access access);
	/* The program is about to use these pages of the application view: a
	 * hint, since the first touch costs a trap.  May be NULL. */
	void (*warm)(void *ctx, uint32_t page, uint32_t pages,
		     enum dsm_access access);
	/* Pages that the program may not use yet get their place in the
	 * page table of the application view.  A hint; may be NULL. */
	void (*map)(void *ctx, uint32_t page, uint32_t pages);
	/* The rank mutex. */
	void (*enter)(void *ctx);
	void (*leave)(void *ctx);
	/* A wait has become long: say so where the launcher can see it. */
	void (*note)(void *ctx, const char *text);
	void (*note_end)(void *ctx);
	/* Nanoseconds, for the time counters only. */
	uint64_t (*now_ns)(void *ctx);
	/* The job cannot go on: err is a negative errno or 0. */
	__attribute__((noreturn)) void (*fail)(void *ctx, int err,
					       const char *text);
	void (*point)(void *ctx); /* DSM_POINT, in test builds */
};

/* Where the two words of a name are, in rank's SYNC window, and the record that
 * goes with a lock. */
struct dsm_words {
	int rank;
	uint64_t off, news;
};

struct dsm_known { /* a place that a thread has looked up */
	dsm_name name;
	uint64_t off;
};

struct dsm_seen {
	dsm_name name;
	dsm_ref ref;
};

struct dsm_kept { /* a place for a lock: dsm_keep.c */
	dsm_name lock;
	int state;
	uint32_t shy,
		pause; /* locks here that are not kept: now, and the next time */
};

enum dsm_hold {
	DSM_HOLD_LOCK, /* alone */
	DSM_HOLD_WRITE, /* alone, of a reader-writer lock */
	DSM_HOLD_READ /* with other readers */
};

/* Whether a unit that is, or was last, watched was changed. */
enum dsm_wrote {
	DSM_WROTE = 1, /* since its twin was made */
	DSM_WROTE_BEFORE = 2 /* and the time before that */
};

/* An open lock scope of a thread. */
struct dsm_scope {
	dsm_name lock;
	enum dsm_hold hold;
	uint64_t from; /* position in the own log at which it was opened */
	dsm_ref prev; /* the release that the lock carried then */
	uint32_t place; /* token of the place that has the lock, or 0 */
};

struct dsm_thread {
	struct dsm_node *node;
	uint32_t slot; /* 0 .. cfg.threads-1 */
	uint32_t depth; /* scopes open */
	uintptr_t site; /* where the program calls from, or 0 */
	uintptr_t fault_site; /* likewise, of a load or store that faults */
	struct dsm_scope scope[DSM_NEST_MAX];
	uint32_t recent[DSM_RECENT_PER_THREAD]; /* units of its last faults */
	uint32_t recent_at;
	uint32_t next_fault; /* the unit it will fault on if in sequence */
	uint32_t run; /* units repaired along with its last fault */
	struct dsm_range {
		uint64_t from, to; /* bytes */
	} held[DSM_HELD_MAX]; /* see dsm_touch.c */
	uint32_t held_nr;
	struct dsm_known known[DSM_KNOWN]; /* by the hash of the name */
};

/* Where the parts of the SYNC and DIR windows are; the same on every rank. */
struct dsm_layout {
	uint64_t log_head, log, releases, locks, nodes;
	uint64_t arrivals, up, down; /* dsm_barrier.c */
	uint64_t names_used, heads, entries; /* of the table of names */
	uint64_t flags_at, wakes, counts; /* dsm_flag.c */
	uint64_t inbox; /* dsm_message.c */
	uint64_t meet, calls;
	uint64_t news; /* of named locks, see dsm_news.c */
	uint64_t news_bytes; /* of one record; 0: there are none */
	uint64_t lock_bytes; /* of a numbered lock's words */
	uint64_t node_bytes; /* of a queue node */
	uint64_t release_bytes; /* of one entry of the ring of releases */
	uint64_t sync_bytes;
	uint64_t flags, leaf, mid, top, taken; /* DIR */
	uint64_t leaf_words; /* 64-bit words of sharers per page */
	uint64_t dir_bytes;
};

struct dsm_node {
	/* Constant after dsm_node_open(). */
	struct sul_port *port;
	const struct dsm_env *env;
	void *env_ctx;
	int rank, ranks;
	uint32_t page_shift; /* log2 of the bytes of a page */
	uint32_t pages; /* of the region */
	struct dsm_layout at;
	char *frame, *twin, *dir, *sync; /* own windows */

	/* Changed by collective calls only, alike on all ranks. */
	struct dsm_config cfg;
	struct dsm_heap heap;
	uint32_t page_end; /* behind the last page ever allocated */
	uint32_t threads; /* that meet at a barrier */
	uint32_t epoch; /* barriers passed, 22 bits, never 0 */
	uint64_t calls; /* collective calls made, and their running hash */
	uint64_t calls_hash;

	/* The rank mutex. */
	uint8_t *state; /* enum dsm_page_state, per unit */
	uint8_t *access; /* enum dsm_access that the program has, per page */
	uint8_t *order; /* log2 of the pages of a unit, per page */
	uint16_t *home; /* home rank + 1; 0: not allocated; per unit */
	uint16_t *idle; /* releases without a change, per unit */
	uint16_t *age; /* refreshes since the last fault, per unit */
	uint8_t *wrote; /* DSM_WROTE*, per unit */
	uint16_t *holds; /* threads that hold it accessible, per unit */
	uint8_t *whole; /* 1: all of it goes into the next diff, per unit */
	uint8_t *enrolled; /* 1: registered at its present home, per unit */
	uint16_t *fetched; /* epoch of its last fetch, low bits, per unit */
	uint8_t *ready; /* what is present of it, per page: dsm_ready.c */
	uint64_t ahead_made, ahead_useful; /* pages, see there */
	uint16_t *probe; /* age at which it is dropped to see, per unit */
	struct dsm_bits watched; /* units in WATCH or HWATCH */
	struct dsm_bits cached; /* units of other homes that are not INVALID */
	struct dsm_bits written; /* units noticed in this epoch */
	struct dsm_bits pending; /* units to refresh or drop, in apply */
	struct dsm_bits marked; /* units about to change protection together */
	struct dsm_bits dropped; /* by notices, and not fetched since */
	uint32_t recall; /* units of them to fetch when one faults */
	struct dsm_bits shown; /* of this home, read since the last release */
	uint64_t cached_pages, cache_pages; /* now, and at most */
	uint64_t watched_pages;
	uint32_t watch_min; /* so many are watched in any case */
	uint32_t evict_hand;
	uint64_t borders, borders_most; /* of access: now, and at most */
	uint32_t stretch_shift; /* log2 of the pages that are hidden together */
	uint32_t hide_hand; /* the next stretch to be looked at */
	uint64_t flush_ns; /* when the last flush ended */
	uint64_t log_pos; /* notices published so far */
	uint64_t epoch_pos; /* log_pos at the start of this epoch */
	uint64_t next_pos; /* ... of the next, from the arrival at a barrier */
	uint64_t release_nr; /* releases published so far */
	uint64_t *seen_pos; /* per rank: its log is known up to here, counted
			       from the start of its epoch (release mode) */
	uint64_t *floor_pos; /* per rank: ... absolute (after an overrun) */
	dsm_ref *known_ref; /* per rank: its youngest release applied, of an epoch
			       (release mode) */
	dsm_ref *seen_ref; /* per numbered lock: its last release applied */
	struct dsm_seen *seen_name; /* the same for names, by their hash */
	struct dsm_kept *kept; /* [cfg.retain]; of the only thread */
	uint32_t wakes; /* flags woken, see dsm_flag.c; atomic */
	struct sul_run *runs; /* of diffs under way */
	size_t runs_nr, runs_max;
	char *scratch; /* pages under way, in refresh: frames, then twins */
	size_t scratch_bytes;
	uint32_t *incoming; /* notices under way */
	uint64_t heard[DSM_CARRY_MAX]; /* the last notices, a ring: dsm_news.c */
	uint64_t heard_nr;
	uint32_t news_slots; /* places of records that are in use */
	struct dsm_release *entry; /* a release under way */
	uint32_t acting; /* slot of the thread that holds the mutex */
	struct dsm_notice *list[3]; /* of the barrier: own, child's, merged */
	struct dsm_thread *thread; /* [cfg.threads] */
	uint32_t thread_nr; /* slots that have been used */
	uint32_t meeting; /* threads that have reached the barrier */
	uint32_t meet_nr; /* meetings over */
	uint32_t tree_nr; /* rendezvous made, see dsm_barrier.c */
	struct sul_stats port_base; /* the port's when counting began */
	struct dsm_stats *stats; /* what counts at present */
	struct dsm_stats own_stats; /* when nobody gave it a place */
	uint8_t *place_of; /* row of its named allocation, per page */
	struct dsm_place *place; /* the rows */
	struct dsm_place own_place[DSM_PLACES_MAX]; /* as own_stats */
	struct dsm_spots *spots; /* where the time goes; NULL: nobody asks */
};

/* --- dsm_node.c ---------------------------------------------------------------- */

struct dsm_node_config {
	const struct dsm_config *cfg;
	int rank, ranks;
	uint32_t page_shift;
	const struct dsm_env *env;
	void *env_ctx;
};

/* Fills in the windows that a node with this configuration needs. */
void dsm_node_windows(const struct dsm_node_config *c, struct sul_config *out);
/* @port has those windows; it stays the caller's. -ENOMEM. */
int dsm_node_open(struct dsm_node **out, const struct dsm_node_config *c,
		  struct sul_port *port);
void dsm_node_close(struct dsm_node *n); /* NULL is fine */

/* A thread of the program; NULL when cfg.threads have come already. */
struct dsm_thread *dsm_thread_join(struct dsm_node *n);
void dsm_thread_part(struct dsm_thread *t); /* holds no lock */

/* End the job unless @err is 0: @what says what was being done. */
void dsm_must(struct dsm_node *n, int err, const char *what);
_Noreturn void dsm_die(struct dsm_node *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Everything this rank has issued has been executed. */
void dsm_flush_port(struct dsm_node *n);

enum dsm_wait {
	DSM_WAIT_LOCK, /* lock @a, behind rank @b */
	DSM_WAIT_NEXT, /* the next holder of lock @a */
	DSM_WAIT_CHILD, /* rank @a at the barrier */
	DSM_WAIT_OTHERS, /* the others at the barrier */
	DSM_WAIT_THREADS, /* the other threads of this rank */
	DSM_WAIT_READERS, /* the readers of lock @a */
	DSM_WAIT_COND, /* a signal on condition @a */
	DSM_WAIT_FLAG, /* flag @a to be set */
};
/* Wait until @word is not @old; if it takes long, what for is noted. */
void dsm_wait_word(struct dsm_node *n, struct sul_word *word, uint32_t old,
		   enum dsm_wait what, int64_t a, int b);
void dsm_stats_update(struct dsm_node *n); /* take over the port's counters */

static inline uint32_t dsm_unit_of(const struct dsm_node *n, uint32_t page)
{
	return page & ~((1u << n->order[page]) - 1);
}

static inline uint32_t dsm_unit_pages(const struct dsm_node *n, uint32_t unit)
{
	return 1u << n->order[unit];
}

static inline size_t dsm_unit_bytes(const struct dsm_node *n, uint32_t unit)
{
	return (size_t)1 << (n->order[unit] + n->page_shift);
}

static inline uint64_t dsm_unit_off(const struct dsm_node *n, uint32_t unit)
{
	return (uint64_t)unit << n->page_shift;
}

static inline int dsm_home(const struct dsm_node *n, uint32_t unit)
{
	return (int)n->home[unit] - 1; /* -1: not allocated */
}

static inline bool dsm_home_here(const struct dsm_node *n, uint32_t unit)
{
	return n->home[unit] == n->rank + 1;
}

/* Count something that belongs to a unit: a counter of dsm_place.def. */
#define dsm_count(n, unit, name, nr)                                      \
	do {                                                              \
		dsm_stat_add((n)->stats, name, nr);                       \
		dsm_stat_add(&(n)->place[(n)->place_of[unit]], name, nr); \
		struct dsm_hot *hot_ =                                    \
			dsm_spot_page((n)->spots, unit, DSM_COST_##name); \
		if (hot_)                                                 \
			hot_->count.name += (nr);                         \
	} while (0)

/*
 * True: this rank has one thread.  Where there is also nothing to do for any
 * page, it may do without the rank mutex: a fault in a signal handler that
 * interrupts it finds everything in order (dsm_lock.c, dsm_barrier.c).
 */
bool dsm_alone(const struct dsm_node *n);

/* The rank mutex, taken by @t (NULL: a thread that has not joined). */
void dsm_enter(struct dsm_node *n, const struct dsm_thread *t);
void dsm_leave(struct dsm_node *n);

/* --- dsm_dir.c: who shares the pages of a home ------------------------------------ */

void dsm_dir_layout(struct dsm_layout *at, int ranks, uint32_t pages);
/* One get of a unit under way; {0} before the first try. */
struct dsm_get {
	uint32_t taken[2]; /* loud: before and after */
	uint8_t flag[2]; /* quiet: before and after */
	bool quiet, tried, done;
};
/*
 * Get @unit from its home into @dst, and register as a sharer.  @twin: as much
 * room, to try without telling the home (see dsm_dir.c); NULL: not to try.
 * After a flush, and as long as dsm_dir_got() is false, it is got once more.
 */
void dsm_dir_get(struct dsm_node *n, uint32_t unit, char *dst, char *twin,
		 struct dsm_get *g);
bool dsm_dir_got(struct dsm_node *n, uint32_t unit, const char *dst,
		 const char *twin, struct dsm_get *g);
/* Register as a sharer of @unit, of which nothing is wanted; done when the port
 * was flushed. */
void dsm_dir_enrol(struct dsm_node *n, uint32_t unit);
void dsm_dir_deregister(struct dsm_node *n, uint32_t unit);
bool dsm_dir_shared(const struct dsm_node *n, uint32_t unit); /* own home */
void dsm_dir_forget(struct dsm_node *n, uint32_t unit); /* all its sharers */
/* True if @unit was got since the last scan or take; own home. */
bool dsm_dir_take(struct dsm_node *n, uint32_t unit);
/* False: no page of this home was got since the last scan. */
bool dsm_dir_news(const struct dsm_node *n);
/* Call @fn for each shared unit of this home that was got since the last. */
void dsm_dir_scan(struct dsm_node *n,
		  void (*fn)(struct dsm_node *n, uint32_t unit));
/* The byte that tells others whether @unit has a twin here. */
enum dsm_twin_flag {
	DSM_TWIN_NONE,
	DSM_TWIN_MAKING, /* writers store into it, too */
	DSM_TWIN_VALID /* ... and readers may compare with it */
};
uint8_t *dsm_dir_flag(const struct dsm_node *n, uint32_t unit);
struct sul_mirror dsm_dir_mirror(const struct dsm_node *n, uint32_t unit);

/* --- dsm_view.c: what the program may do with which page ------------------------------- */

void dsm_view_raise(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access);
/* Where it is less already it stays so. */
void dsm_view_lower(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access);
/* Pages that have their home here now, alone: they may be used, or can be
 * revealed. */
void dsm_view_open(struct dsm_node *n, uint32_t page, uint32_t pages);
/* True: the program may do less with @unit than its state allows. */
bool dsm_view_hidden(const struct dsm_node *n, uint32_t unit);
void dsm_view_reveal(struct dsm_node *n, uint32_t unit);

/* --- dsm_unit.c: what is done to one unit ------------------------------------------ */

/* Do what the table says; @done: acts that have been done already. */
void dsm_unit_event(struct dsm_node *n, uint32_t unit, enum dsm_page_event e,
		    unsigned int done);
enum dsm_fetch {
	DSM_FETCH_FAULT, /* they, or the first of them, faulted */
	DSM_FETCH_RECALL /* they were dropped, and may be used again */
};
/* Get @nr units that follow each other into their frames, registered.  @twins:
 * they are given twins next, so the frames will be worked on at once. */
void dsm_unit_fetch(struct dsm_node *n, uint32_t unit, uint32_t nr, bool twins,
		    enum dsm_fetch why);
/* Register for @nr units that follow each other, which will be overwritten. */
void dsm_unit_enrol(struct dsm_node *n, uint32_t unit, uint32_t nr);
/* Let the program at them: what the page table calls RAISE. */
void dsm_unit_raise(struct dsm_node *n, uint32_t unit, uint32_t pages,
		    enum dsm_access access);
/* Publish what differs from the twin; true if anything did. */
bool dsm_unit_publish(struct dsm_node *n, uint32_t unit);
/* Refresh cached units in place: at most DSM_REFRESH_UNITS, and not more than
 * fit into scratch_bytes. */
void dsm_unit_refresh(struct dsm_node *n, const uint32_t *units, size_t nr);
/* Take access away from every unit of the set, neighbours in one call. */
void dsm_unit_lower_set(struct dsm_node *n, const struct dsm_bits *set,
			enum dsm_access access);

/* --- dsm_ready.c: pages made present before they are needed ---------------------------- */

/* @unit is fetched next, alone: make its chunk present if that is in use. */
void dsm_ready_chunk(struct dsm_node *n, uint32_t unit);
/* Room for the twin of @unit. */
void dsm_ready_twin(struct dsm_node *n, uint32_t unit);
/* The program may use these pages from now on, and will at once. */
void dsm_ready_view(struct dsm_node *n, uint32_t page, uint32_t pages,
		    enum dsm_access access);
/* Their memory has been given back. */
void dsm_ready_forget(struct dsm_node *n, uint32_t page, uint32_t pages);

/* --- dsm_cache.c: faults and the limit of the cache ----------------------------------- */

/*
 * A load or store of @page faulted.  0; -EFAULT if the page is not allocated.
 * Returns at once if another thread has repaired it.
 */
int dsm_fault(struct dsm_node *n, struct dsm_thread *t, uint32_t page,
	      bool store);
/* @unit has been dropped because of a notice: it may be wanted again soon. */
void dsm_cache_dropped(struct dsm_node *n, uint32_t unit);
/* Make @nr units that follow each other, neither here nor at home here, writable
 * without their contents; under the mutex. */
void dsm_cache_overwrite(struct dsm_node *n, struct dsm_thread *t,
			 uint32_t unit, uint32_t nr);
/* Give back the memory of a unit that is not cached any more. */
void dsm_cache_discard(struct dsm_node *n, uint32_t unit);

/* --- dsm_touch.c: ranges held accessible ---------------------------------------------------- */

enum dsm_touch {
	DSM_TOUCH_READ,
	DSM_TOUCH_WRITE,
	DSM_TOUCH_OVERWRITE /* what was there is not needed */
};
/*
 * Make @len bytes (not 0) at @off accessible and keep them so until
 * dsm_untouch().  -EFAULT: not all of them are allocated; -ENOSPC: larger than the
 * cache; -EMFILE: @t holds DSM_HELD_MAX ranges.
 */
int dsm_touch(struct dsm_thread *t, uint64_t off, uint64_t len,
	      enum dsm_touch mode);
int dsm_untouch(struct dsm_thread *t, uint64_t off, uint64_t len); /* -ENOENT */
void dsm_untouch_all(struct dsm_thread *t);

static inline bool dsm_held(const struct dsm_node *n, uint32_t unit)
{
	return n->holds[unit];
}

/* --- dsm_log.c: what this rank has published ------------------------------------------ */

/* Read by others, at at.log_head of the SYNC window. */
struct dsm_log_head {
	uint64_t start; /* position at which the epoch began */
	uint64_t head; /* position of the next notice */
	uint64_t done; /* what was noticed before this has been executed */
	uint64_t epoch;
};

void dsm_log_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		    int ranks);
void dsm_log_open(struct dsm_node *n);
void dsm_log_notice(struct dsm_node *n, uint32_t unit);
/* All that has been noticed so far has been executed at its home. */
void dsm_log_done(struct dsm_node *n);
/* Publish a release of @s by @t; what the lock carries from now on. */
dsm_ref dsm_log_release(struct dsm_node *n, const struct dsm_thread *t,
			const struct dsm_scope *s);
/* Put the units that @ref's lock brings news of into n->pending; @news: what
 * came with @ref, or NULL. */
void dsm_log_acquire(struct dsm_node *n, dsm_name lock, dsm_ref ref,
		     const struct dsm_news *news);
/* True: there is nothing in @s that is to be published. */
bool dsm_log_empty(const struct dsm_node *n, const struct dsm_scope *s);
/* What this rank has written or learnt of, per rank (release mode). */
void dsm_log_vector(const struct dsm_node *n, uint64_t *vec);
/* The unit of what was read from a log; DSM_BITS_END: it is not of @slot, which
 * only a mutant asks. */
uint32_t dsm_log_unit(uint32_t notice, uint32_t slot);
/* At the arrival at a barrier: what is noticed from here on is the next
 * epoch's; and when the barrier is over. */
void dsm_log_epoch_cut(struct dsm_node *n);
void dsm_log_epoch_end(struct dsm_node *n);
/* False: a lock that carries @ref brings no news. */
bool dsm_log_news(struct dsm_node *n, dsm_name lock, dsm_ref ref);
int dsm_ref_rank(dsm_ref ref);
bool dsm_ref_current(const struct dsm_node *n, dsm_ref ref);

/* --- dsm_news.c: what a lock brings along (more in dsm_news.h) --------------------------- */

void dsm_news_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		     int ranks);

/* --- dsm_sync.c: release and acquire ---------------------------------------------------- */

void dsm_flush(struct dsm_node *n); /* the release side, under the mutex */
/* True: a flush would find nothing to do. */
bool dsm_flush_idle(const struct dsm_node *n);
void dsm_apply(struct dsm_node *n); /* n->pending, under the mutex */

/* --- dsm_name.c: locks and conditions by number or address ------------------------------ */

void dsm_name_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		     int ranks);
uint64_t dsm_name_hash(dsm_name name);
/* "3", or "at 0x550000000040". */
void dsm_name_text(dsm_name name, char *out, size_t room);
int dsm_name_manager(const struct dsm_node *n, dsm_name name);
/* The two words of @name, 0 when it was never used; @t's own cache answers when
 * it can.  Ends the job when the manager's table is full. */
struct dsm_words dsm_name_words(struct dsm_thread *t, dsm_name name);
/* The last release of @name that this rank has applied; under the mutex. */
dsm_ref *dsm_name_seen(struct dsm_node *n, dsm_name name);

/* --- dsm_lock.c, dsm_rwlock.c, dsm_cond.c ------------------------------------------------ */

void dsm_lock_layout(struct dsm_layout *at, const struct dsm_config *cfg);
/* @t holds fewer than DSM_NEST_MAX locks, and not this one. */
void dsm_lock(struct dsm_thread *t, dsm_name lock);
bool dsm_trylock(struct dsm_thread *t, dsm_name lock); /* false: not free */
/* The one that was taken last. */
void dsm_unlock(struct dsm_thread *t, dsm_name lock);
/* Reader-writer locks; the same names as dsm_lock()'s, and wrlock is the same
 * lock as rdlock's only if all use these calls. */
void dsm_rdlock(struct dsm_thread *t, dsm_name lock);
void dsm_wrlock(struct dsm_thread *t, dsm_name lock);
void dsm_rwunlock(struct dsm_thread *t, dsm_name lock);
/* Release the lock taken last, wait for a signal on @cond, take it again. */
void dsm_cond_wait(struct dsm_thread *t, dsm_name cond);
void dsm_cond_signal(struct dsm_thread *t, dsm_name cond); /* one waiter */
void dsm_cond_broadcast(struct dsm_thread *t, dsm_name cond); /* all */

/* --- dsm_flag.c: JIAJIA's condition variables, and counters ----------------------------- */

void dsm_flag_layout(struct dsm_layout *at, int ranks);
void dsm_flag_set(struct dsm_node *n, int flag); /* 0 .. DSM_FLAGS-1 */
void dsm_flag_reset(struct dsm_node *n, int flag);
void dsm_flag_wait(struct dsm_node *n, int flag);
/* Add to counter @nr (0 .. DSM_COUNTS-1) of rank 0; what it was before. */
uint64_t dsm_count_add(struct dsm_node *n, int nr, uint64_t by);
void dsm_count_zero(struct dsm_node *n, int nr);

/* --- dsm_message.c ------------------------------------------------------------------------ */

void dsm_inbox_layout(struct dsm_layout *at);

/* --- dsm_barrier.c ------------------------------------------------------------------------- */

enum dsm_meeting {
	DSM_MEET_BARRIER, /* all writes become visible */
	DSM_MEET_WAIT, /* nothing does */
	DSM_MEET_EXIT /* a barrier, and the last */
};

void dsm_barrier_layout(struct dsm_layout *at, const struct dsm_config *cfg,
			uint32_t pages);
/* All threads of all ranks; the call is recorded with @t's site. */
void dsm_barrier(struct dsm_thread *t, enum dsm_meeting kind);

/* --- dsm_home.c: collective calls on memory ---------------------------------------------------- */

/*
 * @bytes in blocks of @block bytes, from rank @home on; @order: log2 of the
 * pages of its units of coherence.  -ENOMEM: the region is full; -EINVAL.
 */
int dsm_alloc(struct dsm_node *n, uint64_t bytes, uint64_t block, int home,
	      unsigned int order, uint32_t *page);
/* The same with block[i] bytes for each rank in round i, all at least 1. */
int dsm_alloc_rounds(struct dsm_node *n, uint64_t bytes, const int *block,
		     int home, unsigned int order, uint32_t *page);
/*
 * Between two rendezvous, the first a DSM_MEET_WAIT: when a rank has left a
 * barrier, others may still be refreshing their copies from it.  -EINVAL:
 * nothing was allocated there.
 */
int dsm_free(struct dsm_node *n, uint32_t page);
void dsm_home_move(struct dsm_node *n, uint32_t unit, int to);

#endif /* DSM_NODE_H */
