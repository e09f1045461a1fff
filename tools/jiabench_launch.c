/* SPDX-License-Identifier: MIT */
/*
 * jiabench_launch.c - starts the ranks of each mode, in turn, over and over.
 *
 * Role:    jiabench under jiarun for each number of ranks, with the protocol
 *          and with --nodes=1; once more to count the system calls of rank 0.
 * Threads: one.
 *
 * Modes are interleaved: all of them have a job before any has its second, so
 * that a machine that becomes slower becomes slower for all.
 */
#include "jiabench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_board *bench_board_map(int *fd)
{
	void *p;

	if (*fd < 0) {
		*fd = memfd_create("jiabench", 0);
		if (*fd < 0 || ftruncate(*fd, sizeof(struct bench_board)))
			return NULL;
	}
	p = mmap(NULL, sizeof(struct bench_board), PROT_READ | PROT_WRITE,
		 MAP_SHARED, *fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* A job to start. */
struct job {
	const struct bench_options *o;
	const struct bench_mode *m;
	uint64_t rows;
	const char *set; /* one more */
	int fd; /* of the board */
	bool count;
};

static void rows_text(uint64_t rows, char *out, size_t room)
{
	size_t len = 0;

	for (int r = 0; r < BENCH_ROWS && len < room; r++)
		if (rows & UINT64_C(1) << r)
			len += (size_t)snprintf(
				out + len, room - len, "%s%s", len ? "," : "",
				bench_info((enum bench_row)r)->name);
}

static void exec_job(const struct job *j)
{
	static char self[PATH_MAX], jiarun[PATH_MAX], rows[1024];
	char ranks[16], board[32], reps[32];
	const char *argv[2 * BENCH_SETS + 16];
	int n = 0;

	if (!bench_find_beside("jiarun", self, jiarun)) {
		fprintf(stderr, "jiabench: cannot run %s\n", jiarun);
		_exit(126);
	}
	rows_text(j->rows, rows, sizeof(rows));
	snprintf(ranks, sizeof(ranks), "--np=%d", j->m->ranks);
	snprintf(board, sizeof(board), "--board=%d", j->fd);
	snprintf(reps, sizeof(reps), "--reps=%d", j->count ? 1 : j->o->reps);
	argv[n++] = jiarun;
	argv[n++] = ranks;
	if (j->m->hardware)
		argv[n++] = "--nodes=1";
	for (int i = 0; i < j->o->sets.nr; i++) {
		argv[n++] = "--set";
		argv[n++] = j->o->sets.pair[i];
	}
	if (j->set) {
		argv[n++] = "--set";
		argv[n++] = j->set;
	}
	argv[n++] = self;
	argv[n++] = board;
	argv[n++] = reps;
	argv[n++] = "--rows";
	argv[n++] = rows;
	if (j->count)
		argv[n++] = "--count";
	argv[n] = NULL;
	execv(jiarun, (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* --- jobs -------------------------------------------------------------------------- */

static int run_job(const struct job *j)
{
	pid_t parent = getpid(), pid;
	int status = -1;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(127);
		exec_job(j);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!status)
		return 0;
	fprintf(stderr, "jiabench: the job of %d ranks%s failed\n", j->m->ranks,
		j->m->hardware ? " on hardware" : "");
	return -EIO;
}

/* Waits spin without end: how long the tracer takes makes no difference.  The
 * times of that job are worth nothing, so it has a board of its own. */
static int count_calls(const struct bench_options *o, struct bench_mode *m,
		       uint64_t rows)
{
	struct bench_mode traced = *m;
	struct job j = { .o = o,
			 .m = &traced,
			 .rows = rows,
			 .set = "spin_us=1000000",
			 .fd = -1,
			 .count = true };
	int err;

	traced.board = bench_board_map(&j.fd);
	if (!traced.board)
		return -ENOMEM;
	err = run_job(&j);
	m->calls_known = traced.board->counted;
	for (int r = 0; r < BENCH_ROWS && !err; r++) {
		struct bench_result *to = &m->board->row[r];
		const struct bench_result *from = &traced.board->row[r];

		for (int e = BENCH_EV_CALL; e < BENCH_EVENTS; e++)
			if (from->ops > 0)
				to->events[e] =
					from->events[e] / from->ops * to->ops;
	}
	munmap(traced.board, sizeof(*traced.board));
	close(j.fd);
	return err;
}

static int run_all(const struct bench_options *o, struct bench_mode *m, int nr,
		   const int *fd)
{
	uint64_t big = UINT64_C(1) << BENCH_barrier_4g;
	uint64_t rows = o->rows & ~big;
	int err = 0;

	for (int r = 0; r < o->repeat && rows; r++)
		for (int i = 0; i < nr && !err; i++) {
			struct job j = {
				.o = o, .m = &m[i], .rows = rows, .fd = fd[i]
			};

			err = run_job(&j);
		}
	if (!err && o->rows & big) {
		struct job j = { .o = o,
				 .m = &m[0],
				 .rows = big,
				 .set = "cache=5g",
				 .fd = fd[0] };

		err = run_job(&j);
	}
	for (int i = 0; i < nr && !err && o->count && rows; i++)
		if (m[i].ranks == 2 && !m[i].hardware)
			err = count_calls(o, &m[i], rows);
	return err;
}

static void print_tables(const struct bench_mode *m, int nr,
			 const struct bench_options *o)
{
	const struct bench_mode *two = NULL;

	for (int i = 0; i < nr && !two; i++)
		if (m[i].ranks == 2 && !m[i].hardware)
			two = &m[i];
	for (int i = 0; i < nr; i++) {
		const struct bench_mode *hw = NULL;

		if (m[i].hardware)
			continue;
		if (i + 1 < nr && m[i + 1].hardware)
			hw = &m[i + 1];
		bench_print_table(&m[i], hw, two, o);
	}
}

int bench_launch(const struct bench_options *o)
{
	struct bench_mode m[2 * BENCH_MODES] = { 0 };
	int fd[2 * BENCH_MODES] = { 0 };
	int nr = 0, err;

	for (int i = 0; i < o->nr_ranks; i++)
		for (int hw = 0; hw <= (int)o->hardware; hw++) {
			fd[nr] = -1;
			m[nr].ranks = o->ranks[i];
			m[nr].hardware = hw;
			m[nr].board = bench_board_map(&fd[nr]);
			if (!m[nr++].board) {
				perror("jiabench: memory");
				return 1;
			}
		}
	err = run_all(o, m, nr, fd);
	if (!err && o->json)
		err = bench_print_json(m, nr, o);
	else if (!err)
		print_tables(m, nr, o);
	return err ? 1 : 0;
}
