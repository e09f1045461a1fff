/* SPDX-License-Identifier: MIT */
/*
 * sul_signals.c - keeping the program's signal handlers out, for nothing.
 *
 * Role:      sul_signals_hold() and sul_signals_release() of sul.h.
 * Invariant: a thread that holds runs no handler of the program; what has been
 *            kept meanwhile is on its way again before release returns.
 * Threads:   any; what is kept is kept by the thread that it came to.
 * Locks:     none.
 *
 * How it works.  To block signals and to let them in again takes two system
 * calls, and next to always there was no signal at all.  So the first signal that
 * comes to a thread that holds does the blocking.  The kernel knows one handler
 * only, ours (arrive), which calls the program's; or, if the thread holds, keeps
 * the signal, and returns to the interrupted code with all signals blocked: by
 * changing the mask in the context that the kernel goes back to.  So there is
 * never a second one to be kept.  The release queues the signal again and gives
 * the mask back, and the kernel delivers it as if it had just come: on which
 * stack, with which signals blocked, all is as the program asked for.
 *
 * How ours gets in the way.  The functions by which a program installs a handler
 * are defined here and come before libc's, which they call.  Handlers that were
 * there before are taken over when a port is opened.  Should somebody else's
 * functions come before ours (a sanitizer's; or the library was loaded late),
 * signals are blocked by system calls.  Whoever installs a handler in another way
 * (by sigset(), which is no longer in any standard, or a system call of his own)
 * has to block it himself.
 *
 * Where a changed mask is ignored (valgrind goes back to its own) more than one
 * signal may come: of the others it is remembered that they came, not why.
 *
 * The signals of faults are left alone: they cannot wait.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "sul_signals.h"
#include "sul_sleep.h"

enum {
	MASK_BYTES = (_NSIG - 1) / 8 /* the kernel's; libc's are longer */
};

typedef void handler_fn(int sig);
typedef void arrive_fn(int sig, siginfo_t *info, void *context);
typedef int sigaction_fn(int sig, const struct sigaction *act,
			 struct sigaction *old);

/* Of each signal with a handler of the program: what the kernel does not know. */
struct handler {
	arrive_fn *fn;
	int flags;
};

/* A process has one set of handlers, so there is one of this. */
static struct {
	bool active; /* ours get in the way */
	sigaction_fn *next; /* libc's; set at its first use */
	struct handler handler[_NSIG];
} sul_handlers;

/* What the thread holds and keeps.  initial-exec: a handler looks at it. */
static _Thread_local struct {
	unsigned int depth;
	int kept; /* a signal, or 0; of it: */
	siginfo_t info;
	unsigned char before[MASK_BYTES]; /* what was blocked */
	uint64_t more; /* bit sig - 1 */
} self __attribute__((tls_model("initial-exec")));

static bool is_active(void)
{
	return __atomic_load_n(&sul_handlers.active, __ATOMIC_RELAXED);
}

/* --- the thread that holds ---------------------------------------------------- */

static void block_rest(ucontext_t *uc)
{
	unsigned char *mask = (unsigned char *)&uc->uc_sigmask;
	sigset_t block;
	unsigned char bits[MASK_BYTES];

	sul_sleep_signals_blockable(&block);
	memcpy(bits, &block, sizeof(bits));
	for (int i = 0; i < MASK_BYTES; i++)
		mask[i] |= bits[i];
}

static void keep(int sig, const siginfo_t *info, ucontext_t *uc)
{
	if (self.kept) {
		self.more |= UINT64_C(1) << (sig - 1);
	} else {
		self.kept = sig;
		self.info = *info;
		memcpy(self.before, &uc->uc_sigmask, sizeof(self.before));
	}
	block_rest(uc);
}

static void queue_again(int sig, siginfo_t *info)
{
	pid_t process = getpid();
	long thread = syscall(SYS_gettid);

	if (!info || syscall(SYS_rt_tgsigqueueinfo, process, thread, sig, info))
		syscall(SYS_tgkill, process, thread, sig);
}

