/* SPDX-License-Identifier: MIT */
/* rank.h - what a rank of the job does: rounds of random work. */
#ifndef ORACLE_RANK_H
#define ORACLE_RANK_H

/* `oracle --child FD`: the record is behind descriptor @fd.  Exit status. */
int rank_main(int argc, char **argv, int fd);

#endif /* ORACLE_RANK_H */
