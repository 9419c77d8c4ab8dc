"""What we write ourselves: it closes, pings, skips, signs, triggers and links nothing by accident."""

from __future__ import annotations

import pytest

from ralph_mission.mission.proposals.wording import plain
from ralph_mission.safety.detect import closing_keywords, mentions
from ralph_mission.safety.text import inline_words, sanitise
from tests.attacks.words import harmful_actions
from tests.safety.hostile_texts import commands

CLOSERS = [
    f"{word}{gap}{what}"
    for word in ("close", "Closes", "CLOSED", "fix", "fixes", "fixed", "resolve", "Resolves", "resolved")
    for gap in (" ", ": ", ":")
    for what in (
        "#3",
        "owner/repo#4",
        "GH-6",
        "gh-6",
        "https://github.com/o/r/issues/5",
        "http://github.com/o/r/pull/5",
    )
]
DISGUISED = [
    "fixes\n#3",
    "fixes  \t #3",
    "fixes\u00a0#3",
    "f\u200bixes #3",
    "fixes \u2060#3",
    "&#102;ixes #3",
    "fixes &num;3",
    "fixes \\#3",
    "fixes **#3**",
    "fixes [#3](x)",
    "fixes (#3)",
    "fi<!-- -->xes #3",
    "fi<b></b>xes #3",
    "bug-fix #3",
    "(fixes #3)",
    "fixes #003",
    "fixes:#3",
    "fixes\\: #3",
    "fixes #{deadbeef12}",
    "see: closes github.com/o/r/issues/5",
    "_fixes #3_",
    "__Closes o/r#3__",
    "_fixes_ #3",
    "fixes _#3_",
    "fixes GH-3_",
    "_x_fixes #3",
    "*fix*es #3",
    "fixes o/r#3é",
    "修复fixes #3",
    "\ufb01xes #3",
    "fixes <b></b><https://github.com/o/r/issues/3>",
    "close<br><https://github.com/o/r/issues/3>",
    "fi<https://github.com/x>xes #3",
]


@pytest.mark.attack(27)
@pytest.mark.parametrize("text", CLOSERS + DISGUISED)
def test_c27_every_closing_keyword_is_found(text: str) -> None:
    assert closing_keywords(text)
    assert closing_keywords(text, markdown=False) or any(mark in text for mark in "<\\*")


@pytest.mark.attack(27)
@pytest.mark.parametrize("text", CLOSERS + DISGUISED)
@pytest.mark.parametrize("sink", ["issue", "commit"])
def test_c27_no_closing_keyword_survives(text: str, sink: str) -> None:
    assert closing_keywords(sanitise(text, sink), markdown=sink == "issue") == ()


@pytest.mark.benign("markdown")
@pytest.mark.parametrize(
    "text", ["prefix #3", "fixture #3", "closet #3", "fixes it, see #3", "disclosed #3", "resolver #3", "fixes 3"]
)
def test_a_word_that_only_looks_like_a_keyword_closes_nothing(text: str) -> None:
    assert closing_keywords(text) == ()


@pytest.mark.attack(27)
@pytest.mark.attack(27)
@pytest.mark.parametrize("mark", ["_", "__", "*", "**", "~~"])
@pytest.mark.parametrize("sink", ["issue", "commit"])
def test_a_keyword_within_emphasis_costs_no_other_word(sink: str, mark: str) -> None:
    text = f"Keep this. It {mark}closes #3{mark}."
    assert sanitise(text, sink) == f"Keep this. It {mark}closes no. 3{mark}."


def test_code_closes_nothing_in_markdown_but_a_title_has_no_code() -> None:
    assert closing_keywords("`fixes #3`") == ()
    assert closing_keywords("`fixes #3`", markdown=False) == ("fixes #3",)
    assert sanitise("`fixes #3`", "commit") == "`fixes no. 3`"


