/* SPDX-License-Identifier: MIT */
/*
 * jiarun_ssh.h - starting a launcher on another host, over ssh.
 *
 * On the command line are the host and where jiarun is, nothing else: all that
 * concerns the job goes over the channel that ssh gives us.
 */
#ifndef JIARUN_SSH_H
#define JIARUN_SSH_H

#include "jiarun.h"

/**
 * struct jiarun_ssh - one that runs.
 * @pid:      0: it has not started, or has ended.
 * @from, @to: the channel; the caller's to close.
 */
struct jiarun_ssh {
	pid_t pid;
	int from, to;
};

/* @errors: where its standard errors go; stays the caller's.  0 or -errno: of
 * the pipes, the process or the command. */
int jiarun_ssh_start(struct jiarun_ssh *s, const struct jiarun_options *o,
		     const struct jiarun_inherited *in, const char *host,
		     int errors);

/* The program that would be run, for messages. */
const char *jiarun_ssh_name(const struct jiarun_options *o, char *buf,
			    size_t room);

/*
 * What is run for @host, for tests: @argv gets at most @room words, the last is
 * NULL; all are malloc()ed.  False: too many, or no memory.
 */
bool jiarun_ssh_words(const struct jiarun_options *o, const char *host,
		      char **argv, size_t room);

#endif /* JIARUN_SSH_H */
