/* SPDX-License-Identifier: MIT */
/*
 * sul_net_link.c - links: made at their first use, looked at when time passes.
 *
 * Role:      memory of a link; its deadlines: acknowledgements owed, probes,
 *            questions whether a peer is still there; its death.
 * Invariant: n->deadline_ns is not later than any link's deadline that is not in
 *            the ready ring.  A dead link stays where it is until the core is
 *            closed, but is never ready again.
 * Threads:   none; the caller excludes.
 *
 * Silence.  Whoever has been asked (a packet of a lane, a question) and says
 * nothing is dead when nothing at all was heard of it for silence_ns.  A link
 * on which nothing happens is asked after a quarter of that time, and while
 * there is no answer again after each thirty-second part of it; so a peer that
 * dies is found within silence_ns of its last word.
 *
 * Who has said farewell is neither asked nor missed; what is under way to it has
 * a moment to be acknowledged.
 *
 * Only time in which somebody here listened counts.  A rank that has to wait for
 * a processor looks too late at what has come, and asks too rarely; and with the
 * time alone it would take for silence what it has not heard.  So by how much the
 * core is called later than it wanted (sul_net_deadline()), by so much later is
 * everybody dead; after half of silence_ns all peers get a fresh period.
 */
#include "sul_net_link.h"

enum {
	LATE_SHARE = 32 /* of silence_ns: so much is nothing unusual */
};

/* --- memory ------------------------------------------------------------------------ */

/* Takes the parts of a link out of one allocation, or only adds them up. */
struct carver {
	unsigned char *base; /* NULL: only add up */
	size_t used;
};

static void *carve(struct carver *c, size_t nr, size_t bytes)
{
	size_t at = c->used;

	c->used += (nr * bytes + 63) & ~(size_t)63;
	return c->base ? c->base + at : NULL;
}

static void carve_lane(struct carver *c, struct sul_net_lane *lane,
		       unsigned int packet_bytes, uint32_t span)
{
	size_t bytes = sul_wire_padded(packet_bytes);
	struct sul_sent *sent = carve(c, span, sizeof(*sent));
	struct sul_net_slot *slots = carve(c, span, sizeof(*slots));
	struct sul_net_early *early = carve(c, span, sizeof(*early));
	uint64_t *bits = carve(c, sul_receiver_words(span), sizeof(*bits));
	unsigned char *heads = carve(c, span, bytes);
	unsigned char *payloads = carve(c, span, bytes);

	if (!lane)
		return;
	lane->out.sent = sent;
	lane->in.bits = bits;
	lane->slots = slots;
	lane->early = early;
	sul_net_pool_init(&lane->heads, heads, bytes);
	sul_net_pool_init(&lane->payloads, payloads, bytes);
}

static struct sul_net_link *carve_link(struct carver *c,
				       unsigned int packet_bytes, uint32_t span)
{
	struct sul_net_link *l = carve(c, 1, sizeof(*l));
	struct sul_net_pending *pending = carve(c, span, sizeof(*pending));

	if (l)
		l->pending = pending;
	for (int i = 0; i < SUL_LANES; i++)
		carve_lane(c, l ? &l->lane[i] : NULL, packet_bytes, span);
	return l;
}

size_t sul_net_link_bytes(unsigned int packet_bytes, unsigned int span)
{
	struct carver c = { 0 };

	carve_link(&c, packet_bytes, span);
	return c.used;
}

static void free_pending(struct sul_net_link *l, uint32_t span)
{
	for (uint32_t i = 0; i < span; i++)
		l->pending[i].next = (uint16_t)(i + 1 < span ? i + 2 : 0);
	l->pending_free = 1;
}

static unsigned int packet_bytes(const struct sul_net *n,
				 const struct sul_net_peer *p)
{
	unsigned int most = n->cfg.packet_bytes < p->packet_bytes ?
				    n->cfg.packet_bytes :
				    p->packet_bytes;

	if (n->cfg.auth == SUL_NET_AUTH_AEAD)
		most -= SUL_NET_SEAL_TAG_BYTES;
	return most & ~7u;
}

static void make_link(struct sul_net *n, int rank, void *memory)
{
	struct sul_net_peer *p = &n->peers[rank];
	struct carver c = { memory, 0 };
	struct sul_net_link *l =
		carve_link(&c, n->cfg.packet_bytes, n->cfg.span);

	l->bytes = c.used;
	l->rank = rank;
	l->packet_bytes = packet_bytes(n, p);
	for (int i = 0; i < SUL_LANES; i++) {
		struct sul_net_lane *at = &l->lane[i];

		sul_sender_init(&at->out, at->out.sent, n->cfg.span,
				n->cfg.session, &l->paths);
		sul_receiver_init(&at->in, at->in.bits, n->cfg.span,
				  p->session);
	}
	free_pending(l, n->cfg.span);
	if (n->cfg.auth == SUL_NET_AUTH_MAC) {
		sul_net_code_keys(&l->bulk_out, p->key_out);
		sul_net_code_keys(&l->bulk_in, p->key_in);
	}
	sul_paths_init(&l->paths, p->paths);
	l->try_path = -1;
	l->answers_most = SUL_ENGINE_CREDIT_FIRST;
	l->ack_ns = l->want_ns = SUL_ENGINE_NEVER;
	l->heard_ns = n->now_ns;
	l->ping_ns = n->now_ns + n->cfg.silence_ns / 4;
	l->next = n->links;
	n->links = l;
	p->link = l;
	sul_net_link_touch(n, l); /* its time runs, whatever is done with it */
}

