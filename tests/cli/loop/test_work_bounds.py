"""What no session of `ralph work` can do to the next one, and what is nobody's fault: real loop, local forge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.loop.test_work import COMPLETE, READY, labels, ready, work
from tests.cli.loop_world import World, world

pytestmark = pytest.mark.long  # takes ten seconds or more
SETTINGS = "hands: {fixers: []}\n"
RESTARTS = """
if call == 1:
    touched = here / "checked"
    pathlib.Path("ralph.yml").write_text(f"hands: {{verify: ['touch {touched}']}}\\n")
    (run_dir / "signal").write_text("restart\\n")
    print("not yet")
else:
    change(); commit()
    print("LOOP_COMPLETE")
"""
STEERS = """
paths = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".github/workflows/x.yml")
if call == 1:
    for path in paths:
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_text("{\\"hooks\\": 1}")
    change(); commit()
    print("not yet")
else:
    found = [path for path in paths if pathlib.Path(path).exists()]
    (here / "found").write_text(" ".join(found) + pathlib.Path(".claude/settings.json").read_text())
    print("LOOP_COMPLETE")
"""
REFUSED = "print('API Error: 401 Unauthorized', file=sys.stderr)\nsys.exit(1)\n"


@pytest.fixture
def shop(tmp_path: Path) -> World:
    return world(tmp_path, {"ralph.yml": SETTINGS})


def test_no_session_restarts_the_loop_by_settings_of_its_own(tmp_path):
    shop = world(tmp_path, {".gitignore": "ralph.yml\n"})
    ready(shop)
    done = work(shop, RESTARTS, "--max-iterations", "3")
    assert (done.json["outcome"], len(shop.calls)) == ("done", 2), done.err
    assert not (shop.aside / "checked").exists()
    assert done.err.count("isolation:") == 2, "the one before the claim, and the one of the loop"


def test_what_configures_agents_is_put_back_after_each_session_ignored_or_not(tmp_path):
    files = {"ralph.yml": SETTINGS, ".gitignore": "*.local.json\n", ".claude/settings.json": "{}"}
    shop = world(tmp_path, files)
    ready(shop)
    done = work(shop, STEERS, "--max-iterations", "3")
    assert (shop.aside / "found").read_text() == ".claude/settings.json{}"
    assert (done.code, done.json["outcome"]) == (0, "done"), done.err
    for path in (".claude/settings.json", ".mcp.json", ".github/workflows/x.yml"):
        assert f"undone: {path}" in done.err
    assert "settings.local.json" not in done.err, "ignored: gone before the next session, unsaid"
    diff = shop.ralph("pr", "diff", str(done.json["pull_request"])).out
    assert "file-1.txt" in diff and "hooks" not in diff


def test_a_session_has_no_more_time_than_its_try(shop):
    ready(shop)
    work(shop, COMPLETE, "--max-runtime", "90s")
    assert "You have 8" in shop.prompt(1) and " seconds and " in shop.prompt(1)


def test_an_agent_that_is_not_there_claims_nothing(shop):
    ready(shop)
    done = shop.ralph("work", "--once", "--json", "--agent", "codex", "--command", "/nope/codex")
    assert (done.code, done.json["outcome"], done.json["reason"]) == (1, "held", "codex is not installed here")
    assert labels(shop, 1) == {READY}
    assert "At work" not in shop.ralph("issue", "show", "1").out


def test_a_key_that_is_refused_costs_no_try(shop):
    ready(shop)
    for _ in range(2):
        done = work(shop, REFUSED)
        assert (done.code, done.json["outcome"], done.json["try"]) == (1, "waiting", 1), done.err
        assert "401" in done.json["reason"]
    assert labels(shop, 1) == {READY}
    assert "does not count" in shop.ralph("issue", "show", "1").out
    done = work(shop, COMPLETE)
    assert (done.json["outcome"], done.json["try"]) == ("done", 1)
    assert shop.ralph("memory", "verify").code == 0


def test_words_for_the_next_session_are_kept_while_no_session_begins(shop):
    ready(shop)
    assert shop.ralph("guidance", "use the word TIDAL").code == 0
    work(shop, REFUSED)
    work(shop, "change()\nprint('going on')\n", "--max-iterations", "1")
    work(shop, COMPLETE)
    assert ["TIDAL" in shop.prompt(call) for call in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("amount", ["nan", "inf", "1e999"])
@pytest.mark.parametrize("command", [("run", "build it"), ("work", "--once"), ("review", "--pr", "1")])
def test_what_is_no_amount_of_money_is_no_limit(shop, command, amount):
    done = shop.ralph(*command, "--command", "true", "--max-cost", amount)
    assert done.code == 64 and "is not an amount of money" in done.err
