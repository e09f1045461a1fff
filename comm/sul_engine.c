/* SPDX-License-Identifier: MIT */
/*
 * sul_engine.c - sending and receiving on one lane (see sul_engine.h).
 *
 * Role:      which packet is sent, again or for the first time, and when;
 *            which one is executed, kept or dropped.
 * Invariant: una <= fresh <= next <= una + span; flying, lost and kept count
 *            the states of [una, fresh); una itself is never kept.
 * Threads:   the lane's owner; pure.
 */
#include "sul_engine.h"

enum {
	US = 1000, /* in ns */
	REORDER_MIN_NS = 5 * US,
	TRIES_COLLAPSE = 3, /* probes in vain until the window is given up */
	LOSS_NOISE = 65536 / 25, /* this share of packets is lost to noise */
	LOSS_MEMORY = 256, /* packets that the share is averaged over */
};

/* --- sender --------------------------------------------------------------------- */

void sul_sender_init(struct sul_sender *s, struct sul_sent *sent, uint32_t span,
		     uint32_t first, struct sul_paths *paths)
{
	memset(s, 0, sizeof(*s));
	s->una = s->fresh = s->next = s->known = s->recovered = first;
	s->limit = first + SUL_ENGINE_CREDIT_FIRST;
	s->span = span;
	s->window = SUL_ENGINE_WINDOW_FIRST;
	s->threshold = UINT32_MAX;
	s->reorder_ns = REORDER_MIN_NS;
	s->suspect_ns = SUL_ENGINE_NEVER;
	s->paths = paths;
	s->sent = sent;
}

uint32_t sul_sender_push(struct sul_sender *s)
{
	struct sul_sent *p = sul_sender_at(s, s->next);

	*p = (struct sul_sent){ .state = SUL_SENT_FRESH };
	return s->next++;
}

static bool find_lost(struct sul_sender *s, uint32_t *seq)
{
	if (!s->lost)
		return false;
	if (sul_seq_before(s->lost_from, s->una))
		s->lost_from = s->una;
	while (sul_sender_at(s, s->lost_from)->state != SUL_SENT_LOST)
		s->lost_from++;
	*seq = s->lost_from;
	return true;
}

static bool may_send_fresh(const struct sul_sender *s)
{
	return s->fresh != s->next && sul_seq_before(s->fresh, s->limit);
}

bool sul_sender_pick(struct sul_sender *s, uint32_t *seq)
{
	if (s->probe && s->una != s->fresh) {
		*seq = s->una;
		return true;
	}
	if (s->flying >= s->window)
		return false;
	if (find_lost(s, seq))
		return true;
	*seq = s->fresh;
	return may_send_fresh(s);
}

static void leave_state(struct sul_sender *s, const struct sul_sent *p)
{
	s->flying -= p->state == SUL_SENT_FLYING;
	s->lost -= p->state == SUL_SENT_LOST;
	s->kept -= p->state == SUL_SENT_KEPT;
}

/* One that opens the window again must not wait for a leisurely answer. */
static bool wants_hurry(const struct sul_sender *s)
{
	return s->flying >= s->window || s->unhurried >= s->window / 4 ||
	       s->fresh == s->limit || s->fresh - s->una == s->span;
}

bool sul_sender_sent(struct sul_sender *s, uint32_t seq, bool hurry,
		     uint64_t now_ns)
{
	struct sul_sent *p = sul_sender_at(s, seq);

	leave_state(s, p);
	p->again = p->state != SUL_SENT_FRESH;
	if (!p->again)
		s->fresh++;
	p->state = SUL_SENT_FLYING;
	p->at_ns = now_ns - now_ns % US; /* as in the packet's stamp */
	s->flying++;
	s->unhurried++;
	s->base_ns = now_ns;
	hurry |= p->again || wants_hurry(s);
	if (hurry)
		s->unhurried = 0;
	s->probe = false;
	return hurry;
}

/* --- what has been lost --------------------------------------------------------- */

static void note_share(struct sul_sender *s, bool lost)
{
	s->loss_share -= s->loss_share / LOSS_MEMORY;
	if (lost)
		s->loss_share += 65536 / LOSS_MEMORY;
}

static void shrink(struct sul_sender *s, uint32_t window)
{
	s->threshold = s->window / 2;
	if (s->threshold < SUL_ENGINE_WINDOW_MIN)
		s->threshold = SUL_ENGINE_WINDOW_MIN;
	s->window = window ? window : s->threshold;
	s->grown = 0;
	s->recovered = s->fresh;
}

