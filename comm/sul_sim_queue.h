/* SPDX-License-Identifier: MIT */
/*
 * sul_sim_queue.h - what will happen, by time.  Private to the simulator.
 *
 * A binary heap.  Events of the same time come in the order of a number that
 * was drawn for each.
 */
#ifndef SUL_SIM_QUEUE_H
#define SUL_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sul_sim_event {
	uint64_t at, tie;
	int kind, rank;
	uint64_t which;
	void *what;
};

struct sul_sim_queue {
	struct sul_sim_event *heap;
	size_t nr, room;
};

int sul_sim_queue_push(struct sul_sim_queue *q, struct sul_sim_event e);
/* The earliest; false: none. */
bool sul_sim_queue_pop(struct sul_sim_queue *q, struct sul_sim_event *e);

#endif /* SUL_SIM_QUEUE_H */
