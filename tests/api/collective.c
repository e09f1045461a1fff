/* SPDX-License-Identifier: MIT */
/* collective.c - jia_reduce(), jia_bcast(), jia_divtask(), jia_alloc3b(). */
#include "api.h"

enum {
	NR = 1000
};

/* Rank @r's element @i: exact in every type, of both signs. */
static int element(int r, int i)
{
	return (i * 37 + r * 101) % 1009 - 500;
}

static int expected(int what, int i)
{
	int v = element(0, i);

	for (int r = 1; r < hostc; r++) {
		int e = element(r, i);

		if (what == SUM_INT)
			v += e;
		else if (what == MAX_INT ? e > v : e < v)
			v = e;
	}
	return v;
}

static void reduce_ints(int what, int root, int nr)
{
	int a[NR] = { 0 }, b[NR] = { 0 };

	for (int i = 0; i < nr; i++)
		a[i] = element(jia_pid, i);
	jia_reduce(a, b, nr, what, root);
	for (int i = 0; i < nr; i++)
		CHECK(b[i] == expected(what, i) && a[i] == element(jia_pid, i),
		      "int %d, operation %d: %d", i, what, b[i]);
}

static void reduce_floats(int what, int root, int nr)
{
	float a[NR] = { 0 }, b[NR] = { 0 };

	for (int i = 0; i < nr; i++)
		a[i] = (float)element(jia_pid, i);
	jia_reduce(a, b, nr, SUM_FLOAT + what, root);
	for (int i = 0; i < nr; i++)
		CHECK(b[i] == (float)expected(what, i), "float %d: %g", i,
		      (double)b[i]);
}

static void reduce_doubles(int what, int root, int nr)
{
	double a[NR] = { 0 }, b[NR] = { 0 };

	for (int i = 0; i < nr; i++)
		a[i] = element(jia_pid, i);
	jia_reduce(a, b, nr, SUM_DOUBLE + what, root);
	for (int i = 0; i < nr; i++)
		CHECK(b[i] == expected(what, i), "double %d: %g", i, b[i]);
}

static void all_operations_on_all_types(void)
{
	for (int root = 0; root < hostc; root++)
		for (int what = SUM_INT; what <= MIN_INT; what++)
			for (int nr = 0; nr <= NR; nr = nr * 10 + 1) {
				reduce_ints(what, root, nr);
				reduce_floats(what, root, nr);
				reduce_doubles(what, root, nr);
			}
}

static void a_result_may_take_its_operands_place(void)
{
	double *x = (double *)(long)(shared + 20 * PAGE); /* of all ranks */
	double mine[NR];

	for (int i = 0; i < NR; i++)
		mine[i] = jia_pid + i;
	jia_reduce(mine, mine, NR, SUM_DOUBLE, 0);
	for (int i = 0; i < NR; i++)
		CHECK(mine[i] == (double)(hostc * i + hostc * (hostc - 1) / 2),
		      "%g", mine[i]);
	jia_reduce(mine, x, NR, MAX_DOUBLE, hostc - 1);
	CHECK(x[NR - 1] == mine[NR - 1], "in shared memory: %g", x[NR - 1]);
	jia_barrier();
	CHECK(x[NR / 2] == mine[NR / 2], "after a barrier: %g", x[NR / 2]);
}

static void sums_of_ints_wrap(void)
{
	int big = 0x7fffffff, sum;

	jia_reduce(&big, &sum, 1, SUM_INT, 0);
	CHECK((unsigned int)sum == 0x7fffffffu * (unsigned int)hostc, "%d",
	      sum);
}

static void broadcasts_of_any_size(void)
{
	static const int sizes[] = { 0, 1, 300, 40000, 2000000 };
	unsigned char *buf = malloc(2000000);

	CHECK(buf, "no memory");
	for (int root = 0; root < hostc; root++)
		for (int s = 0; s < 5; s++) {
			memset(buf, jia_pid == root ? root + s + 1 : 0,
			       2000000);
			jia_bcast(buf, sizes[s], root);
			for (int i = 0; i < sizes[s]; i++)
				CHECK(buf[i] == root + s + 1, "byte %d of %d",
				      i, sizes[s]);
			CHECK(jia_pid == root || sizes[s] == 2000000 ||
				      !buf[sizes[s]],
			      "too much");
		}
	free(buf);
}

