"""The gate of a fleet against a GitHub of many repositories."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.cli.fleet import FleetQuestion, answer_fleet
from ralph_mission.cli.mission.fleet import (
    PERMISSIONS,
    VARIABLE,
    WORKFLOWS,
    check_control_repository,
    check_permissions,
    render_fleet_workflows,
)
from ralph_mission.cli.setup.files import ActionReference
from ralph_mission.config.fleet import load_fleet
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import parse_state, parse_terms
from ralph_mission.mission.memory.text import render_memory
from ralph_mission.mission.model.memory import Header, Memory, MissionNote
from ralph_mission.mission.model.mission import Status, Urgency
from tests.fakes.fleet import FakeFleet, thread
from tests.fakes.github.server import FakeGitHub
from tests.helpers import cli_here, copy_bare, make_repo

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WORKING = {"path": ".github/workflows/ralph-fleet.yml", "state": "active"}


def memory(due_at, urgency=Urgency.LOW, cycle=3, **more):
    header = Header(next_due_at=due_at, urgency=urgency, cycle=cycle, last_cycle_at=NOW - HOUR, **more)
    return render_memory(Memory(header))


@pytest.fixture
def fake():
    with FakeFleet() as running:
        yield running


@pytest.fixture
def gate(fake, tmp_path, monkeypatch, capsys):
    """Ask the gate as a workflow does; gives its document, with the jobs of the matrices under `jobs`."""

    def ask(settings="repositories: [installation]", now=NOW):
        (tmp_path / "fleet.yml").write_text(settings)
        for name, value in (fake.environ | {"GITHUB_OUTPUT": str(tmp_path / "output")}).items():
            monkeypatch.setenv(name, value)
        (tmp_path / "output").unlink(missing_ok=True)
        fake.requests.clear()
        assert answer_fleet(FleetQuestion(str(tmp_path), now=now.isoformat(), json=True)) == 0
        told = json.loads(capsys.readouterr().out)
        outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
        shards = [json.loads(shard) for shard in json.loads(outputs["shards"])]
        return told | {"jobs": [job for shard in shards for job in shard]}

    return ask


def names(told):
    return [job["repository"] for job in told["jobs"]]


def test_the_matrix_holds_who_is_due_the_most_urgent_first(fake, gate):
    fake.add("acme/low", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    fake.add("acme/high", memory=memory(NOW - HOUR / 60, Urgency.HIGH), moved_at=NOW - HOUR)
    fake.add("acme/later", memory=memory(NOW + HOUR), moved_at=NOW - HOUR)
    fake.add("acme/paused", memory=memory(NOW - HOUR, paused=True), moved_at=NOW - HOUR)
    told = gate()
    assert names(told) == ["acme/high", "acme/low"]
    assert told["jobs"][0]["owner"] == "acme" and json.loads(told["jobs"][0]["fleet"])["spoke"] is False


def test_a_tick_a_review_and_a_label_are_seen_without_a_request_of_their_own(fake, gate):
    for name, kind, title in (("a", "pinned", "Ralph"), ("b", "pulls", "Fix"), ("c", "issues", "Ask")):
        fake.add(f"acme/{name}", memory=memory(NOW + HOUR), moved_at=NOW - HOUR, **{kind: [thread(1, title, NOW)]})
    fake.add("acme/d", memory=memory(NOW + HOUR), moved_at=NOW - HOUR, pinned=[thread(1, "Roadmap", NOW)])
    told = gate()
    assert names(told) == ["acme/a", "acme/b", "acme/c"]
    assert all(json.loads(job["fleet"])["spoke"] for job in told["jobs"])
    assert len(fake.requests) == 4  # the installation, one page, the branch and its first commit


@pytest.mark.parametrize("selection", ["all", "selected"])
def test_a_thousand_repositories_are_a_dozen_requests_where_the_app_is_installed_in_all(fake, gate, selection):
    fake.selection, fake.has_branch = selection, True
    for number in range(1000):
        fake.add(f"acme/r{number:04}", memory=memory(NOW + HOUR), moved_at=NOW)
    fake.repositories["acme/r0500"].memory = memory(NOW - HOUR)
    told = gate()
    assert (told["repositories"], names(told)) == (1000, ["acme/r0500"])
    assert len(fake.requests) == (12 if selection == "all" else 21)


def test_a_page_that_github_answers_in_part_is_asked_for_in_smaller_ones(fake, gate):
    fake.most = 30
    for number in range(60):
        fake.add(f"acme/r{number:02}", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    told = gate("repositories: [installation]\nparallel: 30")
    assert told["repositories"] == len(told["jobs"]) == 60


def test_names_owners_and_topics_are_one_list_without_what_is_excluded(fake, gate):
    fake.add("acme/api", topics=("ralph",))
    fake.add("acme/old-shop", topics=("ralph",))
    fake.add("acme/web")
    assert names(gate("repositories: [topic:ralph, acme/web]\nexclude: [acme/old-*]")) == ["acme/api", "acme/web"]
    fake.state.clear()
    assert names(gate("repositories: [org:acme]")) == ["acme/api", "acme/old-shop", "acme/web"]


def test_what_cannot_be_looked_after_costs_one_line_and_nobody_else_anything(fake, gate):
    fake.add("acme/fine")
    fake.add("acme/archived", archived=True)
    fake.add("acme/forbidden", forbidden=True)
    fake.add("acme/broken", memory="no front matter", moved_at=NOW)
    fake.add("acme/new-name")
    fake.renamed["acme/old-name"] = "acme/new-name"
    listed = "repositories: [acme/fine, acme/archived, acme/forbidden, acme/broken, acme/old-name, acme/gone]"
    told = gate(listed)
    assert names(told) == ["acme/fine"]
    assert {one["name"]: one["reason"].split(":")[0] for one in told["failing"]} == {
        "acme/archived": "it is archived",
        "acme/forbidden": "the token may not read it",
        "acme/broken": "its memory cannot be read",
        "acme/old-name": "it is acme/new-name now",
        "acme/gone": "it does not exist, or the app is not installed there",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spend_usd", "inf"),
        ("spend_usd", ".nan"),
        ("spend_usd", "-1000000"),
        ("today", "[" * 200_000),
        ("paused", "[" * 100_000),
        ("next_due_at", "0001-01-01T00:00:00+14:00"),
        ("cycle", "9" * 5000),
        ("", None),  # a blob that is not text
    ],
)
def test_no_memory_breaks_the_others_or_their_budget(fake, gate, key, value):
    text = re.sub(rf"(?m)^{key}:.*$", f"{key}: {value}", memory(NOW - HOUR, today="2026-05-04")) if key else b""
    fake.add("acme/evil", memory=text or None, moved_at=NOW)
    if not key:
        tell = fake.describe_repository
        fake.describe_repository = lambda one: (
            tell(one) | ({"memory": {"text": None}} if one.name == "acme/evil" else {})
        )
    fake.add("acme/rich", memory=memory(NOW - HOUR, today="2026-05-04", spend_usd=20.0), moved_at=NOW)
    told = gate("repositories: [installation]\nbudget: {usd: 20}")
    assert [(job["repository"], json.loads(job["fleet"])["usd_per_day"]) for job in told["jobs"]] == [("acme/rich", 20)]
    assert [one["name"] for one in told["failing"]] == ["acme/evil"] and "memory" in told["failing"][0]["reason"]


@pytest.mark.parametrize("selected", ["acme/bad, acme/good", "org:acme"])
def test_an_error_that_names_one_repository_is_its_own(fake, gate, selected):
    tell = fake.answer_query

    def answer(*asked):
        told = tell(*asked)
        if "bad" in json.dumps(told):
            data, path = told["data"], ["r0"] if "r0" in told["data"] else ["list", "repositories", "nodes", 0]
            (data if path == ["r0"] else data["list"]["repositories"]["nodes"])[path[-1]] = None
            told["errors"] = [{"message": "Something went wrong", "path": path}]
        return told

    fake.answer_query = answer
    fake.add("acme/bad")
    fake.add("acme/good")
    told = gate(f"repositories: [{selected}]")
    assert names(told) == ["acme/good"]
    (line,) = told["failing"]
    assert (line["name"], line["reason"][:20]) in (
        ("acme/bad", "GitHub could not ans"),
        ("org:acme", "one of its repositor"),
    )


@pytest.mark.parametrize(("selection", "started"), [("all", 1), ("selected", 1), ("none", 2)])
def test_a_public_repository_is_not_started_where_the_app_is_not_installed(fake, gate, selection, started):
    fake.selection = selection
    fake.add("acme/api")
    fake.add("harbour/public", installed=False)
    told = gate("repositories: [acme/api, harbour/public]")
    assert names(told) == ["acme/api", "harbour/public"][:started]  # whose token is no app's cannot know
    reasons = [{"name": "harbour/public", "reason": "the app is not installed there"}]
    assert told["failing"] == reasons[: 2 - started]


@pytest.mark.parametrize("listed", ["org:acme", "installation"])
@pytest.mark.parametrize("selection", ["all", "selected"])
def test_one_that_is_renamed_is_not_started_twice_and_one_that_left_is_a_line(fake, gate, listed, selection):
    fake.selection = selection
    fake.add("acme/old", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    fake.add("acme/leaves", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    assert names(gate(f"repositories: [{listed}]")) == ["acme/leaves", "acme/old"]
    fake.rename("acme/old", "acme/new")
    del fake.repositories["acme/leaves"]
    fake.add("acme/other")  # so that this scan writes its state
    told = gate(f"repositories: [{listed}]", now=NOW + HOUR / 4)
    assert names(told) == ["acme/other"]
    assert told["held"] == [{"name": "acme/new", "reason": "started at 12:00 UTC, and not over yet"}]
    assert [one["name"] for one in told["failing"]] == ["acme/leaves"]
    assert "| failing |" in fake.pages[0]["body"] and "no longer lists it" in fake.pages[0]["body"]
    fake.repositories["acme/new"].memory = memory(NOW + 6 * HOUR, cycle=4)
    later = gate(f"repositories: [{listed}]", now=NOW + HOUR / 2)
    assert names(later) == [] and [one["name"] for one in later["failing"]] == ["acme/leaves"]


def test_who_is_asked_to_review_is_waited_for(fake, gate):
    active = (
        MissionNote(1, "Fix 4 dead links", Status.IN_REVIEW, pull=8),
        MissionNote(2, "Update next", Status.IN_REVIEW, pull=9),
    )
    text = render_memory(Memory(Header(next_due_at=NOW + HOUR, cycle=3, last_cycle_at=NOW), active=active))
    pulls = [thread(8, "Fix 4 dead links", NOW - HOUR), thread(9, "Update next", NOW - HOUR)]
    fake.add("acme/api", memory=text, moved_at=NOW, pulls=pulls, reviewers={8: ["mara", "acme/docs"], 9: [""]})
    fake.add("acme/web")
    gate()
    body = fake.pages[0]["body"]
    for who in ("`mara`", "`acme/docs`"):
        assert re.search(rf"- \*\*{who}\*\* \(1\)\n  - .*`acme/api`.*: review `Fix 4 dead links`", body)
    assert re.search(r"- \*\*`a team`\*\* \(1\)\n  - .*: review `Update next`", body)
    assert "2 things waiting" in body and fake.points == 1

    fake.reads_teams = False
    tell, path = fake.answer_query, ["r0", "review", "nodes", 1, "reviewRequests", "nodes", 0, "requestedReviewer"]
    refused = {"errors": [{"path": path, "message": "Resource not accessible by integration"}]}
    fake.answer_query = lambda *asked: refused | tell(*asked) if "fragment F" in asked[1] else tell(*asked)
    told = gate("repositories: [acme/api, acme/web]", now=NOW + HOUR / 4)
    body = fake.pages[0]["body"]
    assert told["failing"] == [] and "`mara`" in body and "**`a team`** (2)" in body and "acme/docs" not in body


def test_a_token_that_may_not_scan_is_told_which_scopes_it_needs(fake, gate):
    fake.answer_query = lambda *_: {"errors": [{"type": "INSUFFICIENT_SCOPES", "message": "not been granted"}]}
    fake.add("acme/api")
    with pytest.raises(UserError, match="not been granted") as problem:
        gate()
    assert problem.value.who == "you" and "read:org" in problem.value.next_step


def test_an_owner_that_is_gone_costs_one_line(fake, gate):
    tell = fake.answer_query
    fake.answer_query = lambda *asked: tell(*asked) | ({"data": {"list": None}} if '"gone"' in asked[1] else {})
    fake.add("acme/good")
    told = gate("repositories: [acme/good, topic:x, 'org:acme', 'org:gone']")
    assert names(told) == ["acme/good"]
    assert told["failing"] == [{"name": "org:gone", "reason": "GitHub knows no such owner"}]


def test_memory_that_a_person_wrote_differently_is_read_too(fake, gate):
    text = memory(NOW - HOUR).replace("paused: false", "paused:   no")
    fake.add("acme/api", memory=text, moved_at=NOW - HOUR)
    assert names(gate()) == ["acme/api"]


def test_a_state_that_graphql_cuts_is_read_whole(fake, gate):
    fake.longest = 100
    fake.add("acme/api")
    assert names(gate()) == ["acme/api"]
    assert (
        names(gate(now=NOW + HOUR / 60)) == [] and ("GET", f"/repos/acme/control/git/blobs/{'f' * 40}") in fake.requests
    )


def test_a_second_gate_starts_nothing_that_the_first_did(fake, gate):
    fake.add("acme/api")
    assert names(gate()) == ["acme/api"]
    assert names(gate(now=NOW + HOUR / 60)) == []


def test_of_two_gates_that_read_the_same_one_books(fake, gate, monkeypatch):
    import ralph_mission.cli.fleet as module

    fake.add("acme/api")
    keep = module.keep_state

    def overtaken(*booking):
        keep(*booking)
        return keep(*booking)

    monkeypatch.setattr(module, "keep_state", overtaken)
    told = gate()
    assert names(told) == [] and told["held"][0]["reason"] == "another gate was first"


def test_the_page_stands_in_one_issue_that_is_edited_with_the_booking(fake, gate):
    fake.pages.clear()
    fake.add("acme/api", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    fake.add("acme/old", archived=True)
    gate()
    assert [page["body"].splitlines()[0] for page in fake.pages] == ["<!-- ralph:fleet -->"]
    assert "[`acme/old`](http://127.0.0.1" in fake.pages[0]["body"] and "it is archived" in fake.pages[0]["body"]
    fake.repositories["acme/api"].memory = memory(NOW + HOUR, cycle=4)
    gate(now=NOW + HOUR / 60)
    assert "| on time |" in fake.pages[0]["body"] and fake.requests[-1] == ("POST", "/graphql")
    sent = len(fake.requests)
    gate(now=NOW + HOUR / 60)
    assert len(fake.requests) == sent - 1 and len(fake.pages) == 1  # it says so already
    fake.repositories["acme/api"].memory = memory(NOW, cycle=5)
    booked = len(fake.state)
    gate(now=NOW + HOUR)
    assert len(fake.state) == booked + 1 and "| late |" in fake.pages[0]["body"] and len(fake.requests) == sent


def test_of_two_gates_the_one_that_books_makes_the_page(fake, gate, monkeypatch):
    import ralph_mission.cli.fleet as module

    fake.pages.clear()
    fake.add("acme/api", memory=memory(NOW + HOUR), moved_at=NOW)
    gate()
    assert fake.pages == []  # nothing was booked: nobody was first
    fake.add("acme/web")
    monkeypatch.setattr(module, "keep_state", lambda *_: False)
    gate()
    assert fake.pages == []
    monkeypatch.undo()
    gate()
    assert len(fake.pages) == 1


def test_the_control_repository_is_looked_after_only_where_it_is_named(fake, gate):
    fake.add("acme/api")
    fake.add("acme/control")
    assert names(gate("repositories: [installation]")) == ["acme/api"]
    fake.state.clear()
    fake.has_branch = False
    assert names(gate("repositories: [installation, acme/control]")) == ["acme/api", "acme/control"]


def test_what_is_looked_after_elsewhere_is_a_line(fake, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    make_repo(tmp_path / "a")
    (tmp_path / "fleet.yml").write_text("repositories: [./a, acme/api, org:acme, topic:x, installation]\n")
    here = cli_here("fleet", "due", repo=tmp_path)
    assert here.code == 0 and "start: ./a" in here.out
    for name in ("acme/api", "org:acme", "topic:x", "installation"):
        assert f"note: {name} is left out: the workflow" in here.err
    fake.add("acme/api")
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_ACTIONS")
    there = cli_here("fleet", "due", repo=tmp_path)
    assert "start: acme/api" in there.out and "note: ./a is left out: ralph fleet run" in there.err


def test_the_doctor_looks_at_what_the_workflows_say_and_at_those_that_are_named(fake, tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "control", {"README.md": "A fleet.\n"})
    cli_here("fleet", "init", "--action", f"ralph/mission@{'a' * 40}", repo=repo)
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)

    def found() -> dict[str, str]:
        told = json.loads(cli_here("fleet", "doctor", "--json", repo=repo).out)
        return {check["name"]: check["status"] for check in told["checks"]}

    assert found()["workflows"] == "ok"
    cycle, due = (repo / ".github/workflows" / name for name in ("ralph-fleet-cycle.yml", "ralph-fleet.yml"))
    cycle.write_text("name: mine\n")
    assert found()["workflows"] == "note"
    due.write_text("rubbish")
    (repo / "fleet.yml").write_text("repositories: [acme/gone]\n")
    assert (found()["workflows"], found()["acme/gone"]) == ("wrong", "wrong")


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, ""),
        ({"": {"has_issues": False}}, "wrong page: Settings → General → Features → Issues"),
        ({"/labels/ralph:fleet": "gone"}, "note page: leave it as it is then: the page is found by it"),
        (
            {"/actions/variables/RALPH_APP_CLIENT_ID": "gone"},
            "wrong variable: Settings → Secrets and variables → Actions: set it to the app's client id",
        ),
        (
            {"/actions/secrets/RALPH_APP_PRIVATE_KEY": "gone"},
            "wrong secret: Settings → Secrets and variables → Actions: set it to the app's private key",
        ),
        (
            {
                "/actions/secrets/RALPH_APP_PRIVATE_KEY": "gone",
                "/actions/organization-secrets?per_page=100": {"secrets": [{"name": "RALPH_APP_PRIVATE_KEY"}]},
            },
            "",
        ),
        (
            {"/actions/secrets/RALPH_APP_PRIVATE_KEY": None},
            "note secret RALPH_APP_PRIVATE_KEY: look at Settings → Secrets and variables → Actions",
        ),
        (
            {
                "/actions/secrets/RALPH_APP_PRIVATE_KEY": "gone",
                "/actions/organization-secrets?per_page=100": None,
            },
            "note secret RALPH_APP_PRIVATE_KEY: look at Settings → Secrets and variables → Actions",
        ),
        (
            {
                "/actions/secrets/RALPH_APP_PRIVATE_KEY": "gone",
                "/actions/organization-secrets?per_page=100": {"total_count": 101, "secrets": [{"name": "A"}] * 100},
            },
            "note secret RALPH_APP_PRIVATE_KEY: look at Settings → Secrets and variables → Actions",
        ),
        (
            {"": "gone", "/labels/ralph:fleet": "gone", "/actions/variables/RALPH_APP_CLIENT_ID": "gone"},
            "wrong repository on GitHub: check GITHUB_REPOSITORY, and that the token is for this repository",
        ),
        (
            {"/actions/workflows?per_page=100": {"workflows": [WORKING]}},
            "wrong workflow: commit and push what ralph fleet init wrote",
        ),
        ({"/actions/workflows?per_page=100": None}, "note workflow: look at the Actions tab"),
    ],
)
def test_the_doctor_says_what_the_control_repository_lacks_and_the_one_thing_to_do(fake, monkeypatch, changed, line):
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)
    for path, told in changed.items():
        fake.control_has[path] = told
        if told == "gone":
            del fake.control_has[path]
    found = [f"{one.status} {one.name}: {one.hint}" for one in check_control_repository() if one.status != "ok"]
    assert found == ([line] if line else [])


def test_the_doctor_says_which_permissions_the_app_lacks(tmp_path, monkeypatch):
    bare = copy_bare(make_repo(tmp_path / "start"), tmp_path / "server.git")
    with FakeGitHub(bare, "acme/control") as github:
        without = {name: level for name, level in PERMISSIONS.items() if name != "checks"}
        cases = ((PERMISSIONS, "ok", ""), (without, "wrong", "checks: read"))
        for held, status, said in (*cases, (PERMISSIONS | {"issues": "read"}, "wrong", "issues: write")):
            app, key = github.app(f"ralph-{len(github.world.apps)}[bot]", held)
            monkeypatch.setenv("GITHUB_REPOSITORY", "acme/control")
            monkeypatch.setenv("GITHUB_API_URL", github.api_url)
            monkeypatch.setenv("GITHUB_APP_ID", app.id)
            monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY", key)
            (line,) = check_permissions()
            assert line.status == status and said in line.found
    monkeypatch.delenv("GITHUB_APP_ID")
    monkeypatch.delenv("GITHUB_APP_PRIVATE_KEY")
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_1")
    assert [one.status for one in check_permissions()] == ["note"]


def test_a_jobs_token_is_asked_for_what_the_doctor_looks_for():
    text = render_fleet_workflows(ActionReference("ralph/mission", "a" * 40))[WORKFLOWS[1]]
    asked = dict(re.findall(r"permission-([\w-]+): (\w+)", text))
    assert {name.replace("-", "_"): level for name, level in asked.items()} == PERMISSIONS
    assert VARIABLE in text and "repositories: ${{ matrix.name }}" in text


def test_a_page_that_a_person_closed_stays_as_it_is(fake, gate):
    fake.pages[0]["state"] = "CLOSED"
    fake.add("acme/api")
    gate()
    assert fake.pages == [{"id": "I_0", "state": "CLOSED", "body": "<!-- ralph:fleet -->"}]


def test_a_page_that_cannot_be_written_keeps_nobody_from_starting(fake, gate, monkeypatch):
    import ralph_mission.cli.fleet as module

    def refuse(*_):
        raise UserError("no", "give the gate's job issues: write")

    monkeypatch.setattr(module, "show_page", refuse)
    fake.pages.clear()
    fake.add("acme/api")
    assert names(gate()) == ["acme/api"]


def test_a_repository_without_settings_is_asked_first_where_the_fleet_does_so(fake, gate):
    fake.add("acme/new")
    fake.add("acme/asked", onboarding=[{"number": 4, "state": "OPEN", "isCrossRepository": False}])
    fake.add("acme/no", onboarding=[{"number": 4, "state": "CLOSED", "isCrossRepository": False}])
    forks = [{"number": 5 + n, "state": "OPEN", "isCrossRepository": True} for n in range(9)]
    fake.add("acme/crowded", onboarding=[*forks, {"number": 99, "state": "OPEN", "isCrossRepository": False}])
    fake.add("acme/forked", onboarding=[{"number": 4, "state": "CLOSED", "isCrossRepository": True}])
    fake.add("acme/yes", settings=True, onboarding=[{"number": 4, "state": "MERGED", "isCrossRepository": False}])
    settings = f"repositories: [installation]\nonboard: true\nextends: acme/control//ralph.yml@{'0' * 40}\n"
    told = gate(settings)
    terms = {job["repository"]: json.loads(job["fleet"]) for job in told["jobs"]}
    assert {name: one.get("onboard", False) for name, one in terms.items()} == {
        "acme/forked": True,
        "acme/new": True,
        "acme/yes": False,
    }
    assert terms["acme/new"]["extends"] == f"acme/control//ralph.yml@{'0' * 40}"
    assert {one["name"] for one in told["held"]} == {"acme/asked", "acme/crowded", "acme/no"}
    assert "acme/asked/issues/4" in fake.pages[0]["body"]


def test_the_fleets_settings_are_told_to_every_job(fake, gate):
    fake.add("acme/api", memory=memory(NOW - HOUR), moved_at=NOW - HOUR)
    (job,) = gate(f"repositories: [installation]\nextends: acme/control//ralph.yml@{'0' * 40}\n")["jobs"]
    assert parse_terms(job["fleet"]).extends == f"acme/control//ralph.yml@{'0' * 40}"


def test_without_anything_due_nothing_is_written(fake, gate):
    fake.add("acme/api", memory=memory(NOW + HOUR), moved_at=NOW)
    assert gate()["jobs"] == [] and fake.state == [] and not fake.has_branch
    assert ("POST", f"/repos/{fake.control}/issues") not in fake.requests


def test_a_gate_that_dies_at_any_request_starts_nothing_twice_and_forgets_nobody(fake, gate):
    for number in range(3):
        fake.add(f"acme/r{number}")
    for request in range(1, 12):
        for applied in (False, True):
            fake.state.clear()
            fake.has_branch = False
            fake.break_at(request, applied)
            try:
                first = names(gate())
            except UserError:
                first = []
            fake.break_at(99)
            second = names(gate(now=NOW + HOUR / 4))
            assert not set(first) & set(second)
            later = names(gate(now=NOW + 3 * HOUR))
            everyone = {"acme/r0", "acme/r1", "acme/r2"}
            assert set(first) | set(second) | set(later) == everyone
            booked = parse_state(fake.state[-1]).bookings
            assert set(booked) == everyone


def test_the_token_that_reads_all_may_not_write_the_state(fake, gate, monkeypatch):
    fake.add("acme/api")
    fake.tokens["control"] = "acme/api"
    with pytest.raises(UserError, match="cannot be written"):
        gate()


def test_a_repository_that_a_person_spoke_in_is_told_to_its_job(fake, gate):
    fake.add("acme/a", memory=memory(NOW + HOUR), moved_at=NOW - HOUR, pulls=[thread(1, "Fix", NOW)])
    (job,) = gate()["jobs"]
    assert '"spoke":true' in job["fleet"]  # which `scripts/action/gate.sh` looks for


def test_init_writes_what_the_doctor_then_finds_right(fake, tmp_path, monkeypatch, capsys):
    repo = make_repo(tmp_path / "control", {"README.md": "A fleet.\n"})
    written = cli_here("fleet", "init", "--action", f"ralph/mission@{'a' * 40}", repo=repo)
    assert written.code == 0 and "RALPH_APP_PRIVATE_KEY" in written.out
    assert load_fleet((repo / "fleet.yml").read_text()).installation
    again = cli_here("fleet", "init", repo=repo)  # the workflows say which action
    assert again.code == 0 and "RALPH_APP_PRIVATE_KEY" in again.out
    (repo / "fleet.yml").write_text("repositories: [installation]\n")
    refused = cli_here("fleet", "init", "--runner", "big", repo=repo)
    assert refused.code == 2 and "Write runner into it yourself" in refused.err
    fake.add("acme/api")
    fake.add("acme/old", archived=True)
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)
    told = json.loads(cli_here("fleet", "doctor", "--json", repo=repo).out)
    found = {check["name"]: (check["status"], check["found"]) for check in told["checks"]}
    assert told["healthy"] and found["acme/old"] == ("note", "it is archived")
    assert found["GitHub"][1].startswith("2 repositories, 1 to start now") and fake.state == []


def test_init_without_a_commit_of_the_action_writes_nothing(tmp_path):
    repo = make_repo(tmp_path / "control", {"README.md": "A fleet.\n"})
    assert cli_here("fleet", "init", repo=repo).code == 2
    assert not (repo / "fleet.yml").exists()
