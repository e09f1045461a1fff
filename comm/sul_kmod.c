/* SPDX-License-Identifier: MIT */
/*
 * sul_kmod.c - carrier by the kernel module: operations for /dev/sul.
 *
 * Role:      makes the module's operations of the port's; cuts what is longer
 *            than it takes.
 * Invariant: a cut never lies within an aligned word of the target.
 * Threads:   any; the carrier has none of its own: the kernel works for the
 *            others whatever this process does.
 * Locks:     `lock` around the batch; not held by who waits.  User memory is read
 *            and written under it, by the kernel and here: sources and
 *            destinations never fault for the program's sake.
 */
#include "sul_kmod.h"

#include <errno.h>
#include <string.h>

static struct sul_kmod *lock(struct sul_port *p)
{
	struct sul_kmod *k = sul_kmod_of(p);

	pthread_mutex_lock(&k->lock);
	return k;
}

static int unlock(struct sul_kmod *k, int err)
{
	pthread_mutex_unlock(&k->lock);
	return err;
}

static struct sul_op op_of(enum sul_op_kind kind, int rank, unsigned int w,
			   uint64_t off)
{
	return (struct sul_op){ .kind = (uint8_t)kind,
				.window = (uint16_t)w,
				.rank = (uint32_t)rank,
				.off = off };
}

/* How many of @left bytes at @off one operation of at most @most takes. */
static size_t piece(uint64_t off, size_t left, size_t most)
{
	return left <= most ? left : most - ((off + most) & 7);
}

/* --- get ---------------------------------------------------------------------------- */

struct marks {
	const struct sul_mark *mark;
	unsigned int nr;
};

static int get_piece(struct sul_kmod *k, struct sul_op *op, void *dst,
		     size_t len, struct marks m)
{
	size_t side = m.nr * sizeof(*m.mark);
	bool far = !k->near[op->rank];
	int err = sul_kmod_begin(k, (int)op->rank, side, far ? len : 0);

	if (err)
		return err;
	op->len = (uint32_t)len;
	if (far && len)
		op->land = sul_kmod_land(k, dst, len);
	else
		op->addr = (uintptr_t)dst;
	if (m.nr)
		op->marks.addr = sul_kmod_aside(k, m.mark, side);
	op->marks.nr = m.nr;
	sul_kmod_add(k, op, len);
	return 0;
}

static int kmod_get(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    void *dst, size_t len, const struct sul_mark *marks,
		    unsigned int nr_marks)
{
	struct marks m = { marks, nr_marks };
	struct sul_kmod *k = lock(p);
	size_t most = k->near[rank] ? SUL_ABI_OP_BYTES_MAX :
				      SUL_KMOD_LANDING_BYTES;
	size_t done = 0;
	int err = 0;

	while (!err && (done < len || m.nr)) {
		struct sul_op op = op_of(SUL_OP_GET, rank, w, off + done);
		size_t take = piece(off + done, len - done, most);

		err = get_piece(k, &op, (char *)dst + done, take, m);
		done += take;
		m.nr = 0; /* the first one has set them */
	}
	return unlock(k, err);
}

/* --- put ------------------------------------------------------------------------------ */

static int kmod_put(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, size_t len)
{
	struct sul_kmod *k = lock(p);
	size_t done = 0;
	int err = 0;

	while (!err && done < len) {
		struct sul_op op = op_of(SUL_OP_PUT, rank, w, off + done);
		const char *from = (const char *)src + done;

		op.len = (uint32_t)piece(off + done, len - done,
					 SUL_ABI_OP_BYTES_MAX);
		if (op.len <= SUL_ABI_INLINE_MAX) {
			op.flags = SUL_OP_INLINE;
			memcpy(op.data, from, op.len);
		} else {
			op.addr = (uintptr_t)from;
		}
		err = sul_kmod_begin(k, rank, 0, 0);
		if (!err)
			sul_kmod_add(k, &op, op.len);
		done += op.len;
	}
	return unlock(k, err);
}

