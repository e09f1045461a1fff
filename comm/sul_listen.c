/* SPDX-License-Identifier: MIT */
/*
 * sul_listen.c - see sul_listen.h.
 *
 * Role:    makes the sockets while a rank starts, publishes them, and finds the
 *          ways to what others have published.
 * Threads: one, at start.
 * Locks:   none.
 */
#include "sul_listen.h"
#include "sul_kmod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	UDP_HEADER = 8,
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	LANES = 2, /* that a peer can fill at once: requests and answers */
	PACKET_COST = 1024, /* bytes of the kernel's own for each packet */
};

static unsigned int clamp(unsigned int v, unsigned int min, unsigned int max)
{
	return v < min ? min : v > max ? max : v;
}

static bool is_v6(const union sul_sockaddr *a)
{
	return a->any.sa_family == AF_INET6;
}

/* What is left of an IP packet for us. */
static unsigned int packet_of(const struct sul_listener *l,
			      const struct sul_link *link)
{
	unsigned int mtu = l->mtu && l->mtu < link->mtu ? l->mtu : link->mtu;
	unsigned int head =
		UDP_HEADER + (is_v6(&link->at) ? IPV6_HEADER : IPV4_HEADER);

	return clamp(mtu > head ? mtu - head : 0, SUL_NET_PACKET_MIN,
		     SUL_NET_PACKET_MAX);
}

unsigned int sul_listener_packet(const struct sul_listener *l)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < l->links.nr; i++) {
		unsigned int n = packet_of(l, &l->links.link[i]);

		most = n > most ? n : most;
	}
	return most;
}

/* --- sockets ---------------------------------------------------------------------- */

static int open_socket(struct sul_listener *l, const union sul_sockaddr *at)
{
	int err = sul_socket_open(&l->socket[l->sockets], at);

	if (!err)
		l->sockets++;
	return err;
}

static int open_named(struct sul_listener *l)
{
	int err = 0;

	for (unsigned int i = 0; i < l->links.nr && !err; i++)
		err = open_socket(l, &l->links.link[i].at);
	return err;
}

static void drop_v6(struct sul_links *links)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < links->nr; i++)
		if (!is_v6(&links->link[i].at))
			links->link[n++] = links->link[i];
	links->nr = n;
}

/* One socket for all links; where IPv6 is only half there, IPv4 alone. */
static int open_any(struct sul_listener *l)
{
	union sul_sockaddr any = { 0 };

	for (unsigned int i = 0; i < l->links.nr; i++) {
		if (!is_v6(&l->links.link[i].at))
			continue;
		any.v6.sin6_family = AF_INET6;
		if (!open_socket(l, &any))
			return 0;
		drop_v6(&l->links);
		break;
	}
	any.v4.sin_family = AF_INET;
	return open_socket(l, &any);
}

/* --- what we publish ------------------------------------------------------------------ */

static void publish_link(const struct sul_listener *l, unsigned int i,
			 struct sul_endpoint *e)
{
	const struct sul_link *link = &l->links.link[i];

	e->family = is_v6(&link->at) ? 6 : 4;
	e->port = (uint16_t)l->socket[l->named ? i : 0].port;
	e->packet_bytes = (uint16_t)packet_of(l, link);
	if (is_v6(&link->at))
		memcpy(e->bytes, &link->at.v6.sin6_addr, 16);
	else
		memcpy(e->bytes, &link->at.v4.sin_addr, 4);
}

/* The module keeps what is under way in memory of which a port has so much. */
static unsigned int room_of_module(const struct sul_listener *l,
				   unsigned int peers, unsigned int span)
{
	size_t room = l->device >= 0 ? sul_kmod_link_room() : SIZE_MAX;

	while (span > SUL_NET_SPAN_MIN &&
	       sul_net_link_bytes(sul_listener_packet(l), span) > room / peers)
		span /= 2;
	return span;
}

