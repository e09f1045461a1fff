/* SPDX-License-Identifier: MIT */
/*
 * sul_pmix_lib.c - see sul_pmix_lib.h.
 *
 * Role:      the only file that knows PMIx's types.  Where pmix.h is missing
 *            when it is compiled, opening says so and nothing else is there.
 * Invariant: l->answer belongs to the library from a call with a callback until
 *            its word is 1; whoever gives up waiting makes no further such call.
 *            So nothing of it is freed before the process ends.
 * Threads:   callbacks run in the library's thread; it has signals blocked: a
 *            handler of the program shall not run there.
 *
 * No macro of pmix.h that hides a call is used: only what CALLS lists is looked
 * up, so that libraries of other versions do as well.
 */
#include "sul_pmix_lib.h"

#include <errno.h>
#include <stdio.h>

#if defined(__has_include) && !defined(SUL_WITHOUT_PMIX)
#if __has_include(<pmix.h>)
#define HAVE_PMIX
#endif
#endif

#ifdef HAVE_PMIX

#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sul_sleep.h"

#define LIBRARY "libpmix.so.2"

#define CALLS(X)                  \
	X(Init)                   \
	X(Finalize)               \
	X(Abort)                  \
	X(Put)                    \
	X(Commit)                 \
	X(Get_nb)                 \
	X(Fence_nb)               \
	X(Register_event_handler) \
	X(Error_string)

/* What a callback brought. */
struct answer {
	struct sul_word there;
	pmix_status_t status;
	pmix_data_type_t type;
	uint32_t number; /* PMIX_UINT32 */
	char *bytes; /* malloc()ed; PMIX_STRING, with its 0, PMIX_BYTE_OBJECT */
	size_t len;
};

struct sul_pmix_lib {
#define POINTER(name) __typeof__(&PMIx_##name) name;
	CALLS(POINTER)
	pmix_proc_t self;
	pmix_status_t status; /* of the last call */
	int error; /* of connecting */
	struct answer answer;
	struct sul_pmix_client *client;
	_Atomic bool closed;
};

static int load(struct sul_pmix_lib *l, char *why, size_t room)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		snprintf(why, room, "%s", dlerror());
		return -ENOENT;
	}
