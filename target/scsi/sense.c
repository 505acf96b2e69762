#include "target/scsi/sense.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/be.h"
#include "base/list.h"
#include "target/scsi/scsi.h"

static const struct sense_row rows[SENSE_COUNT] = {
#define X(name, key_, asc_, ascq_, text_) \
	[SENSE_##name] = { .key = KEY_##key_, .asc = (asc_), .ascq = (ascq_), .text = (text_) },
	SENSE_LIST(X)
#undef X
};

static const char *const key_names[16] = {
	"NO SENSE",	  "RECOVERED ERROR", "NOT READY",      "MEDIUM ERROR",
	"HARDWARE ERROR", "ILLEGAL REQUEST", "UNIT ATTENTION", "DATA PROTECT",
	"BLANK CHECK",	  "VENDOR SPECIFIC", "COPY ABORTED",   "ABORTED COMMAND",
	"RESERVED",	  "VOLUME OVERFLOW", "MISCOMPARE",     "COMPLETED",
};

const struct sense_row *sense_row(enum sense sense)
{
	assert(sense < SENSE_COUNT);
	return &rows[sense];
}

/* SPC-4 4.5.2.4.2: SKSV, C/D, BPV and BIT POINTER, then FIELD POINTER. */
static void put_field_pointer(uint8_t *p, const struct sense_detail *detail)
{
	p[0] = 0x80;
	if (detail->field_in_cdb)
		p[0] |= 0x40;
	if (detail->field_bit >= 0)
		p[0] |= (uint8_t)(0x08 | (detail->field_bit & 0x07));
	be16_store(p + 1, detail->field_byte);
}

static uint8_t write_fixed(uint8_t *out, const struct sense_row *row,
			   const struct sense_detail *detail)
{
	memset(out, 0, SENSE_FIXED_LEN);
	out[0] = 0x70;
	out[2] = row->key;
	out[7] = SENSE_FIXED_LEN - 8;
	out[12] = row->asc;
	out[13] = row->ascq;
	if (detail && detail->has_info && detail->info <= UINT32_MAX) {
		out[0] |= 0x80;
		be32_store(out + 3, (uint32_t)detail->info);
	}
	if (detail && detail->has_field)
		put_field_pointer(out + 15, detail);
	return SENSE_FIXED_LEN;
}

static uint8_t write_descriptor(uint8_t *out, const struct sense_row *row,
				const struct sense_detail *detail)
{
	uint8_t len = 8;

	memset(out, 0, 8);
	out[0] = 0x72;
	out[1] = row->key;
	out[2] = row->asc;
	out[3] = row->ascq;
	if (detail && detail->has_info) { /* information, SPC-4 4.5.2.2 */
		memset(out + len, 0, 12);
		out[len] = 0x00;
		out[len + 1] = 0x0a;
		out[len + 2] = 0x80;
		be64_store(out + len + 4, detail->info);
		len += 12;
	}
	if (detail && detail->has_field) { /* sense-key specific, 4.5.2.4 */
		memset(out + len, 0, 8);
		out[len] = 0x02;
		out[len + 1] = 0x06;
		put_field_pointer(out + len + 4, detail);
		len += 8;
	}
	out[7] = (uint8_t)(len - 8);
	return len;
}

uint8_t sense_write(uint8_t *out, enum sense sense, const struct sense_detail *detail,
		    bool descriptor_format)
{
	const struct sense_row *row = sense_row(sense);

	return descriptor_format ? write_descriptor(out, row, detail)
				 : write_fixed(out, row, detail);
}

enum sense sense_from_errno(int code, bool writing)
{
	static const struct {
		int code;
		enum sense reading, writing;
	} map[] = {
		{ ENOSPC, SENSE_SPACE_ALLOCATION_FAILED, SENSE_SPACE_ALLOCATION_FAILED },
		{ EDQUOT, SENSE_SPACE_ALLOCATION_FAILED, SENSE_SPACE_ALLOCATION_FAILED },
		{ EFBIG, SENSE_SPACE_ALLOCATION_FAILED, SENSE_SPACE_ALLOCATION_FAILED },
		{ EROFS, SENSE_WRITE_PROTECTED, SENSE_WRITE_PROTECTED },
		{ EIO, SENSE_READ_ERROR, SENSE_WRITE_ERROR },
		{ EBADMSG, SENSE_READ_ERROR, SENSE_READ_ERROR },
		{ EILSEQ, SENSE_MISCOMPARE, SENSE_MISCOMPARE },
		{ ESTALE, SENSE_STORE_NOT_READY, SENSE_STORE_NOT_READY },
		{ ENODEV, SENSE_STORE_NOT_READY, SENSE_STORE_NOT_READY },
		{ ENXIO, SENSE_STORE_NOT_READY, SENSE_STORE_NOT_READY },
		{ ERANGE, SENSE_LBA_RANGE, SENSE_LBA_RANGE },
		{ EAGAIN, SENSE_COUNT, SENSE_COUNT },
		{ EBUSY, SENSE_COUNT, SENSE_COUNT },
		{ ENOMEM, SENSE_COUNT, SENSE_COUNT },
	};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (map[i].code == code)
			return writing ? map[i].writing : map[i].reading;
	return SENSE_TARGET_FAILURE;
}

void scsi_sense_text(const uint8_t *sense, uint8_t len, char *out, size_t cap)
{
	uint8_t key, asc, ascq;

	if (len >= 14 && (sense[0] & 0x7e) == 0x70) {
		key = sense[2] & 0x0f;
		asc = sense[12];
		ascq = sense[13];
	} else if (len >= 8 && (sense[0] & 0x7e) == 0x72) {
		key = sense[1] & 0x0f;
		asc = sense[2];
		ascq = sense[3];
	} else {
		snprintf(out, cap, "no sense data");
		return;
	}
	for (size_t i = 0; i < SENSE_COUNT; i++)
		if (rows[i].key == key && rows[i].asc == asc && rows[i].ascq == ascq) {
			snprintf(out, cap, "%s, %s", key_names[key], rows[i].text);
			return;
		}
	snprintf(out, cap, "%s, ASC %02xh ASCQ %02xh", key_names[key], asc, ascq);
}
