"""What passes for a patch-level bump, and what never does."""

from __future__ import annotations

import re

import pytest

from ralph_mission.adapters.packages.model import step
from ralph_mission.safety.bumps import Step, counted_patch, follows, only_patches
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, FileChange, Patch

DIGEST, OTHER = "a1" * 32, "b2" * 32
HOST = "https://index.example.org"
UV = f"""\
version = 1

[[package]]
name = "buoy"
version = "1.4.2"
source = {{ registry = "{HOST}/simple" }}
dependencies = [
    {{ name = "moon" }},
]
sdist = {{ url = "{HOST}/packages/{DIGEST[:2]}/{DIGEST[2:4]}/{DIGEST[:60]}/buoy-1.4.2.tar.gz", hash = "sha256:{DIGEST}", size = 12 }}
wheels = [
    {{ url = "{HOST}/files/buoy-1.4.2-cp311-cp311-manylinux_2_17_x86_64.whl", hash = "sha256:{DIGEST}", size = 7, upload-time = "2026-01-02T03:04:05.6Z" }},
    {{ url = "{HOST}/files/buoy-1.4.2-py3-none-any.whl", hash = "sha256:{DIGEST}", size = 9 }},
]
"""  # noqa: E501 (as uv writes it)
BUMPED = UV.replace("1.4.2", "1.4.10").replace(DIGEST, OTHER).replace("size = 9", "size = 1000")
BUMPED = BUMPED.replace(DIGEST[:60], OTHER[:60]).replace("2026-01-02T03:04:05.6Z", "2026-02-02T03:04:05Z")
YARN = f"""\
# yarn lockfile v1


buoy@^1.4.2:
  version "1.4.2"
  resolved "{HOST}/buoy/-/buoy-1.4.2.tgz#{"c3" * 20}"
  integrity sha512-{"Ab1+/" * 17}Q==
  dependencies:
    moon "^1.0.0"
"""
PACKAGE_JSON = '{\n  "scripts": {"test": "run"},\n  "dependencies": {\n    "buoy": "1.4.2"\n  }\n}\n'


def change(path: str, old: str, new: str, mode: str = REGULAR) -> FileChange:
    return FileChange(path, mode, mode, old.encode(), new.encode())


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("uv.lock", UV, BUMPED),
        ("web/yarn.lock", YARN, YARN.replace('"1.4.2"', '"1.4.3"').replace("buoy-1.4.2", "buoy-1.4.3")),
        ("package.json", PACKAGE_JSON, PACKAGE_JSON.replace("1.4.2", "1.4.3")),
        ("requirements-dev.txt", "buoy==1.4.2  # why\nmoon>=1\n", "buoy==1.4.3  # why\nmoon>=1\n"),
        ("pyproject.toml", '[project]\ndependencies = ["buoy==1.4"]\n', '[project]\ndependencies = ["buoy==1.4.1"]\n'),
        ("pnpm-lock.yaml", "  buoy@1.4.2(moon@1.0.0):\n", "  buoy@1.4.3(moon@1.0.0):\n"),
    ],
)
@pytest.mark.benign("patch")
def test_a_patch_level_bump_is_one(path: str, old: str, new: str) -> None:
    assert only_patches(change(path, old, new))


MANIFEST = """\
[project]  # asked on 10.0.0.1
name = "harbour"
version = "1.4.2"
dependencies = ["buoy==1.4.2", "moon==1.4.2 ; python_version < '3.8.1'"]
optional-dependencies.x = ["anchor[y]==1.4.2"]
urls = {home = "harbour 1.4.2"}

[dependency-groups]
dev = ["knots==1.4.2"]

[tool.uv]
constraint-dependencies = ["rope==1.4.2"]
required-version = "==1.4.2"

[tool.poetry.group.dev.dependencies]
python = "1.4.2"
tidy = "1.4.2"
lamp = {version = "1.4.2", source = "1.4.2"}

[tool.tasks]
check = "uvx evil==1.4.2"
"""
NODE = """\
{
  "version": "1.4.2",
  "scripts": {"build": "npx evil@1.4.2", "test": "1.4.2"},
  "config": {"dependencies": {"buoy": "1.4.2"}},
  "dependencies": {"buoy": "1.4.2", "moon": "npm:evil@1.4.2", "rope": "https://10.0.0.1/evil-1.4.2.tgz"},
  "devDependencies": {"knots": "=1.4.2"}
}
"""
REQUIRED = """\
buoy==1.4.2  # see 1.4.2
--trusted-host 1.4.2
-i 1.4.2/simple
--extra-index-url \\
 http==1.4.2
./vendor/evil-1.4.2.tar.gz
evil @ ftp://x/evil==1.4.2
"""


