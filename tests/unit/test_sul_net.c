/* SPDX-License-Identifier: MIT */
/*
 * test_sul_net.c - the network core: what arrives is what was issued, whatever
 * the network does.
 *
 * SUL_NET_OPS=1000000 in the environment makes the lossy runs that long.
 */
#include <errno.h>

#include "sul_story.h"
#include "sul_wire.h"
#include "tests.h"

enum {
	US = 1000,
	MS = 1000 * US,
	STREAM_BYTES = 16 << 20
};

/* Random operations; the cores' counters when they are through. */
static struct sul_net_stats tell(const char *name,
				 const struct cable_config *cfg, uint64_t ops)
{
	struct sul_net_stats sum = { 0 };
	struct cable c;
	struct story *s;
	const char *wrong;

	cable_open(&c, cfg, unit_rng(name));
	s = story_new(&c);
	wrong = story_run(s, ops);
	CU_ASSERT_PTR_NULL(wrong);
	if (wrong)
		printf("%s\n", wrong);
	for (int i = 0; i < cfg->ranks; i++) {
		CU_ASSERT_EQUAL(sul_net_error(c.net[i]), 0);
#define NET(name, doc) sum.name += sul_net_stats(c.net[i])->name;
#include "sul_net.def"
	}
	CU_ASSERT_EQUAL(sum.dropped_range, 0);
	CU_ASSERT_EQUAL(sum.dropped_room, 0);
	story_free(s);
	cable_close(&c);
	return sum;
}

static void operations_take_effect_in_order(void)
{
	static const enum sul_net_auth all[] = { SUL_NET_AUTH_MAC,
						 SUL_NET_AUTH_OFF,
						 SUL_NET_AUTH_AEAD };
	struct cable_config cfg = cable_plain(2);

	for (int i = 0; i < 3; i++) {
		struct sul_net_stats s;

		cfg.auth = all[i];
		s = tell("order", &cfg, 1000);
		CU_ASSERT_EQUAL(s.resent, 0);
		CU_ASSERT_EQUAL(s.timeouts, 0);
		CU_ASSERT_EQUAL(s.packets_out, s.packets_in);
	}
}

/* --- bad networks ----------------------------------------------------------------------- */

static uint64_t ops_wanted(uint64_t otherwise)
{
	const char *given = getenv("SUL_NET_OPS");

	return given ? strtoull(given, NULL, 0) : otherwise;
}

static void nothing_is_lost_doubled_or_out_of_order(void)
{
	static const uint32_t loss_ppm[] = { 0, 10000, 50000, 100000 };
	struct cable_config cfg = cable_plain(2);

	cfg.span = 256;
	cfg.twice_ppm = 50000;
	cfg.late_ppm = 50000;
	cfg.late_ns = 200 * US;
	for (int i = 0; i < 4; i++) {
		struct sul_net_stats s;

		cfg.loss_ppm = loss_ppm[i];
		s = tell("loss", &cfg, ops_wanted(3000));
		CU_ASSERT(s.early > 0);
		CU_ASSERT(s.dropped_replay > 0);
		CU_ASSERT(s.resent > 0 || !loss_ppm[i]);
		CU_ASSERT_EQUAL(s.dropped_mac + s.dropped_session, 0);
	}
}

static void damaged_packets_are_lost_packets(void)
{
	struct cable_config cfg = cable_plain(3);

	cfg.damage_ppm = 50000;
	for (int i = 0; i < 2; i++) {
		struct sul_net_stats s = tell("damage", &cfg, 1000);

		CU_ASSERT(s.dropped_mac > 0);
		CU_ASSERT(s.resent > 0);
		cfg.auth = SUL_NET_AUTH_AEAD;
	}
}

static void sequence_numbers_wrap_around(void)
{
	struct cable_config cfg = cable_plain(2);

	cfg.session[0] = UINT32_MAX - 20;
	cfg.session[1] = UINT32_MAX;
	cfg.loss_ppm = 20000;
	tell("wrap", &cfg, 1000);
}

