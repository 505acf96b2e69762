/*
 * The configuration parser with whatever a file may hold: no files are read, the
 * messages are written, and what was read without errors is compared with itself.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void print(const struct config *config)
{
	char *all = NULL;
	size_t all_len = 0;
	FILE *out = open_memstream(&all, &all_len);

	if (!out)
		return;
	config_print_messages(config, out);
	fclose(out);
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct config *config = config_parse("fuzz", (const char *)data, len, true);

	print(config);
	if (config->nerrors == 0) {
		struct config_diff *diff = config_diff(config, config);

		assert(!diff->changes);
		config_diff_free(diff);
	}
	config_free(config);
	return 0;
}
