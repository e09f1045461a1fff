/* SPDX-License-Identifier: MIT */
/*
 * net.c - the module's network side, over whatever joins two namespaces.
 *
 *   story   random operations both ways; memory and results as they have to be
 *   chain   a million compare-and-swaps, each of which works only behind the one
 *           before it: one lost, doubled or out of order, and the end is not reached
 *   stop    a get from a home that is stopped
 *   lost    packets of one kind are lost, and no others (net_lost.c)
 *   ahead   with a page that is wanted others are pinned (net_ahead.c)
 *   leave   a rank says farewell and goes (net_leave.c)
 *   unmap   a home takes a part of its window away (net_unmap.c)
 *   trace   a message leaves its times at both ends (net_trace.c)
 *   time    how long short ones take one way (net_time.c)
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "net.h"
#include "sul_clock.h"

static uint64_t random_state;

static uint64_t some(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

void net_report(const struct net_side *s)
{
	if (s->module)
		printf("#   rank %d: packets %llu out %llu in, resent %llu, late %llu, pins %llu, evictions %llu, refused %llu %llu\n",
		       s->rank,
		       (unsigned long long)net_count(s, NET_COUNT_packets_out),
		       (unsigned long long)net_count(s, NET_COUNT_packets_in),
		       (unsigned long long)net_count(s, NET_COUNT_resent),
		       (unsigned long long)net_count(s, NET_COUNT_late),
		       (unsigned long long)net_count(s, NET_COUNT_pins),
		       (unsigned long long)net_count(s, NET_COUNT_evictions),
		       (unsigned long long)net_count(s,
						     NET_COUNT_dropped_range),
		       (unsigned long long)net_count(s,
						     NET_COUNT_dropped_room));
}

/* --- story ---------------------------------------------------------------------------- */

enum {
	HALF = NET_WINDOW_BYTES /
	       2, /* that is not touched but by the other side */
	FLAG_AT = HALF - 64,
	WORDS_AT = HALF - 32,
	ROUND_MAX = 40,
	RUNS_MAX = 64,
	ARENA_BYTES = 1 << 21,
};

struct result {
	uint32_t land, len;
	const void *expected;
};

/* One side's operations on the other, and what they should do. */
struct teller {
	struct net_side *s, *to;
	char *shadow[NET_WINDOWS];
	char *arena;
	size_t used;
	uint32_t land;
	struct result result[ROUND_MAX];
	unsigned int results;
};

static void *take(struct teller *t, size_t bytes)
{
	void *at = t->arena + t->used;

	t->used += (bytes + 7) & ~(size_t)7;
	NET_MUST(t->used <= ARENA_BYTES);
	return at;
}

static char *random_bytes(struct teller *t, size_t len)
{
	char *at = take(t, len);

	for (size_t i = 0; i < len; i++)
		at[i] = (char)some(256);
	return at;
}

static uint32_t some_length(void)
{
	switch (some(8)) {
	case 0:
		return NET_PAGE;
	case 1:
		return 1 + (uint32_t)some(20000);
	case 2:
		return 1 + (uint32_t)some(1500);
	default:
		return 1 + (uint32_t)some(64);
	}
}

static uint32_t expect(struct teller *t, const void *expected, uint32_t len)
{
	struct result *r = &t->result[t->results++];
	void *copy = take(t, len);

	memcpy(copy, expected, len);
	*r = (struct result){ t->land, len, copy };
	t->land += (len + 7) & ~7u;
	NET_MUST(t->land <= NET_LANDING_BYTES);
	return r->land;
}

static void tell_put(struct teller *t)
{
	uint32_t len = some_length();
	uint64_t off = some(FLAG_AT - len);
	unsigned int w = (unsigned int)some(NET_WINDOWS);
	char *src = random_bytes(t, len);

	memcpy(t->shadow[w] + off, src, len);
	net_put(t->s, w, off, src, len);
	memset(src, 0x55, len); /* that is allowed */
}

