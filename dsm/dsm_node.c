/* SPDX-License-Identifier: MIT */
/*
 * dsm_node.c - bringing a node up and taking it down; its few odds and ends.
 *
 * Role:    owns the memory of a node; nothing else allocates.
 * Threads: open and close by one; dsm_thread_join() by any.
 */
#include "dsm_node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_call.h"
#include "dsm_diff.h"

static uint32_t pages_of(const struct dsm_node_config *c)
{
	return (uint32_t)(c->cfg->region >> c->page_shift);
}

static void lay_out(const struct dsm_node_config *c, struct dsm_layout *at)
{
	memset(at, 0, sizeof(*at));
	dsm_dir_layout(at, c->ranks, pages_of(c));
	dsm_log_layout(at, c->cfg, c->ranks);
	dsm_news_layout(at, c->cfg, c->ranks);
	dsm_name_layout(at, c->cfg, c->ranks);
	dsm_lock_layout(at, c->cfg);
	dsm_flag_layout(at, c->ranks);
	dsm_inbox_layout(at);
	dsm_call_layout(at);
	dsm_barrier_layout(at, c->cfg, pages_of(c));
}

void dsm_node_windows(const struct dsm_node_config *c, struct sul_config *out)
{
	struct dsm_layout at;

	lay_out(c, &at);
	out->windows = DSM_WINDOWS;
	out->window[DSM_W_FRAME] = (struct sul_window_config){
		.bytes = c->cfg->region,
		.chunk = (unsigned int)(c->cfg->populate >> 12),
	};
	out->window[DSM_W_TWIN] =
		(struct sul_window_config){ .bytes = c->cfg->region };
	out->window[DSM_W_DIR] =
		(struct sul_window_config){ .bytes = at.dir_bytes };
	out->window[DSM_W_SYNC] =
		(struct sul_window_config){ .bytes = at.sync_bytes };
}

static int open_set(struct dsm_bits *b, uint32_t pages)
{
	void *zeroed = calloc(1, dsm_bits_bytes(pages));

	if (!zeroed)
		return -ENOMEM;
	dsm_bits_init(b, pages, zeroed);
	return 0;
}

static void close_set(struct dsm_bits *b)
{
	free(b->level[0]);
}

static int open_sets(struct dsm_node *n)
{
	return open_set(&n->watched, n->pages)	       ?:
		       open_set(&n->cached, n->pages)  ?:
		       open_set(&n->written, n->pages) ?:
		       open_set(&n->pending, n->pages) ?:
		       open_set(&n->marked, n->pages)  ?:
		       open_set(&n->dropped, n->pages) ?:
		       open_set(&n->shown, n->pages);
}

