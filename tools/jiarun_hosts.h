/* SPDX-License-Identifier: MIT */
/*
 * jiarun_hosts.h - which hosts a job has, and which ranks run on which.
 *
 * Hosts come from -H or --hostfile, in that order; a host that is named again
 * gets more slots.  This host, called by its own name or localhost, needs no
 * ssh.  Who gets which ranks:
 *
 *   no -n                 as many ranks as there are slots
 *   -n N, N <= slots      host by host, each as many as it has slots
 *   -n N, N > slots       only if no slots were given: N shared out evenly, in
 *                         blocks of neighbouring ranks, the first hosts get one
 *                         more; else refused
 *
 * Hosts that get no rank are forgotten.
 *
 * Pure but for the reading of the file.  Errors: false, with a text.
 */
#ifndef JIARUN_HOSTS_H
#define JIARUN_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	JIARUN_HOSTS_ERR_MAX = 512
};

/**
 * struct jiarun_host - one of them.
 * @name:  as it was given, without slots and brackets: what ssh gets, and what
 *         messages say; of this host its own name.
 * @ranks: that run there, once they have been placed.
 */
struct jiarun_host {
	char *name;
	int slots, ranks;
	bool here;
};

struct jiarun_hosts {
	struct jiarun_host *host;
	int nr; /* 0: no host was named, all is here */
	bool slots_given;
};

/* @list: "host", "user@host:2", "[fe80::1%eth0]:4", with commas between them.
 * @self: this host's name. */
bool jiarun_hosts_add(struct jiarun_hosts *hs, const char *list,
		      const char *self, char err[JIARUN_HOSTS_ERR_MAX]);
/* A line of a host file, "host [slots=N]"; from a # it is comment. */
bool jiarun_hosts_line(struct jiarun_hosts *hs, const char *line,
		       const char *self, char err[JIARUN_HOSTS_ERR_MAX]);
bool jiarun_hosts_file(struct jiarun_hosts *hs, const char *path,
		       const char *self, char err[JIARUN_HOSTS_ERR_MAX]);

/* @ranks: how many, 0: not given; @host_of[rank] is a host's index, @room what
 * it holds.  How many ranks there are; 0 with an error. */
int jiarun_hosts_place(struct jiarun_hosts *hs, int ranks, uint16_t *host_of,
		       int room, char err[JIARUN_HOSTS_ERR_MAX]);

/* The index of this host; @nr if it is none of them. */
int jiarun_hosts_here(const struct jiarun_hosts *hs);
void jiarun_hosts_free(struct jiarun_hosts *hs);

#endif /* JIARUN_HOSTS_H */
