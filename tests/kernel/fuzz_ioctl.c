/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ioctl.c - random calls of /dev/sul.
 *
 * Role:      a process with some ports in any state calls whatever there is, from
 *            two threads: structures that are right but for some fields, in which
 *            stands a number of any kind; memory under windows comes and goes.
 * Invariant: the kernel says nothing, the process can be killed, and then nothing is
 *            pinned.  A call that waits for long is none of our business: whoever
 *            makes no step for a while is killed and another one goes on.
 * Threads:   two in a child at a time.  What a thread calls depends on its seed alone;
 *            what the other does meanwhile does not.
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
	PORTS = 6, /* of a child */
	THREADS = 2,
	PER_CHILD = 2000, /* calls */
	RANKS = 4,
	ARENA_PAGES = 128,
	OPS = 8,
	ARG_WORDS = 64,
	STUCK_MS = 1500,
	TICK_MS = 20,
	SOME_MS = 3,
	LOOPBACK_PORT = 31000,
};

struct child {
	int fd[PORTS];
	char *arena;
	uint64_t *steps; /* shared with the parent */
	uint64_t last; /* step of this child */
};

struct caller {
	struct child *child;
	struct rng rng;
	int slot; /* the port that is meant */
	struct sul_op ops[OPS];
};

/* --- numbers ------------------------------------------------------------------------- */

static uint64_t some_address(struct caller *c)
{
	struct rng *r = &c->rng;

	switch (rng_below(r, 12)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - rng_below(r, 5000);
	case 2:
		return rng_next(r);
	default:
		return (uintptr_t)c->child->arena +
		       rng_below(r, ARENA_PAGES * ABI_PAGE);
	}
}

static uint32_t some_number(struct rng *r)
{
	switch (rng_below(r, 8)) {
	case 0:
		return (uint32_t)rng_next(r);
	case 1:
		return UINT32_MAX - rng_below(r, 16);
	case 2:
		return 1u << rng_below(r, 32);
	case 3:
		return rng_below(r, ABI_WINDOW_BYTES);
	default:
		return rng_below(r, 10);
	}
}

/* Most of the time it is as it should be. */
static void spoil(struct rng *r, uint32_t *words, size_t bytes,
		  unsigned int most)
{
	if (rng_percent(r, 60))
		return;
	for (uint32_t n = 1 + rng_below(r, most); n; n--)
		words[rng_below(r, (uint32_t)(bytes / 4))] = some_number(r);
}

/* --- structures -------------------------------------------------------------------------- */

static void make_port(struct caller *c, void *arg)
{
	struct sul_port_spec s = abi_spec((uint32_t)c->slot % RANKS, RANKS);

	s.key[SUL_ABI_KEY_BYTES - 1] =
		(__u8)(c->slot / RANKS); /* another job */
	s.flags = rng_below(&c->rng, 2);
	s.auth = rng_below(&c->rng, 2);
	s.silence_ns = 1000000;
	memcpy(arg, &s, sizeof(s));
}

static void make_socket(struct caller *c, void *arg)
{
	struct sul_socket_spec s = { .size = sizeof(s) };
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons((uint16_t)(LOOPBACK_PORT + c->slot));
	s.fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (rng_percent(&c->rng, 80) &&
	    bind(s.fd, (struct sockaddr *)&at, sizeof(at)))
		at.sin_port = 0; /* somebody has it: so be it */
	memcpy(arg, &s, sizeof(s));
}

static void make_start(struct caller *c, void *arg)
{
	struct sul_start s = { .size = sizeof(s), .windows = 2 };

	for (int i = 0; i < 2; i++) {
		s.window[i].addr = (uintptr_t)c->child->arena +
				   (uint64_t)rng_below(&c->rng, 100) * ABI_PAGE;
		s.window[i].bytes = ABI_WINDOW_BYTES;
	}
	memcpy(arg, &s, sizeof(s));
}

