/*
 * The listeners: a socket per address, watched by one reactor.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "target/iscsi/conn.h"
#include "target/iscsi/server.h"

#define BACKLOG 1024
/* Accepted in one go until the connections have their turn. */
#define ACCEPTS_MAX 64
/* With no file descriptors left it is tried again so much later. */
#define ACCEPT_RETRY_NS 100000000

/* Belongs to the control thread but for what its reactor does in accept_ready;
 * changes are made by reactor_call() there. */
struct iscsi_listener {
	struct list link; /* iscsi_server.listeners */
	struct iscsi_reactor *ir;
	struct sockaddr_storage addr;
	int fd;
	bool wanted; /* by the view that comes */
	bool busy;   /* op is under way: a poll, or the wait to try again */
	bool closing;
	bool stopped;
	uint8_t dscp;
	char group[64];
	const struct iscsi_portal_group *next_group;
	struct reactor_op op;
	struct __kernel_timespec retry;
};

static socklen_t address_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

static bool address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
		       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
	return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* ---- on the reactor ---- */

static void accept_ready(struct reactor_op *op, int res);

static void poll_again(struct iscsi_listener *listener)
{
	listener->busy = true;
	listener->op.done = accept_ready;
	io_uring_prep_poll_add(reactor_sqe(listener->ir->reactor, &listener->op), listener->fd,
			       POLLIN);
}

static void retry(struct reactor_op *op, int res)
{
	struct iscsi_listener *listener = container_of(op, struct iscsi_listener, op);

	(void)res;
	listener->busy = false;
	if (!listener->closing)
		poll_again(listener);
}

static void retry_later(struct iscsi_listener *listener)
{
	listener->busy = true;
	listener->op.done = retry;
	listener->retry.tv_nsec = ACCEPT_RETRY_NS;
	io_uring_prep_timeout(reactor_sqe(listener->ir->reactor, &listener->op), &listener->retry,
			      0, 0);
}

static void accept_ready(struct reactor_op *op, int res)
{
	struct iscsi_listener *listener = container_of(op, struct iscsi_listener, op);
	struct sockaddr_storage peer;
	socklen_t len;
	int fd;

	(void)res;
	listener->busy = false;
	if (listener->closing)
		return;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		len = sizeof(peer);
		fd = accept4(listener->fd, (struct sockaddr *)&peer, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			log_peer(LOG_LEVEL_WARNING,
				 "portal group %s: no connection can be "
				 "accepted now (%s), tried again",
				 listener->group, err_name(errno));
			retry_later(listener);
			return;
		}
		if (fd < 0)
			break;
		iscsi_conn_accept(listener->ir, fd, &peer, listener->group);
	}
	poll_again(listener);
}

