/* SPDX-License-Identifier: MIT */
/*
 * sul_engine.h - one lane: packets in order and exactly once over a network
 * that loses, doubles and reorders them.
 *
 * Knows numbers and times only, no payload and no header.  A *sender* says what
 * is to be sent next and when to look again; a *receiver* says what to do with
 * what has come.  Sequence numbers are 32 bits and wrap around.
 *
 * Loss.  Every packet carries its sender's clock, and every answer echoes the
 * latest one that has arrived.  So the sender knows, without guessing which of
 * two transmissions was meant, that something sent at time E is there; what was
 * sent a reordering window before E by the same path and is not there is lost
 * (RACK, RFC 8985), and round-trip times are those of one transmission (RFC
 * 6298, RFC 7323).  If a packet turns out to have been there when it was sent
 * again, the reordering window was too small, and grows.  When nothing comes
 * back at all, one packet is sent again as a probe, ever more rarely; its answer
 * tells about all the others.
 *
 * Congestion.  A window of packets: slow start, then one more per round; halved
 * once per round in which packets were lost *and* the share of lost packets
 * of late is above what a mere noisy link loses.
 *
 * Threads: none of its own; the owner of the lane excludes.
 */
#ifndef SUL_ENGINE_H
#define SUL_ENGINE_H

#include "sul_path.h"

enum {
	SUL_ENGINE_WINDOW_FIRST = 16, /* packets */
	SUL_ENGINE_WINDOW_MIN = 4,
	SUL_ENGINE_CREDIT_FIRST = 8, /* before a peer has granted anything */
};

#define SUL_ENGINE_NEVER UINT64_MAX

/* a < b of numbers that wrap around */
static inline bool sul_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* --- sender --------------------------------------------------------------------- */

enum sul_sent_state {
	SUL_SENT_FRESH, /* never sent */
	SUL_SENT_FLYING,
	SUL_SENT_KEPT, /* there, but not executed yet */
	SUL_SENT_LOST,
};

struct sul_sent {
	uint64_t at_ns; /* when last */
	uint8_t state;
	uint8_t again; /* was sent more than once */
	uint8_t path; /* by which, when last */
};

/* [una, fresh) has been sent, [fresh, next) has not; una is executed next. */
struct sul_sender {
	uint32_t una, fresh, next;
	uint32_t span; /* a power of two */
	uint32_t limit; /* granted: packets before this one */
	uint32_t window, threshold, grown; /* packets */
	uint32_t flying, lost, kept;
	uint32_t lost_from; /* none before this one is lost */
	uint32_t known; /* of those before this one it is known what became */
	uint32_t recovered; /* losses before this one have been paid for */
	uint32_t loss_share; /* of late, in 1/65536 */
	uint32_t unhurried; /* of those under way, since the last hurry */
	unsigned int tries; /* probes in a row without an answer */
	bool probe; /* one is to be sent now */
	uint64_t base_ns; /* the timer runs from here */
	uint64_t heard_ns; /* paths->seen_ns when it was last looked at */
	uint64_t reorder_ns; /* what comes later than this is lost */
	uint64_t suspect_ns; /* when to look for losses again */
	struct sul_paths *paths; /* of the link */
	struct sul_sent *sent; /* [span], by seq & (span - 1) */
};

void sul_sender_init(struct sul_sender *s, struct sul_sent *sent, uint32_t span,
		     uint32_t first, struct sul_paths *paths);
static inline struct sul_sent *sul_sender_at(const struct sul_sender *s,
					     uint32_t seq)
{
	return &s->sent[seq & (s->span - 1)];
}
/* How many more packets can be made. */
static inline uint32_t sul_sender_room(const struct sul_sender *s)
{
	return s->span - (s->next - s->una);
}
/* A new packet, to be sent when its turn comes. */
uint32_t sul_sender_push(struct sul_sender *s);
/* Nothing is to be sent, for sure. */
static inline bool sul_sender_rests(const struct sul_sender *s)
{
	return s->fresh == s->next && !s->lost && !s->probe;
}
/* Which packet is to be sent now?  False: none. */
bool sul_sender_pick(struct sul_sender *s, uint32_t *seq);
/* It is being sent, by which path (in its struct sul_sent); @hurry: it asks for
 * an acknowledgement at once.  True: it should, in any case. */
bool sul_sender_sent(struct sul_sender *s, uint32_t seq, bool hurry,
		     uint64_t now_ns);

/* The receiver is being asked to acknowledge all at once. */
static inline void sul_sender_ask(struct sul_sender *s, uint64_t now_ns)
{
	s->unhurried = 0;
	s->base_ns = now_ns;
}

/**
 * struct sul_ack - what the receiver of a lane has told.
 * @next:    all before this one have been executed.
 * @credit:  that many from @next on may be sent.
 * @bits:    which ones from @first on are kept (@nr_bits of them).
 * @part:    nothing is said of those behind them.
 */
struct sul_ack {
	uint32_t next, credit;
	uint32_t first;
	const uint64_t *bits;
	unsigned int nr_bits;
	bool part;
};

/* Nothing is under way, all is said to be executed, and so it was: there is
 * nothing to learn. */
static inline bool sul_sender_is_idle(const struct sul_sender *s, uint32_t next,
				      uint32_t credit)
{
	return s->una == s->next && next == s->una && next + credit == s->limit;
}

/* How many packets have been executed by it; they are gone.  The stamps that
 * came with it have been given to the paths before. */
uint32_t sul_sender_ack(struct sul_sender *s, const struct sul_ack *ack,
			uint64_t now_ns);
/* When to call sul_sender_expire(); SUL_ENGINE_NEVER.  @delay_ns: how long the
 * receiver may take when nobody hurries it; @most_ns: between two probes. */
uint64_t sul_sender_deadline(const struct sul_sender *s, uint64_t delay_ns,
			     uint64_t most_ns);
/* Time has passed.  True: a timer ran out. */
bool sul_sender_expire(struct sul_sender *s, uint64_t delay_ns,
		       uint64_t most_ns, uint64_t now_ns);

/* --- receiver ------------------------------------------------------------------- */

enum sul_verdict {
	SUL_EXECUTE, /* the next one */
	SUL_KEEP, /* early: sul_receiver_keep() */
	SUL_DUPLICATE,
	SUL_BEYOND /* more than was granted */
};

struct sul_receiver {
	uint32_t next; /* to be executed */
	uint32_t span;
	uint32_t kept; /* how many ... */
	uint32_t top; /* ... and behind the last of them */
	uint64_t *bits; /* [span / 64 or 1], by seq & (span - 1) */
};

static inline size_t sul_receiver_words(uint32_t span)
{
	return (span + 63) / 64;
}
void sul_receiver_init(struct sul_receiver *r, uint64_t *bits, uint32_t span,
		       uint32_t first);
enum sul_verdict sul_receiver_verdict(const struct sul_receiver *r,
				      uint32_t seq);
void sul_receiver_keep(struct sul_receiver *r, uint32_t seq);
/* The next one has been executed.  True: the one after it is kept; it is taken
 * from those kept. */
bool sul_receiver_done(struct sul_receiver *r);
/* How many bits, from the one behind the next on, say which ones are kept. */
uint32_t sul_receiver_reach(const struct sul_receiver *r);
/* Which of the 64 packets from @first (after the next one) on are kept. */
uint64_t sul_receiver_bits(const struct sul_receiver *r, uint32_t first);

#endif /* SUL_ENGINE_H */
