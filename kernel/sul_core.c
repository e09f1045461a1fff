// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_core.c - the network core of a port: what it asks of its surroundings, time,
 * and pages that are not there.
 *
 * Role:      opens the core with START, makes a link with each far PEER, ends it with
 *            the port; a worker pins what requests wait for.
 * Invariant: nothing is allocated for a packet but the packet.  The core is touched
 *            under port->lock and only while the port is not dead; what is dead is
 *            freed after a grace period.
 * Context:   process; what ends in _locked, the timer and struct sul_net_env: any.
 * Locks:     port->lock.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "sul_compat.h"
#include "sul_core.h"

enum {
	PIN_AGAIN_MS = 10, /* when there was no memory for it */
};

/* --- what the core asks for ------------------------------------------------------------ */

static void *env_alloc(void *ctx, size_t bytes)
{
	struct sul_core *c = ctx;
	void *at;

	/* A link is made by PEER; a packet makes none. */
	if (!c->opening || sul_port_charge(c->port, bytes))
		return NULL;
	at = kvzalloc(bytes, SUL_GFP);
	if (!at)
		sul_port_uncharge(c->port, bytes);
	return at;
}

static void env_free(void *ctx, void *at, size_t bytes)
{
	struct sul_core *c = ctx;

	kvfree_sensitive(at, bytes); /* keys are in it */
	sul_port_uncharge(c->port, bytes);
}

static void *env_at(void *ctx, unsigned int w, uint64_t off, uint64_t *len,
		    bool write)
{
	struct sul_core *c = ctx;

	*len = PAGE_SIZE - offset_in_page(off);
	return sul_window_at_locked(c->port, w, off);
}

static void env_missing(void *ctx, int rank, unsigned int w, uint64_t off,
			uint64_t len)
{
	struct sul_core *c = ctx;
	struct sul_far *f = c->far[rank];

	f->waits = true;
	f->window = w;
	f->off = off;
	f->bytes = len;
	mod_delayed_work(system_unbound_wq, &c->pinner, 0);
}

static void env_genuine(void *ctx)
{
	struct sul_core *c = ctx;

	sul_trace(c->port, SUL_TRACE_GENUINE);
}

static void env_notify(void *ctx, struct sul_word *word, uint32_t value)
{
	struct sul_core *c = ctx;

	sul_notify_locked(c->port, word, value);
}

static void tell_arrival(struct sul_core *c)
{
	WRITE_ONCE(c->arrivals, c->arrivals + 1);
	if (wq_has_sleeper(&c->room))
		wake_up_all(&c->room);
}

/* Dead, or gone with something under way to it. */
static void env_dead(void *ctx, int rank)
{
	struct sul_core *c = ctx;

	sul_port_bury_locked(c->port, (u32)rank);
	tell_arrival(c);
}

static void env_farewell(void *ctx, int rank)
{
	struct sul_core *c = ctx;

	sul_port_leave_locked(c->port, (u32)rank);
}

static const struct sul_net_env env = {
	.alloc = env_alloc,
	.free = env_free,
	.at = env_at,
	.missing = env_missing,
	.genuine = env_genuine,
	.notify = env_notify,
	.dead = env_dead,
	.left = env_dead,
	.farewell = env_farewell,
#if SUL_HAS_AEAD
	.seal = sul_seal,
	.open = sul_seal_open,
#endif
};

/* --- packets ------------------------------------------------------------------------------ */

/* It need not be exact: it rings at the latest then. */
static void set_timer(struct sul_core *c)
{
	u64 ns = sul_net_deadline(c->net);

	if (ns >= c->timer_ns)
		return;
	c->timer_ns = ns;
	hrtimer_start(&c->timer, ns_to_ktime(ns), HRTIMER_MODE_ABS_SOFT);
}

static void tell_executed(struct sul_port *p)
{
	if (p->status->executed == p->tickets || !sul_net_quiet(p->core->net))
		return;
	/* Behind all results. */
	smp_store_release(&p->status->executed, p->tickets);
	sul_wake_all(p);
}

static void pump_at(struct sul_core *c, u64 now_ns, struct sk_buff_head *out)
{
	struct sul_packet k;

	while (sul_net_output(c->net, now_ns, &k)) {
		struct sk_buff *skb = sul_tunnel_packet_locked(c, &k);

		if (skb)
			__skb_queue_tail(out, skb);
	}
	tell_executed(c->port);
	set_timer(c);
}

