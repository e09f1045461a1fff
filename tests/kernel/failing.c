/* SPDX-License-Identifier: MIT */
/*
 * failing.c - each allocation of each call of a port's life fails once.
 *
 * Role:      a kernel with CONFIG_FAULT_INJECTION makes the n-th allocation of a task
 *            fail that says so in /proc/thread-self/fail-nth.  Each call is made with
 *            its first one failing, then with the second, until it has no other.
 * Invariant: what has failed for want of memory says so, and can be done again as if
 *            nothing had happened; nothing is left of any of it in the end.
 * Threads:   one; packets are the kernel's business.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi.h"
#include "fuzz.h"
#include "kernel.h"

enum {
	NEAR = 1, /* ranks; 0 is the one whose calls fail */
	FAR = 2,
	RANKS = 3,
	PACKET_BYTES = 1472,
	NTH_MAX = 2000,
	WAIT_SECONDS = 30,
};

/* A rank of the job; all are of this process. */
struct rank {
	struct abi_port port;
	int sock; /* bound, or -1 */
	uint16_t udp;
};

struct life {
	struct rank rank[RANKS];
	char *data;
	void *mapped;
};

/* --- failures --------------------------------------------------------------------------- */

static int nth_fd; /* /proc/thread-self/fail-nth */

static void fail_nth(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	if (write(nth_fd, text, (size_t)len) != len)
		abort();
}

/* It has failed since; no other one will. */
static bool has_failed(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		abort();
	fail_nth(0);
	return !strtoul(text, NULL, 10);
}

/* --- a port's life ------------------------------------------------------------------------ */

static int do_open(struct life *l)
{
	int fd = abi_open();

	l->rank[0].port.fd = fd;
	return fd < 0 ? fd : 0;
}

static int do_hello(struct life *l)
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };

	return abi_call(l->rank[0].port.fd, SUL_IOC_HELLO, &h);
}

static int make_port(struct rank *r)
{
	struct sul_port_spec s = abi_spec(r->port.rank, RANKS);

	return abi_call(r->port.fd, SUL_IOC_PORT, &s);
}

static int do_port(struct life *l)
{
	return make_port(&l->rank[0]);
}

static int hand_over(struct rank *r)
{
	struct sul_socket_spec s = { .size = sizeof(s), .fd = r->sock };

	return abi_call(r->port.fd, SUL_IOC_SOCKET, &s);
}

static int do_socket(struct life *l)
{
	return hand_over(&l->rank[0]);
}

static int do_start(struct life *l)
{
	return abi_start(&l->rank[0].port);
}

static int do_map(struct life *l)
{
	l->mapped = mmap(NULL, ABI_LANDING_BYTES, PROT_READ, MAP_SHARED,
			 l->rank[0].port.fd, SUL_MAP_LANDING);
	return l->mapped == MAP_FAILED ? -errno : 0;
}

static int do_near(struct life *l)
{
	return abi_near(&l->rank[0].port, NEAR, 0);
}

static int meet_far(const struct rank *r, const struct rank *other)
{
	struct in_addr to = { htonl(INADDR_LOOPBACK) };
	struct sul_peer_spec s = { .size = sizeof(s),
				   .rank = other->port.rank,
				   .session = other->port.rank + 1,
				   .packet_bytes = PACKET_BYTES,
				   .paths = 1 };

	s.path[0].family = AF_INET;
	s.path[0].port = other->udp;
	s.path[0].packet_bytes = PACKET_BYTES;
	memcpy(s.path[0].addr, &to, sizeof(to));
	return abi_call(r->port.fd, SUL_IOC_PEER, &s);
}

static int do_far(struct life *l)
{
	return meet_far(&l->rank[0], &l->rank[FAR]);
}

/* All of its window, of which no page has been touched. */
static int put_all(struct life *l, uint32_t rank)
{
	struct sul_op op = abi_op(SUL_OP_PUT, rank, 0);

	op.addr = (uintptr_t)l->data;
	op.len = ABI_WINDOW_BYTES;
	return abi_submit(&l->rank[0].port, &op, 1, NULL);
}

static int do_put_near(struct life *l)
{
	return put_all(l, NEAR);
}

static int do_put_far(struct life *l)
{
	return put_all(l, FAR);
}

static int do_putv_near(struct life *l)
{
	static const struct sul_run runs[] = { { 0, 64 }, { 5000, 64 } };
	struct sul_op op = abi_op(SUL_OP_PUTV, NEAR, 0);

	op.addr = (uintptr_t)l->data;
	op.runs.addr = (uintptr_t)runs;
	op.runs.nr = 2;
	return abi_submit(&l->rank[0].port, &op, 1, NULL);
}

static int do_get_far(struct life *l)
{
	struct sul_op op = abi_op(SUL_OP_GET, FAR, 0);

	op.len = ABI_LANDING_BYTES;
	return abi_submit(&l->rank[0].port, &op, 1, NULL);
}

