/* SPDX-License-Identifier: MIT */
/*
 * rank.c - a program that does, as a rank, what tests/pmix/run asks for.
 *
 * usage: pmix DEED [RANK], a digit: unless the deed comes before jia_init(), all
 * ranks meet; then RANK (default 1) does the deed and the others do what deeds[]
 * says: wait in a barrier, compute, or the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jia.h"
#include "sul_pmix.h"
#include "sul_pmix_lib.h"

extern char **environ;
static char **args;
static volatile char *first; /* shared memory */
static char *volatile nowhere = (char *)8;

/* For ever, without a call of the library. */
static void compute(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

static void deed_error(void)
{
	jia_error("this rank has had enough");
}

static void deed_kill(void)
{
	raise(SIGKILL);
}

static void deed_abort(void)
{
	abort();
}

static void deed_leave(void)
{
	exit(0);
}

static void deed_exit7(void)
{
	exit(7);
}

static void deed_wild(void)
{
	*nowhere = 1;
}

/* Shared memory that nobody has allocated: far behind the first piece. */
static void deed_hole(void)
{
	first[1 << 20] = 1;
}

static void deed_lock(void)
{
	jia_lock(-1);
}

static void deed_nothing(void)
{
	compute();
}

static void deed_meet(void)
{
	for (;;)
		jia_barrier();
}

/* --- before jia_init() ---------------------------------------------------------- */

/* Where everything lies; how the program was started. */
static void deed_where(void)
{
	printf("main %p, printf %p, fixed %d\n", (void *)(uintptr_t)&deed_where,
	       dlsym(RTLD_DEFAULT, "printf"),
	       ((unsigned long)personality(0xffffffff) & ADDR_NO_RANDOMIZE) !=
		       0);
	for (char **a = args; *a; a++)
		printf("<%s>", *a);
	puts("");
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "JIA_", 4) || !strncmp(*e, "ODD=", 4))
			puts(*e);
}

static void deed_early(void)
{
	jia_barrier();
}

/* Execute what follows where personality(2) is forbidden, as in containers. */
static void deed_forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	personality((unsigned long)personality(0xffffffff) &
		    ~(unsigned long)ADDR_NO_RANDOMIZE);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(77);
	execv(args[2], args + 2);
	exit(127);
}

/* Whether there is PMIx in the library: without, opening it names no server. */
static void deed_built(void)
{
	struct sul_pmix_client c = { 0 };
	char why[256];

	exit(sul_pmix_lib_open(&c, why, sizeof(why)) == -ENOSYS);
}

/* A program that was started by a rank. */
static void deed_child(void)
{
	pid_t pid;

	jia_init(0, NULL);
	jia_barrier();
	pid = fork();
	if (pid == 0) {
		execv(args[2], args + 2);
		_exit(127);
	}
	if (waitpid(pid, NULL, 0) != pid)
		jia_error("no child");
	jia_exit();
}

/* What the control block says of all ranks, without the DSM. */
static void complain(const char *text)
{
	fprintf(stderr, "pmix: %s\n", text);
}

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "pmix: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void print_ranks(struct sul_job *job)
{
	for (int r = 0; r < sul_job_ranks(job); r++) {
		struct sul_job_rank *rank = sul_job_rank(job, r);

		printf("%d sees %d: host %u '%s' far %d pid %d at '%.*s' key %02x%02x\n",
		       sul_job_self(job), r, rank->host, rank->host_name,
		       sul_job_far(job, r), rank->pid != 0,
		       (int)rank->address_len, (char *)rank->address,
		       sul_job_key(job)[0], sul_job_key(job)[15]);
	}
}

static void deed_wire(void)
{
	char text[SUL_JOB_TEXT_MAX];
	struct sul_pmix *pmix = NULL;
	struct sul_job_rank *self;
	struct sul_job *job;
	int missing;

	if (sul_pmix_attach(&pmix, &job, complain, text)) {
		complain(text);
		exit(1);
	}
	self = sul_job_rank(job, sul_job_self(job));
	self->address_len = (uint32_t)snprintf((char *)self->address,
					       sizeof(self->address),
					       "place %d", sul_job_self(job));
	sul_job_set_state(job, SUL_RANK_READY);
	check(sul_pmix_meet(pmix, 10000), "meet");
	check(sul_job_wait_all(job, SUL_RANK_READY, 10000, &missing), "wait");
	print_ranks(job);
	check(sul_pmix_leave(pmix, 10000), "leave");
	check(sul_job_wait_all(job, SUL_RANK_EXITED, 10000, &missing), "end");
}

/* ---------------------------------------------------------------------------------- */

static const struct deed {
	const char *name;
	void (*run)(void);
	enum {
		BEFORE,
		OTHERS_WAIT,
		OTHERS_COMPUTE,
		ALL
	} when;
} deeds[] = {
	{ "where", deed_where, BEFORE },
	{ "early", deed_early, BEFORE },
	{ "forbid", deed_forbid, BEFORE },
	{ "built", deed_built, BEFORE },
	{ "child", deed_child, BEFORE },
	{ "wire", deed_wire, BEFORE },
	{ "error", deed_error, OTHERS_WAIT },
	{ "error-busy", deed_error, OTHERS_COMPUTE },
	{ "lock", deed_lock, OTHERS_COMPUTE },
	{ "kill", deed_kill, OTHERS_WAIT },
	{ "kill-busy", deed_kill, OTHERS_COMPUTE },
	{ "abort", deed_abort, OTHERS_WAIT },
	{ "wild", deed_wild, OTHERS_WAIT },
	{ "hole", deed_hole, OTHERS_COMPUTE },
	{ "leave", deed_leave, OTHERS_COMPUTE },
	{ "exit7", deed_exit7, OTHERS_WAIT },
	{ "nothing", deed_nothing, OTHERS_COMPUTE },
	{ "meet", deed_meet, ALL },
	{ "good", jia_barrier, OTHERS_WAIT },
};

static void take_part(const struct deed *d, int who)
{
	jia_init(0, NULL);
	first = jia_malloc(1);
	jia_barrier();
	printf("rank %d of %d is process %d\n", jia_pid, hostc, (int)getpid());
	fflush(stdout);
	if (jia_pid == who || d->when == ALL)
		d->run();
	else if (d->when == OTHERS_WAIT)
		jia_barrier();
	else
		compute();
	jia_exit();
}

int main(int argc, char **argv)
{
	size_t i = 0, nr = sizeof(deeds) / sizeof(deeds[0]);

	args = argv;
	while (i < nr && strcmp(argc > 1 ? argv[1] : "good", deeds[i].name))
		i++;
	if (i == nr) {
		fprintf(stderr, "pmix: no such deed\n");
		return 2;
	}
	if (deeds[i].when == BEFORE)
		deeds[i].run();
	else
		take_part(&deeds[i], argc > 2 ? argv[2][0] - '0' : 1);
	return 0;
}
