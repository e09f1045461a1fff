/* SPDX-License-Identifier: MIT */
/* race.c - see race.h. */
#include "race.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sul_clock.h"

enum {
	UDP_PORT = 20100, /* of rank 0; the next one is rank 1's */
	PACKET_BYTES = 1472,
	STAY_MS = 60000, /* at most, at a place */
	RACE_SECONDS = 55, /* longer than it is waited for anything */
	TICK_US = 2000,
	LOOKS = 400, /* a tick apart */
};

struct race_scene *race_scene;

/* --- places ------------------------------------------------------------------------ */

static const char rules[] = "/sys/module/sul/parameters/linger";
static const char visits[] = "/sys/module/sul/parameters/lingering";

void race_stay_at(const char *places)
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

long race_been_at(const char *place)
{
	return visit(place).been;
}

/* --- waiting ------------------------------------------------------------------------ */

bool race_is_there(const void *place)
{
	return visit(place).here > 0;
}

bool race_is_nonzero(const void *at)
{
	return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) != 0;
}

bool race_have_started(const void *ranks)
{
	return __atomic_load_n(&race_scene->started, __ATOMIC_ACQUIRE) >=
	       *(const uint32_t *)ranks;
}

bool race_are_left(const void *ports)
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

/* By the clock: what is looked at takes its time, too. */
static uint64_t patience_ends(void)
{
	return sul_now_ns() + RACE_PATIENCE_MS * UINT64_C(1000000);
}

bool race_comes_true(bool (*is)(const void *of), const void *of)
{
	uint64_t end = patience_ends();

	while (sul_now_ns() < end) {
		if (is(of))
			return true;
		usleep(TICK_US);
	}
	return false;
}

void race_tell(uint32_t *at)
{
	__atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST);
}

/* As /proc says it: D waits, Z has ended. */
static char state_of(pid_t pid)
{
	char path[40], line[200], *end = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		end = strrchr(line, ')');
	if (f)
		fclose(f);
	return end ? end[2] : 'Z';
}

/* On its way to its end it may wait a moment for others, too, for a grace period above
 * all: hence so many looks in a row. */
bool race_is_held(pid_t pid)
{
	uint64_t end = patience_ends();
	int held = 0;

	while (held < LOOKS && sul_now_ns() < end) {
		char state = state_of(pid);

		if (state == 'Z')
			return false;
		held = state == 'D' ? held + 1 : 0;
		usleep(TICK_US);
	}
	return held == LOOKS;
}

/* --- ranks --------------------------------------------------------------------------- */

struct place {
	int fd;
	struct sockaddr_in at;
};

static bool is_bound(const void *of)
{
	const struct place *p = of;

	return !bind(p->fd, (const struct sockaddr *)&p->at, sizeof(p->at));
}

static void give_socket(const struct abi_port *p)
{
	struct place place = { .at.sin_family = AF_INET };
	struct sul_socket_spec s = { .size = sizeof(s) };

	s.fd = place.fd = socket(AF_INET, SOCK_DGRAM, 0);
	place.at.sin_port = htons((uint16_t)(UDP_PORT + p->rank));
	place.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* A worker lets go of the last race's, when its port is no more. */
	AWAIT(is_bound, &place);
	IS(0, abi_call(p->fd, SUL_IOC_SOCKET, &s));
	close(s.fd);
}

struct abi_port race_open(uint32_t rank, bool far)
{
	struct sul_start start = { .size = sizeof(start), .windows = 1 };
	struct sul_port_spec spec = abi_spec(rank, RACE_RANKS);
	struct abi_port p = { .rank = rank, .window = race_scene->window };

	spec.silence_ns = UINT64_C(1000000) * RACE_PATIENCE_MS;
	p.fd = abi_port_as(&spec);
	CHECK(p.fd >= 0, "PORT of rank %u: %s", rank, strerror(-p.fd));
	if (far)
		give_socket(&p);
	start.window[0].addr = (uintptr_t)p.window;
	start.window[0].bytes = ABI_WINDOW_BYTES;
	IS(0, abi_call(p.fd, SUL_IOC_START, &start));
	race_tell(&race_scene->started);
	return p;
}

void race_meet(const struct abi_port *p, bool far)
{
	uint32_t other = !p->rank;
	struct sul_peer_spec s = { .size = sizeof(s),
				   .rank = other,
				   .session = other + 1,
				   .packet_bytes = PACKET_BYTES,
				   .paths = 1 };
	struct in_addr to = { htonl(INADDR_LOOPBACK) };

	AWAIT(race_have_started, &(uint32_t){ RACE_RANKS });
	if (!far) {
		IS(0, abi_near(p, other, RACE_PATIENCE_MS));
		return;
	}
	s.path[0].family = AF_INET;
	s.path[0].port = (uint16_t)(UDP_PORT + other);
	s.path[0].packet_bytes = PACKET_BYTES;
	memcpy(s.path[0].addr, &to, sizeof(to));
	IS(0, abi_call(p->fd, SUL_IOC_PEER, &s));
}

int race_put(const struct abi_port *p, uint64_t off)
{
	struct sul_op op = abi_op(SUL_OP_PUT, RACE_OWNER, off);

	op.flags = SUL_OP_INLINE;
	op.len = 1;
	op.data[0] = RACE_VALUE;
	return abi_submit(p, &op, 1, NULL);
}

void race_flush(const struct abi_port *p)
{
	struct sul_wait w = { .size = sizeof(w) };

	w.timeout_ns = UINT64_C(1000000) * RACE_PATIENCE_MS;
	IS(0, abi_call(p->fd, SUL_IOC_WAIT, &w));
}

pid_t race_run(void (*fn)(void))
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

void race_ends_well(pid_t pid)
{
	int status = 1;

	waitpid(pid, &status, 0);
	IS(0, status);
}

void race_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
