/* The table of subcommands: see command.h. */
#include "target/command.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/option.h"

const struct command commands[] = {
	{
		.name = "serve",
		.summary = "serve disks in the foreground",
		.help = "usage: quintain serve -c FILE\n"
			"       quintain serve [OPTION]... IMAGE...\n"
			"\n"
			"Serves what the configuration FILE says, or files and block devices as "
			"LUN 0,\n"
			"1, ... of one target without a configuration file.  Says \"ready\" on "
			"stderr once\n"
			"every portal listens.  SIGTERM and SIGINT end it, SIGHUP reloads.\n"
			"\n"
			"  -c, --config FILE        the configuration\n"
			"      --listen ADDR:PORT   of IMAGE...: where to listen (127.0.0.1:3260)\n"
			"      --iqn IQN            of IMAGE...: the target's name (of this host's "
			"name)\n"
			"      --size SIZE          of IMAGE...: make missing files of this size "
			"such as 1G\n"
			"      --block-size BYTES   of IMAGE...: logical block, 512 or 4096\n"
			"      --read-only          of IMAGE...: refuse writes\n"
			"      --state-dir DIR      of IMAGE...: where identities are kept\n"
			"  -h, --help               this text\n",
		.run = command_serve,
	},
	{
		.name = "check",
		.summary = "check a configuration file",
		.help = "usage: quintain check [FILE]\n"
			"\n"
			"Reads a configuration (" CONFIG_FILE_DEFAULT " when none is given)\n"
			"and shows every error and warning with its line.  Exits with 0 when it "
			"could be\n"
			"served, warnings or not, and with 1 when it has errors.\n"
			"\n"
			"  -h, --help               this text\n",
		.run = command_check,
	},
	{
		.name = "status",
		.summary = "show what a running daemon serves, and to whom",
		.help = "usage: quintain status [--json] [--socket PATH | -c FILE]\n"
			"\n"
			"Asks the daemon at the control socket for its portals, targets, LUNs, "
			"sessions\n"
			"and reactors.\n"
			"\n"
			"      --json               the daemon's answer as it is\n"
			"      --socket PATH        the control socket\n"
			"  -c, --config FILE        the configuration that names the control "
			"socket\n"
			"                           (" CONFIG_FILE_DEFAULT ")\n"
			"  -h, --help               this text\n",
		.run = command_status,
	},
	{
		.name = "reload",
		.summary = "have a running daemon read its configuration again",
		.help = "usage: quintain reload [--socket PATH | -c FILE]\n"
			"\n"
			"As SIGHUP does, but tells the outcome: a file with errors is refused "
			"whole, its\n"
			"messages are shown, and the exit status is 1.\n"
			"\n"
			"      --socket PATH        the control socket\n"
			"  -c, --config FILE        the configuration that names the control "
			"socket\n"
			"                           (" CONFIG_FILE_DEFAULT ")\n"
			"  -h, --help               this text\n",
		.run = command_reload,
	},
	{
		.name = "pool",
		.summary = "make, look at, check and grow pools of volumes",
		.subcommands = pool_commands,
	},
	{
		.name = "volume",
		.summary = "make, change, delete, import and export volumes",
		.subcommands = volume_commands,
	},
	{
		.name = "version",
		.summary = "show the version",
		.help = "usage: quintain version\n"
			"\n"
			"  -h, --help               this text\n",
		.run = command_version,
	},
	{ .name = NULL },
};

static void print_help(FILE *out)
{
	fputs("usage: quintain COMMAND [OPTION]...\n\n"
	      "quintain serves files and block devices as iSCSI disks.\n\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("\n\"quintain COMMAND --help\" tells more; so does quintain(8).\n", out);
}

/* The last word of a name: "create" of "pool create". */
static const char *last_word(const struct command *command)
{
	const char *space = strrchr(command->name, ' ');

	return space ? space + 1 : command->name;
}

static int unknown(const struct command *table, const char *of, const char *word)
{
	const char *names[ARRAY_LEN(commands)], *near;
	size_t n = 0;

	for (const struct command *c = table; c->name && n < ARRAY_LEN(names); c++)
		names[n++] = last_word(c);
	near = option_nearest(word, names, n);
	fprintf(stderr, "quintain%s: there is no command %s", of, word);
	if (near)
		fprintf(stderr, "; did you mean \"%s\"?", near);
	fprintf(stderr, "\n\"quintain%s --help\" lists them.\n", of);
	return COMMAND_USAGE;
}

/* "--help" anywhere before "--" wins over everything else. */
static int help_wanted(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return 1;
	return 0;
}

static int command_run(const struct command *c, int argc, char **argv)
{
	if (!help_wanted(argc, argv))
		return c->run(c, argc, argv);
	fputs(c->help, stdout);
	return COMMAND_OK;
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static void print_subcommands(const struct command *parent, FILE *out)
{
	fprintf(out, "usage: quintain %s COMMAND [OPTION]...\n\n", parent->name);
	for (const struct command *c = parent->subcommands; c->name; c++)
		fprintf(out, "  %-10s %s\n", last_word(c), c->summary);
	fprintf(out, "\n\"quintain %s COMMAND --help\" tells more; so does quintain(8).\n",
		parent->name);
}

static int subcommand_main(const struct command *parent, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	char of[32];

	if (!word || asks_help(word)) {
		print_subcommands(parent, word ? stdout : stderr);
		return word ? COMMAND_OK : COMMAND_USAGE;
	}
	for (const struct command *c = parent->subcommands; c->name; c++)
		if (strcmp(word, last_word(c)) == 0)
			return command_run(c, argc - 1, argv + 1);
	snprintf(of, sizeof(of), " %s", parent->name);
	return unknown(parent->subcommands, of, word);
}

int command_main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		print_help(stderr);
		return COMMAND_USAGE;
	}
	if (asks_help(word)) {
		print_help(stdout);
		return COMMAND_OK;
	}
	if (strcmp(word, "--version") == 0)
		word = "version";
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(word, c->name) == 0)
			return c->subcommands ? subcommand_main(c, argc - 1, argv + 1)
					      : command_run(c, argc - 1, argv + 1);
	return unknown(commands, "", word);
}

static void complain(const struct command *command, const char *fmt, va_list ap)
{
	fprintf(stderr, "quintain %s: ", command->name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

int command_usage(const struct command *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(command, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\"quintain %s --help\" tells more.\n", command->name);
	return COMMAND_USAGE;
}

int command_fail(const struct command *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(command, fmt, ap);
	va_end(ap);
	return COMMAND_FAILED;
}

int command_option(int argc, char **argv, const char *short_options, const struct option *options)
{
	opterr = 0;
	return getopt_long(argc, argv, short_options, options, NULL);
}

int command_bad_option(const struct command *command, char **argv, const struct option *options)
{
	const char *word = argv[optind - 1], *names[32], *near;
	size_t n = 0;

	/* getopt_long() sets optopt to the letter, or value, of an option that it
	 * knows and that lacks its argument or has one too many. */
	for (const struct option *o = options; o->name && n < 32; o++) {
		names[n++] = o->name;
		if (optopt != 0 && optopt == o->val)
			return command_usage(command, "--%s: %s", o->name,
					     o->has_arg ? "its value is missing"
							: "takes no value");
	}
	if (strncmp(word, "--", 2) != 0)
		return command_usage(command, "unknown option -%c", optopt);
	near = option_nearest(word + 2, names, n);
	return command_usage(command, "unknown option %s%s%s%s", word,
			     near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}
