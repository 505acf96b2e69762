#include "target/scsi/internal.h"

#include <assert.h>
#include <errno.h>

/* ---- results ---- */

static bool descriptor_format(const struct scsi_cmd *cmd)
{
	return cmd->lun &&
	       (atomic_load_explicit(&cmd->lun->state, memory_order_relaxed) & LUN_D_SENSE);
}

static void set_sense(struct scsi_cmd *cmd, enum sense sense, const struct sense_detail *detail)
{
	cmd->status = SCSI_CHECK_CONDITION;
	cmd->sense_len = sense_write(cmd->sense, sense, detail, descriptor_format(cmd));
	cmd->data_in_len = 0;
	if (cmd->per)
		counter_add(&cmd->per->errors, 1);
}

static void set_field(struct sense_detail *detail, bool in_cdb, uint16_t byte, int8_t bit)
{
	*detail = (struct sense_detail){
		.has_field = true,
		.field_in_cdb = in_cdb,
		.field_byte = byte,
		.field_bit = bit,
	};
}

bool scsi_refuse(struct scsi_cmd *cmd, enum sense sense)
{
	set_sense(cmd, sense, NULL);
	return false;
}

bool scsi_refuse_field(struct scsi_cmd *cmd, uint8_t byte, int8_t bit)
{
	struct sense_detail detail;

	set_field(&detail, true, byte, bit);
	set_sense(cmd, SENSE_INVALID_FIELD_CDB, &detail);
	return false;
}

bool scsi_refuse_status(struct scsi_cmd *cmd, enum scsi_status status)
{
	cmd->status = (uint8_t)status;
	cmd->sense_len = 0;
	cmd->data_in_len = 0;
	return false;
}

static void scratch_release(struct scsi_cmd *cmd)
{
	struct lun_reactor *per = cmd->per;
	struct list *link;

	if (per->scratch_owner != cmd)
		return;
	per->scratch_owner = NULL;
	link = list_pop(&per->scratch_waiters);
	if (link) {
		struct scsi_cmd *waiter = container_of(link, struct scsi_cmd, wait_link);

		per->scratch_owner = waiter;
		reactor_defer(per->reactor, &waiter->finish);
	}
}

/* The end of each executed command; done may free it. */
static void cmd_finish(struct scsi_cmd *cmd)
{
	if (cmd->cut_len != 0)
		cmd->iov[cmd->cut_index].iov_len = cmd->cut_len;
	cmd->cut_len = 0;
	if (cmd->per) {
		scratch_release(cmd);
		assert(cmd->per->in_flight > 0);
		cmd->per->in_flight--;
		list_del(&cmd->lun_link);
	}
	cmd->executing = false;
	cmd->per = NULL;
	cmd->lun = NULL;
	cmd->done(cmd);
}

/* Deferred: a command that ended within execute, or one whose turn for the
 * scratch has come. */
static void cmd_deferred(struct reactor_work *work)
{
	struct scsi_cmd *cmd = container_of(work, struct scsi_cmd, finish);

	if (cmd->per && cmd->per->scratch_owner == cmd && cmd->next) {
		void (*next)(struct scsi_cmd *) = cmd->next;

		cmd->next = NULL;
		if (cmd->aborted)
			scsi_status_end(cmd, SCSI_TASK_ABORTED);
		else
			next(cmd);
		return;
	}
	cmd_finish(cmd);
}

static void cmd_end(struct scsi_cmd *cmd)
{
	assert(cmd->executing);
	cmd->next = NULL;
	if (cmd->in_execute)
		reactor_defer(cmd->nexus->reactor, &cmd->finish);
	else
		cmd_finish(cmd);
}

void scsi_status_end(struct scsi_cmd *cmd, enum scsi_status status)
{
	cmd->status = (uint8_t)status;
	cmd->sense_len = 0;
	if (status != SCSI_GOOD && status != SCSI_CONDITION_MET)
		cmd->data_in_len = 0;
	cmd_end(cmd);
}

void scsi_good(struct scsi_cmd *cmd)
{
	scsi_status_end(cmd, SCSI_GOOD);
}

void scsi_fail_detail(struct scsi_cmd *cmd, enum sense sense, const struct sense_detail *detail)
{
	set_sense(cmd, sense, detail);
	cmd_end(cmd);
}

void scsi_fail(struct scsi_cmd *cmd, enum sense sense)
{
	scsi_fail_detail(cmd, sense, NULL);
}

void scsi_fail_field(struct scsi_cmd *cmd, uint8_t byte, int8_t bit)
{
	struct sense_detail detail;

	set_field(&detail, true, byte, bit);
	scsi_fail_detail(cmd, SENSE_INVALID_FIELD_CDB, &detail);
}

