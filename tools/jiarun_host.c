/* SPDX-License-Identifier: MIT */
/*
 * jiarun_host.c - the keeper of another host.
 *
 * ssh has started it (jiarun --host-keeper); standard input and output are the
 * channel to the hub, which is its user: tells it the job, gets its ranks'
 * output, decides with it about failures.  Should the hub be gone (the channel
 * is closed, or nothing is heard for too long) the ranks end, and nobody is told.
 */
#include "jiarun_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jiarun_card.h"
#include "jiarun_flow.h"
#include "jiarun_link.h"
#include "jiarun_plan.h"

enum {
	TICK_MS = 250,
	BEATS = 4, /* in the time after which silence is death */
	PLAN_MS = 60000, /* the other hosts' time to answer is part of it */
	FLUSH_MS = 1000,
};

/**
 * struct host - this host's part.
 * @told:     [ranks] the state that the hub knows.
 * @tap:      [2 * ranks] of our ranks: their output and errors.
 * @credit:   output that we may still send.
 * @input:    to the rank that gets standard input, if that is here.
 * @question: of the hub, @answered: up to where.
 * @ready:    the plan is complete, and ranks can be started.
 * @lost:     the hub is gone.
 * @ordered:  the hub has said that the job failed.
 */
struct host {
	struct jiarun_keeper k;
	struct jiarun_side side;
	struct jiarun_link link;
	struct jiarun_plan plan;
	struct jiarun_options o;
	struct jiarun_inherited in;
	uint32_t *told;
	struct jiarun_tap *tap;
	size_t credit;
	struct jiarun_drip input;
	uint64_t question, answered;
	bool ready, lost, ordered;
};

/* --- to the hub ---------------------------------------------------------------------- */

static void host_look(struct jiarun_keeper *k)
{
	struct host *h = k->others;
	struct jiarun_message m;

	for (int r = 0; h->told && r < k->ranks.nr; r++)
		if (!k->ranks.rank[r].far &&
		    jiarun_card_make(k->job, r, &h->told[r], &m))
			jiarun_link_put(&h->link, &m);
}

static void host_ended(struct jiarun_keeper *k, int rank)
{
	const struct jiarun_rank *r = &k->ranks.rank[rank];
	struct host *h = k->others;

	host_look(k); /* its last state comes before */
	jiarun_say(&h->link, ended, .rank = (uint64_t)rank,
		   .pid = (uint64_t)r->pid, .status = (uint64_t)r->status);
}

static void host_decided(struct jiarun_keeper *k)
{
	struct host *h = k->others;

	if (h->ordered || h->lost)
		return;
	jiarun_say(&h->link, fail, .status = (uint64_t)k->status & 255,
		   .text = { k->text, strlen(k->text) });
	jiarun_link_flush(&h->link);
}

static void say_line(struct host *h, int rank)
{
	char *text = jiarun_report_line(h->k.job, &h->k.ranks, rank);
	char *named = text ? jiarun_keeper_render(&h->k, text) : NULL;

	if (named)
		jiarun_say(&h->link, line, .rank = (uint64_t)rank,
			   .text = { named, strlen(named) });
	jiarun_link_flush(&h->link); /* the next may take its time */
	free(named);
	free(text);
}

static void answer(struct host *h)
{
	for (int r = 0; r < h->k.ranks.nr && r < JIARUN_LINES_MAX; r++)
		if (!h->k.ranks.rank[r].far)
			say_line(h, r);
	jiarun_say(&h->link, answered, .question = h->question);
	h->answered = h->question;
}

static void lose_hub(struct host *h)
{
	h->lost = true;
	jiarun_link_close_to(&h->link);
	jiarun_fail_by(&h->k, -1, JIARUN_NO_HOST,
		       jiarun_text("the host that started the job is gone"));
}

