/* SPDX-License-Identifier: MIT */
/*
 * jiarun_output.c - the labeller: "[rank] " before every line.
 *
 * Role: a process that reads pipes (two of every rank, and what the ssh's say)
 *   and writes whole lines to standard output and standard error.
 * Invariant: a source's bytes come out in their order and complete, the last
 *   line too when it has no newline; what a label is put before begins a line.
 *
 * A line that does not end (longer than LINE_MAX_BYTES, or the last one) goes
 * out as it is and leaves its stream open; whoever writes next on that stream
 * goes on in that line if it is the same source, or else ends it first.  Among
 * sources without a label no byte is added, and what is no line yet waits a
 * moment only: it may be a prompt.
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
	LINE_MAX_BYTES = 1 << 20, /* of a source's memory here */
	PROMPT_MS = 100, /* without a label: half a line waits so long */
};

struct sink {
	int fd;
	const struct jiarun_source *open; /* whose line has not ended */
	char *out; /* not yet written */
	size_t len, room;
};

/* What comes out of one pipe. */
struct jiarun_source {
	int fd, peer;
	bool errors;
	char *label;
	struct sink *to;
	char *held; /* a line that has not ended yet */
	size_t len, room;
};

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
static void sink_line(struct sink *k, const struct jiarun_source *s,
		      const char *data, size_t n)
{
	if (k->open && k->open != s && (*k->open->label || *s->label)) {
		sink_add(k, "\n", 1);
		k->open = NULL;
	}
	if (k->open != s && *s->label)
		sink_add(k, s->label, strlen(s->label));
	sink_add(k, data, n);
	k->open = data[n - 1] == '\n' ? NULL : s;
}

static void sink_end(struct sink *k)
{
	if (k->open && *k->open->label)
		sink_add(k, "\n", 1);
	sink_flush(k);
}

static void source_emit_held(struct jiarun_source *s)
{
	if (s->len)
		sink_line(s->to, s, s->held, s->len);
	s->len = 0;
}

static void source_take(struct jiarun_source *s, const char *data, size_t n)
{
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t part = end ? (size_t)(end - data) + 1 : n;

		if (end && !s->len) {
			sink_line(s->to, s, data, part);
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
static bool source_read(struct jiarun_source *s, char *buf)
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

/* Half lines that have no label; @emit: they have waited long enough. */
static bool prompts(struct jiarun_output *o, bool emit)
{
	bool any = false;

	for (size_t i = 0; i < o->nr; i++) {
		struct jiarun_source *s = &o->source[i];

		if (*s->label || !s->len)
			continue;
		any = true;
		if (emit) {
			source_emit_held(s);
			sink_flush(s->to);
		}
	}
	return any;
}

/* One poll(); how many sources have ended. */
static size_t copy_once(struct jiarun_output *o, struct pollfd *p, char *buf)
{
	size_t ended = 0;
	int n;

	for (size_t i = 0; i < o->nr; i++) {
		p[i].fd = o->source[i].fd; /* negative: skipped */
		p[i].events = POLLIN;
	}
	n = poll(p, o->nr, prompts(o, false) ? PROMPT_MS : -1);
	if (n == 0)
		prompts(o, true);
	for (size_t i = 0; n > 0 && i < o->nr; i++)
		if (p[i].fd >= 0 && p[i].revents &&
		    !source_read(&o->source[i], buf))
			ended++;
	return ended;
}

static _Noreturn void labeller(struct jiarun_output *o)
{
	struct sink out = { .fd = STDOUT_FILENO };
	struct sink err = { .fd = STDERR_FILENO };
	struct pollfd *p = calloc(o->nr, sizeof(*p));
	char *buf = malloc(READ_BYTES);
	size_t open = o->nr;

	/* Signals stay blocked: it ends when the last writer has. */
	prctl(PR_SET_NAME, "jiarun-label");
	for (size_t i = 0; i < o->nr; i++) {
		o->source[i].to = o->source[i].errors ? &err : &out;
		if (o->source[i].peer >= 0)
			close(o->source[i].peer);
	}
	while (p && buf && open)
		open -= copy_once(o, p, buf);
	sink_end(&out);
	sink_end(&err);
	_exit(0);
}

bool jiarun_output_add(struct jiarun_output *o, int fd, int peer, bool errors,
		       const char *label)
{
	struct jiarun_source *more;

	more = realloc(o->source, (o->nr + 1) * sizeof(*more));
	if (!more)
		return false;
	o->source = more;
	more[o->nr] = (struct jiarun_source){
		.fd = fd, .peer = peer, .errors = errors, .label = strdup(label)
	};
	return more[o->nr++].label != NULL;
}

pid_t jiarun_output_start(struct jiarun_output *o)
{
	pid_t pid = fork();

	if (pid == 0)
		labeller(o);
	for (size_t i = 0; i < o->nr; i++) {
		close(o->source[i].fd);
		free(o->source[i].label);
	}
	free(o->source);
	*o = (struct jiarun_output){ 0 };
	return pid;
}
