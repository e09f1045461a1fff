// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_window.c - windows: the owner's memory, pinned page by page as it is used.
 *
 * Role:      pins the pages that an operation needs, within the budget; lets them
 *            go for others, or when the owner unmaps, moves or protects them.
 * Invariant: what is pinned is in port->pins, or on its way into it or out of it in
 *            one task of this file; so it is never more than was charged.
 * Context:   process.  An invalidation comes from whoever changes the mapping, and
 *            must not wait for anything.
 * Locks:     pinning, then the owner's mmap_lock, then lock.
 */
#include <linux/magic.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "sul.h"
#include "sul_compat.h"

enum {
	PIN_BATCH = 16, /* pages pinned at a time */
	BLOCK = 32, /* those around a page that may be pinned along, itself too */
};

/* --- letting go ------------------------------------------------------------------------ */

/*
 * Pages that an invalidation took out.  Their lock must not be waited for: whoever
 * unmaps may hold it.  That the mapping is still there keeps their file alive.
 */
static void unpin_unmapped(struct page **pages, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		set_page_dirty(pages[i]);
		unpin_user_page(pages[i]);
	}
}

static void unpin_used(struct page **pages, unsigned int nr)
{
	unpin_user_pages_dirty_lock(pages, nr, true);
}

static unsigned int let_go(struct sul_port *p, struct sul_pins_sweep *sweep,
			   void (*unpin)(struct page **pages, unsigned int nr))
{
	struct page *pages[SUL_PINS_STEP];
	unsigned int n, all = 0;
	bool more;

	do {
		spin_lock_bh(&p->lock);
		n = sul_pins_take(&p->pins, sweep, (void **)pages, &more);
		spin_unlock_bh(&p->lock);
		unpin(pages, n);
		all += n;
	} while (more);
	return all;
}

static struct sul_pins_sweep pages_between(const struct sul_window *w,
					   u64 start, u64 end)
{
	u64 bytes = w->port->shape.bytes[w->nr];
	u64 first = start > w->addr ? start - w->addr : 0;
	u64 past = min(end - w->addr, bytes);

	return (struct sul_pins_sweep){
		.first = sul_pin_key_of(w->nr, first >> PAGE_SHIFT),
		.last = sul_pin_key_of(w->nr, (past - 1) >> PAGE_SHIFT),
	};
}

static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long cur_seq)
{
	struct sul_window *w =
		container_of(notifier, struct sul_window, notifier);
	struct sul_pins_sweep sweep =
		pages_between(w, range->start, range->end);
	struct sul_port *p = w->port;
	unsigned int n;

	spin_lock_bh(&p->lock);
	mmu_interval_set_seq(notifier, cur_seq);
	spin_unlock_bh(&p->lock);
	n = SUL_BROKEN(gone_kept) ? 0 : let_go(p, &sweep, unpin_unmapped);
	if (mmu_notifier_range_blockable(range))
		sul_linger(SUL_PLACE_taken);
	if (n) {
		spin_lock_bh(&p->lock);
		p->count[SUL_COUNT_invalidations] += n;
		spin_unlock_bh(&p->lock);
	}
	/* The process ends, or becomes another program. */
	if (range->event == MMU_NOTIFY_RELEASE)
		queue_work(system_unbound_wq, &p->ending);
	return true;
}

static const struct mmu_interval_notifier_ops watch = {
	.invalidate = invalidate,
};

/* --- pinning ------------------------------------------------------------------------------ */

static unsigned long begin_reading(struct mmu_interval_notifier *notifier)
{
	return SUL_BROKEN(going_pinned) ? notifier->invalidate_seq :
					  mmu_interval_read_begin(notifier);
}

static bool has_died(const struct sul_port *p)
{
	return p->dead && !SUL_BROKEN(dead_pinned);
}

