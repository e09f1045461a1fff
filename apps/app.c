/* SPDX-License-Identifier: MIT */
/*
 * app.c - options, timing and verdict of the programs, and the way from the
 * calls of app.h to whoever provides them.
 *
 * Role: app.h says it.
 * Invariant: nothing here knows what a rank is.
 * Threads: any, one for each rank.
 * Locks: none.
 */
#include "app_backend.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <time.h>

static _Noreturn void app_quit(const struct app *a, int status)
{
	a->be->leave();
	a->be->quit(status);
}

_Noreturn void app_refuse(const struct app *a, const char *fmt, ...)
{
	va_list ap;

	if (a->rank == 0) {
		fprintf(stderr, "%s: ", a->name);
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fprintf(stderr, "\nTry '%s --help'.\n", a->name);
	}
	app_quit(a, APP_REFUSED);
}

_Noreturn void app_die(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	app_backend->die(text);
}

/* --- options ---------------------------------------------------------------- */

static const struct app_opt app_output = { .letter = 'o', .name = "output" };

static void app_help_line(char letter, const char *name, const char *arg,
			  const char *help)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%s--%s%s%s", letter ? '-' : ' ',
		 letter ? letter : ' ', letter ? ", " : "  ", name,
		 arg ? "=" : "", arg ? arg : "");
	printf("  %-26s %s", left, help);
}

static void app_help(const struct app *a)
{
	printf("usage: %s [options]%s%s\n%s\n\n", a->name,
	       a->operand ? " " : "", a->operand ? a->operand : "", a->about);
	if (a->operand)
		printf("  %-26s %s\n", a->operand, a->operand_help);
	for (size_t i = 0; i < a->nopts; i++) {
		const struct app_opt *o = &a->opts[i];

		app_help_line(o->letter, o->name, o->arg, o->help);
		if (o->arg && o->dflt < o->min)
			printf(" (%ld..%ld)", o->min, o->max);
		else if (o->arg)
			printf(" (%ld..%ld, default %ld)", o->min, o->max,
			       o->dflt);
		putchar('\n');
	}
	if (a->output_help)
		app_help_line(app_output.letter, app_output.name, "FILE",
			      a->output_help);
	app_help_line('\0', "test", NULL,
		      "a small size, a few seconds at most\n");
	app_help_line('\0', "help", NULL, "this text\n");
	if (app_backend->option)
		app_help_line('\0', app_backend->option, "N",
			      app_backend->option_help);
	printf("\nExit status: 0 verified, 1 a wrong result, 2 bad options or "
	       "input.\n");
}

/* Parse @text for option @o, or refuse the run. */
static long app_number(const struct app *a, const struct app_opt *o,
		       const char *text)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end)
		app_refuse(a, "--%s: '%s' is not a whole number (%ld..%ld)",
			   o->name, text, o->min, o->max);
	if (errno || v < o->min || v > o->max)
		app_refuse(a, "--%s: %s is out of range (%ld..%ld)", o->name,
			   text, o->min, o->max);
	return v;
}

/* Does @arg name @o?  A value in the same word ("-n5", "--size=5") goes to
 * @value, which is NULL otherwise. */
static bool app_is_opt(const struct app_opt *o, const char *arg,
		       const char **value)
{
	size_t len = strlen(o->name);

	*value = NULL;
	if (arg[1] != '-') {
		if (!o->letter || arg[1] != o->letter)
			return false;
		if (arg[2])
			*value = arg + 2;
		return true;
	}
	if (strncmp(arg + 2, o->name, len) ||
	    (arg[2 + len] && arg[2 + len] != '='))
		return false;
	if (arg[2 + len])
		*value = arg + 2 + len + 1;
	return true;
}

/* Take argv[i] and its value; returns the index of the last word taken. */
static int app_take(struct app *a, int argc, char **argv, int i)
{
	const char *value;

	for (size_t k = 0; k < a->nopts; k++) {
		const struct app_opt *o = &a->opts[k];

		if (!app_is_opt(o, argv[i], &value))
			continue;
		if (!o->arg && value)
			app_refuse(a, "--%s takes no value ('%s')", o->name,
				   value);
		if (o->arg && !value) {
			if (i + 1 >= argc)
				app_refuse(a, "--%s needs a value (%ld..%ld)",
					   o->name, o->min, o->max);
			value = argv[++i];
		}
		*o->num = o->arg ? app_number(a, o, value) : 1;
		return i;
	}
	if (!a->output_help || !app_is_opt(&app_output, argv[i], &value))
		app_refuse(a, "unknown option '%s'", argv[i]);
	if (!value && i + 1 >= argc)
		app_refuse(a, "--%s needs a FILE", app_output.name);
	a->output = value ? value : argv[++i];
	return i;
}

static void app_take_operand(struct app *a, const char *arg)
{
	if (!a->operand)
		app_refuse(a, "unexpected argument '%s'", arg);
	if (a->operand_value)
		app_refuse(a, "one %s only: '%s' after '%s'", a->operand, arg,
			   a->operand_value);
	a->operand_value = arg;
}

static bool app_asked(int argc, char **argv, const char *what)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], what))
			return true;
	return false;
}

