/*
 * The settings of iSCSI, and their option rows (settings.c): the limits that
 * are negotiated at login, per target with global defaults, and those of the
 * whole server.
 */
#ifndef ISCSI_SETTINGS_H
#define ISCSI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

enum iscsi_digest_policy {
	ISCSI_DIGEST_NONE,     /* never */
	ISCSI_DIGEST_OPTIONAL, /* as the initiator prefers */
	ISCSI_DIGEST_REQUIRED, /* a login that does not take CRC32C fails */
};

/* Rows: iscsi_limits_options[].  Key names are the RFC's (RFC 7143 13) in lower
 * case with hyphens; what is negotiated never exceeds these. */
struct iscsi_limits {
	uint32_t max_recv_data_segment_length; /* bytes that we declare: 256K */
	uint32_t max_burst_length;	       /* bytes: 1M */
	uint32_t first_burst_length;	       /* bytes: 64K */
	uint32_t max_outstanding_r2t;	       /* 16 */
	uint32_t default_time2wait;	       /* s: 2 */
	uint32_t default_time2retain;	       /* s: 0, as error recovery is level 0 */
	bool initial_r2t;		       /* yes */
	bool immediate_data;		       /* yes */
	uint8_t header_digest;		       /* enum iscsi_digest_policy: optional */
	uint8_t data_digest;
	uint32_t queue_depth;  /* command window: 256 */
	uint32_t nop_interval; /* s without any PDU until we ping; 0: never */
	uint32_t nop_timeout;  /* s from the ping to the drop */
};

extern const struct option_spec iscsi_limits_options[];

/* Rows: iscsi_server_options[]; the whole daemon. */
struct iscsi_server_settings {
	uint32_t login_timeout;	  /* s: 30; ctl.conf's `timeout` */
	uint32_t max_connections; /* of the daemon, being logged in or not */
	uint32_t max_logins;	  /* connections that have not logged in yet */
	uint32_t command_slots;	  /* per reactor */
	uint32_t batch_us;	  /* us: see conn.h, ISCSI_UNTAKEN_MIN */
};

extern const struct option_spec iscsi_server_options[];

#endif
