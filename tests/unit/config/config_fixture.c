#include "tests/unit/config/config_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

struct config *config_of(const char *text)
{
	return config_parse("test.conf", text, strlen(text), true);
}

void check_config(const struct config *config, enum config_severity severity, const char *expected,
		  unsigned int line, const char *file)
{
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	for (const struct config_message *m = config->messages; m; m = m->next)
		if (m->severity == severity)
			fprintf(out, "%u:%u: %s\n", m->pos.line, m->pos.column, m->text);
	fclose(out);
	if (strcmp(all, expected) != 0)
		printf("expected:\n%sfound:\n%s", expected, all);
	CU_assertImplementation(strcmp(all, expected) == 0, line, "the messages are as expected",
				file, "", CU_FALSE);
	free(all);
}

void check_text(const char *text, enum config_severity severity, const char *expected,
		unsigned int line, const char *file)
{
	struct config *config = config_of(text);

	check_config(config, severity, expected, line, file);
	config_free(config);
}

const char *config_path(const char *name)
{
	static char paths[4][4096];
	static unsigned int next;
	char *path = paths[next++ % 4];
	const char *scratch = getenv("TEST_TMP");

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch ? scratch : "/tmp", name);
	return path;
}

const char *config_write(const char *name, const char *text, unsigned int mode)
{
	const char *path = config_path(name);
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	CU_ASSERT_EQUAL(fclose(file), 0);
	CU_ASSERT_EQUAL(chmod(path, mode), 0);
	return path;
}
