// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * sul_wait.c - sleeping until a word changes, and waking who does.
 *
 * Role:    WAIT and WAKE; the kernel's notify.
 * Context: WAIT and WAKE process; the rest any.
 * Locks:   none of its own.
 *
 * Why no wake-up is lost.  A sleeper adds itself to the word's sleepers (a full
 * fence), reads news, then the word, then sleeps until news is another.  A notifier
 * stores the word, full fence, reads the sleepers, and changes news if there is one.
 * If it sees no sleeper, the sleeper's look at the word comes after the store, and it
 * does not sleep.  If it sees one, news changes after the word was stored: either the
 * sleeper has read news before, then it wakes, or after, then it sees the word.
 */
#include <linux/hrtimer.h>
#include <linux/uaccess.h>

#include "sul.h"

void sul_wake_all(struct sul_port *p)
{
	atomic_inc(&p->news);
	if (wq_has_sleeper(&p->wait))
		wake_up_interruptible_all(&p->wait);
}

void sul_notify_locked(struct sul_port *p, struct sul_word *word, u32 value)
{
	lockdep_assert_held(&p->lock);
	smp_store_release(&word->value, value);
	smp_mb(); /* pairs with the sleeper's addition to sleepers */
	if (READ_ONCE(word->sleepers) < SUL_WORD_SLEEPER)
		return;
	p->count[SUL_COUNT_wakes]++;
	sul_wake_all(p);
}

/* Everything submitted so far has been executed. */
static bool is_quiet(struct sul_port *p)
{
	bool quiet;

	spin_lock_bh(&p->lock);
	quiet = p->status->executed == p->tickets;
	spin_unlock_bh(&p->lock);
	return quiet;
}

/* 1: what is waited for is there; 0: it is not; -EFAULT. */
static int look(struct sul_port *p, const struct sul_wait *w)
{
	if (!w->nr)
		return is_quiet(p);
	for (u32 i = 0; i < w->nr; i++) {
		u64 at = p->window[w->word[i].window].addr + w->word[i].off;
		u32 value;

		if (get_user(value, (u32 __user *)u64_to_user_ptr(at)))
			return -EFAULT;
		if (value != w->word[i].old)
			return 1;
	}
	return 0;
}

static bool makes_sense(const struct sul_port *p, const struct sul_wait *w)
{
	if (w->nr > SUL_ABI_WORDS_MAX || w->reserved)
		return false;
	for (u32 i = 0; i < SUL_ABI_WORDS_MAX; i++) {
		bool used = w->word[i].off || w->word[i].window ||
			    w->word[i].old;

		if (i < w->nr ? !sul_check_word(&p->shape, w->word[i].window,
						w->word[i].off) :
				used)
			return false;
	}
	return true;
}

static ktime_t deadline_of(u64 timeout_ns)
{
	if (timeout_ns >= KTIME_MAX)
		return KTIME_MAX;
	return ktime_add_safe(ktime_get(), ns_to_ktime(timeout_ns));
}

/* Until news is not @news any more.  -ETIMEDOUT, -EINTR. */
static int sleep(struct sul_port *p, int news, ktime_t deadline)
{
	ktime_t left = deadline;
	int err;

	if (deadline != KTIME_MAX) {
		left = ktime_sub(deadline, ktime_get());
		if (left <= 0)
			return -ETIMEDOUT;
	}
	err = wait_event_interruptible_hrtimeout(
		p->wait, atomic_read(&p->news) != news, left);
	if (err == -ETIME)
		return -ETIMEDOUT;
	return err ? -EINTR : 0;
}

long sul_wait_for(struct sul_port *p, const struct sul_wait *w)
{
	ktime_t deadline = deadline_of(w->timeout_ns);
	u64 sleeps = 0;
	int err = 0;

	if (!makes_sense(p, w))
		return -EINVAL;
	while (!err) {
		int news = atomic_read_acquire(&p->news);

		if (READ_ONCE(p->status->deaths) != w->deaths)
			break;
		smp_mb(); /* news first, then the words */
		err = look(p, w);
		if (err)
			break;
		sleeps++;
		sul_linger(SUL_PLACE_wait);
		if (SUL_BROKEN(news_late))
			news = atomic_read(&p->news);
		err = sleep(p, news, deadline);
	}
	spin_lock_bh(&p->lock);
	p->count[SUL_COUNT_waits]++;
	p->count[SUL_COUNT_sleeps] += sleeps;
	spin_unlock_bh(&p->lock);
	return err > 0 ? 0 : err;
}

long sul_wake_rank(struct sul_port *p, const struct sul_wake *w)
{
	struct sul_port *target =
		w->rank == p->spec.rank ? p : sul_port_near(p, w->rank);

	if (!target)
		return -EINVAL;
	if (READ_ONCE(target->dead))
		return -EHOSTDOWN;
	sul_wake_all(target);
	return 0;
}
