"""What a package manager is handed: no settings, no address that is not told, no path that leads out.

What is laid out for a package manager.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.adapters.fixers import bumps
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.packages import scratch
from ralph_mission.adapters.packages.model import Project
from ralph_mission.adapters.packages.scratch import addresses, files_for_manager
from ralph_mission.errors import UserError
from ralph_mission.safety.address import parse_address
from tests.helpers import make_repo

EVIL = "http://127.0.0.1:9/x"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", f'[[tool.uv.index]]\nurl = "{EVIL}"\n'),
        ("pyproject.toml", f'[tool.uv]\nfind-links = ["{EVIL}"]\n'),
        ("pyproject.toml", f'[project]\ndependencies = ["buoy @ {EVIL}"]\n'),
        ("pyproject.toml", f'[tool.uv.sources]\nbuoy = {{git = "{EVIL}"}}\n'),
        ("pyproject.toml", '[tool.uv]\nindex-url = "\\u0068ttp://127.0.0.1:9/x"\n'),
        ("uv.lock", f'[[package]]\nname = "buoy"\nsource = {{registry = "{EVIL}"}}\n'),
        ("package.json", json.dumps({"dependencies": {"funding": EVIL}})),
        ("package.json", json.dumps({"overrides": {"buoy": {"moon": f"git+{EVIL}"}}})),
        ("package-lock.json", json.dumps({"packages": {"node_modules/buoy": {"resolved": EVIL}}})),
        ("package-lock.json", '{"packages": {"node_modules/buoy": {"resolved": "ht\\ntp:\\/\\/127.0.0.1:9/x"}}}'),
        ("yarn.lock", f'buoy@^1.0.0:\n  version "1.0.0"\n  resolved "{EVIL}#abc"\n'),
        (
            "yarn.lock",
            '__metadata:\n  version: 8\n"b@npm:1":\n  r: "b@npm:1::__archiveUrl=http%3A%2F%2F127.0.0.1:9%2Fx"\n',
        ),
        ("pnpm-lock.yaml", f"packages:\n  buoy@1.0.0:\n    resolution: {{tarball: {EVIL}}}\n"),
    ],
)
def test_each_place_that_a_file_names_is_told_before_anything_is_sent(path: str, text: str) -> None:
    assert any(url.startswith(EVIL) for url in addresses({path: text.encode()}))


def test_what_no_manager_asks_is_no_place() -> None:
    page = "https://page.example.org/x"
    manifest = {
        "homepage": page,
        "repository": {"url": page},
        "funding": [page],
        "scripts": {"get": page},
        "proxy": page,
    }
    files = {
        "package.json": json.dumps(manifest),
        "package-lock.json": json.dumps({"packages": {"node_modules/a": {"funding": {"url": page}}}}),
        "pyproject.toml": f'[project]\ndescription = "{page}"\n[project.urls]\nA = "{page}"\n[tool.x]\ny = "{page}"\n',
    }
    held = {path: text.encode() for path, text in files.items()}
    assert addresses(held) == () and files_for_manager(held) == held


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".npmrc", f"; {EVIL}\nscript-shell=./x\nregistry={EVIL}\n//example.org/:_authToken=${{TOKEN}}\n"),
        (".yarnrc", f'registry "{EVIL}"\nyarn-path "./y.js"\n'),
        ("a/.yarnrc.yml", f"npmRegistryServer: {EVIL}\nplugins: [./x.cjs]\n"),
        ("uv.toml", f"cache-dir = '/elsewhere'\nindex-url = '{EVIL}'\n"),
    ],
)
def test_no_settings_are_handed_on(path: str, text: str) -> None:
    assert files_for_manager({path: text.encode()}) == {} and addresses({path: text.encode()}) == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".npmrc", f"@harbour:registry={EVIL}\n"),
        (".npmrc", f"registry={EVIL}\nregistry={EVIL}/y\n"),
        (".yarnrc", f'"@harbour:registry" "{EVIL}"\n'),
        (".yarnrc.yml", f"npmScopes:\n  harbour:\n    npmRegistryServer: '{EVIL}'\n"),
        ("uv.toml", f"[[index]]\nurl = '{EVIL}'\n[[index]]\nurl = '{EVIL}/y'\n"),
        ("pnpm-workspace.yaml", f"packages: [a]\nregistries: {{'@harbour': '{EVIL}'}}\n"),
    ],
)
def test_settings_that_name_another_registry_leave_it_to_a_person(path: str, text: str) -> None:
    with pytest.raises(UserError, match=f"{path} names a registry of its own"):
        files_for_manager({path: text.encode()})


def test_settings_within_a_manifest_are_left_out() -> None:
    workspace = "packages: [a]\npnpmfile: .npmrc\nconfigDependencies: {x: 1.0.0+sha512-abc}\ncatalog: {b: ^1.0.0}\n"
    manifest = '{"name": "a", "pnpm": {"configDependencies": {"x": "1.0.0"}, "overrides": {"b": "1.0.0"}}}'
    given = files_for_manager({"pnpm-workspace.yaml": workspace.encode(), "package.json": manifest.encode()})
    assert json.loads(given["pnpm-workspace.yaml"]) == {"packages": ["a"], "catalog": {"b": "^1.0.0"}}
    assert json.loads(given["package.json"]) == {"name": "a", "pnpm": {"overrides": {"b": "1.0.0"}}}
    assert "--no-config" in bumps.UV  # of a pyproject.toml


def asking(place: str) -> str:
    return json.dumps({"dependencies": {"buoy": place}})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", asking("exec:./.npmrc")),
        ("package.json", asking("file:/elsewhere")),
        ("package.json", asking("file:///elsewhere")),
        ("package.json", asking("link:~/elsewhere")),
        ("package.json", asking("/elsewhere/x.tgz")),
        ("a/package.json", asking("file:../../elsewhere")),
        ("a/package.json", asking("file:%2e%2e/%2e%2e/elsewhere")),
        ("package.json", json.dumps({"workspaces": ["{a,../elsewhere}/*"]})),
        ("pnpm-workspace.yaml", "packages: ['../*']\n"),
        ("yarn.lock", '"x@portal:/elsewhere":\n  version "1.0.0"\n'),
        ("package-lock.json", json.dumps({"packages": {"node_modules/x": {"resolved": "file:/elsewhere"}}})),
        ("pyproject.toml", "[tool.uv]\nfind-links = ['/elsewhere']\n"),
        ("pyproject.toml", "[tool.uv.sources]\nbuoy = {path = '../elsewhere'}\n"),
        ("pyproject.toml", "[project]\ndependencies = ['buoy @ file:///elsewhere']\n"),
        ("uv.lock", "[[package]]\nname = 'buoy'\nsource = {directory = '/elsewhere'}\n"),
    ],
)
def test_what_leads_to_other_files_of_the_machine_or_makes_a_package_is_refused(path: str, text: str) -> None:
    with pytest.raises(UserError) as caught:
        files_for_manager({path: text.encode()})
    assert caught.value.what.startswith(path)


def test_paths_within_the_repository_are_handed_on() -> None:
    manifest = {
        "dependencies": {"a": "file:../a", "b": "link:./b", "c": "~1.2.3", "d": "workspace:^", "e": "1.x || >=2 <3"},
        "workspaces": ["packages/*", "!packages/{a,b}"],
    }
    files = {
        "packages/c/package.json": json.dumps(manifest),
        "pyproject.toml": "[tool.uv.sources]\na = {path = './a'}\n[tool.uv.build-backend]\nwheel-exclude = ['/x']\n",
        "uv.lock": "[[package]]\nname = 'a'\nsource = {editable = '.'}\n",
        "pnpm-lock.yaml": "packages:\n  /buoy@1.0.0:\n    dev: false\n",
    }
    held = {path: text.encode() for path, text in files.items()}
    assert files_for_manager(held) == held and addresses(held) == ()


@pytest.mark.parametrize("between", [" ", "'", '"', "<", "|", "%20", " ... "])
def test_a_user_whose_name_looks_like_a_public_host_hides_no_other_one(between: str) -> None:
    with pytest.raises(UserError, match=r"can be read in two ways|names a user"):
        for url in addresses({"package.json": asking(f"https://1.1.1.1{between}@127.0.0.1:9/x.tgz").encode()}):
            parse_address(url)


def test_an_address_that_is_made_of_the_environment_is_refused() -> None:
    with pytest.raises(UserError, match="variable"):
        addresses({"pyproject.toml": b"[project]\ndependencies = ['buoy @ https://1.1.1.1/${UV_DEFAULT_INDEX}/x']\n"})


def test_many_beginnings_of_addresses_cost_no_more_than_their_length() -> None:
    assert len(addresses({"package.json": asking("https: " * 200_000 + "/").encode()})) == 1


@pytest.mark.parametrize("value", ["!!bool x", "!!int ''", "!!timestamp x"])
def test_a_value_that_is_not_what_its_tag_says_makes_a_file_that_cannot_be_read(value: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        files_for_manager({"pnpm-workspace.yaml": f"packages: {value}\n".encode()})


def test_no_manager_is_told_to_become_another_one() -> None:
    manifest = {"name": "a", "packageManager": "pnpm@9.0.0", "devEngines": {"packageManager": {"name": "pnpm"}}}
    assert json.loads(files_for_manager({"package.json": json.dumps(manifest).encode()})["package.json"]) == {
        "name": "a"
    }
    told = bumps.manager_environment(bumps.MANAGERS["pnpm"], "https://npm.example.org")
    assert {told["npm_config_registry"], told["pnpm_config_registry"]} == {"https://npm.example.org"}  # pnpm 11 on
    assert bumps.MANAGERS["pnpm"].environment["npm_config_manage_package_manager_versions"] == "false"
    assert (bumps.QUIET["COREPACK_ENABLE_NETWORK"], bumps.QUIET["COREPACK_ENABLE_PROJECT_SPEC"]) == ("0", "0")


def test_scripts_and_hooks_are_off_by_each_managers_own_word() -> None:
    for settle in (bumps.NPM, bumps.YARN, bumps.PNPM):
        assert "--ignore-scripts" in settle
    assert "--ignore-pnpmfile" in bumps.PNPM
    assert bumps.MANAGERS["berry"].environment["YARN_ENABLE_SCRIPTS"] == "0"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("yarn.lock", b'resolved "https\\u003a//registry.example/a.tgz"\n'),
        ("a.json", b'{"url": "https://registry.example/%2525252525252541"}'),
    ],
    ids=["an escape", "quoted too often"],
)
@pytest.mark.attack(60)
def test_an_address_that_cannot_be_read_for_sure_is_refused(path: str, content: bytes) -> None:
    with pytest.raises(UserError):
        addresses({path: content})


PROJECT = Project("web/uv.lock", "uv", "PyPI", (), ("web/pyproject.toml",))


def laid_out(tmp_path: Path) -> scratch.Contents:
    files = {"web/uv.lock": "version = 1\n", "web/pyproject.toml": "", "web/uv.toml": "#" * 200}
    git = Git.open(make_repo(tmp_path / "repo", files))
    return scratch.contents(git, {entry.path: entry for entry in git.listing("HEAD")}, PROJECT)


def test_a_file_that_is_too_large_to_be_read_is_laid_out_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "LARGEST", 199)
    with pytest.raises(UserError, match=r"web/uv\.toml is too large"):
        laid_out(tmp_path)
    monkeypatch.setattr(scratch, "LARGEST", 200)
    assert len(laid_out(tmp_path.joinpath("again"))["web/uv.toml"]) == 200


def astray(files: dict[str, bytes], base: str = "https://registry.example") -> str:
    return scratch.check_sources(files, base, (), math.inf)


@pytest.mark.attack(55)
def test_a_registry_at_a_private_place_is_told_before_anything_is_asked() -> None:
    assert "not a public place" in astray({}, "http://127.0.0.1:9/")


@pytest.mark.attack(60)
def test_what_is_not_handed_on_is_told_before_anything_is_asked() -> None:
    assert "registry of its own" in astray({".npmrc": b"@a:registry=https://a.example/\n"})


def test_files_that_name_too_many_places_are_asked_about_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "PLACES", 1)
    assert "more than 1 places" in astray({"yarn.lock": b'  resolved "https://one.example/a.tgz"\n'})


def test_a_step_lasts_no_longer_than_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def run(*_: Any, timeout: float, **__: Any) -> Any:
        given.append(timeout)
        return SimpleNamespace(code=0)

    monkeypatch.setattr(scratch, "run_foreign", run)
    room = scratch.Room(tmp_path, "uv.lock", tmp_path, "uv", {}, seconds=5)
    room.ask(["lock"])
    scratch.Room(tmp_path, "uv.lock", tmp_path, "uv", {}, seconds=5, until=0.0).ask(["lock"])
    assert given == [5, 0]


@pytest.mark.attack(60)
def test_a_file_that_is_no_text_is_handed_to_nobody() -> None:
    with pytest.raises(UserError):
        files_for_manager({"yarn.lock": b"\xff\xfe\n"})
