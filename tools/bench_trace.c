/* SPDX-License-Identifier: MIT */
/*
 * bench_trace.c - counts the system calls of this process, exactly.
 *
 * Role:      a child traces all threads of its parent (ptrace) and counts each
 *            system call at its end, when it is known whether it did anything.
 * Invariant: the parent is stopped while it is seized, and the child's end lets
 *            it go; so nothing is left behind if either of them dies.
 * Threads:   the child has one; the counts are words of memory that both share.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

enum {
	TRACED_MAX = 64, /* threads of the parent */
	STATE_BEGINS = 0,
	STATE_COUNTS = 1,
	STATE_FORBIDDEN = 2
};

struct bench_trace {
	uint64_t busy, idle;
	uint32_t state;
	pid_t tracer;
};

/* A thread, and the call it is in. */
struct traced {
	pid_t tid;
	uint64_t call;
};

static bool seize(pid_t tid)
{
	uintptr_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;

	return !ptrace(PTRACE_SEIZE, tid, NULL, (void *)options) &&
	       !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
}

/* Its threads, as far as they can be seized; false: not the first. */
static bool seize_all(pid_t pid, struct traced *all)
{
	char path[64];
	struct dirent *e;
	int nr = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)) && nr < TRACED_MAX) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (!seize(tid))
			break;
		all[nr++].tid = tid;
	}
	if (d)
		closedir(d);
	return nr > 0;
}

/* A thread that is new has a place among those that have none. */
static struct traced *find(struct traced *all, pid_t tid)
{
	for (int i = 0; i < TRACED_MAX; i++) {
		if (!all[i].tid)
			all[i].tid = tid;
		if (all[i].tid == tid)
			return &all[i];
	}
	return NULL;
}

static void forget(struct traced *all, pid_t tid)
{
	struct traced *t = find(all, tid);

	for (; t && t < &all[TRACED_MAX - 1]; t++)
		t[0] = t[1];
	all[TRACED_MAX - 1].tid = 0;
}

static bool is_idle(uint64_t call, int64_t result)
{
	if (call == SYS_futex || call == SYS_futex_waitv)
		return false; /* -EAGAIN: it wanted to sleep, and need not */
	return call == SYS_sched_yield || result == -EAGAIN;
}

static void count(struct bench_trace *t, struct traced *who)
{
	struct __ptrace_syscall_info info = { .op = 0 };

	if (!who || ptrace(PTRACE_GET_SYSCALL_INFO, who->tid,
			   (void *)(uintptr_t)sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		who->call = info.entry.nr;
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		bool idle = is_idle(who->call, info.exit.rval);

		__atomic_fetch_add(idle ? &t->idle : &t->busy, 1,
				   __ATOMIC_RELAXED);
	}
}

/* Let @tid go on until its next stop; signals are passed on. */
static void step(struct bench_trace *t, struct traced *all, pid_t tid,
		 int status)
{
	int sig = 0;

	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		count(t, find(all, tid));
	else if (!(status >> 16))
		sig = WSTOPSIG(status);
	ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(uintptr_t)sig);
}

static _Noreturn void trace(struct bench_trace *t, pid_t pid)
{
	static struct traced all[TRACED_MAX];
	bool can = seize_all(pid, all);
	int status;
	pid_t tid;

	__atomic_store_n(&t->state, can ? STATE_COUNTS : STATE_FORBIDDEN,
			 __ATOMIC_RELEASE);
	while (can && (tid = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			step(t, all, tid, status);
		else
			forget(all, tid);
	_exit(0);
}

/* The child may trace us, even where only a parent may trace its children; it
 * waits until we have said so. */
static pid_t start_tracer(struct bench_trace *t)
{
	pid_t self = getpid(), child;
	char go = 1;
	int p[2];

	if (pipe(p))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(p[1]);
		if (read(p[0], &go, 1) != 1)
			_exit(1);
		trace(t, self);
	}
	if (child < 0) {
		child = -errno;
	} else {
		prctl(PR_SET_PTRACER, (unsigned long)child, 0, 0, 0);
		if (write(p[1], &go, 1) != 1)
			kill(child, SIGKILL);
	}
	close(p[0]);
	close(p[1]);
	return child;
}

/* It stays there to be waited for. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

static uint32_t state_of(const struct bench_trace *t)
{
	return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
}

int bench_trace_start(struct bench_trace **out)
{
	struct bench_trace *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return -errno;
	t->tracer = start_tracer(t);
	if (t->tracer < 0) {
		int err = t->tracer;

		munmap(t, sizeof(*t));
		return err;
	}
	while (state_of(t) == STATE_BEGINS && !has_ended(t->tracer))
		usleep(1000);
	if (state_of(t) == STATE_COUNTS) {
		*out = t;
		return 0;
	}
	bench_trace_stop(t);
	return -EPERM;
}

void bench_trace_stop(struct bench_trace *t)
{
	if (!t)
		return;
	kill(t->tracer, SIGKILL);
	waitpid(t->tracer, NULL, 0);
	munmap(t, sizeof(*t));
}

struct bench_calls bench_trace_read(const struct bench_trace *t)
{
	return (struct bench_calls){
		.busy = __atomic_load_n(&t->busy, __ATOMIC_RELAXED),
		.idle = __atomic_load_n(&t->idle, __ATOMIC_RELAXED),
	};
}
