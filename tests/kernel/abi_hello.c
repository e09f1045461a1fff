/* SPDX-License-Identifier: MIT */
/* abi_hello.c - what all calls have in common: version, sizes, numbers, owner. */
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

enum {
	LONGER = 64, /* a structure of a version to come, by so much */
};

/* Every call that has a structure. */
static const struct call {
	const char *name;
	unsigned long cmd;
	uint32_t size;
} calls[] = {
	{ "HELLO", SUL_IOC_HELLO, sizeof(struct sul_hello) },
	{ "PORT", SUL_IOC_PORT, sizeof(struct sul_port_spec) },
	{ "SOCKET", SUL_IOC_SOCKET, sizeof(struct sul_socket_spec) },
	{ "START", SUL_IOC_START, sizeof(struct sul_start) },
	{ "PEER", SUL_IOC_PEER, sizeof(struct sul_peer_spec) },
	{ "SUBMIT", SUL_IOC_SUBMIT, sizeof(struct sul_submit) },
	{ "WAIT", SUL_IOC_WAIT, sizeof(struct sul_wait) },
	{ "WAKE", SUL_IOC_WAKE, sizeof(struct sul_wake) },
	{ "COUNT", SUL_IOC_COUNT, sizeof(struct sul_count) },
};

enum {
	CALLS = sizeof(calls) / sizeof(calls[0])
};

/* The call with nothing but a size; the rest is 0. */
static int bare(int fd, const struct call *c)
{
	char arg[512] = { 0 };

	memcpy(arg, &c->size, sizeof(c->size));
	return abi_call(fd, c->cmd, arg);
}

void abi_before_hello_everything_is_refused(void)
{
	int fd = abi_open();

	for (int i = 1; i < CALLS; i++)
		IS(-EPROTO, bare(fd, &calls[i]), calls[i].name);
	IS(0, abi_call(fd, SUL_IOC_NULL, NULL));
	IS(-EINVAL,
	   mmap(NULL, ABI_PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ?
		   -errno :
		   0);
}

void abi_before_port_everything_else_is_refused(void)
{
	int fd = abi_hello();

	for (int i = 2; i < CALLS; i++)
		IS(-EINVAL, bare(fd, &calls[i]), calls[i].name);
}

void abi_hello_tells_versions(void)
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };

	IS(0, abi_call(abi_open(), SUL_IOC_HELLO, &h));
	IS(SUL_ABI_VERSION, h.version);
	IS(1, h.oldest);
	CHECK(!(h.features & ~SUL_FEATURE_AEAD), "features %#x", h.features);
}

void abi_hello_of_an_older_version_is_taken(void)
{
	for (uint32_t version = 1; version < SUL_ABI_VERSION; version++) {
		struct sul_hello h = { .size = sizeof(h), .version = version };

		IS(0, abi_call(abi_open(), SUL_IOC_HELLO, &h));
		IS(SUL_ABI_VERSION, h.version);
	}
}

void abi_hello_of_another_version_is_refused_and_answered(void)
{
	const uint32_t version[] = { 0, SUL_ABI_VERSION + 1, UINT32_MAX };

	for (int i = 0; i < 3; i++) {
		struct sul_hello h = { .size = sizeof(h),
				       .version = version[i] };
		int fd = abi_open();

		IS(-EPROTO, abi_call(fd, SUL_IOC_HELLO, &h));
		IS(SUL_ABI_VERSION, h.version);
		IS(1, h.oldest);
		IS(-EPROTO, bare(fd, &calls[1]), "PORT after that");
	}
}

void abi_hello_wants_what_it_fills_in_to_be_0(void)
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };

	h.oldest = 1;
	IS(-EINVAL, abi_call(abi_open(), SUL_IOC_HELLO, &h));
	h.oldest = 0;
	h.features = SUL_FEATURE_AEAD;
	IS(-EINVAL, abi_call(abi_open(), SUL_IOC_HELLO, &h));
}

void abi_a_longer_structure_is_taken_if_the_rest_is_0(void)
{
	struct {
		struct sul_hello h;
		char more[LONGER];
	} arg = { { .size = sizeof(arg), .version = SUL_ABI_VERSION }, { 0 } };

	IS(0, abi_call(abi_open(), SUL_IOC_HELLO, &arg));
	arg.h = (struct sul_hello){ .size = sizeof(arg),
				    .version = SUL_ABI_VERSION };
	/* a program of that version has another number for the same call */
	IS(0, abi_call(abi_open(), _IOWR(SUL_IOC_MAGIC, 0, arg), &arg));
}

static unsigned long longer_cmd(const struct call *c)
{
	return _IOC(_IOC_DIR(c->cmd), _IOC_TYPE(c->cmd), _IOC_NR(c->cmd),
		    c->size + LONGER);
}

void abi_a_longer_structure_is_refused_if_the_rest_is_not_0(void)
{
	int fd = abi_hello();

	for (int i = 0; i < CALLS; i++) {
		char arg[512] = { 0 };
		uint32_t size = calls[i].size + LONGER;

		memcpy(arg, &size, sizeof(size));
		for (uint32_t at = calls[i].size; at < size; at += 7) {
			arg[at] = 1;
			IS(-E2BIG, abi_call(fd, calls[i].cmd, arg),
			   calls[i].name);
			IS(-E2BIG, abi_call(fd, longer_cmd(&calls[i]), arg),
			   calls[i].name);
			arg[at] = 0;
		}
	}
}

void abi_a_structure_longer_than_a_page_is_refused(void)
{
	char *arg = abi_memory(4 * ABI_PAGE);
	const uint32_t sizes[] = { ABI_PAGE + 8, 4 * ABI_PAGE, UINT32_MAX };
	int fd = abi_hello();

	for (int i = 0; i < CALLS; i++)
		for (int s = 0; s < 3; s++) {
			memcpy(arg, &sizes[s], sizeof(sizes[s]));
			IS(-E2BIG, abi_call(fd, calls[i].cmd, arg),
			   calls[i].name);
		}
}

