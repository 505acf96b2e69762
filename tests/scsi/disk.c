#include "tests/scsi/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/be.h"

/* Small, yet several times what the tests write. */
#define POOL_SIZE  (64u << 20)
#define POOL_CACHE (32u << 20)

const struct disk_store disk_stores[] = {
	{ "memory_512", 512, .memory = true },
	{ "memory_4096", 4096, .memory = true },
	{ "file_512", 512, .on_disk = false },
	{ "file_4096", 4096, .on_disk = true },
	{ "volume_512", 512, .volume = true },
	{ "volume_4096", 4096, .volume = true },
	{ "fault_512", 512, .fault = true },
	{ "fault_volume_512", 512, .fault = true, .volume = true },
};
const size_t disk_nstores = ARRAY_LEN(disk_stores);

static struct reactor *reactors[2];
static uint8_t data_in[DISK_DATA_MAX];

/* ---- reactors ---- */

struct reactor *disk_reactor(unsigned int index)
{
	struct reactor_config config = {
		.index = index, .cpu = -1, .ring_entries = 128, .buffer_bytes = BUFPOOL_BYTES_MIN
	};
	struct err err;

	if (reactors[index])
		return reactors[index];
	if (reactor_probe(&err) != 0)
		test_skip("%s", err.text);
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &reactors[index], &err), 0);
	return reactors[index];
}

void disk_reactors_stop(void)
{
	for (size_t i = 0; i < ARRAY_LEN(reactors); i++)
		if (reactors[i])
			reactor_stop(reactors[i], 5000);
}

/* ---- nexuses ---- */

struct nexus_call {
	struct scsi_target *target;
	struct scsi_nexus_id id;
	struct reactor *reactor;
	struct scsi_nexus *nexus;
};

static void nexus_open(void *arg)
{
	struct nexus_call *call = arg;

	call->nexus = scsi_nexus_open(call->target, &call->id, call->reactor);
}

static void nexus_close(void *arg)
{
	scsi_nexus_close(((struct nexus_call *)arg)->nexus);
}

struct scsi_nexus *disk_nexus_open(struct disk *disk, struct reactor *reactor, uint8_t isid)
{
	struct nexus_call call = {
		.target = disk->target,
		.id = { .initiator_name = "iqn.2000-01.test:host",
			.isid = { 0x80, isid },
			.portal_group_tag = 7,
			.relative_port = 2 },
		.reactor = reactor,
	};

	reactor_call(reactor, nexus_open, &call);
	CU_ASSERT_PTR_NOT_NULL_FATAL(call.nexus);
	return call.nexus;
}

void disk_nexus_close(struct scsi_nexus *nexus, struct reactor *reactor)
{
	struct nexus_call call = { .nexus = nexus };

	reactor_call(reactor, nexus_close, &call);
}

/* ---- the disk ---- */

static const struct disk_store *store_of_test(void)
{
	const char *name = CU_get_current_test()->pName;

	for (size_t i = 0; i < disk_nstores; i++) {
		size_t len = strlen(disk_stores[i].name);

		if (strncmp(name, disk_stores[i].name, len) == 0 && name[len] == '.')
			return &disk_stores[i];
	}
	return &disk_stores[0];
}

