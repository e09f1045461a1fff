/* SPDX-License-Identifier: MIT */
/*
 * sul_story.h - random operations over a cable, next to what they should do.
 *
 * Every rank owns a part of each window of every other one.  What it issues is
 * executed on a shadow of that part at once; when it is quiet, the part and all
 * results have to be equal to the shadow's.  So a lost, doubled or misplaced
 * operation shows.
 */
#ifndef SUL_STORY_H
#define SUL_STORY_H

#include "sul_cable.h"

struct story;

/* The worlds' ranks all issue: @ops operations altogether, in rounds. */
struct story *story_new(struct cable *c);
/* What went wrong, or NULL. */
const char *story_run(struct story *s, uint64_t ops);
void story_free(struct story *s);

#endif /* SUL_STORY_H */
