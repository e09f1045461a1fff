/* SPDX-License-Identifier: MIT */
/*
 * test_sul_net_trust.c - packets from strangers, and nonsense from friends.
 *
 * SUL_NET_OPS=1000000 in the environment makes the hostile run that long.
 */
#include <errno.h>

#include "sul_net_link.h"
#include "sul_story.h"
#include "tests.h"

enum {
	MS = 1000000,
	RECORDED = 256
};

/* --- strangers ------------------------------------------------------------------------- */

/* Genuine packets for rank 1, as they were sent. */
struct record {
	unsigned char bytes[RECORDED][1472];
	size_t len[RECORDED];
	unsigned int nr;
};

static bool record_packet(struct cable *c, struct cable_packet *p)
{
	struct record *r = c->tap_ctx;
	unsigned int i = r->nr % RECORDED;

	if (p->to != 1)
		return true;
	memcpy(r->bytes[i], p->bytes, p->len);
	r->len[i] = p->len;
	r->nr++;
	return true;
}

/* One of the recorded packets, no longer as it was; its length. */
static size_t forge(struct unit_rng *rng, const struct record *r,
		    unsigned char *out)
{
	unsigned int i = unit_below(rng, RECORDED);
	size_t len = r->len[i], at;
	unsigned int kind = unit_below(rng, 5);

	memcpy(out, r->bytes[i], len);
	switch (kind) {
	case 0: /* one bit */
		out[unit_below(rng, (uint32_t)len)] ^=
			(unsigned char)(1 << unit_below(rng, 8));
		return len;
	case 1: /* a number that has not been used, and any code */
		for (at = 16; at < 24; at++)
			out[at] = (unsigned char)unit_next(rng);
		return len;
	case 2: /* cut, or longer */
		at = unit_below(rng, 1473);
		for (size_t k = len; k < at; k++)
			out[k] = 0;
		return at == len ? len - 1 : at;
	case 3: /* random, behind a header that looks good */
		for (at = 24; at < len; at++)
			out[at] = (unsigned char)unit_next(rng);
		return len;
	default: /* random */
		len = unit_below(rng, 1473);
		for (at = 0; at < len; at++)
			out[at] = (unsigned char)unit_next(rng);
		return len;
	}
}

static uint64_t dropped(const struct sul_net *n)
{
	const struct sul_net_stats *s = sul_net_stats(n);

	return s->dropped_short + s->dropped_session + s->dropped_mac +
	       s->dropped_replay;
}

static uint64_t packets_wanted(void)
{
	const char *given = getenv("SUL_NET_OPS");

	return given ? strtoull(given, NULL, 0) : 50000;
}

static void strangers_are_refused_and_counted(enum sul_net_auth auth)
{
	static struct record r;
	static unsigned char before[CABLE_WINDOWS][CABLE_WINDOW_BYTES];
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	struct story *s;
	struct sul_net_stats was;

	cfg.auth = auth;
	r.nr = 0;
	cable_open(&c, &cfg, unit_rng("strangers"));
	c.tap = record_packet;
	c.tap_ctx = &r;
	s = story_new(&c);
	while (r.nr < RECORDED)
		CU_ASSERT_PTR_NULL(story_run(s, 10));
	for (int w = 0; w < CABLE_WINDOWS; w++)
		memcpy(before[w], c.window[1][w], CABLE_WINDOW_BYTES);
	was = *sul_net_stats(c.net[1]);
	for (uint64_t i = 0; i < packets_wanted(); i++) {
		unsigned char packet[1473];
		size_t len = forge(&c.rng, &r, packet);
		uint64_t counted = dropped(c.net[1]);

		CU_ASSERT_FATAL(
			!sul_net_input(c.net[1], c.now_ns, 0, packet, len));
		CU_ASSERT_FATAL(dropped(c.net[1]) == counted + 1);
	}
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->packets_in, was.packets_in);
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_range, 0);
	CU_ASSERT(sul_net_stats(c.net[1])->dropped_mac > was.dropped_mac);
	CU_ASSERT(sul_net_stats(c.net[1])->dropped_short > was.dropped_short);
	for (int w = 0; w < CABLE_WINDOWS; w++)
		CU_ASSERT(
			!memcmp(before[w], c.window[1][w], CABLE_WINDOW_BYTES));
	CU_ASSERT_PTR_NULL(story_run(s, 100)); /* as if nothing had been */
	story_free(s);
	cable_close(&c);
}

