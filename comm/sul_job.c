/* SPDX-License-Identifier: MIT */
/*
 * sul_job.c - the control block of a job.
 *
 * Role: page 0 of the job's memfd is the head (who made it, how many ranks, how
 *   far they are, the failure); one slot per rank follows, on pages of its own
 *   (struct sul_job_rank, then what sul_job_more() gives); the windows come
 *   after sul_job_bytes().
 * Invariant: head->failure is written by the one caller whose compare-and-swap
 *   of `claimed` succeeded, and is read only after the abort word is seen set.
 *   A rank's state only grows; reached[s] counts the ranks in state s or later.
 * Threads: everything is atomic words in shared memory; no locks.
 *
 * Who wakes the launcher: it sleeps in poll(), not on a futex, so a change of a
 * rank's state and a failure send it SIGCHLD.  It wakes on that signal anyway, and a launcher
 * that does not care (a unit test) ignores it by default.
 */
#include "sul_job.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sul.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum {
	JOB_MAGIC = 0x4a494151,
	JOB_VERSION = 1,
	RANK_BYTES = 4096, /* of a slot, for struct sul_job_rank */
	SLOT_BYTES = RANK_BYTES + SUL_JOB_MORE_BYTES,
	STATES = SUL_RANK_EXITED + 1,
	HIGH_FD = 200, /* a program's own descriptors are rarely up here */
	NAP_MS = 100, /* a lost wake-up costs at most this */
	TELLING = 1,
	TOLD = 2,
	TELL_MS = 1000, /* whoever tells may have died of it */
};

/* The head of the block.  magic .. key never change once ranks are started. */
struct job_head {
	uint32_t magic;
	uint32_t version;
	uint32_t ranks;
	uint32_t slot_bytes;
	uint64_t block_bytes;
	uint32_t launcher;
	uint32_t host;
	unsigned char key[SUL_JOB_KEY_BYTES];
	_Atomic uint32_t reached[STATES];
	_Atomic uint32_t claimed;
	struct sul_word abort;
	_Atomic uint32_t told; /* sul_job_tell(): 0, TELLING, TOLD */
	int32_t fail_rank;
	int32_t fail_status;
	char fail_text[SUL_JOB_TEXT_MAX];
};

_Static_assert(sizeof(struct job_head) <= SLOT_BYTES, "head fits its page");
_Static_assert(sizeof(struct sul_job_rank) <= RANK_BYTES, "rank fits its page");

struct sul_job {
	struct job_head *head;
	size_t bytes; /* of the block, whole pages */
	int fd;
	int self; /* -1: the launcher */
	bool launched;
};

static size_t block_bytes(int ranks)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = ((size_t)ranks + 1) * SLOT_BYTES;

	return (bytes + page - 1) / page * page;
}