static void tell_get(struct teller *t)
{
	uint32_t len = some_length(), nr = (uint32_t)some(4);
	uint64_t off = some(FLAG_AT - len);
	unsigned int w = (unsigned int)some(NET_WINDOWS);
	struct sul_mark marks[3] = { 0 };

	if (t->land + len > NET_LANDING_BYTES / 2)
		return; /* the rest is for amos */
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t *word;

		marks[i].window = (uint32_t)some(NET_WINDOWS);
		marks[i].off = 8 * some(FLAG_AT / 8);
		marks[i].bits = UINT64_C(1) << some(64);
		word = (void *)(t->shadow[marks[i].window] + marks[i].off);
		*word |= marks[i].bits;
	}
	net_get(t->s, w, off, expect(t, t->shadow[w] + off, len), len, marks,
		nr);
}

static void tell_amo(struct teller *t)
{
	enum sul_amo_op op = (enum sul_amo_op)some(SUL_AMO_NR);
	unsigned int w = (unsigned int)some(NET_WINDOWS);
	uint64_t off = 8 * some(FLAG_AT / 8), operand = some(UINT64_MAX);
	uint64_t *word = (void *)(t->shadow[w] + off), was = *word;
	uint64_t comparand = some(2) ? was : operand;
	bool old = some(3);

	if (op == SUL_AMO_SWAP || (op == SUL_AMO_CAS && was == comparand))
		*word = operand;
	else if (op == SUL_AMO_ADD)
		*word += operand;
	else if (op == SUL_AMO_OR)
		*word |= operand;
	else if (op == SUL_AMO_ANDNOT)
		*word &= ~operand;
	net_amo(t->s, w, off, op, operand, comparand, old,
		old ? expect(t, &was, 8) : 0);
}

static void tell_notify(struct teller *t)
{
	uint64_t off = WORDS_AT + 8 * some(4);
	uint32_t value = (uint32_t)some(UINT32_MAX);

	memcpy(t->shadow[0] + off, &value, 4);
	net_notify(t->s, 0, off, value);
}

static void tell_message(struct teller *t)
{
	uint32_t len = (uint32_t)some(SUL_ABI_MESSAGE_MAX + 1);
	char *src = random_bytes(t, len);
	struct sul_message m = {
		.off = some(FLAG_AT - len),
		.src = src,
		.len = len,
		.word = { WORDS_AT + 8 * some(4), WORDS_AT + 8 * some(4) },
		.value = { (uint32_t)some(UINT32_MAX),
			   (uint32_t)some(UINT32_MAX) },
	};

	memcpy(t->shadow[0] + m.off, src, len);
	for (int i = 0; i < 2; i++)
		memcpy(t->shadow[0] + m.word[i], &m.value[i], 4);
	net_message(t->s, &m);
	memset(src, 0x55, len); /* that is allowed */
}

static void tell_flag(struct teller *t)
{
	char flag = (char)some(2);

	t->shadow[2][FLAG_AT] = flag;
	net_put(t->s, 2, FLAG_AT, &flag, 1);
}

static void store_runs(char *to, const char *src, const struct sul_run *runs,
		       uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		memcpy(to + runs[i].off, src + runs[i].off, runs[i].len);
}

static void tell_putv(struct teller *t)
{
	static const struct sul_mirror m = { FLAG_AT, 1, 2 };
	uint32_t nr = 0, at = (uint32_t)some(64), gap = some(4) ? 100 : 3000;
	uint32_t longest = some(4) ? 24 : 6000;
	struct sul_run runs[RUNS_MAX];
	uint64_t off;
	bool mirror;
	char *src;

	while (nr < RUNS_MAX) {
		uint32_t len = 1 + (uint32_t)some(longest);

		if (at + len > 60000)
			break;
		runs[nr++] = (struct sul_run){ at, len };
		at += len + (uint32_t)some(gap);
		if (!some(16))
			break;
	}
	src = random_bytes(t, at);
	off = some(FLAG_AT - at);
	mirror = some(2);
	store_runs(t->shadow[0] + off, src, runs, nr);
	if (mirror && t->shadow[2][FLAG_AT])
		store_runs(t->shadow[1] + off, src, runs, nr);
	net_putv(t->s, 0, off, src, runs, nr, mirror ? &m : NULL);
}

