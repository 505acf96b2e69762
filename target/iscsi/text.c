/*
 * Text requests in the full feature phase: see text.h.
 *
 * An exchange begins with a request whose TTT is the reserved value, and that
 * drops whatever went before.  While it goes on, each response carries our TTT
 * and each request brings it back, with the ITT of the first.
 */
#include "target/iscsi/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/iscsi/discovery.h"
#include "target/iscsi/keys.h"

/* Text of one request over PDUs with the C bit. */
#define REQUEST_MAX 16384

struct iscsi_text {
	struct iscsi_text_peer peer;
	bool open;	   /* an exchange is going on */
	uint32_t itt, ttt; /* of the exchange; our last TTT when there is none */
	char *request;	   /* text so far; NULL when there is none */
	uint32_t request_len;
	struct iscsi_answer answer;
	uint32_t sent;	       /* of the answer */
	uint32_t new_max_xmit; /* taken over when the exchange ends; 0: none */
};

struct iscsi_text *iscsi_text_create(const struct iscsi_text_peer *peer)
{
	struct iscsi_text *text = calloc(1, sizeof(*text));

	if (text)
		text->peer = *peer;
	return text;
}

static void request_drop(struct iscsi_text *text)
{
	free(text->request);
	text->request = NULL;
	text->request_len = 0;
}

static void answer_drop(struct iscsi_text *text)
{
	free(text->answer.buf);
	memset(&text->answer, 0, sizeof(text->answer));
	text->sent = 0;
}

static void exchange_drop(struct iscsi_text *text)
{
	request_drop(text);
	answer_drop(text);
	text->new_max_xmit = 0;
	text->open = false;
}

void iscsi_text_destroy(struct iscsi_text *text)
{
	if (!text)
		return;
	exchange_drop(text);
	free(text);
}

/* ---- the request ---- */

/* RFC 7143 11.10.1 to 11.10.4: the bits, and which exchange it belongs to.  0 or
 * a reason to reject. */
static uint8_t header_take(struct iscsi_text *text, const struct iscsi_text_req *request)
{
	uint32_t ttt = be32_get(&request->ttt), itt = be32_get(&request->itt);

	if (request->flags & ISCSI_FINAL && request->flags & ISCSI_CONTINUE)
		return ISCSI_REJECT_PROTOCOL_ERROR;
	if (ttt == ISCSI_TAG_RESERVED) {
		exchange_drop(text);
		text->open = true;
		text->itt = itt;
		/* Another one each time, and never the reserved value. */
		if (++text->ttt == ISCSI_TAG_RESERVED)
			text->ttt = 1;
		return 0;
	}
	if (!text->open || ttt != text->ttt || itt != text->itt)
		return ISCSI_REJECT_PROTOCOL_ERROR;
	return 0;
}

static uint8_t request_append(struct iscsi_text *text, const char *data, uint32_t len)
{
	char *request;

	if (len > REQUEST_MAX - text->request_len)
		return ISCSI_REJECT_NOT_SUPPORTED;
	if (len == 0)
		return 0;
	request = realloc(text->request, text->request_len + len);
	if (!request)
		return ISCSI_REJECT_LONG_OPERATION;
	memcpy(request + text->request_len, data, len);
	text->request = request;
	text->request_len += len;
	return 0;
}

/* ---- the keys ---- */

static uint8_t add_answer(struct iscsi_text *text, const char *key, const char *value)
{
	return iscsi_answer_add(&text->answer, key, value) == 0 ? 0 : ISCSI_REJECT_LONG_OPERATION;
}

/*
 * RFC 7143 appendix C: All is for discovery sessions; an empty value is the
 * session's own target; another target than that is not shown to a normal
 * session, as its login was for one only.
 */
static uint8_t take_send_targets(struct iscsi_text *text, const struct iscsi_view *view,
				 const char *value)
{
	const struct iscsi_params *params = text->peer.params;
	const char *name = value;

	if (!params->discovery) {
		if (!*value)
			name = params->target_name;
		else if (strcasecmp(value, params->target_name) != 0)
			return add_answer(text, "SendTargets", "Reject");
	} else if (strcmp(value, "All") == 0) {
		name = NULL;
	} else if (strncasecmp(value, "iqn.", 4) != 0 && strncasecmp(value, "eui.", 4) != 0 &&
		   strncasecmp(value, "naa.", 4) != 0) {
		return add_answer(text, "SendTargets", "Reject");
	}
	if (iscsi_discovery_list(&text->peer, view, name, &text->answer) != 0)
		return ISCSI_REJECT_LONG_OPERATION;
	return 0;
}