/* Everything is executed, whatever was lost on the way. */
static int do_wait(struct life *l)
{
	struct sul_wait w = { .size = sizeof(w) };

	w.timeout_ns = WAIT_SECONDS * UINT64_C(1000000000);
	return abi_call(l->rank[0].port.fd, SUL_IOC_WAIT, &w);
}

static int do_count(struct life *l)
{
	uint64_t values[64];
	struct sul_count c = { .size = sizeof(c),
			       .nr = 64,
			       .values = (uintptr_t)values };

	return abi_call(l->rank[0].port.fd, SUL_IOC_COUNT, &c);
}

static const struct step {
	const char *name;
	int (*run)(struct life *l);
} steps[] = {
	{ "open", do_open },	     { "HELLO", do_hello },
	{ "PORT", do_port },	     { "SOCKET", do_socket },
	{ "START", do_start },	     { "mmap", do_map },
	{ "PEER near", do_near },    { "PEER far", do_far },
	{ "put near", do_put_near }, { "put far", do_put_far },
	{ "putv", do_putv_near },    { "get far", do_get_far },
	{ "WAIT", do_wait },	     { "COUNT", do_count },
};

enum {
	STEPS = sizeof(steps) / sizeof(steps[0])
};

/* --- the others of the job ---------------------------------------------------------------- */

static void bind_socket(struct rank *r)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->sock = socket(AF_INET, SOCK_DGRAM, 0);
	if (r->sock < 0 || bind(r->sock, (struct sockaddr *)&at, len) ||
	    getsockname(r->sock, (struct sockaddr *)&at, &len))
		abort();
	r->udp = ntohs(at.sin_port);
}

static void other_begin(struct life *l, uint32_t nr)
{
	struct rank *r = &l->rank[nr];

	r->port.fd = abi_hello();
	IS(0, make_port(r));
	if (r->sock >= 0)
		IS(0, hand_over(r));
	IS(0, abi_start(&r->port));
	if (r->sock >= 0)
		IS(0, meet_far(r, &l->rank[0]));
}

static void life_begin(struct life *l)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		struct rank *r = &l->rank[i];

		r->port = (struct abi_port){ .fd = -1, .rank = i };
		r->port.window = abi_memory(ABI_WINDOW_BYTES);
		r->sock = -1;
		if (i != NEAR)
			bind_socket(r);
	}
	l->mapped = MAP_FAILED;
	l->data = abi_memory(ABI_WINDOW_BYTES);
	memset(l->data, 1, ABI_WINDOW_BYTES); /* it is there */
	other_begin(l, NEAR);
	other_begin(l, FAR);
}

static void life_end(struct life *l)
{
	if (l->mapped != MAP_FAILED)
		munmap(l->mapped, ABI_LANDING_BYTES);
	munmap(l->data, ABI_WINDOW_BYTES);
	for (int i = 0; i < RANKS; i++) {
		struct rank *r = &l->rank[i];

		if (r->port.fd >= 0)
			close(r->port.fd);
		if (r->sock >= 0)
			close(r->sock);
		munmap(r->port.window, ABI_WINDOW_BYTES);
	}
}

/* --- one after the other ------------------------------------------------------------------- */

/* A page of the caller's that cannot be made is not there; a route, too. */
static bool says_so(int err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -EFAULT ||
	       err == -EHOSTUNREACH;
}

/* Up to the step, whose n-th allocation fails; false: it has not so many. */
static bool fail_step(const struct step *step, unsigned int nth)
{
	struct life l;
	bool failed;
	int err;

	life_begin(&l);
	for (const struct step *s = steps; s != step; s++)
		IS(0, s->run(&l), s->name);
	fail_nth(nth);
	err = step->run(&l);
	failed = has_failed();
	if (!failed)
		IS(0, err, step->name);
	CHECK(!err || says_so(err), "%s, allocation %u: %s", step->name, nth,
	      strerror(-err));
	for (const struct step *s = step + !err; s < steps + STEPS; s++)
		IS(0, s->run(&l), s->name);
	life_end(&l);
	return failed;
}

int kernel_failing(int argc, char **argv)
{
	long pinned = fuzz_pages_pinned();
	bool clean;

	(void)argc, (void)argv;
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0) {
		puts("ok - allocations_fail # SKIP this kernel's do not at will");
		return 0;
	}
	for (const struct step *s = steps; s < steps + STEPS; s++) {
		unsigned int nth = 1;

		while (abi_all_well() && nth < NTH_MAX && fail_step(s, nth))
			nth++;
		printf("# %s: %u allocations have failed\n", s->name, nth - 1);
	}
	clean = fuzz_all_gone(pinned) && abi_all_well();
	printf("%s - what_fails_for_want_of_memory_can_be_done_again\n",
	       clean ? "ok" : "not ok");
	return !clean;
}
