/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_pins.c - see sul_pins.h.
 *
 * Role:      names of pages to pages, with a bound and a way to choose who goes.
 * Invariant: every place is either in the chain of its key's hash or in the list
 *            of free ones; used + free ones = capacity.
 * Threads:   none; the caller excludes.
 */
#include "sul_pins.h"

#define LATELY (1ull << 63)

static unsigned int hash_bits(uint32_t capacity)
{
	unsigned int bits = 1;

	while (bits < 31 && (uint32_t)1 << bits < capacity)
		bits++;
	return bits;
}

size_t sul_pins_bytes(uint32_t capacity)
{
	size_t place = sizeof(void *) + sizeof(uint64_t) + sizeof(uint32_t);

	return capacity * place +
	       ((size_t)1 << hash_bits(capacity)) * sizeof(uint32_t);
}

void sul_pins_init(struct sul_pins *t, uint32_t capacity, void *memory)
{
	t->capacity = capacity;
	t->used = 0;
	t->free = 0;
	t->hand = 0;
	t->hash_shift = 64 - hash_bits(capacity);
	t->key = memory;
	t->page = (void **)(void *)(t->key + capacity);
	t->next = (uint32_t *)(void *)(t->page + capacity);
	t->head = t->next + capacity;
	while (capacity) {
		t->next[capacity - 1] = t->free;
		t->free = capacity--;
	}
}

static uint32_t *chain_of(const struct sul_pins *t, sul_pin_key key)
{
	/* Fibonacci hashing: neighbours are spread over the whole table. */
	return &t->head[(key * 0x9e3779b97f4a7c15ull) >> t->hash_shift];
}

/* Its place + 1, or 0. */
static uint32_t place_of(const struct sul_pins *t, sul_pin_key key)
{
	uint32_t i = *chain_of(t, key);

	while (i && (t->key[i - 1] & ~LATELY) != key)
		i = t->next[i - 1];
	return i;
}

void *sul_pins_find(struct sul_pins *t, sul_pin_key key)
{
	uint32_t i = place_of(t, key);

	if (!i)
		return NULL;
	t->key[i - 1] |= LATELY;
	return t->page[i - 1];
}

bool sul_pins_has(const struct sul_pins *t, sul_pin_key key)
{
	return place_of(t, key) != 0;
}

void sul_pins_add(struct sul_pins *t, sul_pin_key key, void *page, bool wanted)
{
	uint32_t *chain = chain_of(t, key), i = t->free;

	t->free = t->next[i - 1];
	t->key[i - 1] = wanted ? key | LATELY : key;
	t->page[i - 1] = page;
	t->next[i - 1] = *chain;
	*chain = i;
	t->used++;
}

/* Take out place @i (+ 1), which is in use. */
static void *take(struct sul_pins *t, uint32_t i)
{
	uint32_t *link = chain_of(t, t->key[i - 1] & ~LATELY);
	void *page = t->page[i - 1];

	while (*link != i)
		link = &t->next[*link - 1];
	*link = t->next[i - 1];
	t->page[i - 1] = NULL;
	t->next[i - 1] = t->free;
	t->free = i;
	t->used--;
	return page;
}

void *sul_pins_evict(struct sul_pins *t)
{
	if (!t->used)
		return NULL;
	for (;;) { /* twice around at most */
		uint32_t i = t->hand;

		t->hand = i + 1 < t->capacity ? i + 1 : 0;
		if (!t->page[i])
			continue;
		if (!(t->key[i] & LATELY))
			return take(t, i + 1);
		t->key[i] &= ~LATELY;
	}
}

static void *remove_key(struct sul_pins *t, sul_pin_key key)
{
	uint32_t i = place_of(t, key);

	return i ? take(t, i) : NULL;
}

/* The range is small: each name of it is looked up. */
static unsigned int take_by_name(struct sul_pins *t,
				 struct sul_pins_sweep *sweep,
				 void *out[SUL_PINS_STEP])
{
	unsigned int n = 0, looks = 0;

	while (sweep->first <= sweep->last && n < SUL_PINS_STEP &&
	       looks++ < SUL_PINS_LOOKS) {
		out[n] = remove_key(t, sweep->first++);
		n += out[n] != NULL;
	}
	return n;
}

/* The table is small: each place of it is looked at. */
static unsigned int take_by_place(struct sul_pins *t,
				  struct sul_pins_sweep *sweep,
				  void *out[SUL_PINS_STEP])
{
	unsigned int n = 0, looks = 0;

	while (sweep->at < t->capacity && n < SUL_PINS_STEP &&
	       looks++ < SUL_PINS_LOOKS) {
		uint32_t i = sweep->at++;
		sul_pin_key key = t->key[i] & ~LATELY;

		if (t->page[i] && key >= sweep->first && key <= sweep->last)
			out[n++] = take(t, i + 1);
	}
	return n;
}

unsigned int sul_pins_take(struct sul_pins *t, struct sul_pins_sweep *sweep,
			   void *out[SUL_PINS_STEP], bool *more)
{
	unsigned int n;

	/* Once begun by place, it goes on so: then at is not 0. */
	if (!sweep->at && sweep->last - sweep->first < t->capacity) {
		n = take_by_name(t, sweep, out);
		*more = sweep->first <= sweep->last && t->used;
	} else {
		n = take_by_place(t, sweep, out);
		*more = sweep->at < t->capacity && t->used;
	}
	return n;
}
