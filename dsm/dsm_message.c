/* SPDX-License-Identifier: MIT */
/*
 * dsm_message.c - see dsm_message.h.
 *
 * Role:      the inbox: what has come, who waits for what, and who has asked.
 * Invariant: an unanswered question (ASKED) has a receiver that waits and
 *            matches it.  Who stops waiting answers those that lost theirs.
 * Threads:   any.  The handler runs in whichever thread waits or sends.
 * Locks:     inbox.lock; not held while user memory is touched (it may fault)
 *            or a message is sent (that may run the handler).
 *
 * The program's buffers may be shared memory, which the system cannot read or
 * write while it is protected: pieces are copied by the thread itself, and what
 * goes through a normal channel goes by way of private memory then.
 */
#include "dsm_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm_call.h"

enum {
	HANDLER = 0, /* of the system channel */
	IN_PIECES = -1 /* the answer to a question: no channel */
};

enum kind {
	KIND_FIRST, /* the first piece; it has the length */
	KIND_MORE, /* another piece */
	KIND_ASK, /* how shall the message be sent? */
	KIND_ANSWER /* through this channel, or in pieces */
};

struct head {
	uint8_t kind, class;
	uint16_t reserved;
	int32_t tag;
	uint32_t id; /* of the message, given by its sender */
	int32_t channel;
	uint64_t len; /* of the whole message */
};

enum {
	PIECE_MAX = SUL_MESSAGE_MAX - sizeof(struct head)
};

struct message {
	struct message *next;
	int from, tag, class;
	uint32_t id;
	bool asked; /* its sender waits for an answer */
	bool claimed; /* a receiver has it already */
	uint64_t len, got;
	char *buf;
};

struct receiver {
	struct receiver *next;
	int from, tag, class;
};

struct question {
	struct question *next;
	uint32_t id;
	bool answered;
	int channel;
};

struct dsm_inbox {
	pthread_mutex_t lock;
	struct message *first, **last;
	struct receiver *receivers;
	struct question *questions;
	uint32_t channels; /* bit c: normal channel c is in use */
	uint32_t news; /* value of the inbox word */
	uint32_t next_id;
};

void dsm_inbox_layout(struct dsm_layout *at)
{
	at->inbox = at->sync_bytes;
	at->sync_bytes += 64; /* a line of its own */
}

static struct sul_word *word_of(const struct dsm_host *h)
{
	return (void *)(h->node->sync + h->node->at.inbox);
}

static void must(struct dsm_host *h, int err, const char *what)
{
	dsm_must(h->node, err, what);
}

static void *allocate(struct dsm_host *h, uint64_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		dsm_host_fail(
			h,
			"no memory for a message of %llu bytes; see ulimit -d and -v",
			(unsigned long long)bytes);
	return p;
}

/* Somebody may go on.  Under the lock: the value only grows. */
static void wake_locked(struct dsm_host *h)
{
	must(h,
	     sul_notify(h->port, h->node->rank, DSM_W_SYNC, h->node->at.inbox,
			++h->inbox->news),
	     "taking a message");
}

static bool matches(const struct message *m, int class, int from, int tag)
{
	return m->class == class && (from == DSM_ANY || m->from == from) &&
	       (tag == DSM_ANY || m->tag == tag);
}

/* --- pieces ---------------------------------------------------------------------- */

static void send_piece(struct dsm_host *h, int to, const struct head *head,
		       const char *data, size_t len)
{
	char body[SUL_MESSAGE_MAX];

	memcpy(body, head, sizeof(*head));
	if (len)
		memcpy(body + sizeof(*head), data, len); /* may fault */
	must(h, sul_send(h->port, to, HANDLER, body, sizeof(*head) + len),
	     "sending a message");
}

static void send_pieces(struct dsm_host *h, int to, struct head *head,
			const char *buf, uint64_t len)
{
	uint64_t off = 0;

	do {
		uint64_t n = len - off < PIECE_MAX ? len - off : PIECE_MAX;

		send_piece(h, to, head, buf + off, n);
		head->kind = KIND_MORE;
		off += n;
	} while (off < len);
}

