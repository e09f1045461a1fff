/* SPDX-License-Identifier: MIT */
/*
 * jiarun_json_spot.h - what of jiarun_json.h comes from jiarun_spot.h.
 */
#ifndef JIARUN_JSON_SPOT_H
#define JIARUN_JSON_SPOT_H

#include <jansson.h>

#include "jiarun_spot.h"

/* Two arrays; NULL: no memory. */
json_t *jiarun_json_spots(const struct jiarun_counts *c);
json_t *jiarun_json_pages(const struct jiarun_counts *c);

#endif /* JIARUN_JSON_SPOT_H */
