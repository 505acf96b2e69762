/* Whether io_uring can be used as the reactor needs it: see reactor_probe(). */
#include "base/reactor_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* What the data path is made of; all in Linux 6.1, but a seccomp profile or a
 * restricted kernel may take single ones away. */
static const struct {
	uint8_t opcode;
	const char *name;
} needed[] = {
	{ IORING_OP_READ, "READ" },
	{ IORING_OP_WRITE, "WRITE" },
	{ IORING_OP_READV, "READV" },
	{ IORING_OP_WRITEV, "WRITEV" },
	{ IORING_OP_FSYNC, "FSYNC" },
	{ IORING_OP_FALLOCATE, "FALLOCATE" },
	{ IORING_OP_ACCEPT, "ACCEPT" },
	{ IORING_OP_RECV, "RECV" },
	{ IORING_OP_SENDMSG, "SENDMSG" },
	{ IORING_OP_POLL_ADD, "POLL_ADD" },
	{ IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL" },
};

/* kernel.io_uring_disabled (since Linux 6.6); 0 when there is no such file. */
static int sysctl_disabled(void)
{
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static int explain_perm(struct err *err)
{
	int disabled = sysctl_disabled();

	if (disabled != 0)
		return err_set(err, EPERM,
			       "io_uring is switched off by sysctl kernel.io_uring_disabled=%d: "
			       "set it to 0%s",
			       disabled,
			       disabled == 1 ? ", or run in the group of kernel.io_uring_group"
					     : "");
	return err_set(err, EPERM,
		       "io_uring is not permitted: in a container, allow io_uring_setup, "
		       "io_uring_enter and io_uring_register in its seccomp profile "
		       "(docker: --security-opt seccomp=FILE)");
}

int ring_explain(int rc, struct err *err)
{
	struct utsname kernel;

	switch (rc) {
	case -EPERM:
	case -EACCES: return explain_perm(err);
	case -ENOSYS:
		return err_set(err, ENOSYS,
			       "this kernel has no io_uring (CONFIG_IO_URING), or a container's "
			       "seccomp profile hides it");
	case -EINVAL:
		if (uname(&kernel) != 0)
			snprintf(kernel.release, sizeof(kernel.release), "unknown");
		return err_set(err, EINVAL,
			       "io_uring of kernel %s is too old: Linux 6.1 or newer is needed",
			       kernel.release);
	case -ENOMEM:
		return err_set(err, ENOMEM,
			       "no memory for io_uring: raise the limit of locked memory "
			       "(ulimit -l, LimitMEMLOCK= of the unit) or of the cgroup");
	default: return err_set(err, -rc, "io_uring cannot be used: %s", err_name(-rc));
	}
}

int reactor_probe(struct err *err)
{
	struct io_uring_probe *probe;
	struct io_uring ring;
	int rc = ring_init(&ring, 8);

	if (rc < 0)
		return ring_explain(rc, err);
	probe = io_uring_get_probe_ring(&ring);
	if (!probe)
		rc = err_set(err, ENOSYS,
			     "io_uring does not say which operations it has: a "
			     "seccomp profile forbids io_uring_register");
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(needed); i++)
		if (!io_uring_opcode_supported(probe, needed[i].opcode))
			rc = err_set(err, ENOSYS, "io_uring lacks the operation %s",
				     needed[i].name);
	io_uring_free_probe(probe);
	io_uring_queue_exit(&ring);
	return rc;
}
