"""What a text by a model may say, and how it is read."""

from __future__ import annotations

import json

import pytest

from ralph_mission.loop.rules.verdicts import UnclearVerdict
from ralph_mission.mission.lifecycle.approval import content_hash
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.forge import Post
from ralph_mission.mission.proposals.wording import seal_proposal
from ralph_mission.mission.publishing.drafting import find_unknown, parse_texts, with_posts

DATA = (
    "The tide table holds 12 harbours now, up from 8. Neutron pays 7.7 % (1,234,567 NTRN). Version 3.2.1 came on "
    "2026-11-23. Read https://tides.example.org/table. Mara Lindqvist wrote it. USD 50 were spent; three people helped "
    "on Monday."
)


@pytest.mark.parametrize(
    "text",
    [
        "12 harbours are in the tide table now.",
        "The table grew from 8 to 12 harbours!",
        "Twelve harbours now: see https://tides.example.org/table.",
        "Neutron pays 7.7%. That is 1234567 NTRN, or 1,234,567.",
        "Version 3.2.1 is here (2026-11-23).",
        "Thanks to Mara Lindqvist and 3 people.",
        "News:\n- Harbours: 12\n- Mara's table",
        "New on Monday. I like it.",
        "Now with more harbours.",
        "See tides.example.org, e.g. at tides.example.org/table.",
        "The harbours, i.e. the table, unfold once more and at the sun.",
    ],
)
def test_what_stands_in_the_data_may_be_said(text: str) -> None:
    assert find_unknown(text, DATA) == ()


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("The table holds 13 harbours.", "13"),
        ("It grew by 50%.", "50%"),
        ("It cost $50.", "$50"),
        ("Neutron pays 7.8 %.", "7.8%"),
        ("Version 3.2.2 is here.", "3.2.2"),
        ("It came on 2026-11-24.", "2026-11-24"),
        ("Written by Joe for all.", "Joe"),
        ("We met in Hamburg.", "Hamburg"),
        ("Read https://evil.example.org/table.", "https://evil.example.org/table"),
        ("Read https://tides.example.org/table/more.", "https://tides.example.org/table/more"),
        ("Read evil.example.com now.", "evil.example.com"),
        ("Read bit.ly/abc now.", "bit.ly/abc"),
        ("The code is in cli.py now.", "cli.py"),
        ("Write to joe@example.org or so.", "joe@example.org"),
        ("Thanks to @joe for it.", "@joe"),
        ("It lost ½ of it.", "½"),
        ("It grew threefold.", "threefold"),
        ("It grew ten-fold.", "ten-fold"),
        ("There are twenty-five of them.", "twenty-five"),
        ("It holds since jan of it.", "jan"),
        ("It comes today.", "today"),
        ("It comes on Friday.", "Friday"),
        ("Five harbours are new.", "Five"),
        ("The number doubled.", "doubled"),
        ("A million people read it.", "million"),
        ("NASA uses it.", "NASA"),
        ("Anna wrote it.", "Anna"),
        ("The iPhone has it.", "iPhone"),
    ],
)
def test_what_was_made_up_is_found(text: str, strange: str) -> None:
    assert strange in find_unknown(text, DATA)


def answer(**texts: str) -> str:
    return json.dumps({"texts": [{"network": name, "text": text} for name, text in texts.items()]})


def test_an_answer_has_one_text_for_each_network_out_of_the_data() -> None:
    assert parse_texts(("telegram",), DATA, answer(telegram="12 harbours.")) == {"telegram": "12 harbours."}
    for wrong in (
        answer(twitter="12 harbours."),
        answer(telegram="12 harbours.", twitter="12."),
        answer(telegram=" "),
        answer(telegram="x" * 9_000),
        json.dumps({"texts": [{"network": "telegram", "text": "a", "more": 1}]}),
        json.dumps([]),
        "It is fine.",
    ):
        with pytest.raises(UnclearVerdict):
            parse_texts(("telegram",), DATA, wrong)
    with pytest.raises(UnclearVerdict, match="it says “13”, which stands in nothing that was given"):
        parse_texts(("telegram",), DATA, answer(telegram="13 harbours."))


def test_other_posts_stand_in_the_same_issue_under_a_new_hash() -> None:
    title, old = "A table", "**Text**: shall it?\n\n### outbox\n\n5 of 99:\n\n```text\nold\n---\n```\n\n---\n\n**Why.**"
    body, before = seal_proposal(title, old, "ab" * 8, {"mission": "3"})
    made = with_posts(title, body, [Post("outbox", ("new",), (3,), 99)])
    assert "```text\nnew\n```" in made and "old" not in made and made.startswith("**Text**: shall it?\n\n### outbox")
    assert made.endswith(marker("ab" * 8, mission="3")) and f"proposal is now `{content_hash(title, made)}`" in made
    assert content_hash(title, made) != before and made.count("proposal is now") == 1
    assert "**Why.**" in made and with_posts(title, "Something else", []) == ""
