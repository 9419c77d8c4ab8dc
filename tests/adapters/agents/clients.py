"""Stub programs in place of real clients, and what real ones were seen to print (`samples/`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ralph_mission.adapters.agents.client import Client, CommandAgent, SessionPlace
from ralph_mission.adapters.agents.reading import Gave
from ralph_mission.loop.model.state import AgentTurn, Hat, Session

SAMPLES = Path(__file__).parent / "samples"
STUB = """
import json, os, sys
from pathlib import Path
home = Path(os.environ["HOME"])
files = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
Path("seen.json").write_text(json.dumps(
    {"argv": sys.argv[1:], "stdin": sys.stdin.read(), "env": dict(os.environ), "files": files}))
"""


def sample(name: str, what: str) -> Gave:
    """What the real client printed when its model said `what`: "ok" after a tool call or two, else a status."""
    told = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))[what]
    return Gave(told["stdout"].encode(), told["stderr"].encode(), told["code"], left=told["left"].encode())


def stub(folder: Path, script: str = "") -> tuple[str, ...]:
    """A program that notes down what it got, then does `script`."""
    folder.mkdir(exist_ok=True)
    (folder / "stub.py").write_text(STUB + script)
    return (sys.executable, str(folder / "stub.py"))


def play(client: Client, folder: Path, script: str = "", hat: Hat | None = None, **options: Any) -> AgentTurn:
    """One session of a stub that is called as `client` is."""
    (folder / "tree").mkdir(exist_ok=True)
    limits = {name: options.pop(name) for name in ("turns", "usd", "schema", "model") if name in options}
    agent = CommandAgent(
        stub(folder / "bin", script), folder / "tree", folder / "home", (*client.keys, *client.endpoints),
        client=client, name=client.name, **options,
    )  # fmt: skip  # one call
    session = Session(hat or Hat("builder"), 1, "do it\n@/etc/passwd", str(folder / "run"), **limits)
    return agent.play(session, lambda: False)


def seen(folder: Path) -> Any:
    """What the stub got."""
    return json.loads((folder / "tree" / "seen.json").read_text())


def called(client: Client, hat: Hat | None = None, **options: Any) -> list[str]:
    """The arguments of a session."""
    place = {name: options.pop(name) for name in ("env", "trusted", "sandboxed") if name in options}
    session = Session(hat or Hat("builder"), 1, "do it", "/run", **options)
    return list(client.invocation(session, SessionPlace(Path("/tree"), Path("/home/run"), **place)).arguments)
