"""SARIF 2.1.0, as tools write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.observers import results
from ralph_mission.adapters.observers.results import GarbledOutput, Result

ROOT = Path("/srv/app")


def read(result: dict[str, Any], **run: Any) -> list[Result]:
    driver = {"name": "tool", "rules": run.pop("rules", [])}
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": [result], **run}]}
    return results.read_sarif(json.dumps(log).encode(), ROOT)


def at(uri: str, **location: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": uri, **location}, "region": {"startLine": 3}}
    return {"ruleId": "R1", "message": {"text": "odd"}, "locations": [{"physicalLocation": place}]}


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/a.py", "src/a.py"),
        ("src/with%20space.py", "src/with space.py"),
        ("src/caf%C3%A9.py", "src/café.py"),
        ("file:///srv/app/src/a.py", "src/a.py"),
        ("file://localhost/srv/app/a.py", "a.py"),
        ("file:///etc/passwd", ""),
        ("file:///srv/app/../x.py", ""),
        ("..%2Fx.py", ""),
        ("https://example.org/a.py", ""),
        ("file://elsewhere/srv/app/a.py", ""),
        ("http://[", ""),
        ("", ""),
    ],
)
def test_a_uri_becomes_a_path_in_the_repository_or_none(uri: str, path: str) -> None:
    assert read(at(uri))[0].path == path


def test_base_ids_are_resolved_through_each_other() -> None:
    bases = {"ROOT": {"uri": "file:///srv/app/"}, "SRC": {"uri": "src%20dir/", "uriBaseId": "ROOT"}}
    assert read(at("a.py", uriBaseId="SRC"), originalUriBaseIds=bases)[0].path == "src dir/a.py"


def test_base_ids_that_refer_to_each_other_do_not_hang() -> None:
    bases = {"A": {"uri": "a/", "uriBaseId": "B"}, "B": {"uri": "b/", "uriBaseId": "A"}}
    assert read(at("x.py", uriBaseId="A"), originalUriBaseIds=bases)[0].path.endswith("x.py")


def test_an_unknown_base_id_means_the_repository() -> None:
    assert read(at("src/a.py", uriBaseId="%SRCROOT%"))[0].path == "src/a.py"


def test_a_location_may_be_named_by_its_index() -> None:
    result = at("")
    result["locations"][0]["physicalLocation"]["artifactLocation"] = {"index": 1}
    artifacts = [{"location": {"uri": "a.py"}}, {"location": {"uri": "b.py"}}]
    assert read(result, artifacts=artifacts)[0].path == "b.py"


def test_a_result_without_a_place_is_still_a_result() -> None:
    assert read({"ruleId": "R1", "message": {"text": "odd"}}) == [Result("", 0, "R1", "odd", "warning")]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, True),
        ({"suppressions": []}, True),
        ({"suppressions": [{"kind": "inSource"}]}, False),
        ({"suppressions": [{"kind": "external", "status": "accepted"}]}, False),
        ({"suppressions": [{"kind": "external", "status": "underReview"}]}, True),
        ({"suppressions": [{"kind": "external", "status": "rejected"}]}, True),
        ({"baselineState": "new"}, True),
        ({"baselineState": "updated"}, True),
        ({"baselineState": "unchanged"}, False),
        ({"baselineState": "absent"}, False),
        ({"kind": "fail"}, True),
        ({"kind": "pass"}, False),
        ({"kind": "notApplicable"}, False),
    ],
)
def test_only_what_stands_is_told(said: dict[str, Any], told: bool) -> None:
    assert bool(read(at("a.py") | said)) is told


@pytest.mark.parametrize(
    ("result", "rule", "level"),
    [
        ({"level": "error"}, {}, "error"),
        ({"level": "none"}, {}, "note"),
        ({}, {"defaultConfiguration": {"level": "note"}}, "note"),
        ({"level": "warning"}, {"defaultConfiguration": {"level": "error"}}, "warning"),
        ({}, {}, "warning"),
    ],
)
def test_the_level_is_the_results_or_the_rules(result: dict[str, Any], rule: dict[str, Any], level: str) -> None:
    assert read(at("a.py") | result, rules=[{"id": "R1", **rule}])[0].level == level


def test_a_rule_may_be_named_by_its_index() -> None:
    result = at("a.py") | {"ruleIndex": 1}
    del result["ruleId"]
    assert read(result, rules=[{"id": "R0"}, {"id": "R9"}])[0].code == "R9"


def test_a_message_may_be_a_template_of_the_rule() -> None:
    rules = [{"id": "R1", "messageStrings": {"unused": {"text": "{0} is never used in {1}"}}}]
    result = at("a.py") | {"message": {"id": "unused", "arguments": ["x", "f"]}}
    assert read(result, rules=rules)[0].message == "x is never used in f"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"version": "2.0.0", "runs": []}',
        b'{"version": "2.1.0", "runs": [3]}',
        b'{"version": "2.1.0", "runs": [{"tool": {"driver": {}}, "results": [{}]}]}',
        b"\xff\xfe",
        b'{"version',
    ],
)
def test_what_is_no_sarif_is_garbled(raw: bytes) -> None:
    with pytest.raises(GarbledOutput):
        results.read_sarif(raw, ROOT)


def test_a_tool_that_says_it_failed_did_not_find_nothing() -> None:
    run = {"tool": {"driver": {}}, "invocations": [{"executionSuccessful": False}]}
    with pytest.raises(GarbledOutput, match="failed"):
        results.read_sarif(json.dumps({"version": "2.1.0", "runs": [run]}).encode(), ROOT)


def test_a_tools_own_fingerprint_outlasts_a_stale_line_number() -> None:
    result = at("a.py") | {"partialFingerprints": {"primaryLocationLineHash": "39fa2ee980eb94b0:1"}}
    assert read(result)[0].identity == "primaryLocationLineHash=39fa2ee980eb94b0:1"


def test_what_is_said_in_place_of_a_fingerprint_is_none() -> None:
    assert read(at("a.py") | {"fingerprints": {"matchBasedId/v1": "requires login"}})[0].identity == ""


def test_the_text_the_tool_saw_is_kept() -> None:
    result = at("a.py")
    result["locations"][0]["physicalLocation"]["region"]["snippet"] = {"text": "x = eval(y)"}
    assert read(result)[0].snippet == "x = eval(y)"


def test_with_neither_the_observer_looks_at_the_file() -> None:
    assert read(at("a.py"))[0].identity == ""


@pytest.mark.parametrize(
    ("code", "message", "title"),
    [
        ("E0606/possibly-used-before-assignment", "Possibly using variable 'found' before assignment",
         "`found` may be unset in cli.py:61"),
        ("F401", "`os` imported but unused", "`os` is imported and never used in cli.py:61"),
        ("@typescript-eslint/no-unused-vars", "'key' is defined but never used.", "`key` is never used in cli.py:61"),
        ("react-hooks/rules-of-hooks", 'React Hook "useRef" is called conditionally.',
         "`useRef` breaks the rules of hooks in cli.py:61"),
        ("TS2339", "Property 'x' does not exist on type 'Y'.", "`Y` has no `x` in cli.py:61"),
        ("F401", "an import that is unused", "an import that is unused in cli.py:61"),
        ("X1", "word " * 30, f"{'word ' * 12}word… in cli.py:61"),
    ],
)  # fmt: skip  # as one reads it
def test_a_title_is_what_a_person_would_write_or_the_tools_words_cut_short(code: str, message: str, title: str):
    assert results.title_of(Result("cli.py", 61, code, message), "cli.py:61") == title
