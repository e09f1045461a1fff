/* SPDX-License-Identifier: MIT */
/*
 * jia_touch.c - the public calls that prepare memory for system calls.
 *
 * Role:    checks what the program says; dsm_touch.c does it.
 * Threads: any, each for itself.
 * Locks:   none of its own.
 */
#include "jia.h"

#include <errno.h>

#include "dsm_public.h"

_Static_assert((int)JIA_READ == (int)DSM_TOUCH_READ, "one list of modes");
_Static_assert((int)JIA_WRITE == (int)DSM_TOUCH_WRITE, "one list of modes");
_Static_assert((int)JIA_OVERWRITE == (int)DSM_TOUCH_OVERWRITE,
	       "one list of modes");

/* Where @addr is in shared memory, all @len bytes of it. */
static uint64_t offset(struct dsm_host *h, const void *addr, size_t len)
{
	uint64_t off;

	if (!dsm_host_offset(h, addr, &off) || len > h->bytes - off)
		dsm_host_fail(h, "%p with %zu bytes is not in shared memory",
			      addr, len);
	return off;
}

static void touch(struct dsm_host *h, const void *addr, size_t len,
		  enum dsm_touch mode, const void *site)
{
	uint64_t off = offset(h, addr, len);
	struct dsm_thread *t = dsm_host_thread(h);

	t->fault_site = (uintptr_t)site;
	switch (dsm_touch(t, off, len, mode)) {
	case 0:
		return;
	case -EFAULT:
		dsm_host_fail(h, "%p with %zu bytes is not all allocated", addr,
			      len);
	case -ENOSPC:
		dsm_host_fail(
			h,
			"%zu bytes are more than the cache has, %llu; touch less at a time, or raise --set cache",
			len, (unsigned long long)h->settings.value.cache);
	default:
		dsm_host_fail(
			h,
			"this thread holds %d ranges already; let go of one with jia_untouch()",
			DSM_HELD_MAX);
	}
}

void jia_touch(const void *addr, size_t len, int mode)
{
	struct dsm_host *h = DSM_ENTER("jia_touch");

	if (mode != JIA_READ && mode != JIA_WRITE && mode != JIA_OVERWRITE)
		dsm_host_fail(
			h,
			"mode %d does not exist; JIA_READ, JIA_WRITE and JIA_OVERWRITE (0 to 2) do",
			mode);
	if (len)
		touch(h, addr, len, (enum dsm_touch)mode, DSM_SITE);
	dsm_public_leave();
}

void jia_untouch(const void *addr, size_t len)
{
	struct dsm_host *h = DSM_ENTER("jia_untouch");

	if (len && dsm_untouch(dsm_host_thread(h), offset(h, addr, len), len))
		dsm_host_fail(
			h,
			"this thread does not hold %p with %zu bytes; say what jia_touch() was told, and before the thread's next synchronisation",
			addr, len);
	dsm_public_leave();
}
