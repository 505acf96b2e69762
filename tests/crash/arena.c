/*
 * Memory for pools that are opened thousands of times.
 *
 * A pool maps some forty areas and gives them back when it is closed; mapping
 * and unmapping took longer than a crash point's recovery.  This mmap() stands
 * before the C library's for what is mapped lazily (MAP_NORESERVE): it takes
 * pieces of one range, whose pages become zeros together when the last piece was
 * given back, and stay.  Sanitizers have their own mmap(), which is left alone.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define RANGE_LEN (16ull << 30) /* address space */
#define PAGE	  4096u
#define KEPT_MAX  4096u /* pages: zeroing more takes longer than mapping them again */

static uint8_t *range;
static size_t used, npieces;

static void *map(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	size_t pages = (len + PAGE - 1) / PAGE * PAGE;

	if (prot != (PROT_READ | PROT_WRITE) || !(flags & MAP_NORESERVE) || addr || fd >= 0)
		return map(addr, len, prot, flags, fd, off);
	if (!range) {
		range = map(NULL, RANGE_LEN, prot, flags, -1, 0);
		if (range == MAP_FAILED) {
			range = NULL;
			return MAP_FAILED;
		}
	}
	if (pages > RANGE_LEN - used) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	addr = range + used;
	used += pages;
	npieces++;
	return addr;
}

/* All that was touched of the first len bytes is zeros again. */
static int clear(size_t len)
{
	static unsigned char touched[RANGE_LEN / PAGE];
	size_t npages = len / PAGE, n = 0;

	if (mincore(range, len, touched))
		return madvise(range, len, MADV_DONTNEED);
	for (size_t i = 0; i < npages; i += sizeof(uint64_t)) {
		uint64_t eight;

		memcpy(&eight, touched + i, sizeof(eight));
		for (size_t j = i; eight && j < i + sizeof(uint64_t) && j < npages; j++) {
			if (!(touched[j] & 1))
				continue;
			if (++n > KEPT_MAX)
				return madvise(range, len, MADV_DONTNEED);
			memset(range + j * PAGE, 0, PAGE);
		}
	}
	return 0;
}

int munmap(void *addr, size_t len)
{
	if (!range || (uint8_t *)addr < range || (uint8_t *)addr >= range + RANGE_LEN)
		return (int)syscall(SYS_munmap, addr, len);
	if (--npieces > 0)
		return 0;
	len = used;
	used = 0;
	return clear(len);
}

#endif
