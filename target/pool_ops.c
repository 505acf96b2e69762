/* Operations on pools and volumes: see pool_ops.h. */
#include "target/pool_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "target/control.h"

#define RECORD_SIZE_DEFAULT (16u << 10)

/* ---- requests ---- */

const char *pool_request_text(const json_t *request, const char *member)
{
	return json_string_value(json_object_get(request, member));
}

/* *out is left as it is when there is no such member. */
static int number_get(const json_t *request, const char *member, uint64_t max, uint64_t *out,
		      struct err *err)
{
	const json_t *value = json_object_get(request, member);

	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max)
		return err_set(err, EINVAL, "%s: a whole number from 0 to %" PRIu64 " is expected",
			       member, max);
	*out = (uint64_t)json_integer_value(value);
	return 0;
}

static int size_get(const json_t *request, uint64_t *size, struct err *err)
{
	int rc = number_get(request, "size_bytes", INT64_MAX, size, err);

	if (!rc && *size == 0)
		return err_set(err, EINVAL, "a size is expected (size_bytes)");
	return rc;
}

static int codec_get(const json_t *request, struct codec_choice *codec, struct err *err)
{
	const char *text = pool_request_text(request, "compression");

	return text ? codec_parse(text, codec, err) : 0;
}

static const char *const checksums[] = { [VF_XXH3] = "xxh3", [VF_SHA256] = "sha256" };

static int checksum_get(const json_t *request, uint8_t *checksum, struct err *err)
{
	const char *text = pool_request_text(request, "checksum");

	if (!text)
		return 0;
	for (uint8_t i = 0; i < ARRAY_LEN(checksums); i++)
		if (strcmp(text, checksums[i]) == 0) {
			*checksum = i;
			return 0;
		}
	return err_set(err, EINVAL, "checksum: %s is not xxh3 or sha256", text);
}

int pool_request_settings(const json_t *request, struct volume_settings *settings, struct err *err)
{
	uint64_t size = 0, block = 512, record = RECORD_SIZE_DEFAULT;
	int rc = size_get(request, &size, err);

	*settings = (struct volume_settings){ .checksum = VF_XXH3 };
	if (!rc)
		rc = number_get(request, "block_size", UINT32_MAX, &block, err);
	if (!rc)
		rc = number_get(request, "record_size", UINT32_MAX, &record, err);
	if (!rc)
		rc = codec_parse("lz4", &settings->codec, err);
	if (!rc)
		rc = codec_get(request, &settings->codec, err);
	if (!rc)
		rc = checksum_get(request, &settings->checksum, err);
	if (!rc && size % VF_SECTOR != 0)
		rc = err_set(err, EINVAL, "a size of %" PRIu64 " bytes is not whole blocks", size);
	settings->nsectors = size / VF_SECTOR;
	settings->block_len = (uint32_t)block;
	settings->record_len = (uint32_t)record;
	return rc;
}

static int volume_get_named(struct pool *engine, const json_t *request, struct volume **out,
			    struct err *err)
{
	const char *name = pool_request_text(request, "volume");

	if (!name)
		return err_set(err, EINVAL, "the name of a volume is expected (volume)");
	*out = volume_find(engine, name);
	return *out ? 0 : err_set(err, ENOENT, "there is no volume \"%s\"", name);
}

/* ---- answers ---- */

static json_t *uuid_text(const uint8_t uuid[16])
{
	char text[37];
	size_t n = 0;

	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return json_string(text);
}

static void number_tell(json_t *answer, const char *member, uint64_t value)
{
	json_object_set_new(answer, member, json_integer((json_int_t)value));
}

void pool_info_tell(const struct pool_info *info, json_t *answer)
{
	json_object_set_new(answer, "uuid", uuid_text(info->uuid));
	number_tell(answer, "size_bytes", info->len);
	number_tell(answer, "host_bytes", info->host_len);
	number_tell(answer, "used_bytes", info->used);
	number_tell(answer, "available_bytes", info->available);
	number_tell(answer, "map_bytes", info->map_bytes);
	number_tell(answer, "mapped_bytes", info->mapped);
	number_tell(answer, "stored_bytes", info->stored);
	number_tell(answer, "volumes", info->nvolumes);
	number_tell(answer, "segment_bytes", info->segment_len);
	number_tell(answer, "segments", info->nsegments);
	number_tell(answer, "segments_free", info->segments_free);
	number_tell(answer, "replay_bytes", info->replay_bytes);
	number_tell(answer, "memory_bytes", info->memory);
	json_object_set_new(answer, "read_only",
			    info->read_only && !info->read_only_asked
				    ? control_text(info->why_read_only)
				    : json_null());
}

static json_t *volume_tell(const struct volume *volume)
{
	json_t *answer = json_object();
	struct volume_info info;
	char codec[CODEC_TEXT_MAX];

	volume_info(volume, &info);
	codec_format(&info.settings.codec, codec);
	json_object_set_new(answer, "name", control_text(info.name));
	json_object_set_new(answer, "uuid", uuid_text(info.uuid));
	number_tell(answer, "size_bytes", info.settings.nsectors * VF_SECTOR);
	number_tell(answer, "block_size", info.settings.block_len);
	number_tell(answer, "record_size", info.settings.record_len);
	json_object_set_new(answer, "compression", json_string(codec));
	json_object_set_new(answer, "checksum", json_string(checksums[info.settings.checksum]));
	number_tell(answer, "mapped_bytes", info.mapped);
	number_tell(answer, "stored_bytes", info.stored);
	number_tell(answer, "created_s", info.created_s);
	return answer;
}