static void host_tick(struct jiarun_keeper *k)
{
	struct host *h = k->others;
	int64_t now = jiarun_now_ms();
	int64_t most = h->plan.complete ? h->plan.silence_ms : PLAN_MS;

	if (h->lost)
		return;
	jiarun_link_beat(&h->link, now, most / BEATS);
	if (!jiarun_link_is_open(&h->link) ||
	    jiarun_link_silent_ms(&h->link, now) > most)
		lose_hub(h);
	else if (h->question != h->answered)
		answer(h);
}

/* --- output and input ------------------------------------------------------------------ */

static void output_take(void *ctx, int id, const void *data, size_t n)
{
	struct host *h = ctx;

	jiarun_say(&h->link, output, .rank = (uint64_t)id / 2,
		   .stream = (uint64_t)id % 2, .data = { data, n });
}

static void input_taken(void *ctx, int id, size_t n, bool gone)
{
	struct host *h = ctx;

	(void)id;
	/* Without credit the hub stops sending what nobody will read. */
	if (n && !gone && h->input.to.fd >= 0)
		jiarun_say(&h->link, taken, .bytes = n);
}

static bool taps_open(struct host *h)
{
	struct jiarun_ranks *rs = &h->k.ranks;

	h->tap = calloc(2 * (size_t)rs->nr, sizeof(*h->tap));
	for (int i = 0; h->tap && i < 2 * rs->nr; i++) {
		struct jiarun_tap *t = &h->tap[i];
		struct jiarun_rank *r = &rs->rank[i / 2];

		*t = (struct jiarun_tap){ .credit = &h->credit,
					  .take = output_take,
					  .ctx = h,
					  .id = i };
		t->from.fd = -1;
		if (r->far)
			continue;
		if (!jiarun_rank_pipe(r, 1 + i % 2) ||
		    !jiarun_tap_open(t, &h->k.loop, r->ours[1 + i % 2]))
			return false;
		r->ours[1 + i % 2] = -1; /* the tap's */
	}
	return h->tap != NULL;
}

static bool input_open(struct host *h)
{
	int rank = h->plan.input_rank;
	struct jiarun_rank *r;

	h->input.taken = input_taken;
	h->input.ctx = h;
	if (rank >= h->k.ranks.nr || h->k.ranks.rank[rank].far)
		return true;
	r = &h->k.ranks.rank[rank];
	if (!jiarun_rank_pipe(r, STDIN_FILENO) ||
	    !jiarun_drip_open(&h->input, &h->k.loop, r->ours[STDIN_FILENO]))
		return false;
	r->ours[STDIN_FILENO] = -1; /* the drip's */
	return true;
}

static bool any_tap(const struct host *h)
{
	for (int i = 0; h->tap && i < 2 * h->k.ranks.nr; i++)
		if (jiarun_tap_is_open(&h->tap[i]))
			return true;
	return false;
}

/* --- from the hub ------------------------------------------------------------------------ */

static int take_card(struct host *h, const struct jiarun_wire_card *c,
		     char *why)
{
	if (c->rank >= (uint64_t)h->plan.ranks ||
	    jiarun_plan_host_of(&h->plan, (int)c->rank) == h->plan.host)
		return jiarun_wire_refuse(why, "a card of a rank that is here");
	jiarun_card_take(h->k.job, c);
	jiarun_fail_by_early(&h->k);
	return 0;
}

static int take_fail(struct host *h, const struct jiarun_wire_fail *m)
{
	char *text = malloc(m->text.len + 1);

	if (text)
		jiarun_wire_text(m->text, text, m->text.len + 1);
	h->ordered = true;
	jiarun_say(&h->link, alive, ); /* we have heard */
	jiarun_fail_by(&h->k, -1, (int)m->status, text);
	return 0;
}

static int take_taken(struct host *h, size_t bytes, char *why)
{
	if (bytes > JIARUN_WINDOW_BYTES - h->credit)
		return jiarun_wire_refuse(
			why, "that it took more output than it got");
	h->credit += bytes;
	for (int i = 0; h->tap && i < 2 * h->k.ranks.nr; i++)
		jiarun_tap_resume(&h->tap[i]);
	return 0;
}

