/* SPDX-License-Identifier: MIT */
/*
 * jiarun_remote.c - the life of the other hosts, as the hub sees it.
 *
 * A host is reached (ssh runs), answers (the greeting), is told of the job, runs
 * its ranks, and says that it is done.  Until then it may be lost: its ssh ends,
 * it says nonsense, or nothing at all for too long.  All of these end the job
 * with a message that names the host.
 *
 * Invariant: nobody starts a rank before every host has answered; so a host that
 *   is not there is found before anything has happened.
 */
#include "jiarun_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jiarun_card.h"
#include "jiarun_far.h"
#include "jiarun_plan.h"

enum {
	TICK_MS = 250,
	BEATS = 4, /* in the time after which silence is death */
	FAREWELL_MS = 1000, /* between the end of a channel and of its ssh */
	END_MS = 1700, /* for other hosts to end their ranks: as long as we */
	WORDS_MS = 5000, /* for one without ranks to find its words */
	LEAVE_MS = 300, /* for an ssh to notice that it is not needed */
	LINES_MS = 1500, /* for an answer to a question */
	FEED_BYTES = 16 << 10,
};

static struct jiarun_remote *remote_of(const struct jiarun_keeper *k)
{
	return k->others;
}

/* --- how it is lost ------------------------------------------------------------------ */

static void lose(struct jiarun_far *f, int status, char *text)
{
	f->lost = true;
	jiarun_fail_by(f->k, -1, status, text);
}

static void lose_by_words(struct jiarun_far *f)
{
	const char *why = f->link.in.why;

	if (f->link.err == -ENOMSG)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s: what answers there is no jiarun; it "
				 "says \"%s\" (a shell's start-up file must "
				 "print nothing)",
				 f->name, why));
	else if (f->link.err == -EPROTONOSUPPORT)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s has another release of jiarun, %s; "
				 "all hosts need the same",
				 f->name, why));
	else
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s: its jiarun sent %s", f->name, why));
}

static void lose_before_answer(struct jiarun_far *f)
{
	const struct jiarun_options *o = f->k->o;
	int code = WEXITSTATUS(f->status);
	char ssh[64];

	jiarun_ssh_name(o, ssh, sizeof(ssh));
	if (WIFSIGNALED(f->status))
		lose(f, JIARUN_NO_HOST,
		     jiarun_text(
			     "host %s: %s to it was killed by signal %d (%s)",
			     f->name, ssh, WTERMSIG(f->status),
			     strsignal(WTERMSIG(f->status))));
	else if (code == 255)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s cannot be reached: %s ended with "
				 "status 255",
				 f->name, ssh));
	else if (code == JIARUN_NOT_FOUND || code == JIARUN_NOT_RUNNABLE)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s has no jiarun %s; see --jiarun-path",
				 f->name,
				 o->path ? o->path :
					   "where this host has it, nor in its "
					   "PATH"));
	else
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s: jiarun there ended with status %d "
				 "before it answered; is it another release?",
				 f->name, code));
}

static void lose_in_the_middle(struct jiarun_far *f)
{
	int code = WEXITSTATUS(f->status);
	char ssh[64];

	jiarun_ssh_name(f->k->o, ssh, sizeof(ssh));
	if (WIFSIGNALED(f->status))
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s was lost: %s to it was killed by "
				 "signal %d (%s)",
				 f->name, ssh, WTERMSIG(f->status),
				 strsignal(WTERMSIG(f->status))));
	else if (code == 255)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s was lost: %s ended with status 255",
				 f->name, ssh));
	else if (code > 128 && code < 128 + 65)
		lose(f, code,
		     jiarun_text("host %s was lost: its keeper was killed by "
				 "signal %d (%s)",
				 f->name, code - 128, strsignal(code - 128)));
	else
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s was lost: jiarun there ended with "
				 "status %d",
				 f->name, code));
}

