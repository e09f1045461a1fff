/* SPDX-License-Identifier: MIT */
/* jiarun_wire.c - see jiarun_wire.h. */
#include "jiarun_wire.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_stat.h"
#include "dsm_tally.h"
#include "jia.h"

enum {
	HEAD_BYTES = 8,
	FRAME_MARK = 'J' | 'R' << 8,
	READ_BYTES = 64 << 10, /* wanted at least */
	ROOM_BYTES = 2 * READ_BYTES,
};

/* No row needs more than a frame may have. */
#define NUM(field, max) +8
#define BYTES(field, max) +4 + (max)
#define WIRE(name, fields)                                         \
	_Static_assert(0 + HEAD_BYTES fields <= +JIARUN_FRAME_MAX, \
		       "a " #name " fits into a frame");
#include "jiarun_wire.def"
#undef NUM
#undef BYTES

static const char greeting_head[] = "dajia-jiarun ";

/* What must be the same on both sides: this file's rules, and the layouts of
 * what is told as bytes. */
static void greeting_make(char out[JIARUN_GREETING_MAX])
{
	snprintf(out, JIARUN_GREETING_MAX,
		 "%s%d.%d wire %d layout %zu.%zu.%d\n", greeting_head,
		 JIA_VERSION_MAJOR, JIA_VERSION_MINOR, JIARUN_WIRE_VERSION,
		 sizeof(struct sul_job_rank), sizeof(struct dsm_tally),
		 DSM_STAT_NR);
}

const char *jiarun_wire_name(enum jiarun_wire_type type)
{
	static const char *const names[] = {
#define WIRE(name, fields) #name,
#include "jiarun_wire.def"
	};

	return type < JIARUN_WIRE_TYPES ? names[type] : "(unknown)";
}

/* --- out -------------------------------------------------------------------- */

static unsigned char *out_extend(struct jiarun_wire_out *o, size_t n)
{
	size_t used = o->end - o->begin;
	unsigned char *more;

	if (o->begin && (o->begin == o->end || o->end + n > o->room)) {
		memmove(o->buf, o->buf + o->begin, used);
		o->begin = 0;
		o->end = used;
	}
	if (o->end + n > o->room) {
		more = realloc(o->buf, 2 * (o->end + n));
		if (!more)
			return NULL;
		o->buf = more;
		o->room = 2 * (o->end + n);
	}
	o->end += n;
	return o->buf + o->end - n;
}

static void put_raw(struct jiarun_wire_out *o, const void *data, size_t n)
{
	unsigned char *to = o->failed ? NULL : out_extend(o, n);

	if (!to)
		o->failed = true;
	else if (n)
		memcpy(to, data, n);
}

static void put_le(struct jiarun_wire_out *o, uint64_t v, unsigned int bytes)
{
	unsigned char b[8];

	for (unsigned int i = 0; i < bytes; i++)
		b[i] = (unsigned char)(v >> 8 * i);
	put_raw(o, b, bytes);
}

static void put_num(struct jiarun_wire_out *o, uint64_t v, uint64_t max)
{
	assert(v <= max);
	put_le(o, v, 8);
}

static void put_bytes(struct jiarun_wire_out *o, struct jiarun_bytes b,
		      size_t max)
{
	size_t len = b.len < max ? b.len : max;

	put_le(o, len, 4);
	put_raw(o, b.at, len);
}

#define NUM(field, max) put_num(o, m->field, max);
#define BYTES(field, max) put_bytes(o, m->field, max);
#define WIRE(name, fields)                                         \
	static void put_##name(struct jiarun_wire_out *o,          \
			       const struct jiarun_wire_##name *m) \
	{                                                          \
		(void)o, (void)m;                                  \
		fields                                             \
	}
#include "jiarun_wire.def"
#undef NUM
#undef BYTES

static void put_fields(struct jiarun_wire_out *o,
		       const struct jiarun_message *m)
{
	switch (m->type) {
#define WIRE(name, fields)               \
	case JIARUN_WIRE_##name:         \
		put_##name(o, &m->name); \
		break;
#include "jiarun_wire.def"
	case JIARUN_WIRE_TYPES:
		break;
	}
}

void jiarun_wire_put(struct jiarun_wire_out *o, const struct jiarun_message *m)
{
	size_t at = o->end - o->begin, len;

	put_le(o, 0, 4);
	put_le(o, m->type, 2);
	put_le(o, FRAME_MARK, 2);
	put_fields(o, m);
	if (o->failed)
		return;
	len = o->end - o->begin - at - 4;
	for (unsigned int i = 0; i < 4; i++)
		o->buf[o->begin + at + i] = (unsigned char)(len >> 8 * i);
}

void jiarun_wire_greet(struct jiarun_wire_out *o)
{
	char line[JIARUN_GREETING_MAX];

	greeting_make(line);
	put_raw(o, line, strlen(line));
}

void jiarun_wire_sent(struct jiarun_wire_out *o, size_t n)
{
	o->begin += n;
}

void jiarun_wire_out_free(struct jiarun_wire_out *o)
{
	free(o->buf);
	*o = (struct jiarun_wire_out){ .failed = true };
}

/* --- in --------------------------------------------------------------------- */

/* The fields of one frame that have not been read, and what was wrong. */
struct cursor {
	const unsigned char *at;
	size_t left;
	const char *field, *fault; /* NULL: nothing */
};

static uint64_t get_le(const unsigned char *at, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}

static bool cursor_has(struct cursor *c, size_t n, const char *field)
{
	if (!c->fault && c->left < n) {
		c->field = field;
		c->fault = "is cut off";
	}
	return !c->fault;
}

static uint64_t get_num(struct cursor *c, uint64_t max, const char *field)
{
	uint64_t v;

	if (!cursor_has(c, 8, field))
		return 0;
	v = get_le(c->at, 8);
	c->at += 8;
	c->left -= 8;
	if (v <= max)
		return v;
	c->field = field;
	c->fault = "is too large";
	return 0;
}

static struct jiarun_bytes get_bytes(struct cursor *c, size_t max,
				     const char *field)
{
	struct jiarun_bytes b = { "", 0 };
	size_t len;

	if (!cursor_has(c, 4, field))
		return b;
	len = (size_t)get_le(c->at, 4);
	if (len > max) {
		c->field = field;
		c->fault = "is too long";
		return b;
	}
	if (!cursor_has(c, 4 + len, field))
		return b;
	b.at = c->at + 4;
	b.len = len;
	c->at += 4 + len;
	c->left -= 4 + len;
	return b;
}

#define NUM(field, max) m->field = get_num(c, max, #field);
#define BYTES(field, max) m->field = get_bytes(c, max, #field);
#define WIRE(name, fields)                                                     \
	static void get_##name(struct cursor *c, struct jiarun_wire_##name *m) \
	{                                                                      \
		(void)c, (void)m;                                              \
		fields                                                         \
	}
#include "jiarun_wire.def"
#undef NUM
#undef BYTES

static void get_fields(struct cursor *c, struct jiarun_message *m)
{
	switch (m->type) {
#define WIRE(name, fields)               \
	case JIARUN_WIRE_##name:         \
		get_##name(c, &m->name); \
		break;
#include "jiarun_wire.def"
	case JIARUN_WIRE_TYPES:
		break;
	}
}

void *jiarun_wire_room(struct jiarun_wire_in *in, size_t *room)
{
	size_t used = in->end - in->begin;
	unsigned char *more;

	if (in->begin) {
		memmove(in->buf, in->buf + in->begin, used);
		in->begin = 0;
		in->end = used;
	}
	if (in->room - used < READ_BYTES) {
		more = realloc(in->buf, used + ROOM_BYTES);
		if (!more)
			return NULL;
		in->buf = more;
		in->room = used + ROOM_BYTES;
	}
	*room = in->room - used;
	return in->buf + used;
}

void jiarun_wire_added(struct jiarun_wire_in *in, size_t n)
{
	in->end += n;
}

static int refuse(struct jiarun_wire_in *in, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct jiarun_wire_in *in, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->why, sizeof(in->why), fmt, ap);
	va_end(ap);
	return err;
}

