"""Group E: no protected path, odd mode or oversize change without a yes, by two opinions that share no code.

Every path, mode and content is judged by the package; whatever it lets through is committed by plain git, and read back
and measured by `tests.safety.checker`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.policy import judge
from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import EXECUTABLE, GITLINK, REGULAR, SYMLINK, FileChange, Patch, measure
from tests.figures import Table, shown
from tests.helpers import git, make_repo
from tests.integration.world import CALM, TYPOS, world
from tests.mission.build import fix, policy_context
from tests.safety.checker import KINDS, breaches
from tests.safety.making import BASE, change, patch
from tests.safety.test_paths import ORDINARY, PROTECTED, UNSAFE

OLD = "".join(f"row {n}\n" for n in range(70)).encode()
CONTENTS: dict[str, bytes] = {
    "one line": OLD.replace(b"row 7\n", b"row seven\n"),
    "24 lines": OLD.replace(b"row", b"Row", 24),
    "25 lines": OLD.replace(b"row", b"Row", 25),
    "49 more": OLD + b"new\n" * 49,
    "50 more": OLD + b"new\n" * 50,
    "a NUL byte": OLD + b"\0\n",
    "500 lines by CR": OLD + b"x\r" * 500,
    "300 lines by U+2028": OLD + "x\u2028".encode() * 300,
    "300 lines by form feed": OLD + b"x\f" * 300,
    "300 lines by U+0085": OLD + "x\x85".encode() * 300,
    "40 kB on a line": OLD + b"x" * 40_000,
    "17 kB in 34 lines": OLD + (b"word " * 100 + b"\n") * 34,
    "nothing": b"",
    "the same": OLD,
}
MODES = [(REGULAR, REGULAR), (EXECUTABLE, EXECUTABLE), (REGULAR, EXECUTABLE), (EXECUTABLE, REGULAR), (REGULAR, SYMLINK),
         (SYMLINK, REGULAR), ("", REGULAR), ("", EXECUTABLE), ("", SYMLINK), ("", GITLINK),
         (REGULAR, "")]  # fmt: skip  # pairs
ONE_OF_EACH = [word.replace("+", "harbour") for words in KINDS.values() for word in words.split()] + [
    ".harbour",
    ".harbour/x",
    "sub/.harbour.toml",
    "node_modules/x/index.js",
    "githooks/pre-push",
]
"""What the second opinion holds to be protected, whatever the first one has on its list."""
PATHS = [*ORDINARY, *PROTECTED, *UNSAFE, *ONE_OF_EACH]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    made = Table("patches by two opinions")
    yield made
    shown(request.config, made)


@dataclass
class PatchRepository:
    """A bare repository into which plain git writes the two sides of a change."""

    repo: Path
    stream: bytearray = field(default_factory=bytearray)
    count: int = 0

    def write(self, made: Patch) -> tuple[str, str]:
        """The names of two commits: before and after."""
        number, self.count = self.count, self.count + 2
        for at, side in enumerate((old_side(made), new_side(made))):
            self._commit(number + at, side)
        return f"refs/heads/at-{number}", f"refs/heads/at-{number + 1}"

    def _commit(self, number: int, files: Iterable[tuple[str, str, bytes]]) -> None:
        self.stream += b"commit refs/heads/at-%d\ncommitter a <a@example.org> 0 +0000\ndata 0\n" % number
        for path, mode, content in files:
            quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
            name = quoted.encode("utf-8", "surrogateescape")
            self.stream += b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), name, len(content), content)

    def land(self) -> None:
        """Have git make all of them."""
        command = ["git", "-C", str(self.repo), "fast-import", "--quiet", "--force"]
        subprocess.run(command, input=bytes(self.stream), check=True)
        self.stream.clear()


def old_side(made: Patch) -> list[tuple[str, str, bytes]]:
    return [(one.path, one.old_mode, one.old or b"") for one in made.changes if one.old_mode]


def new_side(made: Patch) -> list[tuple[str, str, bytes]]:
    return [(one.path, one.new_mode, one.new or b"") for one in made.changes if one.new_mode]


@pytest.fixture
def written(tmp_path: Path) -> PatchRepository:
    git(tmp_path, "init", "--quiet", "--bare", "two.git")
    return PatchRepository(tmp_path / "two.git")


def every_change() -> Iterator[FileChange]:
    """Every path in two sizes, one of them small enough; and every size at some paths that nothing protects."""
    sizes = list(CONTENTS.values())
    for path, (old, new), content in (*product(PATHS, MODES, sizes[:3:2]), *product(ORDINARY[:4], MODES, sizes)):
        yield FileChange(path, old, new, OLD if old else None, content if new else None)


def agreed(written: PatchRepository, table: Table, row: str, changes: Iterable[FileChange]) -> list[str]:
    """What the second opinion has against anything that the first one lets through."""
    judged, pairs = 0, []
    for one in changes:
        judged += 1
        if inspect(Patch(BASE, (one,))) == ():
            pairs.append((one.path, *written.write(Patch(BASE, (one,)))))
    written.land()
    found = [f"{path}: {what}" for path, old, new in pairs for what in breaches(written.repo, old, new)]
    table.count(row, points=judged, allowed=len(pairs), breaches=len(found))
    return found


@pytest.mark.attack(45, 46, 47, 49, 50)
def test_what_is_let_through_is_harmless_by_a_second_opinion_too(written: PatchRepository, table: Table) -> None:
    some = [one for at, one in enumerate(every_change()) if at % 61 == 0]
    assert agreed(written, table, "some paths, modes and contents", some) == []


@pytest.mark.long  # a minute
@pytest.mark.attack(45, 46, 47, 49, 50)
def test_whatever_is_let_through_is_harmless_by_a_second_opinion_too(written: PatchRepository, table: Table) -> None:
    assert agreed(written, table, "every path, mode and content", every_change()) == []


PARTS = ["src", ".github", "a b", "Makefile", "CLAUDE.md", "x.py", "é", ".git", "..", "conftest.py"]
paths = st.one_of(
    st.sampled_from(PATHS),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("/".join),
)
blobs = st.lists(st.sampled_from(["x\n", "y\r", "\u2028", "\x0c", "{", "\n" * 9, "word " * 40]), max_size=25).map(
    lambda parts: "".join(parts).encode()
)
trees = st.lists(
    st.builds(
        lambda path, modes, old, new: FileChange(path, *modes, old if modes[0] else None, new if modes[1] else None),
        paths,
        st.sampled_from([pair for pair in MODES if GITLINK not in pair]),
        blobs,
        blobs,
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda one: one.path,
)


@pytest.mark.attack(50)
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(changes=trees)
def test_any_tree_that_is_let_through_is_harmless_to_both(written: PatchRepository, changes: list[FileChange]) -> None:
    made = Patch(BASE, tuple(changes))
    if inspect(made) == () and not _nested(made):
        sides = written.write(made)
        written.land()
        assert breaches(written.repo, *sides) == []


def _nested(made: Patch) -> bool:
    """A file and something below it: no tree of git can hold both."""
    return any(other.startswith(f"{path}/") for path in made.paths for other in made.paths)


@pytest.mark.parametrize(("made", "what"), [
    (FileChange(".github/workflows/x.yml", "", REGULAR, None, b"x\n"), "protected"),
    (FileChange("a", "", SYMLINK, None, b"x"), "mode"),
    (FileChange("a", REGULAR, EXECUTABLE, b"x\n", b"x\n"), "mode"),
    (FileChange("a", "", REGULAR, None, b"x\n" * 50), "size"),
    (FileChange("a", "", REGULAR, None, b"x\r" * 50), "size"),
    (FileChange("a", "", REGULAR, None, b"x" * 16_385), "size"),
    (FileChange("a", "", REGULAR, None, b"\0"), "binary"),
])  # fmt: skip  # a table
def test_the_second_opinion_notices_each_kind(written: PatchRepository, made: FileChange, what: str) -> None:
    sides = written.write(Patch(BASE, (made,)))
    written.land()
    assert [one.partition(":")[0] for one in breaches(written.repo, *sides)] == [what]


@pytest.mark.attack(45)
@pytest.mark.parametrize("path", [path for path in UNSAFE if path], ids=ascii)
def test_an_unsafe_path_is_denied_for_good(path: str) -> None:
    decision = judge(fix(patch(change(path, None, b"x\n"))), policy_context())
    assert decision.verdict is Verdict.DENY


@pytest.mark.attack(49)
@pytest.mark.parametrize("path", PROTECTED)
def test_a_protected_path_needs_a_yes(path: str) -> None:
    decision = judge(fix(patch(change(path, b"a\n", b"b\n"))), policy_context())
    assert decision.verdict is not Verdict.ALLOW and "protected-path" in decision.rules


# --- trap 0.1: what git's own count hides ------------------------------------------------

HIDDEN: dict[str, tuple[bytes, bytes]] = {
    "-diff attribute": (b"", b"x\n" * 500),
    "a NUL byte": (b"", b"\0" + b"x\n" * 500),
    "a long line": (b"", b"x" * 800_000),
    "carriage returns": (b"", b"x\r" * 500),
    "line separators": (b"", "x\u2028".encode() * 300),
    "paragraph separators": (b"", "x\u2029".encode() * 300),
    "form feeds": (b"", b"x\f" * 300),
    "vertical tabs": (b"", b"x\v" * 300),
    "next lines": (b"", "x\x85".encode() * 300),
}


@pytest.mark.attack(50)
@pytest.mark.parametrize("name", HIDDEN)
def test_what_numstat_hides_is_measured(tmp_path: Path, name: str) -> None:
    old, new = HIDDEN[name]
    attributes = {".gitattributes": "*.txt -diff\n"} if name == "-diff attribute" else {}
    repo = make_repo(tmp_path / "repo", {"a.txt": old, **attributes})
    (repo / "a.txt").write_bytes(new)
    said = git(repo, "diff", "--numstat").split()[0]
    assert said in ("-", "1"), "the evasion is a real one"
    assert measure(patch(change("a.txt", old, new))).lines >= 300


# --- cases 47 and 48: what a repository names is not run ------------------------------------


@pytest.mark.attack(47, 48)
def test_no_submodule_filter_driver_or_hook_of_the_repository_runs_in_a_cycle(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    modules = (
        f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% {ran}\n[submodule "-y"]\n\turl = --upload-pack=x\n'
    )
    attributes = "* filter=evil diff=evil merge=evil\n"
    hub = world(tmp_path / "repo", {**TYPOS, ".gitmodules": modules, ".gitattributes": attributes}, CALM)
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv",
                "diff.evil.command", "merge.evil.driver", "core.fsmonitor", "diff.external"):  # fmt: skip  # one list
        git(hub.repo, "config", key, f"touch '{ran}'; cat")
    git(hub.repo, "config", "protocol.ext.allow", "always")
    hook = hub.repo / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    hook.chmod(0o755)
    report, _ = hub.cycle()
    assert report.outcome == "done" and len(hub.pulls) == 1
    assert not ran.exists()
