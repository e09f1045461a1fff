/* SPDX-License-Identifier: MIT */
/*
 * sulperf_core.c - the udp carrier's core, one step after the other.
 *
 * Role:      times what the library's own objects do between system calls: two
 *            cores of a job of their own, in one thread, with nothing between
 *            them; and says how long the packets are.
 * Invariant: the operation has been executed, and the core that issued it is
 *            quiet, before the next one begins.
 * Threads:   the leader's only one.
 *
 * Time is an argument of the core, so here it is a number that grows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sul_heap.h"
#include "sul_net.h"
#include "sul_udp.h"
#include "sulperf.h"

enum {
	CORES = 2,
	SESSION = 1,
	SPAN = 64,
	STEP_NS = 1000,
	LATER_NS = 100000000, /* acknowledgements are due by then */
	SILENCE_S = 3600,
	TURNS = 100, /* more than any operation needs */
	SLOT_HEAD = 8, /* of a message of the system channel */
};

/* Packets that one core has given out. */
struct parcel {
	unsigned int nr;
	struct sul_packet packet[SUL_NET_BATCH_MAX];
};

struct perf_core {
	struct perf *p;
	struct sul_net *net[CORES];
	char *land, *from, *to; /* core 1's windows; core 0's memory */
	uint64_t now_ns;
	unsigned char packet[SUL_NET_BATCH_MAX][SUL_NET_PACKET_MAX];
};

/* To wake somebody would be a system call; here nobody sleeps. */
static void core_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	struct perf_core *c = ctx;

	if (word->sleepers)
		perf_fail(c->p, "a core would wake somebody");
	sul_sleep_notify(word, value);
}

static void core_dead(void *ctx, int rank)
{
	struct perf_core *c = ctx;

	perf_fail(c->p, "core %d is dead", rank);
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = core_notify,
	.dead = core_dead,
#ifdef SUL_SODIUM
	.seal = sul_aead_seal,
	.open = sul_aead_open,
#endif
};

/* --- opening ------------------------------------------------------------------------------ */

static void open_core(struct perf_core *c, int rank)
{
	struct perf *p = c->p;
	struct sul_net_config cfg = {
		.rank = rank,
		.ranks = CORES,
		.windows = 1,
		.window = { { c->land, PERF_BYTES_MAX } },
		.packet_bytes =
			sul_listener_packet(sul_udp_of(p->port)->listener),
		.span = SPAN,
		.auth = (enum sul_net_auth)p->settings.value.auth,
		.session = SESSION,
		.silence_ns = SILENCE_S * UINT64_C(1000000000),
		.env = &env,
		.env_ctx = c,
	};
	int err = sul_net_open(&c->net[rank], &cfg);

	if (!err)
		err = sul_net_peer(c->net[rank], !rank, SESSION,
				   cfg.packet_bytes, 1);
	perf_must(p, err, "a core");
}

struct perf_core *perf_core_open(struct perf *p)
{
	struct perf_core *c = calloc(1, sizeof(*c));

	if (!c)
		perf_fail(p, "memory: %s", strerror(errno));
	c->p = p;
	c->land = p->to;
	c->from = p->from;
	c->to = p->from + PERF_BYTES_MAX / 2;
	for (int i = 0; i < CORES; i++)
		open_core(c, i);
	return c;
}

void perf_core_close(struct perf_core *c)
{
	for (int i = 0; c && i < CORES; i++)
		sul_net_close(c->net[i]);
	free(c);
}

/* --- steps ---------------------------------------------------------------------------------- */

static void issue_message(struct perf_core *c, size_t len, int *err)
{
	/* As sul_send() does: the slot, its ring's tail, the doorbell. */
	struct sul_message m = {
		.off = PERF_PAGE,
		.src = c->from,
		.len = SLOT_HEAD + len,
		.word = { 0, sizeof(struct sul_word) },
		.value = { 1, 1 },
	};

	*err |= sul_net_message(c->net[0], 1, &m);
}

