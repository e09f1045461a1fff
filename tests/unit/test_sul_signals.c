/* SPDX-License-Identifier: MIT */
/*
 * test_sul_signals.c - keeping the program's signal handlers out for a while.
 *
 * Each test is a child of its own: handlers belong to the process.
 */
#include "sul_signals.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests.h"

typedef void handler_fn(int sig);

/* What a child checks; the line of the first that does not hold is its status. */
#define HOLDS(what)                                                    \
	do {                                                           \
		if (!(what)) {                                         \
			fprintf(stderr, "\n    %s:%d: %s\n", __FILE__, \
				__LINE__, #what);                      \
			_exit(1);                                      \
		}                                                      \
	} while (0)

static void in_a_child(void (*fn)(void))
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		sul_signals_open();
		fn();
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

static volatile sig_atomic_t handled, last, value;

static void count(int sig)
{
	handled++;
	last = sig;
}

static void count_value(int sig, siginfo_t *info, void *context)
{
	(void)context;
	count(sig);
	value = info->si_value.sival_int;
}

static bool is_blocked(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, sig);
}

/* --- holding ------------------------------------------------------------------ */

static void check_hold(void)
{
	struct sul_quiet q, inner;

	signal(SIGUSR1, count);
	raise(SIGUSR1);
	HOLDS(handled == 1);
	sul_signals_hold(&q);
	raise(SIGUSR1);
	HOLDS(handled == 1);
	sul_signals_hold(&inner);
	sul_signals_release(&inner);
	HOLDS(handled == 1);
	sul_signals_release(&q);
	HOLDS(handled == 2);
	HOLDS(!is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
	raise(SIGUSR1);
	HOLDS(handled == 3);
}

static void a_held_thread_runs_no_handler(void)
{
	in_a_child(check_hold);
}

static void count_in_order(int sig, siginfo_t *info, void *context)
{
	HOLDS(info->si_value.sival_int == value + 1);
	count_value(sig, info, context);
}

/* A hundred of a kind that is queued; and of one that is not. */
static void check_all_come(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };
	struct sul_quiet q;
	union sigval v;

	signal(SIGUSR1, count);
	sa.sa_sigaction = count_in_order;
	HOLDS(!sigaction(SIGRTMIN + 1, &sa, NULL));
	sul_signals_hold(&q);
	for (int i = 1; i <= 100; i++) {
		v.sival_int = i;
		HOLDS(!sigqueue(getpid(), SIGRTMIN + 1, v));
		raise(SIGUSR1);
	}
	HOLDS(!handled);
	sul_signals_release(&q);
	HOLDS(value == 100 && handled > 100);
}

static void no_signal_is_lost_and_they_keep_their_order(void)
{
	in_a_child(check_all_come);
}

static void check_value(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };
	union sigval v = { .sival_int = 4711 };
	struct sul_quiet q;

	sa.sa_sigaction = count_value;
	HOLDS(!sigaction(SIGUSR2, &sa, NULL));
	sul_signals_hold(&q);
	HOLDS(!sigqueue(getpid(), SIGUSR2, v));
	HOLDS(!handled);
	sul_signals_release(&q);
	HOLDS(handled == 1 && last == SIGUSR2 && value == 4711);
}

static void a_late_signal_still_says_why_it_came(void)
{
	in_a_child(check_value);
}

static void check_mask(void)
{
	struct sul_quiet q;
	sigset_t usr2;

	signal(SIGUSR1, count);
	signal(SIGUSR2, count);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, NULL);
	sul_signals_hold(&q);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sul_signals_release(&q);
	HOLDS(handled == 1 && last == SIGUSR1);
	HOLDS(is_blocked(SIGUSR2) && !is_blocked(SIGUSR1));
	pthread_sigmask(SIG_UNBLOCK, &usr2, NULL);
	HOLDS(handled == 2 && last == SIGUSR2);
}

static void what_the_program_blocks_stays_blocked(void)
{
	in_a_child(check_mask);
}

static sigjmp_buf away;

static void jump(int sig)
{
	handled++;
	siglongjmp(away, sig);
}

static void check_jump(void)
{
	struct sul_quiet q;

	signal(SIGUSR1, jump);
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(away, 1))
			continue;
		sul_signals_hold(&q);
		raise(SIGUSR1);
		HOLDS(handled == i);
		sul_signals_release(&q);
		HOLDS(false);
	}
	HOLDS(handled == 3 && !is_blocked(SIGUSR1));
}

static void a_handler_may_jump_away(void)
{
	in_a_child(check_jump);
}

static void check_sleep(void)
{
	struct sul_quiet q, inner;

	signal(SIGUSR1, count);
	sul_signals_hold(&q);
	raise(SIGUSR1);
	sul_signals_let_in(&q);
	HOLDS(!is_blocked(SIGUSR1) || q.blocked);
	HOLDS(handled == 1 || q.blocked);
	sul_signals_let_no_more(&q);
	raise(SIGUSR1);
	HOLDS(handled == 1 || q.blocked);
	sul_signals_hold(&inner);
	sul_signals_let_in(&inner);
	HOLDS(handled == 1 || q.blocked);
	sul_signals_let_no_more(&inner);
	sul_signals_release(&inner);
	sul_signals_release(&q);
	HOLDS(handled == 2);
}

