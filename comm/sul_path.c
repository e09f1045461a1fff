/* SPDX-License-Identifier: MIT */
/*
 * sul_path.c - round trips, and paths that are alive or put aside.
 *
 * Role:      which path a packet takes; estimates for when to ask again.
 * Invariant: at least one path is not put aside.
 * Threads:   the link's owner; pure.
 */
#include "sul_path.h"

enum {
	MS = 1000000, /* in ns */
	TIMEOUT_MIN_NS = 1 * MS, /* the other side has to be scheduled, too */
	TIMEOUT_FIRST_NS = 20 * MS, /* before anything is known */
	TURN_PACKETS = 16, /* by one path in a row: carriers send in batches */
	LOST_PACKETS = 8, /* in a row, until a path is put aside */
	REST_FIRST_NS = 50 * MS,
};

#define REST_MOST_NS ((uint64_t)5000 * MS)

void sul_rtt_sample(struct sul_rtt *r, uint64_t ns)
{
	uint64_t off;

	if (!r->known) {
		r->known = true;
		r->smooth_ns = ns;
		r->variation_ns = ns / 2;
		r->least_ns = ns;
		return;
	}
	off = ns > r->smooth_ns ? ns - r->smooth_ns : r->smooth_ns - ns;
	r->variation_ns += off / 4 - r->variation_ns / 4;
	r->smooth_ns += ns / 8 - r->smooth_ns / 8;
	if (ns < r->least_ns)
		r->least_ns = ns;
}

uint64_t sul_rtt_timeout(const struct sul_rtt *r, uint64_t delay_ns)
{
	uint64_t t = r->smooth_ns + 4 * r->variation_ns;

	if (!r->known)
		return TIMEOUT_FIRST_NS + delay_ns;
	return (t < TIMEOUT_MIN_NS ? TIMEOUT_MIN_NS : t) + delay_ns;
}

uint64_t sul_rtt_timeout_drained(const struct sul_rtt *r)
{
	uint64_t t = 4 * r->least_ns, most = sul_rtt_timeout(r, 0);

	if (t < TIMEOUT_MIN_NS)
		t = TIMEOUT_MIN_NS;
	return t < most ? t : most;
}

void sul_paths_init(struct sul_paths *p, unsigned int nr)
{
	memset(p, 0, sizeof(*p));
	p->nr = nr;
}

static unsigned int next_alive(const struct sul_paths *p, unsigned int path)
{
	do
		path = (path + 1) % p->nr;
	while (p->at[path].again_ns);
	return path;
}

unsigned int sul_paths_pick(struct sul_paths *p, int not )
{
	if (p->nr == 1)
		return 0;
	if (++p->turn > TURN_PACKETS || p->at[p->now].again_ns ||
	    (int)p->now == not ) {
		p->now = next_alive(p, p->now);
		p->turn = 1;
	}
	return p->now;
}

void sul_paths_seen(struct sul_paths *p, unsigned int path, uint64_t stamp_ns,
		    uint64_t held_ns, uint64_t now_ns)
{
	struct sul_path *at;

	if (path >= p->nr || stamp_ns <= p->at[path].seen_ns)
		return;
	at = &p->at[path];
	at->seen_ns = stamp_ns;
	at->trip_ns = now_ns - stamp_ns;
	at->lost = 0;
	at->again_ns = at->rest_ns = 0;
	sul_rtt_sample(&p->rtt, now_ns - stamp_ns - held_ns);
	if (stamp_ns <= p->seen_ns)
		return;
	p->seen_ns = stamp_ns;
	p->trip_ns = at->trip_ns;
}

static bool others_get_through(const struct sul_paths *p, unsigned int path)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (i != path && !p->at[i].again_ns &&
		    p->at[i].seen_ns > p->at[path].seen_ns)
			return true;
	return false;
}

void sul_paths_lost(struct sul_paths *p, unsigned int path, uint64_t now_ns)
{
	struct sul_path *at = &p->at[path];

	if (++at->lost < LOST_PACKETS || at->again_ns ||
	    !others_get_through(p, path))
		return;
	at->rest_ns = REST_FIRST_NS;
	at->again_ns = now_ns + at->rest_ns;
}

uint64_t sul_paths_deadline(const struct sul_paths *p)
{
	uint64_t at = UINT64_MAX;

	for (unsigned int i = 0; i < p->nr; i++)
		if (p->at[i].again_ns && p->at[i].again_ns < at)
			at = p->at[i].again_ns;
	return at;
}

int sul_paths_retry(struct sul_paths *p, uint64_t now_ns)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		struct sul_path *at = &p->at[i];

		if (!at->again_ns || at->again_ns > now_ns)
			continue;
		at->rest_ns = 2 * at->rest_ns < REST_MOST_NS ? 2 * at->rest_ns :
							       REST_MOST_NS;
		at->again_ns = now_ns + at->rest_ns;
		return (int)i;
	}
	return -1;
}
