/* SPDX-License-Identifier: MIT */
/*
 * sul_pmix.c - see sul_pmix.h.
 *
 * Role:      what the ranks publish, and when they meet to read it.
 * Invariant: the block has all ranks of other hosts in their places before any
 *            rank of this host uses it: they are mirrored as UP only then, and
 *            everybody waits for that.
 *
 * On one host nobody meets at all: the leader publishes, the others wait for
 * that, and then everything is in the block.  With several, all ranks meet three
 * times: to know where everybody is, when all are READY, and at the end.
 */
#include "sul_pmix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sul.h"
#include "sul_keeper.h"
#include "sul_launcher.h"
#include "sul_pmix_lib.h"
#include "sul_sleep.h"

enum {
	HERE_VERSION = 1,
	ATTACH_MS =
		60000, /* as long as ranks wait for each other in jia_init() */
	RETRY_US = 1000,
};

#define HERE_KEY "dajia.here"
#define READY_KEY "dajia.ready"
#define LAST_KEY "dajia.last"

/* What a rank publishes first; later it is its slot of the block. */
struct here {
	uint32_t version;
	uint32_t leader; /* of its host */
	uint32_t pid, fd; /* the leader: where the block is */
	char host[SUL_JOB_HOST_MAX];
	unsigned char key[SUL_JOB_KEY_BYTES]; /* rank 0: the job's */
};

struct sul_pmix {
	struct sul_pmix_client client;
	_Atomic(struct sul_job *) job;
	struct sul_keeper *keeper;
	int ranks, leader;
	bool *near; /* [ranks]: on this host */
	bool alone; /* no other host */
};

static bool leads(const struct sul_pmix *p)
{
	return p->client.rank == p->leader;
}

static struct sul_word *abort_word(struct sul_pmix *p)
{
	struct sul_job *job = atomic_load(&p->job);

	return job ? sul_job_abort_word(job) : NULL;
}

const char *sul_pmix_said(const struct sul_pmix *p)
{
	return p->client.ops->said(p->client.lib);
}

static int put(struct sul_pmix *p, const char *key, const void *bytes,
	       size_t len)
{
	return p->client.ops->put(p->client.lib, key, bytes, len);
}

/*
 * It may be found a moment after it was published: servers there are answer that
 * it is not there when the question comes between.
 */
static int get(struct sul_pmix *p, int rank, const char *key, void *bytes,
	       size_t len)
{
	uint64_t end = sul_sleep_end(ATTACH_MS);
	int err;

	for (;;) {
		err = p->client.ops->get(p->client.lib, rank, key, bytes, len,
					 abort_word(p), sul_sleep_left_ms(end));
		if (err != -ENOENT)
			return err;
		if (!sul_sleep_left_ms(end))
			return -ETIMEDOUT;
		usleep(RETRY_US);
	}
}

static int fence(struct sul_pmix *p, int timeout_ms)
{
	return p->client.ops->fence(p->client.lib, abort_word(p), timeout_ms);
}

/* --- who is where --------------------------------------------------------------------- */

/* "0,1,5" */
static int near_read(struct sul_pmix *p, const char *list)
{
	int nr = 0;

	p->near = calloc((size_t)p->ranks, sizeof(*p->near));
	if (!p->near)
		return -ENOMEM;
	p->leader = p->client.rank;
	for (;;) {
		char *end;
		long rank = strtol(list, &end, 10);

		if (end == list || rank < 0 || rank >= p->ranks)
			return -EPROTO;
		p->near[rank] = true;
		if (rank < p->leader)
			p->leader = (int)rank;
		nr++;
		if (!*end)
			break;
		list = end + 1;
	}
	p->alone = nr == p->ranks;
	return p->near[p->client.rank] ? 0 : -EPROTO;
}

/* The ranks, and which of them are near. */
static int ask_launcher(struct sul_pmix *p)
{
	const struct sul_pmix_client *c = &p->client;
	char *list = NULL;
	int err = c->ops->ranks(c->lib, &p->ranks);

	if (!err && p->ranks > SUL_RANKS_MAX)
		err = -E2BIG;
	if (err || p->ranks == 1)
		return err;
	err = c->ops->neighbours(c->lib, &list);
	if (!err)
		err = near_read(p, list);
	free(list);
	return err;
}

static int publish(struct sul_pmix *p, struct sul_job *made)
{
	struct here here = { .version = HERE_VERSION,
			     .leader = (uint32_t)p->leader };

	gethostname(here.host, sizeof(here.host) - 1);
	if (made) {
		here.pid = (uint32_t)getpid();
		here.fd = (uint32_t)sul_job_fd(made);
	}
	if (p->client.rank == 0 && !p->alone)
		memcpy(here.key, sul_job_key(made), sizeof(here.key));
	return put(p, HERE_KEY, &here, sizeof(here));
}

