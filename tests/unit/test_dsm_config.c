/* SPDX-License-Identifier: MIT */
/*
 * test_dsm_config.c - one parameter's value, every refusal with its text;
 * whether all fit; whether ranks agree.
 */
#include "test_dsm_config.h"

/* --- values ---------------------------------------------------------------- */

static void the_defaults_are_those_of_the_table_and_fit(void)
{
	struct dsm_settings s = defaults();

#define CFG(type, name, when, dflt, min, max, words, doc) \
	CU_ASSERT_EQUAL(s.value.name, dflt);              \
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_##name].source, DSM_SOURCE_DEFAULT);
#include "dsm_config.def"
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
	CU_ASSERT(!s.running);
}

static void number(char buf[32], uint64_t v)
{
	snprintf(buf, 32, "%llu", (unsigned long long)v);
}

enum type {
	U32,
	BYTES,
	POW2,
	BOOL,
	ENUM,
	TEXT
};
enum when {
	START,
	HOST,
	ANY
};

/* The table once more, so that the rows are walked and not unrolled. */
static const struct {
	const char *name;
	enum type type;
	enum when when;
	uint64_t min, max;
} rows[DSM_CONFIG_NR] = {
#define CFG(type, name, when, dflt, min, max, words, doc) \
	{ #name, type, when, min, max },
#include "dsm_config.def"
};

static uint64_t value_of(const struct dsm_settings *s, size_t row)
{
	uint64_t v;

	memcpy(&v, (const char *)&s->value + row * sizeof(v), sizeof(v));
	return v;
}

static void check_ends(size_t i)
{
	int beyond = rows[i].type == BOOL ? -EINVAL : -ERANGE;
	struct dsm_settings s = defaults();
	char buf[32];

	number(buf, rows[i].min);
	CU_ASSERT_EQUAL(set(&s, rows[i].name, buf), 0);
	CU_ASSERT_EQUAL(value_of(&s, i), rows[i].min);
	number(buf, rows[i].max);
	CU_ASSERT_EQUAL(set(&s, rows[i].name, buf), 0);
	CU_ASSERT_EQUAL(value_of(&s, i), rows[i].max);
	number(buf, rows[i].max + 1);
	CU_ASSERT_EQUAL(set(&s, rows[i].name, buf), beyond);
	number(buf, rows[i].min - 1); /* of 0: 2^64-1 */
	CU_ASSERT_EQUAL(set(&s, rows[i].name, buf), beyond);
	CU_ASSERT_EQUAL(value_of(&s, i), rows[i].max);
}

static void both_ends_of_every_range_are_taken_and_no_more(void)
{
	for (size_t i = 0; i < DSM_CONFIG_NR; i++)
		if (rows[i].type != ENUM && rows[i].type != TEXT)
			check_ends(i);
}

static void a_text_is_taken_as_it_is_and_its_length_is_the_value(void)
{
	struct dsm_settings s = defaults();
	char longest[DSM_CONFIG_TEXT_MAX + 2];

	CU_ASSERT_EQUAL(set(&s, "links", "eth0,192.0.2.0/24,fe80::1"), 0);
	ASSERT_TEXT(s.value.links_text, "eth0,192.0.2.0/24,fe80::1");
	CU_ASSERT_EQUAL(s.value.links, 25);
	CU_ASSERT_EQUAL(set(&s, "links", "lo"), 0);
	ASSERT_TEXT(s.value.links_text, "lo");
	CU_ASSERT_EQUAL(s.value.links_text[3], 0); /* nothing is left over */
	CU_ASSERT_EQUAL(set(&s, "links", ""), 0);
	ASSERT_TEXT(s.value.links_text, "");
	memset(longest, 'x', sizeof(longest));
	longest[DSM_CONFIG_TEXT_MAX + 1] = 0;
	CU_ASSERT_EQUAL(set(&s, "links", longest), -ERANGE);
	longest[DSM_CONFIG_TEXT_MAX] = 0;
	CU_ASSERT_EQUAL(set(&s, "links", longest), 0);
	ASSERT_TEXT(s.value.links_text, longest);
}

static void sizes_take_a_unit_in_either_case(void)
{
	static const struct {
		const char *text;
		uint64_t v;
	} cases[] = {
		{ "65536", 65536 },	  { "64k", 65536 },
		{ "64K", 65536 },	  { "16m", 16 << 20 },
		{ "16M", 16 << 20 },	  { "2g", 2ull << 30 },
		{ "2G", 2ull << 30 },	  { "0000065536", 65536 },
		{ "160g", 160ull << 30 },
	};
	struct dsm_settings s = defaults();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_EQUAL(set(&s, "cache", cases[i].text), 0);
		CU_ASSERT_EQUAL(s.value.cache, cases[i].v);
	}
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_cache].source, DSM_SOURCE_JIARUN);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_region].source, DSM_SOURCE_DEFAULT);
}

