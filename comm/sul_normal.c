/* SPDX-License-Identifier: MIT */
/*
 * sul_normal.c - the normal channel: large messages by rendezvous.
 *
 * Role:      a receiver publishes {address, length} of a buffer in its window.
 *            A sender claims it by a compare-and-swap, moves the data straight
 *            into the buffer with one copy (ops->put_private), stores how it
 *            ended, sets the claim word to DONE and rings the doorbell.
 * Invariant: a claim word goes FREE -> HELD -> POSTED -> CLAIMED -> DONE ->
 *            HELD -> FREE; the owner makes the steps from FREE, DONE and HELD,
 *            the sender that claimed the others.  A sender that gives up in
 *            between puts POSTED back, so the receiver loses nothing.
 * Threads:   any.
 * Locks:     none; `busy` of a posted buffer is a flag that nobody waits for.
 *
 * No buffer posted.  The sender sets its bit in wanted[], and looks at the
 * claim word again; the owner posts, and then takes all bits and rings those
 * ranks.  The atomic operations are full fences: one of the two sees the other.
 *
 * No single copy.  Where put_private is refused the data goes through the
 * bounce area in pieces, a few of them under way: the sender fills a place when
 * the piece that was there has been taken, the receiver takes pieces whenever it
 * makes progress, in whatever wait, so two ranks that send to each other go on.
 * (Straight into the buffer it cannot go: that may be memory that faults, and
 * whoever executes a put over a network must not.)
 *
 * The receiver keeps address and length of its buffer privately: nobody's
 * wrong number makes it store elsewhere.
 */
#include <errno.h>
#include <string.h>

#include "sul_channel.h"

enum {
	STATE_BITS = 8,
	OWNER_BITS = 24 /* of which a rank + 1 needs 11 */
};

static uint64_t claim_word(uint32_t generation, int owner,
			   enum sul_post_state state)
{
	return (uint64_t)generation << 32 |
	       (uint64_t)(uint32_t)(owner + 1) << STATE_BITS | state;
}

static uint32_t generation_of(uint64_t claim)
{
	return (uint32_t)(claim >> 32);
}

static enum sul_post_state state_of(uint64_t claim)
{
	return claim & ((1u << STATE_BITS) - 1);
}

/* -1, or anything: the claimer has written it. */
static int owner_of(uint64_t claim)
{
	uint32_t mask = (1u << OWNER_BITS) - 1;

	return (int)((uint32_t)claim >> STATE_BITS & mask) - 1;
}

static uint64_t post_off(const struct sul_port *p, unsigned int channel)
{
	return p->channels->at.post + channel * sizeof(struct sul_post);
}

static struct sul_post *post_of(const struct sul_port *p, unsigned int channel)
{
	return sul_channel_at(p, post_off(p, channel));
}

static uint64_t claim_read(const struct sul_post *o)
{
	return __atomic_load_n(&o->claim, __ATOMIC_ACQUIRE);
}

/* Where piece @nr of @channel lies. */
static uint64_t bounce_off(const struct sul_port *p, unsigned int channel,
			   uint32_t nr)
{
	uint64_t place = (uint64_t)channel * SUL_PIECES + nr % SUL_PIECES;

	return p->channels->at.bounce + place * p->channels->at.piece;
}

static uint64_t wanted_off(const struct sul_port *p, unsigned int channel,
			   int rank)
{
	size_t words = ((size_t)p->ranks + 63) / 64;

	return p->channels->at.wanted +
	       (channel * words + (size_t)rank / 64) * sizeof(uint64_t);
}

/* --- receiving -------------------------------------------------------------- */

/* Everybody who waits for a buffer on @channel looks again. */
static void ring_wanters(struct sul_port *p, unsigned int channel)
{
	for (int first = 0; first < p->ranks; first += 64) {
		uint64_t *word =
			sul_channel_at(p, wanted_off(p, channel, first));
		uint64_t bits;

		if (!__atomic_load_n(word, __ATOMIC_RELAXED))
			continue;
		bits = __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST);
		for (; bits; bits &= bits - 1) {
			int rank = first + __builtin_ctzll(bits);

			if (rank < p->ranks)
				sul_channel_ring(p, rank);
		}
	}
}

