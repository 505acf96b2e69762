/* The scripts of this folder; see script.h. */
#ifndef TESTS_LOGIN_TESTS_H
#define TESTS_LOGIN_TESTS_H

#include "tests/login/script.h"

/* stages.c */
void login_goes_straight_to_full_feature_from_the_operational_stage(void);
void login_passes_through_both_stages(void);
void login_may_skip_the_operational_stage(void);
void login_without_transit_stays_in_its_stage(void);
void login_joins_text_over_several_pdus(void);
void login_bounds_the_text_over_several_pdus(void);
void login_ends_after_64_requests(void);
void login_refuses_transit_with_continue(void);
void login_refuses_the_reserved_current_stage(void);
void login_refuses_full_feature_as_current_stage(void);
void login_refuses_the_reserved_next_stage(void);
void login_refuses_a_transit_to_the_same_stage(void);
void login_refuses_a_transit_back(void);
void login_refuses_to_go_back_to_the_security_stage(void);
void login_refuses_a_stage_that_was_not_granted(void);
void login_refuses_operational_keys_in_the_security_stage(void);
void login_refuses_authentication_in_the_operational_stage(void);

/* admission.c */
void login_needs_an_initiator_name(void);
void login_needs_a_target_name_in_a_normal_session(void);
void login_refuses_an_unknown_session_type(void);
void login_refuses_an_initiator_name_with_a_slash(void);
void login_does_not_find_an_unknown_target(void);
void login_does_not_find_a_target_with_an_impossible_name(void);
void login_does_not_find_a_target_of_another_portal_group(void);
void login_is_forbidden_by_auth_type_deny(void);
void login_is_forbidden_by_the_name_rules(void);
void login_is_forbidden_by_the_address_rules(void);
void login_to_a_portal_group_that_is_gone_may_be_tried_again(void);
void login_refuses_text_without_an_end(void);
void login_refuses_text_without_a_value(void);
void login_refuses_a_key_without_a_name(void);
void login_refuses_when_chap_is_required_and_none_offered(void);
void login_refuses_when_chap_is_required_and_no_method_named(void);
void login_refuses_when_only_chap_is_offered_and_none_is_possible(void);
void discovery_needs_chap_when_the_group_says_so(void);
void login_refuses_to_skip_chap_through_the_operational_stage(void);
void login_compares_names_without_regard_to_case(void);
void login_takes_a_missing_session_type_as_normal(void);
void login_tolerates_what_is_declared_again_unchanged(void);
void login_refuses_another_initiator_name(void);
void login_refuses_another_target(void);
void login_refuses_another_session_type(void);
void login_refuses_to_negotiate_a_key_twice(void);

/* negotiation.c */
void negotiation_takes_the_lesser_number(void);
void negotiation_takes_the_greater_time_to_wait(void);
void negotiation_keeps_initial_r2t_when_the_target_wants_it(void);
void negotiation_has_immediate_data_when_both_want_it(void);
void negotiation_drops_immediate_data_when_one_does_not_want_it(void);
void negotiation_keeps_data_in_order(void);
void negotiation_has_no_error_recovery_above_level_0(void);
void negotiation_takes_the_digest_that_the_initiator_prefers(void);
void negotiation_knows_no_digest_by_a_part_of_its_name(void);
void negotiation_reads_hexadecimal_numbers(void);
void negotiation_rejects_numbers_out_of_range(void);
void negotiation_rejects_what_is_neither_yes_nor_no(void);
void negotiation_does_not_understand_other_keys(void);
void negotiation_answers_the_obsolete_marker_keys(void);
void negotiation_reports_tasks_as_rfc_3720_did(void);
void negotiation_rejects_task_reporting_that_it_has_not(void);
void negotiation_has_protocol_level_1(void);
void negotiation_rejects_keys_that_only_a_target_sends(void);
void negotiation_takes_a_refusal_of_its_own_declarations_calmly(void);
void negotiation_bounds_first_burst_by_max_burst(void);
void negotiation_ends_on_a_segment_length_out_of_range(void);
void negotiation_ends_on_a_segment_length_of_more_than_24_bits(void);
void negotiation_ends_when_a_required_digest_is_not_offered(void);
void negotiation_ends_when_no_digest_is_known(void);
void negotiation_offers_what_the_initiator_left_out_and_the_settings_ask(void);
void negotiation_never_offers_an_irrelevant_first_burst(void);
void negotiation_ends_when_an_offer_is_not_answered(void);
void negotiation_ends_when_an_answer_is_beyond_the_offer(void);
void negotiation_answers_irrelevant_in_discovery(void);
void negotiation_prefers_no_digest_in_discovery(void);
void negotiation_bounds_the_answer(void);
void negotiation_bounds_the_number_of_keys(void);

/* initiators.c */
void initiator_linux_logs_in(void);
void initiator_boot_firmware_logs_in(void);
void initiator_macos_logs_in(void);
void initiator_libiscsi_logs_in(void);
void initiator_linux_discovers(void);

#endif
