/* SPDX-License-Identifier: MIT */
/*
 * jiarun_signals.c - signals as something to read.
 *
 * Front and keeper block the signals they care about and read them from one
 * descriptor, so that nothing ever runs in a handler.
 *
 * Respect for what we inherited: under nohup (SIGHUP ignored) a hang-up is none
 * of our business.  SIGINT is ignored in the background jobs of a shell script,
 * so that Ctrl-C at the terminal passes them by; but a kill -INT that somebody
 * sends to jiarun itself is meant, and the two can be told apart.
 */
#include "jiarun.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static bool ignored(int sig)
{
	struct sigaction sa;

	return sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN;
}

int jiarun_signals_take(struct jiarun_inherited *in)
{
	struct sigaction dfl, ign;
	sigset_t take;

	memset(&dfl, 0, sizeof(dfl));
	memset(&ign, 0, sizeof(ign));
	dfl.sa_handler = SIG_DFL;
	ign.sa_handler = SIG_IGN;
	sigemptyset(&take);
	sigaddset(&take, SIGCHLD);
	sigaddset(&take, SIGINT);
	sigaddset(&take, SIGTERM);
	if (!ignored(SIGUSR1))
		sigaddset(&take, SIGUSR1);
	if (!ignored(SIGQUIT))
		sigaddset(&take, SIGQUIT);
	if (!ignored(SIGHUP))
		sigaddset(&take, SIGHUP);
	in->int_ignored = ignored(SIGINT);
	getrlimit(RLIMIT_NOFILE, &in->files);
	/* With SIGCHLD ignored there would be nothing to wait for. */
	sigaction(SIGCHLD, &dfl, &in->chld);
	sigaction(SIGPIPE, &ign, &in->pipe);
	sigprocmask(SIG_BLOCK, &take, &in->mask);
	return signalfd(-1, &take, SFD_CLOEXEC | SFD_NONBLOCK);
}

void jiarun_signals_give_back(const struct jiarun_inherited *in)
{
	sigaction(SIGCHLD, &in->chld, NULL);
	sigaction(SIGPIPE, &in->pipe, NULL);
	sigprocmask(SIG_SETMASK, &in->mask, NULL);
}

int jiarun_signal_next(int sfd, const struct jiarun_inherited *in, bool debug)
{
	struct signalfd_siginfo si;

	while (read(sfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		bool typed = si.ssi_code > 0; /* SI_KERNEL: Ctrl-C */

		/* With gdb on the terminal, Ctrl-C is for gdb. */
		if (si.ssi_signo == SIGINT && typed &&
		    (in->int_ignored || debug))
			continue;
		return (int)si.ssi_signo;
	}
	return 0;
}

int64_t jiarun_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
