/* SPDX-License-Identifier: MIT */
/*
 * sul_net_output.c - packets leave.
 *
 * Role:      which link's which packet is next; its header, number and code.
 * Invariant: a number is used once.  What every packet says of what has come is
 *            of the moment at which it is sent.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

/* --- header ------------------------------------------------------------------------ */

/* Has a lane kept more than a header can say? */
static bool header_is_too_small(const struct sul_net_link *l)
{
	return l->lane[SUL_REQUESTS].held ||
	       (l->lane[0].in.kept && l->lane[1].in.kept) ||
	       sul_receiver_reach(&l->lane[0].in) > 64 ||
	       sul_receiver_reach(&l->lane[1].in) > 64;
}

static void tell_received(const struct sul_net_link *l, struct sul_wire_head *h)
{
	static const uint8_t flag[SUL_LANES] = { SUL_WIRE_SACK,
						 SUL_WIRE_SACK_ANSWERS };

	for (int i = 0; i < SUL_LANES; i++) {
		const struct sul_receiver *in = &l->lane[i].in;

		h->ack[i] = in->next;
		if (!in->kept || h->sack)
			continue;
		h->sack = sul_receiver_bits(in, in->next + 1);
		h->flags |= h->sack ? flag[i] : 0;
	}
	if (header_is_too_small(l))
		h->flags |= SUL_WIRE_PART;
}

/* Nothing is owed any more once this is on its way. */
static void tell_all(const struct sul_net *n, struct sul_net_link *l,
		     struct sul_wire_head *h)
{
	tell_received(l, h);
	h->credit = (uint16_t)n->cfg.span;
	h->stamp = (uint32_t)(n->now_ns / 1000);
	if (l->echo_ns) {
		h->flags |= SUL_WIRE_ECHO;
		h->echo = l->echo;
		h->echo_path = l->echo_path;
		h->held = (uint32_t)((n->now_ns - l->echo_ns) / 1000);
	}
	for (int i = 0; i < SUL_LANES; i++)
		l->lane[i].owed = 0;
	l->ack_now = false;
	l->ack_ns = SUL_ENGINE_NEVER;
}

static void expect_answer(struct sul_net *n, struct sul_net_link *l)
{
	if (!l->asked_ns)
		l->asked_ns = n->now_ns;
	l->ping_ns = n->now_ns + n->cfg.silence_ns / 32;
}

/* --- authentication ------------------------------------------------------------------ */

static void sign(struct sul_net *n, struct sul_net_link *l, unsigned char *head,
		 const struct sul_packet *p)
{
	sul_wire_mac_write(head, sul_net_code(sul_net_peer_of(n, l)->key_out,
					      &l->bulk_out, head,
					      head + SUL_WIRE_HEAD_BYTES,
					      p->head_len - SUL_WIRE_HEAD_BYTES,
					      p->body, p->body_len));
}

/* Header, payload and tag go to a place of their own: the original must stay
 * as it is, to be sent again. */
static void seal(struct sul_net *n, struct sul_net_link *l,
		 const struct sul_wire_head *h, struct sul_packet *p)
{
	const struct sul_net_peer *peer = sul_net_peer_of(n, l);
	unsigned char *to = n->sealed + (size_t)n->batch * n->cfg.packet_bytes;
	unsigned char *body = to + SUL_WIRE_HEAD_BYTES;
	size_t first = p->head_len - SUL_WIRE_HEAD_BYTES;

	memcpy(to, p->head, p->head_len);
	if (p->body_len)
		memcpy(to + p->head_len, p->body, p->body_len);
	n->cfg.env->seal(n->cfg.env_ctx, (const unsigned char *)peer->key_out,
			 h->number, to, SUL_WIRE_HEAD_BYTES, body,
			 first + p->body_len, body);
	p->head = to;
	p->head_len += p->body_len + SUL_NET_SEAL_TAG_BYTES;
	p->body = NULL;
	p->body_len = 0;
}

/* The packet at @head, which may go on at p->body, leaves. */
static void finish(struct sul_net *n, struct sul_net_link *l,
		   struct sul_wire_head *h, unsigned char *head,
		   struct sul_packet *p)
{
	h->version = SUL_WIRE_VERSION;
	h->payload =
		(uint16_t)(p->head_len + p->body_len - SUL_WIRE_HEAD_BYTES);
	h->from = (uint16_t)n->cfg.rank;
	h->to = (uint16_t)l->rank;
	h->session = sul_net_peer_of(n, l)->session_out;
	h->number = ++l->number;
	tell_all(n, l, h);
	if (h->flags & (SUL_WIRE_SEQUENCED | SUL_WIRE_HURRY))
		expect_answer(n, l);
	p->head = head;
	p->rank = l->rank;
	p->path = h->path;
	sul_wire_head_write(head, h);
	if (n->cfg.auth == SUL_NET_AUTH_MAC)
		sign(n, l, head, p);
	else if (n->cfg.auth == SUL_NET_AUTH_AEAD)
		seal(n, l, h, p);
	n->batch = n->batch + 1 < n->cfg.batch ? n->batch + 1 : 0;
	n->stats.packets_out++;
	n->stats.bytes_out += p->head_len + p->body_len;
}

/* --- packets of a lane ----------------------------------------------------------------- */

