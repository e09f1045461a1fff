/* SPDX-License-Identifier: MIT */
/* test_jiarun_card.c - ranks of one block, seen in another. */
#include "jiarun_card.h"
#include "tests.h"

static struct sul_job *ours, *theirs;
static uint32_t told;
static struct jiarun_message m;

static void begin(void)
{
	REQUIRE(sul_job_create(&ours, 3) == 0 &&
		sul_job_create(&theirs, 3) == 0);
	sul_job_place(theirs, 1, 0, "nodeA");
	told = 0;
}

static void end(void)
{
	sul_job_close(ours);
	sul_job_close(theirs);
}

static struct sul_job_rank *rank_1(struct sul_job *job)
{
	return sul_job_rank(job, 1);
}

/* What a rank does to get into @state. */
static void reach(enum sul_rank_state state)
{
	struct sul_job_rank *r = rank_1(ours);

	snprintf(r->program, sizeof(r->program), "/bin/prog");
	atomic_store(&r->pid, 77);
	if (state >= SUL_RANK_READY) {
		memset(r->blob, 5, SUL_JOB_BLOB_MAX);
		atomic_store(&r->blob_len, SUL_JOB_BLOB_MAX);
		memset(r->address, 6, 20);
		r->address_len = 20;
	}
	atomic_store(&r->state, state);
}

static void nothing_new_is_not_told(void)
{
	begin();
	CU_ASSERT_FALSE(jiarun_card_make(ours, 1, &told, &m));
	reach(SUL_RANK_UP);
	CU_ASSERT_TRUE(jiarun_card_make(ours, 1, &told, &m));
	CU_ASSERT_EQUAL(told, SUL_RANK_UP);
	CU_ASSERT_FALSE(jiarun_card_make(ours, 1, &told, &m));
	end();
}

static void a_rank_looks_the_same_in_the_other_block(void)
{
	struct sul_job_rank *r;

	begin();
	for (enum sul_rank_state s = SUL_RANK_UP; s <= SUL_RANK_EXITED; s++) {
		reach(s);
		REQUIRE(jiarun_card_make(ours, 1, &told, &m));
		jiarun_card_take(theirs, &m.card);
		CU_ASSERT_EQUAL(rank_1(theirs)->state, s);
	}
	r = rank_1(theirs);
	CU_ASSERT_EQUAL(r->pid, 77);
	ASSERT_TEXT(r->program, "/bin/prog");
	ASSERT_TEXT(r->host_name, "nodeA");
	CU_ASSERT_EQUAL(r->blob_len, SUL_JOB_BLOB_MAX);
	CU_ASSERT(!memcmp(r->blob, rank_1(ours)->blob, SUL_JOB_BLOB_MAX));
	CU_ASSERT_EQUAL(r->address_len, 20);
	CU_ASSERT(!memcmp(r->address, rank_1(ours)->address, 20));
	CU_ASSERT_EQUAL(sul_job_rank(theirs, 0)->state, SUL_RANK_NONE);
	end();
}

static void a_rank_that_is_quick_is_told_of_in_one_card(void)
{
	begin();
	reach(SUL_RANK_EXITED);
	REQUIRE(jiarun_card_make(ours, 1, &told, &m));
	jiarun_card_take(theirs, &m.card);
	CU_ASSERT_EQUAL(rank_1(theirs)->state, SUL_RANK_EXITED);
	CU_ASSERT_EQUAL(rank_1(theirs)->blob_len, SUL_JOB_BLOB_MAX);
	end();
}

/* The block is memory of a process that may be broken. */
static void what_a_broken_rank_has_left_is_bounded(void)
{
	begin();
	reach(SUL_RANK_READY);
	memset(rank_1(ours)->program, 'x', SUL_JOB_PATH_MAX);
	rank_1(ours)->address_len = UINT32_MAX;
	atomic_store(&rank_1(ours)->blob_len, UINT32_MAX);
	atomic_store(&rank_1(ours)->pid, UINT32_MAX);
	REQUIRE(jiarun_card_make(ours, 1, &told, &m));
	CU_ASSERT_EQUAL(m.card.program.len, SUL_JOB_PATH_MAX - 1);
	CU_ASSERT_EQUAL(m.card.blob.len, SUL_JOB_BLOB_MAX);
	CU_ASSERT_EQUAL(m.card.address.len, SUL_JOB_ADDRESS_MAX);
	CU_ASSERT_EQUAL(m.card.pid, 0);
	atomic_store(&rank_1(ours)->state, 1000);
	CU_ASSERT_FALSE(jiarun_card_make(ours, 1, &told, &m));
	end();
}

CU_TestInfo test_jiarun_card[] = {
	{ "make__nothing_new_is_not_told", nothing_new_is_not_told },
	{ "take__a_rank_looks_the_same_in_the_other_block",
	  a_rank_looks_the_same_in_the_other_block },
	{ "make__a_rank_that_is_quick_is_told_of_in_one_card",
	  a_rank_that_is_quick_is_told_of_in_one_card },
	{ "make__what_a_broken_rank_has_left_is_bounded",
	  what_a_broken_rank_has_left_is_bounded },
	CU_TEST_INFO_NULL,
};
