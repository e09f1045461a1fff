/* SPDX-License-Identifier: MIT */
/* test_jiarun_hosts.c - lists and files of hosts, and who gets which ranks. */
#include <stdarg.h>
#include <unistd.h>

#include "jiarun_hosts.h"
#include "sul.h"
#include "tests.h"

static struct jiarun_hosts hosts;
static char why[JIARUN_HOSTS_ERR_MAX];
static uint16_t host_of[SUL_RANKS_MAX];

static void forget(void)
{
	jiarun_hosts_free(&hosts);
	why[0] = '\0';
}

/* "name:slots name:slots*", * is this host; what was understood of @list. */
static const char *understood(const char *list)
{
	static char text[1024];
	size_t len = 0;

	forget();
	if (!jiarun_hosts_add(&hosts, list, "me.lan", why))
		return why;
	text[0] = '\0';
	for (int i = 0; i < hosts.nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%s:%d%s", i ? " " : "",
					hosts.host[i].name, hosts.host[i].slots,
					hosts.host[i].here ? "*" : "");
	return text;
}

static void names_with_slots_and_without(void)
{
	ASSERT_TEXT(understood("a"), "a:1");
	CU_ASSERT_FALSE(hosts.slots_given);
	ASSERT_TEXT(understood("a:3,b,node-1_x.lan:2"),
		    "a:3 b:1 node-1_x.lan:2");
	CU_ASSERT_TRUE(hosts.slots_given);
	ASSERT_TEXT(understood("jo@a:3,jo@b"), "jo@a:3 jo@b:1");
	ASSERT_TEXT(understood("10.1.2.3:4"), "10.1.2.3:4");
	forget();
}

static void addresses_of_ipv6_in_brackets_and_bare(void)
{
	ASSERT_TEXT(understood("[fd00::2]:3"), "fd00::2:3");
	ASSERT_TEXT(understood("[fd00::2]"), "fd00::2:1");
	ASSERT_TEXT(understood("fd00::2"), "fd00::2:1");
	CU_ASSERT_FALSE(hosts.slots_given);
	ASSERT_TEXT(understood("jo@[fe80::1%eth0]:2"), "jo@fe80::1%eth0:2");
	ASSERT_TEXT(understood("::2"), "::2:1");
	forget();
}

static void this_host_by_whatever_name(void)
{
	ASSERT_TEXT(understood("localhost:2,me,ME.LAN,::1,[::1]:2,127.0.0.1"),
		    "me.lan:8*");
	ASSERT_TEXT(understood("jo@localhost,me.wan,mee"),
		    "jo@localhost:1 me.wan:1 mee:1");
	forget();
}

static void a_host_named_again_gets_more_slots(void)
{
	ASSERT_TEXT(understood("a:2,b,a"), "a:3 b:1");
	forget();
}

static void words_that_are_no_host_are_refused(void)
{
	static const char *const bad[] = {
		"-oProxyCommand=x",
		"a b",
		"a;b",
		"$(x)",
		"`x`",
		"a|b",
		"'a'",
		"a/b",
		"[fd::",
		"fd]:",
		"[a]b",
		"x[a]",
		"[a]]",
		"\303a",
		"a\nb",
		"@a",
		".a",
		"a=b",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		forget();
		CU_ASSERT_FALSE(jiarun_hosts_add(&hosts, bad[i], "me", why));
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "is no host"));
	}
	ASSERT_TEXT(understood(""), "a host's name is empty");
	ASSERT_TEXT(understood("a,,b"), "a host's name is empty");
	ASSERT_TEXT(understood("a,"), "a host's name is empty");
	forget();
}

static void slots_out_of_range_are_refused(void)
{
	static const char *const bad[] = { "a:0",
					   "a:",
					   "a:-1",
					   "a:x",
					   "a:1x",
					   "a:1025",
					   "a:99999999999999999999",
					   "[::2]:0",
					   "a: 1" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		forget();
		CU_ASSERT_FALSE(jiarun_hosts_add(&hosts, bad[i], "me", why));
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "from 1 to 1024"));
	}
	forget();
	ASSERT_TEXT(understood("a:1000,a:25"),
		    "host a has more than 1024 slots");
	forget();
}

static void a_name_too_long_is_refused(void)
{
	char name[400];

	memset(name, 'a', sizeof(name));
	name[255] = '\0';
	forget();
	CU_ASSERT_TRUE(jiarun_hosts_add(&hosts, name, "me", why));
	name[255] = 'a';
	name[256] = '\0';
	CU_ASSERT_FALSE(jiarun_hosts_add(&hosts, name, "me", why));
	name[256] = 'a';
	name[399] = '\0';
	CU_ASSERT_FALSE(jiarun_hosts_add(&hosts, name, "me", why));
	forget();
}

/* --- files ------------------------------------------------------------------- */

static bool line(const char *text)
{
	return jiarun_hosts_line(&hosts, text, "me", why);
}

static void lines_of_a_host_file(void)
{
	forget();
	CU_ASSERT_TRUE(line("\n"));
	CU_ASSERT_TRUE(line("   # a comment\n"));
	CU_ASSERT_EQUAL(hosts.nr, 0);
	CU_ASSERT_TRUE(line("a slots=2\n"));
	CU_ASSERT_TRUE(line("\tb # slots=9\r\n"));
	CU_ASSERT_TRUE(line("c:3"));
	CU_ASSERT_TRUE(line("[fd00::1]  slots=4  \n"));
	REQUIRE(hosts.nr == 4);
	CU_ASSERT_EQUAL(hosts.host[0].slots, 2);
	CU_ASSERT_EQUAL(hosts.host[1].slots, 1);
	CU_ASSERT_EQUAL(hosts.host[2].slots, 3);
	CU_ASSERT_EQUAL(hosts.host[3].slots, 4);
	CU_ASSERT_FALSE(line("a max_slots=2"));
	CU_ASSERT_FALSE(line("a slots=0"));
	CU_ASSERT_FALSE(line("a slots=2 b"));
	CU_ASSERT_FALSE(line("a:2 slots=2"));
	CU_ASSERT_FALSE(line("a,b"));
	forget();
}

