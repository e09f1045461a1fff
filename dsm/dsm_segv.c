/* SPDX-License-Identifier: MIT */
/*
 * dsm_segv.c - page faults come in through libsigsegv.
 *
 * Role:    installs libsigsegv's handler and, around it, a small one of ours
 *          that adds what the library leaves out.
 * Threads: the handler runs in whichever thread faulted, several at once.
 *
 * What the handler may do.  It runs on the faulting thread's stack, in the
 * middle of any instruction of the program, which holds none of our locks (or
 * it would be a bug, which is reported).  So it may take the rank mutex, wait,
 * and call mprotect; it must keep errno, and not touch stdio or malloc.
 *
 * What the library leaves out, and the remedy here:
 *   - load or store?  The hardware's error code in the signal's context says.
 *   - a fault that is not ours: it resets the signal for good.  We hand it to
 *     whoever had the signal before (the program's own handler, a sanitizer),
 *     or give the default back and let the instruction fault again: core dump.
 *     What it was is left in the job's memory, for the launcher's message.
 *   - kill(pid, SIGSEGV) is no fault at all: treated as not ours.
 *   - a fault inside the handler dies without a word: with SA_NODEFER it comes
 *     back here.
 *   - signals are blocked in the handler, by the kernel and at no cost, so that
 *     a handler of the program cannot interrupt a repair.
 * SIGBUS means that the system had no memory for a shared page.
 *
 * SIGFPE and SIGILL are never ours.  If the program leaves them to the system,
 * so do we, after a word for the launcher on where it was.
 */
#include "dsm_host.h"

#include <errno.h>
#include <sigsegv.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum access_kind {
	ACCESS_UNKNOWN,
	ACCESS_LOAD,
	ACCESS_STORE
};

static _Thread_local enum access_kind faulting
	__attribute__((tls_model("initial-exec")));
static _Thread_local uintptr_t faulting_at
	__attribute__((tls_model("initial-exec")));
static _Thread_local int repairing __attribute__((tls_model("initial-exec")));
static _Thread_local bool declined __attribute__((tls_model("initial-exec")));

bool dsm_segv_repairing(void)
{
	return repairing > 0;
}

static enum access_kind kind_of(const void *context)
{
#if defined(__x86_64__)
	const ucontext_t *uc = context;

	return uc->uc_mcontext.gregs[REG_ERR] & 2 ? ACCESS_STORE : ACCESS_LOAD;
#elif defined(__aarch64__)
	const ucontext_t *uc = context;
	const struct _aarch64_ctx *c = (const void *)uc->uc_mcontext.__reserved;

	for (; c->magic; c = (const void *)((const char *)c + c->size))
		if (c->magic == ESR_MAGIC) {
			const struct esr_context *esr = (const void *)c;

			return esr->esr & 1u << 6 ? ACCESS_STORE : ACCESS_LOAD;
		}
	return ACCESS_UNKNOWN;
#else
	(void)context;
	return ACCESS_UNKNOWN;
#endif
}

static const void *pc_of(const void *context)
{
#if defined(__x86_64__)
	const ucontext_t *uc = context;

	return (const void *)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	const ucontext_t *uc = context;

	return (const void *)uc->uc_mcontext.pc;
#else
	(void)context;
	return NULL;
#endif
}

/* Without the hardware's word: what is readable can only have been stored to.
 * A store to an unreadable page then faults twice. */
static bool is_store(const struct dsm_host *h, const char *addr)
{
	uint64_t off;

	if (faulting != ACCESS_UNKNOWN || !dsm_host_offset(h, addr, &off))
		return faulting == ACCESS_STORE;
	return h->node->access[off >> 12] != DSM_ACCESS_NONE;
}

static int on_library_fault(void *addr, int serious)
{
	struct dsm_host *h = dsm_host_current;
	int saved = errno;

	(void)serious;
	repairing++;
	declined = !dsm_host_fault(h, addr, is_store(h, addr), faulting_at);
	repairing--;
	errno = saved;
	return 1; /* what is declined is ours to hand on */
}

/* What the launcher shall say of our death; @where is what was accessed. */
static void leave_word(const struct dsm_host *h, const siginfo_t *si,
		       const void *context, const char *where)
{
	const char *pc = pc_of(context);
	char text[SUL_JOB_NOTE_MAX];

	if (si->si_code <= 0)
		snprintf(text, sizeof(text), "sent by process %d",
			 (int)si->si_pid);
	else if (si->si_signo == SIGFPE || si->si_signo == SIGILL)
		snprintf(text, sizeof(text), "%s", where);
	else if (si->si_code == SI_KERNEL)
		snprintf(text, sizeof(text),
			 "access to an impossible address, at @{%p}", pc + 1);
	else if (pc == si->si_addr)
		snprintf(text, sizeof(text), "jump to %p%s", si->si_addr,
			 where);
	else /* places are return addresses: one beyond the instruction */
		snprintf(text, sizeof(text), "%s %p%s, at @{%p}",
			 kind_of(context) == ACCESS_STORE ? "store to" :
							    "load of",
			 si->si_addr, where, pc + 1);
	if (*where && si->si_signo != SIGFPE && si->si_signo != SIGILL)
		dsm_host_say(h, text);
	if (!h->child)
		memcpy(sul_job_rank(h->job, sul_job_self(h->job))->last_word,
		       text, sizeof(text));
}

