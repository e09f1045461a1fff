/* SPDX-License-Identifier: MIT */
/*
 * text_file.h - a file that is read line by line, and what is wrong with it.
 *
 * For the readers of input files.  Threads: none; each reader has its own.
 */
#ifndef TEXT_FILE_H
#define TEXT_FILE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text_file {
	FILE *f;
	const char *path;
	long line; /* the last one read, from 1 */
	char *why; /* of @size bytes: what is wrong */
	size_t size;
};

/* 0, or a negative errno and a text. */
static inline int text_open(struct text_file *t)
{
	int err;

	t->f = fopen(t->path, "r");
	if (t->f)
		return 0;
	err = -errno;
	snprintf(t->why, t->size, "%s: %s", t->path, strerror(-err));
	return err;
}

/* Note what is wrong; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static inline int
text_bad(struct text_file *t, const char *fmt, ...)
{
	int len = snprintf(t->why, t->size, "%s:%ld: ", t->path, t->line);
	va_list ap;

	if (len >= 0 && (size_t)len < t->size) {
		va_start(ap, fmt);
		vsnprintf(t->why + len, t->size - (size_t)len, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

/* The next line; -EINVAL if there is none, or it does not fit into @size bytes. */
static inline int text_line(struct text_file *t, char *line, int size)
{
	if (!fgets(line, size, t->f))
		return text_bad(t, ferror(t->f) ? "cannot read" :
						  "the file ends early");
	t->line++;
	if (!strchr(line, '\n') && !feof(t->f))
		return text_bad(t, "the line is longer than %d bytes",
				size - 1);
	return 0;
}

#endif /* TEXT_FILE_H */
