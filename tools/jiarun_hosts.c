/* SPDX-License-Identifier: MIT */
/* jiarun_hosts.c - see jiarun_hosts.h. */
#include "jiarun_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jiarun_wire.h"

enum {
	SLOTS_MAX = SUL_RANKS_MAX,
	HOSTS_MAX = SUL_RANKS_MAX,
	NAME_SIZE = JIARUN_HOST_NAME_MAX + 1,
	QUOTE_MAX = 60, /* bytes of what was given that a message repeats */
};

static bool refuse(char *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool refuse(char *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, JIARUN_HOSTS_ERR_MAX, fmt, ap);
	va_end(ap);
	return false;
}

/* --- names -------------------------------------------------------------------- */

/*
 * Names end up on ssh's command line, and in the commands of its configuration
 * (ProxyCommand): nothing that a shell or an option parser could take for
 * something else.
 */
static bool name_is_plain(const char *name)
{
	if (!isalnum((unsigned char)name[0]) && name[0] != '_' &&
	    name[0] != ':')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-:%+@", *name))
			return false;
	return true;
}

static bool name_is_self(const char *name, const char *self)
{
	static const char *const known[] = { "localhost",
					     "localhost.localdomain",
					     "ip6-localhost", "127.0.0.1",
					     "::1" };
	size_t label = strcspn(self, ".");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcasecmp(name, known[i]) == 0)
			return true;
	return strcasecmp(name, self) == 0 ||
	       (strlen(name) == label && strncasecmp(name, self, label) == 0);
}

/* --- the list ------------------------------------------------------------------- */

static struct jiarun_host *host_find(struct jiarun_hosts *hs, const char *name,
				     bool here)
{
	for (int i = 0; i < hs->nr; i++)
		if (here ? hs->host[i].here :
			   strcmp(hs->host[i].name, name) == 0)
			return &hs->host[i];
	return NULL;
}

/* One more at the end; NULL: no memory. */
static struct jiarun_host *host_append(struct jiarun_hosts *hs,
				       const char *name, bool here)
{
	struct jiarun_host *more;

	more = realloc(hs->host, ((size_t)hs->nr + 1) * sizeof(*more));
	if (!more)
		return NULL;
	hs->host = more;
	more = &more[hs->nr];
	*more = (struct jiarun_host){ .name = strdup(name), .here = here };
	if (!more->name)
		return NULL;
	hs->nr++;
	return more;
}

/* @slots < 0: not given. */
static bool host_add(struct jiarun_hosts *hs, const char *name,
		     const char *self, long slots, char *err)
{
	bool here = name_is_self(name, self);
	struct jiarun_host *h = host_find(hs, name, here);

	if (!h && hs->nr == HOSTS_MAX)
		return refuse(err, "more than %d hosts", HOSTS_MAX);
	if (!h)
		h = host_append(hs, here ? self : name, here);
	if (!h)
		return refuse(err, "out of memory");
	h->slots += slots < 0 ? 1 : (int)slots;
	if (h->slots > SLOTS_MAX)
		return refuse(err, "host %s has more than %d slots", name,
			      SLOTS_MAX);
	hs->slots_given |= slots >= 0;
	return true;
}

/* --- reading ------------------------------------------------------------------- */

/* Slots: 1 .. SLOTS_MAX. */
static bool slots_read(const char *text, long *slots)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*slots = strtol(text, &stop, 10);
	return !errno && !*stop && *slots >= 1 && *slots <= SLOTS_MAX;
}

/*
 * Cut @word, "NAME[:SLOTS]", into its two parts; an address of IPv6 stands in
 * brackets or has no slots.  @slots NULL: none were given.
 */
static bool word_cut(char *word, const char **slots)
{
	char *open = strchr(word, '['), *colon, *close;

	*slots = NULL;
	if (!open) {
		colon = strchr(word, ':');
		if (colon && !strchr(colon + 1, ':')) {
			*colon = '\0';
			*slots = colon + 1;
		}
		return true;
	}
	close = strchr(open, ']');
	if (!close || (open != word && open[-1] != '@') ||
	    (close[1] && close[1] != ':'))
		return false;
	if (close[1])
		*slots = close + 2;
	*close = '\0';
	memmove(open, open + 1, strlen(open));
	return true;
}

/* "NAME[:SLOTS]" of @len bytes; @given: slots that are said elsewhere, or -1. */
static bool word_add(struct jiarun_hosts *hs, const char *at, size_t len,
		     const char *self, long given, char *err)
{
	char word[NAME_SIZE + 16];
	const char *text;
	long slots = given;

	if (!len)
		return refuse(err, "a host's name is empty");
	if (len >= sizeof(word))
		return refuse(err, "'%.*s...': a host's name is too long",
			      QUOTE_MAX, at);
	memcpy(word, at, len);
	word[len] = '\0';
	if (!word_cut(word, &text) || strlen(word) > JIARUN_HOST_NAME_MAX ||
	    !name_is_plain(word))
		return refuse(err,
			      "'%.*s' is no host: name, user@name or address, "
			      "with :SLOTS behind it if need be",
			      (int)(len < QUOTE_MAX ? len : QUOTE_MAX), at);
	if (text && (given >= 0 || !slots_read(text, &slots)))
		return refuse(err, "'%.*s': slots are a number from 1 to %d",
			      (int)(len < QUOTE_MAX ? len : QUOTE_MAX), at,
			      SLOTS_MAX);
	return host_add(hs, word, self, slots, err);
}

