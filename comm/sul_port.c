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
#include "sul_kmod.h"
#include "sul_listen.h"
#include "sul_signals.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sul_carrier_ops *find_carrier(const char *name)
{
	static const struct sul_carrier_ops *const all[] = { &sul_shm_ops,
							     &sul_sim_ops,
							     &sul_simnet_ops };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (name && !strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

static bool to_be_far(const struct sul_config *c, int rank)
{
	if (rank == c->rank)
		return false;
	return c->listener->everywhere || sul_job_far(c->job, rank);
}

static int check_far(const struct sul_config *c)
{
	if (c->job && c->ranks > sul_job_ranks(c->job))
		return -EINVAL;
	if (c->listener && (!c->job || !sul_auth_known(c->auth)))
		return -EINVAL;
	for (int r = 0; c->job && !c->listener && r < c->ranks; r++)
		if (sul_job_far(c->job, r))
			return -EINVAL;
	return 0;
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
	return check_far(c);
}

static int open_far(struct sul_port *p, const struct sul_config *cfg)
{
	const struct sul_carrier_ops *far = &sul_udp_ops;
	int err;

	p->is_far = calloc((size_t)p->ranks, sizeof(*p->is_far));
	if (!p->is_far) {
		sul_listener_close(cfg->listener);
		return -ENOMEM;
	}
	for (int r = 0; r < p->ranks; r++)
		p->is_far[r] = to_be_far(cfg, r);
	err = sul_kmod_enter(p, cfg, &far);
	if (err) {
		sul_listener_close(cfg->listener);
		return err;
	}
	err = far->open(p, cfg);
	if (!err)
		p->far_ops = far;
	return err;
}

static void close_far(struct sul_port *p)
{
	if (p->far_ops)
		p->far_ops->close(p);
	free(p->is_far);
}

static void set_up(struct sul_port *p, const struct sul_config *cfg)
{
	p->job = cfg->job;
	p->rank = cfg->rank;
	p->ranks = cfg->ranks;
	p->windows = cfg->windows;
	sul_spin_init(&p->spin, cfg->spin_us, cfg->job, cfg->rank);
	p->silence_ms = cfg->silence_ms;
	p->handlers = cfg->job && !cfg->no_handlers; /* coroutines: none */
	if (p->handlers)
		sul_signals_open();
	for (unsigned int w = 0; w < cfg->windows; w++) {
		p->window_bytes[w] = cfg->window[w].bytes;
		p->window_chunk[w] = cfg->window[w].chunk ?: 1;
	}
	p->window_bytes[SUL_WINDOW_CHANNELS] = sul_channels_bytes(p->ranks);
	p->window_chunk[SUL_WINDOW_CHANNELS] = 1;
}

/* What is far comes last: others may work here as soon as it is open. */
static int open_parts(struct sul_port *p, const struct sul_config *cfg)
{
	int err = p->ops->open(p, cfg);

	if (err) {
		sul_listener_close(cfg->listener);
		return err;
	}
	err = sul_channels_open(p);
	if (err) {
		sul_listener_close(cfg->listener);
		goto close_carrier;
	}
	if (cfg->listener)
		err = open_far(p, cfg);
	if (!err)
		return 0;
	free(p->is_far);
	sul_channels_close(p);
close_carrier:
	p->ops->close(p);
	return err;
}

int sul_open(struct sul_port **out, const struct sul_config *cfg)
{
	const struct sul_carrier_ops *ops = find_carrier(cfg->carrier);
	int err = ops ? check_config(cfg) : -ENOENT;
	struct sul_port *p = NULL;

	sul_port_why(cfg, "%s", "");
	if (!err) {
		p = calloc(1, sizeof(*p));
		err = p ? 0 : -ENOMEM;
	}
	if (err) {
		sul_listener_close(cfg->listener);
		return err;
	}
	p->ops = ops;
	set_up(p, cfg);
	err = open_parts(p, cfg);
	if (err)
		free(p);
	else
		*out = p;
	return err;
}

void sul_close(struct sul_port *p)
{
	if (!p)
		return;
	close_far(p);
	sul_channels_close(p);
	p->ops->close(p);
	free(p);
}

const char *sul_carrier(const struct sul_port *p)
{
	return p->far_ops ? p->far_ops->name : p->ops->name;
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
	memset(out, 0, sizeof(*out));
	out->operations =
		__atomic_load_n(&p->stats.operations, __ATOMIC_RELAXED);
	out->bytes_out = __atomic_load_n(&p->stats.bytes_out, __ATOMIC_RELAXED);
	out->bytes_in = __atomic_load_n(&p->stats.bytes_in, __ATOMIC_RELAXED);
	out->dropped = __atomic_load_n(&p->stats.dropped, __ATOMIC_RELAXED);
	if (p->far_ops)
		p->far_ops->stats(p, out);
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

void sul_window_forget(struct sul_port *p, int rank, unsigned int w,
		       uint64_t off, size_t len)
{
	if (p->ops->forget && range_exists(p, rank, w, off, len))
		p->ops->forget(p, rank, w, off, len);
}

int sul_window_file(const struct sul_port *p, int rank, unsigned int w, int *fd,
		    uint64_t *off)
{
	if (!range_exists(p, rank, w, 0, 0))
		return -EINVAL;
	return sul_port_to(p, rank)->window_file(p, rank, w, fd, off);
}

/* Until sul_quiet_end(): the far carrier has a lock.  A near one has none. */
static void begin(const struct sul_port *p, int rank, struct sul_quiet *q)
{
	q->on = false;
	if (sul_port_far(p, rank))
		sul_quiet_begin(p, q);
}

int sul_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    void *dst, size_t len, const struct sul_mark *marks,
	    unsigned int nr_marks)
{
	struct sul_quiet q;
	int err;

	if (!range_exists(p, rank, w, off, len) || nr_marks > SUL_MARKS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < nr_marks; i++)
		if (!word_exists(p, rank, marks[i].window, marks[i].off))
			return -EINVAL;
	sul_port_count(p, rank, 0, len);
	begin(p, rank, &q);
	err = sul_port_to(p, rank)->get(p, rank, w, off, dst, len, marks,
					nr_marks);
	sul_quiet_end(&q);
	return err ? sul_port_blame(p, rank, err) : 0;
}

int sul_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    const void *src, size_t len)
{
	struct sul_quiet q;
	int err;

	if (!range_exists(p, rank, w, off, len))
		return -EINVAL;
	sul_port_count(p, rank, len, 0);
	begin(p, rank, &q);
	err = sul_port_to(p, rank)->put(p, rank, w, off, src, len);
	sul_quiet_end(&q);
	return err ? sul_port_blame(p, rank, err) : 0;
}

int sul_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	     const void *src, const struct sul_run *runs, size_t nr_runs,
	     const struct sul_mirror *mirror)
{
	struct extent e = measure(runs, nr_runs);
	struct sul_quiet q;
	int err;

	if (e.empty || !range_exists(p, rank, w, off, e.end))
		return -EINVAL;
	if (mirror &&
	    (!range_exists(p, rank, mirror->window, off, e.end) ||
	     !range_exists(p, rank, mirror->flag_window, mirror->flag_off, 1)))
		return -EINVAL;
	if (!nr_runs)
		return 0;
	sul_port_count(p, rank, e.bytes, 0);
	begin(p, rank, &q);
	err = sul_port_to(p, rank)->putv(p, rank, w, off, src, runs, nr_runs,
					 mirror);
	sul_quiet_end(&q);
	return err ? sul_port_blame(p, rank, err) : 0;
}

