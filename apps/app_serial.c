/* SPDX-License-Identifier: MIT */
/* app_serial.c - NAME-serial: the program on one rank, without libjia. */
#include "app_backend.h"

const struct app_backend *const app_backend = &app_alone_backend;

int main(int argc, char **argv)
{
	return app_main(argc, argv);
}