@pytest.mark.parametrize(
    ("path", "text", "marks"),
    [
        (
            "pyproject.toml",
            MANIFEST,
            ('"buoy==', '"moon==', "anchor[y]==", "knots==", "rope==", "tidy = ", "lamp = {version = "),
        ),
        ("package.json", NODE, ('  "dependencies": {"buoy": ', '"knots": "=')),
        ("requirements.txt", REQUIRED, ("buoy==",)),
    ],
)
def test_in_a_manifest_only_versions_that_are_asked_for_move(path: str, text: str, marks: tuple[str, ...]) -> None:
    """Each 1.4.2 in turn, and nothing but it."""
    places = [found.start() for found in re.finditer(r"1\.4\.2", text)]
    moving = [at for at in places if only_patches(change(path, text, f"{text[:at]}1.4.3{text[at + 5 :]}"))]
    assert [text[:at].rstrip('"').endswith(mark) for at, mark in zip(moving, marks, strict=True)] == [True] * len(marks)
    assert not only_patches(change(path, text, text.replace("1.4.2", "1.4.3")))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["buoy==1.4.2"]  # at 10.0.0.1\n'),
        ("package.json", '{"dependencies": {"buoy": "1.4.2"}, "dependencies": {"buoy": "1.4.2"}, "x": "10.0.0.1"}\n'),
        ("requirements.txt", "buoy==1.4.2  # at 10.0.0.1\n"),
    ],
)
@pytest.mark.attack(49)
def test_nothing_moves_along_with_a_version(path: str, text: str) -> None:
    bumped = text.replace("1.4.2", "1.4.3")
    assert not only_patches(change(path, text, bumped.replace("10.0.0.1", "10.0.0.2")))
    assert only_patches(change(path, text, bumped)) == (path != "package.json"), "a key that is there twice"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", '{"dependencies": {"buoy": "VERSION"}}\n'),
        ("requirements.txt", "buoy==VERSION\n"),
        ("yarn.lock", YARN.replace('"1.4.2"', '"VERSION"').replace("buoy-1.4.2", "buoy-VERSION")),
        ("package-lock.json", '{\n  "version": "VERSION"\n}\n'),
    ],
)
@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ("0.2.3", "0.2.4", True),
        ("0.0.3", "0.0.4", False),
        ("0.2.3", "0.3.0", False),
        ("1.2.3", "1.3.3", False),
        ("1.2.3-rc.1", "1.2.4-rc.1", False),
    ],
)
def test_what_a_patch_is_has_one_rule(path: str, text: str, old: str, new: str, patch: bool) -> None:
    assert only_patches(change(path, text.replace("VERSION", old), text.replace("VERSION", new))) == patch
    assert (step("npm", old, new) is Step.PATCH) == patch


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("buoy==1.4.2  # <version 1.4>\n", "buoy==1.4.3  # 1.4.9\n"),
        ("buoy==1.4.2  # 1.4.9\n", "buoy==1.4.3  # <version 1.4>\n"),
        ("buoy==1.4.2  # <version 1.4> 1.4.2\n", "buoy==1.4.2  # 1.4.2 <version 1.4>\n"),
    ],
)
@pytest.mark.attack(49)
def test_no_text_passes_for_a_version_by_looking_like_our_mark_of_one(old: str, new: str) -> None:
    assert not only_patches(change("requirements.txt", old, new))
    assert not only_patches(change("uv.lock", old.replace("==", " "), new.replace("==", " ")))


