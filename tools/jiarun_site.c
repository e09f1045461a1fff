/* SPDX-License-Identifier: MIT */
/*
 * jiarun_site.c - from an address in a rank to "file.c:123 (function)".
 *
 * A rank that fails has no business starting addr2line, and may be dead before
 * anybody can ask; so texts carry "@{0xADDRESS}" and the launcher translates.
 * What is mapped where it learns from one living rank: without address
 * randomisation it is the same in all of them.  If it never saw one (all were
 * too quick), the program is assumed where the kernel puts it then.
 *
 * Addresses are return addresses: one less is inside the call.
 */
#include "jiarun.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define PIE_BASE 0x555555554000u
#elif defined(__aarch64__)
#define PIE_BASE 0xaaaaaaaa0000u
#else
#define PIE_BASE 0u
#endif

enum {
	IMAGES_MAX = 64,
	MEMO_MAX = 64,
	TEXT_MAX = 256,
	ADDR2LINE_MS = 3000, /* on programs with much debug information */
};

struct image {
	uint64_t base, start, end; /* base: where the file's byte 0 is */
	bool fixed; /* linked for its address: not position-independent */
	char path[PATH_MAX];
};

struct memo {
	uint64_t addr;
	char text[TEXT_MAX];
};

struct jiarun_sites {
	char program[PATH_MAX]; /* "" if it was not found */
	struct image *image;
	size_t images;
	struct memo memo[MEMO_MAX];
	size_t memos;
	int64_t most_ms, left_ms; /* for addr2line, in one text */
};

/* As execvp() looks for it. */
static void program_find(const char *name, char out[PATH_MAX])
{
	const char *path = getenv("PATH"), *end;

	out[0] = '\0';
	if (strchr(name, '/') || !path) {
		snprintf(out, PATH_MAX, "%s", name);
		return;
	}
	for (; *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - path), path,
			 name);
		if (access(out, X_OK) == 0)
			return;
	}
	out[0] = '\0';
}

struct jiarun_sites *jiarun_sites_new(const char *program, int64_t most_ms)
{
	struct jiarun_sites *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	program_find(program, s->program);
	s->most_ms = most_ms < ADDR2LINE_MS ? most_ms : ADDR2LINE_MS;
	return s;
}

void jiarun_sites_program(struct jiarun_sites *s, const char *path)
{
	if (s && path[0])
		snprintf(s->program, sizeof(s->program), "%s", path);
}

void jiarun_sites_free(struct jiarun_sites *s)
{
	if (!s)
		return;
	free(s->image);
	free(s);
}

