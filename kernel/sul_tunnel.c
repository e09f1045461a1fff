// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_tunnel.c - packets between the core and the kernel's UDP.
 *
 * Role:      takes over a process's sockets, so that what comes to them comes here in
 *            softirq; sends over them, by routes that are remembered.
 * Invariant: a packet is copied into a buffer of its own under port->lock and leaves
 *            without it.  Not a byte leaves that was not written.
 * Context:   receive() softirq; transmitting any; the rest process.
 * Locks:     port->lock, in receive().
 *
 * The process may keep a descriptor of the socket: it can send over it (as over any
 * other of its sockets: nobody believes what has no code), but nothing comes to it.
 * When the port ends, the socket is an ordinary one again.
 *
 * Interfaces that go away: a remembered route names its device until the routing
 * table has let go of it and put another one in its place; it is not held here.
 */
#include <linux/net.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#include "sul_compat.h"
#include "sul_core.h"

enum {
	/* What is put in front of our bytes. */
	HEADROOM =
		LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr),
	SHORT_BYTES =
		PAGE_SIZE / 2, /* of a buffer, with what the kernel adds */
	/* Every network carries so much in one piece. */
	WHOLE_BYTES = SUL_NET_PACKET_MIN,
};

/* Between making a packet and transmitting it. */
struct leaving {
	struct sul_route *route;
};

static struct leaving *leaving_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct leaving) > sizeof(skb->cb));
	return (struct leaving *)skb->cb;
}

/* --- sending --------------------------------------------------------------------------- */

/*
 * What is short lies behind others in a page that the processor keeps, as drivers
 * do it for what comes in: no allocation, and nothing is cleared that is written
 * anyway.
 */
static struct sk_buff *make_buffer(size_t bytes)
{
	size_t all = SKB_DATA_ALIGN(bytes) +
		     SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *data;

	if (all > SHORT_BYTES)
		return alloc_skb(bytes, GFP_ATOMIC | __GFP_NOWARN);
	data = napi_alloc_frag(all);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, all);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

struct sk_buff *sul_tunnel_packet_locked(struct sul_core *c,
					 const struct sul_packet *k)
{
	struct sul_far *f = c->far[k->rank];
	struct sk_buff *skb;

	if (sul_loss_of_any_locked(c) || sul_loss_of_kind_locked(c, k->kind) ||
	    k->path >= f->paths)
		return NULL;
	skb = make_buffer(HEADROOM + k->head_len + k->body_len);
	if (!skb)
		return NULL;
	skb_reserve(skb, HEADROOM);
	skb_put_data(skb, k->head, k->head_len);
	if (k->body_len)
		skb_put_data(skb, k->body, k->body_len);
	leaving_of(skb)->route = &f->path[k->path];
	return skb;
}

static struct sock *sock_of(const struct sul_route *r)
{
	return r->tunnel->sock->sk;
}

static struct flowi4 flow_v4(const struct sul_route *r)
{
	struct sock *sk = sock_of(r);

	return (struct flowi4){
		.saddr = sk->sk_family == AF_INET ? inet_sk(sk)->inet_saddr : 0,
		.daddr = r->addr.v4,
		.fl4_sport = inet_sk(sk)->inet_sport,
		.fl4_dport = r->port,
		.flowi4_proto = IPPROTO_UDP,
		.flowi4_oif = READ_ONCE(sk->sk_bound_dev_if),
	};
}

static struct rtable *find_route_v4(struct sul_route *r, __be32 *source)
{
	struct sock *sk = sock_of(r);
	struct flowi4 fl = flow_v4(r);
	struct rtable *rt = ip_route_output_flow(sock_net(sk), &fl, sk);

	if (!IS_ERR(rt))
		dst_cache_set_ip4(&r->cache, &rt->dst, fl.saddr);
	*source = fl.saddr;
	return rt;
}

/* With a reference; *@source: our address on it. */
static struct rtable *route_v4(struct sul_route *r, __be32 *source)
{
	struct rtable *rt = dst_cache_get_ip4(&r->cache, source);

	return likely(rt) ? rt : find_route_v4(r, source);
}

