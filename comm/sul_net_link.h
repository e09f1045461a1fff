/* SPDX-License-Identifier: MIT */
/*
 * sul_net_link.h - what a struct sul_net is made of.  Private to sul_net*.c.
 *
 * A *link* is all that is known of the traffic with one peer: two lanes, each
 * with a sender and a receiver, the requests that wait for an answer, what is
 * owed and when somebody was heard.  It is made when the peer is first worked
 * on, or first heard of.
 */
#ifndef SUL_NET_LINK_H
#define SUL_NET_LINK_H

#include "sul_engine.h"
#include "sul_mac.h"
#include "sul_net.h"
#include "sul_nh.h"
#include "sul_wire.h"

enum {
	/* A source of so many bytes is sent from where it lies. */
	SUL_NET_REFER_BYTES = 512,
	SUL_NET_ACK_PACKETS = 16, /* at the latest */
	/* More than both lanes' spans and their acknowledgements. */
	SUL_NET_REPLAY_BITS = 4096,
	SUL_NET_TURN = 32, /* packets of a link before another one's turn */
	SUL_NET_MARKS_MAX = 3, /* of one get: SUL_MARKS_MAX of sul.h */
	SUL_NET_BARE_BYTES =
		SUL_WIRE_HEAD_BYTES +
		SUL_LANES * (SUL_WIRE_FRAME_BYTES + SUL_NET_SPAN_MAX / 8),
	SUL_NET_KEY_WORDS = 4, /* of a direction: AEAD takes 256 bits */
};

_Static_assert(SUL_PATHS_MAX == (int)SUL_NET_PATHS_MAX, "paths");

/* So long it may take, after a farewell, until what is under way to its sender is
 * known to have been executed all the same. */
#define SUL_NET_LAST_NS ((uint64_t)200 * 1000 * 1000)
#define SUL_NET_ACK_DELAY_NS ((uint64_t)10 * 1000 * 1000)

/* Buffers of one size, the last one given back is the next one taken. */
struct sul_net_pool {
	unsigned char *fresh; /* never used so far */
	void *used; /* each begins with the address of the next */
	size_t bytes;
};

/* A packet that can be sent. */
struct sul_net_slot {
	unsigned char *head; /* header and frames */
	const void *body; /* the rest of the last frame, where it lies */
	uint16_t head_len, body_len;
	bool hurry;
};

struct sul_net_early {
	unsigned char *payload;
	uint16_t len;
};

/* A place in a scatter: the next run, and how much of it is done. */
struct sul_net_place {
	uint32_t run, part;
};

/* How far a packet has been executed that needs a page which is not there. */
struct sul_net_progress {
	uint32_t frame; /* where the frame begins that is next; of that frame: */
	uint32_t part; /* bytes of a put, message or get */
	uint32_t marks; /* of a get; words of a message */
	struct sul_net_place done, stored; /* of a scatter; see putv_pieces() */
};

struct sul_net_lane {
	struct sul_sender out;
	struct sul_net_slot *slots; /* [span] */
	struct sul_net_pool heads;
	struct sul_receiver in;
	struct sul_net_early *early; /* [span] */
	struct sul_net_pool payloads;
	uint32_t owed; /* packets not acknowledged yet */
	/* The next packet to be executed lies in its place of early[], ... */
	bool held; /* ... since it needs a page that is not there, ... */
	struct sul_net_progress progress; /* ... and this much is done. */
};

/* A get or amo that waits for its answer. */
struct sul_net_pending {
	void *dst; /* NULL: free */
	uint32_t len, left; /* bytes; a get of nothing has none */
	uint32_t generation;
	uint16_t packets; /* it may take, of the answering lane */
	uint16_t next; /* free one; by index */
};

struct sul_net_ring {
	struct sul_net_ring *next; /* of a member that is in none: NULL */
	struct sul_net_ring *prev;
};

/* The link whose ring member lies at @at, @offset bytes from its beginning. */
static inline void *sul_net_link_of(struct sul_net_ring *at, size_t offset)
{
	return (unsigned char *)at - offset;
}
#define SUL_NET_LINK_OF(at, member)              \
	((struct sul_net_link *)sul_net_link_of( \
		at, offsetof(struct sul_net_link, member)))

static inline void sul_net_ring_join(struct sul_net_ring *ring,
				     struct sul_net_ring *member)
{
	member->prev = ring->prev;
	member->next = ring;
	ring->prev->next = member;
	ring->prev = member;
}

static inline void sul_net_ring_leave(struct sul_net_ring *member)
{
	member->prev->next = member->next;
	member->next->prev = member->prev;
	member->next = member->prev = NULL;
}

