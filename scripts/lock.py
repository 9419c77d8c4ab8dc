"""Pin the newest dependencies that fit, in one resolution: with hashes and without naming a registry (`make lock`).

`requirements.lock` is what ralph needs everywhere and `requirements-EXTRA.lock` what an extra brings beyond that.
`requirements-dev.lock` names those (but for two that bring large programs) and adds the tools of development;
`requirements-docs.lock` is what builds the site, `requirements-uv.lock` what the action installs the others with. It
runs on .venv's own Python, after `make install-dev`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGE = ("claude", "prisma")  # with a program of 60 MB or more: none of `make test` needs it


def main() -> None:
    """Write every lock file. Raises CalledProcessError when nothing fits."""
    extras = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    with tempfile.TemporaryDirectory(prefix="ralph-lock-") as folder:
        every = Path(folder) / "every.lock"
        groups = (word for group in ("dev", "docs", "release", "mutants") for word in ("--group", group))
        every.write_text(resolve(*groups, *options(extras), "--upgrade"))
        pinned = ("--constraint", str(every))
        base = resolve("--group", "build", *pinned)
        parts = {"": base} | {extra: without(resolve("--extra", extra, *pinned), base) for extra in extras}
        held = [name for name in parts if name not in LARGE]
        dev = resolve("--group", "dev", *options(extras, but=LARGE), *pinned)
        named = "".join(f"-r {file(name)}\n" for name in held)
        parts["dev"] = named + without(dev, *(parts[name] for name in held))
        more = resolve("--group", "dev", "--group", "mutants", *options(extras, but=LARGE), *pinned)
        parts["mutants"] = without(more, dev)
        parts["release"] = resolve("--only-group", "release", *pinned)
        parts["uv"] = next(block for block in blocks(parts["release"]) if block.startswith("uv=="))
        parts["docs"] = resolve("--only-group", "docs", *pinned)
        for name, text in parts.items():
            (ROOT / file(name)).write_text(text)


def options(extras: tuple[str, ...], but: tuple[str, ...] = ()) -> Iterator[str]:
    """What names these extras to uv."""
    for extra in extras:
        if extra not in but:
            yield from ("--extra", extra)


def resolve(*what: str) -> str:
    """The text of a lock file, for every Python and every machine that is supported."""
    only = "--only-group" in what
    words = [word for word in what if word != "--only-group"]
    source = ["--group", f"pyproject.toml:{words.pop(0)}"] if only else ["pyproject.toml"]
    fixed = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url")
    plain = ("--no-emit-find-links", "--no-header", "--no-annotate", "--quiet")
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", *source, *words, *fixed, *plain]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def without(lock: str, *others: str) -> str:
    """The packages of a lock file that stand in none of the others."""
    known = {block for other in others for block in blocks(other)}
    return "".join(block for block in blocks(lock) if block not in known)


def blocks(lock: str) -> list[str]:
    """The text of a lock file by package, each with its hashes."""
    found: list[str] = []
    for line in lock.splitlines(keepends=True):
        if line.startswith(" "):
            found[-1] += line
        else:
            found.append(line)
    return found


def file(name: str) -> str:
    """The name of a lock file."""
    return f"requirements-{name}.lock" if name else "requirements.lock"


if __name__ == "__main__":
    main()
