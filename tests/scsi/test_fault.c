/* A store that fails: the right sense, once or for ever; a stuck store. For the
 * stores behind the fault filter. */
#include "tests/scsi/disk.h"

#include <errno.h>
#include <string.h>

#include "base/be.h"

static void open_fault(struct disk *d, uint32_t ops, uint8_t kind, int err, bool for_ever)
{
	struct fault_rule rule = {
		.ops = ops,
		.kind = kind,
		.nth = 1,
		.for_ever = for_ever,
		.err = err,
	};

	disk_prepare(d);
	disk_start(d);
	d->who = 1;
	disk_none(d, cdb6(0, 0, 0, 0, 0));
	d->who = 0;
	disk_none(d, cdb6(0, 0, 0, 0, 0));
	fault_set(d->backing, &rule, 1);
}

static void read10(struct disk *d)
{
	disk_in(d, cdb10(0x28, 0, 5, 2), 2 * d->block_size);
}

static void write10(struct disk *d)
{
	uint8_t data[8192] = { 0 };

	disk_out(d, cdb10(0x2a, 0, 5, 2), data, 2 * d->block_size);
}

static void read_error_once_is_a_medium_error_once(void)
{
	struct disk d;
	struct scsi_lun_stats stats;

	open_fault(&d, 1u << BK_READ, FAULT_ERROR, EIO, false);
	read10(&d);
	CHECK_SENSE(&d, 3, 0x11, 0x00);
	CU_ASSERT_EQUAL(d.sense[0], 0xf0);
	CU_ASSERT_EQUAL(be32_load(d.sense + 3), 5);
	CU_ASSERT_EQUAL(d.data_len, 0);
	read10(&d);
	CHECK_GOOD(&d);
	scsi_lun_stats(d.lun, &stats);
	CU_ASSERT_EQUAL(stats.read_errors, 1);
	disk_close(&d);
}

static void write_error_for_ever_is_a_write_error(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_WRITE, FAULT_ERROR, EIO, true);
	for (int i = 0; i < 3; i++) {
		write10(&d);
		CHECK_SENSE(&d, 3, 0x0c, 0x00);
	}
	read10(&d);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void full_store_is_a_space_allocation_failure(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_WRITE, FAULT_ERROR, ENOSPC, true);
	write10(&d);
	CHECK_SENSE(&d, 7, 0x27, 0x07);
	read10(&d);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void damaged_data_are_a_medium_error(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_READ, FAULT_ERROR, EBADMSG, false);
	read10(&d);
	CHECK_SENSE(&d, 3, 0x11, 0x00);
	disk_close(&d);
}