/*
 * The mask that the kernel would have given the program's own handler, except
 * that SIGSEGV stays open: the handler may use shared memory.  That it is to be
 * blocked is noted by blocking SIGSTKFLT, which nobody ever sends; so a handler
 * that faults itself dies of it, and one that was left with siglongjmp() counts
 * as left.
 */
static void mask_for(const struct sigaction *own, int sig, const void *context)
{
	const ucontext_t *uc = context;
	sigset_t mask;

	sigorset(&mask, &uc->uc_sigmask, &own->sa_mask);
	if (!(own->sa_flags & SA_NODEFER)) {
		sigaddset(&mask, sig);
		sigaddset(&mask, SIGSTKFLT);
	}
	sigdelset(&mask, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static bool has_handler(const struct sigaction *before, const siginfo_t *si,
			const void *context)
{
	const ucontext_t *uc = context;

	if (!(before->sa_flags & SA_SIGINFO) &&
	    (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN))
		return false;
	return si->si_code <= 0 || before->sa_flags & SA_NODEFER ||
	       !sigismember(&uc->uc_sigmask, SIGSTKFLT);
}

/* As if we were not there. */
static void hand_on(int sig, siginfo_t *si, void *context,
		    struct sigaction *before, const char *where)
{
	struct sigaction own = *before;

	if (has_handler(&own, si, context)) {
		if ((unsigned int)own.sa_flags & SA_RESETHAND)
			*before = (struct sigaction){ .sa_handler = SIG_DFL };
		mask_for(&own, sig, context);
		if (own.sa_flags & SA_SIGINFO)
			own.sa_sigaction(sig, si, context);
		else
			own.sa_handler(sig);
		return;
	}
	if (si->si_code <= 0 && !(own.sa_flags & SA_SIGINFO) &&
	    own.sa_handler == SIG_IGN)
		return;
	leave_word(dsm_host_current, si, context, where);
	signal(sig, SIG_DFL);
	if (si->si_code <=
	    0) /* sent by kill(): the instruction will not repeat */
		raise(sig);
}

static bool in_view(const struct dsm_host *h, const void *addr)
{
	uint64_t off;

	return dsm_host_offset(h, addr, &off);
}

static void on_segv(int sig, siginfo_t *si, void *context)
{
	struct dsm_host *h = dsm_host_current;

	if (si->si_code <= 0 || !in_view(h, si->si_addr)) {
		hand_on(sig, si, context, &h->segv_before, "");
		return;
	}
	if (pc_of(context) == si->si_addr) { /* it would fault for ever */
		hand_on(sig, si, context, &h->segv_before,
			", which is shared memory: no code can be there");
		return;
	}
	faulting = kind_of(context);
	faulting_at = (uintptr_t)pc_of(context) + 1;
	declined = false;
	h->library.sa_sigaction(sig, si, context);
	if (declined)
		hand_on(sig, si, context, &h->segv_before,
			h->child ? "" : ", which is not allocated");
}

static void on_bus(int sig, siginfo_t *si, void *context)
{
	struct dsm_host *h = dsm_host_current;

	if (si->si_code > 0 && dsm_host_ours(h, si->si_addr))
		dsm_host_fail(
			h,
			"the system has no memory for the shared page at %p; see the limits of the cgroup, or use less shared memory",
			si->si_addr);
	hand_on(sig, si, context, &h->bus_before, "");
}

static void on_trap(int sig, siginfo_t *si, void *context)
{
	struct sigaction none = { .sa_handler = SIG_DFL };
	const char *pc = pc_of(context);
	char where[SUL_JOB_NOTE_MAX] = "";

	if (si->si_code > 0)
		snprintf(where, sizeof(where), "%sat @{%p}",
			 si->si_code == FPE_INTDIV && sig == SIGFPE ?
				 "integer division by zero, " :
				 "",
			 pc + 1);
	hand_on(sig, si, context, &none, where);
}

/* Only what would end the program anyway. */
static void install_trap(int sig)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO }, before;

	sa.sa_sigaction = on_trap;
	sigemptyset(&sa.sa_mask);
	if (sigaction(sig, NULL, &before) == 0 &&
	    !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
		sigaction(sig, &sa, NULL);
}

void dsm_segv_install(struct dsm_host *h)
{
	struct sigaction sa;

	sigaction(SIGSEGV, NULL, &h->segv_before);
	if (sigsegv_install_handler(on_library_fault))
		dsm_host_fail(h, "libsigsegv cannot install its handler here");
	sigaction(SIGSEGV, NULL, &h->library);
	sa = h->library;
	sa.sa_sigaction = on_segv;
	sa.sa_flags |= SA_SIGINFO | SA_NODEFER;
	/* The program wants to survive an overflow of its stack. */
	sa.sa_flags |= h->segv_before.sa_flags & SA_ONSTACK;
	sigfillset(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIGSEGV);
	sigdelset(&sa.sa_mask, SIGBUS);
	sigdelset(&sa.sa_mask, SIGABRT);
	sigaction(SIGSEGV, &sa, NULL);

	sa.sa_sigaction = on_bus;
	sigaction(SIGBUS, &sa, &h->bus_before);
	install_trap(SIGFPE);
	install_trap(SIGILL);
}
