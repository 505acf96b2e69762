/*
 * The state directory: what must be the same after a restart.
 *
 *	DIR/luns/HASH.json	one per LUN: who it is for its hosts
 *	DIR/ports.json		portal group tags and relative port identifiers
 *	DIR/lock		taken while one of them is made or changed
 *
 * A LUN is known by a key: the canonical path of its store, or "ramdisk:NAME".
 * HASH is the first half of the key's SHA-256, the key stands in the file and
 * is compared.  Files are versioned JSON, replaced whole (state_file.h);
 * members that this version does not know are kept when one is rewritten.
 * Several daemons may share one directory.
 *
 * Damaged files are errors and are left as they are: the operator decides.
 *
 * Control thread; state_lun_*() on the threads of jobs too, several at a time.
 */
#ifndef TARGET_STATE_H
#define TARGET_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "target/scsi/scsi.h"

struct state;

/* Makes the directory (mode 0700) when it is missing. */
int state_open(const char *directory, struct state **out, struct err *err);
void state_close(struct state *state);
const char *state_directory(const struct state *state);

/* 1: known, identity is filled; 0: never served; -errno: cannot be told. */
int state_lun_load(const struct state *state, const char *key, struct scsi_identity *identity,
		   struct err *err);

/*
 * Keeps identity for key, durably, before anybody sees the LUN.  If another
 * daemon was first, its identity is returned in *identity instead.
 */
int state_lun_keep(struct state *state, const char *key, struct scsi_identity *identity,
		   struct err *err);

/* The file of key, to be named in messages. */
void state_lun_file(const struct state *state, const char *key, char *out, size_t cap);

/* ---- state_ports.c ---- */

struct state_group {
	const char *name;
	uint16_t tag; /* in: as configured, 0: to be chosen; out: 1..65535 */
};

struct state_port {
	const char *target, *group;
	uint16_t id; /* out: relative target port identifier, 1..65535 */
};

/*
 * Fills tags and identifiers: those given before stay, new ones are chosen and
 * kept.  Tags that are configured win over those that were chosen; two groups
 * never get one tag.  An identifier is never given to another port again.
 */
int state_ports_assign(struct state *state, struct state_group *groups, size_t ngroups,
		       struct state_port *ports, size_t nports, struct err *err);

#endif
