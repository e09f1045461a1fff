/* SPDX-License-Identifier: MIT */
/* test_dsm_config.h - what the tests of dsm_config*.c share. */
#ifndef TEST_DSM_CONFIG_H
#define TEST_DSM_CONFIG_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "dsm_config.h"
#include "tests.h"

#define SEE " (jiarun --list-parameters shows all)"

static char err[DSM_CONFIG_ERR_MAX];

static inline struct dsm_settings defaults(void)
{
	struct dsm_settings s;

	memset(&s, 0xa5, sizeof(s));
	dsm_config_defaults(&s);
	err[0] = 0;
	return s;
}

static inline int set(struct dsm_settings *s, const char *name,
		      const char *value)
{
	return dsm_config_set(s, name, value, DSM_SOURCE_JIARUN, err);
}

static inline bool same_settings(const struct dsm_settings *a,
				 const struct dsm_settings *b)
{
	for (size_t i = 0; i < DSM_CONFIG_NR; i++)
		if (a->origin[i].source != b->origin[i].source ||
		    a->origin[i].line != b->origin[i].line ||
		    strcmp(a->origin[i].file, b->origin[i].file) != 0)
			return false;
	return !memcmp(&a->value, &b->value, sizeof(a->value)) &&
	       a->running == b->running;
}

/* A refusal: its code, its text, and that nothing has changed. */
#define ASSERT_REFUSED(s, call, code, text)               \
	do {                                              \
		struct dsm_settings before_ = (s);        \
		CU_ASSERT_EQUAL(call, code);              \
		ASSERT_TEXT(err, text);                   \
		CU_ASSERT(same_settings(&before_, &(s))); \
	} while (0)

/* A folder with one file, "job.conf". */
static char folder[64], path[96];

static inline int make_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.40s/config-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/job.conf", folder);
	return 0;
}

static inline void drop_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static inline void write_file(const char *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	REQUIRE(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

static inline int read_text(struct dsm_settings *s, const char *text)
{
	write_file(text, strlen(text));
	return dsm_config_file(s, path, err);
}

#endif /* TEST_DSM_CONFIG_H */
