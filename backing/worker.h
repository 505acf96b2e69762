/*
 * A thread that may block, for the few requests that a ring cannot do:
 * SEEK_HOLE and BLKDISCARD.
 *
 * Each store that needs one has its own, so that a disk that hangs holds up
 * nobody else.  The queue needs no bound of its own: it holds requests, which
 * are the slots of commands.
 */
#ifndef BACKING_WORKER_H
#define BACKING_WORKER_H

#include "backing/backing.h"

struct worker;

/* Control thread.  run(req) does one request on the thread and gives 0 or a
 * positive errno. */
int worker_start(struct worker **out, int (*run)(struct bk_req *req), struct err *err);
/* Control thread; nothing is queued.  NULL: no effect. */
void worker_stop(struct worker *worker);

/* On a reactor: the request is run there and completes on its reactor.  Uses
 * req->link and req->msg. */
void worker_submit(struct worker *worker, struct bk_req *req);

#endif
