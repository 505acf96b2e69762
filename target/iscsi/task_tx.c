/*
 * What a task sends: R2T, Data-In, SCSI Response (RFC 7143 11.8, 11.7, 11.4).
 * Each function here fills one header but for the three numbers; conn_tx.c
 * sends it, or takes it back when the socket is full.
 */
#include <assert.h>

#include "target/iscsi/session.h"
#include "target/iscsi/task.h"

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- R2T ---- */

bool iscsi_task_wants_r2t(const struct iscsi_task *task)
{
	uint32_t max = min32(task->conn->session->params.max_outstanding_r2t, ISCSI_TASK_R2TS);

	return task->r2t_next < task->want && task->r2ts_out < max;
}

static struct iscsi_r2t_slot *slot_find(struct iscsi_task *task, uint32_t ttt)
{
	for (int i = 0; i < ISCSI_TASK_R2TS; i++)
		if (task->r2t[i].ttt == ttt)
			return &task->r2t[i];
	assert(!"a slot for each R2T");
	return NULL;
}

/* 0 marks a free slot, all ones is reserved (11.8.5). */
static uint32_t next_ttt(struct iscsi_session *session)
{
	do {
		session->next_ttt++;
	} while (session->next_ttt == 0 || session->next_ttt == ISCSI_TAG_RESERVED);
	return session->next_ttt;
}

void iscsi_task_build_r2t(struct iscsi_task *task, struct iscsi_tx_built *built)
{
	struct iscsi_session *session = task->conn->session;
	struct iscsi_r2t *r2t = &((struct iscsi_bhs *)built->hdr)->r2t;
	struct iscsi_r2t_slot *slot = slot_find(task, 0);
	uint32_t len = min32(task->want - task->r2t_next, session->params.max_burst_length);

	assert(task->r2t_next < task->want);
	built->off = task->r2t_next;
	slot->ttt = next_ttt(session);
	slot->off = task->r2t_next;
	slot->end = slot->off + len;
	slot->data_sn = 0;
	r2t->opcode = ISCSI_OP_R2T;
	r2t->flags = ISCSI_FINAL;
	memcpy(r2t->lun, task->cmd.lun_field, sizeof(r2t->lun));
	be32_put(&r2t->itt, task->itt);
	be32_put(&r2t->ttt, slot->ttt);
	be32_put(&r2t->r2t_sn, task->r2t_sn++);
	be32_put(&r2t->buffer_off, slot->off);
	be32_put(&r2t->desired_len, len);
	task->r2t_next += len;
	task->r2ts_out++;
	built->last = !iscsi_task_wants_r2t(task);
}

void iscsi_task_unbuild_r2t(struct iscsi_task *task, const struct iscsi_tx_built *built)
{
	const struct iscsi_r2t *r2t = &((const struct iscsi_bhs *)built->hdr)->r2t;

	slot_find(task, be32_get(&r2t->ttt))->ttt = 0;
	task->r2t_next = built->off;
	task->r2t_sn--;
	task->r2ts_out--;
}

/* ---- Data-In and SCSI Response ---- */

/* 11.4.5: what the initiator expected against what the command moves. */
static uint8_t residual(const struct iscsi_task *task, be32 *count)
{
	const struct scsi_cmd *cmd = &task->cmd;
	uint32_t moved = cmd->residual_len;

	if (cmd->status != SCSI_GOOD && cmd->status != SCSI_CONDITION_MET)
		moved = cmd->initiator_dir == SCSI_DATA_IN ? cmd->data_in_len : task->have;
	if (moved < cmd->edtl) {
		be32_put(count, cmd->edtl - moved);
		return ISCSI_RSP_UNDERFLOW;
	}
	if (moved > cmd->edtl) {
		be32_put(count, moved - cmd->edtl);
		return ISCSI_RSP_OVERFLOW;
	}
	return 0;
}

/* The status leaves: its slot is the window's again (MaxCmdSN in this PDU). */
static void window_give(struct iscsi_task *task, struct iscsi_tx_built *built)
{
	built->status = true;
	built->last = true;
	if (task->in_window) {
		task->in_window = false;
		task->conn->session->in_use--;
	}
}

static void build_data_in(struct iscsi_task *task, struct iscsi_tx_built *built)
{
	const struct iscsi_params *params = &task->conn->session->params;
	struct iscsi_data_in *pdu = &((struct iscsi_bhs *)built->hdr)->data_in;
	uint32_t left = task->cmd.data_in_len - task->tx_off;
	uint32_t burst = params->max_burst_length - task->tx_off % params->max_burst_length;
	uint32_t len = min32(min32(left, burst), params->max_xmit_data_segment_length);

	pdu->opcode = ISCSI_OP_DATA_IN;
	pdu->flags = len == left || len == burst ? ISCSI_FINAL : 0;
	be32_put(&pdu->itt, task->itt);
	be32_put(&pdu->ttt, ISCSI_TAG_RESERVED);
	be32_put(&pdu->data_sn, task->tx_data_sn++);
	be32_put(&pdu->buffer_off, task->tx_off);
	built->data_off = task->tx_off;
	built->data_len = len;
	task->tx_off += len;
	built->last = false;
	if (len == left && task->cmd.status == SCSI_GOOD && task->sense_len == 0) {
		pdu->flags |= ISCSI_DATA_IN_STATUS | residual(task, &pdu->residual);
		pdu->status = task->cmd.status;
		window_give(task, built);
	}
}

static void build_response(struct iscsi_task *task, struct iscsi_tx_built *built)
{
	struct iscsi_scsi_rsp *pdu = &((struct iscsi_bhs *)built->hdr)->scsi_rsp;

	pdu->opcode = ISCSI_OP_SCSI_RSP;
	pdu->flags = ISCSI_FINAL | residual(task, &pdu->residual);
	pdu->status = task->cmd.status;
	be32_put(&pdu->itt, task->itt);
	/* 11.4.8: Data-In or R2T PDUs that were sent for it. */
	be32_put(&pdu->exp_data_sn,
		 task->cmd.initiator_dir == SCSI_DATA_OUT ? task->r2t_sn : task->tx_data_sn);
	built->data_off = 0;
	built->data_len = task->sense_len;
	window_give(task, built);
}

void iscsi_task_build(struct iscsi_task *task, struct iscsi_tx_built *built)
{
	built->off = task->tx_off;
	built->data_sn = task->tx_data_sn;
	if (task->tx_off < task->cmd.data_in_len)
		build_data_in(task, built);
	else
		build_response(task, built);
}

void iscsi_task_unbuild(struct iscsi_task *task, const struct iscsi_tx_built *built)
{
	task->tx_off = built->off;
	task->tx_data_sn = built->data_sn;
	if (built->status && !task->immediate) {
		task->in_window = true;
		task->conn->session->in_use++;
	}
}
