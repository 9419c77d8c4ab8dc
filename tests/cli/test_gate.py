"""The fast path of `ralph due`: it answers the plain question and leaves the rest to the real parser."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.remote import RepositoryPlace
from ralph_mission.adapters.http.files import read_files
from ralph_mission.adapters.storage.memory.due import PAUSED
from ralph_mission.cli import gate
from ralph_mission.cli.gate import DueQuestion, ask_with_patience, parse_question
from ralph_mission.errors import UserError
from tests.action.runner import ROOT, bare_environment
from tests.adapters.storage.memory.making import batch, branch_store, on_server, server_store
from tests.helpers import NOON, cli_here, git, make_repo


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], DueQuestion()),
        (["--json"], DueQuestion(json=True)),
        (["--repo", "x", "--now=2026-01-01", "--config", "c.yml"], DueQuestion("x", "c.yml", "2026-01-01")),
        (["--wait=60"], DueQuestion(wait=60)),
        (["--repo", "--json"], DueQuestion("--json", json=False)),
    ],
)
def test_plain_questions_are_understood(arguments: list[str], asked: DueQuestion) -> None:
    assert parse_question(arguments) == asked


ODD = [["--help"], ["-h"], ["--rep", "x"], ["--repo"], ["here"], ["--json=1"], ["--"], ["--wait", "61"], ["--wait=x"]]


@pytest.mark.parametrize("arguments", ODD)
def test_anything_else_is_for_the_real_parser(arguments: list[str]) -> None:
    assert parse_question(arguments) is None


def test_help_and_mistakes_are_answered_like_those_of_any_command() -> None:
    assert "Usage: ralph due" in cli_here("due", "--help").out
    told = cli_here("due", "--jsn")
    assert told.code == 2
    assert told.err.endswith("See ralph due --help\n")


def test_a_folder_that_is_no_repository_is_wrong_usage(tmp_path: Path) -> None:
    told = cli_here("due", "--json", repo=tmp_path)
    assert told.code == 2
    assert told.json["error"]["who"] == "you"


def test_a_repository_without_memory_is_due(tmp_path: Path) -> None:
    told = cli_here("due", "--json", repo=make_repo(tmp_path))
    assert told.code == 0
    assert told.json["due"] is True
    assert set(told.json) == {"due", "next_due_at", "reason", "spoken"}


class TestWaiting:
    """A wake that comes a few seconds early."""

    def asked(self, repo: Path, seconds: float, paused: bool = False, **options: object) -> tuple[bool, list[float]]:
        """Whether a cycle was due in the end, and the naps until then; the clock of memory moves, ours does not."""
        store, naps = branch_store(repo), []

        def due_at(when: datetime) -> None:
            past = store.recall()
            made = batch(past)
            header = replace(made.memory.header, next_due_at=when, paused=paused)
            store.commit(replace(made, memory=replace(made.memory, header=header)), past)

        def nap(length: float) -> None:
            naps.append(length)
            due_at(datetime.now(UTC) - timedelta(minutes=1))

        due_at(datetime.now(UTC) + timedelta(seconds=seconds))
        return ask_with_patience(DueQuestion(str(repo), **options), nap)[0], naps

    def test_it_waits_for_the_due_second_and_asks_again(self, tmp_path: Path) -> None:
        due, naps = self.asked(make_repo(tmp_path), 50, wait=60)
        assert due
        assert len(naps) == 1 and 0 < naps[0] <= 50

    @pytest.mark.parametrize(("seconds", "options"), [(300, {"wait": 60}), (50, {}), (-50, {"wait": 60})])
    def test_it_waits_for_nothing_else(self, tmp_path: Path, seconds: float, options: dict[str, int]) -> None:
        due, naps = self.asked(make_repo(tmp_path), seconds, **options)
        assert (due, naps) == (seconds < 0, [])

    def test_it_neither_waits_nor_asks_again_while_memory_is_paused(self, tmp_path: Path) -> None:
        due, naps = self.asked(make_repo(tmp_path), 50, paused=True, wait=60)
        assert (due, naps) == (False, [])

    def test_a_moment_that_was_named_does_not_pass(self, tmp_path: Path) -> None:
        due, naps = self.asked(make_repo(tmp_path), 50, wait=60, now=datetime.now(UTC).isoformat())
        assert (due, naps) == (False, [])


class TestInAWorkflow:
    """Nothing is checked out: what counts are the settings of the server's default branch."""

    SETTINGS = "memory: {branch: elsewhere}\n"

    def ask(self, tmp_path: Path, files: dict[str, str], due_at: datetime, *options: str) -> int:
        repo = make_repo(tmp_path / "repo", files)
        with on_server(repo, tmp_path / "server.git") as fake:
            token = fake.token()
            git(repo, "clone", "--quiet", ".", str(tmp_path / "runner"))
            made = batch()
            header = replace(made.memory.header, next_due_at=due_at)
            store = server_store(tmp_path / "runner", fake, token, branch="elsewhere")
            store.commit(replace(made, memory=replace(made.memory, header=header)), None)
            env = {
                "GITHUB_ACTIONS": "true",
                "GITHUB_TOKEN": token,
                "GITHUB_REPOSITORY": fake.repository,
                "GITHUB_API_URL": fake.api_url,
                "GITHUB_SERVER_URL": fake.url,
                "RUNNER_TOOL_CACHE": str(tmp_path / "tools"),
            }
            (tmp_path / "workspace").mkdir()
            arguments = ("due", "--now", NOON.isoformat(), *options)
            first, again = (cli_here(*arguments, repo=tmp_path / "workspace", env=env).code for _ in range(2))
            assert first == again
            return again

    def test_a_memory_branch_of_another_name_is_asked(self, tmp_path: Path) -> None:
        assert self.ask(tmp_path, {"ralph.yml": self.SETTINGS}, NOON + timedelta(hours=1)) == 10

    def test_the_settings_that_the_action_was_given_are_honoured(self, tmp_path: Path) -> None:
        files = {"conf/r.yml": self.SETTINGS}
        assert self.ask(tmp_path, files, NOON + timedelta(hours=1), "--config=./conf/r.yml") == 10

    def test_settings_that_cannot_be_read_are_for_the_cycle_to_tell(self, tmp_path: Path) -> None:
        assert self.ask(tmp_path, {"ralph.yml": "memory: {brunch: x}\n"}, NOON) == 0

    @pytest.mark.parametrize("elsewhere", ["..", "../r.yml", "/r.yml"])
    def test_settings_outside_the_repository_are_for_the_cycle_to_tell(self, tmp_path: Path, elsewhere: str) -> None:
        assert self.ask(tmp_path, {"r.yml": self.SETTINGS}, NOON, f"--config={elsewhere}") == 0


