"""The faults and habits of the loops that came before, and which tests keep this one from them.

`seed` is one of the papers this project grew from; all else are public projects. A test is named by its function, in
whatever file it stands; what no test can hold yet is listed with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

FAULTS: dict[tuple[str, str], str] = {
    # --- completion ------------------------------------------------------------------
    ("snarktank/ralph", "ends as completed when the agent merely quotes the promise"):
        "who_only_quotes_the_promise_never_completes the_promise_alone_does_not_complete_stories "
        "a_quoted_promise_never_completes a_prompt_that_is_only_echoed_says_no_event_and_makes_no_promise",
    ("snarktank/ralph", "complete before every story passes"):
        "who_flips_all_stories_with_red_checks_never_completes all_stories_flipped_with_red_checks_are_all_reverted "
        "an_emptied_list_completes_nothing",
    ("snarktank/ralph", "two stories flipped in one iteration both count"):
        "who_flips_all_stories_with_green_checks_gets_one_at_a_time of_two_flips_the_story_that_was_given_stays",
    ("ralph-orchestrator", "complete while work is left"):
        "no_open_status_lets_a_loop_end open_tasks_after_a_clean_verdict_call_the_builder_again "
        "open_tasks_can_be_trusted_to_the_agent",
    ("ralph-orchestrator", "completion that was said is missed"):
        "a_promise_as_an_event_completes an_event_through_files_alone_is_heard work_that_is_done_takes_no_session",
    ("ralph-orchestrator", "the promise ends what other hats still work on"):
        "a_promise_does_not_end_what_a_reviewer_decides done_is_there_only_when_no_hat_is_active",
    ("frankbria/ralph-claude-code", "leaves because of words about being done"):
        "a_quoted_promise_never_completes the_promise_of_a_session_that_failed_does_not_count "
        "an_event_that_is_only_shown_is_not_said",
    ("open-ralph-wiggum", "a promise in the middle of a message ends it"):
        "a_quoted_promise_never_completes a_promise_on_the_last_line_with_green_checks_completes",
    ("opencrabs", "no test ran at all, and the work counts as verified"):
        "zero_checks_prove_nothing_when_checks_are_required required_tests_need_a_check "
        "without_checks_nothing_was_proven",
    ("oh-my-claudecode", "a criterion that was disproved is amended until it holds"):
        "a_criterion_that_was_amended_is_put_back_and_the_flip_judged_all_the_same "
        "an_amended_criterion_is_put_back_in_the_file_with_every_unknown_key",
    ("seed 001", "its stop hook ignores tasks that are ready, and crashes when a count is zero"):
        "no_open_status_lets_a_loop_end closed_tasks_hold_nothing_up an_empty_list_is_a_clean_verdict",
    # --- stuck, idle, limits ---------------------------------------------------------
    ("ralph-fresh of oh-my-claudecode", "its stuck detection never fires: the count stays at 1"):
        "iterations_on_the_same_story_are_really_counted the_status_of_the_prd_is_written_each_time "
        "a_story_that_takes_too_long_is_warned_replanned_skipped_and_then_a_person_is_asked",
    ("ralph-fresh of oh-my-claudecode", "after the iteration limit a rerun exits at once"):
        "a_higher_limit_goes_on_where_the_lower_one_ended after_a_limit_a_higher_one_goes_on",
    ("oh-my-claudecode", "no circuit breaker"):
        "sessions_that_move_nothing_end_it three_failures_in_a_row_end_it_and_one_success_between_does_not "
        "handing_the_same_event_out_again_and_again_is_thrash",
    ("frankbria/ralph-claude-code", "the circuit breaker does not see committed work"):
        "the_idle_breaker_sees_committed_work_as_progress",
    ("frankbria/ralph-claude-code", "the circuit breaker opens on healthy runs"):
        "the_same_event_with_progress_between_is_no_thrash the_idle_breaker_sees_tasks_as_progress "
        "rounds_of_review_over_one_task_are_not_mistaken_for_being_stuck",
    ("frankbria/ralph-claude-code", "a time-out is mistaken for a rate limit"):
        "a_timeout_is_never_taken_for_a_rate_limit a_timeout_goes_on_with_the_next_session_and_is_not_waited_for "
        "an_agents_text_about_rate_limits_is_no_limit",
    ("frankbria/ralph-claude-code", "burns money while nothing is to be done"):
        "a_persistent_loop_that_finds_nothing_does_not_burn_for_ever cost_ends_it_before_the_next_session",
    ("snarktank/ralph", "runs through its iterations against a rate limit"):
        "a_rate_limit_is_waited_for_and_costs_no_iteration the_providers_word_on_when_is_kept",
    ("ralph-orchestrator", "costs that nobody sees"):
        "sessions_tokens_and_dollars_are_shown_by_hat_and_story what_a_session_took_is_said_as_far_as_it_is_known "
        "a_cost_limit_counts_what_the_planner_took",
    ("ralph-orchestrator", "in persistent mode nobody hears task.resume: an idle loop at full speed"):
        "a_persistent_loop_that_no_hat_takes_up_again_is_taken_up_without_one "
        "a_persistent_loop_whose_hats_wait_to_be_called_is_resumed_without_one",
    ("ralph-orchestrator", "five failures in a row in its code, three in the paper"):
        "loop_is_seed_000s_table three_failures_in_a_row_end_it_and_one_success_between_does_not",
    ("ralphex", "hangs with its agent"):
        "a_session_that_takes_too_long_is_ended_as_a_timeout too_much_output_is_a_failed_turn "
        "a_pipe_in_place_of_the_signal_stops_nothing what_cannot_be_heard_is_one_malformed_event_and_never_a_hang",
    # --- cancelling, going on, losing ------------------------------------------------
    ("ralph-fresh of oh-my-claudecode", "Ctrl-C waits for the child"):
        "an_interrupt_leaves_nothing_running_and_the_run_goes_on an_interrupt_ends_an_agent_that_ignores_it",
    ("oh-my-claudecode", "cannot be cancelled"):
        "cancel_ends_the_session_at_once_and_the_run_is_not_continued cancel_clears_up_after_a_loop_that_was_killed",
    ("oh-my-claudecode", "the state of one run leaks into another"):
        "a_new_run_finds_memories_and_nothing_else_of_the_former_one a_second_loop_in_the_same_checkout_is_refused "
        "an_active_mode_of_another_tool_holds_us_up_and_is_named",
    ("frankbria/ralph-claude-code", "a stale exit signal ends the next run"):
        "what_a_former_run_was_asked_and_said_does_not_reach_the_next a_stale_signal_does_not_end_a_run_that_goes_on",
    ("frankbria/ralph-claude-code", "the agent deletes the folder that the loop lives by"):
        "a_deleted_ralph_folder_comes_back_with_what_the_running_loop_holds "
        "a_session_that_deletes_ralphs_folder_lets_no_second_loop_in",
    ("ralph-orchestrator", "state is lost between two processes"):
        "a_kill_in_the_third_session_and_nothing_is_done_twice the_state_is_on_disk_before_the_next_session_starts "
        "a_broken_file_is_put_aside_and_said",
    ("ralph-orchestrator", "a log of events that sessions may edit"):
        "what_a_session_does_to_the_log_is_undone_and_told",
    ("snarktank/ralph", "the archive holds the new list, and the old one is lost"):
        "the_archive_holds_the_old_list_and_not_the_new_one the_stories_of_another_branch_put_the_former_ones_away",
    ("snarktank/ralph", "an agent rewrites progress.txt"):
        "a_log_that_a_session_truncated_is_whole_again a_log_that_a_session_wrote_anew_keeps_both",
    ("ralph-fresh of oh-my-claudecode", "a handoff of five kilobytes grows with the stories"):
        "the_handoff_is_at_most_5_kb_from_1_to_1000_stories "
        "the_prompt_of_session_1000_is_no_longer_than_that_of_session_3_by_more_than_a_tenth",
    ("seed 003", "each cycle's memory misses the one before, and from the second on its push is rejected"):
        "what_was_committed_is_recalled each_commit_has_the_next_serial of_two_runners_the_second_loses "
        "runners_on_two_machines_take_turns",
    ("seed 003", "asks for an hour and dispatches at once"):
        "a_wake_starts_a_cycle_when_one_is_due_and_not_before",
    ("seed 003", "its workflow is for an older action"):
        "the_workflow_passes_githubs_schema_and_an_audit every_input_and_output_that_it_names_is_one_of_the_action",
    ("seed 003", "a label set with the workflow's own token starts nothing"):
        "the_workflow_is_woken_by_cron_by_hand_and_by_our_own_dispatch",
    # --- hats ------------------------------------------------------------------------
    ("seed 001", "a reviewer that writes, a record that is changed afterwards"):
        "every_pattern_is_judged_by_a_reviewer_that_can_change_nothing records_cannot_be_changed "
        "eight_ways_to_leave_the_globs_are_gone_afterwards_and_in_the_report",
    ("seed 001", "who calls whom"):
        "the_seven_hats_and_the_four_patterns_are_there plan_build_review_routes_as_the_protocol_says "
        "a_verdict_with_issues_calls_the_fixer_and_without_ends_the_loop "
        "red_checks_after_a_clean_verdict_go_back_to_the_builder_with_what_failed",
    ("seed 001", "no event, or two, from one session"):
        "a_session_ends_with_exactly_one_event_of_its_hat_or_it_failed_and_hears_why",
    ("seed 001", "a table that adds up to 2.33 and is called 4.20; 40 percent that are 30"):
        "the_total_is_the_sum_of_the_rows_so_that_233_is_never_called_420 "
        "a_saving_is_computed_from_the_same_rows_and_30_percent_stays_30_percent no_price_is_built_in",
    ("seed 001", "three milliseconds that a process start alone exceeds"):
        "what_agents_call_imports_nothing_heavy "
        "a_task_lives_from_pending_to_done_on_the_file_that_the_command_line_uses",
    ("seed 001", "convergence is no critical issue, each with file, line and kind"):
        "issues_below_critical_within_the_threshold_do_not_hold_it_up "
        "an_issue_carries_file_line_kind_severity_and_message",
    ("oh-my-claudecode", "a critic that sees the architect's review, rounds without an end"):
        "critic_and_architect_of_a_round_are_told_the_same_and_nothing_of_each_other "
        "a_critic_who_is_never_satisfied_ends_it_after_five_rounds_with_the_objections_and_the_plan "
        "an_approved_section_is_frozen_for_the_planner",
    ("ralph-orchestrator", "guidance that is given again and again, or never"):
        "guidance_reaches_the_next_session_once guidance_is_kept_while_no_agent_has_read_it "
        "guidance_carries_its_id_and_asks_to_be_acknowledged",
    ("ralph-orchestrator", "the scratchpad of 16,000 characters: tail, line, dropped headings; cleared between issues"):
        "the_scratchpad_keeps_16000_characters_of_its_end_cut_at_a_line headings_that_were_dropped_are_listed_in_order "
        "between_two_issues_the_scratchpad_and_the_tasks_are_put_away",
    # --- stories ---------------------------------------------------------------------
    ("snarktank/ralph", "lowest priority number first, one commit named after its story, only when checks pass"):
        "the_stories_of_the_paper_stand_in_their_order "
        "the_lowest_priority_number_goes_first_and_ties_as_they_were_added "
        "a_commit_is_named_after_its_story_in_one_line a_story_passes_when_the_checks_are_green",
    ("snarktank/ralph", "its skills: lettered questions, size, order, criteria that can be checked"):
        "the_skill_asks_a_few_questions_with_lettered_options "
        "three_sentences_describe_a_story_and_four_do_not what_works_on_the_schema_stands_behind_it "
        "a_criterion_that_nobody_can_check_is_vague converting_adds_what_every_story_has_and_says_what_is_left_to_mend "
        "stories_of_the_user_interface_pass_the_browser_check_as_well",
    ("snarktank/ralph", "step 9 of its cycle, lasting patterns for everybody"):
        "who_works_through_stories_leaves_lasting_patterns_where_everybody_reads_them",
    # --- files that others wrote -----------------------------------------------------
    ("snarktank/ralph", "its files"):
        "the_file_of_snarktank_is_read the_log_of_snarktank_is_read only_passes_and_notes_differ",
    ("ralph-orchestrator", "its files"):
        "a_preset_of_ralph_orchestrator_loads_unchanged a_file_of_ralph_orchestrator_is_read_with_its_states_mapped "
        "a_payload_is_a_text_or_an_object a_file_of_ralph_orchestrator_is_read "
        "the_settings_of_ralph_orchestrator_are_obeyed",
    ("oh-my-claudecode", "its files"):
        "the_log_of_oh_my_claudecode_is_read a_handoff_of_others_is_gone_on_from "
        "stories_in_omc_stay_there_and_its_state_follows the_document_has_the_keys_of_the_schema_in_its_order",
    ("seed 001", "its hat files; a key that no seed shows has synonyms"):
        "the_hat_file_of_seed_001_is_read_key_by_key synonyms_are_read other_spellings_say_the_same",
}  # fmt: skip  # a table

NOT_YET = {
    ("seed 000", "its script says oldest first and lists the newest; ralph-ready is never removed"):
        "no command takes issues by a label yet; `--preset issue` works on what it is given",
    ("ralph-orchestrator", "guidance by Telegram"):
        "people say it with `ralph agent guidance`; no messenger is listened to yet",
    ("seed 001", "3 ms for a call of an agent"):
        "a figure of the machine: `make bench` measures it beside an empty process, no test asserts a time",
    ("ralph-fresh of oh-my-claudecode", "the provider's SDK when its program fails"):
        "declined, and docs/agents.md says why; how a program fails to start is of agents by name, not built yet",
    ("ralph-orchestrator", "waiting for work costs model calls"):
        "needs the command that looks for work; until then a persistent loop ends as idle or at its limits",
}  # fmt: skip  # a table


def _named(path: Path) -> Iterator[str]:
    """The tests of a file, without running any of it."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_")


@pytest.fixture(scope="module")
def known() -> frozenset[str]:
    """Every test there is."""
    return frozenset(name for path in TESTS.rglob("test_*.py") for name in _named(path))


@pytest.mark.parametrize(("whose", "what"), FAULTS, ids=lambda word: word[:60])
def test_a_fault_of_the_family_has_tests_that_hold_it_off(whose: str, what: str, known: frozenset[str]) -> None:
    named = FAULTS[whose, what].split()
    assert named, f"{whose}: {what}"
    assert [name for name in named if name not in known] == [], f"{whose}: {what}"


def test_what_is_not_held_off_says_why() -> None:
    assert not set(FAULTS) & set(NOT_YET)
    assert all(len(why.split()) > 5 for why in NOT_YET.values())
