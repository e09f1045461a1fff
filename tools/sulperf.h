/* SPDX-License-Identifier: MIT */
/*
 * sulperf.h - what the parts of sulperf have in common.
 *
 * Two ranks of a job measure messaging between them: the *leader* (rank 0)
 * takes the times and prints them, the *peer* plays its part.  Both go through
 * the same rows in the same order, all of them in a round, round after round;
 * so a row and what it is compared with are measured in turn, by the same
 * processes.  A row is a number of samples, a sample a batch of operations.
 *
 * What the two tell each other goes through the carrier that is measured:
 * window 0 of each is its *desk* (struct perf_desk), window 1 is where data
 * lands.  Sockets between the same processes are made at the start.
 */
#ifndef SULPERF_H
#define SULPERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "bench.h"
#include "dsm_config.h"
#include "sul.h"
#include "sul_links.h"
#include "sul_pmix.h"

enum {
	PERF_BYTES_MAX = 4 << 20, /* of an operation */
	PERF_PAGE = 4096,
};

enum perf_row_id {
#define ROW(name, ...) PERF_##name,
#include "sulperf.def"
	PERF_ROWS,
	PERF_NONE = PERF_ROWS
};

enum perf_unit {
	PERF_TIME,
	PERF_BAND,
	PERF_RATE
};

/* The socket of a kind is the same for spinning and blocking. */
enum perf_via {
	PERF_SUL,
	PERF_LOCAL,
	PERF_UDP,
	PERF_UDP_BLOCK,
	PERF_TCP,
	PERF_TCP_BLOCK,
	PERF_DGRAM,
	PERF_DGRAM_BLOCK,
	PERF_STREAM,
	PERF_STREAM_BLOCK,
	PERF_VIAS
};

enum perf_peer {
	PERF_PLAYS,
	PERF_POLLS,
	PERF_COMPUTES,
	PERF_NAPS,
	PERF_SERVES
};

struct perf;
struct perf_row;

/* One sample; how many operations it was (nothing counts at the peer). */
typedef double perf_fn(struct perf *p, const struct perf_row *r);

struct perf_row {
	const char *name, *what;
	enum perf_unit unit;
	enum perf_via via;
	perf_fn *fn;
	enum perf_peer peer;
	size_t bytes;
	int batch, samples;
	enum perf_row_id udp, tcp;
};

/* Both ranks' events; differences count. */
struct perf_counts {
#define COUNT(name, where, doc) uint64_t name;
#include "sulperf_count.def"
};

/* ... and what the peer says of its own. */
struct perf_note {
	struct perf_counts counts;
	uint64_t traced; /* system calls are known */
};

enum perf_where {
	PERF_TRACED,
	PERF_PORT,
	PERF_NET
};

struct perf_result {
	struct bench_samples op; /* us per operation */
	double sample_us; /* what a sample took, all in all, in the last round */
	struct perf_counts here, there; /* in @ops operations */
	double ops;
	bool traced; /* system calls of both are known */
};

/* Operations that --breakdown takes apart, and their stages. */
enum perf_break {
	PERF_BREAK_SYSTEM,
	PERF_BREAK_PUT,
	PERF_BREAK_GET,
	PERF_BREAKS
};

enum perf_stage {
#define STAGE(name, on, doc) PERF_STAGE_##name,
#include "sulperf_stage.def"
	PERF_STAGES
};

enum perf_on {
	PERF_ON_SHM,
	PERF_ON_UDP,
	PERF_ON_NEAR, /* kmod, on one host */
	PERF_ON_KMOD,
	PERF_ON_AFTER
};

enum {
	PERF_BATCHES = 3
};
extern const int perf_batches[PERF_BATCHES]; /* operations of each */

/* A plain datagram as long as a packet: half its round trip, and its calls. */
struct perf_plain {
	struct bench_samples half, send, receive;
};