static void set_dscp(struct iscsi_listener *listener, uint8_t dscp)
{
	int tos = dscp << 2;

	/* Sockets that are accepted inherit it. */
	if (listener->addr.ss_family == AF_INET6)
		setsockopt(listener->fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	else
		setsockopt(listener->fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	listener->dscp = dscp;
}

static void update(void *arg)
{
	struct iscsi_listener *listener = arg;
	const struct iscsi_portal_group *group = listener->next_group;

	snprintf(listener->group, sizeof(listener->group), "%s", group->name);
	if (group->dscp != listener->dscp)
		set_dscp(listener, group->dscp);
}

static void start(void *arg)
{
	struct iscsi_listener *listener = arg;

	update(listener);
	poll_again(listener);
}

static void stop(void *arg)
{
	struct iscsi_listener *listener = arg;

	listener->closing = true;
	if (listener->busy)
		reactor_cancel(listener->ir->reactor, &listener->op);
}

static void stopped(void *arg)
{
	struct iscsi_listener *listener = arg;

	listener->stopped = !listener->busy;
}

/* ---- on the control thread ---- */

static struct iscsi_listener *find(struct iscsi_server *server, const struct sockaddr_storage *addr)
{
	list_for_each(l, &server->listeners) {
		struct iscsi_listener *listener = container_of(l, struct iscsi_listener, link);

		if (address_equal(&listener->addr, addr))
			return listener;
	}
	return NULL;
}

static void set_reuseport(int fd, int on)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
}

/* 0 or a positive errno. */
static int bind_and_listen(int fd, const struct sockaddr_storage *addr)
{
	if (bind(fd, (const struct sockaddr *)addr, address_len(addr)) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return 0;
	return errno;
}

/*
 * The same beside those of our own sockets that will be closed when the view is
 * taken over: from every address of a port to one of them, or back.  They share
 * the port for the moment of the call only, so that another program is still
 * found.
 */
static int bind_beside_old(struct iscsi_server *server, int fd, const struct sockaddr_storage *addr)
{
	int code;

	set_reuseport(fd, 1);
	list_for_each(l, &server->listeners)
		set_reuseport(container_of(l, struct iscsi_listener, link)->fd, 1);
	code = bind_and_listen(fd, addr);
	list_for_each(l, &server->listeners)
		set_reuseport(container_of(l, struct iscsi_listener, link)->fd, 0);
	set_reuseport(fd, 0);
	return code;
}

static int listen_socket(struct iscsi_server *server, const struct sockaddr_storage *addr,
			 struct err *err)
{
	int on = 1, fd, code;
	char text[80];

	iscsi_address_text(addr, text, sizeof(text));
	fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "%s: no socket: %s", text, err_name(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* "[::]" is IPv6 only, as in ctl.conf(5): IPv4 has a listen of its own. */
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	code = bind_and_listen(fd, addr);
	if (code == EADDRINUSE && !list_empty(&server->listeners))
		code = bind_beside_old(server, fd, addr);
	if (code == 0)
		return fd;
	close(fd);
	return err_set(err, code, "cannot listen on %s: %s%s", text, err_name(code),
		       code == EADDRINUSE ? " (another program serves there)" : "");
}

static int open_listener(struct iscsi_server *server, const struct iscsi_portal *portal,
			 const struct iscsi_portal_group *group, struct err *err)
{
	struct iscsi_listener *listener;
	int fd = listen_socket(server, &portal->listen, err);

	if (fd < 0)
		return fd;
	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		close(fd);
		return err_set(err, ENOMEM, "no memory for a portal");
	}
	listener->addr = portal->listen;
	listener->fd = fd;
	listener->wanted = true;
	listener->next_group = group;
	list_add_tail(&server->listeners, &listener->link);
	return 0;
}

static void free_listener(struct iscsi_listener *listener)
{
	list_del(&listener->link);
	close(listener->fd);
	free(listener);
}

/* Those that prepare has opened and commit has not started. */
static void forget_new(struct iscsi_server *server)
{
	list_for_each_safe(l, &server->listeners) {
		struct iscsi_listener *listener = container_of(l, struct iscsi_listener, link);

		if (!listener->ir)
			free_listener(listener);
	}
}

int iscsi_portals_prepare(struct iscsi_server *server, const struct iscsi_view *view,
			  struct err *err)
{
	list_for_each(l, &server->listeners)
		container_of(l, struct iscsi_listener, link)->wanted = false;
	for (uint32_t g = 0; g < view->ngroups; g++) {
		const struct iscsi_portal_group *group = &view->groups[g];

		for (uint32_t p = 0; p < group->nportals; p++) {
			struct iscsi_listener *listener = find(server, &group->portals[p].listen);
			int ret = 0;

			if (listener) {
				listener->wanted = true;
				listener->next_group = group;
			} else {
				ret = open_listener(server, &group->portals[p], group, err);
			}
			if (ret < 0) {
				forget_new(server);
				return ret;
			}
		}
	}
	return 0;
}

static void close_listener(struct iscsi_listener *listener)
{
	char text[80];

	iscsi_address_text(&listener->addr, text, sizeof(text));
	if (listener->ir) {
		reactor_call(listener->ir->reactor, stop, listener);
		/* What was cancelled ends in the reactor's next iterations. */
		do {
			reactor_call(listener->ir->reactor, stopped, listener);
		} while (!listener->stopped);
		log_info("%s: no longer listening", text);
	}
	free_listener(listener);
}

void iscsi_portals_commit(struct iscsi_server *server)
{
	list_for_each_safe(l, &server->listeners) {
		struct iscsi_listener *listener = container_of(l, struct iscsi_listener, link);
		char text[80];

		if (!listener->wanted) {
			close_listener(listener);
		} else if (listener->ir) {
			reactor_call(listener->ir->reactor, update, listener);
		} else {
			iscsi_address_text(&listener->addr, text, sizeof(text));
			listener->ir = server->reactor[server->next_reactor++ % server->nreactors];
			reactor_call(listener->ir->reactor, start, listener);
			log_info("%s: listening for portal group %s", text, listener->group);
		}
	}
}

void iscsi_portals_close(struct iscsi_server *server)
{
	list_for_each_safe(l, &server->listeners)
		close_listener(container_of(l, struct iscsi_listener, link));
}
