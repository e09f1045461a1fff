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
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "kernel.h"
#include "race.h"

enum {
	NEW_PROCESSES = 8,
	KEEPER_SECONDS = 55,
	TRIES = 20,
	A_WHILE_US = 10000, /* more than a call takes */
	NEXT_PAGE = ABI_PAGE + RACE_DATA, /* an offset in the window */
};

/* --- ranks --------------------------------------------------------------------------- */

/* Owns the window, and does nothing. */
static void owns(void)
{
	race_open(RACE_OWNER, false);
	for (;;)
		pause();
}

/* Its descriptor is another one's, too: so it is not closed before a worker has had the
 * time to see that the memory is gone. */
static void owns_and_shares(void)
{
	pid_t keeper;

	race_open(RACE_OWNER, false);
	keeper = fork();
	if (keeper)
		race_scene->keeper = (uint32_t)keeper;
	else
		alarm(KEEPER_SECONDS);
	for (;;)
		pause();
}

static void owns_far(void)
{
	struct abi_port p;

	p = race_open(RACE_OWNER, true);
	race_meet(&p, true);
	for (;;)
		pause();
}

/* Puts a byte into it. */
static void puts_byte(void)
{
	struct abi_port p = race_open(RACE_OTHER, false);

	race_meet(&p, false);
	race_scene->result = race_put(&p, RACE_DATA);
}

static void puts_byte_far(void)
{
	struct abi_port p = race_open(RACE_OTHER, true);

	race_meet(&p, true);
	IS(0, race_put(&p, RACE_DATA));
	for (;;)
		pause(); /* it is being sent */
}

static bool did(const void *times)
{
	return __atomic_load_n(&race_scene->did, __ATOMIC_ACQUIRE) >=
	       *(const uint32_t *)times;
}

static bool is_told(const void *times)
{
	return race_is_nonzero(&race_scene->enough) ||
	       __atomic_load_n(&race_scene->again, __ATOMIC_ACQUIRE) >=
		       *(const uint32_t *)times;
}

/* Puts a byte and sees to it that it is there; and at @off whenever it is told to. */
static void puts_again(bool far, uint64_t off)
{
	struct abi_port p = race_open(RACE_OTHER, far);

	race_meet(&p, far);
	IS(0, race_put(&p, RACE_DATA));
	race_flush(&p);
	race_tell(&race_scene->did);
	for (uint32_t n = 1;; n++) {
		AWAIT(is_told, &n);
		if (__atomic_load_n(&race_scene->again, __ATOMIC_ACQUIRE) < n)
			break;
		race_scene->result = race_put(&p, off);
		race_tell(&race_scene->did);
	}
	race_flush(&p);
}

/* It is told that it was enough, and has been right. */
static void has_put(pid_t other)
{
	race_tell(&race_scene->enough);
	race_ends_well(other);
	IS(0, race_scene->result);
}

static void puts_again_near(void)
{
	puts_again(false, RACE_DATA);
}

static void puts_again_far(void)
{
	puts_again(true, RACE_DATA);
}

static void puts_next_page_far(void)
{
	puts_again(true, NEXT_PAGE);
}

/* All of the window is memory that is there. */
static struct abi_port open_owner(bool far)
{
	for (int i = 0; i < ABI_WINDOW_BYTES; i += ABI_PAGE)
		race_scene->window[i] = 0;
	return race_open(RACE_OWNER, far);
}

static void report_what_is_at(uint64_t off)
{
	AWAIT(race_is_nonzero, &race_scene->look);
	race_scene->seen = (uint8_t)race_scene->window[off];
}

/* It takes its memory away, so that it is somewhere else, and has other memory there,
 * when it is told to. */
