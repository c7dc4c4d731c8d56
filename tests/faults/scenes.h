/* scenes.h - the scenarios by name, in one list; each lies in a scenes_*.c as `scenario_` and its name. */
#ifndef LINKPOOL_TESTS_FAULTS_SCENES_H
#define LINKPOOL_TESTS_FAULTS_SCENES_H

#include "tests/faults/scene.h"

/** Defines one whose play is the function of its name; or one whose play is said. */
#define SCENARIO(scene, ...)    const struct scenario scenario_##scene = {.name = #scene, .play = scene, __VA_ARGS__}
#define SCENARIO_OF(scene, ...) const struct scenario scenario_##scene = {.name = #scene, __VA_ARGS__}

/* clang-format off */
#define SCENES(X) \
    /* edge */ \
    X(edge_first_timer_of_a_host) \
    X(edge_second_timer_of_a_host) \
    X(edge_timer_of_a_link) \
    X(edge_first_timer_of_a_target) \
    X(edge_second_timer_of_a_target) \
    X(edge_timer_of_a_lease) \
    X(edge_timer_of_a_winner) \
    X(edge_timer_of_a_call) \
    X(edge_timer_of_a_group) \
    X(edge_heaps_of_a_host) \
    X(edge_heap_of_a_target) \
    X(edge_coldest_of_a_host) \
    X(edge_table_of_names) \
    X(edge_table_of_hosts) \
    X(edge_table_of_attempts) \
    /* host */ \
    X(by_text) \
    X(by_unix_path) \
    X(by_many_spellings) \
    X(by_text_that_is_not_remembered) \
    X(many_hosts) \
    X(hosts_that_go) \
    X(by_handle) \
    X(with_options) \
    X(with_options_changed) \
    X(with_all_parts) \
    X(kept_up) \
    X(drained_and_started) \
    X(recycled) \
    X(offline_and_started) \
    /* link */ \
    X(alone) \
    X(alone_and_shared) \
    X(alone_with_a_handshake) \
    X(three_on_a_driver) \
    X(alone_and_lost) \
    X(alone_and_stopped) \
    X(alone_with_all_parts) \
    X(alone_and_refused) \
    X(handles_of_protocols) \
    X(handles_of_transports) \
    X(words_of_a_transport) \
    X(words_of_a_protocol) \
    /* shared */ \
    X(shared) \
    X(shared_by_many) \
    X(shared_and_lost) \
    X(shared_and_talkative) \
    X(shared_and_refused) \
    X(shared_and_given_room) \
    X(shared_and_ended) \
    X(shared_and_sent_away) \
    X(shared_and_recycled) \
    /* calls */ \
    X(called) \
    X(called_by_many) \
    X(called_and_refused) \
    X(called_over_a_clog) \
    X(called_and_silent) \
    X(called_as_a_group) \
    /* target */ \
    X(target) \
    X(target_first_of_two) \
    X(target_updated) \
    X(target_updated_while_it_opens) \
    X(target_of_the_same_twice) \
    X(target_emptied) \
    X(target_without_a_list) \
    X(target_with_options) \
    X(target_refused) \
    X(targets_that_share_hosts) \
    X(target_removed_and_back) \
    X(target_drained) \
    X(target_started) \
    X(target_of_an_own_picker) \
    X(many_targets) \
    /* use */ \
    X(used_again) \
    X(discarded) \
    X(given_back_unclean) \
    X(half_closed) \
    X(cleaned_between_holders) \
    X(listened_to) \
    X(listened_to_through_a_narrow_pipe) \
    X(short_lived) \
    X(dies_idle) \
    X(dies_held) \
    X(pool_drained) \
    X(pool_forked) \
    X(pool_with_other_bounds) \
    X(explained) \
    X(sockets_with_settings) \
    /* wait */ \
    X(waiters) \
    X(waiters_with_times) \
    X(waiters_in_vain) \
    X(waiters_who_give_up) \
    X(full_lines) \
    X(cancelled_as_it_wins) \
    X(won_and_lost) \
    X(down_and_up_again) \
    X(backoff_forgotten) \
    X(network_changed) \
    X(all_peers_fail) \
    X(room_is_made) \
    X(few_descriptors) \
    X(one_attempt_at_a_time) \
    X(fresh_and_elsewhere)

/* Those in which the system's calls fail in turn. */
#define SCENES_OF_CALLS(X) \
    X(by_text) \
    X(by_unix_path) \
    X(with_all_parts) \
    X(kept_up) \
    X(target) \
    X(target_first_of_two) \
    X(target_updated) \
    X(waiters) \
    X(won_and_lost) \
    X(room_is_made) \
    X(down_and_up_again) \
    X(used_again) \
    X(half_closed) \
    X(cleaned_between_holders) \
    X(listened_to) \
    X(listened_to_through_a_narrow_pipe) \
    X(dies_idle) \
    X(pool_drained) \
    X(sockets_with_settings) \
    X(shared) \
    X(shared_and_talkative) \
    X(shared_and_ended) \
    X(shared_and_sent_away) \
    X(shared_and_recycled) \
    X(called) \
    X(called_over_a_clog) \
    X(alone) \
    X(alone_and_shared) \
    X(alone_with_a_handshake) \
    X(alone_with_all_parts)
/* clang-format on */

#define DECLARE(scene) extern const struct scenario scenario_##scene;
SCENES(DECLARE)
#undef DECLARE

#endif
