/* SPDX-License-Identifier: MIT */
/* sul_fake.c - see sul_fake.h: the calls of /dev/sul, and who waits in them. */
#include "sul_fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sul_check.h"
#include "sul_clock.h"
#include "sul_fake_port.h"

enum {
	PORTS = 16,
	PAGE = 4096,
};

/* What ranks of one host have in common, though they be forked. */
struct fake_host {
	uint32_t session[FAKE_RANKS]; /* of a port that has started; 0: none */
	uint32_t news[FAKE_RANKS]; /* sleepers of that rank look again */
};

static struct fake_sul {
	struct fake_sul_config cfg;
	struct fake_host *host; /* shared */
	pthread_mutex_t lock; /* of the list, and of ports' beginning and end */
	struct fake_port port[PORTS];
	struct sul_port_spec spec;
	unsigned long calls[FAKE_CALLS];
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

void fake_sul_begin(const struct fake_sul_config *cfg)
{
	if (fake.host)
		munmap(fake.host, PAGE);
	fake.host = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fake.host == MAP_FAILED)
		abort();
	fake.cfg = *cfg;
	memset(fake.calls, 0, sizeof(fake.calls));
	memset(&fake.spec, 0, sizeof(fake.spec));
}

unsigned long fake_sul_calls(unsigned long request)
{
	return __atomic_load_n(&fake.calls[_IOC_NR(request)], __ATOMIC_RELAXED);
}

struct sul_port_spec fake_sul_spec(void)
{
	return fake.spec;
}

/* Without the lock: a handler of a signal may have interrupted a WAIT here. */
static struct fake_port *port_of(int fd)
{
	for (int i = 0; i < PORTS; i++)
		if (__atomic_load_n(&fake.port[i].fd, __ATOMIC_ACQUIRE) == fd)
			return &fake.port[i];
	return NULL;
}

struct fake_port *fake_near_get(uint32_t rank)
{
	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < PORTS; i++)
		if (fake.port[i].fd && fake.port[i].started &&
		    fake.port[i].spec.rank == rank)
			return &fake.port[i];
	fake_near_put();
	return NULL;
}

void fake_near_put(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* --- sleeping and waking ----------------------------------------------------------- */

void fake_wake(uint32_t rank)
{
	__atomic_fetch_add(&fake.host->news[rank], 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &fake.host->news[rank], FUTEX_WAKE, INT_MAX, NULL,
		NULL, 0);
}

void fake_store_word(uint32_t rank, struct sul_word *word, uint32_t value)
{
	__atomic_store_n(&word->value, value, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&word->sleepers, __ATOMIC_RELAXED) >=
	    SUL_WORD_SLEEPER)
		fake_wake(rank);
}

void fake_set_rank(__u64 *bits, int rank)
{
	__atomic_fetch_or(&bits[rank / 64], 1ull << rank % 64,
			  __ATOMIC_RELEASE);
}

void fake_note_death(struct fake_port *p, int rank)
{
	if (!__atomic_load_n(&p->status->dead, __ATOMIC_ACQUIRE))
		__atomic_store_n(&p->status->dead, (uint32_t)rank + 1,
				 __ATOMIC_RELEASE);
	fake_set_rank(p->status->down, rank);
	__atomic_fetch_add(&p->status->deaths, 1, __ATOMIC_RELEASE);
	p->peer[rank].gone = true;
	fake_wake(p->spec.rank);
}

void fake_sul_kill(int rank)
{
	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < PORTS; i++)
		if (fake.port[i].fd && fake.port[i].peer[rank].known)
			fake_note_death(&fake.port[i], rank);
	pthread_mutex_unlock(&fake.lock);
}

void fake_sul_give_up(int rank)
{
	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < PORTS; i++)
		if (fake.port[i].fd && fake.port[i].spec.rank == (uint32_t)rank)
			fake_note_death(&fake.port[i], rank);
	pthread_mutex_unlock(&fake.lock);
}

/* --- life of a port ------------------------------------------------------------------------ */

static int fake_open(void)
{
	int fd;

	if (fake.cfg.open_err)
		return fake.cfg.open_err;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < PORTS; i++) {
		struct fake_port *p = &fake.port[i];

		if (p->fd)
			continue;
		memset(p, 0, sizeof(*p));
		pthread_mutex_init(&p->lock, NULL);
		__atomic_store_n(&p->fd, fd, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&fake.lock);
		return fd;
	}
	pthread_mutex_unlock(&fake.lock);
	close(fd);
	return -EMFILE;
}