static void yes_and_no_have_three_forms_each(void)
{
	static const char *const yes[] = { "yes", "on", "1", "YES", "On" };
	static const char *const no[] = { "no", "off", "0", "No", "OFF" };
	struct dsm_settings s = defaults();

	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(set(&s, "migrate", yes[i]), 0);
		CU_ASSERT_EQUAL(s.value.migrate, 1);
		CU_ASSERT_EQUAL(set(&s, "migrate", no[i]), 0);
		CU_ASSERT_EQUAL(s.value.migrate, 0);
	}
}

static void choices_are_taken_by_their_word(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(set(&s, "update", "never"), 0);
	CU_ASSERT_EQUAL(s.value.update, DSM_UPDATE_NEVER);
	CU_ASSERT_EQUAL(set(&s, "update", "always"), 0);
	CU_ASSERT_EQUAL(s.value.update, DSM_UPDATE_ALWAYS);
	CU_ASSERT_EQUAL(set(&s, "update", "Adaptive"), 0);
	CU_ASSERT_EQUAL(s.value.update, DSM_UPDATE_ADAPTIVE);
	CU_ASSERT_EQUAL(set(&s, "consistency", "release"), 0);
	CU_ASSERT_EQUAL(s.value.consistency, DSM_CONSISTENCY_RELEASE);
	CU_ASSERT_EQUAL(set(&s, "consistency", "scope"), 0);
	CU_ASSERT_EQUAL(s.value.consistency, DSM_CONSISTENCY_SCOPE);
}

static void an_unknown_name_is_refused_with_the_nearest(void)
{
	struct dsm_settings s = defaults();

	ASSERT_REFUSED(s, set(&s, "cahce", "1g"), -ENOENT,
		       "--set 'cahce' is not a parameter; the nearest is "
		       "'cache'" SEE);
	ASSERT_REFUSED(s, set(&s, "Region", "1g"), -ENOENT,
		       "--set 'Region' is not a parameter; the nearest is "
		       "'region'" SEE);
	ASSERT_REFUSED(s, set(&s, "spinus", "1"), -ENOENT,
		       "--set 'spinus' is not a parameter; the nearest is "
		       "'spin_us'" SEE);
	CU_ASSERT_EQUAL(set(&s, "", "1"), -ENOENT);
}

/* Every kind of row, every kind of nonsense; the code and what is allowed. */
#define NUMBER "': must be a number from 0 to 1000000 (releases)"
#define SIZE "': must be a size from 64k to 160g (bytes, or with k, m, g or t)"
#define POWER \
	"': must be a power of two from 4k to 2m (bytes, or with k, m, g or t)"
#define YESNO "': must be yes or no (or on, off, 1, 0)"
#define CHOICE "': must be one of never, always, adaptive"
#define NAMES                                                                      \
	"': must be interfaces, addresses or prefixes, with commas between them; " \
	"at most 120 characters, and neither blanks nor #"
