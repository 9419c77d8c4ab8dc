"""What is promised, and the tests that check it: one that is gone or renamed fails the suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """`checks` are names of tests below tests/, `tables` those of the figures that bear on it."""

    name: str
    says: str
    checks: tuple[str, ...]
    tables: tuple[str, ...] = ()


PROMISES = (
    Promise(
        "I1",
        "At most one pull request per finding, closed ones included.",
        (
            "integration/test_hub_life.py::test_closed_pull_request_is_never_reopened",
            "crash/test_cases.py::test_any_fault_at_any_sort_of_call_ends_as_if_nothing_had_happened",
            "crash/test_cases.py::test_a_death_at_any_call_ends_as_if_nothing_had_happened",
        ),
        ("crashes by stage", "pairs", "races", "interleavings"),
    ),
    Promise(
        "I2",
        "Ralph never begins a mission while 3 are under way, however many runners there are.",
        (
            "crash/test_interleavings.py::test_every_interleaving_of_two_runners",
            "integration/test_trust.py::test_six_cycles_on_sixty_findings_never_exceed_a_cap",
            "mission/test_policy.py::test_caps_hold_under_arbitrary_plans",
        ),
        ("crashes by stage", "interleavings", "soak"),
    ),
    Promise(
        "I3",
        "At most one delivery of a post; if in doubt it becomes `unknown` and is never sent again.",
        (
            "crash/test_cases.py::test_any_fault_at_any_sort_of_call_ends_as_if_nothing_had_happened",
            "integration/test_publishing.py::test_a_kill_between_send_and_receipt_leaves_one_delivery_and_one_doubt",
            "integration/test_publishing.py::test_doubt_is_told_to_a_person_and_never_resent",
            "crash/test_interleavings.py::test_every_interleaving_of_a_publishing_and_a_cycle_with_few_interruptions",
        ),
        ("crashes by stage", "interleavings"),
    ),
    Promise(
        "I4",
        "No effect without a durable intent on the memory branch before it.",
        (
            "crash/test_cases.py::test_a_process_that_is_killed_at_any_sort_of_write_is_carried_on_by_the_next",
            "protocol/test_model.py::test_whatever_happens_every_law_holds_and_the_end_is_the_undisturbed_one",
        ),
        ("crashes by stage", "model", "model mutants"),
    ),
    Promise(
        "I5",
        "Only the commit that an authorised account approved is merged, if the approval still holds at that moment.",
        (
            "integration/test_hub_life.py::test_a_head_that_moves_between_judgement_and_merge_is_not_merged",
            "integration/test_hub_life.py::test_an_approval_dismissed_between_judgement_and_merge_does_not_count",
            "integration/test_hub_life.py::test_an_outsiders_approval_is_refused",
            "integration/test_hub_life.py::test_an_approval_of_another_head_is_refused",
        ),
        ("crashes by stage", "soak"),
    ),
    Promise(
        "I6",
        "An automatic pull request never holds a protected path, an unusual file mode or an oversized change.",
        (
            "attacks/test_patches.py::test_whatever_is_let_through_is_harmless_by_a_second_opinion_too",
            "attacks/test_obeying_planner.py::test_a_planner_that_obeys_the_attacker_brings_about_nothing_forbidden",
            "integration/test_missions_by_agent.py::test_a_protected_path_needs_a_yes_first",
        ),
        ("obeying planner", "obeying agent"),
    ),
    Promise(
        "I7",
        "No known secret, plain, url-encoded or in base64, in anything that is sent or logged.",
        (
            "attacks/test_secrets_everywhere.py::test_a_cycle_whose_observer_and_planner_are_the_attackers_lets_nothing_out",
            "attacks/test_secrets_everywhere.py::test_what_a_session_says_of_it_is_in_no_line_and_no_file_of_the_loop",
            "integration/test_places.py::test_a_secret_in_what_a_command_says_reaches_neither_memory_nor_voice",
            "adapters/forges/github/test_forge.py::test_token_stands_in_no_receipt_error_note_log_file_or_argument",
            "real/test_canaries.py::test_a_canary_is_nowhere_in_what_the_model_received_nor_in_any_sink",
        ),
        ("canaries at the hardest isolation",),
    ),
    Promise(
        "I8",
        "An agent's process holds no token of ours, and at `bwrap` cannot read one through /proc.",
        (
            "integration/test_isolation_attacks.py::test_no_process_tells_our_token",
            "adapters/sandbox/test_process.py::test_the_environment_is_an_allow_list",
            "real/test_canaries.py::test_a_canary_is_nowhere_in_what_the_model_received_nor_in_any_sink",
        ),
        ("canaries at the hardest isolation",),
    ),
    Promise(
        "I9",
        "Entries of memory and the journal are never lost or altered.",
        (
            "crash/test_soak.py::test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice",
            "mission/memory/test_text.py::test_what_falls_off_is_kept_word_for_word",
            "adapters/storage/memory/test_branch.py::test_200_cycles_keep_the_file_bounded_and_lose_nothing",
        ),
        ("crashes by stage", "soak"),
    ),
    Promise(
        "I10",
        "Memory moves only forward, from the object id that was read.",
        (
            "crash/test_soak.py::test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice",
            "adapters/storage/memory/test_branch_server.py::test_an_answer_lost_after_the_push_is_found_out",
            "adapters/storage/memory/test_branch_deaths.py::test_processes_that_race_get_one_winner_each_round",
        ),
        ("crashes by stage", "interleavings", "soak"),
    ),
    Promise(
        "I11",
        "Corrupt memory, or a foreign change outside people's sections: no effect, with [one "
        "exception](#what-is-not-covered) that grants nothing.",
        (
            "integration/test_fresh_clones.py::test_a_fresh_clone_refuses_what_a_stranger_changed_and_welcomes_what_a_person_wrote",
            "integration/test_fresh_clones.py::test_a_state_that_is_forged_one_serial_further_is_believed_and_grants_nothing",
            "integration/test_hub_requests.py::test_a_foreign_commit_on_memory_in_the_middle_of_a_cycle_stops_it",
            "integration/test_hub_life.py::test_memory_that_was_rolled_back_on_the_server_stops_the_next_runner",
            "mission/memory/test_text.py::test_23_truncation_fails_closed",
        ),
    ),
    Promise(
        "I12",
        "The text of memory grants nothing.",
        (
            "integration/test_hub_forged.py::test_what_was_asked_is_not_pushed_without_a_yes_whatever_memory_says",
            "integration/test_orders.py::test_a_yes_that_memory_alone_knows_of_moves_nothing",
            "integration/test_content.py::test_a_text_that_was_put_under_an_owners_yes_is_not_published",
            "integration/test_fresh_clones.py::test_a_state_that_is_forged_one_serial_further_is_believed_and_grants_nothing",
        ),
    ),
    Promise(
        "I13",
        "What Ralph writes closes no issue, notifies nobody, triggers no bot and skips no CI.",
        (
            "attacks/test_obeying_planner.py::test_a_planner_that_obeys_the_attacker_brings_about_nothing_forbidden",
            "safety/test_text.py::test_what_was_sanitised_closes_pings_commands_and_hides_nothing",
            "integration/test_work.py::test_neither_the_issues_words_nor_the_agents_close_ping_command_or_sign",
        ),
        ("obeying planner",),
    ),
    Promise(
        "I14",
        "Nothing untrusted becomes a workflow command or an environment variable.",
        (
            "safety/test_text_injected.py::test_d37_d38_no_workflow_command_survives",
            "action/test_scripts.py::test_no_value_forges_another_output",
            "adapters/report/test_step_summary.py::test_the_fence_is_another_one_each_time",
        ),
    ),
    Promise(
        "I15",
        "Observers change no tracked file, no ref, no row, nothing on a network.",
        (
            "integration/test_trust.py::test_a_staged_cycle_changes_nothing_and_says_what_would_happen",
            "integration/test_hub_life.py::test_staged_changes_nothing_on_the_server_or_in_the_clone",
            "attacks/test_observers.py::test_the_role_that_looks_may_not_write_whatever_a_session_sets",
        ),
    ),
    Promise(
        "I16",
        "Web observers reach no hidden address, on any hop, after resolution.",
        (
            "adapters/http/test_guard_hostile.py::test_no_spelling_of_a_private_address_reaches_it",
            "adapters/http/test_guard_hostile.py::test_no_name_of_a_private_address_reaches_it",
            "adapters/http/test_guard_hostile.py::test_no_redirect_leads_to_a_private_place",
        ),
    ),
    Promise(
        "I17",
        "Ceilings on effects, tokens, money and time hold in a cycle and in a day.",
        (
            "crash/test_interleavings.py::test_every_interleaving_of_two_runners",
            "mission/test_policy.py::test_caps_hold_under_arbitrary_plans",
            "integration/test_work.py::test_todays_money_holds_and_what_was_not_spent_is_given_back",
            "adapters/wakers/test_wakers.py::test_no_day_has_more_wakes_than_the_cap_whoever_sends_them",
        ),
        ("soak",),
    ),
    Promise(
        "I18",
        "The memory branch is never reset, nothing is forced, and the default branch moves only by merges.",
        (
            "crash/test_soak.py::test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice",
            "crash/test_cases.py::test_a_process_that_is_killed_at_any_sort_of_write_is_carried_on_by_the_next",
            "mission/test_policy.py::test_the_memory_branch_is_as_forbidden_as_the_default_branch",
        ),
        ("crashes by stage", "pairs", "races", "interleavings"),
    ),
    Promise(
        "I19",
        "After a crash anywhere, the result is the same as without it.",
        (
            "crash/test_pairs.py::test_any_two_faults_end_as_if_nothing_had_happened",
            "crash/test_cases.py::test_any_fault_at_any_sort_of_call_ends_as_if_nothing_had_happened",
            "integration/test_trust.py::test_a_kill_around_any_effect_leads_to_the_same_end_without_a_duplicate",
        ),
        ("crashes by stage", "crashes by kind of fault", "recovery paths", "pairs", "soak", "model"),
    ),
    Promise(
        "I20",
        "A clock that is wrong by two days in either direction, or goes backwards, repeats nothing, does nothing early "
        "except look again, and delays nothing by more than the longest pause plus an hour.",
        (
            "mission/test_day.py::test_money_of_a_day_is_spent_once_by_runners_whose_clocks_differ",
            "integration/test_hub_life.py::test_a_wrong_clock_refuses_no_yes_and_loses_no_label",
            "integration/test_hub_life.py::test_a_wrong_clock_brings_an_escalated_mission_back",
            "integration/test_after_a_death.py::test_a_clock_that_went_back_does_not_make_an_old_yes_new",
            "cli/doctor/test_checks.py::test_a_clock_that_was_ahead_silences_nothing",
        ),
        ("soak",),
    ),
    Promise(
        "I21",
        "Every effect traces to its finding, to a decision that no rule objected to and, where it needs "
        "approval, to the person who approved; what is refused names its rules.",
        ("integration/test_traces.py::test_every_effect_leads_to_its_finding_tier_rules_and_approver",),
    ),
    Promise(
        "I22",
        "The kill switch stops before the next effect.",
        (
            "integration/test_hub_requests.py::test_the_kill_switch_thrown_between_two_effects_stops_the_next",
            "integration/test_hub_requests.py::test_paused_pushed_between_two_effects_stops_the_next",
        ),
    ),
    Promise(
        "I23",
        "The same inputs give the same decisions.",
        (
            "crash/test_soak.py::test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice",
            "integration/test_trust.py::test_a_recorded_cycle_replays_to_the_same_decisions",
            "integration/test_publishing.py::test_a_recorded_cycle_decides_the_same_again",
        ),
    ),
    Promise(
        "I24",
        "Each cycle is followed by one wake, or the heartbeat makes up for it.",
        (
            "crash/test_soak.py::test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice",
            "integration/test_drift.py::test_no_due_time_is_served_twice",
            "adapters/wakers/test_wakers_command.py::test_in_the_due_minute_the_loop_is_woken_once",
            "adapters/wakers/test_wakers_command.py::test_a_wake_of_which_nothing_came_is_repeated_after_ten_minutes",
        ),
    ),
)
