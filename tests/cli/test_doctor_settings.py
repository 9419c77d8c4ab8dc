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
    assert checks["reading"].status == "ok"


def test_a_merge_method_that_is_not_allowed_is_wrong(here: Place) -> None:
    here.fake.settings.allow_squash_merge = False
    assert "merge" in here.checks()["merging"].mend
    assert here.checks(merge_method="merge")["merging"].status == "ok"


def test_a_reader_cannot_see_how_merging_is_done(here: Place) -> None:
    here.fake.person("joe", "read")
    here.token = here.fake.token("joe")
    assert here.checks()["merging"].found == "cannot be seen with this token"


def test_labels_that_are_missing_are_a_note(here: Place) -> None:
    del here.fake.world.labels["ralph:parked"], here.fake.world.labels["agent:claude"]
    check = here.checks()["labels"]
    assert (check.status, check.found) == ("note", "made when first needed: ralph:parked, agent:claude")


def test_a_label_that_people_set_has_to_be_there_before_they_can(here: Place) -> None:
    assert "label ralph-ready" not in here.checks()
    del here.fake.world.labels["ralph-ready"]
    check = here.checks()["label ralph-ready"]
    assert check.status == "note" and "gh label create ralph-ready" in check.mend


def test_labels_are_looked_for_on_every_page(here: Place) -> None:
    for number in range(150):
        here.fake.world.label(f"a{number}")
    assert here.checks()["labels"].status == "ok"
