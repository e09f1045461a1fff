/* SPDX-License-Identifier: MIT */
/*
 * sulperf_net.c - sockets between the two ranks.
 *
 * Role:      UDP and TCP at the addresses that the carrier uses, and Unix
 *            sockets where both are on one host; sending and receiving, with
 *            and without sleep.
 * Invariant: a socket is connected to the other rank's and nobody else's.
 * Threads:   a socket is used by one thread at a time.
 *
 * Spinning is MSG_DONTWAIT over and over: what a program can do that wants the
 * least latency of a plain socket.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "sulperf.h"

enum {
	LOST_MS = 100, /* a datagram that is not there by then is lost */
	LOOKS = 64, /* at the socket, before others may have the processor */
};

bool perf_blocks(enum perf_via via)
{
	return via == PERF_UDP_BLOCK || via == PERF_TCP_BLOCK ||
	       via == PERF_DGRAM_BLOCK || via == PERF_STREAM_BLOCK;
}

bool perf_is_stream(enum perf_via via)
{
	return via == PERF_TCP || via == PERF_TCP_BLOCK || via == PERF_STREAM ||
	       via == PERF_STREAM_BLOCK;
}

bool perf_may_lose(enum perf_via via)
{
	return via == PERF_UDP || via == PERF_UDP_BLOCK;
}

static void must(struct perf *p, bool done, const char *what)
{
	if (!done)
		perf_fail(p, "%s: %s", what, strerror(errno));
}

/* --- making them --------------------------------------------------------------------------- */

static int make(struct perf *p, int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	must(p, fd >= 0, "a socket");
	return fd;
}

static in_port_t *port_of(union sul_sockaddr *a)
{
	return a->any.sa_family == AF_INET6 ? &a->v6.sin6_port :
					      &a->v4.sin_port;
}

/* A socket of @type that can be reached wherever the carrier can. */
static int make_inet(struct perf *p, int type, in_port_t *port)
{
	union sul_sockaddr any = { .v6 = { .sin6_port = 0 } };
	socklen_t len = sizeof(any);
	int fd;

	any.any.sa_family = perf_carrier_address(p).any.sa_family;
	fd = make(p, any.any.sa_family, type);
	must(p,
	     !bind(fd, &any.any, sul_sockaddr_len(&any)) &&
		     !getsockname(fd, &any.any, &len),
	     "a socket's port");
	*port = *port_of(&any);
	return fd;
}

/* The kernel chooses the name, which is in no file system. */
static int make_unix(struct perf *p, int type, struct sockaddr_un *name,
		     socklen_t *len)
{
	int fd = make(p, AF_UNIX, type);

	name->sun_family = AF_UNIX;
	*len = sizeof(*name);
	must(p,
	     !bind(fd, (struct sockaddr *)name, sizeof(sa_family_t)) &&
		     !getsockname(fd, (struct sockaddr *)name, len),
	     "a Unix socket's name");
	return fd;
}

static void link_to(struct perf *p, int fd, const void *name, socklen_t len)
{
	must(p, !connect(fd, name, len), "connecting a socket");
}

/* The other rank's connection; anybody could come from elsewhere. */
static int take_one(struct perf *p, int listener)
{
	union sul_sockaddr from = { .v6 = { .sin6_port = 0 } };
	union sul_sockaddr want = perf_carrier_address(p);
	socklen_t len;
	int fd;

	for (;;) {
		len = sizeof(from);
		fd = accept4(listener, &from.any, &len, SOCK_CLOEXEC);
		must(p, fd >= 0, "accepting a connection");
		if (from.any.sa_family == AF_UNIX ||
		    sul_link_same_address(&from, &want))
			break;
		close(fd);
	}
	close(listener);
	return fd;
}

/* Listening is for the peer. */
static void be_ready(struct perf *p, int fd)
{
	must(p, p->leader || !listen(fd, 1), "listening");
}

/* A datagram may be lost on its way. */
static void set_patience(struct perf *p, int fd)
{
	struct timeval t = { .tv_usec = LOST_MS * 1000L };

	must(p, !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)),
	     "a socket's time limit");
}

static void set_nodelay(struct perf *p, int fd)
{
	int one = 1;

	must(p, !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)),
	     "TCP_NODELAY");
}

static void tell_names(struct perf *p, const struct perf_names *names)
{
	perf_must(p,
		  sul_put(p->port, p->other, PERF_W_DESK,
			  offsetof(struct perf_desk, names), names,
			  sizeof(*names)),
		  "a put");
	perf_must(p, sul_flush(p->port), "a flush");
	perf_meet(p);
}

static void link_inet(struct perf *p, int fd, in_port_t port)
{
	union sul_sockaddr to = perf_carrier_address(p);

	*port_of(&to) = port;
	link_to(p, fd, &to, sul_sockaddr_len(&to));
}

