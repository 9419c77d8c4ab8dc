"""Whole lives of missions on the local forge, cycle by cycle."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.mission.model.effects import OpenPull, Receipt
from ralph_mission.mission.proposals import draft
from tests.helpers import commit, git
from tests.integration.world import BUGS_CONFIG, CALM, TYPOS, begun_once, statuses, verdicts, world

BUG = """\
observers:
  code: {markers: {}}
  commands:
    - {name: check, run: cat bugs.txt, kind: bug, parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}}
hands: {fixers: []}
"""
SENTENCE = "The table for the next month is printed on the day before, and the pilot takes a copy of it home."
MISSPELT = (
    "recieve seperate definately occured untill arbitary begining beleive collegue comittee commited concious "
    "enviroment existance familar foriegn fourty goverment gramatically harrass hygeine "
    "immediatly independant knowlege liason libary maintenence"
).split()
BUGS = {"bugs.txt": "src/a.py:1: division by zero\n", "src/a.py": "x = 1 / 0\n"}


def test_a_fix_is_discovered_reviewed_merged_and_told(tmp_path):
    hub = world(tmp_path)
    report, cycle_summary = hub.cycle()
    assert statuses(report) == ["IN_REVIEW"]
    assert any("pr approve 1" in dict(line.ways)["approve"] for line in cycle_summary.waiting)
    assert (hub.issues, hub.pulls[0].labels) == ((), {"ralph:mission", "ralph:auto-fix"})
    head = hub.git("rev-parse", hub.pulls[0].head)
    hub.person().review(1, "approved")
    report, _ = hub.cycle()
    assert statuses(report) == ["COMPLETED"]
    assert hub.pulls[0].state == "merged"
    assert hub.git("diff", "--stat", head, "main") == ""
    assert hub.house().forge.pull(1).remarks == ()
    assert "- Outcome: merged" in hub.memory()
    assert (hub.repo / "README.md").read_text().count("separate") == 1
    assert hub.git("status", "--short") == ""


def test_what_a_fix_is_about_is_gone_so_its_pull_is_closed_and_its_branch_deleted(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    branch = hub.pulls[0].head
    right = {"README.md": "# Harbour\n", "docs/guide.md": "# Guide\n"}
    commit(hub.repo, right, message="Write it anew")
    assert statuses(hub.cycle()[0]) == ["COMPLETED"]
    assert (hub.pulls[0].state, hub.git("branch", "--list", branch)) == ("closed", "")
    assert "gone by itself" in hub.house().forge.pull(1).remarks[0].body
    assert "people accepted" not in hub.memory()


def test_closed_pull_request_is_never_reopened_and_its_kind_loses_score(tmp_path):
    hub = world(tmp_path)
    first, _ = hub.cycle()
    before = {line.fingerprint: line.score for line in first.findings}
    hub.person().close_pull(1)
    report, _ = hub.cycle()
    assert statuses(report) == ["REJECTED"]
    assert hub.pulls[0].labels == {"ralph:mission", "ralph:auto-fix", "ralph:rejected"}
    commit(hub.repo, {"docs/more.md": "We recieve boats.\n"}, message="More")
    report, _ = hub.cycle()
    known = {line.fingerprint for line in report.findings if line.known}
    assert known == set(before)
    fresh = [line for line in report.findings if not line.known]
    assert 0 < fresh[0].score < min(before.values())
    assert [pull.state for pull in hub.pulls] == ["closed", "open"]
    assert "people accepted 0 of 1" in hub.memory()


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_rejection_survives_a_rename_of_the_file(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    hub.person().comment(1, "/ralph reject we like it so")
    hub.cycle()
    git(hub.repo, "mv", "docs/guide.md", "docs/handbook.md")
    commit(hub.repo, {}, message="Rename")
    report, _ = hub.cycle()
    assert len(hub.pulls) == 1
    assert all(line.known for line in report.findings)
    assert "we like it so" in hub.memory()


def test_a_commit_of_someone_else_on_our_branch_stops_us_and_asks(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    branch = hub.pulls[0].head
    hub.git("checkout", "-q", branch)
    commit(hub.repo, {"extra.txt": "mine\n"}, message="Mine")
    hub.git("checkout", "-q", "main")
    hub.person().review(1, "approved")
    report, _ = hub.cycle()
    assert statuses(report) == ["ESCALATED"]
    assert hub.pulls[0].state == "open"


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_nobody_answers_for_14_days_and_the_slot_is_freed(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    report, _ = hub.cycle(after=timedelta(days=14))
    assert statuses(report) == ["PARKED"]
    assert "ralph:parked" in hub.house().forge.pull(1).labels
    hub.person().unlabel(1, ("ralph:parked",))
    report, _ = hub.cycle()
    assert statuses(report) == ["IN_REVIEW"]


class TestProposals:
    def asked(self, path, config=BUG):
        hub = world(path, BUGS, config)
        report, _ = hub.cycle()
        assert statuses(report) == ["DISCOVERED"]
        return hub

    def test_a_proposal_names_its_hash_and_how_to_say_no(self, tmp_path):
        hub = self.asked(tmp_path)
        issue = hub.issues[0]
        assert {"ralph:mission", "ralph:research"} <= issue.labels
        assert "proposal is now `" in issue.body
        assert "**Close** it to reject it for good" in issue.body

    @pytest.mark.long  # a variation; the step and the rule have pure tests
    def test_an_approved_proposal_that_nobody_here_can_do_is_planned_and_waits_for_a_person(self, tmp_path):
        hub = self.asked(tmp_path)
        hub.person().label(1, ("ralph:approved",))
        seen = [statuses(hub.cycle()[0]) for _ in range(5)]
        assert seen == [["PLANNED"]] * 5
        assert statuses(hub.cycle(after=timedelta(days=14))[0]) == ["PARKED"]

    @pytest.mark.attack(11)
    def test_an_approval_of_an_edited_proposal_is_refused_and_asked_anew(self, tmp_path):
        hub = self.asked(tmp_path)
        file = hub.repo / ".ralph/forge/issues/0001.md"
        file.write_text(file.read_text().replace("division by zero", "delete everything"))
        hub.person().comment(1, "/ralph approve")
        report, _ = hub.cycle()
        assert ("open-fix", "deny", ("approval-content",)) in verdicts(report)
        assert statuses(report) == ["DISCOVERED"]
        assert "proposal is now `" in hub.house().forge.issue(1).remarks[-1].body
        hub.person().comment(1, "/ralph approve")
        report, _ = hub.cycle()
        assert statuses(report) == ["PLANNED"]


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_change_that_is_too_big_is_asked_about_and_pushed_only_after_a_yes(tmp_path):
    text = "".join(f"{SENTENCE} {SENTENCE} Somebody wrote {word} in the log of that day.\n\n" for word in MISSPELT)
    hub = world(tmp_path, {"docs/long.md": text})
    report, _ = hub.cycle()
    assert statuses(report) == ["DISCOVERED"]
    assert hub.git("branch", "--list", "ralph/*") == ""
    assert "separate" in hub.issues[0].body
    hub.person().label(1, ("ralph:approved",))
    report, _ = hub.cycle()
    assert statuses(report) == ["IN_REVIEW"]
    hub.person().review(2, "approved")
    report, _ = hub.cycle()
    assert statuses(report) == ["COMPLETED"]
    mended = (hub.repo / "docs/long.md").read_text()
    assert sum(a != b for a, b in zip(text.split(), mended.split(), strict=True)) == len(MISSPELT)


def test_a_person_makes_an_issue_a_mission_by_its_label(tmp_path):
    hub = world(tmp_path, {"a.txt": "fine\n"})
    number = hub.person().create_issue("Add a chart of the springs")
    hub.person().label(number, ("ralph:mission",))
    report, _ = hub.cycle()
    assert [(line.title, line.status.value) for line in report.missions] == [("Add a chart of the springs", "PLANNED")]
    hub.person().close_issue(number, "completed")
    report, _ = hub.cycle()
    assert statuses(report) == ["COMPLETED"]


@pytest.mark.long  # a variation; the step and the rule have pure tests
@pytest.mark.attack(17)
def test_an_outsiders_title_that_closes_elsewhere_ends_no_cycle(tmp_path):
    hub = world(tmp_path, {"a.txt": "fine\n"}, CALM)
    hub.person("eve").create_issue("Why are the tables wrong? It fixes GH-team/repo#3", "Why is it?")
    hub.now += timedelta(days=60)
    report, _ = hub.cycle()
    assert report.outcome == "done"


def test_a_ban_under_do_not_repeat_is_obeyed_and_what_is_not_understood_is_said(tmp_path):
    hub = world(tmp_path, {"a.txt": "fine\n"})
    hub.cycle()
    text = hub.memory().rstrip("\n") + "\n\n- `docs/**` belongs to the writers\n- be nice\n"
    edit_memory(hub, text)
    commit(hub.repo, {"docs/x.md": "We recieve it.\n"}, message="Docs")
    _, cycle_summary = hub.cycle()
    assert hub.pulls == ()
    assert any("be nice" in line for line in cycle_summary.remarks)
    assert "- be nice" in hub.memory()


def edit_memory(hub, text):
    """What a person does who checks the branch out, edits the file and commits."""
    place = hub.repo.parent / "memory-checkout"
    hub.git("worktree", "add", "-q", str(place), "ralph-memory")
    commit(place, {"memory/ralph-log.md": text}, message="My notes")
    hub.git("worktree", "remove", str(place))


@pytest.mark.parametrize("verify, code", [("exit 126", 126), ("no-such-program", 127)])
def test_a_change_that_fails_the_repositorys_own_checks_is_not_proposed(tmp_path, verify, code):
    hub = world(tmp_path, config=f"{CALM.replace('[typos]', '[typos], verify: [' + verify + ']')}")
    _, cycle_summary = hub.cycle()
    assert hub.pulls == ()
    held, again = cycle_summary.held
    assert held.startswith("Correct ") and f"`{verify}`: exit code {code}" in held
    assert again == "to try again now: ralph cycle --force; otherwise on the next commit"


@pytest.mark.parametrize(
    ("verify", "said"),
    [
        ("['true', test -f ralph.yml]", "**Passed with it:** `true`, `test -f ralph.yml`."),
        ("[]", "No check was run on it: `hands.verify` names none."),
    ],
)
def test_a_pull_request_says_which_checks_were_run_on_it(tmp_path, verify, said):
    hub = world(tmp_path, config=CALM.replace("[typos]", f"[typos], verify: {verify}"))
    hub.cycle()
    assert said in hub.pulls[0].body


def test_a_check_that_fails_without_the_change_too_holds_nothing_back_and_the_pull_request_names_it(tmp_path):
    hub = world(tmp_path, config=CALM.replace("[typos]", "[typos], verify: [ls nothing]"))
    _, cycle_summary = hub.cycle()
    assert hub.pulls == () and "`ls nothing`" in cycle_summary.held[0]  # it is the only one, and may end early
    assert cycle_summary.remarks[0] == "your check `ls nothing` is red on main"
    assert hub.cycle()[1].remarks[0] == "your check `ls nothing` is red on main"  # though it did not run again
    commit(hub.repo, {"ralph.yml": CALM.replace("[typos]", "[typos], verify: [ls nothing, test -f ralph.yml]")})
    _, cycle_summary = hub.cycle()
    (pull,) = hub.pulls
    assert cycle_summary.held == () and "**Still failing:** `ls nothing`" in pull.body
    commit(hub.repo, {"nothing": "there now\n"})
    assert "is red" not in "".join(hub.cycle()[1].remarks)  # another commit, on which nobody ran it


def test_a_fix_whose_set_up_failed_is_named_in_each_cycle_and_proposed_once_the_set_up_was_repaired(tmp_path):
    fails = f"echo x >> {tmp_path}/runs; echo error: no registry >&2; exit 4"
    broken = CALM.replace("[typos]", f"[typos], verify: ['true'], setup: ['{fails}']")
    hub = world(tmp_path, config=broken)
    for _ in range(2):
        _, cycle_summary = hub.cycle()
        held, _ = cycle_summary.held
        assert "cannot be set up" in held and held.endswith("no registry") and hub.pulls == ()
    assert (tmp_path / "runs").read_text() == "x\nx\n"  # a person asked for both cycles, so it is tried again
    (hub.repo / "ralph.yml").write_text(broken.replace(fails, "true"))
    _, cycle_summary = hub.cycle()
    assert len(hub.pulls) == 1 and cycle_summary.held == ()


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_the_files_of_a_pull_stay_under_the_limit_together(tmp_path):
    files = {f"docs/{n:02}.md": "We recieve it.\n\nIt is seperate.\n" for n in range(40)}
    hub = world(tmp_path, files)
    hub.cycle()
    lines = hub.git("diff", "--numstat", "main", hub.pulls[0].head).splitlines()
    assert sum(int(a) + int(b) for a, b, _ in (line.split("\t") for line in lines)) == 48
    assert len(TYPOS) < len(lines)


MIXED = {**TYPOS, **BUGS}
ALL = BUG.replace("fixers: []", "fixers: [typos]")


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_work_that_a_cap_alone_cut_is_due_at_once_and_counted(tmp_path):
    hub = world(tmp_path, MIXED, ALL)
    first, _ = hub.cycle()
    assert "new-mission-cap" in {rule for line in first.decisions for rule in line.rules}
    assert first.next_due_at == first.started_at
    second, _ = hub.cycle(after=timedelta(0))
    assert [line.action for line in second.decisions if line.verdict.value == "allow"] != []
    assert second.next_due_at > second.started_at
    assert "dispatches: 2" in hub.memory()


SPELT_AND_UNUSED = {"README.md": "# H\n\nTides are seperate from waves.\n", "a.py": "import os\nimport sys\n\nx = 1\n"}
BOTH = CALM.replace("[typos]", "[typos, ruff]")


def two_that_are_owed(path, refuse):
    """Two fixes whose pulls failed, the second while a pull of a person held the first up, and then both."""
    hub = world(path, SPELT_AND_UNUSED, BOTH)
    begun_once(hub, "two that are owed", lambda: fail_to_open_two(hub, refuse))
    return hub


def fail_to_open_two(hub, refuse):
    refuse(lambda pull: "the server is busy")
    hub.cycle()
    assert (hub.issues, hub.pulls) == ((), ())
    hub.cycle()
    hub.git("checkout", "-q", "-b", "hers")
    commit(hub.repo, {"b.txt": "x\n"}, message="Hers")
    hub.git("checkout", "-q", "main")
    hers = hub.person().open_pull("hers", "main", "Hers", "Closes #1, closes #3")
    assert [statuses(hub.cycle()[0]) for _ in range(2)][-1] == ["EXECUTING", "EXECUTING"]
    assert [issue.number for issue in hub.issues] == [1, 3]
    hub.person().close_pull(hers)
    refuse(lambda pull: "")


def opened(report):
    """How many pulls a cycle opened."""
    return [line.kind for line in report.effects if line.status == "done"].count("open_pull")


@pytest.fixture
def refuse(monkeypatch):
    """Has the forge refuse pulls as what is given says of each ("": none), and an issue tell after one such try."""
    monkeypatch.setattr(draft, "TRIES", 1)
    perform = LocalForge.perform

    def refuse(why):
        def performed(self, effect):
            words = why(effect) if isinstance(effect, OpenPull) else ""
            return Receipt(effect.key, "failed", detail=words) if words else perform(self, effect)

        monkeypatch.setattr(LocalForge, "perform", performed)

    return refuse


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_fix_that_waits_for_one_that_fails_again_and_again_is_not_asked_about(tmp_path, refuse):
    hub = two_that_are_owed(tmp_path, refuse)
    failing = hub.house().store.recall().state.missions[0].branch
    refuse(lambda pull: "the server is busy" if pull.head == failing else "")
    told = [hub.cycle()[0] for _ in range(3)]
    assert [opened(report) for report in told] == [0, 0, 1]
    assert [statuses(report)[1] for report in told] == ["EXECUTING"] * 2 + ["IN_REVIEW"]
    assert statuses(told[-1])[0] == "ESCALATED"


def two_that_are_asked_about(path, refuse):
    """The same where no pull may be opened unasked any more, some cycles later."""
    hub = world(path, SPELT_AND_UNUSED, BOTH)
    begun_once(hub, "two that are asked about", lambda: ask_about_two(hub, refuse))
    return hub


def ask_about_two(hub, refuse):
    fail_to_open_two(hub, refuse)
    config = f"owners: [mara]\n{BOTH}limits: {{auto_prs_per_cycle: 0}}\n"
    commit(hub.repo, {"ralph.yml": config}, message="Ask me")
    told = [hub.cycle()[0] for _ in range(4)]
    assert [opened(report) for report in told] == [0, 0, 0, 0]
    assert statuses(told[-1])[:2] == ["ESCALATED", "ESCALATED"]


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_fix_that_is_owed_where_no_pull_is_allowed_unasked_any_more_is_opened_once_a_person_brings_it_back(
    tmp_path, refuse
):
    hub = two_that_are_asked_about(tmp_path, refuse)
    assert "what was to be sent needs a person's approval" in hub.house().forge.issue(1).remarks[-1].body
    hub.person("passer-by").unlabel(1, ("ralph:escalated",))
    assert statuses(hub.cycle()[0])[:2] == ["ESCALATED", "ESCALATED"]
    hub.person().label(1, ("ralph:escalated",))
    hub.person().unlabel(1, ("ralph:escalated",))
    told = [hub.cycle()[0] for _ in range(2)]
    assert [statuses(report)[:2] for report in told] == [["PLANNED", "ESCALATED"], ["IN_REVIEW", "ESCALATED"]]
    assert [opened(report) for report in told] == [0, 1]
    assert {pull.state for pull in hub.pulls if pull.author.is_bot} == {"open"}


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_fix_that_is_owed_is_opened_also_when_it_is_brought_back_only_after_it_was_parked(tmp_path, refuse):
    hub = two_that_are_asked_about(tmp_path, refuse)
    assert statuses(hub.cycle(after=timedelta(days=8))[0])[:2] == ["PARKED", "PARKED"]
    hub.person().unlabel(1, ("ralph:parked",))
    told = [hub.cycle()[0] for _ in range(2)]
    assert [statuses(report)[:2] for report in told] == [["PLANNED", "PARKED"], ["IN_REVIEW", "PARKED"]]
    assert [opened(report) for report in told] == [0, 1]


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_todays_wakes_used_up_make_work_wait_its_turn(tmp_path):
    hub = world(tmp_path, MIXED, f"limits: {{dispatches_per_day: 0}}\n{ALL}")
    report, _ = hub.cycle()
    assert report.next_due_at > report.started_at


def test_a_paused_cycle_writes_no_memory(tmp_path, monkeypatch):
    hub = world(tmp_path)
    hub.cycle()
    head = hub.git("rev-parse", "ralph-memory")
    monkeypatch.setenv("RALPH_PAUSED", "1")
    assert hub.cycle()[0].outcome == "paused"
    assert hub.git("rev-parse", "ralph-memory") == head


# --- What waits and for how long: missions parked for 90 days, findings that others hold up, what comes first. ---


@pytest.mark.long  # a variation; the step and the rule have pure tests
@pytest.mark.parametrize(("closer", "taught"), [("passer-by", False), ("mara", True)])
def test_a_closed_question_teaches_only_when_its_closer_counts(tmp_path, closer, taught):
    hub = world(tmp_path, BUGS, f"owners: [mara]\n{BUG}")
    hub.cycle()
    hub.person(closer).close_issue(1, "completed")
    hub.cycle()
    assert ("people accepted" in hub.memory()) is taught


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_persons_mission_that_was_parked_for_90_days_does_not_begin_anew_by_itself(tmp_path):
    hub = world(tmp_path, {"a.txt": "fine\n"})
    number = hub.person().create_issue("Add a chart of the springs")
    hub.person().label(number, ("ralph:mission",))
    told = [statuses(hub.cycle(after=timedelta(days=days))[0]) for days in (1, 13, 1, 91, 1)]
    assert told[-3:] == [["PARKED"], ["PARKED"], []]


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_what_waits_on_an_observer_that_is_configured_no_longer_is_forgotten(tmp_path):
    bugs = "src/a.py:1: one\nsrc/a.py:2: two\n"
    hub = world(tmp_path, {"bugs.txt": bugs, "src/a.py": "x = 1\ny = 2\n"}, BUGS_CONFIG)
    hub.cycle()
    commit(hub.repo, {"ralph.yml": CALM}, message="No more checks")
    report, _ = hub.cycle()
    assert report.findings == ()
    assert hub.house().store.recall().state.backlog == ()


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_one_file_that_fails_the_checks_holds_up_neither_the_rest_nor_the_next_cycles(tmp_path):
    files = {f"docs/{n}.md": "We recieve it by mail.\n" for n in range(8)}
    config = CALM.replace("[typos]", "[typos], verify: ['! grep -rq receive docs/1.md']")
    hub = world(tmp_path, files, config)
    for _ in range(3):
        hub.cycle()
    changed = {touch.path for pull in hub.pulls for touch in hub.house().forge.pull(pull.number).touches}
    assert changed
    assert "docs/1.md" not in changed


@pytest.mark.long  # a variation; the step and the rule have pure tests
def test_a_pull_of_a_person_does_not_hide_that_a_question_waits_for_it(tmp_path):
    files = {"bugs.txt": "src/a.py:1: one\nsrc/b.py:1: two\n", "src/a.py": "x = 1\n", "src/b.py": "y = 1\n"}
    hub = world(tmp_path, files, BUGS_CONFIG)
    hub.git("checkout", "-q", "-b", "hers")
    commit(hub.repo, {"src/a.py": "x = 2\n"}, message="Mend it")
    hub.git("checkout", "-q", "main")
    hub.person().open_pull("hers", "main", "Mend it")
    report, _ = hub.cycle()
    assert ["human-duplicate" in rules for _, _, rules in verdicts(report)].count(True) == 1
