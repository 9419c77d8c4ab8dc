"""What OSSF Scorecard looks at, as far as a checkout can tell; each test is named after its check.

Not to be told from here: Branch-Protection, Code-Review, Contributors, Maintained, Webhooks and CII-Best-Practices are
settings and history on GitHub; Vulnerabilities asks a database of advisories.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.action.runner import ROOT
from tests.supply.workflows import FLOWS, jobs, steps

BINARY = re.compile(
    r"\.(apk|bundle|class|crx|deb|dex|dey|dll|drv|dylib|efi|elf|exe|iso|jar|lib|macho|msi|o|a|ocx|par|pyc|pyo|rpm|so|wasm|whl)$"
)
MAGIC = (b"\x7fELF", b"MZ\x90", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm")
WRITES = {
    "codeql/analyse": {"security-events"},
    "ralph-loop/cycle": {"contents", "issues", "pull-requests"},
    "ralph-publish/publish": {"contents", "issues"},
    "ralph-review/review": {"contents", "issues", "pull-requests"},
    "ralph-work/work": {"contents", "issues", "pull-requests"},
    "release/attest": {"attestations", "id-token"},
    "release/github": {"contents"},
    "release/index": {"id-token"},
    "site/deploy": {"id-token", "pages"},
}
INSTALLING = re.compile(
    r"pip3? install|[\"']pip[\"'].*[\"']install[\"']|npm (ci|install)|uv (sync|tool|add|pip install)|uvx|npx"
)
STRANGERS = re.compile(r"github\.event\.|github\.head_ref|github\.ref_name|inputs\.|client_payload")


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")  # nothing is listed there
    return [path for name in listing.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def test_binary_artifacts() -> None:
    found = [path for path in tracked() if BINARY.search(path.name)]
    for path in tracked():
        with path.open("rb") as file:
            found += [path] if file.read(4).startswith(MAGIC) else []
    assert found == []


def test_dangerous_workflow() -> None:
    triggers = {name: set(flow["on"]) for name, flow in FLOWS.items()}
    assert not [name for name, on in triggers.items() if on & {"pull_request_target", "workflow_run"}]
    for name, step in steps():
        assert "${{" not in step.get("run", ""), (name, step)
        assert "head" not in step.get("with", {}).get("ref", ""), (name, step)


def test_a_comment_starts_only_jobs_that_ask_who_wrote_it_and_check_out_nothing_of_it() -> None:
    """Anybody may comment; Scorecard itself has no objection to the event, which runs the default branch's workflow."""
    commented = [(name, job) for name, flow in FLOWS.items() if "issue_comment" in flow["on"] for job in flow["jobs"]]
    assert commented == [("ralph-loop", "cycle"), ("ralph-review", "review")]
    member = """contains(fromJSON('["OWNER", "MEMBER", "COLLABORATOR"]'), github.event.comment.author_association)"""
    for name, which in commented:
        job = FLOWS[name]["jobs"][which]
        (asked,) = (part for part in job["if"].split("||") if "github.event_name == 'issue_comment'" in part)
        assert member in asked
        refs = [step["with"]["ref"] for step in job["steps"] if "actions/checkout@" in step["uses"]]
        assert refs == ["${{ github.event.repository.default_branch }}"]


def test_what_strangers_name_never_becomes_a_script() -> None:
    for name, step in steps():
        assert not STRANGERS.search(step.get("run", "")), (name, step)
        assert "github-script" not in step.get("uses", ""), (name, step)


def test_token_permissions() -> None:
    assert {name: flow["permissions"] for name, flow in FLOWS.items()} == {name: {} for name in FLOWS}
    granted = {name: job["permissions"] for name, job in jobs()}
    assert {scope for given in granted.values() for scope in given.values()} <= {"read", "write"}
    writing = {name: {scope for scope, how in given.items() if how == "write"} for name, given in granted.items()}
    assert {name: scopes for name, scopes in writing.items() if scopes} == WRITES