static const struct {
	const char *name, *value;
	int code;
	const char *rest;
} bad_values[] = {
	{ "keep", "", -EINVAL, NUMBER },
	{ "keep", "-1", -EINVAL, NUMBER },
	{ "keep", "+1", -EINVAL, NUMBER },
	{ "keep", " 1", -EINVAL, NUMBER },
	{ "keep", "1 ", -EINVAL, NUMBER },
	{ "keep", "0x10", -EINVAL, NUMBER },
	{ "keep", "1k", -EINVAL, NUMBER },
	{ "keep", "1.5", -EINVAL, NUMBER },
	{ "keep", "1000001", -ERANGE, NUMBER },
	{ "keep", "18446744073709551616", -ERANGE, NUMBER },
	{ "keep", "99999999999999999999999", -ERANGE, NUMBER },
	{ "cache", "", -EINVAL, SIZE },
	{ "cache", "g", -EINVAL, SIZE },
	{ "cache", "1q", -EINVAL, SIZE },
	{ "cache", "1kk", -EINVAL, SIZE },
	{ "cache", "1kb", -EINVAL, SIZE },
	{ "cache", "-1g", -EINVAL, SIZE },
	{ "cache", "1 g", -EINVAL, SIZE },
	{ "cache", "65535", -ERANGE, SIZE },
	{ "cache", "161g", -ERANGE, SIZE },
	/* Beyond 2^64, and in the range if the rest is taken. */
	{ "cache", "17179869185g", -ERANGE, SIZE },
	{ "cache", "18014398509482048k", -ERANGE, SIZE },
	{ "cache", "18446744073709551615t", -ERANGE, SIZE },
	{ "block", "5000", -ERANGE, POWER },
	{ "block", "12k", -ERANGE, POWER },
	{ "block", "2k", -ERANGE, POWER },
	{ "block", "4m", -ERANGE, POWER },
	{ "block", "0", -ERANGE, POWER },
	{ "populate", "96k", -ERANGE, POWER },
	{ "migrate", "", -EINVAL, YESNO },
	{ "migrate", "2", -EINVAL, YESNO },
	{ "migrate", "true", -EINVAL, YESNO },
	{ "migrate", "y", -EINVAL, YESNO },
	{ "migrate", "no|yes", -EINVAL, YESNO },
	{ "update", "", -EINVAL, CHOICE },
	{ "update", "1", -EINVAL, CHOICE },
	{ "update", "alwayss", -EINVAL, CHOICE },
	{ "update", "always|never", -EINVAL, CHOICE },
	{ "carrier", "tcp", -EINVAL, "': must be one of auto, shm, udp, kmod" },
	{ "auth", "none", -EINVAL, "': must be one of mac, off, aead" },
	{ "silence", "0", -ERANGE,
	  "': must be a number from 1 to 3600 (seconds)" },
	{ "links", "eth0 eth1", -EINVAL, NAMES },
	{ "links", "eth0#", -EINVAL, NAMES },
};

static void a_bad_value_is_refused_with_what_is_allowed(void)
{
	struct dsm_settings s = defaults();

	for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]);
	     i++) {
		char text[DSM_CONFIG_ERR_MAX];

		snprintf(text, sizeof(text), "--set %s='%s%s",
			 bad_values[i].name, bad_values[i].value,
			 bad_values[i].rest);
		ASSERT_REFUSED(s,
			       set(&s, bad_values[i].name, bad_values[i].value),
			       bad_values[i].code, text);
	}
}

static void a_hostile_value_is_shown_escaped_and_cut(void)
{
	struct dsm_settings s = defaults();
	size_t len = 1 << 20;
	char *value = malloc(len + 1);

	ASSERT_REFUSED(s, set(&s, "migrate", "\x1b[2J\n\xff'"), -EINVAL,
		       "--set migrate='\\x1b[2J\\n\\xff'': must be yes or no "
		       "(or on, off, 1, 0)");
	REQUIRE(value);
	memset(value, '9', len);
	value[len] = 0;
	ASSERT_REFUSED(s, set(&s, "keep", value), -ERANGE,
		       "--set keep='99999999999999999999999999999999"
		       "99999999999999999999999999999999...': must be a "
		       "number from 0 to 1000000 (releases)");
	memset(value, '\x01', len);
	CU_ASSERT_EQUAL(set(&s, value, value), -ENOENT);
	CU_ASSERT(strlen(err) < 200);
	free(value);
}

/* What a source says before its error. */
static void an_error_names_where_the_value_was(void)
{
	struct dsm_settings s = defaults();

	ASSERT_REFUSED(
		s, dsm_config_set(&s, "tree", "x", DSM_SOURCE_ENV, err),
		-EINVAL,
		"JIA_TREE='x': must be a number from 1 to 64 (children)");
	ASSERT_REFUSED(s, dsm_config_set(&s, "tree", "x", DSM_SOURCE_CALL, err),
		       -EINVAL,
		       "tree='x': must be a number from 1 to 64 (children)");
}

/* --- while the job runs ---------------------------------------------------- */