static bool as_it_should(struct teller *t)
{
	for (unsigned int i = 0; i < t->results; i++) {
		const struct result *r = &t->result[i];

		if (memcmp(t->s->landing + r->land, r->expected, r->len)) {
			printf("# rank %d: result %u is wrong\n", t->s->rank,
			       i);
			return false;
		}
	}
	for (int w = 0; w < NET_WINDOWS; w++)
		for (int i = 0; i < HALF; i++)
			if (t->to->window[w][i] != t->shadow[w][i]) {
				printf("# rank %d: byte %d of window %d is wrong\n",
				       t->s->rank, i, w);
				return false;
			}
	t->used = 0;
	t->land = 0;
	t->results = 0;
	return true;
}

static bool tell_round(struct teller t[2])
{
	static void (*const all[])(struct teller * t) = {
		tell_put,    tell_get,	   tell_putv, tell_amo,
		tell_notify, tell_message, tell_flag,
	};
	uint64_t ops = 1 + some(some(8) ? 8 : ROUND_MAX);

	for (uint64_t i = 0; i < ops; i++)
		all[some(sizeof(all) / sizeof(all[0]))](&t[some(2)]);
	for (int i = 0; i < 2; i++)
		if (!net_flush(t[i].s)) {
			printf("# rank %d: no end of it\n", i);
			return false;
		}
	return as_it_should(&t[0]) && as_it_should(&t[1]);
}

static int story(const struct net_config *cfg)
{
	struct net_side s[2];
	struct teller t[2] = { { .s = &s[0], .to = &s[1] },
			       { .s = &s[1], .to = &s[0] } };
	uint64_t end = sul_now_ns() + cfg->ops * UINT64_C(1000000);
	unsigned int rounds = 0;
	bool ok = true;

	net_sides_open(s, cfg);
	for (int i = 0; i < 2; i++) {
		t[i].arena = malloc(ARENA_BYTES);
		for (int w = 0; w < NET_WINDOWS; w++)
			t[i].shadow[w] = calloc(1, HALF);
	}
	while (ok && sul_now_ns() < end) {
		ok = tell_round(t);
		rounds++;
		/* Pages are copied for a child: those pinned are let go. */
		if (rounds % 16 == 0) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		}
	}
	printf("# %u rounds\n", rounds);
	for (int i = 0; i < 2; i++)
		net_report(&s[i]);
	net_sides_close(s);
	return !ok;
}

/* --- chain ------------------------------------------------------------------------------ */

/* Rank @s takes the word at @off of the other from 0 to @nr. */
static void chain_from(struct net_side *s, uint64_t nr)
{
	struct sul_op ops[SUL_ABI_SUBMIT_MAX];

	for (uint64_t i = 0; i < nr;) {
		uint32_t n = 0;

		if (!s->module) {
			net_amo(s, 0, 8, SUL_AMO_CAS, i + 1, i, false, 0);
			i++;
			continue;
		}
		for (; n < SUL_ABI_SUBMIT_MAX && i < nr; n++, i++)
			ops[n] = (struct sul_op){
				.kind = SUL_OP_AMO,
				.rank = (uint32_t)(1 - s->rank),
				.off = 8,
				.amo = { .op = SUL_AMO_CAS,
					 .operand = i + 1,
					 .comparand = i },
			};
		net_submit(s, ops, n, 0);
	}
}

static int chain(const struct net_config *cfg)
{
	struct net_side s[2];
	bool ok = true;

	net_sides_open(s, cfg);
	for (int i = 0; i < 2; i++) {
		uint64_t begin = sul_now_ns(), got;

		chain_from(&s[i], cfg->ops);
		ok &= net_flush(&s[i]);
		memcpy(&got, s[1 - i].window[0] + 8, 8);
		printf("# from rank %d: %llu of %llu in %llu ms\n", i,
		       (unsigned long long)got, (unsigned long long)cfg->ops,
		       (unsigned long long)(sul_now_ns() - begin) / 1000000);
		ok &= got == cfg->ops;
	}
	for (int i = 0; i < 2; i++)
		net_report(&s[i]);
	net_sides_close(s);
	return !ok;
}

/* --- stop --------------------------------------------------------------------------------- */

