"""The release workflow run for real by a local runner. What reaches out of the machine is written down instead: the
artifacts' store, the attestations, `gh`, and the upload to the index."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.action.runner import ROOT, bare_environment
from tests.helpers import git
from tests.supply.workflows import steps

pytestmark = pytest.mark.real  # installs from a registry
TAG = "v" + (ROOT / "pyproject.toml").read_text().partition('\nversion = "')[2].partition('"')[0]
ACTIONS = {
    "actions/setup-python": "python3 --version",
    "actions/upload-artifact": 'cp -R "$WITH_PATH" "$RESULTS/artifact"',
    "actions/download-artifact": 'cp -R "$RESULTS/artifact" "$WITH_PATH"',
    "actions/attest": 'ls $WITH_SUBJECT_PATH $WITH_SBOM_PATH | xargs echo >>"$RESULTS/attested"',
}
"""What stands in for an action, by what it was given."""
INPUTS = "path subject-path sbom-path python-version name if-no-files-found".split()
PROGRAMS = {
    "gh": 'case "$*" in *matching-refs*) echo v0.0.9 "$GITHUB_REF_NAME" | xargs -n 1 ;; '
    '*notes-file*) cat >"$RESULTS/notes"; echo "gh $*" >>"$RESULTS/told" ;; *) echo "gh $*" >>"$RESULTS/told" ;; esac',
    "make": f'case "$1" in install) exec {shutil.which("make")} "$@" ;; *) echo "make $1" >>"$RESULTS/told" ;; esac',
    "pip": 'echo "pip $1" >>"$RESULTS/told"',
    "uv": 'case "$1" in publish) echo "uv $*" >>"$RESULTS/told" ;; *) exit 1 ;; esac',
}


@dataclass(frozen=True, slots=True)
class Release:
    """What a run of the workflow left: sizes of files in bytes, what was attested, what programs were told, and the
    notes of the release."""

    files: dict[str, int]
    attested: list[list[str]]
    told: list[str]
    notes: str


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Every job of the workflow, in a clone with a tag."""
    folder = tmp_path_factory.mktemp("workflow")
    git(folder, "clone", "--quiet", "--no-hardlinks", str(ROOT), "clone")
    clone, bin = folder / "clone", folder / "bin"
    git(clone, "remote", "set-url", "origin", "https://github.com/mara/ralph_mission")
    gather = ("towncrier", "build", "--yes", "--version", TAG.removeprefix("v"))
    subprocess.run([sys.executable, "-m", *gather], cwd=clone, check=True, stdout=subprocess.DEVNULL)
    about = clone / "docs/action.md"  # as CONTRIBUTING asks before the first release
    about.write_text(re.sub(r"Otherwise \(there is\s+no release[^)]*\)", "Otherwise", about.read_text()))
    who = ("-c", "user.name=Mara", "-c", "user.email=mara@harbour.example")
    git(clone, *who, "commit", "--quiet", "--all", "--message", "Gather the changelog")
    git(clone, "tag", "--force", TAG)
    bin.mkdir()
    for name, script in PROGRAMS.items():
        (bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin / name).chmod(0o755)
    (folder / "event.json").write_text(json.dumps({"ref": f"refs/tags/{TAG}"}))
    variables = [word for name, value in _environment(folder).items() for word in ("--env", f"{name}={value}")]
    command = [Path(sys.executable).with_name("act"), "push", "--workflows", ".github/workflows/release.yml",
               "--eventpath", folder / "event.json", "--platform", "ubuntu-latest=-self-hosted", "--no-cache-server",
               "--pull=false", "--action-offline-mode", *_stand_ins(folder), *variables]  # fmt: skip  # options
    environment = bare_environment(folder)
    environment["PATH"] = f"{bin}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [*map(str, command)],
        cwd=clone,
        env=environment,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    files = {path.name: path.stat().st_size for path in (folder / "artifact").iterdir()}
    attested = [line.split() for line in (folder / "attested").read_text().splitlines()]
    return Release(files, attested, (folder / "told").read_text().splitlines(), (folder / "notes").read_text())


def _environment(folder: Path) -> dict[str, str]:
    """What the jobs find: where results go, and where packages are on this machine."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return {"RESULTS": str(folder), "GITHUB_REPOSITORY": "mara/ralph_mission", **kept}


def _stand_ins(folder: Path) -> list[str]:
    """Options that put a script in the place of each action that the workflow uses."""
    used = {step["uses"] for name, step in steps() if name.startswith("release/") and "uses" in step}
    options = []
    for one in sorted(used):
        name = one.partition("@")[0]
        if name == "actions/checkout":
            continue  # the runner copies the clone
        given = {f"WITH_{each.upper().replace('-', '_')}": f"${{{{ inputs.{each} }}}}" for each in INPUTS}
        run = {"shell": "bash", "env": given, "run": ACTIONS[name]}
        inputs = {each: {"default": ""} for each in INPUTS}
        action = {"name": name, "inputs": inputs, "runs": {"using": "composite", "steps": [run]}}
        place = folder / name
        place.mkdir(parents=True)
        (place / "action.yml").write_text(json.dumps(action))
        options += ["--local-repository", f"{one}={place}"]
    return options


def test_a_tag_makes_archives_hashes_a_bill_of_materials_and_the_evidence(released: Release) -> None:
    wheel, source = f"ralph_mission-{TAG[1:]}-py3-none-any.whl", f"ralph_mission-{TAG[1:]}.tar.gz"
    assert released.files.keys() == {wheel, source, "ralph_mission.cdx.json", "trust-evidence.md", "SHA256SUMS"}
    assert all(released.files.values())


def test_every_file_is_attested_and_both_archives_with_the_bill_of_materials(released: Release) -> None:
    provenance, bill = ({Path(name).name for name in line} for line in released.attested)
    assert provenance == released.files.keys()
    assert bill == {name for name in released.files if name.endswith((".whl", ".tar.gz", ".cdx.json"))}


def test_it_is_checked_before_it_is_released_on_github_and_uploaded(released: Release) -> None:
    assert released.told[:3] == ["make release-check", "make test", "make check"]
    (created,) = (line for line in released.told if line.startswith("gh release create"))
    assert created.startswith(f"gh release create {TAG} ") and created.endswith("--verify-tag --notes-file - --latest")
    assert all(f"dist/{name}" in created for name in released.files)
    (uploaded,) = (line for line in released.told if line.startswith("uv publish"))
    assert uploaded.startswith("uv publish --no-config --trusted-publishing always dist/")
    assert any("PATCH repos/mara/ralph_mission/git/refs/tags/v" in line for line in released.told)


def test_its_notes_are_what_the_changelog_says_of_this_version(released: Release) -> None:
    changes = [path.read_text().splitlines()[0] for path in (ROOT / "changelog.d").glob("*.md")]
    assert all(f"- {line}" in released.notes for line in changes)
    assert released.notes.strip() and "## [" not in released.notes
