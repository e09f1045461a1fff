/* SPDX-License-Identifier: MIT */
/*
 * sul_leave.c - the last that ranks of several hosts do: leave together.
 *
 * Role:      what a rank owns can be reached as long as its process is there.
 *            So it stays until all are about to go: each tells its parent in a
 *            tree of ranks when all below it are, and the first tells all.
 * Invariant: nobody waits for one that has gone: the last message of a tree's
 *            edge goes down, and whoever sends it does not insist on an answer.
 *            Who has waited long enough and goes alone says farewell to all.
 * Threads:   one calls; others may still use the port.
 * Locks:     none.
 */
#include "sul_channel.h"
#include "sul_sleep.h"

enum {
	CHILDREN = SUL_LEAVE_WORDS - 1,
	INSIST_MS = 100, /* for the answer of a child that may have gone */
};

_Static_assert(1 + CHILDREN == SUL_LEAVE_NEIGHBOURS, "a parent and children");

/* The first one's is itself. */
static int parent_of(int rank)
{
	return (rank - 1) / CHILDREN;
}

static int child_of(int rank, int i)
{
	return rank * CHILDREN + 1 + i;
}

int sul_leave_neighbour(const struct sul_port *p, unsigned int i)
{
	int rank = i ? child_of(p->rank, (int)i - 1) : parent_of(p->rank);

	if (rank == p->rank || rank >= p->ranks)
		return -1;
	return rank;
}

/* Word 0: all may go.  Word 1 + i: all below child i are about to. */
static uint64_t word_off(unsigned int i)
{
	return SUL_LEAVE_AT + i * sizeof(struct sul_word);
}

static int wait_for(struct sul_port *p, unsigned int i, uint64_t end)
{
	struct sul_watch w = { sul_channel_at(p, word_off(i)), 0 };

	return sul_port_wait(p, &w, 1, sul_sleep_left_ms(end));
}

static int tell(struct sul_port *p, int rank, unsigned int i)
{
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_port_notify(p, rank, SUL_WINDOW_CHANNELS, word_off(i), 1);
	sul_quiet_end(&q);
	return err;
}

static int gather(struct sul_port *p, uint64_t end)
{
	int err = 0;

	for (int i = 0; i < CHILDREN && child_of(p->rank, i) < p->ranks && !err;
	     i++)
		err = wait_for(p, 1 + (unsigned int)i, end);
	if (err || !p->rank)
		return err;
	err = tell(p, parent_of(p->rank),
		   1 + (unsigned int)(p->rank - 1) % CHILDREN);
	return err ? err : wait_for(p, 0, end);
}

int sul_leave(struct sul_port *p, int timeout_ms)
{
	int err;

	if (!p->far_ops)
		return 0;
	err = gather(p, sul_sleep_end(timeout_ms));
	for (int i = 0; !err && i < CHILDREN && child_of(p->rank, i) < p->ranks;
	     i++)
		err = tell(p, child_of(p->rank, i), 0);
	if (err && err != -ECANCELED && timeout_ms && p->far_ops->farewell)
		p->far_ops->farewell(p);
	p->far_ops->stop(p, INSIST_MS);
	return err;
}
