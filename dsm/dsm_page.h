/* SPDX-License-Identifier: MIT */
/*
 * dsm_page.h - the life of one unit of coherence, as a table.
 *
 * A unit is a page or a power of two of pages.  Each rank has it in one of the
 * states below; what may happen to it is an event; dsm_page.c holds the whole
 * table, one cell for each pair.
 */
#ifndef DSM_PAGE_H
#define DSM_PAGE_H

/*
 *  INVALID  no copy here; any access faults
 *  READ     a clean copy, read-only, registered at its home
 *  WATCH    a copy that may be written: has a twin, is compared at releases
 *  OWN      home; nobody else has a copy: writable, costs nothing
 *  HWATCH   home; others have copies: writable, has a twin, is compared
 *  HGUARD   home; others have copies: read-only, no twin, a write faults
 */
#define DSM_PAGE_STATES(X) \
	X(INVALID)         \
	X(READ)            \
	X(WATCH)           \
	X(OWN)             \
	X(HWATCH)          \
	X(HGUARD)

#define DSM_PAGE_EVENTS(X)                                                \
	X(LOAD) /* a load faulted */                                      \
	X(STORE) /* a store faulted; nobody shares it, if we are home */  \
	X(STORE_SHARED) /* a store faulted; it has sharers */             \
	X(OVERWRITE) /* all of it is about to be written */               \
	X(GUARD) /* unchanged for long enough: write-protect it */        \
	X(DROP) /* invalidated by a notice, or evicted */                 \
	X(SHARED) /* a first sharer has registered */                     \
	X(SHARED_MANY) /* ... and too much is watched already */          \
	X(UNSHARED) /* the last sharer has gone */                        \
	X(GAIN) /* its home moves here; nobody has registered yet */      \
	X(GAIN_SHARED) /* its home moves here; somebody has registered */ \
	X(LOSE) /* its home moves away */

enum dsm_page_state {
#define X(s) DSM_PG_##s,
	DSM_PAGE_STATES(X)
#undef X
	DSM_PG_NR
};

enum dsm_page_event {
#define X(e) DSM_EV_##e,
	DSM_PAGE_EVENTS(X)
#undef X
	DSM_EV_NR
};

/* What a cell asks for, in the order in which it is done. */
enum dsm_page_act {
	DSM_ACT_FETCH = 1 << 0, /* register as a sharer, get it from its home */
	DSM_ACT_LOWER_NONE = 1 << 1, /* take all access away */
	DSM_ACT_LOWER_R = 1 << 2, /* take write access away */
	DSM_ACT_DIFF = 1 << 3, /* compare with the twin, publish the changes */
	DSM_ACT_TWIN = 1 << 4, /* make a twin and begin to watch */
	DSM_ACT_UNTWIN = 1 << 5, /* forget the twin and stop watching */
	DSM_ACT_NOTICE = 1 << 6, /* publish a notice, written or not */
	DSM_ACT_DEREGISTER = 1 << 7, /* no longer a sharer */
	DSM_ACT_RAISE_R = 1 << 8, /* give read access */
	DSM_ACT_RAISE_RW = 1 << 9, /* give read and write access */
	DSM_ACT_CACHED = 1 << 10, /* counts against the cache from now on */
	DSM_ACT_UNCACHED = 1 << 11, /* ... no longer */
	DSM_ACT_ENROL = 1 << 12, /* register as a sharer, get nothing */
};

struct dsm_page_rule {
	enum {
		DSM_RULE_HOLE,
		DSM_RULE_GO,
		DSM_RULE_NOP,
		DSM_RULE_BAD
	} kind;
	enum dsm_page_state next;
	unsigned int acts; /* DSM_ACT_* */
	const char *why;
};

const struct dsm_page_rule *dsm_page_rule(enum dsm_page_state s,
					  enum dsm_page_event e);
const char *dsm_page_state_name(enum dsm_page_state s);
const char *dsm_page_event_name(enum dsm_page_event e);

#endif /* DSM_PAGE_H */
