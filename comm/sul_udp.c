/* SPDX-License-Identifier: MIT */
/*
 * sul_udp.c - carrier for ranks of other hosts: operations as UDP packets.
 *
 * Role:      issues operations to the core (sul_net.c), and moves its packets
 *            between it and the sockets.
 * Invariant: what is to be sent has been sent when the last user leaves.
 * Threads:   any, and the agent (sul_udp.h tells who does what when).
 * Locks:     `lock` around everything of the core; nothing is taken inside it.
 *            User memory is read and written under it, by whichever thread
 *            polls: sources and destinations of operations, and windows, never
 *            fault for the program's sake.
 */
#include "sul_udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sul_clock.h"
#include "sul_pages.h"

enum {
	MILLION = 1000000
};

/* --- the lock -------------------------------------------------------------------- */

/*
 * A mutex is not fair: who polls in a loop would have it again before another
 * thread is awake.  So one waits for the lock while holding `next`, and whoever
 * comes after him waits for that.
 */
void sul_udp_lock(struct sul_udp *u)
{
	if (!__atomic_load_n(&u->wanted, __ATOMIC_RELAXED) &&
	    !pthread_mutex_trylock(&u->lock))
		return;
	pthread_mutex_lock(&u->next);
	__atomic_store_n(&u->wanted, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&u->lock);
	__atomic_store_n(&u->wanted, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&u->next);
}

void sul_udp_unlock(struct sul_udp *u)
{
	pthread_mutex_unlock(&u->lock);
}

_Static_assert(SUL_NET_BATCH_MAX <= (int)SUL_SOCKET_BATCH, "a parcel");

/* --- packets (under the lock) -------------------------------------------------------- */

static bool lose(struct sul_udp *u)
{
	if (!u->loss_ppm)
		return false;
	u->random ^= u->random << 13; /* xorshift64 */
	u->random ^= u->random >> 7;
	u->random ^= u->random << 17;
	return (u->random >> 20) % MILLION < u->loss_ppm;
}

/* Packets for one socket that go together; of @d the first @nr are there. */
struct parcel {
	struct sul_socket *socket;
	unsigned int nr;
	struct sul_datagram d[SUL_SOCKET_BATCH];
};

static struct sul_socket *socket_for(struct sul_udp *u,
				     const struct sul_packet *k)
{
	struct sul_udp_peer *peer = &u->peer[k->rank];

	if (peer->joined[k->path].fd >= 0)
		return &peer->joined[k->path];
	return &u->listener->socket[peer->path[k->path].socket];
}

/* A way that has changed may need another address of ours: back to where the
 * system chooses that for each packet. */
static void parcel_send(struct sul_udp *u, struct parcel *p)
{
	if (p->nr && sul_socket_send(p->socket, u->batch, p->d, p->nr) &&
	    p->socket->joined)
		sul_socket_close(p->socket);
	p->nr = 0;
}

static void parcel_add(struct sul_udp *u, struct parcel *p,
		       const struct sul_packet *k)
{
	struct sul_socket *socket = socket_for(u, k);

	if (p->nr && socket != p->socket) {
		parcel_send(u, p);
		socket = socket_for(u, k);
	}
	p->socket = socket;
	p->d[p->nr++] =
		(struct sul_datagram){ .to = &u->peer[k->rank].path[k->path].to,
				       .head = k->head,
				       .body = k->body,
				       .head_len = k->head_len,
				       .body_len = k->body_len };
}

void sul_udp_send(struct sul_udp *u)
{
	struct parcel p;
	struct sul_packet k;
	bool more = true;

	p.nr = 0; /* not all of it: this is done in every poll */
	while (more) {
		unsigned int nr = 0;

		/* They stay as they are for so many calls. */
		while (nr++ < SUL_NET_BATCH_MAX &&
		       (more = sul_net_output(u->net, u->now_ns, &k)))
			if (!lose(u))
				parcel_add(u, &p, &k);
		parcel_send(u, &p);
	}
}

static void take_in(void *ctx, void *packet, size_t len)
{
	struct sul_udp *u = ctx;

	/* Whoever waited for an answer may be gone, and where it was to go. */
	if (!sul_job_failed(u->port->job))
		sul_net_input(u->net, u->now_ns, u->link, packet, len);
}

