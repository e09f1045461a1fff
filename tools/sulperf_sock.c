/* SPDX-License-Identifier: MIT */
/*
 * sulperf_sock.c - the rows over sockets: one sample of each.
 *
 * Role:      what the carrier is compared with, done as plainly as can be.
 * Invariant: the peer answers whatever it is asked, however often; the leader
 *            takes the answer to what it has asked last and no other.  So a
 *            lost datagram costs one sample, which does not count.
 * Threads:   the rank's; in sock_ask_busy the peer has another that answers.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sulperf.h"

enum {
	ASK_BYTES = 64, /* of a request */
	TRIES = 100, /* of a sample, if answers are late */
	LOST_MAX = 100, /* in a row: 10 s */
};

static void send_head(struct perf *p, const struct perf_row *r, size_t len,
		      uint32_t seq, unsigned int index)
{
	struct perf_head h = { seq, (uint16_t)p->rows, (uint16_t)index };

	memcpy(p->from, &h, sizeof(h));
	perf_net_send(p, r->via, p->from, len);
}

/* False: nothing that belongs here has come in time. */
static bool recv_head(struct perf *p, const struct perf_row *r, size_t len,
		      struct perf_head *out)
{
	for (;;) {
		size_t n = perf_net_recv(p, r->via, p->to, len);

		if (!n)
			return false;
		memcpy(out, p->to, sizeof(*out));
		if (n == len && out->row == (uint16_t)p->rows)
			return true;
		if (!perf_may_lose(r->via))
			perf_fail(p, "a message of another row has come");
	}
}

/* The leader's question, or its answer, is lost. */
static void lose(struct perf *p)
{
	p->lost++;
	p->spoilt = true;
	if (++p->lost_in_row > LOST_MAX)
		perf_fail(p, "no datagram comes through");
}

/* --- question and answer ------------------------------------------------------------------- */

/* The answer to what was asked last; it is asked again until that comes. */
static void await_answer(struct perf *p, const struct perf_row *r, size_t out,
			 size_t in)
{
	struct perf_head h;

	for (;;) {
		bool came = recv_head(p, r, in, &h);

		if (came && h.seq == p->asked)
			break;
		if (came)
			continue; /* an answer that was given twice */
		lose(p);
		send_head(p, r, out, p->asked, 0);
	}
	p->lost_in_row = 0;
}

static void ask(struct perf *p, const struct perf_row *r, size_t out, size_t in)
{
	send_head(p, r, out, ++p->asked, 0);
	await_answer(p, r, out, in);
}

/* The next question, and those that were asked again. */
static void answer(struct perf *p, const struct perf_row *r, size_t in,
		   size_t out)
{
	struct perf_head h = { .seq = p->asked };

	while ((int32_t)(h.seq - p->asked) <= 0)
		if (recv_head(p, r, in, &h))
			send_head(p, r, out, h.seq, 0);
	p->asked = h.seq;
}

static void talk(struct perf *p, const struct perf_row *r, size_t out,
		 size_t in)
{
	for (int i = 0; i < r->batch; i++)
		if (p->leader)
			ask(p, r, out, in);
		else
			answer(p, r, out, in);
}

double perf_sock_ping(struct perf *p, const struct perf_row *r)
{
	talk(p, r, r->bytes, r->bytes);
	return 2 * r->batch;
}

double perf_sock_ask(struct perf *p, const struct perf_row *r)
{
	talk(p, r, ASK_BYTES, r->bytes);
	return r->batch;
}

/* --- answering until told to stop ------------------------------------------------------------- */

/* After the last question; should that be lost, the word `done` says it. */
static void end_questions(struct perf *p, const struct perf_row *r, size_t out)
{
	if (p->last)
		send_head(p, r, out, ++p->asked, PERF_LAST);
}

static void answer_all(struct perf *p, const struct perf_row *r, size_t in,
		       size_t out)
{
	struct perf_head h;

	for (;;) {
		if (!recv_head(p, r, in, &h)) {
			if (perf_row_done(p))
				return;
			continue;
		}
		p->asked = h.seq;
		if (h.index == PERF_LAST)
			return;
		send_head(p, r, out, h.seq, 0);
	}
}

static void *answer_asleep(void *arg)
{
	struct perf *p = arg;
	struct perf_row r = *p->row;

	r.via = PERF_UDP_BLOCK;
	answer_all(p, &r, ASK_BYTES, r.bytes);
	return NULL;
}

/* One thread of the peer sleeps in recv(), the other computes. */
double perf_sock_ask_busy(struct perf *p, const struct perf_row *r)
{
	double ops = 0;
	pthread_t t;

	if (p->leader) {
		ops = perf_sock_ask(p, r);
		end_questions(p, r, ASK_BYTES);
		return ops;
	}
	perf_must(p, -pthread_create(&t, NULL, answer_asleep, p), "a thread");
	perf_compute(p);
	pthread_join(t, NULL);
	return 0;
}

/* --- many in a row ------------------------------------------------------------------------------- */