@pytest.mark.attack(27, 28)
def test_backticks_that_are_no_code_hide_nothing() -> None:
    for text in (
        "<div>\n`fixes #3 @bob`\n</div>",
        "\\`fixes #3 @bob`",
        "| a |\n|-|\n| ` | fixes #3 @bob ` |",
        "[x](`) fixes #3 @bob `",
        "https://a.b/` fixes #3 @bob `",
        "[^1]: x\n\n    fixes #3 @bob\n",
    ):
        assert closing_keywords(text) and mentions(text)


@pytest.mark.attack(28)
@pytest.mark.parametrize(
    "text",
    [
        "@bob",
        "@org/team",
        "@everyone",
        "@here",
        "<@&123>",
        "<@!123>",
        "(@bob)",
        ".@bob",
        "é@bob",
        "-@bob",
        "\\@bob",
        "_@bob_",
        "__@org/team__",
        "~~@bob~~",
        "_x_@bob",
    ],
)
@pytest.mark.parametrize("sink", ["issue", "commit"])
def test_c28_no_mention_survives(text: str, sink: str) -> None:
    assert mentions(text)
    assert mentions(sanitise(text, sink), markdown=sink == "issue") == ()


CODE = "```diff\n-snake_case_old\n+snake_case_new *x* \\* &amp; <b>y</b>\n```\n"
PROSE = "A `snake_case`, a ~~gone~~ *word*, foo_bar_baz and 2 \\* 3.\n"


@pytest.mark.parametrize(
    ("text", "calm"),
    [
        pytest.param("@*you*", "@ *you*", marks=pytest.mark.attack(17, 28)),
        pytest.param("@\\*you", "@ \\*you", marks=pytest.mark.attack(17, 28)),
        pytest.param("@<b>you</b>", "@ &lt;b>you&lt;/b>", marks=pytest.mark.attack(17, 28)),
        pytest.param("clo**ses** #3", "closes no. 3", marks=pytest.mark.attack(17, 27)),
        pytest.param("fi<b></b>x *#3*", "fix no. 3*", marks=pytest.mark.attack(17, 27)),
        pytest.param("f_i_x #~~3~~", "fix no. 3~~", marks=pytest.mark.attack(17, 27)),
        pytest.param("close\\s #3", "close\\s #3", marks=pytest.mark.benign("markdown")),
    ],
)
def test_a_disguised_word_costs_the_rest_of_the_text_nothing(text: str, calm: str) -> None:
    assert sanitise(f"{CODE}{text}\n\n{PROSE}", "issue") == f"{CODE}{calm}\n\n{PROSE}"


@pytest.mark.attack(17, 27, 28)
@pytest.mark.parametrize("text", ["Handle @*args", "Match *@*example", "fi*x #3", "cc @<b>team", "f_i_xes #3"])
def test_a_title_says_nothing_live_within_a_text_either(text: str) -> None:
    for made in (plain(text), inline_words(text)):
        assert mentions(made) == closing_keywords(made) == ()


@pytest.mark.benign("markdown")
@pytest.mark.parametrize("sink", ["issue", "commit"])
@pytest.mark.parametrize(
    "text",
    ["/path?x=1", "/healthz: ok", "/usr/bin", "/index.md", "- /status?full=1: yes", "/test-data: all of it",
     "/users:list", "/merge.py", "/tests: 12 files", "/label?page=2", "/release/notes", "/build:/cache",
     "- /test: runs the tests", "/ready: 200 OK, /live: 503", "- /build: the output", "* /label: shown", "/run:8080"],
)  # fmt: skip  # one list
def test_a_path_that_begins_a_line_is_no_command(sink: str, text: str) -> None:
    assert (sanitise(text, sink), commands(text)) == (text, [])


@pytest.mark.benign("markdown")
def test_an_address_and_a_name_in_code_ping_nobody() -> None:
    assert mentions("mara@example.org and `@bob`") == ()