static void packets_can_have_any_size(void)
{
	static const unsigned int sizes[] = { 548,  549,  555,	576,  1200,
					      1471, 1472, 4096, 8971, 8972 };
	struct cable_config cfg = cable_plain(2);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cfg.packet_bytes[0] = sizes[i];
		cfg.packet_bytes[1] = i % 3 ? sizes[i] : 1472;
		cfg.auth = i % 2 ? SUL_NET_AUTH_MAC : SUL_NET_AUTH_AEAD;
		cfg.span = i % 2 ? SUL_NET_SPAN_MIN : 64;
		tell("size", &cfg, 500);
	}
}

/* --- windows that are not always there -------------------------------------------------- */

static void a_request_waits_for_its_pages_and_later_ones_behind_it(void)
{
	static const uint32_t loss_ppm[] = { 0, 0, 50000 };
	struct cable_config cfg = cable_plain(3);

	cfg.paged = true;
	cfg.page_ns = 300 * US;
	for (int i = 0; i < 6; i++) {
		struct sul_net_stats s;

		cfg.gone_ppm = i % 3 ? 300000 : 0; /* none, or every third */
		cfg.pages_most = i % 3 == 1 ? 0 : 8;
		cfg.loss_ppm = cfg.twice_ppm = loss_ppm[i % 3];
		cfg.packet_bytes[1] = i < 3 ? 1472 : 8972;
		cfg.packet_bytes[2] = cfg.packet_bytes[1];
		cfg.copy = i & 1;
		s = tell("pages", &cfg, ops_wanted(2000));
		CU_ASSERT(s.late > 100);
		/* Nobody takes what waits for what is lost. */
		CU_ASSERT(loss_ppm[i % 3] || s.resent < s.packets_out / 8);
	}
}

/* --- networks of any kind --------------------------------------------------------------------- */

static struct cable_config some_network(struct unit_rng *r)
{
	struct cable_config c = cable_plain(2 + (int)unit_below(r, 3));

	c.span = 8u << unit_below(r, 8);
	c.auth = unit_below(r, 3);
	c.paths = 1 + unit_below(r, SUL_NET_PATHS_MAX);
	for (int i = 0; i < CABLE_RANKS_MAX; i++) {
		c.packet_bytes[i] =
			SUL_NET_PACKET_MIN +
			unit_below(r, SUL_NET_PACKET_MAX - SUL_NET_PACKET_MIN);
		if (!unit_below(r, 3))
			c.session[i] = UINT32_MAX - unit_below(r, 300);
	}
	c.loss_ppm = unit_below(r, 150000);
	c.twice_ppm = unit_below(r, 100000);
	c.late_ppm = unit_below(r, 100000);
	c.late_ns = unit_below(r, 2 * MS);
	if (c.auth != SUL_NET_AUTH_OFF)
		c.damage_ppm = unit_below(r, 30000);
	c.latency_ns = unit_below(r, 200 * US);
	c.turn_ns = unit_below(r, 2) ? unit_below(r, 100 * US) : 0;
	c.byte_ps = unit_below(r, 2) ? unit_below(r, 8000) : 0;
	c.copy = unit_below(r, 2);
	c.paged = unit_below(r, 2);
	c.gone_ppm = unit_below(r, 2) ? unit_below(r, 200000) : 0;
	c.pages_most = unit_below(r, 2) ? 8 + unit_below(r, 8) : 0;
	c.page_ns = 1 + unit_below(r, 2 * MS);
	return c;
}

static void any_network_will_do(void)
{
	struct unit_rng r = unit_rng("networks");

	for (int i = 0; i < 30; i++) {
		struct cable_config cfg = some_network(&r);

		tell("any", &cfg, 200);
	}
}

/* --- how fast ----------------------------------------------------------------------------- */

/* Nanoseconds for @total bytes from rank 0 to rank 1, of one source. */
static uint64_t stream(struct cable *c, size_t total)
{
	static unsigned char src[CABLE_WINDOW_BYTES];
	uint64_t begin = c->now_ns;

	for (size_t sent = 0; sent < total; sent += sizeof(src)) {
		size_t done = 0;
		int err;

		while ((err = sul_net_put(c->net[0], 1, 0, 0, src, sizeof(src),
					  &done)) == -EAGAIN)
			CU_ASSERT_FATAL(cable_step(c));
		CU_ASSERT_EQUAL_FATAL(err, 0);
	}
	CU_ASSERT_FATAL(cable_flush(c, 0));
	return c->now_ns - begin;
}