/* A packet may have been what another user waits for. */
static void tell_users(struct sul_udp *u)
{
	if (__atomic_load_n(&u->watching, __ATOMIC_RELAXED))
		eventfd_write(u->kick, 1);
	if (u->users > 1)
		sul_sleep_notify(&u->news, u->news.value + 1);
}

bool sul_udp_poll(struct sul_udp *u)
{
	unsigned int packets = 0;

	u->now_ns = sul_now_ns();
	for (u->link = 0; u->link < u->listener->sockets; u->link++)
		packets += sul_socket_receive(&u->listener->socket[u->link],
					      u->batch, take_in, u);
	/* Most looks are in vain: nothing has come, and nothing is due. */
	if (packets || u->now_ns >= sul_net_deadline(u->net))
		sul_udp_send(u);
	if (packets)
		tell_users(u);
	return packets;
}

/* --- what the core asks for ------------------------------------------------------------ */

static void env_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	(void)ctx;
	sul_sleep_notify(word, value);
}

static void env_dead(void *ctx, int rank)
{
	sul_port_silent(((struct sul_udp *)ctx)->port, rank);
}

static void env_left(void *ctx, int rank)
{
	sul_port_left(((struct sul_udp *)ctx)->port, rank);
}

static void *env_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return sul_pages_new(bytes);
}

static void env_free(void *ctx, void *at, size_t bytes)
{
	(void)ctx;
	sul_pages_free(at, bytes);
}

static const struct sul_net_env env = {
	.alloc = env_alloc,
	.free = env_free,
	.notify = env_notify,
	.dead = env_dead,
	.left = env_left,
#ifdef SUL_SODIUM
	.seal = sul_aead_seal,
	.open = sul_aead_open,
#endif
};

/* --- opening --------------------------------------------------------------------------- */

static void join_to(struct sul_udp *u, struct sul_udp_peer *peer,
		    unsigned int i)
{
	struct sul_socket *s = &peer->joined[i];

	s->fd = -1;
	if (i < peer->paths && u->joined < SUL_UDP_JOINED_MAX &&
	    !sul_socket_join(s, &u->listener->socket[peer->path[i].socket],
			     &peer->path[i].to))
		u->joined++;
}

static int add_peer(struct sul_udp *u, int rank)
{
	struct sul_port *p = u->port;
	struct sul_udp_peer *peer = &u->peer[rank];
	unsigned int packet = SUL_NET_PACKET_MAX, nr;
	struct sul_address a;
	int err = sul_address_read(&a, p->job, rank);

	if (!err)
		err = sul_listener_paths(u->listener, &a,
					 !sul_job_far(p->job, rank), peer->path,
					 &nr);
	if (err)
		return err;
	peer->paths = nr;
	for (unsigned int i = 0; i < SUL_NET_PATHS_MAX; i++)
		join_to(u, peer, i);
	for (unsigned int i = 0; i < nr; i++)
		if (peer->path[i].packet_bytes < packet)
			packet = peer->path[i].packet_bytes;
	return sul_net_peer(u->net, rank, a.session, packet, nr);
}

static int add_peers(struct sul_udp *u)
{
	int err = 0;

	for (int r = 0; r < u->port->ranks && !err; r++)
		if (sul_port_far(u->port, r))
			err = add_peer(u, r);
	return err;
}

/*
 * Every rank is watched by another one from the beginning, whatever the program
 * does: along the tree of leaving, since each watching all would be too much.
 */
static int watch_neighbours(struct sul_udp *u)
{
	int err = 0;

	for (unsigned int i = 0; i < SUL_LEAVE_NEIGHBOURS && !err; i++) {
		int rank = sul_leave_neighbour(u->port, i);

		if (rank >= 0 && sul_port_far(u->port, rank))
			err = sul_net_watch(u->net, rank);
	}
	return err;
}

static int open_net(struct sul_udp *u, const struct sul_config *cfg)
{
	struct sul_port *p = u->port;
	struct sul_net_config c = {
		.rank = p->rank,
		.ranks = p->ranks,
		.windows = SUL_WINDOWS_ALL,
		.packet_bytes = sul_listener_packet(u->listener),
		.auth = (enum sul_net_auth)cfg->auth,
		.session = u->listener->address.session,
		.silence_ns = cfg->silence_ms * UINT64_C(1000000),
		.env = &env,
		.env_ctx = u,
	};
	int err = sul_address_span(&c.span, p->job, p->ranks);

	if (err)
		return err;
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		c.window[w].base = p->window[w];
		c.window[w].bytes = p->window_bytes[w];
	}
	memcpy(c.key, sul_job_key(p->job), sizeof(c.key));
	err = sul_net_open(&u->net, &c);
	if (!err)
		err = add_peers(u);
	return err ? err : watch_neighbours(u);
}

