/* SPDX-License-Identifier: MIT */
/*
 * jiarun_keeper.c - the life of a job: start, watch, end, report.
 *
 * Invariant: the first failure is decided once (keeper.text is set) and never
 *   changed; from then on ranks are only being ended.  When jiarun_keeper()
 *   returns, no process that the job started is left.
 *
 * It sleeps in poll() on two descriptors: signals (an ended child, or a rank's
 * nudge, both SIGCHLD; or somebody wants us to stop) and the front's pidfd.
 *
 * Whose fault is it?  A rank that ends badly may have told why before
 * (sul_job_fail()); that text is the better one.  A rank that is killed by a
 * signal that we are about to get as well (Ctrl-C reaches the whole group) has
 * not failed; so a death by such a signal waits a moment for ours.
 */
#include "jiarun.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dsm_remedy.h"

enum {
	SAME_SIGNAL_MS = 50, /* a signal to a group reaches all within this */
	AGAIN_MS = 200, /* a second Ctrl-C is not quicker */
	DYING_MS = 500, /* a rank with a fault, its core dump included */
	CLAIMED_MS = 100, /* a rank that writes its failure's text */
};

struct keeper {
	const struct jiarun_options *o;
	const struct jiarun_inherited *in;
	struct sul_job *job;
	struct jiarun_ranks ranks;
	struct jiarun_sites *sites;
	int sfd, front_fd;
	pid_t labeller; /* 0: none, or it has ended */
	int early; /* ranks that left without having attached */
	bool hurry; /* asked again while ending */
	int64_t begun_ms, decided_ms; /* when the job, and its failure, was */
	bool learnt;
	int status; /* of the job */
	char *text; /* the first failure; NULL: none so far */
};

static void fail(struct keeper *k, int status, char *text)
{
	if (k->text) {
		free(text);
		return;
	}
	k->text = text ? text : strdup("the job failed (no memory to say why)");
	k->status = status;
	k->decided_ms = jiarun_now_ms();
}

static void nap_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* 128 + signal, or the exit status. */
static int status_of(const struct jiarun_rank *r)
{
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) :
					WEXITSTATUS(r->status);
}

/* @rank has a fault that is none of the runtime's and is about to die of it, as
 * it would without us; what it dies of is the message. */
static char *death_text(struct keeper *k, int rank, int *status)
{
	struct jiarun_rank *r = &k->ranks.rank[rank];
	int64_t end = jiarun_now_ms() + DYING_MS;
	int got;

	while (!r->ended && jiarun_now_ms() < end) {
		if (waitpid(r->pid, &got, WNOHANG) == r->pid)
			jiarun_ranks_ended(&k->ranks, r->pid, got);
		else
			nap_ms(2);
	}
	if (!r->ended || !status_of(r))
		return jiarun_text("rank %d (pid %d) failed", rank,
				   (int)r->pid);
	*status = status_of(r);
	return jiarun_report_end(k->job, r, rank);
}

/* A rank has put its own text into the job: it is the one to print. */
static bool fail_as_told(struct keeper *k)
{
	int rank, status;
	char *text;

	if (!sul_job_failed(k->job))
		return false;
	text = jiarun_report_failure(k->job, &k->ranks, &rank, &status);
	if (!text && rank >= 0)
		text = death_text(k, rank, &status);
	fail(k, status, text);
	return true;
}

/* Decide for @text unless a rank was first; ends the waits of all ranks. */
static void fail_by(struct keeper *k, int rank, int status, char *text)
{
	int64_t end = jiarun_now_ms() + CLAIMED_MS;

	if (k->text) {
		free(text);
		return;
	}
	if (sul_job_fail(k->job, rank, status, text ? text : "")) {
		fail(k, status, text);
		return;
	}
	while (!sul_job_failed(k->job) && jiarun_now_ms() < end)
		nap_ms(1);
	if (fail_as_told(k))
		free(text);
	else
		fail(k, status, text); /* it died while writing */
}

static void fail_interrupted(struct keeper *k, int sig)
{
	fail_by(k, -1, 128 + sig,
		jiarun_text("ended by signal %d (%s)", sig, strsignal(sig)));
}

static bool stops_us(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP ||
	       sig == SIGQUIT;
}

/* A rank died of a signal that ends jobs: are we meant too? */
static bool same_signal_for_us(struct keeper *k)
{
	int64_t end = jiarun_now_ms() + SAME_SIGNAL_MS;
	int got;

	do {
		while ((got = jiarun_signal_next(k->sfd, k->in,
						 k->o->debug_rank >= 0)))
			if (stops_us(got)) {
				fail_interrupted(k, got);
				return true;
			}
		nap_ms(5);
	} while (jiarun_now_ms() < end);
	return false;
}

