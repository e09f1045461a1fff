/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul.h - what the files of the module share: the port, its locks, who does what.
 *
 * Locks, in the order in which they may be taken:
 *
 *   port->setup      mutex: PORT, START and the end, one at a time
 *   sul_table.lock   mutex: which ports and jobs there are, and their near peers
 *   port->submit     mutex: the staging page, and operations on far ranks
 *   port->pinning    mutex: one task at a time pins pages of this port's windows
 *   mmap_lock        of the owner's memory
 *   port->lock       spinlock, also taken in softirq, so always with _bh: all that
 *                    both a system call and a packet touch
 *
 * Never two port->lock at a time; never a copy that may fault, a sleep, or a
 * transmission with one held: the receiver may be this very machine.
 *
 * Why a pinned page may be worked on.  A page is in port->pins only if it was
 * pinned while no invalidation of its range was under way, which is asked for under
 * port->lock; an invalidation takes the pages out under the same lock before the
 * memory's owner goes on.  So whoever finds a page under the lock and drops the
 * lock after its last access never works on a page that is not the window's any
 * more.  Outside the lock, a page found is nothing.
 *
 * Lifetime.  A port is a descriptor of an address space; when either goes, so does
 * all that is large.  struct sul_port itself, and the empty struct mm_struct, stay
 * until the last rank that has it as a NEAR peer, and the last task that works on
 * its windows, has let go; they find it dead.
 */
#ifndef SUL_KERNEL_H
#define SUL_KERNEL_H

#include <linux/jump_label.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "sul_abi.h"
#include "sul_check.h"
#include "sul_mutant.h"
#include "sul_pins.h"

enum sul_counter {
#define COUNTER(name, doc) SUL_COUNT_##name,
#include "sul_counter.def"
	SUL_COUNT_NR
};

/* What a descriptor can do already; only grows. */
enum sul_stage {
	SUL_STAGE_OPEN,
	SUL_STAGE_HELLO,
	SUL_STAGE_PORT,
	SUL_STAGE_START,
};

struct sul_port;
struct sul_core; /* of sul_core.c: the network's side of a port */

/* A window, and how its owner's mappings are watched. */
struct sul_window {
	struct sul_port *port;
	unsigned int nr;
	bool watched; /* the notifier is inserted */
	u64 addr; /* in the owner's memory */
	struct mmu_interval_notifier notifier;
};

/* The ranks of one job here; under sul_table.lock, but that @started is waited on
 * by ports that keep it alive. */
struct sul_job {
	struct list_head in_jobs;
	struct net *net;
	u8 key[SUL_ABI_KEY_BYTES];
	u32 ranks;
	u32 ports; /* that have it as their job */
	wait_queue_head_t started;
	atomic_t starts; /* how many have started */
	struct sul_port *port[]; /* [ranks] */
};

struct sul_port {
	/* From open() on. */
	struct kref ref;
	struct mm_struct *mm; /* whose port it is: grabbed, not used */
	struct net *net;
	kuid_t uid;
	struct list_head in_ports; /* sul_table.lock */
	struct work_struct ending; /* the memory is gone: the port goes, too */
	bool ended; /* under setup */

	/* Under setup; read with sul_port_stage() before. */
	struct mutex setup;
	enum sul_stage stage;

	/* From PORT on, and unchanged. */
	struct sul_port_spec spec;
	struct sul_job *job;
	struct mmpin budget; /* of locked memory */
	struct sul_status *status; /* a page of vmalloc, mapped read-only */
	char *landing; /* spec.landing_bytes of vmalloc, likewise */
	char *staging; /* a page; under submit */
	struct sul_port **near; /* [ranks]; set once, by PEER; sul_port_near() */
	atomic_long_t kernel_bytes; /* see sul_port_charge() */

	/* From START on, and unchanged. */
	struct sul_shape shape;
	struct sul_window window[SUL_ABI_WINDOWS_MAX];

	struct mutex submit;
	struct mutex pinning;

	/* Under lock. */
	spinlock_t lock ____cacheline_aligned_in_smp;
	bool dead; /* nothing of it may be worked on any more */
	struct sul_pins pins;
	void *pins_memory;
	u64 tickets; /* the last one given out */
	u64 count[SUL_COUNT_NR];

