/* A configuration without a file, for `quintain serve IMAGE...`; and where its
 * state goes: see config.h. */
#include "config/parser.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "target/iscsi/names.h"

#define DEFAULT_LISTEN "127.0.0.1:3260"
#define DEFAULT_IQN    "iqn.2026-11.org.quintain:"

/* "Host_Name.example" -> "host-name.example": what an iSCSI name may hold. */
static const char *default_iqn(struct arena *arena)
{
	char host[HOST_NAME_MAX + 1] = "", iqn[sizeof(DEFAULT_IQN) + HOST_NAME_MAX];

	if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
		snprintf(host, sizeof(host), "disk");
	for (char *c = host; *c; c++) {
		unsigned char byte = (unsigned char)*c;

		*c = isascii(byte) && (isalnum(byte) || byte == '.') ? (char)tolower(byte) : '-';
	}
	snprintf(iqn, sizeof(iqn), "%s%s", DEFAULT_IQN, host);
	return arena_strdup(arena, iqn);
}

static int name_target(struct arena *arena, const char *given, const char **name, struct err *err)
{
	char normal[ISCSI_NAME_LEN_MAX + 1];

	if (!given)
		given = default_iqn(arena);
	if (iscsi_name_normalize(given, normal, sizeof(normal), err) != 0) {
		err_prefix(err, "--iqn");
		return -EINVAL;
	}
	*name = arena_strdup(arena, normal);
	return 0;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
	       strcmp(host, "localhost") == 0;
}

static int add_portal(struct parser *parser, const char *address, struct config_portal_group **out,
		      struct err *err)
{
	struct config *config = parser->config;
	struct config_pos pos = { .file = config->file };
	struct config_portal_group *group = config_portal_group_make(parser, "images", pos);
	struct config_listen *listen = arena_alloc(config->arena, sizeof(*listen));

	listen->pos = pos;
	if (config_address_parse(config->arena,
				 arena_strdup(config->arena, address ? address : DEFAULT_LISTEN),
				 listen, err) != 0) {
		err_prefix(err, "--listen");
		return -EINVAL;
	}
	if (!is_loopback(listen->host))
		config_warning(config, pos,
			       "--listen %s: whoever reaches this address can read and change the "
			       "disks without a password; a configuration file with CHAP keeps "
			       "others out",
			       address);
	group->listens = listen;
	group->discovery_auth = config_name_find(parser, NAME_AUTH_GROUP, "no-authentication");
	group->nports = 1;
	config_portal_group_link(parser, group);
	*out = group;
	return 0;
}

static int set_store(struct backing_settings *backing, const struct config_simple *simple,
		     struct err *err)
{
	uint32_t block_size = simple->block_size ? simple->block_size : 512;

	if (block_size != 512 && block_size != 4096)
		return err_set(err, EINVAL, "--block-size: %" PRIu32 " is not 512 or 4096",
			       block_size);
	if (simple->size % block_size != 0)
		return err_set(err, EINVAL,
			       "--size: %" PRIu64 " is not a multiple of the block size %" PRIu32,
			       simple->size, block_size);
	backing->size = simple->size;
	backing->block_size = block_size;
	backing->read_only = simple->read_only;
	return 0;
}

static int add_lun(struct parser *parser, struct config_target *target,
		   const struct config_simple *simple, unsigned int i, struct err *err)
{
	struct config *config = parser->config;
	struct config_pos pos = { .file = config->file };
	struct config_lun *lun;
	struct err name;

	snprintf(name.text, sizeof(name.text), "%s,lun,%u", target->name, i);
	lun = config_lun_make(parser, arena_strdup(config->arena, name.text), pos);
	lun->path_pos = pos;
	lun->nmaps = 1;
	lun->backing.path = arena_strdup(config->arena, simple->images[i]);
	*parser->luns_end = lun;
	parser->luns_end = &lun->next;
	config_target_map(parser, target, (uint16_t)i, pos)->lun = lun;
	return set_store(&lun->backing, simple, err);
}

static int add_target(struct parser *parser, const struct config_simple *simple, const char *name,
		      struct config_portal_group *group, struct err *err)
{
	struct config *config = parser->config;
	struct target_entry *entry =
		config_target_make(parser, name, (struct config_pos){ .file = config->file });
	struct config_target *target = entry->target;
	int rc = 0;

	target->auth = config_name_find(parser, NAME_AUTH_GROUP, "no-authentication");
	target->ports = arena_alloc(config->arena, sizeof(*target->ports));
	target->ports->pos = target->pos;
	target->ports->group = group;
	target->ports->auth = target->auth;
	config_target_link(parser, entry);
	for (unsigned int i = 0; rc == 0 && i < simple->nimages; i++)
		rc = add_lun(parser, target, simple, i, err);
	return rc;
}

static int first_error(const struct config *config, struct err *err)
{
	for (const struct config_message *m = config->messages; m; m = m->next)
		if (m->severity == CONFIG_ERROR)
			return err_set(err, EINVAL, "%s", m->text);
	return 0;
}

static int build(struct parser *parser, const struct config_simple *simple, struct err *err)
{
	struct config_portal_group *group;
	const char *name;
	int rc;

	if (simple->nimages == 0 || simple->nimages > 16384)
		return err_set(err, EINVAL, "1 to 16384 images can be served");
	rc = name_target(parser->config->arena, simple->iqn, &name, err);
	if (rc == 0)
		rc = add_portal(parser, simple->listen, &group, err);
	if (rc == 0)
		rc = add_target(parser, simple, name, group, err);
	if (rc == 0) {
		config_check(parser);
		rc = first_error(parser->config, err);
	}
	return rc;
}

struct config *config_from_images(const struct config_simple *simple, struct jobs *jobs,
				  struct err *err)
{
	struct arena *arena = arena_create();
	struct config *config = arena_alloc(arena, sizeof(*config));
	struct parser parser;
	int rc;

	config->arena = arena;
	config->file = "command line";
	config_parser_init(&parser, config, false);
	parser.jobs = jobs;
	rc = build(&parser, simple, err);
	config_parser_release(&parser);
	if (rc == 0)
		return config;
	config_free(config);
	return NULL;
}

int config_state_dir(const struct config *config, char *out, size_t cap, struct err *err)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int len;

	if (config->global.state_dir)
		len = snprintf(out, cap, "%s", config->global.state_dir);
	else if (geteuid() == 0)
		len = snprintf(out, cap, "/var/lib/quintain");
	else if (xdg && xdg[0] == '/') /* others are to be ignored, says the XDG rule */
		len = snprintf(out, cap, "%s/quintain", xdg);
	else if (home && home[0] == '/')
		len = snprintf(out, cap, "%s/.local/state/quintain", home);
	else
		return err_set(err, ENOENT,
			       "no place for the state directory: HOME is not set; give state-dir");
	if (len < 0 || (size_t)len >= cap)
		return err_set(err, ENAMETOOLONG, "the name of the state directory is too long");
	return 0;
}