void app_init(struct app *a, int argc, char **argv)
{
	bool words = false;

	a->be = app_backend;
	a->be->join(argc, argv, &a->rank, &a->ranks);
	a->test = app_asked(argc, argv, "--test");
	if (app_asked(argc, argv, "--help")) {
		if (a->rank == 0)
			app_help(a);
		app_quit(a, APP_GOOD);
	}
	for (size_t k = 0; k < a->nopts; k++)
		*a->opts[k].num = a->test ? a->opts[k].test : a->opts[k].dflt;
	for (int i = 1; i < argc; i++) {
		if (words || argv[i][0] != '-' || !argv[i][1])
			app_take_operand(a, argv[i]);
		else if (!strcmp(argv[i], "--"))
			words = true;
		else if (strcmp(argv[i], "--test"))
			i = app_take(a, argc, argv, i);
	}
}

/* --- the measured part ------------------------------------------------------ */

double app_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void app_begin(struct app *a)
{
	app_barrier(a);
	a->be->begin();
	a->begin = app_clock();
}

void app_end(struct app *a)
{
	app_barrier(a);
	a->seconds = app_clock() - a->begin;
	a->be->end(&a->traffic);
}

void app_report(const struct app *a, const char *fmt, ...)
{
	va_list ap;

	if (a->rank)
		return;
	printf("%s: ", a->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (a->be->unit)
		printf(", %d %s%s: %.6f s\n", a->ranks, a->be->unit,
		       a->ranks == 1 ? "" : "s", a->seconds);
	else
		printf(", serial: %.6f s\n", a->seconds);
}

int app_leave(const struct app *a, int status)
{
	a->be->leave();
	return status;
}

int app_verdict(const struct app *a, bool good, const char *fmt, ...)
{
	FILE *out = good ? stdout : stderr;
	va_list ap;

	if (a->rank == 0) {
		fprintf(out, "%s: %s: ", a->name, good ? "verified" : "WRONG");
		va_start(ap, fmt);
		vfprintf(out, fmt, ap);
		va_end(ap);
		fputc('\n', out);
	}
	return app_leave(a, good ? APP_GOOD : APP_WRONG);
}

struct app app_alone(const struct app *a)
{
	struct app alone = *a;

	alone.be = &app_alone_backend;
	alone.rank = 0;
	alone.ranks = 1;
	return alone;
}

/* --- shared memory ------------------------------------------------------------ */

static size_t app_whole_pages(size_t bytes)
{
	size_t pages = (bytes + APP_PAGE - 1) / APP_PAGE;

	return (pages ? pages : 1) * APP_PAGE;
}

void *app_malloc_on(const struct app *a, const char *label, int rank,
		    size_t bytes)
{
	return a->be->malloc(label, app_whole_pages(bytes), rank);
}

void *app_malloc(const struct app *a, const char *label, size_t bytes)
{
	return a->be->malloc(label, app_whole_pages(bytes), -1);
}

void app_overwrite(const struct app *a, void *p, size_t bytes)
{
	uintptr_t from = ((uintptr_t)p + APP_PAGE - 1) / APP_PAGE * APP_PAGE;
	uintptr_t to = ((uintptr_t)p + bytes) / APP_PAGE * APP_PAGE;

	if (from < to)
		a->be->overwrite((char *)p + (from - (uintptr_t)p), to - from);
}

void app_fetch(const struct app *a, const void *p, size_t bytes)
{
	if (bytes)
		a->be->fetch(p, bytes);
}

/* --- synchronisation ------------------------------------------------------------ */

void app_barrier(const struct app *a)
{
	a->be->barrier();
}

void app_lock(const struct app *a, int lock)
{
	a->be->lock(lock);
}

void app_unlock(const struct app *a, int lock)
{
	a->be->unlock(lock);
}

void app_lock_at(const struct app *a, const void *addr)
{
	a->be->lock_at(addr);
}

void app_unlock_at(const struct app *a, const void *addr)
{
	a->be->unlock_at(addr);
}

void app_wait(const struct app *a, const void *cond)
{
	a->be->wait(cond);
}

void app_wake(const struct app *a, const void *cond)
{
	a->be->wake(cond);
}

void app_sum(const struct app *a, double *v, int n)
{
	a->be->reduce(v, n, true);
}

void app_max(const struct app *a, double *v, int n)
{
	for (int i = 0; i < n; i++) /* no comparison hides a NaN */
		v[i] = isnan(v[i]) ? (double)INFINITY : v[i];
	a->be->reduce(v, n, false);
}

/* --- statistics ------------------------------------------------------------------ */

void app_set(const struct app *a, const char *name, const char *value)
{
	a->be->set(name, value);
}

void app_phase(const struct app *a, const char *name)
{
	a->be->phase(name);
}

/* --- small things ----------------------------------------------------------- */

long app_share(const struct app *a, long total, int rank, long *first)
{
	long each = total / a->ranks, more = total % a->ranks;

	*first = each * rank + (rank < more ? rank : more);
	return each + (rank < more);
}

void *app_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		app_die("no memory for %zu x %zu bytes of private data", n,
			size);
	return p;
}