/* ---- operations ---- */

static int run_status(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	struct pool_info info;

	(void)request;
	(void)err;
	pool_info(engine, &info);
	pool_info_tell(&info, answer);
	return 0;
}

static int run_grow(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	uint64_t size = 0;
	int rc = size_get(request, &size, err);

	if (!rc)
		rc = pool_grow(engine, size, err);
	return rc ? rc : run_status(engine, request, answer, err);
}

static int run_list(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	json_t *list = json_array();

	(void)request;
	(void)err;
	for (struct volume *v = volume_next(engine, NULL); v; v = volume_next(engine, v))
		json_array_append_new(list, volume_tell(v));
	json_object_set_new(answer, "volumes", list);
	return 0;
}

static int run_create(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	const char *name = pool_request_text(request, "volume");
	struct volume_settings settings;
	struct volume *volume;
	int rc = pool_request_settings(request, &settings, err);

	if (!rc && !name)
		rc = err_set(err, EINVAL, "the name of a volume is expected (volume)");
	if (!rc)
		rc = volume_create(engine, name, &settings, &volume, err);
	if (!rc)
		json_object_set_new(answer, "volume", volume_tell(volume));
	return rc;
}

static int run_info(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	struct volume *volume;
	int rc = volume_get_named(engine, request, &volume, err);

	if (!rc)
		json_object_set_new(answer, "volume", volume_tell(volume));
	return rc;
}

/* Changes what may be changed, and holds the volume while it waits. */
static int settings_change(struct volume *volume, const struct volume_settings *settings,
			   json_t *answer, struct err *err)
{
	int rc = volume_get(volume, err);

	if (rc)
		return rc;
	rc = volume_set(volume, settings, err);
	if (!rc)
		json_object_set_new(answer, "volume", volume_tell(volume));
	volume_put(volume);
	return rc;
}

static int run_set(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	struct volume *volume;
	struct volume_info info;
	uint64_t record;
	int rc = volume_get_named(engine, request, &volume, err);

	if (rc)
		return rc;
	volume_info(volume, &info);
	record = info.settings.record_len;
	rc = number_get(request, "record_size", UINT32_MAX, &record, err);
	if (!rc)
		rc = codec_get(request, &info.settings.codec, err);
	info.settings.record_len = (uint32_t)record;
	return rc ? rc : settings_change(volume, &info.settings, answer, err);
}

static int run_volume_grow(struct pool *engine, const json_t *request, json_t *answer,
			   struct err *err)
{
	struct volume *volume;
	struct volume_info info;
	uint64_t size = 0;
	int rc = volume_get_named(engine, request, &volume, err);

	if (!rc)
		rc = size_get(request, &size, err);
	if (rc)
		return rc;
	volume_info(volume, &info);
	if (size % info.settings.block_len != 0)
		return err_set(err, EINVAL, "a size of %" PRIu64 " bytes is not whole blocks of %u",
			       size, info.settings.block_len);
	info.settings.nsectors = size / VF_SECTOR;
	return settings_change(volume, &info.settings, answer, err);
}

static int run_delete(struct pool *engine, const json_t *request, json_t *answer, struct err *err)
{
	struct volume *volume;
	int rc = volume_get_named(engine, request, &volume, err);

	(void)answer;
	return rc ? rc : volume_delete(volume, err);
}

/* ---- what the configuration settles ---- */

static bool always(const struct config_lun *lun)
{
	(void)lun;
	return true;
}

static bool when_sized(const struct config_lun *lun)
{
	return lun->backing.size != 0;
}

const struct config_lun *pool_op_lun(const struct config *config, const char *pool,
				     const char *volume)
{
	size_t len = strlen(pool);

	for (const struct config_lun *lun = config->luns; lun; lun = lun->next) {
		const char *of = lun->backing.volume;

		if (of && strncmp(of, pool, len) == 0 && of[len] == '/' &&
		    strcmp(of + len + 1, volume) == 0)
			return lun;
	}
	return NULL;
}

int pool_op_judge(const struct pool_op *op, const struct config *config, const char *pool,
		  const char *volume, struct err *err)
{
	const struct config_lun *lun;

	if (!volume || !op->settled_by)
		return 0;
	lun = pool_op_lun(config, pool, volume);
	if (!lun || !op->settled_by(lun))
		return 0;
	return err_set(err, EBUSY, "%s/%s is LUN %s of %s, line %u: %s", pool, volume, lun->name,
		       lun->pos.file, lun->pos.line, op->instead);
}

static const struct pool_op pool_ops[] = {
	{ .name = "pool-info", .run = run_status },
	{ .name = "pool-grow", .writes = true, .run = run_grow },
	{ .name = "volume-list", .run = run_list },
	{ .name = "volume-info", .run = run_info },
	{ .name = "volume-create", .writes = true, .run = run_create },
	{ .name = "volume-set",
	  .writes = true,
	  .run = run_set,
	  .settled_by = always,
	  .instead = "what it says counts; change it there and reload" },
	{ .name = "volume-grow",
	  .writes = true,
	  .run = run_volume_grow,
	  .settled_by = when_sized,
	  .instead = "raise its size there and reload" },
	{ .name = "volume-delete",
	  .writes = true,
	  .run = run_delete,
	  .settled_by = always,
	  .instead = "take it out there and reload before it is deleted" },
};

const struct pool_op *pool_op_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(pool_ops); i++)
		if (strcmp(pool_ops[i].name, name) == 0)
			return &pool_ops[i];
	return NULL;
}
