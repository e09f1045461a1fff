/* SPDX-License-Identifier: MIT */
/*
 * dsm_program.h - the program's own global variables, as pieces of memory.
 *
 * For programs that were written for processes made by fork(), or for threads:
 * what they have in global variables is to be the same on other ranks.  Only the
 * program file itself counts, not the libraries that it is linked to.
 */
#ifndef DSM_PROGRAM_H
#define DSM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum {
	DSM_PROGRAM_PARTS = 4,
	DSM_PROGRAM_KEPT = 64,
};

struct dsm_part {
	char *at;
	size_t bytes;
};

struct dsm_program {
	/* What is writable while it runs: .data and .bss. */
	unsigned int nr_parts;
	struct dsm_part part[DSM_PROGRAM_PARTS];
	/* In there, but a library's (copy relocations): environ, stdout, ... */
	unsigned int nr_kept;
	struct dsm_part kept[DSM_PROGRAM_KEPT];
};

/* -E2BIG: it has more pieces, or library objects, than there is room for. */
int dsm_program_read(struct dsm_program *out);

/* Whether a part has the byte at @at. */
bool dsm_program_has(const struct dsm_program *p, const void *at);

#endif /* DSM_PROGRAM_H */
