"""Paths nobody wants findings in: vendored, generated, minified and lock files, and what the user adds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pathspec import GitIgnoreSpec

FOLDERS = tuple(
    (
        "node_modules bower_components vendor third_party third-party site-packages venv .venv dist Pods Carthage"
        " .yarn .next generated __generated__ __snapshots__"
    ).split()
)
ENDINGS = tuple(
    (
        ".min.js .min.css .bundle.js .map .lock -lock.json -lock.yaml npm-shrinkwrap.json go.sum .svg .snap .csv"
        " .pb.go _pb2.py _pb2.pyi .g.dart .generated.ts .tsbuildinfo"
    ).split()
)
PATHSPECS = tuple(f":(exclude,glob)**/{folder}/**" for folder in ("node_modules", "vendor", "third_party", "dist"))
"""The largest, as git takes them, so that it need not even read them; each costs a little for every file."""

_BUILT_IN = re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, FOLDERS))})/|(?:{'|'.join(map(re.escape, ENDINGS))})$")


def excluder(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path is left out, by the built-in rules or by `patterns` (as in .gitignore)."""
    spec = GitIgnoreSpec.from_lines(patterns)
    return lambda path: bool(_BUILT_IN.search(path)) or (len(spec.patterns) > 0 and spec.match_file(path))
