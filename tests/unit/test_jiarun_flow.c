/* SPDX-License-Identifier: MIT */
/* test_jiarun_flow.c - bytes out of one pipe and into another, with credit. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "jiarun_flow.h"
#include "jiarun_wire.h"
#include "tests.h"

static struct jiarun_loop loop;
static struct jiarun_tap tap;
static struct jiarun_drip drip;
static int from[2], to[2];
static size_t credit, took, freed;
static bool ended, gone;

/* As a channel would: what the tap gives goes to the drip. */
static void take(void *ctx, int id, const void *data, size_t n)
{
	(void)ctx;
	CU_ASSERT_EQUAL(id, 3);
	took += n;
	ended = !n;
	if (n)
		jiarun_drip_put(&drip, data, n);
	else
		jiarun_drip_end(&drip);
}

static void taken(void *ctx, int id, size_t n, bool last)
{
	(void)ctx;
	CU_ASSERT_EQUAL(id, 4);
	freed += n;
	gone |= last;
}

static void begin(size_t allowance)
{
	signal(SIGPIPE, SIG_IGN);
	loop = (struct jiarun_loop){ 0 };
	credit = allowance;
	took = freed = 0;
	ended = gone = false;
	REQUIRE(pipe(from) == 0 && pipe(to) == 0);
	tap = (struct jiarun_tap){ .credit = &credit, .take = take, .id = 3 };
	drip = (struct jiarun_drip){ .taken = taken, .id = 4 };
	REQUIRE(jiarun_tap_open(&tap, &loop, from[0]));
	REQUIRE(jiarun_drip_open(&drip, &loop, to[1]));
}

static void end(void)
{
	jiarun_tap_close(&tap);
	jiarun_drip_close(&drip);
	jiarun_loop_free(&loop);
	if (from[1] >= 0)
		close(from[1]);
	if (to[0] >= 0)
		close(to[0]);
	signal(SIGPIPE, SIG_DFL);
}

static void turn(int times)
{
	while (times--)
		jiarun_loop_wait(&loop, 0);
}

static void write_all(const char *data, size_t n)
{
	REQUIRE(write(from[1], data, n) == (ssize_t)n);
}

static void close_fd(int *fd)
{
	close(*fd);
	*fd = -1;
}

static void bytes_come_through_and_their_end(void)
{
	char buf[16];

	begin(100);
	write_all("hello", 5);
	close_fd(&from[1]);
	turn(5);
	CU_ASSERT_EQUAL(read(to[0], buf, sizeof(buf)), 5);
	CU_ASSERT(!memcmp(buf, "hello", 5));
	CU_ASSERT_EQUAL(read(to[0], buf, sizeof(buf)), 0);
	CU_ASSERT_TRUE(ended);
	CU_ASSERT_FALSE(jiarun_tap_is_open(&tap));
	CU_ASSERT_EQUAL(freed, 5);
	CU_ASSERT_FALSE(gone);
	end();
}

static void without_credit_nothing_is_read(void)
{
	begin(3);
	write_all("hello", 5);
	turn(5);
	CU_ASSERT_EQUAL(took, 3);
	CU_ASSERT_EQUAL(credit, 0);
	close_fd(&from[1]);
	turn(5);
	CU_ASSERT_FALSE(ended);
	credit = 100;
	jiarun_tap_resume(&tap);
	turn(5);
	CU_ASSERT_EQUAL(took, 5);
	CU_ASSERT_TRUE(ended);
	end();
}

static void what_a_pipe_cannot_take_waits(void)
{
	static char big[1 << 18], got[sizeof(big)];
	size_t n = 0;

	begin(1);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	jiarun_drip_put(&drip, big, sizeof(big));
	jiarun_drip_end(&drip);
	turn(3);
	CU_ASSERT(freed > 0 && freed < sizeof(big));
	while (n < sizeof(big)) {
		ssize_t len = read(to[0], got + n, sizeof(got) - n);

		REQUIRE(len > 0);
		n += (size_t)len;
		turn(2);
	}
	CU_ASSERT(!memcmp(big, got, sizeof(big)));
	CU_ASSERT_EQUAL(read(to[0], got, 1), 0);
	CU_ASSERT_EQUAL(freed, sizeof(big));
	end();
}

static void a_reader_that_has_gone_is_told_of_once(void)
{
	begin(100);
	close_fd(&to[0]);
	write_all("hello", 5);
	turn(5);
	CU_ASSERT_TRUE(gone);
	CU_ASSERT_EQUAL(freed, 5);
	gone = false;
	write_all("more", 4);
	turn(5);
	CU_ASSERT_FALSE(gone);
	CU_ASSERT_EQUAL(freed, 9);
	end();
}

CU_TestInfo test_jiarun_flow[] = {
	{ "tap__bytes_come_through_and_their_end",
	  bytes_come_through_and_their_end },
	{ "tap__without_credit_nothing_is_read",
	  without_credit_nothing_is_read },
	{ "drip__what_a_pipe_cannot_take_waits",
	  what_a_pipe_cannot_take_waits },
	{ "drip__a_reader_that_has_gone_is_told_of_once",
	  a_reader_that_has_gone_is_told_of_once },
	CU_TEST_INFO_NULL,
};
