/* SPDX-License-Identifier: MIT */
/* test_jiarun_plan.c - a job told to another host, and one told badly. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jiarun_plan.h"
#include "tests.h"

static struct jiarun_options options;
static struct jiarun_inherited inherited;
static struct sul_job *job;
static struct jiarun_plan made, taken;
static char why[JIARUN_WHY_MAX];
static char word_prog[] = "./prog", word_empty[] = "", word_blank[] = "a b";
static char *words[] = { word_prog, word_empty, word_blank, NULL };
static char export_name[] = "PLAN_EXPORTED";
static char *exports[] = { export_name };

/* Four ranks on three hosts: 0, 1, 1, 2. */
static void begin(void)
{
	char err[JIARUN_HOSTS_ERR_MAX];

	options = (struct jiarun_options){ .debug_rank = -1,
					   .silence_ms = 7000,
					   .stats = true,
					   .export = exports,
					   .exports = 1,
					   .argv = words };
	REQUIRE(jiarun_hosts_add(&options.hosts, "a,b:2,c", "a", err));
	options.ranks = jiarun_hosts_place(&options.hosts, 0, options.host_of,
					   SUL_RANKS_MAX, err);
	REQUIRE(options.ranks == 4 && sul_job_create(&job, 4) == 0);
	getrlimit(RLIMIT_NOFILE, &inherited.files);
	setenv("JIA_BLOCK", "8k", 1);
	setenv("PLAN_EXPORTED", "yes=no", 1);
	setenv("PLAN_NOT_EXPORTED", "1", 1);
	setenv(SUL_JOB_ENV, "1:0:1:200:1", 1);
	REQUIRE(jiarun_plan_make(&made, &options, &inherited, job) == 0);
	unsetenv("JIA_BLOCK");
	unsetenv("PLAN_EXPORTED");
	unsetenv("PLAN_NOT_EXPORTED");
	unsetenv(SUL_JOB_ENV);
}

static void end(void)
{
	jiarun_plan_free(&made);
	jiarun_plan_free(&taken);
	jiarun_hosts_free(&options.hosts);
	sul_job_close(job);
}

/* Tell @host all but message @left_out; what the last said. */
static int tell(int host, size_t left_out)
{
	struct jiarun_message m;
	int err = 0;

	for (size_t i = 0; !err && jiarun_plan_message(&made, host, i, &m); i++)
		if (i != left_out)
			err = jiarun_plan_take(&taken, &m, why);
	return err;
}

static bool has(const struct jiarun_strings *s, const char *text)
{
	for (size_t i = 0; i < s->nr; i++)
		if (strcmp(s->at[i], text) == 0)
			return true;
	return false;
}

static void what_is_told_is_what_is_taken(void)
{
	begin();
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), 0);
	CU_ASSERT_TRUE(taken.complete);
	CU_ASSERT_EQUAL(taken.ranks, 4);
	CU_ASSERT_EQUAL(taken.hosts, 3);
	CU_ASSERT_EQUAL(taken.host, 1);
	CU_ASSERT_EQUAL(taken.input_rank, 0);
	CU_ASSERT_EQUAL(taken.silence_ms, 7000);
	CU_ASSERT_TRUE(taken.stats);
	CU_ASSERT(!memcmp(taken.key, sul_job_key(job), sizeof(taken.key)));
	for (int r = 0; r < 4; r++)
		CU_ASSERT_EQUAL(jiarun_plan_host_of(&taken, r),
				options.host_of[r]);
	ASSERT_TEXT(taken.directory, made.directory);
	REQUIRE(taken.argument.nr == 3);
	for (size_t i = 0; i < 3; i++)
		ASSERT_TEXT(taken.argument.at[i], words[i]);
	CU_ASSERT_PTR_NULL(taken.argument.at[3]);
	ASSERT_TEXT(taken.name.at[2], "c");
	CU_ASSERT_EQUAL(taken.limit[RLIMIT_NOFILE], inherited.files.rlim_cur);
	end();
}

static void variables_of_the_job_and_those_asked_for_are_told(void)
{
	begin();
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), 0);
	CU_ASSERT_TRUE(has(&taken.variable, "JIA_BLOCK=8k"));
	CU_ASSERT_TRUE(has(&taken.variable, "PLAN_EXPORTED=yes=no"));
	CU_ASSERT_FALSE(has(&taken.variable, "PLAN_NOT_EXPORTED=1"));
	CU_ASSERT_FALSE(has(&taken.variable, SUL_JOB_ENV "=1:0:1:200:1"));
	end();
}

/* But for limits, variables and arguments: who can tell how many there are? */
static bool may_be_missing(const struct jiarun_message *m)
{
	return m->type == JIARUN_WIRE_limit ||
	       m->type == JIARUN_WIRE_variable ||
	       m->type == JIARUN_WIRE_argument;
}

static void a_part_that_is_missing_is_missed(void)
{
	struct jiarun_message m;

	begin();
	for (size_t i = 0; jiarun_plan_message(&made, 1, i, &m); i++) {
		int err = tell(1, i);

		CU_ASSERT_EQUAL(taken.complete, may_be_missing(&m));
		CU_ASSERT_EQUAL(err,
				may_be_missing(&m) || m.type == JIARUN_WIRE_go ?
					0 :
					-EPROTO);
		jiarun_plan_free(&taken);
	}
	end();
}

static void a_second_time_is_refused(void)
{
	static const enum jiarun_wire_type once[] = { JIARUN_WIRE_job,
						      JIARUN_WIRE_places,
						      JIARUN_WIRE_directory };
	struct jiarun_message m;

	begin();
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), 0);
	for (size_t i = 0; jiarun_plan_message(&made, 1, i, &m); i++)
		for (size_t k = 0; k < 3; k++)
			if (m.type == once[k])
				CU_ASSERT_EQUAL(jiarun_plan_take(&taken, &m,
								 why),
						-EPROTO);
	end();
}

