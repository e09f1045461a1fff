/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_mutant.h - one rule of the module taken away, for tests.
 *
 * `make module SUL_MUTANT=name` builds it without that rule (rows: sul_mutant.def);
 * `make check-kernel-mutants` shows that a test notices.  In an ordinary build
 * SUL_BROKEN(name) is the constant 0 and leaves nothing behind.
 */
#ifndef SUL_MUTANT_H
#define SUL_MUTANT_H

enum sul_mutant {
	SUL_MUTANT_none,
#define MUTANT(name, test, rule) SUL_MUTANT_##name,
#include "sul_mutant.def"
};

#ifdef SUL_MUTANT
#define SUL_MUTANT_PASTE(name) SUL_MUTANT_##name
#define SUL_MUTANT_EXPAND(name) SUL_MUTANT_PASTE(name)
#define SUL_BROKEN(name) (SUL_MUTANT_##name == SUL_MUTANT_EXPAND(SUL_MUTANT))
#else
#define SUL_BROKEN(name) 0
#endif

#endif /* SUL_MUTANT_H */