/* The beginning of what is no greeting, up to the end of its line. */
static int refuse_junk(struct jiarun_wire_in *in, const char *at, size_t len)
{
	char line[61];
	size_t n = 0;

	while (n < len && n < sizeof(line) - 1 && at[n] != '\n' &&
	       at[n] != '\r') {
		line[n] = isprint((unsigned char)at[n]) ? at[n] : '?';
		n++;
	}
	line[n] = '\0';
	return refuse(in, -ENOMSG, "%s", line);
}

static int refuse_release(struct jiarun_wire_in *in, const char *at, size_t len)
{
	size_t head = sizeof(greeting_head) - 1, n = 0;

	while (head + n < len && isprint((unsigned char)at[head + n]))
		n++;
	return refuse(in, -EPROTONOSUPPORT, "%.*s", (int)n, at + head);
}

/* 1: it was ours. */
static int greeting_take(struct jiarun_wire_in *in)
{
	const char *at = (const char *)in->buf + in->begin;
	size_t len = in->end - in->begin, head = sizeof(greeting_head) - 1;
	char own[JIARUN_GREETING_MAX];
	const char *stop;

	if (memcmp(at, greeting_head, len < head ? len : head) != 0)
		return refuse_junk(in, at, len);
	stop = memchr(at, '\n', len);
	if (!stop && len < JIARUN_GREETING_MAX)
		return 0;
	greeting_make(own);
	len = stop ? (size_t)(stop - at) + 1 : JIARUN_GREETING_MAX;
	if (len != strlen(own) || memcmp(at, own, len) != 0)
		return refuse_release(in, at, len);
	in->begin += len;
	in->greeted = true;
	return 1;
}

