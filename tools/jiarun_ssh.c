/* SPDX-License-Identifier: MIT */
/* jiarun_ssh.c - see jiarun_ssh.h. */
#include "jiarun_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	WORDS_MAX = 64
};

/*
 * Never ask anybody anything; carry nothing but our channel.  ControlMaster: a
 * connection that others would come to share must not be ours to end.  What
 * the user's own options or configuration say first, wins; but for what is
 * given here they rarely say anything.
 */
static const char *const options[] = {
	"-T",
	"-x",
	"-a",
	"-oBatchMode=yes",
	"-oClearAllForwardings=yes",
	"-oControlMaster=no",
	"-oPermitLocalCommand=no",
};

/*
 * What runs there, whatever shell the user has there: all of it is in single
 * quotes, or plain.  $1 is where jiarun is here, or where it was said to be.
 */
static const char run_there[] = "exec \"$1\" --host-keeper";
static const char find_there[] = "test -x \"$1\" && exec \"$1\" --host-keeper; "
				 "exec jiarun --host-keeper";

/* --- the words ------------------------------------------------------------------- */

struct words {
	char **at;
	size_t nr, room;
	bool full;
};

static void words_add(struct words *w, char *word)
{
	if (!word || w->nr + 1 >= w->room) {
		free(word);
		w->full = true;
		return;
	}
	w->at[w->nr++] = word;
	w->at[w->nr] = NULL;
}

static void words_split(struct words *w, const char *text)
{
	static const char blanks[] = " \t\n";

	for (text += strspn(text, blanks); *text;
	     text += strspn(text, blanks)) {
		size_t len = strcspn(text, blanks);

		words_add(w, strndup(text, len));
		text += len;
	}
}

/* 'it'\''s' */
static char *quoted(const char *text)
{
	char *out = malloc(4 * strlen(text) + 3), *to = out;

	if (!out)
		return NULL;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *text;
	}
	*to++ = '\'';
	*to = '\0';
	return out;
}

/* Where this very program is. */
static bool own_path(char *path, size_t room)
{
	ssize_t len = readlink("/proc/self/exe", path, room);

	if (len <= 0 || (size_t)len >= room)
		return false;
	path[len] = '\0';
	return true;
}

static char *command(const struct jiarun_options *o)
{
	char path[PATH_MAX], *where, *all;

	if (!o->path && !own_path(path, sizeof(path)))
		return strdup("exec jiarun --host-keeper");
	where = quoted(o->path ? o->path : path);
	if (!where)
		return NULL;
	all = jiarun_text("exec /bin/sh -c '%s' - %s",
			  o->path ? run_there : find_there, where);
	free(where);
	return all;
}

bool jiarun_ssh_words(const struct jiarun_options *o, const char *host,
		      char **argv, size_t room)
{
	struct words w = { .at = argv, .room = room };

	words_split(&w, o->ssh);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		words_add(&w, strdup(options[i]));
	/* A second more: who gives up first, and says so, are we. */
	words_add(&w, jiarun_text("-oConnectTimeout=%lld",
				  (long long)(o->answer_ms + 1999) / 1000));
	words_add(&w, strdup("--"));
	words_add(&w, strdup(host));
	words_add(&w, command(o));
	return !w.full;
}

const char *jiarun_ssh_name(const struct jiarun_options *o, char *buf,
			    size_t room)
{
	const char *at = o->ssh + strspn(o->ssh, " \t\n");

	snprintf(buf, room, "%.*s", (int)strcspn(at, " \t\n"), at);
	return buf;
}

/* --- starting -------------------------------------------------------------------- */

struct start {
	const struct jiarun_inherited *in;
	char *argv[WORDS_MAX];
	pid_t keeper;
	int from, to, errors; /* its ends */
	int report; /* for errno, should it not start */
};

/* In a session of its own: Ctrl-C at the terminal is for us, and there is no
 * terminal to ask for a password at. */
static _Noreturn void child_run(struct start *s)
{
	int err;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != s->keeper)
		_exit(1); /* it died before we asked to die with it */
	setsid();
	if (dup2(s->from, STDIN_FILENO) >= 0 &&
	    dup2(s->to, STDOUT_FILENO) >= 0 &&
	    dup2(s->errors, STDERR_FILENO) >= 0) {
		setrlimit(RLIMIT_NOFILE, &s->in->files);
		jiarun_signals_give_back(s->in);
		execvp(s->argv[0], s->argv);
	}
	err = errno;
	if (write(s->report, &err, sizeof(err)) < 0)
		_exit(JIARUN_NOT_RUNNABLE);
	_exit(JIARUN_NOT_FOUND);
}

/* 0, or the errno that came out of the pipe. */
static int report_read(int fd)
{
	ssize_t len;
	int err = 0;

	do
		len = read(fd, &err, sizeof(err));
	while (len < 0 && errno == EINTR);
	return len == (ssize_t)sizeof(err) ? err : 0;
}

static void close_both(const int p[2])
{
	close(p[0]);
	close(p[1]);
}

/* The process, with pipes @up and @down. */
static int start(struct jiarun_ssh *ssh, struct start *s, const int up[2],
		 const int down[2])
{
	int report[2], err;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	s->from = down[0];
	s->to = up[1];
	s->report = report[1];
	ssh->pid = fork();
	if (ssh->pid == 0)
		child_run(s);
	if (ssh->pid < 0) {
		err = -errno;
		ssh->pid = 0;
		close_both(report);
		return err;
	}
	close(report[1]);
	err = report_read(report[0]);
	close(report[0]);
	return -err;
}

static int start_piped(struct jiarun_ssh *ssh, struct start *s)
{
	int up[2], down[2], err;

	if (pipe2(up, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(down, O_CLOEXEC) < 0) {
		err = -errno;
		close_both(up);
		return err;
	}
	err = start(ssh, s, up, down);
	close(up[1]);
	close(down[0]);
	ssh->from = up[0];
	ssh->to = down[1];
	if (err) {
		close(ssh->from);
		close(ssh->to);
	}
	return err;
}

int jiarun_ssh_start(struct jiarun_ssh *s, const struct jiarun_options *o,
		     const struct jiarun_inherited *in, const char *host,
		     int errors)
{
	struct start st = { .in = in, .keeper = getpid(), .errors = errors };
	int err = -E2BIG;

	if (jiarun_ssh_words(o, host, st.argv, WORDS_MAX))
		err = start_piped(s, &st);
	for (char **w = st.argv; *w; w++)
		free(*w);
	return err;
}
