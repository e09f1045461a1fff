/* SPDX-License-Identifier: MIT */
/* job.c - see job.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

bool job_is_release(const struct job *job)
{
	bool release = false;

	for (unsigned int i = 0; i < job->nsets; i++)
		if (!strncmp(job->set[i], "consistency=", 12))
			release = !strcmp(job->set[i] + 12, "release");
	return release;
}

static void exec_jiarun(const struct job *job, const char *record)
{
	const char *argv[2 * JOB_SETS + 16];
	char ranks[16];
	unsigned int n = 0;
	int null;

	snprintf(ranks, sizeof(ranks), "%u", job->ranks);
	argv[n++] = job->jiarun;
	argv[n++] = "-n";
	argv[n++] = ranks;
	if (job->hosts) {
		argv[n++] = "-H";
		argv[n++] = job->hosts;
	}
	for (unsigned int i = 0; i < job->nsets; i++) {
		argv[n++] = "--set";
		argv[n++] = job->set[i];
	}
	argv[n++] = job->self;
	argv[n++] = "--child";
	argv[n++] = record;
	argv[n] = NULL;
	if (job->quiet) {
		null = open("/dev/null", O_WRONLY);
		if (null >= 0)
			dup2(null, 2);
	}
	execvp(job->jiarun, (char *const *)(uintptr_t)argv);
	fprintf(stderr, "oracle: cannot start %s: %s\n", job->jiarun,
		strerror(errno));
	_exit(127);
}

/* jiarun in a process group of its own, that dies with us. */
static pid_t start_jiarun(const struct job *job, int fd)
{
	pid_t parent = getpid(), pid;
	char record[64];

	/* Ranks that sshd has started have not inherited it. */
	snprintf(record, sizeof(record), "/proc/%d/fd/%d", (int)parent, fd);
	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	exec_jiarun(job, record);
	return -1;
}

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Wait up to @s seconds for @pid to end, then end its whole group. */
static int end_jiarun(pid_t pid, double s)
{
	double until = now_s() + s;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_s() > until)
			kill(-pid, SIGKILL);
		sleep_ms(5);
	}
	return status;
}

enum outcome {
	ENDED,
	HUNG
};

/* Until the job ends, fails or stands still. */
static enum outcome watch(const struct job *job, struct record *rec, pid_t pid,
			  int *status)
{
	double last = now_s();
	uint64_t ops = 0;

	while (waitpid(pid, status, WNOHANG) == 0) {
		uint64_t now = record_ops(rec);

		if (atomic_load(&rec->bad.state) == 2) {
			*status = end_jiarun(pid, 5);
			return ENDED;
		}
		if (now != ops) {
			ops = now;
			last = now_s();
		}
		if (now_s() - last > job->stall_s)
			return HUNG;
		sleep_ms(5);
	}
	return ENDED;
}

static int judge(const struct job *job, struct record *rec, enum outcome how,
		 int status)
{
	if (atomic_load(&rec->bad.state) == 2) {
		report_violation(job, rec);
		return 1;
	}
	if (how == HUNG) {
		fprintf(stderr, "oracle: VIOLATION: no progress for %u s\n",
			job->stall_s);
	} else if (status) {
		fprintf(stderr,
			"oracle: VIOLATION: the job ended with %s %d, and no wrong value was seen\n",
			WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) :
					      WEXITSTATUS(status));
	} else if (!atomic_load(&rec->stop)) {
		fprintf(stderr,
			"oracle: VIOLATION: the job ended before its work did\n");
	} else {
		return 0;
	}
	report_threads(job, rec);
	report_replay(job, atomic_load(&rec->round));
	return 1;
}

int job_run(const struct job *job, struct job_result *out)
{
	double start = now_s();
	struct record *rec;
	enum outcome how;
	int fd, rc, status = 0;
	pid_t pid;

	rc = record_create(&rec, &fd);
	if (rc)
		return rc;
	rec->seed = job->seed;
	rec->ops = job->ops;
	rec->ranks = job->ranks;
	rec->threads = job->threads;
	rec->pages = job->pages;
	rec->release = job_is_release(job);
	rec->vary = job->vary;
	rec->first_round = job->first_round;
	pid = start_jiarun(job, fd);
	if (pid < 0) {
		rc = -errno;
		goto close;
	}
	how = watch(job, rec, pid, &status);
	rc = judge(job, rec, how, status);
	if (how == HUNG)
		end_jiarun(pid, 0);
	out->ops = record_ops(rec);
	out->rounds = atomic_load(&rec->round) - job->first_round;
	out->seconds = now_s() - start;
close:
	record_close(rec, fd);
	return rc;
}
