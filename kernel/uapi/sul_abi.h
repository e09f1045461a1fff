/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * sul_abi.h - the vocabulary of one-sided operations, and how /dev/sul takes it.
 *
 * A *window* is a range of memory that one rank owns and that the others may
 * work on with one-sided operations.  The operations are the same whoever
 * executes them at the target (the requester's own CPU, a kernel, an agent
 * thread, a simulator), so their operands are described once, here, in
 * fixed-size types that user space and a kernel can share.
 *
 * Rules for every structure below: only fixed-size __u/__s types, natural
 * alignment, no unnamed padding, and a size pinned at the end of the file.
 */
#ifndef SUL_ABI_H
#define SUL_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* --- operations ------------------------------------------------------------------ */

/**
 * struct sul_run - one run of bytes of a scattered put.
 * @off: offset in bytes from the operation's base offset.
 * @len: how many bytes; never 0.
 */
struct sul_run {
	__u32 off;
	__u32 len;
};

/**
 * struct sul_mark - bits that a get sets at its target before it reads.
 * @window: window of the target that holds the 64-bit word.
 * @bits:   which bits of the word are set (the word is OR-ed, atomically).
 * @off:    offset of the word in the window, a multiple of 8.
 *
 * The marks of one get are set in their order, each followed by a full fence,
 * and the data is read after the last of them.  A mark whose bits are set
 * already need not be stored.
 */
struct sul_mark {
	__u64 off;
	__u64 bits;
	__u32 window;
	__u32 reserved;
};

/**
 * struct sul_mirror - a second place for the bytes of a scattered put.
 * @flag_off:    offset of a byte in @flag_window.
 * @window:      window that gets the same runs at the same offsets, if ...
 * @flag_window: ... that byte, read after the first place was written and a
 *               full fence, is not 0.
 */
struct sul_mirror {
	__u64 flag_off;
	__u32 window;
	__u32 flag_window;
};

/* Atomic operations on aligned 64-bit words of a window. */
enum sul_amo_op {
	SUL_AMO_SWAP,
	SUL_AMO_CAS, /* store the operand if the word equals the comparand */
	SUL_AMO_ADD,
	SUL_AMO_OR,
	SUL_AMO_ANDNOT, /* clear the bits of the operand */
	SUL_AMO_NR
};

/**
 * struct sul_word - a word somebody waits for.
 * @value:    what is waited for; written by notify.
 * @sleepers: how many sleep on @value (they count themselves).
 */
struct sul_word {
	__u32 value;
	__u32 sleepers;
};

/* --- /dev/sul ----------------------------------------------------------------------
 *
 * The module is the network interface of a rank's windows: it executes what other
 * ranks want of them, in the kernel, whatever the rank's process is doing, and it
 * carries the rank's own operations to the others.  The three channels of BCL are
 * all made of this: the open channel is the windows; the system channel is a put
 * into a ring that the receiver keeps in one of its windows, and two notifies; the
 * normal channel is a put into a buffer that was announced.  So sending is one
 * trap for any number of operations, and receiving is a look at one's own memory.
 *
 * A descriptor of /dev/sul is one *port*: one rank of one job.  Its life:
 *
 *   HELLO    agree on a version; the first call, or all others say -EPROTO
 *            (all others but NULL)
 *   PORT     which job (by its key) and which rank this is, and the budgets
 *   SOCKET   hand over bound UDP sockets, one for each path (none: no network)
 *   START    the windows.  From now on others can work on them
 *   PEER     each rank that is to be reached: by its addresses, or, on this host
 *            and in this job, directly (this waits until that port has started)
 *   SUBMIT   operations, by the batch
 *   WAIT     sleep until a word of an own window differs
 *   WAKE     make a rank of this host that sleeps in WAIT look again
 *   COUNT    counters
 *   NULL     nothing: what a trap costs
 *
 * Closing the descriptor ends the port: what others have under way to it fails
 * with -EHOSTDOWN, pinned pages are let go.  A mapping of the status page or the
 * landing area holds the port as the descriptor does: the last of them ends it.
 * A window stays the memory that it was: when a rank of another host wants a part of
 * it that is not mapped (writable) any more, the port is given up.  It ends as if it
 * were closed, and sul_status.dead is 1 + its own rank.  (A rank of this host gets
 * -EFAULT from SUBMIT, and nothing ends.)  A
 * forked child has the descriptor but is refused (-EPERM): a port belongs to the
 * address space that opened it.  Calls out of turn, before PORT for instance, are
 * -EINVAL.
 *
 * Who may reach whom.  Operations reach ports with the same job key only; on one
 * host also of the same user and network namespace only.  A port's rank, and so
 * the source of everything it sends, is fixed by PORT; nothing in a SUBMIT can
 * say otherwise.  Between hosts packets are what the library's udp carrier makes
 * (comm/sul_wire.h), so either side may have the module or not.
 *
 * Every structure begins with its size as the caller knows it.  A longer one than
 * the module knows is taken if the rest is 0 (-E2BIG otherwise), a shorter one is
 * filled up with 0, but never shorter than in version 1 (-EINVAL).  Reserved
 * fields, unknown flags and, on the way in, what is only given back must be 0
 * (-EINVAL).  Unknown commands: -ENOTTY.
 * Pointers are __u64, so that 32-bit programs pass the same structures.
 *
 * Versions.  1: the first.  2: the operations MESSAGE and FAREWELL; down and left of
 * struct sul_status.  Callers of an older one are served as before.
 */