/* The home is a process of its own, which is stopped. */
static int stop(const struct net_config *cfg)
{
	struct shared {
		struct net_side side[2];
		int ready, met;
	} *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool ok = true;
	pid_t home;
	int status;

	NET_MUST(sh != MAP_FAILED);
	home = fork();
	if (!home) {
		net_side_open(&sh->side[1], cfg, 1);
		for (int i = 0; i < NET_WINDOW_BYTES; i++)
			sh->side[1].window[0][i] = (char)(i * 7 / NET_PAGE + i);
		__atomic_store_n(&sh->ready, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&sh->met, __ATOMIC_ACQUIRE))
			usleep(1000);
		net_side_meet(&sh->side[1], &sh->side[0]);
		__atomic_store_n(&sh->ready, 2, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	while (__atomic_load_n(&sh->ready, __ATOMIC_ACQUIRE) < 1)
		usleep(1000);
	net_side_open(&sh->side[0], cfg, 0);
	net_side_meet(&sh->side[0], &sh->side[1]);
	__atomic_store_n(&sh->met, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&sh->ready, __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	kill(home, SIGSTOP);
	NET_MUST(waitpid(home, &status, WUNTRACED) == home &&
		 WIFSTOPPED(status));
	for (int page = 0; page < NET_WINDOW_BYTES / NET_PAGE && ok; page++) {
		struct net_side *s = &sh->side[0];

		net_get(s, 0, (uint64_t)page * NET_PAGE, 0, NET_PAGE, NULL, 0);
		ok = net_flush(s);
		for (int i = 0; i < NET_PAGE; i++) {
			int at = page * NET_PAGE + i;

			ok &= s->landing[i] == (char)(at * 7 / NET_PAGE + at);
		}
	}
	printf("# a stopped home's pages: %s\n", ok ? "all got" : "not got");
	/* Killed: it is missed. */
	kill(home, SIGKILL);
	waitpid(home, NULL, 0);
	while (ok && !sh->side[0].status->dead)
		usleep(10000);
	ok &= sh->side[0].status->dead == 2;
	net_side_close(&sh->side[0]);
	return !ok;
}

/* --- all of them ------------------------------------------------------------------------------ */

static enum sul_net_auth auth_of(const char *name)
{
	if (!strcmp(name, "off"))
		return SUL_NET_AUTH_OFF;
	return strcmp(name, "aead") ? SUL_NET_AUTH_MAC : SUL_NET_AUTH_AEAD;
}

static bool set(struct net_config *c, const char *key, const char *value)
{
	uint64_t n = strtoull(value, NULL, 0);

	if (!strcmp(key, "auth"))
		c->auth = auth_of(value);
	else if (!strcmp(key, "packet"))
		c->packet_bytes = (unsigned int)n;
	else if (!strcmp(key, "span"))
		c->span = (unsigned int)n;
	else if (!strcmp(key, "pins"))
		c->pin_pages = (unsigned int)n;
	else if (!strcmp(key, "loss"))
		c->loss_ppm = (unsigned int)n;
	else if (!strcmp(key, "ops") || !strcmp(key, "ms"))
		c->ops = n;
	else if (!strcmp(key, "silence_ms"))
		c->silence_ns = n * 1000000;
	else if (!strcmp(key, "seed"))
		c->seed = n;
	else if (!strcmp(key, "address0"))
		c->address[0] = value;
	else if (!strcmp(key, "address1"))
		c->address[1] = value;
	else if (!strcmp(key, "sides")) {
		c->module[0] = value[0] == 'm';
		c->module[1] = value[0] && value[1] == 'm';
	} else
		return false;
	return true;
}

int kernel_net(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct net_config *cfg);
	} all[] = { { "story", story },	    { "chain", chain },
		    { "stop", stop },	    { "lost", net_lost },
		    { "leave", net_leave }, { "unmap", net_unmap },
		    { "trace", net_trace }, { "time", net_time },
		    { "ahead", net_ahead } };
	struct net_config cfg = {
		.ns = { "A", "B" },
		.address = { "10.9.0.1", "10.9.0.2" },
		.module = { true, true },
		.packet_bytes = 1472,
		.span = 32,
		.pin_pages = 1024,
		.silence_ns = UINT64_C(10000000000),
		.ops = 3000,
		.seed = sul_now_ns(),
	};

	for (int i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = 0;
		if (!value || !set(&cfg, argv[i], value))
			return 2;
	}
	random_state = cfg.seed;
	printf("# seed=%llu\n", (unsigned long long)cfg.seed);
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(argv[1], all[i].name))
			return all[i].run(&cfg);
	return 2;
}
