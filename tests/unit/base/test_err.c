/* Texts of errors. */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/quintain_test.h"

static void err_set_returns_the_negative_code(void)
{
	struct err err;

	CU_ASSERT_EQUAL(err_set(&err, EINVAL, "%s: %d is not valid", "lun", 7), -EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, "lun: 7 is not valid");
	CU_ASSERT_EQUAL(err_set(NULL, ENOENT, "unread"), -ENOENT);
}

static void err_set_may_use_its_own_text(void)
{
	struct err err;

	err_set(&err, EIO, "inner");
	err_set(&err, EIO, "outer (%s)", err.text);
	CU_ASSERT_STRING_EQUAL(err.text, "outer (inner)");
}

static void err_prefix_goes_in_front(void)
{
	struct err err;

	err_set(&err, EIO, "no such file");
	err_prefix(&err, "%s:%d", "a.conf", 12);
	CU_ASSERT_STRING_EQUAL(err.text, "a.conf:12: no such file");
	err_prefix(NULL, "unread");
}

static void err_texts_are_cut(void)
{
	static char longer[3 * ERR_TEXT_MAX];
	struct err err;

	memset(longer, 'x', sizeof(longer) - 1);
	err_set(&err, EIO, "%s", longer);
	CU_ASSERT_EQUAL(strlen(err.text), ERR_TEXT_MAX - 1);
	err_prefix(&err, "front");
	CU_ASSERT_EQUAL(strlen(err.text), ERR_TEXT_MAX - 1);
	CU_ASSERT_EQUAL(memcmp(err.text, "front: xxx", 10), 0);
	err_prefix(&err, "%s", longer);
	CU_ASSERT(strlen(err.text) < ERR_TEXT_MAX);
}

static void err_name_knows_any_number(void)
{
	CU_ASSERT_STRING_EQUAL(err_name(ENOSPC), "No space left on device");
	CU_ASSERT_STRING_EQUAL(err_name(99999), "unknown error");
}

static const struct test tests[] = {
	TEST(err_set_returns_the_negative_code), TEST(err_set_may_use_its_own_text),
	TEST(err_prefix_goes_in_front),		 TEST(err_texts_are_cut),
	TEST(err_name_knows_any_number),
};

TEST_MAIN(tests)