	/* Who sleeps in WAIT; they go by whether this has changed. */
	wait_queue_head_t wait;
	atomic_t news;

	struct sul_core *core; /* NULL: no far rank, no socket */
};

/* --- sul_port.c: ports, jobs, who finds whom -------------------------------------- */

int sul_port_open(struct sul_port **out);
/* The descriptor is closed: nobody calls any more. */
void sul_port_close(struct sul_port *p);
static inline void sul_port_get(struct sul_port *p)
{
	kref_get(&p->ref);
}
void sul_port_put(struct sul_port *p); /* process context */

/* What the stage promises is there. */
static inline enum sul_stage sul_port_stage(const struct sul_port *p)
{
	return smp_load_acquire(&p->stage);
}
void sul_port_greet(struct sul_port *p); /* HELLO */

/* PORT, START and PEER with NEAR; their arguments are only copied so far. */
long sul_port_make(struct sul_port *p, struct sul_port_spec *spec);
long sul_port_start(struct sul_port *p, const struct sul_start *s);
long sul_port_peer(struct sul_port *p, const struct sul_peer_spec *s);

/* The port of a NEAR rank; NULL: there is none.  Good until @p is closed. */
static inline struct sul_port *sul_port_near(const struct sul_port *p, u32 rank)
{
	return rank < p->spec.ranks ? smp_load_acquire(&p->near[rank]) : NULL;
}

/* Every allocation for a port is charged to its memory control group, and that there
 * is none is the caller's to hear, not the log's. */
#define SUL_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)
/* Kernel memory that a port takes beyond its own structure: -ENOBUFS: more than it
 * may have. */
int sul_port_charge(struct sul_port *p, size_t bytes);
void sul_port_uncharge(struct sul_port *p, size_t bytes);

/* @rank, a peer of @p, is dead: say so in the status page, wake all sleepers. */
void sul_port_bury_locked(struct sul_port *p, u32 rank);
/* It has said farewell: say so there. */
void sul_port_leave_locked(struct sul_port *p, u32 rank);

/* --- sul_window.c: windows and pins ----------------------------------------------- */

/* With setup held; on an error nothing is watched. */
int sul_window_start(struct sul_port *p, const struct sul_start *s);
void sul_window_cancel(struct sul_port *p); /* START failed after it */
/* Once @p is dead: nothing is pinned any more. */
void sul_window_stop(struct sul_port *p);

/* Where the byte at @off of a window lies; good to the end of its page, while the
 * lock is held.  NULL: the page is not pinned. */
static inline void *sul_window_at_locked(struct sul_port *p, unsigned int w,
					 u64 off)
{
	struct page *page =
		sul_pins_find(&p->pins, sul_pin_key_of(w, off >> PAGE_SHIFT));

	lockdep_assert_held(&p->lock);
	return page ? (char *)page_address(page) + offset_in_page(off) : NULL;
}

/*
 * Pin the page of that byte, and of the @bytes behind it what is cheap to pin
 * along.  Process context, any process.  0: it was there at some time, look again;
 * -EHOSTDOWN: the port or its process is no more; -EFAULT: no memory is there;
 * -EINTR: a fatal signal came.
 */
int sul_window_pin(struct sul_port *p, unsigned int w, u64 off, u64 bytes);
/*
 * Pages around that one are wanted soon, and each would cost a turn of a worker and a
 * request that waits: pin those that are there already, no others, and only where
 * there is room.  Process context.
 */
void sul_window_pin_ahead(struct sul_port *p, unsigned int w, u64 off);

/* --- sul_submit.c, sul_near.c: operations ------------------------------------------ */

/**
 * struct sul_batch - one SUBMIT on its way.
 * @staged: submit is held.
 */
struct sul_batch {
	struct sul_port *port;
	bool staged;
	u64 operations, near, bytes_put, bytes_got;
};

long sul_submit(struct sul_port *p, struct sul_submit *s);
/* From here on port->submit is held, to the end of the call. */
int sul_batch_stage(struct sul_batch *b);
/* One operation on @target, at once. */
int sul_near_issue(struct sul_batch *b, struct sul_port *target,
		   const struct sul_op *op);

