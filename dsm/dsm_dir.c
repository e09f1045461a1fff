/* SPDX-License-Identifier: MIT */
/*
 * dsm_dir.c - the directory: who shares the pages of a home.
 *
 * Role:      in the home's DIR window, a *leaf* of one bit per rank for each
 *            unit, and above it two summaries: a bit of *mid* for each unit
 *            that somebody got since the home's last look, a bit of *top* for
 *            each word of mid; and *taken*, how often the bit of mid was taken.
 * Invariant: a rank with a valid copy has its bit in the leaf; if the home has
 *            not looked at it since it was got, the bits above it are set, too.
 * Threads:   leaves and summaries are changed by any rank, atomically; scan and
 *            forget are the home's, under its rank mutex.
 *
 * Why no sharer is missed (race 1).  The getter sets leaf, mid, top, each with
 * a full fence, and then reads the page.  The home has written the page, then
 * clears top, clears mid, each with a full fence, and then reads the leaf.  If
 * the home does not find the bit, its clearing came before the getter's
 * setting, and the getter's reading of the page after the home's writing.  What
 * the getter sets after a clearing stands for the next release.
 *
 * Why a value in passing does no harm (race 9).  The home's program may change
 * a byte and change it back before its next release: comparing finds nothing,
 * but who got the page in between holds the value in passing.  Two ways to get
 * a page deal with that.
 *   Loud: mid and top are marked anew, and a home that can write to the page
 *   notices it at its next release, changed or not.  A get that is slower than
 *   a release could read before or after that as well: the getter compares
 *   *taken* from before its marks and from after its data, and gets the page
 *   again if its mark did not stand all the time.
 *   Quiet: a rank that is registered, and finds that the home watches the page,
 *   gets twin and frame and takes the page only if they are equal.  What is in
 *   the twin has been released, and whatever changes a twin is noticed (by the
 *   home that compares, or by the writer whose diff it is): a copy that equals
 *   the twin is right until a notice comes.  If they differ it gets loud.
 * A page that is guarded shows no value in passing; the last look for a mark
 * comes after it was protected.
 */
#include "dsm_diff.h"
#include "dsm_node.h"

static size_t align_page(size_t n)
{
	return (n + 4095) & ~(size_t)4095;
}

void dsm_dir_layout(struct dsm_layout *at, int ranks, uint32_t pages)
{
	uint64_t mid_words = (pages + 63) / 64;
	uint64_t top_words = (mid_words + 63) / 64;

	at->leaf_words = ((uint64_t)ranks + 63) / 64;
	at->top = 0;
	at->mid = align_page(at->top + 8 * top_words);
	at->flags = align_page(at->mid + 8 * mid_words);
	at->taken = align_page(at->flags + pages);
	at->leaf = align_page(at->taken + 4 * (uint64_t)pages);
	at->dir_bytes = align_page(at->leaf + 8 * at->leaf_words * pages);
}

static uint64_t leaf_off(const struct dsm_node *n, uint32_t unit, int rank)
{
	return n->at.leaf +
	       8 * (unit * n->at.leaf_words + (unsigned int)rank / 64);
}

static uint64_t *word_at(const struct dsm_node *n, uint64_t off)
{
	return (uint64_t *)(void *)(n->dir + off);
}

static void make_marks(const struct dsm_node *n, uint32_t unit,
		       struct sul_mark marks[SUL_MARKS_MAX])
{
	uint64_t mid = unit / 64;

	marks[0] = (struct sul_mark){ .window = DSM_W_DIR,
				      .off = leaf_off(n, unit, n->rank),
				      .bits = UINT64_C(1) << (n->rank % 64) };
	marks[1] = (struct sul_mark){ .window = DSM_W_DIR,
				      .off = n->at.mid + 8 * mid,
				      .bits = UINT64_C(1) << (unit % 64) };
	marks[2] = (struct sul_mark){ .window = DSM_W_DIR,
				      .off = n->at.top + 8 * (mid / 64),
				      .bits = UINT64_C(1) << (mid % 64) };
}