static void make_peer(struct caller *c, void *arg)
{
	struct sul_peer_spec s = { .size = sizeof(s),
				   .rank = rng_below(&c->rng, RANKS),
				   .packet_bytes = 1472 };
	struct in_addr to = { htonl(INADDR_LOOPBACK) };

	s.session = s.rank + 1;
	if (rng_percent(&c->rng, 50)) {
		s.flags = SUL_PEER_NEAR;
		s.timeout_ms = rng_below(&c->rng, SOME_MS);
	} else {
		s.paths = 1;
		s.path[0].family = AF_INET;
		s.path[0].port = (uint16_t)(LOOPBACK_PORT + s.rank);
		s.path[0].packet_bytes = 1472;
		memcpy(s.path[0].addr, &to, sizeof(to));
	}
	memcpy(arg, &s, sizeof(s));
}

static void make_op(struct caller *c, struct sul_op *op)
{
	struct rng *r = &c->rng;

	memset(op, 0, sizeof(*op));
	op->kind = (__u8)rng_below(r, SUL_OP_NR);
	op->rank = rng_below(r, RANKS);
	op->window = (__u16)rng_below(r, 2);
	op->off = rng_below(r, ABI_WINDOW_BYTES / 8) * UINT64_C(8);
	switch (op->kind) {
	case SUL_OP_GET:
		op->marks.nr = rng_below(r, SUL_ABI_MARKS_MAX + 1);
		op->marks.addr = some_address(c);
		op->land = rng_below(r, ABI_LANDING_BYTES / 8) * 8;
		/* fall through */
	case SUL_OP_PUT:
		op->addr = some_address(c);
		op->len = rng_below(r, 9000);
		break;
	case SUL_OP_PUTV:
		op->flags = rng_below(r, 2) ? SUL_OP_MIRROR : 0;
		op->addr = some_address(c);
		op->runs.addr = some_address(c);
		op->runs.nr = 1 + rng_below(r, 20);
		break;
	case SUL_OP_AMO:
		op->amo.op = rng_below(r, SUL_AMO_NR);
		op->amo.operand = rng_next(r);
		break;
	case SUL_OP_MESSAGE:
		op->flags = rng_below(r, 2) ? SUL_OP_INLINE : 0;
		op->addr = op->flags ? 0 : some_address(c);
		op->len = rng_below(r, op->flags ? 16 : SUL_ABI_MESSAGE_MAX);
		for (int i = 0; i < 2; i++)
			op->message.word[i] =
				rng_below(r, ABI_WINDOW_BYTES / 8) * 8;
		break;
	case SUL_OP_FAREWELL: /* there is not much to do afterwards */
		if (!rng_below(r, 20))
			op->window = 0, op->off = 0;
		break;
	default:
		break;
	}
	spoil(r, (uint32_t *)(void *)op, sizeof(*op), 2);
}

static void make_submit(struct caller *c, void *arg)
{
	struct sul_submit s = { .size = sizeof(s),
				.flags = rng_below(&c->rng, 2),
				.nr = rng_below(&c->rng, OPS + 1) };

	for (uint32_t i = 0; i < s.nr; i++)
		make_op(c, &c->ops[i]);
	s.ops = rng_percent(&c->rng, 90) ? (uintptr_t)c->ops : some_address(c);
	memcpy(arg, &s, sizeof(s));
}

static void make_wait(struct caller *c, void *arg)
{
	struct sul_wait s = { .size = sizeof(s), .nr = 1 };

	s.timeout_ns = rng_below(&c->rng, SOME_MS * 1000000);
	s.word[0].off = rng_below(&c->rng, ABI_WINDOW_BYTES / 8) * UINT64_C(8);
	s.word[0].window = rng_below(&c->rng, 2);
	memcpy(arg, &s, sizeof(s));
}

static void make_wake(struct caller *c, void *arg)
{
	struct sul_wake s = { .size = sizeof(s),
			      .rank = rng_below(&c->rng, RANKS) };

	memcpy(arg, &s, sizeof(s));
}

