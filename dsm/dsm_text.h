/* SPDX-License-Identifier: MIT */
/*
 * dsm_text.h - building a message in a fixed buffer: no stdio, no allocation.
 *
 * A text is always terminated; what does not fit is cut and the cut is shown
 * by a "..." at the end.  Bytes that came from outside (values, paths, lines
 * of a file) go in by dsm_text_quote() only, so that no control character and
 * no novel reaches a terminal.
 *
 * Threads: async-signal-safe; a text belongs to whoever made it.
 */
#ifndef DSM_TEXT_H
#define DSM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DSM_TEXT_QUOTE_MAX =
		64, /* characters shown of what came from outside */
	DSM_TEXT_WORD_MAX = 32 /* characters of a word that are compared: more
				  than any name of ours has */
};

struct dsm_text {
	char *buf;
	size_t size, len; /* len < size: without the terminating 0 */
};

/* @size >= 4.  The text is empty at first. */
void dsm_text_init(struct dsm_text *t, char *buf, size_t size);

void dsm_text_puts(struct dsm_text *t, const char *s);
void dsm_text_put_u64(struct dsm_text *t, uint64_t v);
/* With the largest of k, m, g, t that divides it: 65536 is 64k. */
void dsm_text_put_size(struct dsm_text *t, uint64_t bytes);

/*
 * @n bytes of @s; all but printable ASCII as \n, \t, \xNN, a backslash doubled.
 * At most DSM_TEXT_QUOTE_MAX characters are shown, then "...".
 */
void dsm_text_quote(struct dsm_text *t, const char *s, size_t n);

/* Equal but for the case of ASCII letters. */
bool dsm_text_same(const char *a, size_t na, const char *b, size_t nb);

/*
 * How many letters must be inserted, deleted, replaced, or swapped with their
 * neighbour to make @a (@na characters) of @b; case does not count, nor do
 * characters beyond DSM_TEXT_WORD_MAX.
 */
unsigned int dsm_text_distance(const char *a, size_t na, const char *b,
			       size_t nb);

#endif /* DSM_TEXT_H */
