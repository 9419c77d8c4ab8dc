"""Alerts as GitHub lists them, for tests to put into the fake."""

from __future__ import annotations

from typing import Any

AT = "2026-03-01T00:00:00Z"
PAGE = "https://forge.example.org/harbour/pilot/security"


def dependabot_alert(number: int, package: str, affected: str, fixed: str = "", **changes: Any) -> dict[str, Any]:
    """One about a package of npm in package-lock.json."""
    ecosystem = changes.pop("ecosystem", "npm")
    severity = changes.pop("severity", "high")
    ghsa = f"GHSA-aaaa-bbbb-{number:04}"
    named = {"ecosystem": ecosystem, "name": package}
    versions = {
        "package": named,
        "severity": severity,
        "vulnerable_version_range": affected,
        "first_patched_version": {"identifier": fixed} if fixed else None,
    }
    advisory = {
        "ghsa_id": ghsa,
        "cve_id": f"CVE-2026-{number:04}",
        "summary": f"{package} lets anybody in",
        "description": "At length.",
        "vulnerabilities": [versions],
        "severity": severity,
        "cvss": {"score": 7.5, "vector_string": None},
        "cwes": [],
        "identifiers": [{"type": "GHSA", "value": ghsa}],
        "references": [],
        "published_at": AT,
        "updated_at": AT,
        "withdrawn_at": None,
    }
    return {
        "number": number,
        "state": "open",
        "dependency": {"package": named, "manifest_path": "package-lock.json", "scope": "runtime"},
        "security_advisory": advisory,
        "security_vulnerability": versions,
        "url": f"{PAGE}/api/dependabot/{number}",
        "html_url": f"{PAGE}/dependabot/{number}",
        "created_at": AT,
        "updated_at": AT,
        "dismissed_at": None,
        "dismissed_by": None,
        "dismissed_reason": None,
        "dismissed_comment": None,
        "fixed_at": None,
        **changes,
    }


def code_alert(number: int, rule: str, level: str | None, severity: str = "error", **changes: Any) -> dict[str, Any]:
    """One of a scanner of code."""
    return {
        "number": number,
        "created_at": AT,
        "url": f"{PAGE}/api/code-scanning/{number}",
        "html_url": f"{PAGE}/code-scanning/{number}",
        "instances_url": f"{PAGE}/api/code-scanning/{number}/instances",
        "state": "open",
        "dismissed_by": None,
        "dismissed_at": None,
        "dismissed_reason": None,
        "rule": {
            "id": rule,
            "name": rule,
            "severity": severity,
            "security_severity_level": level,
            "description": f"What {rule} looks for",
        },
        "tool": {"name": "CodeQL", "guid": None, "version": "2"},
        "most_recent_instance": {
            "ref": "refs/heads/main",
            "state": "open",
            "commit_sha": "a" * 40,
            "location": {"path": "src/login.py", "start_line": 7, "end_line": 7, "start_column": 1, "end_column": 9},
        },
        **changes,
    }


def secret_alert(number: int, value: str, **changes: Any) -> dict[str, Any]:
    """A secret that somebody committed."""
    return {
        "number": number,
        "created_at": AT,
        "url": f"{PAGE}/api/secret-scanning/{number}",
        "html_url": f"{PAGE}/secret-scanning/{number}",
        "state": "open",
        "secret_type": "harbour_key",
        "secret_type_display_name": "Harbour API key",
        "secret": value,
        **changes,
    }
