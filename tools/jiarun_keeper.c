/* SPDX-License-Identifier: MIT */
/*
 * jiarun_keeper.c - the life of a job: start, watch, end, report.
 *
 * Invariant: when jiarun_keeper() returns, no process that the job started is
 *   left on this host.
 *
 * It sleeps in poll(), on signals (an ended child, or a rank's nudge, both
 * SIGCHLD; or somebody wants us to stop), on the front's pidfd, and on whatever
 * its side has to watch (jiarun_keeper.h).
 */
#include "jiarun_keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dsm_remedy.h"
#include "jiarun_remote.h"

enum {
	AGAIN_MS = 200, /* a second Ctrl-C is not quicker */
	LABEL_MAX = 16,
};

static const struct jiarun_side alone;

/* --- children -------------------------------------------------------------------- */

bool jiarun_keeper_spare(struct jiarun_keeper *k, pid_t pid)
{
	pid_t *more = realloc(k->spare, (k->nr_spare + 1) * sizeof(*more));

	if (!more)
		return false;
	k->spare = more;
	more[k->nr_spare++] = pid;
	return true;
}

void jiarun_keeper_unspare(struct jiarun_keeper *k, pid_t pid)
{
	for (size_t i = 0; i < k->nr_spare; i++)
		if (k->spare[i] == pid)
			k->spare[i] = k->spare[--k->nr_spare];
}

static void rank_ended(struct jiarun_keeper *k, int rank)
{
	jiarun_fail_by_end(k, rank);
	if (k->side->ended)
		k->side->ended(k, rank);
}

void jiarun_keeper_reap(struct jiarun_keeper *k)
{
	int status, rank;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		jiarun_keeper_unspare(k, pid);
		if (pid == k->labeller) {
			k->labeller = 0;
			continue;
		}
		rank = jiarun_ranks_ended(&k->ranks, pid, status);
		if (rank >= 0)
			rank_ended(k, rank);
		else if (k->side->child)
			k->side->child(k, pid, status);
	}
}

/* While they live: learn where their program is mapped. */
static void learn_sites(struct jiarun_keeper *k)
{
	for (int r = 0; r < k->ranks.nr && !k->learnt; r++) {
		uint32_t pid = atomic_load(&sul_job_rank(k->job, r)->pid);
		const struct jiarun_rank *rank = &k->ranks.rank[r];

		if (pid && !rank->far && !rank->ended)
			k->learnt = jiarun_sites_learn(k->sites, (pid_t)pid);
	}
}

/* On every SIGCHLD. */
static void look_around(struct jiarun_keeper *k)
{
	if (!k->learnt)
		learn_sites(k);
	if (k->side->look)
		k->side->look(k);
	jiarun_keeper_reap(k);
	if (!k->text)
		jiarun_fail_as_told(k);
	jiarun_fail_by_early(k);
}

/* --- saying ---------------------------------------------------------------------- */

/* What jiarun started may have been a wrapper. */
static void learn_program(struct jiarun_keeper *k)
{
	char path[SUL_JOB_PATH_MAX];

	for (int r = 0; k->job && !k->learnt && r < k->ranks.nr; r++) {
		memcpy(path, sul_job_rank(k->job, r)->program, sizeof(path));
		path[sizeof(path) - 1] = '\0';
		jiarun_sites_program(k->sites, path);
	}
}

char *jiarun_keeper_render(struct jiarun_keeper *k, const char *text)
{
	char *all = NULL;
	size_t len;
	FILE *f = open_memstream(&all, &len);

	if (!f)
		return NULL;
	learn_program(k);
	jiarun_sites_print(k->sites, f, text);
	fclose(f);
	return all;
}

/* One write, so that it is one message whatever else writes there. */
static void say(struct jiarun_keeper *k, const char *text)
{
	char *named = jiarun_keeper_render(k, text);
	char *all = jiarun_text("jiarun: %s\n", named ? named : text);

	if (all)
		fputs(all, stderr);
	free(all);
	free(named);
}

static char **lines_of_others(struct jiarun_keeper *k)
{
	return k->side->lines ? k->side->lines(k) : NULL;
}

/* SIGUSR1: somebody wonders whether it hangs.  The job goes on. */
static void report_waits(struct jiarun_keeper *k)
{
	char **lines = lines_of_others(k);
	char *text = jiarun_report_waits(k->job, &k->ranks, lines,
					 jiarun_now_ms() - k->begun_ms);

	if (!k->learnt)
		learn_sites(k);
	if (text)
		say(k, text);
	free(text);
	k->report = false;
}

static void fail_timed_out(struct jiarun_keeper *k)
{
	char **lines = lines_of_others(k);

	jiarun_fail_by(k, -1, JIARUN_TIMED_OUT,
		       jiarun_report_timeout(k->job, &k->ranks, lines,
					     k->o->timeout_ms));
}

