/* SPDX-License-Identifier: MIT */
/*
 * jiarun_report.c - what jiarun says: who failed, how, who waits where.
 *
 * Everything that a rank has left in the job's memory is text of a process that
 * may be broken: it is copied, bounded, and printed without control characters.
 */
#include "jiarun.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dsm_stat.h"
#include "dsm_limits.h"
#include "dsm_tally.h"
#include "jiarun_json.h"

enum {
	LINES_MAX = 64 /* ranks that a time-out report tells of */
};

char *jiarun_text(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

/* Copy at most @room - 1 bytes, nothing that steers a terminal. */
static void copy_plain(char *to, const char *from, size_t room)
{
	size_t i;

	for (i = 0; i + 1 < room && from[i]; i++) {
		unsigned char c = (unsigned char)from[i];

		to[i] = (c < ' ' && c != '\n' && c != '\t') || c == 127 ?
				'?' :
				from[i];
	}
	to[i] = '\0';
}

/* "lock 3, held by rank 1, at @{0x...}, for 1.2 s"; "" if it waits for
 * nothing. */
static void waiting_text(struct sul_job *job, int rank, char *text, size_t room)
{
	struct sul_job_rank *r = sul_job_rank(job, rank);
	uint64_t since = atomic_load(&r->waiting_since_ns);
	uint64_t site = atomic_load(&r->waiting_site);
	int64_t ms = jiarun_now_ms() - (int64_t)(since / 1000000);
	char what[SUL_JOB_NOTE_MAX];
	int n;

	text[0] = '\0';
	if (!since)
		return;
	copy_plain(what, r->waiting, sizeof(what));
	n = snprintf(text, room, "%s", what[0] ? what : "something");
	if (site)
		n += snprintf(text + n, room - (size_t)n,
			      ", at @{0x%" PRIx64 "}", site);
	snprintf(text + n, room - (size_t)n, ", for %.1f s", (double)ms / 1e3);
}

char *jiarun_report_end(struct sul_job *job, const struct jiarun_rank *r,
			int rank)
{
	char where[512], tail[600] = "", word[SUL_JOB_NOTE_MAX];
	int sig = WTERMSIG(r->status);

	waiting_text(job, rank, where, sizeof(where));
	if (where[0])
		snprintf(tail, sizeof(tail), ", while waiting for %s", where);
	copy_plain(word, sul_job_rank(job, rank)->last_word, sizeof(word));
	if (WIFSIGNALED(r->status) && word[0])
		snprintf(tail, sizeof(tail), ": %s", word);
	if (WIFSIGNALED(r->status))
		return jiarun_text("rank %d (pid %d) was killed by signal %d "
				   "(%s%s)%s",
				   rank, (int)r->pid, sig, strsignal(sig),
				   WCOREDUMP(r->status) ? ", core dumped" : "",
				   tail);
	if (WEXITSTATUS(r->status))
		return jiarun_text("rank %d (pid %d) exited with status %d%s",
				   rank, (int)r->pid, WEXITSTATUS(r->status),
				   tail);
	if (atomic_load(&sul_job_rank(job, rank)->state) == SUL_RANK_NONE)
		return jiarun_text("rank %d (pid %d) left (exit status 0) "
				   "without jia_init(), which others called",
				   rank, (int)r->pid);
	return jiarun_text("rank %d (pid %d) left (exit status 0) without "
			   "jia_exit()%s",
			   rank, (int)r->pid, tail);
}

char *jiarun_report_failure(struct sul_job *job, const struct jiarun_ranks *rs,
			    int *rank, int *status)
{
	char raw[SUL_JOB_TEXT_MAX], text[SUL_JOB_TEXT_MAX];
	size_t len;

	sul_job_failure(job, rank, status, raw);
	if (*status <= 0 || *status > 255)
		*status = 1;
	if (*rank < 0 || *rank >= rs->nr)
		*rank = -1;
	copy_plain(text, raw, sizeof(text));
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	if (!len && *rank >= 0)
		return NULL;
	if (*rank < 0 || strncmp(text, "rank ", 5) == 0)
		return jiarun_text("%s", len ? text : "a rank failed");
	return jiarun_text("rank %d (pid %d): %s", *rank,
			   (int)rs->rank[*rank].pid, text);
}

/* R, S, D, T, ... of /proc/PID/stat; 0: it is gone. */
static char process_state(pid_t pid)
{
	char path[64], buf[512], *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (len <= 0)
		return 0;
	buf[len] = '\0';
	end = strrchr(buf, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

static const char *activity(struct sul_job *job, const struct jiarun_rank *r,
			    int rank)
{
	pid_t pid = (pid_t)atomic_load(&sul_job_rank(job, rank)->pid);

	switch (process_state(pid ? pid : r->pid)) {
	case 'R':
		return "it is running";
	case 'T':
	case 't':
		return "it is stopped";
	case 'D':
		return "it waits for a disk or the like";
	case 'S':
		return "it sleeps in a system call";
	default:
		return "it has ended";
	}
}

/* "; holds lock 3 (taken at @{0x...}), lock 4 (...)", or nothing.  Written by
 * threads of the rank meanwhile: each entry is a recent one. */
static void put_held(FILE *f, struct sul_job *job, int rank)
{
	const struct dsm_tally *t = sul_job_more(job, rank);
	const char *comma = "; holds";

	for (int slot = 0; slot < DSM_HELD_THREADS; slot++)
		for (int i = 0; i < DSM_HELD_DEPTH; i++) {
			const struct dsm_held *h = &t->held[slot][i];
			uint64_t lock =
				__atomic_load_n(&h->lock, __ATOMIC_ACQUIRE);

			if (!lock)
				continue;
			fprintf(f,
				lock <= DSM_LOCKS ? "%s lock %" PRIu64 :
						    "%s lock at 0x%" PRIx64,
				comma, lock - 1);
			fprintf(f, " (taken at @{0x%" PRIx64 "})", h->site);
			comma = ",";
		}
}

static void timeout_line(FILE *f, struct sul_job *job,
			 const struct jiarun_rank *r, int rank)
{
	uint32_t state = atomic_load(&sul_job_rank(job, rank)->state);
	char where[512];

	fprintf(f, "\n  rank %d (pid %d): ", rank, (int)r->pid);
	waiting_text(job, rank, where, sizeof(where));
	if (where[0])
		fprintf(f, "waiting for %s", where);
	else if (r->ended)
		fprintf(f, "has ended");
	else if (state == SUL_RANK_NONE)
		fprintf(f, "has not called jia_init(); %s",
			activity(job, r, rank));
	else if (state == SUL_RANK_EXITED)
		fprintf(f, "has called jia_exit(); %s", activity(job, r, rank));
	else
		fprintf(f, "waits for no other rank; %s",
			activity(job, r, rank));
	if (!r->ended)
		put_held(f, job, rank);
}

static void put_ranks(FILE *f, struct sul_job *job,
		      const struct jiarun_ranks *rs)
{
	for (int r = 0; r < rs->nr && r < LINES_MAX; r++)
		timeout_line(f, job, &rs->rank[r], r);
	if (rs->nr > LINES_MAX)
		fprintf(f, "\n  and %d more ranks", rs->nr - LINES_MAX);
}

char *jiarun_report_waits(struct sul_job *job, const struct jiarun_ranks *rs,
			  int64_t ms)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "the job has run for %.1f s (SIGUSR1)", (double)ms / 1e3);
	put_ranks(f, job, rs);
	fclose(f);
	return text;
}

char *jiarun_report_timeout(struct sul_job *job, const struct jiarun_ranks *rs,
			    int64_t timeout_ms)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "time-out: the job has run for %g s (--timeout)",
		(double)timeout_ms / 1e3);
	put_ranks(f, job, rs);
	fclose(f);
	return text;
}

