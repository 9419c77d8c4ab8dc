"""Actions that one workflow left behind, told by the others."""

import pytest

from ralph_mission.adapters.observers.actions import lagging_actions

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
