/* SPDX-License-Identifier: MIT */
/*
 * sul_sim_op.c - a port of the simulator: operations as they are issued.
 *
 * Role:      writes down what was asked for, and hands it to the links or to
 *            the network, whichever the world has.
 * Threads:   one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_sim_world.h"

static int issue(struct sul_port *p, const struct sul_sim_op *o)
{
	struct sul_sim *s = p->carrier;

	return s->issue(p, o);
}

int sul_sim_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		void *dst, size_t len, const struct sul_mark *marks,
		unsigned int nr_marks)
{
	struct sul_sim_op o = { .kind = SUL_SIM_GET,
				.rank = rank,
				.w = w,
				.off = off,
				.dst = dst,
				.len = len,
				.nr_marks = nr_marks };

	for (unsigned int i = 0; i < nr_marks; i++)
		o.marks[i] = marks[i];
	return issue(p, &o);
}

int sul_sim_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		const void *src, size_t len)
{
	struct sul_sim_op o = { .kind = SUL_SIM_PUT,
				.rank = rank,
				.w = w,
				.off = off,
				.src = src,
				.len = len };

	return issue(p, &o);
}

int sul_sim_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 const void *src, const struct sul_run *runs, size_t nr_runs,
		 const struct sul_mirror *mirror)
{
	struct sul_sim_op o = { .kind = SUL_SIM_PUTV,
				.rank = rank,
				.w = w,
				.off = off,
				.src = src,
				.runs = runs,
				.nr_runs = nr_runs };

	for (size_t i = 0; i < nr_runs; i++)
		o.len += runs[i].len;
	if (mirror) {
		o.has_mirror = true;
		o.mirror = *mirror;
	}
	return issue(p, &o);
}

int sul_sim_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		uint64_t *old)
{
	struct sul_sim_op o = { .kind = SUL_SIM_AMO,
				.rank = rank,
				.w = w,
				.off = off,
				.amo = op,
				.operand = operand,
				.comparand = comparand,
				.old = old };

	return issue(p, &o);
}

int sul_sim_op_notify(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value)
{
	struct sul_sim_op o = { .kind = SUL_SIM_NOTIFY,
				.rank = rank,
				.w = w,
				.off = off,
				.value = value };

	return issue(p, &o);
}

/* --- windows -------------------------------------------------------------------------- */

int sul_sim_windows_open(struct sul_port *p)
{
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		if (!p->window_bytes[w])
			continue;
		p->window[w] = calloc(1, p->window_bytes[w]);
		if (!p->window[w]) {
			sul_sim_windows_close(p);
			return -ENOMEM;
		}
	}
	return 0;
}

void sul_sim_windows_close(struct sul_port *p)
{
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++)
		free(p->window[w]);
}

int sul_sim_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		    size_t len)
{
	(void)p, (void)w, (void)off, (void)len; /* all of it is present */
	return 0;
}

int sul_sim_discard(struct sul_port *p, unsigned int w, uint64_t off,
		    size_t len)
{
	memset((char *)p->window[w] + off, 0, len);
	return 0;
}

int sul_sim_window_file(const struct sul_port *p, int rank, unsigned int w,
			int *fd, uint64_t *off)
{
	(void)p, (void)rank, (void)w, (void)fd, (void)off;
	return -ENOTSUP;
}
