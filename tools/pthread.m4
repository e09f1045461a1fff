divert(-1)
# SPDX-License-Identifier: MIT
#
# pthread.m4 - the ANL macros (PARMACS) for threads of one process: what a program
# with jia.m4 can be compared with.  The vocabulary is that of jia.m4.
#
#     m4 pthread.m4 program.c.in > program.c    or: jiacc --parmacs=pthread

define(`pt_do', `{ $1; }')
# A macro with arguments, and not the mere word: it may stand in a text.
define(`pt_define', `pt_define_(`$1', `$2', `$'`#')')
define(`pt_define_', `define(`$1', `ifelse($3, `0', ``$1'', `$2')')')
define(`pt_extern', `
`#include' <pthread.h>
`#include' <stdlib.h>
`#include' <time.h>
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif
#ifndef PT_MACROS
#define PT_MACROS
struct pt_barrier { pthread_mutex_t lock; pthread_cond_t all; int came, round; };
struct pt_pause { pthread_mutex_t lock; pthread_cond_t changed; int set; };
struct pt_loop { struct pt_barrier end; int next; };
extern pthread_t pt_thread[1024];
extern int pt_threads;
extern pthread_mutex_t pt_atom;
#endif
')

# --- the program ---------------------------------------------------------------

define(`EXTERN_ENV', `pt_extern')
define(`ENV', `pt_extern')
define(`MAIN_ENV', `pt_extern
pthread_t pt_thread[1024];
int pt_threads;
pthread_mutex_t pt_atom = PTHREAD_MUTEX_INITIALIZER;
')
define(`MAIN_INITENV', `')
define(`MAIN_END', `pt_do(`exit(0)')')

define(`pt_create', `{
	int pt_i;
	for (pt_i = 0; pt_i < (int)($2); pt_i++)
		if (pthread_create(&pt_thread[pt_threads++], NULL, (void *(*)(void *))(void *)($1), NULL))
			abort();
}')
pt_define(`CREATE', `ifelse(`$#', `1', `pt_create(`$1', `1')',
	`{ pt_create(`$1', `($2) - 1') ($1)(); }')')
pt_define(`WAIT_FOR_END', `{
	while (pt_threads)
		if (pthread_join(pt_thread[--pt_threads], NULL))
			abort();
}')

# --- memory ------------------------------------------------------------------------

pt_define(`G_MALLOC', `calloc(1, (size_t)($1));')
pt_define(`G_MALLOC_F', `calloc(1, (size_t)($1));')
pt_define(`G2_MALLOC', `calloc(1, (size_t)($1));')
pt_define(`G_FREE', `free($1);')
pt_define(`NU_MALLOC', `calloc(1, (size_t)($1));')
pt_define(`NU_FREE', `free($1);')

# --- locks -----------------------------------------------------------------------------

pt_define(`LOCKDEC', `pthread_mutex_t $1;')
pt_define(`LOCKINIT', `pt_do(`pthread_mutex_init(&($1), NULL)')')
pt_define(`LOCK', `pt_do(`pthread_mutex_lock(&($1))')')
pt_define(`UNLOCK', `pt_do(`pthread_mutex_unlock(&($1))')')
pt_define(`ALOCKDEC', `pthread_mutex_t $1[$2];')
pt_define(`ALOCKINIT', `{ int pt_i; for (pt_i = 0; pt_i < (int)($2); pt_i++) pthread_mutex_init(&($1)[pt_i], NULL); }')
pt_define(`ALOCK', `pt_do(`pthread_mutex_lock(&($1)[$2])')')
pt_define(`AULOCK', `pt_do(`pthread_mutex_unlock(&($1)[$2])')')
pt_define(`AUNLOCK', `AULOCK(`$1', `$2')')
pt_define(`AGETL', `($1)[$2]')

pt_define(`CONDVARDEC', `pthread_cond_t $1;')
pt_define(`CONDVARINIT', `pt_do(`pthread_cond_init(&($1), NULL)')')
pt_define(`CONDVARWAIT', `pt_do(`pthread_cond_wait(&($1), &($2))')')
pt_define(`CONDVARSIGNAL', `pt_do(`pthread_cond_signal(&($1))')')
pt_define(`CONDVARBCAST', `pt_do(`pthread_cond_broadcast(&($1))')')

# --- barriers, flags, loops ----------------------------------------------------------------

define(`pt_init', `pthread_mutex_init(&($1).lock, NULL); pthread_cond_init(&($1).$2, NULL)')
pt_define(`BARDEC', `struct pt_barrier $1;')
pt_define(`BARINIT', `pt_do(`pt_init(`$1', `all'); ($1).came = ($1).round = 0')')
define(`pt_meet', `
	int pt_round;
	pthread_mutex_lock(&($1).lock);
	pt_round = ($1).round;
	if (++($1).came == (int)($2)) {
		($1).came = 0;
		($1).round++;
		$3
		pthread_cond_broadcast(&($1).all);
	}
	while (($1).round == pt_round)
		pthread_cond_wait(&($1).all, &($1).lock);
	pthread_mutex_unlock(&($1).lock);
')
pt_define(`BARRIER', `{ pt_meet(`$1', `$2', `') }')
define(`BAREXCLUDE', `')
define(`BARINCLUDE', `')

pt_define(`PAUSEDEC', `struct pt_pause $1;')
pt_define(`PAUSEINIT', `pt_do(`pt_init(`$1', `changed'); ($1).set = 0')')
define(`pt_set', `pt_do(`pthread_mutex_lock(&($1).lock); ($1).set = $2; pthread_cond_broadcast(&($1).changed); pthread_mutex_unlock(&($1).lock)')')
pt_define(`SETPAUSE', `pt_set(`$1', `1')')
pt_define(`CLEARPAUSE', `pt_set(`$1', `0')')
pt_define(`WAITPAUSE', `pt_do(`pthread_mutex_lock(&($1).lock); while (!($1).set) pthread_cond_wait(&($1).changed, &($1).lock); pthread_mutex_unlock(&($1).lock)')')
pt_define(`PAUSE', `WAITPAUSE(`$1')')
pt_define(`EVENT', `WAITPAUSE(`$1')')
pt_define(`APAUSEDEC', `struct pt_pause $1[$2];')
pt_define(`APAUSEINIT', `{ int pt_i; for (pt_i = 0; pt_i < (int)($2); pt_i++) PAUSEINIT(($1)[pt_i]) }')
pt_define(`ASETPAUSE', `SETPAUSE(($1)[$2])')
pt_define(`ACLEARPAUSE', `CLEARPAUSE(($1)[$2])')
pt_define(`AWAITPAUSE', `WAITPAUSE(($1)[$2])')

pt_define(`GSDEC', `struct pt_loop $1;')
pt_define(`GSINIT', `{ BARINIT(($1).end); ($1).next = 0; }')
pt_define(`GETSUB', `{
	pthread_mutex_lock(&($1).end.lock);
	($2) = ($1).next <= (int)($3) ? ($1).next++ : -1;
	pthread_mutex_unlock(&($1).end.lock);
	if (($2) < 0) { pt_meet(`($1).end', `$4', `($1).next = 0;') }
}')

# --- atomic operations ----------------------------------------------------------------------------

define(`pt_atomic', `__extension__({ pthread_mutex_lock(&pt_atom); $1 pthread_mutex_unlock(&pt_atom); $2 })')
pt_define(`ATOMIC_LOAD', `pt_atomic(`__typeof__(($1)) pt_v_ = ($1);', `pt_v_;')')
pt_define(`ATOMIC_STORE', `pt_do(`pthread_mutex_lock(&pt_atom); ($1) = ($2); pthread_mutex_unlock(&pt_atom)')')
pt_define(`FETCH_ADD', `pt_atomic(`__typeof__(($1)) pt_v_ = ($1); ($1) += ($2);', `pt_v_;')')
pt_define(`FETCH_SUB', `pt_atomic(`__typeof__(($1)) pt_v_ = ($1); ($1) -= ($2);', `pt_v_;')')
pt_define(`FETCH_ADD_DOUBLE', `pt_do(`pthread_mutex_lock(&pt_atom); *($1) += ($2); pthread_mutex_unlock(&pt_atom)')')
pt_define(`COMPARE_AND_SWAP', `pt_atomic(`int pt_v_ = ($1) == ($2); if (pt_v_) ($1) = ($3);', `pt_v_;')')
define(`FULL_FENCE', `__atomic_thread_fence(__ATOMIC_SEQ_CST);')
define(`ACQUIRE_FENCE', `__atomic_thread_fence(__ATOMIC_ACQUIRE);')
define(`RELEASE_FENCE', `__atomic_thread_fence(__ATOMIC_RELEASE);')

pt_define(`CLOCK', `{
	struct timespec pt_t;
	clock_gettime(CLOCK_REALTIME, &pt_t);
	($1) = (unsigned long)pt_t.tv_sec * 1000000u + (unsigned long)pt_t.tv_nsec / 1000u;
}')
define(`SPLASH3_ROI_BEGIN', `')
define(`SPLASH3_ROI_END', `')

undefine(`len', `index', `shift', `eval', `format', `substr', `incr', `decr',
	`sinclude', `translit', `regexp', `patsubst', `unix', `indir',
	`builtin', `dumpdef', `errprint', `esyscmd', `syscmd', `sysval',
	`mkstemp', `maketemp', `popdef', `pushdef', `traceon', `traceoff',
	`undivert', `divnum', `m4wrap', `m4exit', `debugmode',
	`debugfile', `changecom', `changequote')
divert(0)dnl
