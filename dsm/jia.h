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
	Maxlocks = 1024, /* lock ids are 0 .. Maxlocks-1 */
	Maxcvs = 16 /* condition variables are 0 .. Maxcvs-1 */
};

#ifndef OFF
#define OFF 0
#endif
#ifndef ON
#define ON 1
#endif

/* Wildcards of jia_recv(). */
#define MSG_PROC_ALL (-1)
#define MSG_TAG_ALL (-1)

/* Operations of jia_reduce(). */
#define SUM_INT 0
#define MAX_INT 1
#define MIN_INT 2
#define SUM_FLOAT 10
#define MAX_FLOAT 11
#define MIN_FLOAT 12
#define SUM_DOUBLE 20
#define MAX_DOUBLE 21
#define MIN_DOUBLE 22

/* Keys of jia_config(). */
#define HMIG 0 /* move a page's home to its only writer */
#define ADWD 1 /* stop looking for writes to pages that only their home has */
#define BROADCAST 2 /* tree barriers (ours always are) */
#define LOADBAL 3 /* jia_divtask() shares out by power */
#define WVEC 4 /* keep copies, and store into them only what has changed */

#if !defined(__cplusplus) && \
	(!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
extern char *optarg; /* was in stdio.h when old programs were new */
extern int optind, opterr, optopt;
#endif

/* --- start and end ---------------------------------------------------------- */

/* Join the job.  Collective.  @argc, @argv are left as they are. */
JIA_API void jia_init(int argc, char **argv);

/* Leave the job: waits for all ranks.  Collective, by the only thread that
 * jia_threads() leaves.  Loads and stores of shared memory go on working
 * afterwards; synchronisation does not. */
JIA_API void jia_exit(void);

/* Ours: jia_exit(), unless that has been called (MAIN_END is this). */
JIA_API void jia_main_end(void);

/* End the job with a message of the program's own, exit status 1. */
#if defined(__cplusplus) || \
	(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
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
/* Round i of the ranks gets blocks of block[i] bytes (each at least 1); there
 * are as many elements as it takes rounds until @size is used up. */
JIA_API unsigned long jia_alloc3b(int size, int *block, int starthost);

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
/* Ours: 1 if the lock was free and is taken now, else 0 (also if this thread
 * holds it).  Does not wait. */
JIA_API int jia_trylock(int lock);
/* All ranks (and all their threads) meet; all writes are seen.  Collective;
 * not while holding a lock. */
JIA_API void jia_barrier(void);
/* All ranks meet; nothing is made visible.  Collective. */
JIA_API void jia_wait(void);

/*
 * Condition variables: sticky flags, all unset at first.  Setting one lets all
 * go on who wait for it, and whoever waits later, until it is reset.  They make
 * nothing visible: lock, write, unlock, jia_setcv() - jia_waitcv(), lock, read,
 * unlock.  (With consistency=release, too.)
 */
JIA_API void jia_setcv(int cv);
JIA_API void jia_resetcv(int cv);
JIA_API void jia_waitcv(int cv);
/* Ours: the number of a condition variable that no earlier call gave away; all
 * ranks make the same calls (PAUSEINIT does). */
JIA_API int jia_newcv(void);
/* Ours: from now on @n threads of this rank call; each must reach every
 * jia_barrier().  1 .. the parameter `threads`.  Call it while no other thread
 * of the rank is inside a jia_ call; 1 goes back to a single thread.  Each needs
 * 16 units of the parameter `cache`. */
JIA_API void jia_threads(int n);

/* --- messages and collective operations -------------------------------------------
 *
 * They make nothing visible in shared memory, but their buffers may be there.
 * Of one rank's messages to another, those that match are received in the order
 * in which they were sent.  jia_send() returns when @buf may be used again: it
 * needs no jia_recv() to go on, only that the receiver is in some call of this
 * library now and then.
 */
#if defined(__cplusplus) || \
	(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
JIA_API void jia_send(const void *buf, int len, int toproc, int tag);
/* Wait for a message of @fromproc (or MSG_PROC_ALL) with @tag (or MSG_TAG_ALL);
 * its length.  One that is longer than @len ends the job. */
JIA_API int jia_recv(void *buf, int len, int fromproc, int tag);
/* Combine @count elements of all ranks with @op (SUM_INT ... MIN_DOUBLE); the
 * result is in @rcv on all ranks.  Collective.  The order in which floating
 * point numbers are added depends on the number of ranks and @root only. */
JIA_API void jia_reduce(const void *snd, void *rcv, int count, int op,
			int root);
/* Copy @root's @len bytes to all others.  Collective. */
JIA_API void jia_bcast(void *buf, int len, int root);
#else /* as old programs redeclare them */
JIA_API void jia_send(char *buf, int len, int toproc, int tag);
JIA_API int jia_recv(char *buf, int len, int fromproc, int tag);
JIA_API void jia_reduce(char *snd, char *rcv, int count, int op, int root);
JIA_API void jia_bcast(char *buf, int len, int root);
#endif
/* Measure how fast each rank computes at present (it takes 10 ms).  Collective.
 * With jia_config(LOADBAL, ON), jia_divtask() goes by that from now on. */
JIA_API void jia_loadcheck(void);
/* In: the first and the last of a range, the same on all ranks.  Out: the first
 * and last of this rank's share (none: end is begin - 1). */
JIA_API void jia_divtask(int *begin, int *end);

/* --- system calls on shared memory: ours --------------------------------------------
 *
 * A system call that is handed a page which this rank has no copy of, or may
 * not write to yet, fails with EFAULT.  jia_touch() makes a range accessible and
 * holds it so until jia_untouch() with the same arguments, or until this thread
 * synchronises the next time (a lock, an unlock, a barrier).  JIA_OVERWRITE says
 * that the whole range will be written: what was there is not fetched, and is
 * undefined until then.  At most 16 ranges a thread.
 */
enum {
	JIA_READ, /* the system reads it, as in write(2) */
	JIA_WRITE, /* the system writes to it, as in read(2) */
	JIA_OVERWRITE /* to all of it */
};
JIA_API void jia_touch(const void *addr, size_t len, int mode);
JIA_API void jia_untouch(const void *addr, size_t len);

/* --- locks and conditions: ours --------------------------------------------------
 *
 * By address: any address that is the same on all ranks, such as one in shared
 * memory or of a global variable; nothing is stored there.  There may be
 * millions (parameter `names`); each takes 32 bytes of one rank from its first
 * use on.  They nest with the numbered ones.
 */
JIA_API void jia_lock_at(const void *addr);
JIA_API void jia_unlock_at(const void *addr);
JIA_API int jia_trylock_at(const void *addr); /* as jia_trylock() */

/*
 * Reader-writer locks: many readers, or one writer; served in the order in
 * which they come.  What was written with the lock held is seen by all who take
 * it later.  Lock numbers and addresses are the same as above, but a lock is
 * used either with these calls or with those.
 */
JIA_API void jia_rdlock(int lock);
JIA_API void jia_wrlock(int lock);
JIA_API void jia_rwunlock(int lock); /* of either kind */
JIA_API void jia_rdlock_at(const void *addr);
JIA_API void jia_wrlock_at(const void *addr);
JIA_API void jia_rwunlock_at(const void *addr);

/*
 * Conditions.  Wait releases the lock taken last (by jia_lock() or
 * jia_lock_at()), waits for a signal and takes the lock again; it never returns
 * without one, but the state that was signalled may have changed again.  Signal
 * lets one waiter go on (which, is not said), broadcast all; without waiters
 * they do nothing.  They are usually called with that lock held, and need not.
 */
JIA_API void jia_cond_wait(const void *cond);
JIA_API void jia_cond_signal(const void *cond);
JIA_API void jia_cond_broadcast(const void *cond);

/* For GSINIT and GETSUB below. */
JIA_API int jia_gsinit(void);
JIA_API int jia_getsub(int gs, int max, int n);

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
#define LOCKINIT(x) (x) = jia_lock_index++ % Maxlocks;
#define LOCK(x) jia_lock(x);
#define UNLOCK(x) jia_unlock(x);
#define ALOCKDEC(x, y) int x[y];
#define ALOCKINIT(x, y)                                           \
	{                                                         \
		int jia_i;                                        \
		for (jia_i = 0; jia_i < (y); jia_i++)             \
			(x)[jia_i] = jia_lock_index++ % Maxlocks; \
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
#define MAIN_END jia_main_end();
/* A pause is a condition variable: set by one, accepted (and reset) by another,
 * polled (waited for, and left set) by any number. */
#define PAUSEDEC(x) int x;
#define PAUSEINIT(x) (x) = jia_newcv();
#define PAUSE_SET(x, y) jia_setcv(x);
#define PAUSE_RESET(x) jia_resetcv(x);
#define PAUSE_POLL(x) jia_waitcv(x);
#define PAUSE_ACCEPT(x)         \
	{                       \
		jia_waitcv(x);  \
		jia_resetcv(x); \
	}
/* A self-scheduled loop: each GETSUB gives the next of 0 .. max to somebody,
 * and -1 to all @n ranks when none is left; that is a barrier, too. */
#define GSDEC(x) int x;
#define GSINIT(x) (x) = jia_gsinit();
#define GETSUB(x, sub, max, n) (sub) = jia_getsub(x, max, n);
#define G_MALLOC(x) jia_alloc(x);
#define G2_MALLOC(x, y) jia_alloc2p(x, y);
#define CLOCK(x) (x) = jia_clock();
#endif /* JIA_NO_MACROS */

#endif /* JIA_H */
