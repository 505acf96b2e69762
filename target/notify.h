/*
 * The service manager's readiness protocol, sd_notify(3), spoken by hand: a
 * datagram to the socket that NOTIFY_SOCKET names.  Does nothing without one.
 *
 * Control thread.
 */
#ifndef TARGET_NOTIFY_H
#define TARGET_NOTIFY_H

/* Every portal listens; status is one line for `systemctl status`. */
void notify_ready(const char *status);
/* A reload begins; notify_ready() ends it. */
void notify_reloading(void);
void notify_stopping(void);

#endif
