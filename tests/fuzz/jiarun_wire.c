/* SPDX-License-Identifier: MIT */
/*
 * jiarun_wire.c - libFuzzer target: what one launcher says to another.
 *
 * Role:      the input is a byte that says how, and then the bytes of the
 *            channel; or what frames to make of which rows of the table, with
 *            fields at their limits, beyond them and cut off.  They come in
 *            pieces.  What is taken goes where a launcher would put it: into a
 *            plan of the job and into the job's control block.
 * Invariant: what is taken is what was said: said again it is the same bytes.
 *            In how many pieces it comes changes nothing.  Nothing is read that
 *            has not come.  A plan that is complete makes sense.
 * Threads:   one.
 */
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jiarun_card.h"
#include "jiarun_plan.h"
#include "jiarun_wire.h"

enum {
	HEAD_BYTES = 8,
	STREAM_MAX = 1 << 20, /* no more frames beyond it */
	PIECES = 300, /* at most: one by one takes too long */
	FENCE_BYTES = 64, /* behind what has come */
};

/* Bits of the first byte: it begins with a greeting; frames are made. */
enum {
	GREETS = 1,
	FRAMES = 2,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool ok)
{
	if (!ok)
		abort();
}

/* The channel's bytes: [0, len). */
struct stream {
	unsigned char *at;
	size_t len;
};

static void append(struct stream *s, const void *data, size_t len)
{
	s->at = realloc(s->at, s->len + len + 1);
	insist(s->at);
	memcpy(s->at + s->len, data, len);
	s->len += len;
}

static void append_greeting(struct stream *s)
{
	struct jiarun_wire_out o = { 0 };

	jiarun_wire_greet(&o);
	append(s, o.buf + o.begin, o.end - o.begin);
	jiarun_wire_out_free(&o);
}

/* --- frames to the input's wishes ------------------------------------------- */

struct wishes {
	const uint8_t *at;
	size_t left;
};

static uint8_t next_byte(struct wishes *w)
{
	if (!w->left)
		return 0;
	w->left--;
	return *w->at++;
}

static void append_le(struct stream *s, uint64_t v, unsigned int bytes)
{
	unsigned char b[8];

	for (unsigned int i = 0; i < bytes; i++)
		b[i] = (unsigned char)(v >> 8 * i);
	append(s, b, bytes);
}

static void append_num(struct stream *s, struct wishes *w, uint64_t max)
{
	uint8_t c = next_byte(w);

	append_le(s, c == 255 ? max : c == 254 ? max + 1 : c, 8);
}

static void append_bytes(struct stream *s, struct wishes *w, size_t max)
{
	uint8_t c = next_byte(w);
	size_t len = c == 255 ? max : c == 254 ? max + 1 : c;
	size_t given = len < w->left ? len : w->left;
	unsigned char *fill = malloc(len + 1);

	insist(fill);
	memset(fill, 'x', len + 1);
	memcpy(fill, w->at, given);
	w->at += given;
	w->left -= given;
	append_le(s, len, 4);
	append(s, fill, len);
	free(fill);
}

static void append_fields(struct stream *s, struct wishes *w, unsigned int type)
{
	switch (type) {
#define NUM(field, max) append_num(s, w, max);
#define BYTES(field, max) append_bytes(s, w, max);
#define WIRE(name, fields)       \
	case JIARUN_WIRE_##name: \
		fields break;
#include "jiarun_wire.def"
#undef NUM
#undef BYTES
	}
}

/* Type 255 and a byte: the frame before is too short or too long by as much. */
static void append_frame(struct stream *s, struct wishes *w)
{
	unsigned int type = next_byte(w);
	size_t at = s->len, len;

	append_le(s, 0, 4);
	append_le(s, type, 2);
	append_le(s, 'J' | 'R' << 8, 2);
	append_fields(s, w, type);
	if (w->left && *w->at == 255) {
		next_byte(w);
		len = next_byte(w);
		if (len & 1)
			append_le(s, 0, 8);
		else
			s->len -= len < s->len - at - HEAD_BYTES ?
					  len :
					  s->len - at - HEAD_BYTES;
	}
	len = s->len - at - 4;
	for (unsigned int i = 0; i < 4; i++)
		s->at[at + i] = (unsigned char)(len >> 8 * i);
}

