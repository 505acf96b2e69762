/*
 * MODE SELECT(6) and (10) (SPC-4 6.9, 6.10).
 *
 * The whole list is judged before anything of it is taken over: a page that we
 * have, its length, and no difference but in bits that are changeable.
 */
#include "target/scsi/mode.h"

/* A list holds each page once at most, with room for the header. */
#define LIST_MAX 512

struct mode_list {
	struct scsi_cmd *cmd;
	uint8_t data[LIST_MAX];
	uint32_t len, at;
	struct mode_source source;
};

bool mode_select_judge(struct scsi_cmd *cmd)
{
	if (cmd->cdb[1] & 0x01) /* SP: nothing is saved */
		return scsi_refuse_field(cmd, 1, 0);
	if (cmd->transfer_len == 0)
		return true;
	if (!(cmd->cdb[1] & 0x10)) /* PF: pages as in the standard only */
		return scsi_refuse_field(cmd, 1, 4);
	if (cmd->transfer_len > LIST_MAX)
		return scsi_refuse(cmd, SENSE_PARAMETER_LIST_LENGTH);
	return true;
}

/* Each of these returns false when it has ended the command. */

static bool list_ends(struct mode_list *list, uint32_t need)
{
	if (need <= list->len - list->at)
		return true;
	scsi_fail(list->cmd, SENSE_PARAMETER_LIST_LENGTH);
	return false;
}

static bool wrong(struct mode_list *list, uint32_t byte, int8_t bit)
{
	scsi_fail_parameter(list->cmd, (uint16_t)byte, bit);
	return false;
}

/* The block descriptor may repeat what is so, or say zero blocks (unchanged). */
static bool take_descriptor(struct mode_list *list, uint32_t len, bool long_lba)
{
	uint8_t now[16];
	uint32_t size = long_lba ? 16 : 8;
	uint32_t length_at = long_lba ? 12 : 4;
	const uint8_t *given = list->data + list->at;
	uint64_t n;

	if (len == 0)
		return true;
	if (len != size)
		return wrong(list, list->cmd->op->cdb_len == 6 ? 3 : 6, -1);
	if (!list_ends(list, size))
		return false;
	mode_block_descriptor(list->cmd, long_lba, now);
	n = long_lba ? be64_load(given) : be32_load(given);
	if (n != 0 && memcmp(given, now, long_lba ? 8 : 4) != 0)
		return wrong(list, list->at, -1);
	if (memcmp(given + length_at, now + length_at, 4) != 0)
		return wrong(list, list->at + length_at, -1);
	list->at += size;
	return true;
}

static bool take_header(struct mode_list *list)
{
	const uint8_t *data = list->data;
	uint32_t descriptor_len;
	bool long_lba = false;

	if (list->cmd->op->cdb_len == 6) {
		if (!list_ends(list, 4))
			return false;
		descriptor_len = data[3];
		if (data[1] != 0)
			return wrong(list, 1, -1);
		list->at = 4;
	} else {
		if (!list_ends(list, 8))
			return false;
		descriptor_len = be16_load(data + 6);
		long_lba = data[4] & 0x01;
		if (data[2] != 0)
			return wrong(list, 2, -1);
		if (data[4] & 0xfe)
			return wrong(list, 4, -1);
		list->at = 8;
	}
	return take_descriptor(list, descriptor_len, long_lba);
}

/* The row of the page at list->at, judged; NULL: the command has ended. */
static const struct mode_page *take_page(struct mode_list *list)
{
	const uint8_t *given = list->data + list->at;
	const struct mode_page *page = NULL;
	uint8_t now[MODE_PAGE_MAX] = { 0 };
	bool subpage;
	uint32_t header, len;

	if (!list_ends(list, 2))
		return NULL;
	subpage = given[0] & 0x40;
	header = subpage ? 4 : 2;
	if (!list_ends(list, header))
		return NULL;
	len = subpage ? be16_load(given + 2) : given[1];
	for (unsigned int i = 0; i < mode_npages; i++)
		if (mode_pages[i].code == (given[0] & 0x3f) &&
		    mode_pages[i].subcode == (subpage ? given[1] : 0))
			page = &mode_pages[i];
	/* PS is reserved in MODE SELECT. */
	if (!page || (given[0] & 0x80)) {
		wrong(list, list->at, given[0] & 0x80 ? 7 : 5);
		return NULL;
	}
	if (len != page->len) {
		wrong(list, list->at + (subpage ? 2 : 1), -1);
		return NULL;
	}
	if (!list_ends(list, header + len))
		return NULL;
	page->build(now, &list->source);
	for (uint32_t i = 0; i < len; i++) {
		uint8_t differs = (uint8_t)((given[header + i] ^ now[i]) &
					    ~mode_changeable(page, &list->source, i));

		if (differs) {
			wrong(list, list->at + header + i,
			      (int8_t)(31 - __builtin_clz((uint32_t)differs)));
			return NULL;
		}
	}
	return page;
}

/* True when a write cache has been turned off. */
static bool apply(struct mode_list *list, uint32_t first)
{
	struct scsi_lun *lun = list->cmd->lun;
	uint32_t before, after;

	pthread_mutex_lock(&lun->lock);
	before = atomic_load(&lun->state);
	for (list->at = first; list->at < list->len;) {
		const struct mode_page *page = take_page(list);

		list->at += mode_header_len(page);
		if (page->apply)
			page->apply(lun, list->data + list->at);
		list->at += page->len;
	}
	after = atomic_load(&lun->state);
	if ((after ^ before) & MODE_STATE)
		ua_raise(lun, list->cmd->nexus, UA_MODE_CHANGED);
	pthread_mutex_unlock(&lun->lock);
	return after & ~before & LUN_WCE_OFF;
}

void mode_select_run(struct scsi_cmd *cmd)
{
	struct mode_list list = { .cmd = cmd, .len = cmd->out_len };
	uint32_t first;

	if (cmd->transfer_len == 0) {
		scsi_good(cmd);
		return;
	}
	if (cmd->out_len < cmd->transfer_len) {
		scsi_fail(cmd, SENSE_PARAMETER_LIST_LENGTH);
		return;
	}
	scsi_data_out(cmd, 0, list.data, list.len);
	mode_source_get(cmd, &list.source);
	if (!take_header(&list))
		return;
	first = list.at;
	while (list.at < list.len) {
		const struct mode_page *page = take_page(&list);

		if (!page)
			return;
		list.at += mode_header_len(page) + page->len;
	}
	/* What was written with WCE is to be on the medium by the time that it is
	 * off (SBC-3 6.5.5). */
	if (apply(&list, first))
		scsi_io(cmd, BK_FLUSH, 0, 0, 0, NULL, 0, scsi_good);
	else
		scsi_good(cmd);
}
