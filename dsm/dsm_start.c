/* SPDX-License-Identifier: MIT */
/*
 * dsm_start.c - ranks meet and find out whether they are one program.
 *
 * Role:    every rank publishes its parameters, the build id of its program and
 *          a few load addresses, waits for all, and compares with rank 0.
 *          Pointers into the program (data, functions, libc) may travel through
 *          shared memory, so the addresses must be the same everywhere.
 * Threads: called once, by the thread that calls jia_init().
 */
#include "dsm_host.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MEET_MS = 60000, /* a loaded machine starts 1024 ranks in 20 s */
	PART_MS = 10000, /* all have met already */
	BUILD_ID_MAX = 32,
	RANK_TEXT_MAX = SUL_JOB_HOST_MAX + 32
};

/* What ranks compare. */
struct card {
	struct dsm_config cfg;
	uint64_t program; /* load address */
	uint64_t libc; /* address of a function of libc */
	uint32_t build_id_len;
	unsigned char build_id[BUILD_ID_MAX];
};
_Static_assert(sizeof(struct card) <= SUL_JOB_BLOB_MAX, "the card must fit");

static void find_build_id(struct card *c, const char *notes, size_t len)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *nh = (const void *)notes;
		size_t name = (nh->n_namesz + 3u) & ~3u;
		size_t desc = (nh->n_descsz + 3u) & ~3u;
		const char *body = notes + sizeof(*nh) + name;

		if (sizeof(*nh) + name + desc > len)
			return;
		if (nh->n_type == NT_GNU_BUILD_ID &&
		    nh->n_descsz <= BUILD_ID_MAX) {
			c->build_id_len = nh->n_descsz;
			memcpy(c->build_id, body, nh->n_descsz);
			return;
		}
		notes += sizeof(*nh) + name + desc;
		len -= sizeof(*nh) + name + desc;
	}
}

/* The first object is the program itself. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct card *c = arg;

	(void)size;
	c->program = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_NOTE && !c->build_id_len)
			find_build_id(
				c,
				(const char *)(info->dlpi_addr + ph->p_vaddr),
				ph->p_memsz);
	}
	return 1;
}

static void fill_in(struct card *c, const struct dsm_host *h)
{
	memset(c, 0, sizeof(*c));
	c->cfg = h->settings.value;
	c->libc = (uintptr_t)&snprintf;
	dl_iterate_phdr(look_at_program, c);
}

/* "rank 2", with " on nodeB" if there are several hosts. */
static const char *rank_text(struct dsm_host *h, int rank,
			     char text[RANK_TEXT_MAX])
{
	const struct sul_job_rank *r = sul_job_rank(h->job, rank);

	snprintf(text, RANK_TEXT_MAX, "rank %d%s%.*s", rank,
		 r->host_name[0] ? " on " : "", SUL_JOB_HOST_MAX - 1,
		 r->host_name);
	return text;
}

static void compare(struct dsm_host *h, const struct card *mine,
		    const struct card *first)
{
	char text[DSM_CONFIG_ERR_MAX], name[RANK_TEXT_MAX];
	int rank = sul_job_self(h->job);

	if (dsm_config_compare(&first->cfg, 0, &mine->cfg, rank, text))
		dsm_host_fail(h, "%s", text);
	if (first->build_id_len != mine->build_id_len ||
	    memcmp(first->build_id, mine->build_id, mine->build_id_len))
		dsm_host_fail(
			h,
			"this rank runs another program, or another build of it, than %s",
			rank_text(h, 0, name));
	if (first->program != mine->program || first->libc != mine->libc)
		dsm_host_fail(
			h,
			"program or libc are not loaded where %s has them (%#llx, %#llx there; %#llx, %#llx here): address space randomisation must be off (jiarun, mpirun and srun have it so where personality(2) is allowed), and libc the same",
			rank_text(h, 0, name),
			(unsigned long long)first->program,
			(unsigned long long)first->libc,
			(unsigned long long)mine->program,
			(unsigned long long)mine->libc);
}

