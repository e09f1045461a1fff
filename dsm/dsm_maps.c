/* SPDX-License-Identifier: MIT */
/*
 * dsm_maps.c - how many mappings this process may still make.
 *
 * Role:    reads the system's limit and what the process has; where that cannot
 *          be read, the limit is the kernel's default.
 * Threads: any.
 */
#include "dsm_maps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	DEFAULT_MAX = 65530
};

static ssize_t read_some(const char *path, char *buf, size_t room, int *fd)
{
	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -1 : read(*fd, buf, room);
}

static uint64_t limit(void)
{
	char text[32];
	int fd = -1;
	ssize_t len = read_some("/proc/sys/vm/max_map_count", text,
				sizeof(text) - 1, &fd);

	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return DEFAULT_MAX;
	text[len] = '\0';
	return strtoull(text, NULL, 10);
}

/* Lines of the list of mappings. */
static uint64_t in_use(void)
{
	uint64_t nr = 0;
	char text[4096];
	int fd = -1;
	ssize_t len;

	while ((len = read_some("/proc/self/maps", text, sizeof(text), &fd)) >
	       0)
		for (ssize_t i = 0; i < len; i++)
			nr += text[i] == '\n';
	if (fd >= 0)
		close(fd);
	return nr;
}

uint64_t dsm_maps_left(void)
{
	uint64_t most = limit(), now = in_use();

	return most > now ? most - now : 0;
}
