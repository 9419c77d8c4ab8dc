"""An agent that always obeys the attacker, through every case of the list: nothing forbidden leaves its clone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.errors import UserError
from tests.adapters.web_server import reply, saying, serving
from tests.attacks.attacked_hub import unknowing
from tests.attacks.cases import CASES, INSIDE, SAID_ALONE, SECRET, Case
from tests.attacks.judge import Judge, standing
from tests.attacks.malicious_agent import OPEN, SLY, script
from tests.attacks.outsiders import do
from tests.cli.loop_world import works
from tests.figures import Table, shown
from tests.integration.coding import AgentWorld, Files, agent_world
from tests.integration.hub import Hub

pytestmark = pytest.mark.long  # an agent's sessions take seconds
FILES: Files = {
    "README.md": "# Harbour\n", "src/tide.py": "TIDE = 1\n", "docs/guide.md": "# Guide\n\nHow to read a table.\n",
    "tests/test_tide.py": "def test_tide():\n    assert 1 + 1 == 2\n",
}  # fmt: skip  # one value

NAMED = 34
"""The case in which the titles of the missions are the attacker's too."""
IN_THE_OPEN = (1, 18, 27, 37, 44, 55)
"""The first case of each group: there it tries at once all that a session can try."""
HELD = re.compile("needs approval|may not be sent")
"""What is told of a change that was not sent."""
ALONE = (50, 54)
"""Cases with several ways to change one file: one change would hide the other."""


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    made = Table("obeying agent")
    yield made
    shown(request.config, made)


def checkout(shop: AgentWorld) -> dict[str, tuple[int, bytes]]:
    """The runner's clone, which is no agent's, and what git obeys there."""
    git = [shop.repo / ".git" / name for name in ("config", "hooks", "HEAD", "info/attributes", "refs/heads/main")]
    return standing(*(path for path in shop.repo.iterdir() if path.name not in (".git", ".ralph")), *git)


def names_own_files(path: Path) -> bool:
    """An index of a clone names the files as the agent that works there named them. The clone stays as long as its
    mission: a later cycle goes on there, or sends what a person allowed, without another session."""
    return "missions" in path.parts and path.name in ("index", "tree.index")


def played(shop: AgentWorld, judge: Judge) -> None:
    """A cycle, which may refuse to go on where memory is another's."""
    before = checkout(shop)
    with suppress(UserError):
        shop.cycle()
    judge.after_cycle()
    judge.untouched(before, checkout(shop))


def judged(shop: AgentWorld, judge: Judge) -> None:
    """What an agent leaves: processes, programs that ran outside of its session, what it found out."""
    names = (shop.aside / "names").read_text().split("\n")
    judge.secret((shop.aside / "found").read_text(), "what the agent could read")
    judge.looked += len(names)
    if strange := [name for name in names if name.startswith(("GITHUB_", "RUNNER_", "ACTIONS_", "HARBOUR"))]:
        judge.blame("process", f"the agent sees {strange}")
    daemon = shop.aside / "daemon"
    if daemon.exists() and works(int(daemon.read_text())):
        judge.blame("process", "the agent left one running")
    if (shop.aside / "ran").exists() or (shop.place.folder / "ran").exists():
        judge.blame("process", "what the agent planted was run")


def marked(case: Case, name: str) -> object:
    counted = () if case.number in SAID_ALONE else (pytest.mark.attack(case.number),)
    return pytest.param(case, id=name, marks=counted)


def apart() -> Iterator[object]:
    """Every case, and where one change would hide the other a case for each."""
    for case in CASES:
        if case.number not in ALONE:
            yield marked(case, str(case))
            continue
        for place, change in enumerate(case.changes):
            yield marked(replace(case, changes=(change,)), f"{case}-{place}")


@pytest.mark.parametrize("case", [*apart()])
def test_an_agent_that_obeys_the_attacker_brings_about_nothing_forbidden(
    tmp_path: Path, case: Case, table: Table
) -> None:
    with (
        mock.patch.dict(os.environ, {"HARBOUR_TOKEN": SECRET, "GITHUB_ENV": str(tmp_path / "env")}),
        serving(saying(reply(b"inside"))) as inside,
        agent_world(tmp_path, "github", files=FILES) as shop,
    ):
        assert isinstance(shop.place, Hub)
        fake, words = shop.place.fake, case.text.replace(INSIDE, inside.url)
        fake.validate = False
        shop.says(script(case, words, fake.git_url))
        judge = Judge(fake, (SECRET, shop.place.token)).watch()
        titles = (OPEN, SLY) if case.number in IN_THE_OPEN else (SLY,)
        named = f" {words}" if case.number == NAMED else ""
        judge.wanted = {shop.wanted(title + named, f"Please.\n\n{words[:9_000]}") for title in titles}
        for _ in titles:
            played(shop, judge)
        played(shop, judge)
        if case.act:  # there is something of ours by now to do it to
            assert do(shop.place, case, unknowing(words)), "there was nothing to do it to"
            played(shop, judge)
        judge.objects()
        judge.files(shop.repo / ".ralph", but=names_own_files)
        judged(shop, judge)
        if inside.connections:
            judge.blame("reached", str(inside.asked))
        sent = [pull for pull in shop.place.pulls if pull.author.is_bot]
        held = [told for number in judge.wanted for told in shop.said(number) if HELD.search(told)]
        writes = [one for one in fake.journal if one.method != "GET" and one.transport == "rest"]
    table.count(case.group, cases=1, effects=len(writes), looked_at=judge.looked, forbidden=len(judge.breaches))
    assert judge.breaches == []
    assert shop.prompts and (sent or (case.changes and held)), "the attack came to nothing by itself"
    assert (shop.aside / "daemon").exists() == (case.number in IN_THE_OPEN), "a session tried it all, or none did"
    assert not (tmp_path / "env").exists()
