/* SPDX-License-Identifier: MIT */
/*
 * misuse.h - what the parts of the misuse program share.
 *
 * A *deed* is one thing that a program can do, rightly or wrongly.  The part
 * files have tables of them; tests/misuse/run calls each by name and knows what
 * must come of it.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JIA_NO_MACROS
#include "jia.h"

enum {
	PAGE = 4096,
	PAGES = 64 /* of `shared` */
};

enum who {
	ONE, /* the rank that the command line names; the others wait */
	ALL, /* every rank */
	RAW /* every rank, and jia_init() is left to the deed */
};

struct deed {
	const char *name;
	void (*run)(void);
	enum who who;
};

/* Each ends with { NULL, NULL, ONE }. */
extern const struct deed call_deeds[], differ_deeds[], fault_deeds[],
	child_deeds[], limit_deeds[], good_deeds[], busy_deeds[];

extern volatile unsigned char *shared; /* PAGES pages, homes in turn */
extern int the_rank; /* that does the deed */
extern int my_argc;
extern char **my_argv;

void setup(void); /* jia_init(), `shared`, a barrier */

/* One line that the driver finds again: a call whose message must name it. */
#define DEED(name, ...)                       \
	static void name(void)                \
	{                                     \
		__VA_ARGS__;                  \
		puts("went on after " #name); \
	}

#define CHECK(cond, ...)                                  \
	do {                                              \
		if (!(cond))                              \
			jia_error("check: " __VA_ARGS__); \
	} while (0)

#endif /* MISUSE_H */
