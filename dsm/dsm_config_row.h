/* SPDX-License-Identifier: MIT */
/*
 * dsm_config_row.h - the rows of dsm_config.def as data, for dsm_config*.c.
 */
#ifndef DSM_CONFIG_ROW_H
#define DSM_CONFIG_ROW_H

#include "dsm_config.h"
#include "dsm_text.h"

enum dsm_config_type {
	DSM_TYPE_U32,
	DSM_TYPE_BYTES,
	DSM_TYPE_POW2,
	DSM_TYPE_BOOL,
	DSM_TYPE_ENUM,
	DSM_TYPE_TEXT
};

enum dsm_config_when {
	DSM_WHEN_START,
	DSM_WHEN_HOST,
	DSM_WHEN_ANY
};

struct dsm_config_row {
	const char *name;
	enum dsm_config_type type;
	enum dsm_config_when when;
	uint64_t dflt, min, max;
	const char *words, *doc;
	size_t text; /* TEXT: where in struct dsm_config its bytes are */
};

extern const struct dsm_config_row dsm_config_rows[DSM_CONFIG_NR];

/* Bytes that are not a string: a piece of a line, of a variable. */
struct dsm_span {
	const char *p;
	size_t n;
};

uint64_t dsm_config_get(const struct dsm_config *c, size_t id);

/* The value of row @id, as a setter would take it: 64k, yes, adaptive. */
void dsm_config_put(struct dsm_text *t, const struct dsm_config *c, size_t id);
/* The same of a number that it might have; nothing for a TEXT. */
void dsm_config_put_value(struct dsm_text *t, const struct dsm_config_row *r,
			  uint64_t v);
/* "a size from 64k to 160g (bytes, or with k, m, g or t)" */
void dsm_config_put_allowed(struct dsm_text *t, const struct dsm_config_row *r);
/* "default", "job.conf:3", "environment", ... */
void dsm_config_put_origin(struct dsm_text *t, const struct dsm_origin *o);
/* JIA_NAME, of a parameter or a row of dsm_env.def. */
void dsm_config_put_env_name(struct dsm_text *t, const char *name);

/* The setter below all others; @o says where it was read. */
int dsm_config_set_span(struct dsm_settings *s, struct dsm_span name,
			struct dsm_span value, const struct dsm_origin *o,
			char err[DSM_CONFIG_ERR_MAX]);
/* "name=value", white space around both ignored. */
int dsm_config_set_line(struct dsm_settings *s, struct dsm_span line,
			const struct dsm_origin *o,
			char err[DSM_CONFIG_ERR_MAX]);
/* "job.conf:3: ", "--set ", or nothing: how an error text begins. */
void dsm_config_put_where(struct dsm_text *t, const struct dsm_origin *o);

#endif /* DSM_CONFIG_ROW_H */
