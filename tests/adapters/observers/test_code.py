"""The code observer on real repositories."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import code
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from tests.adapters.observers.place import LATER, Place
from tests.helpers import NOON, commit, git

BODY = "def run():\n    start()\n    # TODO: close the file\n    stop()\n"


def look(place: Place, cursor: str = "", **settings: object) -> Observation:
    return code.build(code.CodeSettings.model_validate(settings), place.git).observe(place.context(cursor))


def titles(observation: Observation) -> list[str]:
    return [signal.title for signal in observation.signals]


def test_first_look_counts_each_kind_instead_of_listing_it(place: Place) -> None:
    commit(place.path, {"a.py": BODY * 3, "b.py": BODY, "c.ts": "// @ts-ignore\nlet x: any = 1;\n"})
    seen = look(place)
    assert titles(seen) == [
        "1 any marker in 1 file: c.ts:2",
        "4 TODO markers in 2 files: a.py:3, :7, :11, b.py:3",
        "1 ts-ignore marker in 1 file: c.ts:1",
    ]
    assert seen.complete
    assert "- a.py: 3" in seen.signals[1].detail


def test_a_title_names_a_line_once_and_the_end_of_a_long_path_with_how_many_more(place: Place) -> None:
    commit(place.path, {f"{'deep/' * 20}x.py": "# TODO: one TODO: two\n" + BODY * 3})
    (title,) = titles(look(place))
    assert title.endswith("deep/x.py:1 and 3 more") and len(title) < 120


def test_a_count_names_the_oldest_with_author_and_age(place: Place) -> None:
    commit(place.path, {"a.py": BODY}, author="Old Hand <old@example.org>", date=NOON - timedelta(days=90))
    commit(place.path, {"b.py": BODY}, date=NOON)
    (signal,) = look(place).signals
    assert signal.author == "Old Hand"
    assert signal.age_days == pytest.approx(100)
    assert "a.py:3, by Old Hand, 100 days ago" in signal.detail


def test_a_count_shows_markers_themselves_the_suspicious_ones_of_own_code_first(place: Place) -> None:
    head = commit(
        place.path,
        {"a.py": BODY, "b.py": "# TODO: this is wrong\n", "tests/a.py": "# FIXME: fails on Mondays\n"},
    )
    (signal,) = look(place).signals
    assert signal.quotes == (
        Quote("# TODO: this is wrong", "b.py", 1, head),
        Quote("# TODO: close the file", "a.py", 3, head),
        Quote("# FIXME: fails on Mondays", "tests/a.py", 1, head),
    )


LATE = "def wait():\n    # TODO: remove this after 2019\n    sleep(9)\n"


def overdue(observation: Observation) -> list[Signal]:
    return [signal for signal in observation.signals if signal.kind == "overdue-marker"]


def test_an_overdue_marker_is_a_finding_of_its_own_with_the_line_itself(place: Place) -> None:
    head = commit(place.path, {"a.py": LATE}, date=LATER - timedelta(days=5))
    (signal,) = overdue(look(place))
    assert signal.title == "Overdue TODO in a.py:2: remove this after 2019"
    assert signal.quotes == (Quote("# TODO: remove this after 2019", "a.py", 2, head),)
    assert signal.detail.startswith("The date that it names is over: 2019.\nLast changed by Mara Quint, 5 days ago.")


def test_a_new_marker_that_is_overdue_already_is_no_second_finding(place: Place) -> None:
    before = commit(place.path, {"a.py": "x = 1\n"})
    commit(place.path, {"b.py": LATE + "# TODO: and this\n"})
    found = look(place, before).signals
    assert sorted((signal.kind, signal.line) for signal in found) == [("overdue-marker", 2), ("todo", 4)]


def test_what_one_fact_made_overdue_is_one_finding_with_the_line_that_proves_it(place: Place) -> None:
    marker = "# TODO: remove when we drop Python 3.8\n"
    head = commit(
        place.path,
        {"a.py": marker, "b.py": marker, "pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.10"\n'},
    )
    (signal,) = overdue(look(place))
    assert signal.title == "Overdue TODO in a.py:1 (and 1 marker more): remove when we drop Python 3.8"
    assert [(quote.path, quote.line) for quote in signal.quotes] == [("a.py", 1), ("b.py", 1), ("pyproject.toml", 3)]
    assert signal.quotes[-1] == Quote('requires-python = ">=3.10"', "pyproject.toml", 3, head)


def test_a_condition_that_comes_true_without_a_change_of_the_file_is_seen(place: Place) -> None:
    toml = '[project]\nname = "x"\nrequires-python = ">=3.{}"\n'
    marker = "# TODO: remove when we drop Python 3.8\n"
    before = commit(place.path, {"a.py": marker, "pyproject.toml": toml.format(8)})
    assert overdue(look(place)) == []
    commit(place.path, {"pyproject.toml": toml.format(9)})
    assert len(overdue(look(place, before))) == 1


def test_an_overdue_marker_keeps_its_identity_when_it_moves_and_is_gone_when_it_goes(place: Place) -> None:
    before = commit(place.path, {"a.py": LATE})
    (here,) = identify(overdue(look(place)))
    moved = commit(place.path, {"a.py": None, "b/c.py": "import os\n\n\n" + LATE})
    seen = look(place, before)
    (there,) = identify(overdue(seen))
    assert (here.fingerprint, seen.gone) == (there.fingerprint, ())
    commit(place.path, {"b/c.py": "import os\n"})
    assert here.signal.essence in look(place, moved).gone


def test_overdue_markers_are_looked_for_once_a_day_at_a_commit(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = commit(place.path, {"a.py": LATE})
    observer = code.build(code.CodeSettings(), place.git, tmp_path / "cache")
    first = observer.observe(place.context())
    monkeypatch.setattr(code, "scan", lambda git, commit, markers, excluded, paths: _only_changed(paths))
    assert overdue(observer.observe(place.context(head))) == overdue(first)


def _only_changed(paths: object) -> tuple[()]:
    assert paths == []
    return ()


def test_a_new_marker_is_a_finding_with_its_place_author_and_age(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"src/a.py": BODY}, date=LATER - timedelta(days=2))
    seen = look(place, before)
    (signal,) = seen.signals
    assert signal.title == "TODO in src/a.py:3: close the file"
    assert (signal.path, signal.line, signal.author) == ("src/a.py", 3, "Mara Quint")
    assert signal.age_days == pytest.approx(2)
    assert not seen.complete
    assert seen.cursor == git(place.path, "rev-parse", "HEAD")


def test_a_marker_that_was_there_before_is_not_news(place: Place) -> None:
    before = commit(place.path, {"a.py": BODY})
    commit(place.path, {"a.py": "import os\n\n\n" + BODY})
    assert look(place, before).signals == ()


def test_a_marker_moved_to_another_file_is_not_news(place: Place) -> None:
    before = commit(place.path, {"a.py": BODY})
    commit(place.path, {"a.py": None, "deep/b.py": "import os\n" + BODY})
    assert look(place, before).signals == ()


def test_a_marker_whose_neighbour_was_edited_is_not_news(place: Place) -> None:
    before = commit(place.path, {"a.py": BODY})
    commit(place.path, {"a.py": BODY.replace("start()", "begin()")})
    seen = look(place, before)
    assert (seen.signals, seen.gone) == ((), ())


def test_a_marker_that_is_no_longer_there_is_gone(place: Place) -> None:
    start = git(place.path, "rev-parse", "HEAD")
    before = commit(place.path, {"a.py": BODY})
    (signal,) = look(place, start).signals
    commit(place.path, {"a.py": "x = 1\n"})
    assert look(place, before).gone == (signal.essence,)


def test_a_second_marker_with_the_same_words_is_news(place: Place) -> None:
    before = commit(place.path, {"a.py": BODY})
    commit(place.path, {"a.py": BODY + BODY})
    assert len(look(place, before).signals) == 1


def test_the_fingerprint_survives_a_move_and_a_new_indentation(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a.py": BODY})
    here = identify(look(place, before).signals)
    commit(place.path, {"a.py": None, "b/c.py": "\n\nif x:\n" + BODY.replace("    ", "        ")})
    there = identify(look(place, before).signals)
    assert [finding.fingerprint for finding in here] == [finding.fingerprint for finding in there]


def test_a_flood_of_new_markers_is_counted(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    head = commit(place.path, {"a.py": "".join(f"# TODO: thing {number}\n" for number in range(code.MANY + 1))})
    (signal,) = look(place, before).signals
    assert signal.title == "51 new TODO markers in 1 file: a.py:1, :2, :3, :4, :5, :6, :7, :8, :9, :10, :11 and 40 more"
    assert signal.occurrence == head[:12]


def test_fixme_weighs_more_than_todo(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a.c": "/* FIXME: leaks */\n", "b.c": "/* TODO: tidy */\n"})
    assert [signal.severity for signal in look(place, before).signals] == [Severity.MEDIUM, Severity.LOW]


def test_an_unknown_cursor_is_a_first_look(place: Place) -> None:
    commit(place.path, {"a.py": BODY})
    assert titles(look(place, "0" * 40)) == titles(look(place, "HEAD~1")) == titles(look(place))


def test_nothing_is_scanned_when_nothing_changed(place: Place) -> None:
    head = commit(place.path, {"a.py": BODY})
    seen = look(place, head)
    assert (seen.signals, seen.cursor) == ((), head)
    assert seen.detail == f"0 files changed, 0 new markers; 0 commits by 0 authors since {head[:12]}"


def test_commits_and_authors_are_told(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a": "1"})
    commit(place.path, {"a": "2"}, author="Joe Roe <joe@example.org>")
    assert "; 2 commits by 2 authors since " in look(place, before).detail


def test_the_work_tree_and_the_index_are_not_looked_at(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    (place.path / "a.py").write_text(BODY)
    git(place.path, "add", "a.py")
    assert look(place, before).signals == look(place).signals == ()


def test_excluded_and_vendored_paths_are_left_out(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    names = ("node_modules/x/i.js", "web/dist/i.js", "lib/jquery.min.js", "yarn.lock", "own/skip/i.js", "own/i.js")
    commit(place.path, dict.fromkeys(names, "// TODO: it\n"))
    assert [signal.path for signal in look(place, before, exclude=["skip/"]).signals] == ["own/i.js"]
    assert titles(look(place, exclude=["skip/"])) == ["1 TODO marker in 1 file: own/i.js:1"]


def test_what_says_that_a_program_wrote_it_is_left_out(place: Place) -> None:
    generated = {
        "gen/a.go": "// Code generated by protoc-gen-go. DO NOT EDIT.\n\n// TODO: remove after 2020-01-01\n",
        "b.js": "/**\n * @generated by flow\n */\n// TODO: remove after 2020-01-01\n",
    }
    commit(place.path, {**generated, "c.py": 'HEAD = "@generated"\n# TODO: rename\n'})
    assert titles(look(place)) == ["1 TODO marker in 1 file: c.py:2"]


def test_binary_files_and_endless_lines_are_left_out(place: Place) -> None:
    commit(place.path, {"a.bin": b"\0# TODO: x\n", "b.js": "x" * 2_000 + " // TODO: y\n"})
    assert look(place).signals == ()


@pytest.mark.parametrize("name", ["new\nline.py", "-dash.py", ":(top)x.py", "tab\t.py", "ünïcode.py", "*.py"])
def test_odd_names_are_read(place: Place, name: str) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"plain.py": BODY})
    blob = git(place.path, "hash-object", "-w", "--stdin", stdin=BODY)
    git(place.path, "update-index", "-z", "--index-info", stdin=f"100644 {blob}\t{name}\0")
    git(place.path, "commit", "--quiet", "-m", "odd", env=_who())
    found = {signal.path: signal for signal in look(place, before).signals}
    assert found.keys() == {"plain.py", name}
    assert "\n" not in found[name].title
    assert found[name].author == "Odd"


def test_a_name_that_is_no_utf8_is_shown_as_valid_text(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    (Path(os.fsdecode(os.fsencode(place.path) + b"/caf\xe9.py"))).write_text(BODY)
    git(place.path, "add", "--all")
    git(place.path, "commit", "--quiet", "-m", "latin", env=_who())
    (signal,) = look(place, before).signals
    assert signal.path == "caf\ufffd.py"
    assert signal.title.encode() and signal.author == "Odd"


def test_a_repository_without_commits_is_fine(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    place = Place(tmp_path, tmp_path)
    observer = code.build(code.CodeSettings(), place.git)
    assert observer.observe(place.context(head="")).detail == "no commits yet"


def test_an_empty_tree_is_fine(place: Place) -> None:
    before = commit(place.path, {"a.py": BODY})
    commit(place.path, {"a.py": None, "README.md": None})
    assert look(place).signals == look(place, before).signals == ()


def test_a_bare_repository_is_fine(place: Place, tmp_path: Path) -> None:
    head = commit(place.path, {"a.py": BODY})
    git(tmp_path, "clone", "--quiet", "--bare", str(place.path), str(tmp_path / "bare"))
    bare = code.build(code.CodeSettings(), Git.open(tmp_path / "bare"))
    assert titles(bare.observe(place.context(head=head))) == ["1 TODO marker in 1 file: a.py:3"]


def test_what_a_shallow_clone_does_not_know_is_not_made_up(place: Place, tmp_path: Path) -> None:
    commit(place.path, {"a.py": BODY})
    head = commit(place.path, {"b.py": "x = 1\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{place.path}", str(tmp_path / "shallow"))
    (signal,) = (
        code.build(code.CodeSettings(), Git.open(tmp_path / "shallow")).observe(place.context(head=head)).signals
    )
    assert (signal.author, signal.age_days) == ("", 0.0)


def test_a_detached_head_is_no_obstacle(place: Place) -> None:
    commit(place.path, {"a.py": BODY})
    git(place.path, "checkout", "--quiet", "--detach")
    assert titles(look(place)) == ["1 TODO marker in 1 file: a.py:3"]


def test_a_pattern_git_cannot_read_names_the_marker(place: Place) -> None:
    with pytest.raises(UserError, match="marker odd: ") as problem:
        look(place, markers={"odd": "a{1,99999}"})
    assert "observers.code.markers.odd" in problem.value.next_step


def test_a_character_class_is_taken_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    code.CodeSettings.model_validate({"markers": {"odd": "[[:space:]]TODO"}})
    assert recwarn.list == []


def test_a_pattern_that_is_no_regular_expression_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        code.CodeSettings.model_validate({"markers": {"odd": "("}})


@pytest.mark.attack(57)
def test_a_pattern_that_takes_too_long_is_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.observers.markers.MARKER_SECONDS", 0.3)
    commit(place.path, {"a.txt": ("a" * 60 + "\n") * 2_000})
    with pytest.raises(UserError, match="marker slow: no answer within"):
        look(place, markers={"slow": r"(a|aa)*(a|aa)*(a|aa)*\1\2\3b"})


def test_a_configured_pattern_runs_in_git_as_it_is(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a.py": "print('debug')\nfootprint(1)\n"})
    assert [signal.line for signal in look(place, before, markers={"debug": r"^print\("}).signals] == [1]


def test_many_changed_files_are_all_scanned(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.observers.markers.ARGUMENTS", 10)
    before = commit(place.path, {"old.py": BODY})
    commit(place.path, {"one.py": "# TODO: one\n", "two.py": "# TODO: two\n"})
    assert [signal.path for signal in look(place, before).signals] == ["one.py", "two.py"]


def test_nothing_in_the_repository_changes(place: Place) -> None:
    commit(place.path, {"a.py": BODY})
    before = _state(place.path)
    look(place)
    assert _state(place.path) == before


def test_a_repository_cannot_make_git_run_anything(place: Place, tmp_path: Path) -> None:
    mine = tmp_path / "ran"
    before = commit(place.path, {".gitattributes": "* diff=evil\n"})
    commit(place.path, {"a.py": BODY})
    for key in ("diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "log.showSignature"):
        git(place.path, "config", key, f"touch {mine}; cat" if "log" not in key else "true")
    assert len(look(place, before).signals) == 1
    assert not mine.exists()


@pytest.mark.parametrize("bad", [{"exclude": ["!"]}, {"markers": {"A B": "x"}}, {"markers": {"a": ""}}, {"nope": 1}])
def test_impossible_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        code.CodeSettings.model_validate(bad)


def _who() -> dict[str, str]:
    return {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "Odd"), ("EMAIL", "odd@example.org"), ("DATE", NOON.isoformat()))
    }


def _state(repo: Path) -> str:
    return git(repo, "for-each-ref") + git(repo, "status", "--porcelain") + (repo / ".git/config").read_text()


def test_the_right_one_of_several_authors_is_named(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a.py": "# TODO: by the first\nx = 1\n"}, author="First <f@example.org>")
    commit(place.path, {"a.py": "# TODO: by the first\nx = 1\n# TODO: by two\n"}, author="Second <s@example.org>")
    commit(place.path, {"b.py": "# TODO: by the third\n"}, author="Third <t@example.org>")
    assert [(signal.line, signal.author) for signal in look(place, before).signals] == [
        (1, "First"),
        (3, "Second"),
        (1, "Third"),
    ]


def test_a_merge_is_followed_to_who_wrote_the_line(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    git(place.path, "checkout", "--quiet", "-b", "topic")
    commit(place.path, {"a.py": BODY}, author="Joe Roe <joe@example.org>")
    git(place.path, "checkout", "--quiet", "main")
    git(place.path, "merge", "--quiet", "--no-ff", "-m", "Merge", "topic", env=_who())
    (signal,) = look(place, before).signals
    assert signal.author == "Joe Roe"


@pytest.mark.parametrize(
    "when", ["253402300800", "9" * 30, "9" * 5_000], ids=["year 10000", "30 digits", "5000 digits"]
)
@pytest.mark.attack(17)
def test_a_commit_of_a_year_that_no_calendar_has_is_read_like_any_other(place: Place, when: str) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a.py": BODY}, author="Joe Roe <joe@example.org>")
    raw = git(place.path, "cat-file", "commit", "HEAD")
    aged = re.sub(r"(?m)^(author .*> )\d+", rf"\g<1>{when}", raw)
    odd = git(place.path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=f"{aged}\n")
    git(place.path, "update-ref", "refs/heads/main", odd)
    seen = look(place, before)
    assert "; 1 commit by 1 author" in seen.detail
    assert [(signal.author, signal.age_days) for signal in seen.signals] == [("Joe Roe", 0.0)]


def test_a_file_named_like_a_record_of_the_log_is_a_file(place: Place) -> None:
    before = git(place.path, "rev-parse", "HEAD")
    commit(place.path, {"a": "1", "\x01Mara": "1", "\nb": "1"})
    assert "; 1 commit by 1 author" in look(place, before).detail


@pytest.mark.parametrize(
    ("author", "message"),
    [
        ("Ralph <ralph@localhost>", "Correct it"),
        ("github-actions[bot] <bot@x.test>", "Correct it\n\nApproved by mara.\nTo reject: revert this commit.\n"),
    ],
)
def test_a_marker_that_a_change_of_our_own_brought_is_no_news(place: Place, author: str, message: str) -> None:
    before = commit(place.path, {"a.py": "x = 1\n"})
    commit(place.path, {"a.py": "x = 1\n# TODO: ours\n"}, author=author, message=message)
    assert look(place, before).signals == ()
    commit(place.path, {"b.py": "# TODO: theirs\n"})
    assert [signal.path for signal in look(place, before).signals] == ["b.py"]