static void close_joined(struct sul_udp *u)
{
	for (int r = 0; u->peer && r < u->port->ranks; r++)
		for (unsigned int i = 0; i < u->peer[r].paths; i++)
			sul_socket_close(&u->peer[r].joined[i]);
}

static void udp_close(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);

	sul_udp_agent_close(u);
	close_joined(u);
	sul_net_close(u->net);
	sul_batch_close(u->batch);
	sul_listener_close(u->listener);
	pthread_mutex_destroy(&u->lock);
	pthread_mutex_destroy(&u->next);
	free(u->peer);
	free(u);
	p->far = NULL;
}

static bool anybody_near(const struct sul_port *p)
{
	for (int r = 0; r < p->ranks; r++)
		if (r != p->rank && !sul_port_far(p, r))
			return true;
	return false;
}

static int udp_open(struct sul_port *p, const struct sul_config *cfg)
{
	struct sul_udp *u = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (!u) {
		sul_listener_close(cfg->listener);
		return -ENOMEM;
	}
	p->far = u;
	u->port = p;
	u->listener = cfg->listener;
	u->loss_ppm = cfg->loss_ppm;
	u->random = u->listener->address.session | UINT64_C(1) << 40;
	u->mixed = anybody_near(p);
	u->epoll = u->timer = u->kick = -1;
	u->timer_ns = UINT64_MAX;
	pthread_mutex_init(&u->lock, NULL);
	pthread_mutex_init(&u->next, NULL);
	u->peer = calloc((size_t)p->ranks, sizeof(*u->peer));
	if (u->peer)
		err = sul_batch_open(&u->batch);
	if (!err)
		err = open_net(u, cfg);
	if (!err)
		err = sul_udp_agent_open(u);
	if (err)
		udp_close(p);
	return err;
}

/* Whoever is no user sees to it that the agent wakes up in time. */
static void send_now(struct sul_udp *u)
{
	u->now_ns = sul_now_ns();
	sul_udp_send(u);
	if (!u->users)
		sul_udp_set_timer(u);
}

/* --- operations -------------------------------------------------------------------------- */

/* A thread that issues: when there is no room, it becomes a user. */
struct issue {
	struct sul_udp *u;
	bool user;
	struct sul_patience patience;
};

static struct issue issue_begin(struct sul_port *p)
{
	struct issue i = { .u = sul_udp_of(p) };

	sul_udp_lock(i.u);
	return i;
}

/* Shall the operation that has ended with *@err be tried again? */
static bool issue_again(struct issue *i, int *err)
{
	if (*err != -EAGAIN)
		return false;
	if (!i->user)
		sul_udp_join(i->u, true);
	i->user = true;
	*err = sul_udp_step(i->u, &i->patience);
	return !*err;
}

static int issue_end(struct issue *i, int err)
{
	if (i->user)
		sul_udp_pause(i->u);
	sul_udp_unlock(i->u);
	return err;
}

static int udp_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   void *dst, size_t len, const struct sul_mark *marks,
		   unsigned int nr_marks)
{
	struct issue i = issue_begin(p);
	size_t done = 0;
	int err;

	do
		err = sul_net_get(i.u->net, rank, w, off, dst, len, marks,
				  nr_marks, &done);
	while (issue_again(&i, &err));
	return issue_end(&i, err);
}

static int udp_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   const void *src, size_t len)
{
	struct issue i = issue_begin(p);
	size_t done = 0;
	int err;

	do
		err = sul_net_put(i.u->net, rank, w, off, src, len, &done);
	while (issue_again(&i, &err));
	return issue_end(&i, err);
}

static int udp_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, const struct sul_run *runs, size_t nr_runs,
		    const struct sul_mirror *mirror)
{
	struct issue i = issue_begin(p);
	size_t done = 0;
	int err;

	do
		err = sul_net_putv(i.u->net, rank, w, off, src, runs, nr_runs,
				   mirror, &done);
	while (issue_again(&i, &err));
	return issue_end(&i, err);
}

