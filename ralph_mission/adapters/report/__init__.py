"""Output for people and machines: progress during a cycle, the summary after it, the dashboard in between."""

from __future__ import annotations

from typing import Any


def to_document(report: object) -> dict[str, Any]:
    """A report as plain JSON values; times in UTC with `Z`."""
    from pydantic import TypeAdapter

    document: dict[str, Any] = TypeAdapter(type(report)).dump_python(report, mode="json")
    return document
