/* SPDX-License-Identifier: MIT */
/*
 * sul_net_input.c - packets arrive.
 *
 * Role:      who it is from, whether it is genuine and new; what it says of what
 *            was sent from here; then its frames, now or when their turn comes.
 * Invariant: nothing of a packet is believed, and no link made, before its code
 *            has been found right.  A number is taken once.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

/* --- may it come in? --------------------------------------------------------------- */

static size_t trailer(const struct sul_net *n)
{
	return n->cfg.auth == SUL_NET_AUTH_AEAD ? SUL_NET_SEAL_TAG_BYTES : 0;
}

/* Whose life and which job it belongs to. */
static bool is_for_us(const struct sul_net *n, const struct sul_wire_head *h)
{
	const struct sul_net_peer *p;

	if (h->to != n->cfg.rank || h->from >= n->cfg.ranks)
		return false;
	p = &n->peers[h->from];
	return p->session && !p->dead && p->session_in == h->session;
}

/* Of somebody to whom there is no link it is made anew each time. */
static const struct sul_nh_key *
bulk_key(struct sul_net *n, const struct sul_net_peer *p, size_t payload)
{
	if (p->link)
		return &p->link->bulk_in;
	if (sul_net_code_is_bulk(payload))
		sul_net_code_keys(&n->stranger, p->key_in);
	return &n->stranger;
}

static bool is_genuine(struct sul_net *n, const struct sul_wire_head *h,
		       unsigned char *packet)
{
	const struct sul_net_peer *p = &n->peers[h->from];
	unsigned char *payload = packet + SUL_WIRE_HEAD_BYTES;

	if (n->cfg.auth == SUL_NET_AUTH_OFF)
		return true;
	if (n->cfg.auth == SUL_NET_AUTH_AEAD)
		return n->cfg.env->open(n->cfg.env_ctx,
					(const unsigned char *)p->key_in,
					h->number, packet, SUL_WIRE_HEAD_BYTES,
					payload, h->payload);
	sul_wire_mac_write(packet, 0);
	return h->mac == sul_net_code(p->key_in, bulk_key(n, p, h->payload),
				      packet, payload, h->payload, NULL, 0);
}

static bool is_new(const struct sul_net_link *l, uint64_t number)
{
	uint32_t bit = number % SUL_NET_REPLAY_BITS;

	if (number > l->replay_top)
		return true;
	if (l->replay_top - number > SUL_NET_REPLAY_BITS - 64)
		return false; /* forget_up_to() clears 64 at a time */
	return !(l->replay[bit / 64] >> bit % 64 & 1);
}

static void forget_up_to(struct sul_net_link *l, uint64_t number)
{
	uint64_t word = l->replay_top / 64 + 1, last = number / 64;
	uint64_t words = SUL_NET_REPLAY_BITS / 64;

	if (last - l->replay_top / 64 > words)
		word = last - words + 1;
	for (; word <= last; word++)
		l->replay[word % words] = 0;
	l->replay_top = number;
}

static void note_number(struct sul_net_link *l, uint64_t number)
{
	uint32_t bit = number % SUL_NET_REPLAY_BITS;

	if (number > l->replay_top)
		forget_up_to(l, number);
	l->replay[bit / 64] |= (uint64_t)1 << bit % 64;
}

/* The counter of whatever keeps it out; NULL: it may come in. */
static uint64_t *refuse(struct sul_net *n, struct sul_wire_head *h,
			unsigned char *packet, size_t len)
{
	const struct sul_net_link *l;

	if (len > n->cfg.packet_bytes ||
	    !sul_wire_head_read(h, packet, len, trailer(n)))
		return &n->stats.dropped_short;
	if (!is_for_us(n, h))
		return &n->stats.dropped_session;
	l = n->peers[h->from].link;
	if (!h->number || (l && !is_new(l, h->number)))
		return &n->stats.dropped_replay;
	if (!is_genuine(n, h, packet))
		return &n->stats.dropped_mac;
	return NULL;
}

/* --- what it says of what was sent -------------------------------------------------------- */

