/* Superblocks: which one counts, and what is refused. */
#include "backing/volume/super.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backing/volume/io.h"
#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/device.h"
#include "tests/unit/volume/samples.h"

#define LEN (64u << 20)

static struct device device;
static struct vf_super super, found;
static bool read_only;
static struct err err;

static uint64_t slot_of(uint64_t generation)
{
	return generation % 2 * VF_SUPER_SECOND + generation / 2 % VF_SUPER_SLOTS * VF_SUPER_LEN;
}

static void setup(void)
{
	struct sample sample = sample_super();

	device_open(&device, LEN);
	memcpy(&super, sample.at, sizeof(super));
	sample_free(&sample);
	le64_put(&super.generation, 0);
}

/* Generations 1 to last, as checkpoints write them. */
static void write_until(uint64_t last)
{
	while (le64_get(&super.generation) < last) {
		le64_put(&super.generation, le64_get(&super.generation) + 1);
		le64_put(&super.durable_seq, 100 + le64_get(&super.generation));
		CU_ASSERT_EQUAL(super_write(device.env, &super), 0);
	}
}

static void expect_generation(uint64_t generation)
{
	memset(&err, 0, sizeof(err));
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), 0);
	CU_ASSERT(!read_only);
	CU_ASSERT_EQUAL(le64_get(&found.generation), generation);
	CU_ASSERT_EQUAL(le64_get(&found.durable_seq), 100 + generation);
}

/* Half of what was to be written there is not. */
static void tear(uint64_t generation)
{
	static const uint8_t old[VF_SUPER_LEN / 2];

	CU_ASSERT_EQUAL(pwrite(device.fd, old, sizeof(old),
			       (off_t)(slot_of(generation) + VF_SUPER_LEN / 2)),
			(ssize_t)sizeof(old));
	/* What is behind the middle is zeros anyway: the half before it changes. */
	CU_ASSERT_EQUAL(pwrite(device.fd, "torn", 4, (off_t)(slot_of(generation) + 512)), 4);
}

static void super_newest_generation_counts(void)
{
	setup();
	for (uint64_t generation = 1; generation <= 70; generation++) {
		write_until(generation);
		expect_generation(generation);
	}
	device_close(&device);
}

static void super_stands_in_its_slot(void)
{
	struct vf_super raw;

	setup();
	write_until(70);
	for (uint64_t generation = 70; generation > 70 - 2 * VF_SUPER_SLOTS; generation--) {
		CU_ASSERT_EQUAL(pread(device.fd, &raw, sizeof(raw), (off_t)slot_of(generation)),
				(ssize_t)sizeof(raw));
		CU_ASSERT_EQUAL(le64_get(&raw.generation), generation);
	}
	device_close(&device);
}

static void super_torn_slot_leaves_the_one_before(void)
{
	setup();
	write_until(40);
	tear(40);
	expect_generation(39);
	tear(39);
	expect_generation(38);
	device_close(&device);
}

static void super_lost_area_leaves_the_other(void)
{
	static const uint8_t zeros[VF_SUPER_AREA];

	setup();
	CU_ASSERT_EQUAL(super_write_both(device.env, &super), 0);
	CU_ASSERT_EQUAL(le64_get(&super.generation), 2);
	CU_ASSERT_EQUAL(device.nflushes, 1);
	write_until(5);
	CU_ASSERT_EQUAL(pwrite(device.fd, zeros, sizeof(zeros), VF_SUPER_SECOND),
			(ssize_t)sizeof(zeros));
	expect_generation(4);
	CU_ASSERT_EQUAL(pwrite(device.fd, zeros, sizeof(zeros), 0), (ssize_t)sizeof(zeros));
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EINVAL);
	device_close(&device);
}

static void super_unreadable_sector_hides_one_slot(void)
{
	setup();
	write_until(40);
	device.bad_off = slot_of(39);
	device.bad_len = VF_SUPER_LEN;
	expect_generation(40);
	device.bad_off = slot_of(40);
	expect_generation(39);
	device.bad_off = 0;
	device.bad_len = LEN;
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "32 of 32 slots cannot be read"));
	device_close(&device);
}

static void super_none_is_no_pool(void)
{
	setup();
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a pool"));
	write_until(1);
	tear(1);
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EUCLEAN);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged"));
	device_close(&device);
	device_open(&device, 1u << 20);
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EINVAL);
	device_close(&device);
}

/* As a newer program would: sealed right, whatever is in it. */
static void write_as_it_is(void)
{
	le64_put(&super.generation, 1);
	vf_seal(&super, VF_SUPER, VF_SUPER_LEN, sample_geometry.uuid);
	CU_ASSERT_EQUAL(pwrite(device.fd, &super, sizeof(super), (off_t)slot_of(1)),
			(ssize_t)sizeof(super));
}

