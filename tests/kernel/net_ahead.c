/* SPDX-License-Identifier: MIT */
/*
 * net_ahead.c - with a page that a far rank has wanted, the module pins those around
 * it: what is there already, nothing else, and never more than there is room for.
 *
 * All of it is told by counting: what a port has pinned, and how often a request
 * waited for memory that was not.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net.h"

enum {
	HOME = 1, /* its rank */
	PAGES = NET_WINDOW_BYTES / NET_PAGE,
	BLOCK = 32, /* as sul_window.c has it */
	FEW = 16, /* the least that can be pinned */
	PATIENCE_MS = 20000,
	WANTED =
		3, /* a page that is not there, and those of its block that are: */
	THERE = 5,
	THERE_TOO = 9,
	HOLE = 8, /* pages that go, from there */
	HOLE_PAGES = 8,
	VALUE = 0x5a,
};

static bool wrong; /* something was */

static void is(const char *what, uint64_t wanted, uint64_t found)
{
	if (wanted == found)
		return;
	wrong = true;
	printf("# %s: %llu, and it should be %llu\n", what,
	       (unsigned long long)found, (unsigned long long)wanted);
}

static void comes_to(const struct net_side *home, unsigned int row,
		     const char *what, uint64_t wanted)
{
	for (int ms = 0; ms < PATIENCE_MS && net_count(home, row) != wanted;
	     ms += 10)
		usleep(10000);
	is(what, wanted, net_count(home, row));
}

static void want(struct net_side *s, unsigned int w, unsigned int page)
{
	net_get(s, w, (uint64_t)page * NET_PAGE, 0, 8, NULL, 0);
	NET_MUST(net_flush(s));
}

static void touch(const struct net_side *s, unsigned int w)
{
	for (unsigned int i = 0; i < PAGES; i++)
		s->window[w][i * NET_PAGE] = 1;
}

/* One request of each block waits, the others find their page. */
static void brings_all_of_its_block(struct net_side s[2])
{
	const struct net_side *home = &s[HOME];

	touch(home, 0);
	want(s, 0, 7);
	comes_to(home, NET_COUNT_pins, "a block is pinned", BLOCK);
	is("of it ahead", BLOCK - 1, net_count(home, NET_COUNT_pins_ahead));
	for (unsigned int i = 0; i < BLOCK; i++)
		want(s, 0, (i * 7 + 3) % BLOCK);
	is("nobody waits any more", 1, net_count(home, NET_COUNT_late));
	want(s, 0, PAGES - 1);
	comes_to(home, NET_COUNT_pins, "the last block, too", PAGES);
	want(s, 0, BLOCK);
	is("one more has waited", 2, net_count(home, NET_COUNT_late));
}

/* What was pinned ahead goes like any other when its memory does. */
static void goes_with_its_memory(struct net_side s[2])
{
	const struct net_side *home = &s[HOME];
	char value = VALUE, *hole = home->window[0] + HOLE * NET_PAGE;
	uint64_t gone = net_count(home, NET_COUNT_invalidations);

	NET_MUST(!madvise(hole, HOLE_PAGES * NET_PAGE, MADV_DONTNEED));
	is("let go", gone + HOLE_PAGES,
	   net_count(home, NET_COUNT_invalidations));
	net_put(s, 0, HOLE * NET_PAGE, &value, sizeof(value));
	NET_MUST(net_flush(s));
	is("in the new memory", VALUE, (unsigned char)*hole);
}

static unsigned int pages_there(const char *at)
{
	unsigned char there[PAGES];
	unsigned int n = 0;

	NET_MUST(!mincore((void *)(uintptr_t)at, NET_WINDOW_BYTES, there));
	for (unsigned int i = 0; i < PAGES; i++)
		n += there[i] & 1;
	return n;
}

/* @pins: how many there are before. */
static void brings_two_others(struct net_side s[2], unsigned int w,
			      uint64_t pins)
{
	const struct net_side *home = &s[HOME];
	uint64_t late;

	want(s, w, WANTED);
	comes_to(home, NET_COUNT_pins, "what is there is pinned", pins + 3);
	late = net_count(home, NET_COUNT_late);
	want(s, w, THERE);
	want(s, w, THERE_TOO);
	is("nobody waits for it", late, net_count(home, NET_COUNT_late));
	want(s, w, THERE + 1);
	is("what was not there was not pinned", late + 1,
	   net_count(home, NET_COUNT_late));
}

static void makes_no_private_memory(struct net_side s[2])
{
	char *at = s[HOME].window[1];

	at[THERE * NET_PAGE] = 1;
	at[THERE_TOO * NET_PAGE] = 1;
	brings_two_others(s, 1, net_count(&s[HOME], NET_COUNT_pins));
	is("pages of the process", 4, pages_there(at)); /* two were wanted */
}

/* A file whose pages are there by another mapping, as those of the runtime are. */
static void makes_no_room_in_a_file(struct net_side s[2])
{
	char *at = s[HOME].window[2], *other;
	int fd = memfd_create("net_ahead", MFD_CLOEXEC);
	struct stat st;

	NET_MUST(fd >= 0 && !ftruncate(fd, NET_WINDOW_BYTES));
	NET_MUST(mmap(at, NET_WINDOW_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED, fd, 0) == at);
	other = mmap(NULL, NET_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     fd, 0);
	NET_MUST(other != MAP_FAILED);
	other[THERE * NET_PAGE] = 1;
	other[THERE_TOO * NET_PAGE] = 1;
	brings_two_others(s, 2, net_count(&s[HOME], NET_COUNT_pins));
	NET_MUST(!fstat(fd, &st));
	is("bytes of the file", UINT64_C(4) * NET_PAGE,
	   (uint64_t)st.st_blocks * 512);
	munmap(other, NET_WINDOW_BYTES);
	close(fd);
}

static uint64_t pinned(const struct net_side *s)
{
	uint64_t c[NET_COUNT_NR];

	net_counts(s, c);
	return c[NET_COUNT_pins] - c[NET_COUNT_evictions] -
	       c[NET_COUNT_invalidations];
}

/* A quarter at a time at most, and nobody's page goes for it. */
static void takes_only_what_is_left(const struct net_config *cfg)
{
	struct net_config few = *cfg;
	struct net_side s[2], *home = &s[HOME];
	uint64_t ahead;

	few.pin_pages = FEW;
	net_sides_open(s, &few);
	touch(home, 0);
	touch(home, 1);
	want(s, 0, 0);
	comes_to(home, NET_COUNT_pins, "a quarter", 1 + FEW / 4);
	for (unsigned int i = 0; i < PAGES; i++) {
		want(s, 0, i);
		NET_MUST(pinned(home) <= FEW);
	}
	is("all may be pinned that was paid for", FEW, pinned(home));
	ahead = net_count(home, NET_COUNT_pins_ahead);
	for (unsigned int i = 0; i < PAGES; i++)
		want(s, 1, i);
	is("none ahead where there is no room", ahead,
	   net_count(home, NET_COUNT_pins_ahead));
	net_sides_close(s);
}

int net_ahead(const struct net_config *cfg)
{
	struct net_side s[2];

	net_sides_open(s, cfg);
	brings_all_of_its_block(s);
	goes_with_its_memory(s);
	makes_no_private_memory(s);
	makes_no_room_in_a_file(s);
	net_sides_close(s);
	takes_only_what_is_left(cfg);
	return wrong;
}