enum {
	SUL_ABI_VERSION = 2,
	SUL_ABI_WINDOWS_MAX = 9, /* of a port */
	SUL_ABI_PATHS_MAX = 4, /* sockets of a port, addresses of a peer */
	SUL_ABI_RANKS_MAX = 1024,
	SUL_ABI_KEY_BYTES = 16,
	SUL_ABI_SUBMIT_MAX = 256, /* operations of one SUBMIT */
	SUL_ABI_OP_BYTES_MAX = 1 << 20, /* data of one operation */
	SUL_ABI_OP_RUNS_MAX = 4096, /* runs of one scatter */
	SUL_ABI_INLINE_MAX = 32, /* data in the operation itself, ... */
	SUL_ABI_MESSAGE_INLINE_MAX = 16, /* ... of a message */
	SUL_ABI_MESSAGE_MAX = 256, /* bytes of a message */
	SUL_ABI_MARKS_MAX = 3,
	SUL_ABI_WORDS_MAX = 2, /* of one WAIT */
	SUL_ABI_LANDING_MAX = 1 << 20, /* bytes */
};

/* Features of the module that runs. */
#define SUL_FEATURE_AEAD 1u

/**
 * struct sul_hello - HELLO.
 * @version:  in: what the caller was built for; out: the module's.
 * @oldest:   out: the oldest that the module still understands.
 * @features: out: SUL_FEATURE_*.
 *
 * -EPROTO: the caller's version is older than @oldest or newer than @version;
 * the structure is filled in all the same.
 */
struct sul_hello {
	__u32 size;
	__u32 version;
	__u32 oldest;
	__u32 features;
};

/* enum sul_abi_auth: as SUL_AUTH_* of comm/sul.h */
enum sul_abi_auth {
	SUL_ABI_AUTH_MAC,
	SUL_ABI_AUTH_OFF,
	SUL_ABI_AUTH_AEAD,
	SUL_ABI_AUTH_NR
};

#define SUL_PORT_TRACE 1u /* note the times of struct sul_trace */

/**
 * struct sul_port_spec - PORT.
 * @key:      of the job; not all 0.
 * @session:  of this life of the rank, not 0; peers are told the same.
 * @span:     packets under way on a lane: a power of two from 8 to 1024; all
 *            ranks of a job have the same.
 * @packet_bytes: the largest packet, 548 to 8972; of UDP's payload.
 * @silence_ns: after which a peer that owes an answer is dead; not 0.
 * @pin_bytes: how much of the windows may be pinned at a time, at least 16 pages;
 *            charged to the user's locked memory now.
 * @landing_bytes: of the landing area, whole pages, at most SUL_ABI_LANDING_MAX.
 * @loss_ppm: of a million packets so many are thrown away, both ways: for tests.
 *
 * -EINVAL; -EBUSY: this descriptor is a port already; -EADDRINUSE: the job has
 * that rank here; -ENOMEM: memory, or locked memory (RLIMIT_MEMLOCK) - then
 * @pin_bytes is what could still be had; -ENOBUFS: more kernel memory than a port
 * may have (module parameter port_bytes): the landing area, 24 bytes for each page
 * of @pin_bytes, 8 for each rank; -EOPNOTSUPP: no such auth here; -EMFILE: this
 * user has too many ports (module parameter ports).
 */
