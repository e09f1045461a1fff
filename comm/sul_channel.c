/* SPDX-License-Identifier: MIT */
/*
 * sul_channel.c - the system channel: short messages, handed to handlers.
 *
 * Role:      one ring per source in the receiver's window.  A sender puts a
 *            slot, notifies the ring's tail and rings the doorbell; a receiver
 *            copies slots out, and gives credits back by notifying a count in
 *            the sender's window, half a ring at a time.
 * Invariant: a sender never has more messages under way than a ring has slots.
 *            Whoever leaves work behind (a full budget, a message put into the
 *            backlog) has seen to it that somebody looks again.
 * Threads:   any.  Messages of one rank to another are serialised by a lock;
 *            handlers run one at a time, in whichever thread polls.
 * Locks:     lane.lock, then nothing; rx, then nothing.  Neither is held while
 *            a handler runs, the carrier waits, or user memory is touched: all
 *            three may come back here (a fault on a shared page does).  So may
 *            a handler of a signal: the program's are kept out meanwhile.
 *
 * Sending from a handler.  sul_send() without a credit polls, so that two ranks
 * that send to each other go on.  A handler that sends must not run other
 * handlers meanwhile (order, and a stack without end), so there the messages
 * are moved from the rings to a private backlog: peers get their credits, and
 * whoever runs the handlers takes from the backlog first.
 *
 * What comes from other ranks' memory is copied first and checked then; what
 * makes no sense is counted and dropped.
 */
#include "sul_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sul_net.h"
#include "sul_pages.h"
#include "sul_sleep.h"

enum {
	LINE_BYTES = 64,
	PAGE_BYTES = 4096,
	SLOT_HEAD = offsetof(struct sul_slot, body),
	PIECE_RINGS = 4, /* a piece is as long as so many: 64 KiB at most */
	POLL_MAX = 256, /* messages of one poll: a caller gets away */
	BACKLOG_MAX = 1 << 16, /* messages: 16 MiB at most */
	BACKLOG_MIN = 64,
};

_Static_assert(sizeof(struct sul_slot) <= SUL_SLOT_BYTES, "message fits");
_Static_assert(SUL_RANKS_MAX <= 1 << (32 - SUL_BELL_BITS), "rank fits bell");

/* --- the window ------------------------------------------------------------- */

/* The more ranks, the fewer slots for each: 16 KiB a source at most. */
static unsigned int ring_slots(int ranks)
{
	if (ranks <= 16)
		return 64;
	return ranks <= 128 ? 16 : 8;
}

