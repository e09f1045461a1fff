/* SPDX-License-Identifier: MIT */
/*
 * dsm_launch.c - before main(): a program that nobody has launched as ranks yet.
 *
 * Role:      a constructor, which has three cases:
 *              JIA_NP=4 ./prog        becomes "jiarun -n 4 ./prog": what starts,
 *                                     watches and ends ranks is there only;
 *              mpirun, srun ./prog    executes the program anew, once, without
 *                                     address randomisation, as jiarun would
 *                                     have: pointers into program and libraries
 *                                     may then travel between ranks;
 *              anything else          costs two looks at the environment.
 * Invariant: what goes wrong with addresses is no error here: ranks compare them
 *            (dsm_start.c), and say so.
 * Threads:   there is one.
 */
#include "dsm_host.h"

#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jia.h"
#include "sul.h"

#define AGAIN "JIA_AGAIN"
#define NP "JIA_NP"

enum {
	NOT_STARTED = 2, /* exit status: as jiarun's for bad options ... */
	NOT_FOUND = 127 /* ... and for what is not there */
};

void dsm_launch_linked(void)
{
}

_Noreturn static void refuse(int status, const char *np, const char *what)
{
	fprintf(stderr, "jia: " NP "=%s: %s\n", np, what);
	_exit(status);
}

/* --- the program's own file ------------------------------------------------------ */

/*
 * The file that was executed; NULL: it is not what runs here.  So it is with a
 * script whose interpreter uses libjia, under ld.so and valgrind, and if the
 * file has been replaced.
 */
static const char *own_file(void)
{
	const char *file = (const char *)getauxval(AT_EXECFN);
	struct stat named, running;

	if (!file || stat(file, &named) || stat("/proc/self/exe", &running))
		return NULL;
	if (named.st_dev != running.st_dev || named.st_ino != running.st_ino)
		return NULL;
	return file;
}

static int holds_us(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t us = (uintptr_t)&dsm_host_current;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD &&
		    us - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			*(bool *)arg = true;
	}
	return 1; /* the first is the program */
}

static bool in_program(void)
{
	bool held = false;

	dl_iterate_phdr(holds_us, &held);
	return held;
}

/* Not so if libjia was loaded into something that has been running for a while. */
static bool started_with_us(void)
{
	void *program, *found;

	if (in_program())
		return true;
	program = dlopen(NULL, RTLD_LAZY);
	if (!program)
		return false;
	found = dlsym(program, "jia_init");
	dlclose(program);
	return found == (void *)(uintptr_t)&jia_init;
}

/* --- mpirun, srun ------------------------------------------------------------------ */

static void execute_anew(char **argv)
{
	unsigned long now = (unsigned long)personality(0xffffffff);
	const char *file = own_file();

	if (!file || (now & ADDR_NO_RANDOMIZE) || getauxval(AT_SECURE) ||
	    personality(now | ADDR_NO_RANDOMIZE) < 0)
		return;
	if (setenv(AGAIN, "1", 1) == 0)
		execv(file, argv);
	unsetenv(AGAIN);
}

/* --- JIA_NP ------------------------------------------------------------------------- */

/* jiarun's arguments; @nr stays below @room, that of a NULL behind them. */
struct command {
	char **argv;
	size_t nr, room;
	char program[PATH_MAX];
};

static void put(struct command *c, const char *arg)
{
	if (c->nr + 1 < c->room)
		c->argv[c->nr++] = (char *)(uintptr_t)arg;
}

/* JIA_SET, which mpirun would have passed on, becomes options. */
static void put_settings(struct command *c, char *lines)
{
	char *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		put(c, "--set");
		put(c, line);
	}
}

static void put_stats(struct command *c, const char *np, const char *stats)
{
	if (!strcmp(stats, "json"))
		put(c, "--stats-format=json");
	else if (!strcmp(stats, "1"))
		put(c, "--stats");
	else
		refuse(NOT_STARTED, np, "JIA_STATS is 1 or json");
}

