"""Which way of waking is set up here, and which one `wake: auto` takes."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.cli.workflow import ActionReference, render_workflow
from ralph_mission.config.settings import Schedule
from ralph_mission.wakers import WAKERS, best
from ralph_mission.wakers.facts import WakeFacts, look
from ralph_mission.wakers.timer import instance

PLAIN = render_workflow("cycle", ActionReference("a/b", "v1"), ("self-hosted",))
HERE = "srv-harbour"
TIMERS = frozenset({f"ralph-wake@{HERE}.timer"})


def name_of_best(facts: WakeFacts) -> str:
    way = best(facts)
    return way.name if way else ""


def test_nothing_is_set_up_where_nothing_is():
    assert best(WakeFacts()) is None
    assert not any(way.set_up(WakeFacts()).ok for way in WAKERS.values())


def test_the_table_holds_every_way_that_can_be_configured():
    wake = Schedule.model_fields["wake"].annotation
    assert {"auto", *WAKERS} == set(wake.__args__)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (WakeFacts(PLAIN), "heartbeat"),
        (WakeFacts(PLAIN, TIMERS, HERE), "timer"),
        (WakeFacts("", TIMERS, HERE), ""),
        (WakeFacts(PLAIN, TIMERS, "elsewhere"), "heartbeat"),
    ],
)
def test_the_most_punctual_way_that_is_set_up_is_the_best(facts, name):
    assert name_of_best(facts) == name


def test_a_timer_for_another_folder_is_named():
    standing = WAKERS["timer"].set_up(WakeFacts(PLAIN, TIMERS, "srv-other"))
    assert not standing.ok
    assert f"ralph-wake@{HERE}.timer" in standing.reason


def test_a_commented_cron_is_no_heartbeat():
    text = PLAIN.replace("    - cron", "    # - cron")
    facts = replace(WakeFacts(), workflow=look_at(text))
    assert not WAKERS["heartbeat"].set_up(facts).ok


def look_at(text: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ".github" / "workflows" / "any-name.yaml"
        place.parent.mkdir(parents=True)
        place.write_text(text)
        return look(Path(folder), "", ()).workflow


def test_the_workflow_is_found_by_what_it_listens_to(tmp_path):
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text("on: push\n# ralph-loop-trigger\n")
    (folder / "latin.yml").write_bytes(b"\xff")
    assert look(tmp_path, "", ()).workflow == ""
    (folder / "loop.yml").write_text(PLAIN)
    assert "ralph-loop-trigger" in look(tmp_path, "", ()).workflow


def test_a_bare_repository_has_no_workflow_to_look_at():
    assert look(None, "", ()) == WakeFacts()


def test_enabled_timers_are_found_where_systemd_links_them(tmp_path):
    wants = tmp_path / "timers.target.wants"
    wants.mkdir()
    (wants / "ralph-wake@srv-a.timer").symlink_to(tmp_path / "gone")
    (wants / "fstrim.timer").touch()
    assert look(None, "x", (tmp_path, tmp_path / "missing")).timers == {"ralph-wake@srv-a.timer"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/harbour", "srv-harbour"),
        ("/srv/my repo/.x-y/ü%", r"srv-my\x20repo-.x\x2dy-\xc3\xbc\x25"),
        ("/.hidden//twice/", r"\x2ehidden-twice"),
        ("/", "-"),
    ],
)
def test_an_instance_is_named_as_systemd_names_it(path, name):
    assert instance(Path(path)) == name
    if shutil.which("systemd-escape"):
        told = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True)
        assert told.stdout.rstrip("\n") == name