static uint64_t align(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static struct sul_layout layout_of(int ranks)
{
	uint64_t n = (uint64_t)ranks;
	uint64_t words = align(n * sizeof(struct sul_word), LINE_BYTES);
	struct sul_layout l = { .slots = ring_slots(ranks) };
	uint64_t ring_bytes = (uint64_t)l.slots * SUL_SLOT_BYTES;

	l.piece = (unsigned int)ring_bytes * PIECE_RINGS;

	l.tail = LINE_BYTES;
	l.credit = l.tail + words;
	l.post = l.credit + words;
	l.wanted = l.post + SUL_CHANNELS_MAX * sizeof(struct sul_post);
	l.bounce = align(l.wanted + (n + 63) / 64 * 8 * SUL_CHANNELS_MAX,
			 PAGE_BYTES);
	l.ring = l.bounce + (uint64_t)SUL_CHANNELS_MAX * SUL_PIECES * l.piece;
	l.bytes = align(l.ring + n * ring_bytes, PAGE_BYTES);
	return l;
}

size_t sul_channels_bytes(int ranks)
{
	return layout_of(ranks).bytes;
}

void *sul_channel_at(const struct sul_port *p, uint64_t off)
{
	return (char *)p->window[SUL_WINDOW_CHANNELS] + off;
}

struct sul_word *sul_channel_doorbell(const struct sul_port *p)
{
	return sul_channel_at(p, 0);
}

static uint64_t word_off(uint64_t array, int rank)
{
	return array + (uint64_t)rank * sizeof(struct sul_word);
}

static uint64_t slot_off(const struct sul_layout *l, int source, uint32_t nr)
{
	uint64_t slot = (uint64_t)source * l->slots + (nr & (l->slots - 1));

	return l->ring + slot * SUL_SLOT_BYTES;
}

void sul_channel_drop(struct sul_port *p)
{
	__atomic_fetch_add(&p->stats.dropped, 1, __ATOMIC_RELAXED);
}

/* The doorbell's next value. */
static uint32_t next_ring(struct sul_port *p, int rank)
{
	uint32_t nr = __atomic_add_fetch(&p->channels->rings[rank], 1,
					 __ATOMIC_RELAXED);

	return (uint32_t)p->rank << SUL_BELL_BITS |
	       (nr & ((1u << SUL_BELL_BITS) - 1));
}

int sul_channel_ring_quiet(struct sul_port *p, int rank)
{
	int err = sul_port_notify(p, rank, SUL_WINDOW_CHANNELS, 0,
				  next_ring(p, rank));

	sul_port_push(p, rank); /* whoever rings has no more to say */
	return err;
}

int sul_channel_ring(struct sul_port *p, int rank)
{
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_channel_ring_quiet(p, rank);
	sul_quiet_end(&q);
	return err;
}

/* --- opening ------------------------------------------------------------------ */

int sul_channels_open(struct sul_port *p)
{
	size_t n = (size_t)p->ranks;
	struct sul_channels *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->rx, NULL);
	p->channels = c;
	c->at = layout_of(p->ranks);
	c->head = calloc(n, sizeof(*c->head));
	c->returned = calloc(n, sizeof(*c->returned));
	c->rings = calloc(n, sizeof(*c->rings));
	c->lane = calloc(n, sizeof(struct sul_lane *));
	if (!c->head || !c->returned || !c->rings || !c->lane) {
		sul_channels_close(p);
		return -ENOMEM;
	}
	return 0;
}

static size_t lane_bytes(unsigned int slots)
{
	return sizeof(struct sul_lane) + slots * sizeof(struct sul_slot);
}

static void lane_free(struct sul_lane *l, unsigned int slots)
{
	if (!l)
		return;
	pthread_mutex_destroy(&l->lock);
	sul_pages_free(l, lane_bytes(slots));
}

static void backlog_free(struct sul_backlog *b)
{
	sul_pages_free(b->slot, b->room * sizeof(*b->slot));
	sul_pages_free(b->from, b->room * sizeof(*b->from));
}

void sul_channels_close(struct sul_port *p)
{
	struct sul_channels *c = p->channels;

	sul_normal_close(p);
	for (int r = 0; c->lane && r < p->ranks; r++)
		lane_free(c->lane[r], c->at.slots);
	free(c->lane);
	free(c->rings);
	free(c->returned);
	free(c->head);
	backlog_free(&c->backlog);
	pthread_mutex_destroy(&c->rx);
	free(c);
	p->channels = NULL;
}

