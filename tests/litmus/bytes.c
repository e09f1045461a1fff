/* SPDX-License-Identifier: MIT */
/*
 * bytes.c - neighbouring bytes of different writers survive.
 *
 * JIAJIA's diffs have units of four bytes and lose them, in silence.
 */
#include "litmus.h"

enum {
	BYTES = 2 * PAGE,
	ROUNDS = 60
};

static int owner(int k, int round)
{
	return (k + k / 7 + round) % hostc;
}

int main(int argc, char **argv)
{
	volatile unsigned char *b;

	jia_init(argc, argv);
	b = jia_malloc_on(BYTES, PAGE, 0);
	jia_barrier();
	for (int i = 1; i <= ROUNDS; i++) {
		for (int k = 0; k < BYTES; k++)
			if (owner(k, i) == jia_pid)
				b[k] = (unsigned char)(i + k);
		jia_barrier();
		for (int k = 0; k < BYTES; k++)
			CHECK(b[k] == (unsigned char)(i + k),
			      "round %d byte %d of rank %d: rank %d reads %d, must be %d",
			      i, k, owner(k, i), jia_pid, b[k],
			      (unsigned char)(i + k));
		jia_barrier();
	}
	jia_exit();
	return 0;
}
