"""Real coding agents before a scripted model: their programs as `make test-real` installs them.

They see a loopback address, a key of nobody's and a home of the run; what they would download is not asked for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ralph_mission.adapters.agents.client import CommandAgent
from ralph_mission.adapters.agents.clients import find_client
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox.bwrap import endpoint
from ralph_mission.adapters.sandbox.isolation import OPEN, Level, Sandbox, of_checkout
from ralph_mission.loop.model.state import AgentTurn, Hat, Session
from tests.cli.loop_world import World, works
from tests.conftest import ROOT
from tests.fakes.model.script import Reply, call, say
from tests.fakes.model.server import KEY, ScriptedModel
from tests.helpers import make_repo
from tests.real.emulator import NODE

PLACE = ROOT / ".venv" / "node"


DRIVER = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}, {sysconfig.get_path('purelib')!r}]; sys.path.append({str(PLACE)!r}); "
    "from ralph_mission.adapters.agents.claude_driver import main; sys.exit(main(sys.argv[1:]))"
)
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "claude": (sys.executable, "-I", "-c", DRIVER),
    "claude-cli": (str(PLACE / "claude_agent_sdk" / "_bundled" / "claude"),),  # its own command line
    "codex": (str(NODE), str(PLACE / "node_modules" / "@openai" / "codex" / "bin" / "codex.js")),
}
"""How each is started: Claude Code by our driver on the SDK that stands beside Node.js, not in `.venv` itself."""
MODELS = {"claude": "claude-sonnet-4-5", "claude-cli": "claude-sonnet-4-5", "codex": "gpt-5.4"}
PRICES: Mapping[str, str] = {
    "claude": "",
    "claude-cli": "",
    "codex": "cost: {prices: {gpt-5.4: {input: 2.5, output: 15}}}\n",
}
"""Claude Code tells what it cost; the tokens that Codex tells are priced by the settings."""
FAULTS: Mapping[str, tuple[int, str]] = {
    "401_a_key_that_nobody_knows": (401, "auth"),
    "429_too_many_requests": (429, "rate_limit"),
    "529_overloaded": (529, "server"),
    "500_a_fault_of_the_server": (500, "server"),
    "400_a_request_that_is_none": (400, "exit"),
}
"""What a provider answers, and what a session that hears it has failed by."""
FLIP = 's/"passes": false/"passes": true/'


@dataclass(frozen=True, slots=True)
class Player:
    """A real client in a work tree of its own, for single sessions."""

    name: str
    tree: Path
    home: Path
    run_dir: Path
    level: Level = "env"

    def play(self, model: ScriptedModel, hat: Hat | None = None, prompt: str = "Do it.", **options: Any) -> AgentTurn:
        """One session before `model`."""
        client = find_client(self.name.partition("-")[0], PROGRAMS[self.name])
        agent = CommandAgent(
            PROGRAMS[self.name], self.tree, self.home, (), seen(model), client=client, name=self.name,
            trusted=options.pop("trusted", False), sandbox=self.sandbox(model),
        )  # fmt: skip  # one call
        stopped: Callable[[], bool] = options.pop("stopped", lambda: False)
        limits = {"seconds": 120.0, "turns": 20, **options}
        session = Session(hat or Hat("builder"), 1, prompt, str(self.run_dir), MODELS[self.name], **limits)
        return agent.play(session, stopped)

    def sandbox(self, model: ScriptedModel) -> Sandbox:
        """As a run has it, and what `make test-real` installed in it."""
        if self.level == "env":
            return OPEN
        made = of_checkout(self.level, Git.open(self.tree), {}, (endpoint(model.url),))
        return replace(made, readable=(*made.readable, PLACE))


def player(name: str, folder: Path, level: Level = "env") -> Player:
    """A client in a new repository."""
    tree = make_repo(folder / "tree", {"README.md": "# Shop\n"})
    run_dir = tree / ".ralph" / "loop"
    run_dir.mkdir(parents=True)
    return Player(name, tree, run_dir / "home", run_dir, level)


def settings(name: str, level: Level) -> str:
    """What `ralph.yml` says of it."""
    return f"hands: {{agent: {{model: {MODELS[name]}, sandbox: {level}}}}}\n{PRICES[name]}"


def seen(model: ScriptedModel) -> dict[str, str]:
    """What a client has to see to ask `model`, and only that. A client has to be there."""
    assert (PLACE / "installed").exists(), "the clients are not in .venv/node: run make test-real"
    return {
        "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url,
        "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model.url}/v1",
    }  # fmt: skip  # one value


def options(name: str) -> list[str]:
    """The options of `ralph run` that name it."""
    return ["--agent", name.partition("-")[0], "--command", shlex.join(PROGRAMS[name])]


def two_stories(name: str) -> list[Reply]:
    """A model that writes a file for each of two stories, runs a command that flips it, and says so."""
    flip = [f"n={number}; sed -i '0,/\"passes\": false/{FLIP}' prd.json && touch done-$n" for number in (1, 2)]
    if name == "codex":
        write = [shell(name, f"echo part > part-{number}.txt") for number in (1, 2)]
    else:
        write = [call("Write", file_path=f"part-{number}.txt", content="part\n") for number in (1, 2)]
    run = [shell(name, command) for command in flip]
    return [step for at in (0, 1) for step in (write[at], run[at], say(f"Part {at + 1} is done."))]


def account(world: World, name: str, model: ScriptedModel, *more: str) -> tuple[int, Any, str]:
    """`ralph run --prd --worktree` with the client: exit code, account, what it told."""
    done = world.run_apart("--prd", "--worktree", *options(name), *more, env=environment(model))
    assert done.out, done.err
    return done.code, json.loads(done.out), done.err


def figures_of_each_session(told: Any, said: str, cost: float) -> None:
    """Time, turns, tokens and cost of both sessions stand in the account and in the lines for people, which leave out
    the time of a session that took less than a second."""
    for number, one in enumerate(told["played"], start=1):
        usage = one["usage"]
        assert (one["session"], one["failure"], one["calls"]) == (number, "", 2)
        assert (usage["input_tokens"], usage["output_tokens"], usage["turns"]) == (3000, 150, 3)
        assert abs(usage["cost_usd"] - cost) < 1e-9 and usage["seconds"] > 0
    sessions = re.findall(r"passed US-00\d, .*\$(\d\.\d\d), 3,150 tokens, 3 turns(?:, \d+s)?$", said, re.MULTILINE)
    assert sessions == [f"{cost:.2f}"] * 2, said
    assert re.search(rf"^complete: .*total \${2 * cost:.2f}, \d+\S*s, 6,300 tokens, 6 turns$", said, re.MULTILINE), said


def environment(model: ScriptedModel) -> dict[str, str]:
    """Ours, for a run: on PATH also where `make test-real` installed the clients, so that they are seen at `bwrap`."""
    return {**os.environ, **seen(model), "PATH": f"{PLACE}{os.pathsep}{os.environ['PATH']}"}


def shell(name: str, command: str) -> Reply:
    """A reply that has the client run a command."""
    if name == "codex":
        return call("exec_command", cmd=command)
    return call("Bash", command=command, description="does it")


def working(mark: str) -> list[int]:
    """The processes that still do something and have `mark` on their command line, whatever number they know."""
    found = [place for place in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _content(place)]
    return [pid for pid in (int(place.parent.name) for place in found) if pid != os.getpid() and works(pid)]


def _content(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:  # it ended meanwhile
        return b""
