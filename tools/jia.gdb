# SPDX-License-Identifier: MIT
# jia.gdb - settings of gdb for programs that use jia.h:  source jia.gdb
# (jiarun --debug has them already.)
#
# A page fault on shared memory is a SIGSEGV that the library repairs.  A fault
# that it does not repair it hands on, with the default action back in place, so
# that gdb stops at the second one:  the program is killed, and "where" works on
# the core, or with "catch signal SIGSEGV" set when it comes to the place.
handle SIGSEGV nostop noprint pass
