"""A release: the same bytes from the same commit, a bill of all that is locked, and nobody's token."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from datetime import UTC, datetime
from email.message import Message
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ralph_mission
from ralph_mission.cli.setup.files import ActionReference, installed_action
from ralph_mission.cli.version import find_commit
from tests.action.runner import ACTION, ROOT
from tests.cli.init_place import Installed, install
from tests.helpers import commit, make_repo
from tests.supply.workflows import FLOWS, jobs

JOBS = FLOWS["release"]["jobs"]
BUILDING = "import runpy, sys; from pathlib import Path; runpy.run_path(sys.argv[1])['archives'](Path(sys.argv[2]))"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_script", ROOT / "scripts" / "release.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _addressed(folder: Path) -> Path:
    tree: Path = _script().addressed(folder / "tree", "o/r", "v1.2.3", "c" * 40)
    return tree


def _pins(lock: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Name -> version and hashes."""
    text = (ROOT / lock).read_text()
    found = re.findall(r"^([a-z0-9-]+)==(\S+)(.*(?:\n    --hash.*)+)", text, re.MULTILINE)
    return {name: (version, frozenset(re.findall("sha256:([0-9a-f]{64})", rest))) for name, version, rest in found}


def test_a_tag_of_another_version_builds_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"the tag is v99\.0"):
        _script().main(tmp_path / "dist", "v99.0")
    assert not (tmp_path / "dist").exists()


def test_the_version_is_one_and_not_an_older_one_of_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = re.findall(r"^## \[([^\]]+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project == ralph_mission.__version__ and project not in headings[1:]


def test_every_file_of_the_changelog_is_gathered() -> None:
    folder = ROOT / "changelog.d"
    draft = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.0", "--date", "2026-12-01"]
    text = subprocess.run(draft, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "## [9.0] - 2026-12-01\n" in text
    for file in (path for path in folder.iterdir() if path.name != ".gitignore"):
        assert re.fullmatch(r"\+[a-z0-9-]+\.(added|changed|fixed)\.md", file.name), file.name
        assert f"- {file.read_text().splitlines()[0]}" in text


def test_a_version_that_the_changelog_does_not_know_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"no section \[9\.0\]"):
        script.main(tmp_path / "dist", "v9.0")
    assert not (tmp_path / "dist").exists()


def test_a_release_is_refused_while_documents_say_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script()
    for name, text in {
        "pyproject.toml": '[project]\nversion = "9.0"\n', "CHANGELOG.md": "# Changelog\n\n## [9.0]\n",
        "README.md": "", "docs/action.md": "(there is\nno release yet)",
    }.items():  # fmt: skip  # files
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"docs/action\.md says that there is no release"):
        script.main(tmp_path / "dist", "v9.0")


