/* SPDX-License-Identifier: MIT */
/*
 * fault.c - faults that are the program's own, with and without a handler.
 *
 * What must come of them is what would come of them without the library.
 */
#include "misuse.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Out of the compiler's sight. */
static volatile unsigned char *at(uintptr_t addr)
{
	volatile uintptr_t hidden = addr;

	return (volatile unsigned char *)hidden;
}

/* A page of the region that no allocation covers. */
static volatile unsigned char *unallocated(void)
{
	return shared + (size_t)5000 * PAGE;
}

DEED(null_load, shared[0] = *at(16))
DEED(null_store, *at(24) = 1)
DEED(code_store, *at((uintptr_t)null_store) = 8)
DEED(impossible_load, shared[0] = *at(UINT64_C(0x8000000000000000)))
DEED(unallocated_load, shared[0] = *unallocated())
DEED(unallocated_store, *unallocated() = 1)
DEED(wild_jump, ((void (*)(void))(uintptr_t)4096)())
DEED(jump_into_shared, ((void (*)(void))(uintptr_t)shared)())
DEED(raise_segv, raise(SIGSEGV))
DEED(divide_by_zero, shared[0] = (unsigned char)(7 / shared[PAGE]))
DEED(bad_instruction, __builtin_trap())

static void freed_load(void)
{
	volatile unsigned char *p = jia_malloc(PAGE);

	*p = 1;
	jia_free((void *)(uintptr_t)p);
	if (jia_pid == the_rank)
		shared[0] = *p; /* DEED(freed_load,) */
	jia_barrier();
}

static int overflow(volatile int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	return depth ? overflow(depth + 1) + room[0] : 0;
}

static void stack_overflow(void)
{
	overflow(1);
}

/* The trap that jia(7) names: the kernel cannot deliver a blocked fault. */
static void segv_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < PAGES; i++)
		*unallocated() = 1;
}

static void wait_for_kill(void)
{
	printf("waiting %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}

/* --- a handler of the program's own ------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t faults;
static void *volatile fault_at;
static volatile char *page;

static void install(void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | flags };

	sa.sa_sigaction = fn;
	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &sa, NULL);
}

static char *private_page(void)
{
	return mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int blocked(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, sig);
}

static void repair(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)context;
	faults++;
	fault_at = si->si_addr;
	CHECK(blocked(SIGUSR1) && !blocked(SIGUSR2), "mask of the handler");
	mprotect((void *)(uintptr_t)page, PAGE, PROT_READ | PROT_WRITE);
}

/* The handler repairs the page, and the store is repeated. */
static void handler_continues(void)
{
	install(repair, 0);
	setup();
	page = private_page();
	for (int i = 0; i < 20; i++) {
		mprotect((void *)(uintptr_t)page, PAGE, PROT_NONE);
		page[i] = (char)i;
		CHECK(faults == i + 1 && fault_at == page + i, "%d faults",
		      (int)faults);
		CHECK(!blocked(SIGUSR1), "mask after the handler");
		shared[i * PAGE + jia_pid] = 1;
	}
	jia_barrier();
	jia_exit();
}

static void jump(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)context;
	faults++;
	fault_at = si->si_addr;
	shared[(size_t)(faults % PAGES) * PAGE + 100 + (size_t)jia_pid]++;
	siglongjmp(back, 1);
}

static void jump_many_times(int save, int flags)
{
	install(jump, flags);
	setup();
	for (int i = 0; i < 100; i++) {
		if (!sigsetjmp(back, save))
			shared[0] = *unallocated();
		CHECK(faults == 2 * i + 1, "%d faults", (int)faults);
		CHECK(fault_at == (void *)(uintptr_t)unallocated(), "at %p",
		      fault_at);
		if (!sigsetjmp(back, save))
			*at(8) = 1;
		CHECK(faults == 2 * i + 2, "%d faults", (int)faults);
		shared[i % PAGES * PAGE + jia_pid]++;
		jia_lock(i % 5);
		shared[i % PAGES * PAGE + 50]++;
		jia_unlock(i % 5);
		if (i % 10 == 0)
			jia_barrier();
	}
	jia_barrier();
	jia_exit();
}

static void handler_jumps(void)
{
	jump_many_times(1, 0);
}

/* The mask stays as it was in the handler; SA_NODEFER is what makes that work
 * without the library, too. */
static void handler_jumps_and_keeps_the_mask(void)
{
	jump_many_times(0, SA_NODEFER);
}

static void count(int sig)
{
	(void)sig;
	faults++;
}

static void handler_gets_a_sent_signal(void)
{
	signal(SIGSEGV, count);
	setup();
	for (int i = 1; i <= 3; i++) {
		kill(getpid(), SIGSEGV);
		CHECK(faults == i, "%d signals", (int)faults);
		shared[i * PAGE + jia_pid] = 1;
	}
	jia_barrier();
	jia_exit();
}

static void ignored_signal_is_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	setup();
	raise(SIGSEGV);
	shared[PAGE + jia_pid] = 1;
	jia_barrier();
	jia_exit();
}

