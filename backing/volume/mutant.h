/*
 * Forbidden shortcuts, each of which loses data in some crash.
 *
 * Purpose: tests/crash proves that it would notice.  pool_open_args.mutant makes
 * an engine take one of them; `make test-crash` runs each until a crash point
 * shows the damage.  No configuration reaches it.
 *
 * At the place of each guard the engine asks pool_mutant(), and nowhere else:
 *
 *	if (bad && !pool_mutant(pool, MUTANT_NO_CHAIN))
 *
 * To add one: a row here, the question at the guard, a row in
 * tests/crash/mutants.c, and where no workload kills it yet, one that does.
 */
#ifndef BACKING_VOLUME_MUTANT_H
#define BACKING_VOLUME_MUTANT_H

/* What a right engine does; here: what the mutant does. */
enum mutant {
	MUTANT_NONE,
	/* A segment is free when its seqs are <= r of the older checkpoint; here <=
	 * log_seq. */
	MUTANT_EARLY_REUSE,
	/* The older of the two checkpoints decides; here the newest. */
	MUTANT_ONE_CHECKPOINT,
	/* Each life of a pool has a higher incarnation, and a group of another one ends
	 * the log; here it is neither raised nor compared. */
	MUTANT_NO_INCARNATION,
	/* Nothing behind the superblock's end of the former incarnation counts unless the
	 * successor carries on from there; here the end is neither written nor obeyed. */
	MUTANT_NO_END,
	/* A MOVE enters the log only after its copy was flushed; here at once. */
	MUTANT_MOVE_BEFORE_DATA,
	/* A LEAF_AT enters the log only after its leaf was flushed; here at once. */
	MUTANT_LEAF_BEFORE_PAGE,
	/* A victim stays pinned until every MOVE out of it is merged; here not at all. */
	MUTANT_UNPINNED_VICTIM,
	/* Group n + 1 is durable only when n is; here what completed before the flush
	 * counts whatever is missing before it. */
	MUTANT_DURABLE_GAP,
	/* A flush covers writes that had completed when it was issued; here those too that
	 * completed when it did. */
	MUTANT_DURABLE_LATE,
	/* FLUSH and FUA are answered when durable; here when written. */
	MUTANT_ACK_BEFORE_FLUSH,
	/* A footer counts only with the header's life, incarnation and seqs; here any
	 * valid one in the right place. */
	MUTANT_STALE_FOOTER,
	/* A footer stands for its groups only if its last seq <= a durable_seq seen later;
	 * here always. */
	MUTANT_UNFLUSHED_FOOTER,
	/* Writes are joined within one group only; here a later one replaces an earlier
	 * one wherever that is staged. */
	MUTANT_JOIN_ACROSS_GROUPS,
	/* A command up to the atomic length lies in one group; here it may be split. */
	MUTANT_SPLIT_ATOMIC,
	/* A table page that has a LEAF_AT applied is not changed by its replay; here
	 * again. */
	MUTANT_LEAF_TWICE,
	/* Cached pages and records of a segment are purged before it is reused; here kept. */
	MUTANT_NO_PURGE,
	/* A checkpoint's position c <= durable_seq before its root is written; here not
	 * waited for. */
	MUTANT_CHECKPOINT_EARLY,
	/* Pages and root are flushed before a superblock names them; here not. */
	MUTANT_ROOT_UNFLUSHED,
	/* R is the oldest seq in no leaf; here the newest seq when the checkpoint began. */
	MUTANT_REPLAY_LATE,
	/* Leaves, MOVEs and folds are built on durable deltas only; here on all. */
	MUTANT_MERGE_NOT_DURABLE,
	/* After a crash the log goes on in the successor segment; here behind the torn
	 * tail. */
	MUTANT_WRITE_BEHIND_TAIL,
	/* Incarnation and end are durable before anything else is written; here the flush
	 * is left out. */
	MUTANT_BUMP_UNFLUSHED,
	/* Payloads of groups that may not be durable are verified; here headers and tables
	 * only. */
	MUTANT_PAYLOAD_UNVERIFIED,
	/* A group's hash of the one before it is compared; here not. */
	MUTANT_NO_CHAIN,
	/* An invalid group at or before a durable_seq seen is damage: refused or read-
	 * only; here it ends the log. */
	MUTANT_TRUNCATE_DAMAGE,
	/* A segment is punched or primed only when it is reusable; here when nothing in it
	 * lives. */
	MUTANT_PUNCH_EARLY,
	/* A record is given out only when its check is right; here unverified. */
	MUTANT_READ_UNVERIFIED,
	/* What is moved or folded was verified first; here copied as it is, with a new
	 * check. */
	MUTANT_MOVE_UNVERIFIED,
	/* A MOVE renames an entry whose address and check match; here the address alone. */
	MUTANT_MOVE_BY_ADDRESS,
	/* An entry split by an overwrite keeps its record alive until its last slice goes;
	 * here the first one that dies frees it. */
	MUTANT_SPLIT_FREES,
	/* A range op hides only what came before it; here every leaf and delta of its
	 * regions. */
	MUTANT_RANGE_HIDES_ALL,
	/* After a failed write or flush nothing since the last good flush is believed;
	 * here the next good flush covers it. */
	MUTANT_RETRY_FLUSH,
	/* Created, set and deleted are answered when durable; here at layout. */
	MUTANT_VOLOP_EARLY,
	MUTANT_COUNT,
};

#endif