static void answer(struct dsm_host *h, int to, uint32_t id, int channel)
{
	struct head head = { .kind = KIND_ANSWER,
			     .id = id,
			     .channel = channel };

	send_piece(h, to, &head, NULL, 0);
}

/* --- what comes in ----------------------------------------------------------------- */

static struct message *new_message(struct dsm_host *h, int from,
				   const struct head *head, bool asked)
{
	struct message *m = allocate(h, sizeof(*m));

	*m = (struct message){ .from = from,
			       .tag = head->tag,
			       .class = head->class,
			       .id = head->id,
			       .asked = asked,
			       .len = head->len };
	if (!asked)
		m->buf = allocate(h, m->len);
	return m;
}

static void append_locked(struct dsm_inbox *in, struct message *m)
{
	*in->last = m;
	in->last = &m->next;
}

static void unlink_locked(struct dsm_inbox *in, struct message *m)
{
	struct message **p = &in->first;

	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	if (in->last == &m->next)
		in->last = p;
}

static bool wanted_locked(const struct dsm_inbox *in, const struct message *m)
{
	for (const struct receiver *r = in->receivers; r; r = r->next)
		if (matches(m, r->class, r->from, r->tag))
			return true;
	return false;
}

/* Answer questions that nobody waits for: the message may come in pieces. */
static void settle(struct dsm_host *h)
{
	struct dsm_inbox *in = h->inbox;
	struct message *m;

	do {
		int from = 0;
		uint32_t id = 0;

		pthread_mutex_lock(&in->lock);
		for (m = in->first; m; m = m->next)
			if (m->asked && !m->claimed && !wanted_locked(in, m))
				break;
		if (m) {
			m->asked = false;
			m->buf = allocate(h, m->len);
			from = m->from;
			id = m->id;
		}
		pthread_mutex_unlock(&in->lock);
		if (m) /* it may be gone as soon as this is sent */
			answer(h, from, id, IN_PIECES);
	} while (m);
}

/* What does not fit its message is another rank's fault. */
static bool add_locked(struct message *m, const char *data, size_t len)
{
	if (!m || m->asked || len > m->len - m->got)
		return false;
	memcpy(m->buf + m->got, data, len);
	m->got += len;
	return true;
}

static struct message *find_id_locked(const struct dsm_inbox *in, int from,
				      uint32_t id)
{
	struct message *m = in->first;

	while (m && (m->from != from || m->id != id))
		m = m->next;
	return m;
}

static void take_answer_locked(struct dsm_inbox *in, const struct head *head)
{
	struct question *q = in->questions;

	while (q && q->id != head->id)
		q = q->next;
	if (!q)
		return;
	q->channel = head->channel;
	q->answered = true;
}

static void on_message(void *ctx, int from, const void *body, size_t len)
{
	struct dsm_host *h = ctx;
	struct dsm_inbox *in = h->inbox;
	const char *data = (const char *)body + sizeof(struct head);
	struct message *m = NULL;
	struct head head;

	if (len < sizeof(head))
		return;
	memcpy(&head, body, sizeof(head));
	len -= sizeof(head);
	if (head.kind == KIND_FIRST || head.kind == KIND_ASK)
		m = new_message(h, from, &head, head.kind == KIND_ASK);
	pthread_mutex_lock(&in->lock);
	if (m)
		append_locked(in, m);
	else if (head.kind == KIND_MORE)
		m = find_id_locked(in, from, head.id);
	else
		take_answer_locked(in, &head);
	if (head.kind == KIND_FIRST || head.kind == KIND_MORE)
		add_locked(m, data, len);
	/* Of the pieces in the midst nobody hears. */
	if (head.kind != KIND_MORE || (m && m->got == m->len))
		wake_locked(h);
	pthread_mutex_unlock(&in->lock);
	if (head.kind == KIND_ASK)
		settle(h);
}

int dsm_inbox_open(struct dsm_host *h)
{
	struct dsm_inbox *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	pthread_mutex_init(&in->lock, NULL);
	in->last = &in->first;
	h->inbox = in;
	return sul_handler(h->port, HANDLER, on_message, h);
}