/* On the reactor of the disk: its requests are at home. */
static void disk_pool_open(struct disk *disk)
{
	struct pool_settings settings = { .must_exist = false };
	struct err err = { "" };

	option_defaults(pool_options, &settings);
	settings.path = disk->path;
	settings.size = POOL_SIZE;
	settings.cache_memory = POOL_CACHE;
	if (bk_pool_open("tank", &settings, &disk->pool, &err) != 0)
		printf("%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(disk->pool);
	CU_ASSERT_EQUAL_FATAL(bk_pool_start(disk->pool, disk_reactor(0), &err), 0);
	disk->settings.volume = "tank/disk";
	disk->settings.pool = disk->pool;
}

void disk_prepare(struct disk *disk)
{
	const char *tmp = getenv("TEST_TMP");
	static unsigned int serial;
	bool on_disk;
	int fd;

	memset(disk, 0, sizeof(*disk));
	disk->store = store_of_test();
	disk->block_size = disk->store->block_size;
	option_defaults(backing_options, &disk->settings);
	option_defaults(scsi_lun_options, &disk->lun_settings);
	disk->settings.size = DISK_SIZE;
	disk->settings.block_size = disk->block_size;
	disk->settings.backend = BACKING_KIND_RAMDISK;
	if (disk->store->memory)
		return;
	/* A pool makes its file, and no store makes one below /dev. */
	on_disk = disk->store->on_disk || disk->store->volume;
	snprintf(disk->path, sizeof(disk->path), "%s/quintain-scsi-%d-%u",
		 on_disk ? tmp ? tmp : "/tmp" : "/dev/shm", (int)getpid(), serial++);
	disk->settings.backend = BACKING_KIND_BLOCK;
	if (disk->store->volume) {
		disk_pool_open(disk);
		return;
	}
	disk->settings.path = disk->path;
	/* No store makes a file below /dev. */
	fd = open(disk->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	close(fd);
}

static void disk_pool_close(struct disk *disk)
{
	CU_ASSERT_FALSE(bk_pool_in_use(disk->pool));
	CU_ASSERT_TRUE_FATAL(bk_pool_stop(disk->pool, 20000));
	bk_pool_close(disk->pool);
}

static void store_open(struct disk *disk)
{
	struct err err = { "" };
	struct backing *inner;

	if (backing_open(&disk->settings, &disk->backing, &err) != 0)
		printf("%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(disk->backing);
	if (!disk->store->fault)
		return;
	inner = disk->backing;
	CU_ASSERT_EQUAL_FATAL(fault_open(inner, NULL, 0, &disk->backing, &err), 0);
}

void disk_start(struct disk *disk)
{
	struct scsi_identity identity;
	struct err err = { "" };

	disk->reactor = disk_reactor(0);
	disk->in = data_in;
	for (unsigned int i = 0; i < sizeof(identity.uuid); i++)
		identity.uuid[i] = (uint8_t)(0xa0 + i);
	store_open(disk);
	disk->lun = scsi_lun_create("disk", &disk->lun_settings, &identity);
	disk->target = scsi_target_create("iqn.2000-01.test:target");
	CU_ASSERT_EQUAL(scsi_lun_set_backing(disk->lun, disk->backing, &disk->reactor, 1, &err), 0);
	CU_ASSERT_EQUAL(scsi_target_map(disk->target, DISK_LUN, disk->lun), 0);
	disk->nexus[0] = disk_nexus_open(disk, disk->reactor, 0);
	disk->nexus[1] = disk_nexus_open(disk, disk->reactor, 1);
	disk->nblocks = disk->backing->limits.size_bytes / disk->block_size;
	scsi_lun_field(DISK_LUN, disk->lun_field);
}

void disk_open(struct disk *disk)
{
	disk_prepare(disk);
	disk_start(disk);
	for (disk->who = 1;; disk->who = 0) {
		disk_none(disk, cdb6(0x00, 0, 0, 0, 0));
		CHECK_SENSE(disk, 6, 0x29, 0x00);
		if (disk->who == 0)
			break;
	}
}

void disk_close(struct disk *disk)
{
	struct err err;

	for (unsigned int i = 0; i < 2; i++)
		if (disk->nexus[i])
			disk_nexus_close(disk->nexus[i], disk->reactor);
	if (scsi_target_lun(disk->target, DISK_LUN))
		CU_ASSERT_EQUAL(scsi_target_unmap(disk->target, DISK_LUN), 0);
	CU_ASSERT_EQUAL(scsi_lun_set_backing(disk->lun, NULL, NULL, 0, &err), 0);
	scsi_target_destroy(disk->target);
	scsi_lun_destroy(disk->lun);
	if (disk->backing)
		backing_close(disk->backing);
	if (disk->pool)
		disk_pool_close(disk);
	if (disk->path[0])
		unlink(disk->path);
}

/* ---- CDBs ---- */

struct cdb cdb6(uint8_t op, uint8_t b1, uint8_t b2, uint8_t b3, uint8_t b4)
{
	return (struct cdb){ { op, b1, b2, b3, b4 } };
}

struct cdb cdb10(uint8_t op, uint8_t byte1, uint32_t lba, uint16_t length)
{
	struct cdb cdb = { { op, byte1 } };

	be32_store(cdb.b + 2, lba);
	be16_store(cdb.b + 7, length);
	return cdb;
}

struct cdb cdb12(uint8_t op, uint8_t byte1, uint32_t lba, uint32_t length)
{
	struct cdb cdb = { { op, byte1 } };

	be32_store(cdb.b + 2, lba);
	be32_store(cdb.b + 6, length);
	return cdb;
}

struct cdb cdb16(uint8_t op, uint8_t byte1, uint64_t lba, uint32_t length)
{
	struct cdb cdb = { { op, byte1 } };

	be64_store(cdb.b + 2, lba);
	be32_store(cdb.b + 10, length);
	return cdb;
}

/* ---- commands ---- */

struct disk_call {
	struct scsi_cmd cmd;
	struct iovec iov[2];
	uint8_t *buf;
	const void *data;
	uint32_t came;
	struct reactor *reactor;
	sem_t done;
	bool early, in_execute;
};

static void call_done(struct scsi_cmd *cmd)
{
	struct disk_call *call = container_of(cmd, struct disk_call, cmd);

	call->early = call->in_execute;
	sem_post(&call->done);
}

/* Two pieces, so that nothing relies on one. */
static void call_buffers(struct disk_call *call)
{
	uint32_t len = call->cmd.buf_len;
	uint32_t first = len > 4096 ? 4096 : len;

	call->iov[0] = (struct iovec){ call->buf, first };
	call->iov[1] = (struct iovec){ call->buf + 8192, len - first };
	call->cmd.iov = call->iov;
	call->cmd.iovcnt = len == 0 ? 0 : len > first ? 2 : 1;
}

static void call_run(void *arg)
{
	struct disk_call *call = arg;
	struct scsi_cmd *cmd = &call->cmd;
	uint32_t came;

	if (!scsi_cmd_prepare(cmd)) {
		sem_post(&call->done);
		return;
	}
	call_buffers(call);
	came = call->came < cmd->data_out_len ? call->came : cmd->data_out_len;
	if (came) {
		uint32_t first = came < 4096 ? came : 4096;

		memcpy(call->buf, call->data, first);
		memcpy(call->buf + 8192, (const uint8_t *)call->data + first, came - first);
	}
	call->in_execute = true;
	scsi_cmd_execute(cmd, came);
	call->in_execute = false;
}

static struct disk_call *call_new(struct disk *disk, struct scsi_nexus *nexus,
				  struct reactor *reactor, struct cdb cdb, enum scsi_dir dir,
				  uint32_t edtl)
{
	struct disk_call *call = calloc(1, sizeof(*call));
	size_t room;

	CU_ASSERT_PTR_NOT_NULL_FATAL(call);
	/* A slot is not cleared between commands. */
	memset(&call->cmd, 0xa5, sizeof(call->cmd));
	/* Room for both pieces of what buf_len can be. */
	room = edtl < DISK_DATA_MAX ? edtl : DISK_DATA_MAX;
	call->buf = aligned_alloc(4096, (room + 4 * 4096) / 4096 * 4096);
	CU_ASSERT_PTR_NOT_NULL_FATAL(call->buf);
	call->reactor = reactor;
	call->cmd.nexus = nexus;
	memcpy(call->cmd.lun_field, disk->lun_field, 8);
	memcpy(call->cmd.cdb, cdb.b, SCSI_CDB_MAX);
	call->cmd.cdb_len = 16;
	call->cmd.attr = SCSI_TASK_SIMPLE;
	call->cmd.initiator_dir = (uint8_t)dir;
	call->cmd.edtl = edtl;
	call->cmd.done = call_done;
	sem_init(&call->done, 0, 0);
	return call;
}

struct disk_call *disk_send(struct disk *disk, struct scsi_nexus *nexus, struct reactor *reactor,
			    struct cdb cdb, enum scsi_dir dir, const void *data, uint32_t edtl)
{
	struct disk_call *call = call_new(disk, nexus, reactor, cdb, dir, edtl);

	call->data = data;
	call->came = data ? edtl : 0;
	reactor_call(reactor, call_run, call);
	return call;
}

bool disk_call_done(struct disk_call *call)
{
	int value = 0;

	sem_getvalue(&call->done, &value);
	return value > 0;
}

static void call_abort(void *arg)
{
	scsi_cmd_abort(&((struct disk_call *)arg)->cmd);
}

void disk_call_abort(struct disk_call *call)
{
	reactor_call(call->reactor, call_abort, call);
}

/* Data-in comes from the two pieces. */
static void take_result(struct disk *disk, const struct disk_call *call)
{
	const struct scsi_cmd *cmd = &call->cmd;
	uint32_t first = cmd->data_in_len > 4096 ? 4096 : cmd->data_in_len;

	disk->status = cmd->status;
	disk->sense_len = cmd->sense_len;
	if (cmd->sense_len)
		memcpy(disk->sense, cmd->sense, cmd->sense_len);
	disk->data_len = cmd->data_in_len;
	disk->residual_len = cmd->residual_len;
	disk->transfer_len = cmd->transfer_len;
	CU_ASSERT_TRUE(cmd->data_in_len <= cmd->edtl);
	memcpy(disk->in, call->buf, first);
	memcpy(disk->in + first, call->buf + 8192, cmd->data_in_len - first);
}

void disk_wait(struct disk *disk, struct disk_call *call)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	CU_ASSERT_EQUAL_FATAL(sem_timedwait(&call->done, &until), 0);
	CU_ASSERT_FALSE(call->early);
	take_result(disk, call);
	free(call->buf);
	free(call);
}

void disk_any(struct disk *disk, struct cdb cdb, enum scsi_dir dir, uint32_t edtl, const void *data,
	      uint32_t came)
{
	struct disk_call *call = call_new(disk, disk->nexus[disk->who], disk->reactor, cdb, dir,
					  edtl);

	call->data = data;
	call->came = came;
	reactor_call(disk->reactor, call_run, call);
	disk_wait(disk, call);
}

void disk_none(struct disk *disk, struct cdb cdb)
{
	disk_any(disk, cdb, SCSI_NO_DATA, 0, NULL, 0);
}

void disk_in(struct disk *disk, struct cdb cdb, uint32_t edtl)
{
	disk_any(disk, cdb, SCSI_DATA_IN, edtl, NULL, 0);
}

void disk_out(struct disk *disk, struct cdb cdb, const void *data, uint32_t len)
{
	disk_any(disk, cdb, SCSI_DATA_OUT, len, data, len);
}

/* ---- data ---- */

void pattern(uint8_t *data, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(seed + i * 7 + i / 251);
}

void disk_fill(struct disk *disk, uint64_t lba, uint32_t nblocks, uint8_t byte)
{
	uint32_t len = nblocks * disk->block_size;
	uint8_t *data = malloc(len);

	memset(data, byte, len);
	disk_out(disk, cdb16(0x8a, 0, lba, nblocks), data, len);
	CHECK_GOOD(disk);
	free(data);
}

bool disk_is(struct disk *disk, uint64_t lba, uint32_t nblocks, uint8_t byte)
{
	uint32_t len = nblocks * disk->block_size;

	disk_in(disk, cdb16(0x88, 0, lba, nblocks), len);
	if (disk->status != SCSI_GOOD || disk->data_len != len)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (disk->in[i] != byte)
			return false;
	return true;
}

/* ---- sense ---- */

bool disk_sense_is(const struct disk *disk, uint8_t key, uint8_t asc, uint8_t ascq)
{
	char text[128] = "no sense data";
	bool fixed = disk->sense_len && (disk->sense[0] & 0x7f) == 0x70;
	const uint8_t *code = disk->sense + (fixed ? 12 : 2);

	if (disk->status == SCSI_CHECK_CONDITION && (disk->sense[fixed ? 2 : 1] & 0x0f) == key &&
	    code[0] == asc && code[1] == ascq)
		return true;
	if (disk->status == SCSI_CHECK_CONDITION)
		scsi_sense_text(disk->sense, disk->sense_len, text, sizeof(text));
	printf("status %02xh, %s\n", disk->status, text);
	return false;
}

bool disk_field_is(const struct disk *disk, uint16_t byte)
{
	return disk_sense_is(disk, 5, 0x24, 0) && (disk->sense[15] & 0xc0) == 0xc0 &&
	       be16_load(disk->sense + 16) == byte;
}
