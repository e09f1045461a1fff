/* SPDX-License-Identifier: MIT */
/*
 * sul_listen.h - a rank's sockets, and how the others come to know of them.
 *
 * Private to comm/.  A rank publishes where it can be reached before it is
 * READY (sul_job_rank.address, which the launchers carry to the other hosts).
 * Either the user has named its links: then each of them is a *path* of its own
 * and all are used side by side; or they are *candidates*, and each peer takes
 * the first that it has a way to.
 */
#ifndef SUL_LISTEN_H
#define SUL_LISTEN_H

#include "sul.h"
#include "sul_links.h"
#include "sul_net.h"
#include "sul_socket.h"

enum {
	SUL_ADDRESS_VERSION = 1,
	SUL_ENDPOINTS_MAX = 8,
	SUL_SOCKETS_MAX = SUL_NET_PATHS_MAX,
};

#define SUL_ADDRESS_KMOD 1u /* it has a port of /dev/sul */

/* One address; numbers as this machine has them. */
struct sul_endpoint {
	uint16_t family; /* 4 or 6 */
	uint16_t port;
	uint16_t packet_bytes; /* largest packet it takes */
	uint16_t reserved;
	unsigned char bytes[16];
};

struct sul_address {
	uint32_t version;
	uint32_t session;
	uint16_t span; /* packets that its buffers have room for */
	uint8_t nr;
	uint8_t paths; /* 0: candidates; or the same as nr */
	uint32_t flags; /* SUL_ADDRESS_* */
	struct sul_endpoint at[SUL_ENDPOINTS_MAX];
};
_Static_assert(sizeof(struct sul_address) <= SUL_JOB_ADDRESS_MAX, "it fits");

struct sul_listener {
	struct sul_links links; /* where we can be reached ... */
	bool named; /* ... as the user has it */
	bool everywhere; /* by ranks of this host, too */
	unsigned int sockets;
	struct sul_socket socket[SUL_SOCKETS_MAX]; /* named: one per link */
	unsigned int mtu; /* 0: the interface's */
	struct sul_address address; /* what we publish */

	/* The kernel module, if it is used: */
	const struct sul_kmod_sys *kmod;
	int device; /* -1: it is not */
	uint64_t pin_bytes; /* what it has agreed to */
	bool must; /* nothing else will do */
	char note[SUL_WHY_MAX]; /* why it is not, although it could have been */
};

/* One way to a rank. */
struct sul_way {
	union sul_sockaddr to; /* in the socket's family */
	unsigned int socket;
	unsigned int packet_bytes;
};

/*
 * The ways to a rank that has published @a, at least one.  @here: it is on this
 * host.  -EPROTO: @a makes no sense; -ENETUNREACH: no way to it.
 */
int sul_listener_ways(const struct sul_listener *l, const struct sul_address *a,
		      bool here, struct sul_way out[SUL_NET_PATHS_MAX],
		      unsigned int *nr);

/* What @rank has published.  -EPROTO: nothing of the kind. */
int sul_address_read(struct sul_address *out, struct sul_job *job, int rank);
/* The packets under way that the smallest buffer of all ranks has room for: they
 * have to agree. */
int sul_address_span(unsigned int *out, struct sul_job *job, int ranks);

/* The largest packet that any of its links takes. */
unsigned int sul_listener_packet(const struct sul_listener *l);

#endif /* SUL_LISTEN_H */
