/* SPDX-License-Identifier: MIT */
/*
 * sul_port.c - a rank's endpoint: checks, counts, and hands on to the carrier.
 *
 * Role:      everything about one-sided operations that does not depend on the
 *            carrier.  Arguments are checked here and nowhere below.
 * Invariant: a carrier never sees a rank, window or range that does not exist.
 * Threads:   any.
 * Locks:     none; the counters are relaxed atomic adds.
 */
#include "sul_carrier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sul_carrier_ops *find_carrier(const char *name)
{
	static const struct sul_carrier_ops *const all[] = { &sul_shm_ops,
							     &sul_sim_ops };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (name && !strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

static int check_config(const struct sul_config *c)
{
	if (c->ranks < 1 || c->ranks > SUL_RANKS_MAX)
		return -EINVAL;
	if (c->rank < 0 || c->rank >= c->ranks)
		return -EINVAL;
	if (c->windows > SUL_WINDOWS_MAX)
		return -EINVAL;
	for (unsigned int w = 0; w < c->windows; w++) {
		unsigned int chunk = c->window[w].chunk;

		if (!c->window[w].bytes)
			return -EINVAL;
		if (chunk > 512 || (chunk & (chunk - 1)))
			return -EINVAL;
	}
	return 0;
}

int sul_open(struct sul_port **out, const struct sul_config *cfg)
{
	const struct sul_carrier_ops *ops = find_carrier(cfg->carrier);
	struct sul_port *p;
	int err;

	if (!ops)
		return -ENOENT;
	err = check_config(cfg);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->ops = ops;
	p->job = cfg->job;
	p->rank = cfg->rank;
	p->ranks = cfg->ranks;
	p->windows = cfg->windows;
	p->spin_us = cfg->spin_us;
	for (unsigned int w = 0; w < cfg->windows; w++) {
		p->window_bytes[w] = cfg->window[w].bytes;
		p->window_chunk[w] = cfg->window[w].chunk ?: 1;
	}
	p->window_bytes[SUL_WINDOW_CHANNELS] = sul_channels_bytes(p->ranks);
	p->window_chunk[SUL_WINDOW_CHANNELS] = 1;

	err = ops->open(p, cfg);
	if (err)
		goto free_port;
	err = sul_channels_open(p);
	if (err)
		goto close_carrier;
	*out = p;
	return 0;

close_carrier:
	ops->close(p);
free_port:
	free(p);
	return err;
}

void sul_close(struct sul_port *p)
{
	if (!p)
		return;
	sul_channels_close(p);
	p->ops->close(p);
	free(p);
}

const char *sul_carrier(const struct sul_port *p)
{
	return p->ops->name;
}

int sul_rank(const struct sul_port *p)
{
	return p->rank;
}

int sul_ranks(const struct sul_port *p)
{
	return p->ranks;
}

void *sul_window(const struct sul_port *p, unsigned int w)
{
	return p->window[w];
}

void sul_stats_read(const struct sul_port *p, struct sul_stats *out)
{
	out->operations =
		__atomic_load_n(&p->stats.operations, __ATOMIC_RELAXED);
	out->bytes_out = __atomic_load_n(&p->stats.bytes_out, __ATOMIC_RELAXED);
	out->bytes_in = __atomic_load_n(&p->stats.bytes_in, __ATOMIC_RELAXED);
	out->dropped = __atomic_load_n(&p->stats.dropped, __ATOMIC_RELAXED);
}

void sul_port_count(struct sul_port *p, int rank, size_t out, size_t in)
{
	if (rank == p->rank)
		return;
	__atomic_fetch_add(&p->stats.operations, 1, __ATOMIC_RELAXED);
	if (out)
		__atomic_fetch_add(&p->stats.bytes_out, out, __ATOMIC_RELAXED);
	if (in)
		__atomic_fetch_add(&p->stats.bytes_in, in, __ATOMIC_RELAXED);
}

/* The channels' window is theirs alone. */
static bool window_exists(const struct sul_port *p, unsigned int w)
{
	return w < p->windows;
}

static bool range_exists(const struct sul_port *p, int rank, unsigned int w,
			 uint64_t off, uint64_t len)
{
	if (rank < 0 || rank >= p->ranks || !window_exists(p, w))
		return false;
	return off <= p->window_bytes[w] && len <= p->window_bytes[w] - off;
}

static bool word_exists(const struct sul_port *p, int rank, unsigned int w,
			uint64_t off)
{
	return range_exists(p, rank, w, off, 8) && !(off & 7);
}

/* One pass over the runs: there may be thousands of single bytes. */
struct extent {
	uint64_t bytes, end;
	bool empty; /* a run of no bytes is among them */
};

static struct extent measure(const struct sul_run *runs, size_t nr)
{
	struct extent e = { 0 };

	for (size_t i = 0; i < nr; i++) {
		uint64_t end = (uint64_t)runs[i].off + runs[i].len;

		e.bytes += runs[i].len;
		e.end = end > e.end ? end : e.end;
		e.empty |= !runs[i].len;
	}
	return e;
}

int sul_window_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	if (!range_exists(p, p->rank, w, off, len))
		return -EINVAL;
	return p->ops->prepare(p, w, off, len);
}

int sul_window_discard(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	if (!range_exists(p, p->rank, w, off, len))
		return -EINVAL;
	return p->ops->discard(p, w, off, len);
}

int sul_window_file(const struct sul_port *p, int rank, unsigned int w, int *fd,
		    uint64_t *off)
{
	if (!range_exists(p, rank, w, 0, 0))
		return -EINVAL;
	return p->ops->window_file(p, rank, w, fd, off);
}

int sul_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    void *dst, size_t len, const struct sul_mark *marks,
	    unsigned int nr_marks)
{
	if (!range_exists(p, rank, w, off, len) || nr_marks > SUL_MARKS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < nr_marks; i++)
		if (!word_exists(p, rank, marks[i].window, marks[i].off))
			return -EINVAL;
	sul_port_count(p, rank, 0, len);
	return p->ops->get(p, rank, w, off, dst, len, marks, nr_marks);
}

