/* quintain volume import, export. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/option.h"
#include "target/pool_access.h"
#include "target/pool_ops.h"
#include "target/volume_command.h"
#include "target/volume_image.h"

enum { OPTION_OVERWRITE = VOLUME_OPTION_LAST, OPTION_RESUME };

static const struct option import_options[] = {
	CLIENT_OPTIONS,
	VOLUME_OPTIONS_NEW,
	{ "size", required_argument, NULL, VOLUME_OPTION_SIZE },
	{ "overwrite", no_argument, NULL, OPTION_OVERWRITE },
	{ "resume", required_argument, NULL, OPTION_RESUME },
	{ 0 },
};

static const struct option export_options[] = {
	CLIENT_OPTIONS,
	{ "overwrite", no_argument, NULL, OPTION_OVERWRITE },
	{ 0 },
};

struct copy {
	struct client_options client;
	struct pool_access access;
	struct pool_session session;
	json_t *request;
	bool overwrite, resume;
	uint64_t from; /* of resume */
	const char *file;
	int fd;
	uint64_t size; /* of the file */
	struct err err;
};

/* COMMAND_OK, or what to end with. */
static int copy_options(struct copy *copy, const struct command *command, int argc, char **argv,
			const struct option *options)
{
	int option, taken;

	*copy = (struct copy){ .request = json_object(), .fd = -1, .session.fd = -1 };
	while ((option = command_option(argc, argv, "c:", options)) != -1) {
		taken = client_option(option, &copy->client);
		if (!taken)
			taken = volume_option(option, copy->request, &copy->err);
		if (taken < 0)
			return command_usage(command, "%s", copy->err.text);
		if (taken)
			continue;
		if (option == OPTION_OVERWRITE)
			copy->overwrite = true;
		else if (option != OPTION_RESUME)
			return command_bad_option(command, argv, options);
		else if (size_parse(optarg, &copy->from) != 0 || copy->from % VF_BLOCK != 0)
			return command_usage(command, "--resume %s is not what an import said",
					     optarg);
		else
			copy->resume = true;
	}
	if (argc - optind != 2)
		return command_usage(command, "POOL/NAME and FILE are expected");
	copy->file = argv[optind + 1];
	return COMMAND_OK;
}

/* The pool, opened here. */
static int copy_open(struct copy *copy, const char *word, bool writes, const char *what)
{
	int rc = pool_access_find(&copy->access, &copy->client, word, true, &copy->err);

	if (!rc && copy->access.online)
		rc = pool_access_refuse(&copy->access, what, &copy->err);
	if (!rc)
		rc = pool_session_open(&copy->access, writes, &copy->session, &copy->err);
	return rc;
}

/* Gives up all of it; a failure to bring the pool to rest counts. */
static int copy_close(struct copy *copy, int rc)
{
	struct err err = { "" };
	int closed = pool_session_close(&copy->session, &err);

	if (!rc && closed)
		rc = err_set(&copy->err, -closed, "%s", err.text);
	if (copy->fd >= 0)
		close(copy->fd);
	json_decref(copy->request);
	pool_access_release(&copy->access);
	return rc;
}

/* ---- import ---- */

