/* SPDX-License-Identifier: MIT */
/*
 * jia_shared.c - memory and objects of programs that begin alone.
 *
 * Role:      an allocator that any rank may call at any time, and barriers,
 *            flags and loops for any number of ranks, made of locks and
 *            conditions.
 * Invariant: what is under a lock here lies in shared memory and is read and
 *            written under that lock only.
 * Threads:   any.
 * Locks:     that of the object's address; the arena's is taken inside the
 *            program's and given back before anything else is done.
 *
 * The arena.  While the master is alone it may allocate as much as it likes;
 * then there is a reserve (parameter heap).  Before each piece stand 16 bytes
 * that tell its class of size; free ones of a class are in a list.  Classes are
 * at most an eighth apart.
 */
#include "jia_parmacs.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "dsm_crew.h"
#include "dsm_public.h"
#include "jia.h"

enum {
	PAGE_BYTES = 4096,
	HEAD_BYTES = 16,
	LINE_BYTES = 64,
	LARGE_BYTES = 64 << 10, /* begins on a page */
	CHUNK_BYTES = 1 << 20,
	CLASS_STEPS = 8, /* between a power of two and the next */
};

struct head {
	uint64_t class;
	uint64_t next; /* of a free one: the next in its list */
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "as said above");

/* --- sizes ----------------------------------------------------------------------- */

/* The smallest class that holds @bytes, and how much that is: multiples of 64 up
 * to 1024, then eight steps to each power of two. */
static unsigned int class_of(uint64_t bytes, uint64_t *holds)
{
	uint64_t step = LINE_BYTES;
	unsigned int first = 0;

	while (bytes > step * 2 * CLASS_STEPS) {
		step *= 2;
		first += CLASS_STEPS;
	}
	bytes = (bytes + step - 1) / step;
	*holds = bytes * step;
	return first + (unsigned int)bytes;
}

/* --- the arena ---------------------------------------------------------------------- */

struct dsm_thread *dsm_crew_lock(struct dsm_host *h)
{
	struct dsm_thread *t = dsm_host_thread(h);

	if (t->held_nr)
		dsm_untouch_all(t);
	if (t->depth == DSM_NEST_MAX)
		dsm_host_fail(h, "more than %d locks held at once",
			      DSM_NEST_MAX);
	dsm_lock(t, (uintptr_t)h->crew->root);
	return t;
}

void dsm_crew_unlock(struct dsm_host *h, struct dsm_thread *t)
{
	dsm_unlock(t, (uintptr_t)h->crew->root);
}

static void *take_free(struct dsm_root *root, unsigned int class)
{
	struct head *at = (void *)(uintptr_t)root->free[class];

	if (!at)
		return NULL;
	root->free[class] = at->next;
	return at + 1;
}

/* Where a piece of @bytes with its head would begin. */
static uint64_t place(uint64_t next, uint64_t bytes)
{
	uint64_t align = bytes >= LARGE_BYTES ? PAGE_BYTES : LINE_BYTES;

	return (next + HEAD_BYTES + align - 1) & ~(align - 1);
}

static void *take_fresh(struct dsm_root *root, unsigned int class,
			uint64_t bytes)
{
	uint64_t at = place(root->next, bytes);
	struct head *head;

	if (!root->next || at > root->end || bytes > root->end - at)
		return NULL;
	root->next = at + bytes;
	head = (struct head *)(uintptr_t)at - 1;
	head->class = class;
	return head + 1;
}

/* What is left of the piece before is given up: less than a chunk, once. */
static void grow(struct dsm_host *h, uint64_t bytes, int home, const void *site)
{
	struct dsm_root *root = h->crew->root;
	uint64_t whole = bytes < LARGE_BYTES ? CHUNK_BYTES : bytes + PAGE_BYTES;

	root->next = (uint64_t)(uintptr_t)dsm_crew_allocate(h, whole, whole,
							    home, site);
	root->end = root->next + whole;
}

/* A large piece of the master's, while it is alone, has pages of its own. */
static void *take_own(struct dsm_host *h, unsigned int class, uint64_t bytes,
		      int home, const void *site)
{
	struct dsm_root *root = h->crew->root;
	uint64_t next = root->next, end = root->end;
	void *at;

	grow(h, bytes, home, site);
	at = take_fresh(root, class, bytes);
	if (bytes >= LARGE_BYTES) {
		root->next = next;
		root->end = end;
	}
	return at;
}

static void *allocate(struct dsm_host *h, size_t bytes, int home,
		      const void *site)
{
	struct dsm_thread *t;
	unsigned int class;
	uint64_t holds;
	void *at;

	if (bytes > h->bytes)
		dsm_host_fail(h, "%zu bytes are more than the region has, %zu",
			      bytes, h->bytes);
	class = class_of(bytes + !bytes, &holds);
	t = dsm_crew_lock(h);
	at = take_free(h->crew->root, class);
	if (!at && (holds < LARGE_BYTES || !dsm_crew_alone(h)))
		at = take_fresh(h->crew->root, class, holds);
	if (!at && dsm_crew_alone(h))
		at = take_own(h, class, holds, home, site);
	dsm_crew_unlock(h, t);
	if (!at)
		dsm_host_fail(
			h,
			"%zu bytes are not left of the %" PRIu64
			" that can be allocated while workers run; raise --set heap",
			bytes, h->settings.value.heap);
	return at;
}