static void forged_cut_and_random_packets_are_refused(void)
{
	strangers_are_refused_and_counted(SUL_NET_AUTH_MAC);
	strangers_are_refused_and_counted(SUL_NET_AUTH_AEAD);
}

/* Each packet once more, right behind it and much later. */
static bool replay_packet(struct cable *c, struct cable_packet *p)
{
	record_packet(c, p);
	if (p->to == 1) {
		struct cable_packet *q = malloc(sizeof(*q));

		REQUIRE(q);
		*q = *p;
		c->tap = NULL;
		cable_send(c, p->from, p->to, q->bytes, q->len);
		c->tap = replay_packet;
		free(q);
	}
	return true;
}

static void replayed_packets_are_refused(void)
{
	static struct record r;
	struct cable_config cfg = cable_plain(2);
	struct sul_net_stats was;
	struct cable c;
	struct story *s;

	r.nr = 0;
	cable_open(&c, &cfg, unit_rng("replay"));
	c.tap = replay_packet;
	c.tap_ctx = &r;
	s = story_new(&c);
	CU_ASSERT_PTR_NULL(story_run(s, 2000));
	was = *sul_net_stats(c.net[1]);
	CU_ASSERT_EQUAL(was.dropped_replay, was.packets_in);
	CU_ASSERT_EQUAL(was.duplicates, 0);
	for (int i = 0; i < RECORDED; i++)
		CU_ASSERT(!sul_net_input(c.net[1], c.now_ns, 0, r.bytes[i],
					 r.len[i]));
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_replay,
			was.dropped_replay + RECORDED);
	CU_ASSERT_PTR_NULL(story_run(s, 100));
	story_free(s);
	cable_close(&c);
}

/* Numbers that come in any order are each taken once, those too old never. */
static void a_number_is_taken_once(void)
{
	enum {
		NUMBERS = 20000,
		REACH = SUL_NET_REPLAY_BITS - 64
	};
	static unsigned char taken[NUMBERS];
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	uint64_t top = 0;

	cfg.auth = SUL_NET_AUTH_OFF;
	memset(taken, 0, sizeof(taken));
	cable_open(&c, &cfg, unit_rng("numbers"));
	for (int i = 0; i < 200000; i++) {
		uint64_t number = unit_below(&c.rng, 1 + (uint32_t)i / 10);
		unsigned char packet[64];
		struct sul_wire_head h = {
			.version = SUL_WIRE_VERSION,
			.to = 1,
			.session = c.net[1]->peers[0].session_in,
			.number = number,
			.ack = { c.cfg.session[1], c.cfg.session[1] },
		};
		bool expected = number && !taken[number] &&
				number + REACH >= top;

		sul_wire_head_write(packet, &h);
		CU_ASSERT_FATAL(sul_net_input(c.net[1], c.now_ns, 0, packet,
					      sizeof(packet)) == expected);
		taken[number] |= expected;
		if (expected && number > top)
			top = number;
	}
	cable_close(&c);
}

