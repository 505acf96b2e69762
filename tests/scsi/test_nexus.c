/* What nexuses see of one another: unit attentions, reservations, resets. */
#include "tests/scsi/disk.h"

#include <errno.h>

#include "base/be.h"

static void tur(struct disk *d, unsigned int who)
{
	d->who = who;
	disk_none(d, cdb6(0x00, 0, 0, 0, 0));
}

struct tmf_call {
	struct scsi_nexus *nexus;
	enum scsi_tmf function;
	const uint8_t *lun_field;
};

static void tmf_apply(void *arg)
{
	struct tmf_call *call = arg;

	scsi_tmf_apply(call->nexus, call->function, call->lun_field);
}

static void tmf(struct disk *d, unsigned int who, enum scsi_tmf function)
{
	struct tmf_call call = { d->nexus[who], function, d->lun_field };

	reactor_call(d->reactor, tmf_apply, &call);
}

static void power_on_is_told_once(void)
{
	struct disk d;

	disk_prepare(&d);
	disk_start(&d);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CHECK_GOOD(&d);
	disk_in(&d, cdb12(0xa0, 0, 0, 64), 64);
	CHECK_GOOD(&d);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x29, 0x00);
	tur(&d, 0);
	CHECK_GOOD(&d);
	tur(&d, 1);
	CHECK_SENSE(&d, 6, 0x29, 0x00);
	disk_close(&d);
}

static void capacity_change_is_told_once_to_each(void)
{
	struct disk d;

	disk_open(&d);
	scsi_lun_capacity_changed(d.lun);
	scsi_lun_capacity_changed(d.lun);
	for (unsigned int who = 0; who < 2; who++) {
		tur(&d, who);
		CHECK_SENSE(&d, 6, 0x2a, 0x09);
		tur(&d, who);
		CHECK_GOOD(&d);
	}
	disk_close(&d);
}

static void new_lun_is_told_once_and_cleared_by_report_luns(void)
{
	struct disk d;

	disk_open(&d);
	CU_ASSERT_EQUAL(scsi_target_map(d.target, 4, d.lun), 0);
	CU_ASSERT_EQUAL(scsi_target_map(d.target, 4, d.lun), -EEXIST);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x3f, 0x0e);
	tur(&d, 0);
	CHECK_GOOD(&d);
	d.who = 1;
	disk_in(&d, cdb12(0xa0, 0, 0, 64), 64);
	tur(&d, 1);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(scsi_target_unmap(d.target, 4), 0);
	CU_ASSERT_EQUAL(scsi_target_unmap(d.target, 4), -ENOENT);
	tur(&d, 1);
	CHECK_SENSE(&d, 6, 0x3f, 0x0e);
	disk_close(&d);
}

static void unit_attentions_come_in_order_of_importance(void)
{
	struct disk d;

	disk_open(&d);
	scsi_lun_set_settings(d.lun, &d.lun_settings);
	scsi_lun_capacity_changed(d.lun);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x2a, 0x09);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x3f, 0x03);
	scsi_lun_capacity_changed(d.lun);
	tmf(&d, 1, SCSI_TMF_LUN_RESET);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x29, 0x03);
	tur(&d, 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

/* ---- RESERVE and RELEASE ---- */

static void reservation_keeps_others_out(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb6(0x16, 0, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_none(&d, cdb10(0x56, 0, 0, 0));
	CHECK_GOOD(&d);
	d.who = 1;
	disk_none(&d, cdb6(0x16, 0, 0, 0, 0));
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	tur(&d, 1);
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	disk_in(&d, cdb6(0x1a, 0, 0x3f, 0, 255), 255);
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CHECK_GOOD(&d);
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CHECK_GOOD(&d);
	disk_none(&d, cdb6(0x1b, 0, 0, 0, 1));
	CHECK_GOOD(&d);
	disk_none(&d, cdb6(0x1b, 0, 0, 0, 0));
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	disk_none(&d, cdb6(0x1e, 0, 0, 0, 0));
	CHECK_GOOD(&d);
	tur(&d, 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void release_by_another_is_good_and_does_nothing(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb6(0x16, 0, 0, 0, 0));
	d.who = 1;
	disk_none(&d, cdb6(0x17, 0, 0, 0, 0));
	CHECK_GOOD(&d);
	tur(&d, 1);
	CU_ASSERT_EQUAL(d.status, SCSI_RESERVATION_CONFLICT);
	d.who = 0;
	disk_none(&d, cdb10(0x57, 0, 0, 0));
	CHECK_GOOD(&d);
	tur(&d, 1);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void reservation_ends_with_its_nexus(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb6(0x16, 0, 0, 0, 0));
	disk_nexus_close(d.nexus[0], d.reactor);
	d.nexus[0] = NULL;
	tur(&d, 1);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void resets_end_reservations_and_tell_the_others(void)
{
	static const enum scsi_tmf functions[] = { SCSI_TMF_LUN_RESET, SCSI_TMF_TARGET_RESET };
	struct disk d;

	disk_open(&d);
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		d.who = 0;
		disk_none(&d, cdb6(0x16, 0, 0, 0, 0));
		CHECK_GOOD(&d);
		tmf(&d, 1, functions[i]);
		tur(&d, 1);
		CHECK_GOOD(&d);
		tur(&d, 0);
		CHECK_SENSE(&d, 6, 0x29, 0x03);
	}
	tmf(&d, 1, SCSI_TMF_CLEAR_TASK_SET);
	tur(&d, 0);
	CHECK_SENSE(&d, 6, 0x2f, 0x00);
	tmf(&d, 1, SCSI_TMF_ABORT_TASK);
	tur(&d, 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void third_party_reservation_is_refused(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb6(0x16, 0x10, 0, 0, 0));
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

const struct scsi_test tests_nexus[] = {
	SCSI_TEST(power_on_is_told_once),
	SCSI_TEST(capacity_change_is_told_once_to_each),
	SCSI_TEST(new_lun_is_told_once_and_cleared_by_report_luns),
	SCSI_TEST(unit_attentions_come_in_order_of_importance),
	SCSI_TEST(reservation_keeps_others_out),
	SCSI_TEST(release_by_another_is_good_and_does_nothing),
	SCSI_TEST(reservation_ends_with_its_nexus),
	SCSI_TEST(resets_end_reservations_and_tell_the_others),
	SCSI_TEST(third_party_reservation_is_refused),
	{ NULL, NULL },
};
