"""A guard of the product, the text that switches it off, and the test that then fails."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = Path(__file__).parent / "rows"


class Stale(Exception):
    """The product's text is not what a guard's row says: the row has to follow it."""


@dataclass(frozen=True)
class Guard:
    """`holds`: the promise (I4), attack case (52) or rule (mission-cap) that it is for. Off, `text` of `file` is `off`.

    `text` stands in the file exactly once. `killed_by` is the id of a test, below `tests/`.
    """

    name: str
    holds: str
    file: str
    text: str
    off: str
    killed_by: str

    @property
    def module(self) -> str:
        """The name of `file` for `import`; "" for what is no module of the product."""
        inside = self.file.startswith("ralph_mission/") and self.file.endswith(".py")
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") if inside else ""

    @property
    def test(self) -> str:
        """The test that fails without it, as pytest takes it."""
        return f"tests/{self.killed_by}"

    def find_fault(self) -> str:
        """What of its row does not fit the product or the tests any more, in words; "" when it can be played."""
        if not _is_defined(self.test):
            return f"there is no test {self.test}"
        if not (ROOT / self.file).is_file():
            return f"there is no file {self.file}"
        if (found := (ROOT / self.file).read_text(encoding="utf-8").count(self.text)) != 1:
            return f"its text stands {found} times in {self.file}"
        return f"off, {self.file} stays as it is" if self.off == self.text else ""

    def switched_off(self) -> str:
        """The text of the file without this guard. Raises Stale when its row does not fit."""
        if fault := self.find_fault():
            raise Stale(f"{self.name}: {fault}")
        return (ROOT / self.file).read_text(encoding="utf-8").replace(self.text, self.off)


@cache
def read_guards() -> dict[str, Guard]:
    """Every guard by its name. Raises ValueError when two have the same."""
    found: dict[str, Guard] = {}
    for path in sorted(ROWS.glob("*.toml")):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"two guards are named {name}")
            found[name] = Guard(name, **row)
    return found


def _is_defined(test: str) -> bool:
    file, _, name = test.partition("[")[0].partition("::")
    return (ROOT / file).is_file() and name.rpartition("::")[2] in _defined_in(file)


@cache
def _defined_in(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"(?m)^\s*(?:async )?def (test\w*)", (ROOT / file).read_text(encoding="utf-8")))
