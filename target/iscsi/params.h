/*
 * What a login has negotiated, and the table of keys that does it (keys.c).
 *
 * To add a key: one field here and one row in login_keys[].  Rules, ranges and
 * RFC defaults are in the row (RFC 7143 13); each answer comes from the row.
 * Pure; shared with the embedded initiator.
 */
#ifndef ISCSI_PARAMS_H
#define ISCSI_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/iscsi/settings.h"
#include "target/iscsi/wire.h"

struct iscsi_params {
	bool header_digest, data_digest; /* CRC32C */
	bool initial_r2t, immediate_data;
	bool data_pdu_in_order, data_sequence_in_order;
	bool discovery; /* SessionType */
	uint32_t max_connections;
	uint32_t max_recv_data_segment_length; /* what we declared */
	uint32_t max_xmit_data_segment_length; /* what the initiator declared */
	uint32_t max_burst_length, first_burst_length;
	uint32_t default_time2wait, default_time2retain;
	uint32_t max_outstanding_r2t;
	uint32_t error_recovery_level;
	uint32_t protocol_level;		 /* iSCSIProtocolLevel; 1: RFC 7143 */
	char initiator_name[ISCSI_NAME_MAX + 1]; /* lower case */
	char initiator_alias[ISCSI_NAME_MAX + 1];
	char target_name[ISCSI_NAME_MAX + 1]; /* lower case; "" in discovery */
};

/* The RFC's defaults. */
void iscsi_params_init(struct iscsi_params *params);

/* ---- text: "key=value\0" lists ---- */

/* Output that never overflows; too long sets overflow. */
struct iscsi_text_out {
	char *buf;
	uint32_t cap, len;
	bool overflow;
};

void iscsi_text_add(struct iscsi_text_out *out, const char *key, const char *value);
void iscsi_text_add_uint(struct iscsi_text_out *out, const char *key, uint32_t value);

/*
 * The next key=value of a data segment.  The text is not trusted: a pair
 * without NUL or '=', a key longer than 63 bytes or a value longer than 8192
 * is -EINVAL.  1: *key and *value point into text; 0: the end.
 */
int iscsi_text_next(char *text, uint32_t len, uint32_t *pos, char **key, char **value);

#endif
