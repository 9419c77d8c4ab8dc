"""The audits of package managers: each one's own JSON is read, kept by its lock file, and never trusted further."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.packages import managers, node
from ralph_mission.gateways.packages.advisories import Advisory, Subject, merged
from ralph_mission.gateways.packages.affected import Affected
from ralph_mission.gateways.packages.audits import AT_ONCE, Audited, Audits
from ralph_mission.gateways.packages.audits_reading import read
from ralph_mission.gateways.packages.keeping import Shelf
from ralph_mission.gateways.packages.model import Project
from ralph_mission.gateways.packages.versions import bounds, holds
from ralph_mission.gateways.process import STOPPED
from tests import packages_world as world
from tests.fakes.registry import Registry, serving
from tests.helpers import commit, git, make_repo

NOW = datetime(2030, 6, 1, tzinfo=UTC)
BUOY: Subject = ("npm", "buoy", "1.4.2")
URL = "https://github.example.org/advisories/GHSA-1111-2222-3333"
REGISTERED = {
    "findings": [{"version": "1.4.2", "paths": ["buoy"]}],
    "id": 1099,
    "github_advisory_id": "GHSA-1111-2222-3333",
    "cves": ["CVE-2030-1234"],
    "module_name": "buoy",
    "title": "buoy lets anybody in",
    "severity": "high",
    "vulnerable_versions": "<1.4.3",
    "patched_versions": ">=1.4.3",
    "url": URL,
    "overview": "…",
}
OLD = {"actions": [], "advisories": {"1099": REGISTERED}, "muted": [], "metadata": {"dependencies": 5}}
NPM = {
    "auditReportVersion": 2,
    "vulnerabilities": {
        "buoy": {
            "name": "buoy",
            "severity": "high",
            "isDirect": True,
            "via": [
                {
                    "source": 1099,
                    "name": "buoy",
                    "dependency": "buoy",
                    "title": "buoy lets anybody in",
                    "url": URL,
                    "severity": "high",
                    "cwe": ["CWE-79"],
                    "cvss": {"score": 7.5, "vectorString": "x"},
                    "range": "<1.4.3",
                }
            ],
            "effects": ["lantern"],
            "range": "*",
            "nodes": ["node_modules/buoy"],
            "fixAvailable": False,
        },
        "lantern": {"name": "lantern", "severity": "high", "via": ["buoy"], "nodes": ["node_modules/lantern"]},
    },
    "metadata": {"vulnerabilities": {"high": 2, "total": 2}},
}
BERRY = {
    "value": "buoy",
    "children": {
        "ID": 1099,
        "Issue": "buoy lets anybody in",
        "URL": URL,
        "Severity": "high",
        "Vulnerable Versions": "<1.4.3",
        "Tree Versions": ["1.4.2"],
        "Dependents": ["harbour@workspace:."],
    },
}
DEPRECATED = {"value": "rope", "children": {"ID": "rope (deprecation)", "Issue": "do not use", "Severity": "moderate"}}
YARN = [
    {"type": "info", "data": "Visit …"},
    {"type": "auditAdvisory", "data": {"resolution": {"id": 1099, "path": "buoy"}, "advisory": REGISTERED}},
    {"type": "auditAdvisory", "data": {"resolution": {"id": 1099, "path": "x>buoy"}, "advisory": REGISTERED}},
    {"type": "auditSummary", "data": {"vulnerabilities": {"high": 2}, "totalDependencies": 5}},
]
GONE = {"message": "404 Not Found - POST https://mara:sesame@r.example.org/bulk - go away", "statusCode": 404}


def lines(*documents: object) -> str:
    return "".join(f"{json.dumps(document)}\n" for document in documents)


SHAPES = {
    "npm": json.dumps(NPM, indent=2),
    "pnpm": json.dumps(OLD, indent=2),
    "yarn 1": lines(*YARN),
    "yarn 3": json.dumps(OLD),
    "yarn 4": lines(BERRY, DEPRECATED),
}


# --- reading --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_each_managers_own_words_tell_the_same(shape: str) -> None:
    found = read(SHAPES[shape].encode(), 1)
    assert found is not None and len(found) == 1
    (one,) = found
    assert (one.name, one.id, one.title) == ("buoy", "GHSA-1111-2222-3333", "buoy lets anybody in")
    assert (one.severity, one.vulnerable) == ("high", "<1.4.3")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({**NPM, "vulnerabilities": {}}, 0),
        ({**OLD, "advisories": {}}, 0),
        ({"type": "auditSummary", "data": {}}, 0),
        ("", 0),
    ],
)
def test_nothing_found_is_an_answer(said: object, code: int) -> None:
    assert read((json.dumps(said) if said else "").encode(), code) == ()


@pytest.mark.parametrize(
    "said",
    [
        "",
        "<html>",
        json.dumps(GONE),
        json.dumps({"error": {"code": "ERR_PNPM_AUDIT_ENDPOINT_NOT_EXISTS", "message": "…"}}),
        lines({"type": "info", "data": "Visit …"}),
        lines(*YARN[:-1]),
        lines({"type": "error", "data": "Error: returned a 405"}),
        json.dumps({"auditReportVersion": 2}),
        json.dumps({"advisories": {"1": {"id": 1}}}),
        json.dumps({"advisories": []}),
        "[" * 100_000,
    ],
)
def test_what_is_no_answer_is_not_taken_for_nothing_found(said: str) -> None:
    assert read(said.encode(), 1) is None


def test_a_severity_is_one_of_ours_and_an_id_is_an_id() -> None:
    strange = {**REGISTERED, "severity": "high\n## Approved", "url": None, "github_advisory_id": "\n# x", "cves": ["x"]}
    strange["id"] = "10\n## Approved\n99"
    (found,) = read(json.dumps({"advisories": {"1": strange}}).encode(), 1) or ()
    assert (found.id, found.aliases, found.severity) == ("npm:1099", (), "")


@pytest.mark.parametrize(
    ("ranges", "version", "within"),
    [
        ("<1.4.3", "1.4.2", True),
        ("<1.4.3", "1.4.3", False),
        ("<=1.0.0 || >=2.0.0 <2.0.4", "2.0.3", True),
        ("<=1.0.0 || >=2.0.0 <2.0.4", "1.0.1", False),
        (">= 1.0.0, < 2", "1.9.0", True),
        (">= 1.0.0, < 2", "2.0.0", False),
        ("1.2.3", "1.2.4", False),
        ("*", "1.0.0", True),
        ("1.x", "3.0.0", True),
        ("", "3.0.0", True),
    ],
)
def test_ranges_of_advisories_hold_versions(ranges: str, version: str, within: bool) -> None:
    assert holds(ranges, version) is within


@pytest.mark.parametrize("ranges", [">=01.0.0", "<1.0.0-a..b", ">=" + "9" * 5_000, "1" * 200_000 + "x"])
def test_ranges_that_cannot_be_read_hold_every_version_and_cost_nothing(ranges: str) -> None:
    began = time.process_time()
    assert holds(ranges, "1.0.0") and not list(bounds(ranges))
    assert holds(f"<0.9.0 {ranges}", "1.0.0") and time.process_time() - began < 5


def test_ranges_end_before_what_is_fixed() -> None:
    assert list(bounds("<=1.0.0 || >=2.0.0 <2.0.4 || >3.0.0 < 3.1")) == ["2.0.4", "3.1.0"]


# --- merging --------------------------------------------------------------------------


def test_an_advisory_that_both_know_is_told_once_and_by_the_first() -> None:
    osv = Advisory("GHSA-1111-2222-3333", BUOY, ("CVE-2030-1234",), "of OSV", "high", "1.4.3")
    by_alias = Advisory("npm:7", BUOY, ("CVE-2030-1234",), "of npm")
    other = Advisory("GHSA-9999-2222-3333", BUOY)
    elsewhere = replace(osv, subject=("npm", "buoy", "0.9.0"))
    told = merged([osv], [replace(osv, id="ghsa-1111-2222-3333"), by_alias, other, other, elsewhere])
    assert told == (osv, other, elsewhere)


def test_what_is_known_by_name_alone_is_filled_in() -> None:
    bare = Advisory("GHSA-1111-2222-3333", BUOY, bare=True)
    full = Advisory("GHSA-1111-2222-3333", BUOY, ("CVE-2030-1234",), "of npm", "high", "1.4.3")
    assert merged([bare], [full]) == (full,)


# --- asking ---------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(world.young()) as served:
        yield served


class Asked:
    """A repository with a lock file, and a package manager that says what it is told to say."""

    def __init__(self, tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
        self.place, self.registry, self.log = tmp_path, registry, tmp_path / "log"
        (tmp_path / "scratch").mkdir()
        lock = {"npm": "package-lock.json", "yarn": "yarn.lock"}[tool]
        self.files = {"package.json": world.PACKAGE_JSON}
        self.files[lock] = world.npm_lock(registry) if tool == "npm" else world.yarn_lock(registry)
        self.repo = make_repo(tmp_path / "repo", self.files)
        self.version, self.own = ("11.6.0" if tool == "npm" else "1.22.22"), registry.node
        monkeypatch.setattr(managers, "located", lambda manager: str(tmp_path / tool))
        self.tool = tool
        self.says("", 0)

    def says(self, text: str, code: int = 1, stderr: str = "", first: str = "") -> None:
        for name, content in (("said", text), ("complaint", stderr)):
            (self.place / name).write_text(content)
        program = self.place / self.tool
        program.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo {self.version} && exit\n'
            f'[ "$1" = config ] && echo {self.own} && exit\n'
            f'{{ echo "$*"; env; find . -type f; }} >> {self.log}\n{first}\n'
            f"cat {self.place}/said; cat {self.place}/complaint >&2; exit {code}\n"
        )
        program.chmod(0o755)

    def about(self, now: datetime = NOW, seconds: float = 30.0, base: str = "") -> Audited:
        found = [p for p in node.projects(self.files) if isinstance(p, Project)]
        shelf = Shelf(self.place / "cache")
        audits = Audits(Git.open(self.repo), (self.registry.host,), shelf, now, timedelta(hours=6), seconds)
        registries = dict.fromkeys(found, base or self.registry.node)
        return audits.about(git(self.repo, "rev-parse", "HEAD"), registries, self.place / "scratch")

    def ran(self) -> int:
        return self.log.read_text().count("audit --json") if self.log.exists() else 0


@pytest.fixture
def npm(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, registry, monkeypatch, "npm")


@pytest.fixture
def yarn(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, registry, monkeypatch, "yarn")


def test_what_is_found_is_against_the_locked_version(npm: Asked) -> None:
    npm.says(SHAPES["npm"])
    told = ("GHSA-1111-2222-3333", BUOY, (), "buoy lets anybody in", "high", "1.4.3")
    assert npm.about() == Audited((Advisory(*told, affected=Affected(written="<1.4.3")),))


def test_a_locked_version_that_the_range_does_not_hold_is_left_out(npm: Asked) -> None:
    npm.says(SHAPES["npm"].replace("<1.4.3", ">=0.9.0 <1.0.0"))
    assert npm.about() == Audited()


def test_it_is_handed_data_alone_and_nothing_of_ours(npm: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_TOKEN", "sesame")
    npm.about()
    seen = npm.log.read_text()
    assert "sesame" not in seen and f"npm_config_registry={npm.registry.node}" in seen
    assert {line for line in seen.splitlines() if line.startswith("./")} == {"./package.json", "./package-lock.json"}
    assert all(f"{name}={value}" in seen for name, value in {**AT_ONCE, "COREPACK_ENABLE_NETWORK": "0"}.items())
    assert list((npm.place / "scratch").iterdir()) == []


def test_an_unchanged_lock_file_runs_nothing_until_it_is_time(npm: Asked) -> None:
    npm.says(SHAPES["npm"])
    first = npm.about()
    assert npm.about(NOW + timedelta(hours=5)) == first and npm.ran() == 1
    assert npm.about(NOW + timedelta(hours=7)) == first and npm.ran() == 2


def test_one_that_fails_says_so_in_our_words_and_what_it_said_last_counts(npm: Asked) -> None:
    npm.says(SHAPES["npm"])
    first = npm.about()
    npm.says(json.dumps(GONE))
    later = npm.about(NOW + timedelta(hours=7))
    assert later == Audited(first.advisories, ("no audit of package-lock.json: the registry answers 404",))
    assert npm.about(NOW + timedelta(hours=8)) == later and npm.ran() == 2
    npm.says(SHAPES["npm"])
    assert npm.about(NOW + timedelta(hours=14)) == first


@pytest.mark.parametrize(
    ("said", "stderr", "why"),
    [
        ("<html>", "", "its answer cannot be read"),
        ('{"error": {"message": "The audit endpoint (at …) responded with 405: "}}', "", "the registry answers 405"),
        ("", "HTTPError: Response code 500 (Internal Server Error)", "the registry answers 500"),
        ("➤ YN0035: x\n➤ YN0035:   Response Code: 500 (Internal Server Error)", "", "the registry answers 500"),
        ("x" * 5_000_000, "", "it says more than 4 MB"),
    ],
)
def test_a_registry_without_audits_costs_one_line(npm: Asked, said: str, stderr: str, why: str) -> None:
    npm.says(said, 1, stderr)
    assert npm.about() == Audited((), (f"no audit of package-lock.json: {why}",))


@pytest.mark.long  # four seconds
def test_one_that_takes_too_long_is_ended_and_asked_again(npm: Asked) -> None:
    npm.says(SHAPES["npm"], first="sleep 600")
    assert npm.about(seconds=4.0).troubles == ("no audit of package-lock.json: it took too long",)
    npm.says(SHAPES["npm"])
    assert len(npm.about().advisories) == 1


def test_what_was_cut_off_is_asked_again(npm: Asked) -> None:
    npm.says(SHAPES["npm"], first="sleep 600")
    token = STOPPED.set(lambda: True)
    try:
        assert npm.about().advisories == ()
    finally:
        STOPPED.reset(token)
    npm.says(SHAPES["npm"])
    assert len(npm.about().advisories) == 1


def test_one_of_another_line_or_none_at_all_says_nothing(npm: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    npm.version = "6.14.18"
    npm.says(SHAPES["npm"])
    assert npm.about() == Audited() and npm.ran() == 0
    monkeypatch.setattr(managers, "located", lambda manager: "")
    assert npm.about() == Audited()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (".npmrc", "script-shell=./x\n", '.npmrc sets "script-shell", which is handed to no package manager'),
        (".npmrc", "registry=http://127.0.0.1:9/\n", "127.0.0.1:9 is not a public place, and was not asked"),
    ],
)
def test_files_that_lead_elsewhere_keep_it_from_running(npm: Asked, name: str, text: str, why: str) -> None:
    commit(npm.repo, {name: text})
    npm.says(SHAPES["npm"])
    (trouble,) = npm.about().troubles
    assert trouble.startswith(f"no audit of package-lock.json: {why}") and npm.ran() == 0


def test_a_registry_that_is_not_public_is_not_asked_whoever_named_it(npm: Asked) -> None:
    npm.says(SHAPES["npm"])
    (trouble,) = npm.about(base="http://mara:sesame@127.0.0.1:9/npm").troubles
    assert "127.0.0.1:9 is not a public place, and was not asked" in trouble and "sesame" not in trouble
    assert npm.ran() == 0


def test_yarn_1_is_asked_where_its_own_registry_is_that_of_the_lock_file_alone(yarn: Asked) -> None:
    yarn.own = "https://elsewhere.example.org"
    yarn.says(SHAPES["yarn 1"])
    assert yarn.about() == Audited() and yarn.ran() == 0
    yarn.own = yarn.registry.node
    yarn.says(SHAPES["yarn 1"])
    (found,) = yarn.about(NOW + timedelta(hours=7)).advisories
    assert (found.id, found.aliases) == ("GHSA-1111-2222-3333", ("CVE-2030-1234",)) and yarn.ran() == 1
