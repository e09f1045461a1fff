/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod_open.c - how a rank becomes a port of /dev/sul, and what if not.
 *
 * Role:      finds the module while ranks meet, so that the others learn of it;
 *            then the port: budgets, sockets, windows, peers.
 * Invariant: as long as the module has not got the sockets, udp can have them:
 *            so whatever may be refused is asked for before.
 * Threads:   one, at start and at the end.
 * Locks:     none.
 */
#include "sul_kmod.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	PEER_MS = 60000, /* for a rank of this host to open its port */
	PIN_PAGES_MIN = 16,
	KIB = 1024,
};
/* By default.  For each page the module keeps some bytes of a port's memory. */
#define PIN_MOST (UINT64_C(32) << 20)

static void say(char *why, const char *text)
{
	snprintf(why, SUL_WHY_MAX, "%s", text);
}

/* --- the device --------------------------------------------------------------------- */

static void why_not_open(int err, char *why)
{
	const char *what = "";

	if (err == -ENOENT || err == -ENODEV || err == -ENXIO)
		what = ": the module (sul.ko) is not loaded here";
	if (err == -EACCES || err == -EPERM)
		what = ": it belongs to the group sul";
	snprintf(why, SUL_WHY_MAX, "/dev/sul: %s%s", strerror(-err), what);
}

static void why_no_hello(const struct sul_hello *h, int err, char *why)
{
	if (err == -EPROTO)
		snprintf(
			why, SUL_WHY_MAX,
			"the module behind /dev/sul speaks versions %u to %u, this library %d",
			h->oldest, h->version, SUL_ABI_VERSION);
	else
		snprintf(why, SUL_WHY_MAX,
			 "/dev/sul does not answer as ours does: %s",
			 strerror(-err));
}

int sul_kmod_find(const struct sul_kmod_sys *sys, int *fd,
		  char why[SUL_WHY_MAX])
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };
	int err, got = sys->open();

	if (got < 0) {
		why_not_open(got, why);
		return got;
	}
	err = sys->call(got, SUL_IOC_HELLO, &h);
	if (err) {
		why_no_hello(&h, err, why);
		sys->close(got);
		return err;
	}
	*fd = got;
	return 0;
}

/* --- the kernel's memory ------------------------------------------------------------ */

enum {
	PORT_BYTES = 1 << 20, /* where the module does not say */
	PAGE_COST = 24, /* of a page that can be pinned */
	PORT_COST = 64 << 10, /* what else there is to a port */
};

static size_t port_bytes(void)
{
	FILE *f = fopen("/sys/module/sul/parameters/port_bytes", "re");
	char text[32] = "";
	unsigned long bytes = 0;

	if (f && fgets(text, sizeof(text), f))
		bytes = strtoul(text, NULL, 10);
	if (f)
		fclose(f);
	return bytes ? bytes : PORT_BYTES;
}

size_t sul_kmod_link_room(void)
{
	size_t pages = PIN_MOST / (size_t)sysconf(_SC_PAGESIZE);
	size_t taken = PORT_COST + SUL_KMOD_LANDING_BYTES + pages * PAGE_COST;
	size_t bytes = port_bytes();

	return bytes > taken ? bytes - taken : 0;
}

/* --- pinned memory ------------------------------------------------------------------ */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t lock_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return r.rlim_cur;
}

/* As root: the limit does not count. */
static bool may_lock_anything(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return !syscall(SYS_capget, &h, d) &&
	       d[0].effective & 1u << CAP_IPC_LOCK;
}

/* All ranks of this host are of one user, and share his limit. */
static uint64_t fair_share(const struct sul_port *p)
{
	uint64_t here = 1; /* this one */

	for (int r = 0; r < p->ranks; r++)
		here += r != p->rank && !sul_job_far(p->job, r);
	return lock_limit() / here;
}

static uint64_t window_total(const struct sul_port *p)
{
	uint64_t page = page_bytes(), all = 0;

	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++)
		all += (p->window_bytes[w] + page - 1) / page * page;
	return all;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t min = PIN_PAGES_MIN * page_bytes();

	bytes -= bytes % page_bytes();
	return bytes < min ? min : bytes;
}