static void make_count(struct caller *c, void *arg)
{
	struct sul_count s = { .size = sizeof(s),
			       .nr = rng_below(&c->rng, 40) };

	s.values = some_address(c);
	memcpy(arg, &s, sizeof(s));
}

static void make_hello(struct caller *c, void *arg)
{
	struct sul_hello s = { .size = sizeof(s), .version = SUL_ABI_VERSION };

	(void)c;
	memcpy(arg, &s, sizeof(s));
}

static const struct call {
	unsigned long cmd;
	void (*make)(struct caller *c, void *arg);
	unsigned int weight;
	uint32_t size;
} calls[] = {
	{ SUL_IOC_HELLO, make_hello, 2, sizeof(struct sul_hello) },
	{ SUL_IOC_PORT, make_port, 10, sizeof(struct sul_port_spec) },
	{ SUL_IOC_SOCKET, make_socket, 8, sizeof(struct sul_socket_spec) },
	{ SUL_IOC_START, make_start, 10, sizeof(struct sul_start) },
	{ SUL_IOC_PEER, make_peer, 20, sizeof(struct sul_peer_spec) },
	{ SUL_IOC_SUBMIT, make_submit, 60, sizeof(struct sul_submit) },
	{ SUL_IOC_WAIT, make_wait, 5, sizeof(struct sul_wait) },
	{ SUL_IOC_WAKE, make_wake, 5, sizeof(struct sul_wake) },
	{ SUL_IOC_COUNT, make_count, 5, sizeof(struct sul_count) },
};

enum {
	CALLS = sizeof(calls) / sizeof(calls[0])
};

static const struct call *some_call(struct rng *r)
{
	unsigned int sum = 0, at;

	for (int i = 0; i < CALLS; i++)
		sum += calls[i].weight;
	at = rng_below(r, sum);
	for (int i = 0;; i++) {
		if (at < calls[i].weight)
			return &calls[i];
		at -= calls[i].weight;
	}
}

/* --- steps ------------------------------------------------------------------------------ */

static void call_once(struct caller *c, const struct call *call, int fd,
		      unsigned int most)
{
	uint32_t arg[ARG_WORDS] = { 0 };
	unsigned long cmd = call->cmd;
	int own = -1;

	call->make(c, arg);
	if (cmd == SUL_IOC_SOCKET)
		own = (int)arg[1];
	if (most)
		spoil(&c->rng, arg, call->size, most);
	if (most && rng_percent(&c->rng, 2))
		cmd = rng_next(&c->rng);
	abi_call(fd, cmd, arg);
	if (own >= 0)
		close(own);
}

/* A new port, most of the time one that can work. */
static void step_reopen(struct caller *c)
{
	static const unsigned long steps[] = { SUL_IOC_HELLO,  SUL_IOC_PORT,
					       SUL_IOC_SOCKET, SUL_IOC_START,
					       SUL_IOC_PEER,   SUL_IOC_PEER,
					       SUL_IOC_PEER,   SUL_IOC_PEER };
	int old = c->child->fd[c->slot], fd = abi_open();

	c->child->fd[c->slot] = fd;
	close(old);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (int k = 0; k < CALLS; k++)
			if (calls[k].cmd == steps[i] &&
			    rng_percent(&c->rng, 90))
				call_once(c, &calls[k], fd, 0);
}

