/* SPDX-License-Identifier: MIT */
/*
 * test_sul_wire.c - headers and frames: what was written is read, and nothing
 * is read that is not there.
 */
#include "sul_wire.h"
#include "tests.h"
#include "unit_seed.h"

static struct sul_wire_head some_head(void)
{
	return (struct sul_wire_head){
		.version = SUL_WIRE_VERSION,
		.flags = SUL_WIRE_SEQUENCED | SUL_WIRE_SACK,
		.payload = 24,
		.from = 0x0102,
		.to = 0x0304,
		.session = 0x05060708,
		.seq = 0x090a0b0c,
		.number = 0x1112131415161718,
		.ack = { 0x191a1b1c, 0x1d1e1f20 },
		.sack = 0x2122232425262728,
		.credit = 0x292a,
		.path = 1,
		.echo_path = 2,
		.stamp = 0x2d2e2f30,
		.echo = 0x31323334,
		.held = 0x35363738,
		.mac = 0x393a3b3c3d3e3f40,
	};
}

static void head__is_little_endian_and_reads_back(void)
{
	static const unsigned char expected[64] = {
		2,    9,    24,	  0,	0x02, 0x01, 0x04, 0x03, 0x08, 0x07,
		0x06, 0x05, 0x0c, 0x0b, 0x0a, 0x09, 0x18, 0x17, 0x16, 0x15,
		0x14, 0x13, 0x12, 0x11, 0x1c, 0x1b, 0x1a, 0x19, 0x20, 0x1f,
		0x1e, 0x1d, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
		0x2a, 0x29, 1,	  2,	0x30, 0x2f, 0x2e, 0x2d, 0x34, 0x33,
		0x32, 0x31, 0x38, 0x37, 0x36, 0x35, 0x40, 0x3f, 0x3e, 0x3d,
		0x3c, 0x3b, 0x3a, 0x39,
	};
	struct sul_wire_head h = some_head(), back;
	unsigned char packet[64 + 24] = { 0 };

	sul_wire_head_write(packet, &h);
	CU_ASSERT(!memcmp(packet, expected, sizeof(expected)));
	CU_ASSERT(sul_wire_head_read(&back, packet, sizeof(packet), 0));
	CU_ASSERT(!memcmp(&h, &back, sizeof(h)));
}

static void head_read__refuses_what_does_not_fit(void)
{
	struct sul_wire_head h = some_head(), back;
	unsigned char packet[64 + 24 + 16] = { 0 };

	sul_wire_head_write(packet, &h);
	CU_ASSERT(sul_wire_head_read(&back, packet, 88, 0));
	CU_ASSERT(sul_wire_head_read(&back, packet, 104, 16));
	CU_ASSERT(!sul_wire_head_read(&back, packet, 104, 0));
	CU_ASSERT(!sul_wire_head_read(&back, packet, 88, 16));
	for (size_t len = 0; len < 88; len++)
		CU_ASSERT(!sul_wire_head_read(&back, packet, len, 0));
	packet[0] = SUL_WIRE_VERSION + 1;
	CU_ASSERT(!sul_wire_head_read(&back, packet, 88, 0));
	packet[0] = SUL_WIRE_VERSION;
	packet[1] = 0x80;
	CU_ASSERT(!sul_wire_head_read(&back, packet, 88, 0));
	sul_wire_head_write(packet, &h);
	for (int at = 42; at < 44; at++) { /* path, echo_path */
		packet[at] += SUL_PATHS_MAX;
		CU_ASSERT(!sul_wire_head_read(&back, packet, 88, 0));
		packet[at] -= SUL_PATHS_MAX;
	}
	CU_ASSERT(sul_wire_head_read(&back, packet, 88, 0));
}

/* --- frames ---------------------------------------------------------------------- */

static const struct {
	enum sul_lane_nr lane;
	uint32_t bytes; /* of its fixed part */
} kinds[SUL_FRAME_KINDS] = {
#define FRAME(NAME, function, lane, bytes, doc) \
	[SUL_FRAME_##NAME] = { lane, bytes },
#include "sul_wire.def"
};

static size_t add_frame(unsigned char *payload, size_t at, uint8_t kind,
			uint32_t bytes)
{
	struct sul_wire_frame f = { .kind = kind, .bytes = bytes, .off = at };

	sul_wire_frame_write(payload + at, f);
	return at + sul_wire_padded(bytes);
}

static void next__walks_over_frames_of_any_length(void)
{
	unsigned char payload[256] = { 0 };
	struct sul_wire_reader r = { payload, 0, SUL_REQUESTS };
	const unsigned char *body;
	struct sul_wire_frame f;

	r.left = add_frame(payload, 0, SUL_FRAME_PUT, 16 + 3);
	r.left = add_frame(payload, r.left, SUL_FRAME_NOTIFY, 24);
	r.left = add_frame(payload, r.left, SUL_FRAME_PUT, 16 + 5) - 3;
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_FRAME);
	CU_ASSERT(f.kind == SUL_FRAME_PUT && f.bytes == 19 && !f.off);
	CU_ASSERT_PTR_EQUAL(body, payload + 16);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_FRAME);
	CU_ASSERT(f.kind == SUL_FRAME_NOTIFY && f.off == 24);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_FRAME);
	CU_ASSERT(f.bytes == 21 && f.off == 48);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_END);
}

