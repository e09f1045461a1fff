/* SPDX-License-Identifier: MIT */
/*
 * dsm_config.c - parameters: the rows, one value, whether all fit, comparing.
 *
 * Role:      everything that must know what a parameter is, by reading the
 *            rows of dsm_config.def.  Files and the environment are read by
 *            dsm_config_source.c, printing is in dsm_config_print.c.
 * Invariant: a value in a struct dsm_settings is in its row's range; a setter
 *            that fails has changed nothing.
 * Threads:   the caller's business (dsm_config.h).
 */
#include "dsm_config_row.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define TEXT_AT_U32(name) 0
#define TEXT_AT_BYTES(name) 0
#define TEXT_AT_POW2(name) 0
#define TEXT_AT_BOOL(name) 0
#define TEXT_AT_ENUM(name) 0
#define TEXT_AT_TEXT(name) offsetof(struct dsm_config, name##_text)

const struct dsm_config_row dsm_config_rows[DSM_CONFIG_NR] = {
#define CFG(type, name, when, dflt, min, max, words, doc)                     \
	{ #name, DSM_TYPE_##type,     DSM_WHEN_##when, dflt, min, max, words, \
	  doc,	 TEXT_AT_##type(name) },
#include "dsm_config.def"
};

/* Row i is word i of struct dsm_config, and each default is in range. */
#define CFG(type, name, when, dflt, min, max, words, doc)                     \
	_Static_assert(offsetof(struct dsm_config, name) ==                   \
			       DSM_CONFIG_##name * sizeof(uint64_t),          \
		       #name " is the word of its row");                      \
	_Static_assert((dflt) <= (max) && !((dflt) < (min)),                  \
		       "the default of " #name " is out of its range");       \
	_Static_assert(DSM_TYPE_##type != DSM_TYPE_TEXT ||                    \
			       ((dflt) == 0 && (max) <= DSM_CONFIG_TEXT_MAX), \
		       #name " is empty at first, and fits");
#include "dsm_config.def"

uint64_t dsm_config_get(const struct dsm_config *c, size_t id)
{
	uint64_t v;

	memcpy(&v, (const char *)c + id * sizeof(v), sizeof(v));
	return v;
}

static void put(struct dsm_config *c, size_t id, uint64_t v)
{
	memcpy((char *)c + id * sizeof(v), &v, sizeof(v));
}

/* Of a TEXT row. */
static const char *text_of(const struct dsm_config *c, size_t id)
{
	return (const char *)c + dsm_config_rows[id].text;
}

static bool same_value(const struct dsm_config *a, const struct dsm_config *b,
		       size_t id)
{
	if (dsm_config_rows[id].type == DSM_TYPE_TEXT &&
	    strncmp(text_of(a, id), text_of(b, id), DSM_CONFIG_TEXT_MAX) != 0)
		return false;
	return dsm_config_get(a, id) == dsm_config_get(b, id);
}

void dsm_config_defaults(struct dsm_settings *s)
{
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < DSM_CONFIG_NR; i++)
		put(&s->value, i, dsm_config_rows[i].dflt);
}

/* --- words ----------------------------------------------------------------- */

/* The next word of "a|b|c" at *@at, which moves behind it; false: no more. */
static bool next_word(const char **at, struct dsm_span *word)
{
	if (!**at)
		return false;
	word->p = *at;
	word->n = strcspn(*at, "|");
	*at += word->n;
	if (**at)
		(*at)++;
	return true;
}

static void put_span(struct dsm_text *t, struct dsm_span s)
{
	dsm_text_quote(t, s.p, s.n);
}

static void put_word(struct dsm_text *t, const char *words, uint64_t nr)
{
	struct dsm_span w;

	for (uint64_t i = 0; next_word(&words, &w); i++)
		if (i == nr)
			put_span(t, w);
}

void dsm_config_put_value(struct dsm_text *t, const struct dsm_config_row *r,
			  uint64_t v)
{
	switch (r->type) {
	case DSM_TYPE_U32:
		dsm_text_put_u64(t, v);
		return;
	case DSM_TYPE_BYTES:
	case DSM_TYPE_POW2:
		dsm_text_put_size(t, v);
		return;
	case DSM_TYPE_BOOL:
		dsm_text_puts(t, v ? "yes" : "no");
		return;
	case DSM_TYPE_ENUM:
		put_word(t, r->words, v);
		return;
	case DSM_TYPE_TEXT: /* see dsm_config_put() */
		return;
	}
}

void dsm_config_put(struct dsm_text *t, const struct dsm_config *c, size_t id)
{
	if (dsm_config_rows[id].type == DSM_TYPE_TEXT)
		dsm_text_puts(t, text_of(c, id));
	else
		dsm_config_put_value(t, &dsm_config_rows[id],
				     dsm_config_get(c, id));
}

static void put_choices(struct dsm_text *t, const char *words)
{
	struct dsm_span w;
	const char *sep = "one of ";

	while (next_word(&words, &w)) {
		dsm_text_puts(t, sep);
		put_span(t, w);
		sep = ", ";
	}
}

static void put_range(struct dsm_text *t, const struct dsm_config_row *r,
		      const char *what, const char *unit)
{
	dsm_text_puts(t, what);
	dsm_text_puts(t, " from ");
	dsm_config_put_value(t, r, r->min);
	dsm_text_puts(t, " to ");
	dsm_config_put_value(t, r, r->max);
	dsm_text_puts(t, " (");
	dsm_text_puts(t, unit);
	dsm_text_puts(t, ")");
}

void dsm_config_put_allowed(struct dsm_text *t, const struct dsm_config_row *r)
{
	static const char bytes[] = "bytes, or with k, m, g or t";

	switch (r->type) {
	case DSM_TYPE_U32:
		put_range(t, r, "a number", r->words);
		return;
	case DSM_TYPE_BYTES:
		put_range(t, r, "a size", bytes);
		return;
	case DSM_TYPE_POW2:
		put_range(t, r, "a power of two", bytes);
		return;
	case DSM_TYPE_BOOL:
		dsm_text_puts(t, "yes or no (or on, off, 1, 0)");
		return;
	case DSM_TYPE_ENUM:
		put_choices(t, r->words);
		return;
	case DSM_TYPE_TEXT:
		dsm_text_puts(t, r->words);
		dsm_text_puts(t, "; at most ");
		dsm_text_put_u64(t, r->max);
		dsm_text_puts(t, " characters, and neither blanks nor #");
		return;
	}
}

void dsm_config_put_origin(struct dsm_text *t, const struct dsm_origin *o)
{
	static const char *const names[DSM_SOURCE_NR] = {
		[DSM_SOURCE_DEFAULT] = "default",
		[DSM_SOURCE_FILE] = "", /* the file's name says it */
		[DSM_SOURCE_ENV] = "environment",
		[DSM_SOURCE_JIARUN] = "jiarun --set",
		[DSM_SOURCE_CALL] = "program",
	};

	dsm_text_puts(t, names[o->source]);
	if (o->source != DSM_SOURCE_FILE)
		return;
	dsm_text_puts(t, o->file);
	dsm_text_puts(t, ":");
	dsm_text_put_u64(t, o->line);
}

void dsm_config_put_env_name(struct dsm_text *t, const char *name)
{
	char upper[DSM_TEXT_WORD_MAX + 1];
	size_t n = 0;

	for (; name[n] && n < DSM_TEXT_WORD_MAX; n++)
		upper[n] = (char)toupper((unsigned char)name[n]);
	upper[n] = 0;
	dsm_text_puts(t, "JIA_");
	dsm_text_puts(t, upper);
}

void dsm_config_put_where(struct dsm_text *t, const struct dsm_origin *o)
{
	if (o->source == DSM_SOURCE_FILE) {
		dsm_config_put_origin(t, o);
		dsm_text_puts(t, ": ");
	} else if (o->source == DSM_SOURCE_JIARUN) {
		dsm_text_puts(t, "--set ");
	}
}

/* --- one value ------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Decimal digits at the start of @s; *@used of them. */
static int parse_digits(struct dsm_span s, uint64_t *out, size_t *used)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < s.n && is_digit(s.p[i]); i++)
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return -ERANGE;
	if (!i)
		return -EINVAL;
	*out = v;
	*used = i;
	return 0;
}

static int parse_number(struct dsm_span s, uint64_t *out)
{
	size_t used;
	int err;

	err = parse_digits(s, out, &used);
	if (err)
		return err;
	return used == s.n ? 0 : -EINVAL;
}

/* Powers of two that a unit stands for; -1: not a unit. */
static int unit_shift(char c)
{
	switch (tolower((unsigned char)c)) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	case 't':
		return 40;
	}
	return -1;
}