static void check_crew(struct dsm_host *h)
{
	if (!h->crew)
		dsm_host_fail(
			h,
			"the program did not begin alone: MAIN_ENV, in the file with main(), is missing; jia_malloc() is there without");
}

void *jia_gmalloc(size_t bytes)
{
	struct dsm_host *h = DSM_ENTER("jia_gmalloc");
	void *at;

	check_crew(h);
	at = allocate(h, bytes, 0, DSM_SITE);
	dsm_public_leave();
	return at;
}

void *jia_gmalloc_on(size_t bytes, int home)
{
	struct dsm_host *h = DSM_ENTER("jia_gmalloc_on");
	void *at;

	check_crew(h);
	if (home < 0 || home >= hostc)
		dsm_host_fail(h, "rank %d does not exist; 0 to %d do", home,
			      hostc - 1);
	at = allocate(h, bytes, home, DSM_SITE);
	dsm_public_leave();
	return at;
}

void jia_gfree(void *at)
{
	struct dsm_host *h = DSM_ENTER("jia_gfree");
	struct dsm_thread *t;
	struct head *head;
	uint64_t off;

	check_crew(h);
	if (!at)
		return dsm_public_leave();
	head = (struct head *)at - 1;
	if ((uintptr_t)at % HEAD_BYTES || !dsm_host_offset(h, head, &off) ||
	    dsm_home(h->node, dsm_unit_of(h->node, (uint32_t)(off >> 12))) <
		    0 ||
	    head->class >= DSM_ARENA_CLASSES)
		dsm_host_fail(h, "%p did not come from jia_gmalloc()", at);
	t = dsm_crew_lock(h);
	head->next = h->crew->root->free[head->class];
	h->crew->root->free[head->class] = (uintptr_t)head;
	dsm_crew_unlock(h, t);
	dsm_public_leave();
}

/* --- objects ------------------------------------------------------------------------------ */

static void check_shared(const char *call, const void *object)
{
	struct dsm_host *h = dsm_public_enter(call, NULL);
	uint64_t off;

	if (!dsm_host_offset(h, object, &off))
		dsm_host_fail(
			h,
			"the object at %p is not in shared memory (G_MALLOC; or share the global variables, --share-globals)",
			object);
	dsm_public_leave();
}

/* The last of @n starts the next round; true: that was this one. */
static void come(struct jia_barrier *b, int n, int *restart)
{
	unsigned int round;

	jia_lock_at(b);
	round = b->round;
	if (++b->came >= (unsigned int)n) {
		b->came = 0;
		b->round++;
		if (restart)
			*restart = 0;
		jia_cond_broadcast(b);
	}
	while (b->round == round)
		jia_cond_wait(b);
	jia_unlock_at(b);
}

void jia_barrier_for(struct jia_barrier *b, int n)
{
	struct dsm_host *h = DSM_ENTER("jia_barrier_for");

	if (n < 1 || n > hostc)
		dsm_host_fail(h, "%d ranks cannot meet; 1 to %d can", n, hostc);
	if (n == hostc) {
		dsm_public_meet(h, DSM_MEET_BARRIER, DSM_SITE);
		dsm_public_leave();
		return;
	}
	if (h->settings.value.consistency == DSM_CONSISTENCY_SCOPE)
		dsm_host_fail(
			h,
			"with consistency=scope only all ranks can meet, %d, and not %d of them; use release",
			hostc, n);
	check_shared("jia_barrier_for", b);
	come(b, n, NULL);
}

void jia_setpause(struct jia_pause *p)
{
	check_shared("jia_setpause", p);
	jia_lock_at(p);
	p->set = 1;
	jia_cond_broadcast(p);
	jia_unlock_at(p);
}

void jia_clearpause(struct jia_pause *p)
{
	check_shared("jia_clearpause", p);
	jia_lock_at(p);
	p->set = 0;
	jia_unlock_at(p);
}

void jia_waitpause(struct jia_pause *p)
{
	check_shared("jia_waitpause", p);
	jia_lock_at(p);
	while (!p->set)
		jia_cond_wait(p);
	jia_unlock_at(p);
}

int jia_nextsub(struct jia_loop *l, int max, int n)
{
	int sub = -1;

	check_shared("jia_nextsub", l);
	jia_lock_at(&l->end);
	if (l->next <= max)
		sub = l->next++;
	jia_unlock_at(&l->end);
	if (sub < 0)
		come(&l->end, n, &l->next);
	return sub;
}

unsigned long jia_clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long)t.tv_sec * 1000000u +
	       (unsigned long)t.tv_nsec / 1000u;
}
