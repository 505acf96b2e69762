/* quintain volume create, list, info, set, grow, delete; import and export are in
 * volume_copy.c. */
#include "target/volume_command.h"

#include <errno.h>
#include <string.h>

#include "base/option.h"
#include "target/pool_access.h"
#include "target/pool_print.h"

enum { OPTION_JSON = VOLUME_OPTION_LAST };

/* ---- settings on the command line ---- */

int volume_option(int option, json_t *request, struct err *err)
{
	static const struct {
		int option;
		const char *member, *name;
		bool text;
	} members[] = {
		{ VOLUME_OPTION_SIZE, "size_bytes", "--size", false },
		{ VOLUME_OPTION_BLOCK_SIZE, "block_size", "--block-size", false },
		{ VOLUME_OPTION_RECORD_SIZE, "record_size", "--record-size", false },
		{ VOLUME_OPTION_COMPRESSION, "compression", "--compression", true },
		{ VOLUME_OPTION_CHECKSUM, "checksum", "--checksum", true },
	};
	size_t i = 0;
	uint64_t bytes;

	while (i < sizeof(members) / sizeof(members[0]) && members[i].option != option)
		i++;
	if (i == sizeof(members) / sizeof(members[0]))
		return 0;
	if (members[i].text) {
		json_object_set_new(request, members[i].member, json_string(optarg));
		return 1;
	}
	if (size_parse(optarg, &bytes) != 0 || bytes == 0 || bytes > INT64_MAX)
		return err_set(err, EINVAL, "%s %s is not a size in bytes, such as 64K or 40G",
			       members[i].name, optarg);
	json_object_set_new(request, members[i].member, json_integer((json_int_t)bytes));
	return 1;
}

/* ---- what they have in common ---- */

struct call {
	struct client_options client;
	json_t *request, *answer;
	struct err err;
	bool json;
};

static int call_release(struct call *call, int code)
{
	json_decref(call->request);
	json_decref(call->answer);
	return code;
}

/* The options; COMMAND_OK, or what to end with. */
static int call_begin(struct call *call, const struct command *command, int argc, char **argv,
		      const struct option *options, int nwords, const char *words)
{
	int option, taken;

	*call = (struct call){ .request = json_object() };
	while ((option = command_option(argc, argv, "c:", options)) != -1) {
		if (client_option(option, &call->client))
			continue;
		if (option == OPTION_JSON) {
			call->json = true;
			continue;
		}
		taken = volume_option(option, call->request, &call->err);
		if (taken < 0)
			return command_usage(command, "%s", call->err.text);
		if (!taken)
			return command_bad_option(command, argv, options);
	}
	if (argc - optind != nwords)
		return command_usage(command, "%s expected", words);
	return COMMAND_OK;
}

static int call_run(struct call *call, const struct command *command, const char *op,
		    const char *word, bool is_volume)
{
	struct pool_access access;
	int rc = pool_access_find(&access, &call->client, word, is_volume, &call->err);

	if (!rc)
		rc = pool_access_run(&access, op, call->request, &call->answer, &call->err);
	pool_access_release(&access);
	return rc ? command_fail(command, "%s", call->err.text) : COMMAND_OK;
}

/* ---- the commands ---- */

static const struct option create_options[] = {
	CLIENT_OPTIONS,
	VOLUME_OPTIONS_NEW,
	{ "size", required_argument, NULL, VOLUME_OPTION_SIZE },
	{ 0 },
};

static int volume_create_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	int code = call_begin(&call, command, argc, argv, create_options, 1, "one POOL/NAME is");

	if (!code && !json_object_get(call.request, "size_bytes"))
		code = command_usage(command, "--size SIZE is missing");
	if (!code)
		code = call_run(&call, command, "volume-create", argv[optind], true);
	return call_release(&call, code);
}

static const struct option list_options[] = {
	CLIENT_OPTIONS,
	{ "json", no_argument, NULL, OPTION_JSON },
	{ 0 },
};

static int volume_list_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	int code = call_begin(&call, command, argc, argv, list_options, 1, "one POOL is");

	if (!code)
		code = call_run(&call, command, "volume-list", argv[optind], false);
	if (!code && call.json)
		print_json(json_pack("{s:O}", "volumes", json_object_get(call.answer, "volumes")));
	else if (!code)
		print_volumes(json_object_get(call.answer, "volumes"));
	return call_release(&call, code);
}

static int volume_info_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	int code = call_begin(&call, command, argc, argv, list_options, 1, "one POOL/NAME is");

	if (!code)
		code = call_run(&call, command, "volume-info", argv[optind], true);
	if (!code && call.json)
		print_json(json_incref(json_object_get(call.answer, "volume")));
	else if (!code)
		print_volume(json_object_get(call.answer, "volume"));
	return call_release(&call, code);
}

static const struct option set_options[] = {
	CLIENT_OPTIONS,
	VOLUME_OPTIONS_CHANGE,
	{ 0 },
};

static int volume_set_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	int code = call_begin(&call, command, argc, argv, set_options, 1, "one POOL/NAME is");

	if (!code && json_object_size(call.request) == 0)
		code = command_usage(command, "--compression or --record-size says what to change");
	if (!code)
		code = call_run(&call, command, "volume-set", argv[optind], true);
	return call_release(&call, code);
}