int sul_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	    enum sul_amo_op op, uint64_t operand, uint64_t comparand,
	    uint64_t *old)
{
	struct sul_quiet q;
	int err;

	if (!word_exists(p, rank, w, off) || (unsigned int)op >= SUL_AMO_NR)
		return -EINVAL;
	sul_port_count(p, rank, 8, old ? 8 : 0);
	begin(p, rank, &q);
	err = sul_port_to(p, rank)->amo(p, rank, w, off, op, operand, comparand,
					old);
	sul_quiet_end(&q);
	return err ? sul_port_blame(p, rank, err) : 0;
}

/* Whoever waits here may sleep in the far carrier. */
static int notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		  uint32_t value)
{
	int err = sul_port_to(p, rank)->notify(p, rank, w, off, value);

	if (p->far_ops && p->far_ops->wake && rank == p->rank)
		p->far_ops->wake(p);
	return err;
}

int sul_notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
	       uint32_t value)
{
	struct sul_quiet q;
	int err;

	if (!word_exists(p, rank, w, off))
		return -EINVAL;
	sul_port_count(p, rank, 4, 0);
	begin(p, rank, &q);
	err = notify(p, rank, w, off, value);
	sul_quiet_end(&q);
	return err ? sul_port_blame(p, rank, err) : 0;
}

