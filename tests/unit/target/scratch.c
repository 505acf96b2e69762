#include "tests/unit/target/scratch.h"

#include <assert.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/quintain-test-XXXXXX";
static int made;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_all(void)
{
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_directory(void)
{
	if (!made) {
		assert(mkdtemp(directory));
		made = 1;
		atexit(remove_all);
	}
	return directory;
}

void scratch_path(const char *name, char *out, size_t cap)
{
	snprintf(out, cap, "%s/%s", scratch_directory(), name);
}

void scratch_write(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	scratch_path(name, path, sizeof(path));
	f = fopen(path, "w");
	assert(f);
	fputs(text, f);
	fclose(f);
}