EVIL = "https://evil.example.net"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("uv.lock", UV, UV.replace("1.4.2", "1.5.0")),
        ("uv.lock", UV, UV.replace("1.4.2", "2.4.2")),
        ("uv.lock", UV, BUMPED.replace(HOST, EVIL)),
        ("uv.lock", UV, BUMPED.replace(f"{HOST}/files", f"{EVIL}/files")),
        ("uv.lock", UV, BUMPED.replace("/files/buoy-1.4.10-py3", "/files/bouy-1.4.10-py3")),
        ("uv.lock", UV, BUMPED.replace('{ name = "moon" }', '{ name = "noom" }')),
        ("uv.lock", UV, BUMPED + '\n[[package]]\nname = "noom"\nversion = "1.4.2"\n'),
        ("uv.lock", UV, BUMPED.replace("dependencies = [\n", 'dependencies = [\n    { name = "noom" },\n')),
        ("uv.lock", UV, BUMPED.replace('    { name = "moon" },\n', "")),
        ("yarn.lock", YARN, YARN.replace("    moon", '    noom "^1.0.0"\n    moon')),
        ("yarn.lock", YARN, YARN.replace("/buoy/-/buoy-1.4.2", "/noom/-/noom-1.4.3")),
        ("package.json", PACKAGE_JSON, PACKAGE_JSON.replace('"run"', '"curl 1.2"')),
        ("package.json", PACKAGE_JSON, PACKAGE_JSON.replace('"1.4.2"', '"^1.4.3"')),
        ("package.json", PACKAGE_JSON, PACKAGE_JSON.replace('"1.4.2"', '"1.4.3", "noom": "1.0.0"')),
        ("package.json", PACKAGE_JSON, ""),
        ("requirements.txt", "buoy==1.4.2\n", "buoy==1.4.3\n--index-url https://10.0.0.1/simple\n"),
        ("requirements.txt", "-i http://10.0.0.1/simple\n", "-i http://10.0.0.2/simple\n"),
        ("setup.py", "buoy==1.4.2\n", "buoy==1.4.3\n"),
        (".github/workflows/ci.yml", "buoy==1.4.2\n", "buoy==1.4.3\n"),
        ("uv.lock", UV, UV),
    ],
)
@pytest.mark.attack(49)
def test_anything_more_is_none(path: str, old: str, new: str) -> None:
    assert not only_patches(change(path, old, new))


PNPM = f"packages:\n\n  buoy@1.4.2:\n    resolution: {{integrity: sha512-{'Ab1+/' * 17}Q==}}\n\n"
NPM = f'''\
{{
  "packages": {{
    "node_modules/buoy": {{
      "version": "1.4.2",
      "resolved": "{HOST}/buoy/-/buoy-1.4.2.tgz",
      "integrity": "sha512-{"Ab1+/" * 17}Q==",
      "engines": {{
        "node": ">=18"
      }}
    }},
    "node_modules/moon": {{
      "version": "1.0.0",
      "integrity": "sha512-{"Cd1+/" * 17}Q=="
    }}
  }}
}}
'''


@pytest.mark.parametrize(
    ("path", "text"), [("uv.lock", UV), ("yarn.lock", YARN), ("pnpm-lock.yaml", PNPM), ("package-lock.json", NPM)]
)
@pytest.mark.attack(49)
def test_a_digest_moves_with_the_version_of_its_entry_alone(path: str, text: str) -> None:
    alone = text.replace("Ab1+/", "Xy1+/").replace(f"sha256:{DIGEST}", f"sha256:{OTHER}")
    with_it = alone.replace("1.4.2", "1.4.3")
    assert alone != text
    assert not only_patches(change(path, text, alone))
    assert only_patches(change(path, text, with_it))
    assert not only_patches(change(path, with_it, text)), "a downgrade"


@pytest.mark.attack(49)
def test_the_digest_of_another_entry_does_not_move_along() -> None:
    moved = NPM.replace("1.4.2", "1.4.3").replace("Ab1+/", "Xy1+/")
    assert only_patches(change("package-lock.json", NPM, moved))
    assert not only_patches(change("package-lock.json", NPM, moved.replace("Cd1+/", "Zz1+/")))


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("package.json", PACKAGE_JSON, PACKAGE_JSON.replace("1.4.2", "1.4.1")),
        ("requirements.txt", "buoy==1.4.10\n", "buoy==1.4.9\n"),
        ("yarn.lock", YARN, YARN.replace('"1.4.2"', '"1.4.3"').replace("buoy-1.4.2", "buoy-1.4.1")),
    ],
)
@pytest.mark.attack(49)
def test_a_version_moves_upwards_alone(path: str, old: str, new: str) -> None:
    assert not only_patches(change(path, old, new))
    assert path == "yarn.lock" or only_patches(change(path, new, old))


