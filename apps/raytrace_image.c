/* SPDX-License-Identifier: MIT */
/*
 * raytrace_image.c - write a picture to a file: PNG through libpng, or PPM.
 *
 * Role: raytrace.h says it.
 * Invariant: none is kept.
 * Threads: any.
 * Locks: none.
 */
#include "raytrace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef APP_PNG
#include <png.h>
#endif

static bool ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), end_len = strlen(end);

	return len > end_len && !strcmp(path + len - end_len, end);
}

bool image_can_write(const char *path, const char **why)
{
	*why = "the name must end in .png or .ppm";
	if (ends_in(path, ".ppm"))
		return true;
#ifdef APP_PNG
	return ends_in(path, ".png");
#else
	if (ends_in(path, ".png"))
		*why = "built without libpng; a name that ends in .ppm works";
	return false;
#endif
}

static int write_ppm(const char *path, const unsigned char *rgb, long width,
		     long height)
{
	FILE *f = fopen(path, "wb");
	int err = 0;

	if (!f)
		return -errno;
	fprintf(f, "P6\n%ld %ld\n255\n", width, height);
	fwrite(rgb, 3, (size_t)(width * height), f);
	if (ferror(f))
		err = -EIO;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}

static int write_png(const char *path, const unsigned char *rgb, long width,
		     long height)
{
#ifdef APP_PNG
	png_image image = { .version = PNG_IMAGE_VERSION,
			    .width = (png_uint_32)width,
			    .height = (png_uint_32)height,
			    .format = PNG_FORMAT_RGB };

	errno = 0;
	if (png_image_write_to_file(&image, path, 0, rgb, 0, NULL))
		return 0;
	return errno ? -errno : -EIO;
#else
	(void)path;
	(void)rgb;
	(void)width;
	(void)height;
	return -ENOTSUP;
#endif
}

int image_write(const char *path, const uint32_t *pixel, long width,
		long height)
{
	unsigned char *rgb = malloc((size_t)(width * height) * 3);
	int err;

	if (!rgb)
		return -ENOMEM;
	for (long i = 0; i < width * height; i++) {
		rgb[3 * i] = (unsigned char)(pixel[i] >> 16);
		rgb[3 * i + 1] = (unsigned char)(pixel[i] >> 8);
		rgb[3 * i + 2] = (unsigned char)pixel[i];
	}
	err = ends_in(path, ".png") ? write_png(path, rgb, width, height) :
				      write_ppm(path, rgb, width, height);
	free(rgb);
	return err;
}
