/* SPDX-License-Identifier: MIT */
/*
 * dsm_host.h - a node in a real process: memory, faults, threads, messages.
 *
 * What struct dsm_env asks for, done with mmap, mprotect, a mutex and signals.
 * A process has one host, found through dsm_host_current.
 *
 * Views.  The rank's frames are mapped twice: the *application view* at a fixed
 * address that is the same on all ranks, with page protection; and the *system
 * view* (the FRAME window), always writable, through which pages are filled and
 * compared.  So a page becomes visible only when it is complete.
 */
#ifndef DSM_HOST_H
#define DSM_HOST_H

#include <pthread.h>
#include <signal.h>

#include "dsm_node.h"
#include "sul_pmix.h"

/*
 * Where the application view lies, and behind it, at the same distance for every
 * region, the system view.  The first place is the only one that is free in
 * plain builds and under ASan, TSan, UBSan and valgrind; the second takes larger
 * regions, in plain builds.
 */
#define DSM_BASE UINT64_C(0x550000000000)
#define DSM_BASE_BYTES (UINT64_C(160) << 30)
#define DSM_BASE_LARGE UINT64_C(0x100000000000)
#define DSM_BASE_LARGE_BYTES (UINT64_C(4) << 40)

struct dsm_host {
	/* Constant once the job runs. */
	struct sul_job *job;
	struct sul_pmix *pmix; /* NULL: no PMIx launcher, or no longer needed */
	struct sul_listener *listener; /* until the port has it */
	struct sul_port *port;
	struct dsm_node *node;
	struct dsm_inbox *inbox; /* dsm_message.c */
	struct dsm_crew *crew; /* of a program that began alone; or NULL */
	double *power; /* per rank, measured by jia_loadcheck(); or NULL */
	struct dsm_settings settings;
	struct dsm_tally *tally; /* in the job's memory */
	char *base; /* application view */
	size_t bytes;
	/* Of it, pages that are seen elsewhere: the program's own global
	 * variables (dsm_share.c).  None: alias_pages is 0. */
	char *alias;
	uint32_t alias_page, alias_pages;
	int self_mem; /* /proc/self/mem, or -1 */
	uint64_t start_ns;
	pthread_key_t thread_key; /* its destructor gives a slot back */
	struct sigaction segv_before, bus_before; /* whose signals they were */
	struct sigaction library; /* libsigsegv's own handler */

	/* The rank mutex, and what its holder keeps. */
	pthread_mutex_t mutex;
	uintptr_t owner; /* a thread's mark, see self_mark() */
	struct sul_quiet quiet;

	/* Set once. */
	bool child; /* a forked child: it is no rank */
	bool exited; /* jia_exit() was called */
	bool stats; /* the counters are to be printed, by us */
	bool spots; /* they are to be printed, by whomever */
	bool balance; /* jia_config(LOADBAL, ON) */
	unsigned int call_nr; /* jia_alloc(): whose turn */
	unsigned int loop_nr; /* jia_gsinit(): loops made */
	unsigned int flag_nr; /* jia_pauseinit(): flags given away */
};

/* The process's host; NULL before jia_init(). */
extern struct dsm_host *dsm_host_current;

/* Join the job that the environment names, or make one.  Ends the job with a
 * message on any error. */
struct dsm_host *dsm_host_open(void);

/* The clock of h->start_ns, and of all that is measured: CLOCK_MONOTONIC. */
uint64_t dsm_host_now_ns(void);

/* The calling thread's slot; made on first use. */
struct dsm_thread *dsm_host_thread(struct dsm_host *h);

/*
 * The jia_ call that this thread is in, and where it was called from: for
 * messages.  NULL, NULL at its end.
 */
void dsm_host_entered(const char *call, const void *site);

/* End the job: the text is preceded by the rank, the call and its place. */
_Noreturn void dsm_host_fail(struct dsm_host *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A phase of the program ends, and @name begins, NULL: none.  -ENOSPC.  The
 * counters are up to date then. */
int dsm_host_phase(struct dsm_host *h, const char *name);

/* The text on standard error, if nobody else will print it: a job that neither
 * jiarun nor a keeper watches, or a forked child. */
void dsm_host_say(const struct dsm_host *h, const char *text);

/* Where the program sees @page, a page of 4 KiB. */
static inline char *dsm_host_at(const struct dsm_host *h, uint32_t page)
{
	uint32_t in_alias = page - h->alias_page;

	return in_alias < h->alias_pages ?
		       h->alias + ((uint64_t)in_alias << 12) :
		       h->base + ((uint64_t)page << 12);
}

/* The byte of shared memory that is at @addr, counted from the first; false:
 * that is no shared memory. */
static inline bool dsm_host_offset(const struct dsm_host *h, const void *addr,
				   uint64_t *off)
{
	uint64_t at = (uint64_t)((uintptr_t)addr - (uintptr_t)h->base);
	uint64_t in_alias = (uint64_t)((uintptr_t)addr - (uintptr_t)h->alias);

	if (in_alias < (uint64_t)h->alias_pages << 12)
		at = ((uint64_t)h->alias_page << 12) + in_alias;
	*off = at;
	return at < h->bytes;
}

/* How many of @pages pages from @page on lie side by side where the program
 * sees them. */
static inline uint32_t dsm_host_run(const struct dsm_host *h, uint32_t page,
				    uint32_t pages)
{
	uint32_t end = h->alias_page + h->alias_pages;

	if (page < h->alias_page && pages > h->alias_page - page)
		return h->alias_page - page;
	if (page >= h->alias_page && page < end && pages > end - page)
		return end - page;
	return pages;
}

/* --- dsm_start.c ------------------------------------------------------------------ */

/* Wait for all ranks; compare parameters, program and addresses. */
void dsm_start_meet(struct dsm_host *h);
/* All ranks have met for the last time: this one leaves the job. */
void dsm_start_part(struct dsm_host *h);

/* --- dsm_launch.c ----------------------------------------------------------------- */

/* Nothing; whoever calls it has the start before main() linked in. */
void dsm_launch_linked(void);
/* Start the program anew as @np ranks, unless somebody has done so already. */
void dsm_launch_usual(const char *np, char **argv);

/* --- dsm_segv.c -------------------------------------------------------------------- */

void dsm_segv_install(struct dsm_host *h);
/* True while the calling thread is repairing a fault: signals are blocked. */
bool dsm_segv_repairing(void);

/* --- dsm_host.c, for dsm_segv.c --------------------------------------------------------- */

/* A page fault in the application view; false: nothing is allocated there, or
 * this is no rank: the program has it.  @site: one beyond the first byte of the
 * instruction. */
bool dsm_host_fault(struct dsm_host *h, const void *addr, bool store,
		    uintptr_t site);
/* Whether @addr is in the application view or one of our windows. */
bool dsm_host_ours(const struct dsm_host *h, const void *addr);

#endif /* DSM_HOST_H */
