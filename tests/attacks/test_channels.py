"""The runner's own channels: what was observed is no command on them, and what we start has none of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.safety.detect import workflow_commands
from ralph_mission.safety.text import sanitise
from tests.helpers import cli_here
from tests.integration.world import world

ORDERS = (
    "::set-output name=a::b", "::add-mask::x", "::stop-commands::pause", "::error file=a.py,line=1::x", "::debug::x",
    "::SET-OUTPUT name=a::b", "::save-state name=a::b", "::add-path::/tmp", "::set-env name=PATH::/tmp",
    "##[error]x", "##[group]x", "##[command]x", "a ##[add-mask]x",
    "\x1b[31mred", "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\x1b]0;title\x07", "\x9b2J", "\x1bc", "\x07",
    "\x08\x08",
    "\u202egnp.exe", "\u2066x\u2069", "\r::debug::x", "\x0b::debug::x", "\x0c::debug::x", "\u2028::debug::x",
    "\x85::debug::x",
    "%0A::debug::x", "a%0D%0A::debug::x", "${{ secrets.TOKEN }}", "$(id)", "`id`",
)  # fmt: skip  # one list
LIVE = re.compile(
    r"^[^\S\n]*::[a-z][\w-]*[ :]|##\[[a-z]|\x1b|\x9b|[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", re.I | re.M
)
PARSED = "{regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}"
CONFIG = f"""\
observers:
  code: {{markers: {{}}}}
  commands:
    - {{name: check, run: cat said.txt, kind: bug, parse: {PARSED}}}
    - {{name: broken, run: 'cat said.txt said.txt >&2; exit 9', kind: bug, parse: sarif}}
hands: {{fixers: []}}
"""


@pytest.mark.attack(9, 37, 38)
@pytest.mark.parametrize("order", ORDERS, ids=ascii)
def test_no_order_is_left_in_a_line_of_a_log(order: str) -> None:
    for text in (order, f"words\n{order}", f"words {order}\n{order}"):
        calm = sanitise(text, "log")
        assert LIVE.search(calm) is None
        assert workflow_commands(calm) == ()


@pytest.mark.attack(9, 37, 38)
@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.long, id="lines"), ("--json",)])
def test_what_checks_print_is_no_command_on_what_a_cycle_prints(tmp_path: Path, options: tuple[str, ...]) -> None:
    said = "".join(f"src/a{number}.py:1: {order}\n{order}\n" for number, order in enumerate(ORDERS))
    hub = world(tmp_path / "harbour", {"said.txt": said, "src/a0.py": "x = 1\n"}, CONFIG)
    told = cli_here("cycle", "--force", *options, repo=hub.repo)
    assert told.code == 0, told.err
    assert "src/a" in hub.memory(), "it was told of"
    assert LIVE.search(told.out.replace("\\u001b", "\x1b")) is None
    assert LIVE.search(told.err) is None
    assert LIVE.search(hub.memory()) is None


CHANNELS = (
    "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_TOKEN", "GH_TOKEN",
    "GITHUB_EVENT_PATH", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL", "ACTIONS_CACHE_URL", "ACTIONS_RESULTS_URL", "RUNNER_TEMP", "RUNNER_TOOL_CACHE",
    "SSH_AUTH_SOCK",
    "GIT_CONFIG_COUNT", "GIT_ASKPASS", "GIT_SSH_COMMAND", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "ENV",
    "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DATABASE_URL", "TELEGRAM_BOT_TOKEN", "DISCORD_WEBHOOK_URL",
    "TWITTER_API_KEY", "AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DOCKER_CONFIG", "KUBECONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
)  # fmt: skip  # one list


@pytest.mark.attack(39, 42, 43)
def test_what_we_start_has_none_of_the_runners_channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHANNELS:
        monkeypatch.setenv(name, f"zq9x-canary-{name}")
    done = run_foreign(["env"], cwd=tmp_path, home=tmp_path / "home", timeout=300)
    assert done.code == 0
    assert b"zq9x-canary" not in done.stdout


EXPRESSIONS = ("${{ secrets.A }}", "$${{ a }}", "`${{ a }}`", "${\u200b{ a }}", "&#36;{{ a }}", "```\n${{ a }}\n```")
HTML = ("<b>x", "<img src=x onerror=y>", "<script>x</script>", "<details open>", "<!-- x", "</table>", "<a href='x'>")


@pytest.mark.attack(40)
@pytest.mark.parametrize("text", [*EXPRESSIONS, *HTML], ids=ascii)
def test_the_page_of_a_job_shows_expressions_and_html_as_letters(text: str) -> None:
    calm = sanitise(f"before {text} after", "summary")
    assert "${{" not in calm
    assert not re.search(r"<[A-Za-z/!]", calm)
