/* lun blocks. */
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void lun_has_defaults(void)
{
	struct config *config = config_of("lun l { path /x }");
	const struct config_lun *lun = config->luns;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(lun->name, "l");
	CU_ASSERT_STRING_EQUAL(lun->backing.path, "/x");
	CU_ASSERT_EQUAL(lun->backing.block_size, 512);
	CU_ASSERT_EQUAL(lun->backing.physical_block_size, 4096);
	CU_ASSERT_EQUAL(lun->backing.cache, BACKING_CACHE_WRITE_BACK);
	CU_ASSERT_EQUAL(lun->backing.direct, BACKING_DIRECT_AUTO);
	CU_ASSERT_TRUE(lun->backing.thin);
	CU_ASSERT_EQUAL(lun->backing.size, 0);
	config_free(config);
}

static void lun_takes_every_word(void)
{
	struct config *config = config_of(
		"lun l { path /x size 4G blocksize 4096 physical-blocksize 4096 serial S1 "
		"device-id D1 vendor V product P revision 1.0 read-only yes backend block "
		"cache write-through direct-io no thin no removable yes device-type disk }");
	const struct config_lun *lun = config->luns;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(lun->backing.size, UINT64_C(4) << 30);
	CU_ASSERT_EQUAL(lun->backing.block_size, 4096);
	CU_ASSERT_EQUAL(lun->backing.cache, BACKING_CACHE_WRITE_THROUGH);
	CU_ASSERT_TRUE(lun->backing.read_only);
	CU_ASSERT_FALSE(lun->backing.thin);
	CU_ASSERT_STRING_EQUAL(lun->scsi.serial, "S1");
	CU_ASSERT_STRING_EQUAL(lun->scsi.device_id, "D1");
	CU_ASSERT_STRING_EQUAL(lun->scsi.vendor, "V");
	CU_ASSERT_TRUE(lun->scsi.removable);
	config_free(config);
}

static void ctl_options_set_what_we_call_otherwise(void)
{
	struct config *config = config_of(
		"lun l { option file /x option vendor V option product \"A disk\" "
		"option readonly on option pblocksize 128K option unmap off "
		"option writecache off option removable on device-type direct }");
	const struct config_lun *lun = config->luns;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(lun->backing.path, "/x");
	CU_ASSERT_STRING_EQUAL(lun->scsi.vendor, "V");
	CU_ASSERT_STRING_EQUAL(lun->scsi.product, "A disk");
	CU_ASSERT_TRUE(lun->backing.read_only);
	CU_ASSERT_TRUE(lun->scsi.removable);
	CU_ASSERT_EQUAL(lun->backing.physical_block_size, 131072);
	CU_ASSERT_FALSE(lun->backing.thin);
	CU_ASSERT_EQUAL(lun->backing.cache, BACKING_CACHE_WRITE_THROUGH);
	CU_ASSERT_EQUAL(lun->scsi.device_type, SCSI_LUN_DISK);
	config_free(config);
}

static void ctl_options_without_effect_warn(void)
{
	CHECK_WARNINGS("target iqn.a { auth-type none portal-group p lun 0 { path /x\n"
		       "ctl-lun 3 option foo bar option scsiname x } }\n"
		       "portal-group p { discovery-auth-group no-authentication }",
		       "2:1: ctl-lun has no effect in quintain\n"
		       "2:18: option foo has no effect in quintain\n"
		       "2:33: option scsiname has no effect in quintain\n"
		       "3:14: portal-group p listens nowhere\n");
}

static void option_repeats_its_word(void)
{
	CHECK_ERRORS("lun l { path /x read-only no option readonly on }",
		     "1:46: read-only is already given at test.conf:1:27\n");
}

static void other_device_types_are_errors(void)
{
	struct config *config = config_of("lun l { path /x device-type cdrom }");

	CU_ASSERT_EQUAL(config->nerrors, 1);
	config_free(config);
}

static void block_sizes_are_512_or_4096(void)
{
	CHECK_ERRORS("lun l { path /x blocksize 1024 }",
		     "1:27: blocksize: 1024 is not 512 or 4096\n");
	CHECK_ERRORS("lun l { path /x blocksize 8K }",
		     "1:27: blocksize: 8K is outside 512..4096 bytes\n");
}

static void physical_block_is_a_power_of_two_of_blocks(void)
{
	CHECK_ERRORS("lun l { path /x blocksize 4096 physical-blocksize 512 }",
		     "1:51: physical-blocksize: 512 is not a power of two of 4096..1048576\n");
	CHECK_ERRORS("lun l { path /x physical-blocksize 3K }",
		     "1:36: physical-blocksize: 3072 is not a power of two of 512..1048576\n");
	CHECK_ERRORS("lun l { path /x blocksize 4096 physical-blocksize 8K }", "");
}

static void size_is_rounded_down_to_blocks(void)
{
	struct config *config = config_of("lun l { path /x size 5000 }");

	CHECK_WARNINGS_OF(config, "1:5: lun l is in no target\n"
				  "1:22: size: 5000 is not a multiple of the block size 512: "
				  "rounded down to 4608\n");
	CU_ASSERT_EQUAL(config->luns->backing.size, 4608);
	config_free(config);
	CHECK_ERRORS("lun l { path /x size 500 }",
		     "1:22: size: 500 is less than one block of 512 bytes\n");
}

static void lun_needs_a_path(void)
{
	CHECK_ERRORS("lun l { size 1G }", "1:1: lun l has no path\n");
}

static void ramdisk_needs_a_size_and_no_path(void)
{
	CHECK_ERRORS("lun l { backend ramdisk size 1M }", "");
	CHECK_ERRORS("lun l { backend ramdisk }", "1:17: backend ramdisk needs a size\n");
	CHECK_ERRORS("lun l { backend ramdisk path /x size 1M }",
		     "1:30: path does not go with backend ramdisk\n");
}

static void unsafe_cache_warns(void)
{
	CHECK_WARNINGS("lun l { path /x cache unsafe }",
		       "1:5: lun l is in no target\n"
		       "1:23: cache unsafe acknowledges flushes without doing them: a crash of "
		       "this machine damages what is on the disk\n");
}

static void one_path_is_one_lun(void)
{
	CHECK_ERRORS("lun l { path /x }\ntarget iqn.a { lun 3 { path /x } }",
		     "2:29: path /x is already that of lun l at test.conf:1:14: define it once, "
		     "as lun NAME { } at the top level, and let each target have it by lun NUMBER "
		     "NAME\n");
}

static const struct test tests[] = {
	TEST(lun_has_defaults),
	TEST(lun_takes_every_word),
	TEST(ctl_options_set_what_we_call_otherwise),
	TEST(ctl_options_without_effect_warn),
	TEST(option_repeats_its_word),
	TEST(other_device_types_are_errors),
	TEST(block_sizes_are_512_or_4096),
	TEST(physical_block_is_a_power_of_two_of_blocks),
	TEST(size_is_rounded_down_to_blocks),
	TEST(lun_needs_a_path),
	TEST(ramdisk_needs_a_size_and_no_path),
	TEST(unsafe_cache_warns),
	TEST(one_path_is_one_lun),
};
TEST_MAIN(tests)
