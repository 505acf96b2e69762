/* Names of files in their directories. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backing/store.h"

/* The new name must survive a crash as well as what is then put into it. */
int store_sync_directory(const char *path, struct err *err)
{
	char parent[PATH_MAX];
	char *slash;
	int fd, rc = 0;

	if (snprintf(parent, sizeof(parent), "./%s", path) >= (int)sizeof(parent))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	memmove(parent, path[0] == '/' ? parent + 2 : parent, sizeof(parent) - 2);
	slash = strrchr(parent, '/');
	slash[slash == parent] = '\0';
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		rc = err_set(err, errno, "%s: %s", parent, err_name(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

int store_may_create(const char *path, bool must_exist, struct err *err)
{
	char canonical[PATH_MAX];
	int rc = backing_canonical_path(path, canonical, sizeof(canonical), err);

	if (rc < 0)
		return rc;
	if (strncmp(canonical, "/dev/", 5) == 0)
		return err_set(err, ENOENT,
			       "%s does not exist; no file is created below /dev, where it would "
			       "take the place of a device that comes late",
			       path);
	if (must_exist)
		return err_set(err, ENOENT,
			       "%s does not exist but has been served before: the disk below it is "
			       "not mounted, or the file is lost; it is not begun anew",
			       path);
	return 0;
}
