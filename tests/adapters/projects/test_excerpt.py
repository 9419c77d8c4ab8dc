"""Which lines of a failed command's output are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.projects.excerpt import excerpt

NPM = b"""npm error code EUSAGE
npm error
npm error The `npm ci` command can only install with an existing package-lock.json
npm error A complete log of this run can be found in: /tmp/x/_logs/debug-0.log
"""
YARN = b"""yarn install v1.22.22
info No lockfile found.
warning package.json: No license field
[1/4] Resolving packages...
error Couldn't find package "left-padd" on the "npm" registry.
info Visit https://example.org for documentation about this command.
"""
PYTEST = b"""..F
=================================== FAILURES ===================================
E       assert 1 == 2
FAILED tests/test_a.py::test_a - assert 1 == 2
"""


@pytest.mark.parametrize(
    "output, first",
    [
        (NPM, "npm error code EUSAGE"),
        (YARN, 'error Couldn\'t find package "left-padd" on the "npm" registry.'),
        (PYTEST, "=================================== FAILURES ==================================="),
    ],
)
def test_it_begins_where_the_output_says_what_went_wrong(output, first):
    assert excerpt(b"", output).splitlines()[0] == first


def test_a_log_that_will_be_gone_is_not_quoted():
    assert "complete log" not in excerpt(b"", NPM)
    assert "can only install" in excerpt(b"", NPM)


def test_without_a_telling_line_the_last_ones_are_shown():
    assert excerpt(b"\n".join(b"line %d" % number for number in range(9)), b"") == "\n".join(
        f"line {number}" for number in range(4, 9)
    )


def test_the_folder_of_the_clone_and_what_steers_a_terminal_are_left_out():
    assert excerpt(b"", b"\x1b[31merror\x1b[0m in /tmp/c/a.py\n", Path("/tmp/c")) == "error in a.py"


def test_nothing_is_nothing():
    assert excerpt(b"", b"\n \n") == ""