void scsi_fail_parameter(struct scsi_cmd *cmd, uint16_t byte, int8_t bit)
{
	struct sense_detail detail;

	set_field(&detail, false, byte, bit);
	scsi_fail_detail(cmd, SENSE_INVALID_FIELD_PARAMETER, &detail);
}

void scsi_fail_errno(struct scsi_cmd *cmd, int code, uint64_t bad_off)
{
	bool writing = cmd->op->flags & OP_WRITES;
	enum sense sense = sense_from_errno(code, writing);
	struct sense_detail detail = { .has_info = false };

	if (sense == SENSE_COUNT) {
		scsi_status_end(cmd, SCSI_BUSY);
		return;
	}
	/* INFORMATION of a medium error is the first bad block (SBC-3 4.18.1),
	 * of a miscompare the offset in the data-out (SBC-3 5.3). */
	if (sense_row(sense)->key == KEY_MEDIUM_ERROR) {
		counter_add(writing ? &cmd->per->write_errors : &cmd->per->read_errors, 1);
		detail.has_info = true;
		detail.info = bad_off / cmd_limits(cmd)->block_size;
	} else if (sense == SENSE_MISCOMPARE) {
		detail.has_info = true;
		detail.info = bad_off;
	}
	scsi_fail_detail(cmd, sense, &detail);
}

/* ---- the checks that every command goes through ---- */

static void cmd_reset(struct scsi_cmd *cmd)
{
	cmd->dir = SCSI_NO_DATA;
	cmd->transfer_len = 0;
	cmd->data_out_len = 0;
	cmd->buf_len = 0;
	cmd->write_inline = false;
	cmd->iov = NULL;
	cmd->iovcnt = 0;
	cmd->status = SCSI_GOOD;
	cmd->sense_len = 0;
	cmd->data_in_len = 0;
	cmd->residual_len = 0;
	cmd->lun = NULL;
	cmd->per = NULL;
	cmd->channel = NULL;
	cmd->req.in_flight = false;
	cmd->lba = 0;
	cmd->nblocks = 0;
	cmd->progress = 0;
	cmd->reply_len = 0;
	cmd->next = NULL;
	cmd->out_len = 0;
	cmd->step = 0;
	cmd->cut_len = 0;
	cmd->aborted = false;
	cmd->prepared = false;
	cmd->executing = false;
	cmd->in_execute = false;
	cmd->gone = false;
	list_init(&cmd->lun_link);
	list_init(&cmd->wait_link);
	reactor_work_init(&cmd->finish, cmd_deferred);
}

/* Bits outside of the row's usage mask are reserved: SPC-4 4.2.5.1. */
static bool check_reserved(struct scsi_cmd *cmd)
{
	const struct scsi_opcode *op = cmd->op;

	if (cmd->cdb_len < op->cdb_len)
		return scsi_refuse_field(cmd, 0, -1);
	for (uint8_t i = 1; i < op->cdb_len; i++) {
		uint8_t extra = cmd->cdb[i] & (uint8_t)~op->usage[i];

		if (extra != 0)
			return scsi_refuse_field(cmd, i,
						 (int8_t)(31 - __builtin_clz((uint32_t)extra)));
	}
	return true;
}

/* What the CDB says about lengths, as far as the row knows. */
static void read_lengths(struct scsi_cmd *cmd)
{
	const struct scsi_opcode *op = cmd->op;
	uint64_t length = cdb_field_get(cmd->cdb, op->length);

	cmd->dir = op->dir;
	cmd->lba = cdb_field_get(cmd->cdb, op->lba);
	cmd->nblocks = op->length_is == LENGTH_BYTES ? 0 : length;
	/* SBC-3 5.8: in the 6-byte CDBs zero blocks are 256. */
	if (op->cdb_len == 6 && op->lba.len != 0 && length == 0)
		cmd->nblocks = 256;
	if (op->length_is == LENGTH_BYTES)
		cmd->transfer_len = (uint32_t)length;
	if (op->length_is == LENGTH_BLOCKS && cmd->channel) {
		uint64_t bytes = cmd->nblocks * cmd_limits(cmd)->block_size;

		cmd->transfer_len = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
	}
}

