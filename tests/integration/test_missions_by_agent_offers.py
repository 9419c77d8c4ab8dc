"""What an agent made and may not push unasked: shown, and pushed once after a yes that counts. On both forges."""

from __future__ import annotations

from unittest import mock

import pytest

from ralph_mission.mission import execute
from ralph_mission.mission.model.effects import PushBranch, Receipt
from tests.integration.coding import Yard, yard
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

OWNED = "owners: [mara]\n"
LARGE = "write('src/table.py', ''.join(f'ROW_{n} = {n}\\n' for n in range(80)))"
PROTECTED = "write('Makefile', 'all:\\n')"


@pytest.fixture(params=["local", "github"])
def shop(request, tmp_path):
    with yard(tmp_path, request.param, OWNED) as made:
        yield made


def answered(shop: Yard, script: str = LARGE) -> int:
    """The issue of a mission whose review was answered with a change that needs a yes."""
    issue = shop.wanted()
    shop.cycle()
    shop.cycle()
    shop.person().review(shop.pull().number, "changes_requested", "all of it")
    shop.says(script)
    assert statuses(shop.cycle()[0]) == ["FIXING"]
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    return issue


def shown(shop: Yard, issue: int) -> list[str]:
    return [said for said in shop.said(issue) if "shall it be pushed on top" in said]


@pytest.mark.parametrize(
    ("script", "rule", "path"),
    [(LARGE, "diff-size", "src/table.py"), (PROTECTED, "protected-path", "Makefile")],
    ids=["large", "protected"],
)
def test_an_answer_that_needs_a_yes_is_shown_and_pushed_once_after_it(shop, script, rule, path):
    issue = answered(shop, script)
    before = shop.pull()
    (said,) = shown(shop, issue)
    assert rule in said and f"review of #{before.number}" in said and "the change would be `" in said
    _, telling = shop.cycle()
    assert shop.pull().head_sha == before.head_sha and len(shop.prompts) == 2
    assert any(line.startswith("say yes:") and str(issue) in line for line in telling.waiting)
    shop.person().comment(issue, "/ralph approve")
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    after = shop.pull()
    assert after.number == before.number and len(after.commits) == len(before.commits) + 1
    assert shop.at(after.head_sha, path)
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert shop.pull().head_sha == after.head_sha and len(shop.prompts) == 2 and len(shown(shop, issue)) == 1
    shop.person().review(after.number, "approved")
    assert statuses(shop.cycle()[0]) == ["COMPLETED"]


def test_a_stranger_s_yes_to_an_answer_pushes_nothing(shop):
    issue = answered(shop)
    before = shop.pull().head_sha
    stranger(shop).comment(issue, "/ralph approve")
    report, _ = shop.cycle()
    assert (statuses(report), shop.pull().head_sha) == (["IN_REVIEW"], before)
    assert any("approval-author" in line.rules for line in report.decisions)


def test_a_stranger_s_yes_to_a_change_pushes_nothing(shop):
    shop.says(LARGE)
    issue = shop.wanted()
    shop.cycle()
    shop.cycle()
    stranger(shop).comment(issue, "/ralph approve")
    assert statuses(shop.cycle()[0]) == ["DISCOVERED"] and shop.pulls() == []


def test_a_yes_from_before_an_answer_was_shown_is_none_to_it(shop):
    shop.says(LARGE)
    issue = shop.wanted()
    shop.cycle()
    shop.cycle()
    shop.person().comment(issue, "/ralph approve")
    shop.person().label(issue, ("ralph:approved",))
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    before = shop.pull()
    shop.person().review(before.number, "changes_requested", "more")
    shop.says(LARGE.replace("80", "200"))
    shop.cycle()
    shop.cycle()
    assert "ralph:approved" not in shop.issue(issue).labels
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"] and shop.pull().head_sha == before.head_sha
    shop.person().label(issue, ("ralph:approved",))
    shop.cycle()
    assert shop.at(shop.pull().head_sha, "src/table.py").endswith(b"ROW_199 = 199\n")


