/* SPDX-License-Identifier: MIT */
/*
 * sul_cable.c - the simulated network of sul_cable.h: a heap of packets by time.
 */
#include "sul_cable.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests.h"

enum {
	US = 1000,
	MS = 1000 * US
};

struct cable_config cable_plain(int ranks)
{
	struct cable_config c = {
		.ranks = ranks,
		.span = 64,
		.auth = SUL_NET_AUTH_MAC,
		.latency_ns = 50 * US,
		.silence_ns = (uint64_t)10000 * MS,
		.paths = 1,
	};

	for (int i = 0; i < CABLE_RANKS_MAX; i++)
		c.packet_bytes[i] = 1472;
	return c;
}

/* --- surroundings of a core --------------------------------------------------------- */

static void *cable_alloc(void *ctx, size_t bytes)
{
	struct cable *c = ((struct cable_rank *)ctx)->c;

	if (c->allocate_most && c->allocated + bytes > c->allocate_most)
		return NULL;
	c->allocated += bytes;
	return calloc(1, bytes);
}

static void cable_free(void *ctx, void *at, size_t bytes)
{
	((struct cable_rank *)ctx)->c->allocated -= bytes;
	free(at);
}

static void cable_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	((struct cable_rank *)ctx)->c->notified++;
	word->value = value;
}

static void cable_dead(void *ctx, int rank)
{
	struct cable_rank *by = ctx;

	by->c->dead[by->rank][rank]++;
}

static void cable_left(void *ctx, int rank)
{
	struct cable_rank *by = ctx;

	by->c->left[by->rank][rank]++;
}

/* No cipher, but every bit of key, nonce, head and body counts. */
static uint64_t toy_hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static void toy_cipher(const unsigned char *key, uint64_t nonce,
		       const unsigned char *in, unsigned char *out, size_t len)
{
	struct unit_rng r = { toy_hash(nonce, key, SUL_NET_SEAL_KEY_BYTES) };

	for (size_t i = 0; i < len; i++)
		out[i] = in[i] ^ (unsigned char)unit_next(&r);
}

static void toy_tag(const unsigned char *key, uint64_t nonce, const void *head,
		    size_t head_len, const void *body, size_t len,
		    uint64_t tag[2])
{
	tag[0] = toy_hash(nonce, key, SUL_NET_SEAL_KEY_BYTES);
	tag[0] = toy_hash(tag[0], head, head_len);
	tag[1] = toy_hash(tag[0], body, len);
}

static void cable_seal(void *ctx, const unsigned char *key, uint64_t nonce,
		       const void *head, size_t head_len, const void *body,
		       size_t len, void *out)
{
	uint64_t tag[2];

	(void)ctx;
	toy_cipher(key, nonce, body, out, len);
	toy_tag(key, nonce, head, head_len, out, len, tag);
	memcpy((unsigned char *)out + len, tag, sizeof(tag));
}

static bool cable_open_sealed(void *ctx, const unsigned char *key,
			      uint64_t nonce, const void *head, size_t head_len,
			      void *body, size_t len)
{
	uint64_t tag[2];

	(void)ctx;
	toy_tag(key, nonce, head, head_len, body, len, tag);
	if (memcmp((unsigned char *)body + len, tag, sizeof(tag)))
		return false;
	toy_cipher(key, nonce, body, body, len);
	return true;
}

/* --- windows that are not always there ------------------------------------------------- */

static bool chance(struct cable *c, uint32_t ppm)
{
	return ppm && unit_below(&c->rng, 1000000) < ppm;
}

static void *cable_at(void *ctx, unsigned int w, uint64_t off, uint64_t *len,
		      bool write)
{
	struct cable_rank *by = ctx;
	struct cable_pages *p = &by->c->pages[by->rank];
	uint64_t page = off / CABLE_PAGE_BYTES, in = off % CABLE_PAGE_BYTES;

	(void)write;
	REQUIRE(w < CABLE_WINDOWS && *len && off < CABLE_WINDOW_BYTES &&
		*len <= CABLE_WINDOW_BYTES - off);
	if (!p->there[w * CABLE_PAGES + page])
		return NULL;
	*len = CABLE_PAGE_BYTES - in;
	return p->view[w] + page * 2 * CABLE_PAGE_BYTES + in;
}

