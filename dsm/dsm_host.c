/* SPDX-License-Identifier: MIT */
/*
 * dsm_host.c - a node in a real process (see dsm_host.h).
 *
 * Role:      start-up and struct dsm_env with mmap, mprotect and a mutex.
 * Invariant: whoever holds the rank mutex does not fault on a shared page: user
 *            pointers are not touched under it, and signal handlers of the
 *            program do not run (they are kept out meanwhile).
 * Threads:   any.
 * Locks:     the rank mutex.
 *
 * How a job ends badly.  dsm_host_fail() puts its text into the job's control
 * block, where the launcher finds it, and leaves with _exit(): no mutex, no
 * atexit, nothing that could wait for somebody.
 */
#include "dsm_host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dsm_maps.h"
#include "dsm_message.h"
#include "dsm_remedy.h"
#include "dsm_say.h"
#include "sul_launcher.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum {
	AROUND = 16 /* pages that the kernel maps around one that is read */
};

extern char **environ;

enum {
	LEAVE_MS = 2000 /* ranks that have called jia_exit() stay so long */
};

struct dsm_host *dsm_host_current;

/* What a thread knows of itself.  initial-exec: no allocation on first use, so
 * that a fault handler may look at it. */
struct self {
	struct dsm_thread *thread;
	const char *call;
	const void *site;
};
static _Thread_local struct self self
	__attribute__((tls_model("initial-exec")));

static uintptr_t self_mark(void)
{
	return (uintptr_t)&self;
}

void dsm_host_entered(const char *call, const void *site)
{
	self.call = call;
	self.site = site;
}

uint64_t dsm_host_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- failing ---------------------------------------------------------------------------- */

void dsm_host_say(const struct dsm_host *h, const char *text)
{
	if (h->child || (!sul_job_launched(h->job) && !h->pmix))
		dsm_say(text);
}

/* Whoever has started this process; @why (SUL_JOB_TEXT_MAX) is "" if errno's text
 * says it all. */
static int attach(struct sul_job **job, struct sul_pmix **pmix, char *why)
{
	if (sul_pmix_here())
		return sul_pmix_attach(pmix, job, dsm_say, why);
	why[0] = '\0';
	return sul_job_attach(job);
}

/* A failure before jia_init(): the launcher, if there is one, shall know. */
static struct sul_job *job_of(const struct dsm_host *h, struct sul_pmix **pmix)
{
	struct sul_job *job = NULL;
	char why[SUL_JOB_TEXT_MAX];

	if (h)
		*pmix = h->pmix;
	if (h || (!getenv(SUL_JOB_ENV) && !sul_pmix_here()))
		return h ? h->job : NULL;
	return attach(&job, pmix, why) ? NULL : job;
}

_Noreturn static void fail_text(struct dsm_host *h, const char *text)
{
	struct sul_pmix *pmix = NULL;
	struct sul_job *job = h && h->child ? NULL : job_of(h, &pmix);
	int rank, status;
	char kept[SUL_JOB_TEXT_MAX];

	if (!job) {
		dsm_say(text);
		_exit(1);
	}
	sul_job_fail(job, sul_job_self(job), 1, text);
	if (pmix)
		sul_pmix_await_end();
	if (!sul_job_launched(job))
		sul_job_tell(job, dsm_say);
	sul_job_failure(job, &rank, &status, kept);
	_exit(status ? status : 1);
}

static int put_place(char *out, size_t room, const struct dsm_host *h)
{
	int at = 0;

	if (h && h->job && sul_job_ranks(h->job) > 1)
		at = snprintf(out, room, "rank %d: ", sul_job_self(h->job));
	if (self.call)
		at += snprintf(out + at, room - (size_t)at, "%s()", self.call);
	if (self.call && self.site)
		at += snprintf(out + at, room - (size_t)at, " at @{%p}",
			       self.site);
	if (self.call)
		at += snprintf(out + at, room - (size_t)at, ": ");
	return at;
}

