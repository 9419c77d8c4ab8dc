"""`ralph init` on a clone of a GitHub repository: the workflow, and the commit of the action that it runs."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.adapters.wakers import instance
from ralph_mission.cli.mission import fleet
from ralph_mission.cli.setup import files as workflow_init_agents
from ralph_mission.cli.setup.files import is_public
from ralph_mission.config.reading import read
from ralph_mission.mission.model.forge import OWN
from tests.cli.init_place import LOOP, PINNED, SHA, TOOLS, hosted, states, workflow
from tests.helpers import Result, cli_here, git, make_repo

pytestmark = pytest.mark.usefixtures("known_commit")


@pytest.mark.parametrize(
    "url", ["https://github.com/mara/harbour", "git@github.com:mara/harbour.git", "ssh://git@github.com/mara/harbour"]
)
def test_a_repository_on_github_gets_a_workflow(tmp_path: Path, url: str) -> None:
    told = cli_here("init", "--json", repo=hosted(tmp_path, url))
    assert states(told) == {"ralph.yml": "new", "ralph-loop.yml": "new"}


@pytest.mark.parametrize("url", ["https://gitlab.example/mara/harbour", "https://github.com.evil.example/a/b", "../x"])
def test_a_repository_elsewhere_gets_none_unasked(tmp_path: Path, url: str) -> None:
    repo = hosted(tmp_path, url)
    assert states(cli_here("init", "--json", repo=repo)) == {"ralph.yml": "new"}
    assert states(cli_here("init", "--json", "--wake", "heartbeat", repo=repo))["ralph-loop.yml"] == "new"


def test_asking_for_the_workflow_leaves_a_persons_settings_alone(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    assert cli_here("init", repo=repo).code == 2
    told = cli_here("init", "--wake", "auto", "--json", repo=repo)
    assert states(told) == {"ralph.yml": "kept", "ralph-loop.yml": "new"}
    assert told.json["wrote"] is None
    assert (repo / "ralph.yml").read_text() == "owners: [mara]\n"


def test_the_workflow_passes_githubs_schema_and_an_audit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--runner", "self-hosted, linux", repo=repo)
    schema = [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", repo / LOOP]
    assert subprocess.run(schema, capture_output=True, check=False).returncode == 0
    audit = [TOOLS / "zizmor", "--offline", "--no-config", "--no-progress", "--format", "json", repo / LOOP]
    findings = json.loads(subprocess.run(audit, capture_output=True, text=True, check=False).stdout)
    assert findings == []


def test_a_workflow_that_git_ignores_is_told(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / ".gitignore").write_text(".*\n")
    assert f"to do: git ignores {LOOP}: git add -f {LOOP}\n" in cli_here("init", repo=repo).out


def test_the_workflow_is_woken_by_cron_by_hand_and_by_our_own_dispatch(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    told = cli_here("init", "--runner", "self-hosted,gpu", repo=repo)
    assert "to do: Settings, Actions, Runners: register a runner of your own" in told.out
    text = workflow(repo)
    assert {line["cron"].split()[0] for line in text["on"]["schedule"]} == {"7,22,37,52", "41"}
    assert text["on"]["repository_dispatch"] == {"types": ["ralph-loop-trigger"]}
    assert set(text["on"]["workflow_dispatch"]["inputs"]) == {"staged", "force"}
    assert text["permissions"] == {}
    (job,) = text["jobs"].values()
    assert job["runs-on"] == ["self-hosted", "gpu"]
    assert job["concurrency"] == {"group": "ralph-loop", "cancel-in-progress": "false"}
    assert job["steps"][0]["uses"] == PINNED


def test_every_input_and_output_that_it_names_is_one_of_the_action(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    text = (repo / LOOP).read_text().replace("# anthropic", "anthropic")
    action = yaml.safe_load((Path(__file__).parents[3] / "action.yml").read_text())
    jobs = yaml.load(text, yaml.BaseLoader)["jobs"].values()
    assert {name for job in jobs for step in job["steps"] for name in step["with"]} <= set(action["inputs"])
    assert set(re.findall(r"steps\.ralph\.outputs\.([a-z-]+)", text)) <= set(action["outputs"])


def test_a_way_of_waking_that_is_gone_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    told = cli_here("init", "--wake", "environment", repo=hosted(tmp_path))
    assert (told.code, "'auto', 'timer', 'heartbeat'" in told.err) == (2, True)


def test_fresh_settings_say_what_wakes(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    told = cli_here("init", "--wake", "heartbeat", "--json", repo=repo)
    assert read(Git.open(repo), read_shared).schedule.wake == "heartbeat"
    assert not any("schedule:" in step for step in told.json["steps"])


@pytest.mark.parametrize(
    ("public", "runner", "crons", "said"),
    [
        (True, "ubuntu-latest", {"37 * * * *"}, "about 960 minutes a month"),
        (False, "self-hosted", {"7,22,37,52 * * * *", "41 */6 * * *"}, ""),
        (None, "ubuntu-latest", {"37 * * * *"}, "ralph init --runner self-hosted --force"),
    ],
)
def test_where_nobody_knows_a_private_repository_githubs_runners_are_used_more_rarely_with_what_that_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: bool | None, runner: str, crons: set[str], said: str
) -> None:
    monkeypatch.setattr("ralph_mission.cli.setup.files.is_public", lambda *_: public)
    told = cli_here("init", "--action", PINNED, "--json", repo=hosted(tmp_path))
    text = workflow(tmp_path)
    assert (text["jobs"]["cycle"]["runs-on"], {line["cron"] for line in text["on"]["schedule"]}) == (runner, crons)
    assert [said in note for note in told.json["notes"]] == [True] * bool(said)


def test_a_runner_that_was_named_is_taken_and_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.cli.setup.files.is_public", lambda *_: pytest.fail("asked"))
    told = cli_here("init", "--action", PINNED, "--runner", "ubuntu-24.04", "--work", repo=hosted(tmp_path))
    assert "note: on GitHub's runners that is about 1080 minutes a month" in told.out
    assert 'cron: "27 */6 * * *"' in (tmp_path / ".github/workflows/ralph-work.yml").read_text()


@pytest.mark.parametrize(("status", "public"), [(200, True), (404, False), (403, None), (500, None)])
def test_whether_a_repository_is_public_is_seen_without_a_token(status: int, public: bool | None) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(
                status if self.path == "/repos/mara/harbour" and not self.headers["Authorization"] else 418
            )
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        api = f"http://127.0.0.1:{server.server_port}"
        assert is_public("mara/harbour", api) is public
    assert is_public("mara/harbour", api) is None, "nobody listens any more"


@pytest.mark.parametrize("text", ["self-hosted]\nx", "a b'", "", ",", "${{ x }}"])
def test_a_label_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    told = cli_here("init", f"--runner={text}", repo=make_repo(tmp_path))
    assert told.code == 2
    assert git(tmp_path, "status", "--porcelain") == ""


@pytest.mark.parametrize("text", ["mara", "mara/x", "mara/x@", "mara/x@v1 # y", "./@v1", "a/b@x\ny", "a/..@v1"])
def test_an_action_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    told = cli_here("init", f"--action={text}", repo=make_repo(tmp_path))
    assert told.code == 2
    assert "owner/name@commit" in told.err
    assert git(tmp_path, "status", "--porcelain") == ""


# --- `ralph init --work --review`: the workflows in which agents act, and what only a person can do for them. ---

ROOT = Path(__file__).resolve().parents[3]
PLACES = {mode: place for mode, place in workflow_init_agents.PLACES.items() if mode != "cycle"}


def init(repo: Path, *options: str) -> Result:
    told = cli_here("init", "--json", *options, repo=repo)
    assert told.code == 0, told.err
    return told


def flow(repo: Path, mode: str) -> dict[str, Any]:
    return yaml.load((repo / PLACES[mode]).read_text(), yaml.BaseLoader)


def job(document: dict[str, Any]) -> dict[str, Any]:
    (only,) = document["jobs"].values()
    return only


def test_agents_act_only_where_somebody_asked_for_it(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    assert states(init(repo)) == {"ralph.yml": "new", "ralph-loop.yml": "new"}
    assert states(init(repo, "--work"))["ralph-work.yml"] == "new"
    assert not (repo / PLACES["review"]).exists()


def test_both_at_once_with_the_runner_and_the_commit_that_were_named(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo, "--work", "--review", "--publish", "--runner", "self-hosted, gpu")
    for mode in PLACES:
        act = job(flow(repo, mode))
        assert act["runs-on"] == ["self-hosted", "gpu"]
        assert act["steps"][0]["uses"] == PINNED
        assert act["steps"][0]["with"]["mode"] == mode


def test_another_action_renews_what_is_there_and_keeps_its_runner(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo, "--review", "--runner", "self-hosted, gpu")
    other = f"mara/ralph_mission@{SHA[::-1]}"
    assert cli_here("init", "--action", other, repo=repo).code == 2
    told = states(init(repo, "--action", other, "--force"))
    assert (told["ralph-review.yml"], "ralph-work.yml" in told) == ("replaced", False)
    assert job(flow(repo, "review"))["steps"][0]["uses"] == other
    assert job(flow(repo, "review"))["runs-on"] == ["self-hosted", "gpu"]


def test_a_persons_workflow_of_that_name_is_not_overwritten(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo)
    (repo / PLACES["work"]).write_text("name: mine\n")
    assert "ralph-work.yml is there already" in cli_here("init", "--work", repo=repo).err
    assert "ralph-work.yml" not in states(init(repo, "--wake", "heartbeat"))


def test_a_loop_of_a_persons_own_stays_beside_it(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    init(repo)
    (repo / LOOP).write_text("name: mine\n")
    told = init(repo, "--work")
    assert (states(told)["ralph-loop.yml"], states(told)["ralph-work.yml"]) == ("kept", "new")
    assert any("listen to ralph-loop-trigger" in step for step in told.json["steps"])


def test_what_only_a_person_can_do_is_said(tmp_path: Path) -> None:
    steps = init(hosted(tmp_path), "--work", "--review").json["steps"]
    committed = f"commit ralph.yml, {LOOP}, {PLACES['work']} and {PLACES['review']} to the default branch and push them"
    assert steps[0] == committed and steps[-1].startswith("Actions, ralph-loop, Run workflow with staged ticked")
    assert [step for step in steps if "hands: {agent:" in step] and [
        step for step in steps if "ANTHROPIC_API_KEY" in step
    ]


def test_settings_that_name_an_agent_are_enough(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / "ralph.yml").write_text("hands: {agent: {kind: codex}}\n")
    assert not [step for step in init(repo, "--work").json["steps"] if "hands:" in step]


def test_publishing_asks_for_no_agent_and_every_network_is_optional(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    steps = init(repo, "--publish").json["steps"]
    assert not [step for step in steps if "agent" in step]
    assert [step for step in steps if "networks" in step and "optional" in step]
    act = job(flow(repo, "publish"))
    assert act["if"].endswith("github.event.label.name == 'content:approved'")
    given = act["steps"][0]["with"]
    assert {name for name in given if given[name].startswith("${{ secrets.")} == {
        "twitter-api-key", "twitter-api-secret", "twitter-access-token", "twitter-access-token-secret",
        "telegram-bot-token", "telegram-channel-id", "discord-webhook-url",
    }  # fmt: skip  # one set
    assert act["permissions"]["pull-requests"] == "read"


@pytest.mark.long  # a runner's own parser, each workflow
@pytest.mark.parametrize("runner", ["self-hosted", "self-hosted,linux,x64", "ubuntu-latest"])
def test_they_pass_githubs_schema_an_audit_and_a_runner(tmp_path: Path, runner: str) -> None:
    repo = hosted(tmp_path)
    init(repo, "--work", "--review", "--publish", "--runner", runner)
    files = [repo / place for place in PLACES.values()]
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files],
        ["zizmor", "--offline", "--quiet", "--no-config", "--persona=pedantic", *files],
        *(["act", "--validate", "--strict", "--workflows", file] for file in files),
    ):
        done = subprocess.run([TOOLS / command[0], *command[1:]], capture_output=True, text=True, check=False, cwd=repo)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_workflow_that_init_writes_is_known_as_ralphs_own() -> None:
    assert {*workflow_init_agents.PLACES.values(), *fleet.WORKFLOWS} == OWN


@pytest.mark.parametrize("mode", PLACES)
def test_nothing_foreign_stands_where_a_shell_or_a_stranger_could_use_it(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}")
    document = flow(repo, mode)
    assert document["permissions"] == {}
    assert not [step for step in job(document)["steps"] if "run" in step]
    assert "pull_request_target" not in document["on"] and ("issue_comment" in document["on"]) == (mode == "review")
    if mode == "review":  # a comment is heard where somebody with a say asks for it, and nothing of it is used
        assert 'fromJSON(\'["OWNER", "MEMBER", "COLLABORATOR"]\')' in job(document)["if"]
        assert json.dumps(document).count("comment.body") == 1
    checks = {"checks", "statuses"} if mode == "work" else set()
    assert job(document)["permissions"].keys() == {"contents", "issues", "pull-requests", "actions"} | checks
    assert job(document)["concurrency"]["cancel-in-progress"] == "false"


@pytest.mark.parametrize("mode", PLACES)
def test_every_input_that_they_give_is_one_of_the_action(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert job(flow(repo, mode))["steps"][0]["with"].keys() <= action["inputs"].keys()


@pytest.mark.parametrize("mode", PLACES)
def test_this_repositorys_own_differ_in_nothing_but_the_action_that_they_use(tmp_path: Path, mode: str) -> None:
    repo = hosted(tmp_path)
    init(repo, f"--{mode}", "--runner", "self-hosted")
    written, own = flow(repo, mode), flow(ROOT, mode)
    (used,), (checkout, acts) = job(written).pop("steps"), job(own).pop("steps")
    assert json.dumps(own) == json.dumps(written)
    assert (acts["with"], acts.get("env"), acts["uses"]) == (used["with"], used.get("env"), "./")
    default = {"ref": "${{ github.event.repository.default_branch }}"} if mode == "review" else {}
    assert checkout["with"] == {"persist-credentials": "false", **default}


# --- `ralph init` a second time: nothing that differs is overwritten unasked. ---


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo)
    assert set(states(told).values()) == {"unchanged"}


def test_what_was_chosen_once_stays_chosen(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "heartbeat", "--runner", "self-hosted,gpu", repo=repo)
    assert states(cli_here("init", "--action", PINNED, "--json", repo=repo))["ralph.yml"] == "unchanged"
    jobs = workflow(repo)["jobs"]
    assert states(cli_here("init", "--json", repo=repo))["ralph.yml"] == "unchanged"
    assert all(job["runs-on"] == ["self-hosted", "gpu"] for job in jobs.values())
    told = cli_here("init", "--wake", "timer", "--json", repo=repo)
    assert states(told)["ralph.yml"] == "kept" and "in ralph.yml: schedule: {wake: timer}" in told.json["steps"]
    assert read(Git.open(repo), read_shared).schedule.wake == "heartbeat"


def test_an_edited_workflow_is_in_the_way_and_nothing_is_written(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    edited = (repo / LOOP).read_text().replace("timeout-minutes: 60", "timeout-minutes: 30")
    (repo / LOOP).write_text(edited)
    told = cli_here("init", "--runner", "gpu", "--wake", "timer", repo=repo)
    assert told.code == 2
    assert "ralph-loop.yml is there already" in told.err
    assert (repo / LOOP).read_text() == edited
    assert not (repo / ".ralph").exists()
    assert states(cli_here("init", "--wake", "timer", "--json", repo=repo))["ralph-loop.yml"] == "kept"


def test_a_folder_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    repo, elsewhere = hosted(tmp_path / "repo"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repo / ".github").symlink_to(elsewhere)
    assert cli_here("init", "--force", repo=repo).code == 2
    assert list(elsewhere.iterdir()) == []


# --- `ralph init`: systemd units and the credentials beside them. ---


def sections(text: str) -> dict[str, dict[str, str]]:
    """A unit file, read as strictly as it can be: no key twice, nothing outside a section."""
    parser = configparser.RawConfigParser(strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # keys are case-sensitive there
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--wake", "timer"), ["ralph-wake@.service", "ralph-wake@.timer"]),
        (("--service",), ["ralph-watch@.service"]),
    ],
)
def test_units_are_what_systemd_accepts(tmp_path: Path, options: tuple[str, ...], names: list[str]) -> None:
    repo, folder = make_repo(tmp_path / "repo"), tmp_path / "some units 100%"
    cli_here("init", *options, "--units", str(folder), repo=repo)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    for name in names:
        unit = sections((folder / name).read_text())
        assert unit.get("Service", {}).get("ExecStart", "repo %f").endswith("repo %f")
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in names)]
        done = subprocess.run(verify, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_credentials_stand_in_a_file_for_their_owner_and_in_no_unit(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo, env={"GITHUB_TOKEN": "ghs_secret_of_somebody"})
    folder = repo / ".ralph"
    assert (folder / "ralph.env").stat().st_mode & 0o777 == 0o600
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("ghs_secret" in text for text in texts)
    unit = sections((folder / "units" / "ralph-wake@.service").read_text())
    assert unit["Service"]["EnvironmentFile"] == "%f/.ralph/ralph.env"
    assert git(repo, "status", "--porcelain", "--untracked-files=all").splitlines() == [f"?? {LOOP}", "?? ralph.yml"]
    commands = [step for step in told.json["steps"] if step.startswith("systemctl ")]
    assert len(commands) == 2
    assert commands[1].startswith("systemctl --user enable --now ")
    assert instance(repo) in commands[1]


def test_two_repositories_of_a_host_share_their_units_and_not_their_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "units"
    one, two = (make_repo(tmp_path / name) for name in ("one", "two"))
    cli_here("init", "--wake", "timer", "--units", str(folder), repo=one)
    told = cli_here("init", "--wake", "timer", "--units", str(folder), "--json", repo=two)
    assert states(told)["ralph-wake@.service"] == states(told)["ralph-wake@.timer"] == "unchanged"
    assert states(told)["ralph.env"] == "new"


def test_credentials_that_a_person_filled_in_are_never_overwritten(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    place = repo / ".ralph" / "ralph.env"
    place.write_text("GITHUB_TOKEN=x\n")
    told = cli_here("init", "--wake", "timer", "--force", "--json", repo=repo)
    assert states(told)["ralph.env"] == "kept"
    assert place.read_text() == "GITHUB_TOKEN=x\n"