static int here_get(struct sul_pmix *p, int rank, struct here *here)
{
	int err = get(p, rank, HERE_KEY, here, sizeof(*here));

	if (!err && (here->version != HERE_VERSION ||
		     here->leader >= (uint32_t)p->ranks))
		err = -EPROTO;
	here->host[sizeof(here->host) - 1] = '\0';
	return err;
}

/* --- the block --------------------------------------------------------------------------- */

static int lead(struct sul_pmix *p, struct sul_job **job)
{
	char name[SUL_JOB_HOST_MAX] = "";
	struct sul_job *j;
	int err = sul_job_create(&j, p->ranks);

	if (err)
		return err;
	gethostname(name, sizeof(name) - 1);
	sul_job_set_host(j, p->leader);
	for (int r = 0; r < p->ranks && !p->alone; r++)
		if (p->near[r])
			sul_job_place(j, r, p->leader, name);
		else
			sul_job_place(j, r, -1, "");
	err = sul_job_enter(j, p->client.rank);
	if (err)
		sul_job_close(j);
	else
		*job = j;
	return err;
}

/* After all have published. */
static int place_others(struct sul_pmix *p, struct sul_job *j)
{
	struct sul_job_rank up = { .state = SUL_RANK_UP };
	struct here here;

	for (int r = 0; r < p->ranks; r++) {
		int err;

		if (p->near[r])
			continue;
		err = here_get(p, r, &here);
		if (err)
			return err;
		sul_job_place(j, r, (int)here.leader, here.host);
		if (r == 0)
			sul_job_set_key(j, here.key);
	}
	for (int r = 0; r < p->ranks; r++)
		if (!p->near[r])
			sul_job_mirror(j, r, &up);
	return 0;
}

static int follow(struct sul_pmix *p, struct sul_job **job, char *text)
{
	struct here here;
	char path[64];
	int fd, err = here_get(p, p->leader, &here);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", here.pid, here.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		snprintf(
			text, SUL_JOB_TEXT_MAX,
			"rank %d cannot open the memory of the job, which rank %d has made, through %s: %s; ranks of one host must be of one user, see each other in /proc (mount option hidepid, containers: one for all ranks), and may not be set-user-ID",
			p->client.rank, p->leader, path, strerror(-err));
		return err;
	}
	err = sul_job_open(job, fd, p->ranks);
	if (err) {
		close(fd);
		return err;
	}
	return sul_job_enter(*job, p->client.rank);
}

static int meet_first(struct sul_pmix *p, struct sul_job **job, char *text)
{
	int err = 0, missing;

	if (leads(p))
		err = lead(p, job);
	if (!err && (leads(p) || !p->alone))
		err = publish(p, *job);
	if (!err && !p->alone)
		err = fence(p, ATTACH_MS);
	if (!err && !leads(p))
		err = follow(p, job, text);
	if (err)
		return err;
	atomic_store(&p->job, *job);
	if (leads(p) && !p->alone)
		err = place_others(p, *job);
	if (!err && !p->alone)
		err = sul_job_wait_all(*job, SUL_RANK_UP, ATTACH_MS, &missing);
	return err;
}

/* --- attaching ------------------------------------------------------------------------------- */

bool sul_pmix_here(void)
{
	return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK") &&
	       !getenv(SUL_JOB_ENV);
}

/* The server has gone, and with it whoever would end this process. */
static void lost(void *ctx)
{
	struct sul_pmix *p = ctx;
	struct sul_job *job = atomic_load(&p->job);

	if (job)
		sul_job_fail(
			job, -1, 1,
			"the launcher of the job has gone, or its daemon on this host");
}

static void abort_job(void *ctx, int status, const char *text)
{
	struct sul_pmix *p = ctx;

	p->client.ops->abort(p->client.lib, status, text);
}

static int keeper_start(struct sul_pmix *p, struct sul_job *job,
			void (*say)(const char *text))
{
	struct sul_keeper_config cfg = {
		.job = job, .say = say, .abort = abort_job, .ctx = p
	};

	return sul_keeper_start(&p->keeper, &cfg);
}

/* A job of one rank needs nobody; and what it starts is no rank either. */
static int attach_alone(struct sul_job **job)
{
	setenv(SUL_JOB_ENV, SUL_JOB_NONE, 1);
	return sul_job_attach(job);
}

/* Without PMIx: is this the only rank after all? */
static bool only_rank(void)
{
	const char *rank = getenv("PMIX_RANK");
	struct sul_launcher l;

	if (sul_launcher_find(&l))
		return l.ranks == 1;
	return rank && !strcmp(rank, "0");
}

