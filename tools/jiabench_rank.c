/* SPDX-License-Identifier: MIT */
/*
 * jiabench_rank.c - a rank: runs the rows that were asked for.
 *
 * Role:    the same sequence of rows on all ranks; rank 0 has the board.
 * Threads: one.
 *
 * The board of ranks without a launcher is rank 0's; the others open it through
 * /proc, so all ranks must be on one host.
 */
#include "jiabench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jia.h"

typedef void (*row_fn)(struct bench *b);

static const row_fn rows[BENCH_ROWS] = {
#define ROW(name, ...) bench_row_##name,
#include "jiabench.def"
};

/* Rows that take seconds are repeated once in a job. */
static bool once(enum bench_row row)
{
	return row == BENCH_barrier_4g || row == BENCH_barrier_64m;
}

/* Rank 0 tells the others in shared memory where its board is. */
static struct bench_board *share_board(int fd)
{
	struct bench_board *board = NULL;
	char *path = jia_malloc(64);

	if (!jia_pid) {
		board = bench_board_map(&fd);
		snprintf(path, 64, "/proc/%ld/fd/%d", (long)getpid(), fd);
	}
	jia_barrier();
	if (jia_pid) {
		char own[64]; /* a system call takes no shared memory */

		snprintf(own, sizeof(own), "%s", path);
		fd = open(own, O_RDWR | O_CLOEXEC);
		board = fd < 0 ? NULL : bench_board_map(&fd);
	}
	if (!board)
		jia_error("no board: %s", strerror(errno));
	jia_barrier();
	close(fd);
	jia_free(path);
	return board;
}

static void run_row(struct bench *b, enum bench_row row)
{
	const struct bench_info *info = bench_info(row);
	int reps = once(row) ? 1 : b->o->reps;

	b->floor = info->floor;
	for (int i = 0; i < reps; i++) {
		b->result = &b->board->row[row];
		b->fill = (unsigned char)i; /* rank 0 is ahead of the others */
		bench_floor_take(b, info->floor, &b->result->floor);
		rows[row](b);
	}
}

static void measure(struct bench *b)
{
	for (int f = 0; f < BENCH_FLOORS; f++)
		for (int i = 0; i < 2; i++)
			bench_floor_take(b, (enum bench_floor)f, NULL);
	for (int row = 0; row < BENCH_ROWS; row++)
		if (b->o->rows & UINT64_C(1) << row)
			run_row(b, (enum bench_row)row);
}

static void print(const struct bench *b)
{
	struct bench_mode m = { .ranks = hostc, .board = b->board };

	if (b->o->json)
		bench_print_json(&m, 1, b->o);
	else
		bench_print_table(&m, NULL, NULL, b->o);
}

int bench_rank_main(int argc, char **argv, const struct bench_options *o)
{
	struct bench b = { .o = o };

	jia_init(argc, argv);
	if (hostc < 2)
		jia_error(
			"jiabench measures between ranks: at least 2 (jiarun -n 2)");
	b.home = 1;
	b.board = share_board(o->board);
	b.floors = bench_floors_open();
	if (!jia_pid && o->count && !bench_trace_start(&b.trace))
		b.board->counted = true;
	jia_wait();
	measure(&b);
	if (!jia_pid && o->board < 0)
		print(&b);
	bench_trace_stop(b.trace);
	bench_floors_close(b.floors);
	jia_exit();
	return 0;
}
