/* SPDX-License-Identifier: MIT */
/*
 * jiarun.h - what the parts of the launcher share.
 *
 * Four kinds of process:
 *
 *   front    what the user started.  Passes signals on, waits for the keeper,
 *            and cleans up if somebody kills the keeper.
 *   keeper   makes the job's memory, starts the ranks, watches them, ends them,
 *            reports.  Parent of all ranks.  Ends the job if the front dies.
 *   labeller only with --label or several hosts: writes whole lines, prefixed.
 *            A process of its own, so that a reader who does not read stops the
 *            output and nothing else.
 *   feeder   only if standard input goes to another host: reads it, since that
 *            may block.
 *
 * Several hosts: the first keeper starts ssh for each of the others, which
 * starts a front and a keeper there; these two differ in that their user is the
 * first keeper (jiarun_keeper.h).
 *
 * Front and keeper are child subreapers: whatever a rank started and left
 * behind becomes a child of one of them and is found (jiarun_tree.c).
 *
 * Threads: none, in any of the processes.
 */
#ifndef JIARUN_H
#define JIARUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "jiarun_hosts.h"
#include "sul.h"
#include "sul_job.h"

enum {
	JIARUN_USAGE = 2, /* exit status: bad options */
	JIARUN_NOT_RUNNABLE = 126,
	JIARUN_NOT_FOUND = 127,
	JIARUN_TIMED_OUT = 124, /* as timeout(1) */
	JIARUN_NO_HOST = 125, /* a host cannot be used, or was lost */
	JIARUN_GRACE_MS = 700, /* from SIGTERM to SIGKILL: all within 2 s */
	JIARUN_KILL_MS = 600, /* how long to go on with SIGKILL */
	JIARUN_DRAIN_MS = 400, /* for output still in pipes, after a failure */
	JIARUN_LINES_MAX = 64, /* ranks that a report on waits tells of */
};

/**
 * struct jiarun_options - the command line (jiarun_opts.c).
 * @ranks:      how many, 1 .. SUL_RANKS_MAX.
 * @timeout_ms: 0: none.
 * @debug_rank: which rank runs under gdb; -1: none.
 * @hosts:      none: all ranks run here.
 * @host_of:    of each rank, if there are hosts.
 * @here:       which of the hosts this is; their number: none of them.
 * @export:     names of variables that other hosts' ranks get, too.
 * @ssh:        the command, words with blanks between them.
 * @path:       where jiarun is on other hosts; NULL: where it is here, or else
 *              in their PATH.
 * @answer_ms:  how long a host may take to answer at the start.
 * @silence_ms: after how long without a word a host is dead.
 * @host_keeper: this is what ssh has started on another host; then @where says
 *              which, " on nodeB".
 * @argv:       program and arguments, NULL-terminated; NULL: none given.
 */
struct jiarun_options {
	int ranks;
	int64_t timeout_ms;
	int debug_rank;
	bool label, stats, stats_json, list_parameters;
	const char *stats_file;
	struct jiarun_hosts hosts;
	uint16_t host_of[SUL_RANKS_MAX];
	int here;
	char **export;
	size_t exports;
	const char *ssh, *path;
	int64_t answer_ms, silence_ms;
	bool host_keeper;
	char where[SUL_JOB_HOST_MAX + 8];
	char **argv;
};

/* Puts JIA_SET and JIA_CONFIG into the environment.  Returns -1 to go on, or
 * the exit status after --help and the like, or after a bad option. */
int jiarun_options_read(struct jiarun_options *o, int argc, char **argv);
void jiarun_options_free(struct jiarun_options *o);

/* How signals and limits were when we were started: the ranks get them back. */
struct jiarun_inherited {
	sigset_t mask;
	struct sigaction chld, pipe;
	bool int_ignored;
	struct rlimit files;
};

/* --- signals (jiarun_signals.c) ------------------------------------------- */

/* Block what we want to read; returns a signalfd, or -1 with errno. */
int jiarun_signals_take(struct jiarun_inherited *in);
void jiarun_signals_give_back(const struct jiarun_inherited *in);
/* The next signal, 0: none is pending.  Never blocks. */
int jiarun_signal_next(int sfd, const struct jiarun_inherited *in, bool debug);
int64_t jiarun_now_ms(void);

/* --- the processes below us (jiarun_tree.c) --------------------------------- */

/* Signal every descendant of this process but those in @spare and below them;
 * how many there were, zombies of others not counted. */
int jiarun_tree_kill(int sig, const pid_t *spare, size_t nr_spare);
/* The children of this process; *@out is malloc()ed. */
size_t jiarun_tree_children(pid_t **out);

/* --- ranks (jiarun_ranks.c) ------------------------------------------------- */

/**
 * struct jiarun_rank - a process of the job.
 * @far:  on another host: @pid is of there, and nothing else here but @ended,
 *        @status and what its output goes through.
 * @its:  ends of pipes that are its standard input, output and errors; -1: it
 *        has what we have.
 * @ours: the other ends.
 */
