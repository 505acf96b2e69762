/*
 * Inside of the iSCSI server: what its files share.  The outside is iscsi.h.
 *
 * struct iscsi_server is made by the control thread.  What reactors share is
 * the view (read through an atomic pointer within one callback), the registry
 * of sessions (session.c, under its mutex, touched at login and logout only)
 * and a few atomic counters that bound the daemon.  All else hangs on a
 * struct iscsi_reactor and belongs to that reactor's thread.
 */
#ifndef ISCSI_SERVER_H
#define ISCSI_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/slab.h"
#include "target/iscsi/conn_tx.h"
#include "target/iscsi/iscsi.h"

#define ISCSI_REGISTRY_BUCKETS 1024

struct iscsi_conn;

/* A target as sessions know it; counted by views and sessions. */
struct iscsi_target {
	atomic_uint refs;
	struct iscsi_server *server;
	struct scsi_target *scsi;
	char name[ISCSI_NAME_MAX + 1];
};

static inline struct iscsi_target *iscsi_target_get(struct iscsi_target *target)
{
	atomic_fetch_add(&target->refs, 1);
	return target;
}

/* Counters of one reactor, plain; the reader sums. */
struct iscsi_reactor_stats {
	uint64_t connections, logins, logins_failed, sessions, pdus_in, pdus_out;
	uint64_t bytes_in, bytes_out, digest_errors, rejects, connections_dropped;
};

struct iscsi_reactor {
	struct iscsi_server *server;
	struct reactor *reactor;
	unsigned int index;
	struct slab *tasks;	 /* command slots */
	struct slab *outs;	 /* PDUs that are not a command's */
	uint32_t slots_promised; /* sum of the windows of its sessions */
	uint32_t nimmediate;	 /* slots of commands that are in no window */
	uint64_t quota_bytes;	 /* buffers that may wait for one connection's peer */
	atomic_uint nsessions;	 /* for choosing the least loaded one */
	struct list conns;	 /* every connection here */
	struct list logins;	 /* those that have not logged in, oldest first */
	struct list sessions;
	struct list tmf_parts; /* iscsi_tmf_part.link: wait for commands to end */
	/* What a connection could not parse when it had to wait for buffers: see
	 * conn_rx.c.  There is at most one such connection. */
	uint8_t *leftover;
	struct iscsi_conn *leftover_owner;
	struct iscsi_tx_batch tx;
	struct iscsi_reactor_stats stats;
};

/* Command slots that nobody has and nobody is promised.  One for each session
 * is kept back: its window moves on when a status is built, and that command
 * keeps its slot while the socket has taken only a part. */
static inline uint32_t iscsi_slots_free(const struct iscsi_reactor *ir)
{
	uint32_t taken = ir->slots_promised + ir->nimmediate + atomic_load(&ir->nsessions);

	return taken < slab_count(ir->tasks) ? slab_count(ir->tasks) - taken : 0;
}

struct iscsi_listener;

struct iscsi_server {
	struct iscsi_server_settings settings;
	_Atomic(struct iscsi_view *) view;
	unsigned int nreactors;
	struct iscsi_reactor *reactor[REACTORS_MAX];
	struct list listeners; /* control thread */
	unsigned int next_reactor;
	atomic_bool stopping;
	atomic_uint nconns, nlogins;
	/* the registry of sessions */
	pthread_mutex_t lock;
	struct list registry[ISCSI_REGISTRY_BUCKETS];
	uint16_t last_tsih;
	uint32_t nsessions;
};

static inline const struct iscsi_view *iscsi_server_view(struct iscsi_server *server)
{
	return atomic_load_explicit(&server->view, memory_order_acquire);
}

/* ---- portal.c ---- */

/* Control thread.  Opens the listeners that view needs and that are not open;
 * on error none was opened.  Those that view does not need stay open until
 * iscsi_portals_commit(). */
int iscsi_portals_prepare(struct iscsi_server *server, const struct iscsi_view *view,
			  struct err *err);
void iscsi_portals_commit(struct iscsi_server *server);
void iscsi_portals_close(struct iscsi_server *server);

#endif