static void packets_of_another_life_are_refused(void)
{
	static struct record r;
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	struct story *s;
	uint64_t word = 5;
	size_t done = 0;

	for (int i = 0; i < 2; i++) {
		cfg.auth = i ? SUL_NET_AUTH_OFF : SUL_NET_AUTH_MAC;
		r.nr = 0;
		cable_open(&c, &cfg, unit_rng("lives"));
		c.tap = record_packet;
		c.tap_ctx = &r;
		s = story_new(&c);
		while (r.nr < RECORDED)
			CU_ASSERT_PTR_NULL(story_run(s, 10));
		story_free(s);
		/* Rank 1 starts again, and rank 0 does not know. */
		sul_net_close(c.net[1]);
		c.cfg.session[1]++;
		cable_open_rank(&c, 1);
		cable_introduce(&c, 0, 1);
		for (int k = 0; k < RECORDED; k++)
			CU_ASSERT(!sul_net_input(c.net[1], c.now_ns, 0,
						 r.bytes[k], r.len[k]));
		CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_session,
				RECORDED);
		done = 0;
		CU_ASSERT(!sul_net_put(c.net[0], 1, 0, 0, &word, 8, &done));
		cable_run(&c, 100 * MS);
		CU_ASSERT(!sul_net_quiet(c.net[0]));
		cable_close(&c);
	}
}

static void another_job_is_refused(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c, other;

	cable_open(&c, &cfg, unit_rng("job"));
	cfg.session[0] = c.cfg.session[0];
	cfg.session[1] = c.cfg.session[1];
	cfg.key_byte = 1;
	cable_open(&other, &cfg, unit_rng("another"));
	for (int i = 0; i < 20; i++) {
		struct sul_packet p;
		uint64_t word = 5;
		size_t done = 0;

		CU_ASSERT(!sul_net_put(other.net[0], 1, 0, 0, &word, 8, &done));
		while (sul_net_output(other.net[0], other.now_ns, &p)) {
			unsigned char packet[1472];

			memcpy(packet, p.head, p.head_len);
			CU_ASSERT(!sul_net_input(c.net[1], c.now_ns, 0, packet,
						 p.head_len));
		}
	}
	CU_ASSERT(sul_net_stats(c.net[1])->dropped_session > 0);
	cable_close(&other);
	cable_close(&c);
}

static void a_stranger_costs_no_memory(void)
{
	struct cable_config cfg = cable_plain(2);
	unsigned char packet[64];
	struct sul_wire_head h = { .version = SUL_WIRE_VERSION, .to = 1 };
	struct cable c;
	size_t before;

	cable_open(&c, &cfg, unit_rng("memory"));
	h.session = c.net[1]->peers[0].session_in;
	before = c.allocated;
	for (uint64_t i = 1; i < 1000; i++) {
		h.number = i;
		h.mac = unit_next(&c.rng);
		sul_wire_head_write(packet, &h);
		CU_ASSERT(!sul_net_input(c.net[1], c.now_ns, 0, packet, 64));
	}
	CU_ASSERT_EQUAL(c.allocated, before);
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_mac, 999);
	cable_close(&c);
}

static void no_memory_is_refused_and_tried_again(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	uint64_t word = 5;
	size_t done = 0;

	cable_open(&c, &cfg, unit_rng("no memory"));
	c.allocate_most = c.allocated;
	CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, 0, &word, 8, &done),
			-ENOMEM);
	c.allocate_most = 0;
	CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, 0, &word, 8, &done), 0);
	c.allocate_most = c.allocated; /* rank 1 cannot take it */
	cable_run(&c, 100 * MS);
	CU_ASSERT(sul_net_stats(c.net[1])->dropped_room > 0);
	c.allocate_most = 0;
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT_EQUAL(*(uint64_t *)(void *)c.window[1][0], 5);
	cable_close(&c);
}

/* --- friends ---------------------------------------------------------------------------------- */

/* A packet of the first lane with the frame @f and @len bytes behind it, and
 * then a put of 8 bytes of @after to offset 0 of window 0. */
