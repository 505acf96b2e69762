/*
 * The last flush of every store, when the daemon ends.
 *
 * Owner: running.c.  Control thread, which waits for the reactor that does it.
 */
#ifndef TARGET_FLUSH_H
#define TARGET_FLUSH_H

#include <stdbool.h>

#include "target/running.h"

/*
 * Flushes all stores at once.  False when some did not answer within
 * timeout_ms: they are named in the log, and their requests stay in flight, so
 * that nothing of them may be closed or freed.  A flush that fails is logged.
 */
bool luns_flush(struct running *run, unsigned int timeout_ms);

#endif