struct sul_port_spec {
	__u32 size;
	__u32 flags;
	__u32 rank, ranks;
	__u8 key[SUL_ABI_KEY_BYTES];
	__u32 auth;
	__u32 session;
	__u32 span;
	__u32 packet_bytes;
	__u64 silence_ns;
	__u64 pin_bytes;
	__u32 landing_bytes;
	__u32 loss_ppm;
};

/**
 * struct sul_socket_spec - SOCKET: the next path of this port.
 * @fd: a bound, unconnected UDP socket (IPv4 or IPv6) of the namespace that the
 *      port was opened in, not used for anything of the kind yet.  It is the
 *      module's from now on; the caller closes its descriptor.  The module may bind
 *      one of its own next to it, to the same address, until the port ends.
 *
 * -EBADF, -ENOTSOCK, -EPROTOTYPE: no UDP socket; -EXDEV: of another namespace;
 * -EBUSY: in use; -E2BIG: too many; -EALREADY: after START; -ENOMEM, -ENOBUFS: as of
 * PORT.
 */
struct sul_socket_spec {
	__u32 size;
	__s32 fd;
};

/* An own window; @bytes 0: there is none of that number. */
struct sul_window_spec {
	__u64 addr; /* of the first byte, whole pages */
	__u64 bytes; /* whole pages; the same on all ranks */
};

/* START.  -EINVAL, -EFAULT: not this process's memory; -EALREADY; -ENOMEM: memory. */
struct sul_start {
	__u32 size;
	__u32 windows;
	struct sul_window_spec window[SUL_ABI_WINDOWS_MAX];
};

/* Where packets to a rank go. */
struct sul_peer_path {
	__u16 family; /* AF_INET or AF_INET6 */
	__u16 port; /* UDP, as this machine has numbers */
	__u32 socket; /* which of ours sends there */
	__u8 addr[16];
	__u32 scope; /* interface of a link-local address, or 0 */
	__u32 packet_bytes;
};

#define SUL_PEER_NEAR 1u /* of this host: directly */

/**
 * struct sul_peer_spec - PEER; once per rank.
 * @session, @packet_bytes: of that rank; 548 to 8972 bytes.
 * @timeout_ms: NEAR: how long to wait until it has started; else 0.
 *
 * From then on a rank of another host is watched: that it falls silent is found out
 * though nothing is issued to it.
 *
 * -EEXIST: said before; -EHOSTUNREACH: no route; -ETIMEDOUT: no such rank of such
 * a session has started; -EACCES: a port of that rank and job is there, but another
 * user's; -EHOSTDOWN: it was there, and has ended; -EINTR: a fatal signal came;
 * -ENOBUFS: as of PORT; -ENOMEM; -EINVAL.
 */
struct sul_peer_spec {
	__u32 size;
	__u32 flags;
	__u32 rank;
	__u32 session;
	__u32 packet_bytes;
	__u32 paths;
	__u32 timeout_ms;
	__u32 reserved;
	struct sul_peer_path path[SUL_ABI_PATHS_MAX];
};

enum sul_op_kind {
	SUL_OP_GET,
	SUL_OP_PUT,
	SUL_OP_PUTV,
	SUL_OP_AMO,
	SUL_OP_NOTIFY,
	SUL_OP_MESSAGE,
	SUL_OP_FAREWELL,
	SUL_OP_NR
};

#define SUL_OP_INLINE 1u /* PUT, MESSAGE: the data is in the operation */
#define SUL_OP_MIRROR 1u /* PUTV: there is one */
#define SUL_OP_OLD 1u /* AMO: the old value is wanted */

/**
 * struct sul_op - one operation on window @window of rank @rank at @off.
 * @addr: PUT, PUTV, MESSAGE: the source, which may be changed once SUBMIT has
 *        returned; of a MESSAGE with INLINE: 0;
 *        GET from a near rank: where the data goes, all there when SUBMIT
 *        returns.  The runs of a PUTV lie in the source where they lie in the
 *        target.
 * @len:  bytes (GET, PUT, MESSAGE), at most SUL_ABI_OP_BYTES_MAX, of a message
 *        SUL_ABI_MESSAGE_MAX.
 * @land: where in the landing area the data of a GET from a far rank, or the old
 *        value of an AMO (near and far), will be; a multiple of 8.
 * @flags: see SUL_OP_*.
 * @message: as PUT, and when the bytes are there, the word at word[0] of the same
 *        window gets value[0]; then the one at word[1] is notified with value[1].
 *        Nobody is woken by the first word.
 *
 * A FAREWELL, of which all but @kind and @rank is 0, is the last that is said to a far
 * rank: there, nobody takes our silence for a failure any more.  It does not wait for
 * room: without any, it is not said.  (A NEAR rank sees the port closed.)
 */
