/* SPDX-License-Identifier: MIT */
/* abi_submit.c - SUBMIT: what operations do, and which make no sense. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

static struct sul_op put_op(const void *from, uint32_t len, uint64_t off)
{
	struct sul_op op = abi_op(SUL_OP_PUT, 1, off);

	op.addr = (uintptr_t)from;
	op.len = len;
	return op;
}

static struct sul_op get_op(void *to, uint32_t len, uint64_t off)
{
	struct sul_op op = abi_op(SUL_OP_GET, 1, off);

	op.addr = (uintptr_t)to;
	op.len = len;
	return op;
}

static struct sul_op amo_op(enum sul_amo_op what, uint64_t operand,
			    uint64_t off)
{
	struct sul_op op = abi_op(SUL_OP_AMO, 1, off);

	op.amo.op = what;
	op.amo.operand = operand;
	return op;
}

static struct sul_op putv_op(const void *from, const struct sul_run *runs,
			     uint32_t nr, uint64_t off)
{
	struct sul_op op = abi_op(SUL_OP_PUTV, 1, off);

	op.addr = (uintptr_t)from;
	op.runs.addr = (uintptr_t)runs;
	op.runs.nr = nr;
	return op;
}

/* --- what they do ------------------------------------------------------------------- */

static void fill(char *at, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (char)(seed + i * 7 + (i >> 8));
}

void abi_puts_and_gets_move_bytes(void)
{
	static char from[ABI_WINDOW_BYTES], to[ABI_WINDOW_BYTES];
	struct abi_port p[2];

	abi_pair(p);
	fill(from, sizeof(from), 1);
	IS(0, abi_submit_one(&p[0], put_op(from, sizeof(from), 0)));
	CHECK(!memcmp(from, p[1].window, sizeof(from)), "put of all");
	IS(0, abi_submit_one(&p[0], get_op(to, sizeof(to), 0)));
	CHECK(!memcmp(from, to, sizeof(from)), "get of all");
	/* over a page's end, unaligned */
	IS(0, abi_submit_one(&p[0], put_op(from + 1, 5001, ABI_PAGE - 13)));
	CHECK(!memcmp(from + 1, p[1].window + ABI_PAGE - 13, 5001), "put");
	CHECK(!memcmp(from, p[1].window, ABI_PAGE - 13), "bytes before it");
	IS(0, abi_submit_one(&p[0], get_op(to + 3, 777, 3 * ABI_PAGE - 9)));
	CHECK(!memcmp(p[1].window + 3 * ABI_PAGE - 9, to + 3, 777), "get");
}

void abi_data_may_be_in_the_operation(void)
{
	struct abi_port p[2];
	struct sul_op op = abi_op(SUL_OP_PUT, 1, 40);

	abi_pair(p);
	op.flags = SUL_OP_INLINE;
	op.len = SUL_ABI_INLINE_MAX;
	fill((char *)op.data, sizeof(op.data), 9);
	IS(0, abi_submit_one(&p[0], op));
	CHECK(!memcmp(op.data, p[1].window + 40, sizeof(op.data)), "data");
}

static uint64_t word(const struct abi_port *p, uint64_t off)
{
	uint64_t v;

	memcpy(&v, p->window + off, sizeof(v));
	return v;
}

void abi_atomic_operations_return_the_old_value(void)
{
	struct abi_port p[2];
	struct sul_op op = amo_op(SUL_AMO_ADD, 5, 64);

	abi_pair(p);
	op.flags = SUL_OP_OLD;
	op.land = 16;
	IS(0, abi_submit_one(&p[0], op));
	IS(0, abi_submit_one(&p[0], op));
	IS(10, (long)word(&p[1], 64));
	IS(5, *(const long *)(const void *)(p[0].landing + 16));
	IS(0, abi_submit_one(&p[0], amo_op(SUL_AMO_OR, 5, 64)));
	IS(15, (long)word(&p[1], 64));
	IS(0, abi_submit_one(&p[0], amo_op(SUL_AMO_ANDNOT, 3, 64)));
	IS(12, (long)word(&p[1], 64));
	IS(0, abi_submit_one(&p[0], amo_op(SUL_AMO_SWAP, 77, 64)));
	IS(77, (long)word(&p[1], 64));
	op = amo_op(SUL_AMO_CAS, 1, 64);
	op.amo.comparand = 76;
	IS(0, abi_submit_one(&p[0], op));
	IS(77, (long)word(&p[1], 64));
	op.amo.comparand = 77;
	IS(0, abi_submit_one(&p[0], op));
	IS(1, (long)word(&p[1], 64));
}