int sul_flush(struct sul_port *p)
{
	int err = p->ops->flush(p);
	struct sul_quiet q;

	if (err || !p->far_ops)
		return err;
	sul_quiet_begin(p, &q);
	err = p->far_ops->flush(p);
	sul_quiet_end(&q);
	return err;
}

int sul_push(struct sul_port *p)
{
	struct sul_quiet q;

	if (p->job && sul_job_failed(p->job))
		return -ECANCELED;
	if (!p->far_ops)
		return 0;
	sul_quiet_begin(p, &q);
	p->far_ops->push(p);
	sul_quiet_end(&q);
	return 0;
}

int sul_port_wait(struct sul_port *p, const struct sul_watch *watch,
		  unsigned int nr, int timeout_ms)
{
	if (p->far_ops)
		return p->far_ops->wait(p, watch, nr, timeout_ms);
	return p->ops->wait(p, watch, nr, timeout_ms);
}

int sul_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
	     int timeout_ms)
{
	struct sul_watch w = { word, old };

	if (sul_channels_used(p))
		return sul_channels_wait(p, word, old, timeout_ms);
	return sul_port_wait(p, &w, 1, timeout_ms);
}

uint32_t sul_word_read(const struct sul_word *word)
{
	return __atomic_load_n(&word->value, __ATOMIC_ACQUIRE);
}

/* --- for the channels ------------------------------------------------------------ */

int sul_port_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 void *dst, size_t len)
{
	return sul_port_to(p, rank)->get(p, rank, w, off, dst, len, NULL, 0);
}

int sul_port_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 const void *src, size_t len)
{
	return sul_port_to(p, rank)->put(p, rank, w, off, src, len);
}

int sul_port_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		 uint64_t *old)
{
	return sul_port_to(p, rank)->amo(p, rank, w, off, op, operand,
					 comparand, old);
}

int sul_port_notify(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    uint32_t value)
{
	return notify(p, rank, w, off, value);
}

int sul_port_flush(struct sul_port *p)
{
	return sul_flush(p);
}

void sul_port_push(struct sul_port *p, int rank)
{
	if (sul_port_far(p, rank))
		p->far_ops->push(p);
}

void sul_port_poll(struct sul_port *p)
{
	struct sul_quiet q;

	if (!p->far_ops)
		return;
	sul_quiet_begin(p, &q);
	p->far_ops->poll(p);
	sul_quiet_end(&q);
}

void sul_port_silent(const struct sul_port *p, int rank)
{
	const char *host = sul_job_rank(p->job, rank)->host_name;
	char text[SUL_WHY_MAX];

	snprintf(
		text, sizeof(text),
		"rank %d%s%.64s has been silent for %g s (parameter silence): its host or the network is down, or it was stopped",
		rank, *host ? " on " : "", host, p->silence_ms / 1000.0);
	sul_job_fail(p->job, rank, 1, text);
}

void sul_port_left(const struct sul_port *p, int rank)
{
	const char *host = sul_job_rank(p->job, rank)->host_name;
	char text[SUL_WHY_MAX];

	snprintf(text, sizeof(text),
		 "rank %d%s%.64s has left the job, but rank %d still needs it",
		 rank, *host ? " on " : "", host, p->rank);
	sul_job_fail(p->job, rank, 1, text);
}

int sul_port_blame(struct sul_port *p, int rank, int err)
{
	if (err == -EHOSTDOWN && p->far_ops && p->far_ops->has_left &&
	    p->far_ops->has_left(p, rank))
		sul_port_left(p, rank);
	return err;
}

void sul_port_why(const struct sul_config *cfg, const char *fmt, ...)
{
	va_list args;

	if (!cfg->why)
		return;
	va_start(args, fmt);
	vsnprintf(cfg->why, SUL_WHY_MAX, fmt, args);
	va_end(args);
}
