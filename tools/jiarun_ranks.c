/* SPDX-License-Identifier: MIT */
/*
 * jiarun_ranks.c - turning a child of the keeper into a rank.
 *
 * Every rank is forked by the keeper itself and none by another rank.  Between
 * fork and exec the child gets back everything as the user had it (signals,
 * limits), and what makes it a rank: no address randomisation, the job's
 * descriptor and JIA_JOB, its standard input, death with its parent.
 *
 * What goes wrong up to the exec comes back through a close-on-exec pipe: its
 * end of file says that all went well.  The first goes alone, so that a
 * program that is not there is not looked for a thousand times.
 */
#include "jiarun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

struct start {
	struct jiarun_ranks *rs;
	const struct jiarun_options *o;
	const struct jiarun_inherited *in;
	const struct sul_job *job;
	pid_t keeper;
	int report; /* write end of the pipe for errors */
};

static void error_set(struct jiarun_start_error *e, int rank, const char *what)
{
	e->err = errno;
	e->rank = rank;
	e->exec = false;
	snprintf(e->what, sizeof(e->what), "%s", what);
}

static _Noreturn void child_give_up(const struct start *s, int rank,
				    const char *what, bool exec)
{
	struct jiarun_start_error e;

	memset(&e, 0, sizeof(e));
	error_set(&e, rank, what);
	e.exec = exec;
	/* Smaller than PIPE_BUF: arrives whole.  Nobody is left to tell if it
	 * does not arrive at all. */
	if (write(s->report, &e, sizeof(e)) < 0)
		_exit(JIARUN_NOT_RUNNABLE);
	_exit(JIARUN_NOT_FOUND);
}

/* The terminal's, or whatever jiarun's standard input is, goes to one rank. */
static bool stdin_is_for(const struct jiarun_options *o, int rank)
{
	return rank == (o->debug_rank >= 0 ? o->debug_rank : 0);
}

static int child_stdio(const struct start *s, int rank)
{
	const int *its = s->rs->rank[rank].its;
	int null = -1;

	if (its[STDIN_FILENO] < 0 && !stdin_is_for(s->o, rank)) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++)
		if (its[i] >= 0 && dup2(its[i], i) < 0)
			return -1;
	return 0;
}

static void child_exec(char **argv)
{
	execvp(argv[0], argv);
}

/* gdb on the terminal; page faults of the runtime are none of its business. */
static void child_exec_gdb(char **argv)
{
	static const char *const head[] = {
		"gdb", "-q", "-ex", "handle SIGSEGV nostop noprint pass",
		"--args"
	};
	size_t nr_head = sizeof(head) / sizeof(head[0]), nr = 0, i;
	char **all;

	while (argv[nr])
		nr++;
	all = calloc(nr_head + nr + 1, sizeof(*all));
	if (!all)
		return;
	for (i = 0; i < nr_head; i++) {
		all[i] = strdup(head[i]);
		if (!all[i])
			return;
	}
	memcpy(all + nr_head, argv, nr * sizeof(*all));
	execvp(all[0], all);
}

static _Noreturn void child_run(const struct start *s, int rank)
{
	bool gdb = rank == s->o->debug_rank;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->keeper)
		_exit(1); /* it died before we asked to die with it */
	/* Ctrl-C is for gdb; so the others leave the terminal's group. */
	if (s->o->debug_rank >= 0 && !gdb)
		setpgid(0, 0);
	/* Where this is forbidden the ranks find differing addresses, or none,
	 * and say so: the runtime compares them. */
	personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
	if (child_stdio(s, rank) < 0)
		child_give_up(s, rank, "standard input and output", false);
	err = sul_job_hand_over(s->job, rank);
	if (err < 0) {
		errno = -err;
		child_give_up(s, rank, "the job's descriptor", false);
	}
	setrlimit(RLIMIT_NOFILE, &s->in->files);
	jiarun_signals_give_back(s->in);
	if (gdb)
		child_exec_gdb(s->o->argv);
	else
		child_exec(s->o->argv);
	child_give_up(s, rank, gdb ? "gdb" : "", !gdb);
}

/* Ranks @first .. @end-1, up to their exec. */
static int start_some(struct start *s, int first, int end,
		      struct jiarun_start_error *e)
{
	ssize_t len;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0) {
		error_set(e, first, "a pipe");
		return -1;
	}
	s->report = p[1];
	for (int r = first; r < end; r++) {
		pid_t pid;

		if (s->rs->rank[r].far)
			continue;
		pid = fork();
		if (pid == 0)
			child_run(s, r);
		if (pid < 0) {
			error_set(e, r, "a process");
			close(p[0]);
			close(p[1]);
			return -1;
		}
		s->rs->rank[r].pid = pid;
		s->rs->alive++;
	}
	close(p[1]);
	do
		len = read(p[0], e, sizeof(*e));
	while (len < 0 && errno == EINTR);
	close(p[0]);
	return len == 0 ? 0 : -1;
}

static int first_here(const struct jiarun_ranks *rs)
{
	int r = 0;

	while (r < rs->nr && rs->rank[r].far)
		r++;
	return r;
}

/* Two pipes a rank may be more than the soft limit lets us have. */
static void limit_raise(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
}

bool jiarun_ranks_open(struct jiarun_ranks *rs, int nr)
{
	limit_raise();
	rs->nr = nr;
	rs->rank = calloc((size_t)nr, sizeof(*rs->rank));
	for (int r = 0; rs->rank && r < nr; r++)
		for (int i = 0; i < 3; i++)
			rs->rank[r].its[i] = rs->rank[r].ours[i] = -1;
	return rs->rank != NULL;
}

bool jiarun_rank_pipe(struct jiarun_rank *r, int stream)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return false;
	r->its[stream] = p[stream != STDIN_FILENO];
	r->ours[stream] = p[stream == STDIN_FILENO];
	return true;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int jiarun_ranks_start(struct jiarun_ranks *rs, const struct jiarun_options *o,
		       const struct jiarun_inherited *in,
		       const struct sul_job *job, struct jiarun_start_error *e)
{
	struct start s = { .rs = rs, .o = o, .in = in, .job = job };
	int first = first_here(rs), err;

	s.keeper = getpid();
	if (first == rs->nr)
		return 0;
	err = start_some(&s, first, first + 1, e);
	if (!err && first + 1 < rs->nr)
		err = start_some(&s, first + 1, rs->nr, e);
	for (int r = 0; r < rs->nr; r++)
		for (int i = 0; i < 3 && !rs->rank[r].far; i++)
			fd_close(&rs->rank[r].its[i]);
	return err;
}

int jiarun_ranks_ended(struct jiarun_ranks *rs, pid_t pid, int status)
{
	for (int r = 0; r < rs->nr; r++) {
		struct jiarun_rank *rank = &rs->rank[r];

		if (rank->pid == pid && !rank->far && !rank->ended) {
			rank->ended = true;
			rank->status = status;
			rs->alive--;
			return r;
		}
	}
	return -1;
}

void jiarun_ranks_close(struct jiarun_ranks *rs)
{
	for (int r = 0; rs->rank && r < rs->nr; r++)
		for (int i = 0; i < 3; i++) {
			fd_close(&rs->rank[r].its[i]);
			fd_close(&rs->rank[r].ours[i]);
		}
	free(rs->rank);
	*rs = (struct jiarun_ranks){ 0 };
}