static int take(struct jiarun_message m)
{
	return jiarun_plan_take(&taken, &m, why);
}

static void what_makes_no_sense_is_refused(void)
{
	struct jiarun_message m;

	begin();
	CU_ASSERT_EQUAL(
		take((struct jiarun_message){ .type = JIARUN_WIRE_directory }),
		-EPROTO);
	ASSERT_TEXT(why, "something else than a job");
	CU_ASSERT_EQUAL(tell(3, SIZE_MAX), -EPROTO); /* there is no such host */
	ASSERT_TEXT(why, "a job that makes no sense");
	jiarun_plan_message(&made, 1, 0, &m);
	CU_ASSERT_EQUAL(take(m), 0);
	CU_ASSERT_EQUAL(take((struct jiarun_message){
				.type = JIARUN_WIRE_places,
				.places = { { "\0\0\1\0\1\0\3\0", 8 } } }),
			-EPROTO);
	ASSERT_TEXT(why, "a rank on a host that is none");
	CU_ASSERT_EQUAL(take((struct jiarun_message){
				.type = JIARUN_WIRE_places,
				.places = { { "\0\0\1\0\1\0", 6 } } }),
			-EPROTO);
	CU_ASSERT_EQUAL(
		take((struct jiarun_message){ .type = JIARUN_WIRE_argument,
					      .argument = { { "a\0b", 3 } } }),
		-EPROTO);
	ASSERT_TEXT(why, "a string with a zero in it");
	CU_ASSERT_EQUAL(
		take((struct jiarun_message){ .type = JIARUN_WIRE_card }),
		-EPROTO);
	end();
}

static void a_host_without_a_rank_is_told_of_none(void)
{
	begin();
	memset(made.places, 0, sizeof(made.places));
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), -EPROTO);
	ASSERT_TEXT(why, "a job of which something is missing");
	end();
}

static void strings_without_end_are_refused(void)
{
	static char text[100000];
	struct jiarun_message m;
	int i = 0;

	begin();
	memset(text, 'x', sizeof(text));
	jiarun_plan_message(&made, 1, 0, &m);
	CU_ASSERT_EQUAL(take(m), 0);
	m = (struct jiarun_message){ .type = JIARUN_WIRE_variable };
	m.variable.text = (struct jiarun_bytes){ text, sizeof(text) };
	while (take(m) == 0 && i < 1000)
		i++;
	CU_ASSERT_EQUAL(i, (8 << 20) / 100001);
	end();
}

/* In a process of its own; 0: all was as it should be. */
static int applied(void)
{
	struct rlimit lim;
	char path[256];
	char *text = jiarun_plan_apply(&taken, &inherited);

	if (text || !getcwd(path, sizeof(path)) || strcmp(path, "/"))
		return 1;
	if (getenv("JIA_KEEP") || !getenv("PLAN_OTHER") ||
	    strcmp(getenv("JIA_BLOCK"), "8k") || strcmp(getenv("PWD"), "/"))
		return 2;
	if (getrlimit(RLIMIT_STACK, &lim) || lim.rlim_cur != 1 << 20)
		return 3;
	return inherited.files.rlim_cur == 77 ? 0 : 4;
}

static void a_process_becomes_what_the_plan_says(void)
{
	int status;

	begin();
	free(made.directory);
	made.directory = strdup("/");
	made.limit[RLIMIT_STACK] = 1 << 20;
	made.limit[RLIMIT_NOFILE] = 77;
	made.limit[RLIMIT_CORE] = UINT64_MAX; /* as far as it is allowed */
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), 0);
	setenv("JIA_KEEP", "1", 1);
	setenv("PLAN_OTHER", "1", 1);
	if (fork() == 0)
		_exit(applied());
	REQUIRE(wait(&status) > 0);
	CU_ASSERT_EQUAL(status, 0);
	unsetenv("JIA_KEEP");
	unsetenv("PLAN_OTHER");
	end();
}

static void a_directory_that_is_not_there_is_named(void)
{
	char *text;

	begin();
	free(made.directory);
	made.directory = strdup("/no/such");
	CU_ASSERT_EQUAL(tell(1, SIZE_MAX), 0);
	text = jiarun_plan_apply(&taken, &inherited);
	ASSERT_TEXT(text, "cannot go to the directory /no/such on b: No such "
			  "file or directory");
	free(text);
	end();
}

CU_TestInfo test_jiarun_plan[] = {
	{ "tell__what_is_told_is_what_is_taken",
	  what_is_told_is_what_is_taken },
	{ "tell__variables_of_the_job_and_those_asked_for",
	  variables_of_the_job_and_those_asked_for_are_told },
	{ "take__a_part_that_is_missing_is_missed",
	  a_part_that_is_missing_is_missed },
	{ "take__a_second_time_is_refused", a_second_time_is_refused },
	{ "take__what_makes_no_sense_is_refused",
	  what_makes_no_sense_is_refused },
	{ "take__a_host_without_a_rank",
	  a_host_without_a_rank_is_told_of_none },
	{ "take__strings_without_end_are_refused",
	  strings_without_end_are_refused },
	{ "apply__a_process_becomes_what_the_plan_says",
	  a_process_becomes_what_the_plan_says },
	{ "apply__a_directory_that_is_not_there_is_named",
	  a_directory_that_is_not_there_is_named },
	CU_TEST_INFO_NULL,
};
