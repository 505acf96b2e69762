#include "tests/crash/mutants.h"

#include <string.h>

/* clang-format off */
const struct mutant_row mutant_rows[MUTANT_COUNT] = {
	[MUTANT_NONE]		    = { "none", "" },
	[MUTANT_EARLY_REUSE]	    = { "early_reuse", "cleaning checkpoints slices" },
	[MUTANT_ONE_CHECKPOINT]	    = { "one_checkpoint", "cleaning checkpoints slices" },
	[MUTANT_NO_INCARNATION]	    = { "no_incarnation", "hot script sync" },
	[MUTANT_NO_END]		    = { "no_end", "hot script sync" },
	[MUTANT_MOVE_BEFORE_DATA]   = { "move_before_data", "cleaning slices" },
	[MUTANT_LEAF_BEFORE_PAGE]   = { "leaf_before_page", "checkpoints idle cleaning" },
	[MUTANT_UNPINNED_VICTIM]    = { "unpinned_victim", "cleaning slices" },
	[MUTANT_DURABLE_GAP]	    = { "durable_gap", "sync workers large" },
	[MUTANT_DURABLE_LATE]	    = { "durable_late", "sync workers large" },
	[MUTANT_ACK_BEFORE_FLUSH]   = { "ack_before_flush", "script sync" },
	[MUTANT_STALE_FOOTER]	    = { "stale_footer", "cleaning large" },
	[MUTANT_UNFLUSHED_FOOTER]   = { "unflushed_footer", "large buffered" },
	[MUTANT_JOIN_ACROSS_GROUPS] = { "join_across_groups", "hot buffered" },
	[MUTANT_SPLIT_ATOMIC]	    = { "split_atomic", "buffered large" },
	[MUTANT_LEAF_TWICE]	    = { "leaf_twice", "checkpoints cleaning" },
	[MUTANT_NO_PURGE]	    = { "no_purge", "cleaning slices" },
	[MUTANT_CHECKPOINT_EARLY]   = { "checkpoint_early", "checkpoints" },
	[MUTANT_ROOT_UNFLUSHED]	    = { "root_unflushed", "checkpoints" },
	[MUTANT_REPLAY_LATE]	    = { "replay_late", "checkpoints" },
	[MUTANT_MERGE_NOT_DURABLE]  = { "merge_not_durable", "checkpoints idle cleaning" },
	[MUTANT_WRITE_BEHIND_TAIL]  = { "write_behind_tail", "hot script sync" },
	[MUTANT_BUMP_UNFLUSHED]	    = { "bump_unflushed", "hot script sync" },
	[MUTANT_PAYLOAD_UNVERIFIED] = { "payload_unverified", "large buffered sync" },
	[MUTANT_NO_CHAIN]	    = { "no_chain", "hot script sync" },
	[MUTANT_TRUNCATE_DAMAGE]    = { "truncate_damage", "damage script" },
	[MUTANT_PUNCH_EARLY]	    = { "punch_early", "cleaning checkpoints" },
	[MUTANT_READ_UNVERIFIED]    = { "read_unverified", "damage script" },
	[MUTANT_MOVE_UNVERIFIED]    = { "move_unverified", "damage cleaning" },
	[MUTANT_MOVE_BY_ADDRESS]    = { "move_by_address", "cleaning slices" },
	[MUTANT_SPLIT_FREES]	    = { "split_frees", "slices trims" },
	[MUTANT_RANGE_HIDES_ALL]    = { "range_hides_all", "trims" },
	[MUTANT_RETRY_FLUSH]	    = { "retry_flush", "damage sync" },
	[MUTANT_VOLOP_EARLY]	    = { "volop_early", "volumes" },
};
/* clang-format on */

uint32_t mutant_by_name(const char *name)
{
	for (uint32_t i = 0; i < MUTANT_COUNT; i++)
		if (mutant_rows[i].name && !strcmp(mutant_rows[i].name, name))
			return i;
	return MUTANT_NONE;
}
