"""The fake GitHub: what a token may do, and how it says no."""

from __future__ import annotations

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub

# --- who may what


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
