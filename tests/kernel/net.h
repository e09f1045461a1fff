/* SPDX-License-Identifier: MIT */
/*
 * net.h - what the tests of the module's network side share.
 *
 * A *side* is a rank of a job of two, in a network namespace of its own: a port of
 * /dev/sul, or, as a host without the module would have it, the library's core on a
 * UDP socket.  Both are driven by the same calls, in one process: a task may be in
 * one namespace when it opens a socket and in another one when it opens the next.
 */
#ifndef NET_H
#define NET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sul_abi.h"
#include "sul_net.h"

enum {
	NET_WINDOWS = 3,
	NET_WINDOW_BYTES = 1 << 18,
	NET_LANDING_BYTES = 1 << 18,
	NET_PAGE = 4096,
};

struct net_config {
	const char *ns[2], *address[2];
	bool module[2];
	bool trace; /* SUL_PORT_TRACE */
	enum sul_net_auth auth;
	unsigned int packet_bytes, span, pin_pages, loss_ppm;
	uint64_t silence_ns;
	uint64_t ops, seed;
};

struct net_side {
	int rank;
	bool module;
	const struct net_config *cfg;
	char *window[NET_WINDOWS];
	struct sockaddr_storage own, peer;
	int sock; /* moved to the module, if there is one */

	int fd;
	const struct sul_status *status;
	char *landing; /* or memory of that size, read-only or not */
	uint64_t ticket;

	pthread_mutex_t lock;
	pthread_t thread;
	struct sul_net *net;
	bool stop, missed; /* the other one is dead, or gone when needed */
};

#define NET_MUST(what)                                      \
	do {                                                \
		if (!(what))                                \
			net_die(__FILE__, __LINE__, #what); \
	} while (0)
_Noreturn void net_die(const char *file, int line, const char *what);

/* Become a task of that namespace. */
void net_enter(const char *ns);

/* Windows, socket and port or core of a rank; then, when both are there, ... */
void net_side_open(struct net_side *s, const struct net_config *cfg, int rank);
/* ... each is told of the other. */
void net_side_meet(struct net_side *s, const struct net_side *other);
void net_side_close(struct net_side *s);
/* Both, and told of each other. */
void net_sides_open(struct net_side s[2], const struct net_config *cfg);
void net_sides_close(struct net_side s[2]);

/* Operations on the other side: under way when they return. */
void net_put(struct net_side *s, unsigned int w, uint64_t off, const void *src,
	     size_t len);
void net_putv(struct net_side *s, unsigned int w, uint64_t off, const void *src,
	      const struct sul_run *runs, uint32_t nr,
	      const struct sul_mirror *mirror);
/* To s->landing + @land. */
void net_get(struct net_side *s, unsigned int w, uint64_t off, uint32_t land,
	     uint32_t len, const struct sul_mark *marks, uint32_t nr);
void net_amo(struct net_side *s, unsigned int w, uint64_t off,
	     enum sul_amo_op op, uint64_t operand, uint64_t comparand, bool old,
	     uint32_t land);
void net_notify(struct net_side *s, unsigned int w, uint64_t off,
		uint32_t value);
void net_message(struct net_side *s, const struct sul_message *m);
void net_farewell(struct net_side *s);
/* Several at once, of a module. */
void net_submit(struct net_side *s, const struct sul_op *ops, uint32_t nr,
		uint32_t flags);
/* A row of what a module's port has counted. */
void net_report(const struct net_side *s);
/* Until all has been executed; false: not within a minute, or a peer is dead. */
bool net_flush(struct net_side *s);

/* Rows of what a module's port has counted. */
#define COUNTER(name, doc) NET_COUNT_##name,
enum {
#include "sul_counter.def"
	NET_COUNT_NR
};
uint64_t net_count(const struct net_side *s, unsigned int row);
/* All of them, as of one moment. */
void net_counts(const struct net_side *s, uint64_t out[NET_COUNT_NR]);

/* The module's parameter lose is these rules from now on. */
void net_lose(const char *rules);

/* --- what else `kernel net` can do: 0 if all is as it should be ------------------ */

int net_ahead(const struct net_config *cfg);
int net_lost(const struct net_config *cfg);
int net_leave(const struct net_config *cfg);
int net_unmap(const struct net_config *cfg);
int net_trace(const struct net_config *cfg);
int net_time(const struct net_config *cfg);

#endif /* NET_H */
