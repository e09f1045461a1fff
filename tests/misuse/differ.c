/* SPDX-License-Identifier: MIT */
/* differ.c - collective calls that are not the same on all ranks. */
#include "misuse.h"

static int odd_one(void)
{
	return jia_pid == the_rank;
}

/* Not the last thing that a function does, or its place would be the caller's. */
static volatile int came_back;

/* The two calls that the message must name stand on lines marked with A (the
 * others') and B (the odd one's). */

static void other_size(void)
{
	if (odd_one())
		jia_malloc(PAGE); /* PLACE other_size B */
	else
		jia_malloc((size_t)2 * PAGE); /* PLACE other_size A */
	came_back++;
}

static void other_home(void)
{
	if (odd_one())
		jia_malloc_on(PAGE, PAGE, 1); /* PLACE other_home B */
	else
		jia_malloc_on(PAGE, PAGE, 0); /* PLACE other_home A */
	came_back++;
}

static void one_more_alloc(void)
{
	if (odd_one())
		jia_alloc(PAGE); /* PLACE one_more_alloc B */
	jia_barrier(); /* PLACE one_more_alloc A */
	came_back++;
}

static void barrier_against_wait(void)
{
	if (odd_one())
		jia_barrier(); /* PLACE barrier_against_wait B */
	else
		jia_wait(); /* PLACE barrier_against_wait A */
	came_back++;
}

static void exit_against_barrier(void)
{
	if (odd_one())
		jia_exit(); /* PLACE exit_against_barrier B */
	else
		jia_barrier(); /* PLACE exit_against_barrier A */
	came_back++;
}

static void free_of_another(void)
{
	void *a = jia_malloc(PAGE), *b = jia_malloc(PAGE);

	if (odd_one())
		jia_free(a); /* PLACE free_of_another B */
	else
		jia_free(b); /* PLACE free_of_another A */
	came_back++;
}

static void free_of_null(void)
{
	void *a = jia_malloc(PAGE);

	if (odd_one())
		jia_free(NULL); /* PLACE free_of_null B */
	else
		jia_free(a); /* PLACE free_of_null A */
	came_back++;
}

static void other_setting(void)
{
	if (odd_one())
		jia_set("keep", "3"); /* PLACE other_setting B */
	else
		jia_set("keep", "4"); /* PLACE other_setting A */
	came_back++;
}

static void set_by_one(void)
{
	if (odd_one())
		jia_config(HMIG, ON); /* PLACE set_by_one B */
	jia_barrier(); /* PLACE set_by_one A */
	came_back++;
}

static void one_more_barrier(void)
{
	if (odd_one())
		jia_barrier(); /* PLACE one_more_barrier B */
	jia_exit(); /* PLACE one_more_barrier A */
	exit(0);
}

#define ROW(name)                \
	{                        \
#name, name, ALL \
	}
const struct deed differ_deeds[] = {
	ROW(other_size),	   ROW(other_home),
	ROW(one_more_alloc),	   ROW(barrier_against_wait),
	ROW(exit_against_barrier), ROW(free_of_another),
	ROW(free_of_null),	   ROW(other_setting),
	ROW(set_by_one),	   ROW(one_more_barrier),
	{ NULL, NULL, ALL },
};
