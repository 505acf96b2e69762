/*
 * Mode pages (SPC-4 7.5, SBC-3 6.5): the table that MODE SENSE, MODE SELECT and
 * docs/commands.md share.
 *
 * To add a page: a builder and a row in mode_pages[] (mode_pages.c), in the
 * order of page and subpage code.  A bit that MODE SELECT may change stands in
 * the row's changeable mask and has an effect; apply takes it over.  All
 * parameters are kept per LUN (MODE parameters are shared: SPC-4 5.10), none is
 * saved over a restart.
 */
#ifndef SCSI_MODE_H
#define SCSI_MODE_H

#include "target/scsi/internal.h"

#define MODE_PAGE_MAX	  32 /* bytes after the page's header */
#define MODE_ALL_PAGES	  0x3f
#define MODE_ALL_SUBPAGES 0xff

/* SPC-4 table 161 */
enum mode_control {
	MODE_CURRENT = 0,
	MODE_CHANGEABLE = 1,
	MODE_DEFAULT = 2,
	MODE_SAVED = 3,
};

/* What the values of a page come from. */
struct mode_source {
	const struct bk_limits *limits; /* all zero without a store */
	uint32_t state;			/* enum lun_state bits that pages show */
	bool has_cache;			/* volatile, and flushed when that is asked for */
};

struct mode_page {
	uint8_t code, subcode;
	uint8_t len; /* bytes after the page's header */
	const char *name;
	uint8_t changeable[MODE_PAGE_MAX];
	/* Whether they are with this store; NULL: always. */
	bool (*can_change)(const struct mode_source *source);
	void (*build)(uint8_t *values, const struct mode_source *source);
	/* Takes over values whose changeable bits differ; NULL: none are. */
	void (*apply)(struct scsi_lun *lun, const uint8_t *values);
};

extern const struct mode_page mode_pages[];
extern const unsigned int mode_npages;

static inline unsigned int mode_header_len(const struct mode_page *page)
{
	return page->subcode ? 4 : 2;
}

/* The bits of lun->state that MODE SELECT changes. */
#define MODE_STATE (LUN_SWP | LUN_D_SENSE | LUN_WCE_OFF)

/* The bits that MODE SELECT may change in byte i of the values. */
uint8_t mode_changeable(const struct mode_page *page, const struct mode_source *source,
			unsigned int i);
void mode_source_get(const struct scsi_cmd *cmd, struct mode_source *source);
/* Device-specific parameter of the header (SBC-3 6.5.1). */
uint8_t mode_device_specific(const struct scsi_cmd *cmd);
/* Writes a block descriptor of 8 or 16 bytes. */
void mode_block_descriptor(const struct scsi_cmd *cmd, bool long_lba, uint8_t *out);

#endif
