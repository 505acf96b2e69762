/*
 * Text negotiation in the full feature phase and SendTargets (RFC 7143 11.10,
 * appendix C), as a machine without a socket.
 *
 * One text exchange at a time per connection.  A request may be continued over
 * PDUs (C bit); an answer longer than one PDU is split, and the initiator asks
 * for the next part with an empty request that carries our TTT.
 *
 * Owner: the connection; its reactor's thread.
 */
#ifndef ISCSI_TEXT_H
#define ISCSI_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "target/iscsi/params.h"
#include "target/iscsi/view.h"
#include "target/iscsi/wire.h"

/* The longest answer, over all its PDUs; SendTargets beyond it is cut at a
 * whole target, with a log line. */
#define ISCSI_TEXT_ANSWER_MAX (4u << 20)

struct iscsi_text;

/* Who asks: for SendTargets. */
struct iscsi_text_peer {
	struct sockaddr_storage peer, local;
	const char *portal_group;
	const char *chap_user;	     /* "" when none */
	struct iscsi_params *params; /* MaxRecvDataSegmentLength may change */
};

/* NULL: no memory.  peer is copied; its pointers must live as long. */
struct iscsi_text *iscsi_text_create(const struct iscsi_text_peer *peer);
void iscsi_text_destroy(struct iscsi_text *text);

struct iscsi_text_reply {
	struct iscsi_bhs bhs; /* complete but for the three SNs */
	const char *data;     /* valid until the next input */
	uint32_t data_len;
	uint8_t reject; /* enum iscsi_reject_reason instead; 0: none */
};

void iscsi_text_input(struct iscsi_text *text, const struct iscsi_view *view,
		      const struct iscsi_bhs *request, char *data, uint32_t data_len,
		      struct iscsi_text_reply *reply);

#endif
