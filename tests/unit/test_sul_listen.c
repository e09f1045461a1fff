/* SPDX-License-Identifier: MIT */
/*
 * test_sul_listen.c - what a rank listens on, and addresses of others.
 */
#include <errno.h>

#include "sul_udp.h"
#include "tests.h"

static void nobody_listens_without_need(void)
{
	struct sul_listen_config cfg = { .everywhere = true };
	struct sul_listener *l = (void *)&cfg;
	char why[SUL_WHY_MAX];

	REQUIRE(sul_job_create(&cfg.job, 1) == 0);
	CU_ASSERT_EQUAL(sul_listen(&l, &cfg, why), 0);
	CU_ASSERT_PTR_NULL(l);
	sul_job_close(cfg.job);
	REQUIRE(sul_job_create(&cfg.job, 2) == 0);
	cfg.everywhere = false;
	l = (void *)&cfg;
	CU_ASSERT_EQUAL(sul_listen(&l, &cfg, why), 0);
	CU_ASSERT_PTR_NULL(l);
	CU_ASSERT_EQUAL(sul_job_rank(cfg.job, 0)->address_len, 0);
	sul_job_close(cfg.job);
}

static void links_that_are_not_there_are_refused(void)
{
	struct sul_listen_config cfg = { .everywhere = true,
					 .links = "nosuch0" };
	struct sul_listener *l = NULL;
	char why[SUL_WHY_MAX];

	REQUIRE(sul_job_create(&cfg.job, 2) == 0);
	CU_ASSERT_EQUAL(sul_listen(&l, &cfg, why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(why, "'nosuch0' is no interface, address or prefix"));
	CU_ASSERT_PTR_NULL(l);
	sul_job_close(cfg.job);
}

/* What another host publishes may be anything. */
static void addresses_that_make_no_sense_are_refused(void)
{
	struct sul_listen_config cfg = { .everywhere = true };
	struct sul_way way[SUL_NET_PATHS_MAX];
	struct sul_listener *l;
	struct sul_address good, bad;
	char why[SUL_WHY_MAX];
	unsigned int nr = 0;

	REQUIRE(sul_job_create(&cfg.job, 2) == 0);
	REQUIRE(sul_listen(&l, &cfg, why) == 0);
	good = l->address;
	CU_ASSERT_EQUAL(sul_listener_ways(l, &good, true, way, &nr), 0);
	CU_ASSERT_EQUAL(nr, 1);
#define BAD(what)                                                           \
	do {                                                                \
		bad = good;                                                 \
		what;                                                       \
		CU_ASSERT_EQUAL(sul_listener_ways(l, &bad, true, way, &nr), \
				-EPROTO);                                   \
	} while (0)
	BAD(bad.version = 99);
	BAD(bad.session = 0);
	BAD(bad.nr = 0);
	BAD(bad.nr = SUL_ENDPOINTS_MAX + 1);
	BAD(bad.nr = 255);
	BAD(bad.paths = 2);
	BAD(bad.paths = bad.nr = SUL_NET_PATHS_MAX + 1);
	BAD(bad.at[0].family = 5);
	BAD(bad.at[0].port = 0);
	BAD(bad.at[0].packet_bytes = SUL_NET_PACKET_MIN - 1);
	BAD(bad.at[0].packet_bytes = SUL_NET_PACKET_MAX + 1);
	bad = good;
	bad.at[0].family = 6; /* our socket is for IPv4 */
	CU_ASSERT_EQUAL(sul_listener_ways(l, &bad, true, way, &nr),
			-ENETUNREACH);
	sul_listener_close(l);
	sul_job_close(cfg.job);
}

CU_TestInfo test_sul_listen[] = {
	{ "nobody listens without need", nobody_listens_without_need },
	{ "links that are not there are refused",
	  links_that_are_not_there_are_refused },
	{ "addresses that make no sense are refused",
	  addresses_that_make_no_sense_are_refused },
	CU_TEST_INFO_NULL,
};
