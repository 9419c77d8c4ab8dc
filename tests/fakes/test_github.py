"""The fake GitHub: what it refuses to know, its journal, and that its replies are as GitHub describes them."""

from __future__ import annotations

import http.client
import subprocess
from pathlib import Path

import pytest

from tests.cli.loop_world import until
from tests.fakes.client import Client
from tests.fakes.github.endpoints import issues as issue_endpoints
from tests.fakes.github.faults import AFTER, KINDS, Crash
from tests.fakes.github.nouns import Request
from tests.fakes.github.routing import ROUTES
from tests.fakes.github.server import FakeGitHub
from tests.fakes.github.validation import REPLIES
from tests.helpers import commit, git


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", "./milestones", None, {}),
        ("GET", "/search/issues?q=x", None, {}),
        ("PUT", "./issues", {}, {}),
        ("GET", "./issues?milestone=3", None, {}),
        ("GET", "./issues?sort=comments", None, {}),
        ("POST", "./issues", {"title": "x", "type": "Bug"}, {}),
        ("POST", "./issues", {"title": "NUL \0"}, {}),
        ("POST", "/graphql", {"query": "{ viewer { email } }"}, {}),
        ("GET", ".", None, {"Accept": "application/vnd.github.diff"}),
        ("GET", ".", None, {"X-GitHub-Api-Version": "2026-03-10"}),
    ],
)
def test_unknown_request_is_refused_and_remembered(
    bare: Path, method: str, path: str, body: object, headers: dict[str, str]
) -> None:
    with pytest.raises(AssertionError, match="does not know it"), FakeGitHub(bare) as fake:
        assert Client(fake, fake.token())(method, path, body, headers=headers).status == 501
        assert len(fake.unknown) == 1 and not fake.threads


def test_what_is_no_json_is_400(api: Client) -> None:
    assert api("POST", "./issues", raw=b"{title}").said == (400, "Problems parsing JSON")
    assert api("POST", "./issues", [1]).said == (400, "Body should be a JSON object")
    assert api("POST", "./issues", {"title": 3}).status == 422
    assert api("POST", "./issues", {"title": ""}).status == 422


def test_failing_test_is_not_hidden_by_the_unknown(bare: Path) -> None:
    with pytest.raises(ZeroDivisionError), FakeGitHub(bare) as fake:
        fake.unknown.append("x")
        raise ZeroDivisionError


def test_other_repository_is_404(api: Client) -> None:
    assert api("GET", "/repos/somebody/else").status == 404


# --- GitHub's own description