/* --- scatter ---------------------------------------------------------------------------- */

/* How many of the runs one operation takes, 0 if the first is too long. */
static size_t whole_runs(const struct sul_run *runs, size_t nr, size_t *bytes)
{
	size_t n = 0;

	*bytes = 0;
	while (n < nr && n < SUL_ABI_OP_RUNS_MAX &&
	       runs[n].len <= SUL_ABI_OP_BYTES_MAX - *bytes)
		*bytes += runs[n++].len;
	return n;
}

static int putv_piece(struct sul_kmod *k, struct sul_op *op,
		      const struct sul_run *runs, size_t nr, size_t bytes)
{
	size_t side = nr * sizeof(*runs);
	int err = sul_kmod_begin(k, (int)op->rank, side, 0);

	if (err)
		return err;
	op->runs.addr = sul_kmod_aside(k, runs, side);
	op->runs.nr = (uint32_t)nr;
	sul_kmod_add(k, op, bytes);
	return 0;
}

/* A run that no operation has room for. */
static int putv_long(struct sul_kmod *k, struct sul_op *op, struct sul_run run)
{
	int err = 0;

	while (!err && run.len) {
		struct sul_run part = {
			run.off,
			(uint32_t)piece(op->off + run.off, run.len,
					SUL_ABI_OP_BYTES_MAX),
		};

		err = putv_piece(k, op, &part, 1, part.len);
		run.off += part.len;
		run.len -= part.len;
	}
	return err;
}

static int kmod_putv(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		     const void *src, const struct sul_run *runs,
		     size_t nr_runs, const struct sul_mirror *mirror)
{
	struct sul_op op = op_of(SUL_OP_PUTV, rank, w, off);
	struct sul_kmod *k = lock(p);
	int err = 0;

	op.addr = (uintptr_t)src;
	if (mirror) {
		op.flags = SUL_OP_MIRROR;
		op.runs.window = mirror->window;
		op.runs.flag_window = mirror->flag_window;
		op.runs.flag_off = mirror->flag_off;
	}
	for (size_t at = 0; !err && at < nr_runs;) {
		size_t bytes, nr = whole_runs(runs + at, nr_runs - at, &bytes);

		if (nr)
			err = putv_piece(k, &op, runs + at, nr, bytes);
		else
			err = putv_long(k, &op, runs[at]);
		at += nr ?: 1;
	}
	return unlock(k, err);
}

/* --- words -------------------------------------------------------------------------------- */

static int kmod_amo(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		    uint64_t *old)
{
	struct sul_op o = op_of(SUL_OP_AMO, rank, w, off);
	struct sul_kmod *k = lock(p);
	int err = sul_kmod_begin(k, rank, 0, old ? sizeof(*old) : 0);

	if (err)
		return unlock(k, err);
	o.amo.op = op;
	o.amo.operand = operand;
	o.amo.comparand = comparand;
	if (old) {
		o.flags = SUL_OP_OLD;
		o.land = sul_kmod_land(k, old, sizeof(*old));
	}
	sul_kmod_add(k, &o, sizeof(operand));
	return unlock(k, 0);
}

static int kmod_notify(struct sul_port *p, int rank, unsigned int w,
		       uint64_t off, uint32_t value)
{
	struct sul_op op = op_of(SUL_OP_NOTIFY, rank, w, off);
	struct sul_kmod *k = lock(p);
	int err = sul_kmod_begin(k, rank, 0, 0);

	op.notify.value = value;
	if (!err)
		sul_kmod_add(k, &op, sizeof(value));
	return unlock(k, err);
}

