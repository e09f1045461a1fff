/* SPDX-License-Identifier: MIT */
/*
 * sul_wire.c - headers and frames, written and read.
 *
 * Role:      the one place that knows where in a packet what lies.
 * Invariant: nothing is read behind the end of what has arrived; a frame that
 *            is handed out lies in its packet completely.
 * Threads:   any; pure.
 */
#include "sul_wire.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static void head_order(struct sul_wire_head *h)
{
	(void)h;
}
#else
static void head_order(struct sul_wire_head *h)
{
	h->payload = SUL_LE16(h->payload);
	h->from = SUL_LE16(h->from);
	h->to = SUL_LE16(h->to);
	h->session = SUL_LE32(h->session);
	h->seq = SUL_LE32(h->seq);
	h->number = SUL_LE64(h->number);
	for (int i = 0; i < SUL_LANES; i++)
		h->ack[i] = SUL_LE32(h->ack[i]);
	h->sack = SUL_LE64(h->sack);
	h->credit = SUL_LE16(h->credit);
	h->stamp = SUL_LE32(h->stamp);
	h->echo = SUL_LE32(h->echo);
	h->held = SUL_LE32(h->held);
	h->mac = SUL_LE64(h->mac);
}
#endif

void sul_wire_head_write(void *packet, const struct sul_wire_head *h)
{
	struct sul_wire_head le = *h;

	head_order(&le);
	memcpy(packet, &le, sizeof(le));
}

bool sul_wire_head_read(struct sul_wire_head *out, const void *packet,
			size_t len, size_t trailer)
{
	if (len < sizeof(*out) + trailer)
		return false;
	memcpy(out, packet, sizeof(*out));
	head_order(out);
	return out->version == SUL_WIRE_VERSION &&
	       !(out->flags & ~SUL_WIRE_FLAGS_ALL) &&
	       out->path < SUL_PATHS_MAX && out->echo_path < SUL_PATHS_MAX &&
	       out->payload == len - sizeof(*out) - trailer;
}

static struct sul_wire_frame frame_order(struct sul_wire_frame f)
{
	f.window = SUL_LE16(f.window);
	f.bytes = SUL_LE32(f.bytes);
	f.off = SUL_LE64(f.off);
	return f;
}

void sul_wire_frame_write(void *at, struct sul_wire_frame f)
{
	f = frame_order(f);
	memcpy(at, &f, sizeof(f));
}

static const struct {
	enum sul_lane_nr lane;
	uint32_t bytes;
} forms[SUL_FRAME_KINDS] = {
	[SUL_FRAME_NONE] = { SUL_UNSEQUENCED, UINT32_MAX },
#define FRAME(NAME, function, lane, bytes, doc) \
	[SUL_FRAME_##NAME] = { lane, bytes },
#include "sul_wire.def"
};

enum sul_wire_next sul_wire_next(struct sul_wire_reader *r,
				 struct sul_wire_frame *f,
				 const unsigned char **body)
{
	size_t step;

	if (!r->left)
		return SUL_WIRE_END;
	if (r->left < sizeof(*f)) {
		r->left = 0;
		return SUL_WIRE_NONSENSE;
	}
	memcpy(f, r->at, sizeof(*f));
	*f = frame_order(*f);
	if (f->bytes < sizeof(*f) || f->bytes > r->left) {
		r->left = 0; /* where would the next one begin? */
		return SUL_WIRE_NONSENSE;
	}
	*body = r->at + sizeof(*f);
	step = sul_wire_padded(f->bytes);
	if (step > r->left) /* the last one is not filled up */
		step = r->left;
	r->at += step;
	r->left -= step;
	if (f->kind >= SUL_FRAME_KINDS || forms[f->kind].lane != r->lane ||
	    f->bytes < forms[f->kind].bytes)
		return SUL_WIRE_NONSENSE;
	return SUL_WIRE_FRAME;
}