/* --- waiting ------------------------------------------------------------------------ */

/* Until the word is not @old; on the way the hang report learns of it, and
 * whether the other rank makes the same collective call is looked up. */
static void wait_news(struct dsm_host *h, uint32_t old, int class, int peer,
		      const char *text)
{
	bool noted = false;
	int err;

	while ((err = sul_wait(h->port, word_of(h), old, DSM_NOTE_AFTER_MS)) ==
	       -ETIMEDOUT) {
		if (class == DSM_MESSAGE_OWN)
			dsm_call_check(h->node, peer);
		if (!noted)
			h->node->env->note(h->node->env_ctx, text);
		noted = true;
	}
	if (noted)
		h->node->env->note_end(h->node->env_ctx);
	must(h, err, "waiting for a message");
}

/* --- sending -------------------------------------------------------------------------- */

/* Shared memory that the system may not be able to read: by way of a copy. */
static void send_through(struct dsm_host *h, int to, int channel,
			 const void *buf, uint64_t len)
{
	char *copy = NULL;

	if (dsm_host_ours(h, buf)) {
		copy = allocate(h, len);
		memcpy(copy, buf, len);
	}
	must(h,
	     sul_send_large(h->port, to, (unsigned int)channel,
			    copy ? copy : buf, len, -1),
	     "sending a large message");
	free(copy);
}

static int ask(struct dsm_host *h, int to, struct head *head)
{
	struct dsm_inbox *in = h->inbox;
	struct question q = { .id = head->id }, **p;
	char text[64];

	snprintf(text, sizeof(text), "rank %d to take a message", to);
	pthread_mutex_lock(&in->lock);
	q.next = in->questions;
	in->questions = &q;
	pthread_mutex_unlock(&in->lock);
	head->kind = KIND_ASK;
	send_piece(h, to, head, NULL, 0);
	pthread_mutex_lock(&in->lock);
	while (!q.answered) {
		uint32_t old = in->news;

		pthread_mutex_unlock(&in->lock);
		wait_news(h, old, head->class, to, text);
		pthread_mutex_lock(&in->lock);
	}
	for (p = &in->questions; *p != &q;)
		p = &(*p)->next;
	*p = q.next;
	pthread_mutex_unlock(&in->lock);
	return q.channel;
}

static void send_to_self(struct dsm_host *h, const struct head *head,
			 const void *buf)
{
	struct message *m = new_message(h, h->node->rank, head, false);

	if (m->len)
		memcpy(m->buf, buf, m->len);
	m->got = m->len;
	pthread_mutex_lock(&h->inbox->lock);
	append_locked(h->inbox, m);
	wake_locked(h);
	pthread_mutex_unlock(&h->inbox->lock);
}

void dsm_message_send(struct dsm_host *h, enum dsm_message_class class, int to,
		      int tag, const void *buf, uint64_t len)
{
	struct head head = { .kind = KIND_FIRST,
			     .class = (uint8_t) class,
			     .tag = tag,
			     .len = len };
	int channel = IN_PIECES;

	head.id = __atomic_add_fetch(&h->inbox->next_id, 1, __ATOMIC_RELAXED);
	if (to == h->node->rank) {
		send_to_self(h, &head, buf);
		return;
	}
	if (len > DSM_EAGER_BYTES) {
		channel = ask(h, to, &head);
		head.kind = KIND_MORE;
	}
	if (channel == IN_PIECES)
		send_pieces(h, to, &head, buf, len);
	else
		send_through(h, to, channel, buf, len);
}

/* --- receiving -------------------------------------------------------------------------- */

static struct message *find_locked(const struct dsm_inbox *in, int class,
				   int from, int tag)
{
	struct message *m = in->first;

	while (m && (m->claimed || !matches(m, class, from, tag)))
		m = m->next;
	return m;
}

static void describe(char *text, size_t room, int from, int tag)
{
	int at = snprintf(text, room, "a message");

	if (from != DSM_ANY)
		at += snprintf(text + at, room - (size_t)at, " from rank %d",
			       from);
	if (tag != DSM_ANY)
		snprintf(text + at, room - (size_t)at, " with tag %d", tag);
}

