/* Readiness for the service manager: see notify.h. */
#include "target/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A manager that does not listen is none of our failures: nothing is reported. */
static void notify_send(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(addr.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* the abstract name space */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		     (const struct sockaddr *)&addr,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void notify_ready(const char *status)
{
	char text[1024];

	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\n", status);
	notify_send(text);
}

void notify_reloading(void)
{
	struct timespec ts;
	char text[128];

	/* The time orders it against the manager's own (Type=notify-reload). */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
		 (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
	notify_send(text);
}

void notify_stopping(void)
{
	notify_send("STOPPING=1\n");
}
