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
#include "jiarun_spot.h"

enum {
	WHO_MAX = SUL_JOB_HOST_MAX + 64,
	FAR_LINE_MAX = 2048, /* of what another host says of a rank */
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

/* "rank 2 (pid 411)", with " on nodeB" in it if there are several hosts; pid 0:
 * unknown. */
static const char *who(struct sul_job *job, int rank, pid_t pid,
		       char text[WHO_MAX])
{
	char host[SUL_JOB_HOST_MAX], process[32] = "";
	const char *on;

	copy_plain(host, sul_job_rank(job, rank)->host_name, sizeof(host));
	if (pid)
		snprintf(process, sizeof(process), "pid %d", (int)pid);
	on = !host[0] ? "" : pid ? " on " : "on ";
	if (pid || host[0])
		snprintf(text, WHO_MAX, "rank %d (%s%s%s)", rank, process, on,
			 host);
	else
		snprintf(text, WHO_MAX, "rank %d", rank);
	return text;
}

/* The same of a rank whose process is not known here. */
static const char *who_far(struct sul_job *job, int rank, char text[WHO_MAX])
{
	return who(job, rank, (pid_t)atomic_load(&sul_job_rank(job, rank)->pid),
		   text);
}

char *jiarun_report_failed(struct sul_job *job, const struct jiarun_rank *r,
			   int rank)
{
	char name[WHO_MAX];

	return jiarun_text("%s failed", who(job, rank, r->pid, name));
}

/* A fault of which the rank's own handler (dsm_segv.c) has told nothing. */
static const char *no_word(struct sul_job *job, int rank)
{
	const struct dsm_tally *t = sul_job_more(job, rank);

	if (atomic_load(&sul_job_rank(job, rank)->state) == SUL_RANK_NONE)
		return " before jia_init(); if it has large arrays in functions, the limit on the stack is ulimit -s";
	if (t->view)
		return "; it could not say where: its stack is full (ulimit -s), or it keeps SIGSEGV to itself";
	return "";
}

char *jiarun_report_end(struct sul_job *job, const struct jiarun_rank *r,
			int rank)
{
	char where[512], tail[600] = "", word[SUL_JOB_NOTE_MAX], name[WHO_MAX];
	int sig = WTERMSIG(r->status);

	waiting_text(job, rank, where, sizeof(where));
	if (where[0])
		snprintf(tail, sizeof(tail), ", while waiting for %s", where);
	copy_plain(word, sul_job_rank(job, rank)->last_word, sizeof(word));
	if (WIFSIGNALED(r->status) && word[0])
		snprintf(tail, sizeof(tail), ": %s", word);
	else if (WIFSIGNALED(r->status) && sig == SIGSEGV)
		snprintf(tail, sizeof(tail), "%s", no_word(job, rank));
	who(job, rank, r->pid, name);
	if (WIFSIGNALED(r->status))
		return jiarun_text("%s was killed by signal %d (%s%s)%s", name,
				   sig, strsignal(sig),
				   WCOREDUMP(r->status) ? ", core dumped" : "",
				   tail);
	if (WEXITSTATUS(r->status))
		return jiarun_text("%s exited with status %d%s", name,
				   WEXITSTATUS(r->status), tail);
	if (atomic_load(&sul_job_rank(job, rank)->state) == SUL_RANK_NONE)
		return jiarun_text("%s left (exit status 0) without "
				   "jia_init(), which others called",
				   name);
	return jiarun_text("%s left (exit status 0) without jia_exit()%s", name,
			   tail);
}

/* The library begins its texts with "rank 2: ", which says less than we can if
 * there are several hosts. */
static const char *without_rank(struct sul_job *job, int rank, const char *text)
{
	char head[32];
	size_t len = (size_t)snprintf(head, sizeof(head), "rank %d: ", rank);

	if (sul_job_rank(job, rank)->host_name[0] &&
	    strncmp(text, head, len) == 0)
		return text + len;
	return text;
}

char *jiarun_report_failure(struct sul_job *job, const struct jiarun_ranks *rs,
			    int *rank, int *status)
{
	const char *rest;
	char raw[SUL_JOB_TEXT_MAX], text[SUL_JOB_TEXT_MAX], name[WHO_MAX];
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
	rest = *rank < 0 ? text : without_rank(job, *rank, text);
	if (*rank < 0 || strncmp(rest, "rank ", 5) == 0)
		return jiarun_text("%s", len ? rest : "a rank failed");
	if (rs->rank[*rank].far)
		who_far(job, *rank, name);
	else
		who(job, *rank, rs->rank[*rank].pid, name);
	return jiarun_text("%s: %s", name, rest);
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

static void put_line(FILE *f, struct sul_job *job, const struct jiarun_rank *r,
		     int rank)
{
	uint32_t state = atomic_load(&sul_job_rank(job, rank)->state);
	char where[512], name[WHO_MAX];

	fprintf(f, "%s: ", who(job, rank, r->pid, name));
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

char *jiarun_report_line(struct sul_job *job, const struct jiarun_ranks *rs,
			 int rank)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	put_line(f, job, &rs->rank[rank], rank);
	fclose(f);
	return text;
}

/* What another host has said of its rank is text of a process, too. */
static void put_far_line(FILE *f, struct sul_job *job, int rank,
			 const char *line)
{
	char plain[FAR_LINE_MAX], name[WHO_MAX];

	if (line) {
		copy_plain(plain, line, sizeof(plain));
		fputs(plain, f);
	} else {
		fprintf(f, "%s: no answer from there",
			who_far(job, rank, name));
	}
}

static void put_ranks(FILE *f, struct sul_job *job,
		      const struct jiarun_ranks *rs, char *const *far)
{
	for (int r = 0; r < rs->nr && r < JIARUN_LINES_MAX; r++) {
		fputs("\n  ", f);
		if (rs->rank[r].far)
			put_far_line(f, job, r, far ? far[r] : NULL);
		else
			put_line(f, job, &rs->rank[r], r);
	}
	if (rs->nr > JIARUN_LINES_MAX)
		fprintf(f, "\n  and %d more ranks", rs->nr - JIARUN_LINES_MAX);
}

char *jiarun_report_waits(struct sul_job *job, const struct jiarun_ranks *rs,
			  char *const *far, int64_t ms)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "the job has run for %.1f s (SIGUSR1)", (double)ms / 1e3);
	put_ranks(f, job, rs, far);
	fclose(f);
	return text;
}

