/* SPDX-License-Identifier: MIT */
/*
 * silent.c - receiving without a system call: two ranks of a job (jiarun -n 2).
 *
 * Role:      rank 1 sends messages into a ring in rank 0's window: a put, and a
 *            notify of the ring's tail.  Rank 0 takes them under a filter that
 *            kills at any system call but its end, and says in its memory how far
 *            it is; rank 1 reads that with gets, so there are no credits to give.
 * Invariant: no message is lost, doubled or out of order, or rank 0 says so.
 * Threads:   one a rank.
 */
#include "kernel.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sul.h"

enum {
	MESSAGES = 1000000,
	SLOTS = 1024,
	BATCH = 16, /* messages of a SUBMIT */
	MEET_MS = 60000,
	SILENCE_MS = 60000,
	SPIN_US = 1000000,
};

struct slot {
	uint64_t nr, sum;
};

/* Window 0 of rank 0. */
struct ring {
	struct sul_word tail; /* messages that are there */
	struct sul_word over; /* the sender has seen all of it */
	uint64_t reserved[6]; /* what rank 0 writes has a line of its own */
	uint64_t taken;
	uint64_t wrong; /* message that was not the next one; 0: none */
	struct slot slot[SLOTS];
};

static uint64_t sum_of(uint64_t nr)
{
	return (nr + 1) * 0x9e3779b97f4a7c15u;
}

static int refuse(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	return 1;
}

/* --- rank 0 ------------------------------------------------------------------------ */

static int forbid_calls(void)
{
	struct sock_filter allow_the_end[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {
		sizeof(allow_the_end) / sizeof(allow_the_end[0]), allow_the_end
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}

static void take(struct ring *r, uint64_t nr)
{
	const struct slot *s = &r->slot[nr % SLOTS];

	if ((s->nr != nr || s->sum != sum_of(nr)) && !r->wrong)
		r->wrong = nr + 1;
	__atomic_store_n(&r->taken, nr + 1, __ATOMIC_RELEASE);
}

static int receive(struct sul_port *p, uint64_t messages)
{
	struct ring *r = sul_window(p, 0);
	int err = forbid_calls();

	if (err)
		return refuse("a filter of system calls", err);
	for (uint64_t nr = 0; nr < messages; nr++) {
		while (sul_word_read(&r->tail) == (uint32_t)nr)
			;
		take(r, nr);
	}
	while (!sul_word_read(&r->over))
		;
	syscall(SYS_exit_group, r->wrong != 0);
	return 1;
}

/* --- rank 1 -------------------------------------------------------------------------- */

/* How many rank 0 has taken. */
static int look(struct sul_port *p, uint64_t *taken)
{
	int err = sul_get(p, 0, 0, offsetof(struct ring, taken), taken,
			  sizeof(*taken), NULL, 0);

	return err ? err : sul_flush(p);
}

static int send_one(struct sul_port *p, uint64_t nr)
{
	struct slot s = { nr, sum_of(nr) };
	uint64_t at = offsetof(struct ring, slot) + nr % SLOTS * sizeof(s);
	int err = sul_put(p, 0, 0, at, &s, sizeof(s));

	return err ? err :
		     sul_notify(p, 0, 0, offsetof(struct ring, tail),
				(uint32_t)nr + 1);
}

static int send_all(struct sul_port *p, uint64_t messages)
{
	uint64_t taken = 0;
	int err = 0;

	for (uint64_t nr = 0; !err && nr < messages; nr++) {
		while (!err && nr - taken >= SLOTS)
			err = look(p, &taken);
		if (!err)
			err = send_one(p, nr);
		if (!err && nr % BATCH == BATCH - 1)
			err = sul_poll(p); /* it leaves now */
	}
	while (!err && taken < messages)
		err = look(p, &taken);
	if (!err)
		err = sul_notify(p, 0, 0, offsetof(struct ring, over), 1);
	return err ? err : sul_flush(p);
}

/* --- both ------------------------------------------------------------------------------- */

static int open_port(struct sul_job *job, struct sul_port **out)
{
	struct sul_listen_config lc = { .job = job,
					.rank = sul_job_self(job),
					.far = SUL_FAR_KMOD,
					.everywhere = true };
	struct sul_config c = { .carrier = "shm",
				.job = job,
				.rank = lc.rank,
				.ranks = sul_job_ranks(job),
				.spin_us = SPIN_US,
				.silence_ms = SILENCE_MS,
				.no_handlers = true,
				.windows = 1,
				.window = { { .bytes = 64 << 10 } } };
	char why[SUL_WHY_MAX] = "";
	int err = sul_listen(&c.listener, &lc, why);

	c.why = why;
	if (!err) {
		sul_job_set_state(job, SUL_RANK_READY);
		err = sul_job_wait_all(job, SUL_RANK_READY, MEET_MS, NULL);
	}
	if (!err)
		err = sul_open(out, &c);
	if (*why)
		fprintf(stderr, "%s\n", why);
	return err;
}

_Static_assert(sizeof(struct ring) <= 64 << 10, "it fits the window");

int kernel_silent(int argc, char **argv)
{
	uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : MESSAGES;
	struct sul_port *p;
	struct sul_job *job;
	int err = sul_job_attach(&job);

	if (err || sul_job_ranks(job) != 2) {
		fprintf(stderr, "it is for two ranks: jiarun -n 2\n");
		return 2;
	}
	err = open_port(job, &p);
	if (err)
		return refuse("opening the port", err);
	sul_job_set_state(job, SUL_RANK_EXITED); /* no call later */
	if (!sul_job_self(job))
		return receive(p, messages);
	err = send_all(p, messages);
	sul_close(p);
	return err ? refuse("sending", err) : 0;
}
