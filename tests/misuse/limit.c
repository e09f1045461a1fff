/* SPDX-License-Identifier: MIT */
/* limit.c - too little of something, before jia_init() or later. */
#include "misuse.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void limit(unsigned int what, rlim_t most)
{
	struct rlimit r = { most, most };

	CHECK(!setrlimit(what, &r), "setrlimit: %s", strerror(errno));
}

static void work(void)
{
	for (int i = 0; i < PAGES; i++)
		shared[i * PAGE + jia_pid]++;
	jia_barrier();
	jia_exit();
}

static void little_address_space(void)
{
	limit(RLIMIT_AS, 1u << 30);
	setup();
	work();
}

static void little_data(void)
{
	limit(RLIMIT_DATA, 32u << 20);
	setup();
	work();
}

static void little_file_size(void)
{
	limit(RLIMIT_FSIZE, 1u << 20);
	setup();
	work();
}

static void few_descriptors(void)
{
	limit(RLIMIT_NOFILE, 3);
	setup();
	work();
}

/* What is set later must not hurt: the file has its size, the job its memory. */
static void limits_after_init(void)
{
	setup();
	limit(RLIMIT_FSIZE, 4096);
	limit(RLIMIT_NOFILE, 3);
	work();
}

/* Peers' memory is mapped on first use. */
static void no_address_space_after_init(void)
{
	char text[200] = "";
	FILE *f;

	setup();
	f = fopen("/proc/self/statm", "r");
	CHECK(f && fgets(text, sizeof(text), f), "statm");
	fclose(f);
	limit(RLIMIT_AS, (rlim_t)strtoul(text, NULL, 10) * PAGE);
	work();
}

/* As a daemon does; peers' memory is mapped on first use. */
static void all_descriptors_closed(void)
{
	setup();
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		close(fd);
	work();
}

static void take(unsigned long long at)
{
	void *want = (void *)(uintptr_t)at;

	CHECK(mmap(want, PAGE, PROT_READ,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == want,
	      "mmap: %s", strerror(errno));
}

static void address_taken(void)
{
	take(0x550000000000);
	setup();
	work();
}

static void address_taken_inside(void)
{
	take(0x550000000000 + (64ull << 30) - PAGE);
	setup();
	work();
}

static void system_address_taken(void)
{
	take(0x550000000000 + (160ull << 30));
	setup();
	work();
}

/* Make mappings until there may be no more. */
static void take_all_mappings(void)
{
	const size_t bytes = (size_t)1 << 30;
	char *at = mmap(NULL, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
	for (size_t i = PAGE; i < bytes; i += (size_t)2 * PAGE)
		if (mprotect(at + i, PAGE, PROT_READ)) {
			CHECK(errno == ENOMEM, "mprotect: %s", strerror(errno));
			return;
		}
	jia_error("more mappings are allowed than this test makes");
}

/* Shared pages have some, and can do with fewer. */
static void no_mappings_left(void)
{
	setup();
	for (int i = 0; i < PAGES; i += 5)
		shared[i * PAGE + jia_pid]++;
	take_all_mappings();
	work();
}

/* Shared pages have one, of no access at all. */
static void one_mapping_left(void)
{
	volatile unsigned char *p;

	jia_init(my_argc, my_argv);
	for (int i = 0; i < 2; i++) {
		p = jia_malloc_on((size_t)3 * PAGE, (size_t)3 * PAGE, 0);
		if (jia_pid && i)
			take_all_mappings();
		if (jia_pid)
			p[PAGE] = 1; /* first: maps the home's memory, too */
		jia_barrier();
		jia_free((void *)(uintptr_t)p);
	}
	jia_exit();
}

/* Run with a small memory cgroup, and killed by it. */
static void eat_memory(void)
{
	volatile unsigned char *p;

	setup();
	p = jia_malloc((size_t)1 << 30);
	jia_barrier();
	if (jia_pid == the_rank)
		for (size_t i = 0; i < (size_t)1 << 30; i += PAGE)
			p[i] = 1;
	work();
}

#define ROW(name)                \
	{                        \
#name, name, RAW \
	}
const struct deed limit_deeds[] = {
	ROW(little_address_space),   ROW(little_data),
	ROW(little_file_size),	     ROW(few_descriptors),
	ROW(limits_after_init),	     ROW(no_address_space_after_init),
	ROW(no_mappings_left),	     ROW(address_taken),
	ROW(one_mapping_left),	     ROW(address_taken_inside),
	ROW(system_address_taken),   ROW(eat_memory),
	ROW(all_descriptors_closed), { NULL, NULL, RAW },
};
