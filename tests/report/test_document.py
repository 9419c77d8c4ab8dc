"""The cycle report's document: exact keys, and a schema that it obeys."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from ralph_mission.report.document import schema, to_document, to_json
from tests.report.samples import REPORT

KEYS = (
    "schema_version cycle cycle_id outcome trigger staged started_at finished_at observers findings missions "
    "decisions effects urgency next_due_at usage"
).split()


def test_the_keys_are_the_contract() -> None:
    assert list(to_document(REPORT)) == KEYS
    assert list(to_document(REPORT)["missions"][0]) == "id title status issue pull_request started_cycle".split()
    assert list(to_document(REPORT)["usage"]) == "model_calls input_tokens output_tokens cost_usd".split()


def test_moments_are_utc_with_z() -> None:
    assert to_document(REPORT)["started_at"] == "2026-05-04T12:00:00Z"


def test_both_forms_say_the_same() -> None:
    assert json.loads(to_json(REPORT)) == to_document(REPORT)


def test_a_report_obeys_the_schema() -> None:
    for report in (REPORT, replace(REPORT, next_due_at=None, outcome="lost")):
        jsonschema.Draft202012Validator(schema()).validate(to_document(report))


@pytest.mark.parametrize("path", [(), ("missions", 0), ("observers", 0), ("usage",)])
def test_an_unknown_key_breaks_the_schema(path: tuple[str | int, ...]) -> None:
    document = to_document(REPORT)
    place = document
    for step in path:
        place = place[step]  # type: ignore[index]  # JSON
    place["extra"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_breaks_the_schema(key: str) -> None:
    document = to_document(REPORT)
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())