void abi_a_shorter_structure_than_the_first_is_refused(void)
{
	int fd = abi_hello();

	for (int i = 0; i < CALLS; i++) {
		char arg[512] = { 0 };

		for (uint32_t size = 0; size < calls[i].size; size += 4) {
			memcpy(arg, &size, sizeof(size));
			IS(-EINVAL, abi_call(fd, calls[i].cmd, arg),
			   calls[i].name);
		}
	}
}

void abi_a_structure_that_is_not_there_is_refused(void)
{
	char *page = abi_memory(2 * ABI_PAGE), *end = page + ABI_PAGE;
	int fd = abi_hello();

	munmap(end, ABI_PAGE);
	for (int i = 0; i < CALLS; i++) {
		char *cut = end - calls[i].size + 4; /* all but the end */
		uint32_t longer = calls[i].size + LONGER;

		IS(-EFAULT, abi_call(fd, calls[i].cmd, NULL), calls[i].name);
		IS(-EFAULT, abi_call(fd, calls[i].cmd, end), calls[i].name);
		IS(-EFAULT,
		   abi_call(fd, calls[i].cmd, (void *)(uintptr_t)-4096),
		   calls[i].name);
		memcpy(cut, &calls[i].size, sizeof(uint32_t));
		IS(-EFAULT, abi_call(fd, calls[i].cmd, cut), calls[i].name);
		cut -= 4; /* all there; a longer one is not */
		memcpy(cut, &longer, sizeof(longer));
		IS(-EFAULT, abi_call(fd, calls[i].cmd, cut), calls[i].name);
	}
}

void abi_an_answer_that_cannot_be_stored_is_refused(void)
{
	struct sul_hello *h = abi_memory(ABI_PAGE);

	*h = (struct sul_hello){ .size = sizeof(*h),
				 .version = SUL_ABI_VERSION };
	mprotect(h, ABI_PAGE, PROT_READ);
	IS(-EFAULT, abi_call(abi_open(), SUL_IOC_HELLO, h));
}

void abi_unknown_commands_are_refused(void)
{
	char arg[512] = { 0 };
	uint32_t size = 64;
	int fd = abi_hello();

	memcpy(arg, &size, sizeof(size));
	for (unsigned int nr = _IOC_NR(SUL_IOC_NULL) + 1; nr < 256; nr++)
		IS(-ENOTTY,
		   abi_call(fd, _IOC(3u, SUL_IOC_MAGIC, nr, 64u), arg));
	for (int i = 0; i < CALLS; i++) {
		IS(-ENOTTY, abi_call(fd, calls[i].cmd ^ 0x100, arg),
		   "another driver's");
		IS(-ENOTTY,
		   abi_call(fd, calls[i].cmd & ~(3ul << _IOC_DIRSHIFT), arg),
		   "without direction");
	}
	IS(-ENOTTY, abi_call(fd, 0x5401, arg), "TCGETS");
	IS(-ENOTTY, abi_call(fd, 0, arg));
	IS(-ENOTTY, abi_call(fd, UINT32_MAX, arg));
}

void abi_read_and_write_are_refused(void)
{
	struct abi_port p = abi_started(0, 1);
	char byte = 0;

	IS(-EINVAL, read(p.fd, &byte, 1) < 0 ? -errno : 0);
	IS(-EINVAL, write(p.fd, &byte, 1) < 0 ? -errno : 0);
}

/* --- whose it is ---------------------------------------------------------------------- */

static void all_are_forbidden(void *ctx)
{
	const int *fd = ctx;

	for (int i = 0; i < CALLS; i++)
		IS(-EPERM, bare(*fd, &calls[i]), calls[i].name);
	IS(-EPERM, abi_call(*fd, SUL_IOC_NULL, NULL));
	IS(-EPERM,
	   mmap(NULL, ABI_PAGE, PROT_READ, MAP_SHARED, *fd, 0) == MAP_FAILED ?
		   -errno :
		   0);
}

void abi_a_forked_child_is_refused(void)
{
	struct abi_port p[2];
	uint64_t one = 1;
	struct sul_op op = abi_op(SUL_OP_PUT, 1, 0);

	abi_pair(p);
	abi_in_child(all_are_forbidden, &p[0].fd);
	/* nor is that the end of the port when the child closes it */
	op.addr = (uintptr_t)&one;
	op.len = sizeof(one);
	IS(0, abi_submit_one(&p[0], op));
	IS(1, p[1].window[0]);
}

static _Noreturn void reads_the_status(const struct abi_port *p)
{
	signal(SIGSEGV, SIG_DFL);
	_exit(p->status->dead == 77 ? 2 : 1);
}

void abi_a_forked_child_has_no_mappings(void)
{
	struct abi_port p = abi_port(0, 1);
	int status;
	pid_t pid = fork();

	if (!pid)
		reads_the_status(&p);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	      "it could read: %#x", status);
}

static void fd_send(int sock, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &m, 0) != 1)
		abort();
}

static int fd_receive(int sock)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	int fd;

	if (recvmsg(sock, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		abort();
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* The owner is dead, and its port is in our hands. */
void abi_who_was_handed_a_port_is_refused(void)
{
	int pair[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		abort();
	pid = fork();
	if (!pid) {
		fd_send(pair[1], abi_started(0, 1).fd);
		_exit(0);
	}
	fd = fd_receive(pair[0]);
	all_are_forbidden(&fd);
	waitpid(pid, NULL, 0);
	all_are_forbidden(&fd);
}
