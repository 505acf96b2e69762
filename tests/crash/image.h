/*
 * The contents of a simulated device, with a way back.
 *
 * Flat memory and an undo journal of pages: image_mark() remembers a state,
 * image_rollback() returns to the newest one remembered.  Marks nest, so that a
 * crash state costs what was written since and not what the device is long.
 */
#ifndef TESTS_CRASH_IMAGE_H
#define TESTS_CRASH_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define IMAGE_PAGE	4096u
#define IMAGE_MARKS_MAX 16

struct image {
	uint8_t *mem;
	uint64_t len;	  /* bytes of the device, as it is now */
	uint64_t len_max; /* that it may grow to */
	uint8_t *depth;	  /* by page: under how many marks it was saved last */
	struct image_saved *saved;
	uint8_t *pages; /* the saved contents, by index */
	size_t nsaved, nsaved_max;
	struct {
		size_t nsaved;
		uint64_t len;
	} marks[IMAGE_MARKS_MAX];
	unsigned int nmarks;
};

/* Zeros; exits when there is no memory. */
void image_init(struct image *image, uint64_t len, uint64_t len_max);
void image_release(struct image *image);

void image_mark(struct image *image);
/* To the newest mark, which is taken off. */
void image_rollback(struct image *image);

void image_read(const struct image *image, uint64_t off, void *to, size_t len);
/* data NULL: zeros. */
void image_write(struct image *image, uint64_t off, const void *data, size_t len);

#endif
