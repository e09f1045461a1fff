/* SPDX-License-Identifier: MIT */
/* test_sul_socket.c - batches of packets through a socket and back. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>

#include "sul_socket.h"
#include "tests.h"

enum {
	LONGEST = 8972,
	HEAD = 64,
	ROOM = 512 /* packets of a test */
};

struct pair {
	struct sul_socket from, to;
	struct sul_batch *batch;
	union sul_sockaddr at; /* of @to */
	unsigned int lengths[ROOM]; /* sent */
	unsigned int sent, got, wrong;
	unsigned char bytes[LONGEST + ROOM];
};

static int open_pair(struct pair *x, int family)
{
	union sul_sockaddr any = { 0 };

	memset(x, 0, sizeof(*x));
	any.any.sa_family = (sa_family_t)family;
	if (family == AF_INET6)
		any.v6.sin6_addr = in6addr_loopback;
	else
		any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (sul_socket_open(&x->from, &any) || sul_socket_open(&x->to, &any) ||
	    sul_batch_open(&x->batch))
		return -1;
	x->at = any;
	if (family == AF_INET6)
		x->at.v6.sin6_port = htons((uint16_t)x->to.port);
	else
		x->at.v4.sin_port = htons((uint16_t)x->to.port);
	for (size_t i = 0; i < sizeof(x->bytes); i++)
		x->bytes[i] = (unsigned char)(i * 7 % 251);
	return 0;
}

static void close_pair(struct pair *x)
{
	sul_socket_close(&x->from);
	sul_socket_close(&x->to);
	sul_batch_close(x->batch);
}

/* Packet n is the bytes from n on; every other in two pieces. */
static void send_all(struct pair *x, const unsigned int *lengths,
		     unsigned int nr)
{
	struct sul_datagram d[SUL_SOCKET_BATCH];

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int n = x->sent + i, head = lengths[i];

		if (n % 2 && head > HEAD)
			head = HEAD;
		d[i] = (struct sul_datagram){ .to = &x->at,
					      .head = x->bytes + n,
					      .body = x->bytes + n + head,
					      .head_len = head,
					      .body_len = lengths[i] - head };
		x->lengths[n] = lengths[i];
	}
	CU_ASSERT_EQUAL(sul_socket_send(&x->from, x->batch, d, nr), 0);
	x->sent += nr;
}

static void take(void *ctx, void *packet, size_t len)
{
	struct pair *x = ctx;
	unsigned int n = x->got++;

	if (n >= x->sent || len != x->lengths[n] ||
	    memcmp(packet, x->bytes + n, len) != 0)
		x->wrong++;
}

static void receive_all(struct pair *x)
{
	struct pollfd p = { .fd = x->to.fd, .events = POLLIN };

	while (x->got < x->sent && poll(&p, 1, 2000) == 1)
		while (sul_socket_receive(&x->to, x->batch, take, x))
			;
	CU_ASSERT_EQUAL(x->got, x->sent);
	CU_ASSERT_EQUAL(x->wrong, 0);
	CU_ASSERT_EQUAL(sul_socket_receive(&x->to, x->batch, take, x), 0);
}

/* Runs of equal length, of which the last may be shorter, and others. */
static void send_patterns(struct pair *x)
{
	unsigned int equal[SUL_SOCKET_BATCH], mixed[SUL_SOCKET_BATCH];

	for (unsigned int i = 0; i < SUL_SOCKET_BATCH; i++) {
		equal[i] = i == SUL_SOCKET_BATCH - 1 ? 70 : 1472;
		mixed[i] = i % 5 == 4 ? 1 + i % 64 * 100 : 548 + i / 5;
	}
	send_all(x, equal, SUL_SOCKET_BATCH);
	receive_all(x);
	send_all(x, mixed, SUL_SOCKET_BATCH);
	receive_all(x);
	for (unsigned int i = 0; i < 20; i++)
		equal[i] = LONGEST;
	send_all(x, equal, 20);
	receive_all(x);
}

static void batches_arrive_as_they_were_sent(void)
{
	static struct pair x;

	REQUIRE(open_pair(&x, AF_INET) == 0);
	send_patterns(&x);
	close_pair(&x);
}

static void without_the_kernels_help_they_do_too(void)
{
	static struct pair x;

	REQUIRE(open_pair(&x, AF_INET) == 0);
	x.from.segment = false;
	send_patterns(&x);
	close_pair(&x);
}

static void over_ipv6_they_do_too(void)
{
	static struct pair x;

	if (open_pair(&x, AF_INET6)) /* a host without IPv6 */
		return;
	send_patterns(&x);
	close_pair(&x);
}

/* Nothing takes a packet of a link that carries less: it goes in fragments. */
static void what_is_refused_is_lost_and_counted(void)
{
	static struct pair x;
	union sul_sockaddr nowhere = { 0 };
	struct sul_datagram d[3];

	REQUIRE(open_pair(&x, AF_INET) == 0);
	nowhere.v4.sin_family = AF_INET; /* port 0: EINVAL */
	nowhere.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 3; i++)
		d[i] = (struct sul_datagram){ .to = i == 1 ? &nowhere : &x.at,
					      .head = x.bytes + (i ? 1 : 0),
					      .head_len = 100 };
	CU_ASSERT_EQUAL(sul_socket_send(&x.from, x.batch, d, 3), 1);
	x.sent = 2;
	x.lengths[0] = x.lengths[1] = 100;
	receive_all(&x);
	close_pair(&x);
}

static void open__an_address_that_is_not_ours(void)
{
	union sul_sockaddr at = { 0 };
	struct sul_socket s;

	at.v4.sin_family = AF_INET;
	at.v4.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1 */
	CU_ASSERT_EQUAL(sul_socket_open(&s, &at), -EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(s.fd, -1);
}

CU_TestInfo test_sul_socket[] = {
	{ "batches arrive as they were sent",
	  batches_arrive_as_they_were_sent },
	{ "without the kernel's help they do too",
	  without_the_kernels_help_they_do_too },
	{ "over IPv6 they do too", over_ipv6_they_do_too },
	{ "what is refused is lost and counted",
	  what_is_refused_is_lost_and_counted },
	{ "open: an address that is not ours",
	  open__an_address_that_is_not_ours },
	CU_TEST_INFO_NULL,
};
