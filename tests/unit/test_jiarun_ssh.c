/* SPDX-License-Identifier: MIT */
/* test_jiarun_ssh.c - the command that reaches another host. */
#include "jiarun_ssh.h"
#include "tests.h"

enum {
	ROOM = 32
};

static struct jiarun_options options;
static char *argv[ROOM];
static int argc;

/* False: it does not fit. */
static bool made(const char *ssh, const char *path, size_t room)
{
	bool ok;

	options = (struct jiarun_options){ .ssh = ssh,
					   .path = path,
					   .answer_ms = 1500 };
	memset(argv, 0, sizeof(argv));
	ok = jiarun_ssh_words(&options, "jo@node1", argv, room);
	for (argc = 0; argv[argc]; argc++)
		;
	return ok;
}

static void forget(void)
{
	for (int i = 0; i < argc; i++)
		free(argv[i]);
}

static bool has(const char *word)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

/* Else it is chance who says first that a host does not answer. */
static void ssh_gives_up_after_jiarun(void)
{
	REQUIRE(made("ssh", "/opt/jiarun", ROOM));
	CU_ASSERT_TRUE(has("-oConnectTimeout=3"));
	forget();
}

static void host_and_command_come_last(void)
{
	REQUIRE(made("ssh", "/opt/jiarun", ROOM));
	ASSERT_TEXT(argv[0], "ssh");
	CU_ASSERT_TRUE(has("-oBatchMode=yes"));
	ASSERT_TEXT(argv[argc - 3], "--");
	ASSERT_TEXT(argv[argc - 2], "jo@node1");
	ASSERT_TEXT(
		argv[argc - 1],
		"exec /bin/sh -c 'exec \"$1\" --host-keeper' - '/opt/jiarun'");
	forget();
}

static void the_users_options_come_first(void)
{
	REQUIRE(made("  ssh -p 2222\t-F  my.conf ", "/opt/jiarun", ROOM));
	ASSERT_TEXT(argv[0], "ssh");
	ASSERT_TEXT(argv[1], "-p");
	ASSERT_TEXT(argv[2], "2222");
	ASSERT_TEXT(argv[3], "-F");
	ASSERT_TEXT(argv[4], "my.conf");
	CU_ASSERT_TRUE(argv[5][0] == '-');
	forget();
}

static void a_path_may_hold_anything(void)
{
	REQUIRE(made("ssh", "/it's $(odd) \"here\"/jiarun", ROOM));
	ASSERT_TEXT(argv[argc - 1],
		    "exec /bin/sh -c 'exec \"$1\" --host-keeper' - "
		    "'/it'\\''s $(odd) \"here\"/jiarun'");
	forget();
}

static void without_a_path_it_is_where_it_is_here_or_in_PATH(void)
{
	static const char head[] =
		"exec /bin/sh -c 'test -x \"$1\" && exec \"$1\" --host-keeper; "
		"exec jiarun --host-keeper' - '/";

	REQUIRE(made("ssh", NULL, ROOM));
	CU_ASSERT(!strncmp(argv[argc - 1], head, sizeof(head) - 1));
	forget();
}

static void more_words_than_there_is_room_for_are_refused(void)
{
	CU_ASSERT_FALSE(made("ssh a b c d e f", "/opt/jiarun", 8));
	CU_ASSERT_EQUAL(argc, 7);
	forget();
}

CU_TestInfo test_jiarun_ssh[] = {
	{ "words__ssh_gives_up_after_jiarun", ssh_gives_up_after_jiarun },
	{ "words__host_and_command_come_last", host_and_command_come_last },
	{ "words__the_users_options_come_first", the_users_options_come_first },
	{ "words__a_path_may_hold_anything", a_path_may_hold_anything },
	{ "words__without_a_path_it_is_where_it_is_here_or_in_PATH",
	  without_a_path_it_is_where_it_is_here_or_in_PATH },
	{ "words__more_than_there_is_room_for_are_refused",
	  more_words_than_there_is_room_for_are_refused },
	CU_TEST_INFO_NULL,
};