bool jiarun_hosts_add(struct jiarun_hosts *hs, const char *list,
		      const char *self, char err[JIARUN_HOSTS_ERR_MAX])
{
	for (;;) {
		size_t len = strcspn(list, ",");

		if (!word_add(hs, list, len, self, -1, err))
			return false;
		if (!list[len])
			return true;
		list += len + 1;
	}
}

bool jiarun_hosts_line(struct jiarun_hosts *hs, const char *line,
		       const char *self, char err[JIARUN_HOSTS_ERR_MAX])
{
	static const char key[] = "slots=", blanks[] = " \t\r\n";
	size_t end = strcspn(line, "#");
	char text[NAME_SIZE + 64], *save, *word, *behind;
	long slots = -1;

	if (end >= sizeof(text))
		return refuse(err, "the line is too long");
	memcpy(text, line, end);
	text[end] = '\0';
	word = strtok_r(text, blanks, &save);
	if (!word)
		return true;
	behind = strtok_r(NULL, blanks, &save);
	if (behind && (strncmp(behind, key, sizeof(key) - 1) != 0 ||
		       !slots_read(behind + sizeof(key) - 1, &slots) ||
		       strtok_r(NULL, blanks, &save)))
		return refuse(err,
			      "behind %.*s may stand slots=N, N from 1 to %d, "
			      "and nothing else",
			      QUOTE_MAX, word, SLOTS_MAX);
	return word_add(hs, word, strlen(word), self, slots, err);
}

bool jiarun_hosts_file(struct jiarun_hosts *hs, const char *path,
		       const char *self, char err[JIARUN_HOSTS_ERR_MAX])
{
	char why[JIARUN_HOSTS_ERR_MAX], *line = NULL;
	FILE *f = fopen(path, "re");
	size_t room = 0;
	int nr = 0;
	bool ok = true;

	if (!f)
		return refuse(err, "%s: %s", path, strerror(errno));
	while (ok && getline(&line, &room, f) > 0) {
		nr++;
		ok = jiarun_hosts_line(hs, line, self, why);
	}
	if (!ok)
		refuse(err, "%.200s:%d: %.250s", path, nr, why);
	else if (ferror(f))
		ok = refuse(err, "%s: %s", path, strerror(errno));
	else if (!hs->nr)
		ok = refuse(err, "%s names no host", path);
	free(line);
	fclose(f);
	return ok;
}

/* --- placing -------------------------------------------------------------------- */

static int slots_total(const struct jiarun_hosts *hs)
{
	int sum = 0; /* at most HOSTS_MAX * SLOTS_MAX */

	for (int i = 0; i < hs->nr; i++)
		sum += hs->host[i].slots;
	return sum;
}

/* Forget the hosts from @nr on. */
static void hosts_cut(struct jiarun_hosts *hs, int nr)
{
	for (int i = nr; i < hs->nr; i++)
		free(hs->host[i].name);
	hs->nr = nr;
}

/* Host by host; even: as few on each as will do. */
static void share_out(struct jiarun_hosts *hs, int ranks, bool even,
		      uint16_t *host_of)
{
	int rank = 0, i;

	for (i = 0; i < hs->nr && rank < ranks; i++) {
		struct jiarun_host *h = &hs->host[i];
		int most = even ? ranks / hs->nr + (i < ranks % hs->nr) :
				  h->slots;

		for (h->ranks = 0; h->ranks < most && rank < ranks; h->ranks++)
			host_of[rank++] = (uint16_t)i;
	}
	hosts_cut(hs, i);
}

int jiarun_hosts_place(struct jiarun_hosts *hs, int ranks, uint16_t *host_of,
		       int room, char err[JIARUN_HOSTS_ERR_MAX])
{
	int slots = slots_total(hs), n = ranks ? ranks : slots;

	if (n > room) {
		refuse(err,
		       "the hosts have %d slots; a job has at most %d ranks",
		       slots, room);
		return 0;
	}
	if (n > slots && hs->slots_given) {
		refuse(err,
		       "-n %d: the hosts have %d slots; give them more, or "
		       "none, and the ranks are shared out evenly",
		       n, slots);
		return 0;
	}
	share_out(hs, n, n > slots, host_of);
	return n;
}

int jiarun_hosts_here(const struct jiarun_hosts *hs)
{
	int i = 0;

	while (i < hs->nr && !hs->host[i].here)
		i++;
	return i;
}

void jiarun_hosts_free(struct jiarun_hosts *hs)
{
	hosts_cut(hs, 0);
	free(hs->host);
	*hs = (struct jiarun_hosts){ 0 };
}
