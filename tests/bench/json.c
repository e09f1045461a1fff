/* SPDX-License-Identifier: MIT */
/*
 * json.c - json FILE PATH...: values of a JSON file, for scripts.
 *
 * A PATH is keys with dots between them.  Printed is, in a line, a number, text,
 * true or false; of an object its keys, a line each; of a list its length.
 * Exit status: 0; 1 if a path leads nowhere; 2 if FILE is no JSON.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const json_t *find(const json_t *at, char *path)
{
	char *rest = path, *key;

	while (at && (key = strsep(&rest, ".")))
		at = json_object_get(at, key);
	return at;
}

static void print_keys(const json_t *object)
{
	json_t *o = (json_t *)(uintptr_t)object;

	for (void *i = json_object_iter(o); i; i = json_object_iter_next(o, i))
		puts(json_object_iter_key(i));
}

static void print(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		print_keys(v);
		break;
	case JSON_ARRAY:
		printf("%zu\n", json_array_size(v));
		break;
	case JSON_STRING:
		puts(json_string_value(v));
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		printf("%.15g\n", json_number_value(v));
		break;
	case JSON_TRUE:
		puts("true");
		break;
	case JSON_FALSE:
		puts("false");
		break;
	default:
		puts("null");
		break;
	}
}

int main(int argc, char **argv)
{
	json_error_t why;
	json_t *all;
	int status = 0;

	if (argc < 2)
		return 2;
	all = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &why);
	if (!all) {
		fprintf(stderr, "%s:%d: %s\n", argv[1], why.line, why.text);
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		const json_t *v = find(all, argv[i]);

		if (v)
			print(v);
		else
			status = 1;
	}
	json_decref(all);
	return status;
}