static void maps_anew(uint64_t off)
{
	char *at = race_scene->window, *away = abi_memory(ABI_WINDOW_BYTES);

	AWAIT(race_is_nonzero, &race_scene->go);
	CHECK(mremap(at, ABI_WINDOW_BYTES, ABI_WINDOW_BYTES,
		     MREMAP_MAYMOVE | MREMAP_FIXED, away) == away,
	      "it is moved away");
	CHECK(mmap(at, ABI_WINDOW_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
	      "other memory there");
	race_tell(&race_scene->went);
	report_what_is_at(off);
}

static void owns_and_maps_anew(void)
{
	open_owner(false);
	maps_anew(RACE_DATA);
}

static void owns_far_and_maps_anew(void)
{
	struct abi_port p;

	p = open_owner(true);
	race_meet(&p, true);
	maps_anew(RACE_DATA);
}

static void owns_far_and_maps_next_page_anew(void)
{
	struct abi_port p = open_owner(true);

	race_meet(&p, true);
	maps_anew(NEXT_PAGE);
}

/* The mapping stays; what is in it goes. */
static void owns_and_gives_back(void)
{
	open_owner(false);
	AWAIT(race_is_nonzero, &race_scene->go);
	IS(0, madvise(race_scene->window, ABI_WINDOW_BYTES, MADV_DONTNEED));
	race_tell(&race_scene->went);
	report_what_is_at(RACE_DATA);
}

/* The owner is asked, and has found it. */
static void is_seen(pid_t owner)
{
	race_tell(&race_scene->look);
	race_ends_well(owner);
	IS(RACE_VALUE, race_scene->seen, "in the new memory");
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
			race_ends_well(race_run(does_nothing));
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* It has found the owner gone and has ended, or holds what it takes for memory. */
static bool has_decided(const void *held)
{
	return race_is_there(held) || race_are_left(&(long){ 0 });
}

/* Not even the struct mm_struct of who is dead is looked into once it is freed: on a
 * kernel that poisons it, it would seem to be alive, and held. */
static void page_wanted_of_a_near_rank_that_has_ended(void)
{
	pid_t owner, other;

	race_stay_at("pin,held");
	owner = race_run(owns);
	other = race_run(puts_byte);
	AWAIT(race_is_there, "pin");
	race_kill(owner);
	forget_the_dead();
	race_stay_at("held");
	AWAIT(has_decided, "held");
	IS(0, race_been_at("held"), "whose memory is it?");
	race_stay_at("");
	race_ends_well(other);
	IS(-EHOSTDOWN, race_scene->result);
}

/* The memory is held, so it is there; the port is not. */
static void port_ends_before_a_page_is_pinned(void)
{
	pid_t owner, other;

	race_stay_at("held");
	owner = race_run(owns);
	other = race_run(puts_byte);
	AWAIT(race_is_there, "held");
	race_kill(owner);
	race_stay_at("");
	race_ends_well(other);
	IS(-EHOSTDOWN, race_scene->result);
}

static void port_ends_while_a_page_is_pinned(void)
{
	pid_t owner, other;

	race_stay_at("pinned");
	owner = race_run(owns);
	other = race_run(puts_byte);
	AWAIT(race_is_there, "pinned");
	kill(owner, SIGKILL);
	AWAIT(race_are_left, &(long){ 1 });
	CHECK(race_is_held(owner), "its end waits for who pins");
	race_stay_at("");
	waitpid(owner, NULL, 0);
	race_ends_well(other);
	IS(-EHOSTDOWN, race_scene->result);
}

static void window_is_mapped_anew_while_a_page_is_pinned(void)
{
	pid_t owner, other;

	race_stay_at("pinned");
	owner = race_run(owns_and_maps_anew);
	other = race_run(puts_byte);
	AWAIT(race_is_there, "pinned");
	race_tell(&race_scene->go);
	AWAIT(race_is_nonzero, &race_scene->went);
	race_stay_at("");
	race_ends_well(other);
	IS(0, race_scene->result);
	is_seen(owner);
}

/* Those around the page that was wanted, which nobody waits for. */
static void window_is_mapped_anew_while_pages_are_pinned_ahead(void)
{
	pid_t owner, other;

	race_stay_at("ahead");
	owner = race_run(owns_far_and_maps_next_page_anew);
	other = race_run(puts_next_page_far);
	AWAIT(race_is_there, "ahead");
	race_tell(&race_scene->go);
	AWAIT(race_is_nonzero, &race_scene->went);
	race_stay_at("");
	race_tell(&race_scene->again);
	has_put(other);
	is_seen(owner);
}

static bool is_held_or_did(const void *task)
{
	return did(&(uint32_t){ 2 }) || race_is_held(*(const pid_t *)task);
}

/* The pages are out of the table, and still in the page table: who pinned one now
 * would work on what goes. */
static void page_is_pinned_while_it_is_taken_away(void)
{
	pid_t owner, other;

	race_stay_at("taken");
	owner = race_run(owns_and_gives_back);
	other = race_run(puts_again_near);
	AWAIT(did, &(uint32_t){ 1 });
	race_tell(&race_scene->go);
	AWAIT(race_is_there, "taken");
	race_tell(&race_scene->again);
	AWAIT(is_held_or_did, &other);
	race_stay_at("");
	has_put(other);
	AWAIT(race_is_nonzero, &race_scene->went);
	is_seen(owner);
}

/* From a file whose pages are not mapped: a copy stops there, and is done again. */
static void puts_from_what_is_not_mapped(void)
{
	struct abi_port p = race_open(RACE_OTHER, false);
	struct sul_op op = abi_op(SUL_OP_PUT, RACE_OWNER, 0);
	int fd = memfd_create("races", MFD_CLOEXEC);
	char bytes[ABI_PAGE];
	void *source;

	memset(bytes, RACE_VALUE, sizeof(bytes));
	IS(ABI_PAGE, write(fd, bytes, sizeof(bytes)));
	source = mmap(NULL, ABI_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	race_meet(&p, false);
	op.addr = (uintptr_t)source;
	op.len = ABI_PAGE;
	race_scene->result = abi_submit(&p, &op, 1, NULL);
}

static void window_is_mapped_anew_while_the_source_is_faulted_in(void)
{
	pid_t owner, other;

	race_stay_at("source");
	owner = race_run(owns_and_maps_anew);
	other = race_run(puts_from_what_is_not_mapped);
	AWAIT(race_is_there, "source");
	race_tell(&race_scene->go);
	AWAIT(race_is_nonzero, &race_scene->went);
	race_stay_at("");
	race_ends_well(other);
	IS(0, race_scene->result);
	is_seen(owner);
}

/* The packet with a byte of the other has come in, and stays there, with the processor
 * that it came in on and the call that it was sent by.  If that is over, it was some
 * other packet. */
static void a_packet_stays(void)
{
	AWAIT(did, &(uint32_t){ 1 });
	for (uint32_t n = 2; n < TRIES; n++) {
		race_stay_at("packet");
		race_tell(&race_scene->again);
		AWAIT(race_is_there, "packet");
		usleep(A_WHILE_US);
		if (!did(&n))
			return;
		race_stay_at("");
	}
	CHECK(false, "other packets only");
}

static void window_is_mapped_anew_before_a_packet_is_taken_in(void)
{
	pid_t owner, other;

	owner = race_run(owns_far_and_maps_anew);
	other = race_run(puts_again_far);
	a_packet_stays();
	race_tell(&race_scene->go);
	AWAIT(race_is_nonzero, &race_scene->went);
	race_stay_at("");
	has_put(other);
	is_seen(owner);
}

static void port_ends_before_a_packet_is_taken_in(void)
{
	pid_t owner, other;

	owner = race_run(owns_far);
	other = race_run(puts_again_far);
	a_packet_stays();
	kill(owner, SIGKILL);
	AWAIT(race_are_left, &(long){ 1 });
	CHECK(race_is_held(owner), "its end waits for the packet");
	race_stay_at("");
	waitpid(owner, NULL, 0);
	race_kill(other);
}

static void port_ends_while_its_worker_pins(void)
{
	pid_t owner, other;

	race_stay_at("worker");
	owner = race_run(owns_far);
	other = race_run(puts_byte_far);
	AWAIT(race_is_there, "worker");
	kill(owner, SIGKILL);
	AWAIT(race_are_left, &(long){ 1 });
	CHECK(race_is_held(owner), "its end waits for the worker");
	race_stay_at("");
	waitpid(owner, NULL, 0);
	race_kill(other);
}

/* The descriptor is closed and the worker has not begun: it still has a port, and
 * the module stays. */
static void descriptor_is_closed_before_its_worker_ends_the_port(void)
{
	pid_t owner, keeper;

	race_stay_at("ending");
	owner = race_run(owns_and_shares);
	AWAIT(race_is_nonzero, &race_scene->keeper);
	race_kill(owner);
	AWAIT(race_is_there, "ending");
	keeper = (pid_t)race_scene->keeper;
	kill(keeper, SIGKILL);
	AWAIT(race_are_left, &(long){ 0 });
	if (race_is_held(keeper)) {
		IS(-1, (int)syscall(SYS_delete_module, "sul", O_NONBLOCK));
		IS(EWOULDBLOCK, errno);
	} else {
		CHECK(false, "its end waits for the worker");
	}
	race_stay_at("");
}

static void meets(void)
{
	struct abi_port p = race_open(RACE_OTHER, false);

	AWAIT(race_have_started, &(uint32_t){ RACE_RANKS });
	race_scene->result = abi_near(&p, RACE_OWNER, 0);
}

static void near_rank_ends_while_it_is_met(void)
{
	pid_t owner, other;

	race_stay_at("peer");
	owner = race_run(owns);
	other = race_run(meets);
	AWAIT(race_is_there, "peer");
	race_kill(owner);
	race_stay_at("");
	race_ends_well(other);
	IS(-EHOSTDOWN, race_scene->result);
}

/* Waits for its word, as one does who says so. */
static void sleeps(void)
{
	struct abi_port p = race_open(RACE_OWNER, false);
	struct sul_word *word = (void *)(p.window + RACE_WORD);
	struct sul_wait w = { .size = sizeof(w), .nr = 1 };

	w.timeout_ns = UINT64_C(1000000) * RACE_PATIENCE_MS;
	__atomic_add_fetch(&word->sleepers, SUL_WORD_SLEEPER, __ATOMIC_SEQ_CST);
	race_scene->result = abi_call(p.fd, SUL_IOC_WAIT, &w);
	race_scene->seen = (uint8_t)word->value;
}

static void notifies(void)
{
	struct abi_port p = race_open(RACE_OTHER, false);
	struct sul_op op = abi_op(SUL_OP_NOTIFY, RACE_OWNER, RACE_WORD);

	race_meet(&p, false);
	op.notify.value = RACE_VALUE;
	AWAIT(race_is_nonzero, &race_scene->go);
	IS(0, abi_submit_one(&p, op));
}

static void word_changes_before_who_waits_sleeps(void)
{
	pid_t owner, other;

	race_stay_at("wait");
	owner = race_run(sleeps);
	other = race_run(notifies);
	AWAIT(race_is_there, "wait");
	race_tell(&race_scene->go);
	race_ends_well(other);
	race_stay_at("");
	race_ends_well(owner);
	IS(0, race_scene->result);
	IS(RACE_VALUE, race_scene->seen);
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
	RACE(window_is_mapped_anew_while_pages_are_pinned_ahead),
	RACE(page_is_pinned_while_it_is_taken_away),
	RACE(window_is_mapped_anew_while_the_source_is_faulted_in),
	RACE(window_is_mapped_anew_before_a_packet_is_taken_in),
	RACE(port_ends_before_a_packet_is_taken_in),
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

	memset(race_scene, 0, sizeof(*race_scene));
	race_scene->window = abi_memory(ABI_WINDOW_BYTES);
	pid = race_run(r->run);
	waitpid(pid, &status, 0);
	race_stay_at(""); /* should it have been killed */
	munmap(race_scene->window, ABI_WINDOW_BYTES);
	return fuzz_all_gone(pinned) && !status && abi_all_well();
}

int kernel_races(int argc, char **argv)
{
	long pinned = fuzz_pages_pinned();
	int failed = 0;

	race_scene = mmap(NULL, ABI_PAGE, PROT_READ | PROT_WRITE,
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
