"""Matches a regular expression against lines, as a program of its own, so that it can be ended.

Python's engine backtracks, and a pattern may take for ever on a line somebody else wrote. Run
by path in a bare interpreter: it imports the standard library only.
Input: {"pattern", "lines", "most", "seconds"} as JSON. Output: a list of objects, one per match, by group name.
"""

from __future__ import annotations

import json
import re
import signal
import sys


def main() -> None:
    """Read the question from standard input, write the answer to standard output."""
    asked = json.load(sys.stdin)
    signal.alarm(asked["seconds"])  # who waits for it may have been killed
    pattern = re.compile(asked["pattern"])
    answers: list[dict[str, str]] = []
    for line in asked["lines"]:
        if len(answers) < asked["most"] and (found := pattern.search(line)):
            answers.append({"message": found[0], **{k: v for k, v in found.groupdict().items() if v}})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
