/* SPDX-License-Identifier: MIT */
/*
 * races.c - what comes between two steps of the module, comes there every time.
 *
 * Role:      the module's parameter linger makes a rank stay at a named place; only
 *            when it is there (parameter lingering) does the other thing happen,
 *            and only when that is over does it go on.
 * Invariant: nothing here goes by time: all that is waited for is seen.
 * Threads:   this process sees to it; a process for each rank.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"
#include "fuzz.h"
#include "kernel.h"

enum {
	OWNER = 1, /* the ranks: whose window it is, and who works on it */
	OTHER = 0,
	RANKS = 2,
	UDP_PORT = 20100, /* of rank 0; the next one is rank 1's */
	PACKET_BYTES = 1472,
	STAY_MS = 60000, /* at most, at a place */
	PATIENCE_MS = 50000,
	RACE_SECONDS = 55,
	TICK_US = 2000,
	NEW_PROCESSES = 8,
	WORD = 0, /* offsets in the window */
	DATA = 64,
	VALUE = 0x5a,
};

/* Shared by all processes of a case. */
struct scene {
	char *window; /* the owner's, private to it; at this address in all */
	uint32_t started; /* ranks that have */
	uint32_t go; /* told to the owner */
	uint32_t went; /* it has done so */
	int result; /* of the other's call */
	uint8_t seen; /* what the owner has found in its window in the end */
	uint32_t look; /* told to the owner: what is there? */
};
static struct scene *scene;

/* --- places ------------------------------------------------------------------------ */

static const char rules[] = "/sys/module/sul/parameters/linger";
static const char visits[] = "/sys/module/sul/parameters/lingering";

/* "PLACE,...": who comes there stays; "": nobody does. */
static void stay_at(const char *places)
{
	int fd = open(rules, O_WRONLY | O_CLOEXEC);
	char text[128], *end = text;

	*end = 0;
	while (*places) {
		int len = (int)strcspn(places, ",");

		end += sprintf(end, "%.*s:%d,", len, places, STAY_MS);
		places += len + (places[len] == ',');
	}
	end += sprintf(end, "\n");
	IS(end - text, write(fd, text, (size_t)(end - text)));
	close(fd);
}

struct visit {
	long here, been;
};

static struct visit visit(const char *place)
{
	FILE *f = fopen(visits, "re");
	struct visit v = { 0, 0 };
	size_t len = strlen(place);
	char line[80], *end;

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, place, len) || line[len] != ' ')
			continue;
		v.here = strtol(line + len, &end, 10);
		v.been = strtol(end, NULL, 10);
	}
	if (f)
		fclose(f);
	return v;
}

/* --- waiting ------------------------------------------------------------------------ */

static bool is_there(const void *place)
{
	return visit(place).here > 0;
}

static bool is_nonzero(const void *at)
{
	return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) != 0;
}

static bool have_started(const void *ranks)
{
	return __atomic_load_n(&scene->started, __ATOMIC_ACQUIRE) >=
	       *(const uint32_t *)ranks;
}

/* As many ports as that are left in this namespace. */
static bool are_left(const void *ports)
{
	FILE *f = fopen("/proc/net/sul", "re");
	char line[100];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "ports ", 6))
			n = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return n == *(const long *)ports;
}

static bool comes_true(bool (*is)(const void *of), const void *of)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += TICK_US / 1000) {
		if (is(of))
			return true;
		usleep(TICK_US);
	}
	return false;
}
#define AWAIT(is, of) CHECK(comes_true(is, of), #is " " #of)

/* --- ranks --------------------------------------------------------------------------- */

static struct abi_port open_rank(uint32_t rank, bool far)
{
	struct sul_start start = { .size = sizeof(start), .windows = 1 };
	struct sul_port_spec spec = abi_spec(rank, RANKS);
	struct abi_port p = { .rank = rank, .window = scene->window };

	p.fd = abi_port_as(&spec);
	CHECK(p.fd >= 0, "PORT of rank %u: %s", rank, strerror(-p.fd));
	if (far) {
		struct sockaddr_in at = { .sin_family = AF_INET };
		struct sul_socket_spec s = { .size = sizeof(s) };

		s.fd = socket(AF_INET, SOCK_DGRAM, 0);
		at.sin_port = htons((uint16_t)(UDP_PORT + rank));
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		IS(0, bind(s.fd, (struct sockaddr *)&at, sizeof(at)));
		IS(0, abi_call(p.fd, SUL_IOC_SOCKET, &s));
	}
	start.window[0].addr = (uintptr_t)p.window;
	start.window[0].bytes = ABI_WINDOW_BYTES;
	IS(0, abi_call(p.fd, SUL_IOC_START, &start));
	__atomic_add_fetch(&scene->started, 1, __ATOMIC_SEQ_CST);
	return p;
}

