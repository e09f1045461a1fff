/* SPDX-License-Identifier: MIT */
/*
 * dsm_say.h - what a rank says on standard error by itself.
 *
 * Without a launcher nobody else prints it, nor looks up places in it.
 */
#ifndef DSM_SAY_H
#define DSM_SAY_H

/*
 * "jia: @text", at most 2 * SUL_JOB_TEXT_MAX bytes of it, with places ("@{0x...}")
 * as "program+0x...", which addr2line takes; in one write(), so that what others say
 * meanwhile does not get in between.  Any thread; takes no lock but dladdr()'s.
 */
void dsm_say(const char *text);

#endif /* DSM_SAY_H */
