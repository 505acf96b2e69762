#include "target/scsi/settings.h"

#include <stddef.h>

#define FIELD(name) offsetof(struct scsi_lun_settings, name)

static const char *const types[] = { "disk", "0", NULL };
static const char *const type_aliases[] = { "device_type", NULL };
static const char *const vendor_aliases[] = { "scsi-vendor", NULL };

const struct option_spec scsi_lun_options[] = {
	{
		.key = "serial",
		.type = OPTION_STRING,
		.reload = RELOAD_LIVE,
		.offset = FIELD(serial),
		.min = 1,
		.max = 64,
		.summary = "unit serial number that initiators see",
		.doc = "The default comes from the random identity of the disk, which stays the "
		       "same over restarts, renumbering and reloads. Set it, together with "
		       "device-id, to present one disk through two gateways; changing it makes "
		       "hosts see another disk.",
	},
	{
		.key = "device-id",
		.type = OPTION_STRING,
		.reload = RELOAD_LIVE,
		.offset = FIELD(device_id),
		.min = 1,
		.max = 64,
		.summary = "device identification that initiators see",
		.doc = "The vendor specific part of the T10 designator in VPD page 83; the NAA "
		       "designator is derived from it. The default comes from the random identity "
		       "of the disk.",
	},
	{
		.key = "vendor",
		.type = OPTION_STRING,
		.reload = RELOAD_LIVE,
		.offset = FIELD(vendor),
		.def = "QUINTAIN",
		.min = 1,
		.max = 8,
		.summary = "vendor identification, up to 8 characters",
		.aliases = vendor_aliases,
	},
	{
		.key = "product",
		.type = OPTION_STRING,
		.reload = RELOAD_LIVE,
		.offset = FIELD(product),
		.def = "VIRTUAL-DISK",
		.min = 1,
		.max = 16,
		.summary = "product identification, up to 16 characters",
		.doc = "ESXi copies between two disks by itself only when both have the same.",
	},
	{
		.key = "revision",
		.type = OPTION_STRING,
		.reload = RELOAD_LIVE,
		.offset = FIELD(revision),
		.def = "0001",
		.min = 1,
		.max = 4,
		.summary = "product revision level, up to 4 characters",
		.doc = "Not the version of the program: hosts take a disk whose INQUIRY data "
		       "change for another one.",
	},
	{
		.key = "device-type",
		.type = OPTION_CHOICE,
		.reload = RELOAD_REOPEN,
		.offset = FIELD(device_type),
		.def = "disk",
		.choices = types,
		.summary = "what the unit is",
		.aliases = type_aliases,
	},
	{
		.key = "removable",
		.type = OPTION_BOOL,
		.reload = RELOAD_LIVE,
		.offset = FIELD(removable),
		.def = "no",
		.summary = "a disk that can be ejected",
		.doc = "Hosts may eject the medium with START STOP UNIT and load it again.",
	},
	OPTION_END,
};
