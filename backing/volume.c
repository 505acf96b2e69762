/*
 * The store `volume`: a volume of a pool.
 *
 * Requests go to the pool's home reactor, by a message from other reactors (which
 * costs a wake-up only when the home sleeps), and come back the same way.  The
 * engine copies what is written before it answers, or keeps the request until it
 * has; a read lands in the request's own buffers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backing/pool_internal.h"
#include "backing/store.h"
#include "base/log.h"
#include "compress/codec.h"

/* In one request: ranges of any length are one entry of the log. */
#define UNMAP_MAX	  (1ull << 40)
#define UNMAP_GRANULARITY 4096u

struct volume_store {
	struct backing backing;
	struct list link; /* of the pool's stores */
	struct bk_pool *pool;
	struct volume *volume; /* touched on the home only */
	uint8_t uuid[16];
	uint64_t used, available; /* bytes, atomic */
};

struct volume_channel {
	struct bk_channel channel;
	bool at_home;
};

/* What a request carries through the engine. */
struct carried {
	struct vreq vreq;
	struct bk_req *req;
};
static_assert(sizeof(struct carried) <= sizeof(((struct bk_req *)0)->room), "room of a request");

static struct volume_store *store_of(const struct backing *backing)
{
	return container_of(backing, struct volume_store, backing);
}

/* ---- opening ---- */

static bool volume_serves(const struct backing_settings *settings, mode_t type)
{
	(void)type;
	return settings->volume != NULL;
}

static const char *name_of(const struct backing_settings *settings)
{
	const char *slash = strchr(settings->volume, '/');

	return slash ? slash + 1 : "";
}

struct opening {
	struct volume_store *store;
	const struct backing_settings *settings;
	struct volume_settings wanted;
	uint64_t size; /* out: bytes, for a resize */
	struct err *err;
};

static int wanted_fill(struct opening *opening)
{
	const struct backing_settings *settings = opening->settings;

	opening->wanted = (struct volume_settings){
		.nsectors = settings->size / VF_SECTOR,
		.block_len = settings->block_size,
		.record_len = settings->record_size,
		.checksum = settings->checksum,
	};
	return codec_parse(settings->compression, &opening->wanted.codec, opening->err);
}

/* Then its volumes are served as they are. */
static bool pool_is_read_only(struct bk_pool *pool)
{
	struct pool_info info;

	bk_pool_info(pool, &info);
	return info.read_only;
}

/* What is asked of a volume that is there. */
static int volume_change(struct opening *opening, struct volume *volume)
{
	struct volume_settings wanted = opening->wanted;
	struct volume_info info;

	volume_info(volume, &info);
	if (wanted.block_len != info.settings.block_len)
		return err_set(opening->err, EINVAL,
			       "volume %s has blocks of %u bytes, which cannot be changed: say "
			       "blocksize %u",
			       opening->settings->volume, info.settings.block_len,
			       info.settings.block_len);
	if (wanted.checksum != info.settings.checksum)
		return err_set(
			opening->err, EINVAL,
			"volume %s is checked with %s, which cannot be changed: say checksum "
			"%s",
			opening->settings->volume,
			info.settings.checksum == VF_SHA256 ? "sha256" : "xxh3",
			info.settings.checksum == VF_SHA256 ? "sha256" : "xxh3");
	opening->size = info.settings.nsectors * VF_SECTOR;
	if (wanted.nsectors == 0)
		wanted.nsectors = info.settings.nsectors;
	if (wanted.nsectors < info.settings.nsectors)
		return err_set(opening->err, EINVAL,
			       "volume %s has %llu bytes and cannot be made smaller: say size %llu",
			       opening->settings->volume,
			       (unsigned long long)(info.settings.nsectors * VF_SECTOR),
			       (unsigned long long)(info.settings.nsectors * VF_SECTOR));
	if (opening->settings->read_only || pool_is_read_only(opening->store->pool))
		return 0;
	opening->size = wanted.nsectors * VF_SECTOR;
	return volume_set(volume, &wanted, opening->err);
}