static void lose_to_silence(struct jiarun_far *f)
{
	lose(f, JIARUN_NO_HOST,
	     jiarun_text("host %s was lost: nothing was heard of it for %g s",
			 f->name, (double)f->k->o->silence_ms / 1e3));
}

/* Its channel has ended, or its ssh; of both we want to know before we judge. */
static void judge_end(struct jiarun_far *f, int64_t now)
{
	if (!f->gone_ms)
		f->gone_ms = now;
	if (!(f->ended && f->link.over) && now - f->gone_ms < FAREWELL_MS)
		return;
	if (!f->ended)
		lose(f, JIARUN_NO_HOST,
		     jiarun_text("host %s was lost: the channel to it was "
				 "closed",
				 f->name));
	else if (f->link.in.greeted)
		lose_in_the_middle(f);
	else
		lose_before_answer(f);
}

static void judge(struct jiarun_far *f, int64_t now)
{
	if (f->done || f->lost || !f->opened)
		return;
	if (f->link.err)
		lose_by_words(f);
	else if (f->link.over || f->ended)
		judge_end(f, now);
	else if (f->link.in.greeted &&
		 jiarun_link_silent_ms(&f->link, now) > f->k->o->silence_ms)
		lose_to_silence(f);
}

/* --- the side of the keeper ------------------------------------------------------------ */

static void hub_tick(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	int64_t now = jiarun_now_ms();

	for (int i = 0; i < rm->nr; i++) {
		struct jiarun_far *f = &rm->far[i];

		if (f->opened && !f->done)
			jiarun_link_beat(&f->link, now,
					 k->o->silence_ms / BEATS);
		if (!rm->closing)
			judge(f, now);
	}
}

static void hub_look(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	struct jiarun_message m;

	for (int r = 0; r < k->ranks.nr; r++)
		if (!k->ranks.rank[r].far &&
		    jiarun_card_make(k->job, r, &rm->told[r], &m))
			jiarun_far_tell(rm, NULL, &m);
}

static void hub_child(struct jiarun_keeper *k, pid_t pid, int status)
{
	struct jiarun_remote *rm = remote_of(k);

	for (int i = 0; i < rm->nr; i++) {
		struct jiarun_far *f = &rm->far[i];

		if (f->ssh.pid != pid)
			continue;
		f->ssh.pid = 0;
		f->ended = true;
		f->status = status;
	}
	if (pid == rm->feeder)
		rm->feeder = 0;
}

static void hub_decided(struct jiarun_keeper *k)
{
	struct jiarun_message m = { .type = JIARUN_WIRE_fail };

	m.fail.status = (uint64_t)k->status & 255;
	m.fail.text = (struct jiarun_bytes){ k->text, strlen(k->text) };
	jiarun_far_tell(remote_of(k), NULL, &m);
}

static void hub_hurry(struct jiarun_keeper *k)
{
	jiarun_far_tell(remote_of(k), NULL,
			&(struct jiarun_message){ .type = JIARUN_WIRE_hurry });
}

static bool all_answered(const struct jiarun_remote *rm)
{
	for (int i = 0; i < rm->nr; i++)
		if (rm->far[i].going && !rm->far[i].done &&
		    rm->far[i].answered < rm->question)
			return false;
	return true;
}

static void lines_forget(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);

	for (int r = 0; rm->line && r < k->ranks.nr; r++) {
		free(rm->line[r]);
		rm->line[r] = NULL;
	}
}

static char **hub_lines(struct jiarun_keeper *k)
{
	struct jiarun_message m = { .type = JIARUN_WIRE_ask };
	struct jiarun_remote *rm = remote_of(k);
	int64_t end = jiarun_now_ms() + LINES_MS;

	lines_forget(k);
	m.ask.question = ++rm->question;
	jiarun_far_tell(rm, NULL, &m);
	while (!all_answered(rm) && !k->text && jiarun_now_ms() < end)
		jiarun_keeper_wait(k, 50);
	return rm->line;
}

