/* SPDX-License-Identifier: MIT */
/* rank.h - what a rank of the job does: rounds of random work. */
#ifndef ORACLE_RANK_H
#define ORACLE_RANK_H

/* `oracle --child RECORD`: the record is that file.  Exit status. */
int rank_main(int argc, char **argv, const char *record);

#endif /* ORACLE_RANK_H */
