/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the parts of the program that tests the module from inside an
 * emulated machine; each of them is a row of kernel.def.
 */
#ifndef KERNEL_H
#define KERNEL_H

#define PART(name, word, use, what) int kernel_##name(int argc, char **argv);
#include "kernel.def"

#endif /* KERNEL_H */