void sul_core_pump_locked(struct sul_core *c, struct sk_buff_head *out)
{
	pump_at(c, ktime_get_ns(), out);
}

void sul_core_take_locked(struct sul_core *c, unsigned int nr, void *packet,
			  size_t len, struct sk_buff_head *out)
{
	u64 now_ns;

	if (sul_loss_of_any_locked(c))
		return;
	now_ns = ktime_get_ns();
	if (sul_net_input(c->net, now_ns, nr, packet, len))
		tell_arrival(c);
	sul_trace(c->port, SUL_TRACE_STORED);
	pump_at(c, now_ns, out);
}

/* Something was done to the core, or time has passed. */
static void pump(struct sul_core *c,
		 void (*work)(struct sul_core *c, void *ctx), void *ctx)
{
	struct sk_buff_head out;

	sul_sending_begin(&out);
	spin_lock(&c->port->lock);
	if (sul_core_lives_locked(c)) {
		work(c, ctx);
		sul_core_pump_locked(c, &out);
	}
	spin_unlock(&c->port->lock);
	sul_sending_end(&out);
}

static void timer_has_rung(struct sul_core *c, void *ctx)
{
	c->timer_ns = KTIME_MAX;
}

static enum hrtimer_restart ring(struct hrtimer *timer)
{
	pump(container_of(timer, struct sul_core, timer), timer_has_rung, NULL);
	return HRTIMER_NORESTART;
}

/* --- pages that are not there ---------------------------------------------------------------- */

/* What a request of some rank waits for. */
struct wanted {
	int rank; /* -1: none waits */
	unsigned int window;
	u64 off, bytes;
};

static struct wanted next_wanted(struct sul_core *c)
{
	struct sul_port *p = c->port;
	struct wanted w = { .rank = -1 };

	spin_lock_bh(&p->lock);
	for (u32 r = 0; r < p->spec.ranks && !p->dead; r++) {
		struct sul_far *f = c->far[r];

		if (!f || !f->waits)
			continue;
		f->waits = false;
		w = (struct wanted){ (int)r, f->window, f->off, f->bytes };
		break;
	}
	spin_unlock_bh(&p->lock);
	return w;
}

static void resume(struct sul_core *c, void *ctx)
{
	const struct wanted *w = ctx;

	sul_net_resume(c->net, w->rank);
}

static void wait_again(struct sul_core *c, void *ctx)
{
	const struct wanted *w = ctx;

	env_missing(c, w->rank, w->window, w->off, w->bytes);
	mod_delayed_work(system_unbound_wq, &c->pinner,
			 msecs_to_jiffies(PIN_AGAIN_MS));
}

/* The owner has taken away what it has promised: nobody can be served any more. */
static void give_up(struct sul_core *c, void *ctx)
{
	struct sul_port *p = c->port;

	sul_port_bury_locked(p, p->spec.rank);
	p->dead = true;
	queue_work(system_unbound_wq, &p->ending);
}

static void pin_wanted(struct work_struct *work)
{
	struct sul_core *c =
		container_of(to_delayed_work(work), struct sul_core, pinner);
	struct wanted w;

	while ((w = next_wanted(c)).rank >= 0) {
		int err = sul_window_pin(c->port, w.window, w.off, w.bytes);

		sul_linger(SUL_PLACE_worker);
		if (!err)
			pump(c, resume, &w);
		else if (err == -EFAULT)
			pump(c, give_up, NULL);
		else if (err != -EHOSTDOWN)
			pump(c, wait_again, &w);
		if (err)
			return;
		cond_resched(); /* who has been told so goes first */
		sul_window_pin_ahead(c->port, w.window, w.off);
	}
}

/* --- START --------------------------------------------------------------------------------------- */

