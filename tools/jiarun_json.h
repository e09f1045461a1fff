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

#include "jiarun_tally.h"

/*
 * One object:
 *   { "format": "dajia-stats", "version": 1, "ranks": 2,
 *     "counters": {
 *       "msgs_sent": { "label": "Msgs Sent", "unit": "count", "doc": "...",
 *                      "ranks": [ 3, 4 ], "total": 7 },
 *       ... },
 *     "phases": [
 *       { "name": "sweep", "begun": [ 1, 1 ], "ns": [ 5, 6 ],
 *         "counters": { "msgs_sent": { "ranks": [ 3, 4 ], "total": 7 }, ... } },
 *       ... ],
 *     "memory": [
 *       { "name": "grid", "bytes": 8192,
 *         "counters": { "getp": { "ranks": [ 3, 4 ], "total": 7 }, ... } },
 *       ... ],
 *     "spots": [
 *       { "what": "lock 3", "site": "sor.c:41 (sweep)",
 *         "count": [ 3, 4 ], "ns": [ 5, 6 ] },
 *       ... ],
 *     "pages": [
 *       { "address": "0x550000003000", "bytes": 4096, "name": "grid",
 *         "allocated": "sor.c:20 (main)", "offset": 12288, "together": 7,
 *         "counters": { "getp": 7, ... },
 *         "load": "sor.c:41 (sweep)", "store": null,
 *         "writers": [ { "rank": 0, "releases": 9, "from": 0, "to": 64 }, ... ]
 *       }, ... ] }
 * in the order of dsm_stat.def and dsm_place.def, phases and names in that of
 * their first appearance; "spots" and "pages" (jiarun_spot.h) the dearest first.
 * The first of "memory" has "name": null and is all memory without a name.  JSON
 * has no unsigned numbers of 64 bits: a counter beyond 2^63-1 is written as that.
 *
 * 0, -ENOMEM, or -EIO when @f could not take it.
 */
int jiarun_json_print(FILE *f, const struct jiarun_counts *c);

#endif /* JIARUN_JSON_H */
