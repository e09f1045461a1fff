/* SPDX-License-Identifier: MIT */
/*
 * sulperf_sul.c - the rows over the job's carrier: one sample of each.
 *
 * Role:      system, normal and open channel as a program uses them.
 * Invariant: what has arrived is looked at, too: a message that is fast and
 *            wrong is none.  Sources stay as they are until a flush.
 * Threads:   the rank's only one; handlers run in it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sulperf.h"

enum {
	HANDLER = 0,
	CHANNELS = 2, /* normal channels in use: one is filled, one waits */
	END_BYTES = 4, /* of a message that wants no answer */
	TRIES = 100, /* of a sample, if answers are late */
};

static void put(struct perf *p, size_t off, const void *src, size_t len)
{
	perf_must(p, sul_put(p->port, p->other, PERF_W_LAND, off, src, len),
		  "a put");
}

static void flush(struct perf *p)
{
	perf_must(p, sul_flush(p->port), "a flush");
}

static void ping(struct perf *p)
{
	perf_notify(p, offsetof(struct perf_desk, ping), p->seq);
}

static void await_ping(struct perf *p)
{
	perf_await(p, &p->desk->ping, p->seq);
}

/* --- system channel --------------------------------------------------------------------- */

/* Messages carry their number, in all of their bytes' beginning. */
struct message {
	uint32_t seq;
	unsigned char rest[SUL_MESSAGE_MAX - 4];
};

static void on_message(void *ctx, int from, const void *body, size_t len)
{
	struct perf *p = ctx;
	uint32_t seq, last = sul_word_read(&p->desk->got.word);

	if (from != p->other || len < sizeof(seq))
		perf_fail(p, "a message of %zu bytes from rank %d", len, from);
	memcpy(&seq, body, sizeof(seq));
	if (seq != last + 1)
		perf_fail(p, "message %u came after message %u", seq, last);
	p->message_len = len;
	__atomic_store_n(&p->desk->got.word.value, seq, __ATOMIC_RELEASE);
}

void perf_handlers(struct perf *p)
{
	perf_must(p, sul_handler(p->port, HANDLER, on_message, p), "a handler");
}

void perf_send_message(struct perf *p, size_t len)
{
	struct message m = { .seq = p->sent + 1 };

	perf_must(p, sul_send(p->port, p->other, HANDLER, &m, len),
		  "sending a message");
	p->sent++;
}

void perf_await_message(struct perf *p)
{
	p->taken++;
	perf_await(p, &p->desk->got, p->taken);
}

double perf_system(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		if (!p->leader)
			perf_await_message(p);
		perf_send_message(p, r->bytes);
		if (p->leader)
			perf_await_message(p);
	}
	return 2 * r->batch;
}

/* Timed until the last has been taken. */
double perf_system_burst(struct perf *p, const struct perf_row *r)
{
	p->seq++;
	for (int i = 0; i < r->batch; i++)
		if (p->leader)
			perf_send_message(p, r->bytes);
		else
			perf_await_message(p);
	if (p->leader)
		await_ping(p);
	else
		ping(p);
	return r->batch;
}

/* Answer until a message comes that is too short to be one of the row's. */
static void answer_messages(struct perf *p, const struct perf_row *r)
{
	for (;;) {
		perf_await_message(p);
		if (p->message_len < r->bytes)
			return;
		perf_send_message(p, r->bytes);
	}
}

static void end_messages(struct perf *p)
{
	if (p->last)
		perf_send_message(p, END_BYTES);
}

double perf_system_send(struct perf *p, const struct perf_row *r)
{
	if (!p->leader) {
		answer_messages(p, r);
		return 0;
	}
	for (int i = 0; i < r->batch; i++) {
		uint64_t start = bench_now_ns();

		perf_send_message(p, r->bytes);
		p->ns += perf_call_ns(p, start);
		perf_await_message(p);
	}
	end_messages(p);
	return r->batch;
}

/* A message that has arrived is handed over: the time of that, or 0 if it was
 * late. */
static uint64_t time_poll(struct perf *p, const struct perf_row *r)
{
	uint64_t start, ns;
	int n;

	perf_send_message(p, r->bytes);
	perf_let_arrive(p);
	start = bench_now_ns();
	n = sul_poll(p->port);
	ns = perf_call_ns(p, start);
	perf_must(p, n, "polling");
	perf_await_message(p);
	if (n)
		return ns;
	perf_was_late(p);
	return 0;
}

