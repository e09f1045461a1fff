/* SPDX-License-Identifier: MIT */
/*
 * test_dsm_config_source.c - files, environment, jiarun --set: what they set,
 * every refusal with its text, and who wins.
 */
#include <sys/stat.h>

#include "sul_job.h"
#include "test_dsm_config.h"

/* --- name=value ------------------------------------------------------------ */

static void a_pair_is_name_and_value(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(dsm_config_set_pair(&s, " tree = 8\t",
					    DSM_SOURCE_JIARUN, err),
			0);
	CU_ASSERT_EQUAL(s.value.tree, 8);
	ASSERT_REFUSED(s,
		       dsm_config_set_pair(&s, "tree", DSM_SOURCE_JIARUN, err),
		       -EINVAL, "--set 'tree' is not of the form name=value");
	ASSERT_REFUSED(s, dsm_config_set_pair(&s, "", DSM_SOURCE_JIARUN, err),
		       -EINVAL, "--set '' is not of the form name=value");
	ASSERT_REFUSED(s,
		       dsm_config_set_pair(&s, " =8", DSM_SOURCE_JIARUN, err),
		       -EINVAL, "--set ' =8' is not of the form name=value");
	ASSERT_REFUSED(
		s, dsm_config_set_pair(&s, "tree=8=9", DSM_SOURCE_JIARUN, err),
		-EINVAL,
		"--set tree='8=9': must be a number from 1 to 64 (children)");
}

/* --- files ----------------------------------------------------------------- */

/* "path" + @rest, for ASSERT_REFUSED. */
static const char *with_path(const char *rest)
{
	static char text[DSM_CONFIG_ERR_MAX];

	snprintf(text, sizeof(text), "%s%s", path, rest);
	return text;
}

static const char *file_error(const char *rest)
{
	static char text[DSM_CONFIG_ERR_MAX];

	snprintf(text, sizeof(text), "parameter file '%s': %s", path, rest);
	return text;
}

static void a_file_has_lines_comments_and_white_space(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	CU_ASSERT_EQUAL(read_text(&s, "# how we run it\n"
				      "\n"
				      "cache=2m\n"
				      "  tree =\t8   # wide\r\n"
				      "   \t\n"
				      "cache = 4m\n"
				      "update=never"),
			0);
	CU_ASSERT_EQUAL(s.value.cache, 4 << 20);
	CU_ASSERT_EQUAL(s.value.tree, 8);
	CU_ASSERT_EQUAL(s.value.update, DSM_UPDATE_NEVER);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_tree].source, DSM_SOURCE_FILE);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_tree].line, 4);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_cache].line, 6);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_update].line, 7);
	ASSERT_TEXT(s.origin[DSM_CONFIG_update].file, path);
	CU_ASSERT_EQUAL(read_text(&s, ""), 0);
	CU_ASSERT_EQUAL(read_text(&s, "\n\n"), 0);
	drop_folder();
}

static void an_error_in_a_file_has_its_line_and_sets_nothing(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	ASSERT_REFUSED(s, read_text(&s, "tree=8\n\ncahce=1g\n"), -ENOENT,
		       with_path(":3: 'cahce' is not a parameter; the nearest "
				 "is 'cache'" SEE));
	ASSERT_REFUSED(s, read_text(&s, "tree=8\nkeep=many\n"), -EINVAL,
		       with_path(":2: keep='many': must be a number from 0 to "
				 "1000000 (releases)"));
	ASSERT_REFUSED(s, read_text(&s, "tree 8"), -EINVAL,
		       with_path(":1: 'tree 8' is not of the form name=value"));
	ASSERT_REFUSED(s, read_text(&s, "tree=8\n=8"), -EINVAL,
		       with_path(":2: '=8' is not of the form name=value"));
	ASSERT_REFUSED(s, read_text(&s, "tree # = 8"), -EINVAL,
		       with_path(":1: 'tree' is not of the form name=value"));
	ASSERT_REFUSED(s, read_text(&s, "tree=\n"), -EINVAL,
		       with_path(":1: tree='': must be a number from 1 to 64 "
				 "(children)"));
	drop_folder();
}

