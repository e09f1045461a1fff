/* SPDX-License-Identifier: MIT */
/*
 * sul_net_execute.c - what a packet's frames do here.
 *
 * Role:      requests take effect on the windows of this rank; answers reach
 *            whoever asked.
 * Invariant: every range is checked against the window here, whatever the
 *            sender has checked; an operation that makes no sense is dropped as
 *            a whole, and counted, before any of it took effect.  What has
 *            taken effect is never repeated: where a page is missing, the
 *            progress says how far it got.
 * Threads:   none; the caller excludes.  The windows' own threads may work on
 *            them meanwhile.
 */
#include "sul_memory.h"
#include "sul_net_link.h"

/* What became of a frame. */
enum outcome {
	DONE,
	NONSENSE,
	MISSING /* in part, or nothing, until a page is there */
};

/* A frame to be executed, and what follows its first part. */
struct request {
	struct sul_net *n;
	struct sul_net_link *l;
	struct sul_net_progress *at;
	struct sul_wire_frame f;
	const unsigned char *body;
	size_t len;
};

static bool exists(const struct sul_net *n, unsigned int w, uint64_t off,
		   uint64_t len)
{
	return w < n->cfg.windows && off <= n->cfg.window[w].bytes &&
	       len <= n->cfg.window[w].bytes - off;
}

static bool word_exists(const struct sul_net *n, unsigned int w, uint64_t off)
{
	return !(off & 7) && exists(n, w, off, 8);
}

static void *word(const struct request *r, unsigned int w, uint64_t off)
{
	uint64_t len = 8;

	return sul_net_at(r->n, r->l, w, off, &len, true);
}

/* What is left of the @bytes bytes at @from. */
static enum outcome store_bytes(struct request *r, const unsigned char *from,
				size_t bytes)
{
	uint32_t *done = &r->at->part;

	while (*done < bytes) {
		uint64_t len = bytes - *done;
		char *to = sul_net_at(r->n, r->l, r->f.window, r->f.off + *done,
				      &len, true);

		if (!to)
			return MISSING;
		sul_memory_copy_in(to, from + *done, (size_t)len);
		*done += (uint32_t)len;
	}
	return DONE;
}

static enum outcome put(struct request *r)
{
	if (!exists(r->n, r->f.window, r->f.off, r->len))
		return NONSENSE;
	return store_bytes(r, r->body, r->len);
}

/* --- scatter ---------------------------------------------------------------------- */

struct scatter {
	const unsigned char *runs;
	const unsigned char *data; /* of the run at which it goes on */
	uint32_t nr;
	uint64_t end; /* how far they reach */
	bool mirror;
	unsigned int mirror_window, flag_window;
	uint64_t flag_off;
};

static struct sul_run run_at(const unsigned char *runs, uint32_t i)
{
	struct sul_run r;

	memcpy(&r, runs + i * sizeof(r), sizeof(r));
	r.off = SUL_LE32(r.off);
	r.len = SUL_LE32(r.len);
	return r;
}

/* How far the runs reach; 0: they and their bytes do not fit together. */
static uint64_t runs_end(const unsigned char *runs, uint32_t nr, size_t bytes)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct sul_run r = run_at(runs, i);

		if (!r.len || r.len > bytes)
			return 0;
		bytes -= r.len;
		if ((uint64_t)r.off + r.len > end)
			end = (uint64_t)r.off + r.len;
	}
	return bytes ? 0 : end;
}

