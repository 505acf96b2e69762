/* The option rows of a store. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/backing/store_fixture.h"

static void settings_have_the_defaults_of_the_manual(void)
{
	struct backing_settings settings;

	memset(&settings, 0xff, sizeof(settings));
	option_defaults(backing_options, &settings);
	CU_ASSERT_PTR_NULL(settings.path);
	CU_ASSERT_EQUAL(settings.backend, BACKING_KIND_BLOCK);
	CU_ASSERT_EQUAL(settings.size, 0);
	CU_ASSERT_EQUAL(settings.block_size, 512);
	CU_ASSERT_EQUAL(settings.physical_block_size, 4096);
	CU_ASSERT_EQUAL(settings.cache, BACKING_CACHE_WRITE_BACK);
	CU_ASSERT_EQUAL(settings.direct, BACKING_DIRECT_AUTO);
	CU_ASSERT_TRUE(settings.thin);
	CU_ASSERT_FALSE(settings.read_only);
}

static void settings_take_the_words_of_the_file(void)
{
	static const char *const words[][2] = {
		{ "path", "/tmp/x" },
		{ "backend", "ramdisk" },
		{ "size", "10G" },
		{ "blocksize", "4096" },
		{ "physical-blocksize", "8192" },
		{ "read-only", "yes" },
		{ "cache", "write-through" },
		{ "direct-io", "no" },
		{ "thin", "no" },
	};
	struct backing_settings settings = store_settings("/", 0);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct option_spec *row = option_find(backing_options, words[i][0]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(row);
		CU_ASSERT_EQUAL(option_set(row, &settings, words[i][1], NULL), 0);
		CU_ASSERT_TRUE(row->summary && row->doc);
	}
	CU_ASSERT_STRING_EQUAL(settings.path, "/tmp/x");
	CU_ASSERT_EQUAL(settings.backend, BACKING_KIND_RAMDISK);
	CU_ASSERT_EQUAL(settings.size, 10ull << 30);
	CU_ASSERT_EQUAL(settings.block_size, 4096);
	CU_ASSERT_EQUAL(settings.physical_block_size, 8192);
	CU_ASSERT_EQUAL(settings.cache, BACKING_CACHE_WRITE_THROUGH);
	CU_ASSERT_EQUAL(settings.direct, BACKING_DIRECT_NO);
	CU_ASSERT_FALSE(settings.thin);
	CU_ASSERT_TRUE(settings.read_only);
}

static const struct test tests[] = {
	TEST(settings_have_the_defaults_of_the_manual),
	TEST(settings_take_the_words_of_the_file),
};
TEST_MAIN(tests)
