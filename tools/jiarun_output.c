/* SPDX-License-Identifier: MIT */
/*
 * jiarun_output.c - the labeller: "[rank] " before every line.
 *
 * Role: a process that reads two pipes of every rank and writes whole lines to
 *   standard output and standard error.
 * Invariant: a rank's bytes come out in their order and complete, the last line
 *   too when it has no newline; what a label is put before begins a line.
 *
 * A line that does not end (longer than LINE_MAX_BYTES, or the last one) goes
 * out as it is and leaves its stream open; whoever writes next on that stream
 * goes on in that line if it is the same rank, or else ends it first.
 */
#include "jiarun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	READ_BYTES = 65536,
	LINE_MAX_BYTES = 1 << 20, /* of a rank's memory here */
	LABEL_MAX = 16,
};

/* What one rank wrote to one of its two streams. */
struct source {
	int fd, rank;
	struct sink *to;
	char *held; /* a line that has not ended yet */
	size_t len, room;
};

struct sink {
	int fd;
	int open_rank; /* whose line has begun and not ended; -1 */
	char *out; /* not yet written */
	size_t len, room;
};

int jiarun_output_pipes(struct jiarun_ranks *rs, int (*write_end)[2])
{
	int p[2];

	for (int r = 0; r < rs->nr; r++) {
		if (pipe2(p, O_CLOEXEC) < 0)
			return -1;
		rs->rank[r].out = p[0];
		write_end[r][0] = p[1];
		if (pipe2(p, O_CLOEXEC) < 0)
			return -1;
		rs->rank[r].err = p[0];
		write_end[r][1] = p[1];
	}
	return 0;
}

static void append(char **buf, size_t *len, size_t *room, const char *data,
		   size_t n)
{
	char *more;

	if (*len + n > *room) {
		*room = 2 * (*len + n);
		more = realloc(*buf, *room);
		if (!more) {
			dprintf(STDERR_FILENO,
				"jiarun: out of memory for labelled output\n");
			_exit(1);
		}
		*buf = more;
	}
	memcpy(*buf + *len, data, n);
	*len += n;
}

static void sink_add(struct sink *k, const char *data, size_t n)
{
	append(&k->out, &k->len, &k->room, data, n);
}

/* As without --label: if nobody can read it, the ranks' writes shall fail. */
static void sink_flush(struct sink *k)
{
	size_t done = 0;

	while (done < k->len) {
		ssize_t n = write(k->fd, k->out + done, k->len - done);
		struct pollfd p = { .fd = k->fd, .events = POLLOUT };

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			poll(&p, 1, -1);
		else if (errno != EINTR)
			_exit(1);
	}
	k->len = 0;
}

/* @data: a line with its newline, or part of one. */
static void sink_line(struct sink *k, int rank, const char *data, size_t n)
{
	char label[LABEL_MAX];

	if (k->open_rank >= 0 && k->open_rank != rank) {
		sink_add(k, "\n", 1);
		k->open_rank = -1;
	}
	if (k->open_rank < 0)
		sink_add(k, label,
			 (size_t)snprintf(label, sizeof(label), "[%d] ", rank));
	sink_add(k, data, n);
	k->open_rank = data[n - 1] == '\n' ? -1 : rank;
}

static void source_emit_held(struct source *s)
{
	if (s->len)
		sink_line(s->to, s->rank, s->held, s->len);
	s->len = 0;
}

static void source_take(struct source *s, const char *data, size_t n)
{
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t part = end ? (size_t)(end - data) + 1 : n;

		if (end && !s->len) {
			sink_line(s->to, s->rank, data, part);
		} else {
			append(&s->held, &s->len, &s->room, data, part);
			if (end || s->len >= LINE_MAX_BYTES)
				source_emit_held(s);
		}
		data += part;
		n -= part;
	}
}

/* False: it has ended. */
static bool source_read(struct source *s, char *buf)
{
	ssize_t n = read(s->fd, buf, READ_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n > 0) {
		source_take(s, buf, (size_t)n);
	} else {
		source_emit_held(s);
		close(s->fd);
		s->fd = -1;
	}
	sink_flush(s->to);
	return n > 0;
}

static void copy_all(struct source *src, struct pollfd *p, nfds_t nr)
{
	nfds_t open = nr;
	char *buf = malloc(READ_BYTES);

	while (buf && open) {
		for (nfds_t i = 0; i < nr; i++) {
			p[i].fd = src[i].fd; /* negative: skipped */
			p[i].events = POLLIN;
		}
		if (poll(p, nr, -1) < 0)
			continue;
		for (nfds_t i = 0; i < nr; i++) {
			if (p[i].fd >= 0 && p[i].revents &&
			    !source_read(&src[i], buf))
				open--;
		}
	}
	free(buf);
}

static _Noreturn void labeller(struct jiarun_ranks *rs)
{
	struct sink out = { .fd = STDOUT_FILENO, .open_rank = -1 };
	struct sink err = { .fd = STDERR_FILENO, .open_rank = -1 };
	nfds_t nr = 2 * (nfds_t)rs->nr;
	struct source *src = calloc(nr, sizeof(*src));
	struct pollfd *p = calloc(nr, sizeof(*p));

	/* Signals stay blocked: it ends when the last writer has. */
	prctl(PR_SET_NAME, "jiarun-label");
	for (nfds_t i = 0; src && p && i < nr; i++) {
		const struct jiarun_rank *r = &rs->rank[i / 2];

		src[i].rank = (int)(i / 2);
		src[i].fd = i % 2 ? r->err : r->out;
		src[i].to = i % 2 ? &err : &out;
	}
	if (src && p)
		copy_all(src, p, nr);
	for (nfds_t i = 0; src && i < nr; i++)
		free(src[i].held);
	if (out.open_rank >= 0)
		sink_add(&out, "\n", 1);
	if (err.open_rank >= 0)
		sink_add(&err, "\n", 1);
	sink_flush(&out);
	sink_flush(&err);
	_exit(0);
}

pid_t jiarun_output_start(struct jiarun_ranks *rs)
{
	pid_t pid = fork();

	if (pid == 0)
		labeller(rs);
	for (int r = 0; r < rs->nr; r++) {
		close(rs->rank[r].out);
		close(rs->rank[r].err);
	}
	return pid;
}