def test_a_gate_that_nothing_is_installed_for_answers_by_three_requests(tmp_path: Path) -> None:
    """As the action asks it: Python alone, without `site`, from a folder that is no installation."""
    repo = make_repo(tmp_path / "repo", {"ralph.yml": "schedule: {low: 1d, wake: timer} # rarely\nverify: ['make']\n"})
    with on_server(repo, tmp_path / "server.git") as fake:
        token = fake.token()
        git(repo, "clone", "--quiet", ".", str(tmp_path / "runner"))
        made = batch()
        header = replace(made.memory.header, next_due_at=NOON + timedelta(hours=20), last_cycle_at=NOON)
        store = server_store(tmp_path / "runner", fake, token)
        store.commit(replace(made, memory=replace(made.memory, header=header)), None)
        env = bare_environment(
            tmp_path, GITHUB_ACTIONS="true", GITHUB_TOKEN=token, GITHUB_REPOSITORY=fake.repository,
            GITHUB_API_URL=fake.api_url, GITHUB_SERVER_URL=fake.url,
            GITHUB_WORKFLOW_REF=f"{fake.repository}/.github/workflows/ralph-loop.yml@refs/heads/main",
        )  # fmt: skip  # variables
        fake.workflow(".github/workflows/ralph-loop.yml")
        seen = len(fake.journal)
        script = str(ROOT / "scripts" / "action" / "ralph.py")
        command = [sys.executable, "-I", "-S", "-B", script, "due", "--now", NOON.isoformat(), "--json"]
        told = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        asked = fake.journal[seen:]
    assert (told.returncode, told.stderr) == (10, "")
    assert json.loads(told.stdout)["next_due_at"] == "2026-05-05T08:00:00Z"
    assert [(each.transport, each.method) for each in asked] == [("graphql", "POST"), *2 * [("rest", "GET")]]


