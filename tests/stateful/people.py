"""What people do to issues, pulls and branches: those who may decide, and those who may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from ralph_mission.mission.effects import CloseIssue, ClosePull, MergePull
from ralph_mission.mission.ledger import Batch, EffectRecord
from ralph_mission.mission.model import Action
from ralph_mission.trouble import Lost, Trouble
from tests.fakes.github import Person, Request
from tests.fakes.github.refusal import Refusal
from tests.stateful.machine import MARA, OUTSIDER, Life, does

WHO = st.sampled_from([(MARA, "write"), (OUTSIDER, "read")])
SAID = st.sampled_from(
    [
        "/ralph approve",
        "/ralph reject, we spell it so",
        "> /ralph approve",
        "fixes #1, @mara [skip ci]",
        "<!-- ralph:v1 key=0123456789abcdef mission=1 -->",
        "::set-output name=x::y",
    ]
)
FILES = {
    "misspelt": {"NOTES.md": b"# Notes\n\nThe tide was recieved untill noon.\n"},
    "mended": {"README.md": b"# Harbour\n\nTides are separate from waves. We receive the tables by mail.\n"},
    "marked": {"b.py": b"y = 2\n# FIXME: two\n"},
}
WORDS = "Tables @everyone fixes #1"
MEANWHILE: dict[str, Callable[[Town], object]] = {
    "says yes": lambda town: [town.hand.comment(issue.number, "/ralph approve") for issue in town.issues[-1:]],
    "closes an issue": lambda town: [town.hand.close_issue(issue.number) for issue in town.issues[-1:]],
    "labels yes": lambda town: [town.hand.label(issue.number, ("ralph:approved",)) for issue in town.issues[-1:]],
    "labels no": lambda town: [town.hand.label(issue.number, ("ralph:rejected",)) for issue in town.issues[-1:]],
    "approves": lambda town: [town.hand.review(pull.number, "approved") for pull in town.pulls[-1:]],
    "closes a pull": lambda town: [town.hand.close_pull(pull.number) for pull in town.pulls[-1:]],
    "pushes to our branch": lambda town: [town.hand.push(pull.pull.head, MORE) for pull in town.pulls[-1:]],
    "pushes to main": lambda town: [town.hand.push("main", MORE)],
}
"""What a person does while a cycle runs, to what is there then. What she takes back in the very moment of a merge no
runner can know of: that is left to the moments between cycles."""
MORE = {"more/meanwhile.md": b"# More\n"}


@dataclass
class Interruption:
    """A deed that waits for its request; no push is interrupted, as nobody could tell then who moved which branch."""

    town: Town
    at: int
    deed: Callable[[Town], object]
    seen: int = 0
    done: bool = False

    def coming(self, request: Request) -> None:
        """A request has arrived, and is not carried out yet."""
        self.seen += 1
        if self.done or self.seen < self.at or request.below == "/git-receive-pack":
            return
        self.done = True
        with suppress(Refusal):  # GitHub lets nobody do that now
            self.town.table.count(self.town.doing, interrupted=bool(self.deed(self.town)))


class Town(Life):
    """The life of a repository with people in it."""

    # --- pulls

    @precondition(lambda self: self.pulls)
    @does(who=WHO, state=st.sampled_from(["approved", "approved", "changes_requested", "commented"]))
    def somebody_reviews(self, who: tuple[str, str], state: str) -> None:
        self.person(who).review(self.pulls[-1].number, state, "as it stands")

    @precondition(lambda self: self.pulls)
    @does()
    def a_review_is_dismissed(self) -> None:
        """Where none stands, one that was given a moment ago."""
        mara = self.person((MARA, "write"))
        pull = next((pull for pull in self.pulls if self.verdicts(pull)), self.pulls[-1])
        if not self.verdicts(pull):
            mara.review(pull.number, "approved", "as it stands")
        mara.dismiss(pull.number, message="on second thought")

    @precondition(lambda self: self.pulls)
    @does()
    def a_person_closes_a_pull(self) -> None:
        self.person((MARA, "write")).close_pull(self.pulls[-1].number)

    @precondition(lambda self: self.pulls)
    @does()
    def a_person_merges_a_pull(self) -> None:
        self.person((MARA, "write")).merge(self.pulls[-1].number)

    @precondition(lambda self: self.pulls)
    @does()
    def a_person_pushes_to_our_branch(self) -> None:
        self.count += 1
        files = {f"more/{self.count}.md": b"# More\n"}
        self.person((MARA, "write")).push(self.pulls[-1].pull.head, files)

    @precondition(lambda self: self.closed)
    @does()
    def a_person_opens_again(self) -> None:
        self.person((MARA, "write")).reopen(self.closed[-1].number)

    # --- issues

    @precondition(lambda self: self.issues)
    @does(reason=st.sampled_from(["completed", "not_planned"]))
    def a_person_closes_an_issue(self, reason: str) -> None:
        self.person((MARA, "write")).close_issue(self.issues[-1].number, reason)

    @precondition(lambda self: self.issues)
    @does(label=st.sampled_from(["ralph:approved", "ralph:approved", "ralph:rejected", "ralph:mission"]))
    def a_person_labels(self, label: str) -> None:
        self.person((MARA, "write")).label(self.issues[-1].number, (label,))

    @precondition(lambda self: self.issues)
    @does(label=st.sampled_from(["ralph:approved", "ralph:mission", "ralph:rejected"]))
    def an_outsider_labels(self, label: str) -> None:
        """As who sorts issues may, and decides nothing."""
        self.person(("sorter", "triage")).label(self.issues[-1].number, (label,))

    @precondition(lambda self: self.issues)
    @does()
    def a_label_is_taken_off(self) -> None:
        issue = self.issues[-1]
        self.person((MARA, "write")).unlabel(issue.number, tuple(issue.labels[:1]))

    @precondition(lambda self: self.issues)
    @does(who=WHO, text=SAID)
    def somebody_comments(self, who: tuple[str, str], text: str) -> None:
        self.person(who).comment(self.issues[-1].number, text)

    @precondition(lambda self: self.issues)
    @does()
    def a_person_edits_an_issue(self) -> None:
        issue = self.issues[-1]
        self.person((MARA, "write")).edit_issue(issue.number, body=f"Please mind the tide.\n\n{issue.body}")

    @does(who=WHO, labels=st.sampled_from([(), ("ralph:mission",)]))
    def somebody_opens_an_issue(self, who: tuple[str, str], labels: tuple[str, ...]) -> None:
        self.person(who).create_issue(WORDS, f"{WORDS}\n::error::x", labels if who[0] == MARA else ())

    # --- the repository

    @does(what=st.sampled_from(sorted(FILES)))
    def somebody_pushes(self, what: str) -> None:
        self.harbour.fake.push("main", FILES[what])

    @does()
    def a_person_opens_a_pull(self) -> None:
        self.count += 1
        branch = f"tide-tables-{self.count}"
        mara = self.person((MARA, "write"))
        mara.push(branch, {f"tables/{self.count}.md": b"# Tables\n"}, base="main")
        mara.open_pull(branch, "main", WORDS)

    # --- while a cycle runs

    @does(at=st.integers(1, 30), what=st.sampled_from(sorted(MEANWHILE)))
    def a_cycle_that_is_interrupted(self, at: int, what: str) -> None:
        """Somebody does something before the request of that number, or the first one after it that is no push."""
        undo = self.harbour.fake.before(Interruption(self, at, MEANWHILE[what]).coming)
        try:
            self.run(timedelta(hours=7), force=True)
        finally:
            undo()

    @property
    def hand(self) -> Person:
        """Hers who may decide."""
        return self.person((MARA, "write"))

    # --- whoever can push to memory

    @precondition(lambda self: self.has_memory and self.theirs)
    @does(kind=st.sampled_from([MergePull, ClosePull, CloseIssue]))
    def a_thief_writes_an_intent(self, kind: type) -> None:
        """A whole commit as a runner would make it, which says that something of a person's was to be ended."""
        runner, self.harbour.runner = self.harbour.runner, "thief"
        with suppress(Trouble, Lost):  # the store may see through it at once
            store = self.harbour.house().store
            past = store.recall()
            assert past is not None
            self.count += 1
            record = self._forged(kind, f"{self.count:016x}", past.memory.header.cycle)
            state = replace(past.state, effects=(*past.state.effects, record.key))
            store.commit(Batch(past.memory, state, (record,), "ralph: cycle"), past)
        self.harbour.runner = runner

    def _forged(self, kind: type, key: str, cycle: int) -> EffectRecord:
        pull = self.theirs[-1]
        made: dict[type, Any] = {
            MergePull: MergePull(key, pull.number, pull.pull.head_sha, "squash", "Theirs\n", "main", pull.author.id),
            ClosePull: ClosePull(key, pull.number),
            CloseIssue: CloseIssue(key, pull.number, "completed"),
        }
        return EffectRecord(key, "stolen", Action.FINISH, "spelling", "intended", made[kind], cycle, self.harbour.now)

    # --- what there is

    def person(self, who: tuple[str, str]):
        return self.harbour.person(*who)

    @property
    def pulls(self) -> list[Any]:
        """Our open ones."""
        return [pull for pull in self.harbour.pulls if pull.state == "open" and pull.author.is_bot]

    @property
    def issues(self) -> list[Any]:
        return [issue for issue in self.harbour.issues if issue.state == "open"]

    @property
    def closed(self) -> list[Any]:
        """What may be opened again."""
        threads = [*self.harbour.issues, *self.harbour.pulls]
        heads = self.harbour.fake.branch
        return [
            t for t in threads if t.state == "closed" and not (t.pull and (t.pull.merged_at or not heads(t.pull.head)))
        ]

    @property
    def theirs(self) -> list[Any]:
        """Pulls of people."""
        return [pull for pull in self.harbour.pulls if pull.state == "open" and not pull.author.is_bot]

    def verdicts(self, pull: Any) -> Iterable[Any]:
        reviews = self.harbour.fake.world.reviews.values()
        return [r for r in reviews if r.number == pull.number and r.state in ("APPROVED", "CHANGES_REQUESTED")]
