/* The option rows of iSCSI: see settings.h.  Ranges are those of RFC 7143 13. */
#include "target/iscsi/settings.h"

#define LIMIT(field)  .offset = offsetof(struct iscsi_limits, field)
#define SERVER(field) .offset = offsetof(struct iscsi_server_settings, field)

/* The largest data segment that a PDU can have: 24 bits of length. */
#define SEGMENT_MAX 16777215

/* In the order of enum iscsi_digest_policy. */
static const char *const digest_policies[] = { "none", "optional", "required", NULL };

const struct option_spec iscsi_limits_options[] = {
	{
		.key = "max-recv-data-segment-length",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(max_recv_data_segment_length),
		.def = "256K",
		.min = 512,
		.max = SEGMENT_MAX,
		.unit = "bytes",
		.summary = "largest data segment of one PDU that we take",
		.doc = "MaxRecvDataSegmentLength as we declare it: the initiator puts no more "
		       "data than this into one PDU. Larger values save headers on large "
		       "writes; what we send is bounded by what the initiator declares.",
	},
	{
		.key = "max-burst-length",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(max_burst_length),
		.def = "1M",
		.min = 512,
		.max = SEGMENT_MAX,
		.unit = "bytes",
		.summary = "most data asked for by one R2T, or sent in one sequence of Data-In",
		.doc = "The result is the lesser of this and the initiator's MaxBurstLength. "
		       "A write larger than it takes several R2Ts.",
	},
	{
		.key = "first-burst-length",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(first_burst_length),
		.def = "64K",
		.min = 512,
		.max = SEGMENT_MAX,
		.unit = "bytes",
		.summary = "most data of a write that may come before we ask for it",
		.doc = "The result is the lesser of this, the initiator's FirstBurstLength and "
		       "MaxBurstLength. It bounds the immediate data and the unsolicited "
		       "Data-Out of a command together.",
	},
	{
		.key = "max-outstanding-r2t",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(max_outstanding_r2t),
		.def = "16",
		.min = 1,
		.max = 65535,
		.unit = "",
		.summary = "R2Ts that one command may have open at a time",
		.doc = "The result is the lesser of this and the initiator's MaxOutstandingR2T. "
		       "With 1, a large write waits for the network once for each burst.",
	},
	{
		.key = "default-time2wait",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(default_time2wait),
		.def = "2",
		.min = 0,
		.max = 3600,
		.unit = "s",
		.summary = "time that an initiator waits before it logs in again",
		.doc = "The result is the greater of this and the initiator's DefaultTime2Wait.",
	},
	{
		.key = "default-time2retain",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(default_time2retain),
		.def = "0",
		.min = 0,
		.max = 3600,
		.unit = "s",
		.summary = "time for which the tasks of a lost connection are kept",
		.doc = "The result is the lesser of this and the initiator's "
		       "DefaultTime2Retain. At error recovery level 0 tasks end with their "
		       "connection, and 0 says so.",
	},
	{
		.key = "initial-r2t",
		.type = OPTION_BOOL,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(initial_r2t),
		.def = "yes",
		.summary = "an initiator waits for an R2T before it sends Data-Out",
		.doc = "With yes, only immediate data comes unasked. With no, an initiator that "
		       "wants it too may send Data-Out up to first-burst-length with a command.",
	},
	{
		.key = "immediate-data",
		.type = OPTION_BOOL,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(immediate_data),
		.def = "yes",
		.summary = "a command may carry the beginning of its data",
		.doc = "It saves small writes a round trip. With no, initiators are asked to "
		       "leave it, and those that do not answer are refused.",
	},
	{
		.key = "header-digest",
		.type = OPTION_CHOICE,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(header_digest),
		.def = "optional",
		.choices = digest_policies,
		.unit = "",
		.summary = "CRC32C over the header of each PDU",
		.doc = "optional takes what the initiator prefers; required refuses the login of "
		       "one that does not take CRC32C; none refuses one that takes nothing else. "
		       "Discovery sessions have digests only for initiators that insist.",
	},
	{
		.key = "data-digest",
		.type = OPTION_CHOICE,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(data_digest),
		.def = "optional",
		.choices = digest_policies,
		.unit = "",
		.summary = "CRC32C over the data of each PDU",
		.doc = "The values are those of header-digest.",
	},
	{
		.key = "queue-depth",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(queue_depth),
		.def = "256",
		.min = 1,
		.max = 1024,
		.unit = "commands",
		.summary = "most commands that a session may have open",
		.doc = "The command window of a session starts small, grows with use up to this "
		       "and never promises more than the pool of command-slots can give.",
	},
	{
		.key = "nop-interval",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(nop_interval),
		.def = "30",
		.min = 0,
		.max = 3600,
		.unit = "s",
		.summary = "silence of an initiator after which we ping it; 0: never",
		.doc = "Any PDU counts as a sign of life, so a busy connection is not pinged.",
	},
	{
		.key = "nop-timeout",
		.type = OPTION_UINT,
		.reload = RELOAD_NEW_LOGINS,
		LIMIT(nop_timeout),
		.def = "30",
		.min = 1,
		.max = 3600,
		.unit = "s",
		.summary = "silence after a ping until the connection is dropped",
		.doc = "Any PDU that comes in this time keeps the connection. Boot firmware "
		       "answers no pings while it loads: do not make this short for it.",
	},
	OPTION_END,
};

