/* SPDX-License-Identifier: MIT */
/*
 * dsm_name.c - what is known under a name: two words in its manager's window.
 *
 * Role:      finds the words of a lock or condition, and makes them when the
 *            name is used first.  Numbered locks have theirs in an array;
 *            whatever is named by an address is in a hash table, whose entries
 *            are taken one after the other and never given back: memory grows
 *            with the names in use (32 bytes each), not with what could be.
 * Invariant: an entry is complete before a chain leads to it, and its name and
 *            next never change after that.
 * Threads:   any; the table of any rank is changed by all ranks, with atomic
 *            operations only.  A thread's own cache of places is its own.
 * Locks:     none needed.
 *
 * Two ranks that use a new name at once both put an entry in front of the chain
 * they saw; the compare-and-swap of the chain's head lets one of them through.
 * The other looks at what has come before, and tries again: its entry may then
 * be left over (32 bytes).
 */
#include "dsm_node.h"

#include <stdio.h>

struct entry {
	uint64_t name;
	uint64_t next; /* index of the next entry of the chain + 1, or 0 */
	uint64_t word[2];
};

enum {
	CHAIN_AIM = 8, /* entries of a chain, when the table is full ... */
	HEADS_MAX = 1 << 17 /* ... unless that takes more heads than this */
};

static uint64_t heads_of(const struct dsm_config *cfg)
{
	uint64_t nr = 1;

	while (nr < HEADS_MAX && nr * CHAIN_AIM < cfg->names)
		nr *= 2;
	return nr;
}

void dsm_name_layout(struct dsm_layout *at, const struct dsm_config *cfg,
		     int ranks)
{
	uint64_t locks = DSM_LOCKS / (unsigned int)ranks + 1;

	at->lock_bytes = 16; /* and what goes with it, on lines of its own */
	if (at->news_bytes)
		at->lock_bytes = (16 + at->news_bytes + 63) & ~UINT64_C(63);
	at->locks = at->sync_bytes;
	at->sync_bytes += (at->lock_bytes * locks + 63) & ~UINT64_C(63);
	at->names_used = at->sync_bytes;
	at->sync_bytes += 64; /* a line of its own */
	at->heads = at->sync_bytes;
	at->sync_bytes += (8 * heads_of(cfg) + 63) & ~UINT64_C(63);
	at->entries = at->sync_bytes;
	at->sync_bytes += sizeof(struct entry) * cfg->names;
}

