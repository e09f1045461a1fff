/* SPDX-License-Identifier: MIT */
/*
 * dsm_config_print.c - the parameters for people: list, file, manual.
 *
 * Role:      prints the rows of dsm_config.def and dsm_env.def; jiarun's
 *            --list-parameters and the tables of jiarun(1).
 * Threads:   the caller's business.
 */
#include "dsm_config_row.h"

#include <string.h>

/* --- the list -------------------------------------------------------------- */

enum column {
	COL_NAME,
	COL_TYPE,
	COL_DEFAULT,
	COL_ALLOWED,
	COL_WHEN,
	COL_VALUE,
	COL_FROM,
	COL_DOC,
	COL_NR
};

enum {
	CELL_MAX = 240
};

static const char *type_name(enum dsm_config_type type)
{
	static const char *const names[] = {
		[DSM_TYPE_U32] = "number",    [DSM_TYPE_BYTES] = "size",
		[DSM_TYPE_POW2] = "size 2^n", [DSM_TYPE_BOOL] = "yes/no",
		[DSM_TYPE_ENUM] = "choice",   [DSM_TYPE_TEXT] = "text",
	};

	return names[type];
}

static const char *when_name(enum dsm_config_when when)
{
	static const char *const names[] = {
		[DSM_WHEN_START] = "start",
		[DSM_WHEN_HOST] = "host",
		[DSM_WHEN_ANY] = "any",
	};

	return names[when];
}

/* Shorter than dsm_config_put_allowed(): the type has a column of its own. */
static void put_range(struct dsm_text *t, const struct dsm_config_row *r)
{
	if (r->type == DSM_TYPE_BOOL) {
		dsm_text_puts(t, "yes|no");
		return;
	}
	if (r->type == DSM_TYPE_ENUM || r->type == DSM_TYPE_TEXT) {
		dsm_text_puts(t, r->words);
		return;
	}
	dsm_config_put_value(t, r, r->min);
	dsm_text_puts(t, "..");
	dsm_config_put_value(t, r, r->max);
	if (*r->words) {
		dsm_text_puts(t, " ");
		dsm_text_puts(t, r->words);
	}
}

/* @s NULL: the heading. */
static void cell(char buf[CELL_MAX], const struct dsm_settings *s, size_t row,
		 enum column col)
{
	static const char *const heads[COL_NR] = {
		"NAME", "TYPE",	 "DEFAULT", "ALLOWED",
		"WHEN", "VALUE", "FROM",    "MEANING",
	};
	const struct dsm_config_row *r = &dsm_config_rows[row];
	struct dsm_text t;

	dsm_text_init(&t, buf, CELL_MAX);
	if (!s) {
		dsm_text_puts(&t, heads[col]);
		return;
	}
	switch (col) {
	case COL_NAME:
		dsm_text_puts(&t, r->name);
		return;
	case COL_TYPE:
		dsm_text_puts(&t, type_name(r->type));
		return;
	case COL_DEFAULT:
		dsm_config_put_value(&t, r, r->dflt);
		return;
	case COL_ALLOWED:
		put_range(&t, r);
		return;
	case COL_WHEN:
		dsm_text_puts(&t, when_name(r->when));
		return;
	case COL_VALUE:
		dsm_config_put(&t, &s->value, row);
		return;
	case COL_FROM:
		dsm_config_put_origin(&t, &s->origin[row]);
		return;
	case COL_DOC:
		dsm_text_puts(&t, r->doc);
		return;
	case COL_NR:
		return;
	}
}

static size_t width(const struct dsm_settings *s, enum column col)
{
	char buf[CELL_MAX];
	size_t widest;

	cell(buf, NULL, 0, col);
	widest = strlen(buf);
	for (size_t row = 0; row < DSM_CONFIG_NR; row++) {
		size_t len;

		cell(buf, s, row, col);
		len = strlen(buf);
		if (len > widest)
			widest = len;
	}
	return widest;
}

static void print_row(FILE *f, const struct dsm_settings *s, size_t row,
		      const size_t widths[COL_NR])
{
	char buf[CELL_MAX];

	for (int col = 0; col < COL_DOC; col++) {
		cell(buf, s, row, (enum column)col);
		fprintf(f, "%-*s  ", (int)widths[col], buf);
	}
	cell(buf, s, row, COL_DOC);
	fprintf(f, "%s\n", buf);
}

void dsm_config_list(FILE *f, const struct dsm_settings *s)
{
	size_t widths[COL_NR];

	for (int col = 0; col < COL_NR; col++)
		widths[col] = width(s, (enum column)col);
	print_row(f, NULL, 0, widths);
	for (size_t row = 0; row < DSM_CONFIG_NR; row++)
		print_row(f, s, row, widths);
}

void dsm_config_values(FILE *f, const struct dsm_settings *s)
{
	for (size_t row = 0; row < DSM_CONFIG_NR; row++) {
		char buf[CELL_MAX];

		cell(buf, s, row, COL_VALUE);
		fprintf(f, "%s=%s\n", dsm_config_rows[row].name, buf);
	}
}

/* --- the manual ------------------------------------------------------------ */

enum {
	ROFF_COLUMNS = 72 /* where a line of source is broken: mandoc's style */
};

static void break_line(FILE *f, size_t *col)
{
	fputc('\n', f);
	*col = 0;
}

/*
 * A paragraph, broken at blanks.  In running text only a backslash, a hyphen
 * and the first character of a line mean anything to troff; no word of ours
 * begins with . or '.
 */
static void roff_text(FILE *f, const char *s)
{
	size_t col = 0;

	for (; *s; s++, col++) {
		if (*s == '\\')
			fputs("\\e", f);
		else if (*s == '-')
			fputs("\\-", f);
		else if (*s == ' ' && col + strcspn(s + 1, " ") > ROFF_COLUMNS)
			break_line(f, &col);
		else
			fputc(*s, f);
	}
	fputs(".\n", f);
}

void dsm_config_roff(FILE *f)
{
	for (size_t i = 0; i < DSM_CONFIG_NR; i++) {
		const struct dsm_config_row *r = &dsm_config_rows[i];
		char buf[CELL_MAX];
		struct dsm_text t;

		fprintf(f, ".TP\n.B %s\n", r->name);
		roff_text(f, r->doc);
		dsm_text_init(&t, buf, sizeof(buf));
		dsm_text_puts(&t, "Default ");
		if (r->type == DSM_TYPE_TEXT)
			dsm_text_puts(&t, "nothing");
		dsm_config_put_value(&t, r, r->dflt);
		dsm_text_puts(&t, "; ");
		dsm_config_put_allowed(&t, r);
		roff_text(f, buf);
		if (r->when != DSM_WHEN_ANY)
			roff_text(f, "Fixed once the job runs");
		if (r->when == DSM_WHEN_HOST)
			roff_text(f, "May differ between hosts");
	}
}

void dsm_config_roff_env(FILE *f)
{
#define ENV(name, doc)                       \
	fputs(".TP\n.B JIA_" #name "\n", f); \
	roff_text(f, doc);
#include "dsm_env.def"
}
