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
#include <string.h>

enum {
	MEET_MS = 60000, /* a loaded machine starts 1024 ranks in 20 s */
	BUILD_ID_MAX = 32
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

static void compare(struct dsm_host *h, const struct card *mine,
		    const struct card *first)
{
	char text[DSM_CONFIG_ERR_MAX];
	int rank = sul_job_self(h->job);

	if (dsm_config_compare(&first->cfg, 0, &mine->cfg, rank, text))
		dsm_host_fail(h, "%s", text);
	if (first->build_id_len != mine->build_id_len ||
	    memcmp(first->build_id, mine->build_id, mine->build_id_len))
		dsm_host_fail(
			h,
			"this rank runs another program, or another build of it, than rank 0");
	if (first->program != mine->program || first->libc != mine->libc)
		dsm_host_fail(
			h,
			"program or libc are not loaded where rank 0 has them (%#llx, %#llx there; %#llx, %#llx here): address space randomisation must be off, as jiarun does it",
			(unsigned long long)first->program,
			(unsigned long long)first->libc,
			(unsigned long long)mine->program,
			(unsigned long long)mine->libc);
}

void dsm_start_meet(struct dsm_host *h)
{
	int self = sul_job_self(h->job), missing = 0, err;
	struct sul_job_rank *r = sul_job_rank(h->job, self);
	struct card mine, first;

	fill_in(&mine, h);
	memcpy(r->blob, &mine, sizeof(mine));
	atomic_store(&r->blob_len, (uint32_t)sizeof(mine));
	sul_job_set_state(h->job, SUL_RANK_READY);
	err = sul_job_wait_all(h->job, SUL_RANK_READY, MEET_MS, &missing);
	if (err == -ETIMEDOUT)
		dsm_host_fail(h,
			      "rank %d has not called jia_init() within %d s",
			      missing, MEET_MS / 1000);
	if (err)
		h->node ? dsm_must(h->node, err, "starting") :
			  dsm_host_fail(h, "the job was ended at its start");
	memcpy(&first, sul_job_rank(h->job, 0)->blob, sizeof(first));
	compare(h, &mine, &first);
	h->settings.running = true;
}
