/* SPDX-License-Identifier: MIT */
/*
 * jia_lock.c - the public calls on locks and conditions.
 *
 * Role:    what a wrong argument, or a call at the wrong time, can do is found
 *          here; below, arguments are right.
 * Threads: any thread, for itself.
 * Locks:   none of its own.
 */
#include "jia.h"

#include "dsm_crew.h"
#include "dsm_public.h"

_Static_assert((int)Maxlocks == (int)DSM_LOCKS, "jia.h promises the limit");
_Static_assert((int)Maxcvs == (int)DSM_FLAGS, "jia.h promises the limit");

enum {
	FIRST_ADDRESS = 4096 /* below are numbers, and NULL with an offset */
};

static dsm_name numbered(struct dsm_host *h, int lock)
{
	if (lock < 0 || lock >= Maxlocks)
		dsm_host_fail(h, "lock %d does not exist; 0 to %d do", lock,
			      Maxlocks - 1);
	return (dsm_name)lock;
}

static dsm_name addressed(struct dsm_host *h, const void *addr)
{
	uint64_t a = (uintptr_t)addr;

	if (a < FIRST_ADDRESS || a & ~DSM_NAME_BARE)
		dsm_host_fail(
			h,
			"%p is not the address of anything; it must be the same on all ranks, as in shared memory or of a global variable",
			addr);
	return a;
}

static const struct dsm_scope *held(const struct dsm_thread *t, dsm_name name)
{
	for (uint32_t i = 0; i < t->depth; i++)
		if (t->scope[i].lock == name)
			return &t->scope[i];
	return NULL;
}

static void check_depth(struct dsm_host *h, const struct dsm_thread *t)
{
	if (t->depth == DSM_NEST_MAX)
		dsm_host_fail(h, "more than %d locks held at once",
			      DSM_NEST_MAX);
}

/* May @t wait for @name? */
static void check_take(struct dsm_host *h, const struct dsm_thread *t,
		       dsm_name name)
{
	char text[DSM_NAME_TEXT];

	if (held(t, name)) {
		dsm_name_text(name, text, sizeof(text));
		dsm_host_fail(h, "lock %s is held by this thread already",
			      text);
	}
	check_depth(h, t);
}

_Noreturn static void refuse_release(struct dsm_host *h,
				     const struct dsm_thread *t, dsm_name name,
				     bool plain)
{
	const struct dsm_scope *s = held(t, name);
	char text[DSM_NAME_TEXT], top[DSM_NAME_TEXT];

	dsm_name_text(name, text, sizeof(text));
	if (!s)
		dsm_host_fail(h, "lock %s is not held by this thread", text);
	if (s != &t->scope[t->depth - 1]) {
		dsm_name_text(t->scope[t->depth - 1].lock, top, sizeof(top));
		dsm_host_fail(
			h,
			"lock %s cannot be released now: lock %s was taken last and goes first",
			text, top);
	}
	dsm_host_fail(h, "lock %s was taken by %s; release it with %s", text,
		      plain ? "jia_rdlock() or jia_wrlock()" :
			      "jia_lock() or jia_trylock()",
		      plain ? "jia_rwunlock()" : "jia_unlock()");
}

/* May @t release @name, by a call for plain locks or for reader-writer ones? */
static void check_release(struct dsm_host *h, const struct dsm_thread *t,
			  dsm_name name, bool plain)
{
	const struct dsm_scope *s = t->depth ? &t->scope[t->depth - 1] : NULL;

	if (!s || s->lock != name || plain != (s->hold == DSM_HOLD_LOCK))
		refuse_release(h, t, name, plain);
}

/* For the hang report: who holds what, since where. */
static void note_held(const struct dsm_host *h, const struct dsm_thread *t,
		      const void *site)
{
	dsm_tally_hold(h->tally, t->slot, t->depth - 1,
		       (int64_t)t->scope[t->depth - 1].lock, (uintptr_t)site);
}

