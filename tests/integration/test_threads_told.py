"""What people read on GitHub of their own issues and pull requests, and of markers that are overdue."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.hub import Hub, open_hub
from tests.mission.hostile import harmful_actions

pytestmark = pytest.mark.long  # takes ten seconds or more

PLAIN = "hands: {fixers: []}\n"
CODE = "def wait():\n    # TODO: remove this after 2019\n    return sum(prices) / len(prices)\n"
TRACE = (
    'Traceback (most recent call last):\n  File "/venv/lib/python3.11/site-packages/shop/cart.py", line 3, in wait\n'
    "    return sum(prices) / len(prices)\nZeroDivisionError: division by zero @everyone fixes #1"
)
OURS = re.compile(r"<!-- ralph:(?:box|anchor) [^>]*-->|</?(?:details|summary)>")
TITLE = "Download stops at half of the file with a slow proxy"


def bodies(hub: Hub) -> dict[str, str]:
    """Our issues by the beginning of their titles."""
    ours = [thread for thread in hub.threads if "ralph:v" in (thread.body or "") and not thread.pull]
    return {thread.title.partition(" in src")[0]: thread.body or "" for thread in ours}


def test_what_people_can_act_on_is_linked_line_by_line_and_notifies_nobody(tmp_path: Path) -> None:
    with open_hub(tmp_path, {"src/shop/cart.py": CODE}, PLAIN) as hub:
        page, head = f"{hub.fake.url}/harbour/slackwater", hub.fake.branch("main")
        mara, joe = hub.person("mara"), hub.person("joe")
        older = mara.create_issue(TITLE, "It just stops.")
        newer = joe.create_issue(TITLE, "Same here.")
        report = mara.create_issue("Empty cart crashes", TRACE)
        hub.fake.push("topic", {"b.txt": b"x\n"})
        pull = mara.open_pull("topic", "main", "Add a thing")
        joe.review(pull, "approved", "Fine.")
        hub.cycle(timedelta(days=4))
        hub.cycle()
        told = bodies(hub)
        line = f"({page}/blob/{head}/src/shop/cart.py#L"
        assert f"[`src/shop/cart.py:2`]{line}2): `# TODO: remove this after 2019`" in told["Overdue TODO"]
        hints = told["Ralph"]
        assert f"[#{newer}]({page}/issues/{newer}) `is likely the same as #{older}" in hints
        assert f"[#{older}]({page}/issues/{older}): `{TITLE}`" in hints
        assert f"[#{report}]({page}/issues/{report}) `has a stack trace" in hints
        assert f"[`src/shop/cart.py:3`]{line}3): `return sum(prices) / len(prices)`" in hints
        waiting = told["Ralph"]
        assert f"[#{pull}]({page}/issues/{pull}) `was approved 4 days ago, is green and not merged" in waiting
        assert [problem for body in told.values() for problem in harmful_actions(OURS.sub("", body))] == []


def test_what_is_told_once_is_not_told_again(tmp_path: Path) -> None:
    with open_hub(tmp_path, {"src/shop/cart.py": CODE}, PLAIN) as hub:
        hub.person("mara").create_issue("Empty cart crashes", TRACE)
        hub.cycle()
        hub.cycle()
        before = bodies(hub)
        assert len(before) == 2
        reports = [hub.cycle()[0] for _ in range(2)]
        assert bodies(hub) == before and [report.effects for report in reports] == [(), ()]
