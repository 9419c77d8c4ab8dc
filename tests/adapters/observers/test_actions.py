"""Actions that other workflows here have left behind, and those made for a Node.js that GitHub no longer supports."""

import pytest

from ralph_mission.adapters.observers.actions import is_updated_by_bot, lagging_actions

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
