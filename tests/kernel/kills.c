/* SPDX-License-Identifier: MIT */
/*
 * kills.c - ranks are killed in the middle of their traffic, again and again.
 *
 * Role:      each round two ranks work on each other's windows, near and, by the
 *            loopback interface, far; after some milliseconds one of them is killed,
 *            and the other a little later.
 * Invariant: what a rank had locked and pinned is free when it is gone: the next
 *            round gets its locked memory out of the same limit, and in the end
 *            not a page is pinned.  A near rank finds out that the other is dead.
 * Threads:   a process for each rank, with two threads that submit.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"
#include "fuzz.h"
#include "kernel.h"

enum {
	RANKS = 2,
	WINDOW = 0,
	WINDOW_PAGES =
		64, /* four times what may be pinned: pages come and go */
	OPS = 16, /* of a SUBMIT */
	OP_BYTES_MAX = 6000,
	ALIVE_MS_MAX = 30,
	ALONE_MS_MAX = 10,
	PORT_BASE = 20000,
	PORTS = 10000, /* the next round has others */
	START_MS = 20000,
	START_FAILED = 100, /* in place of how many have started */
	NOTICED = 3, /* exit status: the other was found dead */
};

struct rank {
	struct abi_port port;
	uint32_t other;
	uint32_t udp; /* the port of rank 0 */
	uint64_t seed; /* of its threads */
};

struct round {
	struct rng rng;
	uint32_t nr;
	bool far; /* by packets */
	uint32_t *started; /* shared by all: ranks at work */
};

static struct sul_op random_op(struct rng *rng, uint32_t rank, char *data)
{
	struct sul_op op = { .rank = rank };
	uint32_t len = 1 + rng_below(rng, OP_BYTES_MAX);
	const uint64_t room = (uint64_t)WINDOW_PAGES * ABI_PAGE;

	op.kind = (__u8)(rng_below(rng, 3) == 0 ? SUL_OP_AMO :
			 rng_below(rng, 2)	? SUL_OP_PUT :
						  SUL_OP_GET);
	op.off = rng_below(rng, (uint32_t)(room - OP_BYTES_MAX)) & ~UINT64_C(7);
	if (op.kind == SUL_OP_AMO) {
		op.amo.op = SUL_AMO_ADD;
		op.amo.operand = 1;
		return op;
	}
	op.addr = (uintptr_t)data;
	op.len = len;
	if (op.kind == SUL_OP_GET) /* of a far rank it lands there */
		op.land =
			rng_below(rng, (ABI_LANDING_BYTES - OP_BYTES_MAX) / 8) *
			8;
	return op;
}

static void *works(void *arg)
{
	struct rank *r = arg;
	struct rng rng = { __atomic_add_fetch(&r->seed, 1, __ATOMIC_RELAXED) };
	char *data = abi_memory(2 * ABI_PAGE);
	struct sul_op ops[OPS];
	uint32_t done;
	int err;

	do {
		for (int i = 0; i < OPS; i++)
			ops[i] = random_op(&rng, r->other, data);
		err = abi_submit(&r->port, ops, OPS, &done);
	} while (!err);
	_exit(err == -EHOSTDOWN ? NOTICED : 1);
}

static int far_socket(const struct rank *r)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	at.sin_port = htons((uint16_t)(r->udp + r->port.rank));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	return fd;
}

static int far_peer(const struct rank *r)
{
	struct sul_peer_spec s = { .size = sizeof(s),
				   .rank = r->other,
				   .session = r->other + 1,
				   .packet_bytes = 1472,
				   .paths = 1 };
	struct in_addr to = { htonl(INADDR_LOOPBACK) };

	s.path[0].family = AF_INET;
	s.path[0].port = (uint16_t)(r->udp + r->other);
	s.path[0].packet_bytes = 1472;
	memcpy(s.path[0].addr, &to, sizeof(to));
	return abi_call(r->port.fd, SUL_IOC_PEER, &s);
}

