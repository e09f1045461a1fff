/* SPDX-License-Identifier: MIT */
/*
 * jia.h - shared memory for C programs that run as several processes.
 *
 * Every process (*rank*) of a job calls jia_init() first and jia_exit() last.
 * Shared memory has the same address on all ranks.  What one rank wrote is seen
 * by another after they have met: unlock and then lock of the same lock, or a
 * barrier.  See jia(7), and jiarun(1) for starting a job.
 *
 * The names and their meaning are JIAJIA 2.1's, so its programs compile and run
 * as they are; what is ours says so.  Calls marked *collective* are made by all
 * ranks, in the same order and with the same arguments; a difference ends the
 * job with a message that names both calls.
 *
 * Errors: a call that cannot do what it was asked ends the whole job with a
 * message (what was called, with what, what is allowed) and exit status 1.
 * Threads: one thread calls for its rank unless jia_threads() says otherwise.
 */
#ifndef JIA_H
#define JIA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JIA_VERSION_MAJOR 0
#define JIA_VERSION_MINOR 1

#if defined(__GNUC__)
#define JIA_API __attribute__((visibility("default")))
#define JIA_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define JIA_API
#define JIA_PRINTF(a, b)
#endif

extern JIA_API int jia_pid; /* this rank, 0 .. hostc-1 */
extern JIA_API int hostc; /* ranks in the job */
extern JIA_API int jia_lock_index; /* next id LOCKINIT gives away */
#define jiapid jia_pid
#define jiahosts hostc

enum {
	Maxlocks = 1024 /* lock ids are 0 .. Maxlocks-1 */
};

#ifndef OFF
#define OFF 0
#endif
#ifndef ON
#define ON 1
#endif

/* Keys of jia_config(). */
#define HMIG 0 /* move a page's home to its only writer */
#define ADWD 1 /* stop looking for writes to pages that only their home has */
#define BROADCAST 2 /* tree barriers (ours always are) */
#define LOADBAL 3
#define WVEC 4

/* --- start and end ---------------------------------------------------------- */

/* Join the job.  Collective.  @argc, @argv are left as they are. */
JIA_API void jia_init(int argc, char **argv);

/* Leave the job: waits for all ranks.  Collective, by the only thread that
 * jia_threads() leaves.  Loads and stores of shared memory go on working
 * afterwards; synchronisation does not. */
JIA_API void jia_exit(void);

/* End the job with a message of the program's own, exit status 1. */
#if defined(__cplusplus) || __STDC_VERSION__ >= 199901L
JIA_API void jia_error(const char *fmt, ...) JIA_PRINTF(1, 2);
#else
JIA_API void jia_error(char *, ...); /* as old programs redeclare it */
#endif
#define jia_errexit jia_error

/* --- memory: JIAJIA's calls -------------------------------------------------
 *
 * Collective.  Sizes in bytes, rounded up to whole pages; the memory is zeroed.
 * The object is cut into blocks of @block bytes that go to the ranks in turn,
 * beginning with @starthost.
 */
JIA_API unsigned long jia_alloc3(int size, int block, int starthost);
JIA_API unsigned long jia_alloc2(int size, int block); /* from rank 0 */
JIA_API unsigned long jia_alloc2p(int size, int proc); /* all on one rank */
JIA_API unsigned long jia_alloc1(int size); /* all on rank 0 */
JIA_API unsigned long jia_alloc(int size); /* on one rank, the next each call */

/* --- memory: ours ------------------------------------------------------------ */

/* The same with sizes up to the region's; homes in equal contiguous shares. */
JIA_API void *jia_malloc(size_t bytes);
/* Blocks of @block bytes to the ranks in turn, from rank @home. */
JIA_API void *jia_malloc_on(size_t bytes, size_t block, int home);
/* Collective, and a barrier; NULL is fine. */
JIA_API void jia_free(void *ptr);

/* --- synchronisation --------------------------------------------------------- */

