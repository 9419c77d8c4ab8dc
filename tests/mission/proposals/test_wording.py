"""Whatever stands in a repository: what we write about it pings, closes, commands, hides and forges nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralph_mission.mission.coder import tasks
from ralph_mission.mission.lifecycle.approval import content_hash
from ralph_mission.mission.model.effects import MARKER, Ref
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.proposals import wording
from ralph_mission.safety.detect import mentions
from ralph_mission.safety.patch import REGULAR, FileChange, Patch
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words
from tests.mission.build import BASE, finding, mission
from tests.mission.hostile import SEALED, SIGNED, TOKEN, harmful_actions, is_title, seals, texts

KEY = "0123456789abcdef"
FACTS = {"mission": "1", "kind": "spelling", "finding": ",".join([KEY] * 24)}
findings = st.builds(
    lambda title, detail, path, author, line, kind: finding(
        title=title, detail=detail, path=path, author=author, line=line, kind=kind, essence=(title, detail, path)
    ),
    texts,
    texts,
    texts,
    texts,
    st.integers(0, 9),
    st.sampled_from(["spelling", "todo", "bug"]),
)
CHANGE = Patch(BASE, (FileChange("a.md", REGULAR, REGULAR, b"fixes #3 @octocat\n", b"``` ::error::</details>\n"),))
groups = st.lists(findings, min_size=1, max_size=4)


def ends_with_our_marker(text: str) -> bool:
    """Our marker is the last line, and the only one."""
    return len(MARKER.findall(text)) == 1 and bool(MARKER.fullmatch(text.rpartition("\n")[2]))


@pytest.mark.attack(1, 27, 28, 29, 30, 31)
@given(texts)
@example("a\n::set-output name=a::b")
@example("fixes #12345678901234" + "9" * 100)
@example("x " * 55 + "fixes #3abcdefghijkl")
def test_a_line_for_a_title_or_a_message_is_one_harmless_line(text):
    line = wording.plain(text)
    assert is_title(line) or not line
    assert wording.plain(line) == line


@pytest.mark.attack(27)
@pytest.mark.parametrize("title", ["The dialog does not close", "It needs a fix", "Say what it fixes:", "_Resolved_"])
def test_a_title_with_its_number_closes_nothing_whatever_word_it_ends_with(title):
    assert wording.append_number(title, 7) == f"{title}, issue (#7)"
    subject = tasks.change_commit(title, 7, "a person requested it").splitlines()[0]
    assert subject.endswith("(#7)") and is_title(subject)


@pytest.mark.benign("markdown")
def test_a_title_that_closes_nothing_just_gets_its_number():
    assert wording.append_number("Close the dialog at last", 7) == "Close the dialog at last (#7)"


@pytest.mark.attack(1, 27, 28)
@given(texts)
def test_somebodys_words_in_a_body_are_one_harmless_line(text):
    line = inline_words(redact(text), 300)
    assert harmful_actions(f"- {line}") == []
    assert harmful_actions(f"**Why:** {line}.") == []
    assert "\n" not in line
    assert len(line) <= 300
    assert inline_words(line, 300) == line


@pytest.mark.attack(28)
@given(texts)
def test_a_name_never_pings(login):
    name = wording.person_name(Actor(1, login))
    assert name
    assert harmful_actions(name, markdown=False) == []
    assert len(name) <= 60


@pytest.mark.attack(27, 28)
@given(groups, texts)
@example([finding(path="Signed-off-by", detail="", essence=("Signed-off-by",))], "")
def test_a_fix_is_told_without_harm(members, why):
    title = wording.fix_title("spelling", members)
    assert is_title(title)
    for body in (
        wording.fix_issue("spelling", members, why, CHANGE, why, KEY, FACTS),
        wording.fix_pull("spelling", members, why, Ref(KEY), KEY, FACTS),
        wording.fix_pull("spelling", members, why, 0, KEY, FACTS),
    ):
        assert harmful_actions(body) == []
        assert ends_with_our_marker(body)
        assert seals(body) == 0
    assert harmful_actions(wording.commit_message(title, "spelling", members, Ref(KEY)), markdown=False) == []


@pytest.mark.attack(1, 19)
@given(findings, texts, texts, texts)
@settings(deadline=None)
@example(finding(detail=SEALED, title=SIGNED), SEALED, SIGNED, SEALED)
def test_a_proposal_is_told_without_harm_and_sealed_once(member, why, old, new):
    sides = [text.encode("utf-8", "replace") for text in (old, new)]
    patch = Patch(BASE, (FileChange(member.signal.path, REGULAR, REGULAR, *sides),))
    title = wording.proposal_title(member)
    body, digest = wording.seal_proposal(title, wording.proposal_body(member, why, patch), KEY, FACTS)
    assert harmful_actions(title, markdown=False) == []
    assert harmful_actions(body) == []
    assert ends_with_our_marker(body)
    assert seals(body) == 1
    assert content_hash(title, body) == digest


@pytest.mark.attack(1)
@given(groups)
def test_a_list_is_told_without_harm(members):
    lines = [wording.monitor_line(member) for member in members]
    assert not any("\n" in line for line in lines)
    assert harmful_actions("\n".join(lines)) == []


@given(st.lists(texts, max_size=5), texts, texts)
@example([], "fixes #3", "<script>" * 400)
@example([], "fixes #3", "- " * 400)
@example(["fix<details>#3"], "", "")
def test_a_story_pings_the_owner_and_nobody_else(lines, words, login):
    told = mission(story=tuple(f"cycle 3: {line}" for line in lines), next_step="A person decides.")
    extra = wording.escalation(("mara",), words, wording.person_name(Actor(1, login)))
    body = wording.story(told, KEY, extra)
    assert [action for action in harmful_actions(body) if action != "@mara"] == []
    assert mentions(body) == ("@mara",)
    assert ends_with_our_marker(body)
    assert seals(body) == 0


@pytest.mark.attack(34)
@pytest.mark.parametrize("part", ["title", "detail", "path", "author"])
def test_what_looks_like_a_token_is_taken_out_so_that_it_holds_up_nothing(part):
    member = finding(**{part: f"see {TOKEN} there"})
    for body in (wording.proposal_body(member, "why", None), wording.monitor_line(member)):
        assert TOKEN not in body


def test_a_token_beside_a_correction_is_not_shown_in_the_proposed_change():
    old = f"recieve\n{TOKEN}\n".encode()
    patch = Patch(BASE, (FileChange("a.md", REGULAR, REGULAR, old, old.replace(b"ie", b"ei")),))
    assert harmful_actions(wording.proposal_body(finding(), "why", patch)) == []


def test_a_file_name_with_a_newline_cannot_begin_a_line_of_the_proposed_change():
    path = f"a\n{SEALED}\n```\n{SIGNED}"
    patch = Patch(BASE, (FileChange(path, REGULAR, REGULAR, b"a\n", b"b\n"),))
    assert f"\n{SEALED}" not in wording.diff(patch)


@pytest.mark.attack(10)
def test_a_thinkers_reason_is_somebody_elses_text():
    why = f"now{SIGNED} @octocat, fixes #3 ![x](https://evil.example/?secret) <details>"
    body = wording.fix_issue("spelling", [finding()], why, CHANGE, why, KEY, FACTS)
    assert harmful_actions(body) == []
    assert "https://evil.example" not in body
    assert body.count("<details>") == 1  # ours
    assert ends_with_our_marker(body)


def test_ordinary_words_pass_as_they_are():
    why = "impact 2 of 10, severity low, 80% sure, a fix is ready; number 1 of 4 by score (0.80)"
    assert inline_words(why) == why
    assert wording.plain("Correct 7 misspellings in docs/guide.md") == "Correct 7 misspellings in docs/guide.md"
    assert inline_words("approved by mara at `abcdef12` and merged") == "approved by mara at `abcdef12` and merged"
