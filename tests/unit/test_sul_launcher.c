/* SPDX-License-Identifier: MIT */
/* test_sul_launcher.c - who has started this process, as the environment has it. */
#include "sul_launcher.h"
#include "tests.h"

static const char *const variables[] = {
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"SLURM_PROCID",
	"SLURM_STEP_NUM_TASKS",
	"PMI_RANK",
	"PMI_SIZE",
};

static void forget_all(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

static bool found(const char *rank, const char *value, const char *ranks,
		  const char *values, struct sul_launcher *l)
{
	bool there;

	setenv(rank, value, 1);
	setenv(ranks, values, 1);
	there = sul_launcher_find(l);
	forget_all();
	return there;
}

static void find__nobody(void)
{
	struct sul_launcher l;

	forget_all();
	CU_ASSERT_FALSE(sul_launcher_find(&l));
	setenv("SLURM_PROCID", "0", 1); /* a batch script */
	CU_ASSERT_FALSE(sul_launcher_find(&l));
	forget_all();
}

static void find__each_of_them(void)
{
	struct sul_launcher l;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]);
	     i += 2) {
		REQUIRE(found(variables[i], "3", variables[i + 1], "4", &l));
		CU_ASSERT_EQUAL(l.rank, 3);
		CU_ASSERT_EQUAL(l.ranks, 4);
		CU_ASSERT(strlen(l.name) > 0 && strlen(l.remedy) > 0);
	}
}

static void find__mpirun_within_a_slurm_job(void)
{
	struct sul_launcher l;

	setenv("SLURM_PROCID", "0", 1);
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	REQUIRE(found("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2",
		      &l));
	ASSERT_TEXT(l.name, "mpirun");
	CU_ASSERT_EQUAL(l.ranks, 2);
}

static void find__nonsense_is_nobody(void)
{
	static const char *const bad[][2] = {
		{ "", "4" },   { "x", "4" },   { "1x", "4" },
		{ "-1", "4" }, { "4", "4" },   { "0", "" },
		{ "0", "0" },  { "0", "4.5" }, { "0", "99999999999" },
	};
	struct sul_launcher l;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(found("PMI_RANK", bad[i][0], "PMI_SIZE",
				      bad[i][1], &l));
}

CU_TestInfo test_sul_launcher[] = {
	{ "find__nobody", find__nobody },
	{ "find__each_of_them", find__each_of_them },
	{ "find__mpirun_within_a_slurm_job", find__mpirun_within_a_slurm_job },
	{ "find__nonsense_is_nobody", find__nonsense_is_nobody },
	CU_TEST_INFO_NULL,
};