/* Read a file of this text; what is said, "" if all is well. */
static const char *filed(const char *text)
{
	char path[] = "/tmp/jiarun-hosts.XXXXXX";
	int fd = mkstemp(path);
	bool ok;

	forget();
	REQUIRE(fd >= 0);
	REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	ok = jiarun_hosts_file(&hosts, path, "me", why);
	unlink(path);
	CU_ASSERT_EQUAL(ok, !why[0]);
	return why[0] ? strchr(why, ':') ? strchr(why, ':') + 1 : why : "";
}

static void a_file_and_where_it_is_wrong(void)
{
	ASSERT_TEXT(filed("# two\na slots=2\n\nb"), "");
	CU_ASSERT_EQUAL(hosts.nr, 2);
	CU_ASSERT(!strncmp(filed("a\n\n-b\n"), "3: '-b' is no host", 18));
	CU_ASSERT_PTR_NOT_NULL(strstr(filed("# nobody\n"), "names no host"));
	forget();
	CU_ASSERT_FALSE(jiarun_hosts_file(&hosts, "no/such", "me", why));
	ASSERT_TEXT(why, "no/such: No such file or directory");
	forget();
}

/* --- placing ------------------------------------------------------------------ */

/* The hosts of ranks 0, 1, ..., as digits. */
static const char *placed(const char *list, int ranks)
{
	static char text[64];
	int n;

	understood(list);
	n = jiarun_hosts_place(&hosts, ranks, host_of, SUL_RANKS_MAX, why);
	if (!n)
		return why;
	for (int r = 0; r < n; r++)
		text[r] = (char)('0' + host_of[r]);
	text[n] = '\0';
	return text;
}

static void without_n_every_slot_gets_a_rank(void)
{
	ASSERT_TEXT(placed("a:2,b,c:3", 0), "001222");
	CU_ASSERT_EQUAL(hosts.host[2].ranks, 3);
	ASSERT_TEXT(placed("a,b", 0), "01");
	forget();
}

static void slots_are_filled_in_order_and_the_rest_forgotten(void)
{
	ASSERT_TEXT(placed("a:2,b:2,c:2", 3), "001");
	CU_ASSERT_EQUAL(hosts.nr, 2);
	CU_ASSERT_EQUAL(hosts.host[1].ranks, 1);
	ASSERT_TEXT(placed("a,b,c", 2), "01");
	forget();
}

static void without_slots_ranks_are_shared_out_in_blocks(void)
{
	ASSERT_TEXT(placed("a,b", 4), "0011");
	ASSERT_TEXT(placed("a,b,c", 8), "00011122");
	ASSERT_TEXT(placed("a,b,c", 4), "0012");
	forget();
}

static void more_ranks_than_slots_are_refused(void)
{
	CU_ASSERT_PTR_NOT_NULL(
		strstr(placed("a:2,b", 4), "-n 4: the hosts have 3 slots"));
	CU_ASSERT_PTR_NOT_NULL(strstr(placed("a:1024,b:1", 0),
				      "a job has at most 1024 ranks"));
	forget();
}

static void this_host_has_an_index(void)
{
	understood("a,b,localhost");
	CU_ASSERT_EQUAL(jiarun_hosts_here(&hosts), 2);
	understood("a,b");
	CU_ASSERT_EQUAL(jiarun_hosts_here(&hosts), 2);
	forget();
	CU_ASSERT_EQUAL(jiarun_hosts_here(&hosts), 0);
}

CU_TestInfo test_jiarun_hosts[] = {
	{ "list__names_with_slots_and_without", names_with_slots_and_without },
	{ "list__addresses_of_ipv6_in_brackets_and_bare",
	  addresses_of_ipv6_in_brackets_and_bare },
	{ "list__this_host_by_whatever_name", this_host_by_whatever_name },
	{ "list__a_host_named_again_gets_more_slots",
	  a_host_named_again_gets_more_slots },
	{ "list__words_that_are_no_host_are_refused",
	  words_that_are_no_host_are_refused },
	{ "list__slots_out_of_range_are_refused",
	  slots_out_of_range_are_refused },
	{ "list__a_name_too_long_is_refused", a_name_too_long_is_refused },
	{ "file__lines_of_a_host_file", lines_of_a_host_file },
	{ "file__where_it_is_wrong", a_file_and_where_it_is_wrong },
	{ "place__without_n_every_slot_gets_a_rank",
	  without_n_every_slot_gets_a_rank },
	{ "place__slots_are_filled_in_order_and_the_rest_forgotten",
	  slots_are_filled_in_order_and_the_rest_forgotten },
	{ "place__without_slots_ranks_are_shared_out_in_blocks",
	  without_slots_ranks_are_shared_out_in_blocks },
	{ "place__more_ranks_than_slots_are_refused",
	  more_ranks_than_slots_are_refused },
	{ "here__this_host_has_an_index", this_host_has_an_index },
	CU_TEST_INFO_NULL,
};
