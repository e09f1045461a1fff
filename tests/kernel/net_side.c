/* SPDX-License-Identifier: MIT */
/*
 * net_side.c - the two kinds of a side (net.h).
 *
 * Role:    opens them and issues operations.
 * Threads: the test's; a side without the module has one that moves its packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net.h"
#include "sul_clock.h"
#include "sul_heap.h"
#include "sul_udp.h"

enum {
	FLUSH_SECONDS = 60,
	SESSION = 77, /* and the rank */
};

void net_die(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s: %s\n",
	       strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what,
	       strerror(errno));
	exit(1);
}

void net_enter(const char *ns)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	NET_MUST(fd >= 0 && !setns(fd, CLONE_NEWNET));
	close(fd);
}

/* --- addresses ---------------------------------------------------------------------- */

static socklen_t read_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		return sizeof(*v4);
	}
	NET_MUST(inet_pton(AF_INET6, text, &v6->sin6_addr) == 1);
	v6->sin6_family = AF_INET6;
	return sizeof(*v6);
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					 sizeof(struct sockaddr_in6);
}

static void open_socket(struct net_side *s)
{
	socklen_t len = read_address(s->cfg->address[s->rank], &s->own);
	int bytes = 4 << 20;

	s->sock = socket(s->own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	NET_MUST(s->sock >= 0);
	setsockopt(s->sock, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	NET_MUST(!bind(s->sock, (void *)&s->own, len));
	len = sizeof(s->own);
	NET_MUST(!getsockname(s->sock, (void *)&s->own, &len));
}

/* --- a port of the module ------------------------------------------------------------- */

static void call(struct net_side *s, unsigned long cmd, void *arg)
{
	NET_MUST(!ioctl(s->fd, cmd, arg));
}

static void open_port(struct net_side *s)
{
	const struct net_config *c = s->cfg;
	struct sul_hello hello = { .size = sizeof(hello),
				   .version = SUL_ABI_VERSION };
	struct sul_port_spec spec = {
		.size = sizeof(spec),
		.rank = (uint32_t)s->rank,
		.ranks = 2,
		.flags = c->trace ? SUL_PORT_TRACE : 0,
		.key = { 'n', 'e', 't' },
		.auth = c->auth,
		.session = (uint32_t)(SESSION + s->rank),
		.span = c->span,
		.packet_bytes = c->packet_bytes,
		.silence_ns = c->silence_ns,
		.pin_bytes = (uint64_t)c->pin_pages * NET_PAGE,
		.landing_bytes = NET_LANDING_BYTES,
		.loss_ppm = c->loss_ppm,
	};
	struct sul_socket_spec sock = { .size = sizeof(sock), .fd = s->sock };
	struct sul_start start = { .size = sizeof(start),
				   .windows = NET_WINDOWS };

	s->fd = open("/dev/sul", O_RDWR | O_CLOEXEC);
	NET_MUST(s->fd >= 0);
	call(s, SUL_IOC_HELLO, &hello);
	call(s, SUL_IOC_PORT, &spec);
	call(s, SUL_IOC_SOCKET, &sock);
	close(s->sock);
	for (int w = 0; w < NET_WINDOWS; w++) {
		start.window[w].addr = (uintptr_t)s->window[w];
		start.window[w].bytes = NET_WINDOW_BYTES;
	}
	call(s, SUL_IOC_START, &start);
	s->status = mmap(NULL, NET_PAGE, PROT_READ, MAP_SHARED, s->fd,
			 SUL_MAP_STATUS);
	s->landing = mmap(NULL, NET_LANDING_BYTES, PROT_READ, MAP_SHARED, s->fd,
			  SUL_MAP_LANDING);
	NET_MUST(s->status != MAP_FAILED && s->landing != MAP_FAILED);
}

static void meet_port(struct net_side *s, const struct net_side *other)
{
	const struct sockaddr_in *v4 = (const void *)&other->own;
	const struct sockaddr_in6 *v6 = (const void *)&other->own;
	struct sul_peer_spec p = {
		.size = sizeof(p),
		.rank = (uint32_t)other->rank,
		.session = (uint32_t)(SESSION + other->rank),
		.packet_bytes = s->cfg->packet_bytes,
		.paths = 1,
		.path[0] = { .family = other->own.ss_family,
			     .packet_bytes = s->cfg->packet_bytes },
	};

	if (other->own.ss_family == AF_INET) {
		p.path[0].port = ntohs(v4->sin_port);
		memcpy(p.path[0].addr, &v4->sin_addr, 4);
	} else {
		p.path[0].port = ntohs(v6->sin6_port);
		memcpy(p.path[0].addr, &v6->sin6_addr, 16);
	}
	call(s, SUL_IOC_PEER, &p);
}

void net_submit(struct net_side *s, const struct sul_op *ops, uint32_t nr,
		uint32_t flags)
{
	struct sul_submit u = { .size = sizeof(u),
				.flags = flags,
				.ops = (uintptr_t)ops,
				.nr = nr };

	call(s, SUL_IOC_SUBMIT, &u);
	NET_MUST(u.done == nr);
	s->ticket = u.ticket;
}

void net_counts(const struct net_side *s, uint64_t out[NET_COUNT_NR])
{
	struct sul_count c = { .size = sizeof(c),
			       .nr = NET_COUNT_NR,
			       .values = (uintptr_t)out };

	NET_MUST(!ioctl(s->fd, SUL_IOC_COUNT, &c) && c.nr == NET_COUNT_NR);
}

uint64_t net_count(const struct net_side *s, unsigned int row)
{
	uint64_t values[NET_COUNT_NR];

	net_counts(s, values);
	return values[row];
}

/* --- the library's core --------------------------------------------------------------- */

static void net_word(void *ctx, struct sul_word *word, uint32_t value)
{
	(void)ctx;
	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
}

static void net_dead(void *ctx, int rank)
{
	struct net_side *s = ctx;

	printf("# rank %d is dead, or gone\n", rank);
	__atomic_store_n(&s->missed, true, __ATOMIC_RELEASE);
}

static const struct sul_net_env env = {
	.alloc = sul_heap_alloc,
	.free = sul_heap_free,
	.notify = net_word,
	.dead = net_dead,
	.left = net_dead,
#ifdef SUL_SODIUM
	.seal = sul_aead_seal,
	.open = sul_aead_open,
#endif
};

static void open_core(struct net_side *s)
{
	const struct net_config *c = s->cfg;
	struct sul_net_config cfg = {
		.rank = s->rank,
		.ranks = 2,
		.windows = NET_WINDOWS,
		.packet_bytes = c->packet_bytes,
		.span = c->span,
		.auth = c->auth,
		.key = { 'n', 'e', 't' },
		.session = (uint32_t)(SESSION + s->rank),
		.silence_ns = c->silence_ns,
		.copy = true,
		.env = &env,
		.env_ctx = s,
	};

	for (int w = 0; w < NET_WINDOWS; w++) {
		cfg.window[w].base = s->window[w];
		cfg.window[w].bytes = NET_WINDOW_BYTES;
	}
	NET_MUST(!sul_net_open(&s->net, &cfg));
	pthread_mutex_init(&s->lock, NULL);
	s->landing = calloc(1, NET_LANDING_BYTES);
	NET_MUST(s->landing);
}

static void send_all(struct net_side *s)
{
	static __thread unsigned char packet[SUL_NET_PACKET_MAX];
	struct sul_packet k;

	while (sul_net_output(s->net, sul_now_ns(), &k)) {
		memcpy(packet, k.head, k.head_len);
		if (k.body_len)
			memcpy(packet + k.head_len, k.body, k.body_len);
		sendto(s->sock, packet, k.head_len + k.body_len, 0,
		       (void *)&s->peer, length_of(&s->peer));
	}
}

static void *move_packets(void *arg)
{
	static __thread unsigned char packet[SUL_NET_PACKET_MAX + 1];
	struct net_side *s = arg;
	struct pollfd p = { .fd = s->sock, .events = POLLIN };

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		ssize_t n;

		poll(&p, 1, 1);
		pthread_mutex_lock(&s->lock);
		while ((n = recv(s->sock, packet, sizeof(packet),
				 MSG_DONTWAIT)) >= 0)
			sul_net_input(s->net, sul_now_ns(), 0, packet,
				      (size_t)n);
		send_all(s);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static void meet_core(struct net_side *s, const struct net_side *other)
{
	s->peer = other->own;
	NET_MUST(!sul_net_peer(s->net, other->rank,
			       (uint32_t)(SESSION + other->rank),
			       s->cfg->packet_bytes, 1));
	NET_MUST(!pthread_create(&s->thread, NULL, move_packets, s));
}

/* --- either ------------------------------------------------------------------------------ */

void net_side_open(struct net_side *s, const struct net_config *cfg, int rank)
{
	memset(s, 0, sizeof(*s));
	s->rank = rank;
	s->cfg = cfg;
	s->module = cfg->module[rank];
	net_enter(cfg->ns[rank]);
	for (int w = 0; w < NET_WINDOWS; w++) {
		s->window[w] = mmap(NULL, NET_WINDOW_BYTES,
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NET_MUST(s->window[w] != MAP_FAILED);
	}
	open_socket(s);
	if (s->module)
		open_port(s);
	else
		open_core(s);
}

void net_side_meet(struct net_side *s, const struct net_side *other)
{
	if (s->module)
		meet_port(s, other);
	else
		meet_core(s, other);
}

void net_side_close(struct net_side *s)
{
	if (s->module) {
		munmap((void *)(uintptr_t)s->status, NET_PAGE);
		munmap(s->landing, NET_LANDING_BYTES);
		close(s->fd);
	} else {
		__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
		pthread_join(s->thread, NULL);
		sul_net_close(s->net);
		close(s->sock);
		free(s->landing);
	}
	for (int w = 0; w < NET_WINDOWS; w++)
		munmap(s->window[w], NET_WINDOW_BYTES);
}

void net_sides_open(struct net_side s[2], const struct net_config *cfg)
{
	for (int i = 0; i < 2; i++)
		net_side_open(&s[i], cfg, i);
	for (int i = 0; i < 2; i++)
		net_side_meet(&s[i], &s[1 - i]);
}

void net_sides_close(struct net_side s[2])
{
	for (int i = 0; i < 2; i++)
		net_side_close(&s[i]);
}

/* --- operations ----------------------------------------------------------------------------- */

/* Try @issue until there is room; the thread makes it. */
#define PATIENTLY(s, issue)                               \
	do {                                              \
		int err_;                                 \
                                                          \
		pthread_mutex_lock(&(s)->lock);           \
		while ((err_ = (issue)) == -EAGAIN) {     \
			send_all(s);                      \
			pthread_mutex_unlock(&(s)->lock); \
			usleep(100);                      \
			pthread_mutex_lock(&(s)->lock);   \
		}                                         \
		errno = -err_;                            \
		NET_MUST(!err_);                          \
		send_all(s);                              \
		pthread_mutex_unlock(&(s)->lock);         \
	} while (0)

static struct sul_op op_of(const struct net_side *s, enum sul_op_kind kind,
			   unsigned int w, uint64_t off)
{
	return (struct sul_op){ .kind = (uint8_t)kind,
				.rank = (uint32_t)(1 - s->rank),
				.window = (uint16_t)w,
				.off = off };
}

void net_put(struct net_side *s, unsigned int w, uint64_t off, const void *src,
	     size_t len)
{
	struct sul_op op = op_of(s, SUL_OP_PUT, w, off);
	size_t done = 0;

	if (!s->module) {
		PATIENTLY(s, sul_net_put(s->net, 1 - s->rank, w, off, src, len,
					 &done));
		return;
	}
	op.len = (uint32_t)len;
	op.addr = (uintptr_t)src;
	if (len <= SUL_ABI_INLINE_MAX) {
		op.flags = SUL_OP_INLINE;
		op.addr = 0;
		memcpy(op.data, src, len);
	}
	net_submit(s, &op, 1, 0);
}

void net_putv(struct net_side *s, unsigned int w, uint64_t off, const void *src,
	      const struct sul_run *runs, uint32_t nr,
	      const struct sul_mirror *mirror)
{
	struct sul_op op = op_of(s, SUL_OP_PUTV, w, off);
	size_t done = 0;

	if (!s->module) {
		PATIENTLY(s, sul_net_putv(s->net, 1 - s->rank, w, off, src,
					  runs, nr, mirror, &done));
		return;
	}
	op.addr = (uintptr_t)src;
	op.runs.addr = (uintptr_t)runs;
	op.runs.nr = nr;
	if (mirror) {
		op.flags = SUL_OP_MIRROR;
		op.runs.flag_window = mirror->flag_window;
		op.runs.flag_off = mirror->flag_off;
		op.runs.window = mirror->window;
	}
	net_submit(s, &op, 1, 0);
}

void net_get(struct net_side *s, unsigned int w, uint64_t off, uint32_t land,
	     uint32_t len, const struct sul_mark *marks, uint32_t nr)
{
	struct sul_op op = op_of(s, SUL_OP_GET, w, off);
	size_t done = 0;

	if (!s->module) {
		PATIENTLY(s, sul_net_get(s->net, 1 - s->rank, w, off,
					 s->landing + land, len, marks, nr,
					 &done));
		return;
	}
	op.len = len;
	op.land = land;
	op.marks.addr = (uintptr_t)marks;
	op.marks.nr = nr;
	net_submit(s, &op, 1, 0);
}

void net_amo(struct net_side *s, unsigned int w, uint64_t off,
	     enum sul_amo_op op, uint64_t operand, uint64_t comparand, bool old,
	     uint32_t land)
{
	struct sul_op o = op_of(s, SUL_OP_AMO, w, off);

	if (!s->module) {
		PATIENTLY(s, sul_net_amo(s->net, 1 - s->rank, w, off, op,
					 operand, comparand,
					 old ? (void *)(s->landing + land) :
					       NULL));
		return;
	}
	o.amo.op = op;
	o.amo.operand = operand;
	o.amo.comparand = comparand;
	if (old) {
		o.flags = SUL_OP_OLD;
		o.land = land;
	}
	net_submit(s, &o, 1, 0);
}

void net_notify(struct net_side *s, unsigned int w, uint64_t off,
		uint32_t value)
{
	struct sul_op op = op_of(s, SUL_OP_NOTIFY, w, off);

	if (!s->module) {
		PATIENTLY(s,
			  sul_net_notify(s->net, 1 - s->rank, w, off, value));
		return;
	}
	op.notify.value = value;
	net_submit(s, &op, 1, 0);
}

void net_message(struct net_side *s, const struct sul_message *m)
{
	struct sul_op op = op_of(s, SUL_OP_MESSAGE, m->window, m->off);

	if (!s->module) {
		PATIENTLY(s, sul_net_message(s->net, 1 - s->rank, m));
		return;
	}
	op.len = (uint32_t)m->len;
	op.addr = (uintptr_t)m->src;
	for (int i = 0; i < 2; i++) {
		op.message.word[i] = (uint32_t)m->word[i];
		op.message.value[i] = m->value[i];
	}
	if (m->len <= SUL_ABI_MESSAGE_INLINE_MAX) {
		op.flags = SUL_OP_INLINE;
		op.addr = 0;
		memcpy(op.message.data, m->src, m->len);
	}
	net_submit(s, &op, 1, 0);
}

void net_farewell(struct net_side *s)
{
	struct sul_op op = op_of(s, SUL_OP_FAREWELL, 0, 0);

	if (s->module)
		net_submit(s, &op, 1, 0);
	else
		PATIENTLY(s, sul_net_farewell(s->net, 1 - s->rank));
}

static bool is_quiet(struct net_side *s)
{
	bool quiet;

	if (s->module)
		return __atomic_load_n(&s->status->executed,
				       __ATOMIC_ACQUIRE) >= s->ticket;
	pthread_mutex_lock(&s->lock);
	sul_net_hurry(s->net);
	send_all(s);
	quiet = sul_net_quiet(s->net);
	pthread_mutex_unlock(&s->lock);
	return quiet;
}

bool net_flush(struct net_side *s)
{
	uint64_t end = sul_now_ns() + FLUSH_SECONDS * UINT64_C(1000000000);

	if (s->module)
		net_submit(s, NULL, 0, SUL_SUBMIT_HURRY);
	while (!is_quiet(s)) {
		if (sul_now_ns() > end || (s->module && s->status->dead))
			return false;
		sched_yield();
	}
	return s->module || !sul_net_error(s->net);
}
