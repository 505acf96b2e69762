/* Who else has a file or device: locks, and the names of those in the way. */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "backing/store.h"
#include "base/log.h"

int lock_file(int fd, const char *path, bool read_only, struct err *err)
{
	struct flock lock = {
		.l_type = read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET, /* from 0 on, to the end however far that is */
	};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, EBUSY,
			       "%s is in use: another LUN of this daemon, another daemon or a "
			       "virtual machine has it %s. Two writers would destroy what is on "
			       "it: stop the other one, or name the disk once and give it to "
			       "several targets",
			       path, read_only ? "open for writing" : "open");
	/* NFS without a lock service, some FUSE file systems. */
	log_warning("%s: its file system has no locks (%s): nothing keeps a second daemon from "
		    "writing to it",
		    path, err_name(errno));
	return 0;
}

int lock_not_writable(const char *path, int code, struct err *err)
{
	return err_set(
		err, code,
		"%s cannot be opened for writing: %s; make it writable, or say read-only yes", path,
		err_name(code));
}

/* Where the device is mounted, by its number in /proc/self/mountinfo. */
static bool find_mount(dev_t device, char *out, size_t cap)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, where[256];
	size_t room = 0;
	unsigned int major_no, minor_no;
	bool found = false;

	if (!f)
		return false;
	while (!found && getline(&line, &room, f) > 0)
		found = sscanf(line, "%*d %*d %u:%u %*s %255s", &major_no, &minor_no, where) == 3 &&
			makedev(major_no, minor_no) == device;
	if (found)
		snprintf(out, cap, "mounted on %s", where);
	free(line);
	fclose(f);
	return found;
}

/* The device that is built on this one (LVM, RAID, dm-crypt). */
static bool find_holder(dev_t device, char *out, size_t cap)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(device), minor(device));
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)) != NULL) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(out, cap, "part of %s", entry->d_name);
	}
	closedir(dir);
	return found;
}

int lock_device_busy(const char *path, struct err *err)
{
	char by[300] = "held by another program, or one of its partitions is";
	struct stat st;

	if (stat(path, &st) == 0 && !find_mount(st.st_rdev, by, sizeof(by)))
		find_holder(st.st_rdev, by, sizeof(by));
	return err_set(err, EBUSY,
		       "%s is in use (%s): serving it too would destroy what is on it; free it, or "
		       "serve it with read-only yes",
		       path, by);
}

int backing_canonical_path(const char *path, char *out, size_t cap, struct err *err)
{
	char real[PATH_MAX], parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	int n;

	if (realpath(path, real)) {
		n = snprintf(out, cap, "%s", real);
		goto out;
	}
	if (errno != ENOENT || name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	n = snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path + 1) : 1,
		     slash ? path : ".");
	if (n < 0 || (size_t)n >= sizeof(parent))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	if (!realpath(parent, real))
		return err_set(err, errno, "%s: its directory: %s", path, err_name(errno));
	n = snprintf(out, cap, "%s%s%s", real, strcmp(real, "/") == 0 ? "" : "/", name);
out:
	if (n < 0 || (size_t)n >= cap)
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	return 0;
}
