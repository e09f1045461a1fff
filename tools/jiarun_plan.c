/* SPDX-License-Identifier: MIT */
/* jiarun_plan.c - see jiarun_plan.h. */
#include "jiarun_plan.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PLAN_BYTES_MAX = 8 << 20, /* the kernel takes 6 MiB at most */
};

static const char prefix[] = "JIA_";
#define PREFIX_LEN (sizeof(prefix) - 1)

/* What a shell's ulimit may have set and a rank may notice. */
static const int limits[] = { RLIMIT_STACK, RLIMIT_CORE,   RLIMIT_NOFILE,
			      RLIMIT_FSIZE, RLIMIT_DATA,   RLIMIT_AS,
			      RLIMIT_CPU,   RLIMIT_MEMLOCK };
#define NR_LIMITS (sizeof(limits) / sizeof(limits[0]))

/* --- strings ------------------------------------------------------------------- */

static bool strings_add(struct jiarun_strings *s, const void *text, size_t len)
{
	char **more = realloc(s->at, (s->nr + 2) * sizeof(*more));
	char *copy = more ? malloc(len + 1) : NULL;

	if (more)
		s->at = more;
	if (!copy)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	s->at[s->nr++] = copy;
	s->at[s->nr] = NULL;
	return true;
}

static void strings_free(struct jiarun_strings *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->at[i]);
	free(s->at);
}

static struct jiarun_bytes bytes_of(const char *text)
{
	return (struct jiarun_bytes){ text, strlen(text) };
}

/* --- making -------------------------------------------------------------------- */

static void place_set(struct jiarun_plan *p, int rank, int host)
{
	unsigned char *at = p->places + 2 * (size_t)rank;

	at[0] = (unsigned char)host;
	at[1] = (unsigned char)(host >> 8);
}

int jiarun_plan_host_of(const struct jiarun_plan *p, int rank)
{
	const unsigned char *at = p->places + 2 * (size_t)rank;

	return at[0] | at[1] << 8;
}

/* getrlimit() with the type that it wants. */
static bool limit_get(int which, struct rlimit *lim)
{
	return getrlimit((__rlimit_resource_t)which, lim) == 0;
}

static void limits_note(struct jiarun_plan *p,
			const struct jiarun_inherited *in)
{
	struct rlimit lim;

	for (size_t i = 0; i < NR_LIMITS; i++) {
		if (limits[i] == RLIMIT_NOFILE)
			lim = in->files;
		else if (!limit_get(limits[i], &lim))
			continue;
		p->limit[limits[i]] = lim.rlim_cur;
		p->limits |= 1u << limits[i];
	}
}

static bool is_ours(const char *variable)
{
	return strncmp(variable, prefix, PREFIX_LEN) == 0 &&
	       strncmp(variable, SUL_JOB_ENV "=", sizeof(SUL_JOB_ENV)) != 0;
}

static bool is_exported(const char *variable, const struct jiarun_options *o)
{
	for (size_t i = 0; i < o->exports; i++) {
		size_t len = strlen(o->export[i]);

		if (strncmp(variable, o->export[i], len) == 0 &&
		    variable[len] == '=')
			return true;
	}
	return false;
}

static bool strings_make(struct jiarun_plan *p, const struct jiarun_options *o)
{
	bool ok = true;

	for (int h = 0; h < o->hosts.nr; h++)
		ok = ok && strings_add(&p->name, o->hosts.host[h].name,
				       strlen(o->hosts.host[h].name));
	for (char **v = environ; *v; v++)
		if (is_ours(*v) || is_exported(*v, o))
			ok = ok && strings_add(&p->variable, *v, strlen(*v));
	for (char **a = o->argv; *a; a++)
		ok = ok && strings_add(&p->argument, *a, strlen(*a));
	return ok;
}

int jiarun_plan_make(struct jiarun_plan *p, const struct jiarun_options *o,
		     const struct jiarun_inherited *in,
		     const struct sul_job *job)
{
	p->ranks = o->ranks;
	p->hosts = o->hosts.nr;
	p->input_rank = o->debug_rank >= 0 ? o->debug_rank : 0;
	p->silence_ms = o->silence_ms;
	p->stats = o->stats;
	memcpy(p->key, sul_job_key(job), sizeof(p->key));
	for (int r = 0; r < o->ranks; r++)
		place_set(p, r, o->host_of[r]);
	limits_note(p, in);
	p->directory = getcwd(NULL, 0);
	if (!p->directory)
		return -errno;
	return strings_make(p, o) ? 0 : -ENOMEM;
}