static bool read_scatter(const struct request *r, struct scatter *s)
{
	size_t left = r->len - sizeof(struct sul_wire_putv);
	struct sul_wire_putv v;

	memcpy(&v, r->body, sizeof(v));
	s->nr = SUL_LE32(v.runs);
	if (s->nr > left / sizeof(struct sul_run) || r->f.aux > 1)
		return false;
	left -= s->nr * sizeof(struct sul_run);
	s->runs = r->body + sizeof(v);
	s->data = s->runs + s->nr * sizeof(struct sul_run);
	s->end = runs_end(s->runs, s->nr, left);
	s->mirror = r->f.aux;
	s->mirror_window = SUL_LE16(v.mirror);
	s->flag_window = SUL_LE16(v.flag_window);
	s->flag_off = SUL_LE64(v.flag_off);
	return s->end && exists(r->n, r->f.window, r->f.off, s->end) &&
	       (!s->mirror ||
		(exists(r->n, s->mirror_window, r->f.off, s->end) &&
		 exists(r->n, s->flag_window, s->flag_off, 1)));
}

static void store_all(const struct scatter *s, char *to)
{
	const void *data = s->data;

	for (uint32_t i = 0; i < s->nr; i++)
		data = sul_memory_run(to, data, run_at(s->runs, i));
}

static bool is_before(struct sul_net_place a, struct sul_net_place b)
{
	return a.run != b.run ? a.run < b.run : a.part < b.part;
}

/*
 * From @from on, and not beyond @until, what lies in the piece of @len bytes at
 * @to, which is @begin behind the operation's place; where that ends.
 */
static struct sul_net_place store_piece(const struct scatter *s,
					struct sul_net_place from,
					struct sul_net_place until, char *to,
					uint64_t begin, uint64_t len)
{
	const void *data = s->data;

	while (is_before(from, until)) {
		struct sul_run r = run_at(s->runs, from.run);
		uint64_t off = (uint64_t)r.off + from.part;
		uint32_t end = from.run == until.run ? until.part : r.len;
		uint32_t most = end - from.part;

		if (off < begin || off - begin >= len)
			break;
		off -= begin;
		if (most > len - off)
			most = (uint32_t)(len - off);
		data = sul_memory_run(to, data,
				      (struct sul_run){ (uint32_t)off, most });
		from.part += most;
		if (from.part < r.len)
			break;
		from.run++;
		from.part = 0;
	}
	return from;
}

/* One piece in window @w, from where it is done on; false: it is not there. */
static bool store(struct request *r, const struct scatter *s, unsigned int w,
		  struct sul_net_place until, struct sul_net_place *end)
{
	struct sul_net_place from = r->at->done;
	uint64_t begin = (uint64_t)run_at(s->runs, from.run).off + from.part;
	uint64_t len = s->end - begin;
	char *to = sul_net_at(r->n, r->l, w, r->f.off + begin, &len, true);

	if (!to)
		return false;
	*end = store_piece(s, from, until, to, begin, len);
	return true;
}

/* Behind what is done in both places lie the bytes of the next run. */
static void go_to(struct request *r, struct scatter *s,
		  struct sul_net_place place)
{
	struct sul_net_place *done = &r->at->done;

	s->data -= done->part;
	for (; done->run < place.run; done->run++)
		s->data += run_at(s->runs, done->run).len;
	done->part = place.part;
	s->data += place.part;
}

static bool store_mirror(struct request *r, const struct scatter *s,
			 struct sul_net_place *end)
{
	uint64_t len = 1;
	const void *flag = sul_net_at(r->n, r->l, s->flag_window, s->flag_off,
				      &len, false);

	if (!flag)
		return false;
	*end = r->at->stored;
	return !sul_memory_flag(flag) ||
	       store(r, s, s->mirror_window, r->at->stored, end);
}

/*
 * Piece by piece, each a scatter of its own.  What is stored in the first place
 * but not in the second one yet lies between at->done and at->stored.
 */
static enum outcome putv_pieces(struct request *r, struct scatter *s)
{
	const struct sul_net_place all = { .run = s->nr };
	struct sul_net_progress *at = r->at;
	struct sul_net_place done = at->done;

	at->done = (struct sul_net_place){ 0 };
	go_to(r, s, done);
	while (is_before(at->done, all)) {
		if (!is_before(at->done, at->stored) &&
		    !store(r, s, r->f.window, all, &at->stored))
			return MISSING;
		done = at->stored;
		if (s->mirror && !store_mirror(r, s, &done))
			return MISSING;
		go_to(r, s, done);
	}
	return DONE;
}