/* The message asked for, claimed; with the lock held. */
static struct message *await_locked(struct dsm_host *h, int class, int from,
				    int tag)
{
	struct dsm_inbox *in = h->inbox;
	struct receiver r = { in->receivers, from, tag, class }, **p;
	struct message *m = find_locked(in, class, from, tag);
	char text[64];

	describe(text, sizeof(text), from,
		 class == DSM_MESSAGE_OWN ? DSM_ANY : tag);
	if (!m) {
		in->receivers = &r;
		while (!(m = find_locked(in, class, from, tag))) {
			uint32_t old = in->news;

			pthread_mutex_unlock(&in->lock);
			wait_news(h, old, class, from, text);
			pthread_mutex_lock(&in->lock);
		}
		for (p = &in->receivers; *p != &r;)
			p = &(*p)->next;
		*p = r.next;
	}
	m->claimed = true;
	return m;
}

static int free_channel_locked(struct dsm_inbox *in)
{
	uint32_t unused = ~in->channels & ((1u << SUL_CHANNELS_MAX) - 1);
	int c = unused ? __builtin_ctz(unused) : IN_PIECES;

	if (unused)
		in->channels |= 1u << c;
	return c;
}

/* Through normal channel @c into @buf, or by way of private memory. */
static void receive_through(struct dsm_host *h, const struct message *m, int c,
			    void *buf)
{
	char *copy = dsm_host_ours(h, buf) ? allocate(h, m->len) : NULL;
	unsigned int channel = (unsigned int)c;
	size_t len;
	int from;

	must(h, sul_recv_post(h->port, channel, copy ? copy : buf, m->len),
	     "receiving a large message");
	answer(h, m->from, m->id, c);
	must(h, sul_recv_wait(h->port, channel, &from, &len, -1),
	     "receiving a large message");
	if (copy)
		memcpy(buf, copy, m->len);
	free(copy);
	pthread_mutex_lock(&h->inbox->lock);
	h->inbox->channels &= ~(1u << channel);
	pthread_mutex_unlock(&h->inbox->lock);
}

/* All its pieces, with the lock held. */
static void await_pieces_locked(struct dsm_host *h, const struct message *m)
{
	char text[64];

	describe(text, sizeof(text), m->from, DSM_ANY);
	while (m->got < m->len) {
		uint32_t old = h->inbox->news;

		pthread_mutex_unlock(&h->inbox->lock);
		wait_news(h, old, m->class, m->from, text);
		pthread_mutex_lock(&h->inbox->lock);
	}
}

uint64_t dsm_message_recv(struct dsm_host *h, enum dsm_message_class class,
			  int from, int tag, void *buf, uint64_t room)
{
	struct dsm_inbox *in = h->inbox;
	struct message *m;
	uint64_t len;
	int c = (int)IN_PIECES;

	pthread_mutex_lock(&in->lock);
	m = await_locked(h, (int)class, from, tag);
	if (m->len > room)
		dsm_host_fail(
			h,
			"a message of %llu bytes from rank %d with tag %d does not fit into %llu",
			(unsigned long long)m->len, m->from, m->tag,
			(unsigned long long)room);
	if (m->asked)
		c = free_channel_locked(in);
	if (m->asked && c == IN_PIECES) { /* ask for pieces instead */
		m->asked = false;
		m->buf = allocate(h, m->len);
		pthread_mutex_unlock(&in->lock);
		answer(h, m->from, m->id, IN_PIECES);
		pthread_mutex_lock(&in->lock);
	}
	if (c == IN_PIECES)
		await_pieces_locked(h, m);
	unlink_locked(in, m);
	pthread_mutex_unlock(&in->lock);
	settle(h);
	if (c != IN_PIECES)
		receive_through(h, m, c, buf);
	else if (m->len)
		memcpy(buf, m->buf, m->len); /* may fault */
	len = m->len;
	free(m->buf);
	free(m);
	return len;
}