/* On the home: what others want to know of the volume. */
static void store_fill(struct volume_store *store, struct volume *volume)
{
	struct bk_limits *limits = &store->backing.limits;
	struct volume_info info;
	struct pool_info pool;

	bk_pool_info(store->pool, &pool);
	volume_info(volume, &info);
	store->volume = volume;
	memcpy(store->uuid, info.uuid, sizeof(store->uuid));
	store->used = info.mapped;
	store->available = pool.available;
	limits->size_bytes = info.settings.nsectors * VF_SECTOR;
	limits->io_optimal = info.settings.record_len;
	limits->unmap_max = limits->write_zeroes_max = UNMAP_MAX;
	limits->unmap_granularity = UNMAP_GRANULARITY;
	limits->atomic_max = pool.segment_len / 4;
	limits->unmapped_reads_zero = true;
	limits->write_zeroes_unmaps = true;
	limits->knows_status = true;
	limits->read_only = limits->read_only || pool.read_only;
}

static int open_at_home(struct pool *engine, void *arg)
{
	struct opening *opening = arg;
	const struct backing_settings *settings = opening->settings;
	struct volume *volume = volume_find(engine, name_of(settings));
	int rc;

	if (!volume && settings->size == 0)
		return err_set(
			opening->err, ENOENT,
			"pool %s has no volume \"%s\"; one is created when the LUN has a size",
			bk_pool_name(settings->pool), name_of(settings));
	if (!volume && settings->read_only)
		return err_set(
			opening->err, ENOENT,
			"pool %s has no volume \"%s\", and none is created for read-only yes",
			bk_pool_name(settings->pool), name_of(settings));
	if (volume)
		rc = volume_change(opening, volume);
	else
		rc = volume_create(engine, name_of(settings), &opening->wanted, &volume,
				   opening->err);
	if (!rc)
		rc = volume_get(volume, opening->err);
	if (rc)
		return rc;
	store_fill(opening->store, volume);
	return 0;
}

static int volume_open(struct backing *backing, const struct backing_settings *settings,
		       struct err *err)
{
	struct volume_store *store = store_of(backing);
	struct opening opening = { .store = store, .settings = settings, .err = err };
	int rc;

	if (!settings->pool)
		return err_set(err, ENOENT, "%s: its pool is not open", settings->volume);
	store->pool = settings->pool;
	list_init(&store->link);
	rc = wanted_fill(&opening);
	if (!rc)
		rc = bk_pool_call(store->pool, open_at_home, &opening);
	if (rc)
		return rc;
	bk_pool_join(store->pool, &store->link);
	return 0;
}

static int close_at_home(struct pool *engine, void *arg)
{
	struct volume_store *store = arg;

	(void)engine;
	volume_put(store->volume);
	/* The last one may let the pool be closed: nothing of it after this. */
	bk_pool_leave(store->pool, &store->link);
	return 0;
}

static void volume_close(struct backing *backing)
{
	struct volume_store *store = store_of(backing);

	bk_pool_call(store->pool, close_at_home, store);
}

static int resize_at_home(struct pool *engine, void *arg)
{
	struct opening *opening = arg;

	(void)engine;
	return volume_change(opening, opening->store->volume);
}

static int volume_resize(struct backing *backing, const struct backing_settings *settings,
			 uint64_t *size_bytes, struct err *err)
{
	struct volume_store *store = store_of(backing);
	struct opening opening = { .store = store, .settings = settings, .err = err };
	int rc = wanted_fill(&opening);

	if (!rc)
		rc = bk_pool_call(store->pool, resize_at_home, &opening);
	if (!rc)
		*size_bytes = opening.size;
	return rc;
}

static bool volume_identity(const struct backing *backing, uint8_t uuid[16])
{
	memcpy(uuid, store_of(backing)->uuid, sizeof(store_of(backing)->uuid));
	return true;
}

/* ---- what the pool tells ---- */

void volume_store_event(struct list *link, enum bk_event event)
{
	backing_event(&container_of(link, struct volume_store, link)->backing, event);
}

void volume_store_refresh(struct list *link, uint64_t available)
{
	struct volume_store *store = container_of(link, struct volume_store, link);
	struct volume_info info;

	volume_info(store->volume, &info);
	__atomic_store_n(&store->used, info.mapped, __ATOMIC_RELAXED);
	__atomic_store_n(&store->available, available, __ATOMIC_RELAXED);
}