static enum outcome putv(struct request *r)
{
	const struct sul_net_config *c = &r->n->cfg;
	struct scatter s;

	if (!read_scatter(r, &s))
		return NONSENSE;
	if (c->env->at)
		return putv_pieces(r, &s);
	store_all(&s, (char *)c->window[r->f.window].base + r->f.off);
	if (s.mirror &&
	    sul_memory_flag((char *)c->window[s.flag_window].base + s.flag_off))
		store_all(&s,
			  (char *)c->window[s.mirror_window].base + r->f.off);
	return DONE;
}

/* --- get -------------------------------------------------------------------------- */

static struct sul_wire_mark mark_at(const struct request *r, unsigned int i)
{
	struct sul_wire_mark m;

	memcpy(&m, r->body + sizeof(struct sul_wire_get) + i * sizeof(m),
	       sizeof(m));
	m.off = SUL_LE64(m.off);
	m.bits = SUL_LE64(m.bits);
	m.window = SUL_LE32(m.window);
	return m;
}

static bool marks_make_sense(const struct request *r)
{
	if (r->f.aux > SUL_NET_MARKS_MAX ||
	    r->len != sizeof(struct sul_wire_get) +
			      r->f.aux * sizeof(struct sul_wire_mark))
		return false;
	for (unsigned int i = 0; i < r->f.aux; i++) {
		struct sul_wire_mark m = mark_at(r, i);

		if (!word_exists(r->n, m.window, m.off))
			return false;
	}
	return true;
}

static enum outcome get(struct request *r)
{
	struct sul_wire_get g;
	uint32_t len;

	memcpy(&g, r->body, sizeof(g));
	len = SUL_LE32(g.len);
	if (!exists(r->n, r->f.window, r->f.off, len) || !marks_make_sense(r))
		return NONSENSE;
	for (; r->at->marks < r->f.aux; r->at->marks++) {
		struct sul_wire_mark m = mark_at(r, r->at->marks);
		uint64_t *at = word(r, m.window, m.off);

		if (!at)
			return MISSING;
		sul_memory_mark(at, m.bits);
	}
	sul_memory_fence();
	if (!len)
		return DONE;
	return sul_net_answer_data(r->n, r->l, SUL_LE32(g.tag), r->f.window,
				   r->f.off, len, &r->at->part) ?
		       DONE :
		       MISSING;
}

/* --- words ------------------------------------------------------------------------ */

static enum outcome amo(struct request *r)
{
	struct sul_wire_amo a;
	uint64_t *at, old;

	if (!word_exists(r->n, r->f.window, r->f.off) || r->f.aux >= SUL_AMO_NR)
		return NONSENSE;
	at = word(r, r->f.window, r->f.off);
	if (!at)
		return MISSING;
	memcpy(&a, r->body, sizeof(a));
	old = sul_memory_amo(at, r->f.aux, SUL_LE64(a.operand),
			     SUL_LE64(a.comparand));
	if (a.tag)
		sul_net_answer_old(r->n, r->l, SUL_LE32(a.tag), old);
	return DONE;
}

static enum outcome notify(struct request *r)
{
	struct sul_wire_notify v;
	struct sul_word *at;

	if (!word_exists(r->n, r->f.window, r->f.off))
		return NONSENSE;
	at = word(r, r->f.window, r->f.off);
	if (!at)
		return MISSING;
	memcpy(&v, r->body, sizeof(v));
	r->n->cfg.env->notify(r->n->cfg.env_ctx, at, SUL_LE32(v.value));
	return DONE;
}

/* Nobody sleeps on the first word: whoever waits looks at it when the second has
 * changed. */
static enum outcome message(struct request *r)
{
	size_t len = r->len - sizeof(struct sul_wire_message);
	uint32_t *told = &r->at->marks;
	struct sul_wire_message v;