/* Room for @nr pages; true: the first one is there already, or the port is dead. */
static bool make_room(struct sul_port *p, sul_pin_key key, unsigned int nr)
{
	struct page *out[PIN_BATCH];
	unsigned int n = 0;
	bool needless;

	spin_lock_bh(&p->lock);
	needless = has_died(p) || sul_pins_find(&p->pins, key);
	while (!needless && p->pins.capacity - p->pins.used < nr)
		out[n++] = sul_pins_evict(&p->pins);
	p->count[SUL_COUNT_evictions] += n;
	spin_unlock_bh(&p->lock);
	unpin_used(out, n);
	return needless;
}

/* What was pinned goes to the table, unless the memory has changed meanwhile; what
 * does not stay is left at the beginning of @pages: how many. */
static unsigned int keep_locked(struct sul_port *p, sul_pin_key key,
				struct page **pages, unsigned int nr)
{
	unsigned int rest = 0;

	for (unsigned int i = 0; i < nr; i++) {
		if (sul_pins_find(&p->pins, key + i)) {
			pages[rest++] = pages[i];
			continue;
		}
		sul_pins_add(&p->pins, key + i, pages[i], true);
		p->count[SUL_COUNT_pins]++;
	}
	return rest;
}

/* -EAGAIN: the memory changed meanwhile. */
static int pin_once(struct sul_window *w, struct mm_struct *mm, u64 page,
		    unsigned int nr)
{
	sul_pin_key key = sul_pin_key_of(w->nr, page);
	struct page *pages[PIN_BATCH];
	struct sul_port *p = w->port;
	unsigned int rest;
	unsigned long seq;
	int err = 0;
	long got;

	if (make_room(p, key, nr))
		return 0;
	seq = begin_reading(&w->notifier);
	mmap_read_lock(mm);
	got = sul_pin_user_pages(mm, w->addr + (page << PAGE_SHIFT), nr, 0,
				 pages);
	mmap_read_unlock(mm);
	if (got <= 0)
		return got ? (int)got : -EFAULT;
	sul_linger(SUL_PLACE_pinned);

	rest = (unsigned int)got;
	spin_lock_bh(&p->lock);
	if (has_died(p))
		err = -EHOSTDOWN;
	else if (mmu_interval_read_retry(&w->notifier, seq) &&
		 !SUL_BROKEN(changed_kept))
		err = -EAGAIN;
	else
		rest = keep_locked(p, key, pages, rest);
	spin_unlock_bh(&p->lock);
	unpin_user_pages(pages, rest);
	return err;
}

static unsigned int batch_of(const struct sul_port *p, unsigned int w, u64 off,
			     u64 bytes)
{
	u64 first = off >> PAGE_SHIFT, most;
	u64 last = (off + max(bytes, 1ull) - 1) >> PAGE_SHIFT;

	most = min_t(u64, PIN_BATCH, p->pins.capacity / 4);
	most = min(most, (p->shape.bytes[w] >> PAGE_SHIFT) - first);
	return (unsigned int)min(most, last - first + 1);
}

int sul_window_pin(struct sul_port *p, unsigned int w, u64 off, u64 bytes)
{
	struct sul_window *window = &p->window[w];
	unsigned int nr = batch_of(p, w, off, bytes);
	struct mm_struct *mm = p->mm;
	int err;

	sul_linger(SUL_PLACE_pin);
	if (!mmget_not_zero(mm))
		return -EHOSTDOWN;
	sul_linger(SUL_PLACE_held);
	err = mutex_lock_killable(&p->pinning);
	if (!err) {
		do {
			cond_resched();
			err = pin_once(window, mm, off >> PAGE_SHIFT, nr);
		} while (err == -EAGAIN && !fatal_signal_pending(current));
		mutex_unlock(&p->pinning);
	}
	mmput(mm);
	return err == -EAGAIN ? -EINTR : err;
}

/* --- ahead of those who want them ---------------------------------------------------------- */