_Noreturn void dsm_host_fail(struct dsm_host *h, const char *fmt, ...)
{
	char text[SUL_JOB_TEXT_MAX];
	int at = put_place(text, sizeof(text), h);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + at, sizeof(text) - (size_t)at, fmt, ap);
	va_end(ap);
	fail_text(h, text);
}

__attribute__((noreturn)) static void env_fail(void *ctx, int err,
					       const char *text)
{
	struct dsm_host *h = ctx;
	char what[DSM_REMEDY_MAX];

	if (err == -ECANCELED) /* somebody else's failure: say nothing */
		fail_text(h, "the job was ended");
	if (err) {
		dsm_remedy(err, what, sizeof(what));
		dsm_host_fail(h, "%s: %s%s", text, strerror(-err), what);
	}
	dsm_host_fail(h, "%s", text);
}

/* --- struct dsm_env ----------------------------------------------------------------------- */

static void env_enter(void *ctx)
{
	struct dsm_host *h = ctx;
	struct sul_quiet q = { .on = false };

	if (h->settings.value.signals && !dsm_segv_repairing())
		sul_signals_hold(&q);
	pthread_mutex_lock(&h->mutex);
	__atomic_store_n(&h->owner, self_mark(), __ATOMIC_RELAXED);
	h->quiet = q;
}

static void env_leave(void *ctx)
{
	struct dsm_host *h = ctx;
	struct sul_quiet q = h->quiet;

	__atomic_store_n(&h->owner, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&h->mutex);
	sul_signals_release(&q);
}

static int env_protect(void *ctx, uint32_t page, uint32_t pages,
		       enum dsm_access access)
{
	static const int prot[] = {
		[DSM_ACCESS_NONE] = PROT_NONE,
		[DSM_ACCESS_R] = PROT_READ,
		[DSM_ACCESS_RW] = PROT_READ | PROT_WRITE,
	};
	struct dsm_host *h = ctx;

	while (pages) {
		uint32_t run = dsm_host_run(h, page, pages);

		if (mprotect(dsm_host_at(h, page), (size_t)run << 12,
			     prot[access]))
			return -errno;
		page += run;
		pages -= run;
	}
	return 0;
}

static void populate(struct dsm_host *h, char *at, size_t bytes, int advice)
{
	if (madvise(at, bytes, advice) && errno != EINVAL)
		env_fail(h, -ENOMEM, "making room for shared pages");
}

/* A trap less: the program has just faulted on these pages. */
static void env_warm(void *ctx, uint32_t page, uint32_t pages,
		     enum dsm_access access)
{
	struct dsm_host *h = ctx;

	while (pages) {
		uint32_t run = dsm_host_run(h, page, pages);

		populate(h, dsm_host_at(h, page), (size_t)run << 12,
			 access == DSM_ACCESS_RW ? MADV_POPULATE_WRITE :
						   MADV_POPULATE_READ);
		page += run;
		pages -= run;
	}
}

/*
 * What may not be touched cannot be populated; but reading one byte through the
 * file of the process's memory, which does not ask for protections, makes the
 * kernel fill in the page table, for all pages around it that are in memory.
 */
static void env_map(void *ctx, uint32_t page, uint32_t pages)
{
	struct dsm_host *h = ctx;
	uint32_t end = page + pages;
	char byte;

	while (page < end) {
		off_t at = (off_t)(uintptr_t)dsm_host_at(h, page);

		if (pread(h->self_mem, &byte, 1, at) != 1)
			return; /* then they fault */
		page = (page | (AROUND - 1)) + 1;
	}
}

static void env_note(void *ctx, const char *text)
{
	struct dsm_host *h = ctx;
	struct sul_job_rank *r = sul_job_rank(h->job, sul_job_self(h->job));

	snprintf(r->waiting, sizeof(r->waiting), "%s", text);
	atomic_store(&r->waiting_site, (uintptr_t)self.site);
	atomic_store(&r->waiting_since_ns, dsm_host_now_ns());
}