static int open_net(struct sul_core *c, struct sul_net **out)
{
	const struct sul_port *p = c->port;
	const struct sul_port_spec *s = &p->spec;
	struct sul_net_config cfg = {
		.rank = (int)s->rank,
		.ranks = (int)s->ranks,
		.windows = p->shape.windows,
		.packet_bytes = s->packet_bytes,
		.span = s->span,
		.auth = (enum sul_net_auth)s->auth,
		.session = s->session,
		.silence_ns = s->silence_ns,
		.copy = true,
		.batch = 1, /* each goes into a packet of its own at once */
		.env = &env,
		.env_ctx = c,
	};
	int err;

	for (unsigned int w = 0; w < cfg.windows; w++)
		cfg.window[w].bytes = p->shape.bytes[w];
	memcpy(cfg.key, s->key, sizeof(cfg.key));
	c->opening = true;
	err = sul_net_open(out, &cfg);
	c->opening = false;
	memzero_explicit(&cfg, sizeof(cfg));
	return err;
}

int sul_core_start(struct sul_port *p)
{
	struct sul_core *c = p->core;
	struct sul_net *net;
	int err;

	if (!c)
		return 0;
	err = open_net(c, &net);
	if (err)
		return err;
	spin_lock_bh(&p->lock);
	c->net = net;
	spin_unlock_bh(&p->lock);
	return 0;
}

/* --- SOCKET ----------------------------------------------------------------------------------------- */

static size_t core_bytes(const struct sul_port *p)
{
	return sizeof(struct sul_core) +
	       p->spec.ranks * sizeof(struct sul_far *);
}

static struct sul_core *make_core(struct sul_port *p)
{
	struct sul_core *c;

	if (sul_port_charge(p, core_bytes(p)))
		return ERR_PTR(-ENOBUFS);
	c = kvzalloc(core_bytes(p), SUL_GFP);
	if (!c) {
		sul_port_uncharge(p, core_bytes(p));
		return ERR_PTR(-ENOMEM);
	}
	c->port = p;
	c->far = (struct sul_far **)(c + 1);
	c->timer_ns = KTIME_MAX;
	c->random = get_random_u64() | 1;
	sul_hrtimer_setup(&c->timer, ring);
	INIT_DELAYED_WORK(&c->pinner, pin_wanted);
	init_waitqueue_head(&c->room);
	return c;
}

static long add_socket(struct sul_port *p, int fd)
{
	struct sul_core *c = p->core;
	int err;

	if (p->stage >= SUL_STAGE_START)
		return -EALREADY;
	if (!c) {
		c = make_core(p);
		if (IS_ERR(c))
			return PTR_ERR(c);
		p->core = c;
	}
	if (c->tunnels == SUL_ABI_PATHS_MAX)
		return -E2BIG;
	err = sul_tunnel_open(c, &c->tunnel[c->tunnels], fd);
	if (!err)
		c->tunnels++;
	return err;
}

long sul_core_socket(struct sul_port *p, const struct sul_socket_spec *s)
{
	long err;

	mutex_lock(&p->setup);
	err = p->ended ? -EINVAL : add_socket(p, s->fd);
	mutex_unlock(&p->setup);
	return err;
}

/* --- PEER -------------------------------------------------------------------------------------------- */

static void free_far(struct sul_core *c, struct sul_far *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < f->paths; i++)
		sul_route_close(&f->path[i]);
	kfree(f);
	sul_port_uncharge(c->port, sizeof(*f));
}

static struct sul_far *make_far(struct sul_core *c,
				const struct sul_peer_spec *s)
{
	struct sul_far *f;
	int err = 0;

	if (sul_port_charge(c->port, sizeof(*f)))
		return ERR_PTR(-ENOBUFS);
	f = kzalloc(sizeof(*f), SUL_GFP);
	if (!f) {
		sul_port_uncharge(c->port, sizeof(*f));
		return ERR_PTR(-ENOMEM);
	}
	while (f->paths < s->paths && !err) {
		err = sul_route_open(c, &f->path[f->paths], &s->path[f->paths]);
		f->paths += !err;
	}
	if (!err)
		return f;
	free_far(c, f);
	return ERR_PTR(err);
}

/* What all its paths can take. */
static unsigned int packet_bytes(const struct sul_peer_spec *s)
{
	u32 most = s->packet_bytes;

	for (u32 i = 0; i < s->paths; i++)
		most = min(most, s->path[i].packet_bytes);
	return most;
}

/* A link is made in @memory, and the first packet says so. */
static int join(struct sul_core *c, const struct sul_peer_spec *s,
		struct sul_far *f, void *memory)
{
	struct sul_port *p = c->port;
	struct sk_buff_head out;
	int err = -EHOSTDOWN;

