/* SPDX-License-Identifier: MIT */
/*
 * sul_signals.h - what only comm/ needs of sul_signals.c; the rest is in sul.h.
 */
#ifndef SUL_SIGNALS_H
#define SUL_SIGNALS_H

#include "sul.h"

/* From now on a hold costs no system call, if that is possible.  Once for each
 * port, so that handlers are found that were installed meanwhile. */
void sul_signals_open(void);

/*
 * While a thread that holds sleeps: let handlers in, as before the outermost
 * hold; and no more.  The mask to sleep with (ppoll()), NULL: the thread's own.
 * @q may be NULL: then nothing changes.
 */
const sigset_t *sul_signals_let_in(const struct sul_quiet *q);
void sul_signals_let_no_more(const struct sul_quiet *q);

#endif /* SUL_SIGNALS_H */