static int parse_size(struct dsm_span s, uint64_t *out)
{
	int shift = 0;
	uint64_t v;
	size_t used;
	int err;

	err = parse_digits(s, &v, &used);
	if (err)
		return err;
	if (used + 1 == s.n)
		shift = unit_shift(s.p[used]);
	else if (used != s.n)
		return -EINVAL;
	if (shift < 0)
		return -EINVAL;
	if (v > UINT64_MAX >> shift)
		return -ERANGE;
	*out = v << shift;
	return 0;
}

static int parse_word(struct dsm_span s, const char *words, uint64_t *out)
{
	struct dsm_span w;

	for (uint64_t i = 0; next_word(&words, &w); i++)
		if (dsm_text_same(s.p, s.n, w.p, w.n)) {
			*out = i;
			return 0;
		}
	return -EINVAL;
}

static int parse_bool(struct dsm_span s, uint64_t *out)
{
	uint64_t nr;
	int err;

	err = parse_word(s, "no|yes|off|on|0|1", &nr);
	if (err)
		return err;
	*out = nr & 1;
	return 0;
}

/* What a line of a parameter file can hold, and a terminal show. */
static int parse_text(struct dsm_span s, uint64_t *out)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '#')
			return -EINVAL;
	*out = s.n;
	return 0;
}