static void let_out(void)
{
	siginfo_t info = self.info;
	uint64_t more = self.more;
	int sig = self.kept, saved = errno;
	sigset_t before;

	sigemptyset(&before);
	memcpy(&before, self.before, sizeof(self.before));
	self.more = 0;
	self.kept = 0;
	queue_again(sig, &info);
	for (; more; more &= more - 1)
		queue_again(__builtin_ctzll(more) + 1, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

static void enter(void)
{
	self.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Once the depth is 0 nothing is kept any more. */
static void leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.depth--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!self.depth && self.kept)
		let_out();
}

void sul_signals_hold(struct sul_quiet *q)
{
	q->on = true;
	q->blocked = !is_active();
	if (q->blocked)
		sul_sleep_signals_block(&q->before);
	else
		enter();
}

void sul_signals_release(const struct sul_quiet *q)
{
	if (!q->on)
		return;
	if (q->blocked)
		pthread_sigmask(SIG_SETMASK, &q->before, NULL);
	else
		leave();
}

const sigset_t *sul_signals_let_in(const struct sul_quiet *q)
{
	if (!q || !q->on)
		return NULL;
	if (q->blocked)
		return &q->before;
	leave();
	return NULL;
}

void sul_signals_let_no_more(const struct sul_quiet *q)
{
	if (q && q->on && !q->blocked)
		enter();
}

/* --- between kernel and program ------------------------------------------------ */

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
	__attribute__((weak));

/* In a program without shared libraries there is no next one. */
static int call_next(int sig, const struct sigaction *act,
		     struct sigaction *old)
{
	sigaction_fn *next =
		__atomic_load_n(&sul_handlers.next, __ATOMIC_RELAXED);

	if (!next) {
		*(void **)&next = dlsym(RTLD_NEXT, "sigaction");
		if (!next)
			next = __sigaction;
		__atomic_store_n(&sul_handlers.next, next, __ATOMIC_RELAXED);
	}
	return next(sig, act, old);
}

static void arrive(int sig, siginfo_t *info, void *context)
{
	const struct handler *h = &sul_handlers.handler[sig];
	struct sigaction none = { .sa_handler = SIG_DFL };

	if (self.depth) {
		keep(sig, info, context);
		return;
	}
	if ((unsigned int)h->flags & SA_RESETHAND)
		call_next(sig, &none, NULL);
	/* One that takes the number only finds it in the same place. */
	__atomic_load_n(&h->fn, __ATOMIC_ACQUIRE)(sig, info, context);
}

static bool is_handler(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO ||
	       (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

static bool is_ours(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO && sa->sa_sigaction == arrive;
}

static bool can_wait(int sig)
{
	sigset_t block;

	sul_sleep_signals_blockable(&block);
	return sig > 0 && sig < _NSIG && sig != SIGKILL && sig != SIGSTOP &&
	       sigismember(&block, sig) == 1;
}

enum {
	OWN_FLAGS = SA_SIGINFO | (int)SA_RESETHAND /* ours has them otherwise */
};

/* Note what the program wants, and make of it what the kernel is told. */
static struct sigaction put_between(int sig, const struct sigaction *act)
{
	struct handler *h = &sul_handlers.handler[sig];
	struct sigaction sa = *act;

	h->flags = act->sa_flags;
	__atomic_store_n(&h->fn, act->sa_sigaction, __ATOMIC_RELEASE);
	sa.sa_sigaction = arrive;
	sa.sa_flags = (sa.sa_flags & ~OWN_FLAGS) | SA_SIGINFO;
	return sa;
}

/* What the program had said of @h. */
static void put_back(struct sigaction *sa, const struct handler *h)
{
	sa->sa_sigaction = h->fn;
	sa->sa_flags = (sa->sa_flags & ~OWN_FLAGS) | (h->flags & OWN_FLAGS);
}

static int set_action(int sig, const struct sigaction *act,
		      struct sigaction *old)
{
	struct handler before = sul_handlers.handler[sig];
	struct sigaction was, between;

	if (act && is_handler(act)) {
		between = put_between(sig, act);
		act = &between;
	}
	if (call_next(sig, act, &was)) {
		sul_handlers.handler[sig] = before;
		return -1;
	}
	if (is_ours(&was))
		put_back(&was, &before);
	if (old)
		*old = was;
	return 0;
}

/* One that was installed before, or in another way. */
static void take_over(int sig)
{
	struct sigaction sa;

	if (call_next(sig, NULL, &sa) || !is_handler(&sa) || is_ours(&sa))
		return;
	sa = put_between(sig, &sa);
	call_next(sig, &sa, NULL);
}

/* --- what the program calls ------------------------------------------------------ */

#pragma GCC visibility push(default)

handler_fn *bsd_signal(int sig, handler_fn *fn);
handler_fn *sysv_signal(int sig, handler_fn *fn);
handler_fn *__sysv_signal(int sig, handler_fn *fn);

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (!is_active() || !can_wait(sig))
		return call_next(sig, act, old);
	return set_action(sig, act, old);
}

static handler_fn *set_handler(int sig, handler_fn *fn, unsigned int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = (int)flags };

	if (fn == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return sigaction(sig, &sa, &sa) ? SIG_ERR : sa.sa_handler;
}

handler_fn *signal(int sig, handler_fn *fn)
{
	return set_handler(sig, fn, SA_RESTART);
}

handler_fn *bsd_signal(int sig, handler_fn *fn)
{
	return set_handler(sig, fn, SA_RESTART);
}

/* What signal() is in a program that asks for ISO C or X/Open and no more. */
handler_fn *__sysv_signal(int sig, handler_fn *fn)
{
	return set_handler(sig, fn, SA_RESETHAND | SA_NODEFER);
}

handler_fn *sysv_signal(int sig, handler_fn *fn)
{
	return set_handler(sig, fn, SA_RESETHAND | SA_NODEFER);
}

#pragma GCC visibility pop

/* --- opening ------------------------------------------------------------------------ */

/* Are they those of this library, or of the program that it is part of?  Of a
 * program without shared libraries nothing is found, and nothing comes between. */
static bool is_from_here(const char *name)
{
	void *first = dlsym(RTLD_DEFAULT, name);
	Dl_info its, ours;

	return !first || (dladdr(first, &its) && dladdr(&sul_handlers, &ours) &&
			  its.dli_fbase == ours.dli_fbase);
}

void sul_signals_open(void)
{
	if (!is_from_here("sigaction") || !is_from_here("signal") ||
	    !is_from_here("__sysv_signal"))
		return;
	__atomic_store_n(&sul_handlers.active, true, __ATOMIC_RELAXED);
	for (int sig = 1; sig < _NSIG; sig++)
		if (can_wait(sig))
			take_over(sig);
}
