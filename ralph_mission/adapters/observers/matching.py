"""Matches a regular expression against lines in a separate process, which can be killed.

Python's engine backtracks, and a pattern may run forever on untrusted input. Run by path in a bare interpreter: it only
imports the standard library.
Input: {"pattern", "lines", "most", "seconds"} as JSON. Output: a list of objects, one per match, by group name.
"""

from __future__ import annotations

import json
import re
import signal
import sys


def main() -> None:
    """Read the request from standard input, write the matches to standard output."""
    request = json.load(sys.stdin)
    signal.alarm(request["seconds"])  # the parent may be gone
    pattern = re.compile(request["pattern"])
    answers: list[dict[str, str]] = []
    for line in request["lines"]:
        if len(answers) < request["most"] and (found := pattern.search(line)):
            answers.append({"message": found[0], **{k: v for k, v in found.groupdict().items() if v}})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