static bool anybody_attached(struct keeper *k)
{
	for (int r = 0; r < k->ranks.nr; r++) {
		if (atomic_load(&sul_job_rank(k->job, r)->state))
			return true;
	}
	return false;
}

static void rank_ended(struct keeper *k, int rank)
{
	const struct jiarun_rank *r = &k->ranks.rank[rank];
	uint32_t state = atomic_load(&sul_job_rank(k->job, rank)->state);
	int status = 1;

	if (k->text)
		return;
	if (WIFSIGNALED(r->status)) {
		status = 128 + WTERMSIG(r->status);
		if (stops_us(WTERMSIG(r->status)) && same_signal_for_us(k))
			return;
	} else if (WEXITSTATUS(r->status)) {
		status = WEXITSTATUS(r->status);
	} else if (state == SUL_RANK_EXITED) {
		return;
	} else if (state == SUL_RANK_NONE) {
		k->early++;
		return; /* fine if nobody attaches: look_around() */
	}
	fail_by(k, rank, status, jiarun_report_end(k->job, r, rank));
}

static void reap(struct keeper *k)
{
	int status, rank;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == k->labeller) {
			k->labeller = 0;
			continue;
		}
		rank = jiarun_ranks_ended(&k->ranks, pid, status);
		if (rank >= 0)
			rank_ended(k, rank);
	}
}

/* While they live: learn where their program is mapped. */
static void learn_sites(struct keeper *k)
{
	for (int r = 0; r < k->ranks.nr && !k->learnt; r++) {
		uint32_t pid = atomic_load(&sul_job_rank(k->job, r)->pid);

		if (pid && !k->ranks.rank[r].ended)
			k->learnt = jiarun_sites_learn(k->sites, (pid_t)pid);
	}
}

static void fail_early_leaver(struct keeper *k)
{
	for (int r = 0; r < k->ranks.nr; r++) {
		const struct jiarun_rank *rank = &k->ranks.rank[r];

		if (rank->ended && rank->status == 0 &&
		    !atomic_load(&sul_job_rank(k->job, r)->state)) {
			fail_by(k, r, 1, jiarun_report_end(k->job, rank, r));
			return;
		}
	}
}

/* On every SIGCHLD. */
static void look_around(struct keeper *k)
{
	if (!k->learnt)
		learn_sites(k);
	reap(k);
	if (!k->text)
		fail_as_told(k);
	if (!k->text && k->early && anybody_attached(k))
		fail_early_leaver(k);
}

/* What jiarun started may have been a wrapper. */
static void learn_program(struct keeper *k)
{
	char path[SUL_JOB_PATH_MAX];

	for (int r = 0; k->job && !k->learnt && r < k->ranks.nr; r++) {
		memcpy(path, sul_job_rank(k->job, r)->program, sizeof(path));
		path[sizeof(path) - 1] = '\0';
		jiarun_sites_program(k->sites, path);
	}
}

/* One write, so that it is one message whatever else writes there. */
static void say(struct keeper *k, const char *text)
{
	char *all = NULL;
	size_t len;
	FILE *f = open_memstream(&all, &len);

	if (!f)
		return;
	learn_program(k);
	fputs("jiarun: ", f);
	jiarun_sites_print(k->sites, f, text);
	fputc('\n', f);
	fclose(f);
	fputs(all, stderr);
	free(all);
}

/* SIGUSR1: somebody wonders whether it hangs.  The job goes on. */
static void report_waits(struct keeper *k)
{
	char *text = jiarun_report_waits(k->job, &k->ranks,
					 jiarun_now_ms() - k->begun_ms);

	if (!k->learnt)
		learn_sites(k);
	if (text)
		say(k, text);
	free(text);
}

static void signals_read(struct keeper *k)
{
	bool look = false;
	int sig;

	while ((sig = jiarun_signal_next(k->sfd, k->in,
					 k->o->debug_rank >= 0))) {
		if (sig == SIGCHLD)
			look = true;
		else if (sig == SIGUSR1)
			report_waits(k);
		else if (k->text) /* the front's copy of it is no new one */
			k->hurry = jiarun_now_ms() > k->decided_ms + AGAIN_MS;
		else
			fail_interrupted(k, sig);
	}
	if (look)
		look_around(k);
}

/* One sleep; @ms < 0: until something happens. */
static void wait_event(struct keeper *k, int64_t ms)
{
	struct pollfd p[2] = { { .fd = k->sfd, .events = POLLIN },
			       { .fd = k->front_fd, .events = POLLIN } };
	/* Once the front is known to be gone its pidfd has nothing to say. */
	nfds_t nr = k->front_fd >= 0 ? 2 : 1;

	if (ms > INT32_MAX)
		ms = INT32_MAX;
	if (poll(p, nr, (int)ms) <= 0)
		return;
	if (nr == 2 && p[1].revents) {
		close(k->front_fd);
		k->front_fd = -1;
		fail_by(k, -1, 128 + SIGKILL,
			jiarun_text("jiarun itself was killed"));
	}
	if (p[0].revents)
		signals_read(k);
}