/* --- standard input ------------------------------------------------------------------- */

/* Reads for us what may block; in the background a terminal is not read. */
static _Noreturn void feed(int out)
{
	char buf[FEED_BYTES];
	ssize_t n, done, m;

	prctl(PR_SET_NAME, "jiarun-feed");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	signal(SIGTTIN, SIG_IGN);
	for (;;) {
		n = read(STDIN_FILENO, buf, sizeof(buf));
		if (n < 0 && errno == EIO) {
			poll(NULL, 0, TICK_MS);
			continue;
		}
		if (n <= 0)
			_exit(0);
		for (done = 0; done < n; done += m) {
			m = write(STDOUT_FILENO, buf + done,
				  (size_t)(n - done));
			if (m < 0)
				_exit(0);
		}
	}
}

static void input_take(void *ctx, int id, const void *data, size_t n)
{
	struct jiarun_far *f = ctx;

	(void)id;
	jiarun_say(&f->link, input, .data = { data, n });
}

/* False with errno. */
static bool start_feeder(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	struct jiarun_far *f;
	int p[2], err;
	pid_t pid;

	f = k->o->debug_rank < 0 ? jiarun_far_of(k, 0) : NULL;
	if (!f)
		return true;
	if (pipe2(p, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		feed(p[1]);
	err = errno;
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		errno = err;
		return false;
	}
	rm->feeder = pid;
	rm->input = (struct jiarun_tap){ .credit = &rm->credit,
					 .take = input_take,
					 .ctx = f };
	return jiarun_tap_open(&rm->input, &k->loop, p[0]) &&
	       jiarun_keeper_spare(k, rm->feeder);
}

/* --- starting ------------------------------------------------------------------------- */

static bool fail_to_start(struct jiarun_keeper *k, const char *what, int err)
{
	jiarun_fail_by(k, -1, 1,
		       jiarun_text("cannot start a job on several hosts: %s: "
				   "%s%s",
				   what, strerror(err),
				   err == EMFILE ? "; the limit on descriptors "
						   "is ulimit -n" :
						   ""));
	return false;
}

static void far_init(struct jiarun_far *f, struct jiarun_keeper *k, int index)
{
	f->k = k;
	f->index = index;
	f->name = k->o->hosts.host[index].name;
	f->alive = k->o->hosts.host[index].ranks;
	f->errors[0] = f->errors[1] = -1;
	f->link.from.fd = f->link.to.fd = -1;
	f->link.take = jiarun_far_take;
	f->link.ctx = f;
}

static bool remote_alloc(struct jiarun_remote *rm, struct jiarun_keeper *k)
{
	size_t ranks = (size_t)k->ranks.nr;

	rm->far = calloc((size_t)k->o->hosts.nr, sizeof(*rm->far));
	rm->drip = calloc(2 * ranks, sizeof(*rm->drip));
	rm->told = calloc(ranks, sizeof(*rm->told));
	rm->line = calloc(ranks, sizeof(*rm->line));
	rm->input.from.fd = -1;
	rm->credit = JIARUN_WINDOW_BYTES;
	return rm->far && rm->drip && rm->told && rm->line;
}

bool jiarun_remote_open(struct jiarun_keeper *k)
{
	const struct jiarun_options *o = k->o;
	struct jiarun_remote *rm;

	if (o->hosts.nr - (o->here < o->hosts.nr) == 0)
		return true;
	rm = calloc(1, sizeof(*rm));
	k->others = rm;
	if (!rm || !remote_alloc(rm, k))
		return fail_to_start(k, "memory", ENOMEM);
	for (int i = 0; i < o->hosts.nr; i++)
		if (i != o->here)
			far_init(&rm->far[rm->nr++], k, i);
	rm->side = (struct jiarun_side){ .look = hub_look,
					 .child = hub_child,
					 .decided = hub_decided,
					 .hurry = hub_hurry,
					 .lines = hub_lines,
					 .tick = hub_tick,
					 .tick_ms = TICK_MS };
	k->side = &rm->side;
	return true;
}

bool jiarun_remote_outputs(struct jiarun_keeper *k, struct jiarun_output *out)
{
	struct jiarun_remote *rm = remote_of(k);
	char label[SUL_JOB_HOST_MAX + 2];

	for (int i = 0; rm && i < rm->nr; i++) {
		struct jiarun_far *f = &rm->far[i];

		snprintf(label, sizeof(label), "%.*s: ", SUL_JOB_HOST_MAX - 1,
			 f->name);
		if (pipe2(f->errors, O_CLOEXEC) < 0 ||
		    !jiarun_output_add(out, f->errors[0], f->errors[1], true,
				       label))
			return false;
		f->errors[0] = -1; /* the labeller's */
	}
	return true;
}

static bool open_drips(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);

	for (int i = 0; i < 2 * k->ranks.nr; i++) {
		struct jiarun_rank *r = &k->ranks.rank[i / 2];
		struct jiarun_drip *d = &rm->drip[i];
		int *fd = &r->its[1 + i % 2];

		d->taken = jiarun_far_drained;
		d->ctx = k;
		d->id = i;
		d->to.fd = -1;
		if (r->far && !jiarun_drip_open(d, &k->loop, *fd))
			return false;
		if (r->far)
			*fd = -1; /* the drip's */
	}
	return true;
}