static enum sul_wire_next first_of(enum sul_lane_nr lane, unsigned int kind,
				   uint32_t bytes, size_t left)
{
	unsigned char payload[256] = { 0 };
	struct sul_wire_reader r = { payload, left, lane };
	const unsigned char *body;
	struct sul_wire_frame f;

	add_frame(payload, 0, (uint8_t)kind, bytes);
	return sul_wire_next(&r, &f, &body);
}

static void next__refuses_what_does_not_fit(void)
{
	for (unsigned int k = 1; k < SUL_FRAME_KINDS; k++) {
		enum sul_lane_nr lane = kinds[k].lane;
		uint32_t bytes = kinds[k].bytes;

		CU_ASSERT_EQUAL(first_of(lane, k, bytes, bytes),
				SUL_WIRE_FRAME);
		CU_ASSERT_EQUAL(first_of(lane, k, bytes + 4, bytes + 8),
				SUL_WIRE_FRAME);
		CU_ASSERT_EQUAL(first_of(lane, k, bytes + 1, bytes),
				SUL_WIRE_NONSENSE);
		CU_ASSERT_EQUAL(first_of(lane, k, UINT32_MAX, bytes),
				SUL_WIRE_NONSENSE);
		CU_ASSERT_EQUAL(first_of(lane, k, bytes - 1, 64),
				SUL_WIRE_NONSENSE);
		CU_ASSERT_EQUAL(first_of(lane, k, bytes, bytes - 1),
				SUL_WIRE_NONSENSE);
	}
	for (enum sul_lane_nr l = 0; l <= SUL_UNSEQUENCED; l++) {
		CU_ASSERT_EQUAL(first_of(l, SUL_FRAME_NONE, 64, 64),
				SUL_WIRE_NONSENSE);
		CU_ASSERT_EQUAL(first_of(l, SUL_FRAME_KINDS, 64, 64),
				SUL_WIRE_NONSENSE);
		CU_ASSERT_EQUAL(first_of(l, 255, 64, 64), SUL_WIRE_NONSENSE);
	}
}

static void next__takes_a_frame_on_its_own_lane_only(void)
{
	for (unsigned int k = 1; k < SUL_FRAME_KINDS; k++)
		for (enum sul_lane_nr l = 0; l <= SUL_UNSEQUENCED; l++)
			CU_ASSERT_EQUAL(first_of(l, k, 64, 64),
					l == kinds[k].lane ? SUL_WIRE_FRAME :
							     SUL_WIRE_NONSENSE);
}

static void next__goes_on_behind_a_frame_that_makes_no_sense(void)
{
	unsigned char payload[64] = { 0 };
	struct sul_wire_reader r = { payload, 0, SUL_ANSWERS };
	const unsigned char *body;
	struct sul_wire_frame f;

	r.left = add_frame(payload, 0, SUL_FRAME_PUT, 17);
	r.left = add_frame(payload, r.left, SUL_FRAME_OLD, 24);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_NONSENSE);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_FRAME);
	CU_ASSERT_EQUAL(f.kind, SUL_FRAME_OLD);
	CU_ASSERT_EQUAL(sul_wire_next(&r, &f, &body), SUL_WIRE_END);
}

/* In memory that ends where the payload does: a sanitizer sees the rest. */
static void next__ends_whatever_the_bytes_are(void)
{
	struct unit_rng rng = unit_rng("bytes");

	for (int i = 0; i < 20000; i++) {
		size_t len = unit_below(&rng, 120);
		unsigned char *payload = malloc(len + !len);
		struct sul_wire_reader r = { payload, len,
					     unit_below(&rng, 3) };
		const unsigned char *body;
		struct sul_wire_frame f;
		enum sul_wire_next next;
		unsigned int frames = 0;

		REQUIRE(payload);
		for (size_t k = 0; k < len; k++) /* small numbers are likely */
			payload[k] =
				(unsigned char)(unit_below(&rng, 4) ?
							0 :
							unit_next(&rng) & 31);
		while ((next = sul_wire_next(&r, &f, &body))) {
			CU_ASSERT_FATAL(++frames <= 120 / 16 + 1);
			if (next == SUL_WIRE_FRAME)
				CU_ASSERT_FATAL(body + f.bytes - sizeof(f) <=
						payload + len);
		}
		free(payload);
	}
}

CU_TestInfo test_sul_wire[] = {
	{ "head: is little-endian and reads back",
	  head__is_little_endian_and_reads_back },
	{ "head_read: refuses what does not fit",
	  head_read__refuses_what_does_not_fit },
	{ "next: walks over frames of any length",
	  next__walks_over_frames_of_any_length },
	{ "next: refuses what does not fit", next__refuses_what_does_not_fit },
	{ "next: takes a frame on its own lane only",
	  next__takes_a_frame_on_its_own_lane_only },
	{ "next: goes on behind a frame that makes no sense",
	  next__goes_on_behind_a_frame_that_makes_no_sense },
	{ "next: ends whatever the bytes are",
	  next__ends_whatever_the_bytes_are },
	CU_TEST_INFO_NULL,
};
