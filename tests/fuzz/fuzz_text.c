/*
 * Text requests of the full feature phase under hostile input.
 *
 * Input: a byte of choices (portal group, kind of session, small segments), then
 * requests: 48 bytes of header whose data segment length says how much text
 * follows (at most what there is).  A TTT of 0xeeeeeeee becomes the one of the
 * last response.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/iscsi/text.h"
#include "tests/login/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void reply_check(const struct iscsi_params *params, const struct iscsi_bhs *request,
			const struct iscsi_text_reply *reply, uint32_t max)
{
	const struct iscsi_text_rsp *rsp = &reply->bhs.text_rsp;

	if (reply->reject)
		return;
	assert(reply->data_len <= max);
	assert(be24_get(&rsp->data_segment_len) == reply->data_len);
	assert(!(rsp->flags & ISCSI_FINAL) || request->hdr.flags & ISCSI_FINAL);
	assert(!(rsp->flags & ISCSI_FINAL) == (be32_get(&rsp->ttt) != ISCSI_TAG_RESERVED));
	assert(params->max_xmit_data_segment_length >= 16);
}

/* One request; its length, 0 at the end of the input. */
static size_t run_one(struct iscsi_text *text, const struct iscsi_view *view,
		      struct iscsi_params *params, const uint8_t *data, size_t len, uint32_t *ttt)
{
	struct iscsi_text_reply reply;
	struct iscsi_bhs request;
	uint32_t text_len, max = params->max_xmit_data_segment_length;
	char *copy;

	if (len < ISCSI_BHS_LEN)
		return 0;
	memcpy(&request, data, sizeof(request));
	len -= ISCSI_BHS_LEN;
	text_len = be24_get(&request.hdr.data_segment_len);
	text_len = text_len < len ? text_len : (uint32_t)len;
	if (be32_get(&request.text_req.ttt) == 0xeeeeeeee)
		be32_put(&request.text_req.ttt, *ttt);
	copy = malloc(text_len ? text_len : 1);
	if (!copy)
		abort();
	memcpy(copy, data + ISCSI_BHS_LEN, text_len);
	iscsi_text_input(text, view, &request, copy, text_len, &reply);
	free(copy);
	reply_check(params, &request, &reply, max);
	*ttt = be32_get(&reply.bhs.text_rsp.ttt);
	return ISCSI_BHS_LEN + text_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct iscsi_params params;
	struct iscsi_text_peer peer = { .peer = fixture_address("127.0.0.1", 40000),
					.local = fixture_address("127.0.0.1", 3260),
					.chap_user = "alice",
					.params = &params };
	struct iscsi_text *text;
	struct iscsi_view view;
	uint32_t ttt = 0;
	size_t n;

	if (len == 0)
		return 0;
	fixture_view(&view);
	iscsi_params_init(&params);
	snprintf(params.initiator_name, sizeof(params.initiator_name), "%s", IQN "host");
	peer.portal_group = fixture_groups[data[0] & 3].name;
	params.discovery = data[0] & 4;
	if (!params.discovery)
		snprintf(params.target_name, sizeof(params.target_name), "%s", IQN "disk");
	if (data[0] & 8)
		params.max_xmit_data_segment_length = 16;
	text = iscsi_text_create(&peer);
	if (!text)
		abort();
	data++;
	len--;
	while ((n = run_one(text, &view, &params, data, len, &ttt)) > 0) {
		data += n;
		len -= n;
	}
	iscsi_text_destroy(text);
	return 0;
}
