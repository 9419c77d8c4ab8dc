"""What the environment holds leaves by no way, though observers, the planner and the agent write it in every disguise.

Whole cycles and loops with an attacker in every place where words come from; then every byte that left is searched:
requests, every object of the repository on the server and here, all files that were written, all output.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.thinkers import RulesThinker
from ralph_mission.cli.main import run_guarded, write_report
from ralph_mission.errors import UserError
from ralph_mission.mission.model.proposal import Plan
from tests.attacks.canaries import (
    CANARY,
    ENVIRONMENT,
    PASSPHRASE,
    TRANSFORMS,
    echoes,
    every_file,
    every_object,
    left_in,
    listening,
    without_authorization,
)
from tests.cli.loop_world import world as loop_world
from tests.helpers import Result, cli_here
from tests.integration.coding import agent_world
from tests.integration.hub import Hub, open_hub, unpaced
from tests.integration.world import statuses

PARSED = "{regex: '^(?P<path>[^:]*):(?P<line>[0-9]+): (?P<message>.+)$'}"
CONFIG = """\
observers:
  code: {{markers: {{}}}}
  commands:
    - {{name: bugs, run: {cat}, kind: bug, parse: {parsed}}}
    - {{name: style, run: {cat}, kind: code-quality, parse: {parsed}}}
    - {{name: broken, run: {fails}, kind: code-quality, parse: sarif}}
hands: {{fixers: [typos]}}
"""
FEW = ("plain", "base64")
SOME = [name if name in FEW else pytest.param(name, marks=pytest.mark.long) for name in TRANSFORMS]
FILES: Mapping[str, str | bytes] = {"README.md": "# Harbour\n\nTides are seperate.\n", "src/a.py": "x = 1\n"}


def lines() -> list[str]:
    """One line of a checker for each writing of each value: in the message, and as a path."""
    said = [echo.replace("\n", " ") for value in ENVIRONMENT.values() for echo in echoes(value).values()]
    paths = [echo for echo in said if not set(":/") & set(echo)]
    return [f"src/a.py:1: the value is {echo}" for echo in said] + [f"src/{echo}:1: look at it" for echo in paths]


def obeys_the_attacker() -> object:
    """A planner that says it wherever a planner may say anything, each time in another writing."""
    think, said = RulesThinker.think, cycle([e for value in ENVIRONMENT.values() for e in echoes(value).values()])

    def hostile(self: RulesThinker, brief: object) -> Plan:
        plan = think(self, brief)  # type: ignore[arg-type]  # whatever the cycle asks with
        ranked_findings = (
            replace(one, why=next(said), sections=(("Risks", next(said)), ("Success Criteria", next(said))))
            for one in plan.ranked_findings
        )
        return Plan(tuple(ranked_findings), remark=next(said), cursor=next(said))

    return mock.patch.object(RulesThinker, "think", hostile)


def outlet(folder: Path) -> dict[str, str]:
    """The runner's own files, as a workflow has them."""
    names = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output.txt"}
    return {variable: str(folder / name) for variable, name in names.items()}