static void zero_bytes_in_a_file_are_shown(void)
{
	static const char bytes[] = "tree=8\0\n";
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	write_file(bytes, sizeof(bytes) - 1);
	ASSERT_REFUSED(s, dsm_config_file(&s, path, err), -EINVAL,
		       with_path(":1: tree='8\\x00': must be a number from 1 "
				 "to 64 (children)"));
	drop_folder();
}

static void a_line_that_is_too_long_is_refused(void)
{
	static const char head[] = "tree=8\ntree=9";
	static char text[3 * DSM_CONFIG_LINE_MAX];
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	memset(text, ' ', sizeof(text));
	for (size_t i = 0; head[i]; i++)
		text[i] = head[i];
	text[7 + DSM_CONFIG_LINE_MAX] = '\n'; /* just fits */
	write_file(text, 8 + DSM_CONFIG_LINE_MAX);
	CU_ASSERT_EQUAL(dsm_config_file(&s, path, err), 0);
	CU_ASSERT_EQUAL(s.value.tree, 9);
	text[7 + DSM_CONFIG_LINE_MAX] = ' ';
	text[8 + DSM_CONFIG_LINE_MAX] = '\n';
	write_file(text, sizeof(text));
	ASSERT_REFUSED(s, dsm_config_file(&s, path, err), -EINVAL,
		       with_path(":2: line longer than 512 bytes"));
	drop_folder();
}

static void what_is_no_readable_file_is_refused(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	ASSERT_REFUSED(s, dsm_config_file(&s, path, err), -ENOENT,
		       file_error("cannot open: No such file or directory"));
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	ASSERT_REFUSED(s, dsm_config_file(&s, path, err), -EINVAL,
		       file_error("not a regular file"));
	CU_ASSERT_EQUAL(rmdir(path), 0);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	ASSERT_REFUSED(s, dsm_config_file(&s, path, err), -EINVAL,
		       file_error("not a regular file"));
	drop_folder();
	ASSERT_REFUSED(s, dsm_config_file(&s, "/dev/zero", err), -EINVAL,
		       "parameter file '/dev/zero': not a regular file");
	ASSERT_REFUSED(s, dsm_config_file(&s, "", err), -ENOENT,
		       "parameter file '': cannot open: No such file or "
		       "directory");
	/* A file that opens and then cannot be read. */
	ASSERT_REFUSED(s, dsm_config_file(&s, "/proc/self/mem", err), -EIO,
		       "parameter file '/proc/self/mem': cannot read: "
		       "Input/output error");
}

static void a_long_path_is_shown_by_its_end(void)
{
	struct dsm_settings s = defaults();
	char name[400];

	memset(name, 'd', sizeof(name));
	memcpy(name + sizeof(name) - 9, "/job.conf", 9);
	name[sizeof(name) - 10] = '\n';
	name[390] = '\n';
	memcpy(name, "/nowhere", 8);
	name[399] = 0;
	ASSERT_REFUSED(s, dsm_config_file(&s, name, err), -ENAMETOOLONG,
		       "parameter file '...ddddddddddddddddddddddddddddddddd"
		       "dddddddddddddddddddddd\\n/job.co...': cannot open: "
		       "File name too long");
}

/* --- environment ----------------------------------------------------------- */

#define ENV_OF(...) ((char *const[]){ __VA_ARGS__, NULL })
#define VAR(text) ((char[]){ text })

static void variables_set_parameters(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(
		dsm_config_env(&s,
			       ENV_OF(VAR("HOME=/"), VAR("JIA_CACHE=2m"),
				      VAR("JIA_SPIN_US=0"), VAR("JIAJIA=x"),
				      VAR("JIA_ODD"), VAR("jia_cache=9q")),
			       err),
		0);
	CU_ASSERT_EQUAL(s.value.cache, 2 << 20);
	CU_ASSERT_EQUAL(s.value.spin_us, 0);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_cache].source, DSM_SOURCE_ENV);
}