static void env_note_end(void *ctx)
{
	struct dsm_host *h = ctx;

	atomic_store(
		&sul_job_rank(h->job, sul_job_self(h->job))->waiting_since_ns,
		0);
}

static uint64_t env_now_ns(void *ctx)
{
	(void)ctx;
	return dsm_host_now_ns();
}

#ifdef DSM_POINTS
/* Test builds: now and then a thread stays behind for a moment. */
static void env_point(void *ctx)
{
	static _Thread_local uint32_t seed;

	(void)ctx;
	if (!seed)
		seed = (uint32_t)self_mark() ^ (uint32_t)dsm_host_now_ns() ^
		       (uint32_t)getpid();
	seed = seed * 1664525u + 1013904223u;
	if (seed >> 24 == 0) {
		uint64_t end = dsm_host_now_ns() + (seed >> 8 & 0xffff);

		while (dsm_host_now_ns() < end)
			;
	}
}
#endif

static const struct dsm_env env = {
	.protect = env_protect,
	.warm = env_warm,
	.map = env_map,
	.enter = env_enter,
	.leave = env_leave,
	.note = env_note,
	.note_end = env_note_end,
	.now_ns = env_now_ns,
	.fail = env_fail,
#ifdef DSM_POINTS
	.point = env_point,
#endif
};

/* --- faults -------------------------------------------------------------------------------- */

bool dsm_host_ours(const struct dsm_host *h, const void *addr)
{
	const char *p = addr;
	uint64_t off;

	if (dsm_host_offset(h, addr, &off))
		return true;
	for (unsigned int w = 0; w < DSM_WINDOWS; w++) {
		const char *own = sul_window(h->port, w);

		if (p >= own && p < own + h->bytes)
			return true;
	}
	return false;
}

bool dsm_host_fault(struct dsm_host *h, const void *addr, bool store,
		    uintptr_t site)
{
	struct dsm_thread *t;
	uint64_t off;

	if (!dsm_host_offset(h, addr, &off))
		return false;
	if (h->child) {
		dsm_host_say(
			h,
			"a forked child touched shared memory; it is not a rank and may only exec or exit");
		return false;
	}
	if (__atomic_load_n(&h->owner, __ATOMIC_RELAXED) == self_mark())
		dsm_host_fail(
			h,
			"the shared page at %p was touched by a signal handler while the runtime was at work (parameter signals=no)",
			addr);
	t = dsm_host_thread(h);
	t->fault_site = site;
	return !dsm_fault(h->node, t, (uint32_t)(off >> h->node->page_shift),
			  store);
}

/* --- threads --------------------------------------------------------------------------------- */

static void thread_ends(void *arg)
{
	struct dsm_thread *t = arg;
	struct dsm_host *h = dsm_host_current;

	/* Destructors that run after this one may use shared memory, too. */
	self.thread = NULL;
	if (h->child)
		return;
	if (t->depth && !h->exited) {
		char text[32];

		dsm_name_text(t->scope[t->depth - 1].lock, text, sizeof(text));
		dsm_host_fail(h, "a thread ended while holding lock %s", text);
	}
	dsm_thread_part(t);
}

struct dsm_thread *dsm_host_thread(struct dsm_host *h)
{
	if (self.thread)
		return self.thread;
	self.thread = dsm_thread_join(h->node);
	if (!self.thread)
		dsm_host_fail(
			h,
			"more than %u threads of this rank use shared memory; raise --set threads",
			(unsigned int)h->settings.value.threads);
	pthread_setspecific(h->thread_key, self.thread);
	return self.thread;
}

/* --- phases ---------------------------------------------------------------------------------------- */

int dsm_host_phase(struct dsm_host *h, const char *name)
{
	dsm_stats_update(h->node);
	return dsm_tally_phase(h->tally, h->node->stats, dsm_host_now_ns(),
			       name);
}

/* --- start ------------------------------------------------------------------------------------- */

static void in_child(void)
{
	if (dsm_host_current)
		dsm_host_current->child = true;
}

