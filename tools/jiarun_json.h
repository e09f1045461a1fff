/* SPDX-License-Identifier: MIT */
/*
 * jiarun_json.h - the counters of a job as JSON (jiarun --stats-format=json).
 *
 * Here and not in dsm/, so that libjia does not need jansson.
 */
#ifndef JIARUN_JSON_H
#define JIARUN_JSON_H

#include <stdint.h>
#include <stdio.h>

/*
 * One object:
 *   { "format": "dajia-stats", "version": 1, "ranks": 2,
 *     "counters": {
 *       "msgs_sent": { "label": "Msgs Sent", "unit": "count", "doc": "...",
 *                      "ranks": [ 3, 4 ], "total": 7 },
 *       ... } }
 * in the order of dsm_stat.def.  JSON has no unsigned numbers of 64 bits: a
 * counter beyond 2^63-1 is written as that.
 *
 * @counters[rank] are DSM_STAT_NR words.  0, -ENOMEM, or -EIO when @f could
 * not take it.
 */
int jiarun_json_print(FILE *f, const uint64_t *const counters[], int ranks);

#endif /* JIARUN_JSON_H */