/* So that all peers together do not overrun the smallest buffer. */
static unsigned int span_of(const struct sul_listener *l, unsigned int asked,
			    int ranks)
{
	unsigned int least = UINT32_MAX, span = SUL_NET_SPAN_MIN;
	unsigned int each = 2 * sul_listener_packet(l) + PACKET_COST;
	unsigned int peers = ranks > 1 ? (unsigned int)ranks - 1 : 1;

	for (unsigned int i = 0; i < l->sockets; i++)
		if (l->socket[i].receive_bytes < least)
			least = l->socket[i].receive_bytes;
	if (!asked) {
		asked = least / (LANES * each) / peers;
		asked = room_of_module(l, peers, asked);
	}
	while (span < SUL_NET_SPAN_MAX && 2 * span <= asked)
		span *= 2;
	return span;
}

/* Peers on this host shall know whether we have the module, too. */
static int look_for_module(struct sul_listener *l,
			   const struct sul_listen_config *cfg, char *why)
{
	char text[SUL_WHY_MAX];
	int err;

	if (cfg->far == SUL_FAR_UDP)
		return 0;
	l->kmod = cfg->kmod ?: &sul_kmod_device;
	l->must = cfg->far == SUL_FAR_KMOD;
	err = sul_kmod_find(l->kmod, &l->device, text);
	if (!err)
		l->address.flags |= SUL_ADDRESS_KMOD;
	if (err && l->must) {
		snprintf(why, SUL_WHY_MAX, "carrier=kmod: %.*s",
			 SUL_WHY_MAX - 32, text);
		return err;
	}
	/* Where there is none, nobody expects it. */
	if (err && err != -ENOENT)
		snprintf(l->note, sizeof(l->note),
			 "carrier udp instead of kmod: %.*s", SUL_WHY_MAX - 48,
			 text);
	return 0;
}

static int publish(struct sul_listener *l, const struct sul_listen_config *cfg)
{
	struct sul_address *a = &l->address;
	struct sul_job_rank *r = sul_job_rank(cfg->job, cfg->rank);

	a->version = SUL_ADDRESS_VERSION;
	a->nr = (uint8_t)l->links.nr;
	a->paths = l->named ? a->nr : 0;
	a->span = (uint16_t)span_of(l, cfg->span, sul_job_ranks(cfg->job));
	for (unsigned int i = 0; i < l->links.nr; i++)
		publish_link(l, i, &a->at[i]);
	do {
		if (getrandom(&a->session, sizeof(a->session), 0) < 0)
			return -errno;
	} while (!a->session);
	memcpy(r->address, a, sizeof(*a));
	r->address_len = sizeof(*a);
	return 0;
}

/* --- listening ------------------------------------------------------------------------ */

static bool anybody_far(const struct sul_job *job)
{
	for (int r = 0; r < sul_job_ranks(job); r++)
		if (sul_job_far(job, r))
			return true;
	return false;
}

static int choose_links(struct sul_listener *l,
			const struct sul_listen_config *cfg, bool far,
			char *why)
{
	struct sul_links all;
	int err = sul_links_read(&all);

	if (err) {
		snprintf(why, SUL_WHY_MAX,
			 "reading this host's network interfaces: %s",
			 strerror(-err));
		return err;
	}
	if (cfg->links && *cfg->links) {
		l->named = true;
		return sul_links_named(&all, cfg->links, SUL_SOCKETS_MAX,
				       &l->links, why, SUL_WHY_MAX);
	}
	sul_links_usual(&all, !far, SUL_ENDPOINTS_MAX, &l->links);
	if (l->links.nr)
		return 0;
	snprintf(why, SUL_WHY_MAX, "no network interface of this host is up");
	return -ENETDOWN;
}

static int listen_on(struct sul_listener *l,
		     const struct sul_listen_config *cfg, bool far, char *why)
{
	int err = choose_links(l, cfg, far, why);

	if (err)
		return err;
	if (!far && !l->named) { /* nobody else shall hear of it */
		l->links.nr = 1;
		l->named = true;
	}
	err = l->named ? open_named(l) : open_any(l);
	if (!err)
		err = publish(l, cfg);
	if (err)
		snprintf(why, SUL_WHY_MAX, "opening a UDP socket: %s",
			 strerror(-err));
	return err;
}

