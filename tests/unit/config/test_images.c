/* A configuration without a file, and the state directory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void images_are_luns_of_one_target(void)
{
	static const char *const images[] = { "/quintain-a", "/quintain-b" };
	const struct config_simple simple = {
		.images = images,
		.nimages = 2,
		.iqn = "IQN.2020-01.org.example:x",
		.size = 1u << 20,
		.block_size = 4096,
		.read_only = true,
	};
	struct jobs *jobs = jobs_create();
	struct err err;
	struct config *config = config_from_images(&simple, jobs, &err);
	const struct config_lun_map *map;

	jobs_destroy(jobs);
	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	CHECK_WARNINGS_OF(config,
			  "0:0: /quintain-a does not exist, and none is made for read-only yes: "
			  "the LUN is NOT READY until it appears\n"
			  "0:0: /quintain-b does not exist, and none is made for read-only yes: "
			  "the LUN is NOT READY until it appears\n");
	CU_ASSERT_STRING_EQUAL(config->targets->name, "iqn.2020-01.org.example:x");
	CU_ASSERT_PTR_NULL(config->targets->next);
	map = config->targets->luns;
	CU_ASSERT_EQUAL(map->number, 0);
	CU_ASSERT_STRING_EQUAL(map->lun->backing.path, "/quintain-a");
	CU_ASSERT_EQUAL(map->lun->backing.size, 1u << 20);
	CU_ASSERT_EQUAL(map->lun->backing.block_size, 4096);
	CU_ASSERT_TRUE(map->lun->backing.read_only);
	CU_ASSERT_EQUAL(map->next->number, 1);
	CU_ASSERT_STRING_EQUAL(map->next->lun->backing.path, "/quintain-b");
	config_free(config);
}

static void images_are_for_this_machine_by_default(void)
{
	static const char *const images[] = { "/quintain-a" };
	const struct config_simple simple = { .images = images, .nimages = 1, .size = 512 };
	struct config *config = config_from_images(&simple, NULL, NULL);
	const struct config_portal_group *group;

	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	group = config->portal_groups;
	CU_ASSERT_STRING_EQUAL(group->listens->host, "127.0.0.1");
	CU_ASSERT_STRING_EQUAL(group->listens->port, "3260");
	CU_ASSERT_PTR_NULL(group->next);
	CU_ASSERT_EQUAL(group->discovery_auth->type, CONFIG_AUTH_NONE);
	CU_ASSERT_EQUAL(config->targets->ports->auth->type, CONFIG_AUTH_NONE);
	CU_ASSERT_PTR_EQUAL(config->targets->ports->group, group);
	CU_ASSERT_EQUAL(config->luns->backing.block_size, 512);
	CU_ASSERT_EQUAL(strncmp(config->targets->name, "iqn.2026-11.org.quintain:", 25), 0);
	config_free(config);
}

static void images_for_others_warn(void)
{
	static const char *const images[] = { "/quintain-a" };
	struct config_simple simple = {
		.images = images,
		.nimages = 1,
		.size = 512,
		.listen = "192.0.2.1:99",
	};
	struct config *config = config_from_images(&simple, NULL, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	CHECK_WARNINGS_OF(config, "0:0: --listen 192.0.2.1:99: whoever reaches this address can "
				  "read and change the disks without a password; a configuration "
				  "file with CHAP keeps others out\n");
	config_free(config);
	simple.listen = "[::1]";
	config = config_from_images(&simple, NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	CHECK_WARNINGS_OF(config, "");
	config_free(config);
}

static void images_with_errors_are_refused(void)
{
	static const char *const images[] = { "/quintain-a", "/quintain-a" };
	static const struct {
		struct config_simple simple;
		const char *text;
	} cases[] = {
		{ { images, 0, NULL, NULL, 0, 0, false }, "1 to 16384 images can be served" },
		{ { images, 1, "[::1", NULL, 0, 0, false },
		  "--listen: [::1 is not [ADDRESS] or [ADDRESS]:PORT" },
		{ { images, 1, NULL, "disk", 0, 0, false },
		  "--iqn: an iSCSI name looks like iqn.2026-11.org.example:disk, or begins with "
		  "eui. or naa." },
		{ { images, 1, NULL, NULL, 0, 1024, false },
		  "--block-size: 1024 is not 512 or 4096" },
		{ { images, 1, NULL, NULL, 513, 0, false },
		  "--size: 513 is not a multiple of the block size 512" },
		{ { images, 2, NULL, NULL, 0, 0, false }, "/quintain-a is given twice" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { "" };

		CU_ASSERT_PTR_NULL(config_from_images(&cases[i].simple, NULL, &err));
		CU_ASSERT_STRING_EQUAL(err.text, cases[i].text);
	}
}

static void check_state_dir(const char *text, const char *expected)
{
	struct config *config = config_of(text);
	char path[4096];
	struct err err;

	CU_ASSERT_EQUAL(config_state_dir(config, path, sizeof(path), &err), 0);
	CU_ASSERT_STRING_EQUAL(path, expected);
	config_free(config);
}

static void state_dir_is_as_given(void)
{
	check_state_dir("state-dir /srv/state", "/srv/state");
}

static void state_dir_of_root_is_in_var(void)
{
	if (geteuid() != 0)
		test_skip("not root");
	check_state_dir("", "/var/lib/quintain");
}

static void check_homes(void)
{
	struct config *config = config_of("");
	char path[4096];

	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_STATE_HOME");
	check_state_dir("", "/home/x/.local/state/quintain");
	setenv("XDG_STATE_HOME", "relative", 1);
	check_state_dir("", "/home/x/.local/state/quintain");
	setenv("XDG_STATE_HOME", "/state", 1);
	check_state_dir("", "/state/quintain");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	CU_ASSERT_NOT_EQUAL(config_state_dir(config, path, sizeof(path), NULL), 0);
	config_free(config);
}

static void state_dir_of_others_is_in_their_home(void)
{
	bool is_root = geteuid() == 0;

	if (is_root)
		CU_ASSERT_EQUAL_FATAL(seteuid(65534), 0);
	check_homes();
	if (is_root)
		CU_ASSERT_EQUAL(seteuid(0), 0);
}

static const struct test tests[] = {
	TEST(images_are_luns_of_one_target),
	TEST(images_are_for_this_machine_by_default),
	TEST(images_for_others_warn),
	TEST(images_with_errors_are_refused),
	TEST(state_dir_is_as_given),
	TEST(state_dir_of_root_is_in_var),
	TEST(state_dir_of_others_is_in_their_home),
};
TEST_MAIN(tests)
