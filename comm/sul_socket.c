/* SPDX-License-Identifier: MIT */
/*
 * sul_socket.c - see sul_socket.h.
 *
 * Role:    the only place that sends or receives.
 * Threads: see sul_socket.h.
 * Locks:   none.
 */
#include "sul_socket.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	BUFFER_BYTES = 8 << 20, /* asked of the kernel, either way */
	RECEIVES = 16, /* messages of one recvmmsg() */
	GLUED_MAX = 1 << 16, /* bytes of a message */
	RUN_BYTES = 64000, /* of one large packet; with headers below 64 KiB */
	RUN_MAX = 64, /* packets of it: UDP_MAX_SEGMENTS of old kernels */
	FULL_MS = 2, /* wait for room in the socket, at most ... */
	FULL_TRIES = 5, /* ... so many times */
	MANY = 3, /* packets in a row, without a look in vain */
	FEW = 32, /* single ones: they come one by one again */
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

struct sul_batch {
	/* Sending. */
	struct mmsghdr out[SUL_SOCKET_BATCH];
	unsigned int run[SUL_SOCKET_BATCH]; /* packets of a message */
	struct iovec piece[2 * SUL_SOCKET_BATCH];
	union control size[SUL_SOCKET_BATCH];
	/* Receiving. */
	struct mmsghdr in[RECEIVES];
	struct iovec room[RECEIVES];
	union control cut[RECEIVES];
	char bytes[RECEIVES][GLUED_MAX];
};

/* --- sockets -------------------------------------------------------------------- */

static void set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* As large as we are allowed. */
static void set_buffer(int fd, int forced, int plain)
{
	int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)))
		set(fd, SOL_SOCKET, plain, bytes);
}

static unsigned int buffer_bytes(int fd)
{
	socklen_t len = sizeof(int);
	int bytes = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) || bytes < 0)
		return 0;
	return (unsigned int)bytes;
}

