"""`python -m tools.trust [SUITE ...]`: measure suites (`all` for every one), then write docs/trust.md and evidence."""

from __future__ import annotations

import sys
from subprocess import CalledProcessError

from tools.trust.document import EVIDENCE, FILE, document, evidence
from tools.trust.suites import SUITES, kept, measure


def main(names: list[str]) -> int:
    unknown = set(names) - SUITES.keys() - {"all"}
    if unknown:
        print(f"no suite {', '.join(sorted(unknown))}: name some of {', '.join(SUITES)}, or all", file=sys.stderr)
        return 2
    failed = [name for name in (SUITES if "all" in names else names) if not measured(name)]
    FILE.write_text(document(kept()))
    EVIDENCE.write_text(evidence(kept()))
    if failed:
        print(f"[trust] failed, and their figures are as they were: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def measured(name: str) -> bool:
    """Whether a suite came to its end; the others are measured all the same."""
    print(f"[trust] {name} ...", file=sys.stderr, flush=True)
    try:
        measure(name)
    except CalledProcessError as error:
        print(f"[trust] {name}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
