/* SPDX-License-Identifier: MIT */
/*
 * dsm_host.c - a node in a real process (see dsm_host.h).
 *
 * Role:      start-up and struct dsm_env with mmap, mprotect and a mutex.
 * Invariant: whoever holds the rank mutex does not fault on a shared page: user
 *            pointers are not touched under it, and signal handlers of the
 *            program do not run (signals are blocked meanwhile).
 * Threads:   any.
 * Locks:     the rank mutex.
 *
 * How a job ends badly.  dsm_host_fail() puts its text into the job's control
 * block, where the launcher finds it, and leaves with _exit(): no mutex, no
 * atexit, nothing that could wait for somebody.
 */
#include "dsm_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dsm_message.h"
#include "dsm_remedy.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

extern char **environ;

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

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- failing ---------------------------------------------------------------------------- */

static void say(const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = write(STDERR_FILENO, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* Without a launcher nobody else prints it, nor looks up places: "@{0x...}"
 * becomes "program+0x...", which addr2line takes. */
static void say_failure(const char *text)
{
	const char *mark;

	say("jia: ");
	while ((mark = strstr(text, "@{0x"))) {
		char place[256], *stop;
		uintptr_t at = (uintptr_t)strtoull(mark + 2, &stop, 16);
		const char *slash;
		Dl_info in;

		snprintf(place, sizeof(place), "%.*s", (int)(mark - text),
			 text);
		say(place);
		if (dladdr((void *)at, &in) && in.dli_fname) {
			slash = strrchr(in.dli_fname, '/');
			snprintf(place, sizeof(place), "%.200s+%#llx",
				 slash ? slash + 1 : in.dli_fname,
				 (unsigned long long)(at -
						      (uintptr_t)in.dli_fbase));
		} else {
			snprintf(place, sizeof(place), "%#llx",
				 (unsigned long long)at);
		}
		say(place);
		text = *stop ? stop + 1 : stop;
	}
	say(text);
	say("\n");
}

void dsm_host_say(const struct dsm_host *h, const char *text)
{
	if (h->child || !sul_job_launched(h->job))
		say_failure(text);
}

/* A failure before jia_init(): the launcher, if there is one, shall know. */
static struct sul_job *job_of(const struct dsm_host *h)
{
	struct sul_job *job = NULL;

	if (h && h->job)
		return h->job;
	if (!getenv(SUL_JOB_ENV) || sul_job_attach(&job))
		return NULL;
	return job;
}

_Noreturn static void fail_text(struct dsm_host *h, const char *text)
{
	struct sul_job *job = h && h->child ? NULL : job_of(h);
	int rank, status;
	char kept[SUL_JOB_TEXT_MAX];

	if (!job) {
		say_failure(text);
		_exit(1);
	}
	if (sul_job_fail(job, sul_job_self(job), 1, text) &&
	    !sul_job_launched(job))
		say_failure(text);
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

/* What must get through even while the rank mutex is held. */
static void blockable(sigset_t *set)
{
	sigfillset(set);
	sigdelset(set, SIGSEGV);
	sigdelset(set, SIGBUS);
	sigdelset(set, SIGFPE);
	sigdelset(set, SIGILL);
	sigdelset(set, SIGTRAP);
	sigdelset(set, SIGABRT);
	sigdelset(set, SIGSYS);
}

static void env_enter(void *ctx)
{
	struct dsm_host *h = ctx;
	bool mask = h->settings.value.signals && !dsm_segv_repairing();
	sigset_t block, before;

	if (mask) {
		blockable(&block);
		pthread_sigmask(SIG_BLOCK, &block, &before);
	}
	pthread_mutex_lock(&h->mutex);
	__atomic_store_n(&h->owner, self_mark(), __ATOMIC_RELAXED);
	h->masked = mask;
	if (mask)
		h->unblocked = before;
}

static void env_leave(void *ctx)
{
	struct dsm_host *h = ctx;
	bool masked = h->masked;
	sigset_t before = h->unblocked;

	__atomic_store_n(&h->owner, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&h->mutex);
	if (masked)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void env_protect(void *ctx, uint32_t page, uint32_t pages,
			enum dsm_access access)
{
	static const int prot[] = {
		[DSM_ACCESS_NONE] = PROT_NONE,
		[DSM_ACCESS_R] = PROT_READ,
		[DSM_ACCESS_RW] = PROT_READ | PROT_WRITE,
	};
	struct dsm_host *h = ctx;
	uint64_t off = (uint64_t)page << h->node->page_shift;
	int err;

	if (!mprotect(h->base + off, (size_t)pages << h->node->page_shift,
		      prot[access]))
		return;
	err = errno;
	if (err == ENOMEM)
		dsm_host_fail(
			h,
			"changing the protection of page %u: the process has too many mappings; raise vm.max_map_count, or use larger blocks (--set block)",
			page);
	dsm_host_fail(h, "changing the protection of page %u: %s", page,
		      strerror(err));
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

	populate(h, h->base + dsm_unit_off(h->node, page),
		 (size_t)pages << h->node->page_shift,
		 access == DSM_ACCESS_RW ? MADV_POPULATE_WRITE :
					   MADV_POPULATE_READ);
}

static void env_note(void *ctx, const char *text)
{
	struct dsm_host *h = ctx;
	struct sul_job_rank *r = sul_job_rank(h->job, sul_job_self(h->job));

	snprintf(r->waiting, sizeof(r->waiting), "%s", text);
	atomic_store(&r->waiting_site, (uintptr_t)self.site);
	atomic_store(&r->waiting_since_ns, clock_ns());
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
	return clock_ns();
}

#ifdef DSM_POINTS
/* Test builds: now and then a thread stays behind for a moment. */
static void env_point(void *ctx)
{
	static _Thread_local uint32_t seed;

	(void)ctx;
	if (!seed)
		seed = (uint32_t)self_mark() ^ (uint32_t)clock_ns() ^
		       (uint32_t)getpid();
	seed = seed * 1664525u + 1013904223u;
	if (seed >> 24 == 0) {
		uint64_t end = clock_ns() + (seed >> 8 & 0xffff);

		while (clock_ns() < end)
			;
	}
}
#endif

static const struct dsm_env env = {
	.protect = env_protect,
	.warm = env_warm,
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

	if (p >= h->base && p < h->base + h->bytes)
		return true;
	for (unsigned int w = 0; w < DSM_WINDOWS; w++) {
		const char *own = sul_window(h->port, w);

		if (p >= own && p < own + h->bytes)
			return true;
	}
	return false;
}

bool dsm_host_fault(struct dsm_host *h, const void *addr, bool store)
{
	uint32_t page = (uint32_t)((uintptr_t)((const char *)addr - h->base) >>
				   h->node->page_shift);

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
	return !dsm_fault(h->node, dsm_host_thread(h), page, store);
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
	return dsm_tally_phase(h->tally, h->node->stats, clock_ns(), name);
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
	if (h && !h->child && !h->exited)
		dsm_host_phase(h, NULL);
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
}

static void open_port(struct dsm_host *h)
{
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
		.spin_us = (unsigned int)h->settings.value.spin_us
	};
	int err;

	dsm_node_windows(&nc, &sc);
	sc.window[DSM_W_FRAME].hint =
		(void *)(uintptr_t)system_base(h->bytes);
	err = sul_open(&h->port, &sc);
	if (err == -EEXIST)
		fail_range(h, system_base(h->bytes), h->bytes, err);
	if (err)
		env_fail(h, err, "opening this rank's windows");
	err = dsm_node_open(&h->node, &nc, h->port);
	if (err)
		env_fail(h, err, "making this rank's tables");
	h->node->stats = (void *)sul_job_rank(h->job, nc.rank)->counters;
	h->tally = sul_job_more(h->job, nc.rank);
	h->node->place = h->tally->place;
}

static _Noreturn void fail_attach(struct dsm_host *h, int err)
{
	char what[DSM_REMEDY_MAX];

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

struct dsm_host *dsm_host_open(void)
{
	static struct dsm_host host; /* reached through the pointer only */
	struct dsm_host *h = &host;
	char text[DSM_CONFIG_ERR_MAX];
	int err;

	h->start_ns = clock_ns();
	err = sul_job_attach(&h->job);
	if (err)
		fail_attach(h, err);
	if (dsm_config_load(&h->settings, environ, text))
		dsm_host_fail(h, "%s", text);
	unsetenv("JIA_SET");
	pthread_mutex_init(&h->mutex, NULL);
	pthread_key_create(&h->thread_key, thread_ends);
	dsm_start_meet(h);
	h->bytes = h->settings.value.region;
	open_port(h);
	map_application_view(h);
	if (dsm_inbox_open(h))
		env_fail(h, -ENOMEM, "making the inbox for messages");
	dsm_host_current = h;
	dsm_segv_install(h);
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	return h;
}