static bool send_frame(struct cable *c, uint32_t seq, enum sul_lane_nr lane,
		       struct sul_wire_frame f, const void *body, size_t len,
		       uint64_t after)
{
	static uint64_t number = 1 << 20;
	unsigned char packet[1472] = { 0 };
	size_t at = sizeof(struct sul_wire_head);
	struct sul_wire_frame put = { .kind = SUL_FRAME_PUT, .bytes = 16 + 8 };
	struct sul_wire_head h = {
		.version = SUL_WIRE_VERSION,
		.flags = SUL_WIRE_SEQUENCED,
		.to = 1,
		.session = c->net[1]->peers[0].session_in,
		.seq = c->cfg.session[0] + seq,
		.number = ++number,
		.ack = { c->cfg.session[1], c->cfg.session[1] },
		.credit = 8,
	};

	if (lane == SUL_ANSWERS)
		h.flags |= SUL_WIRE_ANSWERS;
	sul_wire_frame_write(packet + at, f);
	memcpy(packet + at + sizeof(f), body, len);
	at += sul_wire_padded(sizeof(f) + len);
	if (lane == SUL_REQUESTS) {
		sul_wire_frame_write(packet + at, put);
		memcpy(packet + at + 16, &after, 8);
		at += 24;
	}
	h.payload = (uint16_t)(at - sizeof(h));
	sul_wire_head_write(packet, &h);
	return sul_net_input(c->net[1], c->now_ns, 0, packet, at);
}

struct nonsense {
	struct sul_wire_frame f;
	uint64_t body[6];
	size_t len;
};

#define END ((uint64_t)CABLE_WINDOW_BYTES)
#define RUN(off, len) ((uint64_t)(len) << 32 | (off))
#define PUTV(runs, mirror, flag) \
	((uint64_t)(flag) << 48 | (uint64_t)(mirror) << 32 | (runs))

