/*
 * Vital product data pages (SPC-4 7.8, SBC-3 6.6).
 *
 * To add a page: a builder and a row in vpd_pages[]; the list of page 00 and
 * the lengths are computed.  What a page says about the medium comes from the
 * store's bk_limits alone.
 */
#include "target/scsi/internal.h"

#include <assert.h>
#include <stdio.h>

#define VPD_MAX 1024

/* A page under construction: bytes after the header of 4. */
struct vpd {
	const struct scsi_cmd *cmd;
	const struct scsi_lun *lun;
	const struct bk_limits *limits; /* all zero without a store */
	uint8_t body[VPD_MAX];
	uint32_t len;
};

struct vpd_page {
	uint8_t code;
	const char *name;
	void (*build)(struct vpd *vpd);
};

static void *vpd_add(struct vpd *vpd, size_t len)
{
	void *at = vpd->body + vpd->len;

	assert(len <= VPD_MAX - vpd->len);
	memset(at, 0, len);
	vpd->len += (uint32_t)len;
	return at;
}

/* ---- identity ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++) /* FNV-1a */
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return (hash ^ 0xff) * 0x100000001b3u;
}

/* Settings that name the disk replace the identity, so that two gateways can
 * present one disk. */
static bool identity_is_set(const struct scsi_lun *lun)
{
	return lun->settings.device_id || lun->settings.serial;
}

/* NAA 3h, locally assigned (SPC-4 7.8.6.6.4): the other types need an OUI. */
uint64_t lun_naa(const struct scsi_lun *lun)
{
	uint64_t id = be64_load(lun->identity.uuid);

	if (identity_is_set(lun)) {
		id = hash_text(0xcbf29ce484222325u, lun->settings.device_id);
		id = hash_text(id, lun->settings.serial);
	}
	return 3ull << 60 | (id & ~(0xfull << 60));
}

