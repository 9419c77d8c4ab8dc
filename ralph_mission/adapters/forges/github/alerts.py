"""GitHub's security alerts: Dependabot, code scanning, secret scanning, each if the token may read them.

Kinds that are unreadable or switched off are requested again a day later: that is the owner's choice, not a fault.
Secrets are requested without their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import WireModel, read
from ralph_mission.errors import UserError
from ralph_mission.mission.model.alerts import AlertKind, SecurityAlert

PATHS: Mapping[AlertKind, str] = {
    "dependency": "/dependabot/alerts?state=open&per_page=100",
    "code": "/code-scanning/alerts?state=open&per_page=100",
    "secret": "/secret-scanning/alerts?state=open&hide_secret=true&per_page=100",
}
MOST = 300  # alerts of one kind
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


def security_alerts(api: Api, kind: AlertKind, now: datetime) -> tuple[SecurityAlert, ...] | None:
    """Open alerts, newest first; None if unreadable. Raises UserError if GitHub does not answer."""
    refused = f"no {kind} alerts"
    with suppress(TypeError, ValueError):
        if timedelta(0) <= now - datetime.fromisoformat(api.kept.get(refused)) < REFUSED:
            return None
    found: list[Any] = []
    try:
        for page in api.pages(PATHS[kind]):
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
        return SecurityAlert(kind, wire.number, wire.html_url, rule.description, _severity(severity), rule.id or "")
    name = wire.secret_type_display_name or wire.secret_type or "a secret"
    return SecurityAlert(kind, wire.number, wire.html_url, name, "critical")


def _severity(level: str) -> str:
    return level if level in SEVERITIES else ""