struct perf_board {
	struct perf_result row[PERF_ROWS];
	struct perf_plain plain[PERF_BREAKS][2]; /* to and fro */
	struct bench_samples stage[PERF_BREAKS][PERF_STAGES];
	/* kmod: a trap that does nothing, and one with a batch of puts. */
	struct bench_samples trap, batch[PERF_BATCHES];
	/* ... and all of the operations that were taken apart. */
	struct bench_samples taken[PERF_BREAKS];
};

/* What the ranks' sockets are called. */
struct perf_names {
	in_port_t port[2]; /* UDP, TCP; in the order of the network */
	struct sockaddr_un unix_name[2]; /* datagrams, stream */
	socklen_t unix_len[2];
};

struct perf_word {
	_Alignas(64) struct sul_word word;
};

/* Window 0 of a rank. */
struct perf_desk {
	struct perf_word meet; /* the other has come to meeting nr. */
	struct perf_word ping; /* ... has sent, or answered, that many */
	struct perf_word samples; /* the leader wants that many */
	struct perf_word go; /* the peer is ready for row nr. */
	struct perf_word done; /* the leader has finished row nr. */
	struct perf_word got; /* set by our own handler: last message */
	struct perf_word on; /* what the other's carrier is, + 1 */
	_Alignas(64) uint64_t amo; /* target of the atomic operations */
	_Alignas(64) struct perf_note note; /* the peer's */
	_Alignas(64) struct perf_names names; /* the other's */
	/* kmod, own ones: when what was sent came, and was seen. */
	_Alignas(64) uint64_t trace[SUL_TRACE_NR];
	uint64_t seen_ns;
};

enum {
	PERF_W_DESK,
	PERF_W_LAND,
	PERF_WINDOWS
};

/* What was asked for. */
struct perf_options {
	bool row[PERF_ROWS];
	int rounds;
	int peer; /* rank */
	bool count, breakdown, figures, json;
	const char *carrier; /* NULL: the job's */
	struct bench_sets sets;
};

/* A rank at work. */
struct perf {
	const struct perf_options *o;
	struct sul_job *job;
	struct sul_pmix *pmix; /* NULL: jiarun has started us */
	struct sul_listener *listener; /* until the port is open */
	struct sul_port *port;
	struct dsm_settings settings;
	int self, other;
	bool leader;
	bool near; /* the two are on one host */
	struct perf_desk *desk; /* own */
	char *land; /* own window 1 */
	char *from, *to; /* private memory of PERF_BYTES_MAX each */
	int fd[PERF_VIAS]; /* sockets; -1: there is none */
	struct perf_board *board; /* the leader's has the results */
	struct bench_trace *trace; /* NULL: system calls are not counted */
	double clock_ns; /* what reading the clock twice takes */

	/* Of the row under way; the same on both ranks. */
	const struct perf_row *row;
	uint32_t meets; /* meetings so far */
	uint32_t rows; /* rows begun */
	uint32_t seq; /* pings so far, to and fro being one */
	uint32_t sent, taken; /* messages of the system channel ... */
	size_t message_len; /* ... and how long the last one was */
	uint32_t asked; /* over sockets; the peer may be ahead or behind */
	uint64_t amos; /* atomic operations so far */
	int warm, samples; /* in this round */

	/* The leader's, of the sample under way. */
	uint64_t ns; /* if not 0: its time, in place of all of it */
	bool last; /* it is the row's last in this round */
	bool spoilt; /* it does not count */
	uint64_t arrival_ns; /* by then an answer has come, most likely */
	uint32_t lost; /* datagrams, in all ... */
	uint32_t lost_in_row; /* ... and since one has had its answer */
};

/* --- sulperf_launch.c: does not return ---------------------------------------------- */

_Noreturn void perf_launch(const struct perf_options *o);

/* --- sulperf_rank.c ------------------------------------------------------------------ */