/* --- telling ------------------------------------------------------------------- */

static void tell_job(const struct jiarun_plan *p, int host,
		     struct jiarun_message *m)
{
	m->type = JIARUN_WIRE_job;
	m->job = (struct jiarun_wire_job){
		.ranks = (uint64_t)p->ranks,
		.hosts = (uint64_t)p->hosts,
		.host = (uint64_t)host,
		.silence_ms = (uint64_t)p->silence_ms,
		.input_rank = (uint64_t)p->input_rank,
		.stats = p->stats,
		.key = { p->key, sizeof(p->key) },
	};
}

static void tell_limit(const struct jiarun_plan *p, int which,
		       struct jiarun_message *m)
{
	m->type = JIARUN_WIRE_limit;
	m->limit =
		(struct jiarun_wire_limit){ (uint64_t)which, p->limit[which] };
}

/* Whether message *@i is one of a section of @nr; if not, it counts on in the
 * next section. */
static bool in_section(size_t *i, size_t nr)
{
	if (*i < nr)
		return true;
	*i -= nr;
	return false;
}

bool jiarun_plan_message(const struct jiarun_plan *p, int host, size_t i,
			 struct jiarun_message *m)
{
	memset(m, 0, sizeof(*m));
	if (in_section(&i, 1)) {
		tell_job(p, host, m);
	} else if (in_section(&i, p->name.nr)) {
		m->type = JIARUN_WIRE_host;
		m->host.name = bytes_of(p->name.at[i]);
	} else if (in_section(&i, 1)) {
		m->type = JIARUN_WIRE_places;
		m->places.hosts = (struct jiarun_bytes){ p->places,
							 2 * (size_t)p->ranks };
	} else if (in_section(&i, NR_LIMITS)) {
		tell_limit(p, limits[i], m);
	} else if (in_section(&i, 1)) {
		m->type = JIARUN_WIRE_directory;
		m->directory.path = bytes_of(p->directory);
	} else if (in_section(&i, p->variable.nr)) {
		m->type = JIARUN_WIRE_variable;
		m->variable.text = bytes_of(p->variable.at[i]);
	} else if (in_section(&i, p->argument.nr)) {
		m->type = JIARUN_WIRE_argument;
		m->argument.text = bytes_of(p->argument.at[i]);
	} else if (in_section(&i, 1)) {
		m->type = JIARUN_WIRE_go;
	} else {
		return false;
	}
	return true;
}

/* --- taking -------------------------------------------------------------------- */

static int take_job(struct jiarun_plan *p, const struct jiarun_wire_job *m,
		    char *why)
{
	if (p->begun)
		return jiarun_wire_refuse(why, "a second job");
	if (!m->ranks || m->host >= m->hosts ||
	    m->key.len != SUL_JOB_KEY_BYTES || !m->silence_ms)
		return jiarun_wire_refuse(why, "a job that makes no sense");
	p->begun = true;
	p->ranks = (int)m->ranks;
	p->hosts = (int)m->hosts;
	p->host = (int)m->host;
	p->silence_ms = (int64_t)m->silence_ms;
	p->input_rank = (int)m->input_rank;
	p->stats = m->stats;
	memcpy(p->key, m->key.at, sizeof(p->key));
	return 0;
}

static int take_places(struct jiarun_plan *p, struct jiarun_bytes hosts,
		       char *why)
{
	if (p->placed || hosts.len != 2 * (size_t)p->ranks)
		return jiarun_wire_refuse(why,
					  "places of another number of ranks");
	memcpy(p->places, hosts.at, hosts.len);
	for (int r = 0; r < p->ranks; r++)
		if (jiarun_plan_host_of(p, r) >= p->hosts)
			return jiarun_wire_refuse(
				why, "a rank on a host that is none");
	p->placed = true;
	return 0;
}

static int take_string(struct jiarun_plan *p, struct jiarun_strings *s,
		       struct jiarun_bytes b, char *why)
{
	p->bytes += b.len + 1;
	if (p->bytes > PLAN_BYTES_MAX)
		return jiarun_wire_refuse(
			why, "arguments and variables without end");
	if (memchr(b.at, '\0', b.len))
		return jiarun_wire_refuse(why, "a string with a zero in it");
	if (!strings_add(s, b.at, b.len))
		return jiarun_wire_refuse(why, "more than there is memory for");
	return 0;
}

