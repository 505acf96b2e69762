/*
 * A stand-in for the iSCSI server: remembers the view and its targets, opens no
 * portal.  Linked in place of target/iscsi/server.c.
 */
#ifndef TESTS_UNIT_TARGET_FAKE_SERVER_H
#define TESTS_UNIT_TARGET_FAKE_SERVER_H

#include <stdbool.h>

#include "target/iscsi/iscsi.h"

extern const struct iscsi_view *fake_view; /* what was set last, or NULL */
extern bool fake_view_refused;		   /* the next views are refused */
extern bool fake_sessions_stay;		   /* they do not end */
extern unsigned int fake_targets;	   /* alive */
extern unsigned int fake_sessions_ended;   /* calls of iscsi_server_end_sessions() */

#endif