static bool check_ready(struct scsi_cmd *cmd)
{
	uint32_t state = atomic_load_explicit(&cmd->lun->state, memory_order_acquire);

	if (cmd->op->flags & (OP_MEDIUM | OP_STORE)) {
		if (state & LUN_SWAPPING)
			return scsi_refuse_status(cmd, SCSI_BUSY);
		if ((state & LUN_NO_STORE) || !cmd->channel ||
		    backing_broken(cmd->channel->backing))
			return scsi_refuse(cmd, SENSE_STORE_NOT_READY);
	}
	if (cmd->op->flags & OP_MEDIUM) {
		if (state & LUN_EJECTED)
			return scsi_refuse(cmd, SENSE_NO_MEDIUM);
		if (state & LUN_STOPPED)
			return scsi_refuse(cmd, SENSE_STOPPED);
	}
	if (cmd->op->flags & OP_WRITES) {
		if (state & LUN_READ_ONLY)
			return scsi_refuse(cmd, SENSE_WRITE_PROTECTED);
		if (state & LUN_SWP)
			return scsi_refuse(cmd, SENSE_SOFTWARE_WRITE_PROTECTED);
	}
	return true;
}

/* The LBA is judged when nothing is transferred, too (SBC-3 4.5.1); by
 * subtraction, as LBA and length reach 2^64. */
static bool check_range(struct scsi_cmd *cmd)
{
	uint64_t total;

	if (cmd->op->lba.len == 0)
		return true;
	total = backing_size(cmd->channel->backing) / cmd_limits(cmd)->block_size;
	if (cmd->lba > total || cmd->nblocks > total - cmd->lba ||
	    (cmd->nblocks == 0 && cmd->lba == total)) {
		struct sense_detail detail = { .has_info = true, .info = cmd->lba };

		if (cmd->lba < total)
			detail.info = total;
		set_sense(cmd, SENSE_LBA_RANGE, &detail);
		return false;
	}
	return true;
}

/* How much moves, after the row's judge has corrected transfer_len. */
static bool check_transfer(struct scsi_cmd *cmd)
{
	const struct scsi_opcode *op = cmd->op;
	uint32_t room = cmd->initiator_dir == cmd->dir ? cmd->edtl : 0;
	uint32_t len = cmd->transfer_len < room ? cmd->transfer_len : room;

	if (cmd->dir == SCSI_DATA_IN && op->length_is == LENGTH_BYTES) {
		uint32_t reply_max = op->reply_max ? op->reply_max : 4096;

		cmd->buf_len = len < reply_max ? len : reply_max;
	} else if (cmd->dir == SCSI_DATA_IN) {
		/* Whole blocks are read, even if the last goes out in part. */
		uint32_t unit = op->length_is == LENGTH_BLOCKS ? cmd_limits(cmd)->block_size : 1;

		cmd->buf_len = (uint32_t)(((uint64_t)len + unit - 1) / unit * unit);
	} else if (cmd->dir == SCSI_DATA_OUT) {
		cmd->data_out_len = cmd->buf_len = len;
		/* FCP-4 9.4.2 a: what came is processed. Nothing is written in
		 * the name of data that were announced as going the other way. */
		if (cmd->transfer_len > 0 && cmd->initiator_dir == SCSI_DATA_IN)
			return scsi_refuse(cmd, SENSE_INVALID_INFORMATION_UNIT);
	}
	return true;
}

static bool check_lun(struct scsi_cmd *cmd, struct nexus_lun **nl)
{
	cmd->lun_number = scsi_lun_number(cmd->lun_field);
	cmd->lun = target_lun(cmd->nexus->target, cmd->lun_number);
	*nl = cmd->lun ? nexus_lun(cmd->nexus, cmd->lun_number) : NULL;
	if (!*nl) {
		cmd->lun = NULL;
		return false;
	}
	cmd->per = atomic_load_explicit(&cmd->lun->per[reactor_index(cmd->nexus->reactor)],
					memory_order_acquire);
	assert(cmd->per);
	cmd->channel = cmd->per->channel;
	cmd->generation = cmd->per->generation;
	return true;
}

static bool judge(struct scsi_cmd *cmd, struct nexus_lun *nl)
{
	const struct scsi_opcode *op = cmd->op;

	if (!cmd->lun && !(op->flags & OP_ANY_LUN))
		return scsi_refuse(cmd, SENSE_NO_LUN);
	if (cmd->lun) {
		if (!(op->flags & OP_NO_UA) && ua_pending(cmd->nexus, nl)) {
			enum sense sense = ua_take(cmd->nexus, nl);

			if (sense != SENSE_COUNT)
				return scsi_refuse(cmd, sense);
		}
		if (op->reservation != RESERVATION_ALLOWED && !reservation_allows(cmd))
			return scsi_refuse_status(cmd, SCSI_RESERVATION_CONFLICT);
	}
	if (!check_reserved(cmd))
		return false;
	if (cmd->lun && (!check_ready(cmd) || !check_range(cmd)))
		return false;
	return (!op->judge || op->judge(cmd)) && check_transfer(cmd);
}

