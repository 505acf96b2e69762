/* MODE SENSE(6) and (10) (SPC-4 6.11, 6.12). */
#include "target/scsi/mode.h"

#include <assert.h>

void mode_source_get(const struct scsi_cmd *cmd, struct mode_source *source)
{
	static const struct bk_limits none;

	source->limits = cmd->channel ? cmd_limits(cmd) : &none;
	source->state = atomic_load(&cmd->lun->state) & MODE_STATE;
	source->has_cache = source->limits->volatile_cache &&
			    cmd->channel->backing->cache != BACKING_CACHE_UNSAFE;
}

uint8_t mode_changeable(const struct mode_page *page, const struct mode_source *source,
			unsigned int i)
{
	return page->can_change && !page->can_change(source) ? 0 : page->changeable[i];
}

uint8_t mode_device_specific(const struct scsi_cmd *cmd)
{
	uint8_t value = 0x10; /* DPOFUA */

	if (atomic_load(&cmd->lun->state) & (LUN_SWP | LUN_READ_ONLY))
		value |= 0x80; /* WP */
	return value;
}

void mode_block_descriptor(const struct scsi_cmd *cmd, bool long_lba, uint8_t *out)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t n = backing_size(cmd->channel->backing) / block_size;

	memset(out, 0, long_lba ? 16 : 8);
	if (long_lba) {
		be64_store(out, n);
		be32_store(out + 12, block_size);
		return;
	}
	be32_store(out, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
	be32_store(out + 4, block_size);
}

static bool selected(const struct mode_page *page, uint8_t code, uint8_t subcode)
{
	if (code != MODE_ALL_PAGES && code != page->code)
		return false;
	return subcode == MODE_ALL_SUBPAGES || subcode == page->subcode;
}

bool mode_sense_judge(struct scsi_cmd *cmd)
{
	uint8_t code = cmd->cdb[2] & 0x3f;
	bool any = false;

	if (cmd->cdb[2] >> 6 == MODE_SAVED)
		return scsi_refuse(cmd, SENSE_SAVING_NOT_SUPPORTED);
	if (code == MODE_ALL_PAGES && cmd->cdb[3] != 0 && cmd->cdb[3] != MODE_ALL_SUBPAGES)
		return scsi_refuse_field(cmd, 3, -1);
	for (unsigned int i = 0; i < mode_npages; i++)
		any = any || selected(&mode_pages[i], code, cmd->cdb[3]);
	if (!any) {
		for (unsigned int i = 0; i < mode_npages; i++)
			if (mode_pages[i].code == code)
				return scsi_refuse_field(cmd, 3, -1);
		return scsi_refuse_field(cmd, 2, 5);
	}
	return true;
}

/* A page with its header; returns its length. */
static unsigned int put_page(const struct mode_page *page, enum mode_control control,
			     const struct mode_source *source, uint8_t *out)
{
	unsigned int header = mode_header_len(page);
	struct mode_source defaults = { .limits = source->limits, .state = 0 };

	memset(out, 0, header + page->len);
	out[0] = page->code;
	if (page->subcode) {
		out[0] |= 0x40;
		out[1] = page->subcode;
		be16_store(out + 2, page->len);
	} else {
		out[1] = page->len;
	}
	for (unsigned int i = 0; control == MODE_CHANGEABLE && i < page->len; i++)
		out[header + i] = mode_changeable(page, source, i);
	if (control != MODE_CHANGEABLE)
		page->build(out + header, control == MODE_DEFAULT ? &defaults : source);
	return header + page->len;
}

/* The header, with the lengths of all that there is: cut only on the wire. */
static unsigned int put_header(struct scsi_cmd *cmd, unsigned int descriptor_len, bool long_lba,
			       unsigned int pages_len, uint8_t *out)
{
	if (cmd->op->cdb_len == 6) {
		out[0] = (uint8_t)(3 + descriptor_len + pages_len);
		out[1] = 0;
		out[2] = mode_device_specific(cmd);
		out[3] = (uint8_t)descriptor_len;
		return 4;
	}
	memset(out, 0, 8);
	be16_store(out, (uint16_t)(6 + descriptor_len + pages_len));
	out[3] = mode_device_specific(cmd);
	out[4] = long_lba;
	be16_store(out + 6, (uint16_t)descriptor_len);
	return 8;
}

void mode_sense_run(struct scsi_cmd *cmd)
{
	bool no_descriptor = (cmd->cdb[1] & 0x08) || !cmd->channel;
	bool long_lba = cmd->op->cdb_len == 10 && (cmd->cdb[1] & 0x10);
	unsigned int descriptor_len = no_descriptor ? 0 : long_lba ? 16 : 8;
	struct mode_source source;
	uint8_t pages[512];
	uint8_t header[8 + 16];
	unsigned int len = 0, header_len;

	mode_source_get(cmd, &source);
	for (unsigned int i = 0; i < mode_npages; i++) {
		if (!selected(&mode_pages[i], cmd->cdb[2] & 0x3f, cmd->cdb[3]))
			continue;
		assert(len + 4 + MODE_PAGE_MAX <= sizeof(pages));
		len += put_page(&mode_pages[i], cmd->cdb[2] >> 6, &source, pages + len);
	}
	header_len = put_header(cmd, descriptor_len, long_lba, len, header);
	if (descriptor_len)
		mode_block_descriptor(cmd, long_lba, header + header_len);
	scsi_reply_put(cmd, header, header_len + descriptor_len);
	scsi_reply(cmd, pages, len);
}
