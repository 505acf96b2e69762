#include <errno.h>
#include <string.h>

#include "base/be.h"
#include "target/scsi/scsi.h"
#include "target/scsi/sense.h"
#include "tests/unit/quintain_test.h"

static void fixed_sense_points_to_the_field(void)
{
	uint8_t sense[SCSI_SENSE_MAX];
	struct sense_detail detail = {
		.has_field = true, .field_in_cdb = true, .field_byte = 7, .field_bit = 3
	};

	CU_ASSERT_EQUAL(sense_write(sense, SENSE_INVALID_FIELD_CDB, &detail, false), 18);
	CU_ASSERT_EQUAL(sense[0], 0x70);
	CU_ASSERT_EQUAL(sense[2], 5);
	CU_ASSERT_EQUAL(sense[7], 10);
	CU_ASSERT_EQUAL(sense[12], 0x24);
	CU_ASSERT_EQUAL(sense[15], 0xcb);
	CU_ASSERT_EQUAL(be16_load(sense + 16), 7);
}

static void fixed_sense_has_no_information_beyond_32_bits(void)
{
	uint8_t sense[SCSI_SENSE_MAX];
	struct sense_detail detail = { .has_info = true, .info = UINT32_MAX };

	sense_write(sense, SENSE_READ_ERROR, &detail, false);
	CU_ASSERT_EQUAL(sense[0], 0xf0);
	CU_ASSERT_EQUAL(be32_load(sense + 3), UINT32_MAX);
	detail.info++;
	sense_write(sense, SENSE_READ_ERROR, &detail, false);
	CU_ASSERT_EQUAL(sense[0], 0x70);
	CU_ASSERT_EQUAL(be32_load(sense + 3), 0);
}

static void descriptor_sense_has_both_descriptors(void)
{
	uint8_t sense[SCSI_SENSE_MAX];
	struct sense_detail detail = { .has_info = true,
				       .info = 1ull << 40,
				       .has_field = true,
				       .field_byte = 9,
				       .field_bit = -1 };

	CU_ASSERT_EQUAL(sense_write(sense, SENSE_INVALID_FIELD_PARAMETER, &detail, true), 28);
	CU_ASSERT_EQUAL(sense[0], 0x72);
	CU_ASSERT_EQUAL(sense[1], 5);
	CU_ASSERT_EQUAL(sense[2], 0x26);
	CU_ASSERT_EQUAL(sense[7], 20);
	CU_ASSERT_EQUAL(sense[8], 0x00);
	CU_ASSERT_EQUAL(sense[10], 0x80);
	CU_ASSERT_EQUAL(be64_load(sense + 12), 1ull << 40);
	CU_ASSERT_EQUAL(sense[20], 0x02);
	CU_ASSERT_EQUAL(sense[24], 0x80);
	CU_ASSERT_EQUAL(be16_load(sense + 25), 9);
}

static void every_row_is_sense_of_its_own(void)
{
	for (int i = 0; i < SENSE_COUNT; i++) {
		const struct sense_row *a = sense_row((enum sense)i);

		CU_ASSERT_TRUE(a->text[0] != '\0');
		for (int j = 0; j < i; j++) {
			const struct sense_row *b = sense_row((enum sense)j);

			CU_ASSERT_FALSE(a->asc == b->asc && a->ascq == b->ascq && a->key == b->key);
		}
	}
}

static void errno_becomes_sense(void)
{
	static const struct {
		int code;
		bool writing;
		enum sense sense;
	} cases[] = {
		{ ENOSPC, true, SENSE_SPACE_ALLOCATION_FAILED },
		{ EDQUOT, true, SENSE_SPACE_ALLOCATION_FAILED },
		{ EIO, false, SENSE_READ_ERROR },
		{ EIO, true, SENSE_WRITE_ERROR },
		{ EBADMSG, true, SENSE_READ_ERROR },
		{ EROFS, true, SENSE_WRITE_PROTECTED },
		{ EILSEQ, true, SENSE_MISCOMPARE },
		{ ESTALE, false, SENSE_STORE_NOT_READY },
		{ ERANGE, false, SENSE_LBA_RANGE },
		{ EAGAIN, false, SENSE_COUNT },
		{ EINVAL, true, SENSE_TARGET_FAILURE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(sense_from_errno(cases[i].code, cases[i].writing), cases[i].sense);
}

static void sense_text_reads_both_formats(void)
{
	uint8_t sense[SCSI_SENSE_MAX];
	char text[128];
	uint8_t len;

	for (int descriptor = 0; descriptor < 2; descriptor++) {
		len = sense_write(sense, SENSE_INVALID_FIELD_CDB, NULL, descriptor);
		scsi_sense_text(sense, len, text, sizeof(text));
		CU_ASSERT_STRING_EQUAL(text, "ILLEGAL REQUEST, INVALID FIELD IN CDB");
	}
	scsi_sense_text(sense, 0, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "no sense data");
}

static const struct test tests[] = {
	TEST(fixed_sense_points_to_the_field),
	TEST(fixed_sense_has_no_information_beyond_32_bits),
	TEST(descriptor_sense_has_both_descriptors),
	TEST(every_row_is_sense_of_its_own),
	TEST(errno_becomes_sense),
	TEST(sense_text_reads_both_formats),
};
TEST_MAIN(tests)