bool scsi_cmd_prepare(struct scsi_cmd *cmd)
{
	struct nexus_lun *nl;
	bool known_opcode;

	assert(reactor_self() == cmd->nexus->reactor);
	cmd_reset(cmd);
	check_lun(cmd, &nl);
	cmd->op = scsi_opcode_find(cmd->cdb, &known_opcode);
	if (cmd->op && cmd->lun && !scsi_opcode_offered(cmd->op, cmd->lun))
		cmd->op = NULL, known_opcode = false;
	if (!cmd->op) {
		if (!cmd->lun)
			return scsi_refuse(cmd, SENSE_NO_LUN);
		if (known_opcode)
			return scsi_refuse_field(cmd, 1, 4);
		return scsi_refuse(cmd, SENSE_INVALID_OPCODE);
	}
	if (cmd->per)
		counter_add(&cmd->per->count[cmd->op - scsi_opcodes], 1);
	read_lengths(cmd);
	if (!judge(cmd, nl)) {
		cmd->buf_len = cmd->data_out_len = 0;
		cmd->per = NULL;
		cmd->lun = NULL;
		return false;
	}
	if (cmd->op->group == GROUP_WRITE && cmd->channel)
		cmd->write_inline = cmd->op->run == write_run && cmd->channel->write_inline &&
				    cmd->data_out_len == cmd->transfer_len;
	if (cmd->per)
		list_add_tail(&cmd->per->cmds, &cmd->lun_link);
	cmd->prepared = true;
	return true;
}

void scsi_cmd_drop(struct scsi_cmd *cmd)
{
	assert(cmd->prepared && !cmd->executing);
	cmd->prepared = false;
	list_del(&cmd->lun_link);
	cmd->per = NULL;
	cmd->lun = NULL;
}

void scsi_cmd_data_fault(struct scsi_cmd *cmd, enum scsi_data_fault fault)
{
	static const enum sense senses[] = {
		[SCSI_DATA_OUT_OF_SEQUENCE] = SENSE_DATA_PHASE,
		[SCSI_DATA_AT_WRONG_OFFSET] = SENSE_DATA_OFFSET,
		[SCSI_DATA_AMOUNT_WRONG] = SENSE_NOT_ENOUGH_DATA,
	};

	assert(fault < sizeof(senses) / sizeof(senses[0]));
	set_sense(cmd, senses[fault], NULL);
	scsi_cmd_drop(cmd);
}

void scsi_cmd_abort(struct scsi_cmd *cmd)
{
	cmd->aborted = true;
}

/* The store may have been changed since prepare.  What was judged with the old
 * one does not hold for the new one; a command that needs none and only tells
 * about it (INQUIRY, MODE SENSE) tells about what is there now. */
static bool store_changed(struct scsi_cmd *cmd)
{
	if (!cmd->per)
		return false;
	if (!(cmd->op->flags & (OP_MEDIUM | OP_STORE))) {
		cmd->channel = cmd->per->channel;
		return false;
	}
	return cmd->generation != cmd->per->generation ||
	       (atomic_load_explicit(&cmd->lun->state, memory_order_acquire) & LUN_SWAPPING);
}

void scsi_cmd_execute(struct scsi_cmd *cmd, uint32_t out_len)
{
	assert(cmd->prepared && !cmd->executing);
	assert(out_len <= cmd->data_out_len);
	assert(!cmd->write_inline || cmd->buf_len == cmd->data_out_len);
	cmd->prepared = false;
	cmd->executing = true;
	cmd->out_len = out_len;
	cmd->in_execute = true;
	if (cmd->per)
		cmd->per->in_flight++;
	if (cmd->dir == SCSI_DATA_OUT)
		cmd->residual_len = cmd->transfer_len;
	if (cmd->gone)
		scsi_fail(cmd, SENSE_NO_LUN);
	else if (out_len < cmd->data_out_len)
		scsi_fail(cmd, SENSE_NOT_ENOUGH_DATA);
	else if (store_changed(cmd))
		scsi_status_end(cmd, SCSI_BUSY);
	else
		cmd->op->run(cmd);
	cmd->in_execute = false;
}

const char *scsi_cmd_name(const struct scsi_cmd *cmd, char *room, size_t cap)
{
	bool known;
	const struct scsi_opcode *op = scsi_opcode_find(cmd->cdb, &known);

	if (op)
		return op->name;
	snprintf(room, cap, "opcode 0x%02x", cmd->cdb[0]);
	return room;
}
