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
 *   - kill(pid, SIGSEGV) is no fault at all: treated as not ours.
 *   - a fault inside the handler dies without a word: with SA_NODEFER it comes
 *     back here.
 *   - signals are blocked in the handler, by the kernel and at no cost, so that
 *     a handler of the program cannot interrupt a repair.
 * SIGBUS means that the system had no memory for a shared page.
 */
#include "dsm_host.h"

#include <errno.h>
#include <sigsegv.h>
#include <string.h>
#include <ucontext.h>

enum access_kind {
	ACCESS_UNKNOWN,
	ACCESS_LOAD,
	ACCESS_STORE
};

static _Thread_local enum access_kind faulting
	__attribute__((tls_model("initial-exec")));
static _Thread_local int repairing __attribute__((tls_model("initial-exec")));

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
	const struct _aarch64_ctx *c =
		(const void *)uc->uc_mcontext.__reserved;

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

/* Without the hardware's word: what is readable can only have been stored to.
 * A store to an unreadable page then faults twice. */
static bool is_store(const struct dsm_host *h, const char *addr)
{
	uint32_t page = (uint32_t)((uintptr_t)(addr - h->base) >> 12);
	uint8_t state;

	if (faulting != ACCESS_UNKNOWN)
		return faulting == ACCESS_STORE;
	state = h->node->state[dsm_unit_of(h->node, page)];
	return state != DSM_PG_INVALID;
}

static int on_library_fault(void *addr, int serious)
{
	struct dsm_host *h = dsm_host_current;
	int saved = errno, done;

	(void)serious;
	repairing++;
	done = dsm_host_fault(h, addr, is_store(h, addr));
	repairing--;
	errno = saved;
	return done;
}

/* As if we were not there. */
static void hand_on(int sig, siginfo_t *si, void *context,
		    const struct sigaction *before)
{
	if (before->sa_flags & SA_SIGINFO && before->sa_sigaction) {
		before->sa_sigaction(sig, si, context);
		return;
	}
	if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
		before->sa_handler(sig);
		return;
	}
	signal(sig, SIG_DFL);
	if (si->si_code <= 0) /* sent by kill(): the instruction will not repeat */
		raise(sig);
}

static bool in_view(const struct dsm_host *h, const void *addr)
{
	const char *p = addr;

	return p >= h->base && p < h->base + h->bytes;
}

static void on_segv(int sig, siginfo_t *si, void *context)
{
	struct dsm_host *h = dsm_host_current;

	if (si->si_code <= 0 || !in_view(h, si->si_addr)) {
		hand_on(sig, si, context, &h->segv_before);
		return;
	}
	faulting = kind_of(context);
	h->library.sa_sigaction(sig, si, context);
}

static void on_bus(int sig, siginfo_t *si, void *context)
{
	struct dsm_host *h = dsm_host_current;

	if (si->si_code > 0 && dsm_host_ours(h, si->si_addr))
		dsm_host_fail(h,
			      "the system has no memory for the shared page at %p; see the limits of the cgroup, or use less shared memory",
			      si->si_addr);
	hand_on(sig, si, context, &h->bus_before);
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
	sigfillset(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIGSEGV);
	sigdelset(&sa.sa_mask, SIGBUS);
	sigdelset(&sa.sa_mask, SIGABRT);
	sigaction(SIGSEGV, &sa, NULL);

	sa.sa_sigaction = on_bus;
	sigaction(SIGBUS, &sa, &h->bus_before);
}
