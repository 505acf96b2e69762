/*
 * Any CDB with any data on a RAM disk of two block sizes: nothing that an
 * initiator can send reads or writes beyond its buffers, ends twice or never.
 *
 * An input is a row of commands, each: flags (block size, LUN, nexus,
 * direction), EDTL in units of 64 bytes, data length (as EDTL), CDB of 16 bytes,
 * then a byte that the data begin with.
 */
#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "target/scsi/scsi.h"

#define COMMAND_LEN  20
#define COMMANDS_MAX 64
#define BLOCK_SIZES  2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct side {
	struct scsi_lun *lun;
	struct scsi_target *target;
	struct scsi_nexus *nexus[2];
};

static struct {
	struct reactor *reactor;
	struct side side[BLOCK_SIZES];
} fuzz;

struct call {
	struct scsi_cmd cmd;
	struct iovec iov[2];
	const uint8_t *input;
	uint8_t *buf;
	sem_t done;
};

static void open_nexuses(void *arg)
{
	struct side *side = arg;

	for (uint8_t i = 0; i < 2; i++) {
		struct scsi_nexus_id id = { .initiator_name = "iqn.2000-01.fuzz:host",
					    .isid = { 0x80, i },
					    .portal_group_tag = 1,
					    .relative_port = 1 };

		side->nexus[i] = scsi_nexus_open(side->target, &id, fuzz.reactor);
		assert(side->nexus[i]);
	}
}

static void side_open(struct side *side, uint32_t block_size)
{
	static const struct scsi_identity identity = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
	struct backing_settings settings = { 0 };
	struct scsi_lun_settings lun_settings;
	struct backing *backing;
	struct err err;
	int rc;

	option_defaults(backing_options, &settings);
	option_defaults(scsi_lun_options, &lun_settings);
	settings.backend = BACKING_KIND_RAMDISK;
	settings.block_size = block_size;
	settings.size = 4u << 20;
	lun_settings.removable = block_size == 4096;
	rc = backing_open(&settings, &backing, &err);
	assert(rc == 0);
	side->lun = scsi_lun_create("fuzz", &lun_settings, &identity);
	side->target = scsi_target_create("iqn.2000-01.fuzz:target");
	rc = scsi_lun_set_backing(side->lun, backing, &fuzz.reactor, 1, &err);
	assert(rc == 0);
	rc = scsi_target_map(side->target, 0, side->lun);
	assert(rc == 0);
	reactor_call(fuzz.reactor, open_nexuses, side);
}

static void start(void)
{
	struct reactor_config config = { .cpu = -1,
					 .ring_entries = 64,
					 .buffer_bytes = BUFPOOL_BYTES_MIN };
	struct err err;
	int rc = reactor_start(&config, &fuzz.reactor, &err);

	assert(rc == 0);
	side_open(&fuzz.side[0], 512);
	side_open(&fuzz.side[1], 4096);
}

static void call_done(struct scsi_cmd *cmd)
{
	sem_post(&((struct call *)(void *)cmd)->done);
}

static void check_result(const struct scsi_cmd *cmd)
{
	assert(cmd->data_in_len <= cmd->edtl && cmd->data_in_len <= cmd->buf_len);
	assert(cmd->sense_len <= SCSI_SENSE_MAX);
	assert((cmd->status == SCSI_CHECK_CONDITION) == (cmd->sense_len > 0));
}

/* Buffers of just the length that was asked for, so that a checker sees their end. */
static void call_run(void *arg)
{
	struct call *call = arg;
	struct scsi_cmd *cmd = &call->cmd;
	uint32_t first, came;

	if (!scsi_cmd_prepare(cmd)) {
		sem_post(&call->done);
		return;
	}
	assert(cmd->data_out_len <= cmd->edtl && cmd->data_out_len <= cmd->buf_len);
	call->buf = malloc(cmd->buf_len ? cmd->buf_len : 1);
	assert(call->buf);
	memset(call->buf, 0, cmd->buf_len);
	came = call->input[2] * 64u;
	if (came > cmd->data_out_len)
		came = cmd->data_out_len;
	if (came)
		memset(call->buf, call->input[19], came < 24 ? came : 24);
	first = cmd->buf_len / 2;
	call->iov[0] = (struct iovec){ call->buf, first };
	call->iov[1] = (struct iovec){ call->buf + first, cmd->buf_len - first };
	cmd->iov = call->iov;
	cmd->iovcnt = 2;
	if (call->input[0] & 0x80)
		came = cmd->data_out_len;
	if (call->input[0] & 0x40) {
		scsi_cmd_drop(cmd);
		sem_post(&call->done);
		return;
	}
	scsi_cmd_execute(cmd, came);
	if (call->input[0] & 0x20)
		scsi_cmd_abort(cmd);
}

static void run_command(const uint8_t *input)
{
	struct side *side = &fuzz.side[input[0] & 1];
	static struct call call;

	memset(&call, 0xa5, sizeof(call));
	call.input = input;
	call.buf = NULL;
	sem_init(&call.done, 0, 0);
	memset(call.cmd.lun_field, 0, 8);
	call.cmd.lun_field[1] = input[0] >> 1 & 1;
	memset(call.cmd.cdb, 0, sizeof(call.cmd.cdb));
	memcpy(call.cmd.cdb, input + 3, 16);
	call.cmd.nexus = side->nexus[input[0] >> 2 & 1];
	call.cmd.cdb_len = 16;
	call.cmd.attr = SCSI_TASK_SIMPLE;
	call.cmd.initiator_dir = (input[0] >> 3 & 3) % 3;
	call.cmd.edtl = call.cmd.initiator_dir == SCSI_NO_DATA ? 0 : input[1] * 64u;
	call.cmd.done = call_done;
	reactor_call(fuzz.reactor, call_run, &call);
	/* The fuzzer's own alarm may interrupt the wait. */
	while (sem_wait(&call.done) < 0 && errno == EINTR)
		;
	if (!(input[0] & 0x40))
		check_result(&call.cmd);
	free(call.buf);
	sem_destroy(&call.done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!fuzz.reactor)
		start();
	for (unsigned int n = 0; n < COMMANDS_MAX && len >= COMMAND_LEN; n++) {
		run_command(data);
		data += COMMAND_LEN;
		len -= COMMAND_LEN;
	}
	return 0;
}
