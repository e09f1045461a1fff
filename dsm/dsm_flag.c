/* SPDX-License-Identifier: MIT */
/*
 * dsm_flag.c - JIAJIA's condition variables, and shared counters.
 *
 * Role:      flag @f lies at rank f mod ranks: a word with the flag in bit 0
 *            and, above it, how often it was set; and a bit for each rank that
 *            waits for it.  Every rank has a word per flag to be woken by.
 * Invariant: a waiter leaves its bit before it looks at the flag; who sets the
 *            flag collects the bits afterwards.  So the waiter sees the flag,
 *            or is woken.
 * Threads:   any.  Several threads of a rank share its bit and its word.
 * Locks:     none.
 *
 * A waiter that was woken returns if the flag is or was set since it came, even
 * if it has been reset meanwhile (the count says so); else its bit was an old
 * one, and it waits on.  What wakes is a value that the word did not have: the
 * waker's rank and a count of its wakings.
 */
#include "dsm_node.h"

enum {
	LINE = 64,
	WAKE_BITS = 22 /* count of wakings; the rank is above */
};

static uint64_t mark_words(int ranks)
{
	return ((uint64_t)ranks + 63) / 64;
}

static uint64_t flag_bytes(int ranks)
{
	return (8 + 8 * mark_words(ranks) + LINE - 1) & ~UINT64_C(63);
}

void dsm_flag_layout(struct dsm_layout *at, int ranks)
{
	at->flags_at = at->sync_bytes;
	at->sync_bytes += flag_bytes(ranks) * DSM_FLAGS;
	at->wakes = at->sync_bytes;
	at->sync_bytes += sizeof(struct sul_word) * DSM_FLAGS;
	at->counts = at->sync_bytes;
	at->sync_bytes += UINT64_C(8) * DSM_COUNTS;
}

static int owner_of(const struct dsm_node *n, int flag)
{
	return flag % n->ranks;
}

static uint64_t flag_off(const struct dsm_node *n, int flag)
{
	return n->at.flags_at + flag_bytes(n->ranks) * (unsigned int)flag;
}

static uint64_t wake_off(const struct dsm_node *n, int flag)
{
	return n->at.wakes + sizeof(struct sul_word) * (unsigned int)flag;
}

static uint64_t amo(struct dsm_node *n, int rank, uint64_t off,
		    enum sul_amo_op op, uint64_t to, uint64_t from)
{
	uint64_t was = 0;

	dsm_must(n, sul_amo(n->port, rank, DSM_W_SYNC, off, op, to, from, &was),
		 "working on a flag");
	dsm_must(n, sul_flush(n->port), "working on a flag");
	return was;
}

static uint64_t look(struct dsm_node *n, int flag)
{
	return amo(n, owner_of(n, flag), flag_off(n, flag), SUL_AMO_ADD, 0, 0);
}

static void wake(struct dsm_node *n, int flag, int rank)
{
	uint32_t nr = __atomic_add_fetch(&n->wakes, 1, __ATOMIC_RELAXED);
	uint32_t value = (uint32_t)n->rank << WAKE_BITS |
			 (nr & ((1u << WAKE_BITS) - 1));

	dsm_must(n,
		 sul_notify(n->port, rank, DSM_W_SYNC, wake_off(n, flag),
			    value),
		 "setting a flag");
}

static void wake_all(struct dsm_node *n, int flag)
{
	for (uint64_t i = 0; i < mark_words(n->ranks); i++) {
		uint64_t bits = amo(n, owner_of(n, flag),
				    flag_off(n, flag) + 8 + 8 * i, SUL_AMO_SWAP,
				    0, 0);

		for (; bits; bits &= bits - 1)
			wake(n, flag, (int)(64 * i) + __builtin_ctzll(bits));
	}
	dsm_must(n, sul_flush(n->port), "setting a flag");
}

void dsm_flag_set(struct dsm_node *n, int flag)
{
	uint64_t was, seen = look(n, flag);

	do {
		was = seen;
		if (was & 1)
			return; /* who waits has seen that, or is being woken */
		seen = amo(n, owner_of(n, flag), flag_off(n, flag), SUL_AMO_CAS,
			   was + 3, was);
	} while (seen != was);
	wake_all(n, flag);
}

void dsm_flag_reset(struct dsm_node *n, int flag)
{
	amo(n, owner_of(n, flag), flag_off(n, flag), SUL_AMO_ANDNOT, 1, 0);
}

void dsm_flag_wait(struct dsm_node *n, int flag)
{
	struct sul_word *word = (void *)(n->sync + wake_off(n, flag));
	uint64_t mark = flag_off(n, flag) + 8 + 8 * ((uint64_t)n->rank / 64);
	uint64_t first = look(n, flag), now = first;

	while (!(now & 1) && now >> 1 == first >> 1) {
		uint32_t old = sul_word_read(word);

		if (!DSM_BROKEN(flag_late))
			amo(n, owner_of(n, flag), mark, SUL_AMO_OR,
			    UINT64_C(1) << (n->rank % 64), 0);
		now = look(n, flag);
		if (DSM_BROKEN(flag_late))
			amo(n, owner_of(n, flag), mark, SUL_AMO_OR,
			    UINT64_C(1) << (n->rank % 64), 0);
		if (now & 1 || now >> 1 != first >> 1)
			return;
		dsm_wait_word(n, word, old, DSM_WAIT_FLAG, flag, 0);
		now = look(n, flag);
	}
}

uint64_t dsm_count_add(struct dsm_node *n, int nr, uint64_t by)
{
	return amo(n, 0, n->at.counts + 8 * (uint64_t)nr, SUL_AMO_ADD, by, 0);
}

void dsm_count_zero(struct dsm_node *n, int nr)
{
	amo(n, 0, n->at.counts + 8 * (uint64_t)nr, SUL_AMO_SWAP, 0, 0);
}
