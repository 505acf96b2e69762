/*
 * Task management (RFC 7143 11.5): a function ends tasks, waits for those that
 * execute in a store, and only then answers, so that nothing of an aborted
 * write reaches the disk behind the answer.
 *
 * A function that reaches other sessions has a part on each reactor, begun by a
 * message; parts that must wait stand in iscsi_reactor.tmf_parts and look again
 * whenever an aborted task has ended.
 */
#ifndef ISCSI_TMF_H
#define ISCSI_TMF_H

#include "target/iscsi/conn.h"

/* An aborted task of this reactor has ended. */
void iscsi_tmf_look(struct iscsi_reactor *ir);

/* The connection is gone: nobody waits for the answers any more. */
void iscsi_tmf_forget(struct iscsi_conn *conn);

#endif
