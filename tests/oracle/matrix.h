/* SPDX-License-Identifier: MIT */
/* matrix.h - the oracle over ranks, threads and both ends of all parameters. */
#ifndef ORACLE_MATRIX_H
#define ORACLE_MATRIX_H

#include "job.h"

/*
 * @base gives paths, seed, stall_s and settings that stay as they are; about
 * @ops_total operations in all, over @configs configurations (0: as many as it
 * takes to have every pair of values once).  0, 1 (violations) or -errno.
 */
int matrix_run(const struct job *base, uint64_t ops_total,
	       unsigned int configs);

#endif /* ORACLE_MATRIX_H */