static void futex_wake_all(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void futex_nap(void *word, uint32_t seen, int ms)
{
	struct timespec ts = { ms / 1000, (ms % 1000) * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* See the head of this file.  Keeps errno: fail() runs in signal handlers. */
static void nudge_launcher(const struct sul_job *j)
{
	if (j->launched && j->self >= 0)
		kill((pid_t)j->head->launcher, SIGCHLD);
}

/* Move @fd out of the program's way; returns @fd itself if there is no room. */
static int fd_move_up(int fd, int cmd)
{
	int up = fcntl(fd, cmd, HIGH_FD);

	return up < 0 ? fd : up;
}

static int memfd_make(size_t bytes)
{
	struct rlimit lim;
	int fd, err;

	/* Beyond this limit ftruncate() would end us with SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur < bytes)
		return -EFBIG;
	fd = memfd_create("jia-job", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
		fd = memfd_create("jia-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* A job that could shrink would turn loads into SIGBUS. */
	if (ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Takes over @fd on success; NULL with errno otherwise. */
static struct sul_job *job_map(int fd, size_t bytes)
{
	struct sul_job *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return NULL;
	j->head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (j->head == MAP_FAILED) {
		err = errno;
		free(j);
		errno = err;
		return NULL;
	}
	j->bytes = bytes;
	j->fd = fd;
	j->self = -1;
	return j;
}

/* NULL with errno. */
static struct sul_job *job_make(int ranks)
{
	size_t bytes = block_bytes(ranks);
	struct job_head *head;
	struct sul_job *j;
	int fd = memfd_make(bytes);
	int err;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	j = job_map(fd, bytes);
	if (!j) {
		err = errno;
		close(fd);
		errno = err;
		return NULL;
	}
	head = j->head;
	head->version = JOB_VERSION;
	head->ranks = (uint32_t)ranks;
	head->slot_bytes = SLOT_BYTES;
	head->block_bytes = bytes;
	head->launcher = (uint32_t)getpid();
	if (getrandom(head->key, sizeof(head->key), 0) != sizeof(head->key)) {
		sul_job_close(j);
		errno = ENODATA;
		return NULL;
	}
	atomic_store(&head->reached[SUL_RANK_NONE], (uint32_t)ranks);
	head->magic = JOB_MAGIC;
	return j;
}

int sul_job_create(struct sul_job **out, int ranks)
{
	struct sul_job *j;

	if (ranks < 1 || ranks > SUL_RANKS_MAX)
		return -EINVAL;
	j = job_make(ranks);
	if (!j)
		return -errno;
	*out = j;
	return 0;
}

int sul_job_fd(const struct sul_job *j)
{
	return j->fd;
}

int sul_job_hand_over(const struct sul_job *j, int rank)
{
	char text[80];
	int fd;

	if (rank < 0 || rank >= sul_job_ranks(j))
		return -EINVAL;
	fd = fd_move_up(j->fd, F_DUPFD);
	if (fd == j->fd && fcntl(fd, F_SETFD, 0) < 0)
		return -errno;
	snprintf(text, sizeof(text), "%d:%d:%d:%d:%d", JOB_VERSION, rank,
		 sul_job_ranks(j), fd, (int)j->head->launcher);
	return setenv(SUL_JOB_ENV, text, 1) < 0 ? -errno : 0;
}

/* The five numbers of JIA_JOB. */
struct job_ticket {
	long version, rank, ranks, fd, launcher;
};

static int ticket_number(const char **at, char end, long max, long *value)
{
	char *stop;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	errno = 0;
	*value = strtol(*at, &stop, 10);
	if (errno || *stop != end || *value > max)
		return -EINVAL;
	*at = stop + (end != '\0');
	return 0;
}

static int ticket_parse(struct job_ticket *t, const char *s)
{
	if (ticket_number(&s, ':', INT32_MAX, &t->version) ||
	    ticket_number(&s, ':', SUL_RANKS_MAX - 1, &t->rank) ||
	    ticket_number(&s, ':', SUL_RANKS_MAX, &t->ranks) ||
	    ticket_number(&s, ':', INT32_MAX, &t->fd) ||
	    ticket_number(&s, '\0', INT32_MAX, &t->launcher))
		return -EINVAL;
	if (t->version != JOB_VERSION || t->rank >= t->ranks || !t->launcher)
		return -EINVAL;
	return 0;
}

/* Is what @fd refers to the block of a job of @ranks? */
static int head_read(struct job_head *head, int fd, int ranks)
{
	size_t bytes = block_bytes(ranks);
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS); /* only a memfd has them */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0)
		return -EBADF;
	if (st.st_size < (off_t)bytes ||
	    pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head))
		return -EBADF;
	if (head->magic != JOB_MAGIC || head->version != JOB_VERSION ||
	    head->slot_bytes != SLOT_BYTES || head->block_bytes != bytes ||
	    head->ranks != (uint32_t)ranks)
		return -EBADF;
	return 0;
}

static int ticket_check(const struct job_ticket *t)
{
	struct job_head head;
	int err = head_read(&head, (int)t->fd, (int)t->ranks);

	if (!err && head.launcher != (uint32_t)t->launcher)
		err = -EBADF;
	return err;
}

/* For the launcher, which knows what it started, not what that exec'd. */
static void note_program(struct sul_job_rank *r)
{
	ssize_t len =
		readlink("/proc/self/exe", r->program, sizeof(r->program));

	if (len < 0 || len == sizeof(r->program))
		len = 0;
	r->program[len] = '\0';
}

/* Become rank @self of the job, once. */
static int job_join(struct sul_job *j, int self)
{
	struct sul_job_rank *r = sul_job_rank(j, self);
	uint32_t nobody = 0;

	if (!atomic_compare_exchange_strong(&r->pid, &nobody,
					    (uint32_t)getpid()))
		return -EBUSY;
	j->self = self;
	note_program(r);
	sul_job_set_state(j, SUL_RANK_UP);
	return 0;
}

int sul_job_open(struct sul_job **out, int fd, int ranks)
{
	struct job_head head;
	struct sul_job *j;
	int err;

	if (ranks < 1 || ranks > SUL_RANKS_MAX)
		return -EINVAL;
	err = head_read(&head, fd, ranks);
	if (err)
		return err;
	j = job_map(fd, block_bytes(ranks));
	if (!j)
		return -errno;
	*out = j;
	return 0;
}

int sul_job_enter(struct sul_job *j, int rank)
{
	int up;

	if (rank < 0 || rank >= sul_job_ranks(j))
		return -EINVAL;
	up = fd_move_up(j->fd, F_DUPFD_CLOEXEC);
	if (up != j->fd) {
		close(j->fd);
		j->fd = up;
	}
	return job_join(j, rank);
}

static int attach_alone(struct sul_job **out)
{
	struct sul_job *j = job_make(1);
	int err;

	if (!j)
		return -errno;
	err = sul_job_enter(j, 0);
	if (err) {
		sul_job_close(j);
		return err;
	}
	*out = j;
	return 0;
}

static int attach_launched(struct sul_job **out, const char *env)
{
	struct job_ticket t;
	struct sul_job *j;
	int err = ticket_parse(&t, env);

	if (!err)
		err = ticket_check(&t);
	if (err)
		return err;
	j = job_map((int)t.fd, block_bytes((int)t.ranks));
	if (!j)
		return -errno;
	if (fcntl(j->fd, F_SETFD, FD_CLOEXEC) < 0) {
		err = -errno;
		goto unmap;
	}
	j->launched = true;
	err = job_join(j, (int)t.rank);
	if (err)
		goto unmap;
	unsetenv(SUL_JOB_ENV);
	*out = j;
	return 0;
unmap:
	munmap(j->head, j->bytes);
	free(j);
	return err;
}

int sul_job_attach(struct sul_job **out)
{
	const char *env = getenv(SUL_JOB_ENV);

	if (env && strcmp(env, SUL_JOB_NONE) != 0)
		return attach_launched(out, env);
	return attach_alone(out);
}

bool sul_job_launched(const struct sul_job *j)
{
	return j->launched;
}

void sul_job_close(struct sul_job *j)
{
	if (!j)
		return;
	munmap(j->head, j->bytes);
	close(j->fd);
	free(j);
}

int sul_job_self(const struct sul_job *j)
{
	return j->self;
}

int sul_job_ranks(const struct sul_job *j)
{
	return (int)j->head->ranks;
}

struct sul_job_rank *sul_job_rank(struct sul_job *j, int rank)
{
	char *slots = (char *)j->head + SLOT_BYTES;

	return (struct sul_job_rank *)(void *)(slots +
					       (size_t)rank * SLOT_BYTES);
}

bool sul_job_far(const struct sul_job *j, int rank)
{
	struct sul_job_rank *r =
		sul_job_rank((struct sul_job *)(uintptr_t)j, rank);

	return r->host != j->head->host;
}

const unsigned char *sul_job_key(const struct sul_job *j)
{
	return j->head->key;
}

void sul_job_set_host(struct sul_job *j, int host)
{
	j->head->host = (uint32_t)host;
}

void sul_job_set_key(struct sul_job *j,
		     const unsigned char key[SUL_JOB_KEY_BYTES])
{
	memcpy(j->head->key, key, SUL_JOB_KEY_BYTES);
}

void sul_job_place(struct sul_job *j, int rank, int host, const char *name)
{
	struct sul_job_rank *r = sul_job_rank(j, rank);

	r->host = (uint32_t)host;
	snprintf(r->host_name, sizeof(r->host_name), "%s", name);
}

void *sul_job_more(struct sul_job *j, int rank)
{
	return (char *)sul_job_rank(j, rank) + RANK_BYTES;
}

size_t sul_job_bytes(const struct sul_job *j)
{
	return j->bytes;
}

static int first_missing(struct sul_job *j, enum sul_rank_state state)
{
	int ranks = sul_job_ranks(j);

	for (int r = 0; r < ranks; r++) {
		if (atomic_load(&sul_job_rank(j, r)->state) < state)
			return r;
	}
	return -1;
}

int sul_job_wait_all(struct sul_job *j, enum sul_rank_state state,
		     int timeout_ms, int *missing)
{
	_Atomic uint32_t *reached = &j->head->reached[state];
	int64_t end = now_ms() + timeout_ms, left = NAP_MS;
	uint32_t seen;

	for (;;) {
		if (sul_job_failed(j))
			return -ECANCELED;
		seen = atomic_load(reached);
		if (seen == j->head->ranks)
			return 0;
		if (timeout_ms >= 0)
			left = end - now_ms();
		if (left <= 0) {
			if (missing)
				*missing = first_missing(j, state);
			return -ETIMEDOUT;
		}
		futex_nap(reached, seen, left < NAP_MS ? (int)left : NAP_MS);
	}
}

/* The state that @rank had before. */
static uint32_t raise_state(struct sul_job *j, int rank, uint32_t state)
{
	struct job_head *head = j->head;
	uint32_t old = atomic_load(&sul_job_rank(j, rank)->state);

	if (state <= old)
		return old;
	atomic_store(&sul_job_rank(j, rank)->state, state);
	for (uint32_t s = old + 1; s <= state; s++) {
		/* Only the last to arrive has anybody to wake. */
		if (atomic_fetch_add(&head->reached[s], 1) + 1 == head->ranks)
			futex_wake_all(&head->reached[s]);
	}
	return old;
}

void sul_job_set_state(struct sul_job *j, enum sul_rank_state state)
{
	if (raise_state(j, j->self, state) < (uint32_t)state)
		nudge_launcher(j);
}

void sul_job_mirror(struct sul_job *j, int rank,
		    const struct sul_job_rank *theirs)
{
	/* Before the rest: @theirs may be alive, and what belongs to a state is
	 * there when the state is. */
	uint32_t state = atomic_load(&theirs->state);
	struct sul_job_rank *ours = sul_job_rank(j, rank), all = *theirs;

	all.state = ours->state;
	all.host = ours->host;
	memcpy(all.host_name, ours->host_name, sizeof(all.host_name));
	*ours = all;
	raise_state(j, rank, state < STATES ? state : 0);
}

bool sul_job_fail(struct sul_job *j, int rank, int status, const char *text)
{
	struct job_head *head = j->head;
	int saved = errno;
	uint32_t unclaimed = 0;
	size_t len;

	if (!atomic_compare_exchange_strong(&head->claimed, &unclaimed, 1))
		return false;
	head->fail_rank = rank;
	head->fail_status = status;
	len = strnlen(text, SUL_JOB_TEXT_MAX - 1);
	memcpy(head->fail_text, text, len);
	head->fail_text[len] = '\0';
	__atomic_store_n(&head->abort.value, 1, __ATOMIC_SEQ_CST);
	futex_wake_all(&head->abort.value);
	for (int s = 0; s < STATES; s++)
		futex_wake_all(&head->reached[s]);
	nudge_launcher(j);
	errno = saved;
	return true;
}

bool sul_job_failed(const struct sul_job *j)
{
	return __atomic_load_n(&j->head->abort.value, __ATOMIC_ACQUIRE) != 0;
}

void sul_job_failure(const struct sul_job *j, int *rank, int *status,
		     char text[SUL_JOB_TEXT_MAX])
{
	*rank = j->head->fail_rank;
	*status = j->head->fail_status;
	memcpy(text, j->head->fail_text, SUL_JOB_TEXT_MAX);
	text[SUL_JOB_TEXT_MAX - 1] = '\0';
}

bool sul_job_tell(struct sul_job *j, void (*say)(const char *text))
{
	_Atomic uint32_t *told = &j->head->told;
	int64_t end = now_ms() + TELL_MS;
	uint32_t nobody = 0;

	if (atomic_compare_exchange_strong(told, &nobody, TELLING)) {
		say(j->head->fail_text);
		atomic_store(told, TOLD);
		futex_wake_all(told);
		return true;
	}
	while (atomic_load(told) != TOLD && now_ms() < end)
		futex_nap(told, TELLING, NAP_MS);
	return false;
}

struct sul_word *sul_job_abort_word(struct sul_job *j)
{
	return &j->head->abort;
}
