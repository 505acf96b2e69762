/*
 * The login phase (RFC 7143 6) as a machine without a socket.
 *
 * Purpose: each login request PDU goes in, one response PDU comes out.  The
 * connection (conn.c) frames and sends; what is asked of the world outside
 * (which targets there are) comes through the view.
 *
 * Owner: the connection; its reactor's thread.  Bounded: at most
 * ISCSI_LOGIN_TEXT_MAX bytes of text over continued PDUs, ISCSI_LOGIN_PDUS_MAX
 * requests.
 */
#ifndef ISCSI_LOGIN_H
#define ISCSI_LOGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "target/iscsi/params.h"
#include "target/iscsi/view.h"
#include "target/iscsi/wire.h"

/* Text of one request over PDUs with the C bit; with the answer's as much
 * again a connection holds at most 16 KiB before it has logged in. */
#define ISCSI_LOGIN_TEXT_MAX 6144
#define ISCSI_LOGIN_PDUS_MAX 64

enum iscsi_login_result {
	ISCSI_LOGIN_CONTINUE, /* send the response, expect another request */
	ISCSI_LOGIN_DONE,     /* full feature phase once the session is made */
	ISCSI_LOGIN_FAILED,   /* send the response (if has_response), then close */
};

struct iscsi_login_peer {
	struct sockaddr_storage peer, local;
	const char *portal_group; /* name of the group that it came in by */
};

struct iscsi_login; /* opaque: stages, CHAP, text so far */

/* NULL: no memory.  peer is copied. */
struct iscsi_login *iscsi_login_create(const struct iscsi_login_peer *peer);
void iscsi_login_destroy(struct iscsi_login *login);

/*
 * Bytes of data that the next request may have; one with more is to be closed
 * on before its data is received.  ISCSI_LOGIN_DATA_MAX, or what is left of
 * ISCSI_LOGIN_TEXT_MAX behind a request with the C bit: so the text so far and
 * the data of one PDU never stand beside each other at their full size.
 */
uint32_t iscsi_login_room(const struct iscsi_login *login);

struct iscsi_login_reply {
	struct iscsi_bhs bhs; /* complete but for stat_sn, exp_cmd_sn, max_cmd_sn */
	const char *data;     /* owned by the login; bhs has its length */
	uint32_t data_len;
	enum iscsi_login_status status;
	bool has_response; /* false: close without a word (not a login PDU) */
	char why[160];	   /* of a failure, for the log */
};

/*
 * One login request with its data segment (data may be changed; data_len is at
 * most ISCSI_LOGIN_DATA_MAX, ahs were refused before).
 *
 * DONE: params, name, isid, tsih, cid and so on may be read.  The caller makes or
 * reinstates the session, puts the TSIH into reply->bhs and sends it; or turns
 * it into a refusal with iscsi_login_refuse().
 */
enum iscsi_login_result iscsi_login_input(struct iscsi_login *login, const struct iscsi_view *view,
					  const struct iscsi_bhs *request, char *data,
					  uint32_t data_len, struct iscsi_login_reply *reply);

void iscsi_login_refuse(struct iscsi_login *login, enum iscsi_login_status status, const char *why,
			struct iscsi_login_reply *reply);

/* What has been found out so far; stable until destroy. */
struct iscsi_login_facts {
	const struct iscsi_params *params;
	uint8_t isid[6];
	uint16_t tsih; /* as the initiator sent it; 0: a new session */
	uint16_t cid;
	uint32_t cmd_sn;       /* of the first request */
	const char *chap_user; /* "" when none */
};
void iscsi_login_facts(const struct iscsi_login *login, struct iscsi_login_facts *facts);

#endif
