/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod_device.c - the system calls of /dev/sul.
 *
 * Threads: any.
 * Locks:   none.
 */
#include "sul_kmod.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int device_open(void)
{
	int fd = open("/dev/sul", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void device_close(int fd)
{
	close(fd);
}

static int device_call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static int device_map(int fd, uint64_t at, size_t bytes, const void **out)
{
	void *m = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);

	if (m == MAP_FAILED)
		return -errno;
	*out = m;
	return 0;
}

static void device_unmap(const void *at, size_t bytes)
{
	munmap((void *)(uintptr_t)at, bytes);
}

const struct sul_kmod_sys sul_kmod_device = {
	.open = device_open,
	.close = device_close,
	.call = device_call,
	.map = device_map,
	.unmap = device_unmap,
};
