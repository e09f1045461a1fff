/* SPDX-License-Identifier: MIT */
/*
 * run-tests - runs the steps of a table one after another and counts tests.
 *
 * Role: `make check`, `make lint` and .ci/run go through here.  A step is a
 * command of the table that has the wanted tag:
 *
 *	NAME  TAG[,TAG]  SECONDS  COMMAND
 *
 * Its output goes to a log of its own; the lines in it that say how a test
 * went are shown as they come and counted:
 *
 *	ok ... / not ok ... / ok ... # SKIP why     TAP
 *	Test: NAME ...passed / ...FAILED            CUnit
 *	tests TOTAL RAN PASSED FAILED INACTIVE      CUnit; takes the place of
 *	                                            the lines counted before
 * A step without such lines is one test: exit status 0 is a pass, 77 a skip.
 *
 * Invariant: nothing fails in silence.  A bad exit status, a signal, a time-out,
 * a step that ran no test and a process that a step leaves behind are failures,
 * whatever the step's output says; a table without a step for the tag is one.
 * Nothing of a step lives on when the next begins.
 *
 * The last line is "N passed, N failed, N skipped"; if TEST_COUNTS names a file
 * the three numbers are appended to it instead.  Exit status: 0 if tests ran
 * and none failed, 1 otherwise, 2 for wrong use.
 *
 * Threads: one.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE_MAX_BYTES = 1024, /* longer lines are looked at in pieces */
	LINGER_MS = 2000, /* what a job may take to end after its launcher */
	TERM_MS = 3000, /* from SIGTERM to SIGKILL at a time-out */
	TICK_MS = 20,
	TAIL_LINES = 60, /* of a failed step's log that are shown */
	PIDS_MAX = 1024,
	EXIT_SKIP = 77
};

struct tally {
	unsigned int passed, failed, skipped;
};

struct step {
	char name[64], tags[128];
	unsigned int seconds;
	char command[LINE_MAX_BYTES];
};

/* What is known of the step that runs. */
struct run {
	const struct step *step;
	FILE *log;
	char log_path[4096];
	pid_t pid;
	int status; /* of waitpid(); -1 while it runs */
	bool timed_out;
	struct tally lines, summary;
	bool has_summary;
	char test[LINE_MAX_BYTES]; /* CUnit's, without a verdict yet; or "" */
	char line[LINE_MAX_BYTES];
	size_t line_len;
};

static volatile sig_atomic_t stopped; /* by a signal, its number */

static void stop(int sig)
{
	stopped = sig;
}

