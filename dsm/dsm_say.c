/* SPDX-License-Identifier: MIT */
/* dsm_say.c - see dsm_say.h. */
#include "dsm_say.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sul_job.h"

/* What is said at a time goes out in one piece: others may say something, too. */
struct line {
	size_t len;
	char text[2 * SUL_JOB_TEXT_MAX];
};

static void add(struct line *l, const char *text, size_t len)
{
	size_t room = sizeof(l->text) - l->len;

	if (len > room)
		len = room;
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

/* "program+0x...", which addr2line takes. */
static void add_place(struct line *l, uintptr_t at)
{
	const char *file = "", *plus = "", *slash;
	char place[256];
	Dl_info in;

	if (dladdr((void *)at, &in) && in.dli_fname) {
		slash = strrchr(in.dli_fname, '/');
		file = slash ? slash + 1 : in.dli_fname;
		plus = "+";
		at -= (uintptr_t)in.dli_fbase;
	}
	snprintf(place, sizeof(place), "%.200s%s%#llx", file, plus,
		 (unsigned long long)at);
	add(l, place, strlen(place));
}

static void write_out(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void dsm_say(const char *text)
{
	struct line l;
	const char *mark;

	l.len = 0;
	add(&l, "jia: ", 5);
	while ((mark = strstr(text, "@{0x"))) {
		char *stop;
		uintptr_t at = (uintptr_t)strtoull(mark + 2, &stop, 16);

		add(&l, text, (size_t)(mark - text));
		add_place(&l, at);
		text = *stop ? stop + 1 : stop;
	}
	add(&l, text, strlen(text));
	if (l.len == sizeof(l.text)) /* the end of the line takes precedence */
		l.len--;
	add(&l, "\n", 1);
	write_out(l.text, l.len);
}
