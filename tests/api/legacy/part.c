/* SPDX-License-Identifier: MIT */
/* part.c - the other file of old.c. */
#include "jia.h"

int *cell, *sum;

void part_checks()
{
	unsigned long a = (unsigned long)cell, b = (unsigned long)sum;

	if (!a || !b || a % 4096 || b % 4096)
		jia_error("part.c: common objects are not common");
}