int perf_rank_main(const struct perf_options *o);
/* End the job; the text is preceded by the row. */
_Noreturn void perf_fail(struct perf *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* End it if @err is one. */
void perf_must(struct perf *p, int err, const char *what);

/* --- sulperf_run.c: a row's samples, and the two ranks' meetings ------------------------ */

extern const struct perf_row perf_rows[PERF_ROWS];

void perf_run(struct perf *p, enum perf_row_id row, bool counting);
bool perf_possible(const struct perf *p, const struct perf_row *r);
void perf_meet(struct perf *p);
/* Set a word of the other's desk. */
void perf_notify(struct perf *p, size_t off, uint32_t value);
/* Wait until a word of the own desk is @value, or beyond. */
void perf_await(struct perf *p, struct perf_word *w, uint32_t value);
/* The leader has finished the row: to be asked between other things. */
bool perf_row_done(const struct perf *p);
void perf_compute(struct perf *p); /* ... until then */
void perf_linger(uint64_t ns); /* spin, without calling anything */
/* ... for an answer to be there; if it was not, for longer from now on. */
void perf_arrivals_begin(struct perf *p);
void perf_let_arrive(const struct perf *p);
void perf_was_late(struct perf *p);
/* Since @start, less what looking at the clock takes; never 0. */
uint64_t perf_call_ns(const struct perf *p, uint64_t start);

/* --- sulperf_sul.c, sulperf_sock.c, sulperf_floor.c: fn of the rows ----------------------- */

perf_fn perf_system, perf_system_burst, perf_system_send, perf_system_recv;
perf_fn perf_put, perf_put_stream, perf_put_both, perf_get, perf_amo;
perf_fn perf_normal, perf_normal_stream;
perf_fn perf_sock_ping, perf_sock_ask, perf_sock_ask_busy, perf_sock_stream;
perf_fn perf_sock_both, perf_sock_send, perf_sock_recv;
perf_fn perf_line, perf_copy, perf_call, perf_wake;

void perf_handlers(struct perf *p); /* of the system channel */
void perf_send_message(struct perf *p, size_t len);
void perf_await_message(struct perf *p);
void perf_put_and_ping(struct perf *p, const void *src, size_t len);
void perf_get_once(struct perf *p, size_t len);
/* The peer's last answer may have been lost: give it again if asked. */
void perf_sock_again(struct perf *p, const struct perf_row *r);

/* --- sulperf_carrier.c ------------------------------------------------------------------------ */

const char *perf_carrier(const struct perf *p); /* between the two */
enum perf_on perf_on(const struct perf *p); /* the same */
/* How its packets are authenticated, a value of `auth`; NULL: it has none. */
const char *perf_auth(const struct perf *p);
bool perf_has_mac(const struct perf *p);
/* Where the carrier reaches the other; the port is any. */
union sul_sockaddr perf_carrier_address(const struct perf *p);
void perf_carrier_counts(const struct perf *p, struct perf_counts *c);
/* Is that kind of count known of the row? */
bool perf_counted(const struct perf *p, enum perf_where where,
		  enum perf_row_id row);

/*
 * Begins every message over sockets.  What is late or was sent again may come
 * in a later row: it is told by the number of its row, and left alone.
 */
struct perf_head {
	uint32_t seq; /* the leader's; its answer has the same */
	uint16_t row; /* low bits of struct perf's rows */
	uint16_t index; /* in a batch, or PERF_LAST */
};
#define PERF_LAST 0xffff /* wants no answer */

/* --- sulperf_net.c: sockets ----------------------------------------------------------------- */

void perf_net_open(struct perf *p); /* with the other rank */
void perf_net_close(struct perf *p);
bool perf_blocks(enum perf_via via);
bool perf_is_stream(enum perf_via via);
bool perf_may_lose(enum perf_via via); /* what is sent */
/* All of @len; with a datagram at once. */
void perf_net_send(struct perf *p, enum perf_via via, const void *buf,
		   size_t len);
/* A stream: all of @len.  A datagram: one, how long; 0: none came in time
 * (UDP may lose it). */
size_t perf_net_recv(struct perf *p, enum perf_via via, void *buf, size_t len);
/* As much of it as can be, without waiting. */
size_t perf_net_push(struct perf *p, enum perf_via via, const void *buf,
		     size_t len);
/* What is there, without waiting; 0: nothing. */
size_t perf_net_look(struct perf *p, enum perf_via via, void *buf, size_t len);

/* --- sulperf_stage.c: --breakdown ------------------------------------------------------------- */

struct perf_value {
	double v;
	bool known;
};

struct perf_stage_info {
	const char *name, *doc;
	enum perf_on on;
};
extern const struct perf_stage_info perf_stages[PERF_STAGES];

struct perf_break_info {
	const char *name;
	enum perf_row_id row; /* that measures all of it */
};
extern const struct perf_break_info perf_breaks[PERF_BREAKS];

/* Medians, or the least times, us. */
struct perf_parts {
	struct perf_value stage[PERF_STAGES], whole;
	double sum; /* of the stages that the whole waits for */
};

void perf_breakdown(struct perf *p); /* samples of all of it */
/* After it: there are none if the ranks' carriers are of two kinds. */
bool perf_is_broken_down(const struct perf *p);
void perf_breakdown_of(const struct perf_board *board, enum perf_on on,
		       enum perf_break b, bool best, struct perf_parts *out);

/* --- sulperf_kmod.c: --breakdown over kmod ------------------------------------------------------ */

void perf_break_kmod(struct perf *p);

/* --- sulperf_core.c: what the udp carrier's core does ------------------------------------------ */

struct perf_steps {
	uint64_t issue_ns, pack_ns, execute_ns, ack_ns;
	size_t request_bytes, answer_bytes; /* of a packet; 0: there is none */
};

struct perf_core; /* opaque */
struct perf_core *perf_core_open(struct perf *p);
void perf_core_close(struct perf_core *c);
/* One operation from its beginning to its end. */
void perf_core_step(struct perf_core *c, enum perf_break b,
		    struct perf_steps *out);

/* --- sulperf_wire.c: what is between two cores -------------------------------------------------- */

struct perf_way {
	uint64_t send_ns, receive_ns; /* the carrier's calls */
	/* Of a plain datagram. */
	uint64_t plain_send_ns, plain_receive_ns, plain_round_ns;
};

struct perf_wire; /* opaque */
struct perf_wire *perf_wire_open(struct perf *p);
void perf_wire_close(struct perf_wire *w);
/* The way of a packet of @len bytes; false: it was lost or late. */
bool perf_wire_times(struct perf_wire *w, size_t len, struct perf_way *out);
void perf_wire_end(struct perf_wire *w); /* the peer's part may end ... */
void perf_wire_answer(struct perf *p); /* ... which is this */

/* --- sulperf_result.c: what the samples come to ---------------------------------------------- */

/* A row in its unit.  For BAND and RATE the best is the largest. */
struct perf_outcome {
	const struct perf_row *row;
	uint32_t samples; /* 0: it was not measured */
	double best, median, p90, mean; /* p90: 90 % are at least as good */
	double udp, tcp; /* the median over theirs; 0: unknown */
	double udp_best, tcp_best;
};
struct perf_outcome perf_outcome(const struct perf_board *b,
				 enum perf_row_id row);

/* LogP parameters of the carrier, UDP, TCP: us, and ns a byte. */
struct perf_logp {
	const char *name;
	struct perf_value send, recv, gap, latency, byte_ns;
};
enum {
	PERF_LOGPS = 3
};
void perf_logp(const struct perf_board *b, const char *carrier,
	       struct perf_logp out[PERF_LOGPS]);

/* A figure that the project wants to meet: @us shall be at most @limit. */
struct perf_figure {
	const char *what, *wanted;
	bool known, met, met_by_best;
	double us, limit; /* of the medians */
	double us_best, limit_best; /* of the least times */
};
enum {
	PERF_FIGURES = 6
};
/* @mac: packets carry one. */
void perf_figures(const struct perf_board *b, bool mac,
		  struct perf_figure out[PERF_FIGURES]);

/* --- sulperf_print.c, sulperf_json.c -------------------------------------------------------------- */

void perf_print(const struct perf *p);
void perf_print_figures(const struct perf *p);
int perf_print_json(const struct perf *p); /* -ENOMEM, -EIO */

#endif /* SULPERF_H */