static void send_batch(struct perf *p, const struct perf_row *r, uint32_t seq)
{
	for (int i = 0; i < r->batch; i++)
		send_head(p, r, r->bytes, seq, (unsigned int)i);
}

/* Of a batch that the leader has given up the rest may be missing. */
static void take_datagrams(struct perf *p, const struct perf_row *r)
{
	struct perf_head h = { .seq = p->asked };
	uint32_t seq = p->asked;
	int nr = 0;

	while (nr < r->batch) {
		if (!recv_head(p, r, r->bytes, &h) ||
		    (int32_t)(h.seq - p->asked) <= 0)
			continue;
		if (h.seq != seq)
			nr = 0;
		seq = h.seq;
		nr++;
	}
	p->asked = seq;
}

static void take_batch(struct perf *p, const struct perf_row *r)
{
	struct perf_head h;

	if (perf_is_stream(r->via)) {
		perf_net_recv(p, r->via, p->to, r->bytes * (size_t)r->batch);
		memcpy(&h, p->to, sizeof(h));
		p->asked = h.seq;
	} else {
		take_datagrams(p, r);
	}
	send_head(p, r, sizeof(h), p->asked, 0);
}

double perf_sock_stream(struct perf *p, const struct perf_row *r)
{
	struct perf_head h = { 0 };

	if (!p->leader) {
		take_batch(p, r);
		return 0;
	}
	for (;;) {
		uint32_t seq = ++p->asked;

		send_batch(p, r, seq);
		while (recv_head(p, r, sizeof(h), &h))
			if (h.seq == seq) {
				p->lost_in_row = 0;
				return r->batch;
			}
		lose(p);
	}
}

/* Until @bytes are sent and as many have come. */
static void both_ways(struct perf *p, const struct perf_row *r, size_t bytes)
{
	size_t sent = 0, came = 0;

	while (sent < bytes || came < bytes) {
		if (sent < bytes)
			sent += perf_net_push(p, r->via, p->from + sent,
					      bytes - sent);
		if (came < bytes)
			came += perf_net_look(p, r->via, p->to + came,
					      bytes - came);
	}
}

/* Timed until both have all: then a head goes each way. */
double perf_sock_both(struct perf *p, const struct perf_row *r)
{
	size_t bytes = r->bytes * (size_t)r->batch;
	struct perf_head h;

	if (!p->leader)
		recv_head(p, r, sizeof(h), &h);
	else
		send_head(p, r, sizeof(h), 0, 0);
	both_ways(p, r, bytes);
	send_head(p, r, sizeof(h), 0, 0);
	recv_head(p, r, sizeof(h), &h);
	return 2 * r->batch;
}

/* --- the calls alone --------------------------------------------------------------------------------- */

double perf_sock_send(struct perf *p, const struct perf_row *r)
{
	if (!p->leader) {
		answer_all(p, r, r->bytes, r->bytes);
		return 0;
	}
	for (int i = 0; i < r->batch; i++) {
		uint64_t start = bench_now_ns();

		send_head(p, r, r->bytes, ++p->asked, 0);
		p->ns += perf_call_ns(p, start);
		await_answer(p, r, r->bytes, r->bytes);
	}
	end_questions(p, r, r->bytes);
	return r->batch;
}

/* An answer that has arrived is received: the time of that, or 0 if it was
 * late. */
static uint64_t time_recv(struct perf *p, const struct perf_row *r)
{
	struct perf_head h = { 0 };
	uint64_t start, ns;
	size_t n;

	send_head(p, r, r->bytes, ++p->asked, 0);
	perf_let_arrive(p);
	start = bench_now_ns();
	n = perf_net_look(p, r->via, &h, sizeof(h));
	ns = perf_call_ns(p, start);
	if (n == sizeof(h) && h.seq == p->asked)
		return ns;
	await_answer(p, r, r->bytes, r->bytes);
	perf_was_late(p);
	return 0;
}

double perf_sock_recv(struct perf *p, const struct perf_row *r)
{
	if (!p->leader) {
		answer_all(p, r, r->bytes, r->bytes);
		return 0;
	}
	for (int i = 0, tries = 0; i < r->batch; tries++) {
		uint64_t ns = time_recv(p, r);

		p->ns += ns;
		i += ns || tries >= TRIES;
		p->spoilt |= tries >= TRIES;
	}
	end_questions(p, r, r->bytes);
	return r->batch;
}

/* --- what was lost at the end of a row ------------------------------------------------------------ */

void perf_sock_again(struct perf *p, const struct perf_row *r)
{
	bool batches = r->fn == perf_sock_stream;
	size_t want = r->fn == perf_sock_ask ? ASK_BYTES : r->bytes;
	struct perf_head h;

	if (perf_net_look(p, r->via, p->to, want) != want)
		return;
	memcpy(&h, p->to, sizeof(h));
	if (h.row != (uint16_t)p->rows)
		return;
	if (!batches)
		send_head(p, r, r->bytes, h.seq, 0);
	else if (h.index == r->batch - 1)
		send_head(p, r, sizeof(h), h.seq, 0);
}