struct sul_net_link {
	int rank;
	unsigned int packet_bytes; /* of those sent; a multiple of 8 */
	struct sul_net_link *next; /* of all links */
	struct sul_net_ring ready; /* output should look at it */
	struct sul_net_ring busy; /* has requests that are not executed (yet) */
	size_t bytes; /* of this allocation */
	uint64_t deadline_ns; /* as of when it came to rest */
	uint64_t expired_ns; /* when that was looked at last */

	struct sul_net_lane lane[SUL_LANES];
	struct sul_net_pending *pending; /* [span] */
	uint16_t pending_free; /* index + 1 */
	uint32_t nr_pending;
	uint64_t want_ns; /* when to ask for answers that do not come */
	unsigned int want_tries;
	uint32_t answers; /* packets that pending ones may take */
	uint32_t answers_most; /* the peer's answering lane holds them */

	struct sul_nh_key bulk_out, bulk_in;
	uint64_t number; /* of the last packet sent */
	uint64_t replay_top; /* the highest number that has come */
	uint64_t replay[SUL_NET_REPLAY_BITS / 64];

	struct sul_paths paths;
	/* The latest stamp that has come: by which path, when (0: none), and
	 * with which number. */
	uint32_t echo;
	uint8_t echo_path;
	uint64_t echo_ns, echo_number;
	unsigned int back; /* by which of our paths that came */

	bool ack_now, ask_now; /* a packet is to be sent for this alone */
	int try_path; /* one is to be sent by this; -1: none */
	uint64_t ack_ns; /* deadline of what is owed; SUL_ENGINE_NEVER */
	uint64_t heard_ns;
	uint64_t asked_ns; /* since when an answer is owed; 0: it is not */
	uint64_t left_ns; /* it has said farewell then; 0: it has not */
	uint64_t ping_ns; /* when to ask whether anybody is there */
	uint32_t turn; /* packets sent in a row */
};

/* What is known of a rank, with or without a link. */
struct sul_net_peer {
	uint32_t session; /* 0: nothing is known */
	uint16_t packet_bytes;
	uint8_t paths;
	bool dead;
	uint32_t session_out, session_in; /* as on the wire */
	uint64_t key_out[SUL_NET_KEY_WORDS], key_in[SUL_NET_KEY_WORDS];
	struct sul_net_link *link;
};

struct sul_net {
	struct sul_net_config cfg;
	struct sul_net_stats stats;
	int error;
	uint64_t now_ns; /* of the last call that had a time */
	uint64_t deadline_ns; /* the least of the links' */
	uint64_t unexecuted; /* request packets that are not known to be */
	uint64_t unanswered; /* pending requests */
	struct sul_net_link *links;
	struct sul_net_ring ready, busy;
	/* Places for a batch of packets without a slot, and of encrypted ones. */
	unsigned int batch;
	unsigned char bare[SUL_NET_BATCH_MAX][SUL_NET_BARE_BYTES];
	struct sul_nh_key stranger; /* of a packet without a link */
	unsigned char *sealed; /* [cfg.batch][packet_bytes] */
	struct sul_net_peer peers[]; /* [ranks] */
};

/* --- sul_net_link.c: links, and time passing over them ----------------------- */

/* Made if there is none.  -EINVAL, -EHOSTDOWN, -ENOMEM */
int sul_net_link_find(struct sul_net *n, int rank, struct sul_net_link **out);
static inline int sul_net_link_get(struct sul_net *n, int rank,
				   struct sul_net_link **out)
{
	if (rank < 0 || rank >= n->cfg.ranks || n->peers[rank].dead ||
	    !n->peers[rank].link)
		return sul_net_link_find(n, rank, out);
	*out = n->peers[rank].link;
	return 0;
}
/* The same for an operation: who has left takes none. */
int sul_net_link_issue(struct sul_net *n, int rank, struct sul_net_link **out);
/* Output should look at it. */
void sul_net_link_touch(struct sul_net *n, struct sul_net_link *l);
/* It has nothing to send: it is not looked at before its deadline, unless that
 * has come already. */
void sul_net_link_rest(struct sul_net *n, struct sul_net_link *l);
/* The time is @now_ns: look at all links whose deadline has come. */
void sul_net_move_clock(struct sul_net *n, uint64_t now_ns);
static inline void sul_net_clock(struct sul_net *n, uint64_t now_ns)
{
	if (now_ns > n->now_ns)
		sul_net_move_clock(n, now_ns);
}
void sul_net_expire_links(struct sul_net *n);
static inline void sul_net_expire(struct sul_net *n)
{
	if (n->now_ns >= n->deadline_ns)
		sul_net_expire_links(n);
}
void sul_net_free_links(struct sul_net *n);

/* --- sul_net_code.c ----------------------------------------------------------- */

/* Does the code of such a payload need the second key? */
bool sul_net_code_is_bulk(size_t payload);
/* The second key of a direction. */
void sul_net_code_keys(struct sul_nh_key *out,
		       const uint64_t key[SUL_NET_KEY_WORDS]);
