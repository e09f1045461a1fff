/* SPDX-License-Identifier: MIT */
/*
 * sul_links.c - see sul_links.h.
 *
 * Role:      reads the interfaces of this host and matches them with what the
 *            user has named.
 * Threads:   any; called while a rank starts.
 */
#include "sul_links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	ITEM_MAX = 64, /* bytes of an item of a list, with the 0 */
	MTU_UNKNOWN = 1500,
};

unsigned int sul_sockaddr_len(const union sul_sockaddr *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

/* The bytes of the address alone. */
static const unsigned char *bytes_of(const union sul_sockaddr *a)
{
	return a->any.sa_family == AF_INET6 ?
		       (const unsigned char *)&a->v6.sin6_addr :
		       (const unsigned char *)&a->v4.sin_addr;
}

static unsigned int bits_of_family(const union sul_sockaddr *a)
{
	return a->any.sa_family == AF_INET6 ? 128 : 32;
}

static bool same_prefix(const union sul_sockaddr *a,
			const union sul_sockaddr *b, unsigned int bits)
{
	const unsigned char *x = bytes_of(a), *y = bytes_of(b);
	unsigned int whole = bits / 8, rest = bits % 8;

	if (a->any.sa_family != b->any.sa_family || memcmp(x, y, whole) != 0)
		return false;
	return !rest || !((x[whole] ^ y[whole]) >> (8 - rest));
}

bool sul_link_reaches(const struct sul_link *l, const union sul_sockaddr *a)
{
	return same_prefix(&l->at, a, l->bits);
}

bool sul_link_same_address(const union sul_sockaddr *a,
			   const union sul_sockaddr *b)
{
	return same_prefix(a, b, bits_of_family(a));
}

/* --- what there is ------------------------------------------------------------ */

static bool link_local(const struct sul_link *l)
{
	return l->at.any.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&l->at.v6.sin6_addr);
}

static unsigned int prefix_bits(const struct sockaddr *mask)
{
	union sul_sockaddr m = { 0 };
	const unsigned char *at;
	unsigned int n = 0;

	if (!mask)
		return 0;
	m.any.sa_family = mask->sa_family;
	memcpy(&m, mask, sul_sockaddr_len(&m));
	at = bytes_of(&m);
	while (n < bits_of_family(&m) && at[n / 8] >> (7 - n % 8) & 1)
		n++;
	return n;
}

static unsigned int mtu_of(int fd, const char *name)
{
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &r) || r.ifr_mtu <= 0)
		return MTU_UNKNOWN;
	return (unsigned int)r.ifr_mtu;
}

static bool usable(const struct ifaddrs *a)
{
	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) ||
	    !(a->ifa_flags & IFF_RUNNING))
		return false;
	return a->ifa_addr->sa_family == AF_INET ||
	       a->ifa_addr->sa_family == AF_INET6;
}

static void add(struct sul_links *out, const struct ifaddrs *a, int fd)
{
	struct sul_link *l = &out->link[out->nr++];

	memset(l, 0, sizeof(*l));
	l->at.any.sa_family = a->ifa_addr->sa_family;
	memcpy(&l->at, a->ifa_addr, sul_sockaddr_len(&l->at));
	l->bits = prefix_bits(a->ifa_netmask);
	l->loopback = a->ifa_flags & IFF_LOOPBACK;
	l->mtu = mtu_of(fd, a->ifa_name);
	snprintf(l->name, sizeof(l->name), "%s", a->ifa_name);
}

/* The least is first. */
static int order_of(const struct sul_link *l)
{
	if (link_local(l))
		return 2;
	return l->at.any.sa_family == AF_INET6;
}

static void sort(struct sul_links *all)
{
	struct sul_links sorted = { 0 };

	for (int order = 0; order <= 2; order++)
		for (unsigned int i = 0; i < all->nr; i++)
			if (order_of(&all->link[i]) == order)
				sorted.link[sorted.nr++] = all->link[i];
	*all = sorted;
}

