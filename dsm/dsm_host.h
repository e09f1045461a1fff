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
	struct sul_port *port;
	struct dsm_node *node;
	struct dsm_inbox *inbox; /* dsm_message.c */
	double *power; /* per rank, measured by jia_loadcheck(); or NULL */
	struct dsm_settings settings;
	struct dsm_tally *tally; /* in the job's memory */
	char *base; /* application view */
	size_t bytes;
	uint64_t start_ns;
	pthread_key_t thread_key; /* its destructor gives a slot back */
	struct sigaction segv_before, bus_before; /* whose signals they were */
	struct sigaction library; /* libsigsegv's own handler */

	/* The rank mutex, and what its holder keeps. */
	pthread_mutex_t mutex;
	uintptr_t owner; /* a thread's mark, see self_mark() */
	sigset_t unblocked; /* signal mask to go back to */
	bool masked;

	/* Set once. */
	bool child; /* a forked child: it is no rank */
	bool exited; /* jia_exit() was called */
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

/* The text on standard error, if nobody else will print it: a job without a
 * launcher, or a forked child. */
void dsm_host_say(const struct dsm_host *h, const char *text);

/* --- dsm_start.c ------------------------------------------------------------------ */

/* Wait for all ranks; compare parameters, program and addresses. */
void dsm_start_meet(struct dsm_host *h);

/* --- dsm_segv.c -------------------------------------------------------------------- */

void dsm_segv_install(struct dsm_host *h);
/* True while the calling thread is repairing a fault: signals are blocked. */
bool dsm_segv_repairing(void);

/* --- dsm_host.c, for dsm_segv.c --------------------------------------------------------- */

/* A page fault in the application view; false: nothing is allocated there, or
 * this is no rank: the program has it. */
bool dsm_host_fault(struct dsm_host *h, const void *addr, bool store);
/* Whether @addr is in the application view or one of our windows. */
bool dsm_host_ours(const struct dsm_host *h, const void *addr);

#endif /* DSM_HOST_H */