double perf_system_recv(struct perf *p, const struct perf_row *r)
{
	if (!p->leader) {
		answer_messages(p, r);
		return 0;
	}
	for (int i = 0, tries = 0; i < r->batch; tries++) {
		uint64_t ns = time_poll(p, r);

		p->ns += ns;
		i += ns || tries >= TRIES;
		p->spoilt |= tries >= TRIES;
	}
	end_messages(p);
	return r->batch;
}

/* --- open channel ------------------------------------------------------------------------- */

void perf_put_and_ping(struct perf *p, const void *src, size_t len)
{
	if (len)
		put(p, 0, src, len);
	ping(p);
}

/* The source is another one for each of a batch. */
static void put_number(struct perf *p, const struct perf_row *r, int i)
{
	char *src = p->from + (size_t)i * r->bytes;

	if (r->bytes)
		src[r->bytes - 1] = (char)p->seq;
	perf_put_and_ping(p, src, r->bytes);
}

static void await_put(struct perf *p, const struct perf_row *r)
{
	await_ping(p);
	if (r->bytes && p->land[r->bytes - 1] != (char)p->seq)
		perf_fail(p, "the word came before its data");
}

double perf_put(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		p->seq++;
		if (!p->leader)
			await_put(p, r);
		put_number(p, r, i);
		if (p->leader)
			await_put(p, r);
	}
	flush(p);
	return 2 * r->batch;
}

double perf_put_stream(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		size_t at = (size_t)i * r->bytes;

		put(p, at, p->from + at, r->bytes);
	}
	flush(p);
	return r->batch;
}

/* Timed until both have all. */
double perf_put_both(struct perf *p, const struct perf_row *r)
{
	p->seq++;
	if (p->leader)
		ping(p);
	else
		await_ping(p);
	perf_put_stream(p, r);
	p->seq++;
	ping(p);
	await_ping(p);
	return 2 * r->batch;
}

void perf_get_once(struct perf *p, size_t len)
{
	perf_must(p,
		  sul_get(p->port, p->other, PERF_W_LAND, 0, p->to, len, NULL,
			  0),
		  "a get");
	flush(p);
}

double perf_get(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		perf_get_once(p, r->bytes);
		if (p->to[r->bytes - 1] != (char)p->rows)
			perf_fail(p, "a get found something else");
	}
	return r->batch;
}

double perf_amo(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		uint64_t old = 0;

		perf_must(p,
			  sul_amo(p->port, p->other, PERF_W_DESK,
				  offsetof(struct perf_desk, amo), SUL_AMO_ADD,
				  1, 0, &old),
			  "an atomic operation");
		flush(p);
		if (old != p->amos++)
			perf_fail(p, "an addition was done more than once");
	}
	return r->batch;
}

/* --- normal channel ------------------------------------------------------------------------- */

static void post(struct perf *p, unsigned int channel, size_t len)
{
	perf_must(p,
		  sul_recv_post(p->port, channel, p->to + channel * len, len),
		  "posting a buffer");
}

static void await_large(struct perf *p, unsigned int channel, size_t want)
{
	size_t len = 0;

	perf_must(p, sul_recv_wait(p->port, channel, NULL, &len, -1),
		  "receiving");
	if (len != want || p->to[(channel + 1) * len - 1] != (char)p->seq)
		perf_fail(p, "%zu bytes arrived, or others", len);
}

static void send_large(struct perf *p, unsigned int channel, size_t len)
{
	p->from[len - 1] = (char)p->seq;
	perf_must(p,
		  sul_send_large(p->port, p->other, channel, p->from, len, -1),
		  "sending");
}

double perf_normal(struct perf *p, const struct perf_row *r)
{
	for (int i = 0; i < r->batch; i++) {
		p->seq++;
		post(p, 0, r->bytes);
		if (!p->leader)
			await_large(p, 0, r->bytes);
		send_large(p, 0, r->bytes);
		if (p->leader)
			await_large(p, 0, r->bytes);
	}
	return 2 * r->batch;
}

/* The receiver has a buffer posted ahead. */
double perf_normal_stream(struct perf *p, const struct perf_row *r)
{
	if (!p->leader)
		for (unsigned int c = 0; c < CHANNELS; c++)
			post(p, c, r->bytes);
	for (int i = 0; i < r->batch; i++) {
		unsigned int c = (unsigned int)i % CHANNELS;

		p->seq++;
		if (p->leader) {
			send_large(p, c, r->bytes);
			continue;
		}
		await_large(p, c, r->bytes);
		if (i + CHANNELS < r->batch)
			post(p, c, r->bytes);
	}
	return r->batch;
}