def kept(clone: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file of ours here; an agent's own clones are where it works."""
    return every_file(clone, lambda path: path.parts[:2] == (".git", "objects") or "missions" in path.parts[:2])


class Ship:
    """A hub whose observer, planner and checks are the attacker's, and all that left it."""

    def __init__(self, folder: Path, hub: Hub) -> None:
        self.folder, self.hub = folder, hub
        self.told: list[Result] = []
        self.sent: list[bytes] = []

    def cycle(self) -> Result:
        self.hub.now += timedelta(hours=7)
        self.hub.fake.clock.now = max(self.hub.now, self.hub.fake.clock.now)
        env = {**ENVIRONMENT, **self.hub.environ, **outlet(self.folder)}
        with listening() as sent, obeys_the_attacker(), unpaced():
            told = cli_here(
                "cycle", "--json", "--force", "--forge", "github", "--now", self.hub.now.isoformat(),
                repo=self.hub.clone, env=env,
            )  # fmt: skip  # one command line
        self.sent += sent
        self.told.append(told)
        return told

    def left(self) -> dict[str, list[str]]:
        """Where something of a secret got to, and what."""
        places = {
            "requests": without_authorization(self.sent),
            "the server": every_object(self.hub.fake.bare),
            "objects here": every_object(self.hub.clone),
            "output": "\n".join(told.out + told.err for told in self.told).encode(),
            **{str(path): data for path, data in kept(self.hub.clone)},
            **{name: (self.folder / name).read_bytes() for name in ("summary.md", "output.txt")},
        }
        return {name: found for name, data in places.items() if (found := left_in(data))}


@pytest.fixture
def ship(tmp_path: Path) -> Iterator[Ship]:
    said = tmp_path / "said.txt"
    said.write_text("\n".join(lines()) + "\n")
    cat = f"cat {shlex.quote(str(said))}"
    config = CONFIG.format(cat=repr(cat), fails=repr(f"{cat} >&2; exit 9"), parsed=PARSED)
    with open_hub(tmp_path, dict(FILES), config) as hub:
        hub.fake.validate = False
        yield Ship(tmp_path, hub)


@pytest.mark.parametrize("name", SOME)
def test_the_search_finds_every_writing(name: str) -> None:
    for value in ENVIRONMENT.values():
        assert left_in(f"a {TRANSFORMS[name](value)} b".encode())


@pytest.mark.long  # hundreds of findings, searched in many ways
@pytest.mark.attack(33, 34)
def test_a_cycle_whose_observer_and_planner_are_the_attackers_lets_nothing_out(ship: Ship) -> None:
    told = ship.cycle()
    assert told.code == 0, told.err
    assert told.json["effects"], "it has done something"
    assert "[redacted: known-value]" in ship.hub.memory() or "known-value" in told.err
    assert ship.left() == {}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a runner."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def said_by_an_agent() -> str:
    """Lines of Python that print every writing, and a word of each that is one of its own."""
    said = [echo for value in ENVIRONMENT.values() for echo in echoes(value).values()]
    return f"for said in {said!r}:\n    print('I found', said, 'there.')\n"


@pytest.mark.long  # real sessions of an agent: ten seconds or more
@pytest.mark.attack(33, 34)
@pytest.mark.parametrize("last", ["plain", "base64", "base64, third alignment"])
def test_what_an_agent_says_of_it_reaches_no_pull_no_memory_and_no_recording(
    tmp_path: Path, known: None, last: str
) -> None:
    word = TRANSFORMS[last](CANARY)
    with agent_world(tmp_path, "github") as shop:
        shop.says(f"write('src/table.py', 'TABLE = 1\\n')\n{said_by_an_agent()}print({word!r})")
        shop.wanted()
        with listening() as sent:
            shop.cycle()
            assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
        assert shop.pulls() and left_in(without_authorization(sent)) == []
        assert left_in(every_object(shop.place.fake.bare)) == []
        assert {path: found for path, data in kept(shop.repo) if (found := left_in(data))} == {}


@pytest.mark.long  # a loop of real sessions
@pytest.mark.attack(33, 37, 38)
@pytest.mark.parametrize("ending", ["fails", "goes well"])
def test_what_a_session_says_of_it_is_in_no_line_and_no_file_of_the_loop(
    tmp_path: Path, known: None, ending: str
) -> None:
    here = loop_world(tmp_path, {"ralph.yml": "hands: {fixers: []}\n"})
    script = said_by_an_agent() + ("change()\n" if ending == "goes well" else "sys.exit(1)\n")
    done = here.run("build it", "--max-iterations", "2", *here.agent(script))
    assert here.calls and "Traceback" not in done.err
    assert left_in((done.out + done.err).encode()) == []
    assert {path: found for path, data in kept(here.repo) if (found := left_in(data))} == {}


@pytest.mark.attack(33)
@pytest.mark.parametrize("name", SOME)
def test_a_report_of_our_own_mistake_holds_no_value_of_the_environment(
    tmp_path: Path, known: None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = write_report(ValueError(f"no such thing: {TRANSFORMS[name](CANARY)}"), ["cycle", "--repo", str(tmp_path)])
    assert place and place.read_text()
    assert left_in(place.read_bytes()) == []


@pytest.mark.attack(33)
@pytest.mark.parametrize("name", SOME)
def test_a_trouble_that_quotes_it_is_told_without_it(
    tmp_path: Path, known: None, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))

    def fails(_: list[str]) -> int:
        raise UserError(f"there is no {TRANSFORMS[name](CANARY)}", f"take {TRANSFORMS[name](PASSPHRASE)} away")

    assert run_guarded(fails, ["cycle", "--json"]) == 1
    told = capsys.readouterr()
    texts = told.out, told.err, (tmp_path / "summary.md").read_text()
    assert all("there is no" in text and " away" in text for text in texts)
    assert left_in("".join(texts).encode()) == []
