"""The fake GitHub: what a token may do, and how it says no."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub

# --- who may what


def test_unknown_token_is_refused(fake: FakeGitHub) -> None:
    assert Client(fake, "ghp_wrong")("GET", ".").said == (401, "Bad credentials")
    token = fake.token()
    fake.revoke(token)
    assert Client(fake, token)("GET", ".").status == 401


def test_installation_has_its_permissions_only(fake: FakeGitHub) -> None:
    reader = Client(fake, fake.token(permissions={"issues": "read"}))
    fake.person("mara").create_issue("One")
    assert reader("GET", "./issues").status == 200
    for method, path, body in [
        ("POST", "./issues", {"title": "x"}),
        ("GET", "./pulls", None),
        ("POST", "./dispatches", {"event_type": "x"}),
        ("GET", "/user", None),
        ("GET", "./actions/runners", None),
        ("GET", "./branches/main/protection", None),
        ("GET", "./actions/permissions/workflow", None),
    ]:
        assert reader(method, path, body).said == (403, "Resource not accessible by integration"), path
    assert len(fake.threads) == 1 and not fake.dispatches


def test_permission_for_pulls_does_not_open_issues(fake: FakeGitHub) -> None:
    fake.person("mara").create_issue("One")
    bot = Client(fake, fake.token(permissions={"pull_requests": "write"}))
    assert bot("POST", "./issues/1/comments", {"body": "x"}).status == 403


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


def test_private_repository_is_not_there_for_strangers(bare: Path) -> None:
    with FakeGitHub(bare, private=True) as fake:
        stranger = Client(fake, fake.token("jonas"))
        fake.person("jonas", "none")
        assert stranger("GET", ".").status == 404
        assert Client(fake, fake.token())("GET", ".").json["visibility"] == "private"


@pytest.mark.parametrize(
    ("level", "permission"),
    [
        ("none", "read"),
        ("read", "read"),
        ("triage", "read"),
        ("write", "write"),
        ("maintain", "write"),
        ("admin", "admin"),
    ],
)
def test_permission_of_a_person_is_told(fake: FakeGitHub, api: Client, level: str, permission: str) -> None:
    jonas = fake.person("jonas", level)
    told = api("GET", "./collaborators/jonas/permission").json
    assert (told["permission"], told["user"]["id"]) == (permission, jonas.id)
    assert told["role_name"] == ("read" if level == "none" else level)


def test_permission_of_nobody_is_404(fake: FakeGitHub, api: Client) -> None:
    fake.bot("other[bot]")
    for login in ("nobody", "other[bot]"):
        assert api("GET", f"./collaborators/{login}/permission").said == (404, f"{login} is not a user")


def test_renamed_person_keeps_the_number(fake: FakeGitHub, api: Client) -> None:
    mara = fake.person("mara")
    number, before = mara.create_issue("One"), mara.actor
    mara.rename("mara-q")
    assert (mara.actor.id, mara.actor.login) == (before.id, "mara-q")
    assert api("GET", f"./issues/{number}").json["user"]["login"] == "mara-q"
    assert api("GET", "./collaborators/mara/permission").status == 404


def test_tokens_tell_who_they_are(fake: FakeGitHub, api: Client) -> None:
    assert Client(fake, fake.token("mara"))("GET", "/user").json["id"] == fake.person("mara").id
    told = api("POST", "/graphql", {"query": "query { viewer {\n login, databaseId __typename } }"}).json
    assert told["data"]["viewer"] == {"login": "github-actions[bot]", "databaseId": 41898282, "__typename": "Bot"}
    assert fake.journal[-1].transport == "graphql"


def test_switched_off_repositories_refuse(fake: FakeGitHub, api: Client) -> None:
    fake.settings.has_issues = False
    assert api("GET", "./issues").said == (410, "Issues are disabled for this repo")
    fake.settings.has_issues, fake.settings.archived = True, True
    assert api("POST", "./issues", {"title": "x"}).status == 403
    assert api("GET", "./issues").status == 200
    assert api("POST", "/graphql", {"query": "query { viewer { login } }"}).status == 200
    fake.settings.disabled = True
    assert api("GET", "./issues").said == (403, "Repository access blocked")
