"""The cycle report as a JSON document, and its published schema: the keys are a contract."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from ralph_mission.mission.account import CycleReport

REPORT: TypeAdapter[CycleReport] = TypeAdapter(CycleReport)


def to_document(report: CycleReport) -> dict[str, Any]:
    """The report as plain JSON values; moments in UTC with `Z`."""
    document: dict[str, Any] = REPORT.dump_python(report, mode="json")
    return document


def to_json(report: CycleReport) -> str:
    """The report as one line of JSON."""
    return REPORT.dump_json(report).decode()


def schema() -> dict[str, Any]:
    """The JSON Schema of `to_json`; every key is required and no other is allowed."""
    made = REPORT.json_schema(mode="serialization")
    for thing in (made, *made["$defs"].values()):
        if thing.get("type") == "object":
            thing["additionalProperties"] = False
            thing["required"] = list(thing["properties"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "cycle-report"}
