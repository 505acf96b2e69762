/*
 * What the daemon serves right now: reactors, LUNs, targets, the view.
 *
 * Purpose: makes the running objects be what a configuration says, at the start
 * and again on every reload, object by object; what did not change is not
 * touched.
 *
 *	running_start -> running_apply -> running_tick ... running_apply ...
 *	-> running_stop
 *
 * Where things are: running.c life and stop, apply.c a configuration is made
 * to run, lun_run.c one LUN and its store, lun_job.c what is done to stores on
 * threads that may hang, view_build.c the view that the iSCSI server gets.
 *
 * Owner: the daemon (serve.c).  Control thread only.
 */
#ifndef TARGET_RUNNING_H
#define TARGET_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/job.h"
#include "base/list.h"
#include "base/reactor.h"
#include "config/config.h"
#include "target/iscsi/iscsi.h"
#include "target/scsi/scsi.h"
#include "target/state.h"

/* So long stores may take to open and close, all of them together, before a
 * start or a reload goes on without those that hang. */
#define LUNS_WAIT_MS 2000
/* A LUN whose store is not there is tried again so often. */
#define LUN_RETRY_MS 2000
/* A dead store that does not let go of commands: each try waits for them. */
#define LUN_STUCK_RETRY_MS 60000

/*
 * A LUN.  Its key is the path of its store, of a ramdisk its name: another path
 * is another disk, a new name for a path is not.
 */
struct lun_run {
	struct list link;		 /* running.luns */
	const struct config_lun *config; /* in running.config */
	const struct config_lun *wanted; /* in apply: the new one, NULL: removed */
	struct scsi_lun *scsi;
	struct scsi_identity identity;
	bool fresh;		    /* in apply: made for this configuration */
	bool guessed;		    /* identity is what the path as it stands has */
	char *subject;		    /* the path, or "ramdisk:NAME" */
	struct lun_job *job;	    /* opens or resizes the store; or NULL */
	bool resize;		    /* its size is to be looked at again */
	uint64_t retry_at_ms;	    /* CLOCK_MONOTONIC; not looked at before */
	char problem[ERR_TEXT_MAX]; /* why it has no store; "" when it has */
};

struct lun_mapping {
	uint16_t number;
	struct lun_run *lun;
};

struct target_run {
	struct list link;		    /* running.targets */
	const struct config_target *config; /* in running.config */
	const struct config_target *wanted; /* in apply: the new one, NULL: removed */
	bool fresh;
	struct scsi_target *scsi;
	struct iscsi_target *iscsi;
	struct lun_mapping *map; /* ascending by number; what is mapped */
	uint32_t nmap;
};

struct running {
	struct state *state;
	struct jobs *jobs; /* the daemon's: all that touches file systems of stores */
	struct reactor *reactors[REACTORS_MAX];
	int cpus[REACTORS_MAX];
	unsigned int nreactors;
	struct iscsi_server *server;
	struct config *config;	       /* what was applied last; owned */
	const struct iscsi_view *view; /* the server's, until the next apply */
	struct list pools, luns, targets;
	/* Objects that were let go of while a store did not answer: still in
	 * memory, as commands in flight point to them. */
	unsigned int nstuck;
};

/* Starts reactors and the server as the configuration says; serves nothing yet.
 * On error everything is as before.  jobs stay the caller's. */
int running_start(struct running *run, const struct config *config, struct jobs *jobs,
		  struct err *err);

/*
 * Serves what config says from now on.  On success config is owned by run; on
 * error (a portal cannot be bound, a host name is not known) nothing has
 * changed and config is the caller's.  A LUN whose store cannot be opened, or
 * does not open in time, is no error: it is NOT READY.
 */
int running_apply(struct running *run, struct config *config, struct err *err);

/* Takes up what jobs have ended with, tries LUNs without a store, and finds
 * stores that died. */
void running_tick(struct running *run);

/*
 * Sessions are asked to log out, commands end, stores are flushed and closed.
 * True when all is closed within timeout_ms; false when something is stuck
 * (a command, a job), which is named in the log: then the process must end
 * without touching it.
 */
bool running_stop(struct running *run, unsigned int timeout_ms);

/* ---- lun_run.c ---- */

/* With its first try to open the store, see lun_run_try(). */
struct lun_run *lun_run_create(struct running *run, const struct config_lun *config);
/* Unmapped everywhere.  One whose store is stuck is left, see nstuck. */
void lun_run_destroy(struct running *run, struct lun_run *lun);
/* Begins to open the store, unless it has one or something about its path is
 * under way.  The LUN has it, or its problem, when the job is reaped; that may
 * make lun->scsi anew (see there). */
void lun_run_try(struct running *run, struct lun_run *lun);
/* Takes over lun->wanted; begins to resize the store. */
void lun_run_update(struct running *run, struct lun_run *lun);
/* Begins to resize the store if it is to be, and nothing about its path is under
 * way. */
void lun_run_resize(struct running *run, struct lun_run *lun);
/* Takes the store away; the LUN is NOT READY and tried again later. */
void lun_run_close(struct running *run, struct lun_run *lun, const char *problem);
/* Is it without a store because its file system hangs?  Then it says so. */
void lun_run_look(struct running *run, struct lun_run *lun);
/* Waits for jobs, as jobs_wait() does; those LUNs that are without a store after
 * that say that they wait.  The time is taken off *budget_ms. */
void luns_wait(struct running *run, unsigned int *budget_ms);

/* ---- apply.c ---- */

/* The scsi_lun of lun is replaced in all targets that map it. */
void targets_remap(struct running *run, struct lun_run *lun, struct scsi_lun *fresh);
/* Its sessions are ended, it is unmapped and freed. */
void target_run_destroy(struct running *run, struct target_run *target);

/* ---- view_build.c ---- */

/*
 * The view of config, with each target's object from run->targets (by wanted).
 * Host names are resolved here.  Freed by arena_destroy(view->arena) until the
 * server owns it.
 */
int view_build(struct running *run, const struct config *config, struct iscsi_view **out,
	       struct err *err);

#endif