static void note_released(const struct dsm_host *h, const struct dsm_thread *t)
{
	dsm_tally_hold(h->tally, t->slot, t->depth - 1, -1, 0);
}

/* --- locks ------------------------------------------------------------------------ */

static void take(struct dsm_host *h, dsm_name name, const void *site)
{
	struct dsm_thread *t = dsm_public_sync_first(h);

	t->site = (uintptr_t)site;
	check_take(h, t, name);
	dsm_lock(t, name);
	note_held(h, t, site);
	if (h->crew)
		dsm_crew_pass_turn(h);
	dsm_public_leave();
}

static int try(struct dsm_host *h, dsm_name name, const void *site)
{
	struct dsm_thread *t = dsm_public_sync(h);
	bool got;

	t->site = (uintptr_t)site;
	check_depth(h, t);
	got = !held(t, name) && dsm_trylock(t, name);
	if (got)
		note_held(h, t, site);
	dsm_public_leave();
	return got;
}

static void release(struct dsm_host *h, dsm_name name, const void *site)
{
	struct dsm_thread *t = dsm_public_sync(h);

	t->site = (uintptr_t)site;
	check_release(h, t, name, true);
	note_released(h, t);
	dsm_unlock(t, name);
	dsm_public_leave();
}

void jia_lock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_lock");

	take(h, numbered(h, lock), DSM_SITE);
}

int jia_trylock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_trylock");

	return try(h, numbered(h, lock), DSM_SITE);
}

void jia_unlock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_unlock");

	release(h, numbered(h, lock), DSM_SITE);
}

void jia_lock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_lock_at");

	take(h, addressed(h, addr), DSM_SITE);
}

int jia_trylock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_trylock_at");

	return try(h, addressed(h, addr), DSM_SITE);
}

void jia_unlock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_unlock_at");

	release(h, addressed(h, addr), DSM_SITE);
}

/* --- reader-writer locks ---------------------------------------------------------- */

static void rw_take(struct dsm_host *h, dsm_name name, bool write,
		    const void *site)
{
	struct dsm_thread *t = dsm_public_sync(h);

	t->site = (uintptr_t)site;
	check_take(h, t, name);
	if (write)
		dsm_wrlock(t, name);
	else
		dsm_rdlock(t, name);
	note_held(h, t, site);
	dsm_public_leave();
}

static void rw_release(struct dsm_host *h, dsm_name name, const void *site)
{
	struct dsm_thread *t = dsm_public_sync(h);

	t->site = (uintptr_t)site;
	check_release(h, t, name, false);
	note_released(h, t);
	dsm_rwunlock(t, name);
	dsm_public_leave();
}

void jia_rdlock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_rdlock");

	rw_take(h, numbered(h, lock), false, DSM_SITE);
}

void jia_wrlock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_wrlock");

	rw_take(h, numbered(h, lock), true, DSM_SITE);
}

void jia_rwunlock(int lock)
{
	struct dsm_host *h = DSM_ENTER("jia_rwunlock");

	rw_release(h, numbered(h, lock), DSM_SITE);
}

void jia_rdlock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_rdlock_at");

	rw_take(h, addressed(h, addr), false, DSM_SITE);
}

void jia_wrlock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_wrlock_at");

	rw_take(h, addressed(h, addr), true, DSM_SITE);
}

void jia_rwunlock_at(const void *addr)
{
	struct dsm_host *h = DSM_ENTER("jia_rwunlock_at");

	rw_release(h, addressed(h, addr), DSM_SITE);
}

/* --- conditions by address ---------------------------------------------------------- */