/* ET_EXEC, ET_DYN, or ET_NONE if it is no ELF file. */
static int elf_type(const char *path)
{
	unsigned char head[20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return ET_NONE;
	len = read(fd, head, sizeof(head));
	close(fd);
	if (len != (ssize_t)sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return ET_NONE;
	return head[EI_DATA] == ELFDATA2LSB ? head[16] : head[17];
}

static void image_add(struct jiarun_sites *s, const char *path, uint64_t start,
		      uint64_t end)
{
	struct image *im = s->images ? &s->image[s->images - 1] : NULL;
	struct image *more;

	if (im && strcmp(im->path, path) == 0) {
		im->end = end;
		return;
	}
	if (s->images == IMAGES_MAX)
		return;
	more = realloc(s->image, (s->images + 1) * sizeof(*more));
	if (!more)
		return;
	s->image = more;
	im = &s->image[s->images++];
	im->base = im->start = start;
	im->end = end;
	im->fixed = elf_type(path) == ET_EXEC;
	snprintf(im->path, sizeof(im->path), "%s", path);
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE   /PATH" */
bool jiarun_sites_learn(struct jiarun_sites *s, pid_t pid)
{
	char name[64], *line = NULL, *path, *stop;
	uint64_t start, end;
	size_t room = 0;
	FILE *f;

	if (!s)
		return false;
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (getline(&line, &room, f) > 0) {
		path = strchr(line, '/');
		if (!path || strstr(line, "/memfd:") || strstr(line, "/dev/"))
			continue;
		start = strtoull(line, &stop, 16);
		end = *stop == '-' ? strtoull(stop + 1, NULL, 16) : start;
		path[strcspn(path, "\n")] = '\0';
		image_add(s, path, start, end);
	}
	free(line);
	fclose(f);
	return s->images > 0;
}

static void image_assume(struct jiarun_sites *s)
{
	int type = elf_type(s->program);

	if (type == ET_EXEC)
		image_add(s, s->program, 0, UINT64_MAX);
	else if (type == ET_DYN && PIE_BASE != 0)
		image_add(s, s->program, PIE_BASE, PIE_BASE + (1u << 30));
}

static const struct image *image_of(struct jiarun_sites *s, uint64_t addr)
{
	if (!s->images)
		image_assume(s);
	for (size_t i = 0; i < s->images; i++) {
		if (addr >= s->image[i].start && addr < s->image[i].end)
			return &s->image[i];
	}
	return NULL;
}

static _Noreturn void addr2line_exec(const char *path, uint64_t addr, int out)
{
	char where[32];
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDERR_FILENO);
	}
	dup2(out, STDOUT_FILENO);
	snprintf(where, sizeof(where), "0x%llx", (unsigned long long)addr);
	execlp("addr2line", "addr2line", "-f", "-C", "-e", path, where,
	       (char *)NULL);
	_exit(JIARUN_NOT_FOUND);
}

/* What it prints, "function\nfile:line\n", in @buf; false: nothing by @end. */
static bool addr2line_run(const char *path, uint64_t addr, int64_t end,
			  char *buf, size_t room)
{
	struct pollfd p;
	size_t len = 0;
	ssize_t n = 1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		addr2line_exec(path, addr, fds[1]);
	close(fds[1]);
	p.fd = fds[0];
	p.events = POLLIN;
	while (pid > 0 && n > 0 && len + 1 < room) {
		int64_t left = end - jiarun_now_ms();

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			break;
		n = read(fds[0], buf + len, room - len - 1);
		len += n > 0 ? (size_t)n : 0;
	}
	close(fds[0]);
	buf[len] = '\0';
	if (pid > 0) {
		kill(pid, SIGKILL); /* no harm if it has ended */
		waitpid(pid, NULL, 0);
	}
	return len > 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool describe_by_line(struct jiarun_sites *s, const struct image *im,
			     uint64_t addr, char *text, size_t room)
{
	uint64_t inside = (im->fixed ? addr : addr - im->base) - 1;
	char out[2048], *function, *line, *more, *rest = NULL;
	int64_t begin = jiarun_now_ms();
	bool ran = s->left_ms > 0 &&
		   addr2line_run(im->path, inside, begin + s->left_ms, out,
				 sizeof(out));

	s->left_ms -= jiarun_now_ms() - begin;
	if (!ran)
		return false;
	function = strtok_r(out, "\n", &rest);
	line = strtok_r(NULL, "\n", &rest);
	if (!function || !line || line[0] == '?')
		return false;
	more = strstr(line, " (discriminator "); /* not a blank in a path */
	if (more)
		*more = '\0';
	if (function[0] == '?')
		snprintf(text, room, "%.200s", base_name(line));
	else
		snprintf(text, room, "%.120s (%.120s)", base_name(line),
			 function);
	return true;
}

static void describe(struct jiarun_sites *s, uint64_t addr, char *text,
		     size_t room)
{
	const struct image *im = image_of(s, addr);

	if (!im)
		snprintf(text, room, "0x%llx", (unsigned long long)addr);
	else if (!describe_by_line(s, im, addr, text, room))
		snprintf(text, room, "%.200s+0x%llx", base_name(im->path),
			 (unsigned long long)(addr - im->base));
}

const char *jiarun_site_text(struct jiarun_sites *s, uint64_t addr)
{
	struct memo *m;

	for (size_t i = 0; i < s->memos; i++) {
		if (s->memo[i].addr == addr)
			return s->memo[i].text;
	}
	m = &s->memo[s->memos < MEMO_MAX ? s->memos++ : MEMO_MAX - 1];
	m->addr = addr;
	describe(s, addr, m->text, sizeof(m->text));
	return m->text;
}

void jiarun_sites_begin(struct jiarun_sites *s)
{
	if (s)
		s->left_ms = s->most_ms;
}

void jiarun_sites_print(struct jiarun_sites *s, FILE *f, const char *text)
{
	const char *mark;
	uint64_t addr;
	char *stop;

	jiarun_sites_begin(s);
	while ((mark = strstr(text, "@{0x"))) {
		addr = strtoull(mark + 2, &stop, 16);
		fwrite(text, 1, (size_t)(mark - text), f);
		text = mark;
		if (*stop == '}' && s) {
			fputs(jiarun_site_text(s, addr), f);
			text = stop + 1;
		} else {
			fwrite(text, 1, 2, f);
			text += 2;
		}
	}
	fputs(text, f);
}