/* A block of pages of a window, and what was pinned of it. */
struct block {
	struct sul_window *window;
	u64 first; /* its first page */
	unsigned int nr;
	unsigned int most; /* that may be pinned */
	u32 lacks; /* a bit each: is not in the table */
	struct page *page[BLOCK]; /* or NULL */
};

static u64 address_of(const struct block *b, unsigned int i)
{
	return b->window->addr + ((b->first + i) << PAGE_SHIFT);
}

static sul_pin_key key_in(const struct block *b, unsigned int i)
{
	return sul_pin_key_of(b->window->nr, b->first + i);
}

/* Nobody has asked for these pages, so none goes for them. */
static bool find_gaps(struct sul_port *p, struct block *b)
{
	spin_lock_bh(&p->lock);
	b->most = min(p->pins.capacity - p->pins.used, p->pins.capacity / 4);
	if (SUL_BROKEN(ahead_greedy))
		b->most = p->pins.capacity - p->pins.used;
	for (unsigned int i = 0; i < b->nr && !p->dead && b->most; i++)
		if (!sul_pins_has(&p->pins, key_in(b, i)))
			b->lacks |= BIT(i);
	spin_unlock_bh(&p->lock);
	return b->lacks;
}

/* A window of files in memory: its owner, and others, write to them by mappings of
 * their own, so what is there says the file, and not the window's page table. */
static bool is_of_tmpfs(const struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_SHARED && vma->vm_file &&
	       file_inode(vma->vm_file)->i_sb->s_magic == TMPFS_MAGIC;
}

static bool is_in_file(const struct vm_area_struct *vma, u64 addr)
{
	loff_t at = (loff_t)(addr - vma->vm_start) +
		    ((loff_t)vma->vm_pgoff << PAGE_SHIFT);

	if (addr >= vma->vm_end)
		return false;
	return SUL_BROKEN(ahead_blind) ||
	       filemap_range_has_page(vma->vm_file->f_mapping, at, at);
}

/* How many of the @nr pages from @i on are to be pinned together, and how. */
static unsigned int run_of(struct mm_struct *mm, const struct block *b,
			   unsigned int i, unsigned int nr, unsigned int *flags)
{
	struct vm_area_struct *vma = vma_lookup(mm, address_of(b, i));
	unsigned int n = 0;

	if (!vma)
		return 0;
	*flags = is_of_tmpfs(vma) || SUL_BROKEN(ahead_makes) ? 0 : FOLL_NOFAULT;
	while (n < nr && b->lacks & BIT(i + n) &&
	       (*flags || SUL_BROKEN(ahead_makes) ||
		is_in_file(vma, address_of(b, i + n))))
		n++;
	return n;
}

/*
 * Pin what there is already of those that are lacking.  (Who makes a hole in a file
 * this very moment can have us fill it again, a page at most for each of ours.)
 */
static void pin_gaps(struct mm_struct *mm, struct block *b)
{
	unsigned int left = b->most, i = 0;

	mmap_read_lock(mm);
	while (i < b->nr && left) {
		unsigned int flags = 0;
		unsigned int n = run_of(mm, b, i, min(left, b->nr - i), &flags);
		long got = 0;

		if (n)
			got = sul_pin_user_pages(mm, address_of(b, i), n, flags,
						 b->page + i);
		got = max(got, 0l);
		left -= (unsigned int)got;
		i += max_t(unsigned int, (unsigned int)got, 1);
	}
	mmap_read_unlock(mm);
}

static void keep_ahead_locked(struct sul_port *p, struct block *b)
{
	for (unsigned int i = 0; i < b->nr; i++) {
		if (!b->page[i] || sul_pins_has(&p->pins, key_in(b, i)))
			continue;
		sul_pins_add(&p->pins, key_in(b, i), b->page[i], false);
		b->page[i] = NULL;
		p->count[SUL_COUNT_pins]++;
		p->count[SUL_COUNT_pins_ahead]++;
	}
}

