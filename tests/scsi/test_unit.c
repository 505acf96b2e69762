/* START STOP UNIT, PREVENT ALLOW, REQUEST SENSE, diagnostics. */
#include "tests/scsi/disk.h"

#include <string.h>

#include "base/be.h"

static void tur(struct disk *d)
{
	disk_none(d, cdb6(0x00, 0, 0, 0, 0));
}

static void start_stop(struct disk *d, uint8_t flags)
{
	disk_none(d, cdb6(0x1b, 0, 0, 0, flags));
}

static void open_removable(struct disk *d)
{
	disk_prepare(d);
	d->lun_settings.removable = true;
	disk_start(d);
	d->who = 1;
	tur(d);
	d->who = 0;
	tur(d);
}

static void stopped_disk_is_not_ready_until_started(void)
{
	struct disk d;

	disk_open(&d);
	start_stop(&d, 0x00);
	CHECK_GOOD(&d);
	tur(&d);
	CHECK_SENSE(&d, 2, 0x04, 0x02);
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CHECK_SENSE(&d, 2, 0x04, 0x02);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CHECK_GOOD(&d);
	start_stop(&d, 0x01);
	CHECK_GOOD(&d);
	tur(&d);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void eject_of_a_fixed_disk_is_refused(void)
{
	struct disk d;

	disk_open(&d);
	start_stop(&d, 0x02);
	CHECK_FIELD(&d, 4);
	tur(&d);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void ejected_medium_is_gone_until_loaded(void)
{
	struct disk d;

	open_removable(&d);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CU_ASSERT_EQUAL(d.in[1], 0x80);
	start_stop(&d, 0x00);
	tur(&d);
	CHECK_GOOD(&d); /* a removable disk is not stopped */
	start_stop(&d, 0x02);
	CHECK_GOOD(&d);
	tur(&d);
	CHECK_SENSE(&d, 2, 0x3a, 0x00);
	start_stop(&d, 0x01);
	CHECK_SENSE(&d, 2, 0x3a, 0x00);
	disk_none(&d, cdb6(0x1e, 0, 0, 0, 1));
	start_stop(&d, 0x03);
	CHECK_SENSE(&d, 5, 0x53, 0x02);
	disk_none(&d, cdb6(0x1e, 0, 0, 0, 0));
	start_stop(&d, 0x03);
	CHECK_GOOD(&d);
	tur(&d);
	CHECK_GOOD(&d);
	d.who = 1;
	tur(&d);
	CHECK_SENSE(&d, 6, 0x28, 0x00);
	disk_close(&d);
}

static void prevented_medium_is_not_ejected(void)
{
	struct disk d;

	open_removable(&d);
	d.who = 1;
	disk_none(&d, cdb6(0x1e, 0, 0, 0, 1));
	CHECK_GOOD(&d);
	d.who = 0;
	start_stop(&d, 0x02);
	CHECK_SENSE(&d, 5, 0x53, 0x02);
	disk_nexus_close(d.nexus[1], d.reactor);
	d.nexus[1] = NULL;
	start_stop(&d, 0x02);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void power_conditions_change_nothing(void)
{
	struct disk d;

	open_removable(&d);
	for (uint8_t condition = 1; condition < 16; condition++) {
		start_stop(&d, (uint8_t)(condition << 4 | 0x02));
		CHECK_GOOD(&d);
		tur(&d);
		CHECK_GOOD(&d);
	}
	disk_close(&d);
}

static void request_sense_returns_and_clears_a_unit_attention(void)
{
	struct disk d;

	disk_prepare(&d);
	disk_start(&d);
	disk_in(&d, cdb6(0x03, 1, 0, 0, 252), 252);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[0], 0x72);
	CU_ASSERT_EQUAL(d.in[1], 6);
	CU_ASSERT_EQUAL(d.in[2], 0x29);
	disk_in(&d, cdb6(0x03, 0, 0, 0, 252), 252);
	CU_ASSERT_EQUAL(d.data_len, 18);
	CU_ASSERT_EQUAL(d.in[0], 0x70);
	CU_ASSERT_EQUAL(d.in[2], 0);
	tur(&d);
	CHECK_GOOD(&d);
	start_stop(&d, 0);
	disk_in(&d, cdb6(0x03, 0, 0, 0, 252), 252);
	CU_ASSERT_EQUAL(d.in[2], 2);
	CU_ASSERT_EQUAL(d.in[13], 2);
	disk_close(&d);
}

static void request_sense_of_a_missing_lun_says_so(void)
{
	struct disk d;

	disk_open(&d);
	scsi_lun_field(9, d.lun_field);
	disk_in(&d, cdb6(0x03, 0, 0, 0, 18), 18);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[2], 5);
	CU_ASSERT_EQUAL(d.in[12], 0x25);
	disk_in(&d, cdb6(0x03, 0, 0, 0, 0), 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void diagnostics_are_the_default_self_test(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb6(0x1d, 0x04, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_none(&d, cdb6(0x1d, 0x20, 0, 0, 0));
	CHECK_FIELD(&d, 1);
	disk_in(&d, cdb6(0x1c, 1, 0, 0, 64), 64);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 5);
	disk_in(&d, cdb6(0x1c, 1, 0x40, 0, 64), 64);
	CHECK_FIELD(&d, 2);
	disk_close(&d);
}

const struct scsi_test tests_unit[] = {
	SCSI_TEST(stopped_disk_is_not_ready_until_started),
	SCSI_TEST(eject_of_a_fixed_disk_is_refused),
	SCSI_TEST(ejected_medium_is_gone_until_loaded),
	SCSI_TEST(prevented_medium_is_not_ejected),
	SCSI_TEST(power_conditions_change_nothing),
	SCSI_TEST(request_sense_returns_and_clears_a_unit_attention),
	SCSI_TEST(request_sense_of_a_missing_lun_says_so),
	SCSI_TEST(diagnostics_are_the_default_self_test),
	{ NULL, NULL },
};