int sul_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    const void *src, size_t len)
{
	if (!range_exists(p, rank, w, off, len))
		return -EINVAL;
	sul_port_count(p, rank, len, 0);
	return p->ops->put(p, rank, w, off, src, len);
}

int sul_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	     const void *src, const struct sul_run *runs, size_t nr_runs,
	     const struct sul_mirror *mirror)
{
	struct extent e = measure(runs, nr_runs);

	if (e.empty || !range_exists(p, rank, w, off, e.end))
		return -EINVAL;
	if (mirror &&
	    (!range_exists(p, rank, mirror->window, off, e.end) ||
	     !range_exists(p, rank, mirror->flag_window, mirror->flag_off, 1)))
		return -EINVAL;
	if (!nr_runs)
		return 0;
	sul_port_count(p, rank, e.bytes, 0);
	return p->ops->putv(p, rank, w, off, src, runs, nr_runs, mirror);
}

int sul_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    enum sul_amo_op op, uint64_t operand, uint64_t comparand,
	    uint64_t *old)
{
	if (!word_exists(p, rank, w, off) || (unsigned int)op >= SUL_AMO_NR)
		return -EINVAL;
	sul_port_count(p, rank, 8, old ? 8 : 0);
	return p->ops->amo(p, rank, w, off, op, operand, comparand, old);
}

int sul_notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	       uint32_t value)
{
	if (!word_exists(p, rank, w, off))
		return -EINVAL;
	sul_port_count(p, rank, 4, 0);
	return p->ops->notify(p, rank, w, off, value);
}

int sul_flush(struct sul_port *p)
{
	return p->ops->flush(p);
}

int sul_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
	     int timeout_ms)
{
	struct sul_watch w = { word, old };

	if (sul_channels_used(p))
		return sul_channels_wait(p, word, old, timeout_ms);
	return p->ops->wait(p, &w, 1, timeout_ms);
}

uint32_t sul_word_read(const struct sul_word *word)
{
	return __atomic_load_n(&word->value, __ATOMIC_ACQUIRE);
}
