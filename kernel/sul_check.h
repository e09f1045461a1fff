/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * sul_check.h - whether an operation makes sense.  Pure: tested in user space, too.
 */
#ifndef SUL_CHECK_H
#define SUL_CHECK_H

#include "sul_pure.h"

#include "sul_abi.h"

/* The windows of a rank; 0 bytes: none of that number. */
struct sul_shape {
	unsigned int windows;
	uint64_t bytes[SUL_ABI_WINDOWS_MAX];
};

/* Where the windows that START names may be: -EINVAL. */
int sul_start_check(const struct sul_start *s, uint64_t page_bytes);
int sul_port_check(const struct sul_port_spec *s, uint64_t page_bytes);
int sul_peer_check(const struct sul_peer_spec *s); /* only its packet_bytes */

/* Does window @w have these bytes; this word? */
bool sul_check_range(const struct sul_shape *s, unsigned int w, uint64_t off,
		     uint64_t len);
bool sul_check_word(const struct sul_shape *s, unsigned int w, uint64_t off);

/*
 * -EINVAL: @op makes no sense for a target of this shape.  What it only points to
 * (marks, runs) is not looked at; sul_check_mark() and sul_check_run() do that.
 * @near: a get's data goes to its addr, else into the landing area.
 */
int sul_check_op(const struct sul_op *op, const struct sul_shape *target,
		 uint32_t landing_bytes, bool near);
bool sul_check_mark(const struct sul_shape *s, const struct sul_mark *m);
/* Of the scatter @op; how many bytes is counted in @*bytes. */
bool sul_check_run(const struct sul_shape *s, const struct sul_op *op,
		   const struct sul_run *run, uint64_t *bytes);

#endif /* SUL_CHECK_H */
