/*
 * The settings of a LUN that its initiators see, and their option rows
 * (settings.c).  What lies under the LUN is in backing/settings.h.
 */
#ifndef SCSI_SETTINGS_H
#define SCSI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"

/* Peripheral device type (SPC-4 table 148); the index is not the type. */
enum scsi_lun_type {
	SCSI_LUN_DISK, /* 00h, direct access block device */
};

/* Rows: scsi_lun_options[]. */
struct scsi_lun_settings {
	const char *serial;    /* VPD 80; NULL: from the identity */
	const char *device_id; /* T10 vendor designator in VPD 83; NULL: from the identity */
	const char *vendor;    /* 8 characters, "QUINTAIN" */
	const char *product;   /* 16 characters; the same for all LUNs by default, as
				* ESXi copies only between equal ones */
	const char *revision;  /* 4 characters, of the version */
	uint8_t device_type;   /* enum scsi_lun_type */
	bool removable;	       /* RMB */
};

extern const struct option_spec scsi_lun_options[];

#endif