static bool reach(struct jiarun_far *f)
{
	struct jiarun_keeper *k = f->k;
	int err = jiarun_ssh_start(&f->ssh, k->o, k->in, f->name, f->errors[1]);
	char ssh[64];

	if (err == -ENOENT || err == -EACCES) {
		jiarun_fail_by(
			k, -1, JIARUN_NO_HOST,
			jiarun_text("cannot run %s: %s; see --ssh",
				    jiarun_ssh_name(k->o, ssh, sizeof(ssh)),
				    strerror(-err)));
		return false;
	}
	if (err)
		return fail_to_start(k, "ssh", -err);
	close(f->errors[1]);
	f->errors[1] = -1;
	f->opened = true;
	if (!jiarun_link_open(&f->link, &k->loop, f->ssh.from, f->ssh.to) ||
	    !jiarun_keeper_spare(k, f->ssh.pid))
		return fail_to_start(k, "memory", ENOMEM);
	return true;
}

static bool all_greeted(const struct jiarun_remote *rm)
{
	for (int i = 0; i < rm->nr; i++)
		if (!rm->far[i].link.in.greeted)
			return false;
	return true;
}

/* "a, b and c" of those that have not answered. */
static void fail_unanswered(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	char names[512] = "";
	size_t len = 0;
	int nr = 0;

	for (int i = 0; i < rm->nr; i++) {
		if (rm->far[i].link.in.greeted)
			continue;
		nr++;
		if (len + 2 < sizeof(names))
			len += (size_t)snprintf(names + len,
						sizeof(names) - len, "%s%s",
						nr > 1 ? ", " : "",
						rm->far[i].name);
	}
	jiarun_fail_by(k, -1, JIARUN_NO_HOST,
		       jiarun_text("host%s %s %s not answered within %g s",
				   nr > 1 ? "s" : "", names,
				   nr > 1 ? "have" : "has",
				   (double)k->o->answer_ms / 1e3));
}

/* Every host has answered; false: the job has failed. */
static bool meet(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	int64_t end = jiarun_now_ms() + k->o->answer_ms, left;

	while (!k->text && !all_greeted(rm)) {
		left = end - jiarun_now_ms();
		if (left <= 0)
			fail_unanswered(k);
		else
			jiarun_keeper_wait(k, left);
	}
	return !k->text;
}