@pytest.mark.attack(29)
@pytest.mark.parametrize(
    "text",
    [
        "[skip ci]",
        "[ci skip]",
        "[no ci]",
        "[skip actions]",
        "[actions skip]",
        "[SKIP CI]",
        "***NO_CI***",
        "skip-checks: true",
        "skip-checks:true",
        "[skip netlify]",
        "`[skip ci]`",
    ],
)
@pytest.mark.parametrize("sink", ["commit", "issue"])
def test_c29_no_skip_marker_survives(text: str, sink: str) -> None:
    assert commands(text)
    assert commands(sanitise(text, sink)) == []


@pytest.mark.attack(30)
@pytest.mark.parametrize(
    "text",
    [
        "Co-authored-by: E <e@x.y>",
        "Signed-off-by: E <e@x.y>",
        "x\n\nco-authored-by:E",
        "> Signed-off-by: E",
        "Reviewed-by: E",
    ],
)
@pytest.mark.parametrize("sink", ["commit", "issue"])
def test_c30_no_trailer_survives(text: str, sink: str) -> None:
    assert commands(text)
    assert commands(sanitise(text, sink)) == []


@pytest.mark.attack(31)
@pytest.mark.parametrize(
    "text",
    [
        "/merge",
        "  /approve",
        "> /lgtm",
        "bors r+",
        "- bors try",
        "@dependabot merge",
        "`@claude do it`",
        "/ralph approve",
        "```\n/merge\n```",
        "ok to test",
        "x\r/merge",
        "x\r\n/merge\r\ny",
        "x\r\n/shrug\r\ny",
        "/merge!",
        "/merge: now",
        "/retitle: Safe",
        "/deploy:prod",
        "/ralph: approve",
        "- /ok-to-test:",
        "/LGTM?yes",
        "/cherry-pick:main",
        "/remove-hold: x",
        "/retest: all",
        "/test",
        "`/test`: all",
    ],
)
def test_c31_no_bot_is_triggered(text: str) -> None:
    calm = sanitise(text, "issue")
    assert (commands(text) or mentions(text)) and calm != text
    assert commands(calm) == []
    assert mentions(calm) == ()
    assert harmful_actions(calm) == []


@pytest.mark.attack(32)
@pytest.mark.parametrize(
    "text",
    [
        "![x](https://evil.example/?d=1)",
        "![x][r]\n\n[r]: https://evil.example/a",
        "<img src=https://evil.example/a>",
        "[x](//evil.example)",
        "[x](https:\\//evil.example)",
        "[x](https&colon;//evil.example)",
        "<https://evil.example>",
        "www.evil.example",
        "_www.evil.example/x_",
        "www.evil",
        "[x](\\\\evil.example)",
        "[x](https://github.com@evil.example/)",
        "[x](https://github.com.evil.example/)",
        "[x](http://evil.example)",
        "HTTPS://EVIL.EXAMPLE",
        "[x]( <https://evil.example> )",
        "<img src='//evil.example/a'>",
        "[x](ftp://evil.example)",
    ],
)
def test_c32_no_link_or_image_in_somebodys_words_leads_to_a_foreign_host(text: str) -> None:
    calm = inline_words(text).casefold()
    live = (
        "https://evil",
        "http://evil",
        "ftp://evil",
        "](//evil",
        "<img",
        "www.evil",
        "](\\\\evil",
        "https://github.com@",
        "https://github.com.evil",
    )
    assert not any(form in calm for form in live)


@pytest.mark.attack(36)
@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert)",
        "[x](JavaScript:alert)",
        "[x](java&Tab;script:alert)",
        "[x](data:text/html,x)",
        "<javascript:alert>",
        "[x]: vbscript:x\n\n[x]",
        "[x](&#106;avascript:x)",
        "<a href='javascript:x'>",
    ],
)
def test_c36_no_script_link_survives_in_somebodys_words(text: str) -> None:
    calm = inline_words(text)
    assert not any(
        form in calm.casefold() for form in ("](javascript:", "](data:", "<javascript:", "]: vbscript:", "<a")
    )