def test_broken_reply_is_noticed(fake: FakeGitHub, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    number = api.issue()
    whole = issue_endpoints.issue_alone
    monkeypatch.setattr(issue_endpoints, "issue_alone", lambda *given: whole(*given) | {"user": {"login": "x"}})
    assert api("GET", f"./issues/{number}").status == 501
    assert "is no Issue" in fake.unknown.pop()
    fake.validate = False
    assert api("GET", f"./issues/{number}").status == 200


def test_every_operation_has_its_model() -> None:
    assert {(route.method, route.template) for route in ROUTES} == set(REPLIES)


def test_journal_tells_what_was_received(fake: FakeGitHub, api: Client) -> None:
    api.issue()
    fake.person("mara").create_issue("Not a request")
    api("GET", "./issues", state="all")
    posted, listed = fake.journal
    assert (posted.method, posted.below, posted.status, posted.login) == ("POST", "/issues", 201, "github-actions[bot]")
    assert posted.body == {"title": "Typo"}
    assert (listed.path, listed.query) == ("/repos/harbour/slackwater/issues", {"state": "all"})
    assert (fake.count(), fake.count("rest", "GET"), fake.count(below="/iss*", status=201)) == (2, 1, 1)


def test_api_answers_without_its_prefix_too(fake: FakeGitHub, api: Client) -> None:
    import urllib.request

    request = urllib.request.Request(
        f"{fake.url}/repos/{fake.repository}", headers={"Authorization": f"token {api.token}"}
    )
    with urllib.request.urlopen(request) as reply:
        assert b'"full_name": "harbour/slackwater"' in reply.read()


# --- The fake GitHub: everything that can go wrong really goes wrong, and applied means applied. ---

LOST = (ConnectionError, http.client.HTTPException)
ISSUE = {"title": "One"}


@pytest.mark.parametrize("kind", ["401", "403", "404", "409", "422", "500", "502_not_applied"])
def test_refusal_is_not_applied(fake: FakeGitHub, api: Client, kind: str) -> None:
    fake.fail(kind)
    answer = api("POST", "./issues", ISSUE)
    assert answer.status == int(kind[:3]) and not fake.threads
    assert kind.startswith("502") or answer.json["status"] == kind
    assert api("POST", "./issues", ISSUE).status == 201


@pytest.mark.parametrize(("kind", "applied"), [("reset_applied", True), ("reset_not_applied", False)])
def test_reset_closes_without_an_answer(fake: FakeGitHub, api: Client, kind: str, applied: bool) -> None:
    fake.fail(kind)
    with pytest.raises(LOST):
        api("POST", "./issues", ISSUE)
    assert bool(fake.threads) is applied
    assert fake.journal[-1].status == 0


@pytest.mark.parametrize(("kind", "applied"), [("timeout_applied", True), ("timeout_not_applied", False)])
def test_timeout_answers_nothing(fake: FakeGitHub, api: Client, kind: str, applied: bool) -> None:
    fault = fake.fail(kind)
    with pytest.raises(TimeoutError):
        Client(fake, api.token, timeout=0.3)("POST", "./issues", ISSUE)
    until(lambda: fault.used and bool(fake.threads) is applied)


def test_every_applied_kind_is_known() -> None:
    assert set(AFTER) == {kind for kind in KINDS if kind.endswith("_applied") and "not" not in kind} | {"garbage"}


def test_crash_before_leaves_nothing_and_after_everything(fake: FakeGitHub, api: Client) -> None:
    def crash(*_: object) -> None:
        raise Crash

    for hook, there in ((fake.before, 0), (fake.after, 1)):
        remove = hook(crash)
        with pytest.raises(LOST):
            api("POST", "./issues", ISSUE)
        remove()
        assert len(fake.threads) == there


def test_hook_that_fails_is_remembered(bare: Path) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"), FakeGitHub(bare) as fake:
        fake.before(lambda request: 1 / 0)
        with pytest.raises(LOST):
            Client(fake, fake.token())("GET", ".")


# --- The fake GitHub: git over smart HTTP, tokens, and what GitHub refuses on its side of a push. ---


@pytest.fixture
def clone(fake: FakeGitHub, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fake.bare), "clone")
    return tmp_path / "clone"


