/* quintain check, quintain version. */
#include "target/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"
#include "version.h"

static const struct option no_options[] = { { 0 } };

static void count(const struct config *config, unsigned int *targets, unsigned int *luns,
		  unsigned int *portals)
{
	*targets = *luns = *portals = 0;
	for (const struct config_target *t = config->targets; t; t = t->next)
		++*targets;
	for (const struct config_lun *l = config->luns; l; l = l->next)
		++*luns;
	for (const struct config_portal_group *g = config->portal_groups; g; g = g->next)
		for (const struct config_listen *l = g->listens; l; l = l->next)
			++*portals;
}

static const char *plural(unsigned int n)
{
	return n == 1 ? "" : "s";
}

int command_check(const struct command *command, int argc, char **argv)
{
	unsigned int targets, luns, portals;
	struct config *config;
	struct jobs *jobs;
	int code = COMMAND_OK;

	if (command_option(argc, argv, "", no_options) != -1)
		return command_bad_option(command, argv, no_options);
	if (argc - optind > 1)
		return command_usage(command, "one FILE is expected, not %d", argc - optind);
	jobs = jobs_create();
	if (!jobs)
		return command_fail(command, "no memory");
	config = config_load(optind < argc ? argv[optind] : CONFIG_FILE_DEFAULT, jobs);
	jobs_destroy(jobs);
	config_print_messages(config, stderr);
	if (config->nerrors > 0) {
		fprintf(stderr, "%s: %u error%s, %u warning%s\n", config->file, config->nerrors,
			plural(config->nerrors), config->nwarnings, plural(config->nwarnings));
		code = COMMAND_FAILED;
	} else {
		count(config, &targets, &luns, &portals);
		printf("%s: %u target%s, %u LUN%s, %u portal%s, %u warning%s\n", config->file,
		       targets, plural(targets), luns, plural(luns), portals, plural(portals),
		       config->nwarnings, plural(config->nwarnings));
	}
	config_free(config);
	return code;
}

int command_version(const struct command *command, int argc, char **argv)
{
	if (command_option(argc, argv, "", no_options) != -1)
		return command_bad_option(command, argv, no_options);
	if (optind < argc)
		return command_usage(command, "unexpected %s", argv[optind]);
	printf("quintain %s\n", QUINTAIN_VERSION);
	return COMMAND_OK;
}
