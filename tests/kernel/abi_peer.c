/* SPDX-License-Identifier: MIT */
/* abi_peer.c - SOCKET, START and PEER: what they take, and who is a peer. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

/* --- SOCKET ------------------------------------------------------------------------- */

static int udp_socket(int family)
{
	struct sockaddr_in6 at = { .sin6_family = (sa_family_t)family };
	int fd = socket(family, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		abort();
	return fd;
}

static int hand_over(int port, int fd)
{
	struct sul_socket_spec s = { .size = sizeof(s), .fd = fd };

	return abi_call(port, SUL_IOC_SOCKET, &s);
}

void abi_socket_takes_bound_udp_sockets(void)
{
	struct abi_port p = abi_port(0, 2);

	IS(0, hand_over(p.fd, udp_socket(AF_INET)));
	IS(0, hand_over(p.fd, udp_socket(AF_INET6)));
}

void abi_socket_takes_nothing_else(void)
{
	struct abi_port p = abi_port(0, 2);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = 9 };
	int connected = udp_socket(AF_INET), file = open("/proc/self/maps", 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(connected, (struct sockaddr *)&to, sizeof(to)))
		abort();
	IS(-EBADF, hand_over(p.fd, -1));
	IS(-EBADF, hand_over(p.fd, 1000));
	IS(-ENOTSOCK, hand_over(p.fd, file));
	IS(-ENOTSOCK, hand_over(p.fd, p.fd), "itself");
	IS(-EPROTOTYPE, hand_over(p.fd, socket(AF_INET, SOCK_STREAM, 0)),
	   "TCP");
	IS(-EPROTOTYPE, hand_over(p.fd, socket(AF_UNIX, SOCK_DGRAM, 0)),
	   "Unix");
	IS(-EPROTOTYPE,
	   hand_over(p.fd, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)), "raw");
	IS(-EINVAL, hand_over(p.fd, socket(AF_INET, SOCK_DGRAM, 0)), "unbound");
	IS(-EINVAL, hand_over(p.fd, connected), "connected");
}

void abi_a_socket_is_of_one_port(void)
{
	struct abi_port p = abi_port(0, 2), q = abi_port(1, 2);
	int fd = udp_socket(AF_INET), again = udp_socket(AF_INET);

	IS(0, hand_over(p.fd, fd));
	IS(-EBUSY, hand_over(p.fd, fd));
	IS(-EBUSY, hand_over(q.fd, fd));
	IS(0, hand_over(p.fd, again));
	abi_close(&p);
	IS(0, hand_over(q.fd, again), "of a port that has ended");
}

void abi_a_port_has_so_many_sockets(void)
{
	struct abi_port p = abi_port(0, 2);

	for (int i = 0; i < SUL_ABI_PATHS_MAX; i++)
		IS(0, hand_over(p.fd, udp_socket(AF_INET)));
	IS(-E2BIG, hand_over(p.fd, udp_socket(AF_INET)));
}

void abi_sockets_come_before_start(void)
{
	struct abi_port p = abi_started(0, 2);

	IS(-EALREADY, hand_over(p.fd, udp_socket(AF_INET)));
}

void abi_a_socket_of_another_namespace_is_refused(void)
{
	struct abi_port p = abi_port(0, 2);

	if (unshare(CLONE_NEWNET))
		abort();
	IS(-EXDEV, hand_over(p.fd, udp_socket(AF_INET)));
}

/* The descriptor of a socket that the module has may be closed, before and after
 * the port. */
void abi_sockets_and_ports_end_in_any_order(void)
{
	struct abi_port p = abi_port(0, 2), q = abi_port(1, 2);
	int a = udp_socket(AF_INET), b = udp_socket(AF_INET6);

	IS(0, hand_over(p.fd, a));
	IS(0, hand_over(q.fd, b));
	close(a);
	IS(0, abi_start(&p));
	abi_close(&p);
	abi_close(&q);
	close(b);
}

/* --- START -------------------------------------------------------------------------- */

static int start_with(uint32_t windows, uint64_t addr, uint64_t bytes)
{
	struct sul_start s = { .size = sizeof(s), .windows = windows };
	struct sul_port_spec spec = abi_spec(0, 2);
	int fd = abi_port_as(&spec), err;

	s.window[0].addr = addr;
	s.window[0].bytes = bytes;
	err = abi_call(fd, SUL_IOC_START, &s);
	close(fd);
	return err;
}

