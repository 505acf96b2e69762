#include "tests/unit/volume/pool_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

#define DATA_MAX (256u << 10)

static _Alignas(4096) uint8_t data[DATA_MAX], expected[DATA_MAX];

int bed_pool_open(struct bed *bed)
{
	const struct pool_open_args args = { .name = "bed",
					     .cache_memory = POOL_MEMORY_MIN,
					     .quiet = true };
	int rc = pool_open(bed->device.env, &args, &bed->pool, &bed->err);

	if (rc)
		bed->pool = NULL;
	return rc;
}

void bed_open(struct bed *bed, uint64_t len)
{
	const struct pool_create_args args = { .host_free = UINT64_MAX, .label = "bed" };

	*bed = (struct bed){ .pool = NULL };
	device_open(&bed->device, len);
	CU_ASSERT_EQUAL_FATAL(pool_create(bed->device.env, &args, false, &bed->err), 0);
	CU_ASSERT_EQUAL_FATAL(bed_pool_open(bed), 0);
}

static void say(void *arg, const char *line)
{
	(void)arg;
	printf("  %s\n", line);
}

static uint64_t check_at_rest(struct bed *bed)
{
	struct pool_check_report report = { .say = say };

	CU_ASSERT_EQUAL(pool_check(bed->pool, POOL_CHECK_DEEP, &report, &bed->err), 0);
	return report.nerrors;
}

uint64_t bed_faults(struct bed *bed)
{
	uint64_t nfaults;

	CU_ASSERT_EQUAL_FATAL(pool_quiesce(bed->pool, &bed->err), 0);
	nfaults = check_at_rest(bed);
	pool_resume(bed->pool, bed->device.env);
	return nfaults;
}

void bed_close(struct bed *bed)
{
	if (bed->pool) {
		CU_ASSERT_EQUAL(pool_quiesce(bed->pool, &bed->err), 0);
		CU_ASSERT_EQUAL(check_at_rest(bed), 0);
		pool_close(bed->pool);
	}
	device_close(&bed->device);
}

void bed_restart(struct bed *bed)
{
	CU_ASSERT_EQUAL_FATAL(pool_quiesce(bed->pool, &bed->err), 0);
	pool_close(bed->pool);
	CU_ASSERT_EQUAL_FATAL(bed_pool_open(bed), 0);
}

void bed_crash(struct bed *bed)
{
	uint64_t len = bed->device.env->device_len;
	uint8_t *bytes = malloc(len);

	/* What stands on the device now; the pool's own end is none of it. */
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	CU_ASSERT_EQUAL_FATAL(pread(bed->device.fd, bytes, len, 0), (ssize_t)len);
	CU_ASSERT_EQUAL(pool_quiesce(bed->pool, &bed->err), 0);
	pool_close(bed->pool);
	device_close(&bed->device);
	device_open(&bed->device, len);
	CU_ASSERT_EQUAL_FATAL(pwrite(bed->device.fd, bytes, len, 0), (ssize_t)len);
	free(bytes);
	CU_ASSERT_EQUAL_FATAL(bed_pool_open(bed), 0);
}

struct volume_settings bed_settings(uint64_t bytes)
{
	return (struct volume_settings){
		.nsectors = bytes / VF_SECTOR,
		.block_len = 4096,
		.record_len = 16384,
		.codec = { CODEC_LZ4, 1 },
		.checksum = VF_XXH3,
	};
}

struct volume *bed_volume(struct bed *bed, const char *name, uint64_t bytes)
{
	struct volume_settings settings = bed_settings(bytes);
	struct volume *volume = NULL;

	CU_ASSERT_EQUAL_FATAL(volume_create(bed->pool, name, &settings, &volume, &bed->err), 0);
	return volume;
}

struct waited {
	struct vreq req;
	bool finished;
};

static void waited_done(struct vreq *req)
{
	container_of(req, struct waited, req)->finished = true;
}

int bed_request(struct bed *bed, struct volume *volume, uint8_t op, uint8_t flags, uint64_t lba,
		uint64_t nsectors, void *to)
{
	struct iovec iov = { to, nsectors * VF_SECTOR };
	struct waited waited = {
		.req = { .op = op,
			 .flags = flags,
			 .lba = lba,
			 .nsectors = nsectors,
			 .iov = &iov,
			 .iovcnt = 1,
			 .done = waited_done },
	};

	volume_submit(volume, &waited.req);
	pool_run(bed->pool);
	while (!waited.finished)
		bed->device.env->ops->wait(bed->device.env);
	return waited.req.err;
}

void bed_fill(void *to, size_t len, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
	uint8_t *bytes = to;

	for (size_t i = 0; i < len; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, i / 64 % 2 ? &x : &seed, 8);
	}
}

int bed_write(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors,
	      uint64_t seed)
{
	CU_ASSERT_FATAL(nsectors * VF_SECTOR <= DATA_MAX);
	bed_fill(data, nsectors * VF_SECTOR, seed);
	return bed_request(bed, volume, VREQ_WRITE, 0, lba, nsectors, data);
}

static bool reads(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors)
{
	size_t len = nsectors * VF_SECTOR;

	CU_ASSERT_FATAL(len <= DATA_MAX);
	memset(data, 0xee, len);
	return bed_request(bed, volume, VREQ_READ, 0, lba, nsectors, data) == 0 &&
	       memcmp(data, expected, len) == 0;
}

bool bed_holds(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors,
	       uint64_t seed)
{
	bed_fill(expected, nsectors * VF_SECTOR, seed);
	return reads(bed, volume, lba, nsectors);
}

bool bed_zeros(struct bed *bed, struct volume *volume, uint64_t lba, uint64_t nsectors)
{
	memset(expected, 0, nsectors * VF_SECTOR);
	return reads(bed, volume, lba, nsectors);
}

int bed_flush(struct bed *bed, struct volume *volume)
{
	return bed_request(bed, volume, VREQ_FLUSH, 0, 0, 0, NULL);
}
