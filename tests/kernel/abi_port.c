/* SPDX-License-Identifier: MIT */
/* abi_port.c - PORT: what it takes, and what a user may have. */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"

static int port_once(const struct sul_port_spec *spec)
{
	int fd = abi_port_as(spec);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* PORT with one field of another value. */
#define WITH(result, field, value)                             \
	do {                                                   \
		struct sul_port_spec s_ = abi_spec(1, 4);      \
		s_.field = (value);                            \
		IS(result, port_once(&s_), #field " " #value); \
	} while (0)

void abi_port_checks_every_argument(void)
{
	struct sul_port_spec no_key = abi_spec(1, 4);

	WITH(0, flags, 0);
	WITH(0, flags, SUL_PORT_TRACE);
	for (unsigned int bit = 1; bit < 32; bit++)
		WITH(-EINVAL, flags, 1u << bit);
	WITH(-EINVAL, rank, 4);
	WITH(-EINVAL, rank, UINT32_MAX);
	WITH(-EINVAL, ranks, 0);
	WITH(-EINVAL, ranks, 1);
	WITH(0, ranks, SUL_ABI_RANKS_MAX);
	WITH(-EINVAL, ranks, SUL_ABI_RANKS_MAX + 1);
	WITH(-EINVAL, ranks, UINT32_MAX);
	WITH(0, auth, SUL_ABI_AUTH_OFF);
	WITH(-EINVAL, auth, SUL_ABI_AUTH_NR);
	WITH(-EINVAL, session, 0);
	WITH(0, span, 8);
	WITH(-EINVAL, span, 4);
	WITH(-EINVAL, span, 0);
	WITH(-EINVAL, span, 63);
	WITH(-EINVAL, span, 2048);
	WITH(0, packet_bytes, 548);
	WITH(-EINVAL, packet_bytes, 547);
	WITH(0, packet_bytes, 8972);
	WITH(-EINVAL, packet_bytes, 8973);
	WITH(-EINVAL, silence_ns, 0);
	WITH(-EINVAL, pin_bytes, 0);
	WITH(-EINVAL, pin_bytes, 15 * ABI_PAGE);
	WITH(0, landing_bytes, 0);
	WITH(-EINVAL, landing_bytes, ABI_PAGE - 8);
	WITH(-EINVAL, landing_bytes, SUL_ABI_LANDING_MAX + ABI_PAGE);
	WITH(0, loss_ppm, 1000000);
	WITH(-EINVAL, loss_ppm, 1000001);
	memset(no_key.key, 0, sizeof(no_key.key));
	IS(-EINVAL, port_once(&no_key));
}

void abi_encryption_is_there_if_hello_says_so(void)
{
	struct sul_hello h = { .size = sizeof(h), .version = SUL_ABI_VERSION };
	struct sul_port_spec s = abi_spec(0, 2);

	IS(0, abi_call(abi_open(), SUL_IOC_HELLO, &h));
	s.auth = SUL_ABI_AUTH_AEAD;
	IS(h.features & SUL_FEATURE_AEAD ? 0 : -EOPNOTSUPP, port_once(&s));
}

void abi_a_descriptor_is_one_port(void)
{
	struct sul_port_spec s = abi_spec(0, 4);
	int fd = abi_port_as(&s);

	IS(-EBUSY, abi_call(fd, SUL_IOC_PORT, &s));
	s.rank = 1;
	IS(-EBUSY, abi_call(fd, SUL_IOC_PORT, &s));
}

void abi_a_rank_is_there_once(void)
{
	struct sul_port_spec s = abi_spec(2, 4);
	int fd = abi_port_as(&s);

	CHECK(fd >= 0, "PORT: %d", fd);
	IS(-EADDRINUSE, port_once(&s));
	s.session = 99;
	IS(-EADDRINUSE, port_once(&s), "of another session");
	close(fd);
	IS(0, port_once(&s), "after the other is closed");
}

void abi_another_job_may_have_that_rank(void)
{
	struct sul_port_spec s = abi_spec(2, 4);
	int fd = abi_port_as(&s);

	CHECK(fd >= 0, "PORT: %d", fd);
	s.key[SUL_ABI_KEY_BYTES - 1] ^= 0x80;
	IS(0, port_once(&s));
}

void abi_ranks_of_a_job_agree_how_many_they_are(void)
{
	struct sul_port_spec s = abi_spec(2, 4);
	int fd = abi_port_as(&s);

	CHECK(fd >= 0, "PORT: %d", fd);
	s.rank = 1;
	s.ranks = 5;
	IS(-EINVAL, port_once(&s));
}

/* --- what a user may have ----------------------------------------------------------- */

/* The kernel adds up to two pages to what it charges. */
enum {
	MEMLOCK_BYTES = ABI_PIN_BYTES + 4 * ABI_PAGE,
	MEMLOCK_HAD_BYTES = MEMLOCK_BYTES - 2 * ABI_PAGE,
};

static void limited(void *ctx)
{
	struct sul_port_spec s = abi_spec(0, 2);
	int fd;

	(void)ctx;
	abi_become(ABI_UID_ONE, MEMLOCK_BYTES);
	s.pin_bytes = 1 << 20;
	fd = abi_hello();
	IS(-ENOMEM, abi_call(fd, SUL_IOC_PORT, &s));
	IS(MEMLOCK_HAD_BYTES, (long)s.pin_bytes, "what could be had");
	IS(0, abi_call(fd, SUL_IOC_PORT, &s), "what could be had");
	s = abi_spec(1, 2);
	IS(-ENOMEM, port_once(&s), "more");
	close(fd);
	IS(0, port_once(&s), "after the other is closed");
}

void abi_locked_memory_is_charged_to_the_user(void)
{
	abi_in_child(limited, NULL);
}

/* Less than the least that a port needs. */
static void too_limited(void *ctx)
{
	struct sul_port_spec s = abi_spec(0, 2);

	(void)ctx;
	abi_become(ABI_UID_ONE, ABI_PIN_BYTES);
	IS(-ENOMEM, port_once(&s));
}

void abi_a_limit_of_64_kib_is_refused(void)
{
	abi_in_child(too_limited, NULL);
}

static _Noreturn void killed_holder(void)
{
	struct sul_port_spec s = abi_spec(0, 2);

	abi_become(ABI_UID_ONE, MEMLOCK_BYTES);
	abi_port_as(&s);
	raise(SIGKILL);
	abort();
}

static void limited_after(void *ctx)
{
	struct sul_port_spec s = abi_spec(1, 2);

	(void)ctx;
	abi_become(ABI_UID_ONE, MEMLOCK_BYTES);
	IS(0, port_once(&s));
}

void abi_locked_memory_of_the_killed_is_free_again(void)
{
	pid_t pid = fork();

	if (!pid)
		killed_holder();
	waitpid(pid, NULL, 0);
	abi_in_child(limited_after, NULL);
}

static long module_parameter(const char *name)
{
	char path[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/sul/parameters/%s", name);
	f = fopen(path, "re");
	if (!f ||
	    fscanf(f, "%ld", &value) != 1) // NOLINT(cert-err34-c): checked
		abi_found(__FILE__, __LINE__, "no %s", path);
	if (f)
		fclose(f);
	return value;
}

static void many_ports(void *ctx)
{
	const long *most = ctx;
	struct rlimit files = { (rlim_t)*most + 64, (rlim_t)*most + 64 };
	struct sul_port_spec s = abi_spec(0, SUL_ABI_RANKS_MAX);

	if (setrlimit(RLIMIT_NOFILE, &files))
		abort();
	abi_become(ABI_UID_TWO, RLIM_INFINITY);
	s.landing_bytes = 0;
	for (long i = 0; i < *most; i++, s.rank++) {
		int fd = abi_port_as(&s);

		if (fd < 0) {
			abi_found(__FILE__, __LINE__, "port %ld of %ld: %s", i,
				  *most, strerror(-fd));
			return;
		}
	}
	IS(-EMFILE, abi_port_as(&s));
}

void abi_a_user_has_so_many_ports(void)
{
	long most = module_parameter("ports");

	if (most > 0 && most < SUL_ABI_RANKS_MAX)
		abi_in_child(many_ports, &most);
	else
		CHECK(false, "parameter ports is %ld", most);
}

void abi_a_port_has_so_much_kernel_memory(void)
{
	struct sul_port_spec s = abi_spec(0, 2);

	s.pin_bytes = UINT64_C(1) << 40;
	IS(-ENOBUFS, port_once(&s));
}

/* --- mappings -------------------------------------------------------------------------- */

static int map(int fd, uint64_t off, size_t bytes, int prot, int flags)
{
	void *at = mmap(NULL, bytes, prot, flags, fd, (off_t)off);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, bytes);
	return 0;
}

void abi_only_what_is_there_can_be_mapped(void)
{
	struct sul_port_spec s = abi_spec(0, 2), bare = abi_spec(1, 2);
	int fd = abi_port_as(&s), none;

	bare.landing_bytes = 0;
	none = abi_port_as(&bare);
	IS(0, map(fd, SUL_MAP_STATUS, ABI_PAGE, PROT_READ, MAP_SHARED));
	IS(0,
	   map(fd, SUL_MAP_LANDING, ABI_LANDING_BYTES, PROT_READ, MAP_SHARED));
	IS(-EINVAL,
	   map(fd, SUL_MAP_STATUS, 2 * ABI_PAGE, PROT_READ, MAP_SHARED));
	IS(-EINVAL, map(fd, ABI_PAGE, ABI_PAGE, PROT_READ, MAP_SHARED));
	IS(-EINVAL, map(fd, SUL_MAP_LANDING, ABI_PAGE, PROT_READ, MAP_SHARED));
	IS(-EINVAL, map(fd, SUL_MAP_LANDING, ABI_LANDING_BYTES + ABI_PAGE,
			PROT_READ, MAP_SHARED));
	IS(-EINVAL, map(fd, SUL_MAP_LANDING + ABI_PAGE,
			ABI_LANDING_BYTES - ABI_PAGE, PROT_READ, MAP_SHARED));
	IS(-EINVAL,
	   map(none, SUL_MAP_LANDING, ABI_PAGE, PROT_READ, MAP_SHARED));
}

void abi_mappings_can_only_be_read(void)
{
	static const int prots[] = { PROT_WRITE, PROT_READ | PROT_WRITE,
				     PROT_EXEC, PROT_READ | PROT_EXEC };
	struct sul_port_spec s = abi_spec(0, 2);
	int fd = abi_port_as(&s);

	for (int i = 0; i < 4; i++) {
		IS(-EACCES,
		   map(fd, SUL_MAP_STATUS, ABI_PAGE, prots[i], MAP_SHARED));
		IS(-EACCES, map(fd, SUL_MAP_LANDING, ABI_LANDING_BYTES,
				prots[i], MAP_SHARED));
	}
	IS(-EACCES, map(fd, SUL_MAP_STATUS, ABI_PAGE, PROT_READ, MAP_PRIVATE));
}

void abi_mappings_cannot_be_made_writable(void)
{
	static const uint64_t off[] = { SUL_MAP_STATUS, SUL_MAP_LANDING };
	static const size_t bytes[] = { ABI_PAGE, ABI_LANDING_BYTES };
	struct sul_port_spec s = abi_spec(0, 2);
	int fd = abi_port_as(&s);

	for (int i = 0; i < 2; i++) {
		void *at = mmap(NULL, bytes[i], PROT_READ, MAP_SHARED, fd,
				(off_t)off[i]);

		CHECK(at != MAP_FAILED, "mmap: %d", errno);
		IS(-EACCES,
		   mprotect(at, ABI_PAGE, PROT_READ | PROT_WRITE) ? -errno : 0);
		IS(-EACCES,
		   mprotect(at, ABI_PAGE, PROT_READ | PROT_EXEC) ? -errno : 0);
		CHECK(mremap(at, bytes[i], 2 * bytes[i], MREMAP_MAYMOVE) ==
			      MAP_FAILED,
		      "it grows");
	}
}

/* /proc/PID/mem writes to what the process itself may not write to. */
void abi_mappings_cannot_be_forced(void)
{
	struct abi_port p = abi_port(0, 1);
	int fd = open("/proc/self/mem", O_RDWR);
	uint64_t junk = UINT64_MAX;

	CHECK(pwrite(fd, &junk, sizeof(junk),
		     (off_t)(uintptr_t)&p.status->executed) < 0,
	      "the status was written");
	CHECK(pwrite(fd, &junk, sizeof(junk), (off_t)(uintptr_t)p.landing) < 0,
	      "the landing area was written");
	IS(0, (long)p.status->executed);
}

static void opens(void *ctx)
{
	const gid_t *group = ctx;

	if (setgroups(1, group) ||
	    setresuid(ABI_UID_ONE, ABI_UID_ONE, ABI_UID_ONE))
		abort();
	IS(*group == ABI_GID_SUL ? 0 : -EACCES, abi_open() < 0 ? -errno : 0);
}

void abi_the_device_is_for_its_group(void)
{
	gid_t group = ABI_GID_SUL, other = ABI_UID_TWO;

	if (setresgid(other, other, other))
		abort();
	abi_in_child(opens, &group);
	abi_in_child(opens, &other);
}