char *jiarun_report_timeout(struct sul_job *job, const struct jiarun_ranks *rs,
			    char *const *far, int64_t timeout_ms)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "time-out: the job has run for %g s (--timeout)",
		(double)timeout_ms / 1e3);
	put_ranks(f, job, rs, far);
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
		return jiarun_text("cannot run %s%s: %s%s", o->argv[0],
				   o->where, why,
				   exec_hint(e->err, o->argv[0]));
	if (e->err == EAGAIN)
		limit = "; the limit on processes is ulimit -u";
	if (e->err == EMFILE)
		limit = "; the limit on descriptors is ulimit -n";
	return jiarun_text("cannot start rank %d of %d%s: %s: %s%s", e->rank,
			   o->ranks, o->where, e->what, why, limit);
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
		jiarun_spots_print(f, c);
	}
	if (err)
		errno = -err;
	return err || fflush(f) || ferror(f) ? -1 : 0;
}

int jiarun_report_stats(struct sul_job *job, const struct jiarun_options *o,
			struct jiarun_sites *sites)
{
	const uint64_t **counters =
		calloc((size_t)o->ranks, sizeof(uint64_t *));
	const struct dsm_tally **tally =
		calloc((size_t)o->ranks, sizeof(struct dsm_tally *));
	struct jiarun_counts c = { counters, tally, o->ranks, sites };
	FILE *f = stderr;
	int err = -1;

	jiarun_sites_begin(sites);
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