/* All times are of this rank's clock. */
static void take_echo(struct sul_net *n, struct sul_net_link *l,
		      const struct sul_wire_head *h)
{
	uint64_t now_us = n->now_ns / 1000;
	uint32_t ago = (uint32_t)now_us - h->echo;

	if (h->flags & SUL_WIRE_ECHO && h->held <= ago && ago <= now_us)
		sul_paths_seen(&l->paths, h->echo_path, (now_us - ago) * 1000,
			       (uint64_t)h->held * 1000, n->now_ns);
}

static void take_ack(struct sul_net *n, struct sul_net_link *l,
		     const struct sul_wire_head *h, unsigned int lane,
		     unsigned int nr_bits)
{
	struct sul_sender *out = &l->lane[lane].out;
	uint32_t first = out->una, gone;
	struct sul_ack a = {
		.next = h->ack[lane],
		.credit = h->credit,
		.first = h->ack[lane] + 1,
		.bits = &h->sack,
		.nr_bits = nr_bits,
		.part = h->flags & SUL_WIRE_PART,
	};

	gone = sul_sender_ack(out, &a, n->now_ns);
	if (gone)
		sul_net_release(n, l, lane, first, gone);
}

static void take_acks(struct sul_net *n, struct sul_net_link *l,
		      const struct sul_wire_head *h)
{
	static const uint8_t flag[SUL_LANES] = { SUL_WIRE_SACK,
						 SUL_WIRE_SACK_ANSWERS };

	take_echo(n, l, h);
	if (h->credit > l->answers_most)
		l->answers_most = h->credit < n->cfg.span ? h->credit :
							    n->cfg.span;
	for (unsigned int i = 0; i < SUL_LANES; i++)
		if (!sul_sender_is_idle(&l->lane[i].out, h->ack[i], h->credit))
			take_ack(n, l, h, i, h->flags & flag[i] ? 64 : 0);
}

static void note_sender(struct sul_net *n, struct sul_net_link *l,
			const struct sul_wire_head *h, unsigned int path)
{
	l->heard_ns = n->now_ns;
	l->asked_ns = 0;
	l->ping_ns = n->now_ns + n->cfg.silence_ns / 4;
	if (h->flags & SUL_WIRE_HURRY)
		l->ack_now = true;
	if (h->number < l->echo_number)
		return;
	l->echo_number = h->number;
	l->echo = h->stamp;
	l->echo_path = h->path;
	l->back = path;
	l->echo_ns = n->now_ns;
}

/* --- its frames -------------------------------------------------------------------------------- */

static void owe(struct sul_net *n, struct sul_net_link *l,
		enum sul_lane_nr lane)
{
	uint32_t most = n->cfg.span / 4;

	if (lane == SUL_REQUESTS && most > SUL_NET_ACK_PACKETS)
		most = SUL_NET_ACK_PACKETS;
	if (++l->lane[lane].owed >= most)
		l->ack_now = true;
	if (l->ack_ns == SUL_ENGINE_NEVER)
		l->ack_ns = n->now_ns + SUL_NET_ACK_DELAY_NS;
}

/* In its place, until its turn comes or a page is there. */
static void put_aside(struct sul_net *n, struct sul_net_link *l,
		      struct sul_net_lane *at, uint32_t seq,
		      const void *payload, size_t len)
{
	struct sul_net_early *e = &at->early[seq & (at->in.span - 1)];

	e->payload = sul_net_pool_take(&at->payloads);
	e->len = (uint16_t)len;
	memcpy(e->payload, payload, len);
	n->stats.early++;
	l->ack_now = true;
}

static void keep(struct sul_net *n, struct sul_net_link *l,
		 enum sul_lane_nr lane, uint32_t seq, const void *payload,
		 size_t len)
{
	sul_receiver_keep(&l->lane[lane].in, seq);
	put_aside(n, l, &l->lane[lane], seq, payload, len);
}

static void hold(struct sul_net *n, struct sul_net_lane *at)
{
	at->held = true;
	n->stats.late++;
}

