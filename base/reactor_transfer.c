/* Transfers that do not wait, many in one system call: see reactor.h. */
#include "base/reactor_internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What one receive can bring: REACTOR_SCRATCH of writes of 4 KiB. */
#define BATCH_MAX 64

static ssize_t one_call(const struct reactor_transfer *t)
{
	ssize_t res;

	do {
		/* One buffer without flags is the most frequent of all, and the
		 * plain calls spare the kernel a copy of the vector. */
		if (t->iovcnt == 1 && t->flags == 0)
			res = t->write ? pwrite(t->fd, t->iov->iov_base, t->iov->iov_len, t->off)
				       : pread(t->fd, t->iov->iov_base, t->iov->iov_len, t->off);
		else
			res = t->write ? pwritev2(t->fd, t->iov, t->iovcnt, t->off, t->flags)
				       : preadv2(t->fd, t->iov, t->iovcnt, t->off, t->flags);
	} while (res < 0 && errno == EINTR);
	return res < 0 ? -errno : res;
}

static void fill(struct iocb *iocb, const struct reactor_transfer *t)
{
	bool plain = t->iovcnt == 1;

	*iocb = (struct iocb){
		.aio_data = (uintptr_t)t,
		.aio_rw_flags = t->flags,
		.aio_fildes = (uint32_t)t->fd,
		.aio_offset = t->off,
	};
	if (plain) {
		iocb->aio_lio_opcode = t->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		iocb->aio_buf = (uintptr_t)t->iov->iov_base;
		iocb->aio_nbytes = t->iov->iov_len;
	} else {
		iocb->aio_lio_opcode = t->write ? IOCB_CMD_PWRITEV : IOCB_CMD_PREADV;
		iocb->aio_buf = (uintptr_t)t->iov;
		iocb->aio_nbytes = t->iovcnt;
	}
}

/* The kernel makes them one after the other within the call, as nothing of
 * them waits; n events are there when it returns. */
static void collect(struct reactor *reactor, long n)
{
	struct io_event events[BATCH_MAX];
	long got;

	while (n > 0) {
		got = syscall(SYS_io_getevents, reactor->transfers.aio, 1, n, events, NULL);
		assert(got > 0 || errno == EINTR);
		for (long i = 0; i < got; i++) {
			struct reactor_transfer *t = (void *)(uintptr_t)events[i].data;

			t->done(t, events[i].res);
		}
		if (got > 0)
			n -= got;
	}
}

/* Makes those of a batch; how many the kernel has taken from the front. */
static long many_in_one(struct reactor *reactor, struct reactor_transfer **batch, long n)
{
	struct iocb iocbs[BATCH_MAX], *list[BATCH_MAX];
	long taken;

	for (long i = 0; i < n; i++) {
		fill(&iocbs[i], batch[i]);
		list[i] = &iocbs[i];
	}
	taken = syscall(SYS_io_submit, reactor->transfers.aio, n, list);
	if (taken <= 0)
		return 0;
	collect(reactor, taken);
	return taken;
}

/* The context is made when the first batch is there.  Without one (the kernel
 * has none to give, or a container forbids it) each transfer is a call. */
static bool can_batch(struct transfers *transfers)
{
	if (!transfers->aio && !transfers->refused)
		transfers->refused = syscall(SYS_io_setup, BATCH_MAX, &transfers->aio) != 0;
	return !transfers->refused;
}

static void make_batch(struct reactor *reactor, struct reactor_transfer **batch, long n)
{
	long done = 0;

	if (n > 1 && can_batch(&reactor->transfers))
		done = many_in_one(reactor, batch, n);
	/* What the kernel has not taken tells by a call of its own why. */
	for (; done < n; done++)
		batch[done]->done(batch[done], one_call(batch[done]));
}

void reactor_transfer(struct reactor *reactor, struct reactor_transfer *transfer)
{
	assert(reactor == reactor_self());
	assert(transfer->done && transfer->iovcnt > 0);
	list_add_tail(&reactor->transfers.queue, &transfer->link);
}

void reactor_transfers_make(struct reactor *reactor)
{
	struct reactor_transfer *batch[BATCH_MAX];
	struct list *link;
	long n;

	while (!list_empty(&reactor->transfers.queue)) {
		for (n = 0; n < BATCH_MAX && (link = list_pop(&reactor->transfers.queue)); n++)
			batch[n] = container_of(link, struct reactor_transfer, link);
		make_batch(reactor, batch, n);
	}
}

void transfers_init(struct transfers *transfers)
{
	list_init(&transfers->queue);
}

void transfers_release(struct transfers *transfers)
{
	assert(list_empty(&transfers->queue));
	if (transfers->aio)
		syscall(SYS_io_destroy, transfers->aio);
}
