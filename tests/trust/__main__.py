"""`python -m tests.trust [SUITE ...]`: measure suites (`all` for every one), then write docs/trust.md."""

from __future__ import annotations

import sys

from tests.trust.document import FILE, document
from tests.trust.suites import SUITES, kept, measure


def main(names: list[str]) -> int:
    unknown = set(names) - SUITES.keys() - {"all"}
    if unknown:
        print(f"no suite {', '.join(sorted(unknown))}: name some of {', '.join(SUITES)}, or all", file=sys.stderr)
        return 2
    for name in SUITES if "all" in names else names:
        print(f"[trust] {name} ...", file=sys.stderr, flush=True)
        measure(name)
    FILE.write_text(document(kept()))
    return 0


sys.exit(main(sys.argv[1:]))
