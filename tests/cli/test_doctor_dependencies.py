"""`ralph doctor`: dependencies are looked after, not configured, or broken with the mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import packages_world as world
from tests.fakes.registry import Registry, serving
from tests.helpers import cli_here, make_repo

CONFIG = "observers: {dependencies: {}}\n"


def lines(tmp_path: Path, files: dict[str, str], registry: Registry) -> list[tuple[str, str, str]]:
    told = {"OSV_API_URL": registry.url, "PIP_INDEX_URL": registry.index, "npm_config_registry": registry.node}
    found = cli_here("doctor", "--json", repo=make_repo(tmp_path / "repo", files), env=told).json["checks"]
    return [(c["status"], c["found"], c["mend"]) for c in found if c["name"] == "dependencies"]


def test_ready(tmp_path: Path) -> None:
    with serving(world.young()) as registry:
        found = lines(tmp_path, {"requirements.txt": "buoy==1.4.2\n", "ralph.yml": CONFIG}, registry)
    assert found == [("ok", "ready: 1 package in 1 file", "")]
    assert [path for _, path, _ in registry.journal] == ["/simple/buoy/", "/v1/querybatch"]


def test_a_package_manager_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.packages.managers.find_program", lambda manager: "")
    with serving(world.young()) as registry:
        files = {"package.json": world.PACKAGE_JSON, "yarn.lock": world.yarn_lock(registry), "ralph.yml": CONFIG}
        _, (status, found, mend) = lines(tmp_path, files, registry)
    assert (status, mend) == ("note", "install yarn")
    assert found == "yarn is not installed: updates of yarn.lock are told, not made"


def test_not_configured_asks_nobody(tmp_path: Path) -> None:
    with serving(world.young()) as registry:
        ((status, found, _),) = lines(tmp_path, {"requirements.txt": "buoy==1.4.2\n"}, registry)
    assert (status, found, registry.journal) == ("note", "not configured", [])


@pytest.mark.parametrize(
    ("files", "broken", "why"),
    [
        ({"requirements.txt": "buoy==1.4.2\n"}, "/simple/", "the registry answers 500 for buoy"),
        ({"requirements.txt": "buoy==1.4.2\n"}, "/v1/", "OSV does not answer as it should (status 500)"),
        ({"uv.lock": "[["}, "", "uv.lock cannot be read"),
    ],
)
def test_broken_with_the_mend(tmp_path: Path, files: dict[str, str], broken: str, why: str) -> None:
    with serving(world.young()) as registry:
        registry.broken |= {broken} - {""}
        ((status, found, mend),) = lines(tmp_path, {**files, "ralph.yml": CONFIG}, registry)
    assert (status, found) == ("wrong", f"broken: {why}") and mend
