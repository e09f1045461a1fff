/* SPDX-License-Identifier: MIT */
/* fault.c - what a page fault brings along. */
#include "api.h"

enum {
	CHUNK = 16, /* pages of the default of `populate` */
	CHUNKS = 200
};

/* CHUNKS chunks at home on the last rank, which has written to each page. */
static unsigned char *begin(void)
{
	size_t bytes = (size_t)(CHUNKS + 1) * CHUNK * PAGE;
	size_t align = (size_t)CHUNK * PAGE;
	unsigned char *p = jia_malloc_on(bytes, bytes, hostc - 1);

	p += (align - (uintptr_t)p % align) % align;
	for (size_t i = 0; i < (size_t)CHUNKS * CHUNK && jia_pid == hostc - 1;
	     i++)
		p[i * PAGE] = (unsigned char)(i % 251 + 1);
	jia_barrier();
	return p;
}

static void look(const unsigned char *p, int chunk, int page)
{
	size_t i = (size_t)chunk * CHUNK + (size_t)page;
	int got = ((const volatile unsigned char *)p)[i * PAGE];

	CHECK(got == (int)(i % 251 + 1), "page %zu is %d", i, got);
}

/* Chunks in no order that could be foreseen, each once. */
static int nth(int i)
{
	return i * 77 % CHUNKS;
}

static unsigned long ahead(void)
{
	return jia_counter("ahead");
}

static void a_page_used_alone_brings_no_other(void)
{
	unsigned char *p = begin();
	unsigned long before = ahead();

	for (int i = 0; i < CHUNKS; i++)
		look(p, nth(i), i % CHUNK);
	CHECK(ahead() == before, "%lu pages made ready", ahead() - before);
}

static void the_second_page_of_a_chunk_makes_the_rest_ready(void)
{
	unsigned char *p = begin();
	unsigned long before = ahead(), faults;

	look(p, 3, 5);
	CHECK(ahead() == before, "%lu with the first", ahead() - before);
	look(p, 3, 11);
	if (jia_pid != hostc - 1)
		CHECK(ahead() == before + CHUNK - 2, "%lu with the second",
		      ahead() - before);
	faults = jia_counter("segv_remote");
	for (int page = 0; page < CHUNK; page++)
		look(p, 3, page * 7 % CHUNK);
	/* They are ready, not fetched. */
	if (jia_pid != hostc - 1)
		CHECK(jia_counter("segv_remote") > faults, "no fault");
	CHECK(jia_pid == hostc - 1 || ahead() == before + CHUNK - 2,
	      "more ready later");
}

static void what_is_made_ready_in_vain_has_a_limit(void)
{
	unsigned char *p = begin();
	unsigned long before = ahead();

	for (int i = 0; i < CHUNKS; i++) {
		look(p, nth(i), 2);
		look(p, nth(i), 9);
	}
	CHECK(ahead() - before < 300, "%lu of %d", ahead() - before,
	      CHUNKS * (CHUNK - 2));
	/* ... which rises when they turn out to be of use */
	before = ahead();
	for (int i = 0; i < CHUNKS; i++)
		for (int page = 3; page < CHUNK - 1; page += 2)
			look(p, nth(i), page);
	CHECK(jia_pid == hostc - 1 || ahead() > before, "no more later");
}

static void pages_freed_while_ready_are_new_afterwards(void)
{
	for (int round = 0; round < 3; round++) {
		unsigned char *p = begin();
		volatile unsigned char *q;

		look(p, 0, 1);
		look(p, 0, 9);
		jia_free(p);
		q = jia_malloc_on((size_t)CHUNK * PAGE, PAGE, 0);
		for (int i = 0; i < CHUNK; i++)
			CHECK(!q[(size_t)i * PAGE], "old contents");
		jia_free((void *)(uintptr_t)q);
	}
}

enum {
	USED = 64, /* pages read in each epoch */
	EPOCHS = 24
};

/* The last rank writes, the others read, out of order; faults in all. */
static unsigned long faults_of_epochs(unsigned char *p)
{
	unsigned long before = jia_counter("segv_remote");

	for (int e = 1; e <= EPOCHS; e++) {
		if (jia_pid == hostc - 1)
			for (size_t i = 0; i < USED; i++)
				p[i * PAGE] = (unsigned char)(e + (int)i);
		jia_barrier();
		for (size_t i = 0; i < USED && jia_pid != hostc - 1; i++) {
			size_t k = i * 25 % USED;
			volatile unsigned char *q = p + k * PAGE;

			CHECK(*q == (unsigned char)(e + (int)k),
			      "epoch %d page %zu is %d", e, k, *q);
		}
		jia_barrier();
	}
	return jia_counter("segv_remote") - before;
}

static void what_is_used_in_each_epoch_is_fetched_together(void)
{
	unsigned char *p = jia_malloc_on(USED * PAGE, USED * PAGE, hostc - 1);
	unsigned long with, without;

	jia_set("update", "never");
	jia_set("prefetch", "0");
	jia_set("history", "0");
	without = faults_of_epochs(p);
	jia_set("history", "64");
	with = faults_of_epochs(p);
	if (jia_pid == hostc - 1 || !without) /* or --nodes=1 */
		return;
	CHECK(without == USED * EPOCHS, "%lu faults without", without);
	/* What the papers have: 65 to 79 % avoided. */
	CHECK(with < without * 35 / 100, "%lu faults of %lu", with, without);
	CHECK(jia_counter("recalled") == without - with, "%lu recalled",
	      jia_counter("recalled"));
}

/* What one epoch uses is not fetched in another. */
static void what_is_used_in_turns_is_not_fetched_in_vain(void)
{
	unsigned char *p = jia_malloc_on(USED * PAGE, USED * PAGE, hostc - 1);
	unsigned long before;
	volatile unsigned char *q = p;

	jia_set("update", "never");
	jia_set("prefetch", "0");
	before = jia_counter("getp");
	for (int e = 0; e < EPOCHS; e++) {
		if (jia_pid == hostc - 1)
			for (size_t i = 0; i < USED; i++)
				p[i * PAGE]++;
		jia_barrier();
		for (size_t i = 0; i < 8 && jia_pid != hostc - 1; i++)
			CHECK(q[(i * 8 + (size_t)e % 8) * PAGE] == e + 1,
			      "epoch %d page %zu", e, i);
		jia_barrier();
	}
	if (jia_pid != hostc - 1)
		CHECK(jia_counter("getp") - before <= 8 * EPOCHS, "%lu fetched",
		      jia_counter("getp") - before);
}

const struct api_case fault_cases[] = {
	{ "a_page_used_alone_brings_no_other",
	  a_page_used_alone_brings_no_other },
	{ "the_second_page_of_a_chunk_makes_the_rest_ready",
	  the_second_page_of_a_chunk_makes_the_rest_ready },
	{ "what_is_made_ready_in_vain_has_a_limit",
	  what_is_made_ready_in_vain_has_a_limit },
	{ "pages_freed_while_ready_are_new_afterwards",
	  pages_freed_while_ready_are_new_afterwards },
	{ "what_is_used_in_each_epoch_is_fetched_together",
	  what_is_used_in_each_epoch_is_fetched_together },
	{ "what_is_used_in_turns_is_not_fetched_in_vain",
	  what_is_used_in_turns_is_not_fetched_in_vain },
	{ NULL, NULL },
};