/* The only number that may change in a session (RFC 7143 13.12). */
static uint8_t take_segment_length(struct iscsi_text *text, const struct iscsi_key *row,
				   const char *value)
{
	uint32_t len;

	if (iscsi_number_parse(value, &len) != 0 || len < row->min || len > row->max)
		return add_answer(text, row->name, "Reject");
	text->new_max_xmit = len;
	return 0;
}

static uint8_t take_key(struct iscsi_text *text, const struct iscsi_view *view, const char *key,
			const char *value)
{
	const struct iscsi_key *row = iscsi_key_find(key);

	if (strcmp(key, "SendTargets") == 0)
		return take_send_targets(text, view, value);
	if (!row)
		return add_answer(text, key, "NotUnderstood");
	if (row->rule == ISCSI_KEY_DECLARE_SIZE)
		return take_segment_length(text, row, value);
	/* An alias is words for people, and needs no answer. */
	if (row->rule == ISCSI_KEY_DECLARE_TEXT)
		return 0;
	return add_answer(text, key, "Reject");
}

static uint8_t request_judge(struct iscsi_text *text, const struct iscsi_view *view, char *data,
			     uint32_t len)
{
	uint32_t pos = 0;
	char *key, *value;
	uint8_t reject;
	int rc;

	while ((rc = iscsi_text_next(data, len, &pos, &key, &value)) == 1) {
		reject = take_key(text, view, key, value);
		if (reject)
			return reject;
	}
	return rc == 0 ? 0 : ISCSI_REJECT_PROTOCOL_ERROR;
}

/* ---- the response ---- */

/* The next part of the answer, no longer than the initiator takes. */
static void respond(struct iscsi_text *text, const struct iscsi_text_req *request,
		    struct iscsi_text_reply *reply)
{
	struct iscsi_text_rsp *rsp = &reply->bhs.text_rsp;
	uint32_t left = text->answer.len - text->sent;
	uint32_t max = text->peer.params->max_xmit_data_segment_length;
	bool more = left > max, final;

	reply->data_len = more ? max : left;
	reply->data = reply->data_len ? text->answer.buf + text->sent : NULL;
	text->sent += reply->data_len;
	/* RFC 7143 11.11.1: F only in answer to F, and not while there is more. */
	final = !more && request->flags & ISCSI_FINAL;
	rsp->flags = more ? ISCSI_CONTINUE : final ? ISCSI_FINAL : 0;
	be24_put(&rsp->data_segment_len, reply->data_len);
	be32_put(&rsp->ttt, final ? ISCSI_TAG_RESERVED : text->ttt);
	if (!final)
		return;
	if (text->new_max_xmit)
		text->peer.params->max_xmit_data_segment_length = text->new_max_xmit;
	text->open = false;
}

static uint8_t request_take(struct iscsi_text *text, const struct iscsi_view *view,
			    const struct iscsi_text_req *request, char *data, uint32_t data_len)
{
	uint8_t reject = header_take(text, request);

	if (reject)
		return reject;
	/* A part of an answer is waiting to be fetched: with nothing else. */
	if (text->sent < text->answer.len)
		return data_len || request->flags & ISCSI_CONTINUE ? ISCSI_REJECT_PROTOCOL_ERROR
								   : 0;
	answer_drop(text);
	if (text->request || request->flags & ISCSI_CONTINUE) {
		reject = request_append(text, data, data_len);
		if (reject || request->flags & ISCSI_CONTINUE)
			return reject;
		data = text->request;
		data_len = text->request_len;
	} else if (data_len > REQUEST_MAX) {
		return ISCSI_REJECT_NOT_SUPPORTED;
	}
	reject = request_judge(text, view, data, data_len);
	request_drop(text);
	return reject;
}

void iscsi_text_input(struct iscsi_text *text, const struct iscsi_view *view,
		      const struct iscsi_bhs *request, char *data, uint32_t data_len,
		      struct iscsi_text_reply *reply)
{
	struct iscsi_text_rsp *rsp = &reply->bhs.text_rsp;

	memset(reply, 0, sizeof(*reply));
	rsp->opcode = ISCSI_OP_TEXT_RSP;
	memcpy(rsp->lun, request->text_req.lun, sizeof(rsp->lun));
	rsp->itt = request->text_req.itt;
	reply->reject = request_take(text, view, &request->text_req, data, data_len);
	if (reply->reject)
		exchange_drop(text);
	else
		respond(text, &request->text_req, reply);
}
