/*
 * Stores for tests: one opened on a reactor of its own, and requests that the
 * test waits for.
 */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <semaphore.h>

#include "backing/backing.h"
#include "base/option.h"
#include "tests/unit/quintain_test.h"

struct store {
	struct reactor *reactor;
	struct backing *backing;
	struct bk_channel *channel;
};

/* Defaults of the option rows; path may be NULL (a RAM disk). */
struct backing_settings store_settings(const char *path, uint64_t size);

/* Starts a reactor and attaches; fatal assertions. */
void store_start(struct store *store, struct backing *backing);
void store_open(struct store *store, const struct backing_settings *settings);
/* Detaches, closes the store, stops the reactor. */
void store_close(struct store *store);

/* Opens it and expects the refusal -code, whose text names what. */
void store_refused(const struct backing_settings *settings, int code, const char *what);

/* A request of a test, waited for one by one or in numbers. */
struct store_call {
	struct bk_req req;
	struct iovec iov;
	sem_t done;
	struct store *store;
	unsigned int order; /* of completion, from 1 */
	bool early;	    /* done within backing_submit() */
};

void store_call_init(struct store_call *call, struct store *store, enum bk_op op, uint64_t off,
		     uint64_t len, void *data, unsigned int flags);
/* Submits all in one go; store_wait() waits for one and gives its err. */
void store_submit(struct store_call *calls, unsigned int ncalls);
int store_wait(struct store_call *call);
/* Is it done? */
bool store_done(struct store_call *call);

/* One request, waited for: its err. */
int store_op(struct store *store, enum bk_op op, uint64_t off, uint64_t len, void *data,
	     unsigned int flags);
int store_read(struct store *store, uint64_t off, uint64_t len, void *data);
int store_write(struct store *store, uint64_t off, uint64_t len, void *data);
/* BK_STATUS: the number of extents; fatal when it fails. */
uint32_t store_status(struct store *store, uint64_t off, uint64_t len, struct bk_extent *extents,
		      uint32_t nextents_max);

/* Page-aligned memory full of byte; freed by free(). */
uint8_t *store_buffer(uint64_t len, uint8_t byte);
bool store_all_bytes(const uint8_t *data, uint64_t len, uint8_t byte);

/* TEST_TMP/name: on a disk as a rule.  A name not used before in this run. */
const char *store_disk_path(void);
/* An empty file in a file system in memory (/dev/shm), removed at exit; skips
 * without one. */
const char *store_memory_path(void);

/* Runs a shell command; its exit status.  The first line of its output goes
 * to out, if that is not NULL. */
int store_shell(char *out, size_t cap, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
