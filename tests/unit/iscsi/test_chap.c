/* CHAP's algorithms and text forms: RFC 1994, RFC 7143 6.1 and 12.1.3. */
#include "target/iscsi/chap.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/quintain_test.h"

static void chap_chooses_the_first_algorithm_that_it_has(void)
{
	CU_ASSERT_EQUAL(chap_choose("7,5"), CHAP_SHA256);
	CU_ASSERT_EQUAL(chap_choose("9,55,8,7"), CHAP_SHA3_256);
	CU_ASSERT_EQUAL(chap_choose("6"), CHAP_SHA1);
}

static void chap_chooses_none_of_what_it_does_not_have(void)
{
	CU_ASSERT_EQUAL(chap_choose("9"), 0);
	CU_ASSERT_EQUAL(chap_choose(""), 0);
	CU_ASSERT_EQUAL(chap_choose("05,55,,0x5"), 0);
}

static void digest_is(unsigned int algorithm, const char *hex)
{
	uint8_t digest[CHAP_DIGEST_MAX], expected[CHAP_DIGEST_MAX];
	static const uint8_t challenge[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
	};
	size_t len = chap_digest(algorithm, 0x2a, "a-secret-of-16ch", challenge, sizeof(challenge),
				 digest);

	CU_ASSERT_EQUAL(len, chap_digest_len(algorithm));
	CU_ASSERT_EQUAL_FATAL(chap_decode(hex, expected, sizeof(expected)), (int)len);
	CU_ASSERT_TRUE(chap_equal(digest, expected, len));
}

/* Computed with Python's hashlib over the same bytes. */
static void chap_digests_with_md5(void)
{
	digest_is(CHAP_MD5, "0xdb1e9b39024ca1f5139bf47e040a044c");
}

static void chap_digests_with_sha1(void)
{
	digest_is(CHAP_SHA1, "0x9287885cd3fcd486fd386cba68927dcc3aa804cc");
}

static void chap_digests_with_sha256(void)
{
	digest_is(CHAP_SHA256,
		  "0x868d933994756325733670371a69151aa6c915221061407310ac6e99bcf35e29");
}

static void chap_digests_with_sha3_256(void)
{
	digest_is(CHAP_SHA3_256,
		  "0x5a6180e35180764bf5cbbfd36089a0d792ed548d1eb7a59042ea318d1615444e");
}

static void decodes(const char *value, const char *bytes, size_t len)
{
	uint8_t out[16];

	CU_ASSERT_EQUAL_FATAL(chap_decode(value, out, sizeof(out)), (int)len);
	CU_ASSERT_EQUAL(memcmp(out, bytes, len), 0);
}

static void refuses(const char *value)
{
	uint8_t out[4];

	CU_ASSERT_EQUAL(chap_decode(value, out, sizeof(out)), -EINVAL);
}

static void chap_decodes_hexadecimal_values(void)
{
	decodes("0x00ff10", "\x00\xff\x10", 3);
	decodes("0XabCD", "\xab\xcd", 2);
	decodes("0xabc", "\x0a\xbc", 2);
	decodes("0x1abcd", "\x01\xab\xcd", 3);
}

static void chap_decodes_base64_values(void)
{
	decodes("0bYWJj", "abc", 3);
	decodes("0BYWI=", "ab", 2);
	decodes("0bYQ==", "a", 1);
	decodes("0bYQ", "a", 1);
	decodes("0b+/+/", "\xfb\xff\xbf", 3);
}

static void chap_refuses_values_that_are_no_bytes(void)
{
	static const char *const values[] = { "",	"0",	   "0x",   "0b",     "12",
					      "0xzz",	"0b=",	   "0bY",  "0bYW=",  "0bYWJj=",
					      "0bY=Q=", "0bYQ===", "0x 1", "0b!!!!", "1x22" };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		refuses(values[i]);
}

static void chap_refuses_values_longer_than_the_room(void)
{
	refuses("0x0102030405");
	refuses("0bAQIDBAU=");
}

static void chap_encodes_what_it_decodes(void)
{
	static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff };
	char text[2 * sizeof(bytes) + 3];

	chap_encode(bytes, sizeof(bytes), text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "0x00017f80ff");
}

static const struct test tests[] = {
	TEST(chap_chooses_the_first_algorithm_that_it_has),
	TEST(chap_chooses_none_of_what_it_does_not_have),
	TEST(chap_digests_with_md5),
	TEST(chap_digests_with_sha1),
	TEST(chap_digests_with_sha256),
	TEST(chap_digests_with_sha3_256),
	TEST(chap_decodes_hexadecimal_values),
	TEST(chap_decodes_base64_values),
	TEST(chap_refuses_values_that_are_no_bytes),
	TEST(chap_refuses_values_longer_than_the_room),
	TEST(chap_encodes_what_it_decodes),
};

TEST_MAIN(tests)
