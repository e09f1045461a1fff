/* SPDX-License-Identifier: MIT */
/*
 * dsm_config.h - the parameters of a job (rows: dsm_config.def).
 *
 * struct dsm_config holds the values and nothing else, no pointer: it may be
 * copied into the job's memory and compared there by other ranks.  struct
 * dsm_settings adds where each value came from.
 *
 * Who wins, weakest first: default, parameter file (JIA_CONFIG, or jiarun
 * --config), environment (JIA_NAME), jiarun --set, jia_set()/jia_config().
 * That is the order in which dsm_config_load() reads them; within one source
 * the later line wins.
 *
 * A rank:    dsm_config_load(&s, environ, err); compare; s.running = true.
 * A jiarun:  dsm_config_load(&s, environ, err) with JIA_CONFIG taken from its
 *            --config and JIA_SET made of its --set options (each of them
 *            checked by dsm_config_set_pair() first, for an error that names
 *            the option); the ranks get both variables and so read the same.
 *
 * Errors: a setter returns 0, or a negative errno with a text in @err that says
 * where, what, and what is allowed; the settings are then as they were.
 *   -ENOENT  no such parameter (the text names the nearest)
 *   -EINVAL  not a value of the parameter's type, or no name=value
 *   -ERANGE  out of the parameter's range, or two parameters that do not fit
 *   -EBUSY   the parameter is fixed while the job runs
 *   others   of open() and read(), for a parameter file
 *
 * Threads: none of it locks; called before the rank has a second thread, or
 * with the rank mutex held.  Nothing allocates; only the printing uses stdio.
 */
#ifndef DSM_CONFIG_H
#define DSM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	DSM_CONFIG_TEXT_MAX = 120 /* bytes of a TEXT value, without the 0 */
};

/* The numbers of all rows, and behind them the bytes of the TEXT ones. */
struct dsm_config {
#define CFG(type, name, when, dflt, min, max, words, doc) uint64_t name;
#include "dsm_config.def"
#define DSM_BYTES_U32(name)
#define DSM_BYTES_BYTES(name)
#define DSM_BYTES_POW2(name)
#define DSM_BYTES_BOOL(name)
#define DSM_BYTES_ENUM(name)
#define DSM_BYTES_TEXT(name) char name##_text[DSM_CONFIG_TEXT_MAX + 1];
#define CFG(type, name, when, dflt, min, max, words, doc) DSM_BYTES_##type(name)
#include "dsm_config.def"
};

enum dsm_config_id {
#define CFG(type, name, when, dflt, min, max, words, doc) DSM_CONFIG_##name,
#include "dsm_config.def"
	DSM_CONFIG_NR
};

/* Values of the ENUM rows, in the order of their words. */
enum {
	DSM_CONSISTENCY_SCOPE,
	DSM_CONSISTENCY_RELEASE
};
enum {
	DSM_UPDATE_NEVER,
	DSM_UPDATE_ALWAYS,
	DSM_UPDATE_ADAPTIVE
};
enum {
	DSM_CARRIER_AUTO,
	DSM_CARRIER_SHM,
	DSM_CARRIER_UDP,
	DSM_CARRIER_KMOD
};
enum {
	DSM_AUTH_MAC,
	DSM_AUTH_OFF,
	DSM_AUTH_AEAD
};

enum {
	DSM_CONFIG_ERR_MAX = 512, /* bytes of an error text, with the 0 */
	DSM_CONFIG_LINE_MAX = 512, /* bytes of a line of a parameter file */
	DSM_CONFIG_WHERE_MAX = 96, /* bytes kept of a file's name, with the 0 */
	DSM_CONFIG_PAGE = 4096, /* bytes: the smallest unit of coherence */
	DSM_CONFIG_MTU_MIN = 576, /* bytes: what every IPv4 network carries */
	DSM_CONFIG_FLIGHT_MIN = 8, /* packets */
	DSM_CONFIG_CACHE_UNITS =
		16, /* units a thread can always keep cached, so
					that an instruction with several operands
					and its retries make progress */
};