static void meet(const struct abi_port *p, bool far)
{
	uint32_t other = !p->rank;
	struct sul_peer_spec s = { .size = sizeof(s),
				   .rank = other,
				   .session = other + 1,
				   .packet_bytes = PACKET_BYTES,
				   .paths = 1 };
	struct in_addr to = { htonl(INADDR_LOOPBACK) };

	AWAIT(have_started, &(uint32_t){ RANKS });
	if (!far) {
		IS(0, abi_near(p, other, PATIENCE_MS));
		return;
	}
	s.path[0].family = AF_INET;
	s.path[0].port = (uint16_t)(UDP_PORT + other);
	s.path[0].packet_bytes = PACKET_BYTES;
	memcpy(s.path[0].addr, &to, sizeof(to));
	IS(0, abi_call(p->fd, SUL_IOC_PEER, &s));
}

static int put_byte(const struct abi_port *p)
{
	struct sul_op op = abi_op(SUL_OP_PUT, OWNER, DATA);

	op.flags = SUL_OP_INLINE;
	op.len = 1;
	op.data[0] = VALUE;
	return abi_submit(p, &op, 1, NULL);
}

static pid_t rank_run(void (*fn)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(RACE_SECONDS);
	fn();
	fflush(stdout);
	_exit(!abi_all_well());
}

static void ends_well(pid_t pid)
{
	int status = 1;

	waitpid(pid, &status, 0);
	IS(0, status);
}

