"""`ralph doctor` on GitHub: the repository's own settings."""

from __future__ import annotations

from tests.cli.doctor_place import Place


def test_an_archived_repository_is_wrong(here: Place) -> None:
    here.fake.settings.archived = True
    assert here.checks()["repository on GitHub"].status == "wrong"


def test_issues_that_are_switched_off_are_wrong(here: Place) -> None:
    here.fake.settings.has_issues = False
    checks = here.checks()
    assert checks["issues"].mend == "Settings → General → Features → Issues"


def test_a_label_that_people_set_has_to_be_there_before_they_can(here: Place) -> None:
    assert "label ralph-ready" not in here.checks()
    del here.fake.world.labels["ralph-ready"]
    check = here.checks()["label ralph-ready"]
    assert check.status == "note" and "gh label create ralph-ready" in check.mend