static _Noreturn void die(const char *what, const char *detail)
{
	fprintf(stderr, "run-tests: %s: %s\n", what, detail);
	exit(2);
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void nap(void)
{
	struct timespec t = { .tv_nsec = TICK_MS * 1000000L };

	nanosleep(&t, NULL);
}

/* --- what a line of output says ----------------------------------------------- */

static void tell(const char *verdict, const char *step, const char *test)
{
	printf("%s %s%s%s\n", verdict, step, *test ? ": " : "", test);
	fflush(stdout);
}

/* The test's name in a TAP line: what follows the number and the dash. */
static const char *tap_name(const char *s)
{
	while (isspace((unsigned char)*s) || isdigit((unsigned char)*s))
		s++;
	if (*s == '-')
		s++;
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static bool tap_line(struct run *r, const char *s)
{
	const char *name = r->step->name;

	if (!strncmp(s, "not ok ", 7)) {
		r->lines.failed++;
		tell("not ok", name, tap_name(s + 7));
	} else if (!strncmp(s, "ok ", 3) && strcasestr(s, "# skip")) {
		r->lines.skipped++;
		tell("skipped", name, tap_name(s + 3));
	} else if (!strncmp(s, "ok ", 3)) {
		r->lines.passed++;
		tell("ok", name, tap_name(s + 3));
	} else {
		return false;
	}
	return true;
}

/* Read @nr numbers with blanks before each; where they end, or NULL. */
static const char *numbers(const char *s, unsigned int *out, unsigned int nr)
{
	char *end;

	for (unsigned int i = 0; i < nr; i++, s = end) {
		out[i] = (unsigned int)strtoul(s, &end, 10);
		if (end == s)
			return NULL;
	}
	return s;
}

/* The verdict on the CUnit test that began last: at the end of its own line, or
 * alone on one if the test has printed something. */
static void cunit_verdict(struct run *r, const char *s)
{
	if (!strncmp(s, "passed", 6)) {
		r->lines.passed++;
		tell("ok", r->step->name, r->test);
	} else if (!strncmp(s, "FAILED", 6)) {
		r->lines.failed++;
		tell("not ok", r->step->name, r->test);
	} else {
		return;
	}
	r->test[0] = 0;
}

static void cunit_line(struct run *r, const char *s)
{
	unsigned int row[5]; /* total, ran, passed, failed, inactive */
	const char *begin = strstr(s, "Test: "), *end = strstr(s, " ...");

	s += strspn(s, " ");
	if (!strncmp(s, "tests ", 6) && numbers(s + 6, row, 5)) {
		r->has_summary = true;
		r->summary.passed += row[2];
		r->summary.failed += row[3];
		r->summary.skipped += row[4];
	} else if (begin && end && end >= begin + 6) {
		snprintf(r->test, sizeof(r->test), "%.*s",
			 (int)(end - begin - 6), begin + 6);
		cunit_verdict(r, end + 4);
	} else if (r->test[0]) {
		cunit_verdict(r, s);
	}
}

static void line_end(struct run *r)
{
	r->line[r->line_len] = 0;
	r->line_len = 0;
	if (!tap_line(r, r->line))
		cunit_line(r, r->line);
}

static void output(struct run *r, const char *buf, size_t len)
{
	fwrite(buf, 1, len, r->log);
	for (size_t i = 0; i < len; i++) {
		if (buf[i] != '\n' && r->line_len < sizeof(r->line) - 1)
			r->line[r->line_len++] = buf[i];
		else
			line_end(r);
	}
}

/* --- processes ------------------------------------------------------------------ */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *f;
	const char *paren;
	long parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(text, sizeof(text), f)) {
		paren = strrchr(text, ')'); /* then " S PPID ..." */
		if (paren && strlen(paren) > 4)
			parent = strtol(paren + 4, NULL, 10);
	}
	fclose(f);
	return (pid_t)parent;
}

static bool descends_from_me(pid_t pid)
{
	pid_t me = getpid();

	while (pid > 1 && pid != me)
		pid = parent_of(pid);
	return pid == me;
}

/*
 * All processes below this one: it is their subreaper, so one that lost its
 * parent is among them.
 */
static unsigned int descendants(pid_t pids[PIDS_MAX])
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	unsigned int nr = 0;

	if (!proc)
		die("/proc", strerror(errno));
	while ((e = readdir(proc)) && nr < PIDS_MAX) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 1 && pid != getpid() && descends_from_me(pid))
			pids[nr++] = pid;
	}
	closedir(proc);
	return nr;
}

static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == r->pid)
			r->status = status;
	}
}

static void signal_all(int sig)
{
	pid_t pids[PIDS_MAX];
	unsigned int nr = descendants(pids);

	for (unsigned int i = 0; i < nr; i++)
		kill(pids[i], sig);
}

/* Whether nothing is left below this process after at most @ms. */
static bool all_gone(struct run *r, long long ms)
{
	long long end = now_ms() + ms;
	pid_t pids[PIDS_MAX];

	for (;;) {
		reap(r);
		if (!descendants(pids))
			return true;
		if (now_ms() >= end)
			return false;
		nap();
	}
}

static void kill_all(struct run *r)
{
	while (!all_gone(r, TICK_MS))
		signal_all(SIGKILL);
}

/* --- one step ------------------------------------------------------------------- */