static void uuid_text(const struct scsi_lun *lun, char out[33])
{
	for (unsigned int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", lun->identity.uuid[i]);
}

void lun_serial(const struct scsi_lun *lun, char out[LUN_SERIAL_MAX + 1])
{
	char uuid[33];

	uuid_text(lun, uuid);
	snprintf(out, LUN_SERIAL_MAX + 1, "%s", lun->settings.serial ? lun->settings.serial : uuid);
}

/* ---- 00, 80, 83, 86 ---- */

static void build_supported(struct vpd *vpd)
{
	const char *name;
	uint8_t code;

	for (unsigned int row = 0; (name = scsi_vpd_page_name(row, &code)); row++)
		*(uint8_t *)vpd_add(vpd, 1) = code;
}

static void build_serial(struct vpd *vpd)
{
	char serial[LUN_SERIAL_MAX + 1];

	lun_serial(vpd->lun, serial);
	memcpy(vpd_add(vpd, strlen(serial)), serial, strlen(serial));
}

enum association {
	OF_LUN = 0,
	OF_PORT = 1,
	OF_DEVICE = 2,
};

enum designator {
	DESIGNATOR_T10 = 1,
	DESIGNATOR_NAA = 3,
	DESIGNATOR_RELATIVE_PORT = 4,
	DESIGNATOR_PORT_GROUP = 5,
	DESIGNATOR_NAME = 8,
	DESIGNATOR_UUID = 10,
};

enum code_set {
	CODES_BINARY = 1,
	CODES_ASCII = 2,
	CODES_UTF8 = 3,
};

/* SPC-4 7.8.6.1; iSCSI is protocol 5, named for ports and devices only. */
static uint8_t *add_designator(struct vpd *vpd, enum association of, enum designator type,
			       enum code_set codes, size_t len)
{
	uint8_t *d = vpd_add(vpd, 4 + len);

	assert(len <= 255);
	d[0] = (uint8_t)codes;
	d[1] = (uint8_t)(of << 4 | type);
	if (of != OF_LUN) {
		d[0] |= 0x50;
		d[1] |= 0x80;
	}
	d[3] = (uint8_t)len;
	return d + 4;
}

/* SCSI name string: UTF-8 with its NUL, filled with NULs to a multiple of 4. */
static void add_name(struct vpd *vpd, enum association of, const char *name)
{
	size_t len = (strlen(name) + 1 + 3) / 4 * 4;

	memcpy(add_designator(vpd, of, DESIGNATOR_NAME, CODES_UTF8, len), name, strlen(name));
}

static void add_lun_designators(struct vpd *vpd)
{
	const struct scsi_lun *lun = vpd->lun;
	const char *vendor = lun->settings.vendor ? lun->settings.vendor : "";
	char id[LUN_SERIAL_MAX + 1];
	char naa[32];
	uint8_t *d;

	be64_store(add_designator(vpd, OF_LUN, DESIGNATOR_NAA, CODES_BINARY, 8), lun_naa(lun));
	/* Hosts that look at the first 8 characters of the vendor's part only
	 * (Hyper-V) find those of a random UUID there. */
	if (lun->settings.device_id)
		snprintf(id, sizeof(id), "%s", lun->settings.device_id);
	else
		lun_serial(lun, id);
	d = add_designator(vpd, OF_LUN, DESIGNATOR_T10, CODES_ASCII, 8 + strlen(id));
	memset(d, ' ', 8);
	memcpy(d, vendor, strnlen(vendor, 8));
	memcpy(d + 8, id, strlen(id));
	if (!identity_is_set(lun)) {
		d = add_designator(vpd, OF_LUN, DESIGNATOR_UUID, CODES_BINARY, 18);
		d[0] = 0x10;
		memcpy(d + 2, lun->identity.uuid, 16);
	}
	snprintf(naa, sizeof(naa), "naa.%016llX", (unsigned long long)lun_naa(lun));
	add_name(vpd, OF_LUN, naa);
}

static void build_identification(struct vpd *vpd)
{
	const struct scsi_nexus *nexus = vpd->cmd->nexus;
	char port[SCSI_NAME_MAX + 16];
	uint8_t *d;

	add_lun_designators(vpd);
	d = add_designator(vpd, OF_PORT, DESIGNATOR_RELATIVE_PORT, CODES_BINARY, 4);
	be16_store(d + 2, nexus->id.relative_port);
	d = add_designator(vpd, OF_PORT, DESIGNATOR_PORT_GROUP, CODES_BINARY, 4);
	be16_store(d + 2, nexus->id.portal_group_tag);
	/* RFC 7143 4.2.7: NAME,t,0xTAG */
	snprintf(port, sizeof(port), "%.*s,t,0x%04x", SCSI_NAME_MAX - 1, nexus->target->name,
		 nexus->id.portal_group_tag);
	add_name(vpd, OF_PORT, port);
	add_name(vpd, OF_DEVICE, nexus->target->name);
}

/* SPC-4 7.8.7. We support simple, head of queue and ordered tasks; no
 * protection, no grouping, no per-nexus sense. */
static void build_extended(struct vpd *vpd)
{
	uint8_t *p = vpd_add(vpd, 60);

	p[1] = 0x07; /* HEADSUP, ORDSUP, SIMPSUP */
	if (vpd->limits->volatile_cache)
		p[2] = 0x01;				    /* V_SUP */
	p[3] = 0x01;					    /* LUICLR */
	p[9] = SENSE_FIXED_LEN > 28 ? SENSE_FIXED_LEN : 28; /* longest sense data */
}

/* ---- B0, B1, B2 (SBC-3 6.6.3-6.6.5) ---- */

static uint32_t blocks(const struct vpd *vpd, uint64_t bytes)
{
	uint64_t n = vpd->limits->block_size ? bytes / vpd->limits->block_size : 0;

	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void build_block_limits(struct vpd *vpd)
{
	const struct bk_limits *limits = vpd->limits;
	uint8_t *p = vpd_add(vpd, 60);
	uint32_t granularity;

	p[0] = 0x01; /* WSNZ */
	be16_store(p + 2, (uint16_t)blocks(vpd, limits->physical_block_size));
	be32_store(p + 4, blocks(vpd, SCSI_TRANSFER_MAX));
	be32_store(p + 8, blocks(vpd, limits->io_optimal));
	be64_store(p + 32, limits->block_size ? SCSI_WRITE_SAME_BLOCKS_MAX : 0);
	if (limits->unmap_max == 0)
		return;
	granularity = blocks(vpd, limits->unmap_granularity);
	be32_store(p + 16, SCSI_UNMAP_BLOCKS_MAX);
	be32_store(p + 20, SCSI_UNMAP_DESCRIPTORS_MAX);
	be32_store(p + 24, granularity ? granularity : 1);
}

/* SBC-3 6.6.2: a rotation rate of 1 is a disk that does not turn. */
static void build_characteristics(struct vpd *vpd)
{
	uint8_t *p = vpd_add(vpd, 60);

	if (vpd->limits->block_size && !vpd->limits->rotational)
		be16_store(p, 0x0001);
}

/* SBC-3 6.6.4: LBPU by UNMAP, LBPWS and LBPWS10 by WRITE SAME with UNMAP. */
static void build_provisioning(struct vpd *vpd)
{
	const struct bk_limits *limits = vpd->limits;
	uint8_t *p = vpd_add(vpd, 4);

	struct bk_space space;

	if (limits->unmap_max == 0)
		return;
	if (vpd->cmd->channel && backing_space(vpd->cmd->channel->backing, &space))
		p[0] = (uint8_t)__builtin_ctz(SCSI_THRESHOLD_SET / limits->block_size);
	p[1] = 0x80;
	if (limits->write_zeroes_unmaps)
		p[1] |= 0x60;
	if (limits->unmapped_reads_zero)
		p[1] |= 0x04; /* LBPRZ 001b */
	p[2] = 0x02;	      /* thin provisioned */
}

static const struct vpd_page vpd_pages[] = {
	{ 0x00, "supported VPD pages", build_supported },
	{ 0x80, "unit serial number", build_serial },
	{ 0x83, "device identification", build_identification },
	{ 0x86, "extended INQUIRY data", build_extended },
	{ 0xb0, "block limits", build_block_limits },
	{ 0xb1, "block device characteristics", build_characteristics },
	{ 0xb2, "logical block provisioning", build_provisioning },
};
static const size_t vpd_npages = ARRAY_LEN(vpd_pages);

static const struct vpd_page *vpd_find(uint8_t code)
{
	for (size_t i = 0; i < vpd_npages; i++)
		if (vpd_pages[i].code == code)
			return &vpd_pages[i];
	return NULL;
}

bool vpd_page_known(uint8_t code)
{
	return vpd_find(code) != NULL;
}

const char *scsi_vpd_page_name(unsigned int row, uint8_t *code)
{
	if (row >= vpd_npages)
		return NULL;
	*code = vpd_pages[row].code;
	return vpd_pages[row].name;
}

void vpd_run(struct scsi_cmd *cmd)
{
	static const struct bk_limits none;
	const struct vpd_page *page = vpd_find(cmd->cdb[2]);
	struct vpd vpd;
	uint8_t header[4] = { 0, cmd->cdb[2], 0, 0 };

	assert(page);
	vpd.cmd = cmd;
	vpd.lun = cmd->lun;
	vpd.limits = cmd->channel ? cmd_limits(cmd) : &none;
	vpd.len = 0;
	pthread_mutex_lock(&cmd->lun->lock);
	page->build(&vpd);
	pthread_mutex_unlock(&cmd->lun->lock);
	be16_store(header + 2, (uint16_t)vpd.len);
	scsi_reply_put(cmd, header, sizeof(header));
	scsi_reply(cmd, vpd.body, vpd.len);
}