static void variables_that_are_no_parameters_are_left_alone(void)
{
	struct dsm_settings s = defaults();

#define ENV(name, doc)   \
	CU_ASSERT_EQUAL( \
		dsm_config_env(&s, ENV_OF(VAR("JIA_" #name "=x\n")), err), 0);
#include "dsm_env.def"
	struct dsm_settings untouched = defaults();
	CU_ASSERT(same_settings(&s, &untouched));
}

/* The launcher's name for it and the table's must not part. */
static void the_variable_of_the_job_is_no_parameter(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(
		dsm_config_env(&s, ENV_OF(VAR(SUL_JOB_ENV "=1:0:2:3:4")), err),
		0);
}

static void unknown_variables_are_refused_with_the_nearest(void)
{
	struct dsm_settings s = defaults();

	ASSERT_REFUSED(
		s,
		dsm_config_env(&s,
			       ENV_OF(VAR("JIA_TREE=8"), VAR("JIA_CAHCE=1g")),
			       err),
		-ENOENT,
		"unknown variable JIA_CAHCE in the environment; the "
		"nearest is JIA_CACHE" SEE);
	ASSERT_REFUSED(s, dsm_config_env(&s, ENV_OF(VAR("JIA_CONFG=x")), err),
		       -ENOENT,
		       "unknown variable JIA_CONFG in the environment; the "
		       "nearest is JIA_CONFIG" SEE);
	ASSERT_REFUSED(s, dsm_config_env(&s, ENV_OF(VAR("JIA_cache=1g")), err),
		       -ENOENT,
		       "unknown variable JIA_cache in the environment; the "
		       "nearest is JIA_CACHE" SEE);
	ASSERT_REFUSED(s,
		       dsm_config_env(&s, ENV_OF(VAR("JIA_\x1b[Tree=8")), err),
		       -ENOENT,
		       "unknown variable JIA_\\x1b[Tree in the environment; "
		       "the nearest is JIA_TREE" SEE);
	CU_ASSERT_EQUAL(dsm_config_env(&s, ENV_OF(VAR("JIA_=8")), err),
			-ENOENT);
}

static void a_bad_variable_is_refused_and_sets_nothing(void)
{
	struct dsm_settings s = defaults();

	ASSERT_REFUSED(s,
		       dsm_config_env(&s,
				      ENV_OF(VAR("JIA_TREE=8"),
					     VAR("JIA_POPULATE=3k")),
				      err),
		       -ERANGE,
		       "JIA_POPULATE='3k': must be a power of two from 4k to "
		       "2m (bytes, or with k, m, g or t)");
	ASSERT_REFUSED(s, dsm_config_env(&s, ENV_OF(VAR("JIA_TREE=")), err),
		       -EINVAL,
		       "JIA_TREE='': must be a number from 1 to 64 "
		       "(children)");
}

static void an_enormous_variable_is_refused(void)
{
	struct dsm_settings s = defaults();
	size_t len = 1 << 20;
	char *var = malloc(len + 1);

	REQUIRE(var);
	memset(var, 'X', len);
	var[len] = 0;
	memcpy(var, "JIA_", 4);
	var[len - 2] = '=';
	CU_ASSERT_EQUAL(dsm_config_env(&s, ENV_OF(var), err), -ENOENT);
	CU_ASSERT(!strncmp(err, "unknown variable JIA_XXXX", 25));
	CU_ASSERT(strlen(err) < 250);
	free(var);
}

/* --- jiarun --set, and who wins -------------------------------------------- */

static void lines_of_jiarun_are_set_all_or_none(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(dsm_config_set_lines(&s, "tree=8\n\ncache=2m\ntree=9",
					     DSM_SOURCE_JIARUN, err),
			0);
	CU_ASSERT_EQUAL(s.value.tree, 9);
	CU_ASSERT_EQUAL(s.value.cache, 2 << 20);
	CU_ASSERT_EQUAL(dsm_config_set_lines(&s, "", DSM_SOURCE_JIARUN, err),
			0);
	ASSERT_REFUSED(s,
		       dsm_config_set_lines(&s, "tree=3\ncache=2x\n",
					    DSM_SOURCE_JIARUN, err),
		       -EINVAL,
		       "--set cache='2x': must be a size from 64k to 160g "
		       "(bytes, or with k, m, g or t)");
	ASSERT_REFUSED(s,
		       dsm_config_set_lines(&s, "tree=3\n#x=1",
					    DSM_SOURCE_JIARUN, err),
		       -ENOENT,
		       "--set '#x' is not a parameter; the nearest is "
		       "'log'" SEE);
}

static void the_stronger_source_wins(void)
{
	struct dsm_settings s = defaults();
	char config[128];

	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	write_file("tree=2\nkeep=2\nlog=64\n", 21);
	snprintf(config, sizeof(config), "JIA_CONFIG=%s", path);
	CU_ASSERT_EQUAL(dsm_config_load(&s,
					ENV_OF(VAR("JIA_SET=tree=4"),
					       VAR("JIA_TREE=3"),
					       VAR("JIA_KEEP=3"), config),
					err),
			0);
	CU_ASSERT_EQUAL(s.value.log, 64);
	CU_ASSERT_EQUAL(s.value.keep, 3);
	CU_ASSERT_EQUAL(s.value.tree, 4);
	CU_ASSERT_EQUAL(s.value.spin_us, 40);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_log].source, DSM_SOURCE_FILE);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_keep].source, DSM_SOURCE_ENV);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_tree].source, DSM_SOURCE_JIARUN);
	CU_ASSERT_EQUAL(dsm_config_change(&s, "keep", "5", err), 0);
	CU_ASSERT_EQUAL(s.value.keep, 5);
	drop_folder();
}

