/* One store on two reactors at once. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB   (1ull << 20)
#define DEPTH 8
#define OPS   400

/* A reactor that writes its own half of the store, block by block, with a
 * flush, an unmap or a look at the map now and then, and reads it back. */
struct side {
	struct store store;
	uint64_t base;
	struct side_req {
		struct bk_req req;
		struct iovec iov;
		struct side *side;
		struct bk_extent extent;
		uint8_t *data;
		uint64_t block;
		bool reads;
	} reqs[DEPTH];
	uint32_t issued, failed;
	_Atomic uint32_t done;
};

static void side_next(struct side_req *mine)
{
	struct side *side = mine->side;
	uint32_t n = side->issued++;

	mine->reads = false;
	mine->req.off = side->base + n % 1000 * 4096ull;
	mine->req.len = 4096;
	mine->req.extents = &mine->extent;
	mine->req.nextents_max = 1;
	mine->block = n;
	memset(mine->data, (int)(n % 255 + 1), 4096);
	if (n % 16 == 3)
		mine->req.op = BK_FLUSH;
	else if (n % 16 == 7)
		mine->req.op = BK_STATUS;
	else if (n % 16 == 11)
		mine->req.op = BK_UNMAP;
	else
		mine->req.op = BK_WRITE;
	mine->req.flags = n % 64 == 1 ? BK_FUA : 0;
	backing_submit(side->store.channel, &mine->req);
}

static void side_done(struct bk_req *req)
{
	struct side_req *mine = container_of(req, struct side_req, req);
	struct side *side = mine->side;

	if (req->err)
		side->failed++;
	if (mine->reads && !store_all_bytes(mine->data, 4096, (uint8_t)(mine->block % 255 + 1)))
		side->failed++;
	if (req->op == BK_WRITE && !req->err) {
		memset(mine->data, 0, 4096);
		mine->reads = true;
		req->op = BK_READ;
		req->flags = 0;
		backing_submit(side->store.channel, req);
		return;
	}
	if (side->issued < OPS)
		side_next(mine);
	else
		atomic_fetch_add(&side->done, 1);
}

static void side_start(void *arg)
{
	struct side *side = arg;

	for (int i = 0; i < DEPTH; i++)
		side_next(&side->reqs[i]);
}

static void side_attach(void *arg)
{
	struct side *side = arg;

	side->store.channel = backing_attach(side->store.backing, side->store.reactor, NULL);
}

static void side_detach(void *arg)
{
	backing_detach(((struct side *)arg)->store.channel);
}

static void side_init(struct side *side, struct backing *backing, unsigned int index)
{
	struct reactor_config config = {
		.index = index, .cpu = -1, .ring_entries = 64, .buffer_bytes = BUFPOOL_BYTES_MIN
	};

	memset(side, 0, sizeof(*side));
	side->base = index * 8 * MIB;
	side->store.backing = backing;
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &side->store.reactor, NULL), 0);
	reactor_call(side->store.reactor, side_attach, side);
	CU_ASSERT_PTR_NOT_NULL_FATAL(side->store.channel);
	for (int i = 0; i < DEPTH; i++) {
		struct side_req *mine = &side->reqs[i];

		mine->side = side;
		mine->data = store_buffer(4096, 0);
		mine->iov = (struct iovec){ mine->data, 4096 };
		mine->req.iov = &mine->iov;
		mine->req.iovcnt = 1;
		mine->req.done = side_done;
	}
}

static void two_reactors(const struct backing_settings *settings, bool filtered)
{
	static struct side sides[2];
	struct backing *backing;

	CU_ASSERT_EQUAL_FATAL(backing_open(settings, &backing, NULL), 0);
	if (filtered)
		CU_ASSERT_EQUAL_FATAL(fault_open(backing, NULL, 0, &backing, NULL), 0);
	for (unsigned int i = 0; i < 2; i++)
		side_init(&sides[i], backing, i);
	for (unsigned int i = 0; i < 2; i++)
		reactor_call(sides[i].store.reactor, side_start, &sides[i]);
	for (unsigned int i = 0; i < 2; i++) {
		for (int ms = 0; ms < 60000 && atomic_load(&sides[i].done) < DEPTH; ms++)
			usleep(1000);
		CU_ASSERT_EQUAL_FATAL(atomic_load(&sides[i].done), DEPTH);
	}
	for (unsigned int i = 0; i < 2; i++) {
		reactor_call(sides[i].store.reactor, side_detach, &sides[i]);
		CU_ASSERT_EQUAL(sides[i].failed, 0);
	}
	backing_close(backing);
	for (unsigned int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(reactor_stop(sides[i].store.reactor, 10000), 0);
		for (int j = 0; j < DEPTH; j++)
			free(sides[i].reqs[j].data);
	}
}

static void ram_disk_serves_two_reactors(void)
{
	struct backing_settings settings = store_settings(NULL, 16 * MIB);

	two_reactors(&settings, false);
	two_reactors(&settings, true);
}

static void file_in_memory_serves_two_reactors(void)
{
	struct backing_settings settings = store_settings(store_memory_path(), 16 * MIB);

	two_reactors(&settings, false);
}

static void file_on_disk_serves_two_reactors(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 16 * MIB);

	two_reactors(&settings, false);
	two_reactors(&settings, true);
	unlink(settings.path);
}

static const struct test tests[] = {
	TEST(ram_disk_serves_two_reactors),
	TEST(file_in_memory_serves_two_reactors),
	TEST(file_on_disk_serves_two_reactors),
};
TEST_MAIN(tests)
