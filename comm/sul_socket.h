/* SPDX-License-Identifier: MIT */
/*
 * sul_socket.h - a UDP socket that sends and takes packets by the batch.
 *
 * Private to comm/.  Several packets go with one system call (sendmmsg), and a
 * run of equally long ones to one address as one large packet that the kernel
 * cuts (UDP_SEGMENT); what it has glued together on arrival (UDP_GRO) is taken
 * apart again.  What the kernel does not know is left out.
 *
 * One or many.  Whoever exchanges single packets pays for all of that, and for
 * looking up the way, as much as for the packet.  So a socket can be joined to
 * one address; and packets are taken by recv(), one by one, until several come
 * in a row.
 *
 * Threads: calls on one socket, and on one batch, exclude each other; poll() on
 * the descriptor may go on meanwhile.
 */
#ifndef SUL_SOCKET_H
#define SUL_SOCKET_H

#include <stdint.h>

#include "sul_links.h"

enum {
	/* Packets of one sul_socket_send(): three large ones of 1500 bytes each. */
	SUL_SOCKET_BATCH = 128
};

struct sul_socket {
	int fd; /* -1: closed */
	int family; /* AF_INET6 may reach IPv4, too */
	unsigned int port;
	unsigned int scope; /* interface of a link-local address, or 0 */
	union sul_sockaddr at; /* where it is bound */
	unsigned int receive_bytes; /* of the kernel's buffer */
	bool joined; /* to one address */
	bool segment; /* the kernel cuts large packets */
	bool glues; /* it can glue packets together */
	bool many; /* packets come in rows, and are glued if it can */
	unsigned int row; /* of them; or, if there are many, of single ones */
	bool busy; /* the last look has found something */
	unsigned int room; /* if there are many: messages to look for */
};

/* A packet to be sent: two pieces, one behind the other. */
struct sul_datagram {
	const union sul_sockaddr *to;
	const void *head, *body;
	unsigned int head_len, body_len;
};

struct sul_batch; /* room for what one call sends or takes */

/* Bound to @at; port 0: any.  -errno. */
int sul_socket_open(struct sul_socket *s, const union sul_sockaddr *at);
/* One that sends to @to only, from where @like is bound, but for the port; it
 * receives nothing.  -errno. */
int sul_socket_join(struct sul_socket *s, const struct sul_socket *like,
		    const union sul_sockaddr *to);
void sul_socket_close(struct sul_socket *s);

/* Before somebody else takes the packets: none shall be glued together. */
void sul_socket_unglue(struct sul_socket *s);

int sul_batch_open(struct sul_batch **out); /* -ENOMEM */
void sul_batch_close(struct sul_batch *b); /* NULL is fine */

/*
 * Send @nr packets (at most SUL_SOCKET_BATCH); by a joined socket to its
 * address, whatever they say.  What the kernel refuses is lost, as in the
 * network: how many packets that were.
 */
unsigned int sul_socket_send(struct sul_socket *s, struct sul_batch *b,
			     const struct sul_datagram *d, unsigned int nr);

typedef void sul_socket_fn(void *ctx, void *packet, size_t len);

/* Hand over what has come, a batch at most; how many packets, 0 if none. */
unsigned int sul_socket_receive(struct sul_socket *s, struct sul_batch *b,
				sul_socket_fn *fn, void *ctx);

#endif /* SUL_SOCKET_H */