static void send_picked(struct sul_net *n, struct sul_net_link *l,
			enum sul_lane_nr lane, uint32_t seq,
			struct sul_packet *out)
{
	struct sul_net_lane *at = &l->lane[lane];
	struct sul_wire_head h = { .flags = SUL_WIRE_SEQUENCED, .seq = seq };
	struct sul_net_slot *s = &at->slots[seq & (at->out.span - 1)];
	struct sul_sent *sent = sul_sender_at(&at->out, seq);

	n->stats.resent += sent->state != SUL_SENT_FRESH;
	sent->path = h.path = (uint8_t)sul_paths_pick(
		&l->paths, sent->state == SUL_SENT_FRESH ? -1 : sent->path);
	if (sul_sender_sent(&at->out, seq, s->hurry, n->now_ns))
		h.flags |= SUL_WIRE_HURRY;
	if (lane == SUL_ANSWERS)
		h.flags |= SUL_WIRE_ANSWERS;
	out->head_len = s->head_len;
	out->body = s->body;
	out->body_len = s->body_len;
	out->kind = s->head[SUL_WIRE_HEAD_BYTES];
	finish(n, l, &h, s->head, out);
}

static bool lane_packet(struct sul_net *n, struct sul_net_link *l,
			enum sul_lane_nr lane, struct sul_packet *out)
{
	struct sul_sender *s = &l->lane[lane].out;
	uint32_t seq;

	if (!sul_sender_pick(s, &seq))
		return false;
	send_picked(n, l, lane, seq, out);
	return true;
}

/* --- packets of none ---------------------------------------------------------------------- */

/* The first bit is the packet that is held, or the one behind the next. */
static unsigned char *write_sack(unsigned char *at, unsigned int lane,
				 const struct sul_net_lane *l)
{
	const struct sul_receiver *in = &l->in;
	uint32_t first = in->next + !l->held;
	uint32_t words = (sul_receiver_reach(in) + l->held + 63) / 64;
	struct sul_wire_frame f = {
		.kind = SUL_FRAME_SACK,
		.aux = (uint8_t)lane,
		.bytes = (uint32_t)(SUL_WIRE_FRAME_BYTES + 8 * words),
		.off = first,
	};

	sul_wire_frame_write(at, f);
	at += SUL_WIRE_FRAME_BYTES;
	for (uint32_t i = 0; i < words; i++, at += 8) {
		uint64_t bits = sul_receiver_bits(in, first + 64 * i);

		bits = SUL_LE64(bits | (l->held && !i));
		memcpy(at, &bits, sizeof(bits));
	}
	return at;
}

/* An answer goes back the way the question came: that one works. */
static uint8_t bare_path(struct sul_net_link *l)
{
	int path = l->try_path;

	l->try_path = -1;
	if (path < 0 && !l->ask_now && l->back < l->paths.nr)
		path = (int)l->back;
	if (path < 0)
		path = (int)sul_paths_pick(&l->paths, -1);
	return (uint8_t)path;
}

static void bare_packet(struct sul_net *n, struct sul_net_link *l,
			struct sul_packet *out)
{
	unsigned char *head = n->bare[n->batch];
	unsigned char *at = head + SUL_WIRE_HEAD_BYTES;
	bool ask = l->ask_now || l->try_path >= 0;
	struct sul_wire_head h = { .flags = ask ? SUL_WIRE_HURRY : 0,
				   .path = bare_path(l) };

	if (header_is_too_small(l))
		for (unsigned int i = 0; i < SUL_LANES; i++)
			if (l->lane[i].in.kept || l->lane[i].held)
				at = write_sack(at, i, &l->lane[i]);
	if (ask)
		sul_sender_ask(&l->lane[SUL_REQUESTS].out, n->now_ns);
	n->stats.acks_out += !ask;
	l->ask_now = false;
	out->head_len = (unsigned int)(at - head);
	out->body = NULL;
	out->body_len = 0;
	out->kind = at > head + SUL_WIRE_HEAD_BYTES ? SUL_FRAME_SACK :
						      SUL_FRAME_NONE;
	finish(n, l, &h, head, out);
}

/* --- whose turn it is ------------------------------------------------------------------------ */

static bool link_packet(struct sul_net *n, struct sul_net_link *l,
			struct sul_packet *out)
{
	/* A header could not say it all: say it first. */
	if (l->ack_now && header_is_too_small(l)) {
		bare_packet(n, l, out);
		return true;
	}
	for (int i = SUL_LANES - 1; i >= 0; i--) /* answers first */
		if (!sul_sender_rests(&l->lane[i].out) &&
		    lane_packet(n, l, (enum sul_lane_nr)i, out))
			return true;
	if (!l->ack_now && !l->ask_now && l->try_path < 0)
		return false;
	bare_packet(n, l, out);
	return true;
}

static void next_turn(struct sul_net *n, struct sul_net_link *l)
{
	if (++l->turn < SUL_NET_TURN)
		return;
	l->turn = 0;
	sul_net_ring_leave(&l->ready);
	sul_net_ring_join(&n->ready, &l->ready);
}

bool sul_net_output(struct sul_net *n, uint64_t now_ns, struct sul_packet *out)
{
	sul_net_clock(n, now_ns);
	sul_net_expire(n);
	while (n->ready.next != &n->ready) {
		struct sul_net_link *l = SUL_NET_LINK_OF(n->ready.next, ready);

		if (link_packet(n, l, out)) {
			next_turn(n, l);
			return true;
		}
		sul_net_link_rest(n, l);
	}
	return false;
}
