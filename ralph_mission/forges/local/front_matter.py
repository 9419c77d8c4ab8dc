"""The front matter of an issue or pull, read with care: each value has its type, or its line is named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ralph_mission.forges.local.identity import actor
from ralph_mission.forges.local.threads import Change, Thread
from ralph_mission.mission.model import Actor, LabelEvent, Remark, Review
from ralph_mission.safety.strict_yaml import YamlError
from ralph_mission.safety.strict_yaml import parse as parse_yaml

STATES = ("open", "closed", "merged")
FACTS = (
    "number",
    "title",
    "state",
    "state_reason",
    "author",
    "labels",
    "assignees",
    "created_at",
    "updated_at",
    "closed_at",
    "closed_by",
    "events",
)
PULL_TEXTS = ("head", "base", "head_sha", "merging", "merged_sha")
KEYS = frozenset((*FACTS, *PULL_TEXTS, "merged_by", "boundary"))


class Mangled(ValueError):
    """The text is not one of ours any more. `line` is 1-based, 0 when it concerns the whole file."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def moment(text: str) -> datetime:
    """An ISO 8601 moment, UTC unless it says otherwise. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


class Fields:
    """The values of a front matter; each accessor raises Mangled at the line of what it cannot accept."""

    def __init__(self, text: str) -> None:
        try:
            document = parse_yaml(text)
        except YamlError as error:
            raise Mangled(error.what, error.line + 1) from None
        if not isinstance(document.value, dict):
            raise Mangled("the front matter must be 'name: value' lines", 2)
        self.values: dict[str, Any] = document.value
        self.lines = document.lines
        for key in self.values:
            if key not in KEYS:
                raise self.wrong(key, "is not a name known here")

    def thread(self, opening: str, remarks: tuple[Remark, ...], reviews: tuple[Review, ...]) -> Thread:
        """All of it together."""
        if reviews and "head" not in self.values:
            raise Mangled("an issue has no reviews", 1)
        return Thread(
            number=self.number("number"),
            title=self.text("title"),
            body=opening,
            state=self.state(),
            state_reason=self.text("state_reason", ""),
            author=self.person("author"),
            labels=self.texts("labels"),
            assignees=self.texts("assignees"),
            created_at=self.moment("created_at"),
            updated_at=self.moment("updated_at"),
            closed_by=self.maybe_person("closed_by"),
            closed_at=self.moment("closed_at") if "closed_at" in self.values else None,
            events=tuple(self.events()),
            remarks=remarks,
            change=self.change(reviews),
        )

    def change(self, reviews: tuple[Review, ...]) -> Change | None:
        if "head" not in self.values:
            return None
        return Change(
            head=self.text("head"),
            base=self.text("base"),
            head_sha=self.text("head_sha", ""),
            reviews=reviews,
            merging=self.text("merging", ""),
            merged_sha=self.text("merged_sha", ""),
            merged_by=self.maybe_person("merged_by"),
        )

    def wrong(self, key: str, what: str) -> Mangled:
        return Mangled(f"{key} {what}", self.lines.get((key,), 0) + 1)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "must be a text (put it in quotes)" if key in self.values else "is missing")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "must be a list of texts")
        return tuple(value)

    def number(self, key: str) -> int:
        value = self.values.get(key)
        if not isinstance(value, int) or value < 1:
            raise self.wrong(key, "must be a number" if key in self.values else "is missing")
        return value

    def state(self) -> str:
        value = self.text("state")
        if value not in STATES:
            raise self.wrong("state", f"must be one of {', '.join(STATES)}")
        return value

    def moment(self, key: str) -> datetime:
        return self._moment(key, self.values.get(key))

    def person(self, key: str) -> Actor:
        return self._person(key, self.values.get(key), "login")

    def maybe_person(self, key: str) -> Actor | None:
        return self.person(key) if self.values.get(key) is not None else None

    def events(self) -> Iterator[LabelEvent]:
        for value in self._list("events"):
            added = isinstance(value, dict) and "added" in value
            label = value.get("added" if added else "removed") if isinstance(value, dict) else None
            if not isinstance(label, str):
                raise self.wrong("events", "must each be {added: LABEL, by: LOGIN, id: ID, at: TIME}")
            yield LabelEvent(label, self._person("events", value, "by"), self._moment("events", value.get("at")), added)

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key) or []
        if not isinstance(value, list):
            raise self.wrong(key, "must be a list")
        return value

    def _moment(self, key: str, value: object) -> datetime:
        try:
            return moment(value.isoformat() if isinstance(value, datetime) else str(value))
        except ValueError:
            raise self.wrong(key, "must hold a time like 2026-01-31T12:00:00Z") from None

    def _person(self, key: str, value: object, name: str) -> Actor:
        if isinstance(value, dict) and isinstance(value.get("id"), int) and isinstance(value.get(name), str):
            return actor(value["id"], value[name])
        raise self.wrong(key, "must name who: {id: ID, login: LOGIN}")
