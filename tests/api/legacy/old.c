/* SPDX-License-Identifier: MIT */
/*
 * old.c - written the way programs for JIAJIA were: implicit int, K&R
 * definitions, missing includes, tentative definitions in two files, every ANL
 * macro, jia_init() after getopt, and falling off main.
 */
#include <stdio.h>
#include <stdlib.h>
#include "jia.h"
#define register

EXTERN_ENV

extern int jia_pid;
extern int hostc;

int *cell, *sum; /* common: part.c has them, too */
int shift;

LOCKDEC(sum_lock)
ALOCKDEC(row_lock, 4)
BARDEC(start)
PAUSEDEC(ready)
PAUSEDEC(gate)
GSDEC(loop)

fail(text, n) char *text;
int n;
{
	jia_errexit("old.c: %s: %d\n", text, n);
}

open_it(name) char *name;
{
	FILE *f = fopen(name, "r");
	int c;

	if (!f)
		fail("no file on rank", jia_pid);
	c = fgetc(f);
	fclose(f);
	return c;
}

use_locks()
{
	register int i;

	for (i = 0; i < 40; i++) {
		LOCK(sum_lock)
		*sum += shift;
		UNLOCK(sum_lock)
		ALOCK(row_lock, i % 4)
		cell[1024 * (i % 4)]++;
		AULOCK(row_lock, i % 4)
	}
	BARRIER(start, jiahosts)
	if (*sum != 40 * shift * jiahosts)
		fail("sum", *sum);
	for (i = 0; i < 4; i++)
		if (cell[1024 * i] != 10 * jiahosts)
			fail("cell", cell[1024 * i]);
	BARRIER(start, jiahosts)
}

use_pauses()
{
	if (jiapid == jiahosts - 1) {
		LOCK(sum_lock)
		*sum = 77;
		UNLOCK(sum_lock)
		PAUSE_SET(ready, 1)
	}
	PAUSE_POLL(ready)
	LOCK(sum_lock)
	if (*sum != 77)
		fail("pause", *sum);
	UNLOCK(sum_lock)
	WAIT_FOR_END(jiahosts)
	if (jiapid == 0)
		PAUSE_RESET(ready)
	if (jiapid == 0)
		PAUSE_SET(gate, 1)
	if (jiapid == jiahosts - 1)
		PAUSE_ACCEPT(gate)
	jia_wait();
}

use_loop()
{
	int i, mine = 0, all;

	GETSUB(loop, i, 99, jiahosts)
	while (i >= 0) {
		mine += i;
		GETSUB(loop, i, 99, jiahosts)
	}
	jia_reduce((char *)&mine, (char *)&all, 1, SUM_INT, 0);
	if (all != 4950)
		fail("loop", all);
}

use_the_rest()
{
	int first = 1, last = 100, x = jiapid;
	float t0, t1;
	unsigned int us = jia_startstat();

	CLOCK(t0)
	jia_config(HMIG, OFF);
	jia_config(WVEC, ON);
	jia_divtask(&first, &last);
	jia_loadcheck();
	jia_bcast((char *)&x, sizeof(x), jiahosts - 1);
	if (x != jiahosts - 1)
		fail("bcast", x);
	jia_send((char *)&x, sizeof x, jiapid, 3);
	if (jia_recv((char *)&first, sizeof x, MSG_PROC_ALL, MSG_TAG_ALL) !=
	    sizeof x)
		fail("length", first);
	jia_setcv(9);
	jia_waitcv(9);
	jia_wtnt(cell, 4096);
	jia_wtntw(cell);
	jia_wtntd(cell);
	CLOCK(t1)
	if (t1 < t0 || jia_stopstat() < us)
		fail("clock", 0);
}

main(argc, argv) int argc;
char **argv;
{
	int c, block[2];

	MAIN_ENV
	while ((c = getopt(argc, argv, "k:")) != -1)
		if (c == 'k')
			shift = atoi(optarg);
	jia_init(argc, argv);
	MAIN_INITENV(0, 0)
	if (shift != 12 || argc != 4)
		fail("argc", argc);
	if (open_it(argv[3]) != '/')
		fail("file", 0);
	LOCKINIT(sum_lock)
	ALOCKINIT(row_lock, 4)
	BARINIT(start)
	PAUSEINIT(ready)
	PAUSEINIT(gate)
	GSINIT(loop)
	sum = (int *)G_MALLOC(4096)
		cell = (int *)G2_MALLOC(4 * 4096, jiahosts - 1)
			block[0] = block[1] = 4096;
	if (*(int *)jia_alloc3b(8192, block, 0) || *(int *)jia_alloc1(4))
		fail("zero", 0);
	part_checks();
	BARRIER(start, jiahosts)
	use_locks();
	use_pauses();
	use_loop();
	use_the_rest();
	jia_exit();
	if (*sum != 77)
		fail("after jia_exit", *sum);
	MAIN_END
}