int sul_net_link_make(struct sul_net *n, int rank, void *memory)
{
	if (rank < 0 || rank >= n->cfg.ranks || !n->peers[rank].session)
		return -EINVAL;
	if (n->peers[rank].link)
		return -EEXIST;
	make_link(n, rank, memory);
	return 0;
}

static int alloc_link(struct sul_net *n, int rank)
{
	void *memory = n->cfg.env->alloc(n->cfg.env_ctx,
					 sul_net_link_bytes(n->cfg.packet_bytes,
							    n->cfg.span));

	if (!memory)
		return -ENOMEM;
	make_link(n, rank, memory);
	return 0;
}

int sul_net_link_find(struct sul_net *n, int rank, struct sul_net_link **out)
{
	struct sul_net_peer *p;

	if (rank < 0 || rank >= n->cfg.ranks)
		return -EINVAL;
	p = &n->peers[rank];
	if (!p->session)
		return -EINVAL;
	if (p->dead) {
		n->error = -EHOSTDOWN;
		return -EHOSTDOWN;
	}
	if (!p->link && alloc_link(n, rank))
		return -ENOMEM;
	*out = p->link;
	return 0;
}

bool sul_net_has_left(const struct sul_net *n, int rank)
{
	return rank >= 0 && rank < n->cfg.ranks && n->peers[rank].link &&
	       n->peers[rank].link->left_ns;
}

int sul_net_link_issue(struct sul_net *n, int rank, struct sul_net_link **out)
{
	int err = sul_net_link_get(n, rank, out);

	return !err && (*out)->left_ns ? -EHOSTDOWN : err;
}

int sul_net_watch(struct sul_net *n, int rank)
{
	struct sul_net_link *l;

	return sul_net_link_get(n, rank, &l);
}

void sul_net_free_links(struct sul_net *n)
{
	while (n->links) {
		struct sul_net_link *l = n->links;

		n->links = l->next;
		n->cfg.env->free(n->cfg.env_ctx, l, l->bytes);
	}
}

/* --- deadlines ------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t probe_most(const struct sul_net *n)
{
	return n->cfg.silence_ns / 32;
}

static bool is_under_way(const struct sul_net_link *l)
{
	const struct sul_sender *out = &l->lane[SUL_REQUESTS].out;

	return out->una != out->next || l->nr_pending;
}

/* When it is dead if nothing is heard until then. */
static uint64_t silent_at(const struct sul_net *n, const struct sul_net_link *l)
{
	uint64_t silence = n->cfg.silence_ns;
	uint64_t heard = l->heard_ns + silence,
		 asked = l->asked_ns + silence / 2;

	if (l->left_ns)
		return is_under_way(l) ? l->left_ns + SUL_NET_LAST_NS :
					 SUL_ENGINE_NEVER;
	if (!l->asked_ns)
		return SUL_ENGINE_NEVER;
	return heard > asked ? heard : asked;
}

static uint64_t ping_at(const struct sul_net_link *l)
{
	return l->left_ns ? SUL_ENGINE_NEVER : l->ping_ns;
}

static uint64_t link_deadline(const struct sul_net *n,
			      const struct sul_net_link *l)
{
	uint64_t at = least(l->ack_ns, ping_at(l));

	at = least(at, least(l->want_ns, sul_paths_deadline(&l->paths)));
	for (int i = 0; i < SUL_LANES; i++)
		at = least(at, sul_sender_deadline(&l->lane[i].out,
						   SUL_NET_ACK_DELAY_NS,
						   probe_most(n)));
	return least(at, silent_at(n, l));
}

void sul_net_link_touch(struct sul_net *n, struct sul_net_link *l)
{
	if (!l->ready.next)
		sul_net_ring_join(&n->ready, &l->ready);
}

/* --- time ----------------------------------------------------------------------------- */