static void exec_step(const struct step *s, int out)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(126);
	/* Ours and make's: a step may call either itself. */
	unsetenv("TEST_COUNTS");
	unsetenv("MAKEFLAGS");
	unsetenv("MFLAGS");
	unsetenv("MAKELEVEL");
	execl("/bin/sh", "sh", "-c", s->command, (char *)NULL);
	_exit(127);
}

static int start(struct run *r)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		die("pipe", strerror(errno));
	fflush(NULL);
	r->status = -1;
	r->pid = fork();
	if (r->pid < 0)
		die("fork", strerror(errno));
	if (!r->pid)
		exec_step(r->step, fds[1]);
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	return fds[0];
}

/* Read what is there; false at the end of the output. */
static bool drain(struct run *r, int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		output(r, buf, (size_t)n);
	return n < 0 && errno == EAGAIN;
}

/* Until the step's own process has ended or its time is over. */
static void follow(struct run *r, int fd)
{
	long long end = now_ms() + r->step->seconds * 1000LL;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (r->status == -1 && now_ms() < end && !stopped) {
		poll(&p, 1, TICK_MS);
		if (p.fd >= 0 && !drain(r, fd))
			p.fd = -1;
		reap(r);
	}
	if (r->status == -1) {
		r->timed_out = true;
		signal_all(SIGTERM);
		all_gone(r, TERM_MS);
		kill_all(r);
	}
	drain(r, fd);
	if (r->line_len)
		line_end(r);
}

static void fail(struct run *r, struct tally *t, const char *why)
{
	t->failed++;
	tell("not ok", r->step->name, why);
	fprintf(r->log, "run-tests: %s\n", why);
}

static void name_leftover(struct run *r, struct tally *t)
{
	pid_t pids[PIDS_MAX];
	char path[64], comm[64] = "?\n", why[160];
	FILE *f;

	if (!descendants(pids))
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pids[0]);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(comm, sizeof(comm), f))
			comm[0] = 0;
		fclose(f);
	}
	comm[strcspn(comm, "\n")] = 0;
	snprintf(why, sizeof(why), "left process %d (%s) behind", (int)pids[0],
		 comm);
	fail(r, t, why);
}

static struct tally judge(struct run *r)
{
	struct tally t = r->has_summary ? r->summary : r->lines;
	unsigned int nr;
	char why[128];
	int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;

	if (t.failed < r->lines.failed)
		t.failed = r->lines.failed;
	nr = t.passed + t.failed + t.skipped;
	if (stopped) {
		fail(r, &t, "stopped by a signal");
	} else if (r->timed_out) {
		snprintf(why, sizeof(why), "not done after %u s",
			 r->step->seconds);
		fail(r, &t, why);
	} else if (code == -1) {
		snprintf(why, sizeof(why), "killed by signal %d (%s)",
			 WTERMSIG(r->status), strsignal(WTERMSIG(r->status)));
		fail(r, &t, why);
	} else if (code == EXIT_SKIP && !nr) {
		t.skipped++;
		tell("skipped", r->step->name, "");
	} else if (code && !t.failed) {
		snprintf(why, sizeof(why), "exit status %d", code);
		fail(r, &t, why);
	} else if (!nr && r->has_summary) {
		fail(r, &t, "no test ran");
	} else if (!nr) {
		t.passed++;
		tell("ok", r->step->name, "");
	}
	return t;
}

static void show_tail(const struct run *r)
{
	FILE *f = fopen(r->log_path, "re");
	char line[LINE_MAX_BYTES];
	int lines = 0, skip;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		lines++;
	skip = lines - TAIL_LINES;
	printf("# the end of %s:\n", r->log_path);
	rewind(f);
	for (int i = 0; fgets(line, sizeof(line), f); i++) {
		if (i >= skip)
			printf("#   %.*s\n", (int)strcspn(line, "\n"), line);
	}
	fclose(f);
}

static void run_step(const struct step *s, const char *log_dir,
		     struct tally *total)
{
	struct run r = { .step = s };
	struct tally t;
	int fd;

