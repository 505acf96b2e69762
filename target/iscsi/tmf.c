#include "target/iscsi/tmf.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"

/* Whose tasks a function ends (SAM-5 7.1). */
enum tmf_scope {
	TMF_ONE,    /* one task of this session */
	TMF_OWN,    /* this session's tasks in one LUN */
	TMF_LUN,    /* everybody's tasks in one LUN */
	TMF_TARGET, /* everybody's tasks in the target */
	TMF_NOTHING,
};

struct tmf_function {
	uint8_t function; /* enum iscsi_tmf_function */
	const char *name;
	uint8_t scope;
	bool needs_lun;
	uint8_t scsi; /* enum scsi_tmf */
};

static const struct tmf_function tmf_functions[] = {
	{ ISCSI_TMF_ABORT_TASK, "ABORT TASK", TMF_ONE, false, SCSI_TMF_ABORT_TASK },
	{ ISCSI_TMF_ABORT_TASK_SET, "ABORT TASK SET", TMF_OWN, true, SCSI_TMF_ABORT_TASK_SET },
	{ ISCSI_TMF_CLEAR_ACA, "CLEAR ACA", TMF_NOTHING, true, SCSI_TMF_CLEAR_ACA },
	{ ISCSI_TMF_CLEAR_TASK_SET, "CLEAR TASK SET", TMF_LUN, true, SCSI_TMF_CLEAR_TASK_SET },
	{ ISCSI_TMF_LUN_RESET, "LOGICAL UNIT RESET", TMF_LUN, true, SCSI_TMF_LUN_RESET },
	{ ISCSI_TMF_TARGET_WARM_RESET, "TARGET WARM RESET", TMF_TARGET, false,
	  SCSI_TMF_TARGET_RESET },
	{ ISCSI_TMF_TARGET_COLD_RESET, "TARGET COLD RESET", TMF_TARGET, false,
	  SCSI_TMF_TARGET_RESET },
};

struct iscsi_tmf;

/* What is to be done on one reactor. */
struct iscsi_tmf_part {
	struct iscsi_tmf *tmf;
	struct iscsi_reactor *ir;
	struct list link; /* iscsi_reactor.tmf_parts */
	struct reactor_msg msg;
};

/* A function under way; made for each, as they are rare and bounded by
 * ISCSI_TMFS_MAX for each session. */
struct iscsi_tmf {
	const struct tmf_function *row;
	struct iscsi_reactor *ir;	     /* of the session that asked */
	struct iscsi_conn *conn;	     /* NULL: gone */
	struct list conn_link;		     /* iscsi_conn.tmfs */
	const struct iscsi_session *session; /* only compared */
	struct iscsi_target *target;
	struct scsi_lun *lun; /* only compared; NULL: every LUN */
	uint8_t lun_field[8];
	be32 itt; /* of the request */
	uint32_t ref_itt, cmd_sn;
	unsigned int parts_left; /* counted on ir */
	unsigned int nparts;
	struct iscsi_tmf_part part[];
};