static void must_get(struct dsm_node *n, uint32_t unit, enum dsm_window w,
		     uint64_t off, void *dst, size_t len)
{
	dsm_must(n,
		 sul_get(n->port, dsm_home(n, unit), w, off, dst, len, NULL, 0),
		 "fetching a page");
}

static void get_loud(struct dsm_node *n, uint32_t unit, char *dst,
		     struct dsm_get *g)
{
	uint64_t taken = n->at.taken + 4 * (uint64_t)unit;
	struct sul_mark marks[SUL_MARKS_MAX];
	uint64_t off = dsm_unit_off(n, unit);
	size_t len = dsm_unit_bytes(n, unit);

	make_marks(n, unit, marks);
	if (DSM_BROKEN(bit_after)) {
		must_get(n, unit, DSM_W_FRAME, off, dst, len);
		dsm_flush_port(n);
		for (size_t i = 0; i < len; i += 16)
			DSM_POINT(n);
		len = 0;
	}
	must_get(n, unit, DSM_W_DIR, taken, &g->taken[0], 4);
	dsm_must(n,
		 sul_get(n->port, dsm_home(n, unit), DSM_W_FRAME, off, dst, len,
			 marks, SUL_MARKS_MAX),
		 "fetching a page");
	must_get(n, unit, DSM_W_DIR, taken, &g->taken[1], 4);
}

static void get_quiet(struct dsm_node *n, uint32_t unit, char *dst, char *twin,
		      struct dsm_get *g)
{
	uint64_t off = dsm_unit_off(n, unit);
	size_t len = dsm_unit_bytes(n, unit);

	must_get(n, unit, DSM_W_DIR, n->at.flags + unit, &g->flag[0], 1);
	must_get(n, unit, DSM_W_TWIN, off, twin, len);
	must_get(n, unit, DSM_W_FRAME, off, dst, len);
	must_get(n, unit, DSM_W_DIR, n->at.flags + unit, &g->flag[1], 1);
}

void dsm_dir_get(struct dsm_node *n, uint32_t unit, char *dst, char *twin,
		 struct dsm_get *g)
{
	g->quiet = twin && !g->tried && n->enrolled[unit];
	g->tried = true;
	if (g->quiet)
		get_quiet(n, unit, dst, twin, g);
	else
		get_loud(n, unit, dst, g);
}

bool dsm_dir_got(struct dsm_node *n, uint32_t unit, const char *dst,
		 const char *twin, struct dsm_get *g)
{
	if (g->done)
		return true;
	if (g->quiet)
		g->done = g->flag[0] == DSM_TWIN_VALID &&
			  g->flag[1] == DSM_TWIN_VALID &&
			  (DSM_BROKEN(quiet_any) ||
			   !dsm_diff_any(dst, twin, dsm_unit_bytes(n, unit)));
	else
		g->done = g->taken[0] == g->taken[1] || DSM_BROKEN(get_once);
	if (g->done)
		n->enrolled[unit] = 1;
	return g->done;
}

void dsm_dir_enrol(struct dsm_node *n, uint32_t unit)
{
	struct sul_mark marks[SUL_MARKS_MAX];

	make_marks(n, unit, marks);
	dsm_must(n,
		 sul_get(n->port, dsm_home(n, unit), DSM_W_FRAME,
			 dsm_unit_off(n, unit), n->scratch, 0, marks,
			 SUL_MARKS_MAX),
		 "joining a page's sharers");
	n->enrolled[unit] = 1;
}

void dsm_dir_deregister(struct dsm_node *n, uint32_t unit)
{
	int err = sul_amo(n->port, dsm_home(n, unit), DSM_W_DIR,
			  leaf_off(n, unit, n->rank), SUL_AMO_ANDNOT,
			  UINT64_C(1) << (n->rank % 64), 0, NULL);

	dsm_must(n, err, "leaving a page's sharers");
	n->enrolled[unit] = 0;
}

bool dsm_dir_shared(const struct dsm_node *n, uint32_t unit)
{
	for (uint64_t i = 0; i < n->at.leaf_words; i++)
		if (__atomic_load_n(word_at(n, leaf_off(n, unit, 0) + 8 * i),
				    __ATOMIC_ACQUIRE))
			return true;
	return false;
}