void abi_a_scatter_reaches_both_places(void)
{
	static const struct sul_run runs[] = { { 0, 8 },
					       { 100, 3 },
					       { 4090, 20 } };
	struct abi_port p[2];
	struct sul_op op;
	char from[8192];

	abi_pair(p);
	fill(from, sizeof(from), 3);
	op = putv_op(from, runs, 3, 2 * ABI_PAGE);
	IS(0, abi_submit_one(&p[0], op));
	for (int i = 0; i < 3; i++)
		CHECK(!memcmp(from + runs[i].off,
			      p[1].window + 2 * ABI_PAGE + runs[i].off,
			      runs[i].len),
		      "run %d", i);
	IS(0, p[1].window[2 * ABI_PAGE + 103], "behind a run");
	/* the mirror is the same window here: the same bytes once more */
	op.flags = SUL_OP_MIRROR;
	op.runs.flag_off = 5;
	p[1].window[5] = 1;
	IS(0, abi_submit_one(&p[0], op));
}

static struct sul_op message_op(const void *from, uint32_t len, uint64_t off)
{
	struct sul_op op = put_op(from, len, off);

	op.kind = SUL_OP_MESSAGE;
	op.message.word[0] = 64;
	op.message.word[1] = 2 * ABI_PAGE - 8;
	op.message.value[0] = 11;
	op.message.value[1] = 22;
	return op;
}

static bool has_come(const struct abi_port *p, const void *from, uint32_t len,
		     uint64_t off)
{
	bool come = !memcmp(from, p->window + off, len) && word(p, 64) == 11 &&
		    word(p, 2 * ABI_PAGE - 8) == 22;

	memset(p->window, 0, ABI_WINDOW_BYTES);
	return come;
}

void abi_a_message_is_bytes_and_two_words(void)
{
	char from[SUL_ABI_MESSAGE_MAX];
	struct abi_port p[2];
	struct sul_op op;

	abi_pair(p);
	fill(from, sizeof(from), 5);
	for (uint32_t len = 0; len <= sizeof(from); len += 32) {
		IS(0, abi_submit_one(&p[0], message_op(from, len, 128)));
		CHECK(has_come(&p[1], from, len, 128), "%u bytes", len);
	}
	/* over a page's end */
	op = message_op(from, sizeof(from), 3 * ABI_PAGE - 100);
	IS(0, abi_submit_one(&p[0], op));
	CHECK(has_come(&p[1], from, sizeof(from), 3 * ABI_PAGE - 100),
	      "in two pages");
	op = message_op(NULL, SUL_ABI_MESSAGE_INLINE_MAX, 256);
	op.flags = SUL_OP_INLINE;
	memcpy(op.message.data, from, sizeof(op.message.data));
	IS(0, abi_submit_one(&p[0], op));
	CHECK(has_come(&p[1], from, SUL_ABI_MESSAGE_INLINE_MAX, 256),
	      "in the operation");
}

void abi_marks_are_set_before_the_data_is_read(void)
{
	struct sul_mark marks[2] = { { .off = 8, .bits = 6 },
				     { .off = 16, .bits = 1 } };
	struct abi_port p[2];
	struct sul_op op;
	uint64_t got[3] = { 0 };

	abi_pair(p);
	op = get_op(got, sizeof(got), 0);
	op.marks.addr = (uintptr_t)marks;
	op.marks.nr = 2;
	IS(0, abi_submit_one(&p[0], op));
	IS(6, (long)got[1]);
	IS(1, (long)got[2]);
}

