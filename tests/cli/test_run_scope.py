"""What a session did that it was not allowed to, as a process: it is gone afterwards, and the report says so."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.loop_world import world
from tests.helpers import git

SETTINGS = """
hats:
  builder: {triggers: [loop.start], publishes: [LOOP_COMPLETE], write_allowed: ['src/**']}
"""
FILES = {"ralph.yml": SETTINGS, "README.md": "# Shop\n", "kept.txt": "kept\n", "moved.txt": "one\ntwo\nthree\n",
         "linked.txt": "a file\n", "src/a.py": "x = 1\n"}  # fmt: skip  # one table
DONE = """print('<event topic="LOOP_COMPLETE">done</event>')"""
WAYS = f"""
path = pathlib.Path
path("src/a.py").write_text("x = 2\\n")
path("committed.txt").write_text("x")
subprocess.run(["git", "mv", "moved.txt", "renamed.txt"], check=True)
commit("Sneaked in")
path("README.md").write_text("# Mine\\n")
path("untracked.txt").write_text("x")
path("kept.txt").unlink()
path("linked.txt").unlink()
path("linked.txt").symlink_to("/etc/hostname")
path(".git/hooks/post-commit").parent.mkdir(exist_ok=True)
path(".git/hooks/post-commit").write_text("#!/bin/sh\\ntouch hooked\\n")
path(".git/hooks/post-commit").chmod(0o755)
subprocess.run(["git", "config", "core.pager", "touch paged"], check=True)
{DONE}
"""


def test_eight_ways_to_leave_the_globs_are_gone_afterwards_and_in_the_report(tmp_path: Path) -> None:
    shop = world(tmp_path, FILES)
    done = shop.run("build it", *shop.agent(WAYS))
    assert (done.code, done.json["sessions"]) == (0, 1), done.err
    told = {undone["path"]: undone["why"] for undone in done.json["reverted"]}
    files = {"committed.txt", "README.md", "untracked.txt", "kept.txt", "moved.txt", "renamed.txt", "linked.txt"}
    assert set(told) == files
    assert {told[path] for path in files} == {"builder may write src/** only"}
    assert {path: (shop.repo / path).read_text() for path in FILES} == {**FILES, "src/a.py": "x = 2\n"}
    assert not (shop.repo / "linked.txt").is_symlink()
    assert sorted(os.listdir(shop.repo)) == sorted([".git", ".ralph", *{path.split("/")[0] for path in FILES}])
    assert git(shop.repo, "diff", "--name-only", "main~1", "main") == "src/a.py"
    assert git(shop.repo, "status", "--porcelain") == ""
    assert not (shop.repo / ".git/hooks/post-commit").exists()
    assert "paged" not in (shop.repo / ".git/config").read_text()


COMMANDS = {
    "git push -f": "`git push -f`",
    "sh -c 'git push --force-with-lease'": "`git push --force-with-lease`",
    "env git push origin +main": "`git push origin +main`",
    'bash -lc "git push --force"': "`git push --force`",
    "rm -r -f /": "`rm -r -f /`",
}
"""What an agent runs, and what the report calls it."""


def test_commands_that_are_denied_are_refused_in_any_spelling_and_in_the_report(tmp_path: Path) -> None:
    shop = world(tmp_path)
    git(shop.repo, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    harmless = tmp_path / "bin/rm"  # the one that is found where nothing stands before it
    harmless.parent.mkdir()
    harmless.write_text("#!/bin/sh\nexit 0\n")
    harmless.chmod(0o755)
    agent = shop.agent(
        f"codes = [subprocess.run(command, shell=True).returncode for command in {list(COMMANDS)!r}]\n"
        "(here / 'codes').write_text(json.dumps(codes))\nprint('LOOP_COMPLETE')"
    )
    done = shop.run("build it", *agent, env={"PATH": f"{harmless.parent}{os.pathsep}{os.environ['PATH']}"})
    assert done.code == 0, done.err
    refused = [(row["session"], row["why"].partition(" is denied by ")[0]) for row in done.json["refused"]]
    assert refused == [(1, why) for why in COMMANDS.values()]
    assert 0 not in json.loads((shop.aside / "codes").read_text())