/* Our code says more than a checksum; without one there has to be one. */
static bool needs_sum(const struct sul_route *r)
{
	return r->tunnel->core->port->spec.auth == SUL_ABI_AUTH_OFF;
}

static void push_udp(const struct sul_route *r, struct sk_buff *skb,
		     __be32 source)
{
	struct udphdr *udp = __skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = inet_sk(sock_of(r))->inet_sport;
	udp->dest = r->port;
	udp->len = htons((u16)skb->len);
	udp_set_csum(!needs_sum(r), skb, source, r->addr.v4, (int)skb->len);
}

/* A number is for what may have to be put together again. */
static void push_ip(const struct sul_route *r, struct sk_buff *skb,
		    const struct rtable *rt, __be32 source)
{
	bool whole = skb->len <= WHOLE_BYTES + sizeof(struct udphdr);
	struct iphdr *ip = __skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.ttl = (u8)ip4_dst_hoplimit(&rt->dst),
		.protocol = IPPROTO_UDP,
		.saddr = source,
		.daddr = r->addr.v4,
	};
	if (whole && !ip_mtu_locked(&rt->dst))
		ip->frag_off = htons(IP_DF);
	else
		__ip_select_ident(sock_net(sock_of(r)), ip, 1);
}

/*
 * As udp_tunnel_xmit_skb() would send it, without what a packet that comes from
 * another interface needs.
 */
static int send_v4(struct sul_route *r, struct sk_buff *skb)
{
	struct sock *sk = sock_of(r);
	__be32 source;
	struct rtable *rt = route_v4(r, &source);

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	push_udp(r, skb, source);
	push_ip(r, skb, rt, source);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	skb_dst_set(skb, &rt->dst);
	ip_local_out(sock_net(sk), sk, skb);
	return 0;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *route_v6(struct sul_route *r, struct flowi6 *fl)
{
	struct sock *sk = sock_of(r);
	struct dst_entry *dst = dst_cache_get_ip6(&r->cache, &fl->saddr);

	if (dst)
		return dst;
	dst = ipv6_stub->ipv6_dst_lookup_flow(sock_net(sk), sk, fl, NULL);
	if (!IS_ERR(dst))
		dst_cache_set_ip6(&r->cache, dst, &fl->saddr);
	return dst;
}

static struct flowi6 flow_v6(const struct sul_route *r)
{
	struct sock *sk = sock_of(r);
	int interface = READ_ONCE(sk->sk_bound_dev_if);

	return (struct flowi6){
		.saddr = inet6_sk(sk)->saddr,
		.daddr = r->addr.v6,
		.fl6_sport = inet_sk(sk)->inet_sport,
		.fl6_dport = r->port,
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_oif = interface ?: r->interface,
	};
}

static int send_v6(struct sul_route *r, struct sk_buff *skb)
{
	struct flowi6 fl = flow_v6(r);
	struct dst_entry *dst = route_v6(r, &fl);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	sul_udp6_xmit(dst, sock_of(r), skb, &fl);
	return 0;
}
#else
static int send_v6(struct sul_route *r, struct sk_buff *skb)
{
	return -EAFNOSUPPORT;
}
#endif

void sul_tunnel_transmit(struct sk_buff_head *list)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(list))) {
		struct sul_route *r = leaving_of(skb)->route;
		int err;

		skb->ignore_df = 1; /* rather in pieces than not at all */
		err = r->family == AF_INET ? send_v4(r, skb) : send_v6(r, skb);
		if (err)
			kfree_skb(skb); /* lost, as on any network */
	}
}

/* --- receiving ---------------------------------------------------------------------------- */

/* One piece, behind UDP's header, that we may write to. */
static bool make_plain(struct sk_buff *skb)
{
	if (!pskb_may_pull(skb, sizeof(struct udphdr)))
		return false;
	__skb_pull(skb, sizeof(struct udphdr));
	return !skb_linearize(skb) && !skb_cow(skb, 0);
}

