/* SPDX-License-Identifier: MIT */
/*
 * dsm_page.c - the page table of rules (see dsm_page.h).
 *
 * Role:      says what follows when an event meets a unit in a state.
 * Invariant: every cell is filled: GO (move and act), NOP (nothing to do) or
 *            BAD (a bug of ours; it ends the job).  No written page goes away
 *            without its diff.
 * Threads:   the table is constant; the rank mutex serialises the events.
 */
#include "dsm_page.h"

#include <stddef.h>

#define GO(to, what, reason)                                              \
	{                                                                 \
		.kind = DSM_RULE_GO, .next = DSM_PG_##to, .acts = (what), \
		.why = (reason)                                           \
	}
#define NOP(reason)                                   \
	{                                             \
		.kind = DSM_RULE_NOP, .why = (reason) \
	}
#define BAD(reason)                                   \
	{                                             \
		.kind = DSM_RULE_BAD, .why = (reason) \
	}

#define FETCH DSM_ACT_FETCH
#define ENROL DSM_ACT_ENROL
#define CUT DSM_ACT_LOWER_NONE
#define LOCK DSM_ACT_LOWER_R
#define DIFF DSM_ACT_DIFF
#define TWIN DSM_ACT_TWIN
#define UNTWIN DSM_ACT_UNTWIN
#define NOTICE DSM_ACT_NOTICE
#define LEAVE DSM_ACT_DEREGISTER
#define R DSM_ACT_RAISE_R
#define RW DSM_ACT_RAISE_RW
#define IN DSM_ACT_CACHED
#define OUT DSM_ACT_UNCACHED