void abi_a_batch_is_executed_in_order(void)
{
	struct sul_op ops[SUL_ABI_SUBMIT_MAX];
	struct abi_port p[2];
	uint32_t done;

	abi_pair(p);
	for (uint32_t i = 0; i < SUL_ABI_SUBMIT_MAX; i++) {
		ops[i] = i & 1 ? amo_op(SUL_AMO_ADD, 1, 0) :
				 amo_op(SUL_AMO_SWAP, i * 10, 0);
		ops[i].flags = SUL_OP_OLD;
		ops[i].land = i * 8;
	}
	IS(0, abi_submit(&p[0], ops, SUL_ABI_SUBMIT_MAX, &done));
	IS(SUL_ABI_SUBMIT_MAX, done);
	for (uint32_t i = 1; i < SUL_ABI_SUBMIT_MAX; i++)
		IS(i & 1 ? (i - 1) * 10 : (i - 2) * 10 + 1,
		   ((const long *)(const void *)p[0].landing)[i]);
}

void abi_a_batch_ends_at_what_makes_no_sense(void)
{
	struct sul_op ops[3] = { amo_op(SUL_AMO_ADD, 1, 0),
				 amo_op(SUL_AMO_NR, 1, 0),
				 amo_op(SUL_AMO_ADD, 1, 0) };
	struct abi_port p[2];
	uint32_t done;

	abi_pair(p);
	IS(-EINVAL, abi_submit(&p[0], ops, 3, &done));
	IS(1, done);
	IS(1, (long)word(&p[1], 0));
}

void abi_tickets_are_reached(void)
{
	struct abi_port p[2];
	struct sul_op op = amo_op(SUL_AMO_ADD, 1, 0);
	uint64_t last = 0;

	abi_pair(p);
	for (int i = 0; i < 5; i++) {
		struct sul_submit s = { .size = sizeof(s),
					.ops = (uintptr_t)&op,
					.nr = 1 };

		IS(0, abi_call(p[0].fd, SUL_IOC_SUBMIT, &s));
		CHECK(s.ticket > last, "ticket %llu after %llu",
		      (unsigned long long)s.ticket, (unsigned long long)last);
		CHECK(p[0].status->executed >= s.ticket, "near: at once");
		last = s.ticket;
	}
}

/* --- refusals ----------------------------------------------------------------------- */

