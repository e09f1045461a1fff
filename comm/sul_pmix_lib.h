/* SPDX-License-Identifier: MIT */
/*
 * sul_pmix_lib.h - the PMIx library, as little of it as a job needs.
 *
 * It is loaded when a process finds that a PMIx launcher has started it: libsul
 * does not depend on it.  Calls return 0 or -errno.
 *
 * Threads: one call at a time, but for abort(), which may come from any thread.
 */
#ifndef SUL_PMIX_LIB_H
#define SUL_PMIX_LIB_H

#include <stddef.h>

#include "sul_abi.h"

struct sul_pmix_lib;

/* What can be done with it, from opening on. */
struct sul_pmix_ops {
	/* No other call after it. */
	void (*close)(struct sul_pmix_lib *l);
	/* What PMIx said to the last call. */
	const char *(*said)(const struct sul_pmix_lib *l);

	/* What the launcher knows of the job: how many ranks, and which of them
	 * are on this host: "0,1,5", malloc()ed. */
	int (*ranks)(struct sul_pmix_lib *l, int *ranks);
	int (*neighbours)(struct sul_pmix_lib *l, char **list);

	/* Publish @len bytes as this rank's @key. */
	int (*put)(struct sul_pmix_lib *l, const char *key, const void *bytes,
		   size_t len);
	/*
	 * Exactly @len bytes that @rank has published as @key; wait for them.
	 * -EPROTO: other bytes than that.  -ECANCELED, -ETIMEDOUT as of
	 * sul_sleep_wait(); after these there is no call but abort().
	 */
	int (*get)(struct sul_pmix_lib *l, int rank, const char *key,
		   void *bytes, size_t len, struct sul_word *abort,
		   int timeout_ms);
	/* All ranks meet, and then can get what was put before. */
	int (*fence)(struct sul_pmix_lib *l, struct sul_word *abort,
		     int timeout_ms);

	/* Ask the launcher to end all ranks. */
	void (*abort)(struct sul_pmix_lib *l, int status, const char *text);
};

/**
 * struct sul_pmix_client - a connection to the launcher's server.
 * @lost: called by a thread of the library if the server goes away first.
 */
struct sul_pmix_client {
	const struct sul_pmix_ops *ops;
	struct sul_pmix_lib *lib;
	int rank; /* this process's */
	void (*lost)(void *ctx);
	void *ctx;
};

/*
 * Load the library and connect; the caller has filled in @lost and @ctx.
 * -ENOSYS: built without; -ENOENT: not installed; -ECONNREFUSED: no server
 * answers; @why gets the reason.
 */
int sul_pmix_lib_open(struct sul_pmix_client *c, char *why, size_t room);

#endif /* SUL_PMIX_LIB_H */