	memcpy(&v, r->body, sizeof(v));
	if (!exists(r->n, r->f.window, r->f.off, len) ||
	    !word_exists(r->n, r->f.window, SUL_LE32(v.word[0])) ||
	    !word_exists(r->n, r->f.window, SUL_LE32(v.word[1])))
		return NONSENSE;
	if (store_bytes(r, r->body + sizeof(v), len) == MISSING)
		return MISSING;
	for (; *told < 2; ++*told) {
		uint32_t value = SUL_LE32(v.value[*told]);
		struct sul_word *at =
			word(r, r->f.window, SUL_LE32(v.word[*told]));

		if (!at)
			return MISSING;
		if (*told)
			r->n->cfg.env->notify(r->n->cfg.env_ctx, at, value);
		else
			sul_memory_word(at, value);
	}
	return DONE;
}

static enum outcome farewell(struct request *r)
{
	const struct sul_net_env *env = r->n->cfg.env;

	if (!env->left || r->l->left_ns)
		return DONE;
	r->l->left_ns = r->n->now_ns ? r->n->now_ns : 1;
	if (env->farewell)
		env->farewell(r->n->cfg.env_ctx, r->l->rank);
	return DONE;
}

/* --- answers ---------------------------------------------------------------------- */

static uint32_t tag_of(const struct request *r)
{
	struct sul_wire_answer a;

	memcpy(&a, r->body, sizeof(a));
	return SUL_LE32(a.tag);
}

static enum outcome data(struct request *r)
{
	size_t fixed = sizeof(struct sul_wire_answer);

	sul_net_take_data(r->n, r->l, tag_of(r), r->f.off, r->body + fixed,
			  r->len - fixed);
	return DONE;
}

static enum outcome old(struct request *r)
{
	uint64_t value = r->f.off;

	sul_net_take_data(r->n, r->l, tag_of(r), 0, &value, sizeof(value));
	return DONE;
}

/* Early packets of a lane that the peer keeps. */
static enum outcome sack(struct request *r)
{
	struct sul_net_lane *lane;
	uint64_t bits[SUL_NET_SPAN_MAX / 64];
	struct sul_ack a = { .bits = bits };

	if (r->f.aux >= SUL_LANES || r->len > sizeof(bits) || r->len & 7)
		return NONSENSE;
	lane = &r->l->lane[r->f.aux];
	for (size_t i = 0; i < r->len / 8; i++) {
		memcpy(&bits[i], r->body + 8 * i, 8);
		bits[i] = SUL_LE64(bits[i]);
	}
	a.next = lane->out.una;
	a.first = (uint32_t)r->f.off;
	a.nr_bits = (unsigned int)(8 * r->len);
	sul_sender_ack(&lane->out, &a, r->n->now_ns);
	return DONE;
}

/* --- all of them --------------------------------------------------------------------- */

static enum outcome (*const execute[SUL_FRAME_KINDS])(struct request *r) = {
#define FRAME(NAME, function, lane, bytes, doc) [SUL_FRAME_##NAME] = function,
#include "sul_wire.def"
};

bool sul_net_execute(struct sul_net *n, struct sul_net_link *l,
		     enum sul_lane_nr lane, const void *payload, size_t len,
		     struct sul_net_progress *at)
{
	struct sul_wire_reader reader = { (const unsigned char *)payload +
						  at->frame,
					  len - at->frame, lane };
	struct request r = { .n = n, .l = l, .at = at };
	enum sul_wire_next next;

	while ((next = sul_wire_next(&reader, &r.f, &r.body))) {
		enum outcome o = NONSENSE;

		r.len = r.f.bytes - sizeof(r.f);
		if (next == SUL_WIRE_FRAME)
			o = execute[r.f.kind](&r);
		if (o == MISSING)
			return false;
		n->stats.dropped_range += o == NONSENSE;
		*at = (struct sul_net_progress){
			.frame = (uint32_t)(len - reader.left)
		};
	}
	return true;
}
