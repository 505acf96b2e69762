#include <string.h>

#include "base/list.h"
#include "target/scsi/settings.h"
#include "tests/unit/quintain_test.h"

static void defaults_are_a_fixed_disk_of_ours(void)
{
	struct scsi_lun_settings settings;

	memset(&settings, 0xff, sizeof(settings));
	option_defaults(scsi_lun_options, &settings);
	CU_ASSERT_PTR_NULL(settings.serial);
	CU_ASSERT_PTR_NULL(settings.device_id);
	CU_ASSERT_STRING_EQUAL(settings.vendor, "QUINTAIN");
	CU_ASSERT_FALSE(settings.removable);
	CU_ASSERT_EQUAL(settings.device_type, SCSI_LUN_DISK);
}

static void vendor_longer_than_its_field_is_refused(void)
{
	struct scsi_lun_settings settings;
	struct err err;

	option_defaults(scsi_lun_options, &settings);
	CU_ASSERT_NOT_EQUAL(
		option_set(option_find(scsi_lun_options, "vendor"), &settings, "123456789", &err),
		0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "vendor"));
}

static const struct test tests[] = {
	TEST(defaults_are_a_fixed_disk_of_ours),
	TEST(vendor_longer_than_its_field_is_refused),
};
TEST_MAIN(tests)
