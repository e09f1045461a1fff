/* SPDX-License-Identifier: MIT */
/*
 * jiarun_tree.c - finding and signalling everything below this process.
 *
 * A rank may have started processes of its own, in sessions and groups of their
 * own; signalling a group would miss them, and would hit the user's other jobs.
 * So the tree is read from /proc.  As this process is a subreaper, whoever loses
 * its parent comes up to us and stays in the tree.
 *
 * Between looking and signalling a pid may be given to somebody else; hence the
 * signal goes through a pidfd, after a second look at the parent.
 */
#include "jiarun.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct proc {
	pid_t pid, parent;
	bool zombie, below, spared;
};

struct procs {
	struct proc *at;
	size_t nr, room;
};

/* "PID (name) STATE PARENT ..."; the name may hold anything, ) included. */
static bool proc_read(pid_t pid, struct proc *p)
{
	char path[64], buf[512], *name_end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (len <= 0)
		return false;
	buf[len] = '\0';
	name_end = strrchr(buf, ')');
	if (!name_end || strlen(name_end) < 5)
		return false;
	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->zombie = name_end[2] == 'Z' || name_end[2] == 'X';
	p->parent = (pid_t)strtol(name_end + 4, NULL, 10);
	return true;
}

static bool procs_add(struct procs *ps, const struct proc *p)
{
	struct proc *more;

	if (ps->nr == ps->room) {
		ps->room = ps->room ? 2 * ps->room : 256;
		more = realloc(ps->at, ps->room * sizeof(*more));
		if (!more)
			return false;
		ps->at = more;
	}
	ps->at[ps->nr++] = *p;
	return true;
}

static void procs_read(struct procs *ps)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct proc p;

	memset(ps, 0, sizeof(*ps));
	if (!dir)
		return;
	while ((e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (proc_read((pid_t)strtol(e->d_name, NULL, 10), &p) &&
		    !procs_add(ps, &p))
			break;
	}
	closedir(dir);
}

static const struct proc *procs_find(const struct procs *ps, pid_t pid)
{
	for (size_t i = 0; i < ps->nr; i++) {
		if (ps->at[i].pid == pid)
			return &ps->at[i];
	}
	return NULL;
}

static bool listed(pid_t pid, const pid_t *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (list[i] == pid)
			return true;
	}
	return false;
}

/* Mark what is below us; parents may come after children in the list. */
static void procs_mark(struct procs *ps, const pid_t *spare, size_t nr_spare)
{
	pid_t self = getpid();
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < ps->nr; i++) {
			struct proc *p = &ps->at[i];
			const struct proc *up;

			if (p->below || p->pid == self)
				continue;
			up = procs_find(ps, p->parent);
			if (p->parent != self && !(up && up->below))
				continue;
			p->below = true;
			p->spared = listed(p->pid, spare, nr_spare) ||
				    (up && up->spared);
			again = true;
		}
	}
}

static void proc_signal(const struct proc *p, int sig)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct proc now;

	if (fd < 0)
		return;
	/* A new parent (us) is fine: it is still one of ours. */
	if (proc_read(p->pid, &now) &&
	    (now.parent == p->parent || now.parent == getpid()))
		syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
}

int jiarun_tree_kill(int sig, const pid_t *spare, size_t nr_spare)
{
	struct procs ps;
	int found = 0;

	procs_read(&ps);
	procs_mark(&ps, spare, nr_spare);
	for (size_t i = 0; i < ps.nr; i++) {
		const struct proc *p = &ps.at[i];

		/* A zombie is its parent's to reap: ours, or another's. */
		if (!p->below || p->spared ||
		    (p->zombie && p->parent != getpid()))
			continue;
		found++;
		if (sig)
			proc_signal(p, sig);
	}
	free(ps.at);
	return found;
}

size_t jiarun_tree_children(pid_t **out)
{
	struct procs ps;
	pid_t *list;
	size_t nr = 0;

	procs_read(&ps);
	list = calloc(ps.nr + 1, sizeof(*list));
	for (size_t i = 0; list && i < ps.nr; i++) {
		if (ps.at[i].parent == getpid())
			list[nr++] = ps.at[i].pid;
	}
	free(ps.at);
	*out = list;
	return nr;
}
