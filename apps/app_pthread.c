/* SPDX-License-Identifier: MIT */
/*
 * app_pthread.c - NAME-pthread: ranks are threads of one process.
 *
 * Role: what a program that uses shared memory is compared with.
 * Invariant: team is set up before the threads start and not changed while they
 *   run, but for what its comments name.
 * Threads: one per rank, each of which runs all of app_main().
 * Locks: locks by number and by address lie in tables of their own.  An address
 *   may share its mutex with another: a program holds one of them at a time.
 *
 * How many: --threads=N, else JIA_NP, else the processors that are online.
 */
#include "app_backend.h"

#include <pthread.h>
#include <unistd.h>

enum {
	THREADS_MAX = 1024,
	ADDRESSES = 4096, /* mutexes for locks by address; a power of two */
	CONDITIONS = 64
};

static struct team {
	int ranks, argc;
	char **argv;
	pthread_barrier_t barrier;
	pthread_mutex_t lock[APP_LOCKS], lock_at[ADDRESSES];
	pthread_cond_t cond[CONDITIONS];
	void *shared; /* between two barriers of malloc_team() */
	double (*part)[APP_SUMS]; /* [rank]: between two of reduce_team() */
} team;

static _Thread_local int my_rank;
static _Thread_local pthread_mutex_t *my_lock; /* the one taken last */

static void join_team(int argc, char **argv, int *rank, int *ranks)
{
	(void)argc;
	(void)argv;
	*rank = my_rank;
	*ranks = team.ranks;
}

static void barrier_team(void)
{
	pthread_barrier_wait(&team.barrier);
}

__attribute__((noreturn)) static void quit_team(int status)
{
	pthread_exit((void *)(intptr_t)status);
}

static void *malloc_team(const char *label, size_t bytes, int home)
{
	void *p;

	(void)label;
	(void)home;
	if (my_rank == 0)
		team.shared = app_pages(bytes);
	barrier_team();
	p = team.shared;
	barrier_team();
	return p;
}

static void take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	my_lock = mutex;
}

static pthread_mutex_t *mutex_at(const void *addr)
{
	return &team.lock_at[app_hash((uintptr_t)addr) % ADDRESSES];
}

static pthread_cond_t *cond_at(const void *cond)
{
	return &team.cond[app_hash((uintptr_t)cond) % CONDITIONS];
}

static void lock_team(int lock)
{
	take(&team.lock[lock]);
}

static void unlock_team(int lock)
{
	pthread_mutex_unlock(&team.lock[lock]);
}

static void lock_at_team(const void *addr)
{
	take(mutex_at(addr));
}

static void unlock_at_team(const void *addr)
{
	pthread_mutex_unlock(mutex_at(addr));
}

static void wait_team(const void *cond)
{
	pthread_cond_wait(cond_at(cond), my_lock);
}

static void wake_team(const void *cond)
{
	pthread_cond_broadcast(cond_at(cond));
}

static void reduce_team(double *v, int n, bool sum)
{
	memcpy(team.part[my_rank], v, (size_t)n * sizeof(*v));
	barrier_team();
	memcpy(v, team.part[0], (size_t)n * sizeof(*v));
	for (int r = 1; r < team.ranks; r++)
		for (int i = 0; i < n; i++) {
			double other = team.part[r][i];

			v[i] = sum ? v[i] + other : app_worse(v[i], other);
		}
	barrier_team();
}

static void overwrite_team(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

static void fetch_team(const void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

static void nothing(void)
{
}

static void end_team(struct app_traffic *t)
{
	memset(t, 0, sizeof(*t));
}

static void set_team(const char *name, const char *value)
{
	(void)name;
	(void)value;
}

static void phase_team(const char *name)
{
	(void)name;
}

__attribute__((noreturn)) static void die_team(const char *text)
{
	fprintf(stderr, "%s\n", text);
	_exit(APP_WRONG);
}

static const struct app_backend threads = {
	.unit = "thread",
	.option = "threads",
	.option_help = "threads (default: JIA_NP, or the processors online)\n",
	.join = join_team,
	.leave = barrier_team,
	.quit = quit_team,
	.malloc = malloc_team,
	.overwrite = overwrite_team,
	.fetch = fetch_team,
	.barrier = barrier_team,
	.lock = lock_team,
	.unlock = unlock_team,
	.lock_at = lock_at_team,
	.unlock_at = unlock_at_team,
	.wait = wait_team,
	.wake = wake_team,
	.reduce = reduce_team,
	.begin = nothing,
	.end = end_team,
	.set = set_team,
	.phase = phase_team,
	.die = die_team,
};

const struct app_backend *const app_backend = &threads;

/* --- the team ------------------------------------------------------------------- */

static int number_of(const char *what, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end != text && !*end && n >= 1 && n <= THREADS_MAX)
		return (int)n;
	fprintf(stderr, "%s: '%s' is no number of threads (1..%d)\n", what,
		text, THREADS_MAX);
	exit(APP_REFUSED);
}

/* How many threads; takes --threads out of the command line. */
static int take_threads(int *argc, char **argv)
{
	static const char name[] = "--threads";
	const size_t len = sizeof(name) - 1;
	const char *env = getenv("JIA_NP");
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	int left = 0;

	n = env ? number_of("JIA_NP", env) : n < 1 ? 1 : n;
	for (int i = 0; i < *argc; i++) {
		bool is = !strncmp(argv[i], name, len);

		if (is && argv[i][len] == '=')
			n = number_of(name, argv[i] + len + 1);
		else if (is && !argv[i][len])
			n = number_of(name, i + 1 < *argc ? argv[++i] : "");
		else
			argv[left++] = argv[i];
	}
	argv[left] = NULL;
	*argc = left;
	return (int)n;
}

static void *run(void *rank)
{
	my_rank = (int)(intptr_t)rank;
	return (void *)(intptr_t)app_main(team.argc, team.argv);
}

static void prepare(void)
{
	pthread_barrier_init(&team.barrier, NULL, (unsigned)team.ranks);
	for (int i = 0; i < APP_LOCKS; i++)
		pthread_mutex_init(&team.lock[i], NULL);
	for (int i = 0; i < ADDRESSES; i++)
		pthread_mutex_init(&team.lock_at[i], NULL);
	for (int i = 0; i < CONDITIONS; i++)
		pthread_cond_init(&team.cond[i], NULL);
	team.part = app_calloc((size_t)team.ranks, sizeof(*team.part));
}

int main(int argc, char **argv)
{
	pthread_t *thread;
	int worst = APP_GOOD;

	team.ranks = take_threads(&argc, argv);
	team.argc = argc;
	team.argv = argv;
	prepare();
	thread = app_calloc((size_t)team.ranks, sizeof(*thread));
	for (int i = 0; i < team.ranks; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(intptr_t)i))
			app_die("cannot start thread %d of %d", i, team.ranks);
	for (int i = 0; i < team.ranks; i++) {
		void *status;

		pthread_join(thread[i], &status);
		if ((int)(intptr_t)status > worst)
			worst = (int)(intptr_t)status;
	}
	free(thread);
	free(team.part);
	return worst;
}