static void lose(struct sul_sender *s, uint32_t seq, uint64_t now_ns)
{
	struct sul_sent *p = sul_sender_at(s, seq);

	leave_state(s, p);
	p->state = SUL_SENT_LOST;
	if (!s->lost++ || sul_seq_before(seq, s->lost_from))
		s->lost_from = seq;
	note_share(s, true);
	sul_paths_lost(s->paths, p->path, now_ns);
	if (!sul_seq_before(seq, s->recovered) && s->loss_share > LOSS_NOISE)
		shrink(s, 0);
}

/* Nothing is missing and nothing was sent twice: all is in order. */
static bool in_order(const struct sul_sender *s)
{
	const struct sul_sent *first = sul_sender_at(s, s->una);

	return s->una == s->fresh ||
	       (!s->kept && !first->again && first->at_ns >= s->paths->seen_ns);
}

/*
 * When is a packet lost if it has not been heard of by then?  NEVER: nothing
 * sent later has arrived.  One of another path says less: the own one may just
 * be slower.
 */
static uint64_t lost_at(const struct sul_sender *s, const struct sul_sent *p)
{
	const struct sul_paths *paths = s->paths;
	const struct sul_path *own = &paths->at[p->path];

	if (p->at_ns < own->seen_ns)
		return p->at_ns + own->trip_ns + s->reorder_ns;
	if (p->at_ns < paths->seen_ns)
		return p->at_ns + paths->trip_ns +
		       sul_rtt_timeout(&paths->rtt, 0);
	return SUL_ENGINE_NEVER;
}

static void find_losses(struct sul_sender *s, uint64_t now_ns)
{
	s->suspect_ns = SUL_ENGINE_NEVER;
	if (in_order(s))
		return;
	for (uint32_t seq = s->una; sul_seq_before(seq, s->known); seq++) {
		const struct sul_sent *p = sul_sender_at(s, seq);
		uint64_t at;

		if (p->state != SUL_SENT_FLYING)
			continue;
		at = lost_at(s, p);
		if (at <= now_ns)
			lose(s, seq, now_ns);
		else if (at < s->suspect_ns)
			s->suspect_ns = at;
	}
}

/* --- acknowledgements -------------------------------------------------------------- */

static void grow(struct sul_sender *s, uint32_t acked, bool was_full)
{
	if (!was_full || s->window >= s->span)
		return;
	if (s->window < s->threshold) {
		s->window += acked;
	} else {
		s->grown += acked;
		if (s->grown >= s->window) {
			s->grown = 0;
			s->window++;
		}
	}
	if (s->window > s->span)
		s->window = s->span;
}

/* It is there.  Was it there already when it was sent again? */
static bool arrive(struct sul_sender *s, const struct sul_sent *p)
{
	note_share(s, false);
	leave_state(s, p);
	return p->again && p->state == SUL_SENT_FLYING &&
	       p->at_ns > s->paths->at[p->path].seen_ns;
}

static bool keep(struct sul_sender *s, const struct sul_ack *ack)
{
	bool hasty = false;

	for (unsigned int i = 0; i < ack->nr_bits; i++) {
		uint32_t seq = ack->first + i;
		struct sul_sent *p = sul_sender_at(s, seq);

		if (!(ack->bits[i / 64] >> i % 64 & 1))
			continue;
		if (seq - s->una >= s->fresh - s->una ||
		    p->state == SUL_SENT_KEPT)
			continue;
		hasty |= arrive(s, p);
		p->state = SUL_SENT_KEPT;
		s->kept++;
	}
	return hasty;
}

static bool take_executed(struct sul_sender *s, uint32_t next)
{
	bool hasty = false;

	for (; s->una != next; s->una++) {
		const struct sul_sent *p = sul_sender_at(s, s->una);

		if (p->state == SUL_SENT_KEPT)
			leave_state(s, p);
		else
			hasty |= arrive(s, p);
	}
	if (sul_seq_before(s->recovered, s->una))
		s->recovered = s->una;
	if (s->unhurried > s->fresh - s->una) /* an answer all the same */
		s->unhurried = s->fresh - s->una;
	s->probe = false;
	return hasty;
}

/* Between a part of the shortest round trip and a usual one. */
static void adapt_reordering(struct sul_sender *s, bool hasty)
{
	const struct sul_rtt *rtt = &s->paths->rtt;
	uint64_t least = rtt->least_ns / 8;

	if (hasty && s->reorder_ns < rtt->smooth_ns)
		s->reorder_ns *= 2;
	if (s->reorder_ns < least)
		s->reorder_ns = least;
}

