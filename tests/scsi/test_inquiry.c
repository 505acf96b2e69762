/* INQUIRY, its pages, READ CAPACITY: they say what the store is. */
#include "tests/scsi/disk.h"

#include <string.h>

#include "base/be.h"

static struct cdb inquiry(uint8_t evpd, uint8_t page, uint16_t len)
{
	return cdb6(0x12, evpd, page, (uint8_t)(len >> 8), (uint8_t)len);
}

static void inquiry_describes_a_disk(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, inquiry(0, 0, 260), 260);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 96);
	CU_ASSERT_EQUAL(d.residual_len, 96);
	CU_ASSERT_EQUAL(d.in[0], 0x00);
	CU_ASSERT_EQUAL(d.in[1], 0x00);
	CU_ASSERT_EQUAL(d.in[2], 0x06);
	CU_ASSERT_EQUAL(d.in[3], 0x12);
	CU_ASSERT_EQUAL(d.in[4], 91);
	CU_ASSERT_EQUAL(d.in[5], 0); /* no TPGS, 3PC, PROTECT */
	CU_ASSERT_EQUAL(memcmp(d.in + 8, "QUINTAINVIRTUAL-DISK    0001", 28), 0);
	CU_ASSERT_EQUAL(be16_load(d.in + 58), 0x00a0);
	disk_close(&d);
}

static void inquiry_length_is_cut_not_the_length_in_it(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, inquiry(0, 0, 5), 260);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 5);
	CU_ASSERT_EQUAL(d.in[4], 91);
	disk_in(&d, inquiry(0, 0, 0), 0);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 0);
	disk_in(&d, inquiry(0, 0, 96), 36);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 36);
	CU_ASSERT_EQUAL(d.residual_len, 96);
	disk_close(&d);
}

static void inquiry_page_without_evpd_is_refused(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, inquiry(0, 0x80, 255), 255);
	CHECK_FIELD(&d, 2);
	disk_in(&d, inquiry(1, 0x8f, 255), 255);
	CHECK_FIELD(&d, 2);
	disk_in(&d, inquiry(2, 0, 255), 255);
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

static void inquiry_of_a_missing_lun_has_a_vendor(void)
{
	struct disk d;

	disk_open(&d);
	scsi_lun_field(0, d.lun_field);
	disk_in(&d, inquiry(0, 0, 96), 96);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[0], 0x7f);
	CU_ASSERT_EQUAL(memcmp(d.in + 8, "QUINTAIN", 8), 0);
	disk_in(&d, inquiry(0, 0, 0), 0);
	CHECK_GOOD(&d);
	disk_in(&d, inquiry(1, 0, 96), 96);
	CHECK_FIELD(&d, 2);
	disk_none(&d, cdb6(0x00, 0, 0, 0, 0));
	CHECK_SENSE(&d, 5, 0x25, 0);
	disk_none(&d, cdb6(0xff, 0, 0, 0, 0));
	CHECK_SENSE(&d, 5, 0x25, 0);
	disk_close(&d);
}

static void supported_pages_are_those_that_answer(void)
{
	static const uint8_t pages[] = { 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2 };
	struct disk d;
	unsigned int answered = 0;

	disk_open(&d);
	disk_in(&d, inquiry(1, 0, 255), 255);
	CU_ASSERT_EQUAL(d.data_len, 4 + sizeof(pages));
	CU_ASSERT_EQUAL(memcmp(d.in + 4, pages, sizeof(pages)), 0);
	for (unsigned int page = 0; page < 256; page++) {
		disk_in(&d, inquiry(1, (uint8_t)page, 1024), 1024);
		if (d.status != SCSI_GOOD)
			continue;
		answered++;
		CU_ASSERT_EQUAL(d.in[1], page);
		CU_ASSERT_EQUAL(d.data_len, 4u + be16_load(d.in + 2));
	}
	CU_ASSERT_EQUAL(answered, sizeof(pages));
	disk_close(&d);
}

/* The designator of a type and association in page 83, or NULL. */
static const uint8_t *designator(const struct disk *d, uint8_t association, uint8_t type)
{
	for (uint32_t at = 4; at + 4 <= d->data_len; at += 4u + d->in[at + 3])
		if ((d->in[at + 1] & 0x0f) == type && (d->in[at + 1] >> 4 & 3) == association)
			return d->in + at;
	return NULL;
}

