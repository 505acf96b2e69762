/* The service manager hears what systemd's protocol says. */
#include "tests/unit/quintain_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "target/notify.h"
#include "tests/unit/target/scratch.h"

/* A manager's socket; its name is in NOTIFY_SOCKET. */
static int manager(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char path[PATH_MAX];

	scratch_path(name, path, sizeof(path));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", path);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	return fd;
}

static const char *heard(int fd)
{
	static char text[2048];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void manager_hears_ready_with_status(void)
{
	int fd = manager("ready");

	notify_ready("all well");
	CU_ASSERT_STRING_EQUAL(heard(fd), "READY=1\nSTATUS=all well\n");
	close(fd);
}

static void manager_hears_reload_with_its_time(void)
{
	int fd = manager("reload");
	unsigned long long usec = 0;

	notify_reloading();
	CU_ASSERT_EQUAL(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%llu", &usec), 1);
	CU_ASSERT(usec > 0);
	close(fd);
}

static void manager_hears_stopping(void)
{
	int fd = manager("stop");

	notify_stopping();
	CU_ASSERT_STRING_EQUAL(heard(fd), "STOPPING=1\n");
	close(fd);
}

static void nothing_happens_without_a_manager(void)
{
	unsetenv("NOTIFY_SOCKET");
	notify_ready("unheard");
	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	notify_ready("unheard");
	CU_PASS("still here");
}

static const struct test tests[] = {
	TEST(manager_hears_ready_with_status),
	TEST(manager_hears_reload_with_its_time),
	TEST(manager_hears_stopping),
	TEST(nothing_happens_without_a_manager),
};
TEST_MAIN(tests)
