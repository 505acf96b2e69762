/* INQUIRY: standard data (SPC-4 6.6); the VPD pages are in vpd.c. */
#include "target/scsi/internal.h"

struct inquiry_data {
	uint8_t peripheral; /* qualifier, device type */
	uint8_t removable;  /* RMB */
	uint8_t version;
	uint8_t format; /* HISUP, response data format */
	uint8_t additional_len;
	uint8_t flags[3]; /* PROTECT, TPGS, 3PC; MULTIP; CMDQUE */
	char vendor[8];
	char product[16];
	char revision[4];
	uint8_t vendor_specific[20];
	uint8_t reserved[2];
	be16 version_descriptor[8];
	uint8_t reserved2[22];
};
_Static_assert(sizeof(struct inquiry_data) == 96, "SPC-4 table 173");
_Static_assert(offsetof(struct inquiry_data, version_descriptor) == 58, "SPC-4 table 173");

/* SPC-4 table 176, none with a version claimed: SAM-5, SPC-4, SBC-3, iSCSI */
static const uint16_t version_descriptors[] = { 0x00a0, 0x0460, 0x04c0, 0x0960 };

#define VERSION_SPC4 0x06
#define NO_DEVICE    0x7f /* qualifier 3: no device can be here; type unknown */

bool inquiry_judge(struct scsi_cmd *cmd)
{
	bool evpd = cmd->cdb[1] & 0x01;

	if (!evpd && cmd->cdb[2] != 0)
		return scsi_refuse_field(cmd, 2, -1);
	if (evpd && (!cmd->lun || !vpd_page_known(cmd->cdb[2])))
		return scsi_refuse_field(cmd, 2, -1);
	return true;
}

/* Left-aligned ASCII, filled with spaces (SPC-4 4.3.1). */
static void put_text(char *to, size_t cap, const char *text)
{
	size_t i = 0;

	for (; text && text[i] && i < cap; i++)
		to[i] = text[i] >= 0x20 && text[i] <= 0x7e ? text[i] : ' ';
	memset(to + i, ' ', cap - i);
}

void inquiry_run(struct scsi_cmd *cmd)
{
	struct inquiry_data data;

	if (cmd->cdb[1] & 0x01) {
		vpd_run(cmd);
		return;
	}
	memset(&data, 0, sizeof(data));
	data.version = VERSION_SPC4;
	data.format = 0x10 | 0x02;
	data.additional_len = sizeof(data) - 5;
	data.flags[2] = 0x02;
	for (size_t i = 0; i < ARRAY_LEN(version_descriptors); i++)
		be16_put(&data.version_descriptor[i], version_descriptors[i]);
	if (cmd->lun) {
		const struct scsi_lun_settings *settings = &cmd->lun->settings;

		pthread_mutex_lock(&cmd->lun->lock);
		data.removable = settings->removable ? 0x80 : 0;
		put_text(data.vendor, sizeof(data.vendor), settings->vendor);
		put_text(data.product, sizeof(data.product), settings->product);
		put_text(data.revision, sizeof(data.revision), settings->revision);
		pthread_mutex_unlock(&cmd->lun->lock);
	} else {
		/* Hosts scan by LUN 0 and want a vendor even where there is
		 * none; its other data are never looked at. */
		data.peripheral = NO_DEVICE;
		put_text(data.vendor, sizeof(data.vendor), "QUINTAIN");
		put_text(data.product, sizeof(data.product), "NO LOGICAL UNIT");
		put_text(data.revision, sizeof(data.revision), "");
	}
	scsi_reply(cmd, &data, sizeof(data));
}
