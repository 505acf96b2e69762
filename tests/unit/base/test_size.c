/* Sizes as people write and read them. */
#include "base/option.h"

#include <errno.h>

#include "tests/unit/quintain_test.h"

static void expect_size(const char *word, uint64_t bytes)
{
	uint64_t got = 0;

	CU_ASSERT_EQUAL(size_parse(word, &got), 0);
	CU_ASSERT_EQUAL(got, bytes);
}

static void size_parse_takes_powers_of_1024(void)
{
	expect_size("0", 0);
	expect_size("512", 512);
	expect_size("1k", 1024);
	expect_size("64K", 65536);
	expect_size("3M", 3 << 20);
	expect_size("10G", UINT64_C(10) << 30);
	expect_size("2t", UINT64_C(2) << 40);
	expect_size("1P", UINT64_C(1) << 50);
	expect_size("512b", 512);
	expect_size("1KB", 1024);
	expect_size("1MiB", 1 << 20);
	expect_size("18446744073709551615", UINT64_MAX);
}

static const char *const bad[] = {
	"", "K", "-1", "+1", " 1", "1 ", "1.5G", "1KK", "1iB", "0x10", "1Z", "1Kx", "1KiBs", "one",
};

static void size_parse_refuses_what_is_no_size(void)
{
	uint64_t bytes = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(size_parse(bad[i], &bytes), -EINVAL);
	CU_ASSERT_EQUAL(bytes, 7);
}

static void size_parse_refuses_what_overflows(void)
{
	uint64_t bytes = 7;

	CU_ASSERT_EQUAL(size_parse("18446744073709551616", &bytes), -ERANGE);
	CU_ASSERT_EQUAL(size_parse("99999999999999999999999", &bytes), -ERANGE);
	CU_ASSERT_EQUAL(size_parse("16384P", &bytes), -ERANGE);
	CU_ASSERT_EQUAL(size_parse("18014398509481984K", &bytes), -ERANGE);
	CU_ASSERT_EQUAL(bytes, 7);
}

static void expect_text(uint64_t bytes, const char *text)
{
	char out[32];

	size_format(bytes, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, text);
}

static void size_format_rounds_to_three_digits(void)
{
	expect_text(0, "0 bytes");
	expect_text(512, "512 bytes");
	expect_text(1023, "1023 bytes");
	expect_text(1024, "1 KiB");
	expect_text(UINT64_C(10) << 30, "10 GiB");
	expect_text(UINT64_C(1536) << 30, "1.5 TiB");
	expect_text((UINT64_C(1) << 30) * 1000, "1000 GiB");
	expect_text((UINT64_C(1) << 30) + (UINT64_C(1) << 28), "1.25 GiB");
	expect_text(UINT64_C(12345678901), "11.5 GiB");
	expect_text((UINT64_C(100) << 20) + 1000, "100 MiB");
	expect_text(UINT64_C(5) << 60, "5120 PiB");
}

static const struct test tests[] = {
	TEST(size_parse_takes_powers_of_1024),
	TEST(size_parse_refuses_what_is_no_size),
	TEST(size_parse_refuses_what_overflows),
	TEST(size_format_rounds_to_three_digits),
};

TEST_MAIN(tests)