static bool any_far(const struct sul_job *job)
{
	for (int r = 0; r < sul_job_ranks(job); r++)
		if (sul_job_far(job, r))
			return true;
	return false;
}

/* How ranks of other hosts reach this one; they learn of it as we meet. */
static void listen(struct dsm_host *h)
{
	const struct dsm_config *c = &h->settings.value;
	struct sul_listen_config lc = {
		.job = h->job,
		.rank = sul_job_self(h->job),
	};
	char why[SUL_WHY_MAX];

	dsm_config_listen(c, &lc);
	if (any_far(h->job) && c->carrier == DSM_CARRIER_SHM)
		dsm_host_fail(
			h,
			"carrier=shm carries within a host only, and this job has several: auto, udp or kmod");
	if (c->hardware && (any_far(h->job) || lc.everywhere))
		dsm_host_fail(
			h,
			"--nodes=1 (parameter hardware) is for ranks that share their host's memory: one host, and no carrier=udp or kmod");
	if (!sul_auth_known((enum sul_auth)c->auth))
		dsm_host_fail(
			h,
			"auth=aead: this build of the library has no libsodium; mac or off");
	if (sul_listen(&h->listener, &lc, why))
		dsm_host_fail(h, "listening on the network%s%s: %s",
			      *c->links_text ? ", links=" : "", c->links_text,
			      why);
}

/* What came of a meeting with the ranks of other hosts. */
static void meet_others(struct dsm_host *h, int err)
{
	if (err == -ECANCELED)
		dsm_host_fail(h, "the job was ended");
	if (err == -ETIMEDOUT)
		dsm_host_fail(h, "a rank did not come within %d s",
			      MEET_MS / 1000);
	if (err)
		dsm_host_fail(h, "the meeting of all hosts through PMIx: %s",
			      err == -EPROTO ? sul_pmix_said(h->pmix) :
					       strerror(-err));
}

/* What jiarun would do: one rank prints what all have counted. */
static void print_stats(struct dsm_host *h)
{
	int ranks = sul_job_ranks(h->job);
	const uint64_t **counters = calloc((size_t)ranks, sizeof(*counters));

	if (!counters ||
	    sul_job_wait_all(h->job, SUL_RANK_EXITED, PART_MS, NULL))
		dsm_host_fail(
			h,
			"JIA_STATS: the counters of all ranks are not there");
	for (int r = 0; r < ranks; r++)
		counters[r] = sul_job_rank(h->job, r)->counters;
	dsm_stat_print(stderr, counters, ranks);
	free(counters);
}

void dsm_start_part(struct dsm_host *h)
{
	if (h->pmix)
		meet_others(h, sul_pmix_leave(h->pmix, MEET_MS));
	else
		sul_job_set_state(h->job, SUL_RANK_EXITED);
	h->pmix = NULL;
	if (h->stats && sul_job_self(h->job) == 0)
		print_stats(h);
}

void dsm_start_meet(struct dsm_host *h)
{
	char name[RANK_TEXT_MAX];
	int self = sul_job_self(h->job), missing = 0, err;
	struct sul_job_rank *r = sul_job_rank(h->job, self);
	struct card mine, first;

	listen(h);
	fill_in(&mine, h);
	memcpy(r->blob, &mine, sizeof(mine));
	atomic_store(&r->blob_len, (uint32_t)sizeof(mine));
	sul_job_set_state(h->job, SUL_RANK_READY);
	if (h->pmix)
		meet_others(h, sul_pmix_meet(h->pmix, MEET_MS));
	err = sul_job_wait_all(h->job, SUL_RANK_READY, MEET_MS, &missing);
	if (err == -ETIMEDOUT)
		dsm_host_fail(h, "%s has not called jia_init() within %d s",
			      rank_text(h, missing, name), MEET_MS / 1000);
	if (err)
		h->node ? dsm_must(h->node, err, "starting") :
			  dsm_host_fail(h, "the job was ended at its start");
	memcpy(&first, sul_job_rank(h->job, 0)->blob, sizeof(first));
	compare(h, &mine, &first);
	h->settings.running = true;
}