static uint64_t time_with_loss(const struct cable_config *plain,
			       uint32_t loss_ppm)
{
	const struct unit_rng luck = { 1 }; /* always the same */
	struct cable_config cfg = *plain;
	struct cable c;
	uint64_t ns;

	cfg.loss_ppm = loss_ppm;
	cable_open(&c, &cfg, luck);
	ns = stream(&c, STREAM_BYTES);
	cable_close(&c);
	return ns;
}

/* 10 Gb/s and 20 us each way: 1472 bytes and 8972. */
static void a_little_loss_costs_little(void)
{
	struct cable_config cfg = cable_plain(2);

	cfg.auth = SUL_NET_AUTH_OFF;
	cfg.byte_ps = 800;
	cfg.latency_ns = 20 * US;
	cfg.span = 256;
	for (int i = 0; i < 2; i++) {
		uint64_t without = time_with_loss(&cfg, 0);
		uint64_t with = time_with_loss(&cfg, 10000);

		printf("%.0f %.0f MB/s ", STREAM_BYTES * 1e3 / (double)without,
		       STREAM_BYTES * 1e3 / (double)with);
		CU_ASSERT(without <
			  STREAM_BYTES * UINT64_C(800) / 1000 * 115 / 100);
		CU_ASSERT(without * 10 >= with * 7);
		cfg.packet_bytes[0] = cfg.packet_bytes[1] = 8972;
	}
}

/* A line whose queue holds less than the window: it settles, and is used. */
static void a_short_queue_is_not_flooded(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	uint64_t ns;

	cfg.auth = SUL_NET_AUTH_OFF;
	cfg.byte_ps = 8000;
	cfg.span = 1024;
	cfg.queue_ns = 500 * US; /* 42 packets; 100 us are 8 more */
	cable_open(&c, &cfg, unit_rng("queue"));
	ns = stream(&c, 8 << 20);
	printf("%.0f %% used, %.1f %% lost ", (8 << 20) * 8e2 / (double)ns,
	       100. * (double)c.lost / (double)c.sent);
	CU_ASSERT(ns < (8 << 20) * UINT64_C(8) * 3 / 2);
	CU_ASSERT(c.lost * 10 < c.sent);
	cable_close(&c);
}

/* --- several paths -------------------------------------------------------------------------- */

static unsigned int by_path[SUL_NET_PATHS_MAX];

static bool count_paths(struct cable *c, struct cable_packet *p)
{
	(void)c;
	by_path[p->path]++;
	return true;
}

static void a_path_may_die_and_come_back(void)
{
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	uint64_t before, during;

	cfg.paths = 3;
	cable_open(&c, &cfg, unit_rng("paths"));
	c.tap = count_paths;
	memset(by_path, 0, sizeof(by_path));
	before = stream(&c, 4 << 20);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(by_path[i] > 900);
	c.cut_path[1] = true;
	stream(&c, 1 << 20);
	memset(by_path, 0, sizeof(by_path));
	during = stream(&c, 4 << 20);
	CU_ASSERT(by_path[1] < 5);
	CU_ASSERT(during < 2 * before);
	c.cut_path[1] = false;
	cable_run(&c, UINT64_C(6000) * MS);
	memset(by_path, 0, sizeof(by_path));
	stream(&c, 4 << 20);
	CU_ASSERT(by_path[1] > 900);
	CU_ASSERT_EQUAL(sul_net_error(c.net[0]), 0);
	cable_close(&c);
}

/* --- issuing ----------------------------------------------------------------------------------- */

