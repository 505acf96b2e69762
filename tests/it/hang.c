/*
 * A file system that hangs: preloaded (LD_PRELOAD), it holds up calls about
 * files below HANG_BELOW for as long as the file HANG_WHILE exists, and writes
 * a line "CALL PATH" to HANG_LOG for each.  HANG_CALL may name the only call
 * that hangs, as "open".
 *
 * It asks the kernel directly, so that it does not hold up itself.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the library calls with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
char *__realpath_chk(const char *path, char *out, size_t cap);

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool it_hangs(void)
{
	return syscall(SYS_faccessat, AT_FDCWD, getenv("HANG_WHILE"), F_OK) == 0;
}

static void hang_log(const char *call, const char *path)
{
	char line[PATH_MAX + 32];
	int len = snprintf(line, sizeof(line), "%s %s\n", call, path);
	long fd = syscall(SYS_openat, AT_FDCWD, getenv("HANG_LOG"), O_WRONLY | O_APPEND | O_CREAT,
			  0600);

	syscall(SYS_write, fd, line, len);
	syscall(SYS_close, fd);
}

static void hang(const char *call, const char *path)
{
	const char *below = getenv("HANG_BELOW"), *only = getenv("HANG_CALL");

	if (!below || strncmp(path, below, strlen(below)) != 0)
		return;
	if ((only && strcmp(only, call) != 0) || !it_hangs())
		return;
	hang_log(call, path);
	while (it_hangs())
		usleep(10000);
}

static void hang_fd(const char *call, int fd)
{
	char name[64], path[PATH_MAX];
	long len;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	len = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof(path) - 1);
	if (len < 0)
		return;
	path[len] = '\0';
	hang(call, path);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	hang("open", path);
	return REAL(open)(path, flags, mode);
}

int __open_2(const char *path, int flags)
{
	hang("open", path);
	return REAL(__open_2)(path, flags);
}

int stat(const char *path, struct stat *st)
{
	hang("stat", path);
	return REAL(stat)(path, st);
}

int access(const char *path, int mode)
{
	hang("access", path);
	return REAL(access)(path, mode);
}

char *realpath(const char *path, char *out)
{
	hang("realpath", path);
	return REAL(realpath)(path, out);
}

char *__realpath_chk(const char *path, char *out, size_t cap)
{
	hang("realpath", path);
	return REAL(__realpath_chk)(path, out, cap);
}

int fstat(int fd, struct stat *st)
{
	hang_fd("fstat", fd);
	return REAL(fstat)(fd, st);
}

int ftruncate(int fd, off_t len)
{
	hang_fd("ftruncate", fd);
	return REAL(ftruncate)(fd, len);
}
