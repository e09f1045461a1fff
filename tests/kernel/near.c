/* SPDX-License-Identifier: MIT */
/*
 * near.c - what messages between ranks of one host cost, as ratios.
 *
 * Role:      two ranks play ping-pong with a put and a notify in one SUBMIT, and over
 *            a socket; a rank puts much into the other's window, and writes as much
 *            there by process_vm_writev().
 * Invariant: what is compared is measured in turn, and the best of each counts; an
 *            emulated processor loses its turn at any time, so the ratios are for
 *            reading, and only what arrives is judged.  They are tried for until all
 *            are as they should be, or the time is over.
 * Threads:   a process for each rank.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"
#include "kernel.h"
#include "sul_clock.h"

enum {
	WINDOW_BYTES = 1 << 20,
	WORD = 0, /* what each waits for */
	DATA = 64, /* and what comes with it */
	TRIPS = 50, /* of a turn */
	PUTS = 4,
	WAIT_MS = 20000,
	SECONDS = 10, /* of trying, at most */
	UDP_PORT = 20001, /* and the next one */
};

struct side {
	int fd, udp;
	uint32_t other;
	char *window;
	uint32_t turn; /* of both games */
};

static void best(uint64_t *least, uint64_t ns)
{
	if (!*least || ns < *least)
		*least = ns;
}

/* --- a rank ----------------------------------------------------------------------- */

static int open_socket(uint32_t rank)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	here.sin_port = htons((uint16_t)(UDP_PORT + rank));
	IS(0, bind(fd, (struct sockaddr *)&here, sizeof(here)));
	here.sin_port = htons((uint16_t)(UDP_PORT + !rank));
	IS(0, connect(fd, (struct sockaddr *)&here, sizeof(here)));
	return fd;
}

static struct side open_side(uint32_t rank, char *window)
{
	struct sul_port_spec spec = abi_spec(rank, 2);
	struct sul_start start = { .size = sizeof(start), .windows = 1 };
	struct abi_port p = { .rank = rank };
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(rank, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	spec.pin_bytes = 2 * WINDOW_BYTES;
	start.window[0].addr = (uintptr_t)window;
	start.window[0].bytes = WINDOW_BYTES;
	p.fd = abi_port_as(&spec);
	IS(0, abi_call(p.fd, SUL_IOC_START, &start));
	IS(0, abi_near(&p, !rank, WAIT_MS));
	return (struct side){
		.fd = p.fd,
		.udp = open_socket(rank),
		.other = !rank,
		.window = window,
	};
}

static void submit(const struct side *s, struct sul_op *ops, uint32_t nr)
{
	struct abi_port p = { .fd = s->fd };
	uint32_t done = 0;

	IS(0, abi_submit(&p, ops, nr, &done));
}

/* --- games ------------------------------------------------------------------------ */

static void send_message(const struct side *s, uint32_t value)
{
	struct sul_op ops[2] = {
		abi_op(SUL_OP_PUT, s->other, DATA),
		abi_op(SUL_OP_NOTIFY, s->other, WORD),
	};

	ops[0].flags = SUL_OP_INLINE;
	ops[0].len = 8;
	memcpy(ops[0].data, &value, sizeof(value));
	ops[1].notify.value = value;
	submit(s, ops, 2);
}

static void await_message(const struct side *s, uint32_t value)
{
	const uint32_t *word = (const uint32_t *)(const void *)s->window;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
	CHECK(!memcmp(s->window + DATA, &value, sizeof(value)), "its data");
}

static void send_datagram(const struct side *s, uint32_t value)
{
	char bytes[8] = { 0 };

	memcpy(bytes, &value, sizeof(value));
	send(s->udp, bytes, sizeof(bytes), 0);
}

static void await_datagram(const struct side *s, uint32_t value)
{
	char bytes[8];

	(void)value;
	while (recv(s->udp, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
		;
}

struct game {
	void (*send)(const struct side *s, uint32_t value);
	void (*await)(const struct side *s, uint32_t value);
};
static const struct game by_module = { send_message, await_message };
static const struct game by_socket = { send_datagram, await_datagram };

/* The best of a turn, one way. */
static void serve(struct side *s, const struct game *g, uint64_t *least)
{
	for (int i = 0; i < TRIPS; i++) {
		uint64_t t = sul_now_ns();

		g->send(s, ++s->turn);
		g->await(s, s->turn);
		best(least, (sul_now_ns() - t) / 2);
	}
}

static void answer(struct side *s, const struct game *g)
{
	for (int i = 0; i < TRIPS; i++) {
		g->await(s, ++s->turn);
		g->send(s, s->turn);
	}
}

/* --- figures ------------------------------------------------------------------------- */

static const size_t sizes[] = { 64 << 10, 256 << 10, 1 << 20 };
enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0])
};

