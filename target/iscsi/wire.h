/*
 * iSCSI on the wire: RFC 7143 section 11, with its offsets.
 *
 * Only be types, so that no field is used unconverted; sizes and offsets are
 * asserted.  Names are the RFC's.  The 48 bytes of every header are a
 * union, struct iscsi_bhs.
 */
#ifndef ISCSI_WIRE_H
#define ISCSI_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/be.h"

#define ISCSI_PORT	   3260
#define ISCSI_BHS_LEN	   48
#define ISCSI_DIGEST_LEN   4
#define ISCSI_NAME_MAX	   223 /* bytes without the NUL; RFC 7143 4.2.7.1 */
#define ISCSI_TAG_RESERVED 0xffffffffu
#define ISCSI_VERSION	   0x00
/* Data segment of a login or text PDU before anything is negotiated. */
#define ISCSI_LOGIN_DATA_MAX 8192

#define ISCSI_PAD(len) ((0u - (uint32_t)(len)) & 3u)

enum iscsi_opcode {
	ISCSI_OP_NOP_OUT = 0x00,
	ISCSI_OP_SCSI_CMD = 0x01,
	ISCSI_OP_TMF_REQ = 0x02,
	ISCSI_OP_LOGIN_REQ = 0x03,
	ISCSI_OP_TEXT_REQ = 0x04,
	ISCSI_OP_DATA_OUT = 0x05,
	ISCSI_OP_LOGOUT_REQ = 0x06,
	ISCSI_OP_SNACK = 0x10,
	ISCSI_OP_NOP_IN = 0x20,
	ISCSI_OP_SCSI_RSP = 0x21,
	ISCSI_OP_TMF_RSP = 0x22,
	ISCSI_OP_LOGIN_RSP = 0x23,
	ISCSI_OP_TEXT_RSP = 0x24,
	ISCSI_OP_DATA_IN = 0x25,
	ISCSI_OP_LOGOUT_RSP = 0x26,
	ISCSI_OP_R2T = 0x31,
	ISCSI_OP_ASYNC = 0x32,
	ISCSI_OP_REJECT = 0x3f,
};

#define ISCSI_OPCODE_MASK 0x3f
#define ISCSI_IMMEDIATE	  0x40 /* byte 0 of a request */
#define ISCSI_FINAL	  0x80 /* byte 1 */

/* byte 1 of a SCSI command: 11.3.1 */
#define ISCSI_CMD_READ	    0x40
#define ISCSI_CMD_WRITE	    0x20
#define ISCSI_CMD_ATTR_MASK 0x07

/* byte 1 of a SCSI response and of the last Data-In: 11.4.1, 11.7.3 */
#define ISCSI_RSP_BIDI_OVERFLOW	 0x10
#define ISCSI_RSP_BIDI_UNDERFLOW 0x08
#define ISCSI_RSP_OVERFLOW	 0x04
#define ISCSI_RSP_UNDERFLOW	 0x02
#define ISCSI_DATA_IN_STATUS	 0x01
#define ISCSI_DATA_IN_ACK	 0x40

/* byte 1 of login and text PDUs: 11.12, 11.10 */
#define ISCSI_LOGIN_TRANSIT    0x80
#define ISCSI_CONTINUE	       0x40
#define ISCSI_LOGIN_CSG(flags) (((flags) >> 2) & 3)
#define ISCSI_LOGIN_NSG(flags) ((flags)&3)

enum iscsi_stage {
	ISCSI_STAGE_SECURITY = 0,
	ISCSI_STAGE_OPERATIONAL = 1,
	ISCSI_STAGE_RESERVED = 2,
	ISCSI_STAGE_FULL_FEATURE = 3,
};

/* 11.6.1, 11.5.1 */
enum iscsi_tmf_function {
	ISCSI_TMF_ABORT_TASK = 1,
	ISCSI_TMF_ABORT_TASK_SET = 2,
	ISCSI_TMF_CLEAR_ACA = 3,
	ISCSI_TMF_CLEAR_TASK_SET = 4,
	ISCSI_TMF_LUN_RESET = 5,
	ISCSI_TMF_TARGET_WARM_RESET = 6,
	ISCSI_TMF_TARGET_COLD_RESET = 7,
	ISCSI_TMF_TASK_REASSIGN = 8,
};

