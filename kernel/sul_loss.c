// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_loss.c - packets that are lost on purpose, for tests.
 *
 * Role:      loss_ppm of PORT: any packet, by chance; the module's parameter lose:
 *            each n-th packet of a kind.
 * Invariant: which packets of a kind are lost depends on nothing but how many a port
 *            has made of it while the parameter was set.
 * Context:   the parameter process, the rest any.
 * Locks:     port->lock over what a port has counted.
 */
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "sul_core.h"

enum {
	MILLION = 1000000,
	TEXT_MAX = 128, /* of the parameter */
};

/* --- any packet ------------------------------------------------------------------------ */

bool sul_loss_of_any_locked(struct sul_core *c)
{
	bool lost;

	if (likely(!c->port->spec.loss_ppm))
		return false;
	c->random ^= c->random << 13; /* xorshift64 */
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	lost = (u32)(c->random >> 32) % MILLION < c->port->spec.loss_ppm;
	c->port->count[SUL_COUNT_lost] += lost;
	return lost;
}

/* --- packets of a kind ------------------------------------------------------------------ */

static const char *const kinds[SUL_FRAME_KINDS] = {
	[SUL_FRAME_NONE] = "none",
#define FRAME(NAME, function, lane, bytes, doc) [SUL_FRAME_##NAME] = #function,
#include "sul_wire.def"
};

static u32 every[SUL_FRAME_KINDS]; /* 0: none is lost */

bool sul_loss_of_kind_locked(struct sul_core *c, unsigned int kind)
{
	u32 nth = READ_ONCE(every[kind]);

	if (likely(!nth) || ++c->made[kind] % nth)
		return false;
	c->port->count[SUL_COUNT_lost]++;
	return true;
}

static unsigned int kind_of(const char *name)
{
	unsigned int kind = 0;

	while (kind < SUL_FRAME_KINDS && strcmp(kinds[kind], name))
		kind++;
	return kind;
}

/* KIND:N */
static int read_rule(char *rule, u32 nth[SUL_FRAME_KINDS])
{
	char *name = strsep(&rule, ":");
	unsigned int kind = kind_of(name);

	if (kind == SUL_FRAME_KINDS || !rule)
		return -EINVAL;
	return kstrtou32(rule, 0, &nth[kind]);
}

static int set_rules(const char *text, const struct kernel_param *param)
{
	u32 nth[SUL_FRAME_KINDS] = { 0 };
	char copy[TEXT_MAX], *rest = copy, *rule;
	int err = 0;

	if (strscpy(copy, text, sizeof(copy)) < 0)
		return -ENOSPC;
	while (!err && (rule = strsep(&rest, ",\n")))
		if (*rule)
			err = read_rule(rule, nth);
	for (unsigned int kind = 0; kind < SUL_FRAME_KINDS && !err; kind++)
		WRITE_ONCE(every[kind], nth[kind]);
	return err;
}

static int get_rules(char *page, const struct kernel_param *param)
{
	int len = 0;

	for (unsigned int kind = 0; kind < SUL_FRAME_KINDS; kind++) {
		u32 nth = READ_ONCE(every[kind]);

		if (nth)
			len += scnprintf(page + len, PAGE_SIZE - len, "%s%s:%u",
					 len ? "," : "", kinds[kind], nth);
	}
	return len + scnprintf(page + len, PAGE_SIZE - len, "\n");
}

static const struct kernel_param_ops rules = {
	.set = set_rules,
	.get = get_rules,
};
module_param_cb(lose, &rules, NULL, 0644);
MODULE_PARM_DESC(lose,
		 "for tests: KIND:N,...: each N-th packet of a kind is lost");
