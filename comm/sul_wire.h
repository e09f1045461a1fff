/* SPDX-License-Identifier: MIT */
/*
 * sul_wire.h - what packets look like.
 *
 * A packet is a header of 64 bytes and a payload: frames one behind the other,
 * each beginning at a multiple of 8 bytes.  All numbers are little-endian; the
 * structures below are what is on the wire, no unnamed byte between.
 *
 * Whatever is read here has come from outside: every length is checked against
 * what has arrived before a byte behind it is looked at.
 */
#ifndef SUL_WIRE_H
#define SUL_WIRE_H

#include "sul_pure.h"

#include "sul_abi.h"
#include "sul_path.h"

enum {
	SUL_WIRE_VERSION = 2, /* 2: MESSAGE, FAREWELL */
	SUL_WIRE_ALIGN = 8,
};

enum sul_lane_nr {
	SUL_REQUESTS,
	SUL_ANSWERS,
	SUL_LANES,
	SUL_UNSEQUENCED = SUL_LANES
};

enum sul_wire_flag {
	SUL_WIRE_SEQUENCED =
		1, /* @seq counts; else the packet is no part of a lane */
	SUL_WIRE_ANSWERS = 2, /* the lane of @seq is that of the answers */
	SUL_WIRE_HURRY = 4, /* acknowledge at once */
	SUL_WIRE_SACK = 8, /* @sack is of the requests ... */
	SUL_WIRE_SACK_ANSWERS = 16, /* ... or of the answers */
	SUL_WIRE_ECHO = 32, /* @echo and @held count */
	SUL_WIRE_PART = 64, /* there are kept ones that @sack does not tell */
	SUL_WIRE_FLAGS_ALL = 127
};

/**
 * struct sul_wire_head - the header of a packet.
 * @payload: bytes behind the header (without an AEAD's tag).
 * @from, @to: ranks.
 * @session: of this direction of the link: of both ranks' lives.
 * @seq:     the packet's place in its lane.
 * @number:  counts the packets of this direction; used once, under any seq.
 * @ack:     per lane: the first packet that has not been executed yet.
 * @sack:    bit i: packet ack + 1 + i is kept.
 * @credit:  that many packets from @ack on can be taken, in either lane.
 * @path:    over which it was sent; @echo_path: of the packet of @echo.
 * @stamp:   when it was sent, in microseconds of the sender's clock.
 * @echo:    the latest stamp that has arrived here, @held microseconds ago.
 * @mac:     over header (with 0 here) and payload.
 */
struct sul_wire_head {
	uint8_t version;
	uint8_t flags;
	uint16_t payload;
	uint16_t from, to;
	uint32_t session;
	uint32_t seq;
	uint64_t number;
	uint32_t ack[SUL_LANES];
	uint64_t sack;
	uint16_t credit;
	uint8_t path, echo_path;
	uint32_t stamp;
	uint32_t echo, held;
	uint64_t mac;
};

enum sul_frame_kind {
	SUL_FRAME_NONE,
#define FRAME(NAME, function, lane, bytes, doc) SUL_FRAME_##NAME,
#include "sul_wire.def"
	SUL_FRAME_KINDS
};

/**
 * struct sul_wire_frame - how every frame begins.
 * @kind:   enum sul_frame_kind.
 * @aux:    GET: marks; AMO: enum sul_amo_op; PUTV: 1 with a mirror; SACK: the
 *          lane (enum sul_lane_nr).
 * @window: on which it works; 0 in answers.
 * @bytes:  of the whole frame, without what fills it up to a multiple of 8.
 * @off:    where in the window; OLD: the value; DATA: where in the get; SACK:
 *          the packet of the first bit.
 */
struct sul_wire_frame {
	uint8_t kind;
	uint8_t aux;
	uint16_t window;
	uint32_t bytes;
	uint64_t off;
};

/* What follows it, by kind. */
struct sul_wire_putv {
	uint64_t flag_off;
	uint32_t runs;
	uint16_t mirror, flag_window;
	/* struct sul_run[runs]; their bytes, one behind the other */
};

struct sul_wire_get {
	uint32_t tag;
	uint32_t len;
	/* struct sul_wire_mark[aux] */
};

struct sul_wire_mark {
	uint64_t off, bits;
	uint32_t window, reserved;
};

struct sul_wire_amo {
	uint32_t tag;
	uint32_t reserved;
	uint64_t operand, comparand;
};

struct sul_wire_notify {
	uint32_t value;
	uint32_t reserved;
};

/* All in the window of the bytes. */
struct sul_wire_message {
	uint32_t word[2]; /* where the words lie; the second is notified */
	uint32_t value[2];
	/* the bytes */
};

struct sul_wire_answer { /* of DATA and OLD */
	uint32_t tag;
	uint32_t reserved;
	/* DATA: the bytes */
};

enum {
	SUL_WIRE_HEAD_BYTES = sizeof(struct sul_wire_head),
	SUL_WIRE_FRAME_BYTES = sizeof(struct sul_wire_frame),
	SUL_WIRE_NO_TAG = 0, /* nobody waits for an answer */
};

SUL_SIZE_ASSERT(struct sul_wire_head, 64);
SUL_SIZE_ASSERT(struct sul_wire_frame, 16);
SUL_SIZE_ASSERT(struct sul_wire_putv, 16);
SUL_SIZE_ASSERT(struct sul_wire_get, 8);
SUL_SIZE_ASSERT(struct sul_wire_mark, 24);
SUL_SIZE_ASSERT(struct sul_wire_amo, 24);
SUL_SIZE_ASSERT(struct sul_wire_notify, 8);
SUL_SIZE_ASSERT(struct sul_wire_message, 16);
SUL_SIZE_ASSERT(struct sul_wire_answer, 8);

static inline size_t sul_wire_padded(size_t bytes)
{
	return (bytes + SUL_WIRE_ALIGN - 1) & ~(size_t)(SUL_WIRE_ALIGN - 1);
}

/* --- writing ---------------------------------------------------------------- */

void sul_wire_head_write(void *packet, const struct sul_wire_head *h);
/* The code alone, into a header that is there. */
static inline void sul_wire_mac_write(void *packet, uint64_t mac)
{
	mac = SUL_LE64(mac);
	memcpy((char *)packet + offsetof(struct sul_wire_head, mac), &mac,
	       sizeof(mac));
}
void sul_wire_frame_write(void *at, struct sul_wire_frame f);

/* --- reading ---------------------------------------------------------------- */

/* False: too short or too long for what it says, of another version, or by a
 * path that cannot be.
 * @trailer: bytes behind the payload. */
bool sul_wire_head_read(struct sul_wire_head *out, const void *packet,
			size_t len, size_t trailer);

struct sul_wire_reader {
	const unsigned char *at;
	size_t left;
	enum sul_lane_nr lane; /* whose frames are allowed */
};

enum sul_wire_next {
	SUL_WIRE_END,
	SUL_WIRE_FRAME,
	SUL_WIRE_NONSENSE, /* one frame, or all that is left, was skipped */
};

/* The next frame; @body (of f->bytes - SUL_WIRE_FRAME_BYTES bytes, and never
 * less than its fixed part) lies in the packet. */
enum sul_wire_next sul_wire_next(struct sul_wire_reader *r,
				 struct sul_wire_frame *f,
				 const unsigned char **body);

#endif /* SUL_WIRE_H */