static uint64_t usual_pin(const struct sul_port *p)
{
	uint64_t most = least(PIN_MOST, window_total(p));

	return whole_pages(may_lock_anything() ? most :
						 least(most, fair_share(p)));
}

/* --- the port ------------------------------------------------------------------------- */

static void why_no_memory(const struct sul_port_spec *s, uint64_t left,
			  char *why)
{
	uint64_t limit = lock_limit();

	if (left >= s->pin_bytes || limit == UINT64_MAX) {
		say(why, "/dev/sul: no memory for a port");
		return;
	}
	snprintf(
		why, SUL_WHY_MAX,
		"%llu KiB of memory are to be pinned (parameter pin), and of the limit of %llu KiB for this user (ulimit -l, RLIMIT_MEMLOCK) %llu KiB are left",
		(unsigned long long)s->pin_bytes / KIB,
		(unsigned long long)limit / KIB,
		(unsigned long long)left / KIB);
}

static void why_no_port(const struct sul_port_spec *s, uint64_t left, int err,
			char *why)
{
	switch (err) {
	case -ENOMEM:
		why_no_memory(s, left, why);
		break;
	case -ENOBUFS:
		snprintf(
			why, SUL_WHY_MAX,
			"the module gives a port less kernel memory (its parameter port_bytes) than %u ranks, and %llu KiB to be pinned (parameter pin), need",
			s->ranks, (unsigned long long)s->pin_bytes / KIB);
		break;
	case -EADDRINUSE:
		snprintf(why, SUL_WHY_MAX,
			 "rank %u of this job has a port of /dev/sul already",
			 s->rank);
		break;
	case -EMFILE:
		say(why,
		    "this user has as many ports of /dev/sul as the module gives one (its parameter ports)");
		break;
	case -EOPNOTSUPP:
		say(why, "the module cannot do what parameter auth asks for");
		break;
	default:
		snprintf(why, SUL_WHY_MAX, "/dev/sul refuses a port: %s",
			 strerror(-err));
	}
}

static int fill_in_spec(const struct sul_port *p, const struct sul_config *cfg,
			struct sul_port_spec *s)
{
	const struct sul_listener *l = cfg->listener;
	unsigned int span;
	int err = sul_address_span(&span, p->job, p->ranks);

	if (err)
		return err;
	*s = (struct sul_port_spec){
		.size = sizeof(*s),
		.flags = cfg->trace ? SUL_PORT_TRACE : 0,
		.rank = (uint32_t)p->rank,
		.ranks = (uint32_t)p->ranks,
		.auth = cfg->auth,
		.session = l->address.session,
		.span = span,
		.packet_bytes = sul_listener_packet(l),
		.silence_ns = cfg->silence_ms * UINT64_C(1000000),
		.pin_bytes = cfg->pin_bytes ? whole_pages(cfg->pin_bytes) :
					      usual_pin(p),
		.landing_bytes = SUL_KMOD_LANDING_BYTES,
		.loss_ppm = cfg->loss_ppm,
	};
	memcpy(s->key, sul_job_key(p->job), sizeof(s->key));
	return 0;
}

/* Without a wish of the user's, what can be had will do. */
static int ask_for_port(const struct sul_listener *l, struct sul_port_spec *s,
			bool wish, char *why)
{
	uint64_t least_bytes = PIN_PAGES_MIN * page_bytes();

	for (;;) {
		uint64_t asked = s->pin_bytes, left;
		int err = l->kmod->call(l->device, SUL_IOC_PORT, s);

		if (!err)
			return 0;
		left = s->pin_bytes;
		s->pin_bytes = asked;
		if (err != -ENOMEM || wish || left < least_bytes ||
		    left >= asked) {
			why_no_port(s, left, err, why);
			return err;
		}
		s->pin_bytes = whole_pages(left);
	}
}

/* Nobody shall think that we can be woken by the module. */
static void do_without(struct sul_port *p, struct sul_listener *l)
{
	struct sul_job_rank *r = sul_job_rank(p->job, p->rank);

	l->kmod->close(l->device);
	l->device = -1;
	l->address.flags &= ~SUL_ADDRESS_KMOD;
	memcpy(r->address, &l->address, sizeof(l->address));
}

