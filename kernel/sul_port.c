// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_port.c - ports and jobs: which there are, and who may reach whom.
 *
 * Role:      a port from open() to close(): its budgets, its place in its job, the
 *            near ranks it has been told of.
 * Invariant: a port is found through its job only, and a job by namespace and key;
 *            whoever found it there holds a reference from then on.
 * Context:   process.
 * Locks:     sul_table.lock over all jobs; see sul.h.
 */
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include "sul.h"

static unsigned int ports = 128;
module_param(ports, uint, 0644);
MODULE_PARM_DESC(ports, "how many ports a user may have open (128)");

static unsigned long port_bytes = 1 << 20;
module_param(port_bytes, ulong, 0644);
MODULE_PARM_DESC(port_bytes,
		 "kernel memory that a port may take, bytes (1 MiB)");

static struct {
	struct mutex lock;
	struct list_head ports, jobs;
} sul_table = {
	.lock = __MUTEX_INITIALIZER(sul_table.lock),
	.ports = LIST_HEAD_INIT(sul_table.ports),
	.jobs = LIST_HEAD_INIT(sul_table.jobs),
};

/* --- memory ------------------------------------------------------------------------ */

int sul_port_charge(struct sul_port *p, size_t bytes)
{
	if (bytes > port_bytes ||
	    atomic_long_add_return((long)bytes, &p->kernel_bytes) >
		    (long)port_bytes) {
		if (bytes <= port_bytes)
			atomic_long_sub((long)bytes, &p->kernel_bytes);
		return -ENOBUFS;
	}
	return 0;
}

void sul_port_uncharge(struct sul_port *p, size_t bytes)
{
	atomic_long_sub((long)bytes, &p->kernel_bytes);
}

/* Whole pages, zero-filled, that can be mapped. */
static void *get_pages(size_t bytes)
{
	return __vmalloc(bytes, SUL_GFP | __GFP_ZERO);
}

static u32 pin_pages(const struct sul_port_spec *spec)
{
	return (u32)(spec->pin_bytes >> PAGE_SHIFT);
}

static void free_memory(struct sul_port *p)
{
	kvfree(p->pins_memory);
	kvfree(p->near);
	vfree(p->staging);
	vfree(p->landing);
	vfree(p->status);
	p->pins_memory = NULL;
	p->near = NULL;
	p->staging = p->landing = NULL;
	p->status = NULL;
}

static int get_memory(struct sul_port *p, const struct sul_port_spec *spec)
{
	size_t near = spec->ranks * sizeof(p->near[0]);
	size_t pins = sul_pins_bytes(pin_pages(spec));
	size_t all = 2 * PAGE_SIZE + spec->landing_bytes + near + pins;
	int err = sul_port_charge(p, all);

	if (err)
		return err;
	p->status = get_pages(PAGE_SIZE);
	p->staging = get_pages(PAGE_SIZE);
	p->landing = spec->landing_bytes ? get_pages(spec->landing_bytes) :
					   NULL;
	p->near = kvzalloc(near, SUL_GFP);
	p->pins_memory = kvzalloc(pins, SUL_GFP);
	if (p->status && p->staging && p->near && p->pins_memory &&
	    (p->landing || !spec->landing_bytes)) {
		sul_pins_init(&p->pins, pin_pages(spec), p->pins_memory);
		return 0;
	}
	free_memory(p);
	sul_port_uncharge(p, all);
	return -ENOMEM;
}

/* What the user may lock yet, as mm_account_pinned_pages() would see it. */
static u64 locked_left(void)
{
	u64 most = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 used = (u64)atomic_long_read(&current_user()->locked_vm);
	const u64 worst_case = 2; /* pages that it adds */

	return most > used + worst_case ?
		       (most - used - worst_case) << PAGE_SHIFT :
		       0;
}

static int get_budget(struct sul_port *p, struct sul_port_spec *spec)
{
	if (!mm_account_pinned_pages(&p->budget, spec->pin_bytes))
		return 0;
	spec->pin_bytes = locked_left();
	return -ENOMEM;
}

static void give_budget_back(struct sul_port *p)
{
	mm_unaccount_pinned_pages(&p->budget);
	memset(&p->budget, 0, sizeof(p->budget));
}