uint32_t sul_sender_ack(struct sul_sender *s, const struct sul_ack *ack,
			uint64_t now_ns)
{
	uint32_t gone = ack->next - s->una;
	bool was_full = s->flying + s->flying / 4 >= s->window, hasty = false;
	uint32_t limit = ack->next + (ack->credit ? ack->credit : 1);

	if (gone > s->fresh - s->una)
		return 0; /* old, or nonsense */
	if (sul_seq_before(s->limit, limit))
		s->limit = limit;
	if (gone) {
		s->base_ns = now_ns;
		grow(s, gone, was_full);
		hasty = take_executed(s, ack->next);
	}
	if (s->una == s->next) /* nobody waits for anything */
		s->unhurried = 0;
	hasty |= keep(s, ack);
	s->known = ack->part ? ack->first + ack->nr_bits : s->fresh;
	if (sul_seq_before(s->fresh, s->known))
		s->known = s->fresh;
	if (s->paths->seen_ns > s->heard_ns) {
		s->heard_ns = s->paths->seen_ns;
		s->base_ns = now_ns;
		s->tries = 0;
	}
	adapt_reordering(s, hasty);
	find_losses(s, now_ns);
	return gone;
}

/* --- time ----------------------------------------------------------------------------- */

static uint64_t probe_at(const struct sul_sender *s, uint64_t delay_ns,
			 uint64_t most_ns)
{
	const struct sul_rtt *rtt = &s->paths->rtt;
	uint64_t wait;

	if (s->una == s->fresh)
		return SUL_ENGINE_NEVER;
	wait = sul_rtt_timeout(rtt, s->unhurried ? delay_ns : 0);
	if (s->kept) /* what is missing was sent again, and lost again */
		wait = sul_rtt_timeout_drained(rtt);
	wait = s->tries < 20 ? wait << s->tries : most_ns;
	return s->base_ns + (wait < most_ns ? wait : most_ns);
}

uint64_t sul_sender_deadline(const struct sul_sender *s, uint64_t delay_ns,
			     uint64_t most_ns)
{
	uint64_t probe = probe_at(s, delay_ns, most_ns);

	return probe < s->suspect_ns ? probe : s->suspect_ns;
}

bool sul_sender_expire(struct sul_sender *s, uint64_t delay_ns,
		       uint64_t most_ns, uint64_t now_ns)
{
	if (now_ns >= s->suspect_ns)
		find_losses(s, now_ns);
	if (now_ns < probe_at(s, delay_ns, most_ns))
		return false;
	s->probe = true;
	s->base_ns = now_ns;
	if (++s->tries == TRIES_COLLAPSE)
		shrink(s, SUL_ENGINE_WINDOW_MIN);
	return true;
}

/* --- receiver ------------------------------------------------------------------------- */

void sul_receiver_init(struct sul_receiver *r, uint64_t *bits, uint32_t span,
		       uint32_t first)
{
	memset(bits, 0, sul_receiver_words(span) * sizeof(*bits));
	r->next = first;
	r->span = span;
	r->kept = r->top = 0;
	r->bits = bits;
}

static uint64_t *word_of(const struct sul_receiver *r, uint32_t seq,
			 uint64_t *bit)
{
	uint32_t i = seq & (r->span - 1);

	*bit = (uint64_t)1 << i % 64;
	return &r->bits[i / 64];
}

static bool is_kept(const struct sul_receiver *r, uint32_t seq)
{
	uint64_t bit, *word = word_of(r, seq, &bit);

	return *word & bit;
}

enum sul_verdict sul_receiver_verdict(const struct sul_receiver *r,
				      uint32_t seq)
{
	uint32_t ahead = seq - r->next;

	if (!ahead)
		return SUL_EXECUTE;
	if (sul_seq_before(seq, r->next))
		return SUL_DUPLICATE;
	if (ahead >= r->span)
		return SUL_BEYOND;
	return is_kept(r, seq) ? SUL_DUPLICATE : SUL_KEEP;
}

void sul_receiver_keep(struct sul_receiver *r, uint32_t seq)
{
	uint64_t bit, *word = word_of(r, seq, &bit);

	*word |= bit;
	if (!r->kept++ || sul_seq_before(r->top, seq + 1))
		r->top = seq + 1;
}

bool sul_receiver_done(struct sul_receiver *r)
{
	uint64_t bit, *word = word_of(r, ++r->next, &bit);

	if (!(*word & bit))
		return false;
	*word &= ~bit;
	r->kept--;
	return true;
}

uint32_t sul_receiver_reach(const struct sul_receiver *r)
{
	return r->kept ? r->top - 1 - r->next : 0;
}

uint64_t sul_receiver_bits(const struct sul_receiver *r, uint32_t first)
{
	uint64_t bits = 0;

	if (!r->kept)
		return 0;
	for (uint32_t i = 0; i < 64 && first + i - r->next < r->span; i++)
		if (is_kept(r, first + i))
			bits |= (uint64_t)1 << i;
	return bits;
}
