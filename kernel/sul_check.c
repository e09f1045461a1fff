/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_check.c - see sul_check.h.
 *
 * Role:    every rule of sul_abi.h that needs no more than the operands.
 * Threads: any; nothing is kept.
 */
#include "sul_check.h"

static bool is_power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

static bool is_zero(const uint8_t *at, size_t len)
{
	uint8_t any = 0;

	while (len--)
		any |= *at++;
	return !any;
}

enum {
	SPAN_MIN = 8,
	SPAN_MAX = 1024,
	PACKET_MIN = 548,
	PACKET_MAX = 8972,
	PIN_PAGES_MIN = 16,
	MILLION = 1000000,
};

/* Pages that the table can count, far beyond what a machine has. */
#define PIN_PAGES_MAX 0x7fffffffull

static bool is_packet(uint32_t bytes)
{
	return bytes >= PACKET_MIN && bytes <= PACKET_MAX;
}

int sul_peer_check(const struct sul_peer_spec *s)
{
	return is_packet(s->packet_bytes) ? 0 : -EINVAL;
}

int sul_port_check(const struct sul_port_spec *s, uint64_t page_bytes)
{
	if (s->flags & ~SUL_PORT_TRACE || !s->ranks ||
	    s->ranks > SUL_ABI_RANKS_MAX || s->rank >= s->ranks ||
	    is_zero(s->key, sizeof(s->key)))
		return -EINVAL;
	if (s->auth >= SUL_ABI_AUTH_NR || !s->session || s->span < SPAN_MIN ||
	    s->span > SPAN_MAX || !is_power_of_two(s->span) ||
	    !is_packet(s->packet_bytes) || !s->silence_ns ||
	    s->loss_ppm > MILLION)
		return -EINVAL;
	if (s->pin_bytes / page_bytes < PIN_PAGES_MIN ||
	    s->pin_bytes / page_bytes > PIN_PAGES_MAX ||
	    s->landing_bytes % page_bytes ||
	    s->landing_bytes > SUL_ABI_LANDING_MAX)
		return -EINVAL;
	return 0;
}

/* A window that is not there has no address either. */
static bool window_makes_sense(const struct sul_window_spec *w,
			       uint64_t page_bytes)
{
	if (!w->bytes)
		return !w->addr;
	return !((w->addr | w->bytes) % page_bytes) &&
	       w->bytes <= UINT64_MAX - w->addr;
}

int sul_start_check(const struct sul_start *s, uint64_t page_bytes)
{
	if (!s->windows || s->windows > SUL_ABI_WINDOWS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < SUL_ABI_WINDOWS_MAX; i++) {
		const struct sul_window_spec *w = &s->window[i];

		if (i >= s->windows && (w->addr || w->bytes))
			return -EINVAL;
		if (!window_makes_sense(w, page_bytes))
			return -EINVAL;
	}
	return 0;
}

bool sul_check_range(const struct sul_shape *s, unsigned int w, uint64_t off,
		     uint64_t len)
{
	return w < s->windows && off <= s->bytes[w] && len <= s->bytes[w] - off;
}

bool sul_check_word(const struct sul_shape *s, unsigned int w, uint64_t off)
{
	return !(off & 7) && sul_check_range(s, w, off, 8);
}

/* --- operations ------------------------------------------------------------------ */

/* [land, land + len) of the landing area. */
static bool lands(const struct sul_op *op, uint64_t len, uint32_t bytes)
{
	return !(op->land & 7) && op->land <= bytes && len <= bytes - op->land;
}

static bool get(const struct sul_op *op, const struct sul_shape *target,
		uint32_t landing_bytes, bool near)
{
	if (op->flags || op->len > SUL_ABI_OP_BYTES_MAX ||
	    op->marks.nr > SUL_ABI_MARKS_MAX || op->marks.reserved)
		return false;
	return sul_check_range(target, op->window, op->off, op->len) &&
	       (near || lands(op, op->len, landing_bytes));
}

