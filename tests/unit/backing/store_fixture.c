/* See store_fixture.h. */
#include "tests/unit/backing/store_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct backing_settings store_settings(const char *path, uint64_t size)
{
	struct backing_settings settings;

	memset(&settings, 0, sizeof(settings));
	option_defaults(backing_options, &settings);
	settings.path = path;
	settings.size = size;
	if (!path)
		settings.backend = BACKING_KIND_RAMDISK;
	return settings;
}

static void attach(void *arg)
{
	struct store *store = arg;
	struct err err = { "" };

	store->channel = backing_attach(store->backing, store->reactor, &err);
	if (!store->channel)
		fprintf(stderr, "%s\n", err.text);
}

static void detach(void *arg)
{
	backing_detach(((struct store *)arg)->channel);
}

void store_start(struct store *store, struct backing *backing)
{
	struct reactor_config config = { .cpu = -1,
					 .ring_entries = 64,
					 .buffer_bytes = BUFPOOL_BYTES_MIN };
	struct err err;

	if (reactor_probe(&err) != 0)
		test_skip("%s", err.text);
	store->backing = backing;
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &store->reactor, &err), 0);
	reactor_call(store->reactor, attach, store);
	CU_ASSERT_PTR_NOT_NULL_FATAL(store->channel);
}

void store_open(struct store *store, const struct backing_settings *settings)
{
	struct backing *backing = NULL;
	struct err err = { "" };
	int rc = backing_open(settings, &backing, &err);

	if (rc != 0)
		printf("%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	store_start(store, backing);
}

void store_close(struct store *store)
{
	reactor_call(store->reactor, detach, store);
	backing_close(store->backing);
	CU_ASSERT_EQUAL(reactor_stop(store->reactor, 10000), 0);
}

void store_refused(const struct backing_settings *settings, int code, const char *what)
{
	struct backing *backing = NULL;
	struct err err = { "" };

	CU_ASSERT_EQUAL_FATAL(backing_open(settings, &backing, &err), -code);
	printf("#   %s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, what));
}

/* ---- requests ---- */

static struct {
	struct bk_req *submitting; /* the request within backing_submit() */
	unsigned int order;
} current;

static void call_done(struct bk_req *req)
{
	struct store_call *call = container_of(req, struct store_call, req);

	call->early = current.submitting == req;
	call->order = ++current.order;
	sem_post(&call->done);
}

void store_call_init(struct store_call *call, struct store *store, enum bk_op op, uint64_t off,
		     uint64_t len, void *data, unsigned int flags)
{
	memset(call, 0, sizeof(*call));
	call->store = store;
	call->iov = (struct iovec){ data, len };
	call->req.op = (uint8_t)op;
	call->req.flags = (uint8_t)flags;
	call->req.off = off;
	call->req.len = len;
	call->req.iov = &call->iov;
	call->req.iovcnt = data ? 1 : 0;
	call->req.done = call_done;
	sem_init(&call->done, 0, 0);
}

struct batch {
	struct store_call *calls;
	unsigned int ncalls;
};

static void submit(void *arg)
{
	struct batch *batch = arg;

	current.order = 0;
	for (unsigned int i = 0; i < batch->ncalls; i++) {
		current.submitting = &batch->calls[i].req;
		backing_submit(batch->calls[i].store->channel, &batch->calls[i].req);
	}
	current.submitting = NULL;
}

void store_submit(struct store_call *calls, unsigned int ncalls)
{
	struct batch batch = { calls, ncalls };

	reactor_call(calls[0].store->reactor, submit, &batch);
}

int store_wait(struct store_call *call)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	CU_ASSERT_EQUAL_FATAL(sem_timedwait(&call->done, &until), 0);
	CU_ASSERT_FALSE(call->early);
	return call->req.err;
}

bool store_done(struct store_call *call)
{
	int value = 0;

	sem_getvalue(&call->done, &value);
	return value > 0;
}

int store_op(struct store *store, enum bk_op op, uint64_t off, uint64_t len, void *data,
	     unsigned int flags)
{
	struct store_call call;

	store_call_init(&call, store, op, off, len, data, flags);
	store_submit(&call, 1);
	return store_wait(&call);
}

int store_read(struct store *store, uint64_t off, uint64_t len, void *data)
{
	return store_op(store, BK_READ, off, len, data, 0);
}

int store_write(struct store *store, uint64_t off, uint64_t len, void *data)
{
	return store_op(store, BK_WRITE, off, len, data, 0);
}

uint32_t store_status(struct store *store, uint64_t off, uint64_t len, struct bk_extent *extents,
		      uint32_t nextents_max)
{
	struct store_call call;

	store_call_init(&call, store, BK_STATUS, off, len, NULL, 0);
	call.req.extents = extents;
	call.req.nextents_max = nextents_max;
	store_submit(&call, 1);
	CU_ASSERT_EQUAL_FATAL(store_wait(&call), 0);
	return call.req.nextents;
}

/* ---- memory, paths, commands ---- */

uint8_t *store_buffer(uint64_t len, uint8_t byte)
{
	uint8_t *data = aligned_alloc(4096, (len + 4095) / 4096 * 4096);

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	memset(data, byte, len);
	return data;
}

bool store_all_bytes(const uint8_t *data, uint64_t len, uint8_t byte)
{
	for (uint64_t i = 0; i < len; i++)
		if (data[i] != byte)
			return false;
	return true;
}

const char *store_disk_path(void)
{
	static char path[512];
	static unsigned int number;
	const char *tmp = getenv("TEST_TMP");

	snprintf(path, sizeof(path), "%s/disk-%ld-%u", tmp ? tmp : "/tmp", (long)getpid(),
		 number++);
	unlink(path);
	return path;
}

static char memory_dir[64];

static void remove_memory_dir(void)
{
	store_shell(NULL, 0, "rm -rf %s", memory_dir);
}

const char *store_memory_path(void)
{
	static char path[96];
	static unsigned int number;

	if (!memory_dir[0]) {
		strncpy(memory_dir, "/dev/shm/quintain-XXXXXX", sizeof(memory_dir) - 1);
		if (!mkdtemp(memory_dir)) {
			memory_dir[0] = '\0';
			test_skip("no file system in memory at /dev/shm");
		}
		atexit(remove_memory_dir);
	}
	snprintf(path, sizeof(path), "%s/%u", memory_dir, number++);
	/* It is below /dev, where no store creates a file. */
	store_shell(NULL, 0, ": >%s", path);
	return path;
}

int store_shell(char *out, size_t cap, const char *format, ...)
{
	char command[2048], line[512] = "", rest[512];
	va_list args;
	int status;
	FILE *f;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	f = popen(command, "re");
	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = '\0';
	while (fgets(rest, sizeof(rest), f))
		;
	status = pclose(f);
	if (out)
		snprintf(out, cap, "%s", line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