static int parse(const struct dsm_config_row *r, struct dsm_span s,
		 uint64_t *out)
{
	switch (r->type) {
	case DSM_TYPE_U32:
		return parse_number(s, out);
	case DSM_TYPE_BYTES:
	case DSM_TYPE_POW2:
		return parse_size(s, out);
	case DSM_TYPE_BOOL:
		return parse_bool(s, out);
	case DSM_TYPE_ENUM:
		return parse_word(s, r->words, out);
	case DSM_TYPE_TEXT:
		return parse_text(s, out);
	}
	return -EINVAL;
}

static int parse_in_range(const struct dsm_config_row *r, struct dsm_span s,
			  uint64_t *out)
{
	uint64_t v;
	int err;

	err = parse(r, s, &v);
	if (err)
		return err;
	if (v < r->min || v > r->max)
		return -ERANGE;
	if (r->type == DSM_TYPE_POW2 && (v & (v - 1)))
		return -ERANGE;
	*out = v;
	return 0;
}

/* --- setters --------------------------------------------------------------- */

/* The row called @name, or else -1 and the nearest row in *@nearest. */
static int find_row(struct dsm_span name, size_t *nearest)
{
	unsigned int best = UINT32_MAX;

	for (size_t i = 0; i < DSM_CONFIG_NR; i++) {
		const char *row = dsm_config_rows[i].name;
		size_t len = strlen(row);
		unsigned int d;

		if (name.n == len && !memcmp(name.p, row, len))
			return (int)i;
		d = dsm_text_distance(name.p, name.n, row, len);
		if (d < best) {
			best = d;
			*nearest = i;
		}
	}
	return -1;
}

