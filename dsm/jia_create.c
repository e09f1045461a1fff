/* SPDX-License-Identifier: MIT */
/*
 * jia_create.c - programs that begin alone, as those with the ANL macros do.
 *
 * Role:      the master's main() runs alone; its workers wait before theirs for
 *            *orders*, messages from the master: allocate (the collective calls
 *            of a program that is not collective yet), meet (at a barrier), run,
 *            end.
 * Invariant: workers that do not run wait for an order.  So what is done with
 *            all ranks (allocate, meet) is done while none runs, on all.
 * Threads:   the first of each rank.
 * Locks:     none.
 *
 * Global variables.  A worker has had none of main(), so what the master has
 * stored in global variables is copied to it when it is to run: the writable
 * parts of the program, page by page, without pages of zeros, and without what
 * is a library's.  That is what fork() would have done, except for the heap and
 * open files; and it works between hosts.  Addresses are the same everywhere
 * (dsm_start.c).
 *
 * Turns.  "The first lock gives out the numbers of the processes" is how these
 * programs do it, and some rely on the master's being 0.  So the first thing that
 * synchronises after CREATE is done in the order of ranks: each waits for a
 * token from the one before, and passes it on when it has its lock, or before it
 * waits for anything else.
 */
#include "jia_parmacs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_crew.h"
#include "dsm_message.h"
#include "dsm_public.h"
#include "jia.h"

#define RANKS_USUAL "8"

enum {
	PAGE_BYTES = 4096
};

/* Tags of DSM_MESSAGE_CREATE. */
enum {
	TAG_ORDER,
	TAG_GLOBALS,
	TAG_DONE,
	TAG_TURN, /* and a batch's number */
};

enum order_kind {
	ORDER_ALLOCATE,
	ORDER_MEET,
	ORDER_RUN,
	ORDER_END
};

struct order {
	uint32_t kind;
	int32_t home; /* ALLOCATE */
	uint64_t bytes, block;
	uint64_t entry; /* RUN: where */
	int32_t batch;
	uint32_t late; /* others run already: no barrier is behind it */
};

static void tell(struct dsm_host *h, int rank, int tag, const void *buf,
		 uint64_t len)
{
	dsm_message_send(h, DSM_MESSAGE_CREATE, rank, tag, buf, len);
}

static void hear(struct dsm_host *h, int rank, int tag, void *buf, uint64_t len)
{
	if (dsm_message_recv(h, DSM_MESSAGE_CREATE, rank, tag, buf, len) != len)
		dsm_host_fail(h, "rank %d sent another length than announced",
			      rank);
}

static void tell_all(struct dsm_host *h, const struct order *o)
{
	for (int r = 1; r < hostc; r++)
		tell(h, r, TAG_ORDER, o, sizeof(*o));
}

/* --- global variables -------------------------------------------------------------- */

static bool is_zero(const char *at, size_t bytes)
{
	return !at[0] && !memcmp(at, at + 1, bytes - 1);
}

static size_t step(const struct dsm_part *p, size_t off)
{
	return p->bytes - off < PAGE_BYTES ? p->bytes - off : PAGE_BYTES;
}

/* Which pages of a part are not all zero: a byte each. */
static void mark(const struct dsm_part *p, char *marks)
{
	for (size_t off = 0; off < p->bytes; off += PAGE_BYTES)
		*marks++ = !is_zero(p->at + off, step(p, off));
}

/* Call @fn for each run of marked pages. */
static void for_marked(struct dsm_host *h, const struct dsm_part *p,
		       const char *marks, int rank,
		       void (*fn)(struct dsm_host *h, int rank, char *at,
				  size_t bytes))
{
	size_t pages = (p->bytes + PAGE_BYTES - 1) / PAGE_BYTES, from = 0;

	while (from < pages) {
		size_t to = from, off = from * PAGE_BYTES, bytes = 0;

		for (; to < pages && marks[to]; to++)
			bytes += step(p, to * PAGE_BYTES);
		if (bytes)
			fn(h, rank, p->at + off, bytes);
		from = to + 1;
	}
}