const struct option_spec iscsi_server_options[] = {
	{
		.key = "timeout",
		.type = OPTION_UINT,
		.reload = RELOAD_LIVE,
		SERVER(login_timeout),
		.def = "30",
		.min = 0,
		.max = 3600,
		.unit = "s",
		.summary = "time that a login may take; 0: no limit",
		.doc = "A connection that has not logged in by then is closed. Without a limit, "
		       "only max-logins bounds what idle connections can hold.",
	},
	{
		.key = "max-connections",
		.type = OPTION_UINT,
		.reload = RELOAD_LIVE,
		SERVER(max_connections),
		.def = "16384",
		.min = 1,
		.max = 60000,
		.unit = "connections",
		.summary = "connections of the whole daemon",
		.doc = "One more is closed as soon as it is accepted. The limit of open files of "
		       "the process bounds them too; session handles end at 65535.",
	},
	{
		.key = "max-logins",
		.type = OPTION_UINT,
		.reload = RELOAD_LIVE,
		SERVER(max_logins),
		.def = "1024",
		.min = 1,
		.max = 65536,
		.unit = "connections",
		.summary = "connections that have not logged in yet",
		.doc = "It bounds what a flood of connections can take: at most 16 KiB each.",
	},
	{
		.key = "command-slots",
		.type = OPTION_UINT,
		.reload = RELOAD_RESTART,
		SERVER(command_slots),
		.def = "65536",
		.min = 64,
		.max = 1048576,
		.unit = "commands",
		.summary = "commands that one reactor can have open over all its sessions",
		.doc = "Their address space is taken when the daemon starts, memory when they are "
		       "first used. When they run low, command windows stop growing; a session "
		       "that finds none left is refused.",
	},
	{
		.key = "batch-us",
		.type = OPTION_UINT,
		.reload = RELOAD_LIVE,
		SERVER(batch_us),
		.def = "200",
		.min = 0,
		.max = 1000,
		.unit = "us",
		.summary = "longest time that commands are gathered while an initiator is behind; "
			   "0: never",
		.doc = "An initiator that has not taken eight or more of the answers that were "
		       "sent to it is not waiting for the next one. Its commands are then gathered "
		       "and served in one go, which halves the processor time of small commands, "
		       "for as long as it has answers left to work on: the daemon learns how long "
		       "that is. The sessions of a reactor share this time. One command at a time "
		       "is never held.",
	},
	OPTION_END,
};