struct sul_op {
	__u8 kind; /* enum sul_op_kind */
	__u8 flags;
	__u16 window;
	__u32 rank;
	__u64 off;
	__u64 addr;
	__u32 len;
	__u32 land;
	union {
		__u8 data[SUL_ABI_INLINE_MAX];
		struct {
			__u64 addr; /* of struct sul_mark[nr] */
			__u32 nr;
			__u32 reserved;
		} marks; /* GET */
		struct {
			__u64 addr; /* of struct sul_run[nr] */
			__u32 nr;
			__u32 flag_window; /* of the mirror, likewise: */
			__u64 flag_off;
			__u32 window;
			__u32 reserved;
		} runs; /* PUTV */
		struct {
			__u64 operand, comparand;
			__u32 op; /* enum sul_amo_op */
			__u32 reserved;
		} amo;
		struct {
			__u32 value;
			__u32 reserved;
		} notify;
		struct {
			__u32 word[2];
			__u32 value[2];
			__u8 data[SUL_ABI_MESSAGE_INLINE_MAX];
		} message;
	};
};

#define SUL_SUBMIT_HURRY 1u /* ask the targets to confirm at once */

/**
 * struct sul_submit - SUBMIT.
 * @ops:    address of struct sul_op[nr]; they are issued in their order.
 * @nr:     0 to SUL_ABI_SUBMIT_MAX; 0 with HURRY: only ask.
 * @done:   out: so many were issued, also when there was an error.
 * @ticket: out: when sul_status.executed has reached it, everything submitted
 *          by this port so far has been executed, and its results are there.
 *
 * Waits while a peer's window is full.  -EINVAL: operation @done makes no sense;
 * -EFAULT: its memory is not there, or (NEAR) the window's; -ENOMEM: no page could be
 * had for the window; -EHOSTDOWN: its peer is dead, or has said farewell
 * (sul_status.left); -EINTR: a fatal signal.  Before
 * START, or a PEER of that rank: -EINVAL.
 */
struct sul_submit {
	__u32 size;
	__u32 flags;
	__u64 ops;
	__u32 nr;
	__u32 done;
	__u64 ticket;
};

/**
 * struct sul_wait - WAIT: until a word's value is not @old.
 * @nr:   0: until sul_status.executed is the ticket of the last SUBMIT.
 * @deaths: sul_status.deaths as the caller has seen it.
 * @timeout_ns: UINT64_MAX: for ever.
 * @off:  of the struct sul_word in own window @window.
 *
 * The caller counts itself in the word's sleepers as SUL_WORD_SLEEPER before, and
 * not any more afterwards.  0: one differs, or sul_status.deaths is not @deaths;
 * -ETIMEDOUT; -EINTR: a signal came.
 */
struct sul_wait {
	__u32 size;
	__u32 nr; /* words: 0 to 2 */
	__u64 timeout_ns; /* from now */
	__u32 deaths;
	__u32 reserved;
	struct {
		__u64 off;
		__u32 window;
		__u32 old;
	} word[SUL_ABI_WORDS_MAX];
};
/* What a sleeper in WAIT adds to sul_word.sleepers; futex sleepers add 1. */
#define SUL_WORD_SLEEPER 0x10000u

/* WAKE: whoever sleeps in WAIT at the port of @rank, this one or a NEAR one, looks
 * again: for words that were written without notify.  -EINVAL, -EHOSTDOWN. */
struct sul_wake {
	__u32 size;
	__u32 rank;
};

/*
 * COUNT: counters of this port, in the order of sul_counter.def.  The caller says
 * how many it has room for in @nr; out: how many there are.  Rows are only added at
 * the end.
 */
struct sul_count {
	__u32 size;
	__u32 nr;
	__u64 values; /* address of __u64[nr] */
};

/* --- what is mapped, read-only --------------------------------------------------- */

#define SUL_MAP_STATUS 0ull /* one page: struct sul_status */
#define SUL_MAP_LANDING 0x10000000ull /* landing_bytes */