@pytest.mark.attack(49)
def test_a_mode_or_another_encoding_is_none() -> None:
    assert not only_patches(change("uv.lock", UV, BUMPED, EXECUTABLE))
    assert not only_patches(FileChange("uv.lock", REGULAR, REGULAR, UV.encode(), BUMPED.encode("utf-16")))
    assert not only_patches(FileChange("uv.lock", "", REGULAR, None, BUMPED.encode()))


def test_what_follows_from_a_bump_does_not_count_and_the_rest_does() -> None:
    lock, manifest = (
        change("uv.lock", UV, BUMPED),
        change("package.json", PACKAGE_JSON, PACKAGE_JSON.replace("1.4", "1.5")),
    )
    assert counted_patch(Patch("0" * 40, (lock, manifest))).changes == (manifest,)


@pytest.mark.attack(49)
def test_only_bumps_lift_the_protection_of_a_file_and_only_of_its_name() -> None:
    lock = Patch("0" * 40, (change("uv.lock", UV, BUMPED),))
    assert inspect(lock, bumps=True, max_lines=1) == ()
    assert {found.rule for found in inspect(lock)} == {"protected-path"}
    evil = Patch("0" * 40, (change("uv.lock", UV, BUMPED.replace(HOST, EVIL)),))
    assert "protected-path" in {found.rule for found in inspect(evil, bumps=True)}
    deep = Patch(
        "0" * 40, (change(".github/actions/x/package.json", PACKAGE_JSON, PACKAGE_JSON.replace("1.4.2", "1.4.3")),)
    )
    assert {found.rule for found in inspect(deep, bumps=True)} == {"protected-path"}
    outside = inspect(lock, bumps=True, allowed_paths=frozenset({"other.lock"}))
    assert {found.rule for found in outside} == {"scope"}


def test_what_was_announced_is_known_by_the_names_of_its_files_and_by_no_other() -> None:
    def find_rules(path: str, new: str = "new = 1\n") -> set[str]:
        patch = Patch("0" * 40, (FileChange(path, REGULAR, REGULAR, b"\n", new.encode()),))
        return {found.rule for found in inspect(patch, max_lines=1, bumps=True, announced=True)}

    assert find_rules("web/uv.lock", "new = 1\n" * 9) == set()
    assert find_rules("requirements.txt", "new = 1\n" * 9) == {"diff-size"}
    assert (
        find_rules(".github/workflows/uv.lock")
        == {"protected-path"}
        == find_rules(".github/CODEOWNERS") - {"diff-size"}
    )


def test_a_long_line_costs_little() -> None:
    hostile = "1." * 200_000
    for path in ("uv.lock", "pyproject.toml", "package.json", "requirements.txt"):
        assert not only_patches(change(path, hostile, hostile + "a" * 100_000))


OLD_DIGEST, NEW_DIGEST = "ab" * 32, "cd" * 32


ENTRY = f"""\
[[package]]
name = "buoy"
version = "1.4.2"
sdist = {{ url = "https://files.example.org/buoy-1.4.2.tar.gz", hash = "sha256:{OLD_DIGEST}", size = 100 }}
"""


RISEN = ENTRY.replace("1.4.2", "1.4.3").replace(OLD_DIGEST, NEW_DIGEST)


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@pytest.mark.attack(49)
def test_no_word_of_a_manifest_changes_beside_a_version() -> None:
    old = '[project]\ndependencies = ["buoy==1.4.2"]  # said by people\n'
    assert only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3")))
    assert not only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3").replace("people", "nobody")))


@pytest.mark.attack(49)
def test_an_entry_of_another_name_comes_in_with_no_version_of_another() -> None:
    assert follows(lines(ENTRY), lines(RISEN))
    assert not follows(lines(ENTRY), lines(f"{RISEN}\n{RISEN.replace('buoy', 'moon')}"))


@pytest.mark.attack(49)
def test_no_second_version_comes_beside_the_one_that_stays() -> None:
    assert not follows(lines(ENTRY), lines(f"{ENTRY}\n{RISEN}"))
