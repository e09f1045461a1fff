/* SPDX-License-Identifier: MIT */
/*
 * sul_fake.h - /dev/sul without a kernel: what the carrier calls, in this process.
 *
 * Ports are made of the same core as the module's; packets go through the sockets
 * that the carrier hands over, so ranks with the udp carrier can be reached.
 * Ranks of one process reach each other directly.  What the ABI forbids is
 * refused, so a carrier that does it fails its tests.  A thread works for each
 * port that has sockets, in the kernel's place.
 */
#ifndef SUL_FAKE_H
#define SUL_FAKE_H

#include "sul_kmod.h"

enum {
	FAKE_CALLS = 16 /* of _IOC_NR() */
};

/* How it shall behave; all 0: as it should. */
struct fake_sul_config {
	int open_err; /* -errno: of opening the device */
	uint32_t version; /* of the module; 0: the library's */
	int port_err; /* of PORT ... */
	uint64_t pin_left; /* ... or, if not 0: locked memory that there is */
	bool no_wait_all; /* WAIT without words is unknown */
	unsigned int submit_most; /* operations that a SUBMIT takes; 0: all */
};

/* For a job of its own; before the processes that share it are forked. */
void fake_sul_begin(const struct fake_sul_config *cfg);
/* The calls; the descriptors are of this process. */
extern const struct sul_kmod_sys fake_sul;
/* How often, in this process, since the job began. */
unsigned long fake_sul_calls(unsigned long request);
/* What PORT of the last port that was made here said. */
struct sul_port_spec fake_sul_spec(void);
/* The ports of this process are to say that @rank is dead. */
void fake_sul_kill(int rank);
/* The port of @rank, of this process, is given up: so it says itself. */
void fake_sul_give_up(int rank);

#endif /* SUL_FAKE_H */
