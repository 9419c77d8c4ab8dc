"""What was read from GitHub is kept, and never believed for longer than it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.forges.github.api import MOST, ReadCache, slim
from tests.adapters.forges.github_world import GitHubWorld, kept_file


def read_twice(world: GitHubWorld, number: int, wait: float = 900) -> None:
    """One cycle that reads the details of an issue, and time until the next."""
    world.fake.clock.advance(wait)
    forge = world.connected()
    forge.issues(), forge.issue(number)
    forge.close()
    world.fake.clock.advance(wait)


def reads(world: GitHubWorld, number: int) -> int:
    return world.fake.count(method="GET", below=f"/issues/{number}/*")


def fresh_issue(world: GitHubWorld, number: int) -> Any:
    forge = world.connected()
    forge.issues()
    return forge.issue(number)


def test_details_of_a_quiet_issue_are_not_asked_for_again(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    world.human("mara").comment(number, "Hm")
    read_twice(world, number)
    before = reads(world, number)
    issue = fresh_issue(world, number)
    assert (reads(world, number), len(issue.remarks), len(issue.events)) == (before, 1, 1)


def test_edited_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    updated = world.fake.issue(number).updated_at
    mara.edit_comment(made, "No, wait.")
    assert world.fake.issue(number).updated_at == updated
    assert fresh_issue(world, number).remarks[0].body == "No, wait."


def test_deleted_comment_is_noticed_though_the_thread_looks_quiet(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    made = mara.comment(number, "/ralph approve")
    read_twice(world, number)
    del world.fake.comments[made]
    assert fresh_issue(world, number).remarks == ()


def test_details_read_within_a_minute_of_a_change_are_not_trusted(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number, wait=20)
    before = reads(world, number)
    fresh_issue(world, number)
    assert reads(world, number) == before + 1


def test_details_are_read_anew_after_six_hours(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    world.fake.clock.advance(6 * 3600)
    before = reads(world, number)
    fresh_issue(world, number)
    assert reads(world, number) == before + 1


def test_new_label_is_noticed(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    read_twice(world, number)
    world.human("mara").label(number, ("ralph:mission",))
    assert [event.label for event in fresh_issue(world, number).events] == ["ralph:mission"]


def test_what_comes_after_a_last_page_that_was_full_is_noticed(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    for n in range(100):
        mara.comment(number, f"Remark {n}")
    read_twice(world, number)
    mara.comment(number, "/ralph reject")
    assert fresh_issue(world, number).remarks[-1].body == "/ralph reject"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"version": 1}', b'{"version": 1, "values": 7}'])
def test_broken_memory_of_requests_is_an_empty_one(world: GitHubWorld, content: bytes) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    kept_file(world).write_bytes(content)
    assert len(fresh_issue(world, number).events) == 1


def test_memory_with_values_of_another_shape_is_not_believed(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    document = json.loads(kept_file(world).read_text())
    document["values"] = {name: {"odd": True} for name in document["values"]}
    kept_file(world).write_text(json.dumps(document))
    assert len(fresh_issue(world, number).events) == 1


def test_answers_to_another_account_are_not_used(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question", labels=("bug",))
    read_twice(world, number)
    forge = world.connected(world.fake.token("mara"))
    forge.issues(), forge.issue(number)
    assert forge.requests.not_modified == 0


def test_memory_of_requests_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    kept = ReadCache(tmp_path / "x.json", "scope")
    for place in range(10):
        kept.put(str(place), "x" * (MOST // 4))
    kept.get("2")
    kept.save()
    assert (tmp_path / "x.json").stat().st_size < MOST + 1000
    assert set(ReadCache(tmp_path / "x.json", "scope").values) == {"2", "8", "9"}
    assert ReadCache(tmp_path / "x.json", "other").values == {}


def test_json_is_kept_without_its_ballast() -> None:
    person = {"login": "m", "avatar_url": "a"}
    head = {"repo": {"id": 1, "full_name": "o/n", "description": "long"}}
    whole = {"html_url": "h", "url": "u", "node_id": "n", "comments_url": "c", "user": person, "head": head}
    assert slim(whole) == {
        "html_url": "h",
        "url": "u",
        "user": {"login": "m"},
        "head": {"repo": {"id": 1, "full_name": "o/n"}},
    }


@pytest.mark.attack(46)
def test_whoever_left_a_file_there_does_not_choose_who_reads_and_writes_it(tmp_path: Path) -> None:
    (place := tmp_path / "github.json").write_text("{}")
    place.chmod(0o666)
    kept = ReadCache(place, "scope")
    kept.put("GET /", {})
    kept.save()
    assert place.stat().st_mode & 0o777 == 0o600