def test_a_newer_review_makes_an_answer_on_offer_void_and_both_are_answered(shop):
    issue = answered(shop)
    before = shop.pull()
    shop.person().review(before.number, "changes_requested", "shorter, please")
    shop.person().comment(issue, "/ralph approve")
    shop.says("write('src/table.py', 'SHORT = 1\\n')")
    assert statuses(shop.cycle()[0]) == ["FIXING"]
    assert shop.pull().head_sha == before.head_sha
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert shop.at(shop.pull().head_sha, "src/table.py") == b"SHORT = 1\n"
    assert "all of it" in shop.prompts[2] and "shorter, please" in shop.prompts[2]


def test_the_same_answer_to_a_newer_review_needs_a_yes_of_its_own(shop):
    issue = answered(shop)
    before = shop.pull()
    shop.person().comment(issue, "/ralph approve")
    shop.person().review(before.number, "changes_requested", "shorter, please")
    assert statuses(shop.cycle()[0]) == ["FIXING"]
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert shop.pull().head_sha == before.head_sha and len(shown(shop, issue)) == 2


def test_another_head_makes_an_answer_on_offer_void(shop):
    issue = answered(shop)
    pull = shop.pull()
    theirs = push(shop, pull.head)
    shop.person().comment(issue, "/ralph approve")
    assert statuses(shop.cycle()[0]) == ["ESCALATED"]
    assert shop.pull().head_sha == theirs
    shop.person().unlabel(issue, ("ralph:escalated",))
    shop.cycle()
    assert shop.pull().head_sha == theirs


def test_a_pull_that_is_approved_after_all_is_merged_without_the_answer_on_offer(shop):
    answered(shop)
    before = shop.pull()
    shop.person().review(before.number, "approved")
    assert statuses(shop.cycle()[0]) == ["COMPLETED"]
    assert shop.pull().state == "merged" and len(shop.prompts) == 2


def test_an_answer_on_offer_that_is_edited_on_the_forge_is_not_pushed(tmp_path):
    with yard(tmp_path, "github", OWNED) as shop:
        issue = answered(shop)
        before = shop.pull().head_sha
        (said,) = [c for c in shop.place.fake.comments.values() if "shall it be pushed on top" in c.body]
        shop.person().edit_comment(said.id, said.body.replace("ROW_79", "ROW_80"))
        shop.person().comment(issue, "/ralph approve")
        shop.cycle()
        assert shop.pull().head_sha == before


def test_a_push_that_fails_after_the_yes_is_made_up_for_without_asking_again(shop):
    issue = answered(shop)
    before = shop.pull()
    shop.person().comment(issue, "/ralph approve")
    with failing_pushes():
        assert statuses(shop.cycle()[0]) == ["FIXING"]
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert len(shop.pull().commits) == len(before.commits) + 1 and len(shop.prompts) == 2


def test_a_change_on_a_protected_path_is_released_by_a_yes(shop):
    shop.says(PROTECTED)
    issue = shop.wanted()
    shop.cycle()
    assert statuses(shop.cycle()[0]) == ["DISCOVERED"] and shop.pulls() == []
    assert any("protected-path" in said for said in shop.said(issue))
    shop.person().comment(issue, "/ralph approve")
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert shop.at(shop.pull().head_sha, "Makefile") == b"all:\n" and len(shop.prompts) == 1


def stranger(shop: Yard):
    """Somebody without a say: no owner, and on GitHub without write access either."""
    return shop.person("eve") if shop.place.__class__.__name__ == "World" else shop.person("eve", "read")


def push(shop: Yard, branch: str) -> str:
    """A commit of a person's on top of a branch of ours."""
    if shop.place.__class__.__name__ != "World":
        return str(shop.person().push(branch, {"src/theirs.py": b"x = 1\n"}))
    git = shop.house().git
    tip = git.text("rev-parse", branch)
    tree = git.text("rev-parse", f"{tip}^{{tree}}")
    made = git.text(
        "-c", "user.name=mara", "-c", "user.email=mara@example.org", "commit-tree", tree, "-p", tip, "-m", "x"
    )
    git.run("update-ref", f"refs/heads/{branch}", made)
    return str(made)


def failing_pushes():
    perform = execute.perform_effect

    def failing(ports, effect):
        pushes = isinstance(effect, PushBranch)
        return Receipt(effect.key, "failed", detail="the line is down") if pushes else perform(ports, effect)

    return mock.patch.object(execute, "perform_effect", failing)
