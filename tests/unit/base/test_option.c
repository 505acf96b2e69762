/* Option rows: what they take, what they refuse and in which words. */
#include "base/option.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/quintain_test.h"

struct settings {
	bool read_only;
	uint32_t burst, depth;
	uint64_t size;
	uint8_t digest;
	const char *serial;
};

static const char *const digests[] = { "none", "optional", "required", NULL };
static const char *const burst_aliases[] = { "MaxBurstLength", NULL };

static const struct option_spec rows[] = {
	{ .key = "read-only",
	  .type = OPTION_BOOL,
	  .offset = offsetof(struct settings, read_only),
	  .def = "no" },
	{ .key = "max-burst-length",
	  .type = OPTION_UINT,
	  .def = "256K",
	  .min = 512,
	  .max = 16777215,
	  .unit = "bytes",
	  .offset = offsetof(struct settings, burst),
	  .aliases = burst_aliases },
	{ .key = "queue-depth",
	  .type = OPTION_UINT,
	  .def = "256",
	  .min = 1,
	  .max = 1024,
	  .offset = offsetof(struct settings, depth) },
	{ .key = "size",
	  .type = OPTION_SIZE,
	  .min = 1 << 20,
	  .max = UINT64_C(8) << 50,
	  .offset = offsetof(struct settings, size) },
	{ .key = "header-digest",
	  .type = OPTION_CHOICE,
	  .choices = digests,
	  .def = "optional",
	  .offset = offsetof(struct settings, digest) },
	{ .key = "serial",
	  .type = OPTION_STRING,
	  .min = 1,
	  .max = 8,
	  .offset = offsetof(struct settings, serial) },
	OPTION_END,
};

static int set(struct settings *s, const char *key, const char *value, struct err *err)
{
	return option_set(option_find(rows, key), s, value, err);
}

static void expect_refused(const char *key, const char *value, const char *text)
{
	struct settings s = { 0 };
	struct err err = { "" };

	CU_ASSERT_EQUAL(set(&s, key, value, &err), -EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, text);
	CU_ASSERT_EQUAL(set(&s, key, value, NULL), -EINVAL);
}

static void option_defaults_fill_every_field(void)
{
	struct settings s;

	memset(&s, 0xaa, sizeof(s));
	option_defaults(rows, &s);
	CU_ASSERT_FALSE(s.read_only);
	CU_ASSERT_EQUAL(s.burst, 262144);
	CU_ASSERT_EQUAL(s.depth, 256);
	CU_ASSERT_EQUAL(s.size, 0);
	CU_ASSERT_EQUAL(s.digest, 1);
	CU_ASSERT_PTR_NULL(s.serial);
}

static void option_set_takes_what_is_valid(void)
{
	struct settings s = { 0 };

	CU_ASSERT_EQUAL(set(&s, "read-only", "Yes", NULL), 0);
	CU_ASSERT_TRUE(s.read_only);
	CU_ASSERT_EQUAL(set(&s, "read-only", "off", NULL), 0);
	CU_ASSERT_FALSE(s.read_only);
	CU_ASSERT_EQUAL(set(&s, "max-burst-length", "512", NULL), 0);
	CU_ASSERT_EQUAL(s.burst, 512);
	CU_ASSERT_EQUAL(set(&s, "max-burst-length", "16777215", NULL), 0);
	CU_ASSERT_EQUAL(s.burst, 16777215);
	CU_ASSERT_EQUAL(set(&s, "size", "10g", NULL), 0);
	CU_ASSERT_EQUAL(s.size, UINT64_C(10) << 30);
	CU_ASSERT_EQUAL(set(&s, "header-digest", "required", NULL), 0);
	CU_ASSERT_EQUAL(s.digest, 2);
	CU_ASSERT_EQUAL(set(&s, "serial", "abc", NULL), 0);
	CU_ASSERT_STRING_EQUAL(s.serial, "abc");
}

static void option_set_says_what_is_valid(void)
{
	expect_refused("max-burst-length", "100",
		       "max-burst-length: 100 is outside 512..16777215 bytes");
	expect_refused("max-burst-length", "99999999999999999999",
		       "max-burst-length: 99999999999999999999 is outside 512..16777215 bytes");
	expect_refused("queue-depth", "0", "queue-depth: 0 is outside 1..1024");
	expect_refused("size", "1K", "size: 1K is outside 1 MiB..8 PiB");
	expect_refused("size", "10X",
		       "size: 10X is not valid: a size in bytes, such as 512 or 64K");
	expect_refused("read-only", "maybe", "read-only: maybe is not valid: yes or no");
	expect_refused("header-digest", "requird",
		       "header-digest: requird is not valid: one of none, optional, required "
		       "(did you mean required?)");
	expect_refused("header-digest", "crc32c",
		       "header-digest: crc32c is not valid: one of none, optional, required");
	expect_refused("serial", "123456789",
		       "serial: 123456789 is not valid: a text of 1..8 characters");
	expect_refused("serial", "", "serial: \"\" is not valid: a text of 1..8 characters");
}

