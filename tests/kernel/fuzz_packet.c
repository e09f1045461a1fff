/* SPDX-License-Identifier: MIT */
/*
 * fuzz_packet.c - random packets for a port of the module.
 *
 * Role:      a port, rank 1, is worked on by a rank 0 that this part plays: it has
 *            the job's key, so its packets get past the authentication whatever they
 *            ask for.  A part of them is right in every way, so that lanes move on;
 *            a part has a right header and code around nonsense; a part is noise.
 * Invariant: whatever comes, the kernel says nothing, the owner's memory outside its
 *            window is as it was, and the port can be closed.  In the end a port like
 *            it still does what it is asked for.
 * Threads:   one.  What is sent depends on the seed alone.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi.h"
#include "fuzz.h"
#include "kernel.h"
#include "sul_heap.h"
#include "sul_net_link.h"

enum {
	PER_PORT = 500, /* packets, then a new port */
	PACKET_BYTES = 1472,
	PAYLOAD_MAX = PACKET_BYTES - SUL_WIRE_HEAD_BYTES,
	FRAMES_MAX = 12,
	GUARD_BYTES = ABI_PAGE, /* on both sides of the window */
	GUARD = 0x5a,
	TRIES = 100, /* of the last packet, which must be answered */
	TRY_MS = 50,
};

struct story {
	struct rng rng;
	struct sul_net *net; /* of rank 0, for its keys */
	enum sul_abi_auth auth;
	int sock; /* rank 0's */
	struct sockaddr_in to;
	struct abi_port port; /* rank 1 */
	char *arena; /* guard, window, guard */
	uint64_t number;
	uint32_t seq[SUL_LANES]; /* the next that is right */
};

/* --- the core of rank 0 ------------------------------------------------------------- */

static void net_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	(void)ctx, (void)word, (void)value;
}

static void net_dead(void *ctx, int rank)
{
	(void)ctx, (void)rank;
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = net_notify,
	.dead = net_dead,
};

static const struct sul_net_peer *peer(const struct story *s)
{
	return &s->net->peers[1];
}

static void net_open(struct story *s)
{
	struct sul_port_spec spec = abi_spec(0, 2);
	struct sul_net_config cfg = {
		.rank = 0,
		.ranks = 2,
		.windows = 1,
		.packet_bytes = PACKET_BYTES,
		.span = spec.span,
		.auth = (enum sul_net_auth)s->auth,
		.session = spec.session,
		.silence_ns = UINT64_MAX / 2,
		.env = &env,
	};

	memcpy(cfg.key, spec.key, sizeof(cfg.key));
	cfg.window[0].base = s->arena;
	cfg.window[0].bytes = ABI_WINDOW_BYTES;
	if (sul_net_open(&s->net, &cfg) ||
	    sul_net_peer(s->net, 1, abi_spec(1, 2).session, PACKET_BYTES, 1))
		abort();
}

/* --- the port ----------------------------------------------------------------------- */

static int loopback_socket(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET };
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)at, sizeof(*at)) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		abort();
	return fd;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	printf("# %s: %s\n", what, strerror(-err));
	exit(1);
}

static void port_open(struct story *s)
{
	struct sul_port_spec spec = abi_spec(1, 2);
	struct sul_socket_spec sock = { .size = sizeof(sock) };
	struct sul_peer_spec p = { .size = sizeof(p),
				   .session = abi_spec(0, 2).session,
				   .packet_bytes = PACKET_BYTES,
				   .paths = 1 };
	struct sockaddr_in from;

	spec.auth = s->auth;
	memset(s->arena, GUARD, ABI_WINDOW_BYTES + 2 * GUARD_BYTES);
	memset(&s->port, 0, sizeof(s->port));
	s->port.window = s->arena + GUARD_BYTES;
	s->port.fd = abi_port_as(&spec);
	must(s->port.fd < 0 ? s->port.fd : 0, "PORT");
	s->sock = loopback_socket(&from);
	sock.fd = loopback_socket(&s->to);
	must(abi_call(s->port.fd, SUL_IOC_SOCKET, &sock), "SOCKET");
	close(sock.fd);
	must(abi_start(&s->port), "START");
	p.path[0].family = AF_INET;
	p.path[0].port = ntohs(from.sin_port);
	p.path[0].packet_bytes = PACKET_BYTES;
	memcpy(p.path[0].addr, &from.sin_addr, sizeof(from.sin_addr));
	must(abi_call(s->port.fd, SUL_IOC_PEER, &p), "PEER");
	s->number = 0;
	for (int i = 0; i < SUL_LANES; i++)
		s->seq[i] = abi_spec(0, 2).session;
}

static bool guards_are_whole(const struct story *s)
{
	const char *behind = s->arena + GUARD_BYTES + ABI_WINDOW_BYTES;

	for (int i = 0; i < GUARD_BYTES; i++)
		if (s->arena[i] != GUARD || behind[i] != GUARD)
			return false;
	return true;
}

static void port_close(struct story *s)
{
	close(s->port.fd);
	close(s->sock);
	if (guards_are_whole(s))
		return;
	puts("# memory around the window was written");
	exit(1);
}