/* Locks nest, last taken first released; taking one twice is an error. */
JIA_API void jia_lock(int lock);
JIA_API void jia_unlock(int lock);
/* All ranks (and all their threads) meet; all writes are seen.  Collective;
 * not while holding a lock. */
JIA_API void jia_barrier(void);
/* All ranks meet; nothing is made visible.  Collective. */
JIA_API void jia_wait(void);
/* Ours: from now on @n threads of this rank call; each must reach every
 * jia_barrier().  1 .. the parameter `threads`.  Call it while no other thread
 * of the rank is inside a jia_ call; 1 goes back to a single thread.  Each needs
 * 16 units of the parameter `cache`. */
JIA_API void jia_threads(int n);

/* --- settings and measurement -------------------------------------------------- */

/* Collective.  @key is one of HMIG .. WVEC, @value ON or OFF. */
JIA_API void jia_config(int key, int value);
/* Ours: set a parameter by name (jiarun --list-parameters).  Collective. */
JIA_API void jia_set(const char *name, const char *value);
JIA_API float jia_clock(void); /* seconds since jia_init() */
/* Zero and start the counters; stop them.  Both return microseconds. */
JIA_API unsigned int jia_startstat(void);
JIA_API unsigned int jia_stopstat(void);
/* Ours: a counter of this rank by name (jiarun --stats), brought up to date.
 * It only grows, except that jia_startstat() zeroes it. */
JIA_API unsigned long jia_counter(const char *name);

/*
 * Ours: names for jiarun --stats, 1 to 31 bytes each.  Not collective: each rank
 * counts for itself, and the report adds up what has the same name.  NULL is
 * fine for jia_phase() only: no phase.
 */
/* From now on this rank counts for phase @name (too), until the next call; a
 * phase may be begun again and again.  At most 32. */
JIA_API void jia_phase(const char *name);
/* What is counted for pages of the allocation that begins at @ptr is counted
 * for @name, too.  Several may have the same.  At most 63 names. */
JIA_API void jia_name(const void *ptr, const char *name);

#ifdef __cplusplus
}
#endif

/*
 * The macros of JIAJIA's ANL dialect.  Each ends in a ';' of its own, as its
 * programs expect.  JIA_NO_MACROS leaves all of them out.
 */
#ifndef JIA_NO_MACROS
#define jia_wtnt(a, b)
#define jia_wtntw(a)
#define jia_wtntd(a)

#define LOCKDEC(x) int x;
#define LOCKINIT(x) (x) = jia_lock_index++;
#define LOCK(x) jia_lock(x);
#define UNLOCK(x) jia_unlock(x);
#define ALOCKDEC(x, y) int x[y];
#define ALOCKINIT(x, y)                                           \
	{                                                         \
		int jia_i;                                        \
		for (jia_i = 0; jia_i < (y); jia_i++)             \
			(x)[jia_i] = jia_lock_index++;            \
	}
#define ALOCK(x, i) jia_lock((x)[i]);
#define AULOCK(x, i) jia_unlock((x)[i]);
#define BARDEC(x) int x;
#define BARINIT(x) ;
#define BARRIER(x, n) jia_barrier();
#define WAIT_FOR_END(x) jia_barrier();
#define EXTERN_ENV ;
#define MAIN_ENV ;
#define MAIN_INITENV(x, y) ;
#define MAIN_END jia_exit();
#define PAUSEDEC(x) int x;
#define PAUSEINIT(x) ;
#define PAUSE_POLL(x) ;
#define PAUSE_SET(x) ;
#define PAUSE_RESET(x) ;
#define PAUSE_ACCEPT(x) ;
#define G_MALLOC(x) jia_alloc(x);
#define G2_MALLOC(x, y) jia_alloc2p(x, y);
#define CLOCK(x) (x) = jia_clock();
#endif /* JIA_NO_MACROS */

#endif /* JIA_H */