static int frame_read(struct jiarun_wire_in *in, const unsigned char *at,
		      size_t len, struct jiarun_message *m)
{
	struct cursor c = { .at = at + HEAD_BYTES, .left = len - HEAD_BYTES };

	memset(m, 0, sizeof(*m));
	m->type = (enum jiarun_wire_type)get_le(at + 4, 2);
	get_fields(&c, m);
	if (c.fault)
		return refuse(in, -EPROTO, "a message '%s' whose %s %s",
			      jiarun_wire_name(m->type), c.field, c.fault);
	if (c.left)
		return refuse(in, -EPROTO, "a message '%s' that is too long",
			      jiarun_wire_name(m->type));
	return 1;
}

/* Is the head one that a frame may have?  0 or -EPROTO. */
static int head_check(struct jiarun_wire_in *in, const unsigned char *at)
{
	uint64_t len = get_le(at, 4), type = get_le(at + 4, 2);

	if (get_le(at + 6, 2) != FRAME_MARK)
		return refuse(in, -EPROTO, "something that is no message");
	if (type >= JIARUN_WIRE_TYPES)
		return refuse(in, -EPROTO, "a message of an unknown type, %u",
			      (unsigned int)type);
	if (len < HEAD_BYTES - 4 || len > JIARUN_FRAME_MAX - 4)
		return refuse(in, -EPROTO, "a message of %llu bytes",
			      (unsigned long long)len);
	return 0;
}

int jiarun_wire_next(struct jiarun_wire_in *in, struct jiarun_message *m)
{
	const unsigned char *at;
	size_t len;
	int err;

	if (in->begin == in->end)
		return 0;
	if (!in->greeted) {
		err = greeting_take(in);
		if (err <= 0)
			return err;
	}
	at = in->buf + in->begin;
	if (in->end - in->begin < HEAD_BYTES)
		return 0;
	err = head_check(in, at);
	if (err)
		return err;
	len = (size_t)get_le(at, 4) + 4;
	if (in->end - in->begin < len)
		return 0;
	err = frame_read(in, at, len, m);
	if (err == 1)
		in->begin += len;
	return err;
}

void jiarun_wire_in_free(struct jiarun_wire_in *in)
{
	free(in->buf);
	*in = (struct jiarun_wire_in){ 0 };
}

void jiarun_wire_text(struct jiarun_bytes b, char *out, size_t room)
{
	size_t len = b.len < room ? b.len : room - 1;

	for (size_t i = 0; i < len; i++)
		out[i] = ((const char *)b.at)[i] ? ((const char *)b.at)[i] :
						   '?';
	out[len] = '\0';
}
