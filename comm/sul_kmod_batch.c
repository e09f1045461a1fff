/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod_batch.c - operations gathered, submitted, and their results.
 *
 * Role:      the batch and the landing area (sul_kmod.h).
 * Invariant: the first `lands_submitted` places of the landing area belong to what
 *            has been submitted, in that order; a batch without operations has
 *            neither runs nor marks.
 * Threads:   any, under the carrier's lock.
 * Locks:     none of its own.
 */
#include "sul_kmod.h"

#include <errno.h>
#include <string.h>

/* --- gathering ------------------------------------------------------------------- */

static void set_gathered(struct sul_kmod *k, unsigned int nr)
{
	__atomic_store_n(&k->gathered, nr, __ATOMIC_RELAXED);
}

static uint32_t landing_room(size_t len)
{
	return ((uint32_t)len + 7) & ~7u;
}

static bool can_land(const struct sul_kmod *k, size_t len)
{
	return !len ||
	       (k->lands < SUL_KMOD_LANDS &&
		landing_room(len) <= SUL_KMOD_LANDING_BYTES - k->landing_used);
}

int sul_kmod_begin(struct sul_kmod *k, int rank, size_t side, size_t land)
{
	int err;

	while (!can_land(k, land)) {
		sul_kmod_submit(k, true);
		err = sul_kmod_await(k, UINT64_MAX);
		if (err)
			return err;
		sul_kmod_settle(k);
	}
	if (side > SUL_KMOD_SIDE_BYTES - k->side_used)
		sul_kmod_submit(k, false);
	return k->gone[rank] || sul_kmod_has_left(k->port, rank) ? -EHOSTDOWN :
								   0;
}

uint64_t sul_kmod_aside(struct sul_kmod *k, const void *from, size_t len)
{
	unsigned char *at = k->side + k->side_used;

	memcpy(at, from, len);
	k->side_used += len;
	return (uintptr_t)at;
}

uint32_t sul_kmod_land(struct sul_kmod *k, void *dst, size_t len)
{
	uint32_t at = k->landing_used;

	k->land[k->lands++] =
		(struct sul_kmod_land){ dst, 0, at, (uint32_t)len };
	k->landing_used += landing_room(len);
	return at;
}

void sul_kmod_add(struct sul_kmod *k, const struct sul_op *op, size_t data)
{
	k->op[k->gathered] = *op;
	set_gathered(k, k->gathered + 1);
	k->data_bytes += data;
	if (k->gathered == SUL_KMOD_OPS ||
	    k->data_bytes >= SUL_KMOD_GATHER_BYTES)
		sul_kmod_submit(k, false);
}

/* --- results ----------------------------------------------------------------------- */

/* Whoever waited for it may be gone, and where it was to go. */
static void bring(const struct sul_kmod *k, const struct sul_kmod_land *l)
{
	if (!sul_job_failed(k->port->job))
		memcpy(l->dst, k->landing + l->at, l->len);
}

void sul_kmod_settle(struct sul_kmod *k)
{
	uint64_t executed = sul_kmod_executed(k);
	unsigned int n = 0;

	while (n < k->lands_submitted && k->land[n].ticket <= executed)
		bring(k, &k->land[n++]);
	if (!n)
		return;
	k->lands -= n;
	k->lands_submitted -= n;
	memmove(k->land, k->land + n, k->lands * sizeof(k->land[0]));
	if (!k->lands)
		k->landing_used = 0;
}

/* --- submitting ------------------------------------------------------------------------ */

/* The others go on: they are for other ranks.  A rank that has left before the
 * operation left us is needed. */
static void refused(struct sul_kmod *k, const struct sul_op *op, int err)
{
	if (op->kind == SUL_OP_FAREWELL)
		return;
	if (err == -EHOSTDOWN) {
		k->gone[op->rank] = true;
		sul_port_blame(k->port, (int)op->rank, err);
	}
	if (!k->error)
		k->error = err;
}

/* How many of the batch from @first on were issued, or refused. */
static unsigned int submit_from(struct sul_kmod *k, unsigned int first,
				bool hurry)
{
	struct sul_submit s = {
		.size = sizeof(s),
		.flags = hurry ? SUL_SUBMIT_HURRY : 0,
		.ops = (uintptr_t)(k->op + first),
		.nr = k->gathered - first,
	};
	int err = sul_kmod_call(k, SUL_IOC_SUBMIT, &s);

	if (s.ticket > k->ticket)
		k->ticket = s.ticket;
	if (hurry && !err)
		k->hurried = k->ticket;
	if (!err || err == -EINTR)
		return s.done;
	if (s.done < s.nr)
		refused(k, &k->op[first + s.done], err);
	return s.done + 1;
}

void sul_kmod_submit(struct sul_kmod *k, bool hurry)
{
	unsigned int first = 0;

	if (!k->gathered && (!hurry || k->hurried >= k->ticket ||
			     sul_kmod_executed(k) >= k->ticket))
		return;
	do
		first += submit_from(k, first, hurry);
	while (first < k->gathered);
	set_gathered(k, 0);
	k->side_used = k->data_bytes = 0;
	while (k->lands_submitted < k->lands)
		k->land[k->lands_submitted++].ticket = k->ticket;
	sul_kmod_look_for_dead(k);
}
