"""The fake GitHub: what it refuses to know, its journal, and that its replies are as GitHub describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.endpoints import issues as issue_endpoints
from tests.fakes.github.routing import ROUTES
from tests.fakes.github.server import FakeGitHub
from tests.fakes.github.validation import REPLIES

# --- what it does not know


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