static void explain_missing(int err, const char *why, char *text)
{
	const char *what = "libpmix cannot be used",
		   *remedy = "install libpmix2";

	if (err == -ENOSYS)
		remedy = "build it where pmix.h is (libpmix-dev)";
	if (err == -ECONNREFUSED) {
		what = "no PMIx server answers";
		remedy = "to run alone, unset PMIX_NAMESPACE";
	}
	snprintf(
		text, SUL_JOB_TEXT_MAX,
		"PMIX_RANK=%s says that mpirun or srun has started this process, but %s: %s; %s, or start the program with jiarun",
		getenv("PMIX_RANK"), what, why, remedy);
}

static void explain(const struct sul_pmix *p, int err, char *text)
{
	const char *why = strerror(-err);

	if (text[0])
		return;
	if (err == -EPROTO || err == -ENOENT)
		why = sul_pmix_said(p);
	if (err == -ETIMEDOUT)
		why = "not all of its ranks have called jia_init() within 60 s";
	snprintf(text, SUL_JOB_TEXT_MAX,
		 "rank %d cannot join the job of %d ranks through PMIx: %s",
		 p->client.rank, p->ranks, why);
}

/* Sets p->ranks; when that is 1 the library is closed. */
static int look_around(struct sul_pmix *p, char *text)
{
	char why[SUL_JOB_TEXT_MAX / 2];
	int err;

	p->client.lost = lost;
	p->client.ctx = p;
	err = sul_pmix_lib_open(&p->client, why, sizeof(why));
	if (err && only_rank()) {
		p->ranks = 1;
		return 0;
	}
	if (err) {
		explain_missing(err, why, text);
		return err;
	}
	err = ask_launcher(p);
	if (err)
		explain(p, err, text);
	else if (p->ranks == 1)
		p->client.ops->close(p->client.lib);
	return err;
}

static int join(struct sul_pmix *p, struct sul_job **job,
		void (*say)(const char *text), char *text)
{
	int err = meet_first(p, job, text);

	if (!err)
		err = keeper_start(p, *job, say);
	if (err)
		explain(p, err, text);
	else
		setenv(SUL_JOB_ENV, SUL_JOB_NONE, 1);
	return err;
}

/* On an error the process is about to end, and @p stays: the library's thread may
 * be at work on it. */
int sul_pmix_attach(struct sul_pmix **out, struct sul_job **job,
		    void (*say)(const char *text), char *text)
{
	struct sul_pmix *p = calloc(1, sizeof(*p));
	int err;

	text[0] = '\0';
	if (!p)
		return -ENOMEM;
	err = look_around(p, text);
	if (!err && p->ranks > 1) {
		err = join(p, job, say, text);
		if (!err)
			*out = p;
		return err;
	}
	if (!err) {
		free(p);
		err = attach_alone(job);
	}
	return err;
}

/* --- meeting --------------------------------------------------------------------------------- */

static int mirror_all(struct sul_pmix *p, const char *key,
		      enum sul_rank_state state)
{
	struct sul_job_rank theirs;

	for (int r = 0; r < p->ranks; r++) {
		int err;

		if (p->near[r])
			continue;
		err = get(p, r, key, &theirs, sizeof(theirs));
		if (err)
			return err;
		theirs.state = state;
		sul_job_mirror(p->job, r, &theirs);
	}
	return 0;
}

/* All ranks of all hosts have come to @state, and say what is in their slots. */
static int meet_as(struct sul_pmix *p, const char *key,
		   enum sul_rank_state state, int timeout_ms)
{
	int err;

	if (p->alone)
		return 0;
	err = put(p, key, sul_job_rank(p->job, p->client.rank),
		  sizeof(struct sul_job_rank));
	if (!err)
		err = fence(p, timeout_ms);
	if (!err && leads(p))
		err = mirror_all(p, key, state);
	return err;
}

int sul_pmix_meet(struct sul_pmix *p, int timeout_ms)
{
	return meet_as(p, READY_KEY, SUL_RANK_READY, timeout_ms);
}

int sul_pmix_leave(struct sul_pmix *p, int timeout_ms)
{
	int err = meet_as(p, LAST_KEY, SUL_RANK_EXITED, timeout_ms);

	if (err)
		return err;
	sul_job_set_state(p->job, SUL_RANK_EXITED);
	sul_keeper_stop(p->keeper);
	p->client.ops->close(p->client.lib);
	free(p->near);
	free(p);
	return 0;
}

void sul_pmix_await_end(void)
{
	struct timespec t = { SUL_KEEPER_END_MS / 1000,
			      SUL_KEEPER_END_MS % 1000 * 1000000L };

	nanosleep(&t, NULL);
}
