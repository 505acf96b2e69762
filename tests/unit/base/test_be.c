/* Integers of the wire. */
#include "base/be.h"

#include "tests/unit/quintain_test.h"

_Static_assert(sizeof(be24) == 3 && _Alignof(be64) == 1, "wire types have no padding");

static void be_writes_the_high_byte_first(void)
{
	be16 a;
	be24 b;
	be32 c;
	be64 d;

	be16_put(&a, 0x0102);
	be24_put(&b, 0x010203);
	be32_put(&c, 0x01020304);
	be64_put(&d, 0x0102030405060708);
	CU_ASSERT_EQUAL(memcmp(&a, "\1\2", 2), 0);
	CU_ASSERT_EQUAL(memcmp(&b, "\1\2\3", 3), 0);
	CU_ASSERT_EQUAL(memcmp(&c, "\1\2\3\4", 4), 0);
	CU_ASSERT_EQUAL(memcmp(&d, "\1\2\3\4\5\6\7\10", 8), 0);
}

static void be_reads_what_it_wrote(void)
{
	uint8_t odd[9];
	be16 a;
	be24 b;
	be32 c;
	be64 d;

	be16_put(&a, 0xfffe);
	be24_put(&b, 0xfffefd);
	be32_put(&c, 0xfffefdfc);
	be64_put(&d, 0xfffefdfcfbfaf9f8);
	CU_ASSERT_EQUAL(be16_get(&a), 0xfffe);
	CU_ASSERT_EQUAL(be24_get(&b), 0xfffefd);
	CU_ASSERT_EQUAL(be32_get(&c), 0xfffefdfc);
	CU_ASSERT_EQUAL(be64_get(&d), 0xfffefdfcfbfaf9f8);
	be64_store(odd + 1, 42);
	CU_ASSERT_EQUAL(be64_load(odd + 1), 42);
}

static void le32_writes_the_low_byte_first(void)
{
	le32 a;

	le32_put(&a, 0x01020384);
	CU_ASSERT_EQUAL(memcmp(&a, "\x84\3\2\1", 4), 0);
	CU_ASSERT_EQUAL(le32_get(&a), 0x01020384);
}

static const struct test tests[] = {
	TEST(be_writes_the_high_byte_first),
	TEST(be_reads_what_it_wrote),
	TEST(le32_writes_the_low_byte_first),
};

TEST_MAIN(tests)