/* Of the header at @head, in which the code is 0, and a payload in two pieces;
 * the length of the first one is a multiple of 8 if there is a second. */
uint64_t sul_net_code(const uint64_t key[SUL_NET_KEY_WORDS],
		      const struct sul_nh_key *bulk, const void *head,
		      const void *first, size_t first_len, const void *rest,
		      size_t rest_len);

/* --- sul_net_slot.c: packets being filled ------------------------------------- */

void sul_net_pool_init(struct sul_net_pool *p, unsigned char *at, size_t bytes);
void *sul_net_pool_take(struct sul_net_pool *p);
void sul_net_pool_give(struct sul_net_pool *p, void *buffer);
/* How many bytes a frame can have in the packet being filled; 0: none is. */
size_t sul_net_space(const struct sul_net_link *l, enum sul_lane_nr lane);
/* How many it can have in a new one. */
size_t sul_net_space_new(const struct sul_net_link *l);
/* Begin a new packet.  NULL: the lane is full. */
struct sul_net_slot *sul_net_packet(struct sul_net *n, struct sul_net_link *l,
				    enum sul_lane_nr lane);
/* Room for a frame of @bytes, in the packet being filled if it fits, or in a
 * new one.  NULL: the lane is full. */
void *sul_net_frame(struct sul_net *n, struct sul_net_link *l,
		    enum sul_lane_nr lane, size_t bytes);
/* Of the packet that sul_net_frame() used last. */
struct sul_net_slot *sul_net_last_slot(const struct sul_net_link *l,
				       enum sul_lane_nr lane);
/* Packets from @first on, @nr of them, are done with. */
void sul_net_release(struct sul_net *n, struct sul_net_link *l,
		     enum sul_lane_nr lane, uint32_t first, uint32_t nr);

/* How much of @left bytes at @off fits into @most without cutting a word. */
static inline size_t sul_net_whole_words(uint64_t off, size_t left, size_t most)
{
	if (left <= most)
		return left;
	return (size_t)(((off + most) & ~(uint64_t)7) - off);
}

/* --- sul_net_answer.c: answers, on both sides ----------------------------------- */

/* Packets that the answer to a get of @len bytes at @off may take. */
uint32_t sul_net_answer_packets(const struct sul_net_link *l, uint64_t off,
				size_t len);
/* The most bytes that @packets can bring. */
size_t sul_net_answer_bytes(const struct sul_net_link *l, uint64_t off,
			    uint32_t packets);
/* A tag for a request whose answer goes to @dst; 0: too many already. */
uint32_t sul_net_pend(struct sul_net *n, struct sul_net_link *l, void *dst,
		      size_t len, uint32_t packets);
void sul_net_pend_cancel(struct sul_net *n, struct sul_net_link *l,
			 uint32_t tag);
/* *@done bytes of the range have been answered, and more are by now; false: not
 * all, a page is missing. */
bool sul_net_answer_data(struct sul_net *n, struct sul_net_link *l,
			 uint32_t tag, unsigned int w, uint64_t off,
			 uint32_t len, uint32_t *done);
void sul_net_answer_old(struct sul_net *n, struct sul_net_link *l, uint32_t tag,
			uint64_t old);
/* What is pending has been executed: its answers should be here soon. */
void sul_net_want(struct sul_net *n, struct sul_net_link *l);
void sul_net_take_data(struct sul_net *n, struct sul_net_link *l, uint32_t tag,
		       uint64_t off, const void *data, size_t len);

/* --- sul_net_execute.c ------------------------------------------------------------- */

/* The frames of a payload that are not executed yet.  False: a page is missing,
 * *@at tells how far it got, and env->missing() has been called. */
bool sul_net_execute(struct sul_net *n, struct sul_net_link *l,
		     enum sul_lane_nr lane, const void *payload, size_t len,
		     struct sul_net_progress *at);

static inline struct sul_net_peer *sul_net_peer_of(struct sul_net *n,
						   const struct sul_net_link *l)
{
	return &n->peers[l->rank];
}

/*
 * Where byte @off of own window @w lies, and how many of the *@len bytes from
 * there on lie behind it; they exist.  NULL: it is not there now, which the
 * environment has been told.
 */
static inline void *sul_net_at(const struct sul_net *n,
			       const struct sul_net_link *l, unsigned int w,
			       uint64_t off, uint64_t *len, bool write)
{
	const struct sul_net_config *c = &n->cfg;
	uint64_t most = *len;
	void *at;

	if (!c->env->at)
		return (char *)c->window[w].base + off;
	at = c->env->at(c->env_ctx, w, off, len, write);
	if (!at)
		c->env->missing(c->env_ctx, l->rank, w, off, most);
	else if (*len > most)
		*len = most;
	return at;
}

#endif /* SUL_NET_LINK_H */