static void at_exit(void)
{
	struct dsm_host *h = dsm_host_current;

	/* A rank that leaves early is noticed by the launcher; a job of one
	 * rank may end as it likes. */
	if (!h || h->child)
		return;
	if (!h->exited)
		dsm_host_phase(h, NULL);
	/* Others may look at pages that are here, as long as they run. */
	sul_leave(h->port, h->exited ? LEAVE_MS : 0);
}

static _Noreturn void fail_range(struct dsm_host *h, uint64_t from,
				 uint64_t bytes, int err)
{
	char what[DSM_REMEDY_MAX];

	dsm_remedy(err, what, sizeof(what));
	dsm_host_fail(h,
		      "the address range %#" PRIx64 "-%#" PRIx64
		      " for shared memory %s: %s%s",
		      from, from + bytes,
		      err == -EEXIST ? "is taken by the program" :
				       "cannot be mapped",
		      strerror(-err), what);
}

static uint64_t application_base(uint64_t region)
{
	return region <= DSM_BASE_BYTES ? DSM_BASE : DSM_BASE_LARGE;
}

static uint64_t system_base(uint64_t region)
{
	return region <= DSM_BASE_BYTES ? DSM_BASE + DSM_BASE_BYTES :
					  DSM_BASE_LARGE + DSM_BASE_LARGE_BYTES;
}

static void map_application_view(struct dsm_host *h)
{
	uint64_t base = application_base(h->bytes);
	void *want = (void *)(uintptr_t)base;
	int owner = h->settings.value.hardware ? 0 : sul_rank(h->port);
	uint64_t off;
	int fd, err;
	void *at;

	err = sul_window_file(h->port, owner, DSM_W_FRAME, &fd, &off);
	if (err)
		env_fail(h, err, "finding the shared frames");
	at = mmap(want, h->bytes, PROT_NONE,
		  MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd,
		  (off_t)off);
	if (at != want) /* a kernel that ignores NOREPLACE puts it elsewhere */
		fail_range(h, base, h->bytes,
			   at == MAP_FAILED ? -errno : -EEXIST);
	madvise(at, h->bytes, MADV_DONTFORK);
	/* Writing a core would bring every page of the region into being. */
	madvise(at, h->bytes, MADV_DONTDUMP);
	h->base = at;
	h->tally->view = (uintptr_t)at;
}

/* What one rank of a host has to say is true for all of them. */
static void note(const struct dsm_host *h, const char *text)
{
	char line[SUL_WHY_MAX + SUL_JOB_HOST_MAX + 16];
	int mine = sul_job_self(h->job), first = 0;

	while (first < mine && sul_job_far(h->job, first))
		first++;
	if (!*text || first != mine)
		return;
	snprintf(line, sizeof(line), "note: %.*s: %s", SUL_JOB_HOST_MAX,
		 sul_job_rank(h->job, mine)->host_name, text);
	dsm_say(line);
}