static int udp_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		   uint64_t *old)
{
	struct issue i = issue_begin(p);
	int err;

	do
		err = sul_net_amo(i.u->net, rank, w, off, op, operand,
				  comparand, old);
	while (issue_again(&i, &err));
	return issue_end(&i, err);
}

static int udp_notify(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value)
{
	struct issue i = issue_begin(p);
	int err;

	do
		err = sul_net_notify(i.u->net, rank, w, off, value);
	while (issue_again(&i, &err));
	return issue_end(&i, err);
}

/* Who sends a message has no more to say. */
static int udp_message(struct sul_port *p, int rank,
		       const struct sul_message *m)
{
	struct issue i = issue_begin(p);
	int err;

	do
		err = sul_net_message(i.u->net, rank, m);
	while (issue_again(&i, &err));
	if (!err)
		send_now(i.u);
	return issue_end(&i, err);
}

/* --- flush ---------------------------------------------------------------------------------- */

static int flush_user(struct sul_udp *u)
{
	struct sul_patience patience = { 0 };
	int err = 0;

	sul_udp_join(u, false);
	sul_net_hurry(u->net);
	sul_udp_send(u);
	while (!err && !sul_net_quiet(u->net))
		err = sul_udp_step(u, &patience);
	sul_udp_part(u);
	return err;
}

static int udp_flush(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);
	int err = 0;

	sul_udp_lock(u);
	if (!sul_net_quiet(u->net))
		err = flush_user(u);
	if (!err)
		err = sul_net_error(u->net);
	sul_udp_unlock(u);
	return err;
}

static void udp_push(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);

	sul_udp_lock(u);
	send_now(u);
	sul_udp_unlock(u);
}

static void udp_poll(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);

	sul_udp_lock(u);
	sul_udp_poll(u);
	if (!u->users)
		sul_udp_set_timer(u);
	sul_udp_unlock(u);
}

/* Whoever has no room for it learns of it by our silence. */
static void udp_farewell(struct sul_port *p)
{
	struct sul_udp *u = sul_udp_of(p);

	sul_udp_lock(u);
	for (int r = 0; r < p->ranks; r++)
		if (sul_port_far(p, r))
			sul_net_farewell(u->net, r);
	send_now(u);
	sul_udp_unlock(u);
}

static bool udp_has_left(struct sul_port *p, int rank)
{
	struct sul_udp *u = sul_udp_of(p);
	bool left;

	sul_udp_lock(u);
	left = sul_net_has_left(u->net, rank);
	sul_udp_unlock(u);
	return left;
}

static void udp_stats(const struct sul_port *p, struct sul_stats *out)
{
	struct sul_udp *u = sul_udp_of(p);
	const struct sul_net_stats *s;

	sul_udp_lock(u);
	s = sul_net_stats(u->net);
	out->packets_out = s->packets_out;
	out->packets_in = s->packets_in;
	out->wire_out = s->bytes_out;
	out->wire_in = s->bytes_in;
	out->resent = s->resent;
	out->acks = s->acks_out;
	out->refused = s->dropped_short + s->dropped_session + s->dropped_mac +
		       s->dropped_replay + s->dropped_range + s->dropped_room;
	sul_udp_unlock(u);
}

static int udp_window_file(const struct sul_port *p, int rank, unsigned int w,
			   int *fd, uint64_t *off)
{
	(void)p, (void)rank, (void)w, (void)fd, (void)off;
	return -ENOTSUP;
}

static int udp_put_private(struct sul_port *p, int rank, uint64_t addr,
			   const void *src, size_t len)
{
	(void)p, (void)rank, (void)addr, (void)src, (void)len;
	return -EPERM;
}

const struct sul_carrier_ops sul_udp_ops = {
	.name = "udp",
	.open = udp_open,
	.close = udp_close,
	.window_file = udp_window_file,
	.get = udp_get,
	.put = udp_put,
	.putv = udp_putv,
	.amo = udp_amo,
	.notify = udp_notify,
	.flush = udp_flush,
	.wait = sul_udp_wait,
	.put_private = udp_put_private,
	.stats = udp_stats,
	.message = udp_message,
	.push = udp_push,
	.poll = udp_poll,
	.wake = sul_udp_wake,
	.farewell = udp_farewell,
	.has_left = udp_has_left,
	.stop = sul_udp_stop,
};
