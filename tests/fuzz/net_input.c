/* SPDX-License-Identifier: MIT */
/*
 * net_input.c - libFuzzer target: packets for the network core.
 *
 * Role:      the input is a story: packets of any kind reach a core, operations
 *            are issued on it and time passes.  How much of a packet is made
 *            right before it goes in is the story's first byte: nothing; a
 *            header that is let in without authentication; the same with a
 *            correct code, so that what follows is reached under a MAC, too.
 *            It also says whether windows come page by page, each an allocation
 *            of its own, and are gone at times.
 * Invariant: whatever comes, nothing is touched but windows and results, and
 *            output ends.  Sanitizers see the first, the target the second.
 * Threads:   one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sul_heap.h"
#include "sul_net_link.h"

enum {
	WINDOWS = 3,
	WINDOW_BYTES = 4096,
	PAGES = 8, /* of a window */
	PAGE_BYTES = WINDOW_BYTES / PAGES,
	PACKET_BYTES = 1472,
	PACKETS_MAX = 10000, /* that one call of output may lead to */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct story {
	const uint8_t *at;
	size_t left;
	struct sul_net *net;
	uint64_t now_ns, number;
	bool mend, sign, paged;
	void *window[WINDOWS];
	void *pages[WINDOWS][PAGES];
	uint32_t gone; /* bit w * PAGES + i: that page is */
	uint64_t results[64];
	unsigned char page[WINDOW_BYTES];
};

static void net_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	(void)ctx;
	word->value = value;
}

static void net_dead(void *ctx, int rank)
{
	(void)ctx, (void)rank;
}

static void *net_at(void *ctx, unsigned int w, uint64_t off, uint64_t *len,
		    bool write)
{
	const struct story *s = ctx;
	uint64_t page = off / PAGE_BYTES, in = off % PAGE_BYTES;

	(void)write;
	if (w >= WINDOWS || page >= PAGES || !*len || *len > WINDOW_BYTES - off)
		abort();
	if (s->gone >> (w * PAGES + page) & 1)
		return NULL;
	*len = PAGE_BYTES - in;
	return (char *)s->pages[w][page] + in;
}

static void net_missing(void *ctx, int rank, unsigned int w, uint64_t off,
			uint64_t len)
{
	(void)ctx, (void)rank;
	if (w >= WINDOWS || !len || off + len > WINDOW_BYTES)
		abort();
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = net_notify,
	.dead = net_dead,
};
static const struct sul_net_env paged_env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = net_notify,
	.dead = net_dead,
	.at = net_at,
	.missing = net_missing,
};

static uint8_t next_byte(struct story *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->at++;
}

static void open_net(struct story *s)
{
	struct sul_net_config cfg = {
		.rank = 1,
		.ranks = 3,
		.windows = WINDOWS,
		.packet_bytes = PACKET_BYTES,
		.span = 16,
		.auth = s->sign ? SUL_NET_AUTH_MAC : SUL_NET_AUTH_OFF,
		.session = 7,
		.silence_ns = UINT64_C(10000000000),
		.copy = s->paged,
		.env = s->paged ? &paged_env : &env,
		.env_ctx = s,
	};

	for (unsigned int w = 0; w < WINDOWS; w++) {
		for (int i = 0; i < PAGES; i++)
			s->pages[w][i] = calloc(1, PAGE_BYTES);
		s->window[w] = calloc(1, WINDOW_BYTES);
		cfg.window[w].base = s->paged ? NULL : s->window[w];
		cfg.window[w].bytes = WINDOW_BYTES;
	}
	if (sul_net_open(&s->net, &cfg) ||
	    sul_net_peer(s->net, 0, 5, PACKET_BYTES, 2) ||
	    sul_net_peer(s->net, 2, 6, 548, 1))
		abort();
}

