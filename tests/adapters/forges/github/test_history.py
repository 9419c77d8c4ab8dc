"""A repository's past is read page by page, kept, and asked for again only to hear that it still holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.forges.github import history
from ralph_mission.adapters.forges.github.history import GitHubHistory, compact
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import marker
from tests.adapters.forges.github_world import GitHubWorld, github


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    with github(tmp_path) as made:
        yield made


def past(world: GitHubWorld, days: int = 60) -> GitHubHistory:
    since = world.fake.clock.present() - timedelta(days=days)
    return GitHubHistory(world.forge.api.place, FileCache(world.clone / ".ralph" / "past"), since, world.notes.append)


def test_a_second_reading_says_the_same_and_reads_nothing_twice(world: GitHubWorld) -> None:
    world.human("mara").comment(world.human("ann").create_issue("Late", "words " * 2_000), "long " * 2_000)
    first, again = past(world), past(world)
    told = first.read_threads()
    assert again.read_threads() == told
    assert (first.api.counts.not_modified, again.api.counts.not_modified) == (0, again.api.counts.total)
    assert told.whole == {1} and len(told.issues[1].body) == history.LONGEST


def test_what_is_closed_and_quiet_since_before_the_span_is_not_read_and_what_is_open_is(world: GitHubWorld) -> None:
    ann = world.human("ann")
    ann.close_issue(ann.create_issue("Over"))
    ann.create_issue("Still there")
    world.fake.clock.advance(200 * 86_400)
    assert [one.title for one in past(world).read_threads().issues.values()] == ["Still there"]


def test_what_ralph_opened_and_said_is_not_there(world: GitHubWorld) -> None:
    ann = world.human("ann")
    ann.create_issue("A mission", f"words\n{marker('a' * 64)}")
    ann.comment(ann.create_issue("Late"), f"working on it\n{marker('a' * 64)}")
    told = past(world).read_threads()
    assert [(one.title, one.remarks) for one in told.issues.values()] == [("Late", ())]


def test_a_pull_is_known_from_the_list_of_issues(world: GitHubWorld) -> None:
    world.push("fix", {"b.py": b"y = 1\n"})
    mara = world.human("mara")
    mara.merge(mara.open_pull("fix", "main", "Add b"))
    (pull,) = past(world).read_threads().pulls.values()
    assert (pull.title, pull.state, pull.author.login) == ("Add b", "merged", "mara")


def test_more_runs_than_github_tells_at_once_are_asked_for_in_parts(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_RUNS", 3)
    now = world.fake.clock.present()
    for day in range(6):
        world.fake.workflow_run(day, "completed", "success", "push", created_at=now - timedelta(days=3 * day))
    assert [run.id for run in past(world).read_runs()] == [0, 1, 2, 3, 4, 5]


def test_a_list_that_is_too_long_is_told_with_what_to_do(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAGES", 1)
    world.fake.page_size_cap = 1
    for title in ("one", "two"):
        world.human("ann").create_issue(title)
    with pytest.raises(UserError, match="more than 100 issues since") as refused:
        past(world).read_threads()
    assert refused.value.next_step == "choose a later --since"


def test_after_a_rate_limit_what_was_read_is_not_asked_for_again(world: GitHubWorld) -> None:
    world.human("ann").create_issue("Late")
    world.fake.fail("rate_primary", ("GET", "/issues/comments"))
    with pytest.raises(UserError, match="rate limit"):
        past(world).read_threads()
    again = past(world)
    again.read_threads()
    assert (again.api.counts.total, again.api.counts.not_modified) == (3, 2)


def test_details_are_asked_for_once_and_not_without_end(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "DETAILS", 1)
    number = world.human("ann").create_issue("Late")
    world.human("mara").comment(number, "Is it?")
    asked = past(world)
    assert asked.comments(number) == asked.comments(number) != ()
    assert asked.events(number) is None and asked.api.counts.total == 1
    assert "1 threads or runs were not looked at closely" in list(asked.remarks(asked.read_threads()))[1]


def test_what_is_kept_is_short_and_stays_as_it_is() -> None:
    kept = compact(
        {"number": 1, "node_id": "x", "body": "a" * 5_000 + "?", "user": {"login": "ann", "site_admin": True}}
    )
    assert kept.keys() == {"number", "body", "user"} and kept["user"] == {"login": "ann"}
    assert len(kept["body"]) == history.LONGEST and kept["body"].endswith("a?") and compact(kept) == kept
