"""Actions that other workflows left behind, or made for a Node.js that GitHub no longer supports; and those not pinned
where a repository pins them, with commits that git asks of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.actions import (
    ActionTags,
    LooseUse,
    asks_for_pins,
    is_bot_file,
    is_updated_by_bot,
    lagging_actions,
    loose_uses,
    pin_actions,
)
from ralph_mission.errors import UserError
from tests.fakes.github.server import FakeGitHub
from tests.helpers import NOON, commit, copy_bare, git, make_repo

NEW = b"steps:\n  - uses: actions/checkout@v4\n  - uses: actions/setup-node@v4 # why\n"
OLD = b"steps:\r\n- name: a\r\n  uses: 'actions/checkout@v2'\r\n- uses: actions/setup-node@v4\r\n"


def test_a_checkout_that_one_workflow_left_behind_is_brought_to_what_the_others_use() -> None:
    one = lagging_actions({"a.yml": NEW, "b.yml": NEW, "c.yml": OLD}, "0" * 40)
    assert one is not None and one.patch is not None
    assert one.title == "Use actions/checkout v4 in c.yml, as other workflows here do"
    (change,) = one.patch.changes
    assert change.new == OLD.replace(b"checkout@v2", b"checkout@v4")
    assert [(quote.path, quote.line, quote.text) for quote in one.quotes] == [
        ("c.yml", 3, "uses: 'actions/checkout@v2'")
    ]


@pytest.mark.parametrize(
    "workflows",
    [
        (NEW, OLD),  # one use elsewhere may be a trial
        (NEW, NEW, OLD.replace(b"@v2", b"@v3")),  # a single major
        (NEW, NEW, OLD.replace(b"@v2", b"@v2.4.0")),  # a release that somebody chose
        (NEW, NEW, OLD.replace(b"@v2", b"@" + b"1" * 40)),
        (NEW, NEW, OLD.replace(b"  uses", b"# uses")),
        (NEW, NEW, OLD.replace(b"checkout", b"upload-artifact"), NEW.replace(b"checkout", b"upload-artifact") * 2),
    ],
)
def test_nothing_is_told_of_what_others_do_not_show(workflows: tuple[bytes, ...]) -> None:
    assert lagging_actions({f"{n}.yml": text for n, text in enumerate(workflows)}, "0" * 40) is None


def test_actions_for_an_ended_node_are_brought_to_the_first_major_for_a_current_one_or_what_others_use() -> None:
    newer = NEW.replace(b"checkout@v4", b"checkout@v6").replace(b"setup-node@v4", b"setup-python@v6")
    one = lagging_actions({"a.yml": NEW, "b.yml": newer, "c.yml": newer}, "0" * 40, judge_node=True)
    assert one is not None and one.patch is not None
    (change,) = one.patch.changes
    assert change.new == NEW.replace(b"checkout@v4", b"checkout@v6").replace(b"setup-node@v4", b"setup-node@v5")
    assert "a.yml:2: actions/checkout v4, made for Node.js 20 or older" in one.detail
    assert lagging_actions({"a.yml": newer}, "0" * 40, judge_node=True) is None
    assert lagging_actions({"a.yml": NEW + b"# runs-on: [self-hosted]\n"}, "0" * 40, judge_node=True) is None


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        ({".github/dependabot.yml": b"package-ecosystem: github-actions"}, True),
        ({".github/dependabot.yml": b"package-ecosystem: npm"}, False),
        ({".github/renovate.json5": b"{}"}, True),
        ({".renovaterc": b"{}"}, True),
        ({"package.json": b'{"renovate": {}}'}, True),
        ({"package.json": b"{}"}, False),
    ],
)
def test_what_a_bot_updates_is_left_to_it(settings: dict[str, bytes], theirs: bool) -> None:
    assert is_updated_by_bot(settings) is theirs


WHO = {f"GIT_COMMITTER_{key}": value for key, value in (("NAME", "mara"), ("EMAIL", "mara@example.org"))}
SHA = "8f4b7f84864484a7bf31766abe9204da3cbe65b3"
PILOT = "harbour/pilot"


def every_use(*lines: str, settings: dict[str, bytes] | None = None, own: str = "", path: str = "a.yml") -> list[str]:
    """What of a workflow with these uses would be pinned, if zizmor named every line."""
    text = "".join(f"  - uses: {line}\n" for line in lines).encode()
    named = {(path, number) for number in range(1, len(lines) + 1)}
    said = settings or {}
    bots = {name: text for name, text in said.items() if is_bot_file(name)}
    found = loose_uses({path: text}, named, bots, asks_for_pins(said), own)
    return [f"{use.action}@{use.ref}" for use in found]


THIRD = (f"a/b@{SHA}", f"c/d@{SHA} # v1.2.3", f"e/f@{SHA}", f"{PILOT}@v4")
FIRST = (*[f"actions/checkout@{SHA} # v4.2.2"] * 3, "github/codeql-action/init@v3")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (THIRD, ["harbour/pilot@v4"]),
        (THIRD[1:], []),  # too few for a practice
        ((*THIRD, "g/h@v1"), []),  # not nearly all
        ((*THIRD, "actions/checkout@v4"), ["harbour/pilot@v4"]),  # GitHub's own are a practice of their own
        ((*FIRST, "g/h@v1"), ["github/codeql-action/init@v3"]),
        ((*THIRD[:3], "g/h/.github/workflows/x.yml@v1"), []),  # a workflow
        ((*THIRD[:3], "slsa-framework/slsa-verifier/actions/installer@v2.6.0"), []),  # must be called by its tag
        ((*THIRD[:3], "./local", "docker://alpine:3"), []),
    ],
)
def test_an_action_is_to_be_pinned_where_nearly_all_of_its_kind_are(lines: tuple[str, ...], told: list[str]) -> None:
    assert every_use(*lines) == told


def test_pins_are_the_practice_of_people_and_not_of_a_bot_a_setting_or_our_own_workflow() -> None:
    assert every_use(*THIRD, settings={".github/dependabot.yml": b"package-ecosystem: github-actions"}) != []
    assert every_use(*THIRD, settings={".github/renovate.json5": b"{}"}) == []  # which pins by itself
    assert every_use(*THIRD, f"suzuki-shunsuke/pinact-action@{SHA}") == []
    assert every_use(*THIRD, own="Harbour") == []  # their own
    assert every_use(*THIRD, path=".github/workflows/ralph-loop.yml") == []
    asks = {".github/zizmor.yml": b"rules: {unpinned-uses: {config: {policies: {'*': hash-pin}}}}"}
    assert every_use("actions/checkout@v4", "a/b@v1", settings=asks) == ["actions/checkout@v4", "a/b@v1"]
    assert every_use("a/b@v1", settings={"zizmor.yml": b"# hash-pin\nrules: {}"}) == []
    assert loose_uses({"a.yml": "".join(f"- uses: {line}\n" for line in THIRD).encode()}, set(), {}) == []  # by zizmor


@pytest.fixture
def pilot(tmp_path: Path) -> Iterator[FakeGitHub]:
    """An action on a server: v4 is an annotated tag on the commit of v4.2.1; a branch has the name of the tag v3."""
    source = make_repo(tmp_path / "pilot")
    git(source, "tag", "v4.1.9")
    git(source, "tag", "v3")
    commit(source, {"a.txt": "two\n"})
    git(source, "branch", "v3")
    for name in ("v4.2", "v4.2.1", "v4.2.1-rc1", "v40"):
        git(source, "tag", name)
    git(source, "tag", "--annotate", "--message", "four", "v4", env=WHO)
    with FakeGitHub(copy_bare(source, tmp_path / "pilot.git"), PILOT) as fake:
        yield fake


def tags_of(server: FakeGitHub, tmp_path: Path) -> ActionTags:
    here = tmp_path / "here"
    repo = Git.open(here if here.exists() else make_repo(here))
    environ = {"GITHUB_SERVER_URL": server.url, "GITHUB_REPOSITORY": "mara/slackwater"}
    return ActionTags.build(repo, tmp_path / "cache", environ)


def use(ref: str, action: str = PILOT) -> LooseUse:
    return LooseUse("a.yml", 1, "", action, ref, pinnable=True)


def test_a_tag_is_pinned_to_its_commit_by_its_full_version(pilot: FakeGitHub, tmp_path: Path) -> None:
    one, two = (pilot.world.bare.line("rev-parse", f"{tag}^{{commit}}") for tag in ("v4.1.9", "v4.2.1"))
    assert pilot.world.bare.line("rev-parse", "v4") != two  # the tag itself is an object
    asked = [use("v4"), use("v4.2"), use("v4.2.1"), use("v4.1.9", f"{PILOT}/sub"), use("v3"), use("v9")]
    found = tags_of(pilot, tmp_path).commits(asked, NOON)
    assert {one.ref: pin for one, pin in found.items()} == {
        "v4": (two, "v4.2.1"),
        "v4.2": (two, "v4.2.1"),
        "v4.2.1": (two, "v4.2.1"),
        "v4.1.9": (one, "v4.1.9"),
    }  # v3 may be the tag or the branch, and there is no v9
    pilot.world.private = True
    assert tags_of(pilot, tmp_path / "other").commits([use("v4")], NOON) == {}  # which strangers cannot read


def test_an_answer_is_believed_for_a_day_and_for_a_week_while_nothing_answers(
    pilot: FakeGitHub, tmp_path: Path
) -> None:
    tags, bare = tags_of(pilot, tmp_path), pilot.world.bare
    before = tags.commits([use("v4")], NOON)
    bare.run("tag", "--force", "v4", "v4.1.9")  # as maintainers of actions do
    assert tags.commits([use("v4")], NOON + timedelta(hours=23)) == before
    (moved,) = tags.commits([use("v4")], NOON + timedelta(days=2)).values()
    assert moved == (bare.line("rev-parse", "v4.1.9"), "v4.1.9")
    gone = ActionTags(tags.git, tags.cache, "http://127.0.0.1:9", allow=("127.0.0.1:9",))
    with pytest.raises(UserError, match="cannot reach"):
        gone.commits([use("v4")], NOON)
    kept = ActionTags(tags.git, tags.cache, tags.server)  # a loopback address is no public one
    assert kept.commits([use("v4")], NOON + timedelta(days=8)) == {use("v4"): moved}
    for ref, later in (("v4.2", 0), ("v4", 10)):
        with pytest.raises(UserError, match="not a public place"):
            kept.commits([use(ref)], NOON + timedelta(days=later))


def test_a_pin_is_written_as_update_bots_write_it_and_changes_nothing_else() -> None:
    text = (
        b"steps:\r\n  - name: a\r\n    uses: 'harbour/pilot@v4'   # v4\r\n  - uses: harbour/pilot/sub@v4\r\n"
        b"  - uses: harbour/pilot@v4 # why\r\n  - uses: harbour/pilot@main\r\n"
        b"  - run: |\r\n      uses: harbour/pilot@v4\r\n"
    )
    others = "".join(f"- uses: x/y@{SHA}\n" * 15).encode()
    named = {("a.yml", line) for line in (3, 4, 5, 6)}
    uses = loose_uses({"a.yml": text, "b.yml": others}, named, {})
    pins = {one: (SHA, "v4.2.1") for one in uses if one.pinnable}
    fix, line = pin_actions({"a.yml": text, "b.yml": others}, uses, pins, "0" * 40, demand=False)
    assert fix.patch is not None
    (change,) = fix.patch.changes
    pinned = text.replace(b"'harbour/pilot@v4'   # v4", f"'harbour/pilot@{SHA}' # v4.2.1".encode())
    assert change.new == pinned.replace(b"pilot/sub@v4", f"pilot/sub@{SHA} # v4.2.1".encode())
    assert fix.title == "Pin harbour/pilot and harbour/pilot/sub to commits in a.yml, as others here are"
    assert line.title == "harbour/pilot@main and 1 more are not pinned to commits, as others here are"
    assert (fix.kind, line.kind) == ("workflow-fix", "workflow")
