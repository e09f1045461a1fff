/* SPDX-License-Identifier: MIT */
/*
 * dsm_mutant.h - one rule of the protocol taken away, for tests.
 *
 * `-DDSM_MUTANT=name` builds the runtime without that rule (rows:
 * dsm_mutant.def); `make check-mutants` shows that the tests notice.  In an
 * ordinary build DSM_BROKEN(name) is the constant 0 and leaves nothing behind.
 *
 * DSM_POINT(n) marks a place where other threads and ranks may overtake; in a
 * build with -DDSM_POINTS the simulator switches there, or a test waits.
 */
#ifndef DSM_MUTANT_H
#define DSM_MUTANT_H

enum dsm_mutant {
	DSM_MUTANT_none,
#define MUTANT(name, rule) DSM_MUTANT_##name,
#include "dsm_mutant.def"
};

#ifdef DSM_MUTANT
#define DSM_MUTANT_PASTE(name) DSM_MUTANT_##name
#define DSM_MUTANT_EXPAND(name) DSM_MUTANT_PASTE(name)
#define DSM_BROKEN(name) (DSM_MUTANT_##name == DSM_MUTANT_EXPAND(DSM_MUTANT))
#else
#define DSM_BROKEN(name) 0
#endif

#ifdef DSM_POINTS
#define DSM_POINT(n) ((n)->env->point((n)->env_ctx))
#else
#define DSM_POINT(n) ((void)(n))
#endif

#endif /* DSM_MUTANT_H */
