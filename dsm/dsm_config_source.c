/* SPDX-License-Identifier: MIT */
/*
 * dsm_config_source.c - where parameters are read: files, environment, JIA_SET.
 *
 * Role:      cuts what was read into name and value and hands both to
 *            dsm_config_set_span(); knows who wins.
 * Invariant: a source with one error in it sets nothing at all.
 * Threads:   the caller's business (dsm_config.h).
 *
 * All of it may be hostile: lengths are bounded, bytes are only ever compared
 * or shown escaped, and a parameter file must be a regular file (a pipe could
 * be read by one rank only, and a terminal would make the job hang).
 */
#include "dsm_config_row.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "JIA_";
#define PREFIX_LEN (sizeof(prefix) - 1)

static const char *const reserved[] = {
#define ENV(name, doc) #name,
#include "dsm_env.def"
};
#define NR_RESERVED (sizeof(reserved) / sizeof(reserved[0]))

/* --- lines ----------------------------------------------------------------- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct dsm_span trim(struct dsm_span s)
{
	while (s.n && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* What of @s comes before the first @c; all of it if there is none. */
static struct dsm_span before(struct dsm_span s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	if (at)
		s.n = (size_t)(at - s.p);
	return s;
}

static int refuse_line(struct dsm_span line, const struct dsm_origin *o,
		       char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_config_put_where(&t, o);
	dsm_text_puts(&t, "'");
	dsm_text_quote(&t, line.p, line.n);
	dsm_text_puts(&t, "' is not of the form name=value");
	return -EINVAL;
}

int dsm_config_set_line(struct dsm_settings *s, struct dsm_span line,
			const struct dsm_origin *o,
			char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_span name, value;

	name = before(line, '=');
	if (name.n == line.n || !trim(name).n)
		return refuse_line(line, o, err);
	value.p = name.p + name.n + 1;
	value.n = line.n - name.n - 1;
	return dsm_config_set_span(s, trim(name), trim(value), o, err);
}

int dsm_config_set_pair(struct dsm_settings *s, const char *pair,
			enum dsm_source source, char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_origin o = { .source = source };

	return dsm_config_set_line(s, (struct dsm_span){ pair, strlen(pair) },
				   &o, err);
}

int dsm_config_set_lines(struct dsm_settings *s, const char *lines,
			 enum dsm_source source, char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_settings changed = *s;
	struct dsm_origin o = { .source = source };

	while (*lines) {
		struct dsm_span line = { lines, strcspn(lines, "\n") };
		int why;

		lines += line.n;
		lines += *lines == '\n';
		if (!trim(line).n)
			continue;
		why = dsm_config_set_line(&changed, line, &o, err);
		if (why)
			return why;
	}
	*s = changed;
	return 0;
}

/* --- parameter files ------------------------------------------------------- */

struct reader {
	int fd;
	size_t pos, len;
	char buf[1024];
};

/* The next byte; -ENODATA at the end, else -errno. */
static int read_byte(struct reader *r)
{
	if (r->pos == r->len) {
		ssize_t n;

		do
			n = read(r->fd, r->buf, sizeof(r->buf));
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return n ? -errno : -ENODATA;
		r->pos = 0;
		r->len = (size_t)n;
	}
	return (unsigned char)r->buf[r->pos++];
}

/* A line without its newline, its length in *@len; -ENODATA behind the last,
 * -E2BIG when it is too long, else -errno. */
static int read_line(struct reader *r, char line[DSM_CONFIG_LINE_MAX],
		     size_t *len)
{
	size_t n = 0;
	int c;

	while ((c = read_byte(r)) >= 0 && c != '\n') {
		if (n == DSM_CONFIG_LINE_MAX)
			return -E2BIG;
		line[n++] = (char)c;
	}
	if (c < 0 && (c != -ENODATA || !n))
		return c;
	*len = n;
	return 0;
}

/* The file's name for messages; of a long one the end, which says most. */
static void set_file(struct dsm_origin *o, const char *path)
{
	size_t len = strlen(path);
	struct dsm_text t;

	o->source = DSM_SOURCE_FILE;
	dsm_text_init(&t, o->file, sizeof(o->file));
	if (len > DSM_TEXT_QUOTE_MAX) {
		dsm_text_puts(&t, "...");
		path += len - DSM_TEXT_QUOTE_MAX;
		len = DSM_TEXT_QUOTE_MAX;
	}
	dsm_text_quote(&t, path, len);
}

static int refuse_file(const struct dsm_origin *o, const char *doing,
		       const char *reason, int why, char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_text_puts(&t, "parameter file '");
	dsm_text_puts(&t, o->file);
	dsm_text_puts(&t, "': ");
	dsm_text_puts(&t, doing);
	dsm_text_puts(&t, reason);
	return why;
}

/* Not blocking, so that a FIFO without a writer is refused as well. */
static int open_file(const char *path, const struct dsm_origin *o, char *err)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		int why = errno;

		return refuse_file(o, "cannot open: ", strerror(why), -why,
				   err);
	}
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return refuse_file(o, "not a regular file", "", -EINVAL, err);
}