static int take_input(struct host *h, struct jiarun_bytes data)
{
	if (h->input.to.fd < 0)
		return 0; /* its reader is gone */
	if (data.len)
		jiarun_drip_put(&h->input, data.at, data.len);
	else
		jiarun_drip_end(&h->input);
	return 0;
}

static int take_closed(struct host *h, const struct jiarun_wire_closed *m,
		       char *why)
{
	if (!h->tap || m->rank >= (uint64_t)h->plan.ranks)
		return jiarun_wire_refuse(why,
					  "something of a rank that is none");
	jiarun_tap_close(&h->tap[2 * m->rank + m->stream]);
	return 0;
}

static int take_running(struct host *h, const struct jiarun_message *m,
			char *why)
{
	switch (m->type) {
	case JIARUN_WIRE_card:
		return take_card(h, &m->card, why);
	case JIARUN_WIRE_fail:
		return take_fail(h, &m->fail);
	case JIARUN_WIRE_taken:
		return take_taken(h, m->taken.bytes, why);
	case JIARUN_WIRE_input:
		return take_input(h, m->input.data);
	case JIARUN_WIRE_closed:
		return take_closed(h, &m->closed, why);
	case JIARUN_WIRE_ask:
		h->question = m->ask.question;
		return 0;
	case JIARUN_WIRE_hurry:
		h->k.hurry = true;
		return 0;
	default:
		return jiarun_wire_refuse(
			why, "a message that is not the hub's to send");
	}
}

static bool host_prepare(struct host *h);

/* With the last word of the plan all is made ready: what comes next may come
 * right behind it. */
static int hub_take(void *ctx, const struct jiarun_message *m,
		    char why[JIARUN_WHY_MAX])
{
	struct host *h = ctx;
	int err;

	if (m->type == JIARUN_WIRE_alive)
		return 0;
	if (h->plan.complete)
		return h->k.job ? take_running(h, m, why) : 0;
	err = jiarun_plan_take(&h->plan, m, why);
	if (!err && h->plan.complete)
		h->ready = host_prepare(h);
	return err;
}

/* --- life ----------------------------------------------------------------------------- */

/* Standard input and output become the channel's; whoever reads or writes there
 * by mistake does no harm. */
static bool channel_open(struct host *h)
{
	int from = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (from < 0 || to < 0 || null < 0)
		return false;
	dup2(null, STDIN_FILENO);
	close(null);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	h->link.take = hub_take;
	h->link.ctx = h;
	return jiarun_link_open(&h->link, &h->k.loop, from, to);
}

static bool host_open(struct host *h, const struct jiarun_inherited *in,
		      int sfd, pid_t front)
{
	h->in = *in;
	h->o = (struct jiarun_options){ .host_keeper = true, .debug_rank = -1 };
	h->k.o = &h->o;
	h->k.in = &h->in;
	h->credit = JIARUN_WINDOW_BYTES;
	h->input.to.fd = -1;
	if (!jiarun_keeper_open(&h->k, sfd, front))
		return false;
	h->side = (struct jiarun_side){ .look = host_look,
					.ended = host_ended,
					.decided = host_decided,
					.tick = host_tick,
					.tick_ms = TICK_MS };
	h->k.side = &h->side;
	h->k.others = h;
	if (channel_open(h))
		return true;
	fprintf(stderr, "jiarun: cannot open the channel: %s\n",
		strerror(errno));
	return false;
}

/* The options that the user would have given here. */
static bool options_from_plan(struct host *h)
{
	const struct jiarun_plan *p = &h->plan;
	struct jiarun_options *o = &h->o;

	o->ranks = p->ranks;
	o->here = p->host;
	o->stats = p->stats;
	o->silence_ms = p->silence_ms;
	o->argv = p->argument.at;
	snprintf(o->where, sizeof(o->where), " on %.*s", SUL_JOB_HOST_MAX - 1,
		 p->name.at[p->host]);
	o->hosts.host = calloc((size_t)p->hosts, sizeof(*o->hosts.host));
	if (!o->hosts.host)
		return false;
	o->hosts.nr = p->hosts;
	for (int i = 0; i < p->hosts; i++)
		o->hosts.host[i].name = p->name.at[i];
	for (int r = 0; r < p->ranks; r++)
		o->host_of[r] = (uint16_t)jiarun_plan_host_of(p, r);
	return true;
}