/* Nanoseconds, the least so far; of write 0: this kernel has no such call. */
struct figures {
	uint64_t null, message, datagram;
	uint64_t put[SIZES], write[SIZES];
};

static void time_null(const struct side *s, struct figures *f)
{
	for (int i = 0; i < TRIPS; i++) {
		uint64_t t = sul_now_ns();

		ioctl(s->fd, SUL_IOC_NULL);
		best(&f->null, sul_now_ns() - t);
	}
}

/* What a put is measured with.  A kernel without CONFIG_CROSS_MEMORY_ATTACH does not
 * have it, and no test of ours fails for that. */
static bool write_there(pid_t other, const struct iovec *from,
			const struct iovec *to)
{
	ssize_t n = process_vm_writev(other, from, 1, to, 1, 0);

	if (n < 0 && errno == ENOSYS)
		return false;
	IS((long)from->iov_len, n < 0 ? -errno : n, "process_vm_writev");
	return true;
}

/* Behind the words of the games: the rest of the window, from its end. */
static void time_put(const struct side *s, char *src, pid_t other, size_t i,
		     struct figures *f)
{
	size_t len = sizes[i] - ABI_PAGE;
	uint64_t off = WINDOW_BYTES - len, t = sul_now_ns();
	struct sul_op op = abi_op(SUL_OP_PUT, s->other, off);
	struct iovec from = { src, len }, to = { s->window + off, len };

	op.addr = (uintptr_t)src;
	op.len = (uint32_t)len;
	submit(s, &op, 1);
	best(&f->put[i], sul_now_ns() - t);
	t = sul_now_ns();
	if (write_there(other, &from, &to))
		best(&f->write[i], sul_now_ns() - t);
}

static bool is_good(const struct figures *f)
{
	for (size_t i = 0; i < SIZES; i++)
		if (f->write[i] && f->put[i] * 9 > f->write[i] * 10)
			return false;
	return f->message * 10 <= f->null * 32 && f->message * 5 <= f->datagram;
}

static void show(const struct figures *f)
{
	printf("# null %llu ns, 8 bytes one way %llu: %.2f of it (3.2), %.3f of UDP's %llu (0.2)\n",
	       (unsigned long long)f->null, (unsigned long long)f->message,
	       (double)f->message / (double)f->null,
	       (double)f->message / (double)f->datagram,
	       (unsigned long long)f->datagram);
	if (!f->write[0])
		puts("# this kernel has no process_vm_writev() to compare with");
	for (size_t i = 0; i < SIZES && f->write[i]; i++)
		printf("# put of %zu KiB: %.2f times as fast as process_vm_writev (0.9)\n",
		       sizes[i] >> 10, (double)f->write[i] / (double)f->put[i]);
}

static void measure(struct side *s, pid_t other, char *src, struct figures *f)
{
	time_null(s, f);
	serve(s, &by_module, &f->message);
	serve(s, &by_socket, &f->datagram);
	for (size_t i = 0; i < SIZES; i++)
		for (int k = 0; k < PUTS; k++)
			time_put(s, src, other, i, f);
}

static void be_answered(char *window)
{
	struct side s = open_side(1, window);

	while (abi_all_well()) { /* until it is killed */
		answer(&s, &by_module);
		answer(&s, &by_socket);
	}
	_exit(1);
}

/* Mapped before the fork, so both have their window at the same address; it is not
 * shared, each has its own pages. */
int kernel_near(int argc, char **argv)
{
	char *window = abi_memory(WINDOW_BYTES),
	     *src = abi_memory(WINDOW_BYTES);
	uint64_t end = sul_now_ns() + SECONDS * (uint64_t)1000000000;
	struct figures f = { 0 };
	struct side s;
	pid_t other;
	bool good;

	(void)argc;
	(void)argv;
	memset(src, 'x', WINDOW_BYTES);
	other = fork();
	if (!other)
		be_answered(window);
	s = open_side(0, window);
	do
		measure(&s, other, src, &f);
	while (abi_all_well() && !is_good(&f) && sul_now_ns() < end);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	show(&f);
	good = abi_all_well();
	printf("%s - messages_on_one_host_arrive_as_they_were_sent\n",
	       good ? "ok" : "not ok");
	return !good;
}