#define OP_WITH(result, of, field, value)              \
	do {                                           \
		struct sul_op op_ = (of);              \
		op_.field = (value);                   \
		IS(result, abi_submit_one(&p[0], op_), \
		   #of " " #field " " #value);         \
	} while (0)

/* SUBMIT of @nr operations at @ops; how many were done is left in @done. */
static int submit_with(const struct abi_port *p, uint32_t flags, uint64_t ops,
		       uint32_t nr, uint32_t *done)
{
	struct sul_submit s = {
		.size = sizeof(s), .flags = flags, .ops = ops, .nr = nr
	};
	int err = abi_call(p->fd, SUL_IOC_SUBMIT, &s);

	*done = s.done;
	return err;
}

void abi_submit_checks_its_own_arguments(void)
{
	char *pages = abi_memory(2 * ABI_PAGE);
	struct sul_op *last = (struct sul_op *)(void *)(pages + ABI_PAGE) - 1;
	struct abi_port p[2];
	uint32_t done;

	abi_pair(p);
	IS(0, submit_with(p, 0, 0, 0, &done), "nothing");
	IS(0, submit_with(p, SUL_SUBMIT_HURRY, 0, 0, &done), "hurry");
	for (unsigned int bit = 1; bit < 32; bit++)
		IS(-EINVAL, submit_with(p, 1u << bit, 0, 0, &done));
	IS(-EINVAL,
	   submit_with(p, 0, (uintptr_t)pages, SUL_ABI_SUBMIT_MAX + 1, &done));
	IS(-EINVAL, submit_with(p, 0, (uintptr_t)pages, UINT32_MAX, &done));
	IS(-EFAULT, submit_with(p, 0, 0, 1, &done), "no operations");
	IS(-EFAULT, submit_with(p, 0, UINT64_MAX - 8, 1, &done), "kernel's");
	/* the second operation is not there: the first may be executed */
	munmap(pages + ABI_PAGE, ABI_PAGE);
	*last = amo_op(SUL_AMO_ADD, 1, 0);
	IS(-EFAULT, submit_with(p, 0, (uintptr_t)last, 2, &done), "cut off");
	CHECK(done <= 1 && word(&p[1], 0) == done, "done is %u", done);
}

void abi_what_submit_fills_in_is_0(void)
{
	struct sul_submit s = { .size = sizeof(s), .done = 1 };
	struct abi_port p = abi_started(0, 2);

	IS(-EINVAL, abi_call(p.fd, SUL_IOC_SUBMIT, &s));
	s.done = 0;
	s.ticket = 1;
	IS(-EINVAL, abi_call(p.fd, SUL_IOC_SUBMIT, &s));
}

void abi_operations_have_a_target(void)
{
	struct abi_port p[2];
	char data[64];

	abi_pair(p);
	OP_WITH(-EINVAL, put_op(data, 8, 0), rank, 0); /* itself */
	OP_WITH(-EINVAL, put_op(data, 8, 0), rank, 2);
	OP_WITH(-EINVAL, put_op(data, 8, 0), rank, UINT32_MAX);
	OP_WITH(-EINVAL, put_op(data, 8, 0), kind, SUL_OP_NR);
	OP_WITH(-EINVAL, put_op(data, 8, 0), kind, 255);
	IS(-EINVAL, abi_submit_one(&p[1], abi_op(SUL_OP_PUT, 0, 0)),
	   "before PEER");
}

void abi_operations_stay_inside_their_window(void)
{
	const uint64_t end = ABI_WINDOW_BYTES;
	static const struct sul_run run = { 0, 8 };
	static char data[2 * ABI_WINDOW_BYTES];
	struct abi_port p[2];

	abi_pair(p);
	IS(0, abi_submit_one(&p[0], put_op(data, 8, end - 8)));
	IS(-EINVAL, abi_submit_one(&p[0], put_op(data, 9, end - 8)));
	IS(-EINVAL, abi_submit_one(&p[0], put_op(data, 8, end)));
	IS(-EINVAL, abi_submit_one(&p[0], put_op(data, 8, UINT64_MAX - 7)));
	IS(-EINVAL, abi_submit_one(&p[0], put_op(data, 8, UINT64_MAX - 3)));
	IS(-EINVAL, abi_submit_one(&p[0], put_op(data, (uint32_t)end + 1, 0)));
	IS(-EINVAL, abi_submit_one(&p[0], get_op(data, 9, end - 8)));
	IS(-EINVAL, abi_submit_one(&p[0], get_op(data, 8, UINT64_MAX - 7)));
	IS(-EINVAL, abi_submit_one(&p[0], amo_op(SUL_AMO_ADD, 1, end)));
	IS(-EINVAL,
	   abi_submit_one(&p[0], amo_op(SUL_AMO_ADD, 1, 0 - UINT64_C(8))));
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, &run, 1, end - 7)));
	IS(-EINVAL,
	   abi_submit_one(&p[0], putv_op(data, &run, 1, 0 - UINT64_C(8))));
	IS(-EINVAL, abi_submit_one(&p[0], abi_op(SUL_OP_NOTIFY, 1, end)));
	OP_WITH(-EINVAL, put_op(data, 8, 0), window, 1); /* there is none */
	OP_WITH(-EINVAL, put_op(data, 8, 0), window, SUL_ABI_WINDOWS_MAX);
	OP_WITH(-EINVAL, put_op(data, 8, 0), window, UINT16_MAX);
}

void abi_operations_have_no_more_than_their_fields(void)
{
	struct abi_port p[2];
	char data[64];

	abi_pair(p);
	for (unsigned int bit = 0; bit < 8; bit++) {
		__u8 flag = (__u8)(1u << bit);

		if (flag != SUL_OP_INLINE)
			OP_WITH(-EINVAL, put_op(data, 8, 0), flags, flag);
		OP_WITH(-EINVAL, get_op(data, 8, 0), flags, flag);
		OP_WITH(-EINVAL, abi_op(SUL_OP_NOTIFY, 1, 0), flags, flag);
		if (flag != SUL_OP_OLD)
			OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), flags,
				flag);
	}
	OP_WITH(-EINVAL, put_op(data, 8, 0), land, 8);
	OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), land, 8);
	OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), len, 8);
	OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), addr, 8);
	OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), amo.reserved, 1);
	OP_WITH(-EINVAL, abi_op(SUL_OP_NOTIFY, 1, 0), len, 8);
	OP_WITH(-EINVAL, abi_op(SUL_OP_NOTIFY, 1, 0), addr, 8);
	OP_WITH(-EINVAL, abi_op(SUL_OP_NOTIFY, 1, 0), land, 8);
	OP_WITH(-EINVAL, abi_op(SUL_OP_NOTIFY, 1, 0), notify.reserved, 1);
	OP_WITH(-EINVAL, get_op(data, 8, 0), marks.reserved, 1);
	OP_WITH(-EINVAL, put_op(data, 8, 0), len, SUL_ABI_OP_BYTES_MAX + 1);
}