static void watch(struct keeper *k)
{
	int64_t end = jiarun_now_ms() + k->o->timeout_ms, left = -1;
	bool timed = k->o->timeout_ms && k->o->debug_rank < 0;

	look_around(k); /* whatever happened while they were started */
	while (k->ranks.alive && !k->text) {
		if (timed) {
			left = end - jiarun_now_ms();
			if (left <= 0) {
				fail_by(k, -1, JIARUN_TIMED_OUT,
					jiarun_report_timeout(k->job, &k->ranks,
							      k->o->timeout_ms));
				return;
			}
		}
		wait_event(k, left);
	}
}

/* Whether anything but the labeller is left below us. */
static bool anything_left(struct keeper *k, int sig)
{
	siginfo_t si;

	reap(k);
	if (!k->labeller &&
	    waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 &&
	    errno == ECHILD)
		return false;
	return jiarun_tree_kill(sig, &k->labeller, k->labeller ? 1 : 0) > 0;
}

/* End what is left: first politely, then not. */
static void end_all(struct keeper *k)
{
	int64_t now = jiarun_now_ms();
	int64_t polite = now + JIARUN_GRACE_MS, last = polite + JIARUN_KILL_MS;

	if (!anything_left(k, SIGTERM))
		return;
	anything_left(k, SIGCONT); /* a stopped process cannot end */
	while (anything_left(k, 0) && now < polite && !k->hurry) {
		wait_event(k, polite - now < 20 ? polite - now : 20);
		now = jiarun_now_ms();
	}
	while (anything_left(k, SIGKILL) && now < last) {
		nap_ms(10);
		now = jiarun_now_ms();
	}
}

/* Let the labeller write what is in its pipes.  After a failure not for ever:
 * who should read it may not. */
static void drain(struct keeper *k)
{
	int64_t end = jiarun_now_ms() + JIARUN_DRAIN_MS;

	while (k->labeller) {
		wait_event(k, k->text ? 20 : -1);
		reap(k);
		if (k->labeller &&
		    (k->hurry || (k->text && jiarun_now_ms() > end))) {
			kill(k->labeller, SIGKILL);
			waitpid(k->labeller, NULL, 0);
			k->labeller = 0;
		}
	}
}

static bool start(struct keeper *k)
{
	struct jiarun_start_error e;
	char remedy[DSM_REMEDY_MAX];
	int err = sul_job_create(&k->job, k->o->ranks);
	int status;

	if (err) {
		dsm_remedy(err, remedy, sizeof(remedy));
		fail(k, 1,
		     jiarun_text("cannot make the job's shared memory: %s%s",
				 strerror(-err), remedy));
		return false;
	}
	k->sites = jiarun_sites_new(k->o->argv[0]);
	if (jiarun_ranks_start(&k->ranks, k->o, k->in, k->job, &e) < 0) {
		status = !e.exec	 ? 1 :
			 e.err == ENOENT ? JIARUN_NOT_FOUND :
					   JIARUN_NOT_RUNNABLE;
		fail(k, status, jiarun_report_start(&e, k->o));
		return false;
	}
	if (!k->o->label)
		return true;
	k->labeller = jiarun_output_start(&k->ranks);
	if (k->labeller > 0)
		return true;
	k->labeller = 0;
	fail(k, 1,
	     jiarun_text("cannot start the process that labels lines: %s",
			 strerror(errno)));
	return false;
}

int jiarun_keeper(const struct jiarun_options *o,
		  const struct jiarun_inherited *in, int sfd, pid_t front)
{
	struct keeper k = {
		.o = o, .in = in, .sfd = sfd, .begun_ms = jiarun_now_ms()
	};

	prctl(PR_SET_NAME, "jiarun-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	k.front_fd = (int)syscall(SYS_pidfd_open, front, 0);
	if (k.front_fd < 0 || getppid() != front) {
		fprintf(stderr, "jiarun: cannot watch its own process: %s\n",
			strerror(errno));
		return 1;
	}
	if (start(&k))
		watch(&k);
	end_all(&k);
	drain(&k);
	if (k.text)
		say(&k, k.text);
	if (o->stats && k.job && jiarun_report_stats(k.job, o) < 0 && !k.status)
		k.status = 1;
	jiarun_sites_free(k.sites);
	sul_job_close(k.job);
	free(k.ranks.rank);
	free(k.text);
	return k.status;
}
