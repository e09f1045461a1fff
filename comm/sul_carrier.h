/* SPDX-License-Identifier: MIT */
/*
 * sul_carrier.h - what a carrier gives, and what a port is made of.
 *
 * Private to comm/.  A carrier moves bytes between the windows of ranks; all
 * that can be said without knowing how (checks of arguments, the system and
 * the normal channel, counting) is done once, above it, in sul_port.c and
 * sul_channel.c.  A new carrier (udp, kmod, ofi) is one more table.
 */
#ifndef SUL_CARRIER_H
#define SUL_CARRIER_H

#include <pthread.h>

#include "sul.h"
#include "sul_sleep.h"

/* The channels keep their rings in one more window, behind the user's. */
#define SUL_WINDOW_CHANNELS SUL_WINDOWS_MAX
#define SUL_WINDOWS_ALL (SUL_WINDOWS_MAX + 1)

/*
 * The arguments of every function have been checked: ranks and windows exist,
 * ranges lie inside them, words are aligned.  Semantics: sul.h.
 */
struct sul_carrier_ops {
	const char *name;
	int (*open)(struct sul_port *p, const struct sul_config *cfg);
	void (*close)(struct sul_port *p);
	int (*prepare)(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);
	int (*discard)(struct sul_port *p, unsigned int w, uint64_t off,
		       size_t len);
	int (*window_file)(const struct sul_port *p, int rank, unsigned int w,
			   int *fd, uint64_t *off);
	int (*get)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   void *dst, size_t len, const struct sul_mark *marks,
		   unsigned int nr_marks);
	int (*put)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   const void *src, size_t len);
	int (*putv)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		    const void *src, const struct sul_run *runs, size_t nr_runs,
		    const struct sul_mirror *mirror);
	int (*amo)(struct sul_port *p, int rank, unsigned int w, uint64_t off,
		   enum sul_amo_op op, uint64_t operand, uint64_t comparand,
		   uint64_t *old);
	int (*notify)(struct sul_port *p, int rank, unsigned int w,
		      uint64_t off, uint32_t value);
	int (*flush)(struct sul_port *p);
	/* Until one of @nr (1 or 2) own words has changed. */
	int (*wait)(struct sul_port *p, const struct sul_watch *watch,
		    unsigned int nr, int timeout_ms);
	/*
	 * Store @len bytes at address @addr of @rank's process, in one copy:
	 * the normal channel's data.  Complete when it returns.  After any
	 * error (-EPERM: the system forbids it) the channel goes through its
	 * window instead, so a part may have been stored.
	 */
	int (*put_private)(struct sul_port *p, int rank, uint64_t addr,
			   const void *src, size_t len);
};

extern const struct sul_carrier_ops sul_shm_ops;
extern const struct sul_carrier_ops sul_sim_ops;

struct sul_channels; /* sul_channel.c */

struct sul_port {
	const struct sul_carrier_ops *ops;
	void *carrier; /* the carrier's own part */
	struct sul_job *job; /* NULL in the simulator */
	int rank, ranks;
	unsigned int windows;
	unsigned int spin_us;
	size_t window_bytes[SUL_WINDOWS_ALL]; /* 0: no such window */
	unsigned int window_chunk[SUL_WINDOWS_ALL];
	void *window[SUL_WINDOWS_ALL]; /* own ones, set by ops->open */
	struct sul_channels *channels;
	struct sul_stats stats; /* relaxed atomic adds */
};

/* sul_channel.c */
size_t sul_channels_bytes(int ranks); /* of the channels' window */
int sul_channels_open(struct sul_port *p);
void sul_channels_close(struct sul_port *p);
/* Does anybody here expect messages?  If so, waits go through
 * sul_channels_wait(), which makes progress for the port. */
bool sul_channels_used(const struct sul_port *p);
int sul_channels_wait(struct sul_port *p, struct sul_word *word, uint32_t old,
		      int timeout_ms);

/* sul_port.c: count an operation on @rank */
void sul_port_count(struct sul_port *p, int rank, size_t out, size_t in);

/* sul_memory.c: what executing an operation on mapped memory means; shared by
 * the carriers that do it with a CPU of their own. */
void sul_memory_copy_out(void *dst, const void *src, size_t len);
void sul_memory_runs(void *dst, const void *src, const struct sul_run *runs,
		     size_t nr_runs);
uint64_t sul_memory_amo(uint64_t *word, enum sul_amo_op op, uint64_t operand,
			uint64_t comparand);

#endif /* SUL_CARRIER_H */