int sul_kmod_enter(struct sul_port *p, const struct sul_config *cfg,
		   const struct sul_carrier_ops **far)
{
	struct sul_listener *l = cfg->listener;
	char why[SUL_WHY_MAX];
	struct sul_port_spec s;
	int err;

	if (l->device < 0) {
		sul_port_why(cfg, "%s", l->note);
		return 0;
	}
	err = fill_in_spec(p, cfg, &s);
	if (err)
		return err;
	err = ask_for_port(l, &s, cfg->pin_bytes != 0, why);
	if (!err) {
		l->pin_bytes = s.pin_bytes;
		*far = &sul_kmod_ops;
		return 0;
	}
	if (l->must) {
		sul_port_why(cfg, "carrier=kmod: %s", why);
		return err;
	}
	do_without(p, l);
	sul_port_why(cfg, "carrier udp instead of kmod: %s", why);
	return 0;
}

/* --- windows, sockets, peers -------------------------------------------------------------- */

static int map_areas(struct sul_kmod *k)
{
	const void *at;
	int err = k->sys->map(k->fd, SUL_MAP_STATUS, page_bytes(), &at);

	if (err)
		return err;
	k->status = at;
	err = k->sys->map(k->fd, SUL_MAP_LANDING, SUL_KMOD_LANDING_BYTES, &at);
	if (!err)
		k->landing = at;
	return err;
}

/* Ranks that the module reaches by itself, and whether there are others. */
static bool find_near(struct sul_kmod *k)
{
	const struct sul_port *p = k->port;
	bool wires = false;

	for (int r = 0; r < p->ranks; r++) {
		struct sul_address a;

		if (!sul_port_far(p, r))
			continue;
		k->near[r] = !sul_job_far(p->job, r) &&
			     !sul_address_read(&a, p->job, r) &&
			     a.flags & SUL_ADDRESS_KMOD;
		k->known[r] = k->near[r];
		wires |= !k->near[r];
	}
	return wires;
}

static int give_sockets(struct sul_kmod *k)
{
	struct sul_listener *l = k->listener;
	int err = 0;

	for (unsigned int i = 0; i < l->sockets && !err; i++) {
		struct sul_socket_spec s = { .size = sizeof(s),
					     .fd = l->socket[i].fd };

		sul_socket_unglue(&l->socket[i]);
		err = sul_kmod_call(k, SUL_IOC_SOCKET, &s);
		sul_socket_close(&l->socket[i]);
	}
	return err;
}

static int start(struct sul_kmod *k)
{
	const struct sul_port *p = k->port;
	struct sul_start s = { .size = sizeof(s), .windows = SUL_WINDOWS_ALL };
	uint64_t page = page_bytes();

	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		s.window[w].addr = (uintptr_t)p->window[w];
		s.window[w].bytes =
			(p->window_bytes[w] + page - 1) / page * page;
	}
	return sul_kmod_call(k, SUL_IOC_START, &s);
}

static void put_path(const struct sul_path *path, struct sul_peer_path *out)
{
	const union sul_sockaddr *to = &path->to;

	out->family = to->any.sa_family;
	out->socket = path->socket;
	out->packet_bytes = path->packet_bytes;
	if (to->any.sa_family == AF_INET6) {
		out->port = ntohs(to->v6.sin6_port);
		out->scope = to->v6.sin6_scope_id;
		memcpy(out->addr, &to->v6.sin6_addr, sizeof(out->addr));
	} else {
		out->port = ntohs(to->v4.sin_port);
		memcpy(out->addr, &to->v4.sin_addr, 4);
	}
}

static int find_paths(struct sul_kmod *k, const struct sul_address *a,
		      struct sul_peer_spec *s)
{
	bool here = !sul_job_far(k->port->job, (int)s->rank);
	struct sul_path path[SUL_NET_PATHS_MAX];
	unsigned int nr;
	int err = sul_listener_paths(k->listener, a, here, path, &nr);