static void loading_refuses_what_any_source_or_the_check_refuses(void)
{
	struct dsm_settings s = defaults();

	ASSERT_REFUSED(
		s,
		dsm_config_load(&s, ENV_OF(VAR("JIA_CONFIG=/dev/null")), err),
		-EINVAL, "parameter file '/dev/null': not a regular file");
	ASSERT_REFUSED(s, dsm_config_load(&s, ENV_OF(VAR("JIA_TRE=1")), err),
		       -ENOENT,
		       "unknown variable JIA_TRE in the environment; the "
		       "nearest is JIA_TREE" SEE);
	ASSERT_REFUSED(s, dsm_config_load(&s, ENV_OF(VAR("JIA_SET=tree")), err),
		       -EINVAL, "--set 'tree' is not of the form name=value");
	ASSERT_REFUSED(s,
		       dsm_config_load(&s,
				       ENV_OF(VAR("JIA_REGION=1m"),
					      VAR("JIA_SET=block=2m")),
				       err),
		       -ERANGE,
		       "block=2m (jiarun --set) must not be larger than "
		       "region=1m (environment)");
	CU_ASSERT_EQUAL(dsm_config_load(&s, (char *const[]){ NULL }, err), 0);
}

CU_TestInfo test_dsm_config_source[] = {
	{ "a pair is name and value", a_pair_is_name_and_value },
	{ "a file has lines, comments and white space",
	  a_file_has_lines_comments_and_white_space },
	{ "an error in a file has its line and sets nothing",
	  an_error_in_a_file_has_its_line_and_sets_nothing },
	{ "zero bytes in a file are shown", zero_bytes_in_a_file_are_shown },
	{ "a line that is too long is refused",
	  a_line_that_is_too_long_is_refused },
	{ "what is no readable file is refused",
	  what_is_no_readable_file_is_refused },
	{ "a long path is shown by its end", a_long_path_is_shown_by_its_end },
	{ "variables set parameters", variables_set_parameters },
	{ "variables that are no parameters are left alone",
	  variables_that_are_no_parameters_are_left_alone },
	{ "the variable of the job is no parameter",
	  the_variable_of_the_job_is_no_parameter },
	{ "unknown variables are refused with the nearest",
	  unknown_variables_are_refused_with_the_nearest },
	{ "a bad variable is refused and sets nothing",
	  a_bad_variable_is_refused_and_sets_nothing },
	{ "an enormous variable is refused", an_enormous_variable_is_refused },
	{ "lines of jiarun are set all or none",
	  lines_of_jiarun_are_set_all_or_none },
	{ "the stronger source wins", the_stronger_source_wins },
	{ "loading refuses what any source or the check refuses",
	  loading_refuses_what_any_source_or_the_check_refuses },
	CU_TEST_INFO_NULL,
};