int sul_handler(struct sul_port *p, unsigned int nr, sul_handler_fn *fn,
		void *ctx)
{
	struct sul_channels *c = p->channels;

	if (nr >= SUL_HANDLERS_MAX || !fn)
		return -EINVAL;
	if (c->handler[nr].fn)
		return -EBUSY;
	c->handler[nr].ctx = ctx;
	__atomic_store_n(&c->handler[nr].fn, fn, __ATOMIC_RELEASE);
	__atomic_fetch_add(&c->users, 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- backlog (under rx) --------------------------------------------------------- */

static uint32_t backlog_nr(const struct sul_channels *c)
{
	return __atomic_load_n(&c->backlog.nr, __ATOMIC_ACQUIRE);
}

static void backlog_set_nr(struct sul_channels *c, uint32_t nr)
{
	__atomic_store_n(&c->backlog.nr, nr, __ATOMIC_RELEASE);
}

/* Twice the room. */
static bool backlog_grow(struct sul_backlog *b)
{
	struct sul_backlog more = { .room = b->room ? 2 * b->room :
						      BACKLOG_MIN };

	if (more.room > BACKLOG_MAX)
		return false;
	more.slot = sul_pages_new(more.room * sizeof(*more.slot));
	more.from = sul_pages_new(more.room * sizeof(*more.from));
	if (!more.slot || !more.from) {
		backlog_free(&more);
		return false;
	}
	for (uint32_t i = 0; i < b->nr; i++) {
		uint32_t at = (b->first + i) & (b->room - 1);

		more.slot[i] = b->slot[at];
		more.from[i] = b->from[at];
	}
	backlog_free(b);
	b->slot = more.slot;
	b->from = more.from;
	b->first = 0;
	b->room = more.room;
	return true;
}

static bool backlog_has_room(struct sul_channels *c)
{
	return c->backlog.nr < c->backlog.room || backlog_grow(&c->backlog);
}

static void backlog_push(struct sul_channels *c, const struct sul_slot *m,
			 int from)
{
	struct sul_backlog *b = &c->backlog;
	uint32_t i = (b->first + b->nr) & (b->room - 1);

	b->slot[i] = *m;
	b->from[i] = from;
	backlog_set_nr(c, b->nr + 1);
}

static bool backlog_pop(struct sul_channels *c, struct sul_slot *m, int *from)
{
	struct sul_backlog *b = &c->backlog;

	if (!b->nr)
		return false;
	*m = b->slot[b->first];
	*from = b->from[b->first];
	b->first = (b->first + 1) & (b->room - 1);
	backlog_set_nr(c, b->nr - 1);
	return true;
}

/* --- rings (under rx) --------------------------------------------------------------- */

static void return_credits(struct sul_port *p, int source)
{
	struct sul_channels *c = p->channels;
	uint32_t head = c->head[source];

	if (head - c->returned[source] < c->at.slots / 2)
		return;
	c->returned[source] = head;
	/* A source that is dead needs no credits. */
	sul_port_notify(p, source, SUL_WINDOW_CHANNELS,
			word_off(c->at.credit, p->rank), head);
	sul_channel_ring_quiet(p, source);
}

/* Copy the slot, then check the copy: its memory is another rank's. */
static bool slot_read(const struct sul_slot *at, uint32_t seq,
		      struct sul_slot *m)
{
	memcpy(m, at, SLOT_HEAD);
	if (m->seq != seq || m->len > SUL_MESSAGE_MAX ||
	    m->handler >= SUL_HANDLERS_MAX)
		return false;
	memcpy(m->body, at->body, m->len);
	return true;
}

/* The next message of one source that makes sense. */
static bool ring_take(struct sul_port *p, int source, struct sul_slot *m)
{
	struct sul_channels *c = p->channels;
	uint32_t *head = &c->head[source];
	uint32_t tail =
		sul_word_read(sul_channel_at(p, word_off(c->at.tail, source)));
	bool good = false;

	if (tail - *head > c->at.slots) { /* nobody has so many credits */
		sul_channel_drop(p);
		*head = tail;
	}
	while (!good && *head != tail) {
		good = slot_read(
			sul_channel_at(p, slot_off(&c->at, source, *head)),
			*head + 1, m);
		++*head;
		if (!good)
			sul_channel_drop(p);
	}
	return_credits(p, source);
	return good;
}

/* From any source: a whole ring of one at most, then the next one's turn. */
static bool rings_take(struct sul_port *p, struct sul_slot *m, int *from)
{
	struct sul_channels *c = p->channels;
	uint32_t bell = sul_word_read(sul_channel_doorbell(p));

	for (int i = 0; i <= p->ranks; i++) {
		if (c->burst < c->at.slots && ring_take(p, c->next, m)) {
			c->burst++;
			*from = c->next;
			return true;
		}
		c->burst = 0;
		c->next = c->next + 1 < p->ranks ? c->next + 1 : 0;
	}
	__atomic_store_n(&c->seen, bell, __ATOMIC_RELEASE);
	return false;
}

static bool take(struct sul_port *p, struct sul_slot *m, int *from)
{
	struct sul_channels *c = p->channels;
	struct sul_quiet q;
	bool got;

	sul_quiet_begin(p, &q);
	pthread_mutex_lock(&c->rx);
	got = backlog_pop(c, m, from) || rings_take(p, m, from);
	pthread_mutex_unlock(&c->rx);
	sul_quiet_end(&q);
	return got;
}

/* Make room for the peers, while somebody else runs the handlers. */
static void drain(struct sul_port *p)
{
	struct sul_channels *c = p->channels;
	struct sul_quiet q;
	struct sul_slot m;
	int from;

	sul_quiet_begin(p, &q);
	pthread_mutex_lock(&c->rx);
	while (backlog_has_room(c) && rings_take(p, &m, &from))
		backlog_push(c, &m, from);
	pthread_mutex_unlock(&c->rx);
	sul_quiet_end(&q);
}

/* --- delivery ---------------------------------------------------------------------- */

static bool pending(const struct sul_port *p)
{
	const struct sul_channels *c = p->channels;

	return sul_word_read(sul_channel_doorbell(p)) !=
		       __atomic_load_n(&c->seen, __ATOMIC_ACQUIRE) ||
	       backlog_nr(c);
}

static void hand_over(struct sul_port *p, const struct sul_slot *m, int from)
{
	struct sul_channels *c = p->channels;
	sul_handler_fn *fn =
		__atomic_load_n(&c->handler[m->handler].fn, __ATOMIC_ACQUIRE);

	if (fn)
		fn(c->handler[m->handler].ctx, from, m->body, m->len);
	else
		sul_channel_drop(p);
}

/*
 * Run handlers.  Who finds another thread at it leaves; that thread looks again
 * after it has given the flag back, and the exchanges order the two looks.
 * -EBUSY: nothing was done because somebody is at it.
 */
static int deliver(struct sul_port *p)
{
	struct sul_channels *c = p->channels;
	struct sul_slot m;
	int from, n = 0;

	while (pending(p)) {
		if (n >= POLL_MAX) {
			sul_channel_ring(p, p->rank); /* others may sleep */
			break;
		}
		if (__atomic_exchange_n(&c->delivering, 1, __ATOMIC_ACQ_REL))
			return n ? n : -EBUSY;
		while (n < POLL_MAX && take(p, &m, &from)) {
			hand_over(p, &m, from);
			n++;
		}
		__atomic_exchange_n(&c->delivering, 0, __ATOMIC_ACQ_REL);
	}
	return n;
}

static int attempt(struct sul_port *p)
{
	if (p->job && sul_job_failed(p->job))
		return -ECANCELED;
	sul_normal_progress(p);
	return deliver(p);
}

int sul_channel_progress(struct sul_port *p)
{
	int n = attempt(p);

	return n == -EBUSY ? 0 : n;
}

int sul_poll(struct sul_port *p)
{
	sul_port_poll(p);
	return sul_channel_progress(p);
}

/* --- waiting ------------------------------------------------------------------------ */

int sul_channel_sleep(struct sul_port *p, uint32_t bell, uint64_t end)
{
	struct sul_watch w = { sul_channel_doorbell(p), bell };

	return sul_port_wait(p, &w, 1, sul_sleep_left_ms(end));
}

bool sul_channels_used(const struct sul_port *p)
{
	return __atomic_load_n(&p->channels->users, __ATOMIC_ACQUIRE);
}

int sul_channels_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
		      int timeout_ms)
{
	struct sul_word *doorbell = sul_channel_doorbell(p);
	uint64_t end = sul_sleep_end(timeout_ms);

	for (;;) {
		struct sul_watch w[2] = {
			{ word, old },
			{ doorbell, sul_word_read(doorbell) },
		};
		int err = sul_channel_progress(p);

		if (sul_word_read(word) != old)
			return 0;
		if (err < 0)
			return err;
		err = sul_port_wait(p, w, 2, sul_sleep_left_ms(end));
		if (err)
			return err;
	}
}

/* --- sending ------------------------------------------------------------------------- */

static struct sul_lane *lane_new(unsigned int slots)
{
	struct sul_lane *l = sul_pages_new(lane_bytes(slots));

	if (l)
		pthread_mutex_init(&l->lock, NULL);
	return l;
}

static struct sul_lane *lane_of(struct sul_port *p, int rank)
{
	struct sul_channels *c = p->channels;
	struct sul_lane *l = __atomic_load_n(&c->lane[rank], __ATOMIC_ACQUIRE);
	struct sul_lane *mine;

	if (l)
		return l;
	mine = lane_new(c->at.slots);
	if (!mine)
		return NULL;
	if (__atomic_compare_exchange_n(&c->lane[rank], &l, mine, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	lane_free(mine, c->at.slots); /* another thread was first */
	return l;
}

/* A credit that makes no sense looks like a full ring: it hurts its writer. */
static bool lane_full(const struct sul_port *p, const struct sul_lane *l,
		      int rank)
{
	const struct sul_layout *at = &p->channels->at;
	uint32_t credit =
		sul_word_read(sul_channel_at(p, word_off(at->credit, rank)));

	return l->sent - credit >= at->slots;
}

/* Slot, tail and doorbell at once; -ENOTSUP: not now. */
static int send_at_once(struct sul_port *p, struct sul_lane *l, int rank,
			const struct sul_slot *m)
{
	const struct sul_layout *at = &p->channels->at;
	struct sul_message k = {
		.window = SUL_WINDOW_CHANNELS,
		.off = slot_off(at, p->rank, l->sent),
		.src = m,
		.len = SLOT_HEAD + (size_t)m->len,
		.word = { word_off(at->tail, p->rank), 0 },
		.value = { l->sent + 1, next_ring(p, rank) },
	};
	int err = sul_port_to(p, rank)->message(p, rank, &k);

	l->sent += !err;
	return err;
}

static int send_in_parts(struct sul_port *p, struct sul_lane *l, int rank,
			 const struct sul_slot *m)
{
	const struct sul_layout *at = &p->channels->at;
	struct sul_slot *stage;
	int err;

	stage = &l->stage[l->sent & (at->slots - 1)];
	memcpy(stage, m, SLOT_HEAD + (size_t)m->len);
	err = sul_port_put(p, rank, SUL_WINDOW_CHANNELS,
			   slot_off(at, p->rank, l->sent), stage,
			   SLOT_HEAD + (size_t)m->len);
	if (err)
		return err;
	l->sent++;
	return sul_port_notify(p, rank, SUL_WINDOW_CHANNELS,
			       word_off(at->tail, p->rank), l->sent);
}

static int send_locked(struct sul_port *p, struct sul_lane *l, int rank,
		       struct sul_slot *m, bool *ring)
{
	int err;

	if (lane_full(p, l, rank))
		return -EAGAIN;
	m->seq = l->sent + 1;
	if (sul_port_to(p, rank)->message) {
		err = send_at_once(p, l, rank, m);
		if (err != -ENOTSUP)
			return err;
	}
	err = send_in_parts(p, l, rank, m);
	*ring = !err;
	return err;
}

static int try_send(struct sul_port *p, struct sul_lane *l, int rank,
		    struct sul_slot *m)
{
	struct sul_quiet q;
	bool ring = false;
	int err;

	sul_quiet_begin(p, &q);
	pthread_mutex_lock(&l->lock);
	err = send_locked(p, l, rank, m, &ring);
	pthread_mutex_unlock(&l->lock);
	if (ring)
		err = sul_channel_ring_quiet(p, rank);
	sul_quiet_end(&q);
	return err;
}

/* Without a credit.  The second delivery is for what was drained when whoever
 * ran the handlers had already looked for the last time. */
static int make_room(struct sul_port *p)
{
	int n = attempt(p);

	if (n == -EBUSY) {
		drain(p);
		n = deliver(p);
	}
	return n == -EBUSY ? 0 : n;
}

int sul_send(struct sul_port *p, int rank, unsigned int handler,
	     const void *body, size_t len)
{
	struct sul_slot m; /* as much of it as there is to send */
	struct sul_lane *l;
	int err;

	if (rank < 0 || rank >= p->ranks || handler >= SUL_HANDLERS_MAX ||
	    len > SUL_MESSAGE_MAX || (len && !body))
		return -EINVAL;
	l = lane_of(p, rank);
	if (!l)
		return -ENOMEM;
	m.len = (uint16_t)len;
	m.handler = (uint16_t)handler;
	if (len)
		memcpy(m.body, body, len); /* may fault: not under the lock */
	for (;;) {
		uint32_t bell = sul_word_read(sul_channel_doorbell(p));

		err = try_send(p, l, rank, &m);
		if (err != -EAGAIN)
			break;
		err = make_room(p);
		if (err < 0)
			return err;
		err = sul_channel_sleep(p, bell, UINT64_MAX);
		if (err)
			return err;
	}
	if (err)
		return sul_port_blame(p, rank, err);
	sul_port_count(p, rank, len, 0);
	return 0;
}