static const char *exec_hint(int err, const char *program)
{
	if (err == ENOENT && strchr(program, '/') && access(program, F_OK) == 0)
		return " (the file is there: its interpreter or loader is not)";
	return "";
}

char *jiarun_report_start(const struct jiarun_start_error *e,
			  const struct jiarun_options *o)
{
	const char *why = strerror(e->err);
	const char *limit = "";

	if (e->exec)
		return jiarun_text("cannot run %s: %s%s", o->argv[0], why,
				   exec_hint(e->err, o->argv[0]));
	if (e->err == EAGAIN)
		limit = "; the limit on processes is ulimit -u";
	if (e->err == EMFILE)
		limit = "; the limit on descriptors is ulimit -n";
	return jiarun_text("cannot start rank %d of %d: %s: %s%s", e->rank,
			   o->ranks, e->what, why, limit);
}

static int stats_print(FILE *f, const struct jiarun_options *o,
		       const struct jiarun_counts *c)
{
	int err = 0;

	if (o->stats_json) {
		err = jiarun_json_print(f, c);
	} else {
		dsm_stat_print(f, c->counters, c->ranks);
		jiarun_tally_print(f, c);
	}
	if (err)
		errno = -err;
	return err || fflush(f) || ferror(f) ? -1 : 0;
}

int jiarun_report_stats(struct sul_job *job, const struct jiarun_options *o)
{
	const uint64_t **counters =
		calloc((size_t)o->ranks, sizeof(uint64_t *));
	const struct dsm_tally **tally =
		calloc((size_t)o->ranks, sizeof(struct dsm_tally *));
	struct jiarun_counts c = { counters, tally, o->ranks };
	FILE *f = stderr;
	int err = -1;

	if (!counters || !tally)
		goto done;
	for (int r = 0; r < o->ranks; r++) {
		counters[r] = sul_job_rank(job, r)->counters;
		tally[r] = sul_job_more(job, r);
	}
	if (o->stats_file)
		f = fopen(o->stats_file, "we");
	if (f)
		err = stats_print(f, o, &c);
	if (f && f != stderr && fclose(f))
		err = -1;
	if (err)
		fprintf(stderr, "jiarun: cannot write statistics to %s: %s\n",
			o->stats_file ? o->stats_file : "standard error",
			strerror(errno));
done:
	free(tally);
	free(counters);
	return err;
}
