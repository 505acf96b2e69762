/* LUNs whose store comes, goes, grows or is stuck; two reactors at once. */
#include "tests/scsi/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/be.h"

static void lun_without_a_store_is_not_ready(void)
{
	struct disk d;
	struct err err;

	disk_open(&d);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, NULL, NULL, 0, &err), 0);
	disk_none(&d, cdb6(0x00, 0, 0, 0, 0));
	CHECK_SENSE(&d, 2, 0x04, 0x00);
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CHECK_SENSE(&d, 2, 0x04, 0x00);
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CHECK_SENSE(&d, 2, 0x04, 0x00);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CHECK_GOOD(&d);
	disk_in(&d, cdb6(0x12, 1, 0xb0, 0, 96), 96);
	CHECK_GOOD(&d);
	disk_in(&d, cdb6(0x1a, 0, 0x3f, 0, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[3], 0);
	disk_in(&d, cdb12(0xa0, 0, 0, 64), 64);
	CU_ASSERT_EQUAL(be32_load(d.in), 8);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, d.backing, &d.reactor, 1, &err), 0);
	disk_none(&d, cdb6(0x00, 0, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void lun_that_grows_serves_its_new_blocks(void)
{
	struct disk d;
	struct err err;

	disk_open(&d);
	d.settings.size = 2 * DISK_SIZE;
	CU_ASSERT_EQUAL(backing_resize(d.backing, &d.settings, &err), 1);
	scsi_lun_capacity_changed(d.lun);
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CHECK_SENSE(&d, 6, 0x2a, 0x09);
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CU_ASSERT_EQUAL(be32_load(d.in), 2 * d.nblocks - 1);
	disk_fill(&d, 2 * d.nblocks - 1, 1, 5);
	CU_ASSERT_TRUE(disk_is(&d, 2 * d.nblocks - 1, 1, 5));
	disk_close(&d);
}

struct prepared {
	struct scsi_cmd cmd;
	struct iovec iov;
	uint8_t data[4096];
	bool good;
	sem_t done;
};

static void prepared_done(struct scsi_cmd *cmd)
{
	sem_post(&container_of(cmd, struct prepared, cmd)->done);
}

static void prepared_prepare(void *arg)
{
	struct prepared *p = arg;

	p->good = scsi_cmd_prepare(&p->cmd);
}

static void prepared_execute(void *arg)
{
	struct prepared *p = arg;

	p->cmd.iov = &p->iov;
	p->cmd.iovcnt = 1;
	scsi_cmd_execute(&p->cmd, p->cmd.data_out_len);
}

static void prepared_drop(void *arg)
{
	scsi_cmd_drop(&((struct prepared *)arg)->cmd);
}

static void prepare(struct disk *d, struct prepared *p, struct cdb cdb, enum scsi_dir dir,
		    uint32_t edtl)
{
	memset(p, 0, sizeof(*p));
	p->cmd.nexus = d->nexus[0];
	memcpy(p->cmd.lun_field, d->lun_field, 8);
	memcpy(p->cmd.cdb, cdb.b, sizeof(cdb.b));
	p->cmd.cdb_len = 16;
	p->cmd.initiator_dir = (uint8_t)dir;
	p->cmd.edtl = edtl;
	p->cmd.done = prepared_done;
	p->iov = (struct iovec){ p->data, edtl };
	sem_init(&p->done, 0, 0);
	reactor_call(d->reactor, prepared_prepare, p);
	CU_ASSERT_TRUE(p->good);
}

/* A write that waits for its data. */
static void write_prepare(struct disk *d, struct prepared *p)
{
	prepare(d, p, cdb10(0x2a, 0, 0, 1), SCSI_DATA_OUT, d->block_size);
	CU_ASSERT_EQUAL(p->cmd.dir, SCSI_DATA_OUT);
	CU_ASSERT_EQUAL(p->cmd.data_out_len, d->block_size);
	CU_ASSERT_EQUAL(p->cmd.buf_len, d->block_size);
}

static void execute(struct disk *d, struct prepared *p)
{
	reactor_call(d->reactor, prepared_execute, p);
	sem_wait(&p->done);
}

static void unmapped_lun_ends_what_waits_for_data(void)
{
	struct disk d;
	struct prepared p;

	disk_open(&d);
	write_prepare(&d, &p);
	CU_ASSERT_EQUAL(scsi_target_unmap(d.target, DISK_LUN), 0);
	CU_ASSERT_PTR_NULL(p.cmd.lun);
	execute(&d, &p);
	CU_ASSERT_EQUAL(p.cmd.status, SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(p.cmd.sense[12], 0x25);
	disk_close(&d);
}

static void swapped_store_does_not_get_what_was_judged_before(void)
{
	struct disk d;
	struct prepared p;
	struct err err;

	disk_open(&d);
	write_prepare(&d, &p);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, d.backing, &d.reactor, 1, &err), 0);
	execute(&d, &p);
	CU_ASSERT_EQUAL(p.cmd.status, SCSI_BUSY);
	disk_close(&d);
}

/* What is told about a store is told of the one that is there, or of none. */
static void swapped_store_is_not_told_about(void)
{
	struct disk d;
	struct prepared p;
	struct err err;

	disk_open(&d);
	prepare(&d, &p, cdb6(0x12, 1, 0xb0, 0, 64), SCSI_DATA_IN, 64);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, NULL, NULL, 0, &err), 0);
	execute(&d, &p);
	CU_ASSERT_EQUAL(p.cmd.status, SCSI_GOOD);
	CU_ASSERT_EQUAL(be64_load(p.data + 36), 0);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, d.backing, &d.reactor, 1, &err), 0);
	disk_close(&d);
}

