/* SPDX-License-Identifier: MIT */
/*
 * sul_net_issue.c - operations become frames of requests.
 *
 * Role:      each operation is cut into as many frames as its bytes need; long
 *            runs of bytes are sent from where they lie, short ones copied
 *            (and all of them if the configuration says so).
 * Invariant: a frame is made completely or not at all; a cut never lies within
 *            an aligned word of the target.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

static bool range_exists(const struct sul_net *n, unsigned int w, uint64_t off,
			 uint64_t len)
{
	return w < n->cfg.windows && off <= n->cfg.window[w].bytes &&
	       len <= n->cfg.window[w].bytes - off;
}

static bool word_exists(const struct sul_net *n, unsigned int w, uint64_t off)
{
	return range_exists(n, w, off, 8) && !(off & 7);
}

static struct sul_wire_frame frame(enum sul_frame_kind kind, unsigned int w,
				   uint64_t off, size_t bytes)
{
	return (struct sul_wire_frame){ .kind = (uint8_t)kind,
					.window = (uint16_t)w,
					.bytes = (uint32_t)bytes,
					.off = off };
}

/* Are so many bytes sent from where they lie? */
static bool referred(const struct sul_net *n, size_t bytes)
{
	return bytes >= SUL_NET_REFER_BYTES && !n->cfg.copy;
}

/*
 * A frame that begins with @fixed bytes here and ends with some of the @left
 * bytes at @src, which stay where they are.  How many it takes, or 0: the lane
 * is full.  @off is their place in the target.
 */
static size_t refer(struct sul_net *n, struct sul_net_link *l, uint64_t off,
		    const void *src, size_t left, size_t fixed, void **out)
{
	size_t space = sul_net_space(l, SUL_REQUESTS), take;
	struct sul_net_slot *s;

	/* A remainder of a packet that is hardly worth it stays empty. */
	if (space < fixed + SUL_NET_REFER_BYTES && space < fixed + left) {
		if (!sul_net_packet(n, l, SUL_REQUESTS))
			return 0;
		space = sul_net_space_new(l);
	}
	take = sul_net_whole_words(off, left, space - fixed);
	*out = sul_net_frame(n, l, SUL_REQUESTS, fixed);
	s = sul_net_last_slot(l, SUL_REQUESTS);
	s->body = src;
	s->body_len = (uint16_t)take;
	return take;
}

/* --- put -------------------------------------------------------------------------- */

/* How many bytes are under way by it; 0: the lane is full. */
static size_t put_copied(struct sul_net *n, struct sul_net_link *l,
			 unsigned int w, uint64_t off, const char *src,
			 size_t left)
{
	size_t take = sul_net_whole_words(
		off, left, sul_net_space_new(l) - SUL_WIRE_FRAME_BYTES);
	size_t bytes = SUL_WIRE_FRAME_BYTES + take;
	unsigned char *at = sul_net_frame(n, l, SUL_REQUESTS, bytes);

	if (!at)
		return 0;
	sul_wire_frame_write(at, frame(SUL_FRAME_PUT, w, off, bytes));
	memcpy(at + SUL_WIRE_FRAME_BYTES, src, take);
	return take;
}

static size_t put_referred(struct sul_net *n, struct sul_net_link *l,
			   unsigned int w, uint64_t off, const char *src,
			   size_t left)
{
	void *at;
	size_t take = refer(n, l, off, src, left, SUL_WIRE_FRAME_BYTES, &at);

	if (take)
		sul_wire_frame_write(at, frame(SUL_FRAME_PUT, w, off,
					       SUL_WIRE_FRAME_BYTES + take));
	return take;
}

int sul_net_put(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		const void *src, size_t len, size_t *done)
{
	struct sul_net_link *l;
	int err;

	if (!range_exists(n, w, off, len))
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	while (*done < len) {
		size_t left = len - *done;
		size_t took =
			referred(n, left) ?
				put_referred(n, l, w, off + *done,
					     (const char *)src + *done, left) :
				put_copied(n, l, w, off + *done,
					   (const char *)src + *done, left);

		if (!took)
			return -EAGAIN;
		*done += took;
	}
	return 0;
}

/* --- putv ------------------------------------------------------------------------- */

enum {
	PUTV_FIXED = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_putv),
	RUN_BYTES = sizeof(struct sul_run)
};

/* A scatter under way: the next run, and how much of it has been sent. */
struct scatter {
	unsigned int w;
	uint64_t off;
	const char *src;
	const struct sul_run *runs;
	size_t nr_runs;
	const struct sul_mirror *mirror;
	size_t at;
	uint32_t part;
};