static void what_is_fixed_cannot_change_while_the_job_runs(void)
{
	struct dsm_settings s = defaults();
	size_t fixed = 0;

	s.running = true;
	for (size_t i = 0; i < DSM_CONFIG_NR; i++) {
		uint64_t was = value_of(&s, i);
		char value[32];

		if (rows[i].when == ANY || rows[i].type == TEXT)
			continue;
		number(value, rows[i].max);
		CU_ASSERT_EQUAL(dsm_config_change(&s, rows[i].name, value, err),
				-EBUSY);
		CU_ASSERT_EQUAL(value_of(&s, i), was);
		fixed++;
	}
	CU_ASSERT(fixed > 0);
	ASSERT_REFUSED(s, dsm_config_change(&s, "spin_us", "1", err), -EBUSY,
		       "parameter 'spin_us' is fixed once the job runs; set it "
		       "by jiarun --set, JIA_SPIN_US in the environment, or a "
		       "parameter file");
}

static void the_program_may_change_the_rest(void)
{
	struct dsm_settings s = defaults();

	s.running = true;
	CU_ASSERT_EQUAL(dsm_config_change(&s, "migrate", "1", err), 0);
	CU_ASSERT_EQUAL(s.value.migrate, 1);
	CU_ASSERT_EQUAL(s.origin[DSM_CONFIG_migrate].source, DSM_SOURCE_CALL);
	CU_ASSERT_EQUAL(dsm_config_change(&s, "update", "never", err), 0);
	CU_ASSERT_EQUAL(s.value.update, DSM_UPDATE_NEVER);
	CU_ASSERT(s.running);
}

static void a_change_that_does_not_fit_is_undone(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(set(&s, "cache", "1m"), 0);
	s.running = true;
	ASSERT_REFUSED(s, dsm_config_change(&s, "block", "2m", err), -ERANGE,
		       "cache=1m (jiarun --set) must be at least 32m, that is "
		       "16 units of block=2m (program)");
}

/* --- the check ------------------------------------------------------------- */