static int refuse_read(const struct dsm_origin *o, int why, char *err)
{
	struct dsm_text t;

	if (why != -E2BIG)
		return refuse_file(o, "cannot read: ", strerror(-why), why,
				   err);
	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_config_put_where(&t, o);
	dsm_text_puts(&t, "line longer than ");
	dsm_text_put_u64(&t, DSM_CONFIG_LINE_MAX);
	dsm_text_puts(&t, " bytes");
	return -EINVAL;
}

static int read_file(struct dsm_settings *s, struct reader *r,
		     struct dsm_origin *o, char *err)
{
	char buf[DSM_CONFIG_LINE_MAX];
	struct dsm_span line = { .p = buf };

	for (o->line = 1;; o->line++) {
		struct dsm_span text;
		int why;

		why = read_line(r, buf, &line.n);
		if (why == -ENODATA)
			return 0;
		if (why)
			return refuse_read(o, why, err);
		text = trim(before(line, '#'));
		if (!text.n)
			continue;
		why = dsm_config_set_line(s, text, o, err);
		if (why)
			return why;
	}
}

int dsm_config_file(struct dsm_settings *s, const char *path,
		    char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_settings changed = *s;
	struct dsm_origin o = { 0 };
	struct reader r = { 0 };
	int why;

	set_file(&o, path);
	r.fd = open_file(path, &o, err);
	if (r.fd < 0)
		return r.fd;
	why = read_file(&changed, &r, &o, err);
	close(r.fd);
	if (!why)
		*s = changed;
	return why;
}

/* --- environment ----------------------------------------------------------- */

/* The parameter or reserved name that JIA_@name stands for, exactly; else NULL
 * and the nearest of both lists in *@nearest. */
static const char *find_name(struct dsm_span name, const char **nearest)
{
	unsigned int best = UINT32_MAX;

	for (size_t i = 0; i < DSM_CONFIG_NR + NR_RESERVED; i++) {
		const char *known = i < DSM_CONFIG_NR ?
					    dsm_config_rows[i].name :
					    reserved[i - DSM_CONFIG_NR];
		size_t len = strlen(known);
		unsigned int d;

		d = dsm_text_distance(name.p, name.n, known, len);
		if (d < best) {
			best = d;
			*nearest = known;
		}
		if (dsm_text_same(name.p, name.n, known, len))
			break;
	}
	return best ? NULL : *nearest;
}

static bool is_upper(struct dsm_span name)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 'a' && name.p[i] <= 'z')
			return false;
	return true;
}

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < NR_RESERVED; i++)
		if (name == reserved[i])
			return true;
	return false;
}

static int refuse_variable(struct dsm_span name, const char *nearest, char *err)
{
	struct dsm_text t;

	dsm_text_init(&t, err, DSM_CONFIG_ERR_MAX);
	dsm_text_puts(&t, "unknown variable JIA_");
	dsm_text_quote(&t, name.p, name.n);
	dsm_text_puts(&t, " in the environment; the nearest is ");
	dsm_config_put_env_name(&t, nearest);
	dsm_text_puts(&t, " (jiarun --list-parameters shows all)");
	return -ENOENT;
}

static int set_variable(struct dsm_settings *s, struct dsm_span name,
			const char *value, char *err)
{
	static const struct dsm_origin o = { .source = DSM_SOURCE_ENV };
	const char *nearest = NULL, *known;

	known = find_name(name, &nearest);
	if (!known || !is_upper(name))
		return refuse_variable(name, nearest, err);
	if (is_reserved(known))
		return 0;
	return dsm_config_set_span(s, (struct dsm_span){ known, strlen(known) },
				   (struct dsm_span){ value, strlen(value) },
				   &o, err);
}

int dsm_config_env(struct dsm_settings *s, char *const env[],
		   char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_settings changed = *s;

	for (; *env; env++) {
		const char *eq = strchr(*env, '=');
		struct dsm_span name;
		int why;

		if (!eq || strncmp(*env, prefix, PREFIX_LEN) != 0)
			continue;
		name.p = *env + PREFIX_LEN;
		name.n = (size_t)(eq - name.p);
		why = set_variable(&changed, name, eq + 1, err);
		if (why)
			return why;
	}
	*s = changed;
	return 0;
}

/* --- all of them ----------------------------------------------------------- */

/* The value of JIA_@name, or NULL. */
static const char *variable(char *const env[], const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, prefix, PREFIX_LEN) &&
		    !strncmp(*env + PREFIX_LEN, name, len) &&
		    (*env)[PREFIX_LEN + len] == '=')
			return *env + PREFIX_LEN + len + 1;
	return NULL;
}

int dsm_config_load(struct dsm_settings *s, char *const env[],
		    char err[DSM_CONFIG_ERR_MAX])
{
	struct dsm_settings loaded;
	const char *path = variable(env, "CONFIG");
	const char *sets = variable(env, "SET");
	int why = 0;

	dsm_config_defaults(&loaded);
	if (path)
		why = dsm_config_file(&loaded, path, err);
	if (!why)
		why = dsm_config_env(&loaded, env, err);
	if (!why && sets)
		why = dsm_config_set_lines(&loaded, sets, DSM_SOURCE_JIARUN,
					   err);
	if (!why)
		why = dsm_config_check(&loaded, err);
	if (!why)
		*s = loaded;
	return why;
}
