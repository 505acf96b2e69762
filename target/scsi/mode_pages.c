#include "target/scsi/mode.h"

/* The values are those after the page's header: values[0] is byte 2 of a page,
 * byte 4 of a subpage. */

/* 01h: errors are not retried, recovered or reported as recovered by us. */
static void build_error_recovery(uint8_t *values, const struct mode_source *source)
{
	(void)values;
	(void)source;
}

/* 02h: RFC 7143 gives its fields to the login keys; none is limited here. */
static void build_disconnect(uint8_t *values, const struct mode_source *source)
{
	(void)values;
	(void)source;
}

/* 08h: WCE says whether a completed write may be lost with the power.  A host
 * may do without the cache of the store; it cannot have one that is not there. */
static void build_caching(uint8_t *values, const struct mode_source *source)
{
	if (source->limits->volatile_cache && !(source->state & LUN_WCE_OFF))
		values[0] |= 0x04;
}

static bool can_change_caching(const struct mode_source *source)
{
	return source->has_cache;
}

static void apply_caching(struct scsi_lun *lun, const uint8_t *values)
{
	if (values[0] & 0x04)
		lun_state_clear(lun, LUN_WCE_OFF);
	else
		lun_state_set(lun, LUN_WCE_OFF);
}

/* 0Ah: one task set, reordered freely (QUEUE ALGORITHM MODIFIER 1), a unit that
 * is busy for as long as it likes. */
static void build_control(uint8_t *values, const struct mode_source *source)
{
	if (source->state & LUN_D_SENSE)
		values[0] |= 0x04;
	values[1] = 0x10;
	if (source->state & LUN_SWP)
		values[2] |= 0x08;
	be16_store(values + 6, 0xffff);
}

static void apply_control(struct scsi_lun *lun, const uint8_t *values)
{
	if (values[0] & 0x04)
		lun_state_set(lun, LUN_D_SENSE);
	else
		lun_state_clear(lun, LUN_D_SENSE);
	if (values[2] & 0x08)
		lun_state_set(lun, LUN_SWP);
	else
		lun_state_clear(lun, LUN_SWP);
}

/* 0Ah/01h: no timestamp, no implicit ALUA, no priorities; the longest sense
 * data in MAXIMUM SENSE DATA LENGTH. */
static void build_control_extension(uint8_t *values, const struct mode_source *source)
{
	(void)source;
	values[2] = SCSI_SENSE_MAX;
}

/* 1Ch: informational exceptions are not reported (DEXCPT). */
static void build_exceptions(uint8_t *values, const struct mode_source *source)
{
	(void)source;
	values[0] = 0x08;
}

const struct mode_page mode_pages[] = {
	{ 0x01, 0x00, 10, "read-write error recovery", .build = build_error_recovery },
	{ 0x02, 0x00, 14, "disconnect-reconnect", .build = build_disconnect },
	{ 0x08, 0x00, 18, "caching", .changeable = { 0x04 }, .can_change = can_change_caching,
	  .build = build_caching, .apply = apply_caching },
	{ 0x0a, 0x00, 10, "control", .changeable = { 0x04, 0, 0x08 }, .build = build_control,
	  .apply = apply_control },
	{ 0x0a, 0x01, 28, "control extension", .build = build_control_extension },
	{ 0x1c, 0x00, 10, "informational exceptions control", .build = build_exceptions },
};

const unsigned int mode_npages = ARRAY_LEN(mode_pages);

const char *scsi_mode_page_name(unsigned int row, uint8_t *code, uint8_t *subcode)
{
	if (row >= mode_npages)
		return NULL;
	*code = mode_pages[row].code;
	*subcode = mode_pages[row].subcode;
	return mode_pages[row].name;
}
