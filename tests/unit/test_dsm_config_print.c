/* SPDX-License-Identifier: MIT */
/* test_dsm_config_print.c - the list, name=value lines, the manual. */
#include "test_dsm_config.h"

/* --- printing -------------------------------------------------------------- */

static char *printed(void (*print)(FILE *f, const struct dsm_settings *s),
		     const struct dsm_settings *s)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	REQUIRE(f);
	print(f, s);
	CU_ASSERT_EQUAL(fclose(f), 0);
	return text;
}

static void the_printed_values_read_back_are_the_same(void)
{
	struct dsm_settings s = defaults(), back = defaults();
	char *text;

	CU_ASSERT_EQUAL(set(&s, "cache", "1234567"), 0);
	CU_ASSERT_EQUAL(set(&s, "update", "never"), 0);
	CU_ASSERT_EQUAL(set(&s, "signals", "off"), 0);
	CU_ASSERT_EQUAL(set(&s, "keep", "0"), 0);
	CU_ASSERT_EQUAL(set(&s, "links", "eth0,lo"), 0);
	text = printed(dsm_config_values, &s);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ncache=1234567\n"));
	CU_ASSERT(!strncmp(text, "region=64g\n", 11));
	CU_ASSERT_EQUAL_FATAL(make_folder(), 0);
	CU_ASSERT_EQUAL(read_text(&back, text), 0);
	CU_ASSERT_EQUAL(dsm_config_compare(&s.value, 0, &back.value, 1, err),
			0);
	ASSERT_TEXT(back.value.links_text, "eth0,lo");
	drop_folder();
	free(text);
}

/* The @nr-th line, from 0; a text with fewer fails the test. */
static const char *line_at(const char *text, size_t nr)
{
	while (nr--) {
		text = strchr(text, '\n');
		REQUIRE(text);
		text++;
	}
	return text;
}

/* Row @nr of the list is in the columns of its heading: @column begins at the
 * same place, behind a blank, and holds @cell and blanks up to the next. */
static void assert_cell(const char *text, size_t nr, const char *column,
			const char *next, const char *cell)
{
	const char *head = strstr(text, column), *line = line_at(text, nr);
	size_t from = (size_t)(head - text);
	size_t width = (size_t)(strstr(head, next) - head);
	char got[256];

	CU_ASSERT_FATAL(strcspn(line, "\n") > from + width);
	CU_ASSERT(!from || line[from - 1] == ' ');
	CU_ASSERT_FATAL(width < sizeof(got));
	memcpy(got, line + from, width);
	while (width && got[width - 1] == ' ')
		width--;
	got[width] = 0;
	ASSERT_TEXT(got, cell);
}

static void assert_row(const char *text, size_t id, const char *const cells[7])
{
	static const char *const heads[] = { "NAME",	"TYPE",	  "DEFAULT",
					     "ALLOWED", "WHEN",	  "VALUE",
					     "FROM",	"MEANING" };

	for (size_t i = 0; i < 7; i++)
		assert_cell(text, id + 1, heads[i], heads[i + 1], cells[i]);
}

static void the_list_has_a_line_per_parameter_in_columns(void)
{
	struct dsm_settings s = defaults();
	size_t lines = 0;
	char *text;

	CU_ASSERT_EQUAL(set(&s, "spin_us", "1"), 0);
	CU_ASSERT_EQUAL(dsm_config_set(&s, "cache", "2m", DSM_SOURCE_ENV, err),
			0);
	CU_ASSERT_EQUAL(dsm_config_change(&s, "keep", "1", err), 0);
	s.origin[DSM_CONFIG_block] =
		(struct dsm_origin){ DSM_SOURCE_FILE, 12, "job.conf" };
	text = printed(dsm_config_list, &s);
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	CU_ASSERT_EQUAL(lines, DSM_CONFIG_NR + 1);
#define ROW(name, ...)                      \
	assert_row(text, DSM_CONFIG_##name, \
		   (const char *const[]){ __VA_ARGS__ })
	ROW(spin_us, "spin_us", "number", "40", "0..1000000 microseconds",
	    "start", "1", "jiarun --set");
	ROW(cache, "cache", "size", "1g", "64k..160g", "start", "2m",
	    "environment");
	ROW(keep, "keep", "number", "64", "0..1000000 releases", "any", "1",
	    "program");
	ROW(update, "update", "choice", "adaptive", "never|always|adaptive",
	    "any", "adaptive", "default");
	ROW(signals, "signals", "yes/no", "yes", "yes|no", "start", "yes",
	    "default");
	ROW(links, "links", "text", "",
	    "interfaces, addresses or prefixes, with commas between them",
	    "host", "", "default");
	ROW(block, "block", "size 2^n", "4k", "4k..2m", "any", "4k",
	    "job.conf:12");
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "  unit of coherence of new allocations\n"));
	free(text);
}

static void no_cell_of_the_list_is_cut(void)
{
	struct dsm_settings s = defaults();
	char *text = printed(dsm_config_list, &s);

	CU_ASSERT_PTR_NULL(strstr(text, "..."));
	free(text);
}

static void roff(FILE *f, const struct dsm_settings *s)
{
	(void)s;
	dsm_config_roff(f);
	dsm_config_roff_env(f);
}

static void the_manual_has_every_parameter_and_variable(void)
{
	char *text = printed(roff, NULL);

#define CFG(type, name, when, dflt, min, max, words, doc) \
	CU_ASSERT_PTR_NOT_NULL(strstr(text, ".TP\n.B " #name "\n"));
#include "dsm_config.def"
#define ENV(name, doc) \
	CU_ASSERT_PTR_NOT_NULL(strstr(text, ".TP\n.B JIA_" #name "\n"));
#include "dsm_env.def"
	CU_ASSERT_PTR_NOT_NULL(strstr(
		text, ".TP\n.B tree\nchildren of a node in the barrier tree.\n"
		      "Default 4; a number from 1 to 64 (children).\n"
		      "Fixed once the job runs.\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(
		text, "Default nothing; interfaces, addresses or prefixes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "May differ between hosts.\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\\-\\-nodes=1"));
	CU_ASSERT_PTR_NULL(strstr(text, " --"));
	CU_ASSERT_PTR_NULL(strstr(text, "\n'"));
	for (const char *p = text; *p; p += strcspn(p, "\n") + 1)
		CU_ASSERT(strcspn(p, "\n") <= 80);
	for (const char *p = text; (p = strstr(p, "\n.")); p++)
		CU_ASSERT(!strncmp(p, "\n.TP\n", 5) || !strncmp(p, "\n.B ", 4));
	free(text);
}

CU_TestInfo test_dsm_config_print[] = {
	{ "the printed values read back are the same",
	  the_printed_values_read_back_are_the_same },
	{ "the list has a line per parameter in columns",
	  the_list_has_a_line_per_parameter_in_columns },
	{ "no cell of the list is cut", no_cell_of_the_list_is_cut },
	{ "the manual has every parameter and variable",
	  the_manual_has_every_parameter_and_variable },
	CU_TEST_INFO_NULL,
};