/* --- sleeping -------------------------------------------------------------------- */

static void hurry_up(struct jiarun_keeper *k)
{
	/* The front's copy of the first signal is no new one. */
	if (k->hurry || jiarun_now_ms() <= k->decided_ms + AGAIN_MS)
		return;
	k->hurry = true;
	if (k->side->hurry)
		k->side->hurry(k);
}

static void signals_ready(void *ctx, short revents)
{
	struct jiarun_keeper *k = ctx;
	bool look = false;
	int sig;

	(void)revents;
	while ((sig = jiarun_signal_next(k->signals.fd, k->in,
					 k->o->debug_rank >= 0))) {
		if (sig == SIGCHLD)
			look = true;
		else if (sig == SIGUSR1)
			k->report = true;
		else if (k->text)
			hurry_up(k);
		else
			jiarun_fail_interrupted(k, sig);
	}
	if (look)
		look_around(k);
}

/* Its pidfd says it once and for all. */
static void front_ready(void *ctx, short revents)
{
	struct jiarun_keeper *k = ctx;

	(void)revents;
	close(k->front.fd);
	k->front.fd = -1;
	jiarun_fail_by(k, -1, 128 + SIGKILL,
		       jiarun_text("jiarun itself was killed%s", k->o->where));
}

void jiarun_keeper_wait(struct jiarun_keeper *k, int64_t ms)
{
	int64_t most = k->side->tick_ms;

	jiarun_loop_wait(&k->loop, most && (ms < 0 || ms > most) ? most : ms);
	if (k->side->tick)
		k->side->tick(k);
}

void jiarun_keeper_watch(struct jiarun_keeper *k)
{
	int64_t end = jiarun_now_ms() + k->o->timeout_ms, left = -1;
	bool timed = k->o->timeout_ms && k->o->debug_rank < 0;

	look_around(k); /* whatever happened while they were started */
	while (k->ranks.alive && !k->text) {
		if (k->report)
			report_waits(k);
		if (timed) {
			left = end - jiarun_now_ms();
			if (left <= 0) {
				fail_timed_out(k);
				return;
			}
		}
		jiarun_keeper_wait(k, left);
	}
}

/* --- ending ---------------------------------------------------------------------- */

bool jiarun_keeper_kill(struct jiarun_keeper *k, int sig)
{
	siginfo_t si;

	jiarun_keeper_reap(k);
	if (!k->nr_spare &&
	    waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 &&
	    errno == ECHILD)
		return false;
	return jiarun_tree_kill(sig, k->spare, k->nr_spare) > 0;
}

/* End what is left: first politely, then not. */
void jiarun_keeper_end(struct jiarun_keeper *k)
{
	int64_t now = jiarun_now_ms();
	int64_t polite = now + JIARUN_GRACE_MS, last = polite + JIARUN_KILL_MS;

	if (!jiarun_keeper_kill(k, SIGTERM))
		return;
	jiarun_keeper_kill(k, SIGCONT); /* a stopped process cannot end */
	while (jiarun_keeper_kill(k, 0) && now < polite && !k->hurry) {
		jiarun_keeper_wait(k, polite - now < 20 ? polite - now : 20);
		now = jiarun_now_ms();
	}
	while (jiarun_keeper_kill(k, SIGKILL) && now < last) {
		poll(NULL, 0, 10);
		now = jiarun_now_ms();
	}
}

/* Let the labeller write what is in its pipes.  After a failure not for ever:
 * who should read it may not. */
static void drain(struct jiarun_keeper *k)
{
	int64_t end = jiarun_now_ms() + JIARUN_DRAIN_MS;

	while (k->labeller) {
		jiarun_keeper_wait(k, k->text ? 20 : -1);
		jiarun_keeper_reap(k);
		if (k->labeller &&
		    (k->hurry || (k->text && jiarun_now_ms() > end))) {
			kill(k->labeller, SIGKILL);
			waitpid(k->labeller, NULL, 0);
			k->labeller = 0;
		}
	}
}

/* --- starting -------------------------------------------------------------------- */

