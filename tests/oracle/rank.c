/* SPDX-License-Identifier: MIT */
/*
 * rank.c - see rank.h.
 *
 * Role: one process of the job.  Rounds follow each other: memory is allocated
 *   anew, threads are started, work, and end, memory is freed; so the states
 *   that a page passes through only once in its life are met often.
 * Threads: the main thread is thread 0 of the rank; the others live for a
 *   round.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JIA_NO_MACROS
#include "jia.h"
#include "plan.h"
#include "rank.h"
#include "record.h"
#include "worker.h"

void plan_alloc(struct plan *p)
{
	for (unsigned int i = 0; i < p->nareas; i++) {
		struct area *a = &p->area[i];

		switch (a->kind) {
		case AREA_SHARES:
			a->base = jia_malloc(a->bytes);
			break;
		case AREA_OLD_CALL:
			a->base = (unsigned char *)jia_alloc3(
				(int)a->bytes, (int)a->block, a->home);
			break;
		default:
			a->base = jia_malloc_on(a->bytes, a->block, a->home);
		}
	}
}

void plan_release(struct plan *p)
{
	for (unsigned int i = 0; i < p->nareas; i++)
		jia_free(p->area[i].base);
}

/* --vary: what jia_set() may change while the job runs. */
static void vary(const struct plan *p)
{
	static const char *const update[] = { "never", "always", "adaptive" };
	static const char *const keep[] = { "0", "1", "8", "1000000" };
	static const char *const block[] = { "4k", "4k", "8k", "64k" };
	struct rng r = rng_at(p->seed, p->round, 0, 1);

	jia_set("update", update[rng_below(&r, 3)]);
	jia_set("keep", keep[rng_below(&r, 4)]);
	jia_set("migrate", rng_percent(&r, 50) ? "yes" : "no");
	jia_set("watch", rng_percent(&r, 50) ? "0" : "1");
	jia_set("prefetch", rng_percent(&r, 50) ? "0" : "16");
	jia_set("history", rng_percent(&r, 50) ? "0" : "64");
	jia_set("predict", rng_percent(&r, 50) ? "no" : "yes");
	jia_set("block", block[rng_below(&r, 4)]);
}

struct work {
	pthread_t thread;
	struct worker worker;
	const struct plan *plan;
};

static void *work_main(void *arg)
{
	struct work *work = arg;

	worker_run(&work->worker, work->plan);
	return NULL;
}

static void work_all(struct work *work, unsigned int threads)
{
	if (threads > 1)
		jia_threads((int)threads);
	for (unsigned int t = 1; t < threads; t++)
		if (pthread_create(&work[t].thread, NULL, work_main, &work[t]))
			worker_refuse(&work[0].worker, BAD_SETUP,
				      "no thread %u", t);
	work_main(&work[0]);
	for (unsigned int t = 1; t < threads; t++)
		pthread_join(work[t].thread, NULL);
	if (threads > 1)
		jia_threads(1);
}

static void set_worker(struct worker *w, struct record *rec, unsigned int t)
{
	memset(w, 0, sizeof(*w));
	w->rec = rec;
	w->rank = (uint32_t)jia_pid;
	w->thread = t;
	w->id = w->rank * rec->threads + t;
	w->me = &rec->thread[w->id];
	w->ops = atomic_load(&w->me->ops);
}

/* Whether there is another round; the record is then ready for it. */
static bool next_round(struct worker *w, uint32_t round, unsigned int nlocks)
{
	if (w->rank == 0) {
		if (record_ops(w->rec) >= w->rec->ops)
			atomic_store(&w->rec->stop, 1);
		record_reset(w->rec, round, nlocks);
	}
	worker_barrier(w, true);
	return !atomic_load(&w->rec->stop);
}

static void run_round(struct record *rec, struct worker *first,
		      struct plan *plan)
{
	struct work *work = calloc(rec->threads, sizeof(*work));

	if (!work)
		worker_refuse(first, BAD_SETUP, "no memory");
	record_event(first->me, EV_ALLOC, plan->round, 0);
	if (rec->vary)
		vary(plan);
	if (plan->wait_first)
		jia_wait();
	plan_alloc(plan);
	if (plan->barrier_after_alloc)
		worker_barrier(first, true);
	for (unsigned int t = 0; t < rec->threads; t++) {
		set_worker(&work[t].worker, rec, t);
		work[t].plan = plan;
	}
	atomic_store(&first->me->ops, first->ops);
	set_worker(&work[0].worker, rec, 0);
	/* The barriers that only first threads met count for all. */
	for (unsigned int t = 1; t < rec->threads; t++)
		atomic_store(&work[t].worker.me->entered,
			     atomic_load(&first->me->entered));
	work_all(work, rec->threads);
	set_worker(first, rec, 0);
	free(work);
	record_event(first->me, EV_FREE, plan->round, 0);
	plan_release(plan);
}

int rank_main(int argc, char **argv, const char *record)
{
	struct record *rec;
	struct worker w;
	bool more = true;
	int fd = open(record, O_RDWR | O_CLOEXEC);

	if (fd < 0 || record_attach(&rec, fd)) {
		fprintf(stderr, "oracle: %s is no record\n", record);
		return 2;
	}
	jia_init(argc, argv);
	set_worker(&w, rec, 0);
	if (hostc != (int)rec->ranks || w.rank >= rec->ranks)
		worker_refuse(&w, BAD_SETUP, "rank %d of %d, not of %u",
			      jia_pid, hostc, rec->ranks);
	for (uint32_t round = rec->first_round; more; round++) {
		struct plan *plan = plan_make(rec->seed, round, rec->ranks,
					      rec->threads, rec->pages,
					      rec->release);

		if (!plan)
			worker_refuse(&w, BAD_SETUP, "no memory");
		more = next_round(&w, round, plan->nlocks);
		if (more)
			run_round(rec, &w, plan);
		plan_free(plan);
	}
	record_event(w.me, EV_EXIT, 0, 0);
	jia_exit();
	record_close(rec, fd);
	return 0;
}
