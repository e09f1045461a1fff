/* SPDX-License-Identifier: MIT */
/*
 * report.c - a violation in words, with what led to it.
 *
 * Role: reads the record after the job has ended (or hangs).  The plan of the
 *   round is made once more from the seed, for names and neighbours.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "plan.h"

enum {
	SHOWN = 60,
	GATHERED = 8192,
	SEARCHED = 1000
};

struct line {
	struct record_event e;
	uint32_t id;
};

static const char *const event_text[] = {
#define EVENT(name, text, item) text,
#include "event.def"
};

static const bool event_is_item[] = {
#define EVENT(name, text, item) item,
#include "event.def"
};

static struct plan *plan_of(struct record *rec, uint32_t round)
{
	return plan_make(rec->seed, round, rec->ranks, rec->threads, rec->pages,
			 rec->release);
}

/* The command of this run but for what --ops says. */
static void put_command(const struct job *job, FILE *f)
{
	fprintf(f, "%s --ranks %u --threads %u --seed 0x%" PRIx64, job->self,
		job->ranks, job->threads, job->seed);
	if (job->hosts)
		fprintf(f, " --hosts %s", job->hosts);
	if (!job->own_jiarun)
		fprintf(f, " --jiarun %s", job->jiarun);
	if (job->pages)
		fprintf(f, " --pages %u", job->pages);
	if (job->vary)
		fprintf(f, " --vary");
	for (unsigned int i = 0; i < job->nsets; i++)
		fprintf(f, " --set %s", job->set[i]);
}

void report_replay(const struct job *job, uint32_t round)
{
	fprintf(stderr, "  replay:      ");
	put_command(job, stderr);
	fprintf(stderr, " --ops %" PRIu64, job->ops);
	if (job->first_round)
		fprintf(stderr, " --first-round %u", job->first_round);
	fprintf(stderr, "\n  this round:  ");
	put_command(job, stderr);
	fprintf(stderr,
		" --ops 1 --first-round %u --repeat 50\n"
		"  (the seed fixes what each thread tries, not how they interleave)\n",
		round);
}

static void print_event(struct record *rec, const struct plan *plan,
			const struct line *l, uint64_t end)
{
	fprintf(stderr, "    %10.3f us  rank %u thread %u  %s",
		-(double)(end - l->e.ns) * 1e-3, l->id / rec->threads,
		l->id % rec->threads, event_text[l->e.kind]);
	if (event_is_item[l->e.kind] && plan && l->e.arg < plan->nitems) {
		const struct item *it = &plan->item[l->e.arg];

		fprintf(stderr,
			" item %u (%u bytes at area %u + 0x%x) write %u",
			l->e.arg, it->size, it->area, it->offset, l->e.count);
	} else {
		fprintf(stderr, " %u", l->e.arg);
	}
	fputc('\n', stderr);
}

void report_threads(const struct job *job, struct record *rec)
{
	struct plan *plan = plan_of(rec, atomic_load(&rec->round));
	unsigned int n = job->ranks * job->threads;
	uint64_t end = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct record_thread *t = &rec->thread[i];
		struct record_event *e =
			&t->event[(t->next_event - 1) % REC_EVENTS];

		if (e->ns > end)
			end = e->ns;
	}
	if (!end)
		goto free;
	fprintf(stderr, "  last seen of each thread in round %u:\n",
		atomic_load(&rec->round));
	for (unsigned int i = 0; i < n; i++) {
		struct record_thread *t = &rec->thread[i];
		struct line l = {
			.e = t->event[(t->next_event - 1) % REC_EVENTS],
			.id = i,
		};

		print_event(rec, plan, &l, end);
	}
free:
	plan_free(plan);
}

/* --- the events that matter ------------------------------------------------------ */

static bool touches(const struct plan *plan, const struct record_event *e,
		    const struct record_violation *bad)
{
	const struct item *it;

	if (e->kind == EV_NONE)
		return false;
	if (!event_is_item[e->kind])
		return e->kind != EV_WANT && e->kind != EV_UNLOCKED;
	if (e->arg >= plan->nitems)
		return false;
	it = &plan->item[e->arg];
	return it->area == bad->area &&
	       it->offset / PLAN_PAGE == bad->offset / PLAN_PAGE &&
	       (e->kind != EV_VERIFY ||
		(bad->kind == BAD_VALUE && e->arg == bad->item));
}

static int by_time(const void *x, const void *y)
{
	const struct line *a = x, *b = y;

	return a->e.ns < b->e.ns ? -1 : a->e.ns > b->e.ns;
}

