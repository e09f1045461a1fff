/* SPDX-License-Identifier: MIT */
/* dsm_remedy.h - what to do about an error of the system's. */
#ifndef DSM_REMEDY_H
#define DSM_REMEDY_H

#include <stddef.h>

enum {
	DSM_REMEDY_MAX = 256 /* bytes, with the 0 */
};

/* For @err (negative errno), beginning with "; "; "" if nothing is known. */
void dsm_remedy(int err, char *out, size_t room);

#endif /* DSM_REMEDY_H */