static int refuse_name(struct dsm_span name, size_t nearest,
		       const struct dsm_origin *o, char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_config_put_where(&t, o);
	dsm_text_puts(&t, "'");
	put_span(&t, name);
	dsm_text_puts(&t, "' is not a parameter; the nearest is '");
	dsm_text_puts(&t, dsm_config_rows[nearest].name);
	dsm_text_puts(&t, "' (jiarun --list-parameters shows all)");
	return -ENOENT;
}

static int refuse_value(const struct dsm_config_row *r, struct dsm_span value,
			const struct dsm_origin *o, int why, char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_config_put_where(&t, o);
	if (o->source == DSM_SOURCE_ENV)
		dsm_config_put_env_name(&t, r->name);
	else
		dsm_text_puts(&t, r->name);
	dsm_text_puts(&t, "='");
	put_span(&t, value);
	dsm_text_puts(&t, "': must be ");
	dsm_config_put_allowed(&t, r);
	return why;
}

static int refuse_late(const struct dsm_config_row *r,
		       const struct dsm_origin *o, char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_config_put_where(&t, o);
	dsm_text_puts(&t, "parameter '");
	dsm_text_puts(&t, r->name);
	dsm_text_puts(&t, "' is fixed once the job runs; set it by jiarun "
			  "--set, ");
	dsm_config_put_env_name(&t, r->name);
	dsm_text_puts(&t, " in the environment, or a parameter file");
	return -EBUSY;
}

static void put_text(struct dsm_config *c, const struct dsm_config_row *r,
		     struct dsm_span text)
{
	char *at = (char *)c + r->text;

	memset(at, 0, DSM_CONFIG_TEXT_MAX + 1);
	memcpy(at, text.p, text.n);
}

int dsm_config_set_span(struct dsm_settings *s, struct dsm_span name,
			struct dsm_span value, const struct dsm_origin *o,
			char err[DSM_CONFIG_ERR_MAX])
{
	const struct dsm_config_row *r;
	size_t nearest = 0;
	uint64_t v;
	int id, why;

	id = find_row(name, &nearest);
	if (id < 0)
		return refuse_name(name, nearest, o, err);
	r = &dsm_config_rows[id];
	if (s->running && r->when != DSM_WHEN_ANY)
		return refuse_late(r, o, err);
	why = parse_in_range(r, value, &v);
	if (why)
		return refuse_value(r, value, o, why, err);
	put(&s->value, (size_t)id, v);
	if (r->type == DSM_TYPE_TEXT)
		put_text(&s->value, r, value);
	s->origin[id] = *o;
	return 0;
}

int dsm_config_set(struct dsm_settings *s, const char *name, const char *value,
		   enum dsm_source source, char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_origin o = { .source = source };

	return dsm_config_set_span(s, (struct dsm_span){ name, strlen(name) },
				   (struct dsm_span){ value, strlen(value) },
				   &o, err);
}

int dsm_config_change(struct dsm_settings *s, const char *name,
		      const char *value, char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_settings changed = *s;
	int why;

	why = dsm_config_set(&changed, name, value, DSM_SOURCE_CALL, err);
	if (!why)
		why = dsm_config_check(&changed, err);
	if (!why)
		*s = changed;
	return why;
}

/* --- do they fit? ---------------------------------------------------------- */

/* "block=2m (environment)" */
static void put_setting(struct dsm_text *t, const struct dsm_settings *s,
			size_t id)
{
	dsm_text_puts(t, dsm_config_rows[id].name);
	dsm_text_puts(t, "=");
	dsm_config_put(t, &s->value, id);
	dsm_text_puts(t, " (");
	dsm_config_put_origin(t, &s->origin[id]);
	dsm_text_puts(t, ")");
}

static int check_not_beyond(const struct dsm_settings *s,
			    enum dsm_config_id small, enum dsm_config_id large,
			    char *err)
{
	struct dsm_text t;

	if (dsm_config_get(&s->value, small) <=
	    dsm_config_get(&s->value, large))
		return 0;
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	put_setting(&t, s, small);
	dsm_text_puts(&t, " must not be larger than ");
	put_setting(&t, s, large);
	return -ERANGE;
}

