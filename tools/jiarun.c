/* SPDX-License-Identifier: MIT */
/*
 * jiarun.c - start a program as the ranks of a job; see jiarun(1).
 *
 * This file is the front: the process that the user started and may kill.  The
 * work is done by its child, the keeper (jiarun.h says who is who).  The front
 * passes signals on and exits with the keeper's status.  Should somebody kill
 * the keeper, the ranks die with it, and the front ends what they leave behind.
 */
#include "jiarun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A descriptor 0, 1 or 2 that is closed would become one of our pipes.  Filled
 * with something that closes on exec, the ranks find it as it was.
 */
static void stdio_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Children that the user gave us (sh -c 'x & exec jiarun ...') are not ours to
 * end. */
static void clean_up(const pid_t *spare, size_t nr_spare)
{
	int64_t end = jiarun_now_ms() + JIARUN_KILL_MS;

	while (jiarun_tree_kill(SIGKILL, spare, nr_spare) > 0 &&
	       jiarun_now_ms() < end) {
		poll(NULL, 0, 10);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/* On another host the status is the message. */
static int keeper_status(const struct jiarun_options *o, pid_t keeper,
			 int status, const pid_t *spare, size_t nr_spare)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	clean_up(spare, nr_spare);
	if (!o->host_keeper)
		fprintf(stderr,
			"jiarun: its keeper (pid %d) was killed by signal %d (%s); "
			"the job was ended\n",
			(int)keeper, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

/* Wait for the keeper, passing signals on; its status as from waitpid(). */
static int front_wait(const struct jiarun_options *o,
		      const struct jiarun_inherited *in, int sfd, pid_t keeper)
{
	struct pollfd p = { .fd = sfd, .events = POLLIN };
	int status = 0, sig;
	pid_t pid;

	for (;;) {
		poll(&p, 1, -1);
		while ((sig = jiarun_signal_next(sfd, in, o->debug_rank >= 0)))
			if (sig != SIGCHLD)
				kill(keeper, sig);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == keeper)
				return status;
	}
}

/* Before hours of computing, not after: can --stats-file be written?  What is no
 * file (a pipe, say) is opened once only, when there is something to write. */
static bool stats_file_ok(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (!S_ISDIR(st.st_mode))
			return access(path, W_OK) == 0;
		errno = EISDIR;
		return false;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int run(const struct jiarun_options *o)
{
	struct jiarun_inherited in;
	pid_t front = getpid(), keeper, *spare;
	size_t nr_spare = jiarun_tree_children(&spare);
	int sfd, status;

	sfd = jiarun_signals_take(&in);
	if (sfd < 0) {
		fprintf(stderr, "jiarun: signalfd: %s\n", strerror(errno));
		free(spare);
		return 1;
	}
	fflush(NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	keeper = fork();
	if (keeper == 0)
		_exit(o->host_keeper ? jiarun_host_keeper(&in, sfd, front) :
				       jiarun_keeper(o, &in, sfd, front));
	if (keeper < 0) {
		fprintf(stderr, "jiarun: cannot start a process: %s%s\n",
			strerror(errno),
			errno == EAGAIN ?
				"; the limit on processes is ulimit -u" :
				"");
		free(spare);
		return 1;
	}
	status = front_wait(o, &in, sfd, keeper);
	status = keeper_status(o, keeper, status, spare, nr_spare);
	free(spare);
	return status;
}

int main(int argc, char **argv)
{
	struct jiarun_options o;
	int status;

	stdio_fill();
	status = jiarun_options_read(&o, argc, argv);
	if (status < 0 && o.stats_file && !stats_file_ok(o.stats_file)) {
		fprintf(stderr, "jiarun: cannot write statistics to %s: %s\n",
			o.stats_file, strerror(errno));
		status = 2;
	}
	if (status < 0)
		status = run(&o);
	jiarun_options_free(&o);
	return status;
}