static bool volume_space(const struct backing *backing, struct bk_space *out)
{
	const struct volume_store *store = store_of(backing);

	out->used = __atomic_load_n(&store->used, __ATOMIC_RELAXED);
	out->available = __atomic_load_n(&store->available, __ATOMIC_RELAXED);
	return true;
}

/* ---- requests ---- */

static int volume_attach(struct bk_channel *channel, struct err *err)
{
	struct volume_channel *own = container_of(channel, struct volume_channel, channel);

	(void)err;
	own->at_home = channel->reactor == bk_pool_home(store_of(channel->backing)->pool);
	return 0;
}

static void volume_detach(struct bk_channel *channel)
{
	(void)channel;
}

static void give_back(struct reactor_msg *msg)
{
	struct bk_req *req = container_of(msg, struct bk_req, msg);

	bk_complete(req, (int)req->mode);
}

/* On the home. */
static void vreq_done(struct vreq *vreq)
{
	struct carried *carried = container_of(vreq, struct carried, vreq);
	struct bk_req *req = carried->req;
	struct volume_channel *channel = container_of(req->channel, struct volume_channel, channel);
	int err = vreq->err;

	if (err && vreq->op == VREQ_READ && vreq->bad_lba > vreq->lba)
		req->bad_off = (vreq->bad_lba - vreq->lba) * VF_SECTOR;
	if (vreq->op == VREQ_STATUS && !err && req->nextents_max > 0) {
		uint64_t len = vreq->extent * VF_SECTOR;

		req->extents[0] = (struct bk_extent){
			.off = req->off,
			.len = len < req->len ? len : req->len,
			.status = vreq->mapped ? BK_MAPPED : BK_UNMAPPED,
		};
		req->nextents = 1;
	}
	if (channel->at_home) {
		bk_complete(req, err);
		return;
	}
	req->mode = (uint32_t)err;
	req->msg.run = give_back;
	reactor_send(channel->channel.reactor, &req->msg);
}

static const uint8_t ops[BK_NOPS] = {
	[BK_READ] = VREQ_READ,	[BK_WRITE] = VREQ_WRITE,       [BK_FLUSH] = VREQ_FLUSH,
	[BK_UNMAP] = VREQ_TRIM, [BK_WRITE_ZEROES] = VREQ_ZERO, [BK_STATUS] = VREQ_STATUS,
};

static void begin(struct bk_req *req)
{
	struct volume_store *store = store_of(req->channel->backing);
	struct carried *carried = (struct carried *)req->room;

	*carried = (struct carried){
		.req = req,
		.vreq = {
			.op = ops[req->op],
			.flags = req->flags & BK_FUA ? VREQ_FUA : 0,
			.lba = req->off / VF_SECTOR,
			.nsectors = req->len / VF_SECTOR,
			.iov = req->iov,
			.iovcnt = req->iovcnt,
			.done = vreq_done,
		},
	};
	volume_submit(store->volume, &carried->vreq);
	bk_pool_kick(store->pool);
}

static void begin_at_home(struct reactor_msg *msg)
{
	begin(container_of(msg, struct bk_req, msg));
}

static void volume_submit_req(struct bk_channel *channel, struct bk_req *req)
{
	struct volume_channel *own = container_of(channel, struct volume_channel, channel);

	if (own->at_home) {
		begin(req);
		return;
	}
	req->msg.run = begin_at_home;
	reactor_send(bk_pool_home(store_of(channel->backing)->pool), &req->msg);
}

const struct backing_ops volume_ops = {
	.name = "volume",
	.backing_size = sizeof(struct volume_store),
	.channel_size = sizeof(struct volume_channel),
	.native = 1u << BK_READ | 1u << BK_WRITE | 1u << BK_FLUSH | 1u << BK_UNMAP |
		  1u << BK_WRITE_ZEROES | 1u << BK_STATUS,
	.native_fua = true,
	.serves = volume_serves,
	.open = volume_open,
	.close = volume_close,
	.resize = volume_resize,
	.identity = volume_identity,
	.space = volume_space,
	.attach = volume_attach,
	.detach = volume_detach,
	.submit = volume_submit_req,
};