#define LOOK_UP(name)                                                    \
	*(void **)&l->name = dlsym(lib, "PMIx_" #name);                  \
	if (!l->name) {                                                  \
		snprintf(why, room, LIBRARY " has no PMIx_" #name "()"); \
		dlclose(lib);                                            \
		return -ENOENT;                                          \
	}
	CALLS(LOOK_UP)
	return 0;
}

/* --- callbacks -------------------------------------------------------------------- */

static void answer_keep(struct answer *a, const void *bytes, size_t len)
{
	a->bytes = malloc(len ? len : 1);
	if (!a->bytes) {
		a->status = PMIX_ERR_NOMEM;
		return;
	}
	memcpy(a->bytes, bytes, len);
	a->len = len;
}

static void on_value(pmix_status_t status, pmix_value_t *v, void *arg)
{
	struct sul_pmix_lib *l = arg;
	struct answer *a = &l->answer;

	a->status = status;
	if (status == PMIX_SUCCESS) {
		a->type = v->type;
		if (v->type == PMIX_UINT32)
			a->number = v->data.uint32;
		else if (v->type == PMIX_STRING)
			answer_keep(a, v->data.string,
				    strlen(v->data.string) + 1);
		else if (v->type == PMIX_BYTE_OBJECT)
			answer_keep(a, v->data.bo.bytes, v->data.bo.size);
	}
	sul_sleep_notify(&a->there, 1);
}

static void on_done(pmix_status_t status, void *arg)
{
	struct sul_pmix_lib *l = arg;

	l->answer.status = status;
	sul_sleep_notify(&l->answer.there, 1);
}

static void on_registered(pmix_status_t status, size_t id, void *arg)
{
	(void)id;
	on_done(status, arg);
}

/* The launcher's server is gone.  PMIx knows no argument of ours but one that is
 * found among @info. */
static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
		    pmix_info_t info[], size_t nr, pmix_info_t *results,
		    size_t nr_results,
		    pmix_event_notification_cbfunc_fn_t go_on, void *arg)
{
	(void)id, (void)status, (void)source, (void)results, (void)nr_results;
	for (size_t i = 0; i < nr; i++) {
		struct sul_pmix_lib *l = info[i].value.data.ptr;

		if (!strcmp(info[i].key, PMIX_EVENT_RETURN_OBJECT) &&
		    !atomic_load(&l->closed))
			l->client->lost(l->client->ctx);
	}
	if (go_on)
		go_on(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

/* --- waiting for them ---------------------------------------------------------------- */

static const char *lib_said(const struct sul_pmix_lib *l)
{
	return l->Error_string(l->status);
}

static int error_of(struct sul_pmix_lib *l, pmix_status_t status)
{
	l->status = status;
	switch (status) {
	case PMIX_SUCCESS:
		return 0;
	case PMIX_ERR_NOT_FOUND:
		return -ENOENT;
	case PMIX_ERR_NOMEM:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static void answer_clear(struct sul_pmix_lib *l)
{
	free(l->answer.bytes);
	l->answer = (struct answer){ 0 };
}

static int answer_await(struct sul_pmix_lib *l, struct sul_word *abort,
			int timeout_ms)
{
	struct sul_watch watch = { &l->answer.there, 0 };
	struct sul_word never = { 0 };
	int err = sul_sleep_wait(&watch, 1, abort ? abort : &never, NULL,
				 timeout_ms);

	return err ? err : error_of(l, l->answer.status);
}

static pmix_info_t flag(const char *key)
{
	pmix_info_t info = { .value = { .type = PMIX_BOOL } };

	snprintf(info.key, sizeof(info.key), "%s", key);
	info.value.data.flag = true;
	return info;
}

static int get(struct sul_pmix_lib *l, pmix_rank_t rank, const char *key,
	       struct sul_word *abort, int timeout_ms)
{
	pmix_proc_t who = l->self;
	int err;

	who.rank = rank;
	answer_clear(l);
	err = error_of(l, l->Get_nb(&who, key, NULL, 0, on_value, l));
	return err ? err : answer_await(l, abort, timeout_ms);
}

/* --- opening and closing ---------------------------------------------------------------- */

enum {
	SERVER_MS = 10000 /* what is answered by this host's server at once */
};

static int watch_server(struct sul_pmix_lib *l)
{
	pmix_info_t info = { .value = { .type = PMIX_POINTER } };
	pmix_status_t what = PMIX_ERR_LOST_CONNECTION;

	snprintf(info.key, sizeof(info.key), "%s", PMIX_EVENT_RETURN_OBJECT);
	info.value.data.ptr = l;
	l->Register_event_handler(&what, 1, &info, 1, on_lost, on_registered,
				  l);
	return answer_await(l, NULL, SERVER_MS);
}

static void *connect_server(void *arg)
{
	struct sul_pmix_lib *l = arg;

	l->error = error_of(l, l->Init(&l->self, NULL, 0));
	if (l->error)
		return NULL;
	l->error = watch_server(l);
	if (l->error)
		l->Finalize(NULL, 0);
	return NULL;
}

/*
 * In a thread of its own, whose signal mask the library's threads get; whoever
 * wants to end this process meanwhile shall not wait for an answer.
 */
static int connect_apart(struct sul_pmix_lib *l, char *why, size_t room)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, connect_server, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		snprintf(why, room, "a thread: %s", strerror(err));
		return -err;
	}
	pthread_join(thread, NULL);
	if (!l->error)
		return 0;
	snprintf(why, room, "%s",
		 l->error == -ETIMEDOUT ? "no answer" : lib_said(l));
	return -ECONNREFUSED;
}

/* A late event may still look at it: it stays. */
static void lib_close(struct sul_pmix_lib *l)
{
	atomic_store(&l->closed, true);
	answer_clear(l);
	l->Finalize(NULL, 0);
}

/* --- the calls ------------------------------------------------------------------------ */

static int lib_ranks(struct sul_pmix_lib *l, int *ranks)
{
	int err = get(l, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, NULL, SERVER_MS);

	if (!err && l->answer.type != PMIX_UINT32)
		err = -EPROTO;
	if (!err)
		*ranks = (int)l->answer.number;
	return err;
}

static int lib_neighbours(struct sul_pmix_lib *l, char **list)
{
	int err = get(l, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, NULL, SERVER_MS);

	if (!err && l->answer.type != PMIX_STRING)
		err = -EPROTO;
	if (!err) {
		*list = l->answer.bytes;
		l->answer.bytes = NULL;
	}
	return err;
}

static int lib_put(struct sul_pmix_lib *l, const char *key, const void *bytes,
		   size_t len)
{
	pmix_value_t v = { .type = PMIX_BYTE_OBJECT };
	int err;

	v.data.bo.bytes = (char *)(uintptr_t)bytes; /* it is copied */
	v.data.bo.size = len;
	err = error_of(l, l->Put(PMIX_GLOBAL, key, &v));
	return err ? err : error_of(l, l->Commit());
}

static int lib_get(struct sul_pmix_lib *l, int rank, const char *key,
		   void *bytes, size_t len, struct sul_word *abort,
		   int timeout_ms)
{
	int err = get(l, (pmix_rank_t)rank, key, abort, timeout_ms);

	if (!err &&
	    (l->answer.type != PMIX_BYTE_OBJECT || l->answer.len != len))
		err = -EPROTO;
	if (!err)
		memcpy(bytes, l->answer.bytes, len);
	return err;
}

static int lib_fence(struct sul_pmix_lib *l, struct sul_word *abort,
		     int timeout_ms)
{
	pmix_info_t collect = flag(PMIX_COLLECT_DATA);
	pmix_proc_t all = l->self;
	int err;

	all.rank = PMIX_RANK_WILDCARD;
	answer_clear(l);
	err = error_of(l, l->Fence_nb(&all, 1, &collect, 1, on_done, l));
	return err ? err : answer_await(l, abort, timeout_ms);
}

static void lib_abort(struct sul_pmix_lib *l, int status, const char *text)
{
	l->Abort(status, text, NULL, 0);
}

static const struct sul_pmix_ops ops = {
#define OP(name) .name = lib_##name
	OP(close), OP(said), OP(ranks), OP(neighbours),
	OP(put),   OP(get),  OP(fence), OP(abort),
};

int sul_pmix_lib_open(struct sul_pmix_client *c, char *why, size_t room)
{
	struct sul_pmix_lib *l = calloc(1, sizeof(*l));
	int err;

	if (!l) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	l->client = c;
	err = load(l, why, room);
	if (!err)
		err = connect_apart(l, why, room);
	if (err) {
		free(l);
		return err;
	}
	c->rank = (int)l->self.rank;
	c->lib = l;
	c->ops = &ops;
	return 0;
}

#else

int sul_pmix_lib_open(struct sul_pmix_client *c, char *why, size_t room)
{
	(void)c;
	snprintf(why, room, "this library was built without PMIx");
	return -ENOSYS;
}

#endif
