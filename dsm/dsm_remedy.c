/* SPDX-License-Identifier: MIT */
/*
 * dsm_remedy.c - what to do about an errno: which limit it was, and how high.
 *
 * Role:    ENOMEM, EFBIG and the like say that some limit was reached, not
 *          which; so the limits that are set at all are named with their values.
 * Threads: any.
 */
#include "dsm_remedy.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

struct limit {
	unsigned int what; /* RLIMIT_... */
	unsigned int unit; /* of the shell's ulimit, bytes */
	const char *name;
};

static const struct limit memory[] = {
	{ RLIMIT_AS, 1024, "address space (ulimit -v)" },
	{ RLIMIT_DATA, 1024, "data (ulimit -d)" },
};
static const struct limit file = { RLIMIT_FSIZE, 1024,
				   "the size of a file (ulimit -f)" };
static const struct limit files = { RLIMIT_NOFILE, 1,
				    "open files (ulimit -n)" };

/* Appends to @out; the new length. */
static int put_limit(char *out, size_t room, int at, const struct limit *l)
{
	struct rlimit now;

	if (getrlimit(l->what, &now) || now.rlim_cur == RLIM_INFINITY)
		return at;
	return at + snprintf(out + at, room - (size_t)at, "%s %s is %llu%s",
			     at ? "," : "; the limit on", l->name,
			     (unsigned long long)now.rlim_cur / l->unit,
			     l->unit > 1 ? " KiB" : "");
}

static void put_memory(char *out, size_t room)
{
	int at = 0;

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		at = put_limit(out, room, at, &memory[i]);
	if (at)
		snprintf(out + at, room - (size_t)at,
			 "; raise it, or lower --set region or --set cache");
	else
		snprintf(
			out, room,
			"; no limit of this process is set: see the memory limit of the cgroup, vm.overcommit_memory and vm.max_map_count, or lower --set region or --set cache");
}

void dsm_remedy(int err, char *out, size_t room)
{
	int at;

	out[0] = 0;
	switch (err) {
	case -ENOMEM:
	case -ENOSPC:
		put_memory(out, room);
		break;
	case -EFBIG:
		at = put_limit(out, room, 0, &file);
		snprintf(out + at, room - (size_t)at,
			 "; shared memory is a file to the system");
		break;
	case -EBADF:
		snprintf(
			out, room,
			"; the program has closed a descriptor of this library: it may close its own only");
		break;
	case -EMFILE:
		put_limit(out, room, 0, &files);
		break;
	default:
		break;
	}
}