static bool put(const struct sul_op *op, const struct sul_shape *target)
{
	uint32_t most = SUL_ABI_OP_BYTES_MAX;

	if (op->flags & SUL_OP_INLINE)
		most = SUL_ABI_INLINE_MAX;
	return !(op->flags & ~SUL_OP_INLINE) && !op->land && op->len <= most &&
	       sul_check_range(target, op->window, op->off, op->len);
}

static bool putv(const struct sul_op *op, const struct sul_shape *target)
{
	bool mirror = op->flags & SUL_OP_MIRROR;

	if (op->flags & ~SUL_OP_MIRROR || op->land || op->len ||
	    op->runs.reserved || !op->runs.nr ||
	    op->runs.nr > SUL_ABI_OP_RUNS_MAX)
		return false;
	if (!mirror)
		return !op->runs.window && !op->runs.flag_window &&
		       !op->runs.flag_off;
	return sul_check_range(target, op->runs.flag_window, op->runs.flag_off,
			       1);
}

static bool amo(const struct sul_op *op, const struct sul_shape *target,
		uint32_t landing_bytes)
{
	if (op->flags & ~SUL_OP_OLD || op->len || op->addr ||
	    op->amo.op >= SUL_AMO_NR || op->amo.reserved)
		return false;
	if (op->flags & SUL_OP_OLD ? !lands(op, 8, landing_bytes) : op->land)
		return false;
	return sul_check_word(target, op->window, op->off);
}

static bool notify(const struct sul_op *op, const struct sul_shape *target)
{
	return !op->flags && !op->len && !op->addr && !op->land &&
	       !op->notify.reserved &&
	       sul_check_word(target, op->window, op->off);
}

static bool message(const struct sul_op *op, const struct sul_shape *target)
{
	bool in_line = op->flags & SUL_OP_INLINE;

	if (op->flags & ~SUL_OP_INLINE || op->land ||
	    op->len > (in_line ? SUL_ABI_MESSAGE_INLINE_MAX :
				 SUL_ABI_MESSAGE_MAX) ||
	    (in_line && op->addr))
		return false;
	return sul_check_range(target, op->window, op->off, op->len) &&
	       sul_check_word(target, op->window, op->message.word[0]) &&
	       sul_check_word(target, op->window, op->message.word[1]);
}

/* Whoever is near has eyes of his own. */
static bool farewell(const struct sul_op *op, bool near)
{
	return !near && !op->flags && !op->window && !op->off && !op->addr &&
	       !op->len && !op->land && is_zero(op->data, sizeof(op->data));
}

int sul_check_op(const struct sul_op *op, const struct sul_shape *target,
		 uint32_t landing_bytes, bool near)
{
	bool ok = false;

	switch (op->kind) {
	case SUL_OP_GET:
		ok = get(op, target, landing_bytes, near);
		break;
	case SUL_OP_PUT:
		ok = put(op, target);
		break;
	case SUL_OP_PUTV:
		ok = putv(op, target);
		break;
	case SUL_OP_AMO:
		ok = amo(op, target, landing_bytes);
		break;
	case SUL_OP_NOTIFY:
		ok = notify(op, target);
		break;
	case SUL_OP_MESSAGE:
		ok = message(op, target);
		break;
	case SUL_OP_FAREWELL:
		ok = farewell(op, near);
		break;
	default:
		break;
	}
	return ok ? 0 : -EINVAL;
}

bool sul_check_mark(const struct sul_shape *s, const struct sul_mark *m)
{
	return !m->reserved && sul_check_word(s, m->window, m->off);
}

bool sul_check_run(const struct sul_shape *s, const struct sul_op *op,
		   const struct sul_run *run, uint64_t *bytes)
{
	uint64_t end = (uint64_t)run->off + run->len;

	*bytes += run->len;
	if (!run->len || *bytes > SUL_ABI_OP_BYTES_MAX)
		return false;
	return sul_check_range(s, op->window, op->off, end) &&
	       (!(op->flags & SUL_OP_MIRROR) ||
		sul_check_range(s, op->runs.window, op->off, end));
}
