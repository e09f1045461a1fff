/* SPDX-License-Identifier: MIT */
/*
 * jiarun_far.c - what other hosts say to the hub, and what it does about it.
 *
 * Invariant: a host speaks of its own ranks only; whatever else it says is
 *   refused, and the job ends.
 */
#include "jiarun_far.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "jiarun_card.h"

static struct jiarun_remote *remote_of(const struct jiarun_keeper *k)
{
	return k->others;
}

struct jiarun_far *jiarun_far_of(struct jiarun_keeper *k, int rank)
{
	int host = k->o->host_of[rank];

	if (!k->ranks.rank[rank].far)
		return NULL;
	return &remote_of(k)->far[host - (host > k->o->here)];
}

void jiarun_far_tell(struct jiarun_remote *rm, const struct jiarun_far *but,
		     const struct jiarun_message *m)
{
	for (int i = 0; i < rm->nr; i++) {
		struct jiarun_far *f = &rm->far[i];

		if (f != but && f->going && !f->done)
			jiarun_link_put(&f->link, m);
	}
}

/* --- its ranks -------------------------------------------------------------------- */

static int take_card(struct jiarun_far *f, const struct jiarun_message *m)
{
	jiarun_card_take(f->k->job, &m->card);
	jiarun_far_tell(remote_of(f->k), f, m);
	jiarun_fail_by_early(f->k);
	return 0;
}

/* If it ended badly, its host has said so before. */
static int take_ended(struct jiarun_far *f, const struct jiarun_wire_ended *m,
		      char *why)
{
	struct jiarun_keeper *k = f->k;
	struct jiarun_rank *r = &k->ranks.rank[m->rank];

	if (r->ended)
		return jiarun_wire_refuse(why, "that a rank has ended twice");
	r->ended = true;
	r->pid = (pid_t)m->pid;
	r->status = (int)m->status;
	k->ranks.alive--;
	f->alive--;
	if (!r->status &&
	    !atomic_load(&sul_job_rank(k->job, (int)m->rank)->state))
		k->early++;
	jiarun_fail_by_early(k);
	return 0;
}

static int take_counters(struct jiarun_far *f,
			 const struct jiarun_wire_counters *m)
{
	struct sul_job_rank *r = sul_job_rank(f->k->job, (int)m->rank);

	memcpy(r->counters, m->words.at, m->words.len);
	return 0;
}

static int take_more(struct jiarun_far *f, const struct jiarun_wire_more *m)
{
	memcpy(sul_job_more(f->k->job, (int)m->rank), m->bytes.at,
	       m->bytes.len);
	return 0;
}

static char *text_of(struct jiarun_bytes b)
{
	char *text = malloc(b.len + 1);

	if (text)
		jiarun_wire_text(b, text, b.len + 1);
	return text;
}

static int take_line(struct jiarun_far *f, const struct jiarun_wire_line *m)
{
	struct jiarun_remote *rm = remote_of(f->k);

	free(rm->line[m->rank]);
	rm->line[m->rank] = text_of(m->text);
	return 0;
}

/* --- output and input -------------------------------------------------------------- */

static int take_output(struct jiarun_far *f, const struct jiarun_wire_output *m,
		       char *why)
{
	struct jiarun_remote *rm = remote_of(f->k);
	struct jiarun_drip *d = &rm->drip[2 * m->rank + m->stream];

	if (m->data.len > JIARUN_WINDOW_BYTES - f->held)
		return jiarun_wire_refuse(why,
					  "more output than it was asked for");
	if (!m->data.len) {
		jiarun_drip_end(d);
		return 0;
	}
	f->held += m->data.len;
	jiarun_drip_put(d, m->data.at, m->data.len);
	return 0;
}

void jiarun_far_drained(void *ctx, int id, size_t n, bool gone)
{
	struct jiarun_keeper *k = ctx;
	struct jiarun_far *f = jiarun_far_of(k, id / 2);

	f->held -= n;
	if (!f->going || f->done)
		return;
	if (n)
		jiarun_say(&f->link, taken, .bytes = n);
	if (gone)
		jiarun_say(&f->link, closed, .rank = (uint64_t)id / 2,
			   .stream = (uint64_t)id % 2);
}