static void issue__refuses_what_does_not_exist(void)
{
	struct cable_config cfg = cable_plain(2);
	struct sul_mark mark = { .off = 4 }, far = { .window = 3 };
	struct sul_mirror mirror = { .flag_off = CABLE_WINDOW_BYTES,
				     .window = 1,
				     .flag_window = 2 };
	struct sul_run run = { 8, 8 }, none = { 8, 0 };
	uint64_t end = CABLE_WINDOW_BYTES, v = 0;
	const struct sul_message messages[] = {
		{ 3, 0, &v, 8, { 8, 16 }, { 0 } },
		{ 0, end - 7, &v, 8, { 8, 16 }, { 0 } },
		{ 0, UINT64_MAX, &v, 8, { 8, 16 }, { 0 } },
		{ 0, 0, &v, SUL_NET_MESSAGE_MAX + 1, { 8, 16 }, { 0 } },
		{ 0, 0, &v, 8, { 4, 16 }, { 0 } },
		{ 0, 0, &v, 8, { 8, end }, { 0 } },
		{ 0, 0, &v, 8, { 8, UINT64_C(1) << 32 }, { 0 } },
	};
	struct sul_net *n;
	struct cable c;
	size_t done = 0;

	cable_open(&c, &cfg, unit_rng("refusals"));
	n = c.net[0];
	for (int rank = -1; rank <= 2; rank++) {
		int expected = rank == 1 ? 0 : -EINVAL;

		CU_ASSERT_EQUAL(sul_net_put(n, rank, 0, 0, &v, 0, &done),
				expected);
	}
	CU_ASSERT_EQUAL(sul_net_put(n, 1, 3, 0, &v, 8, &done), -EINVAL);
	CU_ASSERT_EQUAL(sul_net_put(n, 1, 0, end - 7, &v, 8, &done), -EINVAL);
	CU_ASSERT_EQUAL(sul_net_put(n, 1, 0, UINT64_MAX, &v, 8, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_get(n, 1, 0, end, &v, 1, NULL, 0, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_get(n, 1, 0, 0, &v, 8, &mark, 1, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_get(n, 1, 0, 0, &v, 8, &far, 1, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_get(n, 1, 0, 0, &v, 8, &far, 4, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_putv(n, 1, 0, end - 15, &v, &run, 1, NULL,
				     &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_putv(n, 1, 0, 0, &v, &none, 1, NULL, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_putv(n, 1, 0, 0, &v, &run, 1, &mirror, &done),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_amo(n, 1, 0, 4, SUL_AMO_ADD, 1, 0, NULL),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_amo(n, 1, 0, 0, SUL_AMO_NR, 1, 0, NULL),
			-EINVAL);
	CU_ASSERT_EQUAL(sul_net_notify(n, 1, 0, end, 1), -EINVAL);
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		CU_ASSERT_EQUAL(sul_net_message(n, 1, &messages[i]), -EINVAL);
	CU_ASSERT(sul_net_quiet(n));
	CU_ASSERT_EQUAL(c.sent, 0);
	cable_close(&c);
}

/* All of its memory is known beforehand, and none is taken later. */
static void link_make__leaves_nothing_to_be_allocated(void)
{
	struct cable_config cfg = cable_plain(2);
	size_t bytes = sul_net_link_bytes(1472, cfg.span), done = 0;
	struct cable c;
	uint64_t v = 7;

	cable_open(&c, &cfg, unit_rng("make"));
	for (int i = 0; i < 2; i++) {
		void *memory = calloc(1, bytes);

		REQUIRE(memory);
		CU_ASSERT_EQUAL(sul_net_link_make(c.net[i], i, memory),
				-EINVAL);
		CU_ASSERT_EQUAL(sul_net_link_make(c.net[i], 2, memory),
				-EINVAL);
		CU_ASSERT_EQUAL(sul_net_link_make(c.net[i], 1 - i, memory), 0);
		CU_ASSERT_EQUAL(sul_net_link_make(c.net[i], 1 - i, memory),
				-EEXIST);
		c.allocated += bytes; /* the core gives it back */
	}
	c.allocate_most = 1;
	CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, 8, &v, 8, &done), 0);
	CU_ASSERT(cable_flush(&c, 0));
	CU_ASSERT_EQUAL(*(uint64_t *)(void *)(c.window[1][0] + 8), 7);
	/* Nobody has said a word to rank 0 but to answer: it asks. */
	c.cut[1] = true;
	cable_run(&c, UINT64_C(20000) * MS);
	CU_ASSERT_EQUAL(c.dead[0][1], 1);
	cable_close(&c);
}

static void *no_page(void *ctx, unsigned int w, uint64_t off, uint64_t *len,
		     bool write)
{
	(void)ctx, (void)w, (void)off, (void)len, (void)write;
	return NULL;
}

static void open__refuses_a_configuration_that_cannot_work(void)
{
	static const struct sul_net_env env = { 0 }; /* nothing is asked of it */
	const struct sul_net_config good = {
		.ranks = 2,
		.packet_bytes = 1472,
		.span = 64,
		.session = 1,
		.silence_ns = 1,
		.env = &env,
	};
	static const struct sul_net_env half = { .at = no_page };
	struct sul_net_config bad[10];
	struct sul_net *n;

	for (int i = 0; i < 10; i++)
		bad[i] = good;
	bad[0].rank = 2;
	bad[1].packet_bytes = SUL_NET_PACKET_MIN - 1;
	bad[2].packet_bytes = SUL_NET_PACKET_MAX + 1;
	bad[3].span = 48;
	bad[4].span = 2 * SUL_NET_SPAN_MAX;
	bad[5].session = 0;
	bad[6].windows = SUL_NET_WINDOWS_MAX + 1;
	bad[7].auth = SUL_NET_AUTH_AEAD; /* without a cipher */
	bad[8].batch = SUL_NET_BATCH_MAX + 1;
	bad[9].env = &half; /* nobody would hear what is missing */
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(sul_net_open(&n, &bad[i]), -EINVAL);
}

static void issue__says_when_the_window_is_full_and_goes_on_where_it_was(void)
{
	static unsigned char src[CABLE_WINDOW_BYTES], dst[CABLE_WINDOW_BYTES];
	struct cable_config cfg = cable_plain(2);
	struct cable c;
	size_t done = 0;
	unsigned int rounds = 0;
	int err;

	cfg.span = SUL_NET_SPAN_MIN;
	cable_open(&c, &cfg, unit_rng("full"));
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (unsigned char)unit_next(&c.rng);
	while ((err = sul_net_put(c.net[0], 1, 0, 0, src, sizeof(src),
				  &done)) == -EAGAIN) {
		uint64_t v = 1;
		size_t none = 0;

		CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 1, 0, &v, 8, &none),
				-EAGAIN);
		CU_ASSERT_EQUAL(none, 0);
		CU_ASSERT_EQUAL(sul_net_amo(c.net[0], 1, 1, 0, SUL_AMO_ADD, 1,
					    0, NULL),
				-EAGAIN);
		CU_ASSERT_FATAL(cable_step(&c));
		rounds++;
	}
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT(rounds > 10);
	CU_ASSERT_FATAL(cable_flush(&c, 0));
	CU_ASSERT(!memcmp(c.window[1][0], src, sizeof(src)));
	CU_ASSERT_EQUAL(*(uint64_t *)(void *)c.window[1][1], 0);
	done = 0;
	while (sul_net_get(c.net[0], 1, 0, 0, dst, sizeof(dst), NULL, 0,
			   &done) == -EAGAIN)
		CU_ASSERT_FATAL(cable_step(&c));
	CU_ASSERT_FATAL(cable_flush(&c, 0));
	CU_ASSERT(!memcmp(dst, src, sizeof(src)));
	cable_close(&c);
}

/* Where the frames of every packet begin and end in the target's window. */
struct cuts {
	uint64_t begin, end; /* of the operation */
	unsigned int frames, within_words;
};

static void note_cut(struct cuts *k, uint64_t at)
{
	k->within_words += at != k->begin && at != k->end && at % 8;
}

static bool watch_cuts(struct cable *c, struct cable_packet *p)
{
	struct cuts *k = c->tap_ctx;
	struct sul_wire_reader r = { p->bytes + 64, p->len - 64,
				     p->bytes[1] & SUL_WIRE_ANSWERS ?
					     SUL_ANSWERS :
					     SUL_REQUESTS };
	const unsigned char *body;
	struct sul_wire_frame f;

	while (sul_wire_next(&r, &f, &body) == SUL_WIRE_FRAME) {
		uint64_t at = f.off, len = f.bytes - 16;

		if (f.kind == SUL_FRAME_PUTV) {
			struct sul_run run;

			memcpy(&run, body + sizeof(struct sul_wire_putv), 8);
			at += run.off;
			len = run.len;
		} else if (f.kind == SUL_FRAME_DATA) {
			at += k->begin;
			len -= sizeof(struct sul_wire_answer);
		} else if (f.kind != SUL_FRAME_PUT) {
			continue;
		}
		k->frames++;
		note_cut(k, at);
		note_cut(k, at + len);
	}
	return true;
}

static void long_operations_are_cut_between_words(void)
{
	static unsigned char src[CABLE_WINDOW_BYTES];
	struct cable_config cfg = cable_plain(2);
	struct cuts cuts = { 0 };
	struct cable c;

	cfg.auth = SUL_NET_AUTH_OFF;
	cfg.span = 256;
	cfg.packet_bytes[0] = 1000;
	cable_open(&c, &cfg, unit_rng("cuts"));
	c.tap = watch_cuts;
	c.tap_ctx = &cuts;
	for (uint32_t i = 0; i < 300; i++) {
		struct sul_run run = { unit_below(&c.rng, 100),
				       1 + unit_below(&c.rng, 20000) };
		size_t put = 0, get = 0, putv = 0;

		cuts.begin = run.off;
		cuts.end = run.off + run.len;
		CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, run.off, src,
					    run.len, &put),
				0);
		CU_ASSERT(cable_flush(&c, 0));
		CU_ASSERT_EQUAL(sul_net_get(c.net[0], 1, 0, run.off, src,
					    run.len, NULL, 0, &get),
				0);
		CU_ASSERT(cable_flush(&c, 0));
		CU_ASSERT_EQUAL(sul_net_putv(c.net[0], 1, 0, 0, src, &run, 1,
					     NULL, &putv),
				0);
		CU_ASSERT(cable_flush(&c, 0));
	}
	CU_ASSERT(cuts.frames > 300 * 3 * 10);
	CU_ASSERT_EQUAL(cuts.within_words, 0);
	cable_close(&c);
}

/* Full packets all have one size, so that a carrier can hand them on at once. */
static void long_puts_are_packets_of_one_size(void)
{
	static unsigned char src[1 << 16];
	struct cable_config cfg = cable_plain(2);
	struct sul_packet p;
	unsigned int nr = 0, full = 0;
	struct cable c;
	size_t done = 0;

	cfg.span = 64;
	cable_open(&c, &cfg, unit_rng("sizes"));
	CU_ASSERT_EQUAL(sul_net_put(c.net[0], 1, 0, 0, src, sizeof(src), &done),
			0);
	while (sul_net_output(c.net[0], c.now_ns, &p)) {
		nr++;
		full += p.head_len + p.body_len == 1472;
		CU_ASSERT(!p.body ||
			  ((const unsigned char *)p.body >= src &&
			   (const unsigned char *)p.body < src + sizeof(src)));
	}
	CU_ASSERT_EQUAL(nr, 8); /* as much as an unknown peer takes */
	CU_ASSERT_EQUAL(full, nr);
	cable_close(&c);
}

CU_TestInfo test_sul_net[] = {
	{ "operations take effect in order", operations_take_effect_in_order },
	{ "nothing is lost, doubled or out of order",
	  nothing_is_lost_doubled_or_out_of_order },
	{ "damaged packets are lost packets",
	  damaged_packets_are_lost_packets },
	{ "sequence numbers wrap around", sequence_numbers_wrap_around },
	{ "packets can have any size", packets_can_have_any_size },
	{ "a request waits for its pages, and later ones behind it",
	  a_request_waits_for_its_pages_and_later_ones_behind_it },
	{ "any network will do", any_network_will_do },
	{ "a little loss costs little", a_little_loss_costs_little },
	{ "a short queue is not flooded", a_short_queue_is_not_flooded },
	{ "a path may die and come back", a_path_may_die_and_come_back },
	{ "issue: refuses what does not exist",
	  issue__refuses_what_does_not_exist },
	{ "open: refuses a configuration that cannot work",
	  open__refuses_a_configuration_that_cannot_work },
	{ "link make: leaves nothing to be allocated",
	  link_make__leaves_nothing_to_be_allocated },
	{ "issue: says when the window is full and goes on where it was",
	  issue__says_when_the_window_is_full_and_goes_on_where_it_was },
	{ "long operations are cut between words",
	  long_operations_are_cut_between_words },
	{ "long puts are packets of one size",
	  long_puts_are_packets_of_one_size },
	CU_TEST_INFO_NULL,
};