int sul_links_read(struct sul_links *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifaddrs *first;

	if (getifaddrs(&first)) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	out->nr = 0;
	for (const struct ifaddrs *a = first; a && out->nr < SUL_LINKS_MAX;
	     a = a->ifa_next)
		if (usable(a))
			add(out, a, fd);
	freeifaddrs(first);
	if (fd >= 0)
		close(fd);
	sort(out);
	return 0;
}

/* --- what is meant -------------------------------------------------------------- */

/* "192.0.2.1", "192.0.2.0/24", "2001:db8::/64"; false: it is none. */
static bool parse_prefix(const char *item, union sul_sockaddr *a,
			 unsigned int *bits)
{
	char text[ITEM_MAX];
	char *slash, *end;
	unsigned long n;

	snprintf(text, sizeof(text), "%s", item);
	slash = strchr(text, '/');
	if (slash)
		*slash = 0;
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1)
		a->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1)
		a->any.sa_family = AF_INET6;
	else
		return false;
	*bits = bits_of_family(a);
	if (!slash)
		return true;
	n = strtoul(slash + 1, &end, 10);
	if (slash[1] < '0' || slash[1] > '9' || *end || n > *bits)
		return false;
	*bits = (unsigned int)n;
	return true;
}

static const struct sul_link *find(const struct sul_links *all,
				   const char *item)
{
	union sul_sockaddr a;
	unsigned int bits = 0;
	bool prefix = parse_prefix(item, &a, &bits);

	for (unsigned int i = 0; i < all->nr; i++) {
		const struct sul_link *l = &all->link[i];

		if (prefix ? same_prefix(&l->at, &a, bits) :
			     !strcmp(l->name, item))
			return l;
	}
	return NULL;
}

static void print(const struct sul_link *l, char text[SUL_LINK_TEXT_MAX])
{
	char a[INET6_ADDRSTRLEN] = "";

	inet_ntop(l->at.any.sa_family, bytes_of(&l->at), a, sizeof(a));
	snprintf(text, SUL_LINK_TEXT_MAX, "%s %s/%u", l->name, a, l->bits);
}

static int refuse_item(const struct sul_links *all, const char *item, char *why,
		       size_t room)
{
	size_t at = (size_t)snprintf(
		why, room,
		"'%s' is no interface, address or prefix of this host; there are:",
		item);

	for (unsigned int i = 0; i < all->nr && at < room; i++) {
		char text[SUL_LINK_TEXT_MAX];

		print(&all->link[i], text);
		at += (size_t)snprintf(why + at, room - at, "%s %s",
				       i ? "," : "", text);
	}
	return -EINVAL;
}

int sul_links_named(const struct sul_links *all, const char *list,
		    unsigned int max, struct sul_links *out, char *why,
		    size_t room)
{
	out->nr = 0;
	for (const char *at = list; *at; at += *at == ',') {
		const struct sul_link *l;
		char item[ITEM_MAX];
		size_t len = strcspn(at, ",");

		snprintf(item, sizeof(item), "%.*s", (int)len, at);
		at += len;
		l = find(all, item);
		if (!l)
			return refuse_item(all, item, why, room);
		if (out->nr == max) {
			snprintf(why, room, "at most %u can be named", max);
			return -E2BIG;
		}
		out->link[out->nr++] = *l;
	}
	return 0;
}

static void take(const struct sul_links *all, bool loopback, unsigned int max,
		 struct sul_links *out)
{
	out->nr = 0;
	for (unsigned int i = 0; i < all->nr && out->nr < max; i++) {
		const struct sul_link *l = &all->link[i];

		if (l->loopback == loopback && !link_local(l))
			out->link[out->nr++] = *l;
	}
}

void sul_links_usual(const struct sul_links *all, bool here, unsigned int max,
		     struct sul_links *out)
{
	take(all, here, max, out);
	if (!out->nr)
		take(all, !here, max, out);
}
