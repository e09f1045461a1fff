/* SPDX-License-Identifier: MIT */
/*
 * dsm_text.c - building a message in a fixed buffer.
 *
 * Role:      the words of every error text of dsm_config*.c.
 * Invariant: buf[len] is 0 and len < size; once something was cut, the text
 *            ends in "..." and takes nothing more.
 * Threads:   async-signal-safe.
 */
#include "dsm_text.h"

static const char cut_mark[] = "...";

void dsm_text_init(struct dsm_text *t, char *buf, size_t size)
{
	t->buf = buf;
	t->size = size;
	t->len = 0;
	buf[0] = 0;
}

static bool is_full(const struct dsm_text *t)
{
	return t->len == t->size - 1;
}

static void mark_cut(struct dsm_text *t)
{
	for (size_t i = 1; cut_mark[i - 1]; i++)
		t->buf[t->len - i] = '.';
}

static void put_char(struct dsm_text *t, char c)
{
	if (is_full(t)) {
		mark_cut(t);
		return;
	}
	t->buf[t->len++] = c;
	t->buf[t->len] = 0;
}

void dsm_text_puts(struct dsm_text *t, const char *s)
{
	while (*s)
		put_char(t, *s++);
}

void dsm_text_put_u64(struct dsm_text *t, uint64_t v)
{
	char digits[20]; /* of UINT64_MAX */
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		put_char(t, digits[--n]);
}

void dsm_text_put_size(struct dsm_text *t, uint64_t bytes)
{
	static const char units[] = "kmgt";
	size_t u = 0;

	while (bytes && units[u] && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	dsm_text_put_u64(t, bytes);
	if (u)
		put_char(t, units[u - 1]);
}

/* How a byte from outside is shown; returns how many characters that is. */
static size_t escape(unsigned char c, char out[4])
{
	static const char hex[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = (char)c;
	if (c == '\\')
		return 2;
	if (c >= ' ' && c < 0x7f) {
		out[0] = (char)c;
		return 1;
	}
	if (c == '\n' || c == '\t') {
		out[1] = c == '\n' ? 'n' : 't';
		return 2;
	}
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

void dsm_text_quote(struct dsm_text *t, const char *s, size_t n)
{
	size_t shown = 0;

	for (size_t i = 0; i < n; i++) {
		char out[4];
		size_t len = escape((unsigned char)s[i], out);

		shown += len;
		if (shown > DSM_TEXT_QUOTE_MAX) {
			dsm_text_puts(t, cut_mark);
			return;
		}
		for (size_t k = 0; k < len; k++)
			put_char(t, out[k]);
	}
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

bool dsm_text_same(const char *a, size_t na, const char *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

/*
 * Dynamic programming over the matrix d[i][j] = distance of the first i
 * characters of @a and the first j of @b, of which three rows are kept:
 * insertion, deletion and replacement look one row back, a swap two.
 */
unsigned int dsm_text_distance(const char *a, size_t na, const char *b,
			       size_t nb)
{
	unsigned int d[3][DSM_TEXT_WORD_MAX + 1];
	unsigned int *two = d[0], *one = d[1], *now = d[2];

	if (na > DSM_TEXT_WORD_MAX)
		na = DSM_TEXT_WORD_MAX;
	if (nb > DSM_TEXT_WORD_MAX)
		nb = DSM_TEXT_WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		two[j] = one[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int *oldest = two;

		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);

			now[j] = least(one[j - 1] + !same,
				       least(one[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 &&
			    lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]))
				now[j] = least(now[j], two[j - 2] + 1);
		}
		two = one;
		one = now;
		now = oldest;
	}
	return one[nb];
}