uint64_t dsm_name_hash(dsm_name name) /* splitmix64's last steps */
{
	uint64_t z = name;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void dsm_name_text(dsm_name name, char *out, size_t room)
{
	uint64_t bare = name & DSM_NAME_BARE;

	if (bare < DSM_LOCKS)
		snprintf(out, room, "%llu", (unsigned long long)bare);
	else
		snprintf(out, room, "at %#llx", (unsigned long long)bare);
}

/* --- the table of one rank ------------------------------------------------------ */

static uint64_t entry_off(const struct dsm_node *n, uint64_t index)
{
	return n->at.entries + sizeof(struct entry) * index;
}

static uint64_t head_off(const struct dsm_node *n, dsm_name name)
{
	/* Other bits than those that choose the rank. */
	return n->at.heads +
	       8 * ((dsm_name_hash(name) >> 20) & (heads_of(&n->cfg) - 1));
}

static void get(struct dsm_node *n, int rank, uint64_t off, void *dst,
		size_t len)
{
	dsm_must(n, sul_get(n->port, rank, DSM_W_SYNC, off, dst, len, NULL, 0),
		 "looking up a name");
	dsm_must(n, sul_flush(n->port), "looking up a name");
}

static uint64_t amo(struct dsm_node *n, int rank, uint64_t off,
		    enum sul_amo_op op, uint64_t to, uint64_t from)
{
	uint64_t old = 0;

	dsm_must(n, sul_amo(n->port, rank, DSM_W_SYNC, off, op, to, from, &old),
		 "entering a name");
	dsm_must(n, sul_flush(n->port), "entering a name");
	return old;
}

/* The entry of @name among those from @from to before @end, + 1; 0: none. */
static uint64_t walk(struct dsm_node *n, int rank, dsm_name name, uint64_t from,
		     uint64_t end)
{
	while (from && from != end) {
		uint64_t e[2];

		if (from > n->cfg.names)
			dsm_die(n, "the table of names of rank %d is spoilt",
				rank);
		get(n, rank, entry_off(n, from - 1), e, sizeof(e));
		if (e[0] == name)
			return from;
		from = e[1];
	}
	return 0;
}

/* A fresh entry of @rank's table, + 1. */
static uint64_t new_entry(struct dsm_node *n, int rank)
{
	uint64_t nr = amo(n, rank, n->at.names_used, SUL_AMO_ADD, 1, 0);

	if (nr >= n->cfg.names)
		dsm_die(n,
			"more than %llu locks and conditions named by address are managed by rank %d; raise --set names",
			(unsigned long long)n->cfg.names, rank);
	dsm_stat_add(n->stats, names, 1);
	return nr + 1;
}

static uint64_t find_or_enter(struct dsm_node *n, int rank, dsm_name name)
{
	uint64_t head = head_off(n, name), first = 0, seen = 0, mine = 0;

	get(n, rank, head, &first, sizeof(first));
	for (;;) {
		uint64_t at = walk(n, rank, name, first, seen);
		struct entry e = { .name = name, .next = first };
		uint64_t was;

		if (at)
			return at;
		if (!mine)
			mine = new_entry(n, rank);
		dsm_must(n,
			 sul_put(n->port, rank, DSM_W_SYNC,
				 entry_off(n, mine - 1), &e, sizeof(e)),
			 "entering a name");
		was = amo(n, rank, head, SUL_AMO_CAS, mine, first);
		if (was == first)
			return mine;
		seen = first;
		first = was;
	}
}

/* --- places ------------------------------------------------------------------------ */

int dsm_name_manager(const struct dsm_node *n, dsm_name name)
{
	uint64_t bare = name & DSM_NAME_BARE;

	if (name < DSM_LOCKS)
		return (int)(name % (unsigned int)n->ranks);
	return (int)((dsm_name_hash(bare) & 0xfffff) % (unsigned int)n->ranks);
}

struct dsm_words dsm_name_words(struct dsm_thread *t, dsm_name name)
{
	struct dsm_node *n = t->node;
	struct dsm_words p = { .rank = dsm_name_manager(n, name) };
	struct dsm_known *k;

	if (name < DSM_LOCKS) {
		p.off = n->at.locks +
			n->at.lock_bytes * (name / (unsigned int)n->ranks);
		p.news = p.off + 16;
		return p;
	}
	k = &t->known[dsm_name_hash(name) % DSM_KNOWN];
	if (k->name != name) {
		uint64_t at = find_or_enter(n, p.rank, name);

		k->off = entry_off(n, at - 1) + offsetof(struct entry, word);
		k->name = name;
	}
	p.off = k->off;
	p.news = n->at.news + n->at.news_bytes * ((dsm_name_hash(name) >> 40) &
						  (n->news_slots - 1));
	return p;
}

/* --- the last release seen, by name -------------------------------------------------- */

/* A place that another name has had meanwhile says that nothing was seen: the
 * acquirer then walks further back than it need. */
dsm_ref *dsm_name_seen(struct dsm_node *n, dsm_name name)
{
	struct dsm_seen *s;

	if (name < DSM_LOCKS)
		return &n->seen_ref[name];
	s = &n->seen_name[dsm_name_hash(name) % DSM_SEEN];
	if (s->name != name)
		*s = (struct dsm_seen){ .name = name };
	return &s->ref;
}
