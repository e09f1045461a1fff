/* SPDX-License-Identifier: MIT */
/*
 * sulperf_wire.c - the way of a datagram: two system calls, and what is between.
 *
 * Role:      for --breakdown: what the carrier's own send and receive calls
 *            take for a packet of a given length, and what a plain datagram of
 *            that length takes, from which follows how long it is under way.
 * Invariant: the peer answers each with one as long, or is told that it was the
 *            last; one that is lost or late costs a measurement.
 * Threads:   the rank's only one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sul_udp.h"
#include "sulperf.h"

struct perf_wire {
	struct perf *p;
	struct sul_socket socket; /* the UDP rows' */
	struct sul_batch *batch;
	union sul_sockaddr to;
	uint32_t came; /* the answer that was taken last */
};

struct perf_wire *perf_wire_open(struct perf *p)
{
	struct perf_wire *w = calloc(1, sizeof(*w));
	socklen_t len = sizeof(w->to);
	int fd = p->fd[PERF_UDP];

	if (!w || sul_batch_open(&w->batch) ||
	    getpeername(fd, &w->to.any, &len))
		perf_fail(p, "a batch of packets cannot be made");
	w->p = p;
	w->socket.fd = fd;
	w->socket.family = w->to.any.sa_family;
	w->socket.joined = true; /* as the carrier's own are */
	return w;
}

void perf_wire_close(struct perf_wire *w)
{
	sul_batch_close(w->batch);
	free(w);
}

static struct perf_head new_head(struct perf_wire *w, uint16_t index)
{
	return (struct perf_head){ ++w->p->asked, (uint16_t)w->p->rows, index };
}

/* --- the peer --------------------------------------------------------------------------------- */

void perf_wire_answer(struct perf *p)
{
	struct perf_head h;

	while (!perf_row_done(p)) {
		size_t n = perf_net_recv(p, PERF_UDP, p->to, PERF_BYTES_MAX);

		memcpy(&h, p->to, sizeof(h));
		if (n < sizeof(h) || h.row != (uint16_t)p->rows)
			continue;
		if (h.index == PERF_LAST)
			return;
		perf_net_send(p, PERF_UDP, p->to, n);
	}
}

void perf_wire_end(struct perf_wire *w)
{
	struct perf_head h = new_head(w, PERF_LAST);

	perf_net_send(w->p, PERF_UDP, &h, sizeof(h));
}

/* --- the leader --------------------------------------------------------------------------------- */

static uint64_t send_plain(struct perf_wire *w, size_t len)
{
	struct perf_head h = new_head(w, 0);
	uint64_t start;

	memcpy(w->p->from, &h, sizeof(h));
	start = bench_now_ns();
	perf_net_send(w->p, PERF_UDP, w->p->from, len);
	return perf_call_ns(w->p, start);
}

static uint64_t send_as_carrier(struct perf_wire *w, size_t len)
{
	struct perf_head h = new_head(w, 0);
	struct sul_datagram d = {
		.to = &w->to,
		.head = w->p->from,
		.head_len = (unsigned int)len,
	};
	uint64_t start;

	memcpy(w->p->from, &h, sizeof(h));
	start = bench_now_ns();
	sul_socket_send(&w->socket, w->batch, &d, 1);
	return perf_call_ns(w->p, start);
}

static bool is_answer(struct perf_wire *w, size_t n)
{
	struct perf_head h = { .seq = 0 };

	if (n >= sizeof(h))
		memcpy(&h, w->p->to, sizeof(h));
	return n && h.seq == w->p->asked;
}

static bool await_plain(struct perf_wire *w)
{
	size_t n;

	do
		n = perf_net_recv(w->p, PERF_UDP, w->p->to, PERF_BYTES_MAX);
	while (n && !is_answer(w, n));
	return n;
}

/* Until what was sent last has its answer, or for a while. */
static bool catch_up(struct perf_wire *w)
{
	perf_was_late(w->p);
	await_plain(w);
	return false;
}

static bool look_plain(struct perf_wire *w, uint64_t *ns)
{
	uint64_t start;
	size_t n;

	perf_let_arrive(w->p);
	start = bench_now_ns();
	n = perf_net_look(w->p, PERF_UDP, w->p->to, PERF_BYTES_MAX);
	*ns = perf_call_ns(w->p, start);
	return is_answer(w, n) || catch_up(w);
}

static void on_packet(void *ctx, void *packet, size_t len)
{
	struct perf_wire *w = ctx;

	if (len >= sizeof(w->came))
		memcpy(&w->came, packet, sizeof(w->came));
}

static bool look_as_carrier(struct perf_wire *w, uint64_t *ns)
{
	uint64_t start;

	perf_let_arrive(w->p);
	start = bench_now_ns();
	sul_socket_receive(&w->socket, w->batch, on_packet, w);
	*ns = perf_call_ns(w->p, start);
	return w->came == w->p->asked || catch_up(w);
}

bool perf_wire_times(struct perf_wire *w, size_t len, struct perf_way *out)
{
	uint64_t start = bench_now_ns();

	out->plain_send_ns = send_plain(w, len);
	if (!await_plain(w))
		return false;
	out->plain_round_ns = perf_call_ns(w->p, start);
	send_plain(w, len);
	if (!look_plain(w, &out->plain_receive_ns))
		return false;
	out->send_ns = send_as_carrier(w, len);
	return look_as_carrier(w, &out->receive_ns);
}