static int check_region(const struct dsm_settings *s, char *err)
{
	struct dsm_text t;

	if (s->value.region % DSM_CONFIG_PAGE == 0)
		return 0;
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	put_setting(&t, s, DSM_CONFIG_region);
	dsm_text_puts(&t, " must be a multiple of the page size, ");
	dsm_text_put_size(&t, DSM_CONFIG_PAGE);
	return -ERANGE;
}

uint64_t dsm_config_cache_min(const struct dsm_config *c, unsigned int threads)
{
	return (uint64_t)threads * DSM_CONFIG_CACHE_UNITS * c->block;
}

/* For one thread; jia_threads() asks again for those that it declares. */
static int check_cache(const struct dsm_settings *s, char *err)
{
	uint64_t least = dsm_config_cache_min(&s->value, 1);
	struct dsm_text t;

	if (s->value.cache >= least)
		return 0;
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	put_setting(&t, s, DSM_CONFIG_cache);
	dsm_text_puts(&t, " must be at least ");
	dsm_text_put_size(&t, least);
	dsm_text_puts(&t, ", that is ");
	dsm_text_put_u64(&t, DSM_CONFIG_CACHE_UNITS);
	dsm_text_puts(&t, " units of ");
	put_setting(&t, s, DSM_CONFIG_block);
	return -ERANGE;
}

/* 0 means that it is found out; between that and the least lies nothing. */
static int check_gap(const struct dsm_settings *s, enum dsm_config_id id,
		     uint64_t least, char *err)
{
	uint64_t v = dsm_config_get(&s->value, id);
	struct dsm_text t;

	if (!v || v >= least)
		return 0;
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	put_setting(&t, s, id);
	dsm_text_puts(&t, " must be 0 or at least ");
	dsm_text_put_u64(&t, least);
	return -ERANGE;
}

int dsm_config_check(const struct dsm_settings *s, char err[DSM_CONFIG_ERR_MAX])
{
	int why;

	why = check_region(s, err);
	if (!why)
		why = check_not_beyond(s, DSM_CONFIG_block, DSM_CONFIG_region,
				       err);
	if (!why)
		why = check_not_beyond(s, DSM_CONFIG_populate,
				       DSM_CONFIG_region, err);
	if (!why)
		why = check_cache(s, err);
	if (!why)
		why = check_gap(s, DSM_CONFIG_mtu, DSM_CONFIG_MTU_MIN, err);
	if (!why)
		why = check_gap(s, DSM_CONFIG_flight, DSM_CONFIG_FLIGHT_MIN,
				err);
	return why;
}

/* --- do ranks agree? ------------------------------------------------------- */

static void put_on_rank(struct dsm_text *t, const struct dsm_config *c,
			size_t id, int rank)
{
	dsm_config_put(t, c, id);
	dsm_text_puts(t, " on rank ");
	dsm_text_put_u64(t, (uint64_t)rank);
}

int dsm_config_compare(const struct dsm_config *a, int rank_a,
		       const struct dsm_config *b, int rank_b,
		       char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_text t;
	size_t id = 0;

	while (id < DSM_CONFIG_NR &&
	       (dsm_config_rows[id].when == DSM_WHEN_HOST ||
		same_value(a, b, id)))
		id++;
	if (id == DSM_CONFIG_NR)
		return 0;
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_text_puts(&t, "parameter '");
	dsm_text_puts(&t, dsm_config_rows[id].name);
	dsm_text_puts(&t, "' is ");
	put_on_rank(&t, a, id, rank_a);
	dsm_text_puts(&t, " and ");
	put_on_rank(&t, b, id, rank_b);
	dsm_text_puts(&t, "; all ranks must have the same");
	return -EINVAL;
}
