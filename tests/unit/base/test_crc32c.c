/* CRC32C against the examples of RFC 3720 B.4 and its own portable form. */
#include "base/crc32c.h"

#include <string.h>

#include "base/be.h"
#include "tests/unit/quintain_test.h"

static uint32_t digest(const void *data, size_t len)
{
	return crc32c_final(crc32c_update(CRC32C_INIT, data, len));
}

/* RFC 3720 B.4: the bytes of the digest as they are sent. */
static void expect_wire(const uint8_t *data, size_t len, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t expected[4] = { a, b, c, d };
	le32 field;

	le32_put(&field, digest(data, len));
	CU_ASSERT_EQUAL(memcmp(field.b, expected, 4), 0);
}

static void crc32c_has_the_values_of_the_rfc(void)
{
	static const uint8_t read10_pdu[48] = {
		0x01,	     0xc0,	  [16] = 0x14, [22] = 0x04,
		[27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02,
	};
	uint8_t data[32] = { 0 };

	expect_wire(data, 32, 0xaa, 0x36, 0x91, 0x8a);
	memset(data, 0xff, sizeof(data));
	expect_wire(data, 32, 0x43, 0xab, 0xa8, 0x62);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	expect_wire(data, 32, 0x4e, 0x79, 0xdd, 0x46);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	expect_wire(data, 32, 0x5c, 0xdb, 0x3f, 0x11);
	expect_wire(read10_pdu, 48, 0x56, 0x3a, 0x96, 0xd9);
}

static void crc32c_of_nothing_is_zero(void)
{
	CU_ASSERT_EQUAL(digest("", 0), 0);
}

static void fill(uint8_t *data, size_t len)
{
	uint32_t x = 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (uint8_t)(x >> 24);
	}
}

static uint8_t data_big[20000];

static void crc32c_equals_the_portable_form_at_any_length(void)
{
	uint32_t differ = 0;

	fill(data_big, sizeof(data_big));
	for (size_t len = 0; len < 9000; len += len < 64 ? 1 : 37) {
		for (size_t off = 0; off < 9; off += 3)
			if (crc32c_update(0x12345678, data_big + off, len) !=
			    crc32c_update_table(0x12345678, data_big + off, len))
				differ++;
	}
	CU_ASSERT_EQUAL(differ, 0);
}

static void crc32c_of_pieces_is_that_of_the_whole(void)
{
	uint32_t whole, pieces = CRC32C_INIT;
	size_t at = 0, len = 1;

	fill(data_big, sizeof(data_big));
	whole = digest(data_big, sizeof(data_big));
	while (at < sizeof(data_big)) {
		if (len > sizeof(data_big) - at)
			len = sizeof(data_big) - at;
		pieces = crc32c_update(pieces, data_big + at, len);
		at += len;
		len = len * 2 + 1;
	}
	CU_ASSERT_EQUAL(crc32c_final(pieces), whole);
}

static const struct test tests[] = {
	TEST(crc32c_has_the_values_of_the_rfc),
	TEST(crc32c_of_nothing_is_zero),
	TEST(crc32c_equals_the_portable_form_at_any_length),
	TEST(crc32c_of_pieces_is_that_of_the_whole),
};

TEST_MAIN(tests)
