"""GitHub's security alerts: Dependabot, code scanning, secret scanning, each if the token may read them.

Kinds that are unreadable or switched off are requested again a day later: that is the owner's choice, not a fault.
Secrets are requested without their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import WireModel, read
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import AlertKind, SecurityAlert

PATHS: Mapping[AlertKind, str] = {
    "dependency": "/dependabot/alerts?per_page=100",
    "code": "/code-scanning/alerts?per_page=100",
    "secret": "/secret-scanning/alerts?hide_secret=true&per_page=100",
}
MOST = 300  # alerts of one kind
PAST = 2_000  # the same, with those that are closed
NOT_FIXED = ("false_positive", "wont_fix", "used_in_tests")  # resolutions of a secret
REFUSED = timedelta(days=1)
SEVERITIES = ("low", "medium", "high", "critical")


class NamedWire(WireModel):
    """A package, or the first fixed version."""

    ecosystem: str = ""
    name: str = ""
    identifier: str = ""


class DependencyWire(WireModel):
    """The dependency."""

    package: NamedWire = NamedWire()
    manifest_path: str = ""


class AdvisoryWire(WireModel):
    """The advisory."""

    ghsa_id: str = ""
    cve_id: str | None = None
    summary: str = ""
    severity: str = ""


class VulnerabilityWire(WireModel):
    """The affected versions."""

    vulnerable_version_range: str = ""
    first_patched_version: NamedWire | None = None


class AlertRuleWire(WireModel):
    """A code scanner's rule."""

    id: str | None = None
    description: str = ""
    severity: str | None = None
    security_severity_level: str | None = None


class AlertWire(WireModel):
    """An alert of any kind, as listed; without a field for a secret's value."""

    number: int
    html_url: str = ""
    dependency: DependencyWire = DependencyWire()
    security_advisory: AdvisoryWire = AdvisoryWire()
    security_vulnerability: VulnerabilityWire = VulnerabilityWire()
    rule: AlertRuleWire = AlertRuleWire()
    secret_type_display_name: str | None = None
    secret_type: str | None = None
    created_at: datetime | None = None
    fixed_at: datetime | None = None
    dismissed_at: datetime | None = None
    resolved_at: datetime | None = None
    resolution: str | None = None


def security_alerts(api: Api, kind: AlertKind, now: datetime) -> tuple[SecurityAlert, ...] | None:
    """Open alerts, newest first; None if unreadable. Raises UserError if GitHub does not answer."""
    refused = f"no {kind} alerts"
    with suppress(TypeError, ValueError):
        if timedelta(0) <= now - datetime.fromisoformat(api.kept.get(refused)) < REFUSED:
            return None
    found: list[Any] = []
    try:
        for page in api.pages(f"{PATHS[kind]}&state=open"):
            found += page
            if len(found) >= MOST:
                break
    except Absent:
        api.kept.put(refused, now.isoformat())
        return None
    except UserError as error:
        if error.who != "you":
            raise
        api.kept.put(refused, now.isoformat())
        return None
    return tuple(_alert(kind, wire) for wire in read(tuple[AlertWire, ...], found[:MOST]))


def past_alerts(api: Api, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
    """Every alert of a kind, also closed ones, newest first; None if unreadable. Raises UserError as above."""
    try:
        pages = list(islice(api.pages(PATHS[kind]), PAST // 100))
    except Absent:
        return None
    except UserError as error:
        if error.who != "you":
            raise
        return None
    return tuple(_alert(kind, wire) for page in pages for wire in read(tuple[AlertWire, ...], page))


def _alert(kind: AlertKind, wire: AlertWire) -> SecurityAlert:
    if kind == "dependency":
        advisory, versions = wire.security_advisory, wire.security_vulnerability
        return SecurityAlert(
            kind,
            wire.number,
            wire.html_url,
            advisory.summary,
            _severity(advisory.severity),
            ecosystem=wire.dependency.package.ecosystem,
            package=wire.dependency.package.name,
            path=wire.dependency.manifest_path,
            affected=versions.vulnerable_version_range,
            fixed=versions.first_patched_version.identifier if versions.first_patched_version else "",
            advisory=advisory.ghsa_id,
            aliases=(advisory.cve_id,) if advisory.cve_id else (),
        )
    if kind == "code":
        rule = wire.rule
        severity = rule.security_severity_level or {"error": "medium", "warning": "low"}.get(rule.severity or "", "")
        return SecurityAlert(
            kind, wire.number, wire.html_url, rule.description, _severity(severity), rule.id or "",
            created_at=wire.created_at, closed_at=wire.fixed_at or wire.dismissed_at,
            dismissed=wire.fixed_at is None and wire.dismissed_at is not None,
        )  # fmt: skip  # one value
    name = wire.secret_type_display_name or wire.secret_type or "a secret"
    return SecurityAlert(
        kind, wire.number, wire.html_url, name, "critical",
        created_at=wire.created_at, closed_at=wire.resolved_at, dismissed=wire.resolution in NOT_FIXED,
    )  # fmt: skip  # one value


def _severity(level: str) -> str:
    return level if level in SEVERITIES else ""
