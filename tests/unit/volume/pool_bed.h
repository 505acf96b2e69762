/*
 * A pool on a device in memory, and requests that are waited for.
 */
#ifndef TESTS_UNIT_VOLUME_POOL_BED_H
#define TESTS_UNIT_VOLUME_POOL_BED_H

#include "backing/volume/pool.h"
#include "tests/unit/volume/device.h"

#define BED_LEN (16ull << 20) /* the smallest pool there is */

struct bed {
	struct device device;
	struct pool *pool;
	struct err err;
};

/* A new pool of len bytes, open. */
void bed_open(struct bed *bed, uint64_t len);
/* Brings it to rest, checks it wholly (no fault may be found), closes all. */
void bed_close(struct bed *bed);

int bed_pool_open(struct bed *bed);
/* Brought to rest and opened again. */
void bed_restart(struct bed *bed);
/* Given up as it is, and opened again: what was flushed is there. */
void bed_crash(struct bed *bed);
/* Faults that pool_check() finds, each printed; the pool goes on. */
uint64_t bed_faults(struct bed *bed);

/* 4 KiB blocks, 16 KiB records, lz4, xxh3. */
struct volume_settings bed_settings(uint64_t bytes);
struct volume *bed_volume(struct bed *bed, const char *name, uint64_t bytes);

/* Waits for it; the request's err. */
int bed_request(struct bed *bed, struct volume *volume, uint8_t op, uint8_t flags, uint64_t lba,
		uint64_t nsectors, void *data);
/* len bytes of a pattern that tells seed and place apart; half of it compresses. */
void bed_fill(void *data, size_t len, uint64_t seed);
/* Writes the pattern of seed; reads and compares. */
int bed_write(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors,
	      uint64_t seed);
bool bed_holds(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors,
	       uint64_t seed);
bool bed_zeros(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors);
int bed_flush(struct bed *bed, struct volume *volume);

#endif