enum dsm_source {
	DSM_SOURCE_DEFAULT,
	DSM_SOURCE_FILE,
	DSM_SOURCE_ENV,
	DSM_SOURCE_JIARUN, /* jiarun --set */
	DSM_SOURCE_CALL, /* jia_set(), jia_config() */
	DSM_SOURCE_NR
};

/* Where a value came from. */
struct dsm_origin {
	enum dsm_source source;
	unsigned int line; /* of a file, from 1 */
	char file[DSM_CONFIG_WHERE_MAX]; /* escaped; a long one: its end */
};

struct dsm_settings {
	struct dsm_config value;
	struct dsm_origin origin[DSM_CONFIG_NR];
	bool running; /* the ranks have met: only ANY rows may change */
};

void dsm_config_defaults(struct dsm_settings *s);

/* How ranks of other hosts reach this one; the job and the rank are the caller's. */
struct sul_listen_config;
void dsm_config_listen(const struct dsm_config *c,
		       struct sul_listen_config *out);

/* One parameter.  @source: any but DEFAULT and FILE. */
int dsm_config_set(struct dsm_settings *s, const char *name, const char *value,
		   enum dsm_source source, char err[DSM_CONFIG_ERR_MAX]);

/* The same, given as "name=value", as in --set. */
int dsm_config_set_pair(struct dsm_settings *s, const char *pair,
			enum dsm_source source, char err[DSM_CONFIG_ERR_MAX]);

/* Several "name=value", one a line, as jiarun hands them over in JIA_SET. */
int dsm_config_set_lines(struct dsm_settings *s, const char *lines,
			 enum dsm_source source, char err[DSM_CONFIG_ERR_MAX]);

/*
 * A parameter file: name=value lines, white space around both is ignored, from
 * a # on a line is comment.  A regular file, since every rank reads it.
 */
int dsm_config_file(struct dsm_settings *s, const char *path,
		    char err[DSM_CONFIG_ERR_MAX]);

/* Every JIA_* variable of @env (environ, or a test's) that is a parameter;
 * refuses those that are neither that nor in dsm_env.def. */
int dsm_config_env(struct dsm_settings *s, char *const env[],
		   char err[DSM_CONFIG_ERR_MAX]);

/* Whether the values fit each other; to be called after the last setter.  The
 * text names both parameters and where they came from. */
int dsm_config_check(const struct dsm_settings *s,
		     char err[DSM_CONFIG_ERR_MAX]);

/* Defaults, the file of JIA_CONFIG, the environment, JIA_SET; then the check. */
int dsm_config_load(struct dsm_settings *s, char *const env[],
		    char err[DSM_CONFIG_ERR_MAX]);

/* jia_set(): one parameter with its check, all or nothing. */
int dsm_config_change(struct dsm_settings *s, const char *name,
		      const char *value, char err[DSM_CONFIG_ERR_MAX]);

/* The least cache, bytes, with which @threads threads of a rank can work. */
uint64_t dsm_config_cache_min(const struct dsm_config *c, unsigned int threads);

/*
 * Ranks compare: 0 if @a (of rank @rank_a) and @b are equal; else -EINVAL and a
 * text that names the first parameter that differs, with both values.
 */
int dsm_config_compare(const struct dsm_config *a, int rank_a,
		       const struct dsm_config *b, int rank_b,
		       char err[DSM_CONFIG_ERR_MAX]);

/* --- printing (dsm_config_print.c; stdio) ----------------------------------- */

/* jiarun --list-parameters: name, type, default, range or choices, when it
 * can be set (START: before the ranks meet), value, where it came from,
 * meaning; in columns. */
void dsm_config_list(FILE *f, const struct dsm_settings *s);
/* name=value lines: a parameter file that gives these very values. */
void dsm_config_values(FILE *f, const struct dsm_settings *s);
/* For jiarun(1): .TP entries of the parameters, and of the variables. */
void dsm_config_roff(FILE *f);
void dsm_config_roff_env(FILE *f);

#endif /* DSM_CONFIG_H */