def test_pinned_dependencies() -> None:
    used = [step["uses"] for _, step in steps() if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"\./|[\w./-]+@[0-9a-f]{40}", one)] == []
    assert not [name for name, job in jobs() if "container" in job or "services" in job]


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "scripts").rglob("*.*")), *sorted((ROOT / ".ci").iterdir())],
    ids=lambda path: path.name,
)
def test_what_a_script_installs_is_held_against_hashes(path: Path) -> None:
    if path.suffix == ".pyc":
        pytest.skip("compiled")  # of a script that is looked at
    text = path.read_text()
    if INSTALLING.search(text) or '"install"' in text:
        assert "--require-hashes" in text and ":all:" in text and "--only-binary" in text
        assert '"ci"' not in text or "--ignore-scripts" in text


def test_what_a_workflow_installs_is_held_against_hashes() -> None:
    asked = [step["run"] for _, step in steps() if INSTALLING.search(step.get("run", ""))]
    assert asked and not [run for run in asked if "--require-hashes --only-binary=:all: --no-deps" not in run]


def test_a_package_of_node_is_held_against_hashes_and_runs_nothing_when_it_is_installed() -> None:
    text = (ROOT / "scripts" / "node.py").read_text()
    assert '"ci", "--ignore-scripts"' in text
    lock = yaml.safe_load((ROOT / "tests" / "real" / "node" / "package-lock.json").read_text())
    packages = [one for place, one in lock["packages"].items() if place and not one.get("link")]
    assert packages and not [one for one in packages if "integrity" not in one and not one.get("inBundle")]


def test_dependency_update_tool() -> None:
    config = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())
    asked = {(one["package-ecosystem"], one["directory"]): one for one in config["updates"]}
    assert set(asked) == {("github-actions", "/"), ("pip", "/"), ("npm", "/tests/real/node")}
    for one in asked.values():
        assert one["schedule"]["interval"] == "weekly" and one["cooldown"]["default-days"] >= 7
        assert "insecure-external-code-execution" not in one


def test_license() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()
    assert (project["license"], project["license-files"]) == ("MIT", ["LICENSE"])
    assert text.startswith("MIT License\n\nCopyright (c)") and "WITHOUT WARRANTY OF ANY KIND" in text


def test_security_policy() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for words in ("Report a vulnerability", "within a week", "Supported versions", "gh attestation verify"):
        assert words in text, words
    assert not re.search(r"[\w.]+@[\w-]+\.\w+", text), "an address that nobody reads is worse than none"


def test_sast() -> None:
    flow = FLOWS["codeql"]
    assert {"push", "pull_request", "schedule"} <= set(flow["on"])
    (job,) = flow["jobs"].values()
    assert job["strategy"]["matrix"]["language"] == ["python", "actions"]
    assert [step["uses"].split("@")[0] for step in job["steps"]][1:] == [
        "github/codeql-action/init",
        "github/codeql-action/analyze",
    ]


def test_fuzzing() -> None:
    asking = [path for path in (ROOT / "tests").rglob("test_*.py") if "from hypothesis import" in path.read_text()]
    floors = {path.relative_to(ROOT / "tests").parts[0] for path in asking}
    assert {"safety", "mission", "loop"} <= floors


def test_packaging() -> None:
    assert FLOWS["release"]["on"] == {"push": {"tags": ["v*.*.*"]}}
    runs = [step.get("run", "") for step in FLOWS["release"]["jobs"]["index"]["steps"]]
    assert runs[-1] == "uv publish --no-config --trusted-publishing always dist/*.whl dist/*.tar.gz"


def test_signed_releases() -> None:
    attested = [step for step in FLOWS["release"]["jobs"]["attest"]["steps"] if "actions/attest@" in step["uses"]]
    provenance, bill = (step["with"] for step in attested)
    assert provenance == {"subject-path": "dist/*"}
    assert bill == {"subject-path": "dist/*.whl\ndist/*.tar.gz\n", "sbom-path": "dist/ralph_mission.cdx.json"}


def test_ci_tests() -> None:
    flow = FLOWS["ci"]
    assert "pull_request" in flow["on"] and flow["on"]["push"] == {"branches": ["main"]}
    commands = [step["run"] for job in flow["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands[:3] == [".ci/run", "make test-real", "make test-long"]
    assert [command.split(" ")[:2] for command in commands[3:]] == [["docker", "build"], ["docker", "run"]]
