/* SPDX-License-Identifier: MIT */
/*
 * abi.h - what the cases about /dev/sul share.
 *
 * A case is a function of abi_*.c and a row of abi.def.  Each runs in a process of
 * its own, so it leaves descriptors, memory and children as they are.
 */
#ifndef ABI_H
#define ABI_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "sul_abi.h"

enum {
	ABI_PAGE = 4096,
	ABI_WINDOW_BYTES = 16 * ABI_PAGE,
	ABI_LANDING_BYTES = 4 * ABI_PAGE,
	ABI_PIN_BYTES = 16 * ABI_PAGE, /* the least there is */
	ABI_GID_SUL = 1000, /* may open the device; as guest/lib has it */
	ABI_UID_ONE = 1001, /* nobody's */
	ABI_UID_TWO = 1002,
};

#define CASE(name) void abi_##name(void);
#include "abi.def"

/* What a case finds is said and counted; it goes on. */
void abi_found(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define CHECK(what, ...)                                               \
	do {                                                           \
		if (!(what))                                           \
			abi_found(__FILE__, __LINE__, "" __VA_ARGS__); \
	} while (0)
/* A call's result is that one; a text may follow that says of what. */
#define IS(wanted, result, ...) \
	abi_is(__FILE__, __LINE__, #result, wanted, result, ##__VA_ARGS__, NULL)
void abi_is(const char *file, int line, const char *call, long wanted,
	    long result, ...);
bool abi_all_well(void); /* nothing was found so far */

/* --- calls: 0 or -errno ------------------------------------------------------------- */

int abi_call(int fd, unsigned long cmd, void *arg);
int abi_open(void); /* the device, and nothing else */
int abi_hello(void); /* and HELLO */

/* All that PORT wants, for @rank of @ranks, and the least of it. */
struct sul_port_spec abi_spec(uint32_t rank, uint32_t ranks);
int abi_port_as(const struct sul_port_spec *spec); /* a descriptor, or -errno */

/* A port with one window of ABI_WINDOW_BYTES. */
struct abi_port {
	int fd;
	uint32_t rank;
	char *window;
	const struct sul_status *status;
	const char *landing;
};
struct abi_port abi_port(uint32_t rank, uint32_t ranks);
struct abi_port abi_started(uint32_t rank, uint32_t ranks);
int abi_start(struct abi_port *p);
void abi_close(struct abi_port *p); /* its mappings, too: they hold it */
int abi_near(const struct abi_port *p, uint32_t rank, uint32_t timeout_ms);
/* Rank 0, which knows rank 1, both of this process and started. */
void abi_pair(struct abi_port p[2]);

struct sul_op abi_op(enum sul_op_kind kind, uint32_t rank, uint64_t off);
int abi_submit(const struct abi_port *p, const struct sul_op *ops, uint32_t nr,
	       uint32_t *done);
int abi_submit_one(const struct abi_port *p, struct sul_op op);

/* Windows and the like: zero-filled. */
void *abi_memory(size_t bytes);

/* --- processes ---------------------------------------------------------------------- */

/* Run @fn in a child; its findings count. */
void abi_in_child(void (*fn)(void *ctx), void *ctx);
/* Become that user, with that much locked memory, the device's group, and no
 * privilege. */
void abi_become(uid_t uid, size_t memlock_bytes);

#endif /* ABI_H */