static void take_in(const struct sul_tunnel *t, struct sk_buff *skb)
{
	struct sul_core *c = t->core;
	struct sk_buff_head out;

	__skb_queue_head_init(&out);
	sul_linger_spin(SUL_PLACE_packet);
	spin_lock(&c->port->lock);
	sul_trace(c->port, SUL_TRACE_ARRIVED);
	if (sul_core_lives_locked(c))
		sul_core_take_locked(c, t->nr, skb->data, skb->len, &out);
	spin_unlock(&c->port->lock);
	sul_tunnel_transmit(&out);
}

static int receive(struct sock *sk, struct sk_buff *skb)
{
	const struct sul_tunnel *t = rcu_dereference_sk_user_data(sk);

	if (t && make_plain(skb))
		take_in(t, skb);
	napi_consume_skb(skb, 1); /* to those that the next one is made of */
	return 0;
}

/* --- sockets -------------------------------------------------------------------------------- */

static int check_socket(const struct sul_core *c, const struct socket *sock)
{
	const struct sock *sk = sock->sk;

	if (sk->sk_protocol != IPPROTO_UDP || sk->sk_type != SOCK_DGRAM ||
	    (sk->sk_family != AF_INET && sk->sk_family != AF_INET6))
		return -EPROTOTYPE;
	if (!net_eq(sock_net(sk), c->port->net))
		return -EXDEV;
	if (!inet_sk(sk)->inet_num || sk->sk_state == TCP_ESTABLISHED)
		return -EINVAL;
	return 0;
}

/* Whoever finds it taken does not take it. */
static int claim(struct sock *sk, struct sul_tunnel *t)
{
	int err = 0;

	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data || udp_sk(sk)->encap_type)
		err = -EBUSY;
	else
		rcu_assign_sk_user_data(sk, t);
	write_unlock_bh(&sk->sk_callback_lock);
	return err;
}

static void take_over(const struct sul_core *c, struct socket *sock,
		      struct sul_tunnel *t)
{
	struct udp_tunnel_sock_cfg cfg = {
		.sk_user_data = t,
		.encap_type = 1,
		.encap_rcv = receive,
	};

	setup_udp_tunnel_sock(c->port->net, sock, &cfg);
}

int sul_tunnel_open(struct sul_core *c, struct sul_tunnel *t, int fd)
{
	struct socket *sock;
	int err;

	sock = sockfd_lookup(fd, &err);
	if (!sock)
		return err;
	err = check_socket(c, sock);
	if (!err) {
		t->core = c;
		t->sock = sock;
		t->nr = c->tunnels;
		err = claim(sock->sk, t);
	}
	if (err) {
		sockfd_put(sock);
		return err;
	}
	take_over(c, sock, t);
	return 0;
}

static void let_go(struct sock *sk)
{
	WRITE_ONCE(udp_sk(sk)->encap_type, 0);
	WRITE_ONCE(udp_sk(sk)->encap_rcv, NULL);
	rcu_assign_sk_user_data(sk, NULL);
}

void sul_tunnel_stop(struct sul_tunnel *t)
{
	if (t->joined)
		let_go(t->joined->sk);
	let_go(t->sock->sk);
}

void sul_tunnel_close(struct sul_tunnel *t)
{
	if (t->joined)
		sock_release(t->joined);
	sockfd_put(t->sock);
	t->joined = t->sock = NULL;
}

/* --- a socket for one of the far ranks ---------------------------------------------------- */

/*
 * For a packet that comes to a socket which is connected to where it comes from, the
 * kernel asks for no route, and for no socket twice; but of all that share an address
 * it looks at the one only that was bound last.  So the first far rank of each socket
 * gets one next to it, over which nothing is sent.  What does not fit there, since
 * somebody on the way has changed the addresses, comes to the other one as ever.
 */
static bool is_served(const struct sul_route *r)
{
	return sock_of(r)->sk_family == r->family && !r->tunnel->joined;
}

static void set_shared(struct sock *sk, bool shared)
{
	lock_sock(sk);
	sk->sk_reuseport = shared;
	release_sock(sk);
}

/*
 * The address is both's, and nobody else's.  For as long as binding takes it is
 * shared with sockets of the same user (SO_REUSEPORT, and not SO_REUSEADDR, with
 * which anybody could get in between and take packets away).  Afterwards neither
 * is chosen as one of a group: the connected one has what fits it.
 */
