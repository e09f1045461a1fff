/* SPDX-License-Identifier: MIT */
/*
 * net_time.c - what short ones take one way, over a wire between two namespaces: a put
 * of 8 bytes, a message of 8, and a datagram of as many over UDP sockets that spin.
 *
 * Role:    times them in turn; on a clock that counts instructions (bed_counts) these
 *          are what all of it takes, at both ends.
 * Threads: one task does both ends in turn: so nothing counts but what there is to
 *          do, and not who runs when.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "sul_clock.h"

enum {
	ROUNDS = 200,
	BATCHES = 20,
	/* Where a message lies, as the library has it: a slot, its tail, a bell. */
	BELL_AT = 0,
	TAIL_AT = 1024,
	SLOT_AT = 4096,
	SLOT_BYTES = 16, /* a head and 8 bytes */
};

struct players {
	struct net_side side[2];
	int sock[2];
	uint64_t value;
};

static void await(const struct net_side *at, uint32_t value)
{
	const uint32_t *word = (void *)(at->window[0] + BELL_AT);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
}

static struct sul_op put_of(int from, const void *bytes, uint32_t len,
			    uint64_t off)
{
	struct sul_op op = {
		.kind = SUL_OP_PUT,
		.flags = SUL_OP_INLINE,
		.rank = (uint32_t)(1 - from),
		.len = len,
		.off = off,
	};

	memcpy(op.data, bytes, len);
	return op;
}

static struct sul_op notify_of(int from, uint32_t value, uint64_t off)
{
	return (struct sul_op){
		.kind = SUL_OP_NOTIFY,
		.rank = (uint32_t)(1 - from),
		.off = off,
		.notify = { .value = value },
	};
}

static void throw_word(struct players *p, int from)
{
	uint64_t value = ++p->value;
	struct sul_op op = put_of(from, &value, sizeof(value), BELL_AT);

	net_submit(&p->side[from], &op, 1, 0);
	await(&p->side[1 - from], (uint32_t)value);
}

static void throw_message(struct players *p, int from)
{
	const uint64_t slot[SLOT_BYTES / 8] = { ++p->value, p->value };
	const struct sul_message m = {
		.off = SLOT_AT,
		.src = slot,
		.len = sizeof(slot),
		.word = { TAIL_AT, BELL_AT },
		.value = { (uint32_t)p->value, (uint32_t)p->value },
	};

	net_message(&p->side[from], &m);
	await(&p->side[1 - from], (uint32_t)p->value);
}

static void throw_parts(struct players *p, int from)
{
	const uint64_t slot[SLOT_BYTES / 8] = { ++p->value, p->value };
	const struct sul_op op[3] = {
		put_of(from, slot, sizeof(slot), SLOT_AT),
		notify_of(from, (uint32_t)p->value, TAIL_AT),
		notify_of(from, (uint32_t)p->value, BELL_AT),
	};

	net_submit(&p->side[from], op, 3, 0);
	await(&p->side[1 - from], (uint32_t)p->value);
}

static void throw_datagram(struct players *p, int from)
{
	uint64_t value = ++p->value, got;

	NET_MUST(send(p->sock[from], &value, sizeof(value), 0) ==
		 sizeof(value));
	while (recv(p->sock[1 - from], &got, sizeof(got), MSG_DONTWAIT) !=
	       sizeof(got))
		;
	NET_MUST(got == value);
}

static void call_for_nothing(struct players *p, int from)
{
	NET_MUST(!ioctl(p->side[from].fd, SUL_IOC_NULL));
}

static const struct throwing {
	const char *what;
	void (*once)(struct players *p, int from);
} throwings[] = {
	{ "a datagram of 8 bytes", throw_datagram },
	{ "a put of 8 bytes", throw_word },
	{ "a message of 8 bytes", throw_message },
	{ "the same, put and two notifies", throw_parts },
	{ "a null call", call_for_nothing },
};

enum {
	THROWINGS = sizeof(throwings) / sizeof(throwings[0]),
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A plain socket next to a side's. */
static int plain_socket(const struct net_config *cfg, const struct net_side *s,
			struct sockaddr_storage *at)
{
	socklen_t len = sizeof(*at);
	int fd;

	net_enter(cfg->ns[s->rank]);
	*at = s->own;
	((struct sockaddr_in *)at)->sin_port =
		0; /* of IPv6 it lies there, too */
	fd = socket(at->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	NET_MUST(fd >= 0 && !bind(fd, (void *)at, len));
	NET_MUST(!getsockname(fd, (void *)at, &len));
	return fd;
}

static void join_sockets(struct players *p, const struct net_config *cfg)
{
	struct sockaddr_storage at[2];

	for (int i = 0; i < 2; i++)
		p->sock[i] = plain_socket(cfg, &p->side[i], &at[i]);
	for (int i = 0; i < 2; i++)
		NET_MUST(!connect(p->sock[i], (void *)&at[1 - i],
				  sizeof(at[0])));
}

static uint64_t time_batch(struct players *p, const struct throwing *t)
{
	uint64_t begin = sul_now_ns();

	for (int k = 0; k < ROUNDS; k++)
		t->once(p, k & 1);
	return (sul_now_ns() - begin) / ROUNDS;
}

/* What both sides have sent. */
struct wire {
	uint64_t packets, bytes;
};

static struct wire on_the_wire(const struct players *p)
{
	struct wire w = { 0 };

	for (int i = 0; i < 2; i++) {
		w.packets += net_count(&p->side[i], NET_COUNT_packets_out);
		w.bytes += net_count(&p->side[i], NET_COUNT_bytes_out);
	}
	return w;
}

static uint64_t median(uint64_t *took)
{
	const size_t middle = BATCHES / 2;

	qsort(took, BATCHES, sizeof(*took), by_value);
	return took[middle];
}

static void tell(const struct throwing *t, uint64_t *took, uint64_t *datagram,
		 const struct wire *w)
{
	uint64_t one = median(took), other = median(datagram);

	printf("# %-32s one way: %llu ns (least %llu), %.2f of a datagram; packets %.2f, bytes %.1f\n",
	       t->what, (unsigned long long)one, (unsigned long long)took[0],
	       (double)one / (double)other,
	       (double)w->packets / (ROUNDS * BATCHES),
	       (double)w->bytes / (ROUNDS * BATCHES));
}

int net_time(const struct net_config *cfg)
{
	static uint64_t took[THROWINGS][BATCHES];
	struct wire wire[THROWINGS] = { { 0 } };
	struct players p = { .value = 0 };

	net_sides_open(p.side, cfg);
	join_sockets(&p, cfg);
	for (int i = 0; i < BATCHES; i++)
		for (int k = 0; k < THROWINGS; k++) {
			struct wire before = on_the_wire(&p), after;

			took[k][i] = time_batch(&p, &throwings[k]);
			after = on_the_wire(&p);
			wire[k].packets += after.packets - before.packets;
			wire[k].bytes += after.bytes - before.bytes;
		}
	for (int k = 0; k < THROWINGS; k++)
		tell(&throwings[k], took[k], took[0], &wire[k]);
	for (int i = 0; i < 2; i++) {
		net_report(&p.side[i]);
		close(p.sock[i]);
	}
	net_sides_close(p.side);
	return 0;
}
