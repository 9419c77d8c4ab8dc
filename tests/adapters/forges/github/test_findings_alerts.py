"""Security alerts of GitHub: read where the token may, silently left where not, and never the value of a secret."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers.forge import AlertObserver
from ralph_mission.mission.model.forge import AlertKind, Branch
from ralph_mission.mission.model.mission import Severity
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.forges.github.alerts import code_alert, dependabot_alert, secret_alert
from tests.adapters.forges.github_world import GitHubWorld

VALUE = "hk_live_a1b2c3d4e5f6"


def observe(world: GitHubWorld):
    context = ObservationContext(Branch("main", ""), world.fake.clock.now, None, "", "")
    return AlertObserver(world.forge).observe(context)


def switch_on(world: GitHubWorld, **alerts: list) -> None:
    world.fake.world.alerts |= {name.replace("_", "-"): found for name, found in alerts.items()}
    world.token = world.fake.token("mara")
    world.forge = world.connected()


def test_an_open_alert_of_code_is_neither_closed_nor_dismissed(world: GitHubWorld) -> None:
    switch_on(world, code_scanning=[code_alert(1, "sql", "high")])
    (one,) = world.forge.security_alerts("code") or ()
    assert (one.closed_at, one.dismissed) == (None, False)


def test_alerts_of_dependabot_name_package_range_and_advisory(world: GitHubWorld) -> None:
    switch_on(world, dependabot=[dependabot_alert(3, "lantern", ">= 3.0.0, < 3.2.0", "3.2.0")])
    (one,) = world.forge.security_alerts("dependency") or ()
    assert (one.ecosystem, one.package, one.path) == ("npm", "lantern", "package-lock.json")
    assert (one.affected, one.fixed, one.severity) == (">= 3.0.0, < 3.2.0", "3.2.0", "high")
    assert (one.advisory, one.aliases) == ("GHSA-aaaa-bbbb-0003", ("CVE-2026-0003",))


def test_the_value_of_a_secret_is_neither_asked_for_nor_kept_nor_said(world: GitHubWorld) -> None:
    switch_on(world, secret_scanning=[secret_alert(4, VALUE)])
    seen = observe(world)
    (one,) = seen.signals
    assert one.title == "Secret scanning found a secret of the kind Harbour API key"
    assert (one.kind, one.severity, one.path) == ("security-alert", Severity.HIGH, "")
    asked = [request.query for request in world.fake.journal if "secret-scanning" in request.path]
    assert asked and all(query["hide_secret"] == "true" for query in asked)
    world.forge.close()
    kept = b"".join(file.read_bytes() for file in world.clone.rglob("*") if file.is_file())
    assert VALUE not in repr(seen) and VALUE.encode() not in kept


def test_a_secret_that_is_sent_all_the_same_is_dropped_before_it_is_kept(
    world: GitHubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.fakes.github.endpoints import alerts

    monkeypatch.setattr(alerts, "HIDES", False)
    switch_on(world, secret_scanning=[secret_alert(4, VALUE)])
    assert VALUE not in repr(observe(world))
    world.forge.close()
    kept = b"".join(file.read_bytes() for file in world.clone.rglob("*") if file.is_file())
    assert VALUE.encode() not in kept


def test_code_scanning_is_told_by_rule_the_grave_ones_ask_and_no_place_is_said(world: GitHubWorld) -> None:
    found = [code_alert(7, "sql", "critical"), code_alert(6, "sql", "critical"), code_alert(5, "style", None, "note")]
    switch_on(world, code_scanning=found)
    seen = observe(world)
    told = [(one.kind, one.title, one.severity) for one in seen.signals]
    assert sorted(told) == [
        ("code-alert", "Code scanning: What style looks for, 1 alert", Severity.LOW),
        ("security-alert", "Code scanning: What sql looks for, 2 alerts", Severity.HIGH),
    ]
    assert "login.py" not in repr(seen)


@pytest.mark.parametrize("kind", ["dependency", "code", "secret"])
def test_what_may_not_be_read_is_asked_for_once_a_day(world: GitHubWorld, kind: AlertKind) -> None:
    assert world.forge.security_alerts(kind) is None
    before = len(world.fake.journal)
    assert world.forge.security_alerts(kind) is None and len(world.fake.journal) == before
    world.fake.clock.advance(2 * 86_400)
    world.forge = world.connected()
    assert world.forge.security_alerts(kind) is None and len(world.fake.journal) > before


def test_where_nothing_may_be_read_one_quiet_line_says_so(world: GitHubWorld) -> None:
    seen = observe(world)
    assert (seen.status, seen.signals, seen.complete) == ("ok", (), False)
    assert seen.detail == "the token may not read alerts, or there are none"