void abi_inline_data_has_a_limit(void)
{
	struct abi_port p[2];
	struct sul_op op = abi_op(SUL_OP_PUT, 1, 0);

	abi_pair(p);
	op.flags = SUL_OP_INLINE;
	op.len = SUL_ABI_INLINE_MAX + 1;
	IS(-EINVAL, abi_submit_one(&p[0], op));
}

void abi_messages_are_checked(void)
{
	char from[SUL_ABI_MESSAGE_MAX] = { 1 };
	const struct sul_op good = message_op(from, 16, 128);
	const uint32_t end = ABI_WINDOW_BYTES;
	struct sul_op in_line = message_op(NULL, 16, 128);
	struct abi_port p[2];

	abi_pair(p);
	in_line.flags = SUL_OP_INLINE;
	IS(0, abi_submit_one(&p[0], good));
	IS(0, abi_submit_one(&p[0], in_line));
	memset(p[1].window, 0, end);
	OP_WITH(-EINVAL, good, len, SUL_ABI_MESSAGE_MAX + 1);
	OP_WITH(-EINVAL, in_line, len, SUL_ABI_MESSAGE_INLINE_MAX + 1);
	OP_WITH(-EINVAL, in_line, addr, (uintptr_t)from);
	OP_WITH(-EINVAL, good, land, 8);
	for (unsigned int bit = 1; bit < 8; bit++)
		OP_WITH(-EINVAL, good, flags, (__u8)(1u << bit));
	OP_WITH(-EINVAL, good, off, end - 15);
	OP_WITH(-EINVAL, good, off, UINT64_MAX - 7);
	OP_WITH(-EINVAL, good, window, 1);
	for (int i = 0; i < 2; i++) {
		OP_WITH(-EINVAL, good, message.word[i], 4);
		OP_WITH(-EINVAL, good, message.word[i], end);
		OP_WITH(-EINVAL, good, message.word[i], UINT32_MAX & ~7u);
	}
	OP_WITH(-EFAULT, good, addr, 0);
	OP_WITH(-EFAULT, good, addr, UINT64_MAX - 8);
	IS(0, (long)(word(&p[1], 64) | word(&p[1], 128)), "nothing has come");
}

/* What else may be wrong with one is for `kernel net leave` to say, and for the unit
 * tests of sul_check.c. */
void abi_a_farewell_is_for_a_far_rank(void)
{
	struct abi_port p[2];

	abi_pair(p);
	IS(-EINVAL, abi_submit_one(&p[0], abi_op(SUL_OP_FAREWELL, 1, 0)));
	IS(-EINVAL, abi_submit_one(&p[0], abi_op(SUL_OP_FAREWELL, 0, 0)));
	IS(-EINVAL, abi_submit_one(&p[0], abi_op(SUL_OP_FAREWELL, 2, 0)));
	IS(0, (long)p[1].status->left[0]);
}

void abi_words_are_aligned_and_known(void)
{
	struct abi_port p[2];

	abi_pair(p);
	for (uint64_t off = 1; off < 8; off++) {
		IS(-EINVAL, abi_submit_one(&p[0], amo_op(SUL_AMO_ADD, 1, off)));
		IS(-EINVAL,
		   abi_submit_one(&p[0], abi_op(SUL_OP_NOTIFY, 1, off)));
	}
	OP_WITH(-EINVAL, amo_op(SUL_AMO_NR, 1, 0), len, 0);
	OP_WITH(-EINVAL, amo_op(SUL_AMO_ADD, 1, 0), amo.op, UINT32_MAX);
}

void abi_old_values_land_where_they_may(void)
{
	struct abi_port p[2];
	struct sul_op op = amo_op(SUL_AMO_ADD, 1, 0);

	abi_pair(p);
	op.flags = SUL_OP_OLD;
	OP_WITH(0, op, land, ABI_LANDING_BYTES - 8);
	OP_WITH(-EINVAL, op, land, ABI_LANDING_BYTES);
	OP_WITH(-EINVAL, op, land, 4);
	OP_WITH(-EINVAL, op, land, UINT32_MAX - 7);
}