bool jiarun_keeper_open(struct jiarun_keeper *k, int sfd, pid_t front)
{
	k->side = &alone;
	k->begun_ms = jiarun_now_ms();
	k->oom_kills = jiarun_oom_kills();
	prctl(PR_SET_NAME, "jiarun-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	k->signals = (struct jiarun_watch){ sfd, POLLIN, signals_ready, k };
	k->front =
		(struct jiarun_watch){ (int)syscall(SYS_pidfd_open, front, 0),
				       POLLIN, front_ready, k };
	if (k->front.fd >= 0 && getppid() == front &&
	    jiarun_loop_add(&k->loop, &k->front) &&
	    jiarun_loop_add(&k->loop, &k->signals))
		return true;
	fprintf(stderr, "jiarun: cannot watch its own process: %s\n",
		strerror(errno));
	return false;
}

/* Where the ranks are; of those of other hosts the hub waits for the end. */
static void place_all(struct jiarun_keeper *k)
{
	const struct jiarun_options *o = k->o;

	sul_job_set_host(k->job, o->here);
	for (int r = 0; r < o->ranks && o->hosts.nr; r++) {
		int host = o->host_of[r];

		sul_job_place(k->job, r, host, o->hosts.host[host].name);
		k->ranks.rank[r].far = host != o->here;
		if (k->ranks.rank[r].far && !o->host_keeper)
			k->ranks.alive++;
	}
}

bool jiarun_keeper_job(struct jiarun_keeper *k)
{
	char remedy[DSM_REMEDY_MAX];
	int err = sul_job_create(&k->job, k->o->ranks);

	if (!err && !jiarun_ranks_open(&k->ranks, k->o->ranks))
		err = -ENOMEM;
	if (!err) {
		/* Others take us for dead if we are silent for longer. */
		k->sites =
			jiarun_sites_new(k->o->argv[0], k->o->silence_ms / 2);
		place_all(k);
		return true;
	}
	dsm_remedy(err, remedy, sizeof(remedy));
	jiarun_fail(k, 1,
		    jiarun_text("cannot make the job's shared memory%s: %s%s",
				k->o->where, strerror(-err), remedy));
	return false;
}

bool jiarun_keeper_start(struct jiarun_keeper *k)
{
	struct jiarun_start_error e;
	int status;

	if (jiarun_ranks_start(&k->ranks, k->o, k->in, k->job, &e) == 0)
		return true;
	status = !e.exec	 ? 1 :
		 e.err == ENOENT ? JIARUN_NOT_FOUND :
				   JIARUN_NOT_RUNNABLE;
	jiarun_fail_by(k, -1, status, jiarun_report_start(&e, k->o));
	return false;
}

/* Give a rank's output and errors to the labeller. */
static bool rank_to_labeller(struct jiarun_keeper *k, int rank,
			     struct jiarun_output *out)
{
	struct jiarun_rank *r = &k->ranks.rank[rank];
	char label[LABEL_MAX] = "";

	if (k->o->label)
		snprintf(label, sizeof(label), "[%d] ", rank);
	for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++) {
		if (!jiarun_rank_pipe(r, i) ||
		    !jiarun_output_add(out, r->ours[i], r->its[i],
				       i == STDERR_FILENO, label))
			return false;
		r->ours[i] = -1; /* the labeller's */
	}
	return true;
}

static bool outputs_collect(struct jiarun_keeper *k, struct jiarun_output *out)
{
	for (int r = 0; r < k->ranks.nr; r++)
		if ((k->o->label || k->ranks.rank[r].far) &&
		    !rank_to_labeller(k, r, out))
			return false;
	return jiarun_remote_outputs(k, out);
}

static bool start_labeller(struct jiarun_keeper *k)
{
	struct jiarun_start_error e = { .what = "pipes for the output" };
	struct jiarun_output out = { 0 };
	bool ok = outputs_collect(k, &out);

	if (ok && !out.nr)
		return true;
	k->labeller = ok ? jiarun_output_start(&out) : 0;
	if (k->labeller > 0 && jiarun_keeper_spare(k, k->labeller))
		return true;
	k->labeller = 0;
	e.err = errno;
	jiarun_fail(k, 1, jiarun_report_start(&e, k->o));
	return false;
}

/* --- all of it ------------------------------------------------------------------- */

void jiarun_keeper_close(struct jiarun_keeper *k)
{
	jiarun_sites_free(k->sites);
	sul_job_close(k->job);
	jiarun_ranks_close(&k->ranks);
	jiarun_loop_free(&k->loop);
	free(k->spare);
	free(k->text);
}

int jiarun_keeper(const struct jiarun_options *o,
		  const struct jiarun_inherited *in, int sfd, pid_t front)
{
	struct jiarun_keeper k = { .o = o, .in = in };

	if (!jiarun_keeper_open(&k, sfd, front))
		return 1;
	if (jiarun_keeper_job(&k) && jiarun_remote_open(&k) &&
	    start_labeller(&k) && jiarun_remote_start(&k) &&
	    jiarun_keeper_start(&k))
		jiarun_keeper_watch(&k);
	jiarun_keeper_end(&k);
	jiarun_remote_end(&k);
	drain(&k);
	if (k.text)
		say(&k, k.text);
	learn_program(&k);
	if (o->stats && k.job && jiarun_report_stats(k.job, o, k.sites) < 0 &&
	    !k.status)
		k.status = 1;
	jiarun_remote_close(&k);
	jiarun_keeper_close(&k);
	return k.status;
}