static void open_inet(struct perf *p, const struct perf_names *theirs)
{
	link_inet(p, p->fd[PERF_UDP], theirs->port[0]);
	set_patience(p, p->fd[PERF_UDP]);
	if (p->leader)
		link_inet(p, p->fd[PERF_TCP], theirs->port[1]);
	else
		p->fd[PERF_TCP] = take_one(p, p->fd[PERF_TCP]);
	set_nodelay(p, p->fd[PERF_TCP]);
}

static void open_unix(struct perf *p, const struct perf_names *theirs)
{
	link_to(p, p->fd[PERF_DGRAM], &theirs->unix_name[0],
		theirs->unix_len[0]);
	if (p->leader)
		link_to(p, p->fd[PERF_STREAM], &theirs->unix_name[1],
			theirs->unix_len[1]);
	else
		p->fd[PERF_STREAM] = take_one(p, p->fd[PERF_STREAM]);
}

void perf_net_open(struct perf *p)
{
	struct perf_names mine;

	memset(&mine, 0, sizeof(mine));
	for (int v = 0; v < PERF_VIAS; v++)
		p->fd[v] = -1;
	p->fd[PERF_UDP] = make_inet(p, SOCK_DGRAM, &mine.port[0]);
	p->fd[PERF_TCP] = make_inet(p, SOCK_STREAM, &mine.port[1]);
	be_ready(p, p->fd[PERF_TCP]);
	if (p->near) {
		p->fd[PERF_DGRAM] = make_unix(p, SOCK_DGRAM, &mine.unix_name[0],
					      &mine.unix_len[0]);
		p->fd[PERF_STREAM] = make_unix(
			p, SOCK_STREAM, &mine.unix_name[1], &mine.unix_len[1]);
		be_ready(p, p->fd[PERF_STREAM]);
	}
	tell_names(p, &mine);
	open_inet(p, &p->desk->names);
	if (p->near)
		open_unix(p, &p->desk->names);
	p->fd[PERF_UDP_BLOCK] = p->fd[PERF_UDP];
	p->fd[PERF_TCP_BLOCK] = p->fd[PERF_TCP];
	p->fd[PERF_DGRAM_BLOCK] = p->fd[PERF_DGRAM];
	p->fd[PERF_STREAM_BLOCK] = p->fd[PERF_STREAM];
	perf_meet(p);
}

void perf_net_close(struct perf *p)
{
	for (int v = 0; v < PERF_VIAS; v++)
		if (p->fd[v] >= 0 && !perf_blocks((enum perf_via)v))
			close(p->fd[v]);
}

/* --- using them ------------------------------------------------------------------------------ */

/* ECONNREFUSED: an earlier datagram found the other's socket closed. */
static bool again(void)
{
	return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
	       errno == ECONNREFUSED;
}

static size_t transmit(struct perf *p, enum perf_via via, const void *buf,
		       size_t len, int flags)
{
	ssize_t n = send(p->fd[via], buf, len, flags | MSG_NOSIGNAL);

	must(p, n >= 0 || again(), "sending");
	return n > 0 ? (size_t)n : 0;
}

size_t perf_net_push(struct perf *p, enum perf_via via, const void *buf,
		     size_t len)
{
	return transmit(p, via, buf, len, MSG_DONTWAIT);
}

void perf_net_send(struct perf *p, enum perf_via via, const void *buf,
		   size_t len)
{
	int flags = perf_blocks(via) ? 0 : MSG_DONTWAIT;

	for (size_t done = 0; done < len;)
		done += transmit(p, via, (const char *)buf + done, len - done,
				 flags);
}

/* One call; 0: nothing has come (yet, or in time). */
static size_t receive(struct perf *p, enum perf_via via, void *buf, size_t len,
		      int flags)
{
	ssize_t n = recv(p->fd[via], buf, len, flags);

	must(p, n >= 0 || again(), "receiving");
	if (!n && perf_is_stream(via))
		perf_fail(p, "receiving: the other rank has hung up");
	return n > 0 ? (size_t)n : 0;
}

size_t perf_net_look(struct perf *p, enum perf_via via, void *buf, size_t len)
{
	return receive(p, via, buf, len, MSG_DONTWAIT);
}

static size_t spin(struct perf *p, enum perf_via via, void *buf, size_t len)
{
	uint64_t end = 0;
	size_t n = 0;

	for (unsigned int i = 1; !n; i++) {
		n = perf_net_look(p, via, buf, len);
		if (n || i % LOOKS)
			continue;
		sched_yield(); /* the other may be waiting for this one */
		if (!perf_may_lose(via))
			continue;
		if (!end)
			end = bench_now_ns() + LOST_MS * UINT64_C(1000000);
		else if (bench_now_ns() > end)
			break;
	}
	return n;
}

size_t perf_net_recv(struct perf *p, enum perf_via via, void *buf, size_t len)
{
	size_t done = 0;

	do {
		size_t n = perf_blocks(via) ?
				   receive(p, via, (char *)buf + done,
					   len - done, 0) :
				   spin(p, via, (char *)buf + done, len - done);

		done += n;
		if (!perf_is_stream(via))
			return n;
	} while (done < len);
	return done;
}