static void who_sleeps_lets_handlers_in_unless_somebody_above_holds(void)
{
	in_a_child(check_sleep);
}

static void *raise_in_thread(void *arg)
{
	(void)arg;
	raise(SIGUSR1);
	return NULL;
}

static void check_threads(void)
{
	struct sul_quiet q;
	pthread_t t;

	signal(SIGUSR1, count);
	sul_signals_hold(&q);
	if (!q.blocked) { /* or the thread would inherit that */
		HOLDS(!pthread_create(&t, NULL, raise_in_thread, NULL));
		pthread_join(t, NULL);
		HOLDS(handled == 1);
	}
	sul_signals_release(&q);
}

static void other_threads_run_their_handlers(void)
{
	in_a_child(check_threads);
}

/* --- what the program sees of it ------------------------------------------------ */

static void check_old(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_NODEFER }, old;

	HOLDS(signal(SIGUSR1, count) == SIG_DFL);
	HOLDS(signal(SIGUSR1, jump) == count);
	HOLDS(!sigaction(SIGUSR1, NULL, &old));
	HOLDS(old.sa_handler == jump && old.sa_flags & SA_RESTART);
	HOLDS(!((unsigned int)old.sa_flags & (SA_SIGINFO | SA_RESETHAND)));
	sa.sa_sigaction = count_value;
	sigaddset(&sa.sa_mask, SIGHUP);
	HOLDS(!sigaction(SIGUSR1, &sa, &old));
	HOLDS(old.sa_handler == jump);
	HOLDS(signal(SIGUSR1, SIG_IGN) == (handler_fn *)sa.sa_handler);
	HOLDS(signal(SIGUSR1, count) == SIG_IGN);
	HOLDS(!sigaction(SIGUSR1, &sa, &old) && old.sa_handler == count);
	HOLDS(!sigaction(SIGUSR1, NULL, &old));
	HOLDS(old.sa_sigaction == count_value);
	HOLDS(old.sa_flags & SA_NODEFER && sigismember(&old.sa_mask, SIGHUP));
	HOLDS(sigaction(SIGKILL, &sa, NULL) == -1);
	HOLDS(signal(-1, count) == SIG_ERR && signal(1000, count) == SIG_ERR);
}

static void a_program_is_told_of_its_own_handlers(void)
{
	in_a_child(check_old);
}

static void check_once(void)
{
	struct sigaction sa = { .sa_handler = count,
				.sa_flags = (int)SA_RESETHAND },
			 old;
	struct sul_quiet q;

	HOLDS(!sigaction(SIGUSR1, &sa, NULL));
	HOLDS(!sigaction(SIGUSR1, NULL, &old));
	HOLDS((unsigned int)old.sa_flags & SA_RESETHAND);
	sul_signals_hold(&q);
	raise(SIGUSR1);
	HOLDS(!sigaction(SIGUSR1, NULL, &old) && old.sa_handler == count);
	sul_signals_release(&q);
	HOLDS(handled == 1);
	HOLDS(!sigaction(SIGUSR1, NULL, &old) && old.sa_handler == SIG_DFL);
}

static void a_handler_for_once_is_called_once(void)
{
	in_a_child(check_once);
}

/* As the kernel has it; behind libc's back. */
struct kernel_action {
	handler_fn *fn;
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void check_found(void)
{
	struct kernel_action a;
	struct sul_quiet q;

	/* What libc has made of ours, with another function. */
	signal(SIGUSR1, count);
	HOLDS(!syscall(SYS_rt_sigaction, SIGUSR1, NULL, &a, 8));
	a.fn = jump;
	HOLDS(!syscall(SYS_rt_sigaction, SIGUSR1, &a, NULL, 8));
	sul_signals_open();
	sul_signals_hold(&q);
	if (!sigsetjmp(away, 1)) {
		raise(SIGUSR1);
		HOLDS(!handled);
		sul_signals_release(&q);
		HOLDS(false);
	}
	HOLDS(handled == 1);
}

static void a_handler_that_was_there_before_is_found(void)
{
	in_a_child(check_found);
}

CU_TestInfo test_sul_signals[] = {
	{ "a held thread runs no handler", a_held_thread_runs_no_handler },
	{ "no signal is lost, and they keep their order",
	  no_signal_is_lost_and_they_keep_their_order },
	{ "a late signal still says why it came",
	  a_late_signal_still_says_why_it_came },
	{ "what the program blocks stays blocked",
	  what_the_program_blocks_stays_blocked },
	{ "a handler may jump away", a_handler_may_jump_away },
	{ "who sleeps lets handlers in, unless somebody above holds",
	  who_sleeps_lets_handlers_in_unless_somebody_above_holds },
	{ "other threads run their handlers",
	  other_threads_run_their_handlers },
	{ "a program is told of its own handlers",
	  a_program_is_told_of_its_own_handlers },
	{ "a handler for once is called once",
	  a_handler_for_once_is_called_once },
	{ "a handler that was there before is found",
	  a_handler_that_was_there_before_is_found },
	CU_TEST_INFO_NULL,
};
