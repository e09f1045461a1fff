/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_pins.h - which pages of a port's windows are pinned: a table of fixed size.
 *
 * A hash table over memory that the caller gives once, so that nothing is ever
 * allocated on its paths, and what it may hold is what was paid for.  When it is
 * full, CLOCK says which page goes: one that was not looked up since the hand came
 * by last.  Pure: compiled and tested in user space, too.
 *
 * Threads: none; calls on one table exclude each other.
 */
#ifndef SUL_PINS_H
#define SUL_PINS_H

#include "sul_pure.h"

/* A page of a window, as the table names it. */
typedef uint64_t sul_pin_key;

static inline sul_pin_key sul_pin_key_of(unsigned int window, uint64_t page)
{
	return (uint64_t)window << 52 | page;
}

struct sul_pins {
	uint32_t capacity;
	uint32_t used;
	uint32_t free; /* a free place, + 1; linked by next[] */
	uint32_t hand; /* of the clock */
	unsigned int hash_shift;
	void **page; /* [capacity] */
	uint64_t *key; /* [capacity], with a bit: looked up lately */
	uint32_t *next; /* [capacity]: the next of the same hash, + 1 */
	uint32_t *head; /* [a power of two] */
};

/* How much memory a table of so many pages needs; at least 1. */
size_t sul_pins_bytes(uint32_t capacity);
/* @memory: zero-filled, aligned for a pointer. */
void sul_pins_init(struct sul_pins *t, uint32_t capacity, void *memory);

/* The page of that name, or NULL; it has been looked up. */
void *sul_pins_find(struct sul_pins *t, sul_pin_key key);
/* Is there one?  Nothing is looked up by that. */
bool sul_pins_has(const struct sul_pins *t, sul_pin_key key);
/* There is room, and no page of that name.  @wanted: it counts as looked up; what is
 * not wanted yet is the first to go. */
void sul_pins_add(struct sul_pins *t, sul_pin_key key, void *page, bool wanted);
/* Take one out to make room; NULL: there is none. */
void *sul_pins_evict(struct sul_pins *t);

/**
 * struct sul_pins_sweep - taking out all pages of a range of names.
 * @first, @last: the range; @first moves on.
 * @at:   0 at first.
 */
struct sul_pins_sweep {
	sul_pin_key first, last;
	uint32_t at;
};

enum {
	SUL_PINS_STEP = 32, /* pages that a step takes out at most */
	SUL_PINS_LOOKS = 1024, /* places that it looks at, at most */
};

/*
 * One step: at most SUL_PINS_STEP pages to @out; how many.  @*more: there may be
 * others; nothing is added to the range until all steps are done.
 */
unsigned int sul_pins_take(struct sul_pins *t, struct sul_pins_sweep *sweep,
			   void *out[SUL_PINS_STEP], bool *more);

#endif /* SUL_PINS_H */
