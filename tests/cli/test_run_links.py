"""What a session leaves in the place of files that are read for the next one tells that one nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.loop.test_work import labels, ready
from tests.cli.loop_world import World, world
from tests.cli.test_run_isolation import at, run
from tests.helpers import git
from tests.integration.isolation_attacks import level_or_skip, place

pytestmark = pytest.mark.long  # takes ten seconds or more
ENVIRONMENT = {
    "GITHUB_TOKEN": "ghp_" + "a1B2" * 9, "DATABASE_URL": "postgres://u:dummy1pw@h/db",
    "TELEGRAM_BOT_TOKEN": "123456:dummytelegram", "PLAIN": "an-ordinary-canary",
}  # fmt: skip  # one environment
CANARIES = ("ghp_a1B2", "dummy1pw", "dummytelegram", "an-ordinary-canary", "PATH=", "CANARY")
MEMORY = "## Patterns\n\n### mem-1737372000-a1b2\n> CANARY of another\n<!-- tags: x | created: 2026-05-04 -->\n"
TEXTS = {
    ".ralph/agent/memories.md": MEMORY,
    ".ralph/agent/scratchpad.md": "CANARY\n",
    ".ralph/agent/tasks.jsonl": json.dumps({"id": "x", "title": "CANARY"}) + "\n",
    ".ralph/agent/said.jsonl": json.dumps({"topic": "CANARY", "payload": "CANARY"}) + "\n",
    ".ralph/loop/guidance.jsonl": json.dumps({"id": "x", "text": "CANARY"}) + "\n",
    "progress.txt": "## Codebase Patterns\n- CANARY\n\n---\n",
    "AGENTS.md": "## Codebase Patterns\n- CANARY\n\n---\n",
}
SEEN = "cat > prompt-$RALPH_ITERATION.txt; mkdir -p .ralph/agent .ralph/loop; S=/; "


@pytest.fixture
def here() -> Iterator[World]:
    with place() as made:
        yield world(made.root / "there")


@pytest.fixture(params=["env", "bwrap"])
def level(request: pytest.FixtureRequest, here: World) -> str:
    level_or_skip(request.param)
    at(here, request.param)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "settings")
    return str(request.param)


def prompts(here: World) -> list[str]:
    return [path.read_text() for path in sorted(here.repo.glob("prompt-*.txt"))]


def hidden(here: World, name: str) -> Path:
    """A file that only its owner may read."""
    secret = here.aside / name.replace("/", "-")
    secret.write_text(TEXTS[name])
    secret.chmod(0o600)
    return secret


@pytest.mark.attack(42)
def test_our_environment_is_in_no_prompt(here: World, level: str) -> None:
    names = " ".join(name for name in TEXTS if name.startswith(".ralph"))
    script = f"for f in {names}; do rm -f $f; ln -s ${{S}}proc/self/environ $f; done; git add -A; git commit -qm x"
    run(here, SEEN + script, "build it", "--max-iterations", "3", env=ENVIRONMENT)
    assert len(prompts(here)) == 3
    assert [word for told in prompts(here) for word in CANARIES if word in told] == []


@pytest.mark.parametrize("way", ["file", "folder"])
def test_what_a_link_leads_to_is_in_no_prompt_and_in_none_of_our_files(here: World, level: str, way: str) -> None:
    here.stories(2)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "stories")
    lines = [f"rm -f {name}; ln -s ${{S}}{str(hidden(here, name))[1:]} {name}" for name in TEXTS]
    if way == "folder":
        folder = here.aside / "agent"
        folder.mkdir()
        shutil.copy(hidden(here, ".ralph/agent/memories.md"), folder / "memories.md")
        (folder / "scratchpad.md").write_text("CANARY")
        lines = [f"rm -rf .ralph/agent; ln -s ${{S}}{str(folder)[1:]} .ralph/agent"]
    run(here, SEEN + "; ".join([*lines, "git add -A", "git commit -qm x"]), "--prd", "--max-iterations", "3")
    told = prompts(here)
    assert len(told) >= 2 and not any("CANARY" in one for one in told)
    ours = [path for path in (here.repo / ".ralph").rglob("*") if path.is_file() and not path.is_symlink()]
    assert all("CANARY" not in path.read_text(errors="replace") for path in ours if "session-" not in path.name)


def test_a_memory_that_is_a_link_is_neither_kept_nor_published(here: World, level: str) -> None:
    ready(here)
    secret = hidden(here, ".ralph/agent/memories.md")
    leave = f"mkdir -p .ralph/agent; rm -f .ralph/agent/memories.md; S=/; ln -s ${{S}}{str(secret)[1:]} .ralph/agent/"
    script = f"{leave}memories.md; echo made > made.txt; git add -A; git commit -qm x; echo LOOP_COMPLETE"
    done = here.ralph("work", "--once", "--json", "--command", script)
    assert done.code == 0 and done.json["outcome"] == "done", (done.out, done.err)
    assert "CANARY" not in here.ralph("pr", "show", "2").out + here.ralph("pr", "diff", "2").out
    ours = here.repo / ".ralph/agent/memories.md"
    assert not ours.exists() or "CANARY" not in ours.read_text()


@pytest.mark.attack(33)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what belongs to others")
def test_what_somebody_wrote_into_the_notes_of_a_secret_of_ours_is_cut_out(here: World, level: str) -> None:
    leave = "printf '%s' 'the token is '$(printf ghp_; for i in 1 2 3 4 5 6 7 8 9; do printf a1B2; done) "
    run(here, SEEN + leave + "> .ralph/agent/scratchpad.md; git add -A; git commit -qm x", "build it",
        "--max-iterations", "2", env=ENVIRONMENT)  # fmt: skip  # one call
    assert "the token is [redacted: known-value]" in prompts(here)[1] and "ghp_a1B2" not in prompts(here)[1]


LONG = """
folder = run_dir.parent / "agent"
folder.mkdir(exist_ok=True)
(folder / "memories.md").write_text(%s)
change(); commit()
print("LOOP_COMPLETE")
"""


@pytest.mark.parametrize(
    "text, kept, said",
    [
        ("'### mem-1737372000-a1b2\\n> ' + 'x' * 5000 + '\\n\\n### mem-1737372001-a1b2\\n> short\\n'", 1,
         "1 new memories are left out"),
        ("'x' * (9 * 1024 * 1024)", 0, "is larger than 8,388,608 bytes"),
        ("''.join(f'### mem-{i}-a1b2\\n> fact {i}\\n' for i in range(500))", 50, "450 new memories are left out"),
    ],
)  # fmt: skip  # one table
def test_no_memory_costs_the_work_of_whoever_had_it(here: World, text: str, kept: int, said: str) -> None:
    ready(here)
    done = here.ralph("work", "--once", "--json", *here.agent(LONG % text))
    assert done.code == 0 and done.json["outcome"] == "done", (done.out, done.err)
    assert labels(here, 1) == set() and said in done.err
    body = here.ralph("pr", "show", "2").out
    assert ("short" in body if kept == 1 else "xxxx" not in body) and body.count("fact ") <= kept
