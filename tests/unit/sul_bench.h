/* SPDX-License-Identifier: MIT */
/*
 * sul_bench.h - one test body, run by every rank of a small job in any world.
 *
 * A body is what a rank does; it returns 0, or the line of what went wrong
 * (MUST() does that).  The bench opens the port, calls the body, closes.
 */
#ifndef SUL_BENCH_H
#define SUL_BENCH_H

#include <stdio.h>

#include "sul_carrier.h"
#include "sul_fake.h"
#include "sul_sim.h"

enum bench_world {
	BENCH_SIM, /* coroutines, operations under way */
	BENCH_NET, /* coroutines, packets on a simulated network */
	BENCH_THREADS, /* threads of this process, a port each, carrier shm */
	BENCH_PROCESSES, /* forked children, carrier shm */
	BENCH_UDP_THREADS, /* threads of this process, carrier udp */
	BENCH_UDP, /* forked children, carrier udp */
	BENCH_MIXED, /* the same on two hosts, so to speak: shm and udp */
	BENCH_KMOD_THREADS, /* threads of this process, carrier kmod: near */
	BENCH_KMOD, /* as BENCH_MIXED: shm and kmod; sul_fake.h is the module */
	BENCH_KMOD_UDP, /* the same, but only one of the hosts has the module */
	BENCH_WORLDS
};

#if defined(__SANITIZE_THREAD__)
#define BENCH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BENCH_TSAN 1
#endif
#endif
#ifndef BENCH_TSAN
#define BENCH_TSAN 0
#endif

/* ThreadSanitizer knows neither the coroutines nor children of threads; and it
 * takes for a thread of ours what a kernel would do to our memory. */
static inline bool bench_has(enum bench_world w)
{
	return !BENCH_TSAN || w == BENCH_THREADS || w == BENCH_UDP_THREADS;
}

typedef int bench_fn(struct sul_port *p, void *ctx);

/* What was seen of a simulated network. */
struct bench_net {
	struct sul_simnet_stats wire;
	struct sul_net_stats core;
	uint64_t now_ns, crash_ns;
	int failed; /* sul_simnet_failed() */
};

struct bench {
	int ranks;
	unsigned int windows; /* at least 1 is opened */
	size_t bytes; /* of each; 0: 64 KiB */
	unsigned int chunk; /* pages made present along with one; 0: none */
	uint64_t seed; /* of the simulator */
	bool whole; /* it does no operation in pieces */
	uint64_t steps; /* out: it has made */
	const struct sul_simnet_config *wire; /* NULL: everything goes wrong */
	struct bench_net net; /* out */
	unsigned int spin_us;
	/* udp; 0: the defaults */
	enum sul_auth auth;
	unsigned int loss_ppm, silence_ms, mtu, span;
	bool no_handlers;
	struct fake_sul_config module; /* how it behaves ... */
	unsigned int without; /* ... and bits of ranks that do not use it */
	bool cancel; /* end the job after 100 ms: waits shall notice */
};

/*
 * 0 if every rank returned 0; else what one of them returned, -ETIMEDOUT if
 * they did not come to an end, -EDEADLK if the simulator says so.
 */
int bench_run(enum bench_world w, struct bench *b, bench_fn *fn, void *ctx);

/* Asserts (CUnit) that it goes well in @w, where there is that world. */
void bench_in(enum bench_world w, struct bench b, bench_fn *fn, void *ctx);
/* The same in all worlds; with seeds 0 .. @seeds - 1, in the simulator, with a
 * network if b.wire is given. */
void bench_everywhere(struct bench b, bench_fn *fn, void *ctx);
void bench_seeds(struct bench b, unsigned int seeds, bench_fn *fn, void *ctx);

/* A network on which nothing goes wrong, and one on which everything does. */
struct sul_simnet_config bench_quiet_wire(void);
struct sul_simnet_config bench_bad_wire(void);

/* Between processes over udp. */
void bench_over_udp(struct bench b, bench_fn *fn, void *ctx);
/* Over whatever carries packets: udp, and kmod to either. */
void bench_over_networks(struct bench b, bench_fn *fn, void *ctx);
/* Wherever there is the module. */
void bench_with_module(struct bench b, bench_fn *fn, void *ctx);

uint64_t bench_now_ms(void);
bool bench_simulated(const struct sul_port *p);
/* Let the others do something for a while, without making progress. */
void bench_nap(struct sul_port *p);
/* Until @word of the own window is not 0, without making progress; 0, or
 * -ETIMEDOUT after 20 s or when the job has failed. */
int bench_compute_until(struct sul_port *p, const uint64_t *word);
/* Rank 0 lets all go on when all have come; uses the end of window 0. */
int bench_meet(struct sul_port *p, uint32_t round);

/* For bodies, in any world; REQUIRE() of tests.h is for the test itself. */
#define MUST(what)                                                       \
	do {                                                             \
		if (!(what)) {                                           \
			fprintf(stderr, "\n    %s:%d: rank %d: %s\n",    \
				__FILE__, __LINE__, sul_rank(p), #what); \
			return __LINE__;                                 \
		}                                                        \
	} while (0)

#endif /* SUL_BENCH_H */