int sul_listen(struct sul_listener **out, const struct sul_listen_config *cfg,
	       char why[SUL_WHY_MAX])
{
	bool far = anybody_far(cfg->job);
	struct sul_listener *l;
	int err;

	if (!far && (!cfg->everywhere || sul_job_ranks(cfg->job) == 1)) {
		*out = NULL;
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		snprintf(why, SUL_WHY_MAX, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	l->mtu = cfg->mtu;
	l->everywhere = cfg->everywhere;
	l->device = -1;
	err = look_for_module(l, cfg, why);
	if (!err)
		err = listen_on(l, cfg, far, why);
	if (err) {
		sul_listener_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void sul_listener_close(struct sul_listener *l)
{
	if (!l)
		return;
	for (unsigned int i = 0; i < l->sockets; i++)
		sul_socket_close(&l->socket[i]);
	if (l->device >= 0)
		l->kmod->close(l->device);
	free(l);
}

/* --- what others publish ------------------------------------------------------------------- */

int sul_address_read(struct sul_address *out, struct sul_job *job, int rank)
{
	const struct sul_job_rank *r = sul_job_rank(job, rank);

	if (r->address_len != sizeof(*out))
		return -EPROTO;
	memcpy(out, r->address, sizeof(*out));
	return 0;
}

int sul_address_span(unsigned int *out, struct sul_job *job, int ranks)
{
	unsigned int span = SUL_NET_SPAN_MAX;

	for (int r = 0; r < ranks; r++) {
		struct sul_address a;
		int err = sul_address_read(&a, job, r);

		if (err)
			return err;
		if (a.span < span)
			span = a.span;
	}
	*out = span;
	return 0;
}

/* --- the ways to others ------------------------------------------------------------------ */

static bool make_sense(const struct sul_address *a)
{
	if (a->version != SUL_ADDRESS_VERSION || !a->session || !a->nr ||
	    a->nr > SUL_ENDPOINTS_MAX || a->paths > SUL_NET_PATHS_MAX ||
	    (a->paths && a->paths != a->nr))
		return false;
	for (unsigned int i = 0; i < a->nr; i++)
		if ((a->at[i].family != 4 && a->at[i].family != 6) ||
		    !a->at[i].port ||
		    a->at[i].packet_bytes < SUL_NET_PACKET_MIN ||
		    a->at[i].packet_bytes > SUL_NET_PACKET_MAX)
			return false;
	return true;
}

static union sul_sockaddr sockaddr_of(const struct sul_endpoint *e)
{
	union sul_sockaddr a = { 0 };

	if (e->family == 6) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(e->port);
		memcpy(&a.v6.sin6_addr, e->bytes, 16);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(e->port);
		memcpy(&a.v4.sin_addr, e->bytes, 4);
	}
	return a;
}

/* As ::ffff:192.0.2.1, for a socket of the other family. */
static union sul_sockaddr mapped(const union sul_sockaddr *v4)
{
	union sul_sockaddr a = { 0 };

	a.v6.sin6_family = AF_INET6;
	a.v6.sin6_port = v4->v4.sin_port;
	memset(&a.v6.sin6_addr.s6_addr[10], 0xff, 2);
	memcpy(&a.v6.sin6_addr.s6_addr[12], &v4->v4.sin_addr, 4);
	return a;
}

/* Can socket @s send to @a?  Then *@to is how it calls it. */
static bool fits(const struct sul_listener *l, unsigned int s,
		 const union sul_sockaddr *a, union sul_sockaddr *to)
{
	const struct sul_socket *k = &l->socket[s];

	if (k->family == AF_INET && is_v6(a))
		return false;
	if (k->family == AF_INET6 && !is_v6(a)) {
		if (l->named) /* bound to an IPv6 address */
			return false;
		*to = mapped(a);
		return true;
	}
	*to = *a;
	if (is_v6(a) && IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr))
		to->v6.sin6_scope_id = k->scope;
	return true;
}

/* The link over which packets to @a leave; NULL: there is no route. */
static const struct sul_link *route(const struct sul_listener *l,
				    const union sul_sockaddr *a)
{
	int fd = socket(a->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union sul_sockaddr from = { 0 };
	socklen_t len = sizeof(from);
	bool there;

	if (fd < 0)
		return NULL;
	there = !connect(fd, &a->any, sul_sockaddr_len(a)) &&
		!getsockname(fd, &from.any, &len);
	close(fd);
	for (unsigned int i = 0; there && i < l->links.nr; i++)
		if (sul_link_same_address(&l->links.link[i].at, &from))
			return &l->links.link[i];
	/* The host's own name for itself, or an interface that came later. */
	return there ? &l->links.link[0] : NULL;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool ours(const struct sul_listener *l, const union sul_sockaddr *a)
{
	for (unsigned int i = 0; i < l->links.nr; i++)
		if (sul_link_same_address(&l->links.link[i].at, a))
			return true;
	return false;
}

static bool near(const struct sul_listener *l, const union sul_sockaddr *a)
{
	for (unsigned int i = 0; i < l->links.nr; i++)
		if (sul_link_reaches(&l->links.link[i], a))
			return true;
	return false;
}

/*
 * Is candidate @e a way to a rank?  An address that this host has, too, is not
 * that of another host.
 */
static bool try_candidate(const struct sul_listener *l,
			  const struct sul_endpoint *e, bool here,
			  bool neighbours, struct sul_way *out)
{
	union sul_sockaddr a = sockaddr_of(e);
	const struct sul_link *link;

	if (!here && ours(l, &a))
		return false;
	if (neighbours && !near(l, &a))
		return false;
	link = route(l, &a);
	if (!link)
		return false;
	for (unsigned int s = 0; s < l->sockets; s++) {
		if (!fits(l, s, &a, &out->to))
			continue;
		out->socket = s;
		out->packet_bytes = least(e->packet_bytes, packet_of(l, link));
		return true;
	}
	return false;
}

/* First those in a network of ours, then what a gateway leads to. */
static int choose_candidate(const struct sul_listener *l,
			    const struct sul_address *a, bool here,
			    struct sul_way *out)
{
	for (int far = 0; far <= 1; far++)
		for (unsigned int i = 0; i < a->nr; i++)
			if (try_candidate(l, &a->at[i], here, !far, out))
				return 0;
	return -ENETUNREACH;
}

/* Path @i of a rank, by our socket @i if that can, else by any. */
static int named_way(const struct sul_listener *l, const struct sul_endpoint *e,
		     unsigned int i, struct sul_way *out)
{
	union sul_sockaddr a = sockaddr_of(e);

	for (unsigned int n = 0; n < l->sockets; n++) {
		unsigned int s = (i + n) % l->sockets;
		const struct sul_link *link = &l->links.link[l->named ? s : 0];

		if (!fits(l, s, &a, &out->to))
			continue;
		if (!l->named)
			link = route(l, &a);
		if (!link)
			continue;
		out->socket = s;
		out->packet_bytes = least(e->packet_bytes, packet_of(l, link));
		return 0;
	}
	return -ENETUNREACH;
}

int sul_listener_ways(const struct sul_listener *l, const struct sul_address *a,
		      bool here, struct sul_way out[SUL_NET_PATHS_MAX],
		      unsigned int *nr)
{
	if (!make_sense(a))
		return -EPROTO;
	if (!a->paths) {
		*nr = 1;
		return choose_candidate(l, a, here, out);
	}
	*nr = 0;
	for (unsigned int i = 0; i < a->paths; i++)
		if (!named_way(l, &a->at[i], i, &out[*nr]))
			++*nr;
	return *nr ? 0 : -ENETUNREACH;
}
