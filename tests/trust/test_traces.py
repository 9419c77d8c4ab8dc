"""An auditor with git alone finds for every deed its finding, its tier, the rules' answer and who said yes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.crash.stages import come_to_rest, staged
from tests.crash.witness import key_in
from tests.helpers import git
from tests.integration.hub import Hub


def files(harbour: Hub, folder: str) -> Iterator[dict]:
    """What the memory branch holds below a folder, as plain JSON."""
    names = git(harbour.fake.bare, "ls-tree", "-r", "--name-only", "ralph-memory", folder).splitlines()
    yield from (json.loads(git(harbour.fake.bare, "show", f"ralph-memory:{name}")) for name in names)


@pytest.mark.parametrize(
    ("name", "approver"),
    [
        ("an approved pull is merged", "mara"),
        pytest.param("an approved proposal is carried on", "mara", marks=pytest.mark.long),  # the same way, again
        pytest.param("a first cycle with two kinds and a monitoring issue", "", marks=pytest.mark.long),  # as above
    ],
)
def test_every_deed_leads_to_its_finding_tier_rules_and_approver(tmp_path, name, approver):
    with staged(tmp_path, name) as harbour:
        come_to_rest(harbour)
        texts = [one.body for one in (*harbour.issues, *harbour.pulls, *harbour.fake.comments.values())]
        marked = {key for key in map(key_in, texts) if key}
        journal = list(files(harbour, "memory/journal"))
        ledger = list(files(harbour, "memory/ledger"))
    decisions = {line["key"]: line for one in journal for line in one["report"]["decisions"]}
    because = {deed["key"]: decision for one in journal for decision, deed in one["deeds"]}
    yes = {key: who for one in journal for key, who in one["approvers"]}
    found = {one["mission"] for one in ledger if "occurrences" in one}
    effects = [one for one in ledger if "action_key" in one]
    assert marked <= {effect["key"] for effect in effects}
    for effect in effects:
        decision = decisions[because[effect["key"]]]
        assert (decision["verdict"], decision["tier"] in ("low", "medium", "high")) == ("allow", True), effect
        assert decision["rules"] == [], "no rule objected"
        assert effect["mission"] in found, effect
    assert set(yes.values()) == ({approver} if approver else set())