static void is_killed(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Owns the window, and does nothing. */
static void owns(void)
{
	open_rank(OWNER, false);
	for (;;)
		pause();
}

static void owns_far(void)
{
	struct abi_port p = open_rank(OWNER, true);

	meet(&p, true);
	for (;;)
		pause();
}

/* Puts a byte into it. */
static void puts_byte(void)
{
	struct abi_port p = open_rank(OTHER, false);

	meet(&p, false);
	scene->result = put_byte(&p);
}

static void puts_byte_far(void)
{
	struct abi_port p = open_rank(OTHER, true);

	meet(&p, true);
	IS(0, put_byte(&p));
	for (;;)
		pause(); /* it is being sent */
}

/* --- cases --------------------------------------------------------------------------- */

static void does_nothing(void)
{
}

/* Each processor has run something else since, so none has kept a memory that is
 * gone for the next task without one; and what it was made of may be others'. */
static void forget_the_dead(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (int i = 0; i < NEW_PROCESSES; i++)
			ends_well(rank_run(does_nothing));
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* It has found the owner gone and has ended, or holds what it takes for memory. */
static bool has_decided(const void *held)
{
	return is_there(held) || are_left(&(long){ 0 });
}

/* Not even the struct mm_struct of who is dead is looked into once it is freed: on a
 * kernel that poisons it, it would seem to be alive, and held. */
static void page_wanted_of_a_near_rank_that_has_ended(void)
{
	pid_t owner, other;

	stay_at("pin,held");
	owner = rank_run(owns);
	other = rank_run(puts_byte);
	AWAIT(is_there, "pin");
	is_killed(owner);
	forget_the_dead();
	stay_at("held");
	AWAIT(has_decided, "held");
	IS(0, visit("held").been, "whose memory is it?");
	stay_at("");
	ends_well(other);
	IS(-EHOSTDOWN, scene->result);
}

/* The memory is held, so it is there; the port is not. */
static void port_ends_before_a_page_is_pinned(void)
{
	pid_t owner, other;

	stay_at("held");
	owner = rank_run(owns);
	other = rank_run(puts_byte);
	AWAIT(is_there, "held");
	is_killed(owner);
	stay_at("");
	ends_well(other);
	IS(-EHOSTDOWN, scene->result);
}

static void port_ends_while_a_page_is_pinned(void)
{
	pid_t owner, other;

	stay_at("pinned");
	owner = rank_run(owns);
	other = rank_run(puts_byte);
	AWAIT(is_there, "pinned");
	kill(owner, SIGKILL); /* its end waits for who pins */
	AWAIT(are_left, &(long){ 1 });
	stay_at("");
	waitpid(owner, NULL, 0);
	ends_well(other);
	IS(-EHOSTDOWN, scene->result);
}

/* It takes its memory away, and has other memory there, when it is told to. */
static void owns_and_maps_anew(void)
{
	open_rank(OWNER, false);
	AWAIT(is_nonzero, &scene->go);
	CHECK(mmap(scene->window, ABI_WINDOW_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == scene->window,
	      "other memory there");
	__atomic_store_n(&scene->went, 1, __ATOMIC_SEQ_CST);
	AWAIT(is_nonzero, &scene->look);
	scene->seen = (uint8_t)scene->window[DATA];
}

static void window_is_mapped_anew_while_a_page_is_pinned(void)
{
	pid_t owner, other;

	stay_at("pinned");
	owner = rank_run(owns_and_maps_anew);
	other = rank_run(puts_byte);
	AWAIT(is_there, "pinned");
	__atomic_store_n(&scene->go, 1, __ATOMIC_SEQ_CST);
	AWAIT(is_nonzero, &scene->went);
	stay_at("");
	ends_well(other);
	IS(0, scene->result);
	__atomic_store_n(&scene->look, 1, __ATOMIC_SEQ_CST);
	ends_well(owner);
	IS(VALUE, scene->seen, "in the new memory");
}

static void port_ends_while_its_worker_pins(void)
{
	pid_t owner, other;

	stay_at("worker");
	owner = rank_run(owns_far);
	other = rank_run(puts_byte_far);
	AWAIT(is_there, "worker");
	kill(owner, SIGKILL); /* its end waits for the worker */
	AWAIT(are_left, &(long){ 1 });
	stay_at("");
	waitpid(owner, NULL, 0);
	is_killed(other);
}

/* The descriptor is closed and the worker has not begun: it still has a port, and
 * the module stays. */
static void descriptor_is_closed_before_its_worker_ends_the_port(void)
{
	pid_t owner;

	stay_at("ending");
	owner = rank_run(owns);
	AWAIT(have_started, &(uint32_t){ 1 });
	kill(owner, SIGKILL);
	AWAIT(is_there, "ending");
	AWAIT(are_left, &(long){ 0 });
	IS(-1, (int)syscall(SYS_delete_module, "sul", O_NONBLOCK));
	IS(EWOULDBLOCK, errno);
	stay_at("");
	waitpid(owner, NULL, 0);
}

static void meets(void)
{
	struct abi_port p = open_rank(OTHER, false);

	AWAIT(have_started, &(uint32_t){ RANKS });
	scene->result = abi_near(&p, OWNER, 0);
}

static void near_rank_ends_while_it_is_met(void)
{
	pid_t owner, other;

	stay_at("peer");
	owner = rank_run(owns);
	other = rank_run(meets);
	AWAIT(is_there, "peer");
	is_killed(owner);
	stay_at("");
	ends_well(other);
	IS(-EHOSTDOWN, scene->result);
}

/* Waits for its word, as one does who says so. */
static void sleeps(void)
{
	struct abi_port p = open_rank(OWNER, false);
	struct sul_word *word = (void *)(p.window + WORD);
	struct sul_wait w = { .size = sizeof(w), .nr = 1 };

	w.timeout_ns = UINT64_C(1000000) * PATIENCE_MS;
	__atomic_add_fetch(&word->sleepers, SUL_WORD_SLEEPER, __ATOMIC_SEQ_CST);
	scene->result = abi_call(p.fd, SUL_IOC_WAIT, &w);
	scene->seen = (uint8_t)word->value;
}

static void notifies(void)
{
	struct abi_port p = open_rank(OTHER, false);
	struct sul_op op = abi_op(SUL_OP_NOTIFY, OWNER, WORD);

	meet(&p, false);
	op.notify.value = VALUE;
	AWAIT(is_nonzero, &scene->go);
	IS(0, abi_submit_one(&p, op));
}

static void word_changes_before_who_waits_sleeps(void)
{
	pid_t owner, other;

	stay_at("wait");
	owner = rank_run(sleeps);
	other = rank_run(notifies);
	AWAIT(is_there, "wait");
	__atomic_store_n(&scene->go, 1, __ATOMIC_SEQ_CST);
	ends_well(other);
	stay_at("");
	ends_well(owner);
	IS(0, scene->result);
	IS(VALUE, scene->seen);
}

static const struct race {
	const char *name;
	void (*run)(void);
} races[] = {
#define RACE(name)          \
	{                   \
#name, name \
	}
	RACE(page_wanted_of_a_near_rank_that_has_ended),
	RACE(port_ends_before_a_page_is_pinned),
	RACE(port_ends_while_a_page_is_pinned),
	RACE(window_is_mapped_anew_while_a_page_is_pinned),
	RACE(port_ends_while_its_worker_pins),
	RACE(descriptor_is_closed_before_its_worker_ends_the_port),
	RACE(near_rank_ends_while_it_is_met),
	RACE(word_changes_before_who_waits_sleeps),
#undef RACE
};

enum {
	RACES = sizeof(races) / sizeof(races[0])
};

static bool is_wanted(const char *name, int argc, char **argv)
{
	bool is = argc < 2;

	for (int i = 1; i < argc; i++)
		is |= !strcmp(name, argv[i]);
	return is;
}

/* In a process of its own, and nothing is left of it. */
static bool goes_well(const struct race *r, long pinned)
{
	int status = 1;
	pid_t pid;

	memset(scene, 0, sizeof(*scene));
	scene->window = abi_memory(ABI_WINDOW_BYTES);
	pid = rank_run(r->run);
	waitpid(pid, &status, 0);
	stay_at(""); /* should it have been killed */
	munmap(scene->window, ABI_WINDOW_BYTES);
	return fuzz_all_gone(pinned) && !status && abi_all_well();
}

int kernel_races(int argc, char **argv)
{
	long pinned = fuzz_pages_pinned();
	int failed = 0;

	scene = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < RACES; i++) {
		bool well = !is_wanted(races[i].name, argc, argv) ||
			    goes_well(&races[i], pinned);

		if (is_wanted(races[i].name, argc, argv))
			printf("%s - races %s\n", well ? "ok" : "not ok",
			       races[i].name);
		failed += !well;
	}
	return failed != 0;
}