static struct stream stream_make(const uint8_t *data, size_t size)
{
	struct wishes w = { data, size };
	struct stream s = { 0 };
	uint8_t how = next_byte(&w);

	if (how & GREETS)
		append_greeting(&s);
	if (!(how & FRAMES))
		append(&s, w.at, w.left);
	while (how & FRAMES && w.left && s.len < STREAM_MAX)
		append_frame(&s, &w);
	return s;
}

/* --- hearing it --------------------------------------------------------------- */

/* What was taken, said again. */
struct heard {
	struct jiarun_wire_out again;
	size_t frames;
	int err;
};

static void take(struct heard *h, const struct jiarun_message *m,
		 struct jiarun_plan *plan, struct sul_job *job)
{
	char why[JIARUN_WHY_MAX];

	h->frames++;
	insist(m->type < JIARUN_WIRE_TYPES);
	jiarun_wire_put(&h->again, m);
	if (m->type == JIARUN_WIRE_card &&
	    m->card.rank < (uint64_t)sul_job_ranks(job))
		jiarun_card_take(job, &m->card);
	if (plan->complete || jiarun_plan_take(plan, m, why) || !plan->complete)
		return;
	insist(plan->ranks > 0 && plan->host < plan->hosts && plan->placed &&
	       plan->argument.nr && plan->directory &&
	       plan->name.nr == (size_t)plan->hosts);
	for (int r = 0; r < plan->ranks; r++)
		insist(jiarun_plan_host_of(plan, r) < plan->hosts);
}

static void fence(const struct jiarun_wire_in *in, bool up)
{
	size_t n = in->room - in->end;

	n = n < FENCE_BYTES ? n : FENCE_BYTES;
	if (in->buf)
		(up ? __asan_poison_memory_region :
		      __asan_unpoison_memory_region)(in->buf + in->end, n);
}

/* At most @most bytes of @s from @at on; behind them nothing may be read. */
static size_t feed(struct jiarun_wire_in *in, const struct stream *s, size_t at,
		   size_t most)
{
	size_t room, n = s->len - at < most ? s->len - at : most;
	unsigned char *to;

	fence(in, false);
	to = jiarun_wire_room(in, &room);
	insist(to && room);
	n = n < room ? n : room;
	memcpy(to, s->at + at, n);
	jiarun_wire_added(in, n);
	fence(in, true);
	return n;
}

static struct heard hear(const struct stream *s, size_t piece,
			 struct sul_job *job)
{
	struct jiarun_wire_in in = { 0 };
	struct jiarun_plan plan = { 0 };
	struct jiarun_message m;
	struct heard h = { 0 };

	for (size_t at = 0; at < s->len && h.err >= 0;) {
		at += feed(&in, s, at, piece);
		while ((h.err = jiarun_wire_next(&in, &m)) == 1)
			take(&h, &m, &plan, job);
	}
	insist(h.err >= 0 || memchr(in.why, 0, sizeof(in.why)));
	fence(&in, false);
	jiarun_plan_free(&plan);
	jiarun_wire_in_free(&in);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sul_job *job; /* as long as the process lives */
	struct stream s = stream_make(data, size);
	struct heard whole, parts;

	if (!job)
		insist(!sul_job_create(&job, 3));
	whole = hear(&s, s.len, job);
	parts = hear(&s, 1 + s.len / PIECES, job);
	insist(parts.frames == whole.frames && parts.err == whole.err &&
	       parts.again.end == whole.again.end);
	if (whole.again.end) {
		const unsigned char *said = memchr(s.at, '\n', s.len);

		insist(said && whole.again.end < s.len - (size_t)(said - s.at));
		insist(!memcmp(whole.again.buf, said + 1, whole.again.end));
	}
	jiarun_wire_out_free(&whole.again);
	jiarun_wire_out_free(&parts.again);
	free(s.at);
	return 0;
}