static size_t largest(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int open_memory(struct dsm_node *n)
{
	size_t unit_bytes = (size_t)1 << (n->page_shift + DSM_UNIT_ORDER_MAX);
	size_t pages = n->pages, ranks = (size_t)n->ranks;

	n->runs_max = largest(DSM_RUNS_MIN, DSM_DIFF_RUNS_MAX(unit_bytes));
	n->scratch_bytes = largest(DSM_REFRESH_BYTES, unit_bytes);
	n->state = calloc(pages, 1);
	n->access = calloc(pages, 1);
	n->order = calloc(pages, 1);
	n->place_of = calloc(pages, 1);
	n->wrote = calloc(pages, 1);
	n->holds = calloc(pages, sizeof(*n->holds));
	n->whole = calloc(pages, 1);
	n->enrolled = calloc(pages, 1);
	n->ready = calloc(pages, 1);
	n->fetched = calloc(pages, sizeof(*n->fetched));
	n->home = calloc(pages, sizeof(*n->home));
	n->idle = calloc(pages, sizeof(*n->idle));
	n->age = calloc(pages, sizeof(*n->age));
	n->probe = calloc(pages, sizeof(*n->probe));
	n->seen_pos = calloc(ranks, sizeof(*n->seen_pos));
	n->floor_pos = calloc(ranks, sizeof(*n->floor_pos));
	n->known_ref = calloc(ranks, sizeof(*n->known_ref));
	n->seen_ref = calloc(DSM_LOCKS, sizeof(*n->seen_ref));
	n->seen_name = calloc(DSM_SEEN, sizeof(*n->seen_name));
	n->runs = malloc(n->runs_max * sizeof(*n->runs));
	n->scratch = malloc(2 * n->scratch_bytes);
	n->incoming = malloc(DSM_INCOMING * sizeof(*n->incoming));
	n->entry = calloc(1, n->at.release_bytes);
	n->thread = calloc(n->cfg.threads, sizeof(*n->thread));
	for (int i = 0; i < 3; i++) {
		n->list[i] = malloc(pages * sizeof(struct dsm_notice));
		if (!n->list[i])
			return -ENOMEM;
	}
	if (!n->fetched || !n->ready || !n->state || !n->access || !n->order ||
	    !n->place_of || !n->enrolled || !n->wrote || !n->home || !n->idle ||
	    !n->age || !n->probe || !n->seen_pos || !n->floor_pos ||
	    !n->known_ref || !n->seen_ref || !n->seen_name || !n->holds ||
	    !n->whole || !n->runs || !n->scratch || !n->incoming || !n->entry ||
	    !n->thread)
		return -ENOMEM;
	return open_sets(n) ?:
			      dsm_heap_open(&n->heap, n->pages,
					    pages < DSM_EXTENTS_MAX ? pages + 2 :
								      DSM_EXTENTS_MAX);
}

int dsm_node_open(struct dsm_node **out, const struct dsm_node_config *c,
		  struct sul_port *port)
{
	struct dsm_node *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->port = port;
	n->env = c->env;
	n->env_ctx = c->env_ctx;
	n->rank = c->rank;
	n->ranks = c->ranks;
	n->page_shift = c->page_shift;
	n->pages = pages_of(c);
	n->cfg = *c->cfg;
	n->cache_pages = n->cfg.cache >> n->page_shift;
	n->watch_min = DSM_WATCH_MIN;
	n->news_slots = DSM_NEWS_SLOTS;
	n->borders_most = n->cfg.mappings ?: UINT32_MAX;
	n->stretch_shift = DSM_UNIT_ORDER_MAX;
	n->threads = 1;
	n->stats = &n->own_stats;
	n->place = n->own_place;
	lay_out(c, &n->at);
	n->frame = sul_window(port, DSM_W_FRAME);
	n->twin = sul_window(port, DSM_W_TWIN);
	n->dir = sul_window(port, DSM_W_DIR);
	n->sync = sul_window(port, DSM_W_SYNC);
	err = open_memory(n);
	if (err) {
		dsm_node_close(n);
		return err;
	}
	dsm_log_open(n);
	*out = n;
	return 0;
}

void dsm_node_close(struct dsm_node *n)
{
	if (!n)
		return;
	dsm_heap_close(&n->heap);
	close_set(&n->watched);
	close_set(&n->cached);
	close_set(&n->written);
	close_set(&n->pending);
	close_set(&n->marked);
	close_set(&n->dropped);
	close_set(&n->shown);
	for (int i = 0; i < 3; i++)
		free(n->list[i]);
	free(n->thread);
	free(n->entry);
	free(n->incoming);
	free(n->scratch);
	free(n->runs);
	free(n->seen_name);
	free(n->seen_ref);
	free(n->floor_pos);
	free(n->seen_pos);
	free(n->known_ref);
	free(n->fetched);
	free(n->ready);
	free(n->probe);
	free(n->age);
	free(n->idle);
	free(n->home);
	free(n->wrote);
	free(n->enrolled);
	free(n->whole);
	free(n->holds);
	free(n->order);
	free(n->access);
	free(n->place_of);
	free(n->state);
	free(n);
}

static struct dsm_thread *free_slot(struct dsm_node *n)
{
	for (uint32_t i = 0; i < n->cfg.threads; i++)
		if (!n->thread[i].node)
			return &n->thread[i];
	return NULL;
}

struct dsm_thread *dsm_thread_join(struct dsm_node *n)
{
	struct dsm_thread *t;

	dsm_enter(n, NULL);
	t = free_slot(n);
	if (t) {
		t->node = n;
		t->slot = (uint32_t)(t - n->thread);
		t->depth = 0;
		t->held_nr = 0;
		if (n->thread_nr <= t->slot)
			n->thread_nr = t->slot + 1;
		t->next_fault = DSM_BITS_END;
		t->run = 0;
		for (int i = 0; i < DSM_RECENT_PER_THREAD; i++)
			t->recent[i] = DSM_BITS_END;
	}
	dsm_leave(n);
	return t;
}

void dsm_thread_part(struct dsm_thread *t)
{
	struct dsm_node *n = t->node;

	dsm_enter(n, t);
	t->node = NULL;
	dsm_leave(n);
}

bool dsm_alone(const struct dsm_node *n)
{
	return n->threads == 1 && n->thread_nr == 1;
}

void dsm_enter(struct dsm_node *n, const struct dsm_thread *t)
{
	n->env->enter(n->env_ctx);
	n->acting = t ? t->slot : 0;
}

void dsm_leave(struct dsm_node *n)
{
	n->env->leave(n->env_ctx);
}

void dsm_must(struct dsm_node *n, int err, const char *what)
{
	if (err)
		n->env->fail(n->env_ctx, err, what);
}

_Noreturn void dsm_die(struct dsm_node *n, const char *fmt, ...)
{
	char text[SUL_JOB_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n->env->fail(n->env_ctx, 0, text);
}

/* Under the rank mutex.  What was noticed so far had been issued before its
 * notice was written: from now on it is at its home. */
void dsm_flush_port(struct dsm_node *n)
{
	dsm_must(n, sul_flush(n->port), "waiting for the homes");
	n->runs_nr = 0;
	dsm_log_done(n);
}

static void describe_wait(char *text, size_t room, enum dsm_wait what,
			  int64_t a, int b)
{
	char name[32];

	dsm_name_text((dsm_name)a, name, sizeof(name));
	switch (what) {
	case DSM_WAIT_LOCK:
		snprintf(text, room, "lock %s, behind rank %d", name, b);
		break;
	case DSM_WAIT_NEXT:
		snprintf(text, room, "the next holder of lock %s", name);
		break;
	case DSM_WAIT_READERS:
		snprintf(text, room, "the readers of lock %s", name);
		break;
	case DSM_WAIT_COND:
		snprintf(text, room, "a signal on the condition %s", name);
		break;
	case DSM_WAIT_FLAG:
		snprintf(text, room, "condition variable %s to be set", name);
		break;
	case DSM_WAIT_CHILD:
		snprintf(text, room, "rank %s to come to the barrier", name);
		break;
	case DSM_WAIT_OTHERS:
		snprintf(text, room, "all ranks to come to the barrier");
		break;
	case DSM_WAIT_THREADS:
		snprintf(
			text, room,
			"the other threads of this rank to come to the barrier");
		break;
	}
}

void dsm_wait_word(struct dsm_node *n, struct sul_word *word, uint32_t old,
		   enum dsm_wait what, int64_t a, int b)
{
	int err = sul_wait(n->port, word, old, DSM_NOTE_AFTER_MS);

	if (err == -ETIMEDOUT) {
		char text[SUL_JOB_NOTE_MAX];

		describe_wait(text, sizeof(text), what, a, b);
		n->env->note(n->env_ctx, text);
		/* What was pushed never comes to a rank that has left. */
		err = sul_flush(n->port);
		if (!err)
			err = sul_wait(n->port, word, old, -1);
		n->env->note_end(n->env_ctx);
	}
	dsm_must(n, err, "waiting");
}

void dsm_stats_update(struct dsm_node *n)
{
	struct sul_stats s;

	sul_stats_read(n->port, &s);
	n->stats->msgs_sent = s.operations - n->port_base.operations;
	n->stats->bytes_sent = s.bytes_out - n->port_base.bytes_out;
	n->stats->bytes_recv = s.bytes_in - n->port_base.bytes_in;
	n->stats->packets_sent = s.packets_out - n->port_base.packets_out;
	n->stats->packets_recv = s.packets_in - n->port_base.packets_in;
	n->stats->wire_sent = s.wire_out - n->port_base.wire_out;
	n->stats->wire_recv = s.wire_in - n->port_base.wire_in;
	n->stats->packets_again = s.resent - n->port_base.resent;
	n->stats->packets_refused = s.refused - n->port_base.refused;
}