def test_a_gate_that_nothing_is_installed_for_says_on_the_page_who_must_act(tmp_path: Path) -> None:
    env = bare_environment(
        tmp_path, GITHUB_ACTIONS="true", GITHUB_TOKEN="t", GITHUB_REPOSITORY="@mara/closes-1",
        GITHUB_STEP_SUMMARY=str(tmp_path / "page"),
    )  # fmt: skip  # variables
    script = str(ROOT / "scripts" / "action" / "ralph.py")
    command = [sys.executable, "-I", "-S", "-B", script, "due", "--json"]
    told = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (told.returncode, "Traceback" in told.stderr) == (2, False)
    page = (tmp_path / "page").read_text()
    assert "GITHUB_REPOSITORY is 'mara/closes-1'" in page, "nobody is called"
    assert "**You** must act. Next: set it to owner/name" in page


@pytest.mark.parametrize(
    ("event", "conclusion", "minutes", "lost"),
    [
        ("pull_request_review", "cancelled", 5, True),
        ("issue_comment", "failure", 5, True),
        ("issues", "skipped", 5, False),
        ("schedule", "cancelled", 5, False),
        ("issues", "cancelled", -5, False),
    ],
)
def test_a_persons_wake_whose_place_another_took_or_that_failed_is_made_up_for(
    tmp_path: Path, event: str, conclusion: str, minutes: int, lost: bool
) -> None:
    repo, loop = make_repo(tmp_path / "repo"), ".github/workflows/ralph-loop.yml"
    with on_server(repo, tmp_path / "server.git") as fake:
        made, token, last = batch(), fake.token(), fake.clock.present()
        header = replace(made.memory.header, next_due_at=last + timedelta(hours=5), last_cycle_at=last)
        git(repo, "clone", "--quiet", ".", str(tmp_path / "runner"))
        server_store(tmp_path / "runner", fake, token).commit(
            replace(made, memory=replace(made.memory, header=header)), None
        )
        fake.workflow_run(7, "completed", conclusion, event, last + timedelta(minutes=minutes), path=loop)
        env = {
            "GITHUB_ACTIONS": "true", "GITHUB_TOKEN": token, "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.api_url, "GITHUB_SERVER_URL": fake.url,
            "GITHUB_WORKFLOW_REF": f"{fake.repository}/{loop}@refs/heads/main",
        }  # fmt: skip  # variables
        now = (last + timedelta(minutes=30)).isoformat()
        told = cli_here("due", "--now", now, "--json", repo=tmp_path, env=env)
    assert (told.code, told.json["spoken"]) == ((0, True) if lost else (10, False))


@pytest.mark.parametrize(("actor", "due"), [("mara", 0), ("ralph", 10)])
def test_what_the_tokens_own_account_does_wakes_nothing(tmp_path: Path, actor: str, due: int) -> None:
    with on_server(make_repo(tmp_path / "repo"), tmp_path / "server.git") as fake:
        env = {
            "GITHUB_ACTIONS": "true", "GITHUB_TOKEN": fake.token("ralph"), "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.api_url, "GITHUB_SERVER_URL": fake.url, "GITHUB_EVENT_NAME": "issues",
            "GITHUB_ACTOR_ID": str(fake.world.account(actor).id),
        }  # fmt: skip  # variables
        assert cli_here("due", repo=tmp_path, env=env).code == due


@pytest.mark.parametrize(("paused", "due"), [(True, 10), (False, 0)])
def test_while_memory_is_paused_nobodys_word_starts_a_cycle(tmp_path: Path, paused: bool, due: int) -> None:
    repo = make_repo(tmp_path / "repo")
    with on_server(repo, tmp_path / "server.git") as fake:
        made, token = batch(), fake.token()
        git(repo, "clone", "--quiet", ".", str(tmp_path / "runner"))
        header = replace(made.memory.header, paused=paused, next_due_at=fake.clock.present() + timedelta(hours=5))
        memory = replace(made.memory, header=header)
        server_store(tmp_path / "runner", fake, token).commit(replace(made, memory=memory), None)
        env = {
            "GITHUB_ACTIONS": "true", "GITHUB_TOKEN": token, "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.api_url, "GITHUB_SERVER_URL": fake.url, "GITHUB_EVENT_NAME": "issues",
            "GITHUB_ACTOR_ID": str(fake.world.account("mara").id),
        }  # fmt: skip  # variables
        told = cli_here("due", "--json", repo=tmp_path, env=env)
    assert (told.code, told.json["reason"]) == (due, PAUSED if paused else "due: a person spoke")