/* --- jobs ---------------------------------------------------------------------------- */

/* In a time that says nothing about where they differ. */
static bool same_key(const u8 *a, const u8 *b)
{
	u8 differ = 0;

	for (unsigned int i = 0; i < SUL_ABI_KEY_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

static struct sul_job *find_job(const struct net *net, const u8 *key)
{
	struct sul_job *j;

	list_for_each_entry(j, &sul_table.jobs, in_jobs)
		if (net_eq(j->net, net) && same_key(j->key, key))
			return j;
	return NULL;
}

static struct sul_job *make_job(struct net *net,
				const struct sul_port_spec *spec)
{
	struct sul_job *j =
		kvzalloc(struct_size(j, port, spec->ranks), SUL_GFP);

	if (!j)
		return NULL;
	j->net = net;
	j->ranks = spec->ranks;
	memcpy(j->key, spec->key, sizeof(j->key));
	init_waitqueue_head(&j->started);
	list_add(&j->in_jobs, &sul_table.jobs);
	return j;
}

static unsigned int ports_of_user(kuid_t uid)
{
	unsigned int n = 0;
	struct sul_port *p;

	list_for_each_entry(p, &sul_table.ports, in_ports)
		n += uid_eq(p->uid, uid);
	return n;
}

static int join_job(struct sul_port *p, const struct sul_port_spec *spec)
{
	struct sul_job *j;

	lockdep_assert_held(&sul_table.lock);
	if (ports_of_user(p->uid) >= ports)
		return -EMFILE;
	j = find_job(p->net, spec->key);
	if (!j)
		j = make_job(p->net, spec);
	if (!j)
		return -ENOMEM;
	if (j->ranks != spec->ranks)
		return -EINVAL;
	if (j->port[spec->rank])
		return -EADDRINUSE;
	j->port[spec->rank] = p;
	j->ports++;
	p->job = j;
	list_add(&p->in_ports, &sul_table.ports);
	return 0;
}

/* Those who have it as a near peer are told. */
static void tell_death(const struct sul_port *p)
{
	u32 rank = p->spec.rank;

	for (u32 r = 0; r < p->job->ranks; r++) {
		struct sul_port *other = p->job->port[r];

		if (!other || sul_port_near(other, rank) != p)
			continue;
		spin_lock_bh(&other->lock);
		sul_port_bury_locked(other, rank);
		spin_unlock_bh(&other->lock);
	}
}

/* It cannot be found any more; the job stays until the port is closed. */
static void leave_job(struct sul_port *p)
{
	mutex_lock(&sul_table.lock);
	p->job->port[p->spec.rank] = NULL;
	list_del(&p->in_ports);
	tell_death(p);
	mutex_unlock(&sul_table.lock);
}

static void put_job(struct sul_job *j)
{
	if (!j)
		return;
	mutex_lock(&sul_table.lock);
	if (!--j->ports) {
		list_del(&j->in_jobs);
		kvfree_sensitive(j, struct_size(j, port, j->ranks));
	}
	mutex_unlock(&sul_table.lock);
}

static void set_rank(__u64 *bits, u32 rank)
{
	u64 *word = &bits[rank / 64];

	smp_store_release(word, *word | 1ull << rank % 64);
}

void sul_port_bury_locked(struct sul_port *p, u32 rank)
{
	lockdep_assert_held(&p->lock);
	if (!p->status->dead)
		WRITE_ONCE(p->status->dead, 1 + rank);
	set_rank(p->status->down, rank);
	smp_store_release(&p->status->deaths, p->status->deaths + 1);
	sul_wake_all(p);
}

void sul_port_leave_locked(struct sul_port *p, u32 rank)
{
	lockdep_assert_held(&p->lock);
	set_rank(p->status->left, rank);
}

/* --- a port's life -------------------------------------------------------------------- */

static void reach(struct sul_port *p, enum sul_stage stage)
{
	lockdep_assert_held(&p->setup);
	/* HELLO may be said again, at any time. */
	if (p->stage < stage)
		smp_store_release(&p->stage, stage);
}

void sul_port_greet(struct sul_port *p)
{
	mutex_lock(&p->setup);
	reach(p, SUL_STAGE_HELLO);
	mutex_unlock(&p->setup);
}

/*
 * Nobody finds it any more, nothing of its process's memory is held or worked on;
 * once.  The process may be there yet, and find it dead.
 */
static void end_port(struct sul_port *p)
{
	mutex_lock(&p->setup);
	if (p->ended || p->stage < SUL_STAGE_PORT) {
		mutex_unlock(&p->setup);
		return;
	}
	p->ended = true;
	spin_lock_bh(&p->lock);
	p->dead = true;
	spin_unlock_bh(&p->lock);
	leave_job(p);
	sul_core_stop(p);
	sul_window_stop(p);
	sul_count_keep(p);
	give_budget_back(p);
	mutex_unlock(&p->setup);
}

static void end_by_work(struct work_struct *work)
{
	sul_linger(SUL_PLACE_ending);
	end_port(container_of(work, struct sul_port, ending));
}

static void put_near(struct sul_port *p)
{
	for (u32 r = 0; p->near && r < p->spec.ranks; r++)
		if (p->near[r])
			sul_port_put(p->near[r]);
}

int sul_port_open(struct sul_port **out)
{
	struct sul_port *p = kzalloc(sizeof(*p), SUL_GFP);

	if (!p)
		return -ENOMEM;
	kref_init(&p->ref);
	p->mm = current->mm;
	mmgrab(p->mm);
	p->net = get_net(current->nsproxy->net_ns);
	p->uid = current_euid();
	mutex_init(&p->setup);
	mutex_init(&p->submit);
	mutex_init(&p->pinning);
	spin_lock_init(&p->lock);
	init_waitqueue_head(&p->wait);
	INIT_WORK(&p->ending, end_by_work);
	*out = p;
	return 0;
}

void sul_port_close(struct sul_port *p)
{
	end_port(p);
	/* Nothing is watched any more that could queue it again. */
	if (!SUL_BROKEN(ending_left))
		cancel_work_sync(&p->ending);
	sul_core_free(p);
	put_near(p);
	put_job(p->job);
	free_memory(p);
	put_net(p->net);
	if (SUL_BROKEN(mm_freed))
		mmdrop(p->mm);
	sul_port_put(p);
}

static void free_port(struct kref *ref)
{
	struct sul_port *p = container_of(ref, struct sul_port, ref);

	/* Until now: a near rank that wants to pin looks whether it is there yet. */
	if (!SUL_BROKEN(mm_freed))
		mmdrop(p->mm);
	kfree_sensitive(p); /* the key is in it */
}

void sul_port_put(struct sul_port *p)
{
	kref_put(&p->ref, free_port);
}

/* --- PORT, START, PEER ------------------------------------------------------------------ */

static int make_port(struct sul_port *p, struct sul_port_spec *spec)
{
	int err;

	if (p->stage != SUL_STAGE_HELLO)
		return -EBUSY;
	err = get_memory(p, spec);
	if (err)
		return err;
	err = get_budget(p, spec);
	if (err)
		goto put_memory;
	p->spec = *spec;
	mutex_lock(&sul_table.lock);
	err = join_job(p, spec);
	mutex_unlock(&sul_table.lock);
	if (err)
		goto put_budget;
	reach(p, SUL_STAGE_PORT);
	return 0;

put_budget:
	give_budget_back(p);
put_memory:
	free_memory(p);
	atomic_long_set(&p->kernel_bytes, 0);
	return err;
}

long sul_port_make(struct sul_port *p, struct sul_port_spec *spec)
{
	int err = sul_port_check(spec, PAGE_SIZE);

	if (err)
		return err;
	if (spec->auth == SUL_ABI_AUTH_AEAD && !sul_seal_known())
		return -EOPNOTSUPP;
	mutex_lock(&p->setup);
	err = make_port(p, spec);
	mutex_unlock(&p->setup);
	return err;
}

static int start_port(struct sul_port *p, const struct sul_start *s)
{
	int err = sul_window_start(p, s);

	if (err)
		return err;
	err = sul_core_start(p);
	if (err)
		sul_window_cancel(p);
	return err;
}

long sul_port_start(struct sul_port *p, const struct sul_start *s)
{
	int err = sul_start_check(s, PAGE_SIZE);

	if (err)
		return err;
	mutex_lock(&p->setup);
	if (p->stage != SUL_STAGE_PORT)
		err = -EALREADY;
	else if (p->ended)
		err = -EHOSTDOWN;
	else
		err = start_port(p, s);
	if (!err) {
		reach(p, SUL_STAGE_START);
		atomic_inc(&p->job->starts);
		wake_up_all(&p->job->started);
	}
	mutex_unlock(&p->setup);
	return err;
}

/* A reference to the port of that rank.  -EAGAIN: not there, or not yet. */
static int find_near(const struct sul_port *p, const struct sul_peer_spec *s,
		     struct sul_port **out)
{
	struct sul_port *other;
	int err = 0;

	mutex_lock(&sul_table.lock);
	other = p->job->port[s->rank];
	if (!other)
		err = -EAGAIN;
	else if (!uid_eq(other->uid, p->uid))
		err = -EACCES;
	else if (sul_port_stage(other) < SUL_STAGE_START ||
		 other->spec.session != s->session)
		err = -EAGAIN;
	else
		sul_port_get(other);
	mutex_unlock(&sul_table.lock);
	*out = err ? NULL : other;
	return err;
}

/* The same, when it is there. */
static int await_near(const struct sul_port *p, const struct sul_peer_spec *s,
		      struct sul_port **out)
{
	struct sul_job *j = p->job;
	long left = (long)msecs_to_jiffies(s->timeout_ms);

	for (;;) {
		int starts = atomic_read(&j->starts);
		int err = find_near(p, s, out);

		if (err != -EAGAIN)
			return err;
		left = wait_event_killable_timeout(
			j->started, atomic_read(&j->starts) != starts, left);
		if (left < 0)
			return -EINTR;
		if (!left)
			return -ETIMEDOUT;
	}
}

static bool is_near_peer(const struct sul_port *p,
			 const struct sul_peer_spec *s)
{
	return s->flags == SUL_PEER_NEAR && !s->reserved && !s->paths &&
	       s->session && s->rank < p->spec.ranks &&
	       s->rank != p->spec.rank &&
	       !memchr_inv(s->path, 0, sizeof(s->path));
}

/* Already, one way or the other? */
static bool is_peer(struct sul_port *p, u32 rank)
{
	bool is;

	mutex_lock(&p->setup);
	is = sul_port_near(p, rank) || sul_core_has_peer(p, rank);
	mutex_unlock(&p->setup);
	return is;
}

/* With the reference to @other that the caller holds. */
static int add_near(struct sul_port *p, u32 rank, struct sul_port *other)
{
	int err = 0;

	mutex_lock(&p->setup);
	mutex_lock(&sul_table.lock);
	if (p->near[rank] || sul_core_has_peer(p, rank))
		err = -EEXIST;
	else if (p->job->port[rank] != other && !SUL_BROKEN(gone_met))
		err = -EHOSTDOWN; /* it has left again */
	else
		smp_store_release(&p->near[rank], other);
	mutex_unlock(&sul_table.lock);
	mutex_unlock(&p->setup);
	return err;
}

long sul_port_peer(struct sul_port *p, const struct sul_peer_spec *s)
{
	struct sul_port *other;
	int err;

	if (sul_peer_check(s))
		return -EINVAL;
	if (!(s->flags & SUL_PEER_NEAR))
		return sul_core_peer(p, s);
	if (!is_near_peer(p, s))
		return -EINVAL;
	if (is_peer(p, s->rank))
		return -EEXIST;
	err = await_near(p, s, &other);
	if (err)
		return err;
	sul_linger(SUL_PLACE_peer);
	err = add_near(p, s->rank, other);
	if (err)
		sul_port_put(other);
	return err;
}

void sul_port_for_each(const struct net *net,
		       void (*each)(struct sul_port *p, void *ctx), void *ctx)
{
	struct sul_port *p;

	mutex_lock(&sul_table.lock);
	list_for_each_entry(p, &sul_table.ports, in_ports)
		if (net_eq(p->net, net))
			each(p, ctx);
	mutex_unlock(&sul_table.lock);
}