/* Who sends a message has no more to say: one call, and its bytes need not stay. */
static int kmod_message(struct sul_port *p, int rank,
			const struct sul_message *m)
{
	struct sul_op op = op_of(SUL_OP_MESSAGE, rank, m->window, m->off);
	struct sul_kmod *k = lock(p);
	int err = sul_kmod_begin(k, rank, 0, 0);

	if (err)
		return unlock(k, err);
	op.len = (uint32_t)m->len;
	for (int i = 0; i < 2; i++) {
		op.message.word[i] = (uint32_t)m->word[i];
		op.message.value[i] = m->value[i];
	}
	if (m->len <= SUL_ABI_MESSAGE_INLINE_MAX) {
		op.flags = SUL_OP_INLINE;
		memcpy(op.message.data, m->src, m->len);
	} else {
		op.addr = (uintptr_t)m->src;
	}
	sul_kmod_add(k, &op, m->len);
	sul_kmod_submit(k, false);
	return unlock(k, k->gone[rank] ? -EHOSTDOWN : 0);
}

/* --- the rest -------------------------------------------------------------------------------- */

static int kmod_flush(struct sul_port *p)
{
	struct sul_kmod *k = lock(p);
	int err;

	sul_kmod_submit(k, true);
	err = sul_kmod_await(k, UINT64_MAX);
	if (!err) {
		sul_kmod_settle(k);
		err = k->error;
	}
	return unlock(k, err);
}

static void kmod_push(struct sul_port *p)
{
	struct sul_kmod *k = sul_kmod_of(p);

	if (!__atomic_load_n(&k->gathered, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&k->lock);
	sul_kmod_submit(k, false);
	pthread_mutex_unlock(&k->lock);
}

static int kmod_window_file(const struct sul_port *p, int rank, unsigned int w,
			    int *fd, uint64_t *off)
{
	(void)p, (void)rank, (void)w, (void)fd, (void)off;
	return -ENOTSUP;
}

static int kmod_put_private(struct sul_port *p, int rank, uint64_t addr,
			    const void *src, size_t len)
{
	if (!sul_kmod_of(p)->near[rank])
		return -EPERM;
	return sul_shm_ops.put_private(p, rank, addr, src, len);
}

enum {
#define COUNTER(name, doc) COUNTER_##name,
#include "sul_counter.def"
	COUNTERS
};

static void kmod_stats(const struct sul_port *p, struct sul_stats *out)
{
	uint64_t c[COUNTERS] = { 0 };
	struct sul_count count = { .size = sizeof(count),
				   .nr = COUNTERS,
				   .values = (uintptr_t)c };

	if (sul_kmod_call(sul_kmod_of(p), SUL_IOC_COUNT, &count))
		return;
	out->packets_out = c[COUNTER_packets_out];
	out->packets_in = c[COUNTER_packets_in];
	out->wire_out = c[COUNTER_bytes_out];
	out->wire_in = c[COUNTER_bytes_in];
	out->resent = c[COUNTER_resent];
	out->acks = c[COUNTER_acks_out];
	out->refused = c[COUNTER_dropped_short] + c[COUNTER_dropped_session] +
		       c[COUNTER_dropped_mac] + c[COUNTER_dropped_replay] +
		       c[COUNTER_dropped_range] + c[COUNTER_dropped_room];
}

const struct sul_carrier_ops sul_kmod_ops = {
	.name = "kmod",
	.open = sul_kmod_open,
	.close = sul_kmod_close,
	.window_file = kmod_window_file,
	.get = kmod_get,
	.put = kmod_put,
	.putv = kmod_putv,
	.amo = kmod_amo,
	.notify = kmod_notify,
	.flush = kmod_flush,
	.wait = sul_kmod_wait,
	.put_private = kmod_put_private,
	.stats = kmod_stats,
	.message = kmod_message,
	.push = kmod_push,
	.poll = kmod_push,
	.wake_rank = sul_kmod_wake_rank,
	.farewell = sul_kmod_farewell,
	.has_left = sul_kmod_has_left,
	.stop = sul_kmod_stop,
};