static void fault_again(int sig, siginfo_t *si, void *context)
{
	static const char text[] = "in the handler\n";

	(void)sig, (void)si, (void)context;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) > 0)
		*at(8) = 1;
}

static void handler_faults(void)
{
	install(fault_again, 0);
	setup();
	if (jia_pid == the_rank)
		*at(16) = 1;
	jia_barrier();
}

static void once(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)si, (void)context;
	faults++;
	CHECK(faults == 1, "a handler for once ran twice");
}

static void handler_for_once(void)
{
	install(once, (int)SA_RESETHAND);
	setup();
	if (jia_pid == the_rank)
		*at(16) = 1;
	jia_barrier();
}

static void leave17(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)si, (void)context;
	_exit(17);
}

static void handler_leaves(void)
{
	install(leave17, 0);
	setup();
	if (jia_pid == the_rank)
		*at(16) = 1;
	jia_barrier();
}

static void handler_survives_a_stack_overflow(void)
{
	static char stack[256 << 10];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };

	sigaltstack(&alt, NULL);
	install(jump, SA_ONSTACK);
	setup();
	for (int i = 0; i < 3; i++) {
		if (!sigsetjmp(back, 1))
			overflow(1);
		CHECK(faults == i + 1, "%d faults", (int)faults);
		for (int k = 0; k < PAGES; k++)
			shared[k * PAGE + jia_pid]++;
		jia_barrier();
	}
	jia_exit();
}

static void handler_of_sigbus(void)
{
	signal(SIGBUS, count);
	setup();
	raise(SIGBUS);
	CHECK(faults == 1, "%d signals", (int)faults);
	jia_barrier();
	jia_exit();
}

#define ROW(name, who)           \
	{                        \
#name, name, who \
	}
const struct deed fault_deeds[] = {
	ROW(null_load, ONE),
	ROW(null_store, ONE),
	ROW(code_store, ONE),
	ROW(impossible_load, ONE),
	ROW(unallocated_load, ONE),
	ROW(unallocated_store, ONE),
	ROW(freed_load, ALL),
	ROW(wild_jump, ONE),
	ROW(jump_into_shared, ONE),
	ROW(raise_segv, ONE),
	ROW(stack_overflow, ONE),
	ROW(segv_blocked, ONE),
	ROW(divide_by_zero, ONE),
	ROW(bad_instruction, ONE),
	ROW(wait_for_kill, ONE),
	ROW(handler_continues, RAW),
	ROW(handler_jumps, RAW),
	ROW(handler_jumps_and_keeps_the_mask, RAW),
	ROW(handler_gets_a_sent_signal, RAW),
	ROW(ignored_signal_is_ignored, RAW),
	ROW(handler_faults, RAW),
	ROW(handler_for_once, RAW),
	ROW(handler_leaves, RAW),
	ROW(handler_survives_a_stack_overflow, RAW),
	ROW(handler_of_sigbus, RAW),
	{ NULL, NULL, ONE },
};