void abi_marks_are_checked(void)
{
	struct sul_mark m = { .off = 8, .bits = 1 };
	struct abi_port p[2];
	struct sul_op op;
	char data[64];

	abi_pair(p);
	op = get_op(data, 8, 0);
	op.marks.addr = (uintptr_t)&m;
	op.marks.nr = 1;
	IS(0, abi_submit_one(&p[0], op));
	OP_WITH(-EINVAL, op, marks.nr, SUL_ABI_MARKS_MAX + 1);
	OP_WITH(-EFAULT, op, marks.addr, 0);
	m.off = 4;
	IS(-EINVAL, abi_submit_one(&p[0], op), "unaligned");
	m.off = ABI_WINDOW_BYTES;
	IS(-EINVAL, abi_submit_one(&p[0], op), "outside");
	m.off = 8;
	m.window = 1;
	IS(-EINVAL, abi_submit_one(&p[0], op), "no such window");
	m.window = UINT32_MAX;
	IS(-EINVAL, abi_submit_one(&p[0], op), "no such window");
	m.window = 0;
	m.reserved = 1;
	IS(-EINVAL, abi_submit_one(&p[0], op), "reserved");
}

void abi_runs_are_checked(void)
{
	static struct sul_run runs[SUL_ABI_OP_RUNS_MAX + 1];
	static char data[ABI_WINDOW_BYTES];
	struct abi_port p[2];

	abi_pair(p);
	for (uint32_t i = 0; i <= SUL_ABI_OP_RUNS_MAX; i++)
		runs[i] = (struct sul_run){ i * 2, 1 };
	IS(0,
	   abi_submit_one(&p[0], putv_op(data, runs, SUL_ABI_OP_RUNS_MAX, 0)));
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, runs,
						  SUL_ABI_OP_RUNS_MAX + 1, 0)));
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, runs, 0, 0)));
	IS(-EFAULT, abi_submit_one(&p[0], putv_op(data, NULL, 1, 0)));
	IS(-EFAULT, abi_submit_one(&p[0], putv_op(NULL, runs, 1, 0)));
	runs[1].len = 0;
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, runs, 2, 0)), "empty");
	runs[1] = (struct sul_run){ ABI_WINDOW_BYTES - 4, 8 };
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, runs, 2, 0)),
	   "outside");
	runs[1] = (struct sul_run){ UINT32_MAX, UINT32_MAX };
	IS(-EINVAL, abi_submit_one(&p[0], putv_op(data, runs, 2, 0)),
	   "outside");
	runs[1] = (struct sul_run){ 8, 8 };
	OP_WITH(-EINVAL, putv_op(data, runs, 2, 0), runs.reserved, 1);
	OP_WITH(-EINVAL, putv_op(data, runs, 2, 0), runs.window, 1);
	OP_WITH(-EINVAL, putv_op(data, runs, 2, 0), runs.flag_off, 8);
}

void abi_mirrors_are_checked(void)
{
	static const struct sul_run runs[2] = { { 0, 8 }, { 16, 8 } };
	struct abi_port p[2];
	struct sul_op op;
	char data[64];

	abi_pair(p);
	op = putv_op(data, runs, 2, 0);
	op.flags = SUL_OP_MIRROR;
	OP_WITH(-EINVAL, op, runs.window, 1);
	OP_WITH(-EINVAL, op, runs.window, UINT32_MAX);
	OP_WITH(-EINVAL, op, runs.flag_window, 1);
	OP_WITH(-EINVAL, op, runs.flag_window, UINT32_MAX);
	OP_WITH(-EINVAL, op, runs.flag_off, ABI_WINDOW_BYTES);
	OP_WITH(-EINVAL, op, runs.flag_off, UINT64_MAX);
}