def pushed(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0


def test_lease_is_a_compare_and_swap(fake: FakeGitHub, api: Client, clone: Path) -> None:
    sha = commit(clone, {"ours": "x\n"})
    assert pushed(api.git(clone, "push", "--force-with-lease=refs/heads/new:", "URL", "HEAD:refs/heads/new"))
    moved = fake.push("new", {"theirs": b"x\n"})
    assert not pushed(
        api.git(clone, "push", f"--force-with-lease=refs/heads/new:{sha}", "URL", "HEAD~1:refs/heads/new")
    )
    assert fake.branch("new") == moved


def test_ref_that_moves_under_a_push_is_refused(fake: FakeGitHub, api: Client, clone: Path) -> None:
    commit(clone, {"ours": "x\n"})

    def race(request: Request) -> None:
        if request.below == "/git-receive-pack":
            fake.push("main", {"theirs": b"x\n"})

    fake.before(race)
    done = api.git(clone, "push", "URL", "HEAD:main")
    assert not pushed(done) and "[remote rejected]" in done.stderr


@pytest.mark.parametrize(
    ("login", "scopes", "words"),
    [
        (
            "github-actions[bot]",
            ("repo",),
            "refusing to allow a GitHub App to create or update workflow "
            "`.github/workflows/ci.yml` without `workflows` permission",
        ),
        (
            "mara",
            ("repo",),
            "refusing to allow a Personal Access Token to create or update workflow "
            "`.github/workflows/ci.yml` without `workflow` scope",
        ),
    ],
)
def test_workflows_are_not_pushed_without_leave(
    fake: FakeGitHub, clone: Path, login: str, scopes: tuple[str, ...], words: str
) -> None:
    client = Client(fake, fake.token(login, scopes=scopes))
    commit(clone, {".github/workflows/ci.yml": "on: push\n"})
    done = client.git(clone, "push", "URL", "HEAD:refs/heads/x")
    assert not pushed(done) and words in done.stderr
    assert fake.branch("x") == ""
    assert pushed(Client(fake, fake.token("mara")).git(clone, "push", "URL", "HEAD:refs/heads/x"))
    commit(clone, {"a": "a\n"})
    assert pushed(client.git(clone, "push", "URL", "HEAD:refs/heads/y"))  # the workflow is known by now


def test_push_is_applied_although_the_answer_is_lost(fake: FakeGitHub, api: Client, clone: Path) -> None:
    for kind, applied in (
        ("502_not_applied", False),
        ("reset_not_applied", False),
        ("502_applied", True),
        ("reset_applied", True),
    ):
        fake.fail(kind, ("POST", "/git-receive-pack"))
        sha = commit(clone, {"a": kind})
        assert not pushed(api.git(clone, "push", "URL", f"HEAD:refs/heads/{kind}"))
        assert fake.branch(kind) == (sha if applied else "")
    assert not fake.faults


# --- The fake GitHub: issues, comments, labels, history, and how they are listed. ---


def test_who_is_mentioned_is_told_but_not_in_code(fake: FakeGitHub, api: Client) -> None:
    fake.person("mara")
    api.issue(body="`@mara` and a@mara.example and\n```\n@mara\n```\n@nobody")
    number = api.issue(body="Hello @Mara!")
    events = api("GET", f"./issues/{number}/events").json
    assert [(event["event"], event["actor"]["login"]) for event in events] == [
        ("mentioned", "mara"),
        ("subscribed", "mara"),
    ]
    assert {event.number for event in fake.world.events} == {number}


def test_new_things_are_missing_from_lists_for_a_while(fake: FakeGitHub, api: Client) -> None:
    fake.list_lag = 2
    number = api.issue()
    assert api("GET", f"./issues/{number}").status == 200
    assert [len(api("GET", "./issues").json) for _ in range(3)] == [0, 0, 1]
    made = api("POST", f"./issues/{number}/comments", {"body": "x"}).json
    assert api("GET", f"./issues/comments/{made['id']}").status == 200
    assert [len(api("GET", f"./issues/{number}/comments").json) for _ in range(3)] == [0, 0, 1]
    fake.person("mara").label(number, ("x",))
    assert [len(api("GET", f"./issues/{number}/events").json) for _ in range(3)] == [0, 0, 1]


def test_unchanged_reply_is_304_and_free(fake: FakeGitHub, api: Client) -> None:
    number = api.issue()
    first = api("GET", f"./issues/{number}")
    again = api("GET", f"./issues/{number}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.raw, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    assert (fake.journal[-1].status, fake.journal[-1].conditional) == (304, True)
    strong = first.headers["etag"].removeprefix("W/")
    assert api("GET", f"./issues/{number}", headers={"If-None-Match": strong}).status == 304
    fake.person("mara").comment(number, "news")
    assert api("GET", f"./issues/{number}", headers={"If-None-Match": first.headers["etag"]}).status == 200


# --- The fake GitHub: merging, and what protection asks for. ---


def test_head_that_moved_is_409(fake: FakeGitHub, api: Client) -> None:
    number, seen, before = api.pull(), fake.branch("topic"), fake.branch("main")
    fake.push("topic", {"evil": b"x\n"})
    assert api.merge(number, sha=seen).said == (409, "Head branch was modified. Review and try the merge again.")
    assert fake.branch("main") == before


def test_actions_token_does_not_merge_workflows(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {".github/workflows/ci.yml": b"on: push\n"})
    number = fake.person("mara").open_pull("topic", "main", "CI")
    answer = api.merge(number)
    assert answer.status == 403 and "without `workflows` permission" in answer.json["message"]
    assert Client(fake, fake.token("mara")).merge(number).status == 200


def test_protection_blocks_until_it_is_satisfied(fake: FakeGitHub, api: Client) -> None:
    fake.protect("main", required_reviews=1, required_checks=("ci",))
    number, mara = api.pull(), fake.person("mara")

    def state() -> str:
        return str(api("GET", f"./pulls/{number}").json["mergeable_state"])

    assert state() == "blocked"
    assert api.merge(number).said == (405, "At least 1 approving review is required by reviewers with write access.")
    fake.person("guest", "read").review(number, "approved")
    assert "approving review" in api.merge(number).said[1]
    mara.review(number, "approved")
    assert api.merge(number).said == (405, 'Required status check "ci" is expected.')
    fake.check(fake.branch("topic"), "ci", None)
    assert api.merge(number).said == (405, 'Required status check "ci" is in progress.')
    fake.check(fake.branch("topic"), "ci", "success")
    fake.check(fake.branch("topic"), "docs", "failure")
    assert state() == "unstable"
    mara.review(number, "changes_requested", "No")
    assert (state(), api.merge(number).status) == ("blocked", 405)
    mara.dismiss(number)
    mara.review(number, "approved")
    assert api.merge(number).status == 200


# --- The fake GitHub: pulls, how they follow their branch, files, reviews. ---


def test_commit_of_an_open_pulls_trial_merge_is_no_sign_of_a_merge(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    trial = api("GET", f"./pulls/{number}").json["merge_commit_sha"]
    assert trial and git(fake.bare, "rev-parse", f"refs/pull/{number}/merge") == trial
    assert fake.branch("main") != trial and not api("GET", f"./pulls/{number}").json["merged"]


def test_head_follows_pushes_and_direct_moves(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    second = fake.push("topic", {"b": b"b\n"})
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == second
    git(fake.bare, "update-ref", "refs/heads/topic", f"{second}^")
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == git(fake.bare, "rev-parse", f"{second}^")
    assert git(fake.bare, "rev-parse", f"refs/pull/{number}/head") == fake.branch("topic")
    assert api("GET", f"./issues/{number}/events").json[-1]["event"] == "head_ref_force_pushed"


# --- The fake GitHub: what a token may do, and how it says no. ---


def test_installation_has_its_permissions_only(fake: FakeGitHub) -> None:
    reader = Client(fake, fake.token(permissions={"issues": "read"}))
    fake.person("mara").create_issue("One")
    assert reader("GET", "./issues").status == 200
    for method, path, body in [
        ("POST", "./issues", {"title": "x"}),
        ("GET", "./pulls", None),
        ("POST", "./dispatches", {"event_type": "x"}),
        ("GET", "/user", None),
    ]:
        assert reader(method, path, body).said == (403, "Resource not accessible by integration"), path
    assert len(fake.threads) == 1 and not fake.dispatches


def test_person_has_the_rights_of_the_level(fake: FakeGitHub) -> None:
    number = fake.person("mara").create_issue("One")
    jonas = Client(fake, fake.token("jonas"))
    fake.person("jonas", "read")
    assert jonas("POST", f"./issues/{number}/comments", {"body": "x"}).status == 201
    assert jonas("POST", f"./issues/{number}/labels", {"labels": ["x"]}).status == 403
    assert jonas("POST", "./issues", {"title": "x", "labels": ["x"]}).json["labels"] == []
    fake.person("jonas").set_permission("triage")
    assert jonas("POST", f"./issues/{number}/labels", {"labels": ["x"]}).status == 200
    assert Client(fake, fake.token("jonas", scopes=()))("POST", "./issues", {"title": "x"}).status == 404


# --- The fake GitHub: rulesets, as they are told, and as they stop pushes and merges. ---


def test_push_past_rules_is_gh013_with_each_violation(fake: FakeGitHub, api: Client, clone: Path) -> None:
    commit(clone, {"direct.txt": "d\n"})
    fake.ruleset("main", required_reviews=0, required_checks=("ci", "lint"), required_signatures=True)
    before = fake.branch("main")
    told = api.git(clone, "push", "URL", "HEAD:refs/heads/main")
    assert told.returncode and fake.branch("main") == before
    for words in (
        "GH013: Repository rule violations found for refs/heads/main.",
        "(push declined due to repository",
        "- Changes must be made through a pull request.",
        "- 2 of 2 required status checks are expected.",
        "- Commits must have verified signatures.",
        "Found 1 violation:",
    ):
        assert words in told.stderr
    assert api.git(clone, "push", "URL", "HEAD:refs/heads/topic").returncode == 0