/* --- payloads ------------------------------------------------------------------------ */

static uint64_t some_offset(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return rng_next(r);
	case 1:
		return ABI_WINDOW_BYTES - rng_below(r, 64);
	case 2:
		return rng_below(r, ABI_WINDOW_BYTES);
	default:
		return rng_below(r, ABI_WINDOW_BYTES / 8) * UINT64_C(8);
	}
}

static uint32_t some_number(struct rng *r)
{
	switch (rng_below(r, 6)) {
	case 0:
		return (uint32_t)rng_next(r);
	case 1:
		return UINT32_MAX - rng_below(r, 16);
	default:
		return rng_below(r, 2000);
	}
}

/* What stands in the fixed part behind struct sul_wire_frame: numbers of any kind,
 * at the places where 32 and 64 bits of it are. */
static void some_fields(struct rng *r, unsigned char *at, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t wide = some_offset(r);
		uint32_t two[2] = { some_number(r), some_number(r) };

		if (rng_percent(r, 50))
			memcpy(at + i, &wide, sizeof(wide));
		else
			memcpy(at + i, two, sizeof(two));
	}
}

static size_t frame_make(struct rng *r, unsigned char *at, size_t room)
{
	struct sul_wire_frame f = {
		.kind = (uint8_t)rng_below(r, SUL_FRAME_KINDS + 1),
		.aux = (uint8_t)rng_below(r, 8),
		.window = (uint16_t)(rng_percent(r, 90) ? 0 : rng_next(r)),
		.off = some_offset(r),
	};
	size_t len = SUL_WIRE_FRAME_BYTES + rng_below(r, 300);

	if (rng_percent(r, 5))
		len = rng_below(r, 2 * PACKET_BYTES);
	f.bytes = (uint32_t)len;
	if (len > room)
		len = room;
	if (len < SUL_WIRE_FRAME_BYTES)
		return len;
	some_fields(r, at + SUL_WIRE_FRAME_BYTES, len - SUL_WIRE_FRAME_BYTES);
	sul_wire_frame_write(at, f);
	len = sul_wire_padded(len);
	return len < room ? len : room;
}

/* A put, which is right: what is behind it on the lane gets its turn. */
static size_t put_make(struct rng *r, unsigned char *at)
{
	uint32_t len = 8 + rng_below(r, 64);
	struct sul_wire_frame f = {
		.kind = SUL_FRAME_PUT,
		.bytes = SUL_WIRE_FRAME_BYTES + len,
		.off = rng_below(r, ABI_WINDOW_BYTES - len),
	};

	fuzz_bytes(r, at + SUL_WIRE_FRAME_BYTES, len);
	sul_wire_frame_write(at, f);
	return sul_wire_padded(f.bytes);
}

static size_t payload_make(struct rng *r, unsigned char *at)
{
	uint32_t frames = rng_below(r, FRAMES_MAX);
	size_t len = 0;

	switch (rng_below(r, 4)) {
	case 0:
		len = rng_below(r, PAYLOAD_MAX + 1);
		fuzz_bytes(r, at, len);
		return len;
	case 1:
		return put_make(r, at);
	default:
		while (frames-- && len < PAYLOAD_MAX)
			len += frame_make(r, at + len, PAYLOAD_MAX - len);
		return len;
	}
}

/* --- packets ------------------------------------------------------------------------- */

static void sign(struct story *s, struct sul_wire_head *h,
		 unsigned char *packet)
{
	struct sul_nh_key bulk;

	h->mac = 0;
	sul_wire_head_write(packet, h);
	if (s->auth == SUL_ABI_AUTH_OFF)
		return;
	sul_net_code_keys(&bulk, peer(s)->key_out);
	h->mac = sul_net_code(peer(s)->key_out, &bulk, packet,
			      packet + SUL_WIRE_HEAD_BYTES, h->payload, NULL,
			      0);
	sul_wire_head_write(packet, h);
}

/* A header that gets in; its sequence number is the next or some other. */
static void head_make(struct story *s, struct sul_wire_head *h, size_t payload)
{
	struct rng *r = &s->rng;
	enum sul_lane_nr lane;

	fuzz_bytes(r, h, sizeof(*h));
	h->version = SUL_WIRE_VERSION;
	h->flags &= SUL_WIRE_FLAGS_ALL;
	if (rng_percent(r, 70))
		h->flags = (uint8_t)((h->flags | SUL_WIRE_SEQUENCED) &
				     ~SUL_WIRE_ANSWERS);
	h->payload = (uint16_t)payload;
	h->from = 0;
	h->to = 1;
	h->session = peer(s)->session_out;
	h->number = ++s->number;
	h->path = 0;
	h->echo_path = 0;
	lane = h->flags & SUL_WIRE_ANSWERS ? SUL_ANSWERS : SUL_REQUESTS;
	h->seq = s->seq[lane];
	if (rng_percent(r, 50))
		h->seq += rng_below(r, 80) - 8;
	else if (h->flags & SUL_WIRE_SEQUENCED)
		s->seq[lane]++;
	for (int i = 0; i < SUL_LANES; i++)
		h->ack[i] = abi_spec(1, 2).session + rng_below(r, 40);
}