void abi_start_checks_every_argument(void)
{
	uint64_t at = (uintptr_t)abi_memory(4 * ABI_PAGE);

	IS(0, start_with(1, at, 4 * ABI_PAGE));
	IS(0, start_with(1, 0, 0), "no window of that number");
	IS(-EINVAL, start_with(0, 0, 0));
	IS(-EINVAL, start_with(0, at, 4 * ABI_PAGE), "beyond the windows");
	IS(-EINVAL, start_with(SUL_ABI_WINDOWS_MAX + 1, at, ABI_PAGE));
	IS(-EINVAL, start_with(UINT32_MAX, at, ABI_PAGE));
	IS(-EINVAL, start_with(1, at + 8, ABI_PAGE));
	IS(-EINVAL, start_with(1, at, ABI_PAGE - 8));
	IS(-EINVAL, start_with(1, at, 0), "no bytes at an address");
	IS(-EINVAL, start_with(1, 0 - (uint64_t)ABI_PAGE, 2 * ABI_PAGE));
	IS(-EINVAL, start_with(1, ABI_PAGE, 0 - (uint64_t)ABI_PAGE));
	IS(-EFAULT, start_with(1, 0 - (uint64_t)4 * ABI_PAGE, ABI_PAGE),
	   "the kernel's");
	IS(-EFAULT, start_with(1, UINT64_C(1) << 47, ABI_PAGE), "nobody's");
}

void abi_a_port_starts_once(void)
{
	struct abi_port p = abi_started(0, 2);

	IS(-EALREADY, abi_start(&p));
}

void abi_windows_without_memory_are_found_out(void)
{
	struct abi_port p = abi_port(1, 2), q = abi_started(0, 2);
	struct sul_op op = abi_op(SUL_OP_PUT, 1, 0);
	uint64_t one = 1;
	int err;

	munmap(p.window, ABI_WINDOW_BYTES);
	err = abi_start(&p);
	if (err) { /* seen at once, or when it is used */
		IS(-EFAULT, err);
		return;
	}
	IS(0, abi_near(&q, 1, 0));
	op.addr = (uintptr_t)&one;
	op.len = sizeof(one);
	IS(-EFAULT, abi_submit_one(&q, op));
}

/* --- PEER --------------------------------------------------------------------------- */

static struct sul_peer_spec far_peer(uint32_t rank)
{
	struct sul_peer_spec s = {
		.size = sizeof(s),
		.rank = rank,
		.session = rank + 1,
		.packet_bytes = 1472,
		.paths = 1,
	};
	struct in_addr local = { htonl(INADDR_LOOPBACK) };

	s.path[0].family = AF_INET;
	s.path[0].port = 9;
	s.path[0].packet_bytes = 1472;
	memcpy(s.path[0].addr, &local, sizeof(local));
	return s;
}

static int peer_once(const struct sul_peer_spec *s)
{
	struct sul_peer_spec copy = *s;
	struct abi_port p = abi_port(0, 4);
	int err;

	IS(0, hand_over(p.fd, udp_socket(AF_INET)));
	IS(0, abi_start(&p));
	err = abi_call(p.fd, SUL_IOC_PEER, &copy);
	abi_close(&p);
	return err;
}

