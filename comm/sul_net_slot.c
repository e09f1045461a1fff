/* SPDX-License-Identifier: MIT */
/*
 * sul_net_slot.c - packets being filled, and the buffers they lie in.
 *
 * Role:      frames are put into the last packet of a lane as long as it has
 *            not been sent and there is room; then into a new one.
 * Invariant: every packet of [una, next) has a slot and a buffer; a frame
 *            begins at a multiple of 8; a packet whose last frame lies elsewhere
 *            (body) takes no more.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

/* --- buffers --------------------------------------------------------------------- */

void sul_net_pool_init(struct sul_net_pool *p, unsigned char *at, size_t bytes)
{
	p->fresh = at;
	p->used = NULL;
	p->bytes = bytes;
}

/* Never too many: a lane has as many buffers as slots. */
void *sul_net_pool_take(struct sul_net_pool *p)
{
	void *at = p->used;

	if (at) {
		memcpy(&p->used, at, sizeof(p->used));
		return at;
	}
	at = p->fresh;
	p->fresh += p->bytes;
	return at;
}

void sul_net_pool_give(struct sul_net_pool *p, void *buffer)
{
	memcpy(buffer, &p->used, sizeof(p->used));
	p->used = buffer;
}

/* --- slots ------------------------------------------------------------------------ */

static struct sul_net_slot *slot_at(const struct sul_net_lane *l, uint32_t seq)
{
	return &l->slots[seq & (l->out.span - 1)];
}

struct sul_net_slot *sul_net_last_slot(const struct sul_net_link *l,
				       enum sul_lane_nr lane)
{
	return slot_at(&l->lane[lane], l->lane[lane].out.next - 1);
}

static bool is_filling(const struct sul_net_link *l, enum sul_lane_nr lane)
{
	const struct sul_sender *out = &l->lane[lane].out;

	return out->fresh != out->next && !sul_net_last_slot(l, lane)->body;
}

size_t sul_net_space(const struct sul_net_link *l, enum sul_lane_nr lane)
{
	if (!is_filling(l, lane))
		return 0;
	return l->packet_bytes - sul_net_last_slot(l, lane)->head_len;
}

size_t sul_net_space_new(const struct sul_net_link *l)
{
	return l->packet_bytes - SUL_WIRE_HEAD_BYTES;
}

static void join_busy(struct sul_net *n, struct sul_net_link *l)
{
	if (!l->busy.next)
		sul_net_ring_join(&n->busy, &l->busy);
}

struct sul_net_slot *sul_net_packet(struct sul_net *n, struct sul_net_link *l,
				    enum sul_lane_nr lane)
{
	struct sul_net_lane *at = &l->lane[lane];
	struct sul_net_slot *s;

	if (!sul_sender_room(&at->out))
		return NULL;
	s = slot_at(at, sul_sender_push(&at->out));
	*s = (struct sul_net_slot){
		.head = sul_net_pool_take(&at->heads),
		.head_len = SUL_WIRE_HEAD_BYTES,
	};
	if (lane == SUL_REQUESTS) {
		n->unexecuted++;
		join_busy(n, l);
	}
	return s;
}

void *sul_net_frame(struct sul_net *n, struct sul_net_link *l,
		    enum sul_lane_nr lane, size_t bytes)
{
	size_t padded = sul_wire_padded(bytes);
	struct sul_net_slot *s;
	unsigned char *at;

	s = bytes <= sul_net_space(l, lane) ? sul_net_last_slot(l, lane) :
					      sul_net_packet(n, l, lane);
	if (!s)
		return NULL;
	at = s->head + s->head_len;
	if (padded != bytes)
		memset(at + bytes, 0, padded - bytes);
	s->head_len = (uint16_t)(s->head_len + padded);
	sul_net_link_touch(n, l);
	return at;
}

void sul_net_release(struct sul_net *n, struct sul_net_link *l,
		     enum sul_lane_nr lane, uint32_t first, uint32_t nr)
{
	struct sul_net_lane *at = &l->lane[lane];

	for (uint32_t i = 0; i < nr; i++)
		sul_net_pool_give(&at->heads, slot_at(at, first + i)->head);
	if (lane == SUL_REQUESTS)
		n->unexecuted -= nr;
}