/* Frames of a good length that ask for what must not be. */
static const struct nonsense nonsense[] = {
	{ { SUL_FRAME_PUT, 0, 0, 24, END - 7 }, { 1 }, 8 },
	{ { SUL_FRAME_PUT, 0, 0, 24, END + 8 }, { 1 }, 8 },
	{ { SUL_FRAME_PUT, 0, 0, 24, UINT64_MAX }, { 1 }, 8 },
	{ { SUL_FRAME_PUT, 0, 3, 24, 0 }, { 1 }, 8 },
	{ { SUL_FRAME_PUT, 0, 65535, 24, 0 }, { 1 }, 8 },
	/* scatter: no run; a run of nothing; more runs, more bytes, less bytes
	 * than there are; beyond the window; mirrors that are not there */
	{ { SUL_FRAME_PUTV, 0, 0, 32, 0 }, { 0, PUTV(0, 0, 0) }, 16 },
	{ { SUL_FRAME_PUTV, 0, 0, 40, 0 }, { 0, PUTV(1, 0, 0), RUN(0, 0) }, 24 },
	{ { SUL_FRAME_PUTV, 0, 0, 48, 0 },
	  { 0, PUTV(UINT32_MAX, 0, 0), RUN(0, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 0, 0, 48, 0 },
	  { 0, PUTV(1, 0, 0), RUN(0, 9), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 0, 0, 48, 0 },
	  { 0, PUTV(1, 0, 0), RUN(0, 7), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 0, 0, 48, 8 },
	  { 0, PUTV(1, 0, 0), RUN(END - 8, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 0, 0, 48, 0 },
	  { 0, PUTV(1, 0, 0), RUN(UINT32_MAX, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 1, 0, 48, 0 },
	  { 0, PUTV(1, 3, 2), RUN(0, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 1, 0, 48, 0 },
	  { END, PUTV(1, 1, 2), RUN(0, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 1, 0, 48, 0 },
	  { 0, PUTV(1, 1, 9), RUN(0, 8), 1 },
	  32 },
	{ { SUL_FRAME_PUTV, 2, 0, 48, 0 },
	  { 0, PUTV(1, 1, 2), RUN(0, 8), 1 },
	  32 },
	/* get: beyond the window; marks that are not there, or not words */
	{ { SUL_FRAME_GET, 0, 0, 24, END }, { RUN(1025, 1) }, 8 },
	{ { SUL_FRAME_GET, 0, 0, 24, 8 }, { RUN(1025, UINT32_MAX) }, 8 },
	{ { SUL_FRAME_GET, 1, 0, 24, 0 }, { RUN(1025, 8) }, 8 },
	{ { SUL_FRAME_GET, 1, 0, 48, 0 }, { RUN(1025, 8), 4, 1, 0 }, 32 },
	{ { SUL_FRAME_GET, 1, 0, 48, 0 }, { RUN(1025, 8), END, 1, 0 }, 32 },
	{ { SUL_FRAME_GET, 1, 0, 48, 0 }, { RUN(1025, 8), 0, 1, 3 }, 32 },
	{ { SUL_FRAME_GET, 200, 0, 24, 0 }, { RUN(1025, 8) }, 8 },
	/* words */
	{ { SUL_FRAME_AMO, SUL_AMO_ADD, 0, 40, 4 }, { 0, 1, 1 }, 24 },
	{ { SUL_FRAME_AMO, SUL_AMO_ADD, 0, 40, END }, { 0, 1, 1 }, 24 },
	{ { SUL_FRAME_AMO, SUL_AMO_NR, 0, 40, 0 }, { 0, 1, 1 }, 24 },
	{ { SUL_FRAME_AMO, SUL_AMO_ADD, 3, 40, 0 }, { 0, 1, 1 }, 24 },
	{ { SUL_FRAME_NOTIFY, 0, 0, 24, 12 }, { 1 }, 8 },
	{ { SUL_FRAME_NOTIFY, 0, 0, 24, END }, { 1 }, 8 },
	/* message: its bytes, a word beyond the window; a word that is none */
	{ { SUL_FRAME_MESSAGE, 0, 0, 40, END },
	  { RUN(0, 8), RUN(1, 1), 1 },
	  24 },
	{ { SUL_FRAME_MESSAGE, 0, 3, 40, 64 }, { RUN(0, 8), RUN(1, 1), 1 }, 24 },
	{ { SUL_FRAME_MESSAGE, 0, 0, 40, 64 },
	  { RUN(END, 8), RUN(1, 1), 1 },
	  24 },
	{ { SUL_FRAME_MESSAGE, 0, 0, 40, 64 },
	  { RUN(8, END), RUN(1, 1), 1 },
	  24 },
	{ { SUL_FRAME_MESSAGE, 0, 0, 40, 64 }, { RUN(4, 8), RUN(1, 1), 1 }, 24 },
	{ { SUL_FRAME_MESSAGE, 0, 0, 40, 64 }, { RUN(8, 4), RUN(1, 1), 1 }, 24 },
	/* not of this lane, or of none */
	{ { SUL_FRAME_DATA, 0, 0, 32, 0 }, { 1025, 1 }, 16 },
	{ { SUL_FRAME_SACK, 0, 0, 24, 0 }, { 1 }, 8 },
	{ { 77, 0, 0, 24, 0 }, { 1 }, 8 },
};

static void operations_that_make_no_sense_are_dropped_and_counted(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	uint64_t i, *words;

	cfg.auth = SUL_NET_AUTH_OFF;
	cable_open(&c, &cfg, unit_rng("nonsense"));
	words = (void *)c.window[1][0];
	for (i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		const struct nonsense *n = &nonsense[i];

		CU_ASSERT(send_frame(&c, (uint32_t)i, SUL_REQUESTS, n->f,
				     n->body, n->len, i + 100));
		/* The next operation of the packet is executed. */
		CU_ASSERT_EQUAL(words[0], i + 100);
		CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_range, i + 1);
		if (sul_net_stats(c.net[1])->dropped_range != i + 1)
			printf("case %d ", (int)i);
	}
	for (int w = 0; w < CABLE_WINDOWS; w++)
		for (size_t k = w ? 0 : 8; k < CABLE_WINDOW_BYTES; k++)
			CU_ASSERT_FATAL(!c.window[1][w][k]);
	CU_ASSERT_EQUAL(c.notified, 0);
	CU_ASSERT_EQUAL(c.net[1]->links->lane[SUL_ANSWERS].out.next,
			c.cfg.session[1]); /* nothing is answered */
	cable_close(&c);
}

static void answers_that_nobody_waits_for_are_dropped_and_counted(void)
{
	struct cable_config cfg = cable_plain(2);
	struct sul_wire_frame f = { .kind = SUL_FRAME_DATA, .bytes = 24 + 8 };
	uint64_t body[2] = { 0, 0x77 }, dst[3] = { 0 }, dropped = 0;
	struct sul_net_link *l;
	struct cable c;
	size_t done = 0;
	uint32_t seq = 0, tag;

	cfg.auth = SUL_NET_AUTH_OFF;
	cable_open(&c, &cfg, unit_rng("answers"));
	CU_ASSERT(!sul_net_get(c.net[1], 0, 0, 0, &dst[1], 8, NULL, 0, &done));
	l = c.net[1]->links;
	tag = l->pending[0].generation << 10;
	for (unsigned int i = 0; i < 5; i++) {
		static const uint32_t wrong[] = { 0, 1, 1023, 1 << 10, 0 };

		body[0] = i == 4 ? tag : tag ^ (wrong[i] ?: tag);
		f.off = i == 4 ? 1 : 0; /* beyond its end */
		CU_ASSERT(send_frame(&c, seq++, SUL_ANSWERS, f, body, 16, 0));
		CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_range,
				++dropped);
	}
	body[0] = tag;
	f.off = UINT64_MAX;
	send_frame(&c, seq++, SUL_ANSWERS, f, body, 16, 0);
	f.off = 0;
	f.bytes = 24; /* a part of no bytes */
	send_frame(&c, seq++, SUL_ANSWERS, f, body, 8, 0);
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_range, dropped + 2);
	CU_ASSERT(!sul_net_quiet(c.net[1]) && !dst[0] && !dst[1] && !dst[2]);
	f.bytes = 24 + 8;
	send_frame(&c, seq++, SUL_ANSWERS, f, body, 16, 0);
	CU_ASSERT_EQUAL(dst[1], 0x77);
	CU_ASSERT_EQUAL(l->nr_pending, 0);
	send_frame(&c, seq++, SUL_ANSWERS, f, body, 16, 0); /* once more */
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_range, dropped + 3);
	cable_close(&c);
}

/* Nobody may make this rank keep more than it has room for. */
static void a_peer_that_takes_more_than_it_was_granted_gets_nothing(void)
{
	struct cable_config cfg = cable_plain(2);
	struct sul_wire_frame f = { .kind = SUL_FRAME_GET, .bytes = 24 };
	uint64_t body = RUN(1 << 10, 4096);
	struct cable c;

	cfg.auth = SUL_NET_AUTH_OFF;
	cfg.span = 8;
	cable_open(&c, &cfg, unit_rng("greed"));
	CU_ASSERT(!send_frame(&c, 8, SUL_REQUESTS, f, &body, 8, 1));
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_room, 1);
	for (uint32_t i = 0; i < 5; i++) /* 3 packets each, of 8 */
		CU_ASSERT(send_frame(&c, i, SUL_REQUESTS, f, &body, 8, 1));
	CU_ASSERT_EQUAL(sul_net_stats(c.net[1])->dropped_room, 1 + 3);
	CU_ASSERT_EQUAL(
		sul_sender_room(&c.net[1]->links->lane[SUL_ANSWERS].out), 2);
	cable_close(&c);
}

CU_TestInfo test_sul_net_trust[] = {
	{ "forged, cut and random packets are refused",
	  forged_cut_and_random_packets_are_refused },
	{ "replayed packets are refused", replayed_packets_are_refused },
	{ "a number is taken once", a_number_is_taken_once },
	{ "packets of another life are refused",
	  packets_of_another_life_are_refused },
	{ "another job is refused", another_job_is_refused },
	{ "a stranger costs no memory", a_stranger_costs_no_memory },
	{ "no memory is refused and tried again",
	  no_memory_is_refused_and_tried_again },
	{ "operations that make no sense are dropped and counted",
	  operations_that_make_no_sense_are_dropped_and_counted },
	{ "answers that nobody waits for are dropped and counted",
	  answers_that_nobody_waits_for_are_dropped_and_counted },
	{ "a peer that takes more than it was granted gets nothing",
	  a_peer_that_takes_more_than_it_was_granted_gets_nothing },
	CU_TEST_INFO_NULL,
};
