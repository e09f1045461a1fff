/* SPDX-License-Identifier: MIT */
/*
 * rank.c - a program that does, as a rank, what tests/jiarun/run asks for.
 *
 * usage: rank DEED [RANK]: all ranks attach and meet; then RANK (default 1)
 * does the deed and the others wait.  It uses the job's control block directly,
 * so that the launcher is tested apart from the DSM.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sul_clock.h"
#include "sul_job.h"

static struct sul_job *job;
static int self, ranks;

/* Stands for a call of the library: where it was called from is its site. */
static __attribute__((noinline)) void fail_at_caller(const char *fmt)
{
	char text[256];

	snprintf(text, sizeof(text), "%s at @{0x%llx}", fmt,
		 (unsigned long long)(uintptr_t)__builtin_return_address(0));
	sul_job_fail(job, self, 3, text);
	_exit(1);
}

static __attribute__((noinline)) void wait_at_caller(const char *what)
{
	struct sul_job_rank *r = sul_job_rank(job, self);

	snprintf(r->waiting, sizeof(r->waiting), "%s", what);
	atomic_store(&r->waiting_site,
		     (uint64_t)(uintptr_t)__builtin_return_address(0));
	atomic_store(&r->waiting_since_ns, sul_now_ns());
	pause();
}

static void deed_fail(void)
{
	fail_at_caller("jia_lock(5000): no such lock"); /* PLACE fail */
	puts("not reached");
}

static void deed_wait(void)
{
	wait_at_caller("lock 3, held by rank 0"); /* PLACE wait */
	puts("not reached");
}

static void deed_fail_nobody(void)
{
	sul_job_fail(job, -1, 9, "nobody's fault");
	pause();
}

static void deed_fail_rudely(void)
{
	sul_job_fail(job, self, 0, "bell \a escape \033[31m end\n\n");
	pause();
}

/* As the runtime does for a fault that is not its own. */
static void deed_fault(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	sul_job_fail(job, self, 128 + SIGSEGV, "");
	usleep(100000);
	raise(SIGSEGV);
}

static void deed_segv(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	raise(SIGSEGV);
}

static void deed_abort(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	abort();
}

static void deed_kill(void)
{
	raise(SIGKILL);
}

static void deed_leave(void)
{
	exit(0);
}

static void deed_exit7(void)
{
	exit(7);
}

static void deed_stop(void)
{
	raise(SIGSTOP);
}

static void deed_nothing(void)
{
	pause();
}

static void deed_idle(void)
{
	puts("met");
	fflush(stdout);
	pause();
}

static void deed_bye(void)
{
	sul_job_set_state(job, SUL_RANK_EXITED);
	exit(0);
}

/* After a proper good-bye the exit status still counts. */
static void deed_bye5(void)
{
	sul_job_set_state(job, SUL_RANK_EXITED);
	exit(5);
}

/* What rank @r says of itself before it is READY: another length for each. */
static size_t fill(int r, unsigned char *at, size_t most)
{
	size_t len = most - (size_t)r * 7 % most;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)(i * 31 + (size_t)r);
	return len;
}

static int differs(int r, const unsigned char *got, size_t len, size_t most)
{
	unsigned char want[SUL_JOB_BLOB_MAX];

	return len != fill(r, want, most) || memcmp(got, want, len) != 0;
}

/* Blob, address, program and process of every rank are in this host's block. */
static void deed_cards(void)
{
	struct sul_job_rank *me = sul_job_rank(job, self);
	int bad = 0;

	me->address_len =
		(uint32_t)fill(self, me->address, SUL_JOB_ADDRESS_MAX);
	atomic_store(&me->blob_len,
		     (uint32_t)fill(self, me->blob, SUL_JOB_BLOB_MAX));
	sul_job_set_state(job, SUL_RANK_READY);
	bad |= sul_job_wait_all(job, SUL_RANK_READY, 10000, NULL);
	for (int r = 0; r < ranks; r++) {
		const struct sul_job_rank *it = sul_job_rank(job, r);

		bad |= differs(r, it->blob, it->blob_len, SUL_JOB_BLOB_MAX);
		bad |= differs(r, it->address, it->address_len,
			       SUL_JOB_ADDRESS_MAX);
		bad |= strcmp(it->program, me->program) != 0 || !it->pid;
		printf("%s of %d: %s%s\n", it->host_name, r,
		       sul_job_far(job, r) ? "far" : "near",
		       bad ? ", wrong" : "");
	}
	for (int i = 0; i < SUL_JOB_KEY_BYTES; i++)
		printf("%02x%s", sul_job_key(job)[i],
		       i + 1 < SUL_JOB_KEY_BYTES ? "" : " is the key\n");
	fflush(stdout);
	deed_bye();
}

