/* SPDX-License-Identifier: MIT */
/*
 * sul_simnet_wire.c - what happens to a packet between two nodes.
 *
 * Role:      lost, doubled, late, spoilt, stopped by a partition, or simply
 *            there after a while.
 * Invariant: a packet that arrives is a copy of one that was sent, but for what
 *            is counted as spoilt.
 * Threads:   one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_simnet.h"

enum {
	SPOILT_BITS_MAX = 3
};

static bool on_one_side(uint64_t salt, int rank)
{
	uint64_t z = (salt ^ (unsigned int)rank) * 0xbf58476d1ce4e5b9u;

	return (z ^ z >> 29) >> 13 & 1;
}

static bool passes(const struct sul_simnet_cut *c, int from,
		   const struct sul_packet *p)
{
	int to = p->rank;

	switch (c->kind) {
	case SUL_SIMNET_WHOLE:
		break;
	case SUL_SIMNET_HALVES:
		return on_one_side(c->salt, from) == on_one_side(c->salt, to);
	case SUL_SIMNET_ALONE:
		return from != c->a && to != c->a;
	case SUL_SIMNET_ONE_WAY:
		return from != c->a || to != c->b;
	case SUL_SIMNET_PATH:
		return p->path != (unsigned int)c->a;
	}
	return true;
}

/* UDP would find that out, and drop it. */
static bool checksum_guards(const struct sul_sim *s)
{
	return sul_simnet_cfg(s)->auth == SUL_NET_AUTH_OFF;
}

static void spoil(struct sul_sim *s, struct sul_simnet_packet *p)
{
	uint32_t bits = 1 + sul_sim_below(s, SPOILT_BITS_MAX);

	if (!sul_sim_below(s, 4)) {
		p->len = sul_sim_below(s, (uint32_t)p->len);
		return;
	}
	while (bits--) {
		uint32_t at = sul_sim_below(s, 8 * (uint32_t)p->len);

		p->bytes[at / 8] ^= (unsigned char)(1u << at % 8);
	}
}

static struct sul_simnet_packet *copy_of(const struct sul_packet *p)
{
	size_t len = (size_t)p->head_len + p->body_len;
	struct sul_simnet_packet *c = malloc(sizeof(*c) + len);

	if (!c)
		return NULL;
	c->path = p->path;
	c->len = len;
	memcpy(c->bytes, p->head, p->head_len);
	if (p->body_len)
		memcpy(c->bytes + p->head_len, p->body, p->body_len);
	return c;
}

/* Flips of a coin that the counters show. */
static bool befalls(struct sul_sim *s, uint64_t ppm, uint64_t *count)
{
	if (!ppm || !sul_sim_chance(s, ppm))
		return false;
	++*count;
	return true;
}

static void carry(struct sul_sim *s, const struct sul_packet *p)
{
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_simnet_stats *count = &s->net->stats;
	uint64_t delay = c->latency_ns + sul_simnet_time(s, c->jitter_ns);
	struct sul_simnet_packet *copy;

	if (befalls(s, c->late_ppm, &count->late))
		delay += sul_simnet_time(s, c->late_ns);
	copy = copy_of(p);
	if (!copy) {
		s->net->error = -ENOMEM;
		return;
	}
	if (befalls(s, c->corrupt_ppm, &count->spoilt)) {
		if (checksum_guards(s)) {
			free(copy);
			return;
		}
		spoil(s, copy);
	}
	sul_simnet_at(s, delay, SUL_SIMNET_PACKET, p->rank, 0, copy);
}

void sul_simnet_send(struct sul_sim *s, int from, const struct sul_packet *p)
{
	const struct sul_simnet_config *c = sul_simnet_cfg(s);
	struct sul_simnet_stats *count = &s->net->stats;

	count->sent++;
	if (!passes(&s->net->cut, from, p)) {
		count->cut++;
		return;
	}
	if (befalls(s, c->loss_ppm, &count->lost))
		return;
	carry(s, p);
	if (befalls(s, c->dup_ppm, &count->doubled))
		carry(s, p);
}