def test_hashes_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    for name in ("b.whl", "a b.tar.gz"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(_script().hashes(tmp_path))
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    if not shutil.which("sha256sum"):
        check[:1] = ["shasum", "-a", "256"]
    said = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said == "a b.tar.gz: OK\nb.whl: OK\n"


def test_its_tools_are_locked_and_agree_with_ours() -> None:
    release, ours = _pins("requirements-release.lock"), _pins("requirements-dev.lock")
    assert {"cyclonedx-bom", "uv"} <= release.keys()
    both = release.keys() & ours.keys()
    assert {name: release[name][0] for name in both} == {name: ours[name][0] for name in both}


def test_nothing_is_published_that_was_not_tested_and_attested() -> None:
    needs = {name: job.get("needs", "") for name, job in JOBS.items()}
    assert needs == {"build": "", "attest": "build", "github": "attest", "index": "attest"}
    runs = [step["run"] for step in JOBS["build"]["steps"] if "run" in step]
    assert runs == [
        "make install",
        '.venv/bin/python -I scripts/release.py "$RUNNER_TEMP/dist" "$GITHUB_REF_NAME" "$GITHUB_REPOSITORY"',
        'make release-check DIST="$RUNNER_TEMP/dist"',
        "make test",
        "make check",
    ]


def test_a_release_knows_no_secret_and_who_builds_holds_no_identity() -> None:
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    holders = {name for name, job in jobs() if job["permissions"].get("id-token") == "write"}
    assert holders == {"release/attest", "release/index", "site/deploy"}
    assert not [step for step in JOBS["attest"]["steps"] if "run" in step]
    assert FLOWS["release"]["concurrency"] == {"group": "release", "cancel-in-progress": "false"}


def test_links_of_the_readme_lead_somewhere_on_a_package_index(tmp_path: Path) -> None:
    script, tree = _script(), _addressed(tmp_path)
    links = re.findall(r"\]\(([^)]+)\)", (tree / "README.md").read_text())
    assert links and [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "`pipx install ralph-mission`, then:" in (tree / "README.md").read_text()
    assert "https://github.com/o/r/blob/v1.2.3/docs/github.md" in links
    shown = re.findall(r'\bsrc(?:set)?="([^"]+)"', (tree / "README.md").read_text())
    pictures = [link.removeprefix("https://raw.githubusercontent.com/o/r/v1.2.3/") for link in shown]
    assert pictures and all((ROOT / path).is_file() for path in pictures)
    assert all((ROOT / link.partition("/v1.2.3/")[2].partition("#")[0]).exists() for link in links if "v1.2.3" in link)
    urls = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["urls"]
    assert (urls["Homepage"], urls["Source"]) == ("https://github.com/o/r", f"https://github.com/o/r/tree/{'c' * 40}")
    assert script.absolute("![a](docs/i.png) [b](https://x.y)", "o/r", "v1") == (
        "![a](https://raw.githubusercontent.com/o/r/v1/docs/i.png) [b](https://x.y)"
    )


def test_what_a_runner_downloads_is_what_the_action_runs_and_no_more() -> None:
    """GitHub leaves out of a download what .gitattributes names."""
    command = ["git", "-C", str(ROOT), "archive", "--worktree-attributes", "--format=tar.gz", "HEAD"]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip("not a git checkout")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        held = {member.name for member in archive.getmembers() if member.isfile()}
    listed = ["git", "-C", str(ROOT), "ls-tree", "-r", "--name-only", "HEAD", "ralph_mission", "scripts/action"]
    assert set(subprocess.check_output(listed, text=True).splitlines()) <= held
    names = {name.partition("/")[0] for name in held}
    assert {each for each in ACTION if "lock" not in each} <= names
    needless = {"tests", "docs", "tools", "bench", "examples", "memory", ".github", ".ci", "requirements-dev.lock"}
    assert not names & {*needless, "Makefile"}
    assert [name for name in held if name.startswith("scripts/") and not name.startswith("scripts/action/")] == []
    assert {"requirements.lock", *(f"requirements-{extra}.lock" for extra in extras())} <= names


def extras() -> list[str]:
    """Those that the action installs."""
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two copies of what is tracked, in other places, made at other times with other rights."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(listed, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")  # nothing is listed there
    names = [name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    folders = [tmp_path_factory.mktemp(place) / "a tree" for place in ("one", "other")]
    for number, folder in enumerate(folders):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
            os.utime(folder / name, (86400 * (number + 1), 86400 * (number + 1)))
            if number:
                (folder / name).chmod((folder / name).stat().st_mode & 0o711)
    return folders


@pytest.mark.long  # builds twice
def test_two_builds_of_a_commit_are_the_same_bytes(trees: list[Path]) -> None:
    for tree, zone in zip(trees, ("UTC", "Asia/Tokyo"), strict=True):
        given = {"PATH": os.environ["PATH"], "HOME": str(tree), "SOURCE_DATE_EPOCH": "1700000000", "TZ": zone}
        command = [sys.executable, "-I", "-c", BUILDING, str(tree / "scripts" / "release.py"), str(tree / "dist")]
        subprocess.run(command, env=given, check=True, capture_output=True)
    one, other = ({path.name: path.read_bytes() for path in (tree / "dist").iterdir()} for tree in trees)
    assert len(one) == 2 and one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command of the release writes, which holds it against CycloneDX's schema first."""
    folder, script = tmp_path_factory.mktemp("bill"), _script()
    os.environ |= {"SOURCE_DATE_EPOCH": "1700000000"}
    for proxy in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[proxy]  # the tests' own lead nowhere
    script.bill(script.tool(folder / "tool"), folder / "bill.json")
    document: dict[str, Any] = json.loads((folder / "bill.json").read_text())
    return document


@pytest.mark.real  # installs the tool from a registry
def test_the_bill_names_every_locked_package_with_version_and_hashes(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "ralph-mission"
    named = {
        one["name"]: (
            one["version"],
            frozenset(told["content"] for place in one["externalReferences"] for told in place["hashes"]),
        )
        for one in bill["components"]
    }
    assert named == _pins("requirements.lock")
    assert not [one for one in bill["components"] if one["purl"] != f"pkg:pypi/{one['name']}@{one['version']}"]


GH = """\
#!/bin/sh
case "$*" in
  *matching-refs/tags/*) for tag in $TAGS; do echo "$tag"; done ;;
  *) echo "$@" >>"$ASKED"; case "$*" in *PATCH*) exit 1 ;; esac ;;
esac
"""


@pytest.mark.parametrize(
    ("tag", "kind", "moves"),
    [
        ("v1.10.0", "--latest", True),
        ("v1.9.1", "--latest=false", False),
        ("v1.11.0-rc.1", "--prerelease", False),
        ("v1.11.0rc1", "--prerelease", False),
    ],
)
def test_only_the_newest_version_moves_the_tag_of_its_major_one(
    tmp_path: Path, tag: str, kind: str, moves: bool
) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (step,) = [step["run"] for step in JOBS["github"]["steps"] if "run" in step]
    env = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "ASKED": str(tmp_path / "asked"),
        "TAGS": "v1 v1.9.0 v1.9.1 v1.10.0 v1.11.0-rc.1 v1.11.0rc1",
        "GITHUB_REF_NAME": tag, "GITHUB_SHA": "c0de", "GITHUB_REPOSITORY": "o/r",
    }  # fmt: skip  # variables
    for name in ("scripts", "CHANGELOG.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    subprocess.run(step.split(), env=env, cwd=tmp_path, check=True)
    made, *moved = (tmp_path / "asked").read_text().splitlines()
    assert made == f"release create {tag} dist/* --verify-tag --notes-file - {kind}"
    assert bool(moved) is moves
    if moves:
        assert moved == [
            "api --silent --method PATCH repos/o/r/git/refs/tags/v1 -f sha=c0de -F force=true",
            "api --silent repos/o/r/git/refs -f ref=refs/tags/v1 -f sha=c0de",
        ]


def test_a_release_knows_its_commit_and_names_the_action_by_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    urls = tomllib.loads((_addressed(tmp_path) / "pyproject.toml").read_text())["project"]["urls"]
    told = Message()
    for name, url in urls.items():
        told.add_header("Project-URL", f"{name}, {url}")
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: told)
    monkeypatch.setattr("ralph_mission.cli.version.Path", lambda _: tmp_path / "installed" / "cli" / "version.py")
    install(monkeypatch, None)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed(None))
    assert find_commit() == "c" * 12
    assert installed_action() == ActionReference("o/r", "c" * 40)


def test_what_was_installed_from_a_clone_knows_its_commit_until_that_has_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone, place = tmp_path / "a clone", tmp_path / "ralph_mission-1.0.0.dist-info"
    place.mkdir()
    (place / "direct_url.json").write_text(json.dumps({"url": clone.as_uri(), "dir_info": {}}))
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: ralph-mission\nVersion: 1.0.0\n")
    (place / "RECORD").write_text("ralph_mission-1.0.0.dist-info/RECORD,,\n")
    os.utime(place / "RECORD", (2_000_000_000, 2_000_000_000))
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: metadata.PathDistribution(place))
    monkeypatch.setattr("ralph_mission.cli.version.Path.exists", lambda path: path == clone / ".git")
    repo = make_repo(clone, {"a.txt": "a\n"})
    first = commit(repo, {"a.txt": "b\n"}, date=datetime.fromtimestamp(1_999_999_999, UTC))
    assert find_commit() == first[:12]
    commit(repo, {"a.txt": "c\n"}, date=datetime.fromtimestamp(2_000_000_001, UTC))
    assert find_commit() == ""