	snprintf(r.log_path, sizeof(r.log_path), "%s/%s.log", log_dir, s->name);
	r.log = fopen(r.log_path, "we");
	if (!r.log)
		die(r.log_path, strerror(errno));
	fd = start(&r);
	follow(&r, fd);
	t = judge(&r);
	if (!all_gone(&r, LINGER_MS)) {
		name_leftover(&r, &t);
		kill_all(&r);
	}
	close(fd);
	fclose(r.log);
	if (t.failed)
		show_tail(&r);
	total->passed += t.passed;
	total->failed += t.failed;
	total->skipped += t.skipped;
}

/* --- the table ------------------------------------------------------------------- */

static bool has_tag(const char *tags, const char *tag)
{
	size_t len = strlen(tag);

	while (*tags) {
		size_t n = strcspn(tags, ",");

		if (n == len && !strncmp(tags, tag, n))
			return true;
		tags += n + (tags[n] == ',');
	}
	return false;
}

/* Copy the next word of @s; where it ends. */
static const char *word(const char *s, char *out, size_t size)
{
	size_t len;

	s += strspn(s, " \t");
	len = strcspn(s, " \t\n");
	snprintf(out, size, "%.*s", (int)len, s);
	return s + len;
}

static bool parse_step(const char *line, struct step *s)
{
	const char *rest = line;

	rest = word(rest, s->name, sizeof(s->name));
	rest = word(rest, s->tags, sizeof(s->tags));
	rest = numbers(rest, &s->seconds, 1);
	if (!rest)
		return false;
	rest += strspn(rest, " \t");
	snprintf(s->command, sizeof(s->command), "%.*s",
		 (int)strcspn(rest, "\n"), rest);
	return *s->command && s->seconds;
}

/* Run all steps of @table with @tag (and called @only, if given). */
static void run_table(const char *table, const char *tag, const char *only,
		      const char *log_dir, struct tally *total)
{
	FILE *f = fopen(table, "re");
	char line[2 * LINE_MAX_BYTES];
	struct step s;

	if (!f)
		die(table, strerror(errno));
	while (!stopped && fgets(line, sizeof(line), f)) {
		if (line[strspn(line, " \t\n")] == 0 || *line == '#')
			continue;
		if (!parse_step(line, &s))
			die("not a step", line);
		if (has_tag(s.tags, tag) && (!only || !strcmp(only, s.name)))
			run_step(&s, log_dir, total);
	}
	fclose(f);
}

static void report(const struct tally *t)
{
	const char *path = getenv("TEST_COUNTS");
	FILE *f;

	if (!path || !*path) {
		printf("%u passed, %u failed, %u skipped\n", t->passed,
		       t->failed, t->skipped);
		return;
	}
	f = fopen(path, "ae");
	if (!f)
		die(path, strerror(errno));
	fprintf(f, "%u %u %u\n", t->passed, t->failed, t->skipped);
	fclose(f);
}

static void make_dirs(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(path, 0777);
		*p = '/';
	}
	if (mkdir(path, 0777) && errno != EEXIST)
		die(path, strerror(errno));
}

static _Noreturn void usage(void)
{
	die("use", "run-tests --tag TAG [--step NAME] --log DIR TABLE");
}

int main(int argc, char **argv)
{
	const char *tag = NULL, *only = NULL;
	char *log_dir = NULL;
	struct tally total = { 0 };
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--tag"))
			tag = argv[i + 1];
		else if (!strcmp(argv[i], "--step"))
			only = argv[i + 1];
		else if (!strcmp(argv[i], "--log"))
			log_dir = argv[i + 1];
		else
			usage();
	}
	if (!tag || !log_dir || i + 1 != argc)
		usage();
	make_dirs(log_dir);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		die("PR_SET_CHILD_SUBREAPER", strerror(errno));
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	signal(SIGHUP, stop);
	run_table(argv[i], tag, only, log_dir, &total);
	if (!total.passed && !total.failed && !total.skipped)
		printf("# no step of %s has run\n", argv[i]);
	report(&total);
	return total.failed || !total.passed;
}
