/* SPDX-License-Identifier: MIT */
/*
 * sulperf_carrier.c - what is known of the carrier between the two ranks.
 *
 * Role:      the only place that looks inside the library: which carrier it is,
 *            where its packets go, what it has counted.
 * Threads:   the rank's only one.
 * Locks:     none.
 */
#include "sul_kmod.h"
#include "sul_udp.h"
#include "sulperf.h"

static bool is_far(const struct perf *p)
{
	return sul_port_far(p->port, p->other);
}

/* The module's, or NULL. */
static const struct sul_kmod *kmod_of(const struct perf *p)
{
	return is_far(p) && p->port->far_ops == &sul_kmod_ops ?
		       sul_kmod_of(p->port) :
		       NULL;
}

/* Are there packets between the two? */
static bool has_packets(const struct perf *p)
{
	const struct sul_kmod *k = kmod_of(p);

	return is_far(p) && !(k && k->near[p->other]);
}

const char *perf_carrier(const struct perf *p)
{
	return is_far(p) ? p->port->far_ops->name : p->port->ops->name;
}

enum perf_on perf_on(const struct perf *p)
{
	if (kmod_of(p))
		return has_packets(p) ? PERF_ON_KMOD : PERF_ON_NEAR;
	return is_far(p) ? PERF_ON_UDP : PERF_ON_SHM;
}

const char *perf_auth(const struct perf *p)
{
	static const char *const words[] = {
		[SUL_AUTH_MAC] = "mac",
		[SUL_AUTH_OFF] = "off",
		[SUL_AUTH_AEAD] = "aead",
	};

	return has_packets(p) ? words[p->settings.value.auth] : NULL;
}

bool perf_has_mac(const struct perf *p)
{
	return has_packets(p) && p->settings.value.auth != SUL_AUTH_OFF;
}

/* The other's first address; on one host the loopback is as good. */
union sul_sockaddr perf_carrier_address(const struct perf *p)
{
	union sul_sockaddr here = {
		.v4 = { .sin_family = AF_INET,
			.sin_addr = { htonl(INADDR_LOOPBACK) } },
	};
	const struct sul_kmod *k = kmod_of(p);
	struct sul_way way[SUL_NET_PATHS_MAX];
	struct sul_address a;
	unsigned int nr;

	if (!has_packets(p))
		return here;
	if (!k)
		return sul_udp_of(p->port)->peer[p->other].way[0].to;
	if (sul_address_read(&a, p->job, p->other) ||
	    sul_listener_ways(k->listener, &a, p->near, way, &nr))
		return here;
	return way[0].to;
}

void perf_carrier_counts(const struct perf *p, struct perf_counts *c)
{
	struct sul_stats s;

	sul_stats_read(p->port, &s);
	c->bytes_out = s.bytes_out;
	c->bytes_in = s.bytes_in;
	c->packets_out = s.packets_out;
	c->packets_in = s.packets_in;
	c->wire_out = s.wire_out;
	c->wire_in = s.wire_in;
	c->acks_out = s.acks;
	c->resent = s.resent;
}

bool perf_counted(const struct perf *p, enum perf_where where,
		  enum perf_row_id row)
{
	const struct perf_result *r = &p->board->row[row];

	if (!(r->ops > 0))
		return false;
	if (where == PERF_TRACED)
		return r->traced;
	return perf_rows[row].via == PERF_SUL &&
	       (where == PERF_PORT || has_packets(p));
}
