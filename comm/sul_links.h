/* SPDX-License-Identifier: MIT */
/*
 * sul_links.h - the networks of this host, and which of them are meant.
 *
 * Private to comm/.
 */
#ifndef SUL_LINKS_H
#define SUL_LINKS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	SUL_LINKS_MAX = 64, /* addresses of this host that are looked at */
	SUL_LINK_TEXT_MAX = 64, /* "eth0 192.0.2.1/24", with the 0 */
};

union sul_sockaddr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* An address of an interface that is up. */
struct sul_link {
	union sul_sockaddr at;
	unsigned int bits; /* of the prefix */
	unsigned int mtu;
	bool loopback;
	char name[IF_NAMESIZE];
};

struct sul_links {
	unsigned int nr;
	struct sul_link link[SUL_LINKS_MAX];
};

/* All of this host, IPv4 before IPv6, a link-local address last.  -errno. */
int sul_links_read(struct sul_links *out);

/*
 * Those that @list names, in its order, at most @max: interfaces, addresses or
 * prefixes (192.0.2.0/24), with commas between them.  Several may match an
 * item: the first is taken.  -EINVAL with a text in @why, -E2BIG likewise.
 */
int sul_links_named(const struct sul_links *all, const char *list,
		    unsigned int max, struct sul_links *out, char *why,
		    size_t room);

/* Where other hosts may reach this one; the loopback if nowhere, or for ranks
 * that are all on this host (@here). */
void sul_links_usual(const struct sul_links *all, bool here, unsigned int max,
		     struct sul_links *out);

/* Whether @a is in the prefix of @l. */
bool sul_link_reaches(const struct sul_link *l, const union sul_sockaddr *a);
bool sul_link_same_address(const union sul_sockaddr *a,
			   const union sul_sockaddr *b);
/* Bytes of @a that bind() and sendto() want. */
unsigned int sul_sockaddr_len(const union sul_sockaddr *a);

#endif /* SUL_LINKS_H */
