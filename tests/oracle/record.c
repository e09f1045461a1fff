/* SPDX-License-Identifier: MIT */
/* record.c - see record.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

int record_attach(struct record **out, int fd)
{
	void *p = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

int record_create(struct record **out, int *fd)
{
	int f = memfd_create("oracle-record", MFD_CLOEXEC);
	int rc;

	if (f < 0)
		return -errno;
	if (ftruncate(f, sizeof(struct record))) {
		rc = -errno;
		goto close;
	}
	rc = record_attach(out, f);
	if (rc)
		goto close;
	*fd = f;
	return 0;
close:
	close(f);
	return rc;
}

void record_close(struct record *rec, int fd)
{
	if (!rec)
		return;
	munmap(rec, sizeof(*rec));
	close(fd);
}

void record_reset(struct record *rec, uint32_t round, unsigned int nlocks)
{
	memset(rec->truth, 0, sizeof(rec->truth));
	for (unsigned int l = 0; l < REC_LOCKS; l++)
		atomic_store(&rec->holder[l], 0);
	for (unsigned int k = 0; k < REC_TOKENS; k++)
		atomic_store(&rec->token[k], record_token_lies(k % nlocks));
	atomic_store(&rec->round, round);
}

/*
 * A claim is {epoch:32, kind:2, thread:30}; one from an earlier epoch counts
 * for nothing.
 */
enum {
	CLAIM_READER = 1,
	CLAIM_READERS = 2,
	CLAIM_WRITER = 3
};

static uint64_t claim_word(uint32_t epoch, unsigned int kind, uint32_t me)
{
	return (uint64_t)epoch << 32 | (uint64_t)kind << 30 | me;
}

/* What the word becomes if @me may go on, or 0. */
static uint64_t claim_after(uint64_t word, uint32_t epoch, uint32_t me,
			    bool write)
{
	uint32_t who = (uint32_t)word & 0x3fffffff;
	unsigned int kind = (unsigned int)(word >> 30) & 3;

	if (word >> 32 != epoch)
		return claim_word(epoch, write ? CLAIM_WRITER : CLAIM_READER,
				  me);
	if (kind == CLAIM_WRITER)
		return who == me ? word : 0;
	if (write)
		return kind == CLAIM_READER && who == me ?
			       claim_word(epoch, CLAIM_WRITER, me) :
			       0;
	if (kind == CLAIM_READERS || who == me)
		return word;
	return claim_word(epoch, CLAIM_READERS, 0);
}

bool record_claim(struct record *rec, uint32_t item, uint32_t epoch,
		  uint32_t me, bool write)
{
	_Atomic uint64_t *claim = &rec->truth[item].claim;
	uint64_t old = atomic_load_explicit(claim, memory_order_acquire);
	uint64_t new;

	do {
		new = claim_after(old, epoch, me, write);
		if (!new)
			return false;
		if (new == old)
			return true;
	} while (!atomic_compare_exchange_weak(claim, &old, new));
	return true;
}

uint64_t record_ops(struct record *rec)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < rec->ranks * rec->threads; i++)
		sum += atomic_load_explicit(&rec->thread[i].ops,
					    memory_order_relaxed);
	return sum;
}

void record_event(struct record_thread *thr, enum event_kind kind, uint32_t arg,
		  uint32_t count)
{
	struct record_event *e = &thr->event[thr->next_event % REC_EVENTS];
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	*e = (struct record_event){
		.ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec,
		.kind = kind,
		.arg = arg,
		.count = count,
	};
	thr->next_event++;
}
