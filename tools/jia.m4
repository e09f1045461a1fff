divert(-1)
# SPDX-License-Identifier: MIT
#
# jia.m4 - the ANL macros (PARMACS), for programs that run as several processes
# on libjia; see jia_parmacs(7).
#
#     m4 jia.m4 program.c.in > program.c        or: jiacc --parmacs program.c.in
#
# The vocabulary is that of SPLASH-2, with the forms of Splash-3 (CREATE with a
# number) and the atomic operations of Splash-4.  A library call stands behind
# each; what they mean is told in jia_parmacs.h.  Statements are blocks, since
# programs put a ';' behind them or do not.

define(`jia_do', `{ $1; }')
# A macro with arguments, and not the mere word: it may stand in a text.
define(`jia_define', `jia_define_(`$1', `$2', `$'`#')')
define(`jia_define_', `define(`$1', `ifelse($3, `0', ``$1'', `$2')')')

# --- the program ---------------------------------------------------------------

define(`MAIN_ENV', `
`#include' <stdlib.h>
`#include' <jia_parmacs.h>
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif
__attribute__((constructor)) static void jia_parmacs_begin(int argc, char **argv)
{
	jia_alone(argc, argv);
}
')
define(`EXTERN_ENV', `
`#include' <stdlib.h>
`#include' <jia_parmacs.h>
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif
')
define(`ENV', defn(`EXTERN_ENV'))
define(`MAIN_INITENV', `')
define(`MAIN_END', `jia_do(`exit(0)')')

# CREATE(f): one process more, the caller goes on; CREATE(f, n): n processes run
# f, the caller is one of them.
jia_define(`CREATE', `ifelse(`$#', `1',
	`jia_do(`jia_create((void (*)(void))($1), 1)')',
	`jia_do(`jia_create((void (*)(void))($1), (int)($2) - 1); ($1)()')')')
jia_define(`WAIT_FOR_END', `jia_do(`jia_wait_for_end()')')

# With a ';' of their own, as everywhere: it is the last of a statement.

# --- memory ------------------------------------------------------------------------

jia_define(`G_MALLOC', `jia_gmalloc((size_t)($1));')
jia_define(`G_MALLOC_F', `jia_gmalloc_on((size_t)($1), (int)($2));')
jia_define(`G2_MALLOC', `jia_gmalloc_on((size_t)($1), (int)($2));')
jia_define(`G_FREE', `jia_gfree($1);')
jia_define(`NU_MALLOC', `jia_gmalloc((size_t)($1));')
jia_define(`NU_FREE', `jia_gfree($1);')

# --- locks: named by address, so nothing has to be made ------------------------------------

jia_define(`LOCKDEC', `char $1;')
jia_define(`LOCKINIT', `jia_do(`(void)&($1)')')
jia_define(`LOCK', `jia_do(`jia_lock_at((const void *)&($1))')')
jia_define(`UNLOCK', `jia_do(`jia_unlock_at((const void *)&($1))')')

jia_define(`ALOCKDEC', `char $1[$2];')
jia_define(`ALOCKINIT', `jia_do(`(void)($1)')')
jia_define(`ALOCK', `jia_do(`jia_lock_at((const void *)&($1)[$2])')')
jia_define(`AULOCK', `jia_do(`jia_unlock_at((const void *)&($1)[$2])')')
jia_define(`AUNLOCK', `AULOCK(`$1', `$2')')
jia_define(`AGETL', `($1)[$2]')

# --- conditions ---------------------------------------------------------------------------------

jia_define(`CONDVARDEC', `char $1;')
jia_define(`CONDVARINIT', `jia_do(`(void)&($1)')')
jia_define(`CONDVARWAIT', `jia_do(`jia_cond_wait((const void *)&($1))')')
jia_define(`CONDVARSIGNAL', `jia_do(`jia_cond_signal((const void *)&($1))')')
jia_define(`CONDVARBCAST', `jia_do(`jia_cond_broadcast((const void *)&($1))')')

# --- barriers, flags, loops --------------------------------------------------------------------

jia_define(`BARDEC', `struct jia_barrier $1;')
jia_define(`BARINIT', `jia_do(`($1).came = 0')')
jia_define(`BARRIER', `jia_do(`jia_barrier_for(&($1), (int)($2))')')
define(`BAREXCLUDE', `')
define(`BARINCLUDE', `')

jia_define(`PAUSEDEC', `struct jia_pause $1;')
jia_define(`PAUSEINIT', `jia_do(`($1).set = 0')')
jia_define(`SETPAUSE', `jia_do(`jia_setpause(&($1))')')
jia_define(`CLEARPAUSE', `jia_do(`jia_clearpause(&($1))')')
jia_define(`WAITPAUSE', `jia_do(`jia_waitpause(&($1))')')
jia_define(`PAUSE', `WAITPAUSE(`$1')')
jia_define(`EVENT', `jia_do(`jia_waitpause(&($1))')')

jia_define(`APAUSEDEC', `struct jia_pause $1[$2];')
jia_define(`APAUSEINIT', `jia_do(`(void)($1)')')
jia_define(`ASETPAUSE', `jia_do(`jia_setpause(&($1)[$2])')')
jia_define(`ACLEARPAUSE', `jia_do(`jia_clearpause(&($1)[$2])')')
jia_define(`AWAITPAUSE', `jia_do(`jia_waitpause(&($1)[$2])')')

jia_define(`GSDEC', `struct jia_loop $1;')
jia_define(`GSINIT', `jia_do(`($1).next = 0')')
jia_define(`GETSUB', `jia_do(`($2) = jia_nextsub(&($1), (int)($3), (int)($4))')')

# --- atomic operations: an object's address names its lock ---------------------------------------------

define(`jia_atomic', `__extension__({ jia_lock_at((const void *)&($1)); $2 jia_unlock_at((const void *)&($1)); $3 })')
jia_define(`ATOMIC_LOAD', `jia_atomic(`$1', `__typeof__(($1)) jia_v_ = ($1);', `jia_v_;')')
jia_define(`ATOMIC_STORE', `jia_do(`jia_lock_at((const void *)&($1)); ($1) = ($2); jia_unlock_at((const void *)&($1))')')
jia_define(`FETCH_ADD', `jia_atomic(`$1', `__typeof__(($1)) jia_v_ = ($1); ($1) += ($2);', `jia_v_;')')
jia_define(`FETCH_SUB', `jia_atomic(`$1', `__typeof__(($1)) jia_v_ = ($1); ($1) -= ($2);', `jia_v_;')')
jia_define(`FETCH_ADD_DOUBLE', `jia_do(`jia_lock_at((const void *)($1)); *($1) += ($2); jia_unlock_at((const void *)($1))')')
jia_define(`COMPARE_AND_SWAP', `jia_atomic(`$1', `int jia_v_ = ($1) == ($2); if (jia_v_) ($1) = ($3);', `jia_v_;')')
# Locks and barriers order what is seen; nothing else does, on several hosts.
define(`FULL_FENCE', `')
define(`ACQUIRE_FENCE', `')
define(`RELEASE_FENCE', `')

# --- time, in microseconds ---------------------------------------------------------------------------------

jia_define(`CLOCK', `jia_do(`($1) = jia_clock_us()')')

# --- where the part that is measured begins and ends: for simulators ---------------------------

define(`SPLASH3_ROI_BEGIN', `')
define(`SPLASH3_ROI_END', `')

# --- words of m4 that C programs use for themselves -------------------------------------------------------------

undefine(`len', `index', `shift', `eval', `format', `substr', `incr', `decr',
	`sinclude', `translit', `regexp', `patsubst', `unix', `indir',
	`builtin', `dumpdef', `errprint', `esyscmd', `syscmd', `sysval',
	`mkstemp', `maketemp', `popdef', `pushdef', `traceon', `traceoff',
	`undivert', `divnum', `m4wrap', `m4exit', `debugmode',
	`debugfile', `changecom', `changequote')
divert(0)dnl