enum iscsi_tmf_response {
	ISCSI_TMF_COMPLETE = 0,
	ISCSI_TMF_NO_TASK = 1,
	ISCSI_TMF_NO_LUN = 2,
	ISCSI_TMF_STILL_ALLEGIANT = 3,
	ISCSI_TMF_NO_REASSIGN = 4,
	ISCSI_TMF_NOT_SUPPORTED = 5,
	ISCSI_TMF_AUTH_FAILED = 6,
	ISCSI_TMF_REJECTED = 255,
};

/* 11.9.1 */
enum iscsi_async_event {
	ISCSI_ASYNC_SCSI = 0,
	ISCSI_ASYNC_LOGOUT_REQUEST = 1,
	ISCSI_ASYNC_DROP_CONNECTION = 2,
	ISCSI_ASYNC_DROP_ALL = 3,
	ISCSI_ASYNC_NEGOTIATE = 4,
};

/* 11.14.1 */
enum iscsi_logout_reason {
	ISCSI_LOGOUT_SESSION = 0,
	ISCSI_LOGOUT_CONNECTION = 1,
	ISCSI_LOGOUT_RECOVERY = 2,
};

/* 11.15.1 */
enum iscsi_logout_response {
	ISCSI_LOGOUT_CLOSED = 0,
	ISCSI_LOGOUT_NO_CID = 1,
	ISCSI_LOGOUT_NO_RECOVERY = 2,
	ISCSI_LOGOUT_FAILED = 3,
};

/* 11.17.1 */
enum iscsi_reject_reason {
	ISCSI_REJECT_DATA_DIGEST = 0x02,
	ISCSI_REJECT_SNACK = 0x03,
	ISCSI_REJECT_PROTOCOL_ERROR = 0x04,
	ISCSI_REJECT_NOT_SUPPORTED = 0x05,
	ISCSI_REJECT_TOO_MANY_IMMEDIATE = 0x06,
	ISCSI_REJECT_TASK_IN_PROGRESS = 0x07,
	ISCSI_REJECT_INVALID_DATA_ACK = 0x08,
	ISCSI_REJECT_INVALID_PDU_FIELD = 0x09,
	ISCSI_REJECT_LONG_OPERATION = 0x0a,
	ISCSI_REJECT_WAITING_FOR_LOGOUT = 0x0c,
};

/* 11.13.5: class in the high byte, detail in the low one */
enum iscsi_login_status {
	ISCSI_LOGIN_OK = 0x0000,
	ISCSI_LOGIN_MOVED_TEMPORARILY = 0x0101,
	ISCSI_LOGIN_MOVED_PERMANENTLY = 0x0102,
	ISCSI_LOGIN_INITIATOR_ERROR = 0x0200,
	ISCSI_LOGIN_AUTH_FAILED = 0x0201,
	ISCSI_LOGIN_FORBIDDEN = 0x0202,
	ISCSI_LOGIN_NOT_FOUND = 0x0203,
	ISCSI_LOGIN_REMOVED = 0x0204,
	ISCSI_LOGIN_UNSUPPORTED_VERSION = 0x0205,
	ISCSI_LOGIN_TOO_MANY_CONNECTIONS = 0x0206,
	ISCSI_LOGIN_MISSING_PARAMETER = 0x0207,
	ISCSI_LOGIN_CANNOT_INCLUDE = 0x0208,
	ISCSI_LOGIN_SESSION_TYPE = 0x0209,
	ISCSI_LOGIN_NO_SESSION = 0x020a,
	ISCSI_LOGIN_INVALID_REQUEST = 0x020b,
	ISCSI_LOGIN_TARGET_ERROR = 0x0300,
	ISCSI_LOGIN_UNAVAILABLE = 0x0301,
	ISCSI_LOGIN_OUT_OF_RESOURCES = 0x0302,
};

/* What every header has: 11.2.1 */
struct iscsi_hdr {
	uint8_t opcode; /* with ISCSI_IMMEDIATE in requests */
	uint8_t flags;
	uint8_t specific[2];
	uint8_t total_ahs_len; /* in words of 4 bytes */
	be24 data_segment_len; /* bytes, without padding */
	uint8_t lun[8];
	be32 itt;
	uint8_t specific2[28];
};

/* 11.3 */
struct iscsi_scsi_cmd {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 edtl;
	be32 cmd_sn;
	be32 exp_stat_sn;
	uint8_t cdb[16];
};

/* 11.4 */
struct iscsi_scsi_rsp {
	uint8_t opcode, flags, response, status;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t reserved[8];
	be32 itt;
	be32 snack_tag;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	be32 exp_data_sn;
	be32 bidi_residual;
	be32 residual;
};

