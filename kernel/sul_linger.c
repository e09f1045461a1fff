// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_linger.c - places where whoever comes by stays, for tests.
 *
 * Role:      the module's parameter linger says at which places, and for how long at
 *            most; lingering says who is there and how many have been.  So a test
 *            makes a race come out the way it wants, and knows when it has.
 * Invariant: who stays goes on when the rule is taken away, whatever its time.  With
 *            no rule a place is a jump that is not taken.
 * Context:   process, no spinlock held; sul_linger_spin_at() softirq, likewise.
 * Locks:     that of the module's parameters over the rules.
 */
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "sul.h"

enum {
	MOST_MS = 60000, /* well before the kernel takes it for hung */
	TEXT_MAX = 128, /* of the parameter */
};

static const char *const names[SUL_PLACES] = {
#define PLACE(name, doc) [SUL_PLACE_##name] = #name,
#include "sul_linger.def"
};

DEFINE_STATIC_KEY_FALSE(sul_linger_on);
static u32 most_ms[SUL_PLACES]; /* 0: nobody stays */
static atomic_t here[SUL_PLACES];
static atomic_t been[SUL_PLACES]; /* since there is a rule for it */
static DECLARE_WAIT_QUEUE_HEAD(rules_changed);

void sul_linger_at(enum sul_place place)
{
	u32 ms = READ_ONCE(most_ms[place]);

	if (!ms)
		return;
	atomic_inc(&been[place]);
	atomic_inc(&here[place]);
	wait_event_timeout(rules_changed, !READ_ONCE(most_ms[place]),
			   msecs_to_jiffies(ms));
	atomic_dec(&here[place]);
}

/* Others of its kind pass: what makes this one go on must run somewhere. */
void sul_linger_spin_at(enum sul_place place)
{
	u64 end =
		ktime_get_ns() + READ_ONCE(most_ms[place]) * (u64)NSEC_PER_MSEC;

	if (!READ_ONCE(most_ms[place]) || atomic_cmpxchg(&here[place], 0, 1))
		return;
	atomic_inc(&been[place]);
	while (READ_ONCE(most_ms[place]) && ktime_get_ns() < end)
		cpu_relax();
	atomic_set(&here[place], 0);
}

/* --- the parameters ---------------------------------------------------------------- */

/* PLACE:MS */
static int read_rule(char *rule, u32 ms[SUL_PLACES])
{
	char *name = strsep(&rule, ":");
	int place = match_string(names, SUL_PLACES, name);
	int err;

	if (place < 0 || !rule)
		return -EINVAL;
	err = kstrtou32(rule, 0, &ms[place]);
	return !err && ms[place] > MOST_MS ? -ERANGE : err;
}

static void keep_rules(const u32 ms[SUL_PLACES])
{
	bool any = memchr_inv(ms, 0, SUL_PLACES * sizeof(ms[0]));

	for (unsigned int i = 0; i < SUL_PLACES; i++) {
		if (ms[i] && !most_ms[i])
			atomic_set(&been[i], 0);
		WRITE_ONCE(most_ms[i], ms[i]);
	}
	if (any)
		static_branch_enable(&sul_linger_on);
	else
		static_branch_disable(&sul_linger_on);
	wake_up_all(&rules_changed);
}

static int set_rules(const char *text, const struct kernel_param *param)
{
	char copy[TEXT_MAX], *rest = copy, *rule;
	u32 ms[SUL_PLACES] = { 0 };
	int err = 0;

	if (strscpy(copy, text, sizeof(copy)) < 0)
		return -ENOSPC;
	while (!err && (rule = strsep(&rest, ",\n")))
		if (*rule)
			err = read_rule(rule, ms);
	if (!err)
		keep_rules(ms);
	return err;
}

static int get_rules(char *page, const struct kernel_param *param)
{
	int len = 0;

	for (unsigned int i = 0; i < SUL_PLACES; i++)
		if (most_ms[i])
			len += scnprintf(page + len, PAGE_SIZE - len, "%s%s:%u",
					 len ? "," : "", names[i], most_ms[i]);
	return len + scnprintf(page + len, PAGE_SIZE - len, "\n");
}

static const struct kernel_param_ops rules = {
	.set = set_rules,
	.get = get_rules,
};
module_param_cb(linger, &rules, NULL, 0644);
MODULE_PARM_DESC(linger,
		 "for tests: PLACE:MS,...: who comes there stays so long");

static int get_visits(char *page, const struct kernel_param *param)
{
	int len = 0;

	for (unsigned int i = 0; i < SUL_PLACES; i++)
		len += scnprintf(page + len, PAGE_SIZE - len, "%s %d %d\n",
				 names[i], atomic_read(&here[i]),
				 atomic_read(&been[i]));
	return len;
}

static const struct kernel_param_ops visits = {
	.get = get_visits,
};
module_param_cb(lingering, &visits, NULL, 0444);
MODULE_PARM_DESC(lingering,
		 "for tests: who is at each place, how many have been");
