/* SPDX-License-Identifier: MIT */
/*
 * jiarun_wire.h - frames between the launchers of one job.
 *
 * Each side first says a line of text, the greeting, which is the same on both
 * if they are the same release; then frames:
 *
 *	4 bytes length of the rest, 2 bytes type, 2 bytes "JR", fields
 *
 * Numbers are little-endian, 8 bytes in a field; bytes have a length of 4 bytes
 * before them.  The fields of each type and their limits: jiarun_wire.def.
 *
 * Pure: what comes in is bytes that somebody has read, what goes out are bytes
 * for somebody to write.  Nothing that comes in is believed: a frame that is
 * not exactly what its row says is refused, with the reason.
 */
#ifndef JIARUN_WIRE_H
#define JIARUN_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sul.h"
#include "sul_job.h"

enum {
	JIARUN_WIRE_VERSION = 1, /* another one for any change of the .def */
	JIARUN_GREETING_MAX = 128,
	JIARUN_HOST_NAME_MAX = 255, /* of a name in the DNS */
	JIARUN_STRING_MAX = 128 << 10, /* of an argument: the kernel's limit */
	JIARUN_WIRE_TEXT_MAX = 8 << 10, /* of a message for people */
	JIARUN_CHUNK_BYTES = 16 << 10, /* of output, at a time */
	JIARUN_WINDOW_BYTES = 256 << 10, /* of it, not yet taken */
	JIARUN_LIMITS = 16, /* RLIM_NLIMITS, the same on all of Linux */
	JIARUN_FRAME_MAX = JIARUN_STRING_MAX + 64, /* no row needs more */
	JIARUN_WHY_MAX = 200,
};

struct jiarun_bytes {
	const void *at;
	size_t len;
};

/* struct jiarun_wire_NAME: the fields of a row. */
#define NUM(field, max) uint64_t field;
#define BYTES(field, max) struct jiarun_bytes field;
#define WIRE(name, fields)          \
	struct jiarun_wire_##name { \
		fields              \
	};
#include "jiarun_wire.def"
#undef NUM
#undef BYTES

enum jiarun_wire_type {
#define WIRE(name, fields) JIARUN_WIRE_##name,
#include "jiarun_wire.def"
	JIARUN_WIRE_TYPES
};

struct jiarun_message {
	enum jiarun_wire_type type;
	union {
#define WIRE(name, fields) struct jiarun_wire_##name name;
#include "jiarun_wire.def"
	};
};

const char *jiarun_wire_name(enum jiarun_wire_type type);

/* --- out -------------------------------------------------------------------- */

/* What waits to be written: [begin, end). */
struct jiarun_wire_out {
	unsigned char *buf;
	size_t begin, end, room;
	bool failed; /* no memory: frames are missing, nothing may be sent */
};

void jiarun_wire_greet(struct jiarun_wire_out *o);
/* Fields beyond their limits are cut (bytes) or refused with an assertion: they
 * are our own. */
void jiarun_wire_put(struct jiarun_wire_out *o, const struct jiarun_message *m);
/* @n bytes have been written. */
void jiarun_wire_sent(struct jiarun_wire_out *o, size_t n);
void jiarun_wire_out_free(struct jiarun_wire_out *o);

/* --- in --------------------------------------------------------------------- */

/* What has been read and not been looked at: [begin, end). */
struct jiarun_wire_in {
	unsigned char *buf;
	size_t begin, end, room;
	bool greeted;
	char why[JIARUN_WHY_MAX]; /* after an error */
};

/* Where to read to, at least 1 byte; NULL: no memory.  Messages that were got
 * before are no longer there. */
void *jiarun_wire_room(struct jiarun_wire_in *in, size_t *room);
void jiarun_wire_added(struct jiarun_wire_in *in, size_t n);
/*
 * 1: the next message, its bytes inside @in; 0: it is not there yet.
 * -ENOMSG: what comes is no greeting of any jiarun, @why has its beginning.
 * -EPROTONOSUPPORT: it is another release's, @why says which.
 * -EPROTO: a frame that breaks a rule, @why says which.
 */
int jiarun_wire_next(struct jiarun_wire_in *in, struct jiarun_message *m);
void jiarun_wire_in_free(struct jiarun_wire_in *in);
/* For messages that are well formed and out of place: -EPROTO, and @why. */
static inline int jiarun_wire_refuse(char why[JIARUN_WHY_MAX], const char *text)
{
	snprintf(why, JIARUN_WHY_MAX, "%s", text);
	return -EPROTO;
}

/* As a string, cut to @room; bytes of 0 become '?'. */
void jiarun_wire_text(struct jiarun_bytes b, char *out, size_t room);

#endif /* JIARUN_WIRE_H */