static int hello(struct fake_port *p, void *arg)
{
	struct sul_hello *h = arg;
	uint32_t ours = fake.cfg.version ?: SUL_ABI_VERSION;
	bool fine = h->version == ours;

	if (h->size != sizeof(*h))
		return -EINVAL;
	h->version = h->oldest = ours;
	p->hello = fine;
	return fine ? 0 : -EPROTO;
}

static bool spec_makes_sense(const struct sul_port_spec *s)
{
	static const unsigned char no_key[SUL_ABI_KEY_BYTES];

	return s->size == sizeof(*s) && !(s->flags & ~SUL_PORT_TRACE) &&
	       s->ranks <= FAKE_RANKS && s->rank < s->ranks &&
	       memcmp(s->key, no_key, sizeof(no_key)) != 0 && s->session &&
	       s->span >= SUL_NET_SPAN_MIN && s->span <= SUL_NET_SPAN_MAX &&
	       !(s->span & (s->span - 1)) && s->silence_ns &&
	       s->pin_bytes >= 16 * PAGE && s->pin_bytes % PAGE == 0 &&
	       s->landing_bytes && s->landing_bytes % PAGE == 0 &&
	       s->landing_bytes <= SUL_ABI_LANDING_MAX;
}

static int make_port(struct fake_port *p, void *arg)
{
	struct sul_port_spec *s = arg;

	if (p->made)
		return -EBUSY;
	if (!spec_makes_sense(s))
		return -EINVAL;
	if (fake.cfg.port_err)
		return fake.cfg.port_err;
	if (fake.cfg.pin_left && s->pin_bytes > fake.cfg.pin_left) {
		s->pin_bytes = fake.cfg.pin_left;
		return -ENOMEM;
	}
	if (s->auth == SUL_ABI_AUTH_AEAD)
		return -EOPNOTSUPP;
	p->status = aligned_alloc(PAGE, PAGE);
	p->landing = calloc(1, s->landing_bytes);
	if (!p->status || !p->landing)
		return -ENOMEM;
	memset(p->status, 0, PAGE);
	p->spec = fake.spec = *s;
	p->rng.state = s->session;
	p->made = true;
	return 0;
}

static int take_socket(struct fake_port *p, void *arg)
{
	const struct sul_socket_spec *s = arg;
	int type, fd;
	socklen_t len = sizeof(type);

	if (s->size != sizeof(*s) || p->sockets == SUL_ABI_PATHS_MAX)
		return -EINVAL;
	if (p->started)
		return -EALREADY;
	if (getsockopt(s->fd, SOL_SOCKET, SO_TYPE, &type, &len) ||
	    type != SOCK_DGRAM)
		return -EBADF;
	fd = dup(s->fd);
	if (fd < 0)
		return -errno;
	p->socket[p->sockets++] = fd;
	return 0;
}

static int start(struct fake_port *p, void *arg)
{
	const struct sul_start *s = arg;
	int err = 0;

	if (s->size != sizeof(*s) || s->windows > SUL_ABI_WINDOWS_MAX)
		return -EINVAL;
	if (p->started)
		return -EALREADY;
	for (unsigned int w = 0; w < s->windows; w++)
		if (s->window[w].addr % PAGE || s->window[w].bytes % PAGE)
			return -EINVAL;
	p->start = *s;
	if (p->sockets)
		err = fake_wire_open(p);
	if (err)
		return err;
	pthread_mutex_lock(&fake.lock);
	p->started = true;
	pthread_mutex_unlock(&fake.lock);
	__atomic_store_n(&fake.host->session[p->spec.rank], p->spec.session,
			 __ATOMIC_RELEASE);
	return 0;
}

static int await_session(const struct sul_peer_spec *s)
{
	for (uint32_t ms = 0;; ms += FAKE_LOOK_MS) {
		if (__atomic_load_n(&fake.host->session[s->rank],
				    __ATOMIC_ACQUIRE) == s->session)
			return 0;
		if (ms >= s->timeout_ms)
			return -ETIMEDOUT;
		usleep(FAKE_LOOK_MS * 1000);
	}
}

