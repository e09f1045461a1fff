/* SPDX-License-Identifier: MIT */
/* cond.c - conditions, JIAJIA's condition variables, self-scheduled loops. */
#include "api.h"

enum {
	ITEMS = 300,
	ROOM = 4
};

/* --- conditions ---------------------------------------------------------------------- */

/* A bounded queue in shared memory. */
struct queue {
	int nr, first, item[ROOM];
	int taken, sum; /* over all */
};

static volatile struct queue *queue(void)
{
	return (volatile struct queue *)(volatile void *)(shared + 5 * PAGE);
}

static const void *not_full(void)
{
	return (const void *)(long)&queue()->item[0];
}

static const void *not_empty(void)
{
	return (const void *)(long)&queue()->item[1];
}

static const void *lock_of_queue(void)
{
	return (const void *)(long)queue();
}

static void put(int item)
{
	volatile struct queue *q = queue();

	jia_lock_at(lock_of_queue());
	while (q->nr == ROOM)
		jia_cond_wait(not_full());
	q->item[(q->first + q->nr++) % ROOM] = item;
	jia_cond_signal(not_empty());
	jia_unlock_at(lock_of_queue());
}

/* False: all of @all have been taken. */
static int get(int all)
{
	volatile struct queue *q = queue();
	int got = 0;

	jia_lock_at(lock_of_queue());
	while (!q->nr && q->taken < all)
		jia_cond_wait(not_empty());
	if (q->nr) {
		q->sum += q->item[q->first];
		q->first = (q->first + 1) % ROOM;
		q->nr--;
		got = 1;
		if (++q->taken == all)
			jia_cond_broadcast(not_empty());
		jia_cond_signal(not_full());
	}
	jia_unlock_at(lock_of_queue());
	return got;
}

static void *produce_or_consume(void *arg)
{
	int producers = hostc; /* one of the threads of each rank */

	if (arg)
		while (get(producers * ITEMS))
			;
	else
		for (int i = 0; i < ITEMS; i++)
			put(i);
	return NULL;
}

static void producers_and_consumers_meet(void)
{
	with_threads(produce_or_consume);
	jia_barrier();
	CHECK(queue()->taken == hostc * ITEMS, "%d taken", queue()->taken);
	CHECK(queue()->sum == hostc * ITEMS * (ITEMS - 1) / 2, "sum %d",
	      queue()->sum);
}

/* A barrier made of a condition, under a numbered lock. */
static void broadcast_wakes_all(void)
{
	volatile int *come = page_int(8), *round = page_int(9);

	for (int i = 0; i < 50; i++) {
		jia_lock(3);
		if (++*come == hostc) {
			*come = 0;
			++*round;
			jia_cond_broadcast((const void *)(long)round);
		} else {
			while (*round == i)
				jia_cond_wait((const void *)(long)round);
		}
		CHECK(*round == i + 1 || *round == i + 2, "round %d of %d",
		      *round, i);
		jia_unlock(3);
	}
}

static void a_signal_without_waiters_is_nothing(void)
{
	static int cond;

	jia_cond_signal(&cond);
	jia_cond_broadcast(&cond);
	jia_lock_at(&cond); /* the same address may name both */
	jia_cond_signal(&cond);
	jia_unlock_at(&cond);
}

/* --- JIAJIA's condition variables ------------------------------------------------------- */

static void flags_let_writers_go_first(void)
{
	volatile int *value = page_int(12);

	for (int i = 1; i <= 40; i++) {
		int cv = i % 16;

		if (jia_pid == i % hostc) {
			jia_lock(2);
			*value = i;
			jia_unlock(2);
			jia_setcv(cv);
		}
		jia_waitcv(cv);
		jia_lock(2);
		CHECK(*value == i, "value %d in round %d", *value, i);
		jia_unlock(2);
		jia_wait();
		if (!jia_pid)
			jia_resetcv(cv);
		jia_wait();
	}
}

static void flags_stay_set_until_reset(void)
{
	if (!jia_pid) {
		jia_setcv(15);
		jia_setcv(15);
	}
	jia_waitcv(15);
	jia_waitcv(15);
	jia_wait();
	if (jia_pid == hostc - 1)
		jia_resetcv(15);
	jia_wait();
	if (jia_pid == hostc / 2)
		jia_setcv(15);
	jia_waitcv(15);
}

static void *wait_and_count(void *arg)
{
	jia_waitcv(1);
	return arg;
}

static void *set_or_wait(void *arg)
{
	if (!arg && !jia_pid)
		jia_setcv(1);
	return wait_and_count(arg);
}

static void threads_wait_for_a_flag(void)
{
	with_threads(set_or_wait);
}

static void new_flags_differ(void)
{
	int a = jia_newcv(), b = jia_newcv();

	CHECK(a == 0 && b == 1, "%d and %d", a, b);
}

/* --- self-scheduled loops ------------------------------------------------------------------ */

static void loops_give_each_number_once(void)
{
	volatile int *done = page_int(14);
	int a = jia_gsinit(), b = jia_gsinit(), i;

	CHECK(a != b, "two loops are one");
	for (int round = 1; round <= 3; round++) {
		while ((i = jia_getsub(a, 199, hostc)) >= 0) {
			jia_lock(1);
			done[i]++;
			jia_unlock(1);
		}
		for (i = 0; i < 200; i++)
			CHECK(done[i] == round, "%d came %d times", i, done[i]);
		CHECK(!done[200], "200 came, too");
		jia_barrier();
	}
	CHECK(jia_getsub(b, -1, hostc) == -1, "an empty loop has numbers");
}

#define ROW(name)           \
	{                   \
#name, name \
	}
const struct api_case cond_cases[] = {
	ROW(producers_and_consumers_meet),
	ROW(broadcast_wakes_all),
	ROW(a_signal_without_waiters_is_nothing),
	ROW(flags_let_writers_go_first),
	ROW(flags_stay_set_until_reset),
	ROW(threads_wait_for_a_flag),
	ROW(new_flags_differ),
	ROW(loops_give_each_number_once),
	{ NULL, NULL },
};
