"""`ralph run` with agents that it knows how to speak to. They are stubs here; the real ones are in tests/real."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.helpers import cli_here, commit

CODEX = r"""#!/bin/sh
echo "$@" > "$STUBS/codex-argv"
cat > "$STUBS/codex-prompt"
env > "$STUBS/codex-env"
printf '%s\n' '{"type":"item.completed","item":{"type":"agent_message","text":"All done."}}'
printf '%s\n' '{"type":"turn.completed","usage":{"input_tokens":1000000,"output_tokens":0}}'
"""
PRICED = "cost: {prices: {gpt-5.4: {input: 2, output: 10}}}\n"


def stub(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text.replace("$STUBS", str(folder)))
    (folder / name).chmod(0o755)


@pytest.fixture
def here(tmp_path: Path) -> World:
    return world(tmp_path)


def run(here: World, *options: str):
    stubs = here.aside / "stubs"
    path = f"{stubs}:{os.environ['PATH']}"
    return cli_here("run", "build it", "--max-iterations", "1", *options, "--json", repo=here.repo, env={"PATH": path})


def settings(here: World, text: str) -> None:
    (here.repo / "ralph.yml").write_text(text)


def record(here: World):
    (place,) = here.repo.glob(".ralph/loop/runs/*/session-0001.json")
    return json.loads(place.read_text())


def test_an_agent_is_found_by_its_name_and_its_tokens_are_priced(here: World) -> None:
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: codex, model: gpt-5.4}}\n" + PRICED)
    done = run(here)
    assert json.loads(done.out)["usage"]["cost_usd"] == 2.0, done.err
    assert "-m gpt-5.4" in (here.aside / "stubs/codex-argv").read_text()
    assert "build it" in (here.aside / "stubs/codex-prompt").read_text()
    assert record(here)["agent"] == "codex"


def test_an_agent_sees_its_own_key_and_no_other(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "of-nobody")
    stub(here.aside / "stubs", "codex", CODEX)
    run(here, "--agent", "codex")
    lines = (here.aside / "stubs/codex-env").read_text().splitlines()
    assert [line for line in lines if line.endswith("=of-nobody")] == ["OPENAI_API_KEY=of-nobody"]


def test_the_command_line_names_another_program_for_it(here: World) -> None:
    stub(here.aside / "stubs", "my-codex", CODEX)
    run(here, "--agent", "codex", "--command", f"{here.aside}/stubs/my-codex --extra")
    assert (here.aside / "stubs/codex-argv").read_text().startswith("--extra exec --json")


def test_the_next_agent_takes_over_and_the_record_says_who_played(here: World) -> None:
    stub(here.aside / "stubs", "gemini", "#!/bin/sh\nexec no-such-program\n")
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: gemini, fallback: [codex]}}\n")
    run(here)
    assert (record(here)["agent"], record(here)["failure"]) == ("codex", "")


def test_whoever_takes_over_is_not_paid_by_the_favourites_price(here: World) -> None:
    stub(here.aside / "stubs", "gemini", "#!/bin/sh\nexec no-such-program\n")
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: gemini, model: gpt-5.4, fallback: [codex]}}\n" + PRICED)
    usage = json.loads(run(here).out)["usage"]
    assert (usage["input_tokens"], usage["cost_usd"], usage["unpriced_sessions"]) == (1_000_000, 0.0, 1)


def test_a_command_that_makes_no_words_is_wrong_usage(here: World) -> None:
    done = run(here, "--agent", "codex", "--command", "codex 'x")
    assert done.code == 64 and "quotation" in done.out


def test_an_agent_that_nobody_knows_is_told_with_those_that_are_known(here: World) -> None:
    done = run(here, "--agent", "cursor")
    assert done.code == 64 and "cursor" in done.out and "claude, codex, gemini" in done.out
    settings(here, "hands: {agent: {kind: codex, fallback: [cursor]}}\n")
    assert "hands.agent.fallback: cursor" in run(here).out


def test_where_the_repository_would_be_obeyed_nobody_plays_before_somebody_trusts_it(here: World) -> None:
    stub(here.aside / "stubs", "gemini", '#!/bin/sh\ntouch $STUBS/played\necho \'{"response": "x", "stats": {}}\'\n')
    commit(here.repo, {".gemini/settings.json": "{}"})
    run(here, "--agent", "gemini")
    assert ".gemini" in record(here)["reason"] and not (here.aside / "stubs/played").exists()
