/* SPDX-License-Identifier: MIT */
/* dsm_call.c - see dsm_call.h. */
#include "dsm_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dsm_config_row.h"

struct record {
	uint64_t nr; /* 1 is the first call */
	uint64_t kind;
	uint64_t args[3];
	uint64_t site; /* does not count: macros may hide the place */
};

static const struct {
	const char *name;
	int nr_args;
	const char *arg[3];
} names[] = {
#define CALL(name, nr, a, b, c) { #name, nr, { a, b, c } },
#include "dsm_call.def"
};

void dsm_call_layout(struct dsm_layout *at)
{
	at->calls = at->sync_bytes;
	at->sync_bytes += sizeof(struct record) * DSM_CALLS_KEPT;
}

static uint64_t mix(uint64_t hash, uint64_t v) /* FNV-1a, by words */
{
	return (hash ^ v) * UINT64_C(0x100000001b3) + 1;
}

static struct record *record_at(const struct dsm_node *n, uint64_t nr)
{
	struct record *ring = (void *)(n->sync + n->at.calls);

	return &ring[nr % DSM_CALLS_KEPT];
}

void dsm_call_record(struct dsm_node *n, enum dsm_call_kind kind,
		     const uint64_t *args, uintptr_t site)
{
	uint64_t nr = ++n->calls;
	struct record *r = record_at(n, nr);

	*r = (struct record){ .nr = nr, .kind = kind, .site = site };
	n->calls_hash = mix(n->calls_hash, kind);
	for (int i = 0; args && i < names[kind].nr_args; i++) {
		r->args[i] = args[i];
		n->calls_hash = mix(n->calls_hash, args[i]);
	}
}

static bool same(const struct record *a, const struct record *b)
{
	return a->nr == b->nr && a->kind == b->kind &&
	       !memcmp(a->args, b->args, sizeof(a->args));
}

static int put_arg(char *out, size_t room, const char *name, uint64_t v)
{
	if (!strcmp(name, "ptr"))
		return snprintf(out, room, "%#" PRIx64, v);
	if (!strcmp(name, "parameter") && v < DSM_CONFIG_NR)
		return snprintf(out, room, "%s", dsm_config_rows[v].name);
	return snprintf(out, room, "%s=%" PRIu64, name, v);
}

static void describe(char *out, size_t room, const struct record *r,
		     uint64_t nr)
{
	int at;

	if (r->nr != nr) {
		snprintf(out, room, "no such call yet");
		return;
	}
	at = snprintf(out, room, "%s(", names[r->kind].name);
	for (int i = 0; i < names[r->kind].nr_args; i++) {
		if (i)
			at += snprintf(out + at, room - (size_t)at, ", ");
		at += put_arg(out + at, room - (size_t)at,
			      names[r->kind].arg[i], r->args[i]);
	}
	at += snprintf(out + at, room - (size_t)at, ")");
	if (r->site)
		snprintf(out + at, room - (size_t)at, " at @{0x%" PRIx64 "}",
			 r->site);
}

void dsm_call_check(struct dsm_node *n, int peer)
{
	const struct record *ours = record_at(n, n->calls);
	struct record theirs;

	dsm_must(n,
		 sul_get(n->port, peer, DSM_W_SYNC,
			 n->at.calls +
				 sizeof(theirs) * (n->calls % DSM_CALLS_KEPT),
			 &theirs, sizeof(theirs), NULL, 0),
		 "comparing collective calls");
	dsm_must(n, sul_flush(n->port), "comparing collective calls");
	if (theirs.nr == n->calls && !same(ours, &theirs))
		dsm_call_differ(n, peer, n->calls);
}

_Noreturn void dsm_call_differ(struct dsm_node *n, int child,
			       uint64_t child_calls)
{
	struct record theirs[DSM_CALLS_KEPT];
	uint64_t most = child_calls > n->calls ? child_calls : n->calls;
	uint64_t nr = most > DSM_CALLS_KEPT ? most - DSM_CALLS_KEPT + 1 : 1;
	char ours_text[200], theirs_text[200];

	dsm_must(n,
		 sul_get(n->port, child, DSM_W_SYNC, n->at.calls, theirs,
			 sizeof(theirs), NULL, 0),
		 "comparing collective calls");
	dsm_must(n, sul_flush(n->port), "comparing collective calls");
	while (nr < most &&
	       same(record_at(n, nr), &theirs[nr % DSM_CALLS_KEPT]))
		nr++;
	describe(ours_text, sizeof(ours_text), record_at(n, nr), nr);
	describe(theirs_text, sizeof(theirs_text), &theirs[nr % DSM_CALLS_KEPT],
		 nr);
	dsm_die(n,
		"ranks differ in their collective call number %" PRIu64
		": rank %d made %s, rank %d made %s; all ranks must make the same calls in the same order",
		nr, n->rank, ours_text, child, theirs_text);
}
