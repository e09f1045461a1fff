/* SPDX-License-Identifier: MIT */
/*
 * sul_net.c - the network core: opening, peers, and what is under way.
 *
 * Role:      one rank's state; the parts around it are sul_net_issue.c
 *            (operations become frames), sul_net_slot.c (frames fill packets),
 *            sul_net_output.c (packets leave), sul_net_input.c (and arrive),
 *            sul_net_execute.c (requests take effect), sul_net_answer.c (and
 *            are answered), sul_net_code.c (what makes a packet genuine),
 *            sul_net_link.c (links, and time).
 * Invariant: unexecuted and unanswered count what the links hold.
 * Threads:   none; the caller excludes.
 */
#include "sul_net_link.h"

static bool config_is_valid(const struct sul_net_config *c)
{
	if (c->ranks < 1 || c->ranks > 65535 || c->rank < 0 ||
	    c->rank >= c->ranks || c->windows > SUL_NET_WINDOWS_MAX)
		return false;
	if (c->packet_bytes < SUL_NET_PACKET_MIN ||
	    c->packet_bytes > SUL_NET_PACKET_MAX)
		return false;
	if (c->span < SUL_NET_SPAN_MIN || c->span > SUL_NET_SPAN_MAX ||
	    (c->span & (c->span - 1)))
		return false;
	for (unsigned int w = 0; w < c->windows; w++)
		if ((uintptr_t)c->window[w].base & 7)
			return false;
	if (c->auth > SUL_NET_AUTH_AEAD ||
	    (c->auth == SUL_NET_AUTH_AEAD && (!c->env->seal || !c->env->open)))
		return false;
	if (c->batch > SUL_NET_BATCH_MAX || !c->env->at != !c->env->missing)
		return false;
	return c->session && c->silence_ns;
}

static size_t net_bytes(int ranks)
{
	return sizeof(struct sul_net) +
	       (size_t)ranks * sizeof(struct sul_net_peer);
}

/* Places for what is encrypted: it has to stay as it is for a whole batch. */
static size_t sealed_bytes(const struct sul_net *n)
{
	return n->cfg.batch * (size_t)n->cfg.packet_bytes;
}

int sul_net_open(struct sul_net **out, const struct sul_net_config *cfg)
{
	struct sul_net *n;

	if (!config_is_valid(cfg))
		return -EINVAL;
	n = cfg->env->alloc(cfg->env_ctx, net_bytes(cfg->ranks));
	if (!n)
		return -ENOMEM;
	n->cfg = *cfg;
	if (!n->cfg.batch)
		n->cfg.batch = SUL_NET_BATCH_MAX;
	n->deadline_ns = SUL_ENGINE_NEVER;
	n->ready.next = n->ready.prev = &n->ready;
	n->busy.next = n->busy.prev = &n->busy;
	if (cfg->auth == SUL_NET_AUTH_AEAD) {
		n->sealed = cfg->env->alloc(cfg->env_ctx, sealed_bytes(n));
		if (!n->sealed) {
			sul_net_close(n);
			return -ENOMEM;
		}
	}
	*out = n;
	return 0;
}

void sul_net_close(struct sul_net *n)
{
	if (!n)
		return;
	sul_net_free_links(n);
	if (n->sealed)
		n->cfg.env->free(n->cfg.env_ctx, n->sealed, sealed_bytes(n));
	n->cfg.env->free(n->cfg.env_ctx, n, net_bytes(n->cfg.ranks));
}

/* --- peers ---------------------------------------------------------------------- */

/* One direction of a link, in one life of both ranks: a session and a key of
 * its own. */
static uint32_t derive(const struct sul_net *n, int from, int to,
		       uint32_t session_from, uint32_t session_to,
		       uint64_t key[SUL_NET_KEY_WORDS])
{
	struct sul_mac_key job = sul_mac_key(n->cfg.key);
	uint64_t who[2] = { (uint64_t)from << 32 | (uint32_t)to,
			    (uint64_t)session_from << 32 | session_to };

	for (unsigned int i = 0; i < SUL_NET_KEY_WORDS; i++)
		key[i] = sul_mac_derive(&job, who, 2, i);
	return (uint32_t)sul_mac_derive(&job, who, 2, SUL_NET_KEY_WORDS);
}

int sul_net_peer(struct sul_net *n, int rank, uint32_t session,
		 unsigned int packet_bytes, unsigned int paths)
{
	struct sul_net_peer *p;

	if (rank < 0 || rank >= n->cfg.ranks || rank == n->cfg.rank ||
	    !session || packet_bytes < SUL_NET_PACKET_MIN ||
	    packet_bytes > SUL_NET_PACKET_MAX || !paths ||
	    paths > SUL_NET_PATHS_MAX)
		return -EINVAL;
	p = &n->peers[rank];
	if (p->session)
		return -EEXIST;
	p->session = session;
	p->packet_bytes = (uint16_t)packet_bytes;
	p->paths = (uint8_t)paths;
	p->session_out = derive(n, n->cfg.rank, rank, n->cfg.session, session,
				p->key_out);
	p->session_in = derive(n, rank, n->cfg.rank, session, n->cfg.session,
			       p->key_in);
	return 0;
}

/* --- what is under way ------------------------------------------------------------ */

bool sul_net_quiet(const struct sul_net *n)
{
	return !n->unexecuted && !n->unanswered;
}

int sul_net_error(const struct sul_net *n)
{
	return n->error;
}

uint64_t sul_net_deadline(const struct sul_net *n)
{
	return n->ready.next == &n->ready ? n->deadline_ns : 0;
}

const struct sul_net_stats *sul_net_stats(const struct sul_net *n)
{
	return &n->stats;
}