static void open_port(struct dsm_host *h)
{
	char why[SUL_WHY_MAX];
	const struct dsm_config *cfg = &h->settings.value;
	struct dsm_node_config nc = { .cfg = &h->settings.value,
				      .rank = sul_job_self(h->job),
				      .ranks = sul_job_ranks(h->job),
				      .page_shift = 12,
				      .env = &env,
				      .env_ctx = h };
	struct sul_config sc = {
		.carrier = "shm",
		.job = h->job,
		.rank = nc.rank,
		.ranks = nc.ranks,
		.spin_us = (unsigned int)cfg->spin_us,
		.listener = h->listener,
		.auth = (enum sul_auth)cfg->auth,
		.silence_ms = (unsigned int)cfg->silence * 1000,
		.no_handlers = !cfg->signals,
		.loss_ppm = (unsigned int)cfg->loss,
		.pin_bytes = cfg->pin,
		.why = why,
	};
	int err;

	dsm_node_windows(&nc, &sc);
	sc.window[DSM_W_FRAME].hint = (void *)(uintptr_t)system_base(h->bytes);
	err = sul_open(&h->port, &sc);
	h->listener = NULL;
	if (err && why[0])
		dsm_host_fail(h, "%s", why);
	note(h, why);
	if (err == -EEXIST)
		fail_range(h, system_base(h->bytes), h->bytes, err);
	if (err == -ENETUNREACH || err == -EPROTO)
		dsm_host_fail(
			h,
			"no network leads from this host to all others; name those to use (--set links, per host)");
	if (err)
		env_fail(h, err, "opening this rank's windows");
	err = dsm_node_open(&h->node, &nc, h->port);
	if (err)
		env_fail(h, err, "making this rank's tables");
	h->node->stats = (void *)sul_job_rank(h->job, nc.rank)->counters;
	/* The rest is for mappings that the program makes. */
	if (!h->settings.value.mappings)
		h->node->borders_most = dsm_maps_left() / 4 * 3;
	h->tally = sul_job_more(h->job, nc.rank);
	h->node->place = h->tally->place;
	h->node->spots = h->spots ? &h->tally->spots : NULL;
}

static _Noreturn void fail_attach(struct dsm_host *h, int err, const char *why)
{
	char what[DSM_REMEDY_MAX];

	if (why[0])
		dsm_host_fail(h, "%s", why);
	dsm_remedy(err, what, sizeof(what));
	switch (getenv(SUL_JOB_ENV) ? err : 0) {
	case -EINVAL:
	case -EBADF:
		dsm_host_fail(
			h, SUL_JOB_ENV
			" in the environment names no job; jiarun sets it: start the program with jiarun, or unset it");
	case -EBUSY:
		dsm_host_fail(
			h, "another process is this rank of the job already");
	default:
		dsm_host_fail(h, "making the job's shared memory: %s%s",
			      strerror(-err), what);
	}
}

/* Ranks of a launcher that does not tell them of each other run all the same. */
static void note_alone(const struct dsm_host *h)
{
	struct sul_launcher l;
	char text[SUL_JOB_TEXT_MAX];

	if (sul_job_launched(h->job) || h->pmix || getenv(SUL_JOB_ENV) ||
	    !sul_launcher_find(&l) || l.ranks == 1 || l.rank != 0)
		return;
	snprintf(
		text, sizeof(text),
		"note: %s has started %d processes without PMIx; each is a job of its own. To make them one, %s",
		l.name, l.ranks, l.remedy);
	dsm_say(text);
}

/* JIA_STATS is this rank's, not that of a program which it starts. */
static void take_stats(struct dsm_host *h)
{
	const char *value = getenv("JIA_STATS");

	h->spots = value;
	h->stats = value && !sul_job_launched(h->job);
	if (h->stats && strcmp(value, "1") != 0)
		dsm_host_fail(h, "JIA_STATS=%s: without jiarun it can be 1",
			      value);
	unsetenv("JIA_STATS");
}

struct dsm_host *dsm_host_open(void)
{
	static struct dsm_host host; /* reached through the pointer only */
	struct dsm_host *h = &host;
	char text[DSM_CONFIG_ERR_MAX], why[SUL_JOB_TEXT_MAX];
	int err;

	dsm_launch_linked();
	h->start_ns = dsm_host_now_ns();
	err = attach(&h->job, &h->pmix, why);
	if (err)
		fail_attach(h, err, why);
	note_alone(h);
	take_stats(h);
	if (dsm_config_load(&h->settings, environ, text))
		dsm_host_fail(h, "%s", text);
	unsetenv("JIA_SET");
	pthread_mutex_init(&h->mutex, NULL);
	pthread_key_create(&h->thread_key, thread_ends);
	dsm_start_meet(h);
	h->bytes = h->settings.value.region;
	open_port(h);
	map_application_view(h);
	h->self_mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (dsm_inbox_open(h))
		env_fail(h, -ENOMEM, "making the inbox for messages");
	dsm_host_current = h;
	dsm_segv_install(h);
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	return h;
}