static void set_options(struct sul_socket *s)
{
	int zero = 0;

	set_buffer(s->fd, SO_RCVBUFFORCE, SO_RCVBUF);
	set_buffer(s->fd, SO_SNDBUFFORCE, SO_SNDBUF);
	s->receive_bytes = buffer_bytes(s->fd);
	/* A route may carry less than its interface: fragments then. */
	set(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (s->family == AF_INET6)
		set(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	s->segment =
		!setsockopt(s->fd, SOL_UDP, UDP_SEGMENT, &zero, sizeof(zero));
	s->glues = !setsockopt(s->fd, SOL_UDP, UDP_GRO, &zero, sizeof(zero));
}

static int bind_to(struct sul_socket *s, const union sul_sockaddr *at)
{
	union sul_sockaddr bound = { 0 };
	socklen_t len = sizeof(bound);

	if (s->family == AF_INET6)
		set(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(s->fd, &at->any, sul_sockaddr_len(at)) ||
	    getsockname(s->fd, &bound.any, &len))
		return -errno;
	s->port = ntohs(s->family == AF_INET6 ? bound.v6.sin6_port :
						bound.v4.sin_port);
	s->scope = s->family == AF_INET6 ? at->v6.sin6_scope_id : 0;
	s->at = *at;
	return 0;
}

int sul_socket_open(struct sul_socket *s, const union sul_sockaddr *at)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->family = at->any.sa_family;
	s->fd = socket(s->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	err = bind_to(s, at);
	if (err) {
		sul_socket_close(s);
		return err;
	}
	set_options(s);
	return 0;
}

static union sul_sockaddr any_port(union sul_sockaddr a)
{
	if (a.any.sa_family == AF_INET6)
		a.v6.sin6_port = 0;
	else
		a.v4.sin_port = 0;
	return a;
}

int sul_socket_join(struct sul_socket *s, const struct sul_socket *like,
		    const union sul_sockaddr *to)
{
	union sul_sockaddr at = any_port(like->at);
	int err = sul_socket_open(s, &at);

	if (err)
		return err;
	if (connect(s->fd, &to->any, sul_sockaddr_len(to))) {
		err = -errno;
		sul_socket_close(s);
		return err;
	}
	s->joined = true;
	set(s->fd, SOL_SOCKET, SO_RCVBUF, 0); /* the least there is */
	return 0;
}

void sul_socket_unglue(struct sul_socket *s)
{
	int zero = 0;

	setsockopt(s->fd, SOL_UDP, UDP_GRO, &zero, sizeof(zero));
	s->glues = false;
}

void sul_socket_close(struct sul_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int sul_batch_open(struct sul_batch **out)
{
	struct sul_batch *b = malloc(sizeof(*b));

	if (!b)
		return -ENOMEM;
	/* Not the bytes: memory comes as it is used. */
	memset(b, 0, offsetof(struct sul_batch, bytes));
	for (unsigned int i = 0; i < RECEIVES; i++) {
		b->room[i].iov_base = b->bytes[i];
		b->room[i].iov_len = GLUED_MAX;
		b->in[i].msg_hdr.msg_iov = &b->room[i];
		b->in[i].msg_hdr.msg_iovlen = 1;
		b->in[i].msg_hdr.msg_control = &b->cut[i];
	}
	*out = b;
	return 0;
}

void sul_batch_close(struct sul_batch *b)
{
	free(b);
}

/* --- sending ------------------------------------------------------------------------ */

static unsigned int length_of(const struct sul_datagram *d)
{
	return d->head_len + d->body_len;
}

/* How many of @d the kernel can cut out of one packet: equally long, but for
 * the last. */
static unsigned int run_of(const struct sul_socket *s,
			   const struct sul_datagram *d, unsigned int nr)
{
	unsigned int n = 1, first = length_of(d), bytes = first;

	while (s->segment && n < nr && n < RUN_MAX && d[n].to == d->to &&
	       length_of(&d[n - 1]) == first && length_of(&d[n]) <= first &&
	       bytes + length_of(&d[n]) <= RUN_BYTES)
		bytes += length_of(&d[n++]);
	return n;
}

static void set_cut(struct msghdr *m, union control *c, unsigned int bytes)
{
	struct cmsghdr *h = &c->align;
	uint16_t size = (uint16_t)bytes;

	h->cmsg_level = SOL_UDP;
	h->cmsg_type = UDP_SEGMENT;
	h->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(h), &size, sizeof(size));
	m->msg_control = c;
	m->msg_controllen = CMSG_SPACE(sizeof(size));
}

static void *unconst(const void *p)
{
	return (void *)(uintptr_t)p;
}

static unsigned int put_pieces(struct iovec *v, const struct sul_datagram *d,
			       unsigned int nr)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nr; i++) {
		v[n++] = (struct iovec){ unconst(d[i].head), d[i].head_len };
		if (d[i].body_len)
			v[n++] = (struct iovec){ unconst(d[i].body),
						 d[i].body_len };
	}
	return n;
}

/* How many messages @d makes. */
static unsigned int make_messages(const struct sul_socket *s,
				  struct sul_batch *b,
				  const struct sul_datagram *d, unsigned int nr)
{
	struct iovec *v = b->piece;
	unsigned int m = 0;

	for (unsigned int i = 0; i < nr; i += b->run[m++]) {
		struct msghdr *h = &b->out[m].msg_hdr;

		b->run[m] = run_of(s, d + i, nr - i);
		h->msg_name = s->joined ? NULL : unconst(d[i].to);
		h->msg_namelen = s->joined ? 0 : sul_sockaddr_len(d[i].to);
		h->msg_iov = v;
		h->msg_iovlen = put_pieces(v, d + i, b->run[m]);
		v += h->msg_iovlen;
		h->msg_control = NULL;
		h->msg_controllen = 0;
		if (b->run[m] > 1)
			set_cut(h, &b->size[m], length_of(&d[i]));
	}
	return m;
}

static void wait_for_room(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	poll(&p, 1, FULL_MS);
}

/* What to do about message @at, which the kernel has refused with @err. */
enum refused {
	REFUSED_AGAIN, /* try it once more */
	REFUSED_SPLIT, /* packet by packet */
	REFUSED_LOST
};

static enum refused refused(struct sul_socket *s, unsigned int run, int err,
			    unsigned int *tries)
{
	if (err == EINTR)
		return REFUSED_AGAIN;
	/* Of an earlier one, which found nobody there. */
	if (err == ECONNREFUSED && ++*tries < FULL_TRIES)
		return REFUSED_AGAIN;
	if ((err == EAGAIN || err == ENOBUFS) && ++*tries < FULL_TRIES) {
		wait_for_room(s->fd);
		return REFUSED_AGAIN;
	}
	if (run > 1 && (err == EINVAL || err == EIO || err == EMSGSIZE)) {
		s->segment = false; /* this device cannot */
		return REFUSED_SPLIT;
	}
	return REFUSED_LOST;
}