/* Memory that is or may become a window comes, goes and changes. */
static void step_memory(struct caller *c)
{
	static const int prots[] = { PROT_NONE, PROT_READ,
				     PROT_READ | PROT_WRITE };
	struct rng *r = &c->rng;
	uint32_t page = rng_below(r, ARENA_PAGES);
	char *at = c->child->arena + (size_t)page * ABI_PAGE;
	size_t len = (1 + rng_below(r, ARENA_PAGES - page)) * (size_t)ABI_PAGE;

	switch (rng_below(r, 5)) {
	case 0:
		munmap(at, len);
		break;
	case 1:
		mprotect(at, len, prots[rng_below(r, 3)]);
		break;
	case 2:
		madvise(at, len, MADV_DONTNEED);
		break;
	default:
		if (mmap(at, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			abort();
		break;
	}
}

static void step_map(struct caller *c, int fd)
{
	static const uint64_t offs[] = { SUL_MAP_STATUS, SUL_MAP_LANDING,
					 ABI_PAGE, UINT64_C(1) << 40 };
	static const size_t sizes[] = { ABI_PAGE, ABI_LANDING_BYTES,
					3 * ABI_PAGE };
	struct rng *r = &c->rng;
	size_t len = sizes[rng_below(r, 3)];
	void *at = mmap(NULL, len, rng_percent(r, 80) ? PROT_READ : PROT_WRITE,
			rng_percent(r, 90) ? MAP_SHARED : MAP_PRIVATE, fd,
			(off_t)offs[rng_below(r, 4)]);

	if (at != MAP_FAILED)
		munmap(at, len);
}

static void step(struct caller *c)
{
	uint32_t what = rng_below(&c->rng, 100);

	c->slot = (int)rng_below(&c->rng, PORTS);
	if (what < 3)
		step_reopen(c);
	else if (what < 8)
		step_memory(c);
	else if (what < 11)
		step_map(c, c->child->fd[c->slot]);
	else
		call_once(c, some_call(&c->rng), c->child->fd[c->slot], 3);
}

static void *steps(void *arg)
{
	struct caller *c = arg;

	while (__atomic_add_fetch(c->child->steps, 1, __ATOMIC_RELAXED) <
	       c->child->last)
		step(c);
	return NULL;
}

/* --- children --------------------------------------------------------------------------- */

static _Noreturn void child_main(uint64_t seed, uint64_t nr, uint64_t *count)
{
	struct child child = { .steps = count, .last = *count + PER_CHILD };
	struct caller callers[THREADS];
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child.arena = abi_memory((size_t)ARENA_PAGES * ABI_PAGE);
	for (int t = 0; t < THREADS; t++)
		callers[t] = (struct caller){
			.child = &child, .rng = rng_at(seed, nr, (uint64_t)t, 0)
		};
	for (int i = 0; i < PORTS; i++) {
		child.fd[i] = -1;
		callers[0].slot = i;
		step_reopen(&callers[0]);
	}
	if (pthread_create(&thread, NULL, steps, &callers[1]))
		_exit(1);
	steps(&callers[0]);
	pthread_join(thread, NULL);
	_exit(0);
}

/* Until it has ended; who makes no step for STUCK_MS is killed. */
static bool child_watch(pid_t pid, const uint64_t *count)
{
	uint64_t seen = 0;
	int status, still_ms = 0;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

		still_ms = now == seen ? still_ms + TICK_MS : 0;
		seen = now;
		if (still_ms >= STUCK_MS)
			kill(pid, SIGKILL);
		usleep(TICK_MS * 1000);
	}
	return status == 0;
}

int kernel_fuzz_ioctl(int argc, char **argv)
{
	struct fuzz_plan plan = fuzz_plan("fuzz-ioctl", argc, argv, 10000);
	long pinned = fuzz_pages_pinned();
	uint64_t nr = 0, ended = 0, *count;
	bool clean;

	count = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (count == MAP_FAILED)
		return 1;
	/* each child makes a step at least, or there are too many of them */
	for (; *count < plan.count && nr < plan.count; nr++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid)
			child_main(plan.seed, nr, count);
		ended += child_watch(pid, count);
	}
	clean = fuzz_all_gone(pinned);
	printf("# %llu processes, %llu of them to their end\n",
	       (unsigned long long)nr, (unsigned long long)ended);
	printf("%s - %llu_random_calls\n",
	       clean && *count >= plan.count ? "ok" : "not ok",
	       (unsigned long long)plan.count);
	return !clean || *count < plan.count;
}
