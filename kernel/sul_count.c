// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_count.c - counters: of a port for its process, and in total in /proc/net/sul.
 *
 * Role:    the rows of sul_counter.def; a namespace's total is that of the ports
 *          that are open and of those that were.
 * Context: process.
 * Locks:   a namespace's own, over what closed ports have left.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "sul.h"

/* Of a namespace. */
struct totals {
	struct mutex lock;
	u64 closed[SUL_COUNT_NR];
};

static unsigned int totals_id __read_mostly;

static const char *const names[SUL_COUNT_NR] = {
#define COUNTER(name, doc) [SUL_COUNT_##name] = #name,
#include "sul_counter.def"
};

static struct totals *totals_of(const struct net *net)
{
	return net_generic(net, totals_id);
}

void sul_count_snapshot(struct sul_port *p, u64 out[SUL_COUNT_NR])
{
	spin_lock_bh(&p->lock);
	memcpy(out, p->count, sizeof(p->count));
	sul_core_count_locked(p->core, out);
	spin_unlock_bh(&p->lock);
}

long sul_count_read(struct sul_port *p, struct sul_count *c)
{
	u64 values[SUL_COUNT_NR];
	u32 room = min_t(u32, c->nr, SUL_COUNT_NR);

	c->nr = SUL_COUNT_NR;
	sul_count_snapshot(p, values);
	return copy_to_user(u64_to_user_ptr(c->values), values,
			    room * sizeof(values[0])) ?
		       -EFAULT :
		       0;
}

static void add(u64 sum[SUL_COUNT_NR], struct sul_port *p)
{
	u64 values[SUL_COUNT_NR];

	sul_count_snapshot(p, values);
	for (unsigned int i = 0; i < SUL_COUNT_NR; i++)
		sum[i] += values[i];
}

void sul_count_keep(struct sul_port *p)
{
	struct totals *t = totals_of(p->net);

	mutex_lock(&t->lock);
	add(t->closed, p);
	mutex_unlock(&t->lock);
}

/* --- /proc/net/sul ------------------------------------------------------------------- */

struct sum {
	u64 ports, pinned;
	u64 count[SUL_COUNT_NR];
};

static void add_port(struct sul_port *p, void *ctx)
{
	struct sum *sum = ctx;

	sum->ports++;
	sum->pinned += READ_ONCE(p->pins.used);
	add(sum->count, p);
}

static int show(struct seq_file *file, void *v)
{
	struct net *net = seq_file_single_net(file);
	struct totals *t = totals_of(net);
	struct sum sum = { 0 };

	sul_port_for_each(net, add_port, &sum);
	mutex_lock(&t->lock);
	for (unsigned int i = 0; i < SUL_COUNT_NR; i++)
		sum.count[i] += t->closed[i];
	mutex_unlock(&t->lock);

	seq_printf(file, "ports %llu\npinned_pages %llu\n", sum.ports,
		   sum.pinned);
	for (unsigned int i = 0; i < SUL_COUNT_NR; i++)
		seq_printf(file, "%s %llu\n", names[i], sum.count[i]);
	return 0;
}

static int open_namespace(struct net *net)
{
	mutex_init(&totals_of(net)->lock);
	return proc_create_net_single("sul", 0444, net->proc_net, show, NULL) ?
		       0 :
		       -ENOMEM;
}

static void close_namespace(struct net *net)
{
	remove_proc_entry("sul", net->proc_net);
}

static struct pernet_operations namespaces = {
	.init = open_namespace,
	.exit = close_namespace,
	.id = &totals_id,
	.size = sizeof(struct totals),
};

int sul_count_init(void)
{
	return register_pernet_subsys(&namespaces);
}

void sul_count_exit(void)
{
	unregister_pernet_subsys(&namespaces);
}
