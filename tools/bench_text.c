/* SPDX-License-Identifier: MIT */
/* bench_text.c - patterns, paths and numbers; see bench.h. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

bool bench_matches(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, 0);
}

bool bench_find_beside(const char *name, char self[PATH_MAX],
		       char beside[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	const char *slash;

	if (n < 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (snprintf(beside, PATH_MAX, "%.*s/%s", (int)(slash - self), self,
		     name) >= PATH_MAX)
		return false;
	return !access(beside, X_OK);
}

void bench_print_number(double v, bool known, int width)
{
	char text[32];

	if (!known)
		snprintf(text, sizeof(text), "-");
	else if (v == 0)
		snprintf(text, sizeof(text), "0");
	else
		snprintf(text, sizeof(text),
			 v < 9.995 ? "%.2f" :
			 v < 99.95 ? "%.1f" :
				     "%.0f",
			 v);
	printf(" %*s", width, text);
}