static const struct dsm_page_rule rules[DSM_PG_NR][DSM_EV_NR] = {
	[DSM_PG_INVALID] = {
		[DSM_EV_LOAD]         = GO(READ, FETCH | IN | R, "first use, or stale: ask the home"),
		[DSM_EV_STORE]        = GO(WATCH, FETCH | TWIN | IN | RW, "fetched to be written"),
		[DSM_EV_STORE_SHARED] = BAD("only its home knows the sharers"),
		[DSM_EV_OVERWRITE]    = GO(WATCH, ENROL | TWIN | IN | RW, "nothing of it is wanted; all of it is sent at the next release"),
		[DSM_EV_GUARD]        = BAD("there is nothing to guard"),
		[DSM_EV_DROP]         = NOP("no copy"),
		[DSM_EV_SHARED]       = BAD("not the home"),
		[DSM_EV_SHARED_MANY]  = BAD("not the home"),
		[DSM_EV_UNSHARED]     = BAD("not the home"),
		[DSM_EV_GAIN]         = BAD("a home moves to a valid copy only"),
		[DSM_EV_GAIN_SHARED]  = BAD("a home moves to a valid copy only"),
		[DSM_EV_LOSE]         = BAD("not the home"),
	},
	[DSM_PG_READ] = {
		[DSM_EV_LOAD]         = NOP("another thread has fetched it"),
		[DSM_EV_STORE]        = GO(WATCH, TWIN | RW, "first write of an interval"),
		[DSM_EV_STORE_SHARED] = BAD("only its home knows the sharers"),
		[DSM_EV_OVERWRITE]    = BAD("asked for only where nothing is here"),
		[DSM_EV_GUARD]        = BAD("it is read-only"),
		[DSM_EV_DROP]         = GO(INVALID, CUT | LEAVE | OUT, "clean: nothing to send"),
		[DSM_EV_SHARED]       = BAD("not the home"),
		[DSM_EV_SHARED_MANY]  = BAD("not the home"),
		[DSM_EV_UNSHARED]     = BAD("not the home"),
		[DSM_EV_GAIN]         = GO(OWN, OUT | RW, "the new home, alone"),
		[DSM_EV_GAIN_SHARED]  = GO(HGUARD, OUT, "the new home; the next write faults"),
		[DSM_EV_LOSE]         = BAD("not the home"),
	},
	[DSM_PG_WATCH] = {
		[DSM_EV_LOAD]         = NOP("another thread has fetched it"),
		[DSM_EV_STORE]        = NOP("another thread has made it writable"),
		[DSM_EV_STORE_SHARED] = BAD("only its home knows the sharers"),
		[DSM_EV_OVERWRITE]    = BAD("asked for only where nothing is here"),
		[DSM_EV_GUARD]        = GO(READ, LOCK | DIFF | UNTWIN, "protect first, compare after"),
		[DSM_EV_DROP]         = GO(INVALID, CUT | DIFF | UNTWIN | LEAVE | OUT, "protect, send the changes, then deregister"),
		[DSM_EV_SHARED]       = BAD("not the home"),
		[DSM_EV_SHARED_MANY]  = BAD("not the home"),
		[DSM_EV_UNSHARED]     = BAD("not the home"),
		[DSM_EV_GAIN]         = GO(OWN, UNTWIN | OUT, "the new home, alone; its changes were flushed on the way here"),
		[DSM_EV_GAIN_SHARED]  = GO(HWATCH, OUT, "the new home; goes on being compared"),
		[DSM_EV_LOSE]         = BAD("not the home"),
	},
	[DSM_PG_OWN] = {
		[DSM_EV_LOAD]         = NOP("readable: the fault was another thread's or is over"),
		[DSM_EV_STORE]        = NOP("writable: the fault was another thread's or is over"),
		[DSM_EV_STORE_SHARED] = NOP("writable; the release will see the sharer"),
		[DSM_EV_OVERWRITE]    = BAD("asked for only where nothing is here"),
		[DSM_EV_GUARD]        = BAD("an unshared page is not watched"),
		[DSM_EV_DROP]         = BAD("a home is not a cached copy"),
		[DSM_EV_SHARED]       = GO(HWATCH, TWIN | NOTICE, "unwatched writes may belong to any open scope"),
		[DSM_EV_SHARED_MANY]  = GO(HGUARD, LOCK | NOTICE, "unwatched writes may belong to any open scope; the next one faults"),
		[DSM_EV_UNSHARED]     = NOP("nobody shared it"),
		[DSM_EV_GAIN]         = BAD("it is the home"),
		[DSM_EV_GAIN_SHARED]  = BAD("it is the home"),
		[DSM_EV_LOSE]         = GO(READ, LOCK | IN, "an ordinary copy from now on; refreshed or dropped next"),
	},
	[DSM_PG_HWATCH] = {
		[DSM_EV_LOAD]         = NOP("readable"),
		[DSM_EV_STORE]        = NOP("another thread has made it writable"),
		[DSM_EV_STORE_SHARED] = NOP("another thread has made it writable"),
		[DSM_EV_OVERWRITE]    = BAD("asked for only where nothing is here"),
		[DSM_EV_GUARD]        = GO(HGUARD, LOCK | DIFF | UNTWIN, "protect first, compare after"),
		[DSM_EV_DROP]         = BAD("a home is not a cached copy"),
		[DSM_EV_SHARED]       = NOP("one more sharer"),
		[DSM_EV_SHARED_MANY]  = NOP("one more sharer"),
		[DSM_EV_UNSHARED]     = GO(OWN, DIFF | UNTWIN, "a change may still belong to an open scope"),
		[DSM_EV_GAIN]         = BAD("it is the home"),
		[DSM_EV_GAIN_SHARED]  = BAD("it is the home"),
		[DSM_EV_LOSE]         = GO(WATCH, IN, "an ordinary copy from now on; refreshed or dropped next"),
	},
	[DSM_PG_HGUARD] = {
		[DSM_EV_LOAD]         = NOP("readable"),
		[DSM_EV_STORE]        = GO(OWN, RW, "nobody shares it any more"),
		[DSM_EV_STORE_SHARED] = GO(HWATCH, TWIN | RW, "first write of an interval"),
		[DSM_EV_OVERWRITE]    = BAD("asked for only where nothing is here"),
		[DSM_EV_GUARD]        = BAD("it is guarded"),
		[DSM_EV_DROP]         = BAD("a home is not a cached copy"),
		[DSM_EV_SHARED]       = NOP("one more sharer"),
		[DSM_EV_SHARED_MANY]  = NOP("one more sharer"),
		[DSM_EV_UNSHARED]     = NOP("seen when it is written next"),
		[DSM_EV_GAIN]         = BAD("it is the home"),
		[DSM_EV_GAIN_SHARED]  = BAD("it is the home"),
		[DSM_EV_LOSE]         = GO(READ, IN, "an ordinary copy from now on; refreshed or dropped next"),
	},
};

const struct dsm_page_rule *dsm_page_rule(enum dsm_page_state s,
					  enum dsm_page_event e)
{
	return &rules[s][e];
}

const char *dsm_page_state_name(enum dsm_page_state s)
{
	static const char *const names[] = {
#define X(s) #s,
		DSM_PAGE_STATES(X)
#undef X
	};

	return (unsigned int)s < DSM_PG_NR ? names[s] : "?";
}

const char *dsm_page_event_name(enum dsm_page_event e)
{
	static const char *const names[] = {
#define X(e) #e,
		DSM_PAGE_EVENTS(X)
#undef X
	};

	return (unsigned int)e < DSM_EV_NR ? names[e] : "?";
}
