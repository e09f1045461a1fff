/* SPDX-License-Identifier: MIT */
/*
 * abi.c - runs the cases of abi.def, and what they share.
 *
 * Role:    `kernel abi` prints a line of TAP for each case.
 * Threads: a process for each case; one that does not come back is killed.
 */
#include "abi.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"

enum {
	CASE_SECONDS = 60, /* on an emulated machine that others slow down */
	SILENCE_MS = 5000,
	FINDINGS_MAX = 8, /* of a process that are shown */
};

static unsigned int findings; /* of this process */

void abi_found(const char *file, int line, const char *format, ...)
{
	va_list args;

	if (++findings > FINDINGS_MAX)
		return;
	printf("#   %s:%d: ",
	       strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void abi_is(const char *file, int line, const char *call, long wanted,
	    long result, ...)
{
	va_list args;
	const char *of;

	if (wanted == result)
		return;
	va_start(args, result);
	of = va_arg(args, const char *);
	va_end(args);
	abi_found(file, line, "%s%s%s is %ld (%s), not %ld", of ? of : "",
		  of ? ": " : "", call, result,
		  result < 0 ? strerror((int)-result) : "fine", wanted);
}

bool abi_all_well(void)
{
	return !findings;
}

/* --- calls ------------------------------------------------------------------------- */

int abi_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int abi_open(void)
{
	int fd = open("/dev/sul", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int abi_hello(void)
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };
	int fd = abi_open();

	if (fd < 0)
		return fd;
	IS(0, abi_call(fd, SUL_IOC_HELLO, &h));
	return fd;
}

/* Jobs of different processes are different, of a process and its children the
 * same: the key is the case's. */
static pid_t case_pid; /* 0: of another part */

struct sul_port_spec abi_spec(uint32_t rank, uint32_t ranks)
{
	struct sul_port_spec s = {
		.size = sizeof(s),
		.rank = rank,
		.ranks = ranks,
		.auth = SUL_ABI_AUTH_MAC,
		.session = rank + 1,
		.span = 64,
		.packet_bytes = 1472,
		.silence_ns = SILENCE_MS * UINT64_C(1000000),
		.pin_bytes = ABI_PIN_BYTES,
		.landing_bytes = ABI_LANDING_BYTES,
	};

	memcpy(s.key, "abi", 3);
	memcpy(s.key + 8, &case_pid, sizeof(case_pid));
	return s;
}

int abi_port_as(const struct sul_port_spec *spec)
{
	struct sul_port_spec s = *spec;
	int fd = abi_hello(), err;

	if (fd < 0)
		return fd;
	err = abi_call(fd, SUL_IOC_PORT, &s);
	if (!err)
		return fd;
	close(fd);
	return err;
}

void *abi_memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

static const void *map(int fd, uint64_t off, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)off);

	CHECK(at != MAP_FAILED, "mmap of %#llx: %s", (unsigned long long)off,
	      strerror(errno));
	return at;
}

struct abi_port abi_port(uint32_t rank, uint32_t ranks)
{
	struct sul_port_spec s = abi_spec(rank, ranks);
	struct abi_port p = { .fd = abi_port_as(&s), .rank = rank };

	CHECK(p.fd >= 0, "PORT of rank %u: %s", rank, strerror(-p.fd));
	p.window = abi_memory(ABI_WINDOW_BYTES);
	if (p.fd >= 0) {
		p.status = map(p.fd, SUL_MAP_STATUS, ABI_PAGE);
		p.landing = map(p.fd, SUL_MAP_LANDING, ABI_LANDING_BYTES);
	}
	return p;
}

int abi_start(struct abi_port *p)
{
	struct sul_start s = { .size = sizeof(s), .windows = 1 };

	s.window[0].addr = (uintptr_t)p->window;
	s.window[0].bytes = ABI_WINDOW_BYTES;
	return abi_call(p->fd, SUL_IOC_START, &s);
}

struct abi_port abi_started(uint32_t rank, uint32_t ranks)
{
	struct abi_port p = abi_port(rank, ranks);