static void dropped_command_leaves_nothing(void)
{
	struct disk d;
	struct prepared p;

	disk_open(&d);
	write_prepare(&d, &p);
	reactor_call(d.reactor, prepared_drop, &p);
	disk_close(&d);
}

#define ROUNDS 200

static void two_reactors_serve_one_lun(void)
{
	struct disk d;
	struct err err;
	struct reactor *both[2];
	struct scsi_nexus *far;
	uint8_t data[4096];

	disk_open(&d);
	both[0] = d.reactor;
	both[1] = disk_reactor(1);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(d.lun, d.backing, both, 2, &err), 0);
	far = disk_nexus_open(&d, both[1], 9);
	disk_wait(&d, disk_send(&d, far, both[1], cdb6(0, 0, 0, 0, 0), SCSI_NO_DATA, NULL, 0));
	CHECK_SENSE(&d, 6, 0x29, 0);
	memset(data, 0x21, sizeof(data));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct disk_call *a = disk_send(&d, d.nexus[0], both[0], cdb10(0x2a, 0, i, 1),
						SCSI_DATA_OUT, data, d.block_size);
		struct disk_call *b = disk_send(&d, far, both[1], cdb10(0x2a, 0, i + ROUNDS, 1),
						SCSI_DATA_OUT, data, d.block_size);

		disk_wait(&d, a);
		CHECK_GOOD(&d);
		disk_wait(&d, b);
		CHECK_GOOD(&d);
	}
	d.who = 0;
	CU_ASSERT_TRUE(disk_is(&d, 0, 2 * ROUNDS, 0x21));
	disk_nexus_close(far, both[1]);
	disk_close(&d);
}

static void stats_sum_what_was_done(void)
{
	struct disk d;
	struct scsi_lun_stats stats;
	uint64_t n;

	disk_open(&d);
	disk_fill(&d, 0, 3, 1);
	CU_ASSERT_TRUE(disk_is(&d, 0, 3, 1));
	disk_in(&d, cdb10(0x28, 0, (uint32_t)d.nblocks, 1), d.block_size);
	scsi_lun_stats(d.lun, &stats);
	CU_ASSERT_EQUAL(stats.reads, 2);
	CU_ASSERT_EQUAL(stats.writes, 1);
	CU_ASSERT_EQUAL(stats.read_bytes, 3 * d.block_size);
	CU_ASSERT_EQUAL(stats.write_bytes, 3 * d.block_size);
	CU_ASSERT_EQUAL(stats.errors, 3); /* two unit attentions, one range */
	CU_ASSERT_TRUE(stats.ready);
	CU_ASSERT_EQUAL(stats.block_size, d.block_size);
	CU_ASSERT_EQUAL(stats.size_bytes, DISK_SIZE);
	CU_ASSERT_STRING_EQUAL(scsi_lun_opcode_count(d.lun, 0, &n), "TEST UNIT READY");
	CU_ASSERT_EQUAL(n, 2);
	disk_close(&d);
}

const struct scsi_test tests_lun[] = {
	SCSI_TEST(lun_without_a_store_is_not_ready),
	SCSI_TEST(lun_that_grows_serves_its_new_blocks),
	SCSI_TEST(unmapped_lun_ends_what_waits_for_data),
	SCSI_TEST(swapped_store_does_not_get_what_was_judged_before),
	SCSI_TEST(swapped_store_is_not_told_about),
	SCSI_TEST(dropped_command_leaves_nothing),
	SCSI_TEST(two_reactors_serve_one_lun),
	SCSI_TEST(stats_sum_what_was_done),
	{ NULL, NULL },
};