void dsm_dir_forget(struct dsm_node *n, uint32_t unit)
{
	for (uint64_t i = 0; i < n->at.leaf_words; i++)
		__atomic_store_n(word_at(n, leaf_off(n, unit, 0) + 8 * i), 0,
				 __ATOMIC_SEQ_CST);
}

uint8_t *dsm_dir_flag(const struct dsm_node *n, uint32_t unit)
{
	return (uint8_t *)n->dir + n->at.flags + unit;
}

struct sul_mirror dsm_dir_mirror(const struct dsm_node *n, uint32_t unit)
{
	return (struct sul_mirror){ .window = DSM_W_TWIN,
				    .flag_window = DSM_W_DIR,
				    .flag_off = n->at.flags + unit };
}

/* Its mark is taken now: count that before anything follows from it. */
static void count_taken(struct dsm_node *n, uint32_t unit)
{
	uint32_t *taken = (uint32_t *)(void *)(n->dir + n->at.taken);

	__atomic_fetch_add(&taken[unit], 1, __ATOMIC_SEQ_CST);
}

bool dsm_dir_take(struct dsm_node *n, uint32_t unit)
{
	uint64_t *mid = word_at(n, n->at.mid + 8 * (uint64_t)(unit / 64));
	uint64_t bit = UINT64_C(1) << (unit % 64);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(__atomic_load_n(mid, __ATOMIC_RELAXED) & bit))
		return false;
	__atomic_fetch_and(mid, ~bit, __ATOMIC_SEQ_CST);
	count_taken(n, unit);
	return true;
}

/* A getter may be ahead of us in a collective allocation: what it marked
 * stays until we know the page. */
static void put_back(struct dsm_node *n, uint64_t mid, uint64_t bits)
{
	__atomic_fetch_or(word_at(n, n->at.mid + 8 * mid), bits,
			  __ATOMIC_SEQ_CST);
	__atomic_fetch_or(word_at(n, n->at.top + 8 * (mid / 64)),
			  UINT64_C(1) << (mid % 64), __ATOMIC_SEQ_CST);
}

static void scan_mid(struct dsm_node *n, uint64_t mid,
		     void (*fn)(struct dsm_node *n, uint32_t unit))
{
	uint64_t bits = __atomic_exchange_n(word_at(n, n->at.mid + 8 * mid), 0,
					    __ATOMIC_SEQ_CST);
	uint64_t unknown = 0;

	for (; bits; bits &= bits - 1) {
		uint32_t unit =
			(uint32_t)(64 * mid) + (uint32_t)__builtin_ctzll(bits);

		DSM_POINT(n);
		if (dsm_home(n, unit) < 0) {
			unknown |= bits & -bits;
			continue;
		}
		count_taken(n, unit);
		if (dsm_home_here(n, unit) && dsm_dir_shared(n, unit))
			fn(n, unit);
	}
	if (unknown)
		put_back(n, mid, unknown);
}

static uint64_t top_words(const struct dsm_node *n)
{
	return ((uint64_t)n->page_end + 4095) / 4096;
}

bool dsm_dir_news(const struct dsm_node *n)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < top_words(n); i++)
		if (__atomic_load_n(word_at(n, n->at.top + 8 * i),
				    __ATOMIC_RELAXED))
			return true;
	return false;
}

void dsm_dir_scan(struct dsm_node *n,
		  void (*fn)(struct dsm_node *n, uint32_t unit))
{
	/* The writes before this release come before the look. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < top_words(n); i++) {
		uint64_t *top = word_at(n, n->at.top + 8 * i);
		uint64_t bits;

		if (!__atomic_load_n(top, __ATOMIC_RELAXED))
			continue;
		bits = __atomic_exchange_n(top, 0, __ATOMIC_SEQ_CST);
		for (; bits; bits &= bits - 1)
			scan_mid(n, 64 * i + (uint64_t)__builtin_ctzll(bits),
				 fn);
	}
}
