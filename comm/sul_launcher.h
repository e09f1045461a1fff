/* SPDX-License-Identifier: MIT */
/*
 * sul_launcher.h - what the environment tells of who has started this process.
 *
 * A hint for messages, and for a start without the PMIx library; what a job
 * relies on comes from the launcher itself (sul_pmix.h).
 */
#ifndef SUL_LAUNCHER_H
#define SUL_LAUNCHER_H

#include <stdbool.h>

#pragma GCC visibility push(default) /* what libsul.so exports */

struct sul_launcher {
	const char *name, *remedy; /* sul_launcher.def */
	int rank, ranks;
};

/* False: none that is known. */
bool sul_launcher_find(struct sul_launcher *out);

#pragma GCC visibility pop

#endif /* SUL_LAUNCHER_H */