/* 11.5 */
struct iscsi_tmf_req {
	uint8_t opcode, function, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ref_itt;
	be32 cmd_sn;
	be32 exp_stat_sn;
	be32 ref_cmd_sn;
	be32 exp_data_sn;
	uint8_t reserved2[8];
};

/* 11.6 */
struct iscsi_tmf_rsp {
	uint8_t opcode, flags, response, reserved;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t reserved2[8];
	be32 itt;
	uint8_t reserved3[4];
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t reserved4[12];
};

/* 11.7 */
struct iscsi_data_out {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	uint8_t reserved2[4];
	be32 exp_stat_sn;
	uint8_t reserved3[4];
	be32 data_sn;
	be32 buffer_off;
	uint8_t reserved4[4];
};

struct iscsi_data_in {
	uint8_t opcode, flags, reserved, status;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	be32 data_sn;
	be32 buffer_off;
	be32 residual;
};

/* 11.8 */
struct iscsi_r2t {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	be32 r2t_sn;
	be32 buffer_off;
	be32 desired_len;
};

/* 11.9 */
struct iscsi_async {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt; /* reserved tag */
	uint8_t reserved2[4];
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t event, vcode;
	be16 parameter[3];
	uint8_t reserved3[4];
};

/* 11.10 */
struct iscsi_text_req {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 cmd_sn;
	be32 exp_stat_sn;
	uint8_t reserved2[16];
};

/* 11.11 */
struct iscsi_text_rsp {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t reserved2[12];
};

/* 11.12 */
struct iscsi_login_req {
	uint8_t opcode, flags, version_max, version_min;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t isid[6];
	be16 tsih;
	be32 itt;
	be16 cid;
	uint8_t reserved[2];
	be32 cmd_sn;
	be32 exp_stat_sn;
	uint8_t reserved2[16];
};

/* 11.13 */
struct iscsi_login_rsp {
	uint8_t opcode, flags, version_max, version_active;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t isid[6];
	be16 tsih;
	be32 itt;
	uint8_t reserved[4];
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t status_class, status_detail;
	uint8_t reserved2[10];
};

/* 11.14 */
struct iscsi_logout_req {
	uint8_t opcode, reason, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t reserved2[8];
	be32 itt;
	be16 cid;
	uint8_t reserved3[2];
	be32 cmd_sn;
	be32 exp_stat_sn;
	uint8_t reserved4[16];
};

/* 11.15 */
struct iscsi_logout_rsp {
	uint8_t opcode, flags, response, reserved;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t reserved2[8];
	be32 itt;
	uint8_t reserved3[4];
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t reserved4[4];
	be16 time2wait;	  /* seconds */
	be16 time2retain; /* seconds */
	uint8_t reserved5[4];
};

/* 11.17; the header of what is rejected is the data segment */
struct iscsi_reject {
	uint8_t opcode, flags, reason, reserved;
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t reserved2[8];
	be32 itt; /* reserved tag */
	uint8_t reserved3[4];
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	be32 data_sn;
	uint8_t reserved4[8];
};

/* 11.18 */
struct iscsi_nop_out {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 cmd_sn;
	be32 exp_stat_sn;
	uint8_t reserved2[16];
};

