/* SPDX-License-Identifier: MIT */
/*
 * net_unmap.c - a home takes away a part of a window that others are to work on: it
 * is served as long as nobody wants that part; then its port is given up, and who
 * has it as a peer misses it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net.h"

enum {
	HALF = NET_WINDOW_BYTES / 2,
	HOME = 1, /* its rank */
	PATIENCE_MS = 20000,
};

static bool comes_true(bool (*is)(const struct net_side *s),
		       const struct net_side *s)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (is(s))
			return true;
		usleep(10000);
	}
	return false;
}

static bool names_the_home(const struct net_side *s)
{
	return __atomic_load_n(&s->status->dead, __ATOMIC_ACQUIRE) == 1 + HOME;
}

/* Nothing is left of it in its namespace, though it has not been closed. */
static bool is_gone(const struct net_side *s)
{
	long ports = -1, pinned = -1;
	char line[100];
	FILE *f;

	net_enter(s->cfg->ns[s->rank]);
	f = fopen("/proc/thread-self/net/sul", "re");
	NET_MUST(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "ports ", 6))
			ports = strtol(line + 6, NULL, 10);
		if (!strncmp(line, "pinned_pages ", 13))
			pinned = strtol(line + 13, NULL, 10);
	}
	fclose(f);
	return !ports && !pinned;
}

static int submits(const struct net_side *s)
{
	struct sul_op op = { .kind = SUL_OP_AMO,
			     .rank = (uint32_t)(1 - s->rank),
			     .amo.op = SUL_AMO_ADD };
	struct sul_submit u = { .size = sizeof(u),
				.ops = (uintptr_t)&op,
				.nr = 1 };

	return ioctl(s->fd, SUL_IOC_SUBMIT, &u) ? -errno : 0;
}

/* Nothing has changed for it since it looked last: WAIT ends for the death alone. */
static int waits(const struct net_side *s)
{
	struct sul_wait w = { .size = sizeof(w),
			      .nr = 1,
			      .timeout_ns = UINT64_C(10000000000) };

	return ioctl(s->fd, SUL_IOC_WAIT, &w) ? -errno : 0;
}

static bool is_served(struct net_side s[2], uint64_t off)
{
	uint64_t value = off + 1;

	net_put(&s[0], 0, off, &value, sizeof(value));
	return net_flush(&s[0]) &&
	       !memcmp(s[1].window[0] + off, &value, sizeof(value));
}

static bool verdict(bool ok, const char *what)
{
	if (!ok)
		printf("# not so: %s\n", what);
	return ok;
}

int net_unmap(const struct net_config *cfg)
{
	struct net_side s[2], *home = &s[HOME];
	uint64_t value = 1;
	bool ok;

	net_sides_open(s, cfg);
	ok = verdict(is_served(s, 64) && is_served(s, HALF + 64),
		     "all of it is served");
	NET_MUST(!munmap(home->window[0] + HALF, HALF));
	ok &= verdict(is_served(s, 128), "what is left is served");
	ok &= verdict(!home->status->dead, "nobody has wanted the rest so far");
	net_put(&s[0], 0, HALF, &value, sizeof(value));
	ok &= verdict(comes_true(names_the_home, home), "the home is told");
	ok &= verdict(!waits(home), "it does not sleep over it");
	ok &= verdict(submits(home) == -EHOSTDOWN, "it sends no more");
	ok &= verdict(comes_true(is_gone, home), "nothing of it is pinned");
	ok &= verdict(comes_true(names_the_home, &s[0]), "it is missed");
	ok &= verdict(submits(&s[0]) == -EHOSTDOWN, "nothing is sent to it");
	net_sides_close(s);
	return !ok;
}
