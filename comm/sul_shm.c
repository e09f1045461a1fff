/* SPDX-License-Identifier: MIT */
/*
 * sul_shm.c - carrier for ranks of one host: the requester does the work.
 *
 * Role:      all windows of all ranks are ranges of the job's one memfd, behind
 *            its control block.  A rank maps its own windows at once and its
 *            peers' when it first works on them; a one-sided operation is then
 *            a copy or an atomic instruction of its own.
 * Invariant: no system call on memory that is mapped and present ("hot"),
 *            except to wake somebody who said that he sleeps.
 * Threads:   any.  A peer's mapping is published once with a compare-and-swap.
 * Locks:     none.
 *
 * First touches.  Every first touch of a mapping costs a trap of its own, even
 * when the page exists.  So the first page of a peer's chunk (window_chunk) is
 * read with pread() the first time (many are read once); when one of the chunk
 * is got again, or worked on, all of them are made present by one madvise().
 * That is a populating *read*, which the kernel does for 16 neighbours in one
 * fault; as nothing watches for the first write to a page of memory, they are
 * writable afterwards, too.  What is got into an own window that has not been
 * touched either goes there through the file: one system call makes the page
 * and fills it, where making it present first would zero it, too.  Two bits a
 * page, per rank and window, remember all that.  They are hints: if the owner
 * gave the memory back meanwhile, the access faults it in (and who knows of it
 * says so, sul_window_forget(): such a fault costs more than a pread()).
 */
#include "sul_carrier.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum {
	PAGE_SHIFT = 12, /* granularity of the hints */
	PAGE_BYTES = 1 << PAGE_SHIFT
};

/* One window of one rank as mapped here. */
struct mapping {
	char *base; /* NULL until first use */
	uint64_t *warm; /* bit per page: own: was got into once; first page of
			   a peer's chunk: one of it was read */
	uint64_t *hot; /* bit per page: present in this mapping */
};

struct shm {
	int fd;
	uint64_t first; /* offset of rank 0's windows in the memfd */
	uint64_t stride; /* bytes of all windows of one rank */
	uint64_t window_at[SUL_WINDOWS_ALL]; /* offset in a rank's range */
	size_t ahead; /* pages of a chunk, in shm_prepare() */
	bool limited; /* no page may be written through the file */
	struct mapping map[]; /* [rank * SUL_WINDOWS_ALL + window] */
};

static struct shm *shm_of(const struct sul_port *p)
{
	return p->carrier;
}

static uint64_t file_offset(const struct sul_port *p, int rank, unsigned int w)
{
	const struct shm *s = shm_of(p);

	return s->first + (uint64_t)rank * s->stride + s->window_at[w];
}

