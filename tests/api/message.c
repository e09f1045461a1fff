/* SPDX-License-Identifier: MIT */
/* message.c - jia_send() and jia_recv(). */
#include "api.h"

static const int sizes[] = { 0,	    1,	   7,	  100,	  215,	  216,
			     217,   432,   4096,  5000,	  32767,  32768,
			     32769, 65536, 70000, 300000, 3000001 };
enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0]),
	LARGEST = 3000001
};

static unsigned char byte(int from, int size, int i)
{
	return (unsigned char)(from * 31 + size + i * 7 + (i >> 8));
}

static void fill(unsigned char *buf, int from, int size)
{
	for (int i = 0; i < size; i++)
		buf[i] = byte(from, size, i);
}

static void check(const unsigned char *buf, int from, int size, int got)
{
	CHECK(got == size, "%d bytes of %d", got, size);
	for (int i = 0; i < size; i++)
		CHECK(buf[i] == byte(from, size, i), "byte %d of %d from %d", i,
		      size, from);
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes);

	CHECK(p, "no memory");
	return p;
}

/* Around the ring; @out and @in may be shared memory. */
static void pass_all_sizes(unsigned char *out, unsigned char *in)
{
	int next = (jia_pid + 1) % hostc,
	    before = (jia_pid + hostc - 1) % hostc;

	for (int s = 0; s < SIZES; s++) {
		memset(in, 0, (size_t)sizes[s]);
		fill(out, jia_pid, sizes[s]);
		jia_send(out, sizes[s], next, s);
		check(in, before, sizes[s],
		      jia_recv(in, sizes[s] + 1, before, s));
	}
}

static void every_size_arrives(void)
{
	unsigned char *out = allocate(LARGEST), *in = allocate(LARGEST);

	pass_all_sizes(out, in);
	free(out);
	free(in);
}

static void buffers_may_be_shared_memory(void)
{
	size_t each = LARGEST + PAGE;
	unsigned char *a = jia_malloc_on(each * (size_t)hostc, PAGE, 0);
	unsigned char *b = jia_malloc_on(each * (size_t)hostc, PAGE, 1 % hostc);

	jia_barrier();
	pass_all_sizes(a + each * (size_t)jia_pid, b + each * (size_t)jia_pid);
	jia_barrier();
	pass_all_sizes(b + each * (size_t)jia_pid, a + each * (size_t)jia_pid);
}

/* All send to all before anybody receives: nobody waits for a receiver. */
static void sends_do_not_wait_for_receives(void)
{
	static const int some[] = { 50, 20000, 500000 };
	unsigned char *buf = allocate(500000);

	for (int s = 0; s < 3; s++)
		for (int r = 0; r < hostc; r++) {
			fill(buf, jia_pid, some[s]);
			jia_send(buf, some[s], r, s);
		}
	for (int s = 2; s >= 0; s--)
		for (int r = 0; r < hostc; r++)
			check(buf, r, some[s], jia_recv(buf, 500000, r, s));
	free(buf);
}

/* The receiver is at a barrier, and there are many more than credits. */
static void many_wait_in_the_inbox(void)
{
	int v;

	for (int i = 0; i < 3000; i++)
		for (int r = 0; r < hostc; r++) {
			v = i * 16 + jia_pid;
			jia_send(&v, sizeof(v), r, i % 3);
		}
	jia_barrier();
	for (int tag = 2; tag >= 0; tag--)
		for (int i = tag; i < 3000; i += 3)
			for (int r = 0; r < hostc; r++) {
				CHECK(jia_recv(&v, sizeof(v), r, tag) ==
					      sizeof(v),
				      "length");
				CHECK(v == i * 16 + r, "%d from %d, not %d", v,
				      r, i * 16 + r);
			}
}

static void wildcards_take_what_comes(void)
{
	int v, seen = 0, last[64] = { 0 };

	for (int i = 1; i <= 50; i++)
		for (int r = 0; r < hostc; r++) {
			v = i * 64 + jia_pid;
			jia_send(&v, sizeof(v), r, i % 5);
		}
	for (int i = 0; i < 10 * hostc; i++) { /* any sender, one tag */
		CHECK(jia_recv(&v, 4, MSG_PROC_ALL, 3) == 4, "length");
		CHECK(v / 64 % 5 == 3, "another tag: %d", v);
	}
	for (int i = 0; i < 40; i++) { /* one sender, any tag: in order */
		CHECK(jia_recv(&v, 4, hostc - 1, MSG_TAG_ALL) == 4, "length");
		CHECK(v % 64 == hostc - 1 && v / 64 > last[v % 64], "order: %d",
		      v);
		last[v % 64] = v / 64;
	}
	for (int i = 0; i < 40 * (hostc - 1); i++) {
		jia_recv(&v, 4, MSG_PROC_ALL, MSG_TAG_ALL);
		CHECK(v / 64 > last[v % 64], "order: %d", v);
		last[v % 64] = v / 64;
		seen++;
	}
	CHECK(seen == 40 * (hostc - 1), "%d", seen);
}

static void *talk(void *arg)
{
	int tag = (int)(long)arg, next = (jia_pid + 1) % hostc;
	unsigned char *buf = allocate(100000);

	for (int i = 0; i < 30; i++) {
		int size = 1 + i * i * 100;

		fill(buf, jia_pid + tag, size);
		jia_send(buf, size, next, tag);
		memset(buf, 0, 100000);
		check(buf, (jia_pid + hostc - 1) % hostc + tag, size,
		      jia_recv(buf, 100000, MSG_PROC_ALL, tag));
	}
	free(buf);
	return NULL;
}

static void threads_talk(void)
{
	with_threads(talk);
}

/* Large messages to one who waits for them in another order. */
static void a_late_receiver_chooses(void)
{
	unsigned char *buf = allocate(200000);

	if (jia_pid) {
		for (int i = 0; i < 6; i++) {
			fill(buf, jia_pid, 100000 + i);
			jia_send(buf, 100000 + i, 0, i);
		}
	} else {
		for (int i = 5; i >= 0; i--)
			for (int r = hostc - 1; r > 0; r--)
				check(buf, r, 100000 + i,
				      jia_recv(buf, 200000, r, i));
	}
	free(buf);
}

#define ROW(name)           \
	{                   \
#name, name \
	}
const struct api_case message_cases[] = {
	ROW(every_size_arrives),
	ROW(buffers_may_be_shared_memory),
	ROW(sends_do_not_wait_for_receives),
	ROW(many_wait_in_the_inbox),
	ROW(wildcards_take_what_comes),
	ROW(threads_talk),
	ROW(a_late_receiver_chooses),
	{ NULL, NULL },
};