static bool claim_move(struct sul_post *o, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&o->claim, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int sul_recv_post(struct sul_port *p, unsigned int channel, void *buf,
		  size_t len)
{
	struct sul_posted *mine;
	struct sul_post *o;
	uint64_t claim;
	uint32_t next;

	if (channel >= SUL_CHANNELS_MAX || (len && !buf))
		return -EINVAL;
	o = post_of(p, channel);
	mine = &p->channels->posted[channel];
	claim = claim_read(o);
	next = generation_of(claim) + 1;
	if (state_of(claim) != SUL_POST_FREE ||
	    !claim_move(o, claim, claim_word(next, -1, SUL_POST_HELD)))
		return -EBUSY;
	mine->buf = buf;
	mine->len = len;
	/* Whoever claims reads along with it, and in vain if it is too early. */
	__atomic_store_n(&o->info.addr, (uintptr_t)buf, __ATOMIC_RELAXED);
	__atomic_store_n(&o->info.len, len, __ATOMIC_RELAXED);
	__atomic_fetch_add(&p->channels->posts, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&p->channels->users, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&o->claim, claim_word(next, -1, SUL_POST_POSTED),
			 __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ring_wanters(p, channel);
	return 0;
}

/* The bounce area belongs to the receiver until `taken` says otherwise; the
 * piece's description may be anything. */
static void store_piece(struct sul_port *p, unsigned int channel, uint32_t nr)
{
	const struct sul_posted *mine = &p->channels->posted[channel];
	struct sul_piece piece;

	memcpy(&piece, &post_of(p, channel)->piece[nr % SUL_PIECES],
	       sizeof(piece));
	if (piece.len > p->channels->at.piece || piece.off > mine->len ||
	    piece.len > mine->len - piece.off) {
		sul_channel_drop(p);
		return;
	}
	memcpy((char *)mine->buf + piece.off,
	       sul_channel_at(p, bounce_off(p, channel, nr)), piece.len);
}

/* What a sender left that has given up is taken too, but not stored. */
static bool take_piece(struct sul_port *p, unsigned int channel)
{
	struct sul_post *o = post_of(p, channel);
	uint32_t filled = sul_word_read(&o->info.filled);
	uint32_t taken =
		(uint32_t)__atomic_load_n(&o->info.taken, __ATOMIC_RELAXED);
	uint64_t claim = claim_read(o);
	int owner = owner_of(claim);

	if (filled == taken)
		return false;
	if (filled - taken > SUL_PIECES) { /* there is no room for so many */
		sul_channel_drop(p);
		taken = filled;
	} else if (state_of(claim) == SUL_POST_CLAIMED) {
		store_piece(p, channel, ++taken);
	} else {
		taken++;
	}
	__atomic_store_n(&o->info.taken, taken, __ATOMIC_SEQ_CST);
	if (owner >= 0 && owner < p->ranks)
		sul_channel_ring(p, owner);
	return true;
}

static bool piece_waits(const struct sul_post *o)
{
	return sul_word_read(&o->info.filled) !=
	       __atomic_load_n(&o->info.taken, __ATOMIC_RELAXED);
}

static void post_progress(struct sul_port *p, unsigned int channel)
{
	struct sul_posted *mine = &p->channels->posted[channel];
	struct sul_post *o = post_of(p, channel);

	while (piece_waits(o)) {
		/* Whoever copies looks again after he has given the flag back;
		 * a fault in his copy may have come here, too. */
		if (__atomic_exchange_n(&mine->busy, 1, __ATOMIC_ACQ_REL))
			return;
		while (take_piece(p, channel))
			;
		__atomic_exchange_n(&mine->busy, 0, __ATOMIC_ACQ_REL);
	}
	/* A sender that gave up has left others waiting. */
	if (state_of(claim_read(o)) == SUL_POST_POSTED)
		ring_wanters(p, channel);
}

void sul_normal_progress(struct sul_port *p)
{
	if (!__atomic_load_n(&p->channels->posts, __ATOMIC_ACQUIRE))
		return;
	for (unsigned int i = 0; i < SUL_CHANNELS_MAX; i++)
		if (state_of(claim_read(post_of(p, i))) != SUL_POST_FREE)
			post_progress(p, i);
}

/* The buffer is the user's again. */
static void post_free(struct sul_port *p, unsigned int channel)
{
	struct sul_post *o = post_of(p, channel);
	uint32_t generation = generation_of(claim_read(o));

	__atomic_fetch_sub(&p->channels->users, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&p->channels->posts, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&o->claim, claim_word(generation, -1, SUL_POST_FREE),
			 __ATOMIC_SEQ_CST);
}

/* -EIO: what the sender says makes no sense. */
static int take_apart(struct sul_port *p, unsigned int channel, int *from,
		      size_t *len)
{
	size_t room = p->channels->posted[channel].len;
	struct sul_outcome end;

	memcpy(&end, &post_of(p, channel)->outcome, sizeof(end));
	post_free(p, channel);
	if (end.from >= (uint32_t)p->ranks ||
	    (end.status && end.status != -EMSGSIZE) ||
	    (!end.status && end.len > room)) {
		sul_channel_drop(p);
		return -EIO;
	}
	if (from)
		*from = (int)end.from;
	if (end.status)
		return end.status;
	if (len)
		*len = end.len;
	return 0;
}

int sul_recv_wait(struct sul_port *p, unsigned int channel, int *from,
		  size_t *len, int timeout_ms)
{
	uint64_t end = sul_sleep_end(timeout_ms);

	if (channel >= SUL_CHANNELS_MAX)
		return -EINVAL;
	for (;;) {
		uint32_t bell = sul_word_read(sul_channel_doorbell(p));
		struct sul_post *o = post_of(p, channel);
		int err = sul_channel_progress(p);
		uint64_t claim = claim_read(o);

		if (state_of(claim) == SUL_POST_DONE &&
		    claim_move(o, claim,
			       claim_word(generation_of(claim), -1,
					  SUL_POST_HELD)))
			return take_apart(p, channel, from, len);
		if (state_of(claim) == SUL_POST_FREE)
			return -EINVAL; /* nothing is posted */
		if (err >= 0)
			err = sul_channel_sleep(p, bell, end);
		if (err)
			return err;
	}
}

void sul_normal_close(struct sul_port *p)
{
	for (unsigned int i = 0; i < SUL_CHANNELS_MAX; i++) {
		struct sul_post *o = post_of(p, i);
		uint64_t claim = claim_read(o);

		if (state_of(claim) == SUL_POST_POSTED)
			claim_move(o, claim,
				   claim_word(generation_of(claim), -1,
					      SUL_POST_FREE));
	}
}

/* --- sending ------------------------------------------------------------------ */

/* A message on its way into a buffer that this rank has claimed. */
struct transfer {
	struct sul_port *p;
	int rank;
	unsigned int channel;
	uint32_t generation;
	const char *src;
	size_t len;
	uint64_t end; /* of the user's time */
	/* Sources of the puts under way, until the piece has been taken. */
	struct sul_piece piece[SUL_PIECES];
};

static uint64_t claimed_word(const struct transfer *t)
{
	return claim_word(t->generation, t->p->rank, SUL_POST_CLAIMED);
}

/* Read from the target's record, at once. */
static int fetch(const struct transfer *t, size_t member, void *dst, size_t len)
{
	struct sul_port *p = t->p;
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_port_get(p, t->rank, SUL_WINDOW_CHANNELS,
			   post_off(p, t->channel) + member, dst, len);
	if (!err)
		err = sul_port_flush(p);
	sul_quiet_end(&q);
	return err;
}

static int want(const struct transfer *t)
{
	struct sul_port *p = t->p;
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_port_amo(p, t->rank, SUL_WINDOW_CHANNELS,
			   wanted_off(p, t->channel, p->rank), SUL_AMO_OR,
			   UINT64_C(1) << (p->rank % 64), 0, NULL);
	sul_quiet_end(&q);
	return err;
}

/* Set the claim word; *@old is what it was. */
static int claim_amo(const struct transfer *t, enum sul_amo_op op, uint64_t to,
		     uint64_t from, uint64_t *old)
{
	struct sul_port *p = t->p;
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_port_amo(p, t->rank, SUL_WINDOW_CHANNELS,
			   post_off(p, t->channel) +
				   offsetof(struct sul_post, claim),
			   op, to, from, old);
	if (!err)
		err = sul_port_flush(p);
	sul_quiet_end(&q);
	return err;
}

/*
 * -EAGAIN: nothing to be claimed.  What is read along with the claim word
 * belongs to it: the swap succeeds only if the buffer has been posted all the
 * time, and so long nobody changes its address, its length or the number of
 * pieces that were filled.
 */
static int try_claim(struct transfer *t, struct sul_post_info *info)
{
	struct {
		uint64_t claim;
		struct sul_post_info info;
	} seen;
	uint64_t was;
	int err =
		fetch(t, offsetof(struct sul_post, claim), &seen, sizeof(seen));

	if (err)
		return err;
	if (state_of(seen.claim) != SUL_POST_POSTED)
		return -EAGAIN;
	t->generation = generation_of(seen.claim);
	err = claim_amo(t, SUL_AMO_CAS, claimed_word(t), seen.claim, &was);
	if (err)
		return err;
	*info = seen.info;
	return was == seen.claim ? 0 : -EAGAIN;
}

static int rest(const struct transfer *t, uint32_t bell)
{
	int err = sul_channel_progress(t->p);

	return err < 0 ? err : sul_channel_sleep(t->p, bell, t->end);
}

/* The first look is without leaving one's name. */
static int claim(struct transfer *t, struct sul_post_info *info)
{
	int err = try_claim(t, info);

	while (err == -EAGAIN) {
		uint32_t bell = sul_word_read(sul_channel_doorbell(t->p));

		err = want(t);
		if (!err)
			err = try_claim(t, info);
		if (err != -EAGAIN)
			break;
		err = rest(t, bell);
		if (!err)
			err = -EAGAIN;
	}
	return err;
}

/* Until at most @most pieces are not taken. */
static int wait_taken(const struct transfer *t, struct sul_post_info *info,
		      uint32_t most)
{
	uint32_t bell = sul_word_read(sul_channel_doorbell(t->p));

	while (info->filled.value - (uint32_t)info->taken > most) {
		int err = fetch(t, offsetof(struct sul_post, info.taken),
				&info->taken, sizeof(info->taken));

		if (err)
			return err;
		if (info->filled.value - (uint32_t)info->taken <= most)
			break;
		err = rest(t, bell);
		if (err)
			return err;
		bell = sul_word_read(sul_channel_doorbell(t->p));
	}
	return 0;
}

static int put_piece(struct transfer *t, uint64_t off, size_t len, uint32_t nr)
{
	struct sul_piece *piece = &t->piece[nr % SUL_PIECES];
	uint64_t post = post_off(t->p, t->channel);
	uint64_t place = nr % SUL_PIECES * sizeof(*piece);
	struct sul_quiet q;
	int err;

	*piece = (struct sul_piece){ .off = off, .len = (uint32_t)len };
	sul_quiet_begin(t->p, &q);
	err = sul_port_put(t->p, t->rank, SUL_WINDOW_CHANNELS,
			   bounce_off(t->p, t->channel, nr), t->src + off, len);
	if (!err)
		err = sul_port_put(t->p, t->rank, SUL_WINDOW_CHANNELS,
				   post + offsetof(struct sul_post, piece) +
					   place,
				   piece, sizeof(*piece));
	if (!err)
		err = sul_port_notify(
			t->p, t->rank, SUL_WINDOW_CHANNELS,
			post + offsetof(struct sul_post, info.filled), nr);
	if (!err)
		err = sul_channel_ring_quiet(t->p, t->rank);
	sul_quiet_end(&q);
	return err;
}

static int move_in_pieces(struct transfer *t, struct sul_post_info *info)
{
	size_t most = t->p->channels->at.piece;
	int err = 0;

	for (size_t off = 0; off < t->len && !err; off += most) {
		size_t n = t->len - off < most ? t->len - off : most;

		err = wait_taken(t, info, SUL_PIECES - 1);
		if (!err)
			err = put_piece(t, off, n, ++info->filled.value);
	}
	return err ? err : wait_taken(t, info, 0);
}

/* -EMSGSIZE is an outcome of the transfer; other errors mean it is off. */
static int move(struct transfer *t, struct sul_post_info *info)
{
	/* What a sender before this one left behind. */
	int err = wait_taken(t, info, 0);

	if (err)
		return err;
	if (t->len > info->len)
		return -EMSGSIZE;
	if (!t->len ||
	    !sul_port_to(t->p, t->rank)
		     ->put_private(t->p, t->rank, info->addr, t->src, t->len))
		return 0;
	return move_in_pieces(t, info);
}

static int complete(const struct transfer *t, int status)
{
	struct sul_port *p = t->p;
	struct sul_outcome outcome = { .len = t->len,
				       .from = (uint32_t)p->rank,
				       .status = status };
	struct sul_quiet q;
	int err;

	sul_quiet_begin(p, &q);
	err = sul_port_put(p, t->rank, SUL_WINDOW_CHANNELS,
			   post_off(p, t->channel) +
				   offsetof(struct sul_post, outcome),
			   &outcome, sizeof(outcome));
	sul_quiet_end(&q);
	if (!err)
		err = claim_amo(t, SUL_AMO_SWAP,
				claim_word(t->generation, p->rank,
					   SUL_POST_DONE),
				0, NULL);
	return err ? err : sul_channel_ring(p, t->rank);
}

static void give_back(const struct transfer *t)
{
	claim_amo(t, SUL_AMO_SWAP,
		  claim_word(t->generation, -1, SUL_POST_POSTED), 0, NULL);
	sul_channel_ring(t->p, t->rank);
}

int sul_send_large(struct sul_port *p, int rank, unsigned int channel,
		   const void *buf, size_t len, int timeout_ms)
{
	struct transfer t = {
		.p = p, .rank = rank, .channel = channel, .src = buf, .len = len
	};
	struct sul_post_info info;
	int status, err;

	if (rank < 0 || rank >= p->ranks || channel >= SUL_CHANNELS_MAX ||
	    (len && !buf))
		return -EINVAL;
	t.end = sul_sleep_end(timeout_ms);
	err = claim(&t, &info);
	if (err)
		return sul_port_blame(p, rank, err);
	status = move(&t, &info);
	if (status && status != -EMSGSIZE) {
		give_back(&t);
		return status;
	}
	err = complete(&t, status);
	if (err)
		return err;
	if (!status)
		sul_port_count(p, rank, len, 0);
	return status;
}