#define PEER_WITH(result, field, value)                        \
	do {                                                   \
		struct sul_peer_spec s_ = far_peer(1);         \
		s_.field = (value);                            \
		IS(result, peer_once(&s_), #field " " #value); \
	} while (0)

void abi_peer_checks_every_argument(void)
{
	PEER_WITH(0, rank, 1);
	PEER_WITH(-EINVAL, rank, 0); /* itself */
	PEER_WITH(-EINVAL, rank, 4);
	PEER_WITH(-EINVAL, rank, UINT32_MAX);
	for (unsigned int bit = 1; bit < 32; bit++)
		PEER_WITH(-EINVAL, flags, 1u << bit);
	PEER_WITH(-EINVAL, session, 0);
	PEER_WITH(-EINVAL, packet_bytes, 547);
	PEER_WITH(-EINVAL, packet_bytes, 8973);
	PEER_WITH(-EINVAL, paths, 0);
	PEER_WITH(-EINVAL, paths, SUL_ABI_PATHS_MAX + 1);
	PEER_WITH(-EINVAL, paths, UINT32_MAX);
	PEER_WITH(-EINVAL, reserved, 1);
	PEER_WITH(-EINVAL, path[0].family, AF_UNIX);
	PEER_WITH(-EINVAL, path[0].port, 0);
	PEER_WITH(-EINVAL, path[0].socket, 1);
	PEER_WITH(-EINVAL, path[0].socket, UINT32_MAX);
	PEER_WITH(-EINVAL, path[0].packet_bytes, 547);
	PEER_WITH(-EINVAL, path[0].packet_bytes, 8973);
	PEER_WITH(-EINVAL, flags, SUL_PEER_NEAR); /* by a path */
}

void abi_a_peer_is_named_once(void)
{
	struct abi_port p = abi_port(0, 4), q = abi_started(2, 4);
	struct sul_peer_spec s = far_peer(1);

	IS(0, hand_over(p.fd, udp_socket(AF_INET)));
	IS(0, abi_start(&p));
	IS(0, abi_call(p.fd, SUL_IOC_PEER, &s));
	IS(-EEXIST, abi_call(p.fd, SUL_IOC_PEER, &s));
	IS(-EEXIST, abi_near(&p, 1, 0));
	IS(0, abi_near(&p, q.rank, 0));
	IS(-EEXIST, abi_near(&p, q.rank, 0));
}

void abi_a_peer_without_a_route_is_refused(void)
{
	struct sul_peer_spec s = far_peer(1);
	struct in_addr elsewhere = { htonl(0xc6336401) }; /* 198.51.100.1 */

	memcpy(s.path[0].addr, &elsewhere, sizeof(elsewhere));
	IS(-EHOSTUNREACH, peer_once(&s));
}

void abi_far_peers_need_a_socket(void)
{
	struct abi_port p = abi_started(0, 4);
	struct sul_peer_spec s = far_peer(1);

	IS(-EINVAL, abi_call(p.fd, SUL_IOC_PEER, &s));
}

/* Whatever the module binds there besides. */
void abi_the_address_of_a_socket_stays_the_ports(void)
{
	struct abi_port p = abi_port(0, 4);
	struct sul_peer_spec s = far_peer(1);
	int own = udp_socket(AF_INET), one = 1, other;
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	IS(0, getsockname(own, (void *)&at, &len));
	IS(0, hand_over(p.fd, own));
	close(own);
	IS(0, abi_start(&p));
	IS(0, abi_call(p.fd, SUL_IOC_PEER, &s));
	s.rank = 2;
	IS(0, abi_call(p.fd, SUL_IOC_PEER, &s));
	other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	IS(0, setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	IS(0, setsockopt(other, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
	IS(-1, bind(other, (void *)&at, len), "while the port is there");
	IS(EADDRINUSE, errno);
	abi_close(&p);
	IS(0, bind(other, (void *)&at, len), "afterwards");
	close(other);
}

void abi_a_near_peer_that_is_not_there_is_waited_for(void)
{
	struct abi_port p = abi_started(0, 4), q = abi_port(1, 4);
	struct sul_peer_spec s = {
		.size = sizeof(s),
		.flags = SUL_PEER_NEAR,
		.rank = 1,
		.session = 77, /* another life of it */
		.packet_bytes = 1472,
		.timeout_ms = 50,
	};

	IS(-ETIMEDOUT, abi_near(&p, 3, 50), "not there");
	IS(-ETIMEDOUT, abi_near(&p, 1, 50), "not started");
	IS(0, abi_start(&q));
	IS(-ETIMEDOUT, abi_call(p.fd, SUL_IOC_PEER, &s), "another session");
	IS(0, abi_near(&p, 1, 50));
}

static void starts_later(void)
{
	struct abi_port p = abi_port(1, 2);

	usleep(200000);
	IS(0, abi_start(&p));
	usleep(300000);
	_exit(!abi_all_well());
}

void abi_a_near_peer_may_start_later(void)
{
	struct abi_port p = abi_started(0, 2);
	int status;
	pid_t pid = fork();

	if (!pid)
		starts_later();
	IS(0, abi_near(&p, 1, 10000));
	waitpid(pid, &status, 0);
	CHECK(!status, "the peer: %#x", status);
}

/* --- strangers ---------------------------------------------------------------------- */

/* A process that is rank 1 in another way than rank 0 (here) expects. */
static void stranger(void (*become)(void), long wanted)
{
	struct abi_port p;
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		abort();
	pid = fork();
	if (!pid) {
		struct abi_port q;

		become();
		q = abi_started(1, 2);
		if (q.fd < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1, "the stranger did not start");
	p = abi_started(0, 2);
	IS(wanted, abi_near(&p, 1, 100));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void another_user(void)
{
	abi_become(ABI_UID_ONE, RLIM_INFINITY);
}

static void another_network(void)
{
	if (unshare(CLONE_NEWNET))
		abort();
}

void abi_another_users_port_is_no_peer(void)
{
	stranger(another_user, -EACCES);
}

void abi_a_port_of_another_namespace_is_no_peer(void)
{
	stranger(another_network, -ETIMEDOUT);
}

void abi_a_port_of_another_job_is_no_peer(void)
{
	struct abi_port p = abi_started(0, 2);
	struct sul_port_spec s = abi_spec(1, 2);
	struct sul_start start = { .size = sizeof(start), .windows = 1 };
	int fd;

	s.key[0] ^= 1;
	fd = abi_port_as(&s);
	start.window[0].addr = (uintptr_t)abi_memory(ABI_PAGE);
	start.window[0].bytes = ABI_PAGE;
	IS(0, abi_call(fd, SUL_IOC_START, &start));
	IS(-ETIMEDOUT, abi_near(&p, 1, 100));
}