static inline bool sul_is_traced(const struct sul_port *p)
{
	return unlikely(p->spec.flags & SUL_PORT_TRACE);
}

static inline void sul_trace(struct sul_port *p, enum sul_trace_at at)
{
	if (sul_is_traced(p))
		WRITE_ONCE(p->status->trace[at], ktime_get_ns());
}

/* --- sul_core.c, sul_far.c: ranks of other hosts ------------------------------------ */

/* SOCKET, and a PEER that is not NEAR. */
long sul_core_socket(struct sul_port *p, const struct sul_socket_spec *s);
long sul_core_peer(struct sul_port *p, const struct sul_peer_spec *s);
/* With setup held. */
bool sul_core_has_peer(const struct sul_port *p, u32 rank);
/* START, with setup held; without a socket there is nothing to do. */
int sul_core_start(struct sul_port *p);
/* Once @p is dead, with setup held: nothing comes in or goes out any more. */
void sul_core_stop(struct sul_port *p);
void sul_core_free(struct sul_port *p); /* afterwards; nobody calls any more */
/* What the network has counted, to its rows. */
void sul_core_count_locked(const struct sul_core *c, u64 count[SUL_COUNT_NR]);

bool sul_seal_known(void); /* for auth=aead */

/* One operation on a rank that is not near: under way when this returns. */
int sul_far_issue(struct sul_batch *b, const struct sul_op *op);
/*
 * The end of a SUBMIT: what is to be sent goes to @out, and the ticket is executed
 * when all is.
 */
void sul_far_finish_locked(struct sul_port *p, bool hurry,
			   struct sk_buff_head *out);

/* In softirq or without, in an RCU read-side section. */
void sul_tunnel_transmit(struct sk_buff_head *list);

/* Around a hold of port->lock, by which what is to be sent comes to be in @out: it
 * is sent without the lock, but before anybody can think that nobody is here. */
static inline void sul_sending_begin(struct sk_buff_head *out)
{
	__skb_queue_head_init(out);
	local_bh_disable();
	rcu_read_lock();
}
static inline void sul_sending_end(struct sk_buff_head *out)
{
	sul_tunnel_transmit(out);
	rcu_read_unlock();
	local_bh_enable();
}

/* --- sul_wait.c ---------------------------------------------------------------------- */

long sul_wait_for(struct sul_port *p, const struct sul_wait *w);
long sul_wake_rank(struct sul_port *p, const struct sul_wake *w);
/* Wake all that sleep in WAIT at @p.  Any context. */
void sul_wake_all(struct sul_port *p);
/* Store into a word of @p's windows and wake who said that he sleeps. */
void sul_notify_locked(struct sul_port *p, struct sul_word *word, u32 value);

/* --- sul_linger.c: where a task can be made to stay, for tests ----------------------- */

enum sul_place {
#define PLACE(name, doc) SUL_PLACE_##name,
#include "sul_linger.def"
	SUL_PLACES
};

DECLARE_STATIC_KEY_FALSE(sul_linger_on);
void sul_linger_at(enum sul_place place);
/* Process context, no spinlock held. */
static inline void sul_linger(enum sul_place place)
{
	if (static_branch_unlikely(&sul_linger_on))
		sul_linger_at(place);
}
void sul_linger_spin_at(enum sul_place place);
/* Softirq: the processor stays.  One at a time. */
static inline void sul_linger_spin(enum sul_place place)
{
	if (static_branch_unlikely(&sul_linger_on))
		sul_linger_spin_at(place);
}

/* --- sul_count.c: counters of a port, totals of a namespace ------------------------- */

int sul_count_init(void);
void sul_count_exit(void);
long sul_count_read(struct sul_port *p, struct sul_count *c);
/* A port is closed: what it has counted stays in the total. */
void sul_count_keep(struct sul_port *p);
/* What there is to count of @p; takes the lock. */
void sul_count_snapshot(struct sul_port *p, u64 out[SUL_COUNT_NR]);
/* Call @each for all ports of @net, in process context. */
void sul_port_for_each(const struct net *net,
		       void (*each)(struct sul_port *p, void *ctx), void *ctx);

#endif /* SUL_KERNEL_H */