static int take_directory(struct jiarun_plan *p, struct jiarun_bytes b,
			  char *why)
{
	struct jiarun_strings one = { 0 };
	int err;

	if (p->directory)
		return jiarun_wire_refuse(why, "a second directory");
	err = take_string(p, &one, b, why);
	if (!err)
		p->directory = one.at[0];
	free(one.at);
	return err;
}

static int take_limit(struct jiarun_plan *p, const struct jiarun_wire_limit *m)
{
	p->limit[m->which] = m->soft;
	p->limits |= 1u << m->which;
	return 0;
}

static int take_go(struct jiarun_plan *p, char *why)
{
	int own = 0;

	for (int r = 0; r < p->ranks; r++)
		own += jiarun_plan_host_of(p, r) == p->host;
	if (p->name.nr != (size_t)p->hosts || !p->placed || !own ||
	    !p->directory || !p->argument.nr)
		return jiarun_wire_refuse(
			why, "a job of which something is missing");
	p->complete = true;
	return 0;
}

int jiarun_plan_take(struct jiarun_plan *p, const struct jiarun_message *m,
		     char why[JIARUN_WHY_MAX])
{
	if (!p->begun && m->type != JIARUN_WIRE_job)
		return jiarun_wire_refuse(why, "something else than a job");
	switch (m->type) {
	case JIARUN_WIRE_job:
		return take_job(p, &m->job, why);
	case JIARUN_WIRE_host:
		return take_string(p, &p->name, m->host.name, why);
	case JIARUN_WIRE_places:
		return take_places(p, m->places.hosts, why);
	case JIARUN_WIRE_limit:
		return take_limit(p, &m->limit);
	case JIARUN_WIRE_directory:
		return take_directory(p, m->directory.path, why);
	case JIARUN_WIRE_variable:
		return take_string(p, &p->variable, m->variable.text, why);
	case JIARUN_WIRE_argument:
		return take_string(p, &p->argument, m->argument.text, why);
	case JIARUN_WIRE_go:
		return take_go(p, why);
	default:
		return jiarun_wire_refuse(why,
					  "something that is no part of a job");
	}
}

/* --- applying ------------------------------------------------------------------ */

/* Variables of ours that this host happens to have are not the job's. */
static void environment_forget(void)
{
	char name[256];
	char **v = environ;

	while (*v) {
		size_t len = strcspn(*v, "=");

		if (strncmp(*v, prefix, PREFIX_LEN) != 0 ||
		    len >= sizeof(name)) {
			v++;
			continue;
		}
		memcpy(name, *v, len);
		name[len] = '\0';
		unsetenv(name);
		v = environ;
	}
}

/* They stay the plan's memory. */
static bool environment_set(const struct jiarun_plan *p)
{
	environment_forget();
	for (size_t i = 0; i < p->variable.nr; i++)
		if (strchr(p->variable.at[i], '=') &&
		    putenv(p->variable.at[i]) != 0)
			return false;
	return setenv("PWD", p->directory, 1) == 0;
}

/* As far as the hard limits here allow. */
static void limits_set(const struct jiarun_plan *p, struct jiarun_inherited *in)
{
	struct rlimit lim;

	for (int i = 0; i < JIARUN_LIMITS; i++) {
		if (!(p->limits & 1u << i) || !limit_get(i, &lim))
			continue;
		lim.rlim_cur = p->limit[i] < lim.rlim_max ? p->limit[i] :
							    lim.rlim_max;
		if (i == RLIMIT_NOFILE)
			in->files = lim;
		else
			setrlimit((__rlimit_resource_t)i, &lim);
	}
}

char *jiarun_plan_apply(const struct jiarun_plan *p,
			struct jiarun_inherited *in)
{
	if (chdir(p->directory) < 0)
		return jiarun_text("cannot go to the directory %s on %s: %s",
				   p->directory, p->name.at[p->host],
				   strerror(errno));
	if (!environment_set(p))
		return jiarun_text("out of memory on %s", p->name.at[p->host]);
	limits_set(p, in);
	return NULL;
}

void jiarun_plan_free(struct jiarun_plan *p)
{
	strings_free(&p->name);
	strings_free(&p->variable);
	strings_free(&p->argument);
	free(p->directory);
	*p = (struct jiarun_plan){ 0 };
}