void abi_sources_and_targets_are_the_callers_memory(void)
{
	char *page = abi_memory(2 * ABI_PAGE);
	struct abi_port p[2];

	abi_pair(p);
	munmap(page + ABI_PAGE, ABI_PAGE);
	IS(-EFAULT, abi_submit_one(&p[0], put_op(NULL, 8, 0)));
	IS(-EFAULT, abi_submit_one(&p[0], put_op(page + ABI_PAGE - 8, 16, 0)));
	IS(-EFAULT, abi_submit_one(&p[0], get_op(page + ABI_PAGE - 8, 16, 0)));
	IS(-EFAULT,
	   abi_submit_one(&p[0], get_op((void *)(uintptr_t)-4096, 8, 0)),
	   "the kernel's");
	IS(-EFAULT,
	   abi_submit_one(&p[0], put_op((void *)(uintptr_t)-4096, 8, 0)),
	   "the kernel's");
	mprotect(page, ABI_PAGE, PROT_READ);
	IS(-EFAULT, abi_submit_one(&p[0], get_op(page, 16, 0)));
	IS(0, abi_submit_one(&p[0], put_op(page, 16, 0)));
}

/* --- the other side goes ------------------------------------------------------------ */

void abi_a_closed_peer_is_dead(void)
{
	struct abi_port p[2];
	uint64_t one = 1;

	abi_pair(p);
	IS(0, abi_submit_one(&p[0], put_op(&one, sizeof(one), 0)));
	abi_close(&p[1]);
	IS(-EHOSTDOWN, abi_submit_one(&p[0], put_op(&one, sizeof(one), 8)));
	IS(0, (long)word(&p[1], 8), "what was stored");
	IS(2, p[0].status->dead, "1 + its rank");
}

/* Whoever works on a window finds the memory that is there now. */
void abi_a_window_that_is_mapped_anew_is_found(void)
{
	struct abi_port p[2];
	uint64_t one = 1, got = 9;

	abi_pair(p);
	IS(0, abi_submit_one(&p[0], put_op(&one, sizeof(one), 0)));
	IS(1, (long)word(&p[1], 0));
	if (madvise(p[1].window, ABI_PAGE, MADV_DONTNEED))
		abort();
	IS(0, (long)word(&p[1], 0));
	IS(0, abi_submit_one(&p[0], get_op(&got, sizeof(got), 0)));
	IS(0, (long)got);
	if (mmap(p[1].window, ABI_WINDOW_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	IS(0, abi_submit_one(&p[0], put_op(&one, sizeof(one), 16)));
	IS(1, (long)word(&p[1], 16));
	munmap(p[1].window, ABI_PAGE);
	IS(-EFAULT, abi_submit_one(&p[0], put_op(&one, sizeof(one), 16)));
	IS(0, abi_submit_one(&p[0], put_op(&one, sizeof(one), ABI_PAGE)));
	IS(1, (long)word(&p[1], ABI_PAGE));
}

/* A fork makes the owner's private pages copy-on-write; the window stays its. */
void abi_a_window_stays_its_owners_after_a_fork(void)
{
	struct abi_port p[2];
	uint64_t v = 1;
	int status, go[2];
	char byte;
	pid_t pid;

	abi_pair(p);
	IS(0, abi_submit_one(&p[0], put_op(&v, sizeof(v), 0)));
	if (pipe(go))
		abort();
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) >= 0 && word(&p[1], 0) == 1 ? 0 :
									  1);
	}
	v = 2;
	IS(0, abi_submit_one(&p[0], put_op(&v, sizeof(v), 0)));
	IS(2, (long)word(&p[1], 0));
	p[1].window[8] = 7; /* the owner writes: its page is copied, or not */
	v = 3;
	IS(0, abi_submit_one(&p[0], put_op(&v, sizeof(v), 0)));
	IS(3, (long)word(&p[1], 0));
	close(go[1]);
	waitpid(pid, &status, 0);
	CHECK(!status, "the child sees what others put: %#x", status);
}

/* More pages than the budget holds: each is pinned when it is needed. */
void abi_windows_larger_than_the_budget_work(void)
{
	struct abi_port p[2];
	struct sul_op op;
	uint64_t v;

	abi_pair(p); /* the window is as large as the budget; so two rounds */
	for (int round = 0; round < 2; round++)
		for (uint64_t page = 0; page < 16; page++) {
			v = page + 100;
			op = put_op(&v, sizeof(v), page * ABI_PAGE);
			IS(0, abi_submit_one(&p[0], op));
			IS((long)v, (long)word(&p[1], page * ABI_PAGE));
		}
}