static int take_paths(struct fake_port *p, const struct sul_peer_spec *s)
{
	struct fake_peer *to = &p->peer[s->rank];

	if (s->timeout_ms || !s->paths || s->paths > SUL_ABI_PATHS_MAX ||
	    !p->net)
		return -EINVAL;
	for (unsigned int i = 0; i < s->paths; i++) {
		const struct sul_peer_path *path = &s->path[i];
		union sul_sockaddr *at = &to->path[i].to;

		if (path->socket >= p->sockets)
			return -EINVAL;
		to->path[i].fd = p->socket[path->socket];
		if (path->family == AF_INET6) {
			at->v6.sin6_family = AF_INET6;
			at->v6.sin6_port = htons(path->port);
			at->v6.sin6_scope_id = path->scope;
			memcpy(&at->v6.sin6_addr, path->addr, 16);
		} else {
			at->v4.sin_family = AF_INET;
			at->v4.sin_port = htons(path->port);
			memcpy(&at->v4.sin_addr, path->addr, 4);
		}
	}
	return sul_net_peer(p->net, (int)s->rank, s->session, s->packet_bytes,
			    s->paths);
}

static int add_peer(struct fake_port *p, void *arg)
{
	const struct sul_peer_spec *s = arg;
	struct fake_peer *to;
	int err;

	if (s->size != sizeof(*s) || s->reserved || !p->started ||
	    s->rank >= p->spec.ranks || s->rank == p->spec.rank ||
	    sul_peer_check(s))
		return -EINVAL;
	to = &p->peer[s->rank];
	if (to->known)
		return -EEXIST;
	to->near = s->flags & SUL_PEER_NEAR;
	if (to->near) {
		err = await_session(s);
	} else {
		pthread_mutex_lock(&p->lock);
		err = take_paths(p, s);
		pthread_mutex_unlock(&p->lock);
	}
	to->known = !err;
	return err;
}

static void fake_close(int fd)
{
	struct fake_port *p = port_of(fd);

	if (!p)
		abort();
	fake_wire_stop(p);
	pthread_mutex_lock(&fake.lock);
	p->started = false;
	if (p->made)
		fake.host->session[p->spec.rank] = 0;
	for (int i = 0; p->made && i < PORTS; i++) {
		struct fake_port *q = &fake.port[i];

		if (q != p && q->fd && q->peer[p->spec.rank].near)
			fake_note_death(q, (int)p->spec.rank);
	}
	fake_wire_close(p);
	free(p->status);
	free(p->landing);
	pthread_mutex_destroy(&p->lock);
	close(p->fd);
	__atomic_store_n(&p->fd, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fake.lock);
}

/* --- operations -------------------------------------------------------------------------------- */

static int submit(struct fake_port *p, void *arg)
{
	struct sul_submit *s = arg;
	const struct sul_op *op = (const void *)(uintptr_t)s->ops;
	int err = 0;

	s->done = 0;
	if (s->size != sizeof(*s) || s->flags & ~SUL_SUBMIT_HURRY ||
	    s->nr > SUL_ABI_SUBMIT_MAX || !p->started)
		return -EINVAL;
	pthread_mutex_lock(&p->lock);
	p->issuing = true;
	for (; s->done < s->nr && !err; s->done += !err) {
		if (fake.cfg.submit_most && s->done == fake.cfg.submit_most)
			err = -EINTR;
		else
			err = fake_issue(p, &op[s->done]);
	}
	p->issuing = false;
	if (s->done)
		p->ticket++;
	if (p->net && s->flags & SUL_SUBMIT_HURRY)
		sul_net_hurry(p->net);
	fake_wire_pump(p);
	fake_wire_settle(p);
	s->ticket = p->ticket;
	pthread_mutex_unlock(&p->lock);
	if (p->net)
		eventfd_write(p->fd, 1);
	return err;
}

/* --- waiting --------------------------------------------------------------------------------------- */

static bool is_over(const struct fake_port *p, const struct sul_wait *w)
{
	if (__atomic_load_n(&p->status->deaths, __ATOMIC_ACQUIRE) != w->deaths)
		return true;
	if (!w->nr)
		return __atomic_load_n(&p->status->executed,
				       __ATOMIC_ACQUIRE) >= p->ticket;
	for (uint32_t i = 0; i < w->nr; i++) {
		const struct sul_word *word = (const void *)fake_place(
			p, w->word[i].window, w->word[i].off);

		if (__atomic_load_n(&word->value, __ATOMIC_ACQUIRE) !=
		    w->word[i].old)
			return true;
	}
	return false;
}

