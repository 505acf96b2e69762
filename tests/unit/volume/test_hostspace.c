/* What a thin file takes of its host, and gives back. */
#include "backing/volume/hostspace.h"

#include <sys/stat.h>

#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/pool_bed.h"

#define MIB 1048576ull

static struct bed bed;

static uint64_t host_bytes(void)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(fstat(bed.device.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Writes a volume from its beginning until an error; returns the bytes written. */
static uint64_t fill(struct volume *volume, uint64_t len, int *err)
{
	uint64_t done = 0;

	for (*err = 0; done < len && !*err;) {
		*err = bed_write(&bed, volume, done / VF_SECTOR, 128, done + 1);
		if (!*err)
			done += 65536;
	}
	return done;
}

static void hostspace_is_had_before_it_is_needed(void)
{
	bed_open(&bed, BED_LEN);
	CU_ASSERT_EQUAL(bed_flush(&bed, bed_volume(&bed, "v", MIB)), 0);
	CU_ASSERT(bed.device.nallocations > 0);
	CU_ASSERT(host_bytes() > segments_reserve(bed.pool) * 256 * 1024);
	bed_close(&bed);
}

static void hostspace_that_ends_makes_the_pool_full(void)
{
	struct pool_info info;
	struct volume *volume;
	uint64_t done;
	int err;

	bed_open(&bed, 64 * MIB);
	volume = bed_volume(&bed, "v", 60 * MIB);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	bed.device.host_full = true;
	done = fill(volume, 60 * MIB, &err);
	CU_ASSERT_EQUAL(err, ENOSPC);
	CU_ASSERT(done > 0 && done < 60 * MIB);
	pool_info(bed.pool, &info);
	CU_ASSERT(!info.read_only);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	for (uint64_t at = 0; at < done; at += 65536)
		CU_ASSERT_FATAL(bed_holds(&bed, volume, at / VF_SECTOR, 128, at + 1));
	bed_close(&bed);
}

static void hostspace_of_what_was_trimmed_is_given_back(void)
{
	struct volume *volume;
	uint64_t most;
	int err;

	bed_open(&bed, 128 * MIB);
	volume = bed_volume(&bed, "v", 100 * MIB);
	CU_ASSERT_EQUAL(fill(volume, 100 * MIB, &err), 100 * MIB);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	most = host_bytes();
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, 100 * MIB / VF_SECTOR, NULL), 0);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	CU_ASSERT_EQUAL(bed_faults(&bed), 0); /* it comes to rest: all is merged */
	for (int i = 0; i < 50 && host_bytes() > most - 24 * MIB; i++)
		CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	CU_ASSERT(host_bytes() <= most - 24 * MIB);
	CU_ASSERT(bed.device.npunches > 0);
	CU_ASSERT(bed_zeros(&bed, volume, 0, 128));
	bed_close(&bed);
}

/* So much later; what is begun then has ended. */
static void later(uint64_t seconds)
{
	bed.device.ahead_ns += seconds * 1000000000u;
	pool_tick(bed.pool);
	while (fiber_count(bed.pool->fibers) > 0)
		bed.device.env->ops->wait(bed.device.env);
}

/* Without a write, a checkpoint or anything else asked for; and then it rests. */
static void hostspace_comes_back_while_nobody_writes(void)
{
	struct pool_info before, after;
	struct volume *volume;
	uint64_t most;
	int err;

	bed_open(&bed, 128 * MIB);
	volume = bed_volume(&bed, "v", 100 * MIB);
	CU_ASSERT_EQUAL(fill(volume, 100 * MIB, &err), 100 * MIB);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	most = host_bytes();
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, 100 * MIB / VF_SECTOR, NULL), 0);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	for (int i = 0; i < 3; i++)
		later(31);
	CU_ASSERT(host_bytes() <= most - 32 * MIB);
	pool_info(bed.pool, &before);
	for (int i = 0; i < 4; i++)
		later(31);
	pool_info(bed.pool, &after);
	CU_ASSERT_EQUAL(after.checkpoints, before.checkpoints);
	bed_close(&bed);
}

static const struct test tests[] = {
	TEST(hostspace_is_had_before_it_is_needed),
	TEST(hostspace_that_ends_makes_the_pool_full),
	TEST(hostspace_of_what_was_trimmed_is_given_back),
	TEST(hostspace_comes_back_while_nobody_writes),
};
TEST_MAIN(tests)