/* Whatever changes meanwhile, all that is lost is that it is not ahead. */
static void pin_block(struct mm_struct *mm, struct block *b)
{
	struct sul_port *p = b->window->port;
	unsigned long seq;

	if (!find_gaps(p, b))
		return;
	seq = mmu_interval_read_begin(&b->window->notifier);
	pin_gaps(mm, b);
	sul_linger(SUL_PLACE_ahead);
	spin_lock_bh(&p->lock);
	if (!p->dead && (!mmu_interval_read_retry(&b->window->notifier, seq) ||
			 SUL_BROKEN(changed_ahead)))
		keep_ahead_locked(p, b);
	spin_unlock_bh(&p->lock);
	for (unsigned int i = 0; i < b->nr; i++)
		if (b->page[i])
			unpin_user_page(b->page[i]);
}

void sul_window_pin_ahead(struct sul_port *p, unsigned int w, u64 off)
{
	struct mm_struct *mm = p->mm;
	struct block b = {
		.window = &p->window[w],
		.first = round_down(off >> PAGE_SHIFT, BLOCK),
	};

	b.nr = (unsigned int)min_t(u64, BLOCK,
				   (p->shape.bytes[w] >> PAGE_SHIFT) - b.first);
	if (!mmget_not_zero(mm))
		return;
	mutex_lock(&p->pinning);
	pin_block(mm, &b);
	mutex_unlock(&p->pinning);
	mmput(mm);
}

/* --- START ----------------------------------------------------------------------------------- */

/* Is all of it memory that this process may write? */
static bool is_writable(u64 addr, u64 bytes)
{
	struct mm_struct *mm = current->mm;
	u64 end = addr + bytes;
	bool ok = true;

	if (!access_ok((void __user *)addr, bytes))
		return false;
	mmap_read_lock(mm);
	while (ok && addr < end) {
		struct vm_area_struct *vma = find_vma(mm, addr);

		ok = vma && vma->vm_start <= addr && vma->vm_flags & VM_WRITE &&
		     !(vma->vm_flags & (VM_IO | VM_PFNMAP));
		if (ok)
			addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ok;
}

static int start_window(struct sul_port *p, unsigned int nr,
			const struct sul_window_spec *s)
{
	struct sul_window *w = &p->window[nr];
	int err;

	if (!s->bytes)
		return 0;
	if (!is_writable(s->addr, s->bytes))
		return -EFAULT;
	w->port = p;
	w->nr = nr;
	w->addr = s->addr;
	p->shape.bytes[nr] = s->bytes;
	err = mmu_interval_notifier_insert(&w->notifier, p->mm, w->addr,
					   s->bytes, &watch);
	w->watched = !err;
	return err;
}

static void stop_windows(struct sul_port *p)
{
	for (unsigned int i = 0; i < SUL_ABI_WINDOWS_MAX; i++) {
		struct sul_window *w = &p->window[i];

		if (w->watched)
			mmu_interval_notifier_remove(&w->notifier);
		w->watched = false;
	}
}

void sul_window_cancel(struct sul_port *p)
{
	stop_windows(p);
	memset(&p->shape, 0, sizeof(p->shape));
}

int sul_window_start(struct sul_port *p, const struct sul_start *s)
{
	int err = 0;

	for (unsigned int i = 0; i < s->windows && !err; i++)
		err = start_window(p, i, &s->window[i]);
	if (err) {
		sul_window_cancel(p);
		return err;
	}
	p->shape.windows = s->windows;
	return 0;
}

void sul_window_stop(struct sul_port *p)
{
	struct sul_pins_sweep all = { .last = ~0ull };

	/* Whoever pins has let go, and finds the port dead afterwards: nothing is pinned
	 * any more when the budget is given back. */
	if (!SUL_BROKEN(pinner_left)) {
		mutex_lock(&p->pinning);
		mutex_unlock(&p->pinning);
	}
	stop_windows(p);
	let_go(p, &all, unpin_used);
}