	if (err)
		return err;
	s->paths = nr;
	s->packet_bytes = SUL_NET_PACKET_MAX;
	for (unsigned int i = 0; i < nr; i++) {
		put_path(&path[i], &s->path[i]);
		if (path[i].packet_bytes < s->packet_bytes)
			s->packet_bytes = path[i].packet_bytes;
	}
	return 0;
}

static int add_peer(struct sul_kmod *k, int rank)
{
	struct sul_peer_spec s = { .size = sizeof(s), .rank = (uint32_t)rank };
	struct sul_address a;
	int err = sul_address_read(&a, k->port->job, rank);

	if (err)
		return err;
	s.session = a.session;
	if (k->near[rank]) {
		s.flags = SUL_PEER_NEAR;
		s.timeout_ms = PEER_MS;
		s.packet_bytes = SUL_NET_PACKET_MAX;
	} else {
		err = find_paths(k, &a, &s);
	}
	return err ? err : sul_kmod_call(k, SUL_IOC_PEER, &s);
}

static void why_no_peer(const struct sul_config *cfg, const struct sul_kmod *k,
			int rank, int err)
{
	if (err == -ENETUNREACH || err == -EPROTO) /* whoever called knows */
		return;
	if (err == -EACCES)
		sul_port_why(
			cfg,
			"carrier=kmod: rank %d, on this host, is another user's",
			rank);
	else if (err == -ETIMEDOUT)
		sul_port_why(
			cfg,
			"carrier=kmod: rank %d, on this host, has not opened its port of /dev/sul within %d s, or is in another network namespace",
			rank, PEER_MS / 1000);
	else if (err == -ENOMEM || err == -ENOBUFS)
		sul_port_why(
			cfg,
			"carrier=kmod: the module gives a port less kernel memory (its parameter port_bytes) than %d ranks need; fewer packets under way (parameter flight) or a smaller mtu need less",
			k->port->ranks);
	else
		sul_port_why(cfg, "carrier=kmod: the way to rank %d: %s", rank,
			     strerror(-err));
}

static int add_peers(struct sul_kmod *k, const struct sul_config *cfg)
{
	for (int r = 0; r < k->port->ranks; r++) {
		int err = sul_port_far(k->port, r) ? add_peer(k, r) : 0;

		if (err) {
			why_no_peer(cfg, k, r, err);
			return err;
		}
	}
	return 0;
}

static int set_up(struct sul_kmod *k, const struct sul_config *cfg)
{
	const char *what = "its memory";
	int err = map_areas(k);

	if (!err && find_near(k)) {
		what = "our sockets";
		err = give_sockets(k);
	}
	if (!err) {
		what = "our windows";
		err = start(k);
	}
	if (err) {
		sul_port_why(cfg, "carrier=kmod: /dev/sul and %s: %s", what,
			     strerror(-err));
		return err;
	}
	return add_peers(k, cfg);
}

int sul_kmod_open(struct sul_port *p, const struct sul_config *cfg)
{
	struct sul_kmod *k = calloc(1, sizeof(*k));
	size_t n = (size_t)p->ranks;
	int err = -ENOMEM;

	if (!k) {
		sul_listener_close(cfg->listener);
		return -ENOMEM;
	}
	p->far = k;
	k->port = p;
	k->listener = cfg->listener;
	k->sys = k->listener->kmod;
	k->fd = k->listener->device;
	k->listener->device = -1;
	pthread_mutex_init(&k->lock, NULL);
	k->near = calloc(n, sizeof(*k->near));
	k->gone = calloc(n, sizeof(*k->gone));
	k->known = calloc(n, sizeof(*k->known));
	if (k->near && k->gone && k->known)
		err = set_up(k, cfg);
	if (err)
		sul_kmod_close(p);
	return err;
}

void sul_kmod_close(struct sul_port *p)
{
	struct sul_kmod *k = sul_kmod_of(p);

	if (k->landing)
		k->sys->unmap(k->landing, SUL_KMOD_LANDING_BYTES);
	if (k->status)
		k->sys->unmap(k->status, page_bytes());
	k->sys->close(k->fd);
	sul_listener_close(k->listener);
	pthread_mutex_destroy(&k->lock);
	free(k->near);
	free(k->gone);
	free(k->known);
	free(k);
	p->far = NULL;
}
