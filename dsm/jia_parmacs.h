/* SPDX-License-Identifier: MIT */
/*
 * jia_parmacs.h - for programs written in the ANL macros (PARMACS).
 *
 * What jia.m4 makes of MAIN_ENV, CREATE, G_MALLOC and so on; see jia_parmacs(7).
 * Such a program begins alone.  Its main() runs on rank 0, the *master*; the
 * other ranks, its *workers*, wait before main() until CREATE gives them a
 * function to run.  They find the master's global variables as they were then.
 *
 * Errors, threads: as in jia.h.
 */
#ifndef JIA_PARMACS_H
#define JIA_PARMACS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define JIA_PARMACS_API __attribute__((visibility("default")))
#else
#define JIA_PARMACS_API
#endif

/* --- processes ----------------------------------------------------------------- */

/*
 * To be called by a constructor of the program (MAIN_ENV makes one).  Returns on
 * the master only; a worker's process ends in it.  A program that nobody has
 * started as ranks becomes a job of as many as JIA_NP says, or of 8: those that
 * are not needed sleep.  With JIA_SHARE_GLOBALS=1 all global variables of the
 * program are shared memory.
 */
JIA_PARMACS_API void jia_alone(int argc, char **argv);

/*
 * Let @n more workers run @entry, with the master's global variables as they are
 * now.  The first time that each of them, and the master, synchronises or locks
 * goes in the order of ranks.
 */
JIA_PARMACS_API void jia_create(void (*entry)(void), int n);
/* Until all of them have come back from it; what they wrote is seen. */
JIA_PARMACS_API void jia_wait_for_end(void);

/* --- memory ------------------------------------------------------------------------ */

/* Shared memory, for any rank at any time; 64 KiB and more begin on a page.  Its
 * pages are at home on the master, unless @home says otherwise; once workers
 * run, that is no longer heard, and the parameter heap limits what there is. */
JIA_PARMACS_API void *jia_gmalloc(size_t bytes);
JIA_PARMACS_API void *jia_gmalloc_on(size_t bytes, int home);
JIA_PARMACS_API void jia_gfree(void *at); /* NULL is fine */

/* --- synchronisation ------------------------------------------------------------------
 *
 * These objects lie in shared memory, all bytes 0 at first.  (Locks and
 * conditions are jia.h's: named by an address, at which nothing is stored.)
 */
struct jia_barrier {
	unsigned int came, round;
};
struct jia_pause {
	unsigned int set;
};
struct jia_loop {
	struct jia_barrier end;
	int next;
};

/* @n ranks meet; with fewer than all, only with consistency=release. */
JIA_PARMACS_API void jia_barrier_for(struct jia_barrier *b, int n);
/* A flag: waiting for it to be set sees what was written before that. */
JIA_PARMACS_API void jia_setpause(struct jia_pause *p);
JIA_PARMACS_API void jia_clearpause(struct jia_pause *p);
JIA_PARMACS_API void jia_waitpause(struct jia_pause *p);
/* The next of 0 .. @max; -1 when all are given away, to all @n ranks at once:
 * then it begins anew. */
JIA_PARMACS_API int jia_nextsub(struct jia_loop *l, int max, int n);

/* Of jia.h, without its macros. */
JIA_PARMACS_API void jia_lock_at(const void *addr);
JIA_PARMACS_API void jia_unlock_at(const void *addr);
JIA_PARMACS_API void jia_cond_wait(const void *cond);
JIA_PARMACS_API void jia_cond_signal(const void *cond);
JIA_PARMACS_API void jia_cond_broadcast(const void *cond);

/* Microseconds of the wall clock. */
JIA_PARMACS_API unsigned long jia_clock_us(void);

#ifdef __cplusplus
}
#endif

#endif /* JIA_PARMACS_H */