static void issue_put(struct perf_core *c, size_t len, int *err)
{
	size_t done = 0;

	*err |= sul_net_put(c->net[0], 1, 0, PERF_PAGE, c->from, len, &done);
	*err |= sul_net_notify(c->net[0], 1, 0, 0, 1);
}

static void issue_get(struct perf_core *c, size_t len, int *err)
{
	size_t done = 0;

	*err |= sul_net_get(c->net[0], 1, 0, PERF_PAGE, c->to, len, NULL, 0,
			    &done);
}

static uint64_t issue(struct perf_core *c, enum perf_break b)
{
	uint64_t start = bench_now_ns(), ns;
	int err = 0;

	switch (b) {
	case PERF_BREAK_SYSTEM:
		issue_message(c, 64, &err);
		break;
	case PERF_BREAK_PUT:
		issue_put(c, 64, &err);
		break;
	default:
		issue_get(c, PERF_PAGE, &err);
		break;
	}
	ns = perf_call_ns(c->p, start);
	perf_must(c->p, err, "issuing to a core");
	return ns;
}

/* What core @from has to say, within which time. */
static uint64_t pack(struct perf_core *c, int from, struct parcel *out)
{
	uint64_t start = bench_now_ns();

	out->nr = 0;
	while (out->nr < SUL_NET_BATCH_MAX &&
	       sul_net_output(c->net[from], c->now_ns, &out->packet[out->nr]))
		out->nr++;
	return out->nr ? perf_call_ns(c->p, start) : 0;
}

/* As it is on its way: nobody's memory but the receiver's. */
static size_t copy_packet(unsigned char *to, const struct sul_packet *p)
{
	memcpy(to, p->head, p->head_len);
	if (p->body_len)
		memcpy(to + p->head_len, p->body, p->body_len);
	return (size_t)p->head_len + p->body_len;
}

static uint64_t take(struct perf_core *c, int to, const struct parcel *in)
{
	size_t len[SUL_NET_BATCH_MAX];
	uint64_t start;
	bool taken = true;

	if (!in->nr)
		return 0;
	for (unsigned int i = 0; i < in->nr; i++)
		len[i] = copy_packet(c->packet[i], &in->packet[i]);
	start = bench_now_ns();
	for (unsigned int i = 0; i < in->nr; i++)
		taken &= sul_net_input(c->net[to], c->now_ns, 0, c->packet[i],
				       len[i]);
	if (!taken)
		perf_fail(c->p, "a core refuses what the other has packed");
	return perf_call_ns(c->p, start);
}

static size_t first_len(const struct parcel *p)
{
	if (!p->nr)
		return 0;
	return (size_t)p->packet[0].head_len + p->packet[0].body_len;
}

/* From core to core until nothing is left to say. */
static uint64_t acknowledge(struct perf_core *c)
{
	uint64_t ns = 0;
	struct parcel p;

	for (int i = 0; i < TURNS && !sul_net_quiet(c->net[0]); i++) {
		c->now_ns += LATER_NS;
		ns += pack(c, 1, &p);
		ns += take(c, 0, &p);
		pack(c, 0, &p);
		take(c, 1, &p);
	}
	if (!sul_net_quiet(c->net[0]))
		perf_fail(c->p, "a core does not come to an end");
	return ns;
}

void perf_core_step(struct perf_core *c, enum perf_break b,
		    struct perf_steps *out)
{
	struct parcel request, answer;

	c->now_ns += STEP_NS;
	/* The words: what a get has brought lay there. */
	memset(c->land, 0, 2 * sizeof(struct sul_word));
	out->issue_ns = issue(c, b);
	out->pack_ns = pack(c, 0, &request);
	out->request_bytes = first_len(&request);
	out->execute_ns = take(c, 1, &request);
	out->answer_bytes = 0;
	out->ack_ns = 0;
	if (b == PERF_BREAK_GET) {
		out->pack_ns += pack(c, 1, &answer);
		out->answer_bytes = first_len(&answer);
		out->execute_ns += take(c, 0, &answer);
	}
	out->ack_ns = acknowledge(c);
}