static int take_taken(struct jiarun_far *f, const struct jiarun_wire_taken *m,
		      char *why)
{
	struct jiarun_remote *rm = remote_of(f->k);

	if (m->bytes > JIARUN_WINDOW_BYTES - rm->credit)
		return jiarun_wire_refuse(
			why, "that it took more input than it got");
	rm->credit += m->bytes;
	jiarun_tap_resume(&rm->input);
	return 0;
}

/* --- its end ----------------------------------------------------------------------- */

static int take_fail(struct jiarun_far *f, const struct jiarun_wire_fail *m)
{
	f->failed = jiarun_fail_by(f->k, -1, m->status ? (int)m->status : 1,
				   text_of(m->text));
	return 0;
}

static int take_words(struct jiarun_far *f, const struct jiarun_wire_words *m)
{
	char *text = f->failed ? text_of(m->text) : NULL;

	if (text) {
		free(f->k->text);
		f->k->text = text;
	}
	return 0;
}

static int take_done(struct jiarun_far *f, char *why)
{
	if (f->alive && !f->k->text)
		return jiarun_wire_refuse(
			why, "that it is done, and its ranks are not");
	f->done = true;
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

/* Whether @m speaks of a rank, and of which. */
static bool speaks_of(const struct jiarun_message *m, int *rank)
{
	switch (m->type) {
	case JIARUN_WIRE_card:
		*rank = (int)m->card.rank;
		return true;
	case JIARUN_WIRE_ended:
		*rank = (int)m->ended.rank;
		return true;
	case JIARUN_WIRE_output:
		*rank = (int)m->output.rank;
		return true;
	case JIARUN_WIRE_line:
		*rank = (int)m->line.rank;
		return true;
	case JIARUN_WIRE_counters:
		*rank = (int)m->counters.rank;
		return true;
	case JIARUN_WIRE_more:
		*rank = (int)m->more.rank;
		return true;
	default:
		return false;
	}
}

/* Of a rank; that it is one of its own has been seen to. */
static int take_of_rank(struct jiarun_far *f, const struct jiarun_message *m,
			char *why)
{
	switch (m->type) {
	case JIARUN_WIRE_card:
		return take_card(f, m);
	case JIARUN_WIRE_ended:
		return take_ended(f, &m->ended, why);
	case JIARUN_WIRE_output:
		return take_output(f, &m->output, why);
	case JIARUN_WIRE_line:
		return take_line(f, &m->line);
	case JIARUN_WIRE_counters:
		return take_counters(f, &m->counters);
	default:
		return take_more(f, &m->more);
	}
}

int jiarun_far_take(void *ctx, const struct jiarun_message *m,
		    char why[JIARUN_WHY_MAX])
{
	struct jiarun_far *f = ctx;
	int rank;

	if (m->type == JIARUN_WIRE_alive)
		return 0;
	if (!f->going || f->done)
		return jiarun_wire_refuse(why,
					  "something when nothing was asked");
	if (speaks_of(m, &rank)) {
		if (rank >= f->k->ranks.nr || jiarun_far_of(f->k, rank) != f)
			return jiarun_wire_refuse(
				why, "something of a rank not its own");
		return take_of_rank(f, m, why);
	}
	switch (m->type) {
	case JIARUN_WIRE_taken:
		return take_taken(f, &m->taken, why);
	case JIARUN_WIRE_answered:
		f->answered = m->answered.question;
		return 0;
	case JIARUN_WIRE_fail:
		return take_fail(f, &m->fail);
	case JIARUN_WIRE_words:
		return take_words(f, &m->words);
	case JIARUN_WIRE_done:
		return take_done(f, why);
	default:
		return jiarun_wire_refuse(why,
					  "a message that is not its to send");
	}
}