static int meet(struct rank *r, const struct round *round)
{
	struct sul_start start = { .size = sizeof(start), .windows = 1 };
	struct sul_port_spec s = abi_spec(r->port.rank, RANKS);
	int err;

	r->port.fd = abi_port_as(&s);
	if (r->port.fd < 0)
		return r->port.fd;
	if (round->far) {
		struct sul_socket_spec sock = { .size = sizeof(sock) };

		sock.fd = far_socket(r);
		if (sock.fd < 0)
			return sock.fd;
		err = abi_call(r->port.fd, SUL_IOC_SOCKET, &sock);
		if (err)
			return err;
	}
	start.window[WINDOW].addr =
		(uintptr_t)abi_memory((size_t)WINDOW_PAGES * ABI_PAGE);
	start.window[WINDOW].bytes = (uint64_t)WINDOW_PAGES * ABI_PAGE;
	err = abi_call(r->port.fd, SUL_IOC_START, &start);
	if (err)
		return err;
	return round->far ? far_peer(r) :
			    abi_near(&r->port, r->other, START_MS);
}

static _Noreturn void rank_main(uint32_t nr, struct round *round)
{
	struct rank r = { .port.rank = nr,
			  .other = !nr,
			  .udp = PORT_BASE + round->nr * RANKS % PORTS,
			  .seed = rng_next(&round->rng) + nr * RANKS };
	pthread_t thread;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = meet(&r, round);

	if (err) {
		printf("# rank %u does not start: %s\n", nr, strerror(-err));
		fflush(stdout);
		__atomic_store_n(round->started, START_FAILED,
				 __ATOMIC_SEQ_CST);
		_exit(1);
	}
	__atomic_add_fetch(round->started, 1, __ATOMIC_SEQ_CST);
	if (pthread_create(&thread, NULL, works, &r))
		_exit(1);
	works(&r);
	_exit(0);
}

static void nap_us(struct rng *rng, uint32_t most_ms)
{
	usleep(rng_below(rng, most_ms * 1000));
}

static const char *wrong_end(int status, bool killed)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return NULL;
	if (!killed && WIFEXITED(status) && WEXITSTATUS(status) == NOTICED)
		return NULL;
	return "a rank ended by itself";
}

/* NULL, or what went wrong. */
static const char *round_run(struct round *round)
{
	uint32_t first = rng_below(&round->rng, RANKS);
	const char *wrong = NULL;
	int status[RANKS];
	pid_t pid[RANKS];

	*round->started = 0;
	round->nr++;
	round->far = rng_percent(&round->rng, 50);
	for (uint32_t i = 0; i < RANKS; i++) {
		pid[i] = fork();
		if (!pid[i])
			rank_main(i, round);
	}
	for (int ms = 0; ms < START_MS; ms++) {
		if (__atomic_load_n(round->started, __ATOMIC_SEQ_CST) >= RANKS)
			break;
		usleep(1000);
	}
	nap_us(&round->rng, ALIVE_MS_MAX);
	kill(pid[first], SIGKILL);
	waitpid(pid[first], &status[first], 0);
	nap_us(&round->rng, ALONE_MS_MAX);
	kill(pid[!first], SIGKILL);
	waitpid(pid[!first], &status[!first], 0);
	for (uint32_t i = 0; i < RANKS && !wrong; i++)
		wrong = wrong_end(status[i], i == first);
	return wrong;
}

/* As a user whose locked memory is just enough for a round. */
static int rounds_run(const struct fuzz_plan *plan)
{
	struct round round = { .rng = { plan->seed } };
	uint64_t bad = 0;

	round.started = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	abi_become(ABI_UID_ONE, RANKS * (ABI_PIN_BYTES + 2 * ABI_PAGE));
	for (uint64_t i = 0; i < plan->count && bad < 3; i++) {
		const char *wrong = round_run(&round);

		if (wrong)
			printf("# round %llu, %s: %s\n", (unsigned long long)i,
			       round.far ? "far" : "near", wrong);
		bad += wrong != NULL;
	}
	fflush(stdout);
	return bad != 0;
}

/* Until we are killed, the ranks with us. */
int kernel_traffic(int argc, char **argv)
{
	struct round round = { .rng = { 1 }, .far = argc > 1 };

	(void)argv;
	round.started = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		if (!fork())
			rank_main(i, &round);
	while (wait(NULL) > 0)
		puts("a rank has ended");
	return 1;
}

int kernel_kills(int argc, char **argv)
{
	struct fuzz_plan plan = fuzz_plan("kills", argc, argv, 50);
	long pinned = fuzz_pages_pinned();
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(rounds_run(&plan));
	waitpid(pid, &status, 0);
	printf("%s - %llu_kills_in_traffic\n", status ? "not ok" : "ok",
	       (unsigned long long)plan.count);
	if (!fuzz_all_gone(pinned))
		status = 1;
	printf("%s - after_kills_nothing_is_pinned\n",
	       status ? "not ok" : "ok");
	return status != 0;
}