static bool scatter_is_valid(const struct sul_net *n, const struct scatter *s)
{
	uint64_t end = 0;

	for (size_t i = 0; i < s->nr_runs; i++) {
		uint64_t e = (uint64_t)s->runs[i].off + s->runs[i].len;

		if (!s->runs[i].len)
			return false;
		end = e > end ? e : end;
	}
	if (!range_exists(n, s->w, s->off, end))
		return false;
	return !s->mirror || (range_exists(n, s->mirror->window, s->off, end) &&
			      range_exists(n, s->mirror->flag_window,
					   s->mirror->flag_off, 1));
}

/* What is left of the @i-th run. */
static struct sul_run rest_of(const struct scatter *s, size_t i)
{
	struct sul_run r = s->runs[i];

	if (i == s->at) {
		r.off += s->part;
		r.len -= s->part;
	}
	return r;
}

static void advance(struct scatter *s, uint32_t bytes)
{
	s->part += bytes;
	if (s->part == s->runs[s->at].len) {
		s->at++;
		s->part = 0;
	}
}

static void write_scatter(const struct scatter *s, unsigned char *at,
			  size_t nr_runs, size_t bytes)
{
	struct sul_wire_frame f = frame(SUL_FRAME_PUTV, s->w, s->off, bytes);
	struct sul_wire_putv v = { .runs = SUL_LE32((uint32_t)nr_runs) };

	if (s->mirror) {
		f.aux = 1;
		v.flag_off = SUL_LE64(s->mirror->flag_off);
		v.mirror = SUL_LE16(s->mirror->window);
		v.flag_window = SUL_LE16(s->mirror->flag_window);
	}
	sul_wire_frame_write(at, f);
	memcpy(at + SUL_WIRE_FRAME_BYTES, &v, sizeof(v));
}

static unsigned char *write_run(unsigned char *at, struct sul_run r)
{
	r.off = SUL_LE32(r.off);
	r.len = SUL_LE32(r.len);
	memcpy(at, &r, sizeof(r));
	return at + sizeof(r);
}

static bool putv_referred(struct sul_net *n, struct sul_net_link *l,
			  struct scatter *s)
{
	struct sul_run r = rest_of(s, s->at);
	void *at;
	size_t take = refer(n, l, s->off + r.off, s->src + r.off, r.len,
			    PUTV_FIXED + RUN_BYTES, &at);

	if (!take)
		return false;
	r.len = (uint32_t)take;
	write_scatter(s, at, 1, PUTV_FIXED + RUN_BYTES + take);
	write_run((unsigned char *)at + PUTV_FIXED, r);
	advance(s, r.len);
	return true;
}

/* How many runs from here on fit into @space, and their bytes. */
static size_t gather(const struct sul_net *n, const struct scatter *s,
		     size_t space, size_t *bytes)
{
	size_t i;

	*bytes = PUTV_FIXED;
	for (i = s->at; i < s->nr_runs; i++) {
		uint32_t len = rest_of(s, i).len;

		if (referred(n, len) || *bytes + RUN_BYTES + len > space)
			break;
		*bytes += RUN_BYTES + len;
	}
	return i - s->at;
}

static bool putv_gathered(struct sul_net *n, struct sul_net_link *l,
			  struct scatter *s)
{
	size_t bytes, nr = gather(n, s, sul_net_space(l, SUL_REQUESTS), &bytes);
	unsigned char *at, *data;
	struct sul_run r = rest_of(s, s->at);

	if (!nr)
		nr = gather(n, s, sul_net_space_new(l), &bytes);
	if (!nr) { /* a packet is smaller than this run */
		nr = 1;
		r.len = (uint32_t)sul_net_whole_words(
			s->off + r.off, r.len,
			sul_net_space_new(l) - PUTV_FIXED - RUN_BYTES);
		bytes = PUTV_FIXED + RUN_BYTES + r.len;
	}
	at = sul_net_frame(n, l, SUL_REQUESTS, bytes);
	if (!at)
		return false;
	write_scatter(s, at, nr, bytes);
	at += PUTV_FIXED;
	data = at + nr * RUN_BYTES;
	for (; nr; nr--) {
		at = write_run(at, r);
		memcpy(data, s->src + r.off, r.len);
		data += r.len;
		advance(s, r.len);
		if (nr > 1)
			r = rest_of(s, s->at);
	}
	return true;
}

