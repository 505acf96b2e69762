/*
 * Runs a fuzz entry over its committed corpus, without libFuzzer: what a
 * fuzzer once found stays found in every plain build.
 *
 * The corpus of the program fuzz_NAME is tests/fuzz/corpus/NAME; other files
 * may be named on the command line.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* An input is read into a block of its own size, so that a checker sees its end. */
static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long len = -1;
	int rc = -1;

	if (!file)
		goto out;
	if (fseek(file, 0, SEEK_END) != 0 || (len = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET) != 0)
		goto out;
	data = malloc(len ? (size_t)len : 1);
	if (!data || fread(data, 1, (size_t)len, file) != (size_t)len)
		goto out;
	printf("# %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, (size_t)len);
	rc = 0;
out:
	if (rc != 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	free(data);
	return rc;
}

static int replay_folder(const char *folder, unsigned int *count)
{
	DIR *dir = opendir(folder);
	char path[PATH_MAX];
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		return -1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    (int)sizeof(path) ||
		    replay_file(path) != 0)
			rc = -1;
		++*count;
	}
	closedir(dir);
	return rc;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];
	char folder[PATH_MAX];
	unsigned int count = 0;
	int rc = 0;

	if (strncmp(name, "fuzz_", 5) == 0)
		name += 5;
	for (int i = 1; i < argc; i++, count++)
		if (replay_file(argv[i]) != 0)
			rc = -1;
	if (argc == 1) {
		snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", name);
		rc = replay_folder(folder, &count);
	}
	if (rc == 0 && count > 0)
		printf("ok %s_survives_its_corpus\n", name);
	else
		printf("FAIL %s_survives_its_corpus: %u inputs read\n", name, count);
	return rc == 0 && count > 0 ? 0 : 1;
}