static void identification_names_lun_port_and_device(void)
{
	struct disk d;
	const uint8_t *p;

	disk_open(&d);
	disk_in(&d, inquiry(1, 0x83, 1024), 1024);
	CHECK_GOOD(&d);
	p = designator(&d, 0, 3);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(p[3], 8);
	CU_ASSERT_EQUAL(p[4], 0x30); /* locally assigned, then the UUID */
	CU_ASSERT_EQUAL(p[5], 0xa1);
	p = designator(&d, 0, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(memcmp(p + 4, "QUINTAINa0a1a2a3", 16), 0);
	CU_ASSERT_PTR_NOT_NULL(designator(&d, 0, 10));
	p = designator(&d, 1, 4);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(be16_load(p + 6), 2);
	p = designator(&d, 1, 8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_STRING_EQUAL((const char *)p + 4, "iqn.2000-01.test:target,t,0x0007");
	p = designator(&d, 2, 8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_STRING_EQUAL((const char *)p + 4, "iqn.2000-01.test:target");
	disk_close(&d);
}

static void serial_and_device_id_override_the_identity(void)
{
	struct disk d;
	uint8_t naa[8];
	const uint8_t *p;

	disk_prepare(&d);
	d.lun_settings.serial = "S123";
	d.lun_settings.device_id = "gateway-pair";
	disk_start(&d);
	disk_in(&d, inquiry(1, 0x80, 255), 255);
	CU_ASSERT_EQUAL(d.data_len, 8);
	CU_ASSERT_EQUAL(memcmp(d.in + 4, "S123", 4), 0);
	disk_in(&d, inquiry(1, 0x83, 1024), 1024);
	p = designator(&d, 0, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(memcmp(p + 12, "gateway-pair", 12), 0);
	CU_ASSERT_PTR_NULL(designator(&d, 0, 10));
	memcpy(naa, designator(&d, 0, 3) + 4, 8);
	CU_ASSERT_EQUAL(naa[0] >> 4, 3);
	CU_ASSERT_NOT_EQUAL(naa[1], 0xa1);
	disk_close(&d);
}

static void block_limits_are_those_of_the_store(void)
{
	struct disk d;
	const struct bk_limits *limits;

	disk_open(&d);
	limits = &d.backing->limits;
	disk_in(&d, inquiry(1, 0xb0, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 64);
	CU_ASSERT_EQUAL(d.in[4], 1); /* WSNZ */
	CU_ASSERT_EQUAL(d.in[5], 0); /* no COMPARE AND WRITE */
	CU_ASSERT_EQUAL(be16_load(d.in + 6), 4096 / d.block_size);
	CU_ASSERT_EQUAL(be32_load(d.in + 8), (16u << 20) / d.block_size);
	if (limits->unmap_max) {
		CU_ASSERT_EQUAL(be32_load(d.in + 20), 1u << 20);
		CU_ASSERT_EQUAL(be32_load(d.in + 24), 256);
		CU_ASSERT_EQUAL(be32_load(d.in + 28), limits->unmap_granularity / d.block_size);
	}
	CU_ASSERT_EQUAL(d.in[32], 0);		      /* UGAVALID */
	CU_ASSERT_EQUAL(be64_load(d.in + 36), 32768); /* WRITE SAME */
	disk_in(&d, inquiry(1, 0xb2, 255), 255);
	CU_ASSERT_EQUAL(d.data_len, 8);
	CU_ASSERT_EQUAL(d.in[5] >> 7, limits->unmap_max > 0);
	CU_ASSERT_EQUAL(d.in[5] >> 2 & 1, limits->unmap_max && limits->unmapped_reads_zero);
	disk_in(&d, inquiry(1, 0xb1, 255), 255);
	CU_ASSERT_EQUAL(d.data_len, 64);
	CU_ASSERT_EQUAL(be16_load(d.in + 4), limits->rotational ? 0 : 1);
	disk_close(&d);
}

static void thick_disk_does_not_claim_unmap(void)
{
	struct disk d;

	disk_prepare(&d);
	d.settings.thin = false;
	disk_start(&d);
	/* A volume is thin whatever is asked. */
	if (d.store->volume) {
		CU_ASSERT_TRUE(d.backing->limits.unmap_max > 0);
		disk_close(&d);
		return;
	}
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	disk_in(&d, inquiry(1, 0xb0, 255), 255);
	CU_ASSERT_EQUAL(be32_load(d.in + 20), 0);
	CU_ASSERT_EQUAL(be32_load(d.in + 24), 0);
	disk_in(&d, inquiry(1, 0xb2, 255), 255);
	CU_ASSERT_EQUAL(d.in[5] & 0xe0, 0);
	disk_in(&d, cdb16(0x9e, 0x10, 0, 32), 32);
	CU_ASSERT_EQUAL(d.in[14], 0);
	disk_out(&d, cdb10(0x42, 0, 0, 0), NULL, 0);
	CHECK_SENSE(&d, 5, 0x20, 0);
	disk_out(&d, cdb10(0x41, 0x08, 0, 1), d.in, d.block_size);
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

static void read_capacity_gives_last_block_and_size(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb10(0x25, 0, 0, 0), 8);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 8);
	CU_ASSERT_EQUAL(be32_load(d.in), d.nblocks - 1);
	CU_ASSERT_EQUAL(be32_load(d.in + 4), d.block_size);
	disk_in(&d, cdb10(0x25, 0, 1, 0), 8);
	CHECK_FIELD(&d, 2);
	disk_in(&d, cdb16(0x9e, 0x10, 0, 32), 32);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be64_load(d.in), d.nblocks - 1);
	CU_ASSERT_EQUAL(be32_load(d.in + 8), d.block_size);
	CU_ASSERT_EQUAL(1u << d.in[13], 4096 / d.block_size);
	CU_ASSERT_EQUAL(d.in[14] >> 7, d.backing->limits.unmap_max > 0);
	disk_in(&d, cdb16(0x9e, 0x10, 0, 15), 15);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 15);
	disk_in(&d, cdb16(0x9e, 0x11, 0, 32), 32);
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

const struct scsi_test tests_inquiry[] = {
	SCSI_TEST(inquiry_describes_a_disk),
	SCSI_TEST(inquiry_length_is_cut_not_the_length_in_it),
	SCSI_TEST(inquiry_page_without_evpd_is_refused),
	SCSI_TEST(inquiry_of_a_missing_lun_has_a_vendor),
	SCSI_TEST(supported_pages_are_those_that_answer),
	SCSI_TEST(identification_names_lun_port_and_device),
	SCSI_TEST(serial_and_device_id_override_the_identity),
	SCSI_TEST(block_limits_are_those_of_the_store),
	SCSI_TEST(thick_disk_does_not_claim_unmap),
	SCSI_TEST(read_capacity_gives_last_block_and_size),
	{ NULL, NULL },
};