static int bind_next_to(struct socket *sock, struct socket *main)
{
	struct sockaddr_storage at = { 0 };
	int len = kernel_getsockname(main, (struct sockaddr *)&at);

	if (len < 0)
		return len;
	sock->sk->sk_bound_dev_if = main->sk->sk_bound_dev_if;
	set_shared(sock->sk, true);
	set_shared(main->sk, true);
	len = kernel_bind(sock, (struct sockaddr *)&at, len);
	set_shared(sock->sk, false);
	set_shared(main->sk, false);
	return len;
}

static int connect_to(struct socket *sock, const struct sul_route *r)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = r->port,
				  .sin_addr.s_addr = r->addr.v4 };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = r->port,
				   .sin6_scope_id = (u32)r->interface };

	if (r->family == AF_INET)
		return kernel_connect(sock, (struct sockaddr *)&v4, sizeof(v4),
				      0);
	v6.sin6_addr = r->addr.v6;
	return kernel_connect(sock, (struct sockaddr *)&v6, sizeof(v6), 0);
}

void sul_route_join(const struct sul_route *r)
{
	struct sul_tunnel *t = r->tunnel;
	struct socket *sock;
	int err;

	if (!is_served(r) || sock_create_kern(t->core->port->net, r->family,
					      SOCK_DGRAM, IPPROTO_UDP, &sock))
		return;
	take_over(t->core, sock, t); /* before anything comes */
	err = bind_next_to(sock, t->sock);
	if (!err)
		err = connect_to(sock, r);
	if (!err) {
		t->joined = sock;
		return;
	}
	let_go(sock->sk);
	synchronize_net();
	sock_release(sock);
}

/* --- routes ----------------------------------------------------------------------------------- */

/* The address, as packets to it will have it. */
static int read_address(struct sul_route *r, const struct sul_peer_path *p)
{
	const struct in6_addr *v6 = (const struct in6_addr *)p->addr;

	r->family = p->family;
	if (p->family == AF_INET) {
		memcpy(&r->addr.v4, p->addr, sizeof(r->addr.v4));
		return memchr_inv(p->addr + 4, 0, sizeof(p->addr) - 4) ?
			       -EINVAL :
			       0;
	}
	if (p->family != AF_INET6)
		return -EINVAL;
	if (ipv6_addr_v4mapped(v6)) {
		r->family = AF_INET;
		r->addr.v4 = v6->s6_addr32[3];
		return 0;
	}
	r->addr.v6 = *v6;
	return sock_of(r)->sk_family == AF_INET6 ? 0 : -EINVAL;
}

/* Is there a way there now?  That is what it will go by. */
static int look_up(struct sul_route *r)
{
	int err = 0;

	local_bh_disable();
	if (r->family == AF_INET) {
		__be32 source;
		struct rtable *rt = route_v4(r, &source);

		if (IS_ERR(rt))
			err = -EHOSTUNREACH;
		else
			ip_rt_put(rt);
#if IS_ENABLED(CONFIG_IPV6)
	} else {
		struct flowi6 fl = flow_v6(r);
		struct dst_entry *dst = route_v6(r, &fl);

		if (IS_ERR(dst))
			err = -EHOSTUNREACH;
		else
			dst_release(dst);
#endif
	}
	local_bh_enable();
	return err;
}

int sul_route_open(struct sul_core *c, struct sul_route *r,
		   const struct sul_peer_path *p)
{
	int err;

	if (!p->port || p->socket >= c->tunnels ||
	    p->packet_bytes < SUL_NET_PACKET_MIN ||
	    p->packet_bytes > SUL_NET_PACKET_MAX)
		return -EINVAL;
	r->tunnel = &c->tunnel[p->socket];
	r->port = htons(p->port);
	r->interface = (int)p->scope;
	err = read_address(r, p);
	if (err)
		return err;
	err = dst_cache_init(&r->cache, SUL_GFP);
	if (err)
		return err;
	err = look_up(r);
	if (err)
		sul_route_close(r);
	return err;
}

void sul_route_close(struct sul_route *r)
{
	dst_cache_destroy(&r->cache);
}
