/* SPDX-License-Identifier: MIT */
/* sul_fake_wire.c - the fake module's packets: its core, and what works for it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sul_clock.h"
#include "sul_heap.h"
#include "sul_fake_port.h"

enum {
	PUMP_MS = 5,
};

/* What the core refers to. */
struct fake_source {
	struct fake_source *next;
	char bytes[];
};

static void env_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	fake_store_word(((struct fake_port *)ctx)->spec.rank, word, value);
}

static void env_dead(void *ctx, int rank)
{
	fake_note_death(ctx, rank);
}

static void env_farewell(void *ctx, int rank)
{
	fake_set_rank(((struct fake_port *)ctx)->status->left, rank);
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = env_notify,
	.dead = env_dead,
	.left = env_dead,
	.farewell = env_farewell,
};

static void forget_sources(struct fake_port *p)
{
	while (p->sources) {
		struct fake_source *s = p->sources;

		p->sources = s->next;
		free(s);
	}
}

const char *fake_wire_keep(struct fake_port *p, uint64_t addr, size_t len)
{
	struct fake_source *s = malloc(sizeof(*s) + len);

	if (!s)
		abort();
	memcpy(s->bytes, (const void *)(uintptr_t)addr, len);
	s->next = p->sources;
	p->sources = s;
	return s->bytes;
}

void fake_wire_settle(struct fake_port *p)
{
	if (p->issuing || (p->net && !sul_net_quiet(p->net)))
		return;
	forget_sources(p);
	if (p->status->executed == p->ticket)
		return;
	__atomic_store_n(&p->status->executed, p->ticket, __ATOMIC_RELEASE);
	fake_wake(p->spec.rank);
}

static bool lose(struct fake_port *p)
{
	return unit_below(&p->rng, 1000000) < p->spec.loss_ppm;
}

static void send_packets(struct fake_port *p)
{
	unsigned char bytes[SUL_NET_PACKET_MAX];
	struct sul_packet k;

	while (sul_net_output(p->net, sul_now_ns(), &k)) {
		const struct fake_peer *to = &p->peer[k.rank];

		if (lose(p))
			continue;
		memcpy(bytes, k.head, k.head_len);
		if (k.body_len)
			memcpy(bytes + k.head_len, k.body, k.body_len);
		sendto(to->path[k.path].fd, bytes, k.head_len + k.body_len,
		       MSG_DONTWAIT, &to->path[k.path].to.any,
		       sul_sockaddr_len(&to->path[k.path].to));
	}
}

void fake_wire_pump(struct fake_port *p)
{
	unsigned char bytes[SUL_NET_PACKET_MAX + 1];

	if (!p->net)
		return;
	for (unsigned int i = 0; i < p->sockets; i++) {
		ssize_t n;

		while ((n = recv(p->socket[i], bytes, sizeof(bytes),
				 MSG_DONTWAIT)) > 0)
			sul_net_input(p->net, sul_now_ns(), i, bytes,
				      (size_t)n);
	}
	send_packets(p);
	fake_wire_settle(p);
}

static int until_deadline(struct fake_port *p)
{
	uint64_t at = sul_net_deadline(p->net), now = sul_now_ns();

	if (at <= now)
		return 0;
	return at - now > PUMP_MS * 1000000u ? PUMP_MS :
					       (int)((at - now) / 1000000u) + 1;
}

static void *serve(void *arg)
{
	struct fake_port *p = arg;
	struct pollfd f[SUL_ABI_PATHS_MAX + 1];
	eventfd_t kicks;
	bool stop = false;

	while (!stop) {
		int ms;

		pthread_mutex_lock(&p->lock);
		fake_wire_pump(p);
		ms = until_deadline(p);
		stop = p->stop;
		for (unsigned int i = 0; i < p->sockets; i++)
			f[i] = (struct pollfd){ p->socket[i], POLLIN, 0 };
		f[p->sockets] = (struct pollfd){ p->fd, POLLIN, 0 };
		pthread_mutex_unlock(&p->lock);
		if (!stop && poll(f, p->sockets + 1, ms) > 0 &&
		    f[p->sockets].revents)
			eventfd_read(p->fd, &kicks);
	}
	return NULL;
}

int fake_wire_open(struct fake_port *p)
{
	struct sul_net_config c = {
		.rank = (int)p->spec.rank,
		.ranks = (int)p->spec.ranks,
		.windows = p->start.windows,
		.packet_bytes = p->spec.packet_bytes,
		.span = p->spec.span,
		.auth = (enum sul_net_auth)p->spec.auth,
		.session = p->spec.session,
		.silence_ns = p->spec.silence_ns,
		.env = &env,
		.env_ctx = p,
	};
	int err;

	for (unsigned int w = 0; w < p->start.windows; w++) {
		c.window[w].base = (void *)(uintptr_t)p->start.window[w].addr;
		c.window[w].bytes = p->start.window[w].bytes;
	}
	memcpy(c.key, p->spec.key, sizeof(c.key));
	err = sul_net_open(&p->net, &c);
	return err ? err : -pthread_create(&p->thread, NULL, serve, p);
}

void fake_wire_stop(struct fake_port *p)
{
	if (!p->net)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_mutex_unlock(&p->lock);
	eventfd_write(p->fd, 1);
	pthread_join(p->thread, NULL);
}

void fake_wire_close(struct fake_port *p)
{
	sul_net_close(p->net);
	forget_sources(p);
	for (unsigned int i = 0; i < p->sockets; i++)
		close(p->socket[i]);
}