static void answer(struct iscsi_conn *conn, be32 itt, enum iscsi_tmf_response response)
{
	struct iscsi_out *out = iscsi_out_get(conn);

	if (!out)
		return;
	out->bhs.tmf_rsp.opcode = ISCSI_OP_TMF_RSP;
	out->bhs.tmf_rsp.flags = ISCSI_FINAL;
	out->bhs.tmf_rsp.response = (uint8_t)response;
	out->bhs.hdr.itt = itt;
	iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

/* ---- which tasks ---- */

static bool same_lun(const struct iscsi_tmf *tmf, const struct iscsi_task *task)
{
	return !tmf->lun || scsi_nexus_lun(task->cmd.nexus, task->cmd.lun_field) == tmf->lun;
}

/* RFC 7143 4.2.3.3: of its own session a function reaches what came before it.
 * An immediate one has the CmdSN of the command that comes next. */
static bool came_before(const struct iscsi_tmf *tmf, const struct iscsi_task *task)
{
	int32_t behind = (int32_t)(task->cmd_sn - tmf->cmd_sn);

	return task->immediate ? behind <= 0 : behind < 0;
}

static bool concerns(const struct iscsi_tmf *tmf, const struct iscsi_session *session,
		     const struct iscsi_task *task)
{
	switch (tmf->row->scope) {
	case TMF_ONE: return session == tmf->session && task->itt == tmf->ref_itt;
	case TMF_OWN:
		return session == tmf->session && same_lun(tmf, task) && came_before(tmf, task);
	case TMF_LUN:
		return same_lun(tmf, task) && (session != tmf->session || came_before(tmf, task));
	case TMF_TARGET:
		return session->target == tmf->target &&
		       (session != tmf->session || came_before(tmf, task));
	default: return false;
	}
}

static void abort_concerned(struct iscsi_tmf *tmf, struct iscsi_session *session)
{
	if (!session->conn)
		return;
	list_for_each_safe(l, &session->conn->tasks) {
		struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (concerns(tmf, session, task))
			iscsi_task_abort(task);
	}
}

/* True while a task that was aborted for tmf is still in its store. */
static bool waits(struct iscsi_reactor *ir, const struct iscsi_tmf *tmf)
{
	list_for_each(sl, &ir->sessions) {
		struct iscsi_session *session = container_of(sl, struct iscsi_session, link);

		if (!session->conn)
			continue;
		list_for_each(l, &session->conn->tasks) {
			struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

			if (task->aborted && task->state == TASK_EXECUTE &&
			    concerns(tmf, session, task))
				return true;
		}
	}
	return false;
}

/* ---- parts ---- */

/* What it changes beside the tasks; the session that asked is still there. */
static void take_effect(struct iscsi_tmf *tmf, struct iscsi_conn *conn)
{
	list_del(&tmf->conn_link);
	conn->session->ntmfs--;
	tmf->conn = NULL;
	scsi_tmf_apply(conn->session->nexus, tmf->row->scsi, tmf->lun_field);
	/* 11.5.1: a cold reset ends all sessions, behind the answer. */
	if (tmf->row->function == ISCSI_TMF_TARGET_COLD_RESET)
		iscsi_sessions_end(tmf->ir->server, tmf->target, 0);
}

static void tmf_end(struct iscsi_tmf *tmf)
{
	struct iscsi_conn *conn = tmf->conn;

	if (conn) {
		take_effect(tmf, conn);
		answer(conn, tmf->itt, ISCSI_TMF_COMPLETE);
	}
	iscsi_target_put(tmf->target);
	free(tmf);
}

static void part_answered(struct reactor_msg *msg)
{
	struct iscsi_tmf_part *part = container_of(msg, struct iscsi_tmf_part, msg);

	if (--part->tmf->parts_left == 0)
		tmf_end(part->tmf);
}

static void part_end(struct iscsi_tmf_part *part)
{
	part->msg.run = part_answered;
	reactor_send(part->tmf->ir->reactor, &part->msg);
}

static void part_begin(struct reactor_msg *msg)
{
	struct iscsi_tmf_part *part = container_of(msg, struct iscsi_tmf_part, msg);
	struct iscsi_reactor *ir = part->ir;

	list_for_each_safe(l, &ir->sessions)
		abort_concerned(part->tmf, container_of(l, struct iscsi_session, link));
	if (waits(ir, part->tmf))
		list_add_tail(&ir->tmf_parts, &part->link);
	else
		part_end(part);
}

void iscsi_tmf_look(struct iscsi_reactor *ir)
{
	list_for_each_safe(l, &ir->tmf_parts) {
		struct iscsi_tmf_part *part = container_of(l, struct iscsi_tmf_part, link);

		if (waits(ir, part->tmf))
			continue;
		list_del(&part->link);
		part_end(part);
	}
}

void iscsi_tmf_forget(struct iscsi_conn *conn)
{
	/* The tasks of others end without a word: their initiators have to be
	 * told by a unit attention, whether or not somebody waits for the answer. */
	list_for_each_safe(l, &conn->tmfs)
		take_effect(container_of(l, struct iscsi_tmf, conn_link), conn);
}

/* ---- the request ---- */

static const struct tmf_function *function_row(uint8_t function)
{
	for (size_t i = 0; i < ARRAY_LEN(tmf_functions); i++)
		if (tmf_functions[i].function == function)
			return &tmf_functions[i];
	return NULL;
}

/*
 * RFC 7143 11.6.1 of a task that is not there: one whose CmdSN is in the window
 * and before that of this request counts as received and aborted; one that has
 * ended, or never was, "does not exist".
 */
static enum iscsi_tmf_response absent_task(const struct iscsi_conn *conn,
					   const struct iscsi_bhs *bhs)
{
	uint32_t ref = be32_get(&bhs->tmf_req.ref_cmd_sn);
	bool to_come = (int32_t)(ref - conn->session->exp_cmd_sn) >= 0 &&
		       (int32_t)(ref - be32_get(&bhs->tmf_req.cmd_sn)) < 0;

	return to_come ? ISCSI_TMF_COMPLETE : ISCSI_TMF_NO_TASK;
}

/* The task an ABORT TASK names, unless its response is on the wire already. */
static bool task_is_there(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_task *task = iscsi_task_find(conn, be32_get(&bhs->tmf_req.ref_itt));

	return task && !iscsi_task_is_answered(task);
}

static struct iscsi_tmf *tmf_create(struct iscsi_conn *conn, const struct tmf_function *row,
				    const struct iscsi_bhs *bhs)
{
	struct iscsi_server *server = conn->ir->server;
	unsigned int nparts = row->scope >= TMF_LUN ? server->nreactors : 1;
	struct iscsi_tmf *tmf = calloc(1, sizeof(*tmf) + nparts * sizeof(tmf->part[0]));

	if (!tmf)
		return NULL;
	tmf->row = row;
	tmf->ir = conn->ir;
	tmf->conn = conn;
	tmf->session = conn->session;
	tmf->target = iscsi_target_get(conn->session->target);
	memcpy(tmf->lun_field, bhs->hdr.lun, sizeof(tmf->lun_field));
	if (row->needs_lun)
		tmf->lun = scsi_nexus_lun(conn->session->nexus, tmf->lun_field);
	tmf->itt = bhs->hdr.itt;
	tmf->ref_itt = be32_get(&bhs->tmf_req.ref_itt);
	tmf->cmd_sn = be32_get(&bhs->tmf_req.cmd_sn);
	tmf->nparts = tmf->parts_left = nparts;
	for (unsigned int i = 0; i < nparts; i++) {
		tmf->part[i].tmf = tmf;
		tmf->part[i].ir = nparts == 1 ? conn->ir : server->reactor[i];
		list_init(&tmf->part[i].link);
		tmf->part[i].msg.run = part_begin;
	}
	list_add_tail(&conn->tmfs, &tmf->conn_link);
	conn->session->ntmfs++;
	return tmf;
}

/* Answers what needs no work; true when that was so. */
static bool answered(struct iscsi_conn *conn, const struct tmf_function *row,
		     const struct iscsi_bhs *bhs)
{
	uint8_t function = bhs->tmf_req.function & 0x7f;
	enum iscsi_tmf_response response;

	if (!row)
		response = function == ISCSI_TMF_TASK_REASSIGN ? ISCSI_TMF_NO_REASSIGN
							       : ISCSI_TMF_NOT_SUPPORTED;
	else if (row->needs_lun && !scsi_nexus_has_lun(conn->session->nexus, bhs->hdr.lun))
		response = ISCSI_TMF_NO_LUN;
	else if (row->scope == TMF_ONE && !task_is_there(conn, bhs))
		response = absent_task(conn, bhs);
	else if (row->scope == TMF_NOTHING) /* NormACA is 0: there is no ACA to clear */
		response = ISCSI_TMF_COMPLETE;
	else
		return false;
	answer(conn, bhs->hdr.itt, response);
	return true;
}

void iscsi_tmf_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	const struct tmf_function *row = function_row(bhs->tmf_req.function & 0x7f);
	struct iscsi_tmf *tmf;

	if (!conn->session->nexus) {
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR,
				  "task management in a discovery session");
		return;
	}
	log_peer(LOG_LEVEL_INFO, "%s: %s asks for %s", conn->peer_text,
		 conn->session->params.initiator_name,
		 row ? row->name : "an unknown task management function");
	if (answered(conn, row, bhs))
		return;
	if (conn->session->ntmfs >= ISCSI_TMFS_MAX || !(tmf = tmf_create(conn, row, bhs))) {
		iscsi_conn_reject(conn, ISCSI_REJECT_TOO_MANY_IMMEDIATE,
				  "too many task management functions");
		return;
	}
	for (unsigned int i = 0; i < tmf->nparts; i++)
		reactor_send(tmf->part[i].ir->reactor, &tmf->part[i].msg);
}