/* @done holds the next run and how much of it is under way. */
int sul_net_putv(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		 const void *src, const struct sul_run *runs, size_t nr_runs,
		 const struct sul_mirror *mirror, size_t *done)
{
	struct scatter s = { w,	      off,    src,	   runs,
			     nr_runs, mirror, *done >> 32, (uint32_t)*done };
	struct sul_net_link *l;
	bool going = true;
	int err;

	if (!scatter_is_valid(n, &s))
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	while (s.at < nr_runs && going) {
		if (referred(n, rest_of(&s, s.at).len))
			going = putv_referred(n, l, &s);
		else
			going = putv_gathered(n, l, &s);
	}
	*done = s.at << 32 | s.part;
	return going ? 0 : -EAGAIN;
}

/* --- get -------------------------------------------------------------------------- */

static void write_get(unsigned char *at, unsigned int w, uint64_t off,
		      size_t len, uint32_t tag, const struct sul_mark *marks,
		      unsigned int nr_marks, size_t bytes)
{
	struct sul_wire_frame f = frame(SUL_FRAME_GET, w, off, bytes);
	struct sul_wire_get g = { SUL_LE32(tag), SUL_LE32((uint32_t)len) };

	f.aux = (uint8_t)nr_marks;
	sul_wire_frame_write(at, f);
	at += SUL_WIRE_FRAME_BYTES;
	memcpy(at, &g, sizeof(g));
	at += sizeof(g);
	for (unsigned int i = 0; i < nr_marks; i++) {
		struct sul_wire_mark m = { SUL_LE64(marks[i].off),
					   SUL_LE64(marks[i].bits),
					   SUL_LE32(marks[i].window), 0 };

		memcpy(at, &m, sizeof(m));
		at += sizeof(m);
	}
}

/* How much of @left bytes is to be asked for now; 0: the answering lane is too
 * full.  A quarter of the lane at a time, so that it never runs dry. */
static size_t get_size(const struct sul_net_link *l, uint64_t off, size_t left)
{
	uint32_t free = l->answers_most - l->answers;
	uint32_t turn = l->answers_most / 4;
	size_t most = sul_net_answer_bytes(l, off, turn);

	if (left > most)
		left = most;
	return sul_net_answer_packets(l, off, left) <= free ? left : 0;
}

static int get_part(struct sul_net *n, struct sul_net_link *l, unsigned int w,
		    uint64_t off, char *dst, size_t len,
		    const struct sul_mark *marks, unsigned int nr_marks)
{
	size_t bytes = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_get) +
		       nr_marks * sizeof(struct sul_wire_mark);
	uint32_t tag = SUL_WIRE_NO_TAG;
	unsigned char *at;

	if (len) {
		tag = sul_net_pend(n, l, dst, len,
				   sul_net_answer_packets(l, off, len));
		if (!tag)
			return -EAGAIN;
	}
	at = sul_net_frame(n, l, SUL_REQUESTS, bytes);
	if (!at) {
		sul_net_pend_cancel(n, l, tag);
		return -EAGAIN;
	}
	write_get(at, w, off, len, tag, marks, nr_marks, bytes);
	/* The answer says that it has been executed; costs nothing. */
	sul_net_last_slot(l, SUL_REQUESTS)->hurry |= len != 0;
	return 0;
}

static bool get_is_valid(const struct sul_net *n, unsigned int w, uint64_t off,
			 size_t len, const struct sul_mark *marks,
			 unsigned int nr_marks)
{
	if (!range_exists(n, w, off, len) || nr_marks > SUL_NET_MARKS_MAX)
		return false;
	for (unsigned int i = 0; i < nr_marks; i++)
		if (!word_exists(n, marks[i].window, marks[i].off))
			return false;
	return true;
}

int sul_net_get(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		void *dst, size_t len, const struct sul_mark *marks,
		unsigned int nr_marks, size_t *done)
{
	struct sul_net_link *l;
	int err;

	if (!get_is_valid(n, w, off, len, marks, nr_marks))
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	if (!len)
		return nr_marks ?
			       get_part(n, l, w, off, dst, 0, marks, nr_marks) :
			       0;
	while (*done < len) {
		size_t take = get_size(l, off + *done, len - *done);

		if (!take)
			return -EAGAIN;
		err = get_part(n, l, w, off + *done, (char *)dst + *done, take,
			       marks, *done ? 0 : nr_marks);
		if (err)
			return err;
		*done += take;
	}
	return 0;
}

/* --- amo, notify ------------------------------------------------------------------- */