static void deed_count(void)
{
	sul_job_rank(job, self)->counters[0] = 1000u + (unsigned int)self;
	deed_bye();
}

static int sort_of_private_fd(int fd)
{
	return fd > 2 && fcntl(fd, F_GETFD) >= 0;
}

/* The program's own descriptors begin at 3, and what it starts has none of
 * ours. */
static void deed_descriptors(void)
{
	int fd;

	for (fd = 3; fd < 200; fd++) {
		if (sort_of_private_fd(fd)) {
			printf("descriptor %d is open\n", fd);
			exit(1);
		}
	}
	for (; fd < 1024; fd++) {
		if (sort_of_private_fd(fd) &&
		    !(fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
			printf("descriptor %d survives an exec\n", fd);
			exit(1);
		}
	}
	if (getenv(SUL_JOB_ENV)) {
		puts("JIA_JOB is still there");
		exit(1);
	}
	deed_bye();
}

/* Where code and stack are, and who the parent is. */
static void deed_where(void)
{
	printf("main %p stack %p heap %p\nparent %d\n", (void *)deed_where,
	       (void *)&(int){ 0 }, (void *)job, (int)getppid());
	fflush(stdout);
	deed_bye();
}

/* A grandchild in a session of its own that ignores whatever can be ignored. */
static void breed(void)
{
	if (fork() == 0) {
		setsid();
		for (int s = 1; s < 32; s++)
			signal(s, SIG_IGN);
		if (fork() == 0)
			for (;;)
				pause();
		for (;;)
			pause();
	}
}

static void deed_breed(void)
{
	breed();
	signal(SIGTERM, SIG_IGN);
	puts("bred");
	fflush(stdout);
	for (;;)
		pause();
}

static void deed_breed_and_bye(void)
{
	breed();
	deed_bye();
}

static const struct {
	const char *name;
	void (*run)(void);
	int all; /* every rank does it */
} deeds[] = {
	{ "fail", deed_fail, 0 },
	{ "wait", deed_wait, 0 },
	{ "fail-nobody", deed_fail_nobody, 0 },
	{ "fail-rudely", deed_fail_rudely, 0 },
	{ "segv", deed_segv, 0 },
	{ "fault", deed_fault, 0 },
	{ "segv-all", deed_segv, 1 },
	{ "abort", deed_abort, 0 },
	{ "kill", deed_kill, 0 },
	{ "leave", deed_leave, 0 },
	{ "exit7", deed_exit7, 0 },
	{ "stop", deed_stop, 0 },
	{ "nothing", deed_nothing, 1 },
	{ "idle", deed_idle, 1 },
	{ "cards", deed_cards, 1 },
	{ "bye", deed_bye, 1 },
	{ "bye5", deed_bye5, 1 },
	{ "count", deed_count, 1 },
	{ "descriptors", deed_descriptors, 1 },
	{ "where", deed_where, 1 },
	{ "breed", deed_breed, 1 },
	{ "breed-and-bye", deed_breed_and_bye, 1 },
};

int main(int argc, char **argv)
{
	const char *deed = argc > 1 ? argv[1] : "bye";
	int who = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	int err = sul_job_attach(&job);

	if (err) {
		fprintf(stderr, "attach: %s\n", strerror(-err));
		return 40;
	}
	self = sul_job_self(job);
	ranks = sul_job_ranks(job);
	err = sul_job_wait_all(job, SUL_RANK_UP, 10000, NULL);
	if (err == -ECANCELED)
		deed_nothing(); /* another was quick: jiarun will tell and end us */
	if (err) {
		fprintf(stderr, "rank %d of %d: %s\n", self, ranks,
			strerror(-err));
		return 41;
	}
	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		if (strcmp(deeds[i].name, deed) != 0)
			continue;
		if (deeds[i].all || self == who)
			deeds[i].run();
		for (;;)
			pause();
	}
	fprintf(stderr, "no such deed: %s\n", deed);
	return 42;
}
