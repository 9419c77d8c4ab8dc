"""`ralph doctor` on GitHub: whose token it is, and what it may do."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.cli.doctor.github import github
from tests.cli.doctor_place import Place


def test_a_token_that_is_not_valid_is_the_only_line(here: Place) -> None:
    hub = here.hub()
    here.fake.revoke(here.token)
    assert [(check.name, check.status) for check in github(hub)] == [("token", "wrong")]


def test_a_repository_that_the_token_may_not_see_is_the_only_line(here: Place) -> None:
    here.token = here.fake.token("joe")
    here.fake.person("joe", "none")
    assert here.get("")[0] == 200  # it is public
    hub = replace(here.hub(), get=lambda path: (404, {"message": "Not Found"}))
    assert [check.name for check in github(hub)] == ["repository on GitHub"]


def test_a_person_s_token_opens_pulls_that_the_person_cannot_approve(here: Place) -> None:
    here.token = here.fake.token("mara")
    check = here.checks()["token"]
    assert (check.status, check.found) == ("note", "classic, as mara, whose own pull requests mara cannot approve")


def test_no_line_holds_the_token(here: Place) -> None:
    assert here.token not in repr(here.checks())
    assert here.token not in repr(replace(here.hub(), get=print))