static int sleep_in(struct fake_port *p, void *arg)
{
	const struct sul_wait *w = arg;
	uint32_t *word = &fake.host->news[p->spec.rank];
	uint64_t end = sul_now_ns() + w->timeout_ns;

	if (w->size != sizeof(*w) || w->reserved || w->nr > SUL_ABI_WORDS_MAX ||
	    (!w->nr && fake.cfg.no_wait_all))
		return -EINVAL;
	for (uint32_t i = 0; i < w->nr; i++)
		if (w->word[i].off % 8 ||
		    !fake_in_window(p, w->word[i].window, w->word[i].off, 8))
			return -EINVAL;
	for (;;) {
		uint32_t news = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		uint64_t now = sul_now_ns();
		struct timespec span;

		if (is_over(p, w))
			return 0;
		if (now >= end)
			return -ETIMEDOUT;
		span = (struct timespec){ (time_t)((end - now) / 1000000000u),
					  (long)((end - now) % 1000000000u) };
		if (syscall(SYS_futex, word, FUTEX_WAIT, news, &span, NULL, 0) <
			    0 &&
		    errno == EINTR)
			return -EINTR;
	}
}

static int wake_sleepers(struct fake_port *p, void *arg)
{
	const struct sul_wake *w = arg;

	if (w->size != sizeof(*w) || w->rank >= p->spec.ranks ||
	    (w->rank != p->spec.rank && !p->peer[w->rank].near))
		return -EINVAL;
	fake_wake(w->rank);
	return 0;
}

enum {
#define COUNTER(name, doc) COUNTER_##name,
#include "sul_counter.def"
	COUNTERS
};

static int count(struct fake_port *p, void *arg)
{
	const struct sul_count *c = arg;
	uint64_t *v = (uint64_t *)(uintptr_t)c->values;
	const struct sul_net_stats *s;

	if (c->size != sizeof(*c) || c->nr != COUNTERS)
		return -EINVAL;
	if (!p->net)
		return 0;
	pthread_mutex_lock(&p->lock);
	s = sul_net_stats(p->net);
#define NET(name, doc) v[COUNTER_##name] = s->name;
#include "sul_net.def"
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* --- calls ------------------------------------------------------------------------------------------- */

static int null(struct fake_port *p, void *arg)
{
	(void)p, (void)arg;
	return 0;
}

static int fake_call(int fd, unsigned long request, void *arg)
{
	static const struct {
		unsigned long request;
		int (*fn)(struct fake_port *p, void *arg);
	} calls[] = {
		{ SUL_IOC_HELLO, hello },
		{ SUL_IOC_PORT, make_port },
		{ SUL_IOC_SOCKET, take_socket },
		{ SUL_IOC_START, start },
		{ SUL_IOC_PEER, add_peer },
		{ SUL_IOC_SUBMIT, submit },
		{ SUL_IOC_WAIT, sleep_in },
		{ SUL_IOC_WAKE, wake_sleepers },
		{ SUL_IOC_COUNT, count },
		{ SUL_IOC_NULL, null },
	};
	struct fake_port *p = port_of(fd);
	unsigned int nr = _IOC_NR(request);

	if (!p)
		return -EBADF;
	if (nr >= sizeof(calls) / sizeof(calls[0]) ||
	    calls[nr].request != request)
		return -ENOTTY;
	__atomic_fetch_add(&fake.calls[nr], 1, __ATOMIC_RELAXED);
	if (!p->hello && request != SUL_IOC_HELLO)
		return -EPROTO;
	if (!p->made && request != SUL_IOC_HELLO && request != SUL_IOC_PORT &&
	    request != SUL_IOC_NULL)
		return -EINVAL;
	return calls[nr].fn(p, arg);
}

static int fake_map(int fd, uint64_t at, size_t bytes, const void **out)
{
	const struct fake_port *p = port_of(fd);

	if (at == SUL_MAP_STATUS && bytes == PAGE)
		*out = p->status;
	else if (at == SUL_MAP_LANDING && bytes == p->spec.landing_bytes)
		*out = p->landing;
	else
		return -EINVAL;
	return 0;
}

static void fake_unmap(const void *at, size_t bytes)
{
	(void)at, (void)bytes; /* it goes with the port */
}

const struct sul_kmod_sys fake_sul = {
	.open = fake_open,
	.close = fake_close,
	.call = fake_call,
	.map = fake_map,
	.unmap = fake_unmap,
};
