/* SPDX-License-Identifier: MIT */
/* test_sul_links.c - which of a host's networks are meant. */
#include <arpa/inet.h>
#include <errno.h>

#include "sul.h"
#include "sul_links.h"
#include "tests.h"

static void add(struct sul_links *all, const char *name, const char *address,
		unsigned int bits, bool loopback)
{
	struct sul_link *l = &all->link[all->nr++];

	*l = (struct sul_link){ .bits = bits,
				.mtu = 1500,
				.loopback = loopback };
	snprintf(l->name, sizeof(l->name), "%s", name);
	if (inet_pton(AF_INET, address, &l->at.v4.sin_addr) == 1)
		l->at.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, address, &l->at.v6.sin6_addr) == 1)
		l->at.any.sa_family = AF_INET6;
}

/* As sul_links_read() orders them. */
static struct sul_links host(void)
{
	struct sul_links all = { 0 };

	add(&all, "lo", "127.0.0.1", 8, true);
	add(&all, "eth0", "192.0.2.17", 24, false);
	add(&all, "eth1", "198.51.100.130", 25, false);
	add(&all, "lo", "::1", 128, true);
	add(&all, "eth0", "2001:db8::17", 64, false);
	add(&all, "eth0", "fe80::17", 64, false);
	return all;
}

/* "eth0 v4, eth1 v4": what was found, in short. */
static const char *found(const struct sul_links *l)
{
	static char text[256];
	size_t at = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < l->nr; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, "%s%s %s", i ? ", " : "",
			l->link[i].name,
			l->link[i].at.any.sa_family == AF_INET ? "v4" : "v6");
	return text;
}

static void named__by_interface_address_or_prefix(void)
{
	static const struct {
		const char *list, *expected;
	} cases[] = {
		{ "eth0", "eth0 v4" },
		{ "eth1,eth0", "eth1 v4, eth0 v4" },
		{ "192.0.2.17", "eth0 v4" },
		{ "192.0.2.0/24", "eth0 v4" },
		{ "192.0.0.0/16", "eth0 v4" },
		{ "198.51.100.128/25", "eth1 v4" },
		{ "0.0.0.0/0", "lo v4" },
		{ "2001:db8::/64", "eth0 v6" },
		{ "fe80::17", "eth0 v6" },
		{ "eth0,2001:db8::17,lo", "eth0 v4, eth0 v6, lo v4" },
		{ "eth0,", "eth0 v4" },
		{ "", "" },
	};
	struct sul_links all = host(), out;
	char why[SUL_WHY_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_EQUAL(sul_links_named(&all, cases[i].list, 4, &out,
						why, sizeof(why)),
				0);
		ASSERT_TEXT(found(&out), cases[i].expected);
	}
}

static void named__what_is_not_there_is_refused_with_what_is(void)
{
	static const char *const bad[] = {
		"eth2",		"192.0.2.18",	   "192.0.3.0/24",
		"192.0.2.0/33", "198.51.100.0/25", "192.0.2.17/",
		"192.0.2.17/x", ",eth0",	   "eth0,,eth1",
	};
	struct sul_links all = host(), out;
	char why[SUL_WHY_MAX];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(sul_links_named(&all, bad[i], 4, &out, why,
						sizeof(why)),
				-EINVAL);
	CU_ASSERT_EQUAL(sul_links_named(&all, "eth0,eth2", 4, &out, why,
					sizeof(why)),
			-EINVAL);
	ASSERT_TEXT(why,
		    "'eth2' is no interface, address or prefix of this host; "
		    "there are: lo 127.0.0.1/8, eth0 192.0.2.17/24, eth1 "
		    "198.51.100.130/25, lo ::1/128, eth0 2001:db8::17/64, eth0 "
		    "fe80::17/64");
}

static void named__more_than_there_is_room_for(void)
{
	struct sul_links all = host(), out;
	char why[SUL_WHY_MAX];

	CU_ASSERT_EQUAL(sul_links_named(&all, "eth0,eth1,lo", 2, &out, why,
					sizeof(why)),
			-E2BIG);
	ASSERT_TEXT(why, "at most 2 can be named");
}

static void named__a_list_of_many_bytes_does_not_overrun_the_text(void)
{
	struct sul_links all = host(), out;
	char list[4096], why[64];

	memset(list, 'x', sizeof(list));
	list[sizeof(list) - 1] = 0;
	CU_ASSERT_EQUAL(sul_links_named(&all, list, 4, &out, why, sizeof(why)),
			-EINVAL);
	CU_ASSERT(strlen(why) < sizeof(why));
}

static void usual__what_others_can_reach(void)
{
	struct sul_links all = host(), out;

	sul_links_usual(&all, false, 8, &out);
	ASSERT_TEXT(found(&out), "eth0 v4, eth1 v4, eth0 v6");
	sul_links_usual(&all, true, 8, &out);
	ASSERT_TEXT(found(&out), "lo v4, lo v6");
	sul_links_usual(&all, false, 1, &out);
	ASSERT_TEXT(found(&out), "eth0 v4");
}

static void usual__the_loopback_where_nothing_else_is_up(void)
{
	struct sul_links all = { 0 }, out;

	sul_links_usual(&all, false, 8, &out);
	CU_ASSERT_EQUAL(out.nr, 0);
	add(&all, "lo", "127.0.0.1", 8, true);
	sul_links_usual(&all, false, 8, &out);
	ASSERT_TEXT(found(&out), "lo v4");
}

static void read__this_host_has_something(void)
{
	struct sul_links all;

	CU_ASSERT_EQUAL(sul_links_read(&all), 0);
	for (unsigned int i = 0; i < all.nr; i++) {
		CU_ASSERT(all.link[i].mtu > 0);
		CU_ASSERT(all.link[i].bits > 0);
		CU_ASSERT(all.link[i].name[0]);
		CU_ASSERT(sul_link_reaches(&all.link[i], &all.link[i].at));
		if (i) /* IPv4 first */
			CU_ASSERT(all.link[i].at.any.sa_family == AF_INET6 ||
				  all.link[i - 1].at.any.sa_family == AF_INET);
	}
}

CU_TestInfo test_sul_links[] = {
	{ "named: by interface, address or prefix",
	  named__by_interface_address_or_prefix },
	{ "named: what is not there is refused with what is",
	  named__what_is_not_there_is_refused_with_what_is },
	{ "named: more than there is room for",
	  named__more_than_there_is_room_for },
	{ "named: a list of many bytes does not overrun the text",
	  named__a_list_of_many_bytes_does_not_overrun_the_text },
	{ "usual: what others can reach", usual__what_others_can_reach },
	{ "usual: the loopback where nothing else is up",
	  usual__the_loopback_where_nothing_else_is_up },
	{ "read: this host has something", read__this_host_has_something },
	CU_TEST_INFO_NULL,
};