/* Its buffers stay: packets of this batch may lie in them. */
static void bury(struct sul_net *n, struct sul_net_link *l)
{
	struct sul_sender *out = &l->lane[SUL_REQUESTS].out;
	uint32_t lost = out->next - out->una;

	if (is_under_way(l))
		n->error = -EHOSTDOWN;
	n->unexecuted -= lost;
	n->unanswered -= l->nr_pending;
	if (l->ready.next)
		sul_net_ring_leave(&l->ready);
	if (l->busy.next)
		sul_net_ring_leave(&l->busy);
	n->peers[l->rank].dead = true;
	if (l->left_ns)
		n->cfg.env->left(n->cfg.env_ctx, l->rank);
	else
		n->cfg.env->dead(n->cfg.env_ctx, l->rank);
}

static void expire_link(struct sul_net *n, struct sul_net_link *l)
{
	uint64_t now = n->now_ns;

	l->expired_ns = now;
	if (now >= silent_at(n, l)) {
		bury(n, l);
		return;
	}
	for (int i = 0; i < SUL_LANES; i++)
		n->stats.timeouts += sul_sender_expire(&l->lane[i].out,
						       SUL_NET_ACK_DELAY_NS,
						       probe_most(n), now);
	if (l->try_path < 0)
		l->try_path = sul_paths_retry(&l->paths, now);
	if (now >= l->ack_ns)
		l->ack_now = true;
	if (now >= l->want_ns) {
		l->want_tries++;
		sul_net_want(n, l);
		l->ask_now = true;
	}
	if (now >= ping_at(l))
		l->ask_now = true;
	sul_net_link_touch(n, l);
}

/* Nothing of it seems lost, nor is to be acknowledged at once. */
static bool is_patient(const struct sul_sender *s)
{
	return s->suspect_ns == SUL_ENGINE_NEVER &&
	       (s->unhurried || s->una == s->fresh);
}

/*
 * Is the deadline as good as it was?  Timers are asked for so often that most are
 * never waited for.  None that begins now is shorter than this; so one that comes
 * by then comes before all others, and is early at worst.
 */
static bool deadline_stands(const struct sul_net *n,
			    const struct sul_net_link *l)
{
	uint64_t shortest = least(SUL_NET_ACK_DELAY_NS, probe_most(n));

	return l->want_ns == SUL_ENGINE_NEVER && l->deadline_ns > n->now_ns &&
	       l->deadline_ns - n->now_ns <= shortest &&
	       is_patient(&l->lane[SUL_REQUESTS].out) &&
	       is_patient(&l->lane[SUL_ANSWERS].out);
}

void sul_net_link_rest(struct sul_net *n, struct sul_net_link *l)
{
	if (!deadline_stands(n, l))
		l->deadline_ns = link_deadline(n, l);
	if (n->now_ns >= l->deadline_ns && l->expired_ns != n->now_ns) {
		expire_link(n, l);
		return;
	}
	sul_net_ring_leave(&l->ready);
	l->turn = 0;
	n->deadline_ns = least(n->deadline_ns, l->deadline_ns);
}

/* Those in the ready ring are looked at when they have nothing to send. */
void sul_net_expire_links(struct sul_net *n)
{
	uint64_t next = SUL_ENGINE_NEVER;

	for (struct sul_net_link *l = n->links; l; l = l->next) {
		if (n->peers[l->rank].dead || l->ready.next)
			continue;
		if (n->now_ns >= l->deadline_ns)
			expire_link(n, l);
		else
			next = least(next, l->deadline_ns);
	}
	n->deadline_ns = next;
}

uint64_t sul_net_review(struct sul_net *n)
{
	n->deadline_ns = SUL_ENGINE_NEVER;
	for (struct sul_net_link *l = n->links; l; l = l->next) {
		if (n->peers[l->rank].dead || l->ready.next)
			continue;
		l->deadline_ns = link_deadline(n, l);
		n->deadline_ns = least(n->deadline_ns, l->deadline_ns);
	}
	return sul_net_deadline(n);
}

/* How much later than it wanted to be called the core is called now. */
static uint64_t late_by(const struct sul_net *n, uint64_t now_ns)
{
	uint64_t due = sul_net_deadline(n);

	if (due < n->now_ns)
		due = n->now_ns;
	return now_ns > due ? now_ns - due : 0;
}

static void begin_anew(struct sul_net *n, struct sul_net_link *l)
{
	l->heard_ns = n->now_ns;
	l->asked_ns = 0;
	l->ping_ns = n->now_ns + n->cfg.silence_ns / 4;
}

static void put_off(struct sul_net_link *l, uint64_t late_ns)
{
	l->heard_ns += late_ns;
	if (l->asked_ns)
		l->asked_ns += late_ns;
}

void sul_net_move_clock(struct sul_net *n, uint64_t now_ns)
{
	uint64_t was = n->now_ns, silence = n->cfg.silence_ns, late;

	late = late_by(n, now_ns);
	n->now_ns = now_ns;
	if (was && late <= silence / LATE_SHARE)
		return;
	for (struct sul_net_link *l = n->links; l; l = l->next)
		if (!was || late > silence / 2)
			begin_anew(n, l);
		else
			put_off(l, late);
}
