/*
 * Making the control socket's file, without taking it from a living daemon.
 *
 * Owner: control.c.  Control thread.
 */
#ifndef TARGET_CONTROL_SOCKET_H
#define TARGET_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

/* A listening, non-blocking socket of mode 0600, or -errno; *made is its file. */
int control_socket_listen(const char *path, struct stat *made, struct err *err);
/* Removes path if it is the file made. */
void control_socket_remove(const char *path, const struct stat *made);
/* A blocking connection, or -errno. */
int control_socket_connect(const char *path, struct err *err);
/* The peer is root or runs as we do. */
bool control_socket_peer_allowed(int fd);

#endif