static int source_open(struct copy *copy)
{
	struct stat st;

	copy->fd = open(copy->file, O_RDONLY | O_CLOEXEC);
	if (copy->fd < 0 || fstat(copy->fd, &st) != 0)
		return err_set(&copy->err, errno, "%s: %s", copy->file, err_name(errno));
	copy->size = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(copy->fd, BLKGETSIZE64, &copy->size) != 0)
		return err_set(&copy->err, errno, "%s: its size: %s", copy->file, err_name(errno));
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(&copy->err, EINVAL, "%s is neither a file nor a block device",
			       copy->file);
	if (copy->size == 0)
		return err_set(&copy->err, EINVAL, "%s is empty", copy->file);
	posix_fadvise(copy->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static int target_create(struct copy *copy, struct volume **volume)
{
	struct volume_settings settings;
	json_int_t block = json_integer_value(json_object_get(copy->request, "block_size"));
	uint64_t whole = block == VF_BLOCK ? VF_BLOCK : VF_SECTOR;
	int rc;

	if (copy->resume)
		return err_set(&copy->err, ENOENT, "there is no volume \"%s\" to go on with",
			       copy->access.volume);
	if (!json_object_get(copy->request, "size_bytes"))
		json_object_set_new(
			copy->request, "size_bytes",
			json_integer((json_int_t)((copy->size + whole - 1) / whole * whole)));
	rc = pool_request_settings(copy->request, &settings, &copy->err);
	if (!rc && settings.nsectors * VF_SECTOR < copy->size)
		rc = err_set(&copy->err, EINVAL, "%s has %" PRIu64 " bytes: --size is less",
			     copy->file, copy->size);
	return rc ? rc
		  : volume_create(copy->session.engine, copy->access.volume, &settings, volume,
				  &copy->err);
}

static int target_judge(struct copy *copy, const struct volume *volume)
{
	struct volume_info info;

	volume_info(volume, &info);
	if (!copy->overwrite && !copy->resume)
		return err_set(&copy->err, EEXIST,
			       "volume \"%s\" exists: --overwrite replaces all that it holds, "
			       "--resume goes on with an import",
			       info.name);
	if (json_object_size(copy->request) > 0)
		return err_set(&copy->err, EINVAL,
			       "volume \"%s\" exists: its settings are not changed by an import",
			       info.name);
	if (copy->size > info.settings.nsectors * VF_SECTOR)
		return err_set(&copy->err, EFBIG,
			       "%s has %" PRIu64 " bytes, the volume %" PRIu64
			       ": `quintain volume grow` makes it larger",
			       copy->file, copy->size, info.settings.nsectors * VF_SECTOR);
	if (copy->from > copy->size)
		return err_set(&copy->err, EINVAL, "--resume is beyond the end of %s", copy->file);
	return 0;
}

static int import(struct copy *copy, const char *word)
{
	struct image_import import = { .session = &copy->session, .from = copy->from };
	int rc = source_open(copy);

	if (!rc)
		rc = copy_open(copy, word, true, "written to");
	if (rc)
		return rc;
	import.volume = volume_find(copy->session.engine, copy->access.volume);
	import.zeroes = import.volume != NULL;
	rc = import.volume ? target_judge(copy, import.volume)
			   : target_create(copy, &import.volume);
	if (rc)
		return rc;
	rc = image_import(&import, copy->fd, copy->size, &copy->err);
	if (rc)
		err_prefix(&copy->err,
			   "%" PRIu64 " bytes are in the volume, --resume %" PRIu64
			   " goes on there",
			   import.from, import.from);
	return rc;
}

int volume_import_command(const struct command *command, int argc, char **argv)
{
	struct copy copy;
	int code = copy_options(&copy, command, argc, argv, import_options), rc;

	if (code) {
		json_decref(copy.request);
		return code;
	}
	rc = copy_close(&copy, import(&copy, argv[optind]));
	return rc ? command_fail(command, "%s", copy.err.text) : COMMAND_OK;
}

/* ---- export ---- */

static int image_create(struct copy *copy)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (copy->overwrite ? 0 : O_EXCL);
	struct stat st, pool;

	copy->fd = open(copy->file, flags, 0600);
	if (copy->fd < 0 && errno == EEXIST)
		return err_set(&copy->err, EEXIST, "%s exists: --overwrite replaces it",
			       copy->file);
	if (copy->fd < 0 || fstat(copy->fd, &st) != 0)
		return err_set(&copy->err, errno, "%s: %s", copy->file, err_name(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(&copy->err, EINVAL, "%s is not a regular file", copy->file);
	if (fstat(copy->session.fd, &pool) == 0 && pool.st_dev == st.st_dev &&
	    pool.st_ino == st.st_ino)
		return err_set(&copy->err, EINVAL, "%s is the pool itself", copy->file);
	if (ftruncate(copy->fd, 0) != 0)
		return err_set(&copy->err, errno, "%s: %s", copy->file, err_name(errno));
	return 0;
}

static int export(struct copy *copy, const char *word)
{
	struct volume *volume;
	int rc = copy_open(copy, word, false, "exported");

	if (rc)
		return rc;
	volume = volume_find(copy->session.engine, copy->access.volume);
	if (!volume)
		return err_set(&copy->err, ENOENT, "there is no volume \"%s\"",
			       copy->access.volume);
	rc = image_create(copy);
	if (rc)
		return rc;
	rc = image_export(&copy->session, volume, copy->fd, &copy->err);
	if (rc) /* half an image is none */
		unlink(copy->file);
	return rc;
}

int volume_export_command(const struct command *command, int argc, char **argv)
{
	struct copy copy;
	int code = copy_options(&copy, command, argc, argv, export_options), rc;

	if (code) {
		json_decref(copy.request);
		return code;
	}
	rc = copy_close(&copy, export(&copy, argv[optind]));
	return rc ? command_fail(command, "%s", copy.err.text) : COMMAND_OK;
}
