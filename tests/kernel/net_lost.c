/* SPDX-License-Identifier: MIT */
/*
 * net_lost.c - each n-th packet of a kind is lost, and no other: the module's
 * parameter lose.
 *
 * Counts are exact, however many packets are sent again: what was made of a kind is
 * what was wanted plus what was sent again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net.h"

enum {
	AMOS = 300,
	GETS = 20,
	PATIENCE_US = 300000,
};

/* 0 or -errno */
static int lose(const char *rules)
{
	FILE *f = fopen("/sys/module/sul/parameters/lose", "we");
	int err = 0;

	NET_MUST(f);
	if (fputs(rules, f) < 0)
		err = -errno;
	if (fclose(f))
		err = -errno;
	return err;
}

void net_lose(const char *rules)
{
	NET_MUST(!lose(rules));
}

static bool reads(const char *rules)
{
	char line[128] = "";
	FILE *f = fopen("/sys/module/sul/parameters/lose", "re");
	char *got;

	NET_MUST(f);
	got = fgets(line, sizeof(line), f);
	fclose(f);
	return got && !strcmp(line, rules);
}

static bool rules_are_checked(void)
{
	static const char *const bad[] = { "gat:1\n",	 "get\n",    "get:\n",
					   "get:many\n", "get:-1\n", ":1\n",
					   "get:1,put\n" };
	bool ok = !lose("none:7,put:3\n") && reads("none:7,put:3\n");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok &= lose(bad[i]) == -EINVAL && reads("none:7,put:3\n");
	return ok && !lose("\n") && reads("\n");
}

static bool ends(struct net_side *s)
{
	return __atomic_load_n(&s->status->executed, __ATOMIC_ACQUIRE) >=
	       s->ticket;
}

/* All gets are lost, and only they. */
static bool one_kind_is_lost(struct net_side s[2])
{
	uint64_t before[NET_COUNT_NR], after[NET_COUNT_NR];
	uint64_t value = 42;
	bool ok;

	net_lose("get:1\n");
	for (uint64_t off = 0; off < 100 * sizeof(value); off += sizeof(value))
		net_put(&s[0], 1, off, &value, sizeof(value));
	ok = net_flush(&s[0]);
	net_counts(&s[0], before);
	net_get(&s[0], 1, 8, 0, sizeof(value), NULL, 0);
	usleep(PATIENCE_US);
	net_counts(&s[0], after);
	ok &= !ends(&s[0]) && !before[NET_COUNT_lost] &&
	      after[NET_COUNT_lost] ==
		      1 + after[NET_COUNT_resent] - before[NET_COUNT_resent];
	net_lose("\n");
	return ok && net_flush(&s[0]) &&
	       !memcmp(s[0].landing, &value, sizeof(value));
}

/* Each third one, and each takes effect once. */
static bool each_third_is_lost(struct net_side s[2])
{
	uint64_t before[NET_COUNT_NR], after[NET_COUNT_NR], sum, lost, made;
	bool ok = true;

	net_lose("amo:3\n");
	net_counts(&s[0], before);
	for (int i = 0; i < AMOS && ok; i++) {
		net_amo(&s[0], 0, 64, SUL_AMO_ADD, 1, 0, false, 0);
		ok = net_flush(&s[0]);
	}
	net_counts(&s[0], after);
	net_lose("\n");
	memcpy(&sum, s[1].window[0] + 64, sizeof(sum));
	lost = after[NET_COUNT_lost] - before[NET_COUNT_lost];
	made = AMOS + after[NET_COUNT_resent] - before[NET_COUNT_resent];
	printf("# of %llu packets with an amo %llu were lost\n",
	       (unsigned long long)made, (unsigned long long)lost);
	return ok && sum == AMOS && lost == made / 3 && lost >= AMOS / 3;
}

/* What comes back is of another kind, and its sender loses it. */
static bool answers_are_lost(struct net_side s[2])
{
	uint64_t before[2] = { net_count(&s[0], NET_COUNT_lost),
			       net_count(&s[1], NET_COUNT_lost) };
	bool ok = true;

	net_lose("data:2\n");
	for (int i = 0; i < GETS && ok; i++) {
		net_get(&s[0], 2, 0, 0, NET_PAGE, NULL, 0);
		ok = net_flush(&s[0]) &&
		     !memcmp(s[0].landing, s[1].window[2], NET_PAGE);
	}
	net_lose("\n");
	return ok && net_count(&s[0], NET_COUNT_lost) == before[0] &&
	       net_count(&s[1], NET_COUNT_lost) >= before[1] + GETS / 2;
}

static bool verdict(bool ok, const char *what)
{
	if (!ok)
		printf("# not so: %s\n", what);
	return ok;
}

int net_lost(const struct net_config *cfg)
{
	struct net_side s[2];
	bool ok;

	net_sides_open(s, cfg);
	memset(s[1].window[2], 7, NET_PAGE);
	ok = verdict(rules_are_checked(), "rules are checked");
	ok &= verdict(one_kind_is_lost(s), "one kind is lost");
	ok &= verdict(each_third_is_lost(s), "each third is lost");
	ok &= verdict(answers_are_lost(s), "answers are lost");
	net_sides_close(s);
	return !ok;
}
