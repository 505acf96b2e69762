/* The state directory keeps identities and numbers, and never begins anew. */
#include "tests/unit/quintain_test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/state.h"
#include "target/state_file.h"
#include "tests/unit/target/scratch.h"

static struct state *opened(const char *directory)
{
	struct state *state = NULL;
	struct err err;

	CU_ASSERT_EQUAL_FATAL(state_open(directory, &state, &err), 0);
	return state;
}

static const struct scsi_identity some = { .uuid = { 1, 2, 3, 4, 5, 0xff, 7, 8, 9 } };

static void state_directory_is_made_private(void)
{
	char path[PATH_MAX];
	struct stat st;

	scratch_path("a/b/state", path, sizeof(path));
	state_close(opened(path));
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0700);
}

static void state_file_in_place_of_directory_is_refused(void)
{
	char path[PATH_MAX];
	struct state *state;
	struct err err;

	scratch_write("plain", "x");
	scratch_path("plain", path, sizeof(path));
	CU_ASSERT(state_open(path, &state, &err) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "plain"));
}

static void identity_is_unknown_before_it_is_kept(void)
{
	struct state *state = opened(scratch_directory());
	struct scsi_identity identity;

	CU_ASSERT_EQUAL(state_lun_load(state, "/never/served", &identity, NULL), 0);
	state_close(state);
}

static void identity_survives_restart(void)
{
	struct scsi_identity kept = some, loaded = { { 0 } };
	struct state *state = opened(scratch_directory());

	CU_ASSERT_EQUAL(state_lun_keep(state, "/survives", &kept, NULL), 0);
	state_close(state);
	state = opened(scratch_directory());
	CU_ASSERT_EQUAL(state_lun_load(state, "/survives", &loaded, NULL), 1);
	CU_ASSERT_EQUAL(memcmp(&loaded, &some, sizeof(some)), 0);
	state_close(state);
}

static void identity_of_the_first_daemon_wins(void)
{
	struct scsi_identity first = some, second = { { 9 } };
	struct state *state = opened(scratch_directory());

	CU_ASSERT_EQUAL(state_lun_keep(state, "/both", &first, NULL), 0);
	CU_ASSERT_EQUAL(state_lun_keep(state, "/both", &second, NULL), 0);
	CU_ASSERT_EQUAL(memcmp(&second, &some, sizeof(some)), 0);
	state_close(state);
}

/* Spoils the file of key with text; what loading it says. */
static int spoiled(const char *key, const char *text, struct err *err)
{
	struct state *state = opened(scratch_directory());
	struct scsi_identity identity = some;
	char file[PATH_MAX], after[256];
	FILE *f;
	int rc;

	CU_ASSERT_EQUAL(state_lun_keep(state, key, &identity, NULL), 0);
	state_lun_file(state, key, file, sizeof(file));
	f = fopen(file, "w");
	fputs(text, f);
	fclose(f);
	rc = state_lun_load(state, key, &identity, err);
	CU_ASSERT(state_lun_keep(state, key, &identity, NULL) < 0);
	f = fopen(file, "r");
	after[fread(after, 1, sizeof(after) - 1, f)] = '\0';
	fclose(f);
	CU_ASSERT_STRING_EQUAL(after, text); /* left as it was */
	state_close(state);
	return rc;
}

static void damaged_identity_is_an_error_and_left_alone(void)
{
	struct err err;

	CU_ASSERT_EQUAL(spoiled("/torn", "{ \"version\": 1, \"key\": \"/to", &err), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "remove it"));
	CU_ASSERT_EQUAL(spoiled("/empty", "", NULL), -EBADMSG);
	CU_ASSERT_EQUAL(spoiled("/other", "{\"version\":1,\"key\":\"/x\",\"uuid\":\"\"}", NULL),
			-EBADMSG);
	CU_ASSERT_EQUAL(spoiled("/uuid", "{\"version\":1,\"key\":\"/uuid\",\"uuid\":\"12\"}", NULL),
			-EBADMSG);
}

static void identity_of_a_newer_version_is_refused(void)
{
	struct err err;

	CU_ASSERT_EQUAL(spoiled("/new", "{\"version\":2}", &err), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "version 2"));
}

static void write_leaves_no_other_file_behind(void)
{
	struct scsi_identity identity = some;
	char file[PATH_MAX + 32];
	struct state *state = opened(scratch_directory());

	CU_ASSERT_EQUAL(state_lun_keep(state, "/alone", &identity, NULL), 0);
	state_lun_file(state, "/alone", file, sizeof(file));
	snprintf(file + strlen(file), 32, ".%ld", (long)getpid());
	CU_ASSERT_EQUAL(access(file, F_OK), -1);
	state_close(state);
}

static const struct test tests[] = {
	TEST(state_directory_is_made_private),
	TEST(state_file_in_place_of_directory_is_refused),
	TEST(identity_is_unknown_before_it_is_kept),
	TEST(identity_survives_restart),
	TEST(identity_of_the_first_daemon_wins),
	TEST(damaged_identity_is_an_error_and_left_alone),
	TEST(identity_of_a_newer_version_is_refused),
	TEST(write_leaves_no_other_file_behind),
};
TEST_MAIN(tests)