/* 11.19 */
struct iscsi_nop_in {
	uint8_t opcode, flags, reserved[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t reserved2[12];
};

/* The fields that every PDU of a target has at the same place. */
struct iscsi_target_pdu {
	uint8_t opcode, flags, specific[2];
	uint8_t total_ahs_len;
	be24 data_segment_len;
	uint8_t lun[8];
	be32 itt;
	be32 ttt;
	be32 stat_sn;
	be32 exp_cmd_sn;
	be32 max_cmd_sn;
	uint8_t specific2[12];
};

struct iscsi_bhs {
	union {
		struct iscsi_hdr hdr;
		struct iscsi_scsi_cmd scsi_cmd;
		struct iscsi_scsi_rsp scsi_rsp;
		struct iscsi_tmf_req tmf_req;
		struct iscsi_tmf_rsp tmf_rsp;
		struct iscsi_data_out data_out;
		struct iscsi_data_in data_in;
		struct iscsi_r2t r2t;
		struct iscsi_async async;
		struct iscsi_text_req text_req;
		struct iscsi_text_rsp text_rsp;
		struct iscsi_login_req login_req;
		struct iscsi_login_rsp login_rsp;
		struct iscsi_logout_req logout_req;
		struct iscsi_logout_rsp logout_rsp;
		struct iscsi_reject reject;
		struct iscsi_nop_out nop_out;
		struct iscsi_nop_in nop_in;
		struct iscsi_target_pdu target;
		uint8_t bytes[ISCSI_BHS_LEN];
	};
};

/* Additional header segments: 11.2.2 */
enum iscsi_ahs_type {
	ISCSI_AHS_EXTENDED_CDB = 1,
	ISCSI_AHS_BIDI_EDTL = 2,
};

struct iscsi_ahs {
	be16 ahs_len; /* bytes after the type, without padding */
	uint8_t type;
	uint8_t specific;
};

#define ISCSI_ASSERT_SIZE(s) static_assert(sizeof(struct s) == ISCSI_BHS_LEN, #s " is 48 bytes")
#define ISCSI_ASSERT_AT(s, f, off) \
	static_assert(offsetof(struct s, f) == (off), #s "." #f " is at byte " #off)

ISCSI_ASSERT_SIZE(iscsi_hdr);
ISCSI_ASSERT_SIZE(iscsi_scsi_cmd);
ISCSI_ASSERT_SIZE(iscsi_scsi_rsp);
ISCSI_ASSERT_SIZE(iscsi_tmf_req);
ISCSI_ASSERT_SIZE(iscsi_tmf_rsp);
ISCSI_ASSERT_SIZE(iscsi_data_out);
ISCSI_ASSERT_SIZE(iscsi_data_in);
ISCSI_ASSERT_SIZE(iscsi_r2t);
ISCSI_ASSERT_SIZE(iscsi_async);
ISCSI_ASSERT_SIZE(iscsi_text_req);
ISCSI_ASSERT_SIZE(iscsi_text_rsp);
ISCSI_ASSERT_SIZE(iscsi_login_req);
ISCSI_ASSERT_SIZE(iscsi_login_rsp);
ISCSI_ASSERT_SIZE(iscsi_logout_req);
ISCSI_ASSERT_SIZE(iscsi_logout_rsp);
ISCSI_ASSERT_SIZE(iscsi_reject);
ISCSI_ASSERT_SIZE(iscsi_nop_out);
ISCSI_ASSERT_SIZE(iscsi_nop_in);
ISCSI_ASSERT_SIZE(iscsi_target_pdu);
ISCSI_ASSERT_SIZE(iscsi_bhs);
ISCSI_ASSERT_AT(iscsi_hdr, itt, 16);
ISCSI_ASSERT_AT(iscsi_scsi_cmd, cmd_sn, 24);
ISCSI_ASSERT_AT(iscsi_scsi_cmd, cdb, 32);
ISCSI_ASSERT_AT(iscsi_scsi_rsp, exp_data_sn, 36);
ISCSI_ASSERT_AT(iscsi_scsi_rsp, residual, 44);
ISCSI_ASSERT_AT(iscsi_tmf_req, ref_cmd_sn, 32);
ISCSI_ASSERT_AT(iscsi_data_out, exp_stat_sn, 28);
ISCSI_ASSERT_AT(iscsi_data_out, data_sn, 36);
ISCSI_ASSERT_AT(iscsi_data_out, buffer_off, 40);
ISCSI_ASSERT_AT(iscsi_data_in, data_sn, 36);
ISCSI_ASSERT_AT(iscsi_data_in, residual, 44);
ISCSI_ASSERT_AT(iscsi_r2t, r2t_sn, 36);
ISCSI_ASSERT_AT(iscsi_r2t, desired_len, 44);
ISCSI_ASSERT_AT(iscsi_async, event, 36);
ISCSI_ASSERT_AT(iscsi_async, parameter, 38);
ISCSI_ASSERT_AT(iscsi_login_req, tsih, 14);
ISCSI_ASSERT_AT(iscsi_login_req, cid, 20);
ISCSI_ASSERT_AT(iscsi_login_rsp, status_class, 36);
ISCSI_ASSERT_AT(iscsi_logout_rsp, time2wait, 40);
ISCSI_ASSERT_AT(iscsi_reject, data_sn, 36);
ISCSI_ASSERT_AT(iscsi_target_pdu, stat_sn, 24);
static_assert(sizeof(struct iscsi_ahs) == 4, "an AHS begins with 4 bytes");

#endif
