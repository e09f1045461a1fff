/* SPDX-License-Identifier: MIT */
/*
 * sul_fake_port.h - what the parts of the fake module know of a port.
 *
 * sul_fake.c:      its life, the calls, who waits and who is woken.
 * sul_fake_op.c:   SUBMIT: what an operation must be, and doing it.
 * sul_fake_wire.c: the core, its packets and the thread that moves them.
 */
#ifndef SUL_FAKE_PORT_H
#define SUL_FAKE_PORT_H

#include <pthread.h>

#include "sul_fake.h"
#include "unit_seed.h"

enum {
	FAKE_RANKS = 16,
	FAKE_LOOK_MS = 1,
};

struct fake_peer {
	bool known, near, gone;
	unsigned int paths;
	struct {
		union sul_sockaddr to;
		int fd;
	} path[SUL_ABI_PATHS_MAX];
};

/* Of fake_keep_source(). */
struct fake_source;

struct fake_port {
	int fd; /* an eventfd, which wakes the thread, too; 0: unused */
	bool hello, made, started, stop;
	struct sul_port_spec spec;
	struct sul_start start;
	struct fake_peer peer[FAKE_RANKS];
	unsigned int sockets;
	int socket[SUL_ABI_PATHS_MAX];
	pthread_t thread;
	pthread_mutex_t lock;
	struct sul_net *net;
	struct sul_status *status;
	char *landing;
	struct fake_source *sources;
	uint64_t ticket;
	bool issuing; /* there is more to come of a SUBMIT */
	struct sul_op before; /* the last one */
	struct unit_rng rng; /* for packets that get lost */
};

/* --- sul_fake.c --- */

/* Whoever sleeps in WAIT of @rank looks again. */
void fake_wake(uint32_t rank);
/* As the kernel does it: only whoever sleeps in WAIT is woken. */
void fake_store_word(uint32_t rank, struct sul_word *word, uint32_t value);
void fake_note_death(struct fake_port *p, int rank);
/* In down or left of a status. */
void fake_set_rank(__u64 *bits, int rank);
/* The port of a rank of this process, which stays until fake_near_put(); NULL: it
 * has none, and there is nothing to be put. */
struct fake_port *fake_near_get(uint32_t rank);
void fake_near_put(void);

/* --- sul_fake_op.c --- */

/* Whether it lies in a window; all ranks' are as large as @p's own. */
bool fake_in_window(const struct fake_port *p, uint64_t w, uint64_t off,
		    uint64_t len);
char *fake_place(const struct fake_port *p, uint64_t w, uint64_t off);
/* One operation of a SUBMIT, under the port's lock; 0 or -errno. */
int fake_issue(struct fake_port *p, const struct sul_op *op);

/* --- sul_fake_wire.c --- */

/* Begin, with the sockets that the port has; stop the thread; forget the rest. */
int fake_wire_open(struct fake_port *p);
void fake_wire_stop(struct fake_port *p);
void fake_wire_close(struct fake_port *p);
/* Under the port's lock: what softirqs do. */
void fake_wire_pump(struct fake_port *p);
/* Let what was submitted be known as executed, if it is. */
void fake_wire_settle(struct fake_port *p);
/* A copy: the caller may change its own as soon as SUBMIT has returned. */
const char *fake_wire_keep(struct fake_port *p, uint64_t addr, size_t len);

#endif /* SUL_FAKE_PORT_H */
