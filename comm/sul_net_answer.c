/* SPDX-License-Identifier: MIT */
/*
 * sul_net_answer.c - requests that wait for an answer, and their answers.
 *
 * Role:      the requester's table of what is asked for; the answering rank's
 *            frames.
 * Invariant: nobody has more asked for than the answering lane holds: a get is
 *            counted with the packets it takes at the most, until all of it is
 *            here.  What was answered by then has been acknowledged by the
 *            header of every later request, so answering never waits.
 * Threads:   none; the caller excludes.
 */
#include "sul_memory.h"
#include "sul_net_link.h"

enum {
	DATA_FIXED = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_answer),
	INDEX_BITS = 10, /* SUL_NET_SPAN_MAX */
	INDEX_MASK = (1 << INDEX_BITS) - 1
};

/* --- how many packets ------------------------------------------------------------ */

static size_t data_most(const struct sul_net_link *l)
{
	return sul_net_space_new(l) - DATA_FIXED;
}

size_t sul_net_answer_bytes(const struct sul_net_link *l, uint64_t off,
			    uint32_t packets)
{
	return packets * data_most(l) - (off & 7);
}

uint32_t sul_net_answer_packets(const struct sul_net_link *l, uint64_t off,
				size_t len)
{
	size_t most = data_most(l);

	return (uint32_t)((len + (off & 7) + most - 1) / most);
}

/* --- asking ----------------------------------------------------------------------- */

uint32_t sul_net_pend(struct sul_net *n, struct sul_net_link *l, void *dst,
		      size_t len, uint32_t packets)
{
	uint32_t i = l->pending_free;
	struct sul_net_pending *p;

	if (!i || l->answers + packets > l->answers_most)
		return SUL_WIRE_NO_TAG;
	p = &l->pending[--i];
	l->pending_free = p->next;
	p->dst = dst;
	p->len = p->left = (uint32_t)len;
	p->packets = (uint16_t)packets;
	if (!(++p->generation << INDEX_BITS)) /* a tag is not 0 */
		p->generation = 1;
	l->answers += packets;
	l->nr_pending++;
	n->unanswered++;
	return p->generation << INDEX_BITS | i;
}

static void end_pending(struct sul_net *n, struct sul_net_link *l, uint32_t i)
{
	struct sul_net_pending *p = &l->pending[i];

	p->dst = NULL;
	p->next = l->pending_free;
	l->pending_free = (uint16_t)(i + 1);
	l->answers -= p->packets;
	l->nr_pending--;
	n->unanswered--;
}

void sul_net_pend_cancel(struct sul_net *n, struct sul_net_link *l,
			 uint32_t tag)
{
	if (tag != SUL_WIRE_NO_TAG)
		end_pending(n, l, tag & INDEX_MASK);
}

void sul_net_take_data(struct sul_net *n, struct sul_net_link *l, uint32_t tag,
		       uint64_t off, const void *data, size_t len)
{
	uint32_t i = tag & INDEX_MASK;
	struct sul_net_pending *p = &l->pending[i];

	if (i >= n->cfg.span || !p->dst || !len ||
	    p->generation << INDEX_BITS != (tag & ~(uint32_t)INDEX_MASK) ||
	    off > p->len || len > p->len - off || len > p->left) {
		n->stats.dropped_range++;
		return;
	}
	memcpy((char *)p->dst + off, data, len);
	l->want_tries = 0;
	p->left -= (uint32_t)len;
	if (!p->left)
		end_pending(n, l, i);
}

/*
 * The answers to requests that have been executed left the peer at once; they
 * are acknowledged so lazily that it takes a while until it finds out that one
 * was lost.  A question tells it: its stamps say what has come here since.
 */
void sul_net_want(struct sul_net *n, struct sul_net_link *l)
{
	const struct sul_sender *out = &l->lane[SUL_REQUESTS].out;
	uint64_t wait = sul_rtt_timeout(&l->paths.rtt, 0);

	l->want_ns = SUL_ENGINE_NEVER;
	if (!l->nr_pending || out->una != out->next)
		return;
	if (l->want_tries < 16)
		wait <<= l->want_tries;
	if (wait > n->cfg.silence_ns / 32)
		wait = n->cfg.silence_ns / 32;
	l->want_ns = n->now_ns + wait;
}

/* --- answering -------------------------------------------------------------------- */

static void write_answer(unsigned char *at, enum sul_frame_kind kind,
			 uint32_t tag, uint64_t off, size_t bytes)
{
	struct sul_wire_frame f = { .kind = (uint8_t)kind,
				    .bytes = (uint32_t)bytes,
				    .off = off };
	struct sul_wire_answer a = { .tag = SUL_LE32(tag) };

	sul_wire_frame_write(at, f);
	memcpy(at + SUL_WIRE_FRAME_BYTES, &a, sizeof(a));
}

/* Is there room for so many packets?  There is, unless the peer asks for more
 * than it was told it may. */
static bool has_room(struct sul_net *n, const struct sul_net_link *l,
		     uint32_t packets)
{
	if (packets <= sul_sender_room(&l->lane[SUL_ANSWERS].out))
		return true;
	n->stats.dropped_room++;
	return false;
}

/* Is the whole of a range of an own window there? */
static bool is_there(struct sul_net *n, const struct sul_net_link *l,
		     unsigned int w, uint64_t off, size_t len)
{
	for (uint64_t piece = len; len; off += piece, piece = len) {
		if (!sul_net_at(n, l, w, off, &piece, false))
			return false;
		len -= (size_t)piece;
	}
	return true;
}

static void copy_out(struct sul_net *n, const struct sul_net_link *l,
		     unsigned char *to, unsigned int w, uint64_t off,
		     size_t len)
{
	while (len) {
		uint64_t piece = len;
		const char *src = sul_net_at(n, l, w, off, &piece, false);

		sul_memory_copy_out(to, src, (size_t)piece);
		to += piece;
		off += piece;
		len -= (size_t)piece;
	}
}

bool sul_net_answer_data(struct sul_net *n, struct sul_net_link *l,
			 uint32_t tag, unsigned int w, uint64_t off,
			 uint32_t len, uint32_t *done)
{
	if (len - *done + DATA_FIXED > sul_net_space(l, SUL_ANSWERS) &&
	    !has_room(n, l,
		      sul_net_answer_packets(l, off + *done, len - *done)))
		return true;
	while (*done < len) {
		size_t take = sul_net_whole_words(off + *done, len - *done,
						  data_most(l));
		unsigned char *at;

		if (n->cfg.env->at && !is_there(n, l, w, off + *done, take))
			return false;
		at = sul_net_frame(n, l, SUL_ANSWERS, DATA_FIXED + take);
		write_answer(at, SUL_FRAME_DATA, tag, *done, DATA_FIXED + take);
		copy_out(n, l, at + DATA_FIXED, w, off + *done, take);
		*done += (uint32_t)take;
	}
	return true;
}

void sul_net_answer_old(struct sul_net *n, struct sul_net_link *l, uint32_t tag,
			uint64_t old)
{
	unsigned char *at;

	if (DATA_FIXED > sul_net_space(l, SUL_ANSWERS) && !has_room(n, l, 1))
		return;
	at = sul_net_frame(n, l, SUL_ANSWERS, DATA_FIXED);
	write_answer(at, SUL_FRAME_OLD, tag, old, DATA_FIXED);
}