	IS(0, abi_start(&p));
	return p;
}

void abi_close(struct abi_port *p)
{
	munmap((void *)(uintptr_t)p->status, ABI_PAGE);
	munmap((void *)(uintptr_t)p->landing, ABI_LANDING_BYTES);
	close(p->fd);
	p->fd = -1;
}

int abi_near(const struct abi_port *p, uint32_t rank, uint32_t timeout_ms)
{
	struct sul_peer_spec s = {
		.size = sizeof(s),
		.flags = SUL_PEER_NEAR,
		.rank = rank,
		.session = rank + 1,
		.packet_bytes = 1472,
		.timeout_ms = timeout_ms,
	};

	return abi_call(p->fd, SUL_IOC_PEER, &s);
}

void abi_pair(struct abi_port p[2])
{
	p[0] = abi_started(0, 2);
	p[1] = abi_started(1, 2);
	IS(0, abi_near(&p[0], 1, 0));
}

struct sul_op abi_op(enum sul_op_kind kind, uint32_t rank, uint64_t off)
{
	return (struct sul_op){ .kind = (__u8)kind, .rank = rank, .off = off };
}

int abi_submit(const struct abi_port *p, const struct sul_op *ops, uint32_t nr,
	       uint32_t *done)
{
	struct sul_submit s = {
		.size = sizeof(s),
		.ops = (uintptr_t)ops,
		.nr = nr,
	};
	int err = abi_call(p->fd, SUL_IOC_SUBMIT, &s);

	if (done)
		*done = s.done;
	return err;
}

int abi_submit_one(const struct abi_port *p, struct sul_op op)
{
	uint32_t done;
	int err = abi_submit(p, &op, 1, &done);

	CHECK(done == !err, "done is %u at %d", done, err);
	return err;
}

/* --- processes ---------------------------------------------------------------------- */

/* What it was, if it was not an end with 0. */
static const char *ended(int status)
{
	static char text[64];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "killed by signal %d",
			 WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "status %d", WEXITSTATUS(status));
	return status ? text : NULL;
}

static const char *run_child(void (*fn)(void *ctx), void *ctx)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		alarm(CASE_SECONDS);
		fn(ctx);
		fflush(stdout);
		_exit(findings != 0);
	}
	while (waitpid(pid, &status, 0) != pid)
		;
	return ended(status);
}

void abi_in_child(void (*fn)(void *ctx), void *ctx)
{
	const char *how = run_child(fn, ctx);

	CHECK(!how, "the child ended: %s", how);
}

void abi_become(uid_t uid, size_t memlock_bytes)
{
	struct rlimit l = { memlock_bytes, memlock_bytes };
	gid_t group = ABI_GID_SUL;

	if (setrlimit(RLIMIT_MEMLOCK, &l) || setgroups(1, &group) ||
	    setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		abort();
}

/* --- cases ------------------------------------------------------------------------ */

struct abi_case {
	const char *name;
	void (*fn)(void);
};

static const struct abi_case cases[] = {
#define CASE(name) { #name, abi_##name },
#include "abi.def"
};

enum {
	CASES = sizeof(cases) / sizeof(cases[0])
};

static void case_body(void *ctx)
{
	const struct abi_case *c = ctx;

	case_pid = getpid();
	c->fn();
}

/* True: it went well. */
static bool case_run(const struct abi_case *c)
{
	struct abi_case it = *c;
	const char *how = run_child(case_body, &it);

	if (how)
		printf("not ok - abi %s: %s\n", c->name, how);
	else
		printf("ok - abi %s\n", c->name);
	return !how;
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return argc < 2;
}

int kernel_abi(int argc, char **argv)
{
	unsigned int failed = 0, ran = 0;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (int i = 0; i < CASES; i++)
			puts(cases[i].name);
		return 0;
	}
	for (int i = 0; i < CASES; i++) {
		if (!wanted(cases[i].name, argc, argv))
			continue;
		ran++;
		failed += !case_run(&cases[i]);
	}
	return failed || !ran;
}
