/* SPDX-License-Identifier: MIT */
/* touch.c - jia_touch() and jia_untouch(). */
#include "api.h"

const struct api_case touch_cases[] = {
	{ NULL, NULL },
};
