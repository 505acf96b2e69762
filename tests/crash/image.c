#include "tests/crash/image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct image_saved {
	uint32_t page;
	uint8_t depth; /* under which it had been saved before */
};

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

void image_init(struct image *image, uint64_t len, uint64_t len_max)
{
	uint64_t npages = len_max / IMAGE_PAGE;

	assert(len % IMAGE_PAGE == 0 && len_max % IMAGE_PAGE == 0 && len <= len_max);
	*image = (struct image){ .len = len, .len_max = len_max };
	image->nsaved_max = npages * IMAGE_MARKS_MAX;
	image->mem = map(len_max);
	image->depth = map(npages);
	image->saved = map(image->nsaved_max * sizeof(*image->saved));
	image->pages = map(image->nsaved_max * IMAGE_PAGE);
}

void image_release(struct image *image)
{
	munmap(image->mem, image->len_max);
	munmap(image->depth, image->len_max / IMAGE_PAGE);
	munmap(image->saved, image->nsaved_max * sizeof(*image->saved));
	munmap(image->pages, image->nsaved_max * IMAGE_PAGE);
}

void image_mark(struct image *image)
{
	assert(image->nmarks < IMAGE_MARKS_MAX);
	image->marks[image->nmarks].nsaved = image->nsaved;
	image->marks[image->nmarks].len = image->len;
	image->nmarks++;
}

void image_rollback(struct image *image)
{
	assert(image->nmarks > 0);
	image->nmarks--;
	while (image->nsaved > image->marks[image->nmarks].nsaved) {
		struct image_saved *saved = &image->saved[--image->nsaved];

		memcpy(image->mem + (uint64_t)saved->page * IMAGE_PAGE,
		       image->pages + image->nsaved * IMAGE_PAGE, IMAGE_PAGE);
		image->depth[saved->page] = saved->depth;
	}
	image->len = image->marks[image->nmarks].len;
}

static void save(struct image *image, uint32_t page)
{
	if (image->depth[page] == image->nmarks)
		return;
	assert(image->nsaved < image->nsaved_max);
	image->saved[image->nsaved] = (struct image_saved){ page, image->depth[page] };
	memcpy(image->pages + image->nsaved * IMAGE_PAGE, image->mem + (uint64_t)page * IMAGE_PAGE,
	       IMAGE_PAGE);
	image->nsaved++;
	image->depth[page] = (uint8_t)image->nmarks;
}

void image_read(const struct image *image, uint64_t off, void *to, size_t len)
{
	assert(len <= image->len && off <= image->len - len);
	memcpy(to, image->mem + off, len);
}

void image_write(struct image *image, uint64_t off, const void *data, size_t len)
{
	assert(len <= image->len_max && off <= image->len_max - len);
	if (!len)
		return;
	for (uint64_t page = off / IMAGE_PAGE; page <= (off + len - 1) / IMAGE_PAGE; page++)
		save(image, (uint32_t)page);
	if (data)
		memcpy(image->mem + off, data, len);
	else
		memset(image->mem + off, 0, len);
}