def test_while_the_kill_switch_is_set_a_workflow_asks_nobody(tmp_path: Path) -> None:
    told = cli_here("due", "--json", repo=tmp_path, env={"GITHUB_ACTIONS": "true", "RALPH_PAUSED": "1"})
    assert (told.code, told.json["reason"]) == (10, "not due: RALPH_PAUSED is set")


PLAIN = (
    "memory: {branch: a/b, path: m.md}",
    "memory:\n  path: m.md\n  branch: a/b\nverify: []",
    "memory: { branch: a/b, path: m.md } # c",
    'memory: {branch: "a/b", path: m.md}',
    "memory:\r\n  path: m.md # where\r\n\r\n  # ours\r\n    \r\n  branch: 'a/b' # which\r\nverify: []",
)
CLEVER = (
    "{memory: {branch: a/b, path: m.md}}",
    "'memory': {branch: a/b, path: m.md}",
)


@pytest.mark.parametrize("text", [*PLAIN, *CLEVER])
def test_settings_of_memory_are_read_in_every_spelling(text: str) -> None:
    said = gate.read_memory_settings(text)
    assert said and (said.branch, said.path, said.longest) == ("a/b", "m.md", timedelta(hours=6))


@pytest.mark.parametrize("text", [*PLAIN, *CLEVER])
def test_only_plain_settings_are_read_without_a_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ralph_mission.config.reading", None)
    assert bool(gate.read_memory_settings(text)) is (text in PLAIN)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("schedule:\n  high: 15m # c\n\n  low: 9h\n", 9),
        ("schedule: {low: 1d}", 24),
        ("schedule:\n  high: 2w\n", 336),
        ("x: 1", 6),
        ("# schedule: {low: 1d}", 6),
    ],
)
def test_the_longest_pause_is_read_from_the_text(text: str, hours: int) -> None:
    said = gate.read_memory_settings(text)
    assert said and said.longest == timedelta(hours=hours)


def test_a_pause_without_end_is_for_the_cycle_to_tell() -> None:
    assert gate.read_memory_settings("schedule: {low: 999999999w}") == gate.USUAL


@pytest.mark.parametrize("kind", ["rate_primary", "rate_secondary", "rate_secondary_429"])
def test_a_rate_limit_is_no_missing_permission(tmp_path: Path, kind: str) -> None:
    with on_server(make_repo(tmp_path / "repo"), tmp_path / "server.git") as fake:
        fake.fail(kind, ("POST", "/graphql"))
        place = RepositoryPlace(fake.repository, fake.api_url, fake.url, fake.token())
        with pytest.raises(UserError, match="rate limit") as told:
            read_files(place, "HEAD:ralph.yml")
    assert "permission" not in told.value.next_step and "contents" not in told.value.next_step


# --- A clone of a repository whose memory is on GitHub does not begin another one, and says where it is. ---


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_laptops_clone_says_that_memory_is_on_the_server(tmp_path: Path, command: str) -> None:
    repo = make_repo(tmp_path / "laptop")
    git(repo, "update-ref", "refs/remotes/origin/ralph-memory", "HEAD")
    told = cli_here(command, repo=repo)
    assert told.code == 2
    assert "kind: github" in told.err


def test_in_a_workflow_the_workspace_does_not_say_where_memory_is(tmp_path: Path) -> None:
    """What stands there may be the head of anyone's pull."""
    from ralph_mission.cli.gate import memory_place

    repo = make_repo(tmp_path / "workspace", {"ralph.yml": "memory: {branch: decoy}\n"})
    assert memory_place(DueQuestion(str(repo))) == {"branch": "decoy", "path": "memory/ralph-log.md"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GITHUB_ACTIONS", "true")
        assert memory_place(DueQuestion(str(repo))) == {}


def test_a_file_that_extends_another_may_wait_as_long_as_that_one_says() -> None:
    said = gate.read_memory_settings(f"extends: harbour/.github//ralph.yml@{'0' * 40}\nmemory: {{branch: notes}}\n")
    assert said is not None
    assert (said.branch, said.longest) == ("notes", gate.LONGEST_PAUSE)
