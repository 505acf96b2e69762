/* The tests of this folder, by file. */
#ifndef TESTS_PDU_TESTS_H
#define TESTS_PDU_TESTS_H

#include "tests/pdu/peer.h"

/* bad.c */
void pdu_with_more_data_than_declared_closes(void);
void login_with_more_data_than_allowed_closes(void);
void ahs_too_long_closes(void);
void ahs_without_a_length_is_rejected(void);
void ahs_longer_than_all_of_them_is_rejected(void);
void ahs_with_a_cdb_beyond_32_bytes_is_rejected(void);
void ahs_with_two_extended_cdbs_is_rejected(void);
void ahs_of_an_unknown_type_is_skipped(void);
void ahs_extends_the_cdb_to_32_bytes(void);
void opcode_before_the_login_closes(void);
void opcode_within_the_login_closes(void);
void opcode_login_in_full_feature_phase_is_rejected(void);
void opcode_unknown_is_rejected_with_its_header(void);
void digest_error_in_a_header_closes(void);
void digest_error_in_data_is_rejected_and_ends_the_connection(void);
void digest_error_in_a_ping_is_rejected_and_ends_the_connection(void);
void command_that_breaks_the_rules_is_rejected(void);
void command_with_immediate_data_that_was_not_agreed_is_rejected(void);
void command_with_the_reserved_tag_is_rejected(void);
void command_in_a_discovery_session_is_rejected(void);
void snack_is_rejected(void);
void data_segment_where_none_belongs_is_rejected(void);
void data_segment_of_a_ping_too_long_to_keep_is_rejected(void);

/* order.c */
void window_ignores_commands_beyond_it(void);
void window_ignores_a_command_with_data_beyond_it(void);
void window_ignores_a_command_that_comes_twice(void);
void command_behind_a_gap_waits_for_its_turn(void);
void command_behind_a_gap_keeps_its_data(void);
void command_behind_a_gap_goes_on_behind_a_function(void);
void command_behind_a_gap_ends_with_its_connection(void);
void ping_behind_a_gap_closes(void);
void command_immediate_uses_no_number(void);
void window_grows_with_use(void);

/* data_out.c */
void data_out_with_a_wrong_number_ends_its_command(void);
void data_out_with_a_wrong_offset_ends_its_command(void);
void data_out_longer_than_asked_for_ends_its_command(void);
void data_out_that_ends_too_early_ends_its_command(void);
void data_out_with_a_wrong_tag_is_ignored(void);
void data_out_with_the_tag_of_another_task_ends_its_command(void);
void unsolicited_data_follows_immediate_data(void);
void unsolicited_data_without_immediate_data(void);
void unsolicited_data_beyond_first_burst_ends_its_command(void);
void unsolicited_data_of_a_command_that_failed_is_dropped(void);

/* numbers.c */
void data_in_obeys_segment_and_burst_lengths(void);
void data_in_of_the_longest_transfer_comes_whole(void);
void r2t_obeys_burst_length_and_number(void);
void r2t_may_be_answered_interleaved(void);
void residual_of_a_read_shorter_than_expected(void);
void residual_of_a_read_longer_than_expected(void);
void residual_of_a_write_shorter_than_expected(void);
void residual_of_a_write_longer_than_expected(void);
void residual_of_a_command_without_data(void);
void sense_stands_in_the_response(void);
void sense_of_a_medium_error_reaches_the_initiator(void);
void stat_sn_goes_on_from_the_login(void);

/* stream.c */
void sender_of_single_bytes_is_served(void);
void pdu_split_anywhere_is_put_together(void);
void data_out_split_anywhere_is_put_together(void);
void writes_of_several_receives_reach_a_file_in_memory(void);
void commands_of_an_initiator_that_is_behind_are_gathered(void);
void pdus_in_one_segment_are_all_served(void);
void login_pdus_in_one_segment_are_all_served(void);
void padding_in_a_later_segment_is_awaited(void);
void reader_that_comes_late_gets_everything(void);
void flood_of_idle_connections_keeps_nobody_out(void);
void login_that_takes_too_long_is_ended(void);

/* control.c */
void nop_echoes_its_data(void);
void nop_not_immediate_uses_a_number(void);
void nop_without_a_tag_is_not_answered(void);
void nop_without_a_tag_that_is_not_immediate_is_rejected(void);
void nop_is_answered_while_a_store_is_stuck(void);
void ping_of_the_target_drops_who_has_answered_and_does_not(void);
void ping_of_the_target_spares_who_has_never_answered(void);
void ping_of_the_target_is_not_sent_while_others_flow(void);
void text_sends_the_target_of_its_session(void);
void text_comes_in_pieces_that_the_initiator_takes(void);
void text_that_is_broken_is_rejected(void);
void logout_of_the_session_ends_it(void);
void logout_of_the_connection_ends_the_session(void);
void logout_of_what_is_not_there_is_refused(void);
void logout_waits_for_what_a_store_has(void);

/* tmf.c */
void abort_task_that_waits_for_data(void);
void abort_task_waits_for_the_store(void);
void abort_task_that_has_ended(void);
void abort_task_that_is_held_behind_a_gap(void);
void abort_task_that_is_held_keeps_its_data_from_the_store(void);
void abort_task_set_leaves_newer_commands(void);
void lun_reset_ends_the_tasks_of_all_sessions(void);
void clear_task_set_ends_the_tasks_of_all_sessions(void);
void warm_reset_ends_the_tasks_of_all_sessions(void);
void warm_reset_leaves_newer_commands(void);
void abort_task_set_leaves_other_sessions(void);
void cold_reset_ends_all_sessions_of_its_target(void);
void function_for_a_lun_that_is_not_there(void);
void function_that_we_do_not_have(void);
void functions_that_wait_are_bounded(void);
void function_of_a_connection_that_is_gone(void);
void reset_of_a_connection_that_is_gone_is_told_to_the_others(void);

/* sessions.c */
void session_that_logs_in_again_ends_the_old_one(void);
void session_that_logs_in_again_by_its_handle(void);
void session_that_logs_in_again_fences_old_writes(void);
void session_whose_old_writes_do_not_end_is_refused(void);
void session_that_gives_up_waiting_leaves_nothing(void);
void sessions_with_different_isids_live_together(void);
void sessions_with_different_names_live_together(void);
void session_that_is_not_there_is_not_found(void);
void session_takes_no_second_connection(void);
void connection_killed_during_io_leaves_nothing(void);

/* memory.c */
void buffers_that_run_low_fail_no_command(void);
void buffers_held_by_silent_peers_leave_room(void);
void readers_that_take_nothing_make_room(void);
void slots_that_run_out_refuse_logins(void);
void slots_that_are_promised_are_not_for_immediate_commands(void);
void pings_without_a_reader_cost_their_sender_only(void);
void pings_beyond_all_bounds_end_their_sender_only(void);
void data_out_behind_a_flood_of_pings_ends_its_sender_only(void);

/* garbage.c */
void garbage_costs_its_sender_only(void);

/* stop.c */
void stop_asks_for_logout_and_then_drops(void);
void stop_is_quick_when_all_log_out(void);
void stop_with_a_stuck_store_says_so(void);
void end_of_one_targets_sessions_leaves_the_others(void);

#endif
