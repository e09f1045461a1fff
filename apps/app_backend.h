/* SPDX-License-Identifier: MIT */
/*
 * app_backend.h - what the programs need of whoever provides shared memory.
 *
 * Role: app.c is written to this table; app_dsm.c, app_pthread.c and
 *   app_alone.c each fill one.  app_backend is the one a program is linked with.
 */
#ifndef APP_BACKEND_H
#define APP_BACKEND_H

#include "app.h"

struct app_backend {
	const char *unit; /* what a rank is called; NULL: there is only one */
	const char *option, *option_help; /* of its own, for --help; or NULL */
	void (*join)(int argc, char **argv, int *rank, int *ranks);
	void (*leave)(void);
	/* After leave(); does not return. */
	void (*quit)(int status) __attribute__((noreturn));
	/* @home < 0: contiguous equal shares.  @bytes are whole pages. */
	void *(*malloc)(const char *label, size_t bytes, int home);
	void (*overwrite)(void *p, size_t bytes);
	void (*fetch)(const void *p, size_t bytes);
	void (*barrier)(void);
	void (*lock)(int lock);
	void (*unlock)(int lock);
	void (*lock_at)(const void *addr);
	void (*unlock_at)(const void *addr);
	void (*wait)(const void *cond);
	void (*wake)(const void *cond);
	void (*reduce)(double *v, int n, bool sum);
	void (*begin)(void); /* the counters run */
	void (*end)(struct app_traffic *t);
	void (*set)(const char *name, const char *value);
	void (*phase)(const char *name);
	void (*die)(const char *text) __attribute__((noreturn));
};

extern const struct app_backend *const app_backend;

/* One rank, nothing shared. */
extern const struct app_backend app_alone_backend;

/* Zeroed pages of this process. */
void *app_pages(size_t bytes);

#endif /* APP_BACKEND_H */
