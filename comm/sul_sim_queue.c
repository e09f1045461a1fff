/* SPDX-License-Identifier: MIT */
/* sul_sim_queue.c - see sul_sim_queue.h. */
#include "sul_sim_queue.h"

#include <errno.h>
#include <stdlib.h>

static bool before(const struct sul_sim_event *a, const struct sul_sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->tie < b->tie;
}

int sul_sim_queue_push(struct sul_sim_queue *q, struct sul_sim_event e)
{
	size_t i = q->nr;

	if (q->nr == q->room) {
		size_t room = q->room ? 2 * q->room : 64;
		void *heap = realloc(q->heap, room * sizeof(*q->heap));

		if (!heap)
			return -ENOMEM;
		q->heap = heap;
		q->room = room;
	}
	q->nr++;
	for (; i && before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = e;
	return 0;
}

bool sul_sim_queue_pop(struct sul_sim_queue *q, struct sul_sim_event *e)
{
	struct sul_sim_event last;
	size_t i = 0, child;

	if (!q->nr)
		return false;
	*e = q->heap[0];
	last = q->heap[--q->nr];
	while ((child = 2 * i + 1) < q->nr) {
		if (child + 1 < q->nr &&
		    before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}
