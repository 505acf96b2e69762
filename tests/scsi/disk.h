/*
 * A disk for SCSI tests: a LUN over one of several stores, a target, two
 * nexuses, and commands that the test waits for.
 *
 * Every test of the suite runs once for each store: its name begins with the
 * store's, which is how disk_open() knows.  Everything here is called from the
 * thread of main(), which is the control thread.
 */
#ifndef TESTS_SCSI_DISK_H
#define TESTS_SCSI_DISK_H

#include <semaphore.h>

#include "backing/pool.h"
#include "target/scsi/scsi.h"
#include "tests/unit/quintain_test.h"

#define DISK_SIZE     (16u << 20)
#define DISK_LUN      3
#define DISK_DATA_MAX (17u << 20)

struct disk_store {
	const char *name;
	uint32_t block_size;
	bool memory;  /* the store `memory` */
	bool on_disk; /* a file in TEST_TMP, else in /dev/shm */
	bool volume;  /* of a pool in a file in TEST_TMP */
	bool fault;   /* behind the fault filter */
};
extern const struct disk_store disk_stores[];
extern const size_t disk_nstores;

struct disk {
	const struct disk_store *store;
	struct reactor *reactor;
	struct backing *backing; /* what the LUN has */
	struct bk_pool *pool;	 /* NULL: it is not of one */
	struct backing_settings settings;
	struct scsi_lun_settings lun_settings;
	struct scsi_lun *lun;
	struct scsi_target *target;
	struct scsi_nexus *nexus[2];
	uint32_t block_size;
	uint64_t nblocks;
	char path[256];

	/* What the next commands are sent with. */
	unsigned int who; /* which nexus */
	uint8_t lun_field[8];
	uint8_t *in; /* data-in lands here */

	/* What the last one gave. */
	uint8_t status;
	uint8_t sense[SCSI_SENSE_MAX];
	uint8_t sense_len;
	uint32_t data_len, residual_len, transfer_len;
};

/* As a configuration would by default; then without unit attentions. */
void disk_open(struct disk *disk);
/* The same with changed settings: fill them between these two. */
void disk_prepare(struct disk *disk);
void disk_start(struct disk *disk);
void disk_close(struct disk *disk);

/* A second reactor, which is running until the end of the program. */
struct reactor *disk_reactor(unsigned int index);
void disk_reactors_stop(void);
struct scsi_nexus *disk_nexus_open(struct disk *disk, struct reactor *reactor, uint8_t isid);
void disk_nexus_close(struct scsi_nexus *nexus, struct reactor *reactor);

/* CDBs. */
struct cdb {
	uint8_t b[SCSI_CDB_MAX];
};
struct cdb cdb6(uint8_t op, uint8_t b1, uint8_t b2, uint8_t b3, uint8_t b4);
struct cdb cdb10(uint8_t op, uint8_t byte1, uint32_t lba, uint16_t length);
struct cdb cdb12(uint8_t op, uint8_t byte1, uint32_t lba, uint32_t length);
struct cdb cdb16(uint8_t op, uint8_t byte1, uint64_t lba, uint32_t length);

/* Sends a command and waits for its end. */
void disk_none(struct disk *disk, struct cdb cdb);
void disk_in(struct disk *disk, struct cdb cdb, uint32_t edtl);
void disk_out(struct disk *disk, struct cdb cdb, const void *data, uint32_t len);
void disk_any(struct disk *disk, struct cdb cdb, enum scsi_dir dir, uint32_t edtl, const void *data,
	      uint32_t came);

/* Several at once: sent, then waited for. */
struct disk_call;
struct disk_call *disk_send(struct disk *disk, struct scsi_nexus *nexus, struct reactor *reactor,
			    struct cdb cdb, enum scsi_dir dir, const void *data, uint32_t edtl);
bool disk_call_done(struct disk_call *call);
void disk_call_abort(struct disk_call *call);
/* Waits, copies the result into disk, frees it. */
void disk_wait(struct disk *disk, struct disk_call *call);

/* Fills nblocks from lba with a byte, reads them back, compares. */
void disk_fill(struct disk *disk, uint64_t lba, uint32_t nblocks, uint8_t byte);
bool disk_is(struct disk *disk, uint64_t lba, uint32_t nblocks, uint8_t byte);
/* A pattern that differs in each byte's neighbourhood. */
void pattern(uint8_t *data, size_t len, uint8_t seed);

#define CHECK_GOOD(d) CU_ASSERT_EQUAL((d)->status, SCSI_GOOD)
bool disk_sense_is(const struct disk *disk, uint8_t key, uint8_t asc, uint8_t ascq);
#define CHECK_SENSE(d, key, asc, ascq) CU_ASSERT_TRUE(disk_sense_is(d, key, asc, ascq))
/* INVALID FIELD IN CDB that points to byte. */
bool disk_field_is(const struct disk *disk, uint16_t byte);
#define CHECK_FIELD(d, byte) CU_ASSERT_TRUE(disk_field_is(d, byte))

struct scsi_test {
	const char *name;
	void (*run)(void);
};
#define SCSI_TEST(function)         \
	{                           \
#function, function \
	}
extern const struct scsi_test tests_inquiry[], tests_rw[], tests_verify[], tests_provisioning[],
	tests_mode[], tests_unit[], tests_report[], tests_nexus[], tests_fault[], tests_lun[];

#endif