static size_t page_align(size_t n)
{
	return (n + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

/* --- mappings --------------------------------------------------------------- */

static int map_window(const struct sul_port *p, int rank, unsigned int w,
		      void *hint, char **out)
{
	int flags = MAP_SHARED | MAP_NORESERVE;
	size_t bytes = page_align(p->window_bytes[w]);
	char *base;

	if (hint)
		flags |= MAP_FIXED_NOREPLACE;
	base = mmap(hint, bytes, PROT_READ | PROT_WRITE, flags, shm_of(p)->fd,
		    (off_t)file_offset(p, rank, w));
	if (base == MAP_FAILED)
		return -errno;
	if (hint && base != hint) { /* a kernel that ignores NOREPLACE */
		munmap(base, bytes);
		return -EEXIST;
	}
	madvise(base, bytes, MADV_DONTFORK);
	madvise(base, bytes, MADV_DONTDUMP);
	*out = base;
	return 0;
}

static size_t hint_bytes(const struct sul_port *p, unsigned int w)
{
	size_t pages = page_align(p->window_bytes[w]) >> PAGE_SHIFT;

	return page_align((pages + 63) / 64 * 8);
}

static int map_hints(const struct sul_port *p, unsigned int w, uint64_t **out)
{
	void *m = mmap(NULL, 2 * hint_bytes(p, w), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return -errno;
	*out = m;
	return 0;
}

static void unmap(const struct sul_port *p, unsigned int w, char *base,
		  uint64_t *hints)
{
	if (base)
		munmap(base, page_align(p->window_bytes[w]));
	if (hints)
		munmap(hints, 2 * hint_bytes(p, w));
}

/* The hints are set before the base is published: who sees the base has them.
 * Two threads may map at once; the loser takes his mapping away. */
static int map_peer(struct sul_port *p, int rank, unsigned int w,
		    struct mapping *m)
{
	uint64_t *hints = NULL, *no_hints = NULL;
	char *base = NULL, *unmapped = NULL;
	int err;

	err = map_hints(p, w, &hints);
	if (err)
		return err;
	if (!__atomic_compare_exchange_n(&m->warm, &no_hints, hints, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		unmap(p, w, NULL, hints);
	err = map_window(p, rank, w, NULL, &base);
	if (err)
		return err;
	__atomic_store_n(&m->hot,
			 __atomic_load_n(&m->warm, __ATOMIC_ACQUIRE) +
				 hint_bytes(p, w) / sizeof(uint64_t),
			 __ATOMIC_RELEASE);
	if (!__atomic_compare_exchange_n(&m->base, &unmapped, base, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		unmap(p, w, base, NULL);
	return 0;
}

static int mapping_of(struct sul_port *p, int rank, unsigned int w,
		      struct mapping **out)
{
	struct mapping *m =
		&shm_of(p)->map[(unsigned int)rank * SUL_WINDOWS_ALL + w];

	if (!__atomic_load_n(&m->base, __ATOMIC_ACQUIRE)) {
		int err = map_peer(p, rank, w, m);

		if (err)
			return err;
	}
	*out = m;
	return 0;
}

static bool bit(const uint64_t *bits, size_t i)
{
	return __atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1;
}

static void set_bit(uint64_t *bits, size_t i)
{
	__atomic_fetch_or(&bits[i / 64], UINT64_C(1) << (i % 64),
			  __ATOMIC_RELAXED);
}

static void clear_bit(uint64_t *bits, size_t i)
{
	__atomic_fetch_and(&bits[i / 64], ~(UINT64_C(1) << (i % 64)),
			   __ATOMIC_RELAXED);
}

static size_t window_pages(const struct sul_port *p, unsigned int w)
{
	return page_align(p->window_bytes[w]) >> PAGE_SHIFT;
}

/* Make pages [first, end) present in the mapping. */
static int populate(struct mapping *m, size_t first, size_t end, int advice)
{
	if (madvise(m->base + (first << PAGE_SHIFT),
		    (end - first) << PAGE_SHIFT, advice) &&
	    errno != EINVAL) /* EINVAL: before Linux 5.14; it faults instead */
		return errno == EFAULT ? -ENOMEM : -errno;
	for (size_t i = first; i < end; i++)
		set_bit(m->hot, i);
	return 0;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t chunk_of(const struct sul_port *p, unsigned int w, size_t page)
{
	return page & ~(size_t)(p->window_chunk[w] - 1);
}

/* Make the chunk around @page of a peer's window present. */
static int heat(struct sul_port *p, struct mapping *m, unsigned int w,
		size_t page)
{
	size_t first = chunk_of(p, w, page);

	return populate(m, first,
			least(first + p->window_chunk[w], window_pages(p, w)),
			MADV_POPULATE_READ);
}

/* True for the first look from here at the chunk around @page. */
static bool is_cold(const struct sul_port *p, const struct mapping *m,
		    unsigned int w, size_t page)
{
	size_t chunk = chunk_of(p, w, page);

	if (bit(m->hot, page) || bit(m->warm, chunk))
		return false;
	set_bit(m->warm, chunk);
	return true;
}

static struct mapping *own_mapping(const struct sul_port *p, unsigned int w)
{
	return &shm_of(p)->map[(unsigned int)p->rank * SUL_WINDOWS_ALL + w];
}

static int shm_prepare(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	struct mapping *own = own_mapping(p, w);
	size_t page = off >> PAGE_SHIFT;
	size_t end = (off + len + PAGE_BYTES - 1) >> PAGE_SHIFT;
	size_t chunk_end;

	while (page < end && bit(own->hot, page))
		page++;
	if (page >= end)
		return 0;
	chunk_end =
		least((page | (shm_of(p)->ahead - 1)) + 1, window_pages(p, w));
	if (page && bit(own->hot, page - 1) && end < chunk_end)
		end = chunk_end;
	return populate(own, page, end, MADV_POPULATE_WRITE);
}

/* Where [off, off+len) of a window can be worked on with a CPU. */
static int reach(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		 size_t len, char **out)
{
	struct mapping *m;
	int err;

	if (rank == p->rank) {
		*out = (char *)p->window[w] + off;
		return 0;
	}
	err = mapping_of(p, rank, w, &m);
	if (err)
		return err;
	for (size_t page = off >> PAGE_SHIFT;
	     len && page <= (off + len - 1) >> PAGE_SHIFT; page++) {
		if (bit(m->hot, page))
			continue;
		err = heat(p, m, w, page);
		if (err)
			return err;
	}
	*out = m->base + off;
	return 0;
}

/* --- carrier ------------------------------------------------------------------ */

static int shm_close_windows(struct sul_port *p, int err)
{
	struct shm *s = shm_of(p);

	for (int r = 0; r < p->ranks; r++)
		for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
			struct mapping *m =
				&s->map[(unsigned int)r * SUL_WINDOWS_ALL + w];

			unmap(p, w, m->base, m->warm);
		}
	free(s);
	return err;
}

/* Every rank sets the same size; nobody cuts what another has used. */
static int set_size(int fd, uint64_t bytes)
{
	struct rlimit most;

	/* Beyond this limit ftruncate() would end us with SIGXFSZ. */
	if (bytes > INT64_MAX ||
	    (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur < bytes))
		return -EFBIG;
	return ftruncate(fd, (off_t)bytes) ? -errno : 0;
}

static int shm_open_port(struct sul_port *p, const struct sul_config *cfg)
{
	struct shm *s;
	uint64_t at = 0;
	int err;

	if (!cfg->job || cfg->ranks > sul_job_ranks(cfg->job))
		return -EINVAL;
	s = calloc(1, sizeof(*s) + (size_t)cfg->ranks * SUL_WINDOWS_ALL *
					   sizeof(struct mapping));
	if (!s)
		return -ENOMEM;
	p->carrier = s;
	s->fd = sul_job_fd(cfg->job);
	s->first = sul_job_bytes(cfg->job);
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		s->window_at[w] = at;
		at += page_align(p->window_bytes[w]);
	}
	s->stride = at;

	err = set_size(s->fd, s->first + (uint64_t)cfg->ranks * s->stride);
	if (err)
		return shm_close_windows(p, err);
	for (unsigned int w = 0; w < SUL_WINDOWS_ALL; w++) {
		uint64_t *hints;
		char *base;

		if (!p->window_bytes[w])
			continue;
		err = map_window(p, p->rank, w,
				 w < SUL_WINDOWS_MAX ? cfg->window[w].hint :
						       NULL,
				 &base);
		if (err)
			return shm_close_windows(p, err);
		p->window[w] = base;
		own_mapping(p, w)->base = base;
		err = map_hints(p, w, &hints);
		if (err)
			return shm_close_windows(p, err);
		own_mapping(p, w)->warm = hints;
		own_mapping(p, w)->hot =
			hints + hint_bytes(p, w) / sizeof(uint64_t);
		if (s->ahead < p->window_chunk[w])
			s->ahead = p->window_chunk[w];
	}
	return 0;
}

static void shm_close(struct sul_port *p)
{
	shm_close_windows(p, 0);
}

static void shm_forget(struct sul_port *p, int rank, unsigned int w,
		       uint64_t off, size_t len)
{
	struct mapping *m =
		&shm_of(p)->map[(unsigned int)rank * SUL_WINDOWS_ALL + w];

	if (!__atomic_load_n(&m->base, __ATOMIC_ACQUIRE))
		return;
	for (size_t i = off >> PAGE_SHIFT; i < (off + len) >> PAGE_SHIFT; i++) {
		clear_bit(m->hot, i);
		clear_bit(m->warm, i);
	}
}

static int shm_discard(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len)
{
	if (madvise((char *)p->window[w] + off, len, MADV_REMOVE))
		return -errno;
	shm_forget(p, p->rank, w, off, len);
	return 0;
}

static int shm_window_file(const struct sul_port *p, int rank, unsigned int w,
			   int *fd, uint64_t *off)
{
	*fd = shm_of(p)->fd;
	*off = file_offset(p, rank, w);
	return 0;
}

static int shm_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		   uint64_t *old)
{
	uint64_t was;
	char *word;
	int err;

	err = reach(p, rank, w, off, 8, &word);
	if (err)
		return err;
	was = sul_memory_amo((uint64_t *)(void *)word, op, operand, comparand);
	if (old)
		*old = was;
	return 0;
}

static int set_marks(struct sul_port *p, int rank, const struct sul_mark *marks,
		     unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		char *at;
		int err = reach(p, rank, marks[i].window, marks[i].off, 8, &at);

		if (err)
			return err;
		sul_memory_mark((uint64_t *)(void *)at, marks[i].bits);
	}
	sul_memory_fence();
	return 0;
}

/* Read or write all of it in the file, not in a mapping. */
static int in_file(const struct sul_port *p, bool write, uint64_t at, char *buf,
		   size_t len)
{
	int fd = shm_of(p)->fd;

	while (len) {
		ssize_t n = write ? pwrite(fd, buf, len, (off_t)at) :
				    pread(fd, buf, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += (uint64_t)n;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* What nobody has looked at from here is read so. */
static int read_cold(const struct sul_port *p, int rank, unsigned int w,
		     uint64_t off, void *dst, size_t len)
{
	return in_file(p, false, file_offset(p, rank, w) + off, dst, len);
}

/*
 * Into which own window does a get of a whole page to @at go through the file?
 * The first one into a page does; the second makes the page present.  -1: none.
 */
static int window_by_file(const struct sul_port *p, const char *at)
{
	if (__atomic_load_n(&shm_of(p)->limited, __ATOMIC_RELAXED))
		return -1;
	for (unsigned int w = 0; w < p->windows; w++) {
		struct mapping *own = own_mapping(p, w);
		size_t page = (size_t)(at - own->base) >> PAGE_SHIFT;

		if (at < own->base || page >= window_pages(p, w))
			continue;
		if ((uintptr_t)at & (PAGE_BYTES - 1) || bit(own->hot, page))
			return -1;
		if (!bit(own->warm, page)) {
			set_bit(own->warm, page);
			return (int)w;
		}
		/* a hint: it may fail */
		populate(own, page, page + 1, MADV_POPULATE_WRITE);
		return -1;
	}
	return -1;
}

/*
 * The program has set a file-size limit since the windows were made: a write
 * through the file fails, and SIGXFSZ would end the process when the caller
 * unblocks it.  From now on pages are stored to.
 */
static void writes_are_limited(struct sul_port *p)
{
	const struct timespec now = { 0, 0 };
	sigset_t xfsz;

	__atomic_store_n(&shm_of(p)->limited, true, __ATOMIC_RELAXED);
	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	sigtimedwait(&xfsz, NULL, &now);
}

/* A whole page of @rank's window, present here or not; @cold: read it so. */
static int get_page(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    char *dst, bool cold)
{
	int into = window_by_file(p, dst);
	char copy[PAGE_BYTES], *src = copy;
	int err;

	if (cold)
		err = read_cold(p, rank, w, off, into < 0 ? dst : copy,
				PAGE_BYTES);
	else
		err = reach(p, rank, w, off, PAGE_BYTES, &src);
	if (err)
		return err;
	if (into >= 0) {
		err = in_file(p, true,
			      file_offset(p, p->rank, (unsigned int)into) +
				      (uint64_t)(dst - (char *)p->window[into]),
			      src, PAGE_BYTES);
		if (err != -EFBIG)
			return err;
		writes_are_limited(p);
	}
	if (!cold || into >= 0)
		memcpy(dst, src, PAGE_BYTES);
	return 0;
}

static int get_within_page(struct sul_port *p, int rank, unsigned int w,
			   uint64_t off, void *dst, size_t len)
{
	size_t page = off >> PAGE_SHIFT;
	struct mapping *m;
	bool cold;
	char *src;
	int err;

	if (rank != p->rank && len >= PAGE_BYTES / 4) {
		err = mapping_of(p, rank, w, &m);
		if (err)
			return err;
		cold = is_cold(p, m, w, page);
		if (len == PAGE_BYTES)
			return get_page(p, rank, w, off, dst, cold);
		if (cold)
			return read_cold(p, rank, w, off, dst, len);
	}
	err = reach(p, rank, w, off, len, &src);
	if (err)
		return err;
	sul_memory_copy_out(dst, src, len);
	return 0;
}

static int shm_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   void *dst, size_t len, const struct sul_mark *marks,
		   unsigned int nr_marks)
{
	int err = 0;

	/* Gets take effect in their order: this one's loads come later. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (nr_marks)
		err = set_marks(p, rank, marks, nr_marks);
	while (len && !err) {
		size_t n = PAGE_BYTES - (off & (PAGE_BYTES - 1));

		if (n > len)
			n = len;
		err = get_within_page(p, rank, w, off, dst, n);
		off += n;
		len -= n;
		dst = (char *)dst + n;
	}
	return err;
}

static int shm_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   const void *src, size_t len)
{
	char *dst;
	int err = reach(p, rank, w, off, len, &dst);

	if (err)
		return err;
	sul_memory_copy_in(dst, src, len);
	return 0;
}

static uint64_t runs_end(const struct sul_run *runs, size_t nr)
{
	return runs[nr - 1].off + (uint64_t)runs[nr - 1].len;
}

static int shm_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, const struct sul_run *runs, size_t nr_runs,
		    const struct sul_mirror *mirror)
{
	char *dst, *flag;
	int err;

	err = reach(p, rank, w, off, runs_end(runs, nr_runs), &dst);
	if (err)
		return err;
	sul_memory_runs(dst, src, runs, nr_runs);
	if (!mirror)
		return 0;
	err = reach(p, rank, mirror->flag_window, mirror->flag_off, 1, &flag);
	if (err)
		return err;
	if (!sul_memory_flag(flag))
		return 0;
	err = reach(p, rank, mirror->window, off, runs_end(runs, nr_runs),
		    &dst);
	if (err)
		return err;
	sul_memory_runs(dst, src, runs, nr_runs);
	return 0;
}

static int shm_notify(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value)
{
	char *word;
	int err = reach(p, rank, w, off, sizeof(struct sul_word), &word);

	if (err)
		return err;
	if (sul_sleep_notify((struct sul_word *)(void *)word, value) &&
	    p->far_ops && p->far_ops->wake_rank)
		p->far_ops->wake_rank(p, rank);
	return 0;
}

static int shm_flush(struct sul_port *p)
{
	(void)p; /* every operation was complete when its call returned */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

static int shm_wait(struct sul_port *p, const struct sul_watch *watch,
		    unsigned int nr, int timeout_ms)
{
	return sul_sleep_wait(watch, nr, sul_job_abort_word(p->job), &p->spin,
			      timeout_ms);
}

static int shm_put_private(struct sul_port *p, int rank, uint64_t addr,
			   const void *src, size_t len)
{
	uint32_t pid = atomic_load(&sul_job_rank(p->job, rank)->pid);

	return sul_sleep_write_process((int)pid, addr, src, len);
}

const struct sul_carrier_ops sul_shm_ops = {
	.name = "shm",
	.open = shm_open_port,
	.close = shm_close,
	.prepare = shm_prepare,
	.discard = shm_discard,
	.forget = shm_forget,
	.window_file = shm_window_file,
	.get = shm_get,
	.put = shm_put,
	.putv = shm_putv,
	.amo = shm_amo,
	.notify = shm_notify,
	.flush = shm_flush,
	.wait = shm_wait,
	.put_private = shm_put_private,
};