static char *make_marks(struct dsm_host *h, const struct dsm_part *p,
			size_t *nr)
{
	char *marks;

	*nr = (p->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	marks = malloc(*nr);
	if (!marks)
		dsm_host_fail(h, "no memory for a list of %zu pages", *nr);
	return marks;
}

static void send_run(struct dsm_host *h, int rank, char *at, size_t bytes)
{
	tell(h, rank, TAG_GLOBALS, at, bytes);
}

static void send_globals(struct dsm_host *h, int rank)
{
	const struct dsm_program *g = &h->crew->program;

	for (unsigned int i = 0; i < g->nr_parts; i++) {
		size_t nr;
		char *marks = make_marks(h, &g->part[i], &nr);

		mark(&g->part[i], marks);
		tell(h, rank, TAG_GLOBALS, marks, nr);
		for_marked(h, &g->part[i], marks, rank, send_run);
		free(marks);
	}
}

static void take_run(struct dsm_host *h, int rank, char *at, size_t bytes)
{
	hear(h, rank, TAG_GLOBALS, at, bytes);
}

static void clear_rest(const struct dsm_part *p, const char *marks)
{
	for (size_t off = 0; off < p->bytes; off += PAGE_BYTES)
		if (!*marks++ && !is_zero(p->at + off, step(p, off)))
			memset(p->at + off, 0, step(p, off));
}

static void take_part(struct dsm_host *h, const struct dsm_part *p)
{
	size_t nr;
	char *marks = make_marks(h, p, &nr);

	hear(h, 0, TAG_GLOBALS, marks, nr);
	for_marked(h, p, marks, 0, take_run);
	clear_rest(p, marks);
	free(marks);
}

/* What is a library's is put aside meanwhile. */
static void take_globals(struct dsm_host *h)
{
	const struct dsm_program *g = &h->crew->program;
	size_t bytes = 0, at = 0;
	char *kept;

	for (unsigned int i = 0; i < g->nr_kept; i++)
		bytes += g->kept[i].bytes;
	kept = malloc(bytes + 1);
	if (!kept)
		dsm_host_fail(h, "no memory for %zu bytes", bytes);
	for (unsigned int i = 0; i < g->nr_kept; at += g->kept[i++].bytes)
		memcpy(kept + at, g->kept[i].at, g->kept[i].bytes);
	for (unsigned int i = 0; i < g->nr_parts; i++)
		take_part(h, &g->part[i]);
	at = 0;
	for (unsigned int i = 0; i < g->nr_kept; at += g->kept[i++].bytes)
		memcpy(g->kept[i].at, kept + at, g->kept[i].bytes);
	free(kept);
}

/* --- turns ------------------------------------------------------------------------------ */

void dsm_crew_await_turn(struct dsm_host *h)
{
	struct dsm_crew *c = h->crew;

	if (c->turn != DSM_TURN_AWAITED)
		return;
	hear(h, jia_pid - 1, TAG_TURN + c->batch, NULL, 0);
	c->turn = DSM_TURN_HERE;
}

void dsm_crew_pass_turn(struct dsm_host *h)
{
	struct dsm_crew *c = h->crew;

	if (c->turn != DSM_TURN_HERE)
		return;
	c->turn = DSM_TURN_OVER;
	if (jia_pid + 1 < hostc)
		tell(h, jia_pid + 1, TAG_TURN + c->batch, NULL, 0);
}

/* --- workers ------------------------------------------------------------------------------ */

/* What the master has written is seen from here on, with consistency=release. */
static void pass_lock(struct dsm_host *h)
{
	dsm_crew_unlock(h, dsm_crew_lock(h));
}

static void finish_run(struct dsm_host *h)
{
	struct dsm_crew *c = h->crew;

	c->running = 0;
	dsm_crew_await_turn(h);
	dsm_crew_pass_turn(h);
	tell(h, 0, TAG_DONE, NULL, 0);
}

static void run(struct dsm_host *h, const struct order *o)
{
	struct dsm_crew *c = h->crew;
	void (*entry)(void) = (void (*)(void))(uintptr_t)o->entry;

	if (!c->shared)
		take_globals(h);
	if (o->late)
		pass_lock(h);
	c->batch = o->batch;
	c->turn = DSM_TURN_AWAITED;
	c->running = 1;
	dsm_public_leave();
	entry();
	DSM_ENTER("jia_alone");
	finish_run(h);
}

static void serve(struct dsm_host *h, const void *site)
{
	struct order o = { 0 };

	do {
		hear(h, 0, TAG_ORDER, &o, sizeof(o));
		if (o.kind == ORDER_ALLOCATE)
			dsm_public_allocate(h, o.bytes, o.block, o.home, site);
		else if (o.kind == ORDER_MEET)
			dsm_public_meet(h, DSM_MEET_BARRIER, site);
		else if (o.kind == ORDER_RUN)
			run(h, &o);
	} while (o.kind != ORDER_END);
	jia_exit();
}

/* --- the master ------------------------------------------------------------------------------ */

bool dsm_crew_alone(const struct dsm_host *h)
{
	return !jia_pid && !h->crew->running;
}

void *dsm_crew_allocate(struct dsm_host *h, uint64_t bytes, uint64_t block,
			int home, const void *site)
{
	struct order o = { .kind = ORDER_ALLOCATE,
			   .bytes = bytes,
			   .block = block,
			   .home = home };

	tell_all(h, &o);
	return dsm_public_allocate(h, bytes, block, home, site);
}

static void meet(struct dsm_host *h, const void *site)
{
	struct order o = { .kind = ORDER_MEET };

	tell_all(h, &o);
	dsm_public_meet(h, DSM_MEET_BARRIER, site);
}

/* The first CREATE, or the first behind a WAIT_FOR_END. */
static void begin_batch(struct dsm_host *h, const void *site)
{
	struct dsm_crew *c = h->crew;
	uint64_t heap = h->settings.value.heap;

	if (!c->reserved) {
		uint64_t at = (uint64_t)(uintptr_t)dsm_crew_allocate(
			h, heap, DSM_ARENA_BLOCK, 0, site);

		struct dsm_thread *t = dsm_crew_lock(h);

		c->root->next = at;
		c->root->end = at + heap;
		dsm_crew_unlock(h, t);
		c->reserved = true;
	}
	meet(h, site);
	c->batch++;
}

static struct dsm_crew *crew_of(struct dsm_host *h)
{
	if (!h->crew)
		dsm_host_fail(
			h,
			"the program did not begin alone: MAIN_ENV, in the file with main(), is missing");
	return h->crew;
}

static void check_create(struct dsm_host *h, int n)
{
	int running = crew_of(h)->running;

	if (jia_pid)
		dsm_host_fail(h, "called by a worker; the master creates them");
	if (n < 0 || n > SUL_RANKS_MAX)
		dsm_host_fail(h, "%d workers cannot be; 0 to %d can", n,
			      hostc - 1 - running);
	if (n >= hostc - running)
		dsm_host_fail(
			h,
			"the program wants %d processes, and the job has %d ranks: start it with jiarun -n %d, or JIA_NP=%d",
			n + running + 1, hostc, n + running + 1,
			n + running + 1);
	if (running && h->settings.value.consistency == DSM_CONSISTENCY_SCOPE)
		dsm_host_fail(
			h,
			"with consistency=scope all workers are created at once; use release");
}

void jia_create(void (*entry)(void), int n)
{
	struct dsm_host *h = DSM_ENTER("jia_create");
	struct order o = { .kind = ORDER_RUN, .entry = (uintptr_t)entry };
	struct dsm_crew *c;

	check_create(h, n);
	c = h->crew;
	if (!n)
		return dsm_public_leave();
	o.late = c->running > 0;
	if (o.late)
		pass_lock(h);
	else
		begin_batch(h, DSM_SITE);
	o.batch = c->batch;
	for (int i = 0; i < n; i++) {
		int rank = ++c->running;

		tell(h, rank, TAG_ORDER, &o, sizeof(o));
		if (!c->shared)
			send_globals(h, rank);
	}
	c->turn = DSM_TURN_HERE;
	dsm_public_leave();
}

static void await_workers(struct dsm_host *h, const void *site)
{
	struct dsm_crew *c = h->crew;

	dsm_crew_pass_turn(h);
	for (int r = 1; r <= c->running; r++)
		hear(h, r, TAG_DONE, NULL, 0);
	if (c->running)
		meet(h, site);
	c->running = 0;
}

void jia_wait_for_end(void)
{
	struct dsm_host *h = DSM_ENTER("jia_wait_for_end");

	crew_of(h);
	if (jia_pid)
		dsm_host_fail(h,
			      "called by a worker; the master waits for them");
	await_workers(h, DSM_SITE);
	dsm_public_leave();
}

/* --- beginning and end ---------------------------------------------------------------------------- */

static void end_master(struct dsm_host *h, const void *site)
{
	struct order o = { .kind = ORDER_END };

	await_workers(h, site);
	tell_all(h, &o);
	jia_exit();
}

/* However the process ends.  A status other than 0 ends the whole job, without
 * anybody's help. */
static void at_exit(int status, void *arg)
{
	struct dsm_host *h = dsm_host_current;

	(void)arg;
	if (status || h->child || h->exited)
		return;
	dsm_host_entered("exit", NULL);
	if (!jia_pid) {
		end_master(h, NULL);
	} else if (h->crew->running) {
		finish_run(h);
		serve(h, NULL);
	}
	dsm_public_leave();
}

/* The program's own parameters, unless somebody has said otherwise. */
static void set_usual(const char *name, const char *value, bool *made)
{
	*made = !getenv(name);
	setenv(name, value, 0);
}

static void open_crew(struct dsm_host *h, const void *site)
{
	struct dsm_crew *c = calloc(1, sizeof(*c));

	if (!c || dsm_program_read(&c->program))
		dsm_host_fail(h, "the program's global variables: %s",
			      c ? "there are too many pieces" :
				  "out of memory");
	if (dsm_program_has(&c->program, &dsm_host_current))
		dsm_host_fail(
			h,
			"libjia is a part of the program (libjia.a): a program with MAIN_ENV needs libjia.so, whose own variables are not those of the program");
	if (dsm_program_has(&c->program, &jia_pid))
		dsm_host_fail(
			h,
			"the program uses jia_pid or hostc, which differ from rank to rank, among its own variables; a program with MAIN_ENV cannot");
	c->shared = h->settings.value.share_globals;
	if (c->shared)
		dsm_share_globals(h, &c->program, site);
	c->root = dsm_public_allocate(h, sizeof(*c->root), PAGE_BYTES, 0, site);
	h->crew = c;
}

void jia_alone(int argc, char **argv)
{
	struct dsm_host *h = dsm_host_current;
	bool made;

	if (h) /* a second file has MAIN_ENV, too */
		return;
	dsm_launch_usual(RANKS_USUAL, argv);
	set_usual("JIA_CONSISTENCY", "release", &made);
	jia_init(argc, argv);
	if (made)
		unsetenv("JIA_CONSISTENCY");
	h = DSM_ENTER("jia_alone");
	open_crew(h, DSM_SITE);
	if (on_exit(at_exit, NULL))
		dsm_host_fail(h, "no memory for what is done at the end");
	if (jia_pid) {
		serve(h, DSM_SITE);
		exit(0);
	}
	dsm_public_leave();
}
