"""The outbox: files for a person, whole, once, and never committed."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.publishers.channel import OutboxFolder
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import Chart, Post
from tests.helpers import git

NOW = datetime(2026, 2, 16, 6, tzinfo=UTC)
POST = Post("outbox", ("APR went up.\n\nLook.", "And more."), (19, 9), 4096)
CHART = Chart("APR", "%", ((NOW, 1.0), (NOW + timedelta(hours=1), 2.0), (NOW + timedelta(hours=2), 3.0)), "Rising.")


def outbox(folder: Path, picture: bytes = b"", at: datetime = NOW) -> OutboxFolder:
    return OutboxFolder(folder / "outbox", lambda: at, lambda _: picture)


def files(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / "outbox").iterdir())


def test_a_post_is_a_file_that_is_ready_to_copy(tmp_path: Path) -> None:
    receipt = outbox(tmp_path).publish("aa11bb22", POST)
    assert (receipt.status, receipt.detail) == ("done", "id=2026-02-16-outbox-aa11bb22.md")
    assert (tmp_path / "outbox" / "2026-02-16-outbox-aa11bb22.md").read_text() == (
        "A post for a person to send, made 2026-02-16 06:00 UTC.\n\n---\n\nAPR went up.\n\nLook.\n\n---\n\nAnd more.\n"
    )


def test_the_same_key_is_the_same_file_on_any_day(tmp_path: Path) -> None:
    outbox(tmp_path).publish("aa11bb22", POST)
    again = outbox(tmp_path, at=NOW + timedelta(days=1)).publish("aa11bb22", POST)
    assert again.status == "adopted"
    assert files(tmp_path) == [".gitignore", "2026-02-16-outbox-aa11bb22.md"]


def test_what_is_there_is_found_and_what_is_not_is_not(tmp_path: Path) -> None:
    assert outbox(tmp_path).find("aa11bb22") is None
    outbox(tmp_path).publish("aa11bb22", POST)
    found = outbox(tmp_path).find("aa11bb22")
    assert found is not None
    assert found.status == "adopted"
    assert outbox(tmp_path).find("*") is None


def test_a_half_written_file_of_a_crash_is_none(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    (tmp_path / "outbox" / ".2026-02-16-outbox-aa11bb22.md.7").write_text("A po")
    assert outbox(tmp_path).find("aa11bb22") is None
    assert outbox(tmp_path).publish("aa11bb22", POST).status == "done"


def test_a_list_of_what_git_ignores_that_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    (tmp_path / "outbox" / ".gitignore").write_text("*.log\n")
    outbox(tmp_path).publish("aa11bb22", POST)
    assert (tmp_path / "outbox" / ".gitignore").read_text() == "*.log\n"


def test_a_chart_lies_beside_it_with_its_words(tmp_path: Path) -> None:
    post = Post("outbox", ("APR.",), (4,), 4096, CHART)
    outbox(tmp_path, b"PNG").publish("aa11bb22", post)
    assert (tmp_path / "outbox" / "2026-02-16-outbox-aa11bb22.png").read_bytes() == b"PNG"
    assert "Alt text: Rising." in (tmp_path / "outbox" / "2026-02-16-outbox-aa11bb22.md").read_text()


def test_git_ignores_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    outbox(tmp_path).publish("aa11bb22", POST)
    assert git(tmp_path, "status", "--porcelain") == ""


def test_a_folder_that_cannot_be_written_is_a_failure_in_words(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("a file in its place")
    receipt = outbox(tmp_path).publish("aa11bb22", POST)
    assert receipt.status == "failed"
    assert "the outbox cannot be written" in receipt.detail
    assert str(tmp_path) not in receipt.detail


def test_its_check_says_where_it_is(tmp_path: Path) -> None:
    assert outbox(tmp_path).check().startswith("0 waiting in ")
    outbox(tmp_path).publish("aa11bb22", POST)
    assert outbox(tmp_path).check().startswith("1 waiting in ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_its_check_says_when_nothing_can_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="cannot be written"):
            outbox(tmp_path).check()
    finally:
        tmp_path.chmod(0o700)


def test_what_is_staged_is_a_file_that_says_so_and_counts_as_nothing(tmp_path: Path) -> None:
    made = outbox(tmp_path)
    for network in ("twitter", "outbox"):
        receipt = made.stage("aa11bb22", replace(POST, network=network))
        place = tmp_path / "outbox" / "staged" / f"{network}-aa11bb22.md"
        assert (receipt.status, receipt.url) == ("staged", str(place))
        assert place.read_text() == (
            f"Staged for {network} at 2026-02-16 06:00 UTC, and not sent."
            "\n\n---\n\nAPR went up.\n\nLook.\n\n---\n\nAnd more.\n"
        )
    assert made.find("aa11bb22") is None
    assert made.check().startswith("0 waiting")
    assert made.publish("aa11bb22", POST).status == "done"
    git(tmp_path, "init", "--quiet")
    assert git(tmp_path, "status", "--porcelain", "outbox") == ""


def test_where_nothing_may_be_written_what_is_staged_has_no_file(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("a file")
    assert outbox(tmp_path).stage("aa11bb22", POST) == Receipt("aa11bb22", "staged")