	sul_sending_begin(&out);
	spin_lock(&p->lock);
	if (sul_core_lives_locked(c))
		err = sul_net_peer(c->net, (int)s->rank, s->session,
				   packet_bytes(s), s->paths);
	if (!err) {
		c->far[s->rank] = f;
		err = sul_net_link_make(c->net, (int)s->rank, memory);
		sul_core_pump_locked(c, &out);
	}
	spin_unlock(&p->lock);
	sul_sending_end(&out);
	return err;
}

static long add_peer(struct sul_core *c, const struct sul_peer_spec *s)
{
	size_t bytes = sul_net_link_bytes(c->port->spec.packet_bytes,
					  c->port->spec.span);
	struct sul_far *f = make_far(c, s);
	void *memory;
	int err;

	if (IS_ERR(f))
		return PTR_ERR(f);
	c->opening = true;
	memory = env_alloc(c, bytes);
	c->opening = false;
	if (!memory) {
		free_far(c, f);
		return -ENOBUFS;
	}
	for (unsigned int i = 0; i < f->paths; i++)
		sul_route_join(&f->path[i]);
	err = join(c, s, f, memory);
	if (!err)
		return 0;
	env_free(c, memory, bytes);
	free_far(c, f);
	return err;
}

static bool is_far_peer(const struct sul_port *p, const struct sul_peer_spec *s)
{
	if (s->flags || s->reserved || s->timeout_ms || !s->session ||
	    s->rank >= p->spec.ranks || s->rank == p->spec.rank || !s->paths ||
	    s->paths > SUL_ABI_PATHS_MAX)
		return false;
	for (u32 i = s->paths; i < SUL_ABI_PATHS_MAX; i++)
		if (memchr_inv(&s->path[i], 0, sizeof(s->path[i])))
			return false;
	return true;
}

long sul_core_peer(struct sul_port *p, const struct sul_peer_spec *s)
{
	struct sul_core *c = p->core;
	long err;

	if (!is_far_peer(p, s) || !c || sul_port_stage(p) < SUL_STAGE_START)
		return -EINVAL;
	mutex_lock(&p->setup);
	if (sul_port_near(p, s->rank))
		err = -EEXIST;
	else
		err = p->ended ? -EHOSTDOWN : add_peer(c, s);
	mutex_unlock(&p->setup);
	return err;
}

bool sul_core_has_peer(const struct sul_port *p, u32 rank)
{
	lockdep_assert_held(&p->setup);
	return p->core && p->core->far[rank];
}

/* --- the end ------------------------------------------------------------------------------------------- */

void sul_core_count_locked(const struct sul_core *c, u64 count[SUL_COUNT_NR])
{
	const struct sul_net_stats *s;

	if (!c || !c->net)
		return;
	s = sul_net_stats(c->net);
#define NET(name, doc) count[SUL_COUNT_##name] = s->name;
#include "sul_net.def"
}

/* Nobody works on it any more. */
static void close_net(struct sul_core *c)
{
	struct sul_port *p = c->port;
	struct sul_net *net;

	spin_lock_bh(&p->lock);
	sul_core_count_locked(c, p->count);
	net = c->net;
	c->net = NULL;
	spin_unlock_bh(&p->lock);
	sul_net_close(net);
}

void sul_core_stop(struct sul_port *p)
{
	struct sul_core *c = p->core;

	if (!c)
		return;
	tell_arrival(c);
	for (unsigned int i = 0; i < c->tunnels; i++)
		sul_tunnel_stop(&c->tunnel[i]);
	hrtimer_cancel(&c->timer);
	if (SUL_BROKEN(worker_left))
		cancel_delayed_work(&c->pinner);
	else
		cancel_delayed_work_sync(&c->pinner);
	if (!SUL_BROKEN(packet_left))
		synchronize_net();
	close_net(c);
	for (u32 r = 0; r < p->spec.ranks; r++) {
		free_far(c, c->far[r]);
		c->far[r] = NULL;
	}
	for (unsigned int i = 0; i < c->tunnels; i++)
		sul_tunnel_close(&c->tunnel[i]);
	c->tunnels = 0;
}

void sul_core_free(struct sul_port *p)
{
	kvfree(p->core);
	p->core = NULL;
}