static void super_unknown_features_are_judged_by_their_mask(void)
{
	setup();
	le64_put(&super.features_compat, 1);
	le64_put(&super.durable_seq, 101);
	write_as_it_is();
	expect_generation(1);
	le64_put(&super.features_ro_compat, 1ull << 40);
	write_as_it_is();
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), 0);
	CU_ASSERT(read_only);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "number 40"));
	le64_put(&super.features_incompat, 1);
	le32_put(&super.unit_shift, 9); /* what they change is not judged before */
	write_as_it_is();
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EOPNOTSUPP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "snapshots"));
	device_close(&device);
}

static void super_newer_version_is_named(void)
{
	setup();
	le64_put(&super.generation, 1);
	super.head.version = VF_VERSION + 1;
	CU_ASSERT_EQUAL(pwrite(device.fd, &super, sizeof(super), 0), (ssize_t)sizeof(super));
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EOPNOTSUPP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "version 2"));
	device_close(&device);
}

static void super_that_contradicts_itself_is_damage(void)
{
	setup();
	le64_put(&super.devices[0].nsegments, 9);
	write_as_it_is();
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EUCLEAN);
	device_close(&device);
}

static void super_several_devices_are_refused(void)
{
	setup();
	le32_put(&super.ndevices, 2);
	le64_put(&super.devices[0].nsegments, 200);
	le64_put(&super.devices[1].nsegments, 56);
	write_as_it_is();
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EOPNOTSUPP);
	device_close(&device);
}

static void super_of_a_cut_file_is_read_only(void)
{
	setup();
	write_until(2);
	device.env->device_len = LEN - 1;
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), 0);
	CU_ASSERT(read_only);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "it has been cut"));
	device_close(&device);
}

static void super_clear_refuses_what_is_not_empty(void)
{
	static const off_t places[] = { 0, 510, 65535, 1 << 20, (1 << 20) + 65535 };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		setup();
		CU_ASSERT_EQUAL(pwrite(device.fd, "x", 1, places[i]), 1);
		CU_ASSERT_EQUAL(super_clear(device.env, false, &err), -EEXIST);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not empty"));
		CU_ASSERT_EQUAL(device.nwrites, 0);
		CU_ASSERT_EQUAL(super_clear(device.env, true, &err), 0);
		CU_ASSERT_EQUAL(super_clear(device.env, false, &err), 0);
		device_close(&device);
	}
}

static void super_clear_ends_a_pool_only_by_force(void)
{
	setup();
	write_until(33);
	CU_ASSERT_EQUAL(super_clear(device.env, false, &err), -EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there is a pool on it already, two words"));
	expect_generation(33);
	CU_ASSERT_EQUAL(super_clear(device.env, true, &err), 0);
	CU_ASSERT_EQUAL(device.nflushes, 1);
	CU_ASSERT_EQUAL(super_read(device.env, &found, &read_only, &err), -EINVAL);
	device_close(&device);
}

static void super_clear_refuses_little_devices(void)
{
	device_open(&device, (16u << 20) - 1);
	CU_ASSERT_EQUAL(super_clear(device.env, true, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "16 MiB"));
	device_close(&device);
	device_open(&device, 16u << 20);
	CU_ASSERT_EQUAL(super_clear(device.env, false, &err), 0);
	device_close(&device);
}

static void super_errors_of_writes_are_told(void)
{
	setup();
	device.bad_off = VF_SUPER_SECOND;
	device.bad_len = VF_SUPER_AREA;
	CU_ASSERT_EQUAL(super_write_both(device.env, &super), -EIO);
	CU_ASSERT_EQUAL(super_clear(device.env, false, &err), -EIO);
	CU_ASSERT_EQUAL(super_clear(device.env, true, &err), -EIO);
	device_close(&device);
}

static const struct test tests[] = {
	TEST(super_newest_generation_counts),
	TEST(super_stands_in_its_slot),
	TEST(super_torn_slot_leaves_the_one_before),
	TEST(super_lost_area_leaves_the_other),
	TEST(super_unreadable_sector_hides_one_slot),
	TEST(super_none_is_no_pool),
	TEST(super_unknown_features_are_judged_by_their_mask),
	TEST(super_newer_version_is_named),
	TEST(super_that_contradicts_itself_is_damage),
	TEST(super_several_devices_are_refused),
	TEST(super_of_a_cut_file_is_read_only),
	TEST(super_clear_refuses_what_is_not_empty),
	TEST(super_clear_ends_a_pool_only_by_force),
	TEST(super_clear_refuses_little_devices),
	TEST(super_errors_of_writes_are_told),
};

TEST_MAIN(tests)