/* Many in a row: a fast rank is several calls ahead of a slow one. */
static void calls_do_not_mix(void)
{
	for (int i = 0; i < 500; i++) {
		int v = i * 10 + jia_pid, sum = 0, user = i;

		jia_send(&user, sizeof(user), (jia_pid + 1) % hostc, i);
		if (i % 2)
			jia_reduce(&v, &sum, 1, MAX_INT, i % hostc);
		else
			jia_bcast(&v, sizeof(v), i % hostc);
		CHECK(i % 2 ? sum == i * 10 + hostc - 1 :
			      v == i * 10 + i % hostc,
		      "call %d", i);
		if (i % 7 == 0)
			jia_barrier();
	}
	for (int i = 0, v; i < 500; i++)
		CHECK(jia_recv(&v, sizeof(v), MSG_PROC_ALL, i) == sizeof(v) &&
			      v == i,
		      "message %d", i);
}

/* --- sharing out ------------------------------------------------------------------------- */

/* The shares follow each other and leave nothing out. */
static void check_shares(int first, int last)
{
	int mine[2] = { first, last }, all[2 * 64] = { 0 };

	jia_divtask(&mine[0], &mine[1]);
	for (int i = 0; i < 2; i++)
		all[2 * jia_pid + i] = mine[i] - first + 1;
	jia_reduce(all, all, 2 * hostc, SUM_INT, 0);
	CHECK(all[0] == 1, "begins at %d", all[0]);
	CHECK(all[2 * hostc - 1] == last - first + 1, "ends at %d",
	      all[2 * hostc - 1]);
	for (int r = 1; r < hostc; r++)
		CHECK(all[2 * r] == all[2 * r - 1] + 1, "rank %d begins at %d",
		      r, all[2 * r]);
}

static void check_ranges(void)
{
	check_shares(0, 99);
	check_shares(1, 1);
	check_shares(5, 4);
	check_shares(-50, 50);
	check_shares(0, 2147483646);
	check_shares(-2147483647 - 1, -2147483000);
}

static void shares_are_equal(void)
{
	int a = 10, b = 10 + 12 * hostc - 1;

	check_ranges();
	jia_divtask(&a, &b);
	CHECK(a == 10 + 12 * jia_pid && b == a + 11, "%d to %d", a, b);
}

static void shares_go_by_power(void)
{
	int a = 0, b = 1000 * hostc - 1;

	jia_config(LOADBAL, ON);
	check_ranges(); /* equal until it was measured */
	jia_loadcheck();
	check_ranges();
	jia_divtask(&a, &b);
	CHECK(b - a + 1 > 20, "%d of %d: no rank is so slow", b - a + 1,
	      1000 * hostc);
	jia_config(LOADBAL, OFF);
	shares_are_equal();
}

/* --- jia_alloc3b ---------------------------------------------------------------------------- */

static void rounds_of_blocks(void)
{
	int block[4] = { PAGE, 3 * PAGE, 100, 1 << 20 };
	int size = 7 * PAGE * hostc;
	unsigned char *p = (unsigned char *)jia_alloc3b(size, block, hostc - 1);
	unsigned char *q = (unsigned char *)jia_alloc3b(1, block, 0);

	for (int i = 0; i < size; i += 64)
		CHECK(!p[i], "byte %d is %d", i, p[i]);
	jia_barrier();
	for (int i = jia_pid; i < size; i += hostc)
		p[i] = (unsigned char)(i % 251);
	if (!jia_pid)
		*q = 1;
	jia_barrier();
	for (int i = 0; i < size; i++)
		CHECK(p[i] == i % 251, "byte %d is %d", i, p[i]);
	CHECK(*q == 1 && (q >= p + size || q < p), "the second one");
}

static void jiajias_keys(void)
{
	for (int on = ON; on >= OFF; on--)
		for (int key = HMIG; key <= WVEC; key++) {
			jia_config(key, on);
			for (int i = 0; i < 5; i++) {
				if (jia_pid == i % hostc)
					++*page_int(40 + key);
				jia_barrier();
			}
			CHECK(*page_int(40 + key) == (on ? 5 : 10),
			      "key %d: %d", key, *page_int(40 + key));
		}
}

#define ROW(name)           \
	{                   \
#name, name \
	}
const struct api_case collective_cases[] = {
	ROW(all_operations_on_all_types),
	ROW(a_result_may_take_its_operands_place),
	ROW(sums_of_ints_wrap),
	ROW(broadcasts_of_any_size),
	ROW(calls_do_not_mix),
	ROW(shares_are_equal),
	ROW(shares_go_by_power),
	ROW(rounds_of_blocks),
	ROW(jiajias_keys),
	{ NULL, NULL },
};