static void report_transcript(struct record *rec, const struct plan *plan)
{
	struct line *line = calloc(GATHERED, sizeof(*line));
	unsigned int n = 0, threads = rec->ranks * rec->threads;
	unsigned int each = GATHERED / threads;

	if (!line)
		return;
	if (each > REC_EVENTS)
		each = REC_EVENTS;
	for (unsigned int i = 0; i < threads; i++) {
		struct record_thread *t = &rec->thread[i];

		for (unsigned int k = 1; k <= each && k <= t->next_event; k++) {
			struct record_event *e =
				&t->event[(t->next_event - k) % REC_EVENTS];

			if (touches(plan, e, &rec->bad))
				line[n++] = (struct line){ *e, i };
		}
	}
	qsort(line, n, sizeof(*line), by_time);
	fprintf(stderr, "  before it, on this page and on locks:\n");
	for (unsigned int i = n > SHOWN ? n - SHOWN : 0; i < n; i++)
		print_event(rec, plan, &line[i], line[n - 1].e.ns);
	free(line);
}

/* --- the violation ----------------------------------------------------------------- */

/* Whether the value read is one that the item had earlier. */
static void report_age(const struct plan *plan,
		       const struct record_violation *bad)
{
	uint32_t most = bad->count < SEARCHED ? bad->count : SEARCHED;

	for (uint32_t k = 1; k <= most; k++)
		if (plan_value(plan, bad->item, bad->count - k) == bad->got) {
			fprintf(stderr,
				"  which is the value of %u write%s before\n",
				k, k == 1 ? "" : "s");
			return;
		}
	if (plan_value(plan, bad->item, bad->count + 1) == bad->got)
		fprintf(stderr,
			"  which is the value of the write after that\n");
	else
		fprintf(stderr, "  which it never had (of the last %u)\n",
			most);
}

static void report_place(const struct plan *plan,
			 const struct record_violation *bad)
{
	static const char *const call[] = { "jia_malloc", "jia_malloc_on",
					    "jia_malloc_on", "jia_alloc3" };
	const struct area *a = &plan->area[bad->area];

	fprintf(stderr,
		"  where:       page %" PRIu64 " byte 0x%" PRIx64
		" of area %u, %u byte%s at 0x%" PRIx64 "\n"
		"               area %u: %s(%u bytes, block %u, from rank %d)\n",
		bad->offset / PLAN_PAGE, bad->offset % PLAN_PAGE, bad->area,
		bad->size, bad->size == 1 ? "" : "s", bad->address, bad->area,
		call[a->kind], a->bytes, a->block, a->home);
}

static void report_held(const struct plan *plan,
			const struct record_violation *bad)
{
	fprintf(stderr, "  held:       ");
	for (unsigned int i = 0; i < bad->nheld; i++)
		fprintf(stderr, " lock %u (id %d)", bad->held[i],
			plan->lock_id[bad->held[i]]);
	fprintf(stderr, "%s\n", bad->nheld ? "" : " no lock");
}

static void report_value(struct record *rec, const struct plan *plan,
			 const struct record_violation *bad)
{
	char rule[64];

	report_place(plan, bad);
	if (bad->kind == BAD_PADDING) {
		fprintf(stderr,
			"  read:        0x%" PRIx64
			" in a byte that nobody writes\n"
			"  1 ms later:  0x%" PRIx64 "\n",
			bad->got, bad->again);
		return;
	}
	fprintf(stderr, "  discipline:  %s\n",
		plan_rule_text(plan, plan->item[bad->item].rule, rule,
			       sizeof(rule)));
	report_held(plan, bad);
	fprintf(stderr,
		"  read:        0x%" PRIx64 " (1 ms later: 0x%" PRIx64 ")\n"
		"  expected:    0x%" PRIx64
		", write %u, by rank %u thread %u\n",
		bad->got, bad->again, bad->want, bad->count,
		bad->writer / rec->threads, bad->writer % rec->threads);
	report_age(plan, bad);
}

void report_violation(const struct job *job, struct record *rec)
{
	const struct record_violation *bad = &rec->bad;
	struct plan *plan = plan_of(rec, bad->round);

	fprintf(stderr,
		"oracle: VIOLATION by rank %u thread %u in round %u epoch %u, %s %u",
		bad->rank, bad->thread, bad->round, bad->epoch,
		bad->verifying ? "verifying after burst" : "burst", bad->burst);
	if (bad->kind == BAD_VALUE)
		fprintf(stderr, ": item %u\n", bad->item);
	else
		fprintf(stderr, "%s%s\n", bad->text[0] ? ": " : "", bad->text);
	if (plan && (bad->kind == BAD_VALUE || bad->kind == BAD_PADDING))
		report_value(rec, plan, bad);
	if (plan && bad->kind != BAD_SETUP)
		report_transcript(rec, plan);
	report_replay(job, bad->round);
	plan_free(plan);
}