/* Times of the last operation, CLOCK_MONOTONIC in ns; see SUL_PORT_TRACE. */
enum sul_trace_at {
	SUL_TRACE_ENTER, /* the trap is in the module */
	SUL_TRACE_COPIED, /* operations and data are in the kernel */
	SUL_TRACE_CHECKED, /* they make sense */
	SUL_TRACE_BUILT, /* packets are made and authenticated */
	SUL_TRACE_SENT, /* and have been given to the network; or, near: done */
	SUL_TRACE_ARRIVED, /* of the last packet that has come in */
	SUL_TRACE_GENUINE, /* its code was right, and it is in order */
	SUL_TRACE_STORED, /* it has taken effect */
	SUL_TRACE_NR
};

/**
 * struct sul_status - written by the module, read by the port's process.
 * @executed: see sul_submit.ticket; a release store behind all results.
 * @dead:     0, or 1 + the rank that was found dead first; the own rank: this port was
 *            given up.
 * @deaths:   how many peers have been found dead.  A NEAR peer that closes its port
 *            counts, too: the kernel cannot tell whether it was meant.
 * @trace:    enum sul_trace_at.
 * @down:     bit r % 64 of word r / 64: rank r is one of those in @deaths; set before
 *            these are counted.
 * @left:     likewise: rank r has said farewell.  It is one of the deaths only if
 *            something that was under way to it then has not been executed.
 */
struct sul_status {
	__u64 executed;
	__u32 dead;
	__u32 deaths;
	__u64 trace[SUL_TRACE_NR];
	__u64 down[SUL_ABI_RANKS_MAX / 64];
	__u64 left[SUL_ABI_RANKS_MAX / 64];
};

#define SUL_IOC_MAGIC 0xB5
#define SUL_IOC_HELLO _IOWR(SUL_IOC_MAGIC, 0, struct sul_hello)
#define SUL_IOC_PORT _IOWR(SUL_IOC_MAGIC, 1, struct sul_port_spec)
#define SUL_IOC_SOCKET _IOW(SUL_IOC_MAGIC, 2, struct sul_socket_spec)
#define SUL_IOC_START _IOW(SUL_IOC_MAGIC, 3, struct sul_start)
#define SUL_IOC_PEER _IOW(SUL_IOC_MAGIC, 4, struct sul_peer_spec)
#define SUL_IOC_SUBMIT _IOWR(SUL_IOC_MAGIC, 5, struct sul_submit)
#define SUL_IOC_WAIT _IOW(SUL_IOC_MAGIC, 6, struct sul_wait)
#define SUL_IOC_WAKE _IOW(SUL_IOC_MAGIC, 7, struct sul_wake)
#define SUL_IOC_COUNT _IOWR(SUL_IOC_MAGIC, 8, struct sul_count)
#define SUL_IOC_NULL _IO(SUL_IOC_MAGIC, 9)

#ifdef __KERNEL__
#define SUL_SIZE_ASSERT(type, bytes) static_assert(sizeof(type) == (bytes))
#elif defined(__cplusplus)
#define SUL_SIZE_ASSERT(type, bytes) static_assert(sizeof(type) == (bytes), "")
#else
#define SUL_SIZE_ASSERT(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), "size of " #type)
#endif
SUL_SIZE_ASSERT(struct sul_run, 8);
SUL_SIZE_ASSERT(struct sul_mark, 24);
SUL_SIZE_ASSERT(struct sul_mirror, 16);
SUL_SIZE_ASSERT(struct sul_word, 8);
SUL_SIZE_ASSERT(struct sul_hello, 16);
SUL_SIZE_ASSERT(struct sul_port_spec, 72);
SUL_SIZE_ASSERT(struct sul_socket_spec, 8);
SUL_SIZE_ASSERT(struct sul_start, 152);
SUL_SIZE_ASSERT(struct sul_peer_path, 32);
SUL_SIZE_ASSERT(struct sul_peer_spec, 160);
SUL_SIZE_ASSERT(struct sul_op, 64);
SUL_SIZE_ASSERT(struct sul_submit, 32);
SUL_SIZE_ASSERT(struct sul_wait, 56);
SUL_SIZE_ASSERT(struct sul_wake, 8);
SUL_SIZE_ASSERT(struct sul_count, 16);
SUL_SIZE_ASSERT(struct sul_status, 336);

#endif /* SUL_ABI_H */