int sul_net_amo(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		uint64_t *old)
{
	size_t bytes = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_amo);
	struct sul_wire_frame f = frame(SUL_FRAME_AMO, w, off, bytes);
	struct sul_wire_amo a = { .operand = SUL_LE64(operand),
				  .comparand = SUL_LE64(comparand) };
	uint32_t tag = SUL_WIRE_NO_TAG;
	struct sul_net_link *l;
	unsigned char *at;
	int err;

	if (!word_exists(n, w, off) || (unsigned int)op >= SUL_AMO_NR)
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	if (old) {
		tag = sul_net_pend(n, l, old, sizeof(*old), 1);
		if (!tag)
			return -EAGAIN;
	}
	at = sul_net_frame(n, l, SUL_REQUESTS, bytes);
	if (!at) {
		sul_net_pend_cancel(n, l, tag);
		return -EAGAIN;
	}
	f.aux = (uint8_t)op;
	a.tag = SUL_LE32(tag);
	sul_wire_frame_write(at, f);
	memcpy(at + SUL_WIRE_FRAME_BYTES, &a, sizeof(a));
	sul_net_last_slot(l, SUL_REQUESTS)->hurry |= old != NULL;
	return 0;
}

int sul_net_notify(struct sul_net *n, int rank, unsigned int w, uint64_t off,
		   uint32_t value)
{
	size_t bytes = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_notify);
	struct sul_wire_notify v = { .value = SUL_LE32(value) };
	struct sul_net_link *l;
	unsigned char *at;
	int err;

	if (!word_exists(n, w, off))
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	at = sul_net_frame(n, l, SUL_REQUESTS, bytes);
	if (!at)
		return -EAGAIN;
	sul_wire_frame_write(at, frame(SUL_FRAME_NOTIFY, w, off, bytes));
	memcpy(at + SUL_WIRE_FRAME_BYTES, &v, sizeof(v));
	return 0;
}

/* --- message ----------------------------------------------------------------------- */

static bool message_is_valid(const struct sul_net *n,
			     const struct sul_message *m)
{
	for (int i = 0; i < 2; i++)
		if (m->word[i] > UINT32_MAX ||
		    !word_exists(n, m->window, m->word[i]))
			return false;
	return m->len <= SUL_NET_MESSAGE_MAX &&
	       range_exists(n, m->window, m->off, m->len);
}

int sul_net_message(struct sul_net *n, int rank, const struct sul_message *m)
{
	size_t fixed = SUL_WIRE_FRAME_BYTES + sizeof(struct sul_wire_message);
	struct sul_wire_message v;
	struct sul_net_link *l;
	unsigned char *at;
	int err;

	if (!message_is_valid(n, m))
		return -EINVAL;
	err = sul_net_link_issue(n, rank, &l);
	if (err)
		return err;
	at = sul_net_frame(n, l, SUL_REQUESTS, fixed + m->len);
	if (!at)
		return -EAGAIN;
	for (int i = 0; i < 2; i++) {
		v.word[i] = SUL_LE32((uint32_t)m->word[i]);
		v.value[i] = SUL_LE32(m->value[i]);
	}
	sul_wire_frame_write(at, frame(SUL_FRAME_MESSAGE, m->window, m->off,
				       fixed + m->len));
	memcpy(at + SUL_WIRE_FRAME_BYTES, &v, sizeof(v));
	if (m->len)
		memcpy(at + fixed, m->src, m->len);
	return 0;
}

/* --- farewell ---------------------------------------------------------------------- */

int sul_net_farewell(struct sul_net *n, int rank)
{
	struct sul_net_link *l;
	unsigned char *at;
	int err = sul_net_link_issue(n, rank, &l);

	if (err)
		return err;
	at = sul_net_frame(n, l, SUL_REQUESTS, SUL_WIRE_FRAME_BYTES);
	if (!at)
		return -EAGAIN;
	sul_wire_frame_write(at, frame(SUL_FRAME_FAREWELL, 0, 0,
				       SUL_WIRE_FRAME_BYTES));
	return 0;
}

/* --- hurry -------------------------------------------------------------------------- */

static void hurry_link(struct sul_net *n, struct sul_net_link *l)
{
	struct sul_sender *out = &l->lane[SUL_REQUESTS].out;

	if (out->una == out->next) {
		sul_net_ring_leave(&l->busy);
		return;
	}
	if (out->fresh != out->next) {
		sul_net_last_slot(l, SUL_REQUESTS)->hurry = true;
		return;
	}
	if (!out->unhurried) /* asked already */
		return;
	l->ask_now = true;
	sul_net_link_touch(n, l);
}

void sul_net_hurry(struct sul_net *n)
{
	struct sul_net_ring *at = n->busy.next;

	while (at != &n->busy) {
		struct sul_net_ring *next = at->next;

		hurry_link(n, SUL_NET_LINK_OF(at, busy));
		at = next;
	}
}
