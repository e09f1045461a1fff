/* SPDX-License-Identifier: MIT */
/*
 * both.c - a program that uses MPI and shared memory: tests/pmix/run builds it.
 *
 * usage: both first|last|inside: where MPI_Init() and MPI_Finalize() stand in
 * relation to jia_init() and jia_exit().  Prints the sum of all ranks' numbers
 * as MPI and as shared memory have it.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "jia.h"

static void mpi_start(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
}

static void add_up(void)
{
	int *sum = jia_malloc(sizeof(*sum)), mpi_sum = 0, rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank != jia_pid)
		jia_error("rank %d of MPI is rank %d here", rank, jia_pid);
	jia_lock(0);
	*sum += jia_pid + 1;
	jia_unlock(0);
	rank++;
	MPI_Allreduce(&rank, &mpi_sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	jia_barrier();
	if (jia_pid == 0)
		printf("%d ranks: %d and %d\n", hostc, mpi_sum, *sum);
	jia_barrier();
}

int main(int argc, char **argv)
{
	const char *order = argc > 1 ? argv[1] : "";

	if (!strcmp(order, "first"))
		mpi_start(&argc, &argv);
	jia_init(argc, argv);
	if (strcmp(order, "first") != 0)
		mpi_start(&argc, &argv);
	add_up();
	if (!strcmp(order, "inside"))
		MPI_Finalize();
	jia_exit();
	if (strcmp(order, "inside") != 0)
		MPI_Finalize();
	return 0;
}