static void values_that_do_not_fit_are_refused_with_both_and_their_origin(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(set(&s, "region", "1048577"), 0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "region=1048577 (jiarun --set) must be a multiple of "
		       "the page size, 4k");
	CU_ASSERT_EQUAL(set(&s, "region", "1m"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
	CU_ASSERT_EQUAL(dsm_config_set(&s, "block", "2m", DSM_SOURCE_ENV, err),
			0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "block=2m (environment) must not be larger than "
		       "region=1m (jiarun --set)");
	CU_ASSERT_EQUAL(set(&s, "block", "1m"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
	CU_ASSERT_EQUAL(set(&s, "populate", "2m"), 0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "populate=2m (jiarun --set) must not be larger than "
		       "region=1m (jiarun --set)");
	CU_ASSERT_EQUAL(set(&s, "populate", "1m"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
}

static void the_smallest_cache_has_sixteen_units(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(set(&s, "cache", "64k"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
	CU_ASSERT_EQUAL(set(&s, "block", "8k"), 0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "cache=64k (jiarun --set) must be at least 128k, that "
		       "is 16 units of block=8k (jiarun --set)");
	CU_ASSERT_EQUAL(set(&s, "cache", "128k"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
	CU_ASSERT_EQUAL(dsm_config_cache_min(&s.value, 1), 128 << 10);
	CU_ASSERT_EQUAL(dsm_config_cache_min(&s.value, 256), 32 << 20);
}

static void what_is_found_out_by_0_has_a_least_value_otherwise(void)
{
	struct dsm_settings s = defaults();

	CU_ASSERT_EQUAL(set(&s, "mtu", "575"), 0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "mtu=575 (jiarun --set) must be 0 or at least 576");
	CU_ASSERT_EQUAL(set(&s, "mtu", "576"), 0);
	CU_ASSERT_EQUAL(set(&s, "flight", "7"), 0);
	ASSERT_REFUSED(s, dsm_config_check(&s, err), -ERANGE,
		       "flight=7 (jiarun --set) must be 0 or at least 8");
	CU_ASSERT_EQUAL(set(&s, "flight", "8"), 0);
	CU_ASSERT_EQUAL(dsm_config_check(&s, err), 0);
}

/* --- comparing ------------------------------------------------------------- */

static void ranks_that_agree_are_equal_wherever_their_values_came_from(void)
{
	struct dsm_settings a = defaults(), b = defaults();

	CU_ASSERT_EQUAL(set(&a, "tree", "4"), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&a.value, 0, &b.value, 1, err), 0);
}

static void the_first_difference_is_named_with_both_values(void)
{
	struct dsm_settings a = defaults(), b = defaults();

	CU_ASSERT_EQUAL(set(&b, "tree", "5"), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&a.value, 0, &b.value, 3, err),
			-EINVAL);
	ASSERT_TEXT(err, "parameter 'tree' is 4 on rank 0 and 5 on rank 3; "
			 "all ranks must have the same");
	CU_ASSERT_EQUAL(set(&b, "update", "never"), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&b.value, 3, &a.value, 0, err),
			-EINVAL);
	ASSERT_TEXT(err, "parameter 'update' is never on rank 3 and adaptive "
			 "on rank 0; all ranks must have the same");
	CU_ASSERT_EQUAL(set(&a, "cache", "64m"), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&a.value, 10, &b.value, 11, err),
			-EINVAL);
	ASSERT_TEXT(err, "parameter 'cache' is 64m on rank 10 and 1g on rank "
			 "11; all ranks must have the same");
}

static void hosts_may_differ_in_what_is_their_own(void)
{
	struct dsm_settings a = defaults(), b = defaults();

	CU_ASSERT_EQUAL(set(&a, "links", "eth0"), 0);
	CU_ASSERT_EQUAL(set(&b, "links", "eth1"), 0);
	CU_ASSERT_EQUAL(set(&b, "mtu", "1500"), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&a.value, 0, &b.value, 1, err), 0);
}

static void no_row_escapes_the_comparison(void)
{
	for (size_t i = 0; i < DSM_CONFIG_NR; i++) {
		struct dsm_settings a = defaults(), b = defaults();
		unsigned char bytes[sizeof(struct dsm_config)];
		struct dsm_config back;

		if (rows[i].when == HOST)
			continue;
		/* As it travels: bytes. */
		memcpy(bytes, &b.value, sizeof(bytes));
		bytes[i * 8] ^= 1;
		memcpy(&back, bytes, sizeof(back));
		CU_ASSERT_EQUAL(dsm_config_compare(&a.value, 0, &back, 1, err),
				-EINVAL);
	}
}

CU_TestInfo test_dsm_config[] = {
	{ "the defaults are those of the table and fit",
	  the_defaults_are_those_of_the_table_and_fit },
	{ "both ends of every range are taken and no more",
	  both_ends_of_every_range_are_taken_and_no_more },
	{ "a text is taken as it is and its length is the value",
	  a_text_is_taken_as_it_is_and_its_length_is_the_value },
	{ "sizes take a unit in either case",
	  sizes_take_a_unit_in_either_case },
	{ "yes and no have three forms each",
	  yes_and_no_have_three_forms_each },
	{ "choices are taken by their word", choices_are_taken_by_their_word },
	{ "an unknown name is refused with the nearest",
	  an_unknown_name_is_refused_with_the_nearest },
	{ "a bad value is refused with what is allowed",
	  a_bad_value_is_refused_with_what_is_allowed },
	{ "a hostile value is shown escaped and cut",
	  a_hostile_value_is_shown_escaped_and_cut },
	{ "an error names where the value was",
	  an_error_names_where_the_value_was },
	{ "what is fixed cannot change while the job runs",
	  what_is_fixed_cannot_change_while_the_job_runs },
	{ "the program may change the rest", the_program_may_change_the_rest },
	{ "a change that does not fit is undone",
	  a_change_that_does_not_fit_is_undone },
	{ "values that do not fit are refused with both and their origin",
	  values_that_do_not_fit_are_refused_with_both_and_their_origin },
	{ "the smallest cache has sixteen units",
	  the_smallest_cache_has_sixteen_units },
	{ "what is found out by 0 has a least value otherwise",
	  what_is_found_out_by_0_has_a_least_value_otherwise },
	{ "ranks that agree are equal wherever their values came from",
	  ranks_that_agree_are_equal_wherever_their_values_came_from },
	{ "the first difference is named with both values",
	  the_first_difference_is_named_with_both_values },
	{ "hosts may differ in what is their own",
	  hosts_may_differ_in_what_is_their_own },
	{ "no row escapes the comparison", no_row_escapes_the_comparison },
	CU_TEST_INFO_NULL,
};