static void flush_error_fails_the_flush(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_FLUSH, FAULT_ERROR, EIO, false);
	disk_none(&d, cdb10(0x35, 0, 0, 0));
	CU_ASSERT_EQUAL(d.status, SCSI_CHECK_CONDITION);
	disk_none(&d, cdb10(0x35, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void fua_write_fails_when_it_is_not_durable(void)
{
	struct disk d;
	uint8_t data[4096] = { 0 };

	open_fault(&d, 1u << BK_FLUSH, FAULT_ERROR, EIO, false);
	disk_out(&d, cdb10(0x2a, 0x08, 0, 1), data, d.block_size);
	CHECK_SENSE(&d, 3, 0x0c, 0x00);
	disk_close(&d);
}

static void wce_set(struct disk *d, bool on)
{
	uint8_t list[24] = { 0, 0, 0, 0, 0x08, 18, on ? 0x04 : 0 };

	disk_out(d, cdb6(0x15, 0x10, 0, 0, sizeof(list)), list, sizeof(list));
}

/* Each flush fails: who is not told has not asked for one. */
static void changes_are_durable_while_wce_is_off(void)
{
	struct fault_rule rule = {
		.ops = 1u << BK_FLUSH, .kind = FAULT_ERROR, .nth = 1, .for_ever = true, .err = EIO
	};
	uint8_t data[4096] = { 0 };
	struct disk d;

	open_fault(&d, 0, FAULT_ERROR, EIO, false);
	wce_set(&d, false);
	CHECK_GOOD(&d);
	fault_set(d.backing, &rule, 1);
	write10(&d);
	CU_ASSERT_EQUAL(d.status, SCSI_CHECK_CONDITION);
	disk_out(&d, cdb6(0x0a, 0, 0, 0, 1), data, d.block_size);
	CU_ASSERT_EQUAL(d.status, SCSI_CHECK_CONDITION);
	disk_out(&d, cdb10(0x41, 0, 0, 8), data, d.block_size);
	CU_ASSERT_EQUAL(d.status, SCSI_CHECK_CONDITION);
	read10(&d);
	CHECK_GOOD(&d);
	wce_set(&d, true);
	CHECK_GOOD(&d);
	write10(&d);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void wce_turned_off_flushes_what_was_written(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_FLUSH, FAULT_ERROR, EIO, false);
	wce_set(&d, false);
	CU_ASSERT_EQUAL(d.status, SCSI_CHECK_CONDITION);
	wce_set(&d, false); /* it is off: there is nothing to flush */
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void store_that_is_gone_makes_the_lun_not_ready(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_READ, FAULT_ERROR, ESTALE, false);
	read10(&d);
	CHECK_SENSE(&d, 2, 0x04, 0x00);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_SENSE(&d, 2, 0x04, 0x00);
	disk_close(&d);
}

static void passing_trouble_is_busy(void)
{
	struct disk d;

	open_fault(&d, 1u << BK_READ, FAULT_ERROR, EAGAIN, false);
	read10(&d);
	CU_ASSERT_EQUAL(d.status, SCSI_BUSY);
	CU_ASSERT_EQUAL(d.sense_len, 0);
	disk_close(&d);
}

static void each_command_of_several_steps_reports_the_nth_error(void)
{
	struct disk d;
	uint8_t data[4096];

	memset(data, 7, sizeof(data));
	open_fault(&d, 0, FAULT_ERROR, EIO, false);
	for (uint64_t nth = 1; nth <= 4; nth++) {
		struct fault_rule rule = {
			.ops = 1u << BK_WRITE, .kind = FAULT_ERROR, .nth = nth, .err = EIO
		};

		fault_set(d.backing, &rule, 1);
		disk_out(&d, cdb10(0x41, 0, 0, 500), data, d.block_size);
		CHECK_SENSE(&d, 3, 0x0c, 0x00);
		rule.ops = 1u << BK_READ;
		fault_set(d.backing, &rule, 1);
		disk_none(&d, cdb10(0x2f, 0, 0, 600));
		CHECK_SENSE(&d, 3, 0x11, 0x00);
	}
	disk_close(&d);
}

static void stuck_store_does_not_hang_the_control_thread(void)
{
	struct disk d;
	struct disk_call *call;
	struct err err = { "" };

	open_fault(&d, 1u << BK_READ, FAULT_STUCK, 0, false);
	call = disk_send(&d, d.nexus[0], d.reactor, cdb10(0x28, 0, 0, 1), SCSI_DATA_IN, NULL,
			 d.block_size);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, NULL, NULL, 0, &err), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "disk"));
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CHECK_GOOD(&d); /* the old store stays in place */
	CU_ASSERT_FALSE(disk_call_done(call));
	fault_release(d.backing);
	disk_wait(&d, call);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void aborted_command_stops_between_two_steps(void)
{
	struct disk d;
	struct disk_call *call;
	uint8_t data[4096];

	memset(data, 7, sizeof(data));
	open_fault(&d, 1u << BK_WRITE, FAULT_STUCK, 0, false);
	call = disk_send(&d, d.nexus[0], d.reactor, cdb10(0x41, 0, 0, 500), SCSI_DATA_OUT, data,
			 d.block_size);
	disk_call_abort(call);
	fault_release(d.backing);
	disk_wait(&d, call);
	CU_ASSERT_EQUAL(d.status, SCSI_TASK_ABORTED);
	CU_ASSERT_TRUE(disk_is(&d, 400, 1, 0));
	disk_close(&d);
}

/* A sparse file, in a file system in memory. */
static void read_capacity10_of_a_large_disk_says_so(void)
{
	struct disk d;

	disk_prepare(&d);
	d.settings.size = 3ull << 40;
	disk_start(&d);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in), UINT32_MAX);
	disk_close(&d);
}

const struct scsi_test tests_fault[] = {
	SCSI_TEST(read_capacity10_of_a_large_disk_says_so),
	SCSI_TEST(read_error_once_is_a_medium_error_once),
	SCSI_TEST(write_error_for_ever_is_a_write_error),
	SCSI_TEST(full_store_is_a_space_allocation_failure),
	SCSI_TEST(damaged_data_are_a_medium_error),
	SCSI_TEST(flush_error_fails_the_flush),
	SCSI_TEST(fua_write_fails_when_it_is_not_durable),
	SCSI_TEST(changes_are_durable_while_wce_is_off),
	SCSI_TEST(wce_turned_off_flushes_what_was_written),
	SCSI_TEST(store_that_is_gone_makes_the_lun_not_ready),
	SCSI_TEST(passing_trouble_is_busy),
	SCSI_TEST(each_command_of_several_steps_reports_the_nth_error),
	SCSI_TEST(stuck_store_does_not_hang_the_control_thread),
	SCSI_TEST(aborted_command_stops_between_two_steps),
	{ NULL, NULL },
};