static void option_numbers_take_digits_only(void)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.5", "1K" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct settings s = { 0 };

		CU_ASSERT_EQUAL(set(&s, "queue-depth", bad[i], NULL), -EINVAL);
		CU_ASSERT_EQUAL(s.depth, 0);
	}
}

static void option_find_knows_aliases(void)
{
	CU_ASSERT_PTR_EQUAL(option_find(rows, "MaxBurstLength"), &rows[1]);
	CU_ASSERT_PTR_NULL(option_find(rows, "max-burst"));
}

static void option_equal_compares_values(void)
{
	struct settings a, b;
	char copy[] = "abc";

	option_defaults(rows, &a);
	option_defaults(rows, &b);
	for (const struct option_spec *row = rows; row->key; row++)
		CU_ASSERT_TRUE(option_equal(row, &a, &b));
	a.serial = "abc";
	CU_ASSERT_FALSE(option_equal(option_find(rows, "serial"), &a, &b));
	b.serial = copy;
	CU_ASSERT_TRUE(option_equal(option_find(rows, "serial"), &a, &b));
	b.size = 1;
	CU_ASSERT_FALSE(option_equal(option_find(rows, "size"), &a, &b));
}

static void expect_format(const char *key, const struct settings *s, const char *text)
{
	char out[64];

	option_format(option_find(rows, key), s, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, text);
}

static void option_format_is_what_the_file_says(void)
{
	struct settings s = { true, 512, 7, UINT64_C(1536) << 30, 2, "a b\"c" };

	expect_format("read-only", &s, "yes");
	expect_format("max-burst-length", &s, "512");
	expect_format("size", &s, "1536G");
	expect_format("header-digest", &s, "required");
	expect_format("serial", &s, "\"a b\\\"c\"");
	s.serial = "plain";
	expect_format("serial", &s, "plain");
	s.serial = "";
	expect_format("serial", &s, "\"\"");
	s.serial = NULL;
	expect_format("serial", &s, "");
	s.size = 0;
	expect_format("size", &s, "0");
	s.size = 1025;
	expect_format("size", &s, "1025");
}

static void option_format_keeps_within_its_room(void)
{
	struct settings s = { .serial = "\"\"\"\"\"\"\"\"" };
	char out[16];

	for (size_t cap = 1; cap < sizeof(out); cap++) {
		memset(out, 'x', sizeof(out));
		option_format(option_find(rows, "serial"), &s, out, cap);
		CU_ASSERT(strlen(out) < cap);
		CU_ASSERT_EQUAL(out[cap], 'x');
	}
}

static void option_nearest_finds_slips_of_the_pen(void)
{
	static const char *const names[] = { "portal-group", "auth-group", "target", "lun" };

	CU_ASSERT_STRING_EQUAL(option_nearest("portal-gruop", names, 4), "portal-group");
	CU_ASSERT_STRING_EQUAL(option_nearest("autgroup", names, 4), "auth-group");
	CU_ASSERT_STRING_EQUAL(option_nearest("Target", names, 4), "target");
	CU_ASSERT_STRING_EQUAL(option_nearest("lum", names, 4), "lun");
	CU_ASSERT_PTR_NULL(option_nearest("banana", names, 4));
	CU_ASSERT_PTR_NULL(option_nearest("x", names, 4));
	CU_ASSERT_PTR_NULL(option_nearest("", names, 4));
	CU_ASSERT_PTR_NULL(option_nearest("target", names, 0));
}

static const struct test tests[] = {
	TEST(option_defaults_fill_every_field),
	TEST(option_set_takes_what_is_valid),
	TEST(option_set_says_what_is_valid),
	TEST(option_numbers_take_digits_only),
	TEST(option_find_knows_aliases),
	TEST(option_equal_compares_values),
	TEST(option_format_is_what_the_file_says),
	TEST(option_format_keeps_within_its_room),
	TEST(option_nearest_finds_slips_of_the_pen),
};

TEST_MAIN(tests)