static unsigned int send_many(struct sul_socket *s, struct sul_batch *b,
			      const struct sul_datagram *d, unsigned int nr)
{
	unsigned int messages = make_messages(s, b, d, nr);
	unsigned int at = 0, done = 0, lost = 0, tries = 0;

	while (at < messages) {
		int n = sendmmsg(s->fd, b->out + at, messages - at, 0);

		for (; n > 0; n--)
			done += b->run[at++];
		if (n == 0)
			continue;
		switch (refused(s, b->run[at], errno, &tries)) {
		case REFUSED_AGAIN:
			break;
		case REFUSED_SPLIT:
			messages = make_messages(s, b, d + done, nr - done);
			at = 0;
			break;
		case REFUSED_LOST:
			lost += b->run[at];
			done += b->run[at++];
			break;
		}
	}
	return lost;
}

unsigned int sul_socket_send(struct sul_socket *s, struct sul_batch *b,
			     const struct sul_datagram *d, unsigned int nr)
{
	/* In one piece, to the one address: the shortest way there is. */
	if (nr == 1 && s->joined && !d->body_len &&
	    send(s->fd, d->head, d->head_len, 0) >= 0)
		return 0;
	return send_many(s, b, d, nr);
}

/* --- receiving ---------------------------------------------------------------------- */

/* Of a message that was glued together: how long its packets are; else 0. */
static unsigned int cut_of(struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		int size;

		if (h->cmsg_level != SOL_UDP || h->cmsg_type != UDP_GRO)
			continue;
		memcpy(&size, CMSG_DATA(h), sizeof(size));
		return size > 0 ? (unsigned int)size : 0;
	}
	return 0;
}

static unsigned int hand_over(struct mmsghdr *m, sul_socket_fn *fn, void *ctx)
{
	char *at = m->msg_hdr.msg_iov->iov_base;
	unsigned int size = cut_of(&m->msg_hdr), n = 0;
	size_t left = m->msg_len;

	do {
		size_t len = size && size < left ? size : left;

		fn(ctx, at, len);
		at += len;
		left -= len;
		n++;
	} while (left);
	return n;
}

static unsigned int receive_one(struct sul_socket *s, struct sul_batch *b,
				sul_socket_fn *fn, void *ctx)
{
	ssize_t n = recv(s->fd, b->bytes[0], GLUED_MAX, MSG_DONTWAIT);

	if (n < 0) {
		s->row = 0;
		return 0;
	}
	fn(ctx, b->bytes[0], (size_t)n);
	if (++s->row < MANY)
		return 1;
	s->many = true;
	s->row = 0;
	s->room = RECEIVES;
	if (s->glues)
		set(s->fd, SOL_UDP, UDP_GRO, 1);
	return 1;
}

/* Nothing is there.  What is glued in just this moment is taken for one packet,
 * too long for anybody: it is lost, as in the network. */
static void expect_few(struct sul_socket *s)
{
	s->many = false;
	s->row = 0;
	if (s->glues)
		set(s->fd, SOL_UDP, UDP_GRO, 0);
}

static unsigned int receive_many(struct sul_socket *s, struct sul_batch *b,
				 sul_socket_fn *fn, void *ctx)
{
	unsigned int room = s->room, packets = 0;
	int n;

	for (unsigned int i = 0; i < room; i++)
		b->in[i].msg_hdr.msg_controllen = sizeof(union control);
	n = recvmmsg(s->fd, b->in, room, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		packets += hand_over(&b->in[i], fn, ctx);
	/* To look for a second message costs a tenth of a microsecond. */
	s->room = packets > 1 || n == (int)room ? RECEIVES : 1;
	if (packets == 1 && !s->busy)
		s->row++;
	else if (packets)
		s->row = 0;
	else if (s->row >= FEW)
		expect_few(s);
	s->busy = packets;
	return packets;
}

unsigned int sul_socket_receive(struct sul_socket *s, struct sul_batch *b,
				sul_socket_fn *fn, void *ctx)
{
	return s->many ? receive_many(s, b, fn, ctx) :
			 receive_one(s, b, fn, ctx);
}