static void cable_missing(void *ctx, int rank, unsigned int w, uint64_t off,
			  uint64_t len)
{
	struct cable_rank *by = ctx;
	struct cable *c = by->c;
	struct cable_pages *p = &c->pages[by->rank];
	unsigned int base = w * CABLE_PAGES;

	REQUIRE(p->resume_ns[rank] == UINT64_MAX);
	p->resume_ns[rank] =
		c->now_ns + 1 + unit_next(&c->rng) % c->cfg.page_ns;
	p->first[rank] = base + (unsigned int)(off / CABLE_PAGE_BYTES);
	p->last[rank] =
		base + (unsigned int)((off + len - 1) / CABLE_PAGE_BYTES);
	/* Some, not always all. */
	p->last[rank] -=
		unit_below(&c->rng, p->last[rank] - p->first[rank] + 1);
}

static void let_go(struct cable_pages *p, unsigned int page)
{
	p->nr -= p->there[page];
	p->there[page] = false;
}

static void let_some_go(struct cable *c, int rank)
{
	struct cable_pages *p = &c->pages[rank];

	if (c->cfg.gone_ppm)
		for (unsigned int i = 0; i < CABLE_WINDOWS * CABLE_PAGES; i++)
			if (chance(c, c->cfg.gone_ppm))
				let_go(p, i);
}

static void bring_back(struct cable *c, int rank, int asker)
{
	struct cable_pages *p = &c->pages[rank];

	for (unsigned int i = p->first[asker]; i <= p->last[asker]; i++) {
		while (c->cfg.pages_most && p->nr >= c->cfg.pages_most)
			let_go(p, unit_below(&c->rng,
					     CABLE_WINDOWS * CABLE_PAGES));
		p->nr += !p->there[i];
		p->there[i] = true;
	}
}

static void resume(struct cable *c, int rank)
{
	struct cable_pages *p = &c->pages[rank];

	for (int r = 0; r < c->cfg.ranks; r++) {
		if (p->resume_ns[r] > c->now_ns)
			continue;
		p->resume_ns[r] = UINT64_MAX;
		let_some_go(c, rank);
		bring_back(c, rank, r);
		sul_net_resume(c->net[rank], r);
	}
}

static uint64_t next_resume(const struct cable *c, int rank)
{
	uint64_t at = UINT64_MAX;

	for (int r = 0; r < c->cfg.ranks; r++)
		if (c->pages[rank].resume_ns[r] < at)
			at = c->pages[rank].resume_ns[r];
	return at;
}