/* Change some bytes, in the header too. */
static void spoil(struct rng *r, unsigned char *packet, size_t len)
{
	for (uint32_t n = rng_below(r, 4); n; n--)
		packet[rng_below(r, (uint32_t)len)] =
			(unsigned char)rng_next(r);
}

static size_t packet_make(struct story *s, unsigned char *packet)
{
	struct rng *r = &s->rng;
	struct sul_wire_head h;
	size_t len;

	if (rng_percent(r, 10)) {
		len = rng_below(r, PACKET_BYTES + 200);
		fuzz_bytes(r, packet, len);
		return len;
	}
	len = payload_make(r, packet + SUL_WIRE_HEAD_BYTES);
	head_make(s, &h, len);
	sign(s, &h, packet);
	if (rng_percent(r, 5)) { /* a length that is not so */
		h.payload = (uint16_t)rng_next(r);
		sul_wire_head_write(packet, &h);
	}
	len += SUL_WIRE_HEAD_BYTES;
	if (rng_percent(r, 10))
		spoil(r, packet, len);
	if (rng_percent(r, 5))
		len = rng_below(r, (uint32_t)len + 1); /* cut off */
	return len;
}

static void packet_send(struct story *s, const unsigned char *packet,
			size_t len)
{
	sendto(s->sock, packet, len, 0, (struct sockaddr *)&s->to,
	       sizeof(s->to));
}

static void answers_drop(const struct story *s)
{
	char buf[PACKET_BYTES];

	while (recv(s->sock, buf, sizeof(buf), 0) >= 0)
		;
}

/* Operations of the port's own, so that it has something to be answered. */
static void port_asks(struct story *s)
{
	struct sul_op op = { .kind = SUL_OP_AMO, .flags = SUL_OP_OLD };
	uint32_t done;

	if (s->port.fd >= 0 && rng_percent(&s->rng, 1))
		abi_submit(&s->port, &op, 1, &done);
}

static void stories_tell(struct story *s, uint64_t count)
{
	unsigned char packet[2 * PACKET_BYTES];

	for (uint64_t i = 0; i < count; i++) {
		if (i % PER_PORT == 0)
			port_open(s);
		packet_send(s, packet, packet_make(s, packet));
		port_asks(s);
		answers_drop(s);
		if (i % PER_PORT == PER_PORT - 1 || i == count - 1)
			port_close(s);
	}
}

/* A put that is right arrives at a new port. */
static bool still_works(struct story *s)
{
	unsigned char packet[PACKET_BYTES] = { 0 };
	struct sul_wire_frame f = { .kind = SUL_FRAME_PUT,
				    .bytes = SUL_WIRE_FRAME_BYTES + 8,
				    .off = 8 };
	struct sul_wire_head h = { .version = SUL_WIRE_VERSION,
				   .flags = SUL_WIRE_SEQUENCED,
				   .payload = (uint16_t)f.bytes,
				   .to = 1,
				   .session = peer(s)->session_out,
				   .credit = 8 };
	uint64_t magic = UINT64_C(0x0123456789abcdef);
	bool there = false;

	port_open(s);
	h.seq = s->seq[SUL_REQUESTS];
	h.ack[SUL_REQUESTS] = h.ack[SUL_ANSWERS] = abi_spec(1, 2).session;
	sul_wire_frame_write(packet + SUL_WIRE_HEAD_BYTES, f);
	memcpy(packet + SUL_WIRE_HEAD_BYTES + SUL_WIRE_FRAME_BYTES, &magic,
	       sizeof(magic));
	for (int i = 0; i < TRIES && !there; i++) {
		h.number = ++s->number;
		sign(s, &h, packet);
		packet_send(s, packet, SUL_WIRE_HEAD_BYTES + f.bytes);
		usleep(TRY_MS * 1000);
		there = !memcmp(s->port.window + 8, &magic, sizeof(magic));
	}
	port_close(s);
	return there;
}

static int tell(const struct fuzz_plan *plan, enum sul_abi_auth auth,
		const char *name)
{
	struct story s = { .rng = { plan->seed }, .auth = auth };
	long pinned = fuzz_pages_pinned();
	bool good;

	s.arena = abi_memory(ABI_WINDOW_BYTES + 2 * GUARD_BYTES);
	net_open(&s);
	stories_tell(&s, plan->count);
	good = still_works(&s);
	if (!good)
		puts("# in the end a port does not do what it should");
	sul_net_close(s.net);
	good = fuzz_all_gone(pinned) && good;
	printf("%s - %llu_random_packets_%s\n", good ? "ok" : "not ok",
	       (unsigned long long)plan->count, name);
	return !good;
}

int kernel_fuzz_packet(int argc, char **argv)
{
	struct fuzz_plan plan = fuzz_plan("fuzz-packet", argc, argv, 2000);
	int bad;

	plan.count /= 2;
	bad = tell(&plan, SUL_ABI_AUTH_OFF, "without_a_code");
	return bad | tell(&plan, SUL_ABI_AUTH_MAC, "with_a_right_code");
}