static bool fail_to_start(struct host *h, const char *what)
{
	jiarun_fail(&h->k, 1,
		    jiarun_text("cannot start ranks%s: %s: %s", h->o.where,
				what, strerror(errno)));
	return false;
}

static bool host_prepare(struct host *h)
{
	char *why;

	if (!options_from_plan(h))
		return fail_to_start(h, "memory");
	why = jiarun_plan_apply(&h->plan, &h->in);
	if (why) {
		jiarun_fail(&h->k, 1, why);
		return false;
	}
	h->told = calloc((size_t)h->plan.ranks, sizeof(*h->told));
	if (!h->told || !jiarun_keeper_job(&h->k))
		return false;
	sul_job_set_key(h->k.job, h->plan.key);
	if (!taps_open(h) || !input_open(h))
		return fail_to_start(h, "pipes for input and output");
	return true;
}

/* What the ranks have written is sent before we are done; after a failure not for
 * ever: who should read it may not. */
static void drain(struct host *h)
{
	int64_t end = jiarun_now_ms() + JIARUN_DRAIN_MS;

	while (any_tap(h) && !h->lost && !h->k.hurry &&
	       (!h->k.text || jiarun_now_ms() < end))
		jiarun_keeper_wait(&h->k, h->k.text ? 20 : -1);
}

static void say_counters(struct host *h, int rank)
{
	const struct sul_job_rank *r = sul_job_rank(h->k.job, rank);

	jiarun_say(&h->link, counters, .rank = (uint64_t)rank,
		   .words = { r->counters, sizeof(r->counters) });
	jiarun_say(&h->link, more, .rank = (uint64_t)rank,
		   .bytes = { sul_job_more(h->k.job, rank),
			      SUL_JOB_MORE_BYTES });
}

/* Our failure's text with its places named: that took its time. */
static void say_words(struct host *h)
{
	char *named = jiarun_keeper_render(&h->k, h->k.text);

	if (named)
		jiarun_say(&h->link, words, .text = { named, strlen(named) });
	free(named);
}

static void say_done(struct host *h)
{
	int64_t end = jiarun_now_ms() + FLUSH_MS;

	if (h->k.text && !h->ordered)
		say_words(h);
	for (int r = 0; h->o.stats && r < h->k.ranks.nr; r++)
		if (!h->k.ranks.rank[r].far)
			say_counters(h, r);
	jiarun_say(&h->link, done, );
	while (jiarun_link_pending(&h->link) && !h->lost &&
	       (!h->k.text || jiarun_now_ms() < end))
		jiarun_keeper_wait(&h->k, 20);
}

static void host_close(struct host *h)
{
	for (int i = 0; h->tap && i < 2 * h->k.ranks.nr; i++)
		jiarun_tap_close(&h->tap[i]);
	jiarun_drip_close(&h->input);
	jiarun_link_close(&h->link);
	jiarun_keeper_close(&h->k);
	jiarun_plan_free(&h->plan);
	free(h->o.hosts.host);
	free(h->tap);
	free(h->told);
}

int jiarun_host_keeper(const struct jiarun_inherited *in, int sfd, pid_t front)
{
	struct host h = { .lost = false };

	if (!host_open(&h, in, sfd, front))
		return 1;
	while (!h.plan.complete && !h.k.text)
		jiarun_keeper_wait(&h.k, -1);
	if (h.ready && !h.k.text && jiarun_keeper_start(&h.k))
		jiarun_keeper_watch(&h.k);
	jiarun_keeper_end(&h.k);
	drain(&h);
	if (!h.lost)
		say_done(&h);
	host_close(&h);
	return h.lost ? JIARUN_NO_HOST : 0;
}