static unsigned char *window_open(struct cable *c, int rank, unsigned int w)
{
	struct cable_pages *p = &c->pages[rank];
	size_t bytes = CABLE_WINDOW_BYTES;
	int fd = memfd_create("cable", MFD_CLOEXEC);
	void *at, *page;

	REQUIRE(fd >= 0 && !ftruncate(fd, CABLE_WINDOW_BYTES));
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(at != MAP_FAILED);
	if (c->cfg.paged) {
		p->view[w] = mmap(NULL, 2 * bytes, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		REQUIRE(p->view[w] != MAP_FAILED);
	}
	for (size_t i = 0; c->cfg.paged && i < bytes; i += CABLE_PAGE_BYTES) {
		page = mmap(p->view[w] + 2 * i, CABLE_PAGE_BYTES,
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			    (off_t)i);
		REQUIRE(page != MAP_FAILED);
	}
	close(fd);
	return at;
}

static void window_close(struct cable *c, int rank, unsigned int w)
{
	munmap(c->window[rank][w], CABLE_WINDOW_BYTES);
	if (c->pages[rank].view[w])
		munmap(c->pages[rank].view[w], 2 * (size_t)CABLE_WINDOW_BYTES);
}

#define CABLE_ENV                                                         \
	.alloc = cable_alloc, .free = cable_free, .notify = cable_notify, \
	.dead = cable_dead, .left = cable_left, .seal = cable_seal,       \
	.open = cable_open_sealed

static const struct sul_net_env cable_env = { CABLE_ENV };
static const struct sul_net_env cable_paged_env = {
	CABLE_ENV,
	.at = cable_at,
	.missing = cable_missing,
};

/* --- packets under way ---------------------------------------------------------------- */

static bool earlier(const struct cable_packet *a, const struct cable_packet *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct cable *c, size_t i, size_t j)
{
	struct cable_packet *p = c->heap[i];

	c->heap[i] = c->heap[j];
	c->heap[j] = p;
}

static void insert(struct cable *c, struct cable_packet *p)
{
	size_t i = c->nr++;

	if (c->nr > c->room) {
		c->room = c->room ? 2 * c->room : 256;
		c->heap = realloc(c->heap,
				  c->room * sizeof(struct cable_packet *));
		REQUIRE(c->heap);
	}
	p->order = c->order++;
	c->heap[i] = p;
	for (; i && earlier(c->heap[i], c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(c, i, (i - 1) / 2);
}

static struct cable_packet *take_first(struct cable *c)
{
	struct cable_packet *p = c->heap[0];

	c->heap[0] = c->heap[--c->nr];
	for (size_t i = 0;;) {
		size_t least = i;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < c->nr; k++)
			if (earlier(c->heap[k], c->heap[least]))
				least = k;
		if (least == i)
			return p;
		swap(c, i, least);
		i = least;
	}
}

static struct cable_packet *copy_of(const struct cable_packet *p)
{
	struct cable_packet *q = malloc(sizeof(*q));

	REQUIRE(q);
	*q = *p;
	return q;
}

static void travel(struct cable *c, struct cable_packet *p)
{
	p->at_ns += c->cfg.latency_ns;
	if (chance(c, c->cfg.late_ppm))
		p->at_ns += unit_next(&c->rng) % (c->cfg.late_ns + 1);
	if (chance(c, c->cfg.damage_ppm))
		p->bytes[unit_below(&c->rng, (uint32_t)p->len)] ^=
			(unsigned char)(1 + unit_below(&c->rng, 255));
	insert(c, p);
}

/* The sender's line takes one packet after the other. */
static bool enter_line(struct cable *c, struct cable_packet *p)
{
	uint64_t *line = &c->line_ns[p->from];

	if (*line < c->now_ns)
		*line = c->now_ns;
	if (c->cfg.queue_ns && *line - c->now_ns > c->cfg.queue_ns)
		return false;
	*line += p->len * c->cfg.byte_ps / 1000;
	p->at_ns = *line;
	return true;
}

static void launch(struct cable *c, struct cable_packet *p)
{
	bool lost = c->tap && !c->tap(c, p);

	c->sent++;
	if (lost || c->cut[p->from] || c->cut[p->to] || c->cut_path[p->path] ||
	    !enter_line(c, p) || chance(c, c->cfg.loss_ppm)) {
		c->lost++;
		free(p);
		return;
	}
	if (chance(c, c->cfg.twice_ppm))
		travel(c, copy_of(p));
	travel(c, p);
}

static void send_pieces(struct cable *c, int from, const struct sul_packet *o)
{
	struct cable_packet *p = malloc(sizeof(*p));

	REQUIRE(p);
	REQUIRE(o->head_len + o->body_len <= c->cfg.packet_bytes[from]);
	REQUIRE(o->head_len + o->body_len <= c->cfg.packet_bytes[o->rank]);
	p->from = from;
	p->to = o->rank;
	p->path = o->path;
	p->len = o->head_len + o->body_len;
	memcpy(p->bytes, o->head, o->head_len);
	if (o->body_len)
		memcpy(p->bytes + o->head_len, o->body, o->body_len);
	launch(c, p);
}

void cable_send(struct cable *c, int from, int to, const void *bytes,
		size_t len)
{
	struct cable_packet *p = malloc(sizeof(*p));

	REQUIRE(p && len <= sizeof(p->bytes));
	p->from = from;
	p->to = to;
	p->path = 0;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	launch(c, p);
}

/* As carriers do it: first a batch is made, then it is sent. */
static void pump(struct cable *c, int rank)
{
	struct sul_packet batch[SUL_NET_BATCH_MAX];
	unsigned int nr;

	do {
		for (nr = 0; nr < SUL_NET_BATCH_MAX; nr++)
			if (!sul_net_output(c->net[rank], c->now_ns,
					    &batch[nr]))
				break;
		for (unsigned int i = 0; i < nr; i++)
			send_pieces(c, rank, &batch[i]);
	} while (nr == SUL_NET_BATCH_MAX);
	/* Or a carrier would never sleep. */
	REQUIRE(sul_net_deadline(c->net[rank]) > c->now_ns);
}

static bool works(const struct cable *c, int rank)
{
	return c->net[rank] && !c->stopped[rank];
}

/* Packets for somebody who is stopped wait, as in a socket. */
void cable_deliver(struct cable *c)
{
	uint64_t ns = c->now_ns;

	while (c->nr && c->heap[0]->at_ns <= ns) {
		struct cable_packet *p = take_first(c);

		if (c->cut[p->to] || !c->net[p->to]) {
			free(p);
			continue;
		}
		if (!works(c, p->to)) {
			p->at_ns = ns + MS;
			insert(c, p);
			continue;
		}
		let_some_go(c, p->to);
		sul_net_input(c->net[p->to], c->now_ns, p->path, p->bytes,
			      p->len);
		free(p);
	}
}

static uint64_t next_event(const struct cable *c)
{
	uint64_t at = c->nr ? c->heap[0]->at_ns : UINT64_MAX;

	for (int i = 0; i < c->cfg.ranks; i++) {
		uint64_t d = works(c, i) ? sul_net_deadline(c->net[i]) :
					   UINT64_MAX;

		at = d < at ? d : at;
		d = works(c, i) ? next_resume(c, i) : UINT64_MAX;
		at = d < at ? d : at;
	}
	return at;
}

/* False: nothing happens until @end. */
static bool step_until(struct cable *c, uint64_t end)
{
	uint64_t at;

	for (int i = 0; i < c->cfg.ranks; i++)
		if (works(c, i))
			pump(c, i);
	at = next_event(c);
	if (at > end)
		return false;
	if (at > c->now_ns)
		c->now_ns = at;
	if (c->cfg.turn_ns) /* all of a turn are looked at together */
		c->now_ns += c->cfg.turn_ns - c->now_ns % c->cfg.turn_ns;
	cable_deliver(c);
	for (int i = 0; i < c->cfg.ranks; i++)
		if (works(c, i))
			resume(c, i);
	return true;
}

bool cable_step(struct cable *c)
{
	return step_until(c, UINT64_MAX - 1);
}

bool cable_flush(struct cable *c, int rank)
{
	uint64_t end = c->now_ns + (uint64_t)3600 * 1000 * MS;

	while (!sul_net_quiet(c->net[rank])) {
		sul_net_hurry(c->net[rank]);
		if (!cable_step(c) || c->now_ns > end)
			return false;
	}
	return true;
}

void cable_run(struct cable *c, uint64_t ns)
{
	uint64_t end = c->now_ns + ns;

	while (step_until(c, end))
		;
	c->now_ns = c->now_ns < end ? end : c->now_ns;
}

/* --- opening -------------------------------------------------------------------------------- */

void cable_open_rank(struct cable *c, int rank)
{
	struct sul_net_config cfg = {
		.rank = rank,
		.ranks = c->cfg.ranks,
		.windows = CABLE_WINDOWS,
		.packet_bytes = c->cfg.packet_bytes[rank],
		.span = c->cfg.span,
		.auth = c->cfg.auth,
		.key = { 's', 'e', 'c', 'r', 'e', 't', c->cfg.key_byte },
		.session = c->cfg.session[rank],
		.silence_ns = c->cfg.silence_ns,
		.copy = c->cfg.copy,
		.env = c->cfg.paged ? &cable_paged_env : &cable_env,
		.env_ctx = &c->ctx[rank],
	};

	c->ctx[rank] = (struct cable_rank){ c, rank };
	for (int r = 0; r < CABLE_RANKS_MAX; r++)
		c->pages[rank].resume_ns[r] = UINT64_MAX;
	for (unsigned int w = 0; w < CABLE_WINDOWS; w++) {
		if (!c->cfg.paged)
			cfg.window[w].base = c->window[rank][w];
		cfg.window[w].bytes = CABLE_WINDOW_BYTES;
	}
	REQUIRE(!sul_net_open(&c->net[rank], &cfg));
}

void cable_introduce(struct cable *c, int rank, int to)
{
	REQUIRE(!sul_net_peer(c->net[to], rank, c->cfg.session[rank],
			      c->cfg.packet_bytes[rank], c->cfg.paths));
}

void cable_open(struct cable *c, const struct cable_config *cfg,
		struct unit_rng rng)
{
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	c->rng = rng;
	c->now_ns = (uint64_t)1000 * MS;
	for (int i = 0; i < cfg->ranks; i++) {
		if (!c->cfg.session[i])
			c->cfg.session[i] = (uint32_t)unit_next(&c->rng) | 1;
		for (unsigned int w = 0; w < CABLE_WINDOWS; w++)
			c->window[i][w] = window_open(c, i, w);
		cable_open_rank(c, i);
	}
	for (int i = 0; i < cfg->ranks; i++)
		for (int k = 0; k < cfg->ranks; k++)
			if (i != k)
				cable_introduce(c, i, k);
}

void cable_close(struct cable *c)
{
	while (c->nr)
		free(take_first(c));
	free(c->heap);
	for (int i = 0; i < c->cfg.ranks; i++) {
		sul_net_close(c->net[i]);
		for (unsigned int w = 0; w < CABLE_WINDOWS; w++)
			window_close(c, i, w);
	}
	CU_ASSERT_EQUAL(c->allocated, 0);
}