/* False: the job has failed. */
static bool tell_plan(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	struct jiarun_plan plan = { 0 };
	struct jiarun_message m;
	int err = jiarun_plan_make(&plan, k->o, k->in, k->job);

	for (int i = 0; !err && i < rm->nr; i++) {
		struct jiarun_far *f = &rm->far[i];

		for (size_t nr = 0;
		     jiarun_plan_message(&plan, f->index, nr, &m); nr++)
			jiarun_link_put(&f->link, &m);
		f->going = true;
	}
	jiarun_plan_free(&plan);
	return err ? fail_to_start(k, "the working directory", -err) : true;
}

bool jiarun_remote_start(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);

	if (!rm)
		return true;
	if (!open_drips(k))
		return fail_to_start(k, "memory", ENOMEM);
	for (int i = 0; i < rm->nr; i++)
		if (!reach(&rm->far[i]))
			return false;
	if (!meet(k) || !tell_plan(k))
		return false;
	return start_feeder(k) ? true :
				 fail_to_start(k, "standard input", errno);
}

/* --- ending --------------------------------------------------------------------------- */

/* Whether a host is waited for that is not done: for ever, if all is well. */
static bool is_missed(const struct jiarun_far *f)
{
	const struct jiarun_keeper *k = f->k;
	int64_t since = jiarun_now_ms() - k->decided_ms;

	if (!f->going || f->done || f->lost)
		return false;
	return !k->text || since < (f->failed && !f->alive ? WORDS_MS : END_MS);
}

static bool any_missed(const struct jiarun_remote *rm)
{
	for (int i = 0; i < rm->nr; i++)
		if (is_missed(&rm->far[i]))
			return true;
	return false;
}

static bool any_ssh(const struct jiarun_remote *rm)
{
	for (int i = 0; i < rm->nr; i++)
		if (rm->far[i].ssh.pid)
			return true;
	return false;
}

/* Our ends are closed: what is still there, ends. */
static void part(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	int64_t end = jiarun_now_ms() + LEAVE_MS;

	rm->closing = true;
	if (rm->feeder)
		kill(rm->feeder, SIGKILL);
	for (int i = 0; i < rm->nr; i++) {
		jiarun_link_close_to(&rm->far[i].link);
		if (rm->far[i].errors[1] >= 0)
			close(rm->far[i].errors[1]);
	}
	while (any_ssh(rm) && !k->hurry && jiarun_now_ms() < end) {
		jiarun_keeper_wait(k, 20);
		jiarun_keeper_reap(k);
	}
}

/* The ssh's that are left, and what they have started. */
static void kill_rest(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);
	int64_t now = jiarun_now_ms();
	int64_t polite = now + LEAVE_MS, last = now + JIARUN_KILL_MS;

	for (int i = 0; i < rm->nr; i++)
		jiarun_keeper_unspare(k, rm->far[i].ssh.pid);
	jiarun_keeper_unspare(k, rm->feeder);
	while (now < last &&
	       jiarun_keeper_kill(k, now < polite ? SIGTERM : SIGKILL)) {
		poll(NULL, 0, 10);
		now = jiarun_now_ms();
	}
}

void jiarun_remote_end(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);

	if (!rm || !rm->far)
		return;
	while (any_missed(rm))
		jiarun_keeper_wait(k, k->text ? 20 : -1);
	part(k);
	kill_rest(k);
	for (int i = 0; rm->drip && i < 2 * k->ranks.nr; i++)
		jiarun_drip_end(&rm->drip[i]);
}

void jiarun_remote_close(struct jiarun_keeper *k)
{
	struct jiarun_remote *rm = remote_of(k);

	if (!rm)
		return;
	for (int i = 0; i < rm->nr; i++)
		jiarun_link_close(&rm->far[i].link);
	for (int i = 0; rm->drip && i < 2 * k->ranks.nr; i++)
		jiarun_drip_close(&rm->drip[i]);
	jiarun_tap_close(&rm->input);
	lines_forget(k);
	free(rm->line);
	free(rm->told);
	free(rm->drip);
	free(rm->far);
	free(rm);
	k->side = NULL;
	k->others = NULL;
}