struct jiarun_rank {
	pid_t pid; /* 0: not started */
	bool far, ended;
	int status; /* as from waitpid(), once ended */
	int its[3], ours[3];
};

/* Why ranks could not be started. */
struct jiarun_start_error {
	int rank;
	int err; /* errno */
	bool exec; /* of the program; else what failed is @what */
	char what[32];
};

struct jiarun_ranks {
	struct jiarun_rank *rank;
	int nr, alive; /* alive: of those that are waited for here */
};

/* All of them on this host, none started.  As many descriptors as are allowed
 * are.  False: no memory. */
bool jiarun_ranks_open(struct jiarun_ranks *rs, int nr);
/* Give a rank a pipe for its stream 0, 1 or 2; false with errno. */
bool jiarun_rank_pipe(struct jiarun_rank *r, int stream);
/* Start those that are not far.  0, or -1 with *@e; some may have been started
 * then. */
int jiarun_ranks_start(struct jiarun_ranks *rs, const struct jiarun_options *o,
		       const struct jiarun_inherited *in,
		       const struct sul_job *job, struct jiarun_start_error *e);
/* Note that @pid ended; its rank, or -1 if it is none. */
int jiarun_ranks_ended(struct jiarun_ranks *rs, pid_t pid, int status);
void jiarun_ranks_close(struct jiarun_ranks *rs);

/* --- output (jiarun_output.c) ----------------------------------------------- */

/* What the labeller reads. */
struct jiarun_output {
	struct jiarun_source *source;
	size_t nr;
};

/*
 * From @fd to standard output, or to standard errors; @label before every line,
 * "": untouched.  @peer: the writing end, which the labeller closes; or -1.
 * False: no memory.
 */
bool jiarun_output_add(struct jiarun_output *o, int fd, int peer, bool errors,
		       const char *label);
/* Start the labeller; its pid, or -1 with errno.  Closes the reading ends. */
pid_t jiarun_output_start(struct jiarun_output *o);

/* --- places in the program (jiarun_site.c) ---------------------------------- */

struct jiarun_sites;

/* @most_ms: how long naming the places of one text may take; those that are left
 * then are named by program and offset. */
struct jiarun_sites *jiarun_sites_new(const char *program, int64_t most_ms);
/* Learn what is mapped where from a living process; false: nothing learnt. */
bool jiarun_sites_learn(struct jiarun_sites *s, pid_t pid);
/* A rank has told that it is this program (a path). */
void jiarun_sites_program(struct jiarun_sites *s, const char *path);
/* Print @text with every "@{0xADDRESS}" (a return address) replaced by
 * "file.c:123 (function)", "program+0xoffset" or the bare address. */
void jiarun_sites_print(struct jiarun_sites *s, FILE *f, const char *text);
/* One of them; valid until the next call.  A text of many begins with
 * jiarun_sites_begin(). */
const char *jiarun_site_text(struct jiarun_sites *s, uint64_t addr);
void jiarun_sites_begin(struct jiarun_sites *s);
void jiarun_sites_free(struct jiarun_sites *s);

/* --- reports (jiarun_report.c) ---------------------------------------------- */

/* Texts are malloc()ed and may hold "@{...}" (above). */
char *jiarun_report_end(struct sul_job *job, const struct jiarun_rank *r,
			int rank);
/* @far: [ranks] the lines of ranks elsewhere; NULL: none was told. */
char *jiarun_report_timeout(struct sul_job *job, const struct jiarun_ranks *rs,
			    char *const *far, int64_t timeout_ms);
/* The same of a job that goes on, after @ms. */
char *jiarun_report_waits(struct sul_job *job, const struct jiarun_ranks *rs,
			  char *const *far, int64_t ms);
/* One rank's line of these two, without end of line. */
char *jiarun_report_line(struct sul_job *job, const struct jiarun_ranks *rs,
			 int rank);
char *jiarun_report_start(const struct jiarun_start_error *e,
			  const struct jiarun_options *o);
/* @rank failed, and nobody knows how. */
char *jiarun_report_failed(struct sul_job *job, const struct jiarun_rank *r,
			   int rank);
/* What sul_job_fail() was told.  NULL: that *@rank failed, and no text; how it
 * ends will tell. */
char *jiarun_report_failure(struct sul_job *job, const struct jiarun_ranks *rs,
			    int *rank, int *status);
/* --stats; -1 with a message on stderr. */
int jiarun_report_stats(struct sul_job *job, const struct jiarun_options *o,
			struct jiarun_sites *sites);
char *jiarun_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- the keeper (jiarun_keeper.c, jiarun_host.c) ------------------------------- */

/* Run the job; its exit status.  @front: the process that must stay alive. */
int jiarun_keeper(const struct jiarun_options *o,
		  const struct jiarun_inherited *in, int sfd, pid_t front);
/* Run this host's part of a job that the other end of standard input and output
 * tells of. */
int jiarun_host_keeper(const struct jiarun_inherited *in, int sfd, pid_t front);

#endif /* JIARUN_H */
