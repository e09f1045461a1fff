/* SPDX-License-Identifier: MIT */
/* dsm_maps.h - how many mappings this process may still make. */
#ifndef DSM_MAPS_H
#define DSM_MAPS_H

#include <stdint.h>

/* Of vm.max_map_count, what is not in use at present. */
uint64_t dsm_maps_left(void);

#endif /* DSM_MAPS_H */
