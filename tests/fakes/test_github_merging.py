"""The fake GitHub: merging, and what protection asks for."""

from __future__ import annotations

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub

# --- merging


def test_head_that_moved_is_409(fake: FakeGitHub, api: Client) -> None:
    number, seen, before = api.pull(), fake.branch("topic"), fake.branch("main")
    fake.push("topic", {"evil": b"x\n"})
    assert api.merge(number, sha=seen).said == (409, "Head branch was modified. Review and try the merge again.")
    assert fake.branch("main") == before


def test_actions_token_does_not_merge_workflows(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {".github/workflows/ci.yml": b"on: push\n"})
    number = fake.person("mara").open_pull("topic", "main", "CI")
    answer = api.merge(number)
    assert answer.status == 403 and "without `workflows` permission" in answer.json["message"]
    assert Client(fake, fake.token("mara")).merge(number).status == 200


# --- protection and checks


def test_protection_blocks_until_it_is_satisfied(fake: FakeGitHub, api: Client) -> None:
    fake.protect("main", required_reviews=1, required_checks=("ci",))
    number, mara = api.pull(), fake.person("mara")

    def state() -> str:
        return str(api("GET", f"./pulls/{number}").json["mergeable_state"])

    assert state() == "blocked"
    assert api.merge(number).said == (405, "At least 1 approving review is required by reviewers with write access.")
    fake.person("guest", "read").review(number, "approved")
    assert "approving review" in api.merge(number).said[1]
    mara.review(number, "approved")
    assert api.merge(number).said == (405, 'Required status check "ci" is expected.')
    fake.check(fake.branch("topic"), "ci", None)
    assert api.merge(number).said == (405, 'Required status check "ci" is in progress.')
    fake.check(fake.branch("topic"), "ci", "success")
    fake.check(fake.branch("topic"), "docs", "failure")
    assert state() == "unstable"
    mara.review(number, "changes_requested", "No")
    assert (state(), api.merge(number).status) == ("blocked", 405)
    mara.dismiss(number)
    mara.review(number, "approved")
    assert api.merge(number).status == 200