static const struct option plain_options[] = {
	CLIENT_OPTIONS,
	{ 0 },
};

static int volume_grow_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	uint64_t size;
	int code = call_begin(&call, command, argc, argv, plain_options, 2,
			      "POOL/NAME and SIZE are");

	if (!code && (size_parse(argv[optind + 1], &size) != 0 || size > INT64_MAX))
		code = command_usage(command, "%s is not a size such as 40G", argv[optind + 1]);
	if (code)
		return call_release(&call, code);
	json_object_set_new(call.request, "size_bytes", json_integer((json_int_t)size));
	return call_release(&call, call_run(&call, command, "volume-grow", argv[optind], true));
}

static int volume_delete_command(const struct command *command, int argc, char **argv)
{
	struct call call;
	int code = call_begin(&call, command, argc, argv, plain_options, 1, "one POOL/NAME is");

	if (!code)
		code = call_run(&call, command, "volume-delete", argv[optind], true);
	return call_release(&call, code);
}

/* ---- the table ---- */

#define HELP_POOL "POOL is a name of the configuration, or a path with a / in it.\n"
#define HELP_ASK                                                                   \
	"      --socket PATH        the control socket of the daemon\n"            \
	"  -c, --config FILE        the configuration (" CONFIG_FILE_DEFAULT ")\n" \
	"  -h, --help               this text\n"
#define HELP_CHANGE                                                                   \
	"      --compression WORD   none, lzjb, gzip[-1..9], lz4, zstd[-1..19] ...\n" \
	"      --record-size SIZE   what is compressed at once, 4K to 1M\n"
#define HELP_NEW                                                                 \
	"      --block-size BYTES   logical block, 512 or 4096; never changed\n" \
	"      --checksum WORD      xxh3 or sha256; never changed\n"

const struct command volume_commands[] = {
	{
		.name = "volume create",
		.summary = "make a volume",
		.help = "usage: quintain volume create POOL/NAME --size SIZE [OPTION]...\n"
			"\n"
			"Takes no space until it is written to.  " HELP_POOL "\n"
			"      --size SIZE          what its hosts see, such as 40G\n" HELP_CHANGE
				HELP_NEW HELP_ASK,
		.run = volume_create_command,
	},
	{
		.name = "volume list",
		.summary = "list the volumes of a pool",
		.help = "usage: quintain volume list POOL [--json] [--socket PATH | -c FILE]\n"
			"\n" HELP_POOL "\n"
			"      --json               for scripts: {\"volumes\": [...]}\n" HELP_ASK,
		.run = volume_list_command,
	},
	{
		.name = "volume info",
		.summary = "show one volume",
		.help = "usage: quintain volume info POOL/NAME [--json] [--socket PATH | -c FILE]\n"
			"\n" HELP_POOL "\n"
			"      --json               for scripts\n" HELP_ASK,
		.run = volume_info_command,
	},
	{
		.name = "volume set",
		.summary = "change how a volume stores what is written from now on",
		.help = "usage: quintain volume set POOL/NAME [OPTION]...\n"
			"\n"
			"Of a volume that is a LUN the configuration says it: change it there and "
			"reload.\n" HELP_POOL "\n" HELP_CHANGE HELP_ASK,
		.run = volume_set_command,
	},
	{
		.name = "volume grow",
		.summary = "make a volume larger",
		.help = "usage: quintain volume grow POOL/NAME SIZE [--socket PATH | -c FILE]\n"
			"\n"
			"SIZE is what it has then.  A volume is never made smaller.  Of one that "
			"is a LUN\n"
			"with a size, raise that in the configuration and reload.\n" HELP_POOL
			"\n" HELP_ASK,
		.run = volume_grow_command,
	},
	{
		.name = "volume delete",
		.summary = "delete a volume and all of its data",
		.help = "usage: quintain volume delete POOL/NAME [--socket PATH | -c FILE]\n"
			"\n"
			"At once and for good.  One that is a LUN of the configuration is "
			"refused.\n" HELP_POOL "\n" HELP_ASK,
		.run = volume_delete_command,
	},
	{
		.name = "volume import",
		.summary = "copy a raw image into a volume",
		.help = "usage: quintain volume import POOL/NAME FILE [OPTION]...\n"
			"\n"
			"Makes the volume, of the size of FILE, a raw image or a block device.  "
			"A pool that\n"
			"a daemon serves is refused.  " HELP_POOL "\n"
			"      --overwrite          into a volume that is there: all that it "
			"holds is lost\n"
			"      --resume BYTES       go on there, as an import that ended early "
			"said\n"
			"      --size SIZE          of the new volume, when it is to be "
			"larger\n" HELP_CHANGE HELP_NEW HELP_ASK,
		.run = volume_import_command,
	},
	{
		.name = "volume export",
		.summary = "copy a volume into a raw image",
		.help = "usage: quintain volume export POOL/NAME FILE [OPTION]...\n"
			"\n"
			"Makes FILE, with holes where the volume is zero.  A pool that a daemon "
			"serves is\n"
			"refused.  " HELP_POOL "\n"
			"      --overwrite          FILE may exist: it is replaced\n" HELP_ASK,
		.run = volume_export_command,
	},
	{ .name = NULL },
};