void jia_cond_wait(const void *cond)
{
	struct dsm_host *h = DSM_ENTER("jia_cond_wait");
	uint64_t start = dsm_host_now_ns();
	struct dsm_thread *t = dsm_public_sync(h);
	dsm_name name = addressed(h, cond);

	if (!t->depth)
		dsm_host_fail(
			h,
			"no lock is held; take the one that guards what is waited for first");
	if (t->scope[t->depth - 1].hold != DSM_HOLD_LOCK)
		dsm_host_fail(
			h,
			"the lock taken last is a reader-writer lock; a condition needs one taken by jia_lock() or jia_lock_at()");
	t->site = (uintptr_t)DSM_SITE;
	note_released(h, t);
	dsm_cond_wait(t, name);
	note_held(h, t, DSM_SITE);
	dsm_public_spent(h, DSM_SPOT_cond_wait, DSM_SITE, name, start);
	dsm_public_leave();
}

void jia_cond_signal(const void *cond)
{
	struct dsm_host *h = DSM_ENTER("jia_cond_signal");

	dsm_cond_signal(dsm_host_thread(h), addressed(h, cond));
	dsm_public_leave();
}

void jia_cond_broadcast(const void *cond)
{
	struct dsm_host *h = DSM_ENTER("jia_cond_broadcast");

	dsm_cond_broadcast(dsm_host_thread(h), addressed(h, cond));
	dsm_public_leave();
}

/* --- JIAJIA's condition variables ----------------------------------------------------- */

static void check_cv(struct dsm_host *h, int cv)
{
	if (cv < 0 || cv >= Maxcvs)
		dsm_host_fail(
			h, "condition variable %d does not exist; 0 to %d do",
			cv, Maxcvs - 1);
}

void jia_setcv(int cv)
{
	struct dsm_host *h = DSM_ENTER("jia_setcv");

	check_cv(h, cv);
	dsm_flag_set(h->node, cv);
	dsm_public_leave();
}

void jia_resetcv(int cv)
{
	struct dsm_host *h = DSM_ENTER("jia_resetcv");

	check_cv(h, cv);
	dsm_flag_reset(h->node, cv);
	dsm_public_leave();
}

void jia_waitcv(int cv)
{
	struct dsm_host *h = DSM_ENTER("jia_waitcv");
	uint64_t start = dsm_host_now_ns();

	check_cv(h, cv);
	dsm_flag_wait(h->node, cv);
	dsm_public_spent(h, DSM_SPOT_waitcv, DSM_SITE, (uint64_t)cv, start);
	dsm_public_leave();
}

int jia_newcv(void)
{
	struct dsm_host *h = DSM_ENTER("jia_newcv");

	if (h->flag_nr == DSM_FLAGS)
		dsm_host_fail(h,
			      "all %d condition variables have been given away",
			      DSM_FLAGS);
	dsm_public_leave();
	return (int)h->flag_nr++;
}

/* --- ANL's self-scheduled loops ---------------------------------------------------------- */

int jia_gsinit(void)
{
	struct dsm_host *h = DSM_ENTER("jia_gsinit");

	if (h->loop_nr == DSM_COUNTS)
		dsm_host_fail(h, "more than %d self-scheduled loops",
			      DSM_COUNTS);
	dsm_public_leave();
	return (int)h->loop_nr++;
}

int jia_getsub(int gs, int max, int n)
{
	struct dsm_host *h = DSM_ENTER("jia_getsub");
	uint64_t got;

	if (gs < 0 || gs >= (int)h->loop_nr)
		dsm_host_fail(
			h, "loop %d does not exist; GSINIT has made %u so far",
			gs, h->loop_nr);
	if (n != hostc)
		dsm_host_fail(
			h, "the loop is shared by %d; it must be all %d ranks",
			n, hostc);
	got = dsm_count_add(h->node, gs, 1);
	if ((int64_t)got > max) { /* all ranks come here, once */
		dsm_public_meet(h, DSM_MEET_BARRIER, DSM_SITE);
		if (!jia_pid)
			dsm_count_zero(h->node, gs);
		dsm_public_meet(h, DSM_MEET_WAIT, DSM_SITE);
	}
	dsm_public_leave();
	return (int64_t)got > max ? -1 : (int)got;
}
