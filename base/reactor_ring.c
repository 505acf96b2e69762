/* The reactor's io_uring: operations, completions, waiting.  See reactor.h. */
#include "base/reactor_internal.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>

/* Completions that may wait for each submission entry: several operations of
 * one iteration and those of the iterations before it complete at once. */
#define CQES_PER_SQE 4

int ring_init(struct io_uring *ring, uint32_t entries)
{
	struct io_uring_params params = {
		/* COOP_TASKRUN: no interrupt to this thread when it is in user
		 * mode.  TASKRUN_FLAG: the kernel says in the ring that it has
		 * completions to deliver, so looking costs no system call.
		 * SUBMIT_ALL: one entry that fails holds up no other. */
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
		.cq_entries = entries * CQES_PER_SQE,
	};
	int rc = io_uring_queue_init_params(entries, ring, &params);

	if (rc < 0)
		return rc;
	if (!(params.features & IORING_FEAT_EXT_ARG) || !(params.features & IORING_FEAT_NODROP)) {
		io_uring_queue_exit(ring);
		return -EINVAL;
	}
	/* Saves looking the file up at each call; not needed to work. */
	io_uring_register_ring_fd(ring);
	return 0;
}

uint32_t ring_harvest(struct reactor *reactor)
{
	struct io_uring_cqe *cqe;
	struct reactor_op *op;
	uint32_t n = 0;
	int res;

	/* Those that are there now: what callbacks submit on a full queue may
	 * complete at once, and would keep the loop from all else. */
	for (uint32_t ready = io_uring_cq_ready(&reactor->ring); ready > 0; ready--) {
		if (io_uring_peek_cqe(&reactor->ring, &cqe) != 0)
			break;
		op = io_uring_cqe_get_data(cqe);
		res = cqe->res;
		/* One completion for each entry: see reactor_op. */
		assert(!(cqe->flags & IORING_CQE_F_MORE));
		io_uring_cqe_seen(&reactor->ring, cqe);
		if (!op)
			continue;
		if (op != &reactor->wake_op) {
			assert(reactor->ops_in_flight > 0);
			reactor->ops_in_flight--;
			n++;
		}
		op->done(op, res);
	}
	counter_add(&reactor->stats.completions, n);
	return n;
}

/* What entering the kernel may say without harm; the loop comes again. */
static void check_enter(int rc)
{
	assert(rc >= 0 || rc == -EINTR || rc == -ETIME || rc == -EAGAIN || rc == -EBUSY ||
	       rc == -ENOMEM);
}

struct io_uring_sqe *ring_sqe(struct reactor *reactor, struct reactor_op *op)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&reactor->ring))) {
		int rc = io_uring_submit(&reactor->ring);

		counter_add(&reactor->stats.enters, 1);
		check_enter(rc);
		/* The kernel lacks memory for a request: it frees some when
		 * others run. */
		if (rc < 0)
			sched_yield();
	}
	io_uring_sqe_set_data(sqe, op);
	return sqe;
}

struct io_uring_sqe *reactor_sqe(struct reactor *reactor, struct reactor_op *op)
{
	assert(op->done && reactor == reactor_self());
	reactor->ops_in_flight++;
	return ring_sqe(reactor, op);
}

void reactor_cancel(struct reactor *reactor, struct reactor_op *op)
{
	/* Its own completion has no owner: op's tells all. */
	io_uring_prep_cancel(ring_sqe(reactor, NULL), op, 0);
}

uint32_t reactor_ops_in_flight(const struct reactor *reactor)
{
	return reactor->ops_in_flight;
}

static bool kernel_has_completions(const struct reactor *reactor)
{
	return IO_URING_READ_ONCE(*reactor->ring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

bool ring_ready(struct reactor *reactor)
{
	return io_uring_cq_ready(&reactor->ring) > 0 || kernel_has_completions(reactor);
}

void ring_submit(struct reactor *reactor)
{
	if (io_uring_sq_ready(&reactor->ring) == 0 && !kernel_has_completions(reactor))
		return;
	counter_add(&reactor->stats.enters, 1);
	check_enter(io_uring_submit_and_get_events(&reactor->ring));
}

void ring_wait(struct reactor *reactor, uint64_t timeout_ns, unsigned int nops)
{
	struct __kernel_timespec ts = {
		.tv_sec = (long long)(timeout_ns / 1000000000u),
		.tv_nsec = (long long)(timeout_ns % 1000000000u),
	};
	struct io_uring_cqe *cqe;
	int rc;

	counter_add(&reactor->stats.enters, 1);
	rc = io_uring_submit_and_wait_timeout(&reactor->ring, &cqe, nops,
					      timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
	check_enter(rc);
}
