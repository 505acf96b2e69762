/* The state directory: see state.h. */
#include "target/state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <openssl/evp.h>

#include "target/state_file.h"

#define UUID_TEXT_LEN 36

struct state {
	char directory[PATH_MAX];
};

int state_open(const char *directory, struct state **out, struct err *err)
{
	struct state *state = calloc(1, sizeof(*state));
	char luns[PATH_MAX];
	int rc;

	if (!state)
		return err_set(err, ENOMEM, "state-dir: no memory");
	/* Room for the names below it. */
	if (strlen(directory) > sizeof(state->directory) - 128) {
		rc = err_set(err, ENAMETOOLONG, "state-dir: %s: too long", directory);
		goto fail;
	}
	snprintf(state->directory, sizeof(state->directory), "%s", directory);
	snprintf(luns, sizeof(luns), "%s/luns", directory);
	rc = state_directory_make(luns, err);
	if (rc < 0)
		goto fail;
	*out = state;
	return 0;
fail:
	err_prefix(err, "state-dir");
	free(state);
	return rc;
}

void state_close(struct state *state)
{
	free(state);
}

const char *state_directory(const struct state *state)
{
	return state->directory;
}

void state_lun_file(const struct state *state, const char *key, char *out, size_t cap)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = { 0 };
	char hex[2 * 16 + 1];

	/* The key stands in the file as well: a digest that could not be made
	 * leads to a file of another key, which is refused. */
	if (EVP_Digest(key, strlen(key), digest, NULL, EVP_sha256(), NULL) != 1)
		memset(digest, 0, sizeof(digest));
	for (size_t i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(out, cap, "%s/luns/%s.json", state->directory, hex);
}

static void uuid_format(const uint8_t uuid[16], char out[UUID_TEXT_LEN + 1])
{
	size_t pos = 0;

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[pos++] = '-';
		snprintf(out + pos, 3, "%02x", uuid[i]);
		pos += 2;
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool uuid_parse(const char *text, uint8_t uuid[16])
{
	if (!text || strlen(text) != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < 16; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = hex_digit(text[0]);
		low = hex_digit(text[1]);
		if (high < 0 || low < 0)
			return false;
		uuid[i] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	return true;
}

int state_lun_load(const struct state *state, const char *key, struct scsi_identity *identity,
		   struct err *err)
{
	char file[PATH_MAX];
	const char *kept;
	json_t *object = NULL;
	int rc;

	state_lun_file(state, key, file, sizeof(file));
	rc = state_file_read(file, &object, err);
	if (rc <= 0)
		goto out;
	kept = json_string_value(json_object_get(object, "key"));
	if (!kept || strcmp(kept, key) != 0)
		rc = err_set(err, EBADMSG, "%s is damaged (it is about %s)", file,
			     kept ? kept : "nothing");
	else if (!uuid_parse(json_string_value(json_object_get(object, "uuid")), identity->uuid))
		rc = err_set(err, EBADMSG, "%s is damaged (no uuid)", file);
out:
	if (rc < 0) {
		char why[ERR_TEXT_MAX];

		snprintf(why, sizeof(why), "%s", err ? err->text : "");
		err_set(err, -rc,
			"%s; restore it from a backup, or remove it to give the disk a new "
			"identity",
			why);
	}
	json_decref(object);
	return rc;
}

static int lun_write(const struct state *state, const char *key,
		     const struct scsi_identity *identity, struct err *err)
{
	char file[PATH_MAX], uuid[UUID_TEXT_LEN + 1];
	json_t *object;
	int rc;

	uuid_format(identity->uuid, uuid);
	object = json_pack("{s:i, s:s, s:s}", "version", STATE_VERSION, "key", key, "uuid", uuid);
	if (!object)
		return err_set(err, EINVAL, "%s: a path must be UTF-8 to be kept in the state",
			       key);
	state_lun_file(state, key, file, sizeof(file));
	rc = state_file_write(file, object, err);
	json_decref(object);
	return rc;
}

int state_lun_keep(struct state *state, const char *key, struct scsi_identity *identity,
		   struct err *err)
{
	int lock, rc;

	lock = state_lock(state->directory, err);
	if (lock < 0)
		return lock;
	rc = state_lun_load(state, key, identity, err);
	if (rc == 0)
		rc = lun_write(state, key, identity, err);
	close(lock);
	return rc < 0 ? rc : 0;
}