/* The next packet lies in its place, as may those behind it. */
static void go_on(struct sul_net *n, struct sul_net_link *l,
		  enum sul_lane_nr lane)
{
	struct sul_net_lane *at = &l->lane[lane];

	l->ack_now = true;
	do {
		struct sul_net_early *e =
			&at->early[at->in.next & (at->in.span - 1)];

		if (!sul_net_execute(n, l, lane, e->payload, e->len,
				     &at->progress)) {
			hold(n, at);
			return;
		}
		at->progress = (struct sul_net_progress){ 0 };
		sul_net_pool_give(&at->payloads, e->payload);
	} while (sul_receiver_done(&at->in));
}

static void execute(struct sul_net *n, struct sul_net_link *l,
		    enum sul_lane_nr lane, const void *payload, size_t len)
{
	struct sul_net_lane *at = &l->lane[lane];
	struct sul_net_progress progress = { 0 };

	if (!sul_net_execute(n, l, lane, payload, len, &progress)) {
		put_aside(n, l, at, at->in.next, payload, len);
		at->progress = progress;
		hold(n, at);
		return;
	}
	owe(n, l, lane);
	if (sul_receiver_done(&at->in))
		go_on(n, l, lane);
}

void sul_net_resume(struct sul_net *n, int rank)
{
	const struct sul_net_peer *p;
	struct sul_net_lane *at;

	if (rank < 0 || rank >= n->cfg.ranks)
		return;
	p = &n->peers[rank];
	if (!p->link || p->dead)
		return;
	at = &p->link->lane[SUL_REQUESTS];
	if (!at->held)
		return;
	at->held = false;
	go_on(n, p->link, SUL_REQUESTS);
	sul_net_link_touch(n, p->link);
}

static enum sul_verdict verdict(const struct sul_net_lane *at, uint32_t seq)
{
	if (at->held && seq == at->in.next)
		return SUL_DUPLICATE;
	return sul_receiver_verdict(&at->in, seq);
}

static bool take_sequenced(struct sul_net *n, struct sul_net_link *l,
			   const struct sul_wire_head *h, const void *payload)
{
	enum sul_lane_nr lane = h->flags & SUL_WIRE_ANSWERS ? SUL_ANSWERS :
							      SUL_REQUESTS;

	switch (verdict(&l->lane[lane], h->seq)) {
	case SUL_EXECUTE:
		execute(n, l, lane, payload, h->payload);
		return true;
	case SUL_KEEP:
		keep(n, l, lane, h->seq, payload, h->payload);
		return true;
	case SUL_DUPLICATE:
		n->stats.duplicates++;
		l->ack_now = true;
		return true;
	case SUL_BEYOND:
		break;
	}
	n->stats.dropped_room++;
	return false;
}

bool sul_net_input(struct sul_net *n, uint64_t now_ns, unsigned int path,
		   void *packet, size_t len)
{
	struct sul_wire_head h;
	struct sul_net_link *l;
	struct sul_net_progress none = { 0 };
	const unsigned char *payload;
	uint64_t *refused;
	bool taken = true;

	sul_net_clock(n, now_ns);
	refused = refuse(n, &h, packet, len);
	if (!refused && sul_net_link_get(n, h.from, &l))
		refused = &n->stats.dropped_room;
	if (refused) {
		++*refused;
		return false;
	}
	payload = (const unsigned char *)packet + sizeof(h);
	note_number(l, h.number);
	n->stats.packets_in++;
	n->stats.bytes_in += len;
	note_sender(n, l, &h, path);
	take_acks(n, l, &h);
	sul_net_link_touch(n, l);
	if (n->cfg.env->genuine)
		n->cfg.env->genuine(n->cfg.env_ctx);
	if (h.flags & SUL_WIRE_SEQUENCED)
		taken = take_sequenced(n, l, &h, payload);
	else
		sul_net_execute(n, l, SUL_UNSEQUENCED, payload, h.payload,
				&none);
	sul_net_want(n, l);
	return taken;
}
