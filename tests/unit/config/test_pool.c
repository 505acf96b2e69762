/* pool blocks, and volumes of pools in lun blocks. */
#include <string.h>

#include "config/config.h"
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

#define TANK   "pool tank { path /srv/tank; size 1G; }\n"
#define TARGET "target iqn.2024-01.test:a { auth-group no-authentication; lun 0 a; }\n"

static void pool_has_defaults(void)
{
	struct config *config = config_of(TANK);

	CU_ASSERT_EQUAL(config->nerrors, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(config->pools);
	CU_ASSERT_STRING_EQUAL(config->pools->name, "tank");
	CU_ASSERT_STRING_EQUAL(config->pools->settings.path, "/srv/tank");
	CU_ASSERT_EQUAL(config->pools->settings.size, 1u << 30);
	CU_ASSERT_EQUAL(config->pools->settings.threshold, 80);
	CU_ASSERT_EQUAL(config->pools->settings.cache_memory, 0);
	config_free(config);
}

static void pool_takes_every_word(void)
{
	struct config *config = config_of(
		"pool tank { path /srv/tank; size 16M; cache-memory 512M; threshold 75%; }");

	CU_ASSERT_EQUAL(config->nerrors, 0);
	CU_ASSERT_EQUAL(config->pools->settings.cache_memory, 512u << 20);
	CU_ASSERT_EQUAL(config->pools->settings.threshold, 75);
	config_free(config);
}

static void pool_needs_a_path_and_room(void)
{
	CHECK_ERRORS("pool tank { size 1G; }", "1:1: pool tank has no path\n");
	CHECK_ERRORS("pool tank { path /srv/a; size 15M; }",
		     "1:31: size: a pool has at least 16 MiB\n");
	CHECK_ERRORS("pool tank { path /srv/a; threshold 101%; }",
		     "1:36: threshold: 101% is outside 1..100 percent\n");
}

static void pools_have_paths_of_their_own(void)
{
	CHECK_ERRORS(TANK "pool b { path /srv/tank; }",
		     "2:15: /srv/tank is the path of pool tank already\n");
}

static void lun_finds_its_pool(void)
{
	struct config *config = config_of("lun a { volume tank/a; size 1G; }\n" TANK TARGET);

	CU_ASSERT_EQUAL(config->nerrors, 0);
	CU_ASSERT_PTR_EQUAL(config->luns->pool, config->pools);
	CU_ASSERT_EQUAL(config->luns->backing.record_size, 16384);
	CU_ASSERT_STRING_EQUAL(config->luns->backing.compression, "lz4");
	config_free(config);
}

static void unknown_pool_is_an_error_with_a_guess(void)
{
	CHECK_ERRORS(TANK "lun a { volume tnk/a; size 1G; }\n" TARGET,
		     "2:16: pool tnk is not defined: did you mean tank?\n");
	CHECK_ERRORS(TANK "lun a { volume tank; size 1G; }\n" TARGET,
		     "2:16: volume: tank is not POOL/NAME\n");
}

static void volume_and_path_exclude_each_other(void)
{
	CHECK_ERRORS(TANK "lun a { volume tank/a; path /srv/x; size 1G; }\n" TARGET,
		     "2:29: path and volume exclude each other\n");
}

static void one_volume_is_one_lun(void)
{
	CHECK_ERRORS(
		TANK "lun a { volume tank/a; size 1G; }\nlun b { volume tank/a; size 1G; }\n"
		     "target iqn.2024-01.test:a { auth-group no-authentication; lun 0 a; lun 1 "
		     "b; }\n",
		"3:16: volume tank/a is that of lun a already: to serve it in several targets, "
		"define `lun NAME` once and map that\n");
}

static void volume_settings_are_judged(void)
{
	CHECK_ERRORS(TANK "lun a { volume tank/a; size 1G; record-size 24K; }\n" TARGET,
		     "2:45: record-size: 24576 is not a power of two of 4K..1M, at least the "
		     "blocksize\n");
	CHECK_WARNINGS(
		TANK "lun a { volume tank/a; size 1G; direct-io yes; }\n" TARGET,
		"0:0: portal-group default answers no discovery: it has no "
		"discovery-auth-group\n2:43: direct-io has no effect on a LUN of a volume\n");
	CHECK_WARNINGS(
		TANK "lun a { path /srv/x; size 1G; compression lz4; }\n" TARGET,
		"0:0: portal-group default answers no discovery: it has no "
		"discovery-auth-group\n2:43: compression has no effect on a LUN without volume\n");
}

static void compression_says_what_is_valid(void)
{
	struct config *config =
		config_of(TANK "lun a { volume tank/a; size 1G; compression gzip-12; }\n" TARGET);

	CU_ASSERT_EQUAL(config->nerrors, 1);
	for (const struct config_message *m = config->messages; m; m = m->next)
		if (m->severity == CONFIG_ERROR)
			CU_ASSERT_PTR_NOT_NULL(strstr(m->text, "gzip-9"));
	config_free(config);
}

static const struct test tests[] = {
	TEST(pool_has_defaults),
	TEST(pool_takes_every_word),
	TEST(pool_needs_a_path_and_room),
	TEST(pools_have_paths_of_their_own),
	TEST(lun_finds_its_pool),
	TEST(unknown_pool_is_an_error_with_a_guess),
	TEST(volume_and_path_exclude_each_other),
	TEST(one_volume_is_one_lun),
	TEST(volume_settings_are_judged),
	TEST(compression_says_what_is_valid),
};
TEST_MAIN(tests)