/* A name without a slash would be looked for in PATH. */
static void put_program(struct command *c, const char *file, char **argv)
{
	snprintf(c->program, sizeof(c->program), "%s%s",
		 strchr(file, '/') ? "" : "./", file);
	put(c, c->program);
	for (char **arg = argv + 1; *argv && *arg; arg++)
		put(c, *arg);
}

static void check_ranks(const char *np)
{
	char *end, what[64];
	long n = strtol(np, &end, 10);

	if (*np >= '0' && *np <= '9' && !*end && n >= 1 && n <= SUL_RANKS_MAX)
		return;
	snprintf(what, sizeof(what), "a number of ranks is 1 to %d",
		 SUL_RANKS_MAX);
	refuse(NOT_STARTED, np, what);
}

/* Nobody else may have put it there: the path is a guess. */
static void try_jiarun(const char *dir, char **argv)
{
	char path[2 * PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/../bin/jiarun", dir);
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    (!st.st_uid || st.st_uid == geteuid()))
		execv(path, argv);
}

/* The jiarun that came with this library: where the two are built or installed
 * their folders have one parent. */
static void try_beside(const char *program, char **argv)
{
	char dir[PATH_MAX], *slash;
	Dl_info us;

	if (!in_program() && dladdr(&dsm_host_current, &us) && us.dli_fname)
		program = us.dli_fname;
	if (!realpath(program, dir))
		return;
	slash = strrchr(dir, '/');
	*slash = '\0';
	try_jiarun(dir, argv);
}

static size_t words_at_most(const char *set, char **argv)
{
	size_t nr = 16;

	for (; set && *set; set++)
		nr += *set == '\n' ? 2 : 0;
	for (; *argv; argv++)
		nr++;
	return nr;
}

_Noreturn static void become_jiarun(const char *np, char **argv)
{
	const char *file = own_file(), *stats = getenv("JIA_STATS");
	const char *set = getenv("JIA_SET");
	struct command c = { .room = words_at_most(set, argv) };
	char *lines = set ? strdup(set) : NULL;

	check_ranks(np);
	if (!file)
		refuse(NOT_FOUND, np,
		       "the program's own file is not to be found; use jiarun");
	c.argv = calloc(c.room, sizeof(*c.argv));
	if (!c.argv || (set && !lines))
		refuse(NOT_STARTED, np, "out of memory");
	put(&c, "jiarun");
	put(&c, "-n");
	put(&c, np);
	if (lines)
		put_settings(&c, lines);
	if (stats)
		put_stats(&c, np, stats);
	put(&c, "--");
	put_program(&c, file, argv);
	unsetenv(NP);
	try_beside(file, c.argv);
	execvp("jiarun", c.argv);
	refuse(NOT_FOUND, np,
	       "jiarun is neither beside libjia nor in PATH; it starts the ranks");
}

static bool is_launched(void)
{
	const char *job = getenv(SUL_JOB_ENV);

	return sul_pmix_here() || (job && strcmp(job, SUL_JOB_NONE) != 0);
}

void dsm_launch_usual(const char *np, char **argv)
{
	if (!is_launched())
		become_jiarun(np, argv);
}

/* --- the constructor -------------------------------------------------------------------- */

/* Before all other constructors of a program that libjia.a is linked into. */
__attribute__((constructor(101))) static void before_main(int argc, char **argv)
{
	const char *np = getenv(NP);
	bool pmix = sul_pmix_here(), again = getenv(AGAIN);

	(void)argc;
	if ((!np && !pmix && !again) || !started_with_us())
		return;
	unsetenv(AGAIN);
	/* Whoever has started ranks has said how many. */
	if (np)
		dsm_launch_usual(np, argv);
	unsetenv(NP);
	if (pmix && !again)
		execute_anew(argv);
}