/* Let the header say what gets the packet in. */
static void mend(struct story *s, unsigned char *packet, size_t len)
{
	struct sul_wire_head h;
	const struct sul_net_peer *p;
	struct sul_nh_key bulk;

	memcpy(&h, packet, sizeof(h));
	h.version = SUL_WIRE_VERSION;
	h.flags &= SUL_WIRE_FLAGS_ALL;
	h.payload = (uint16_t)(len - sizeof(h));
	h.from = h.from & 1 ? 2 : 0;
	h.to = 1;
	p = &s->net->peers[h.from];
	h.session = p->session_in;
	h.number = ++s->number;
	h.seq = p->session + (h.seq & 31);
	for (int i = 0; i < SUL_LANES; i++)
		h.ack[i] = 7 + (h.ack[i] & 31);
	h.mac = 0;
	sul_wire_head_write(packet, &h);
	if (!s->sign)
		return;
	sul_net_code_keys(&bulk, p->key_in);
	h.mac = sul_net_code(p->key_in, &bulk, packet, packet + sizeof(h),
			     len - sizeof(h), NULL, 0);
	sul_wire_head_write(packet, &h);
}

/* In memory of its very size. */
static void packet(struct story *s)
{
	size_t len = (size_t)next_byte(s) * 8 + next_byte(s) % 8;
	unsigned char *p;

	if (s->mend && len < SUL_WIRE_HEAD_BYTES)
		len = SUL_WIRE_HEAD_BYTES;
	p = calloc(1, len + !len);
	memcpy(p, s->at, len < s->left ? len : s->left);
	s->at += len < s->left ? len : s->left;
	s->left -= len < s->left ? len : s->left;
	if (s->mend)
		mend(s, p, len);
	sul_net_input(s->net, s->now_ns, next_byte(s) & 3, p, len);
	free(p);
}

static void output(struct story *s)
{
	struct sul_packet p;
	unsigned int nr = 0;

	while (sul_net_output(s->net, s->now_ns, &p))
		if (++nr > PACKETS_MAX ||
		    p.head_len + p.body_len > PACKET_BYTES ||
		    p.path >= (p.rank ? 1 : 2))
			abort();
	if (sul_net_deadline(s->net) <= s->now_ns)
		abort();
}

/* Pages come and go, and who waited for one goes on. */
static void pages(struct story *s)
{
	s->gone = next_byte(s) | (uint32_t)next_byte(s) << 8 |
		  (uint32_t)next_byte(s) << 16;
	for (int rank = -1; rank <= 3; rank++)
		sul_net_resume(s->net, rank);
}

static void issue(struct story *s)
{
	uint8_t what = next_byte(s);
	int rank = what & 1 ? 2 : 0;
	uint64_t off = next_byte(s) * (uint64_t)8;
	size_t len = next_byte(s) * (size_t)8, done = 0;

	switch (what >> 1 & 3) {
	case 0:
		sul_net_get(s->net, rank, 0, off, s->page, len, NULL, 0, &done);
		break;
	case 1:
		sul_net_put(s->net, rank, 0, off, s->page, len, &done);
		break;
	case 2:
		sul_net_amo(s->net, rank, 0, off, SUL_AMO_ADD, 1, 0,
			    &s->results[len / 8 % 64]);
		break;
	case 3:
		sul_net_hurry(s->net);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct story s = { .at = data, .left = size, .now_ns = 1000000000 };
	uint8_t mode = next_byte(&s);

	s.mend = mode & 1;
	s.sign = mode & 2;
	s.paged = mode & 4;
	open_net(&s);
	while (s.left) {
		uint8_t what = next_byte(&s);

		if (what & 3)
			packet(&s);
		else if (s.paged && what & 16)
			pages(&s);
		else
			issue(&s);
		if (what & 4)
			output(&s);
		if (what & 8)
			s.now_ns += (uint64_t)next_byte(&s) << (what >> 4) * 2;
	}
	output(&s);
	sul_net_close(s.net);
	for (int w = 0; w < WINDOWS; w++) {
		for (int i = 0; i < PAGES; i++)
			free(s.pages[w][i]);
		free(s.window[w]);
	}
	return 0;
}
