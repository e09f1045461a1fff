/* SPDX-License-Identifier: MIT */
/* child.c - processes that a rank starts. */
#include "misuse.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Wait for @pid; its status as a shell would give it. */
static int status_of(pid_t pid)
{
	int status;

	CHECK(pid > 0, "fork: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR, "waitpid: %s", strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* In a forked child, do @deed; 0 if it comes back. */
static int in_child(void (*deed)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		deed();
		_exit(0);
	}
	return status_of(pid);
}

static void work_on(void)
{
	for (int i = 0; i < PAGES; i++)
		shared[i * PAGE + jia_pid]++;
	jia_barrier();
	jia_lock(3);
	shared[50]++;
	jia_unlock(3);
}

static void load(void)
{
	CHECK(shared[0] == 0, "not reached");
}

static void store(void)
{
	shared[PAGE] = 1;
}

static void lock(void)
{
	jia_lock(1);
}

static void barrier(void)
{
	jia_barrier();
}

static void init(void)
{
	jia_init(my_argc, my_argv);
}

static void end(void)
{
	jia_exit();
}

static void error(void)
{
	jia_error("the child gives up");
}

static void leave(void)
{
	exit(5);
}

static void child_dies_of_its_own_misuse(void)
{
	static const struct {
		void (*deed)(void);
		int status;
	} what[] = { { load, 139 }, { store, 139 }, { lock, 1 }, { barrier, 1 },
		     { init, 1 },   { end, 1 },	    { error, 1 } };

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		int status = in_child(what[i].deed);

		CHECK(status == what[i].status, "deed %d: status %d", (int)i,
		      status);
		work_on();
	}
}

static void child_may_exit(void)
{
	CHECK(in_child(leave) == 5, "exit(5)");
	work_on();
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(i);
		shared[i * PAGE + 60 + jia_pid]++;
		CHECK(status_of(pid) == i, "child %d", i);
	}
	work_on();
}

static void child_may_start_programs(void)
{
	static char sh[] = "/bin/sh", c[] = "-c", six[] = "exit 6";
	char *argv[] = { sh, c, six, NULL };
	char line[80] = "";
	pid_t pid;
	FILE *f;

	CHECK(WEXITSTATUS(system("exit 3")) == 3, "system()");
	work_on();
	f = popen("echo from afar; exit 4", "r");
	CHECK(f && fgets(line, sizeof(line), f), "popen()");
	CHECK(!strcmp(line, "from afar\n"), "popen() gave '%s'", line);
	CHECK(WEXITSTATUS(pclose(f)) == 4, "pclose()");
	work_on();
	CHECK(!posix_spawn(&pid, sh, NULL, NULL, argv, environ),
	      "posix_spawn()");
	CHECK(status_of(pid) == 6, "posix_spawn()");
	work_on();
	pid = fork();
	if (pid == 0) {
		execv(sh, argv);
		_exit(99);
	}
	CHECK(status_of(pid) == 6, "fork() and exec()");
	work_on();
}

/* A program of this library, started by a rank, is a job of its own. */
static void child_may_be_a_job(void)
{
	char command[4200];

	snprintf(command, sizeof(command), "'%s' child_may_exit", my_argv[0]);
	fflush(NULL);
	CHECK(system(command) == 0, "a job in a job");
	work_on();
	snprintf(command, sizeof(command), "'%s' lock_minus_one 2>/dev/null",
		 my_argv[0]);
	CHECK(WEXITSTATUS(system(command)) == 1, "a failing job in a job");
	work_on();
}

static volatile int stop;

static void *fork_all_the_time(void *arg)
{
	while (!stop)
		CHECK(in_child(leave) == 5, "a child of a busy rank");
	return arg;
}

static void fork_while_threads_work(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, fork_all_the_time, NULL), "thread");
	for (int i = 0; i < 40; i++)
		work_on();
	stop = 1;
	pthread_join(t, NULL);
}

static void fork_before_init(void)
{
	int up[2];
	char c;
	pid_t pid;

	CHECK(!pipe(up), "pipe");
	pid = fork();
	if (pid == 0) {
		close(up[1]);
		_exit(read(up[0], &c, 1) ? 1 : 8);
	}
	close(up[0]);
	setup();
	work_on();
	close(up[1]);
	CHECK(status_of(pid) == 8, "a child older than jia_init()");
	jia_exit();
}

/* Both a process and its child call jia_init(): they are one rank. */
static void two_processes_of_one_rank(void)
{
	const char *job = getenv("SAVED_JIA_JOB"); /* by a wrapper */
	pid_t pid;

	jia_init(my_argc, my_argv);
	CHECK(job && !setenv("JIA_JOB", job, 1), "no job");
	for (int i = 0; i < 3; i++) /* the fourth number is its descriptor */
		job = strchr(job, ':') + 1;
	fcntl((int)strtol(job, NULL, 10), F_SETFD, 0); /* survives the exec */
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe",
		      (char *[]){ my_argv[0], my_argv[1], NULL });
		_exit(99);
	}
	CHECK(status_of(pid) == 1, "a second process of a rank");
	jia_exit();
}

/* Others may say something at the same time: a message goes out in one piece.  Of a
 * pipe of packets a read takes what one write has brought. */
static void a_message_is_one_write(void)
{
	char text[2000];
	ssize_t len;
	int up[2];
	pid_t pid;

	CHECK(!pipe2(up, O_DIRECT), "pipe");
	pid = fork();
	if (pid == 0) {
		unsetenv("JIA_JOB"); /* nobody else is to print it */
		dup2(up[1], STDERR_FILENO);
		jia_lock(0);
		_exit(99);
	}
	CHECK(status_of(pid) == 1, "a call before jia_init()");
	len = read(up[0], text, sizeof(text) - 1);
	CHECK(len > 0 && text[len - 1] == '\n', "a part of a message");
	text[len] = '\0';
	CHECK(!strncmp(text, "jia: jia_lock() at ", 19), "said: %s", text);
	exit(0);
}

static void a_child_after_jia_exit(void)
{
	setup();
	jia_exit();
	CHECK(in_child(leave) == 5, "exit(5)");
	CHECK(in_child(load) == 139, "a child loads after jia_exit()");
	CHECK(WEXITSTATUS(system("exit 3")) == 3, "system()");
	exit(0);
}

#define ROW(name, who)           \
	{                        \
#name, name, who \
	}
const struct deed child_deeds[] = {
	ROW(child_dies_of_its_own_misuse, ALL),
	ROW(child_may_exit, ALL),
	ROW(child_may_start_programs, ALL),
	ROW(child_may_be_a_job, ALL),
	ROW(fork_while_threads_work, ALL),
	ROW(fork_before_init, RAW),
	ROW(two_processes_of_one_rank, RAW),
	ROW(a_message_is_one_write, RAW),
	ROW(a_child_after_jia_exit, RAW),
	{ NULL, NULL, ONE },
};
