"""What one guard of merging alone holds back, by a forge that answers from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.forges.github import merging, reading
from ralph_mission.forges.refusal import Refused
from ralph_mission.mission.effects import MergePull
from tests.mission.build import HEAD, MARA, pull, review

MERGE = MergePull("k", 4, HEAD, "squash", "Fix\n", "main", MARA.id)
READY = SimpleNamespace(
    number=4, state="open", status="open", ours=True, mergeable_state="clean", base=SimpleNamespace(ref="main")
)


@dataclass
class Table:
    """As much of `Threads` as merging asks. `sent` are the mutations, `asked` how reviews were asked for."""

    wire: Any
    approvals: Sequence[Any] = (review(),)
    sent: list[Any] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)

    @property
    def api(self) -> Table:
        return self

    def pull(self, number: int, fresh: bool) -> Any:
        assert fresh, "what was kept may be another pull by now"
        return self.wire

    def reviews(self, number: int, fresh: bool = False) -> Sequence[Any]:
        self.asked.append(fresh)
        return self.approvals

    def send(self, method: str, path: str, body: Any) -> Any:
        self.sent.append((method, path, body))
        return {"sha": "e" * 40}

    def sleep(self, seconds: float) -> None:
        """No time passes here."""


@pytest.fixture(autouse=True)
def _wires_are_told_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "reviews", tuple)
    monkeypatch.setattr(reading, "pull", lambda wire, reviews: pull(reviews=reviews))


def merged(effect: MergePull = MERGE, **wire: Any) -> Table:
    table = Table(SimpleNamespace(**{**vars(READY), **wire}))
    merging.merge(table, effect, lambda _: True)  # type: ignore[arg-type]  # as much of Threads as is asked
    return table


@pytest.mark.attack(52, 53)
def test_a_merge_names_the_commit_that_was_approved_and_reads_reviews_afresh() -> None:
    table = merged()
    (method, path, order) = table.sent[0]
    assert (method, path, order["sha"], table.asked) == ("PUT", "/pulls/4/merge", HEAD, [True])


@pytest.mark.parametrize(
    "wire",
    [
        {"ours": False},
        {"state": "closed", "status": "closed"},
        {"mergeable_state": "dirty"},
        {"mergeable_state": "behind"},
        {"mergeable_state": "draft"},
        {"mergeable_state": "unknown"},
    ],
    ids=lambda wire: "-".join(map(str, wire.values())),
)
def test_what_may_not_be_merged_is_not(wire: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        merged(**wire)


def test_another_way_of_merging_is_refused() -> None:
    with pytest.raises(Refused, match="method"):
        merged(replace(MERGE, method="rebase"))
