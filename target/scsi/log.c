/*
 * LOG SENSE (SPC-4 6.7, 7.3).
 *
 * To add a page: a builder and a row in log_pages[]; the lists of pages are
 * computed.  Only what the store or our counters really know is offered.
 */
#include "target/scsi/internal.h"

#include <assert.h>

#define LOG_MAX 256

/* What a page is built into: parameters after its header of 4. */
struct log_out {
	uint8_t data[LOG_MAX];
	unsigned int len;
};

struct log_page {
	uint8_t code, subcode;
	const char *name;
	void (*build)(struct scsi_cmd *cmd, struct log_out *out);
	bool (*offered)(const struct scsi_cmd *cmd); /* NULL: always */
};

/* A row, if this LUN has the page; *more: there is such a row. */
static const struct log_page *page_offered(const struct scsi_cmd *cmd, unsigned int row,
					   bool *more);

static void build_supported(struct scsi_cmd *cmd, struct log_out *out)
{
	bool more = true;

	for (unsigned int row = 0; more; row++) {
		const struct log_page *page = page_offered(cmd, row, &more);

		if (page && page->subcode == 0)
			out->data[out->len++] = page->code;
	}
}

static void build_subpages(struct scsi_cmd *cmd, struct log_out *out)
{
	bool more = true;

	for (unsigned int row = 0; more; row++) {
		const struct log_page *page = page_offered(cmd, row, &more);

		if (!page)
			continue;
		out->data[out->len++] = page->code;
		out->data[out->len++] = page->subcode;
	}
}

/* A counter of 8 bytes that is kept while the daemon runs (SPC-4 7.3.2.2). */
static void add_counter(struct log_out *out, uint16_t parameter, uint64_t value)
{
	uint8_t *p = out->data + out->len;

	assert(out->len + 12 <= LOG_MAX);
	be16_store(p, parameter);
	p[2] = 0x02; /* DS: not saved; a bounded data counter */
	p[3] = 8;
	be64_store(p + 4, value);
	out->len += 12;
}

/* SPC-4 table 331 */
enum error_counter {
	TOTAL_BYTES = 0x0005,
	UNCORRECTED_ERRORS = 0x0006,
};

static void build_write_errors(struct scsi_cmd *cmd, struct log_out *out)
{
	struct scsi_lun_stats stats;

	lun_counters(cmd->lun, &stats);
	add_counter(out, TOTAL_BYTES, stats.write_bytes);
	add_counter(out, UNCORRECTED_ERRORS, stats.write_errors);
}

static void build_read_errors(struct scsi_cmd *cmd, struct log_out *out)
{
	struct scsi_lun_stats stats;

	lun_counters(cmd->lun, &stats);
	add_counter(out, TOTAL_BYTES, stats.read_bytes);
	add_counter(out, UNCORRECTED_ERRORS, stats.read_errors);
}

/* SBC-3 6.3.4: logical block provisioning */
enum provisioning_parameter {
	AVAILABLE_RESOURCES = 0x0001,
	USED_RESOURCES = 0x0002,
};
enum resource_scope { SCOPE_DEDICATED = 1, SCOPE_SHARED = 2 };

static bool space_known(const struct scsi_cmd *cmd)
{
	struct bk_space space;

	return cmd->channel && backing_space(cmd->channel->backing, &space);
}

/* In threshold sets, as the exponent of VPD page B2 says. */
static void add_resources(struct log_out *out, uint16_t parameter, uint64_t bytes,
			  enum resource_scope scope)
{
	uint8_t *p = out->data + out->len;
	uint64_t n = bytes / SCSI_THRESHOLD_SET;

	assert(out->len + 12 <= LOG_MAX);
	memset(p, 0, 12);
	be16_store(p, parameter);
	p[2] = 0x03; /* DS, a binary list */
	p[3] = 8;
	be32_store(p + 4, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
	p[8] = (uint8_t)scope;
	out->len += 12;
}

static void build_provisioning(struct scsi_cmd *cmd, struct log_out *out)
{
	struct bk_space space = { 0 };

	backing_space(cmd->channel->backing, &space);
	add_resources(out, AVAILABLE_RESOURCES, space.available, SCOPE_SHARED);
	add_resources(out, USED_RESOURCES, space.used, SCOPE_DEDICATED);
}

static const struct log_page log_pages[] = {
	{ 0x00, 0x00, "supported log pages", build_supported, NULL },
	{ 0x00, 0xff, "supported log pages and subpages", build_subpages, NULL },
	{ 0x02, 0x00, "write error counters", build_write_errors, NULL },
	{ 0x03, 0x00, "read error counters", build_read_errors, NULL },
	{ 0x0c, 0x00, "logical block provisioning", build_provisioning, space_known },
};

static const struct log_page *page_offered(const struct scsi_cmd *cmd, unsigned int row, bool *more)
{
	const struct log_page *page = row < ARRAY_LEN(log_pages) ? &log_pages[row] : NULL;

	*more = page != NULL;
	return page && (!page->offered || page->offered(cmd)) ? page : NULL;
}

const char *scsi_log_page_name(unsigned int row, uint8_t *code, uint8_t *subcode)
{
	if (row >= ARRAY_LEN(log_pages))
		return NULL;
	*code = log_pages[row].code;
	*subcode = log_pages[row].subcode;
	return log_pages[row].name;
}

static const struct log_page *find(const struct scsi_cmd *cmd)
{
	bool more = true;

	for (unsigned int row = 0; more; row++) {
		const struct log_page *page = page_offered(cmd, row, &more);

		if (page && page->code == (cmd->cdb[2] & 0x3f) && page->subcode == cmd->cdb[3])
			return page;
	}
	return NULL;
}

/* Cumulative values only: there are no thresholds. */
bool log_sense_judge(struct scsi_cmd *cmd)
{
	if (!find(cmd))
		return scsi_refuse_field(cmd, cmd->cdb[3] ? 3 : 2, cmd->cdb[3] ? -1 : 5);
	if (cmd->cdb[2] >> 6 != 0x01 && (cmd->cdb[2] & 0x3f) != 0x00)
		return scsi_refuse_field(cmd, 2, 7);
	/* PARAMETER POINTER: the pages are short, all of them is returned. */
	if (be16_load(cmd->cdb + 5) > TOTAL_BYTES)
		return scsi_refuse_field(cmd, 5, -1);
	return true;
}

void log_sense_run(struct scsi_cmd *cmd)
{
	const struct log_page *page = find(cmd);
	struct log_out out = { .len = 0 };
	uint8_t header[4];

	page->build(cmd, &out);
	header[0] = page->code;
	if (page->subcode)
		header[0] |= 0x40;
	header[1] = page->subcode;
	be16_store(header + 2, (uint16_t)out.len);
	scsi_reply_put(cmd, header, sizeof(header));
	scsi_reply(cmd, out.data, out.len);
}
