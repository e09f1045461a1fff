/* SPDX-License-Identifier: MIT */
/*
 * net_leave.c - a rank says farewell and goes.
 *
 * The other one does not miss it, however long it is away; whatever is issued to it
 * is refused at once.  What was under way to it, and is never executed, is told of
 * with its name, long before a silence would be noticed.
 *
 * With the module at one end, at the other, or at both.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net.h"
#include "sul_clock.h"

enum {
	GOES = 1,
	STEP_US = 2000,
	STEPS = 2000,
	SILENCES = 4, /* so long it is away */
};

static bool verdict(bool ok, const char *what)
{
	if (!ok)
		printf("# not so: %s\n", what);
	return ok;
}

static bool is_in(const __u64 *ranks)
{
	return __atomic_load_n(ranks, __ATOMIC_ACQUIRE) >> GOES & 1;
}

static bool has_left(struct net_side *s)
{
	bool left;

	if (s->module)
		return is_in(s->status->left);
	pthread_mutex_lock(&s->lock);
	left = sul_net_has_left(s->net, GOES);
	pthread_mutex_unlock(&s->lock);
	return left;
}

/* Found dead, or gone when it was needed. */
static bool is_missed(const struct net_side *s)
{
	return s->module ? is_in(s->status->down) :
			   __atomic_load_n(&s->missed, __ATOMIC_ACQUIRE);
}

static bool comes_true(struct net_side *s, bool (*what)(struct net_side *s))
{
	for (int i = 0; i < STEPS && !what(s); i++)
		usleep(STEP_US);
	return what(s);
}

/* How an amo on it ends at once. */
static int work_on_it(struct net_side *s)
{
	struct sul_op op = { .kind = SUL_OP_AMO,
			     .rank = GOES,
			     .amo = { .op = SUL_AMO_ADD, .operand = 1 } };
	struct sul_submit u = { .size = sizeof(u),
				.ops = (uintptr_t)&op,
				.nr = 1 };
	int err;

	if (s->module)
		return ioctl(s->fd, SUL_IOC_SUBMIT, &u) ? -errno : 0;
	pthread_mutex_lock(&s->lock);
	err = sul_net_amo(s->net, GOES, 0, 0, SUL_AMO_ADD, 1, 0, NULL);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static bool is_not_missed(const struct net_config *cfg)
{
	struct net_side s[2];
	bool ok;

	net_sides_open(s, cfg);
	ok = verdict(!work_on_it(&s[0]) && net_flush(&s[0]), "it can be");
	net_farewell(&s[GOES]);
	ok &= verdict(net_flush(&s[GOES]), "the farewell is executed");
	net_side_close(&s[GOES]);
	ok &= verdict(comes_true(&s[0], has_left), "it is known to have left");
	usleep((useconds_t)(cfg->silence_ns / 1000 * SILENCES));
	ok &= verdict(!is_missed(&s[0]), "nobody misses it");
	ok &= verdict(work_on_it(&s[0]) == -EHOSTDOWN, "it takes no more");
	ok &= verdict(!is_missed(&s[0]), "nor is that its end");
	net_side_close(&s[0]);
	return ok;
}

static bool missed(struct net_side *s)
{
	return is_missed(s);
}

/* An amo is lost over and over; then the farewell comes. */
static bool is_named_if_needed(const struct net_config *cfg)
{
	struct net_config patient = *cfg;
	struct net_side s[2];
	uint64_t begin;
	bool ok;

	patient.silence_ns = UINT64_C(60000000000);
	net_sides_open(s, &patient);
	net_lose("amo:1\n");
	ok = verdict(!work_on_it(&s[0]), "an amo is under way");
	begin = sul_now_ns();
	net_farewell(&s[GOES]);
	ok &= verdict(comes_true(&s[0], missed), "it is missed");
	ok &= verdict(has_left(&s[0]), "and known to have left");
	ok &= verdict(sul_now_ns() - begin < patient.silence_ns / 4, "soon");
	ok &= verdict(s[0].status->dead == 1 + GOES && s[0].status->deaths == 1,
		      "and that is one death");
	net_lose("\n");
	net_sides_close(s);
	return ok;
}

int net_leave(const struct net_config *cfg)
{
	bool ok = is_not_missed(cfg);

	if (cfg->module[0]) /* only the module loses what it is told to */
		ok &= is_named_if_needed(cfg);
	return !ok;
}
