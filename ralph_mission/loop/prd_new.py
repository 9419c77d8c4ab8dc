"""A first PRD from a sentence and a few letters: which questions, what the letters mean, what is written.

No model is asked. The stories are those that the answers call for, one for each layer, to be reworded by whoever
knows the product: a person, or an agent with the `prd` skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ralph_mission.loop.model import Story
from ralph_mission.loop.prd_convert import completed

_ANSWER = re.compile(
    r"\s*(?P<number>\d{1,2})\s*[.):]?\s*(?P<letter>[A-Za-z])\b\s*(?:[:=]\s*(?P<words>[^,;]*))?\s*(?:[,;]|\s|$)"
)


OTHER = "Something else, in your own words"


@dataclass(frozen=True, slots=True)
class Question:
    """One question; its options are lettered from A, and the last one may be a person's own words."""

    key: str
    text: str
    options: tuple[str, ...]

    def letter(self, place: int) -> str:
        """A for 0."""
        return "ABCDEFGH"[place]


GOAL = Question(
    "goal",
    "What is it mainly for?",
    ("People can do something they could not do before", "What they do already takes less time or fewer steps",
     "Less work or fewer mistakes for those who run it", OTHER),
)  # fmt: skip  # one option per idea
WHO = Question(
    "who",
    "Who uses it?",
    ("Everybody who uses the product", "People who are signed in", "Administrators",
     "Developers, through an interface of code"),
)  # fmt: skip  # as above
SCOPE = Question(
    "scope",
    "How much of it is in this round?",
    ("The smallest version that is of use", "All of it", "Only what runs on the server", "Only what people see"),
)  # fmt: skip  # as above
DATA = Question("data", "What has to be stored?", ("New fields or tables", "Nothing new"))
PROOF = Question(
    "proof",
    "How does somebody see afterwards whether it is of use?",
    ("Tests and the checks of the project are enough", "A summary view with its numbers"),
)

WHOM = ("user", "signed-in user", "administrator", "developer")
WHY = ("I can do what I could not do before", "it takes me fewer steps", "I have less to do and to correct")


class Unanswered(ValueError):
    """Letters that do not answer the questions; the message says which."""


def questions(task: str) -> tuple[Question, ...]:
    """Three to five, the same for the same task; what the task says itself is not asked."""
    stored = re.search(r"\b(?:schema|database|table|column|migration|store[sd]?|persist)\b", task, re.IGNORECASE)
    summed = re.search(r"\b(?:dashboard|report|statistics|analytics|summary)\b", task, re.IGNORECASE)
    return (GOAL, WHO, SCOPE, *(() if stored else (DATA,)), *(() if summed else (PROOF,)))


def asked(listed: Sequence[Question]) -> str:
    """The questions as a person reads them."""
    return "\n\n".join(
        "\n".join([f"{number}. {one.text}", *(f"   {one.letter(at)}. {text}" for at, text in enumerate(one.options))])
        for number, one in enumerate(listed, 1)
    )


def example(listed: Sequence[Question]) -> str:
    """An answer to all of them: the first option of each."""
    return ", ".join(f"{number}A" for number in range(1, len(listed) + 1))


def answered(text: str, listed: Sequence[Question]) -> dict[str, str]:
    """The option chosen for each question's key, from `1A, 2C, 3B`; `1D: own words` replaces the option's text.

    Raises Unanswered for an unknown number or letter, for a question answered twice or not at all.
    """
    chosen: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip(" ,;")):
        found = _ANSWER.match(text, at)
        if not found:
            raise Unanswered(f"“{text[at : at + 20].strip()}” is no answer")
        question, option = _option(found["number"], found["letter"], listed)
        if question.key in chosen:
            raise Unanswered(f"question {found['number']} is answered twice")
        words = (found["words"] or "").strip()
        if not words and option == OTHER:
            raise Unanswered(f"{found['number']}{found['letter'].upper()} wants your own words after a colon")
        chosen[question.key] = words or option
        at = found.end()
    missing = [str(number) for number, one in enumerate(listed, 1) if one.key not in chosen]
    if missing:
        raise Unanswered(f"no answer to question {', '.join(missing)}")
    return chosen


def _option(number: str, letter: str, listed: Sequence[Question]) -> tuple[Question, str]:
    if not 1 <= int(number) <= len(listed):
        raise Unanswered(f"there is no question {number}")
    question = listed[int(number) - 1]
    place = ord(letter.upper()) - ord("A")
    if place >= len(question.options):
        raise Unanswered(f"question {number} has no option {letter.upper()}")
    return question, question.options[place]


def written(task: str, answers: Mapping[str, str]) -> str:
    """The PRD in markdown that `ralph prd convert` reads: stories in the order schema, backend, UI, dashboard."""
    title = _title(task)
    stories = [_section(completed(story)) for story in _stories(title, answers)]
    parts = [
        f"# PRD: {title}",
        f"## Introduction\n\n{' '.join(task.split())}",
        f"## Goals\n\n- {answers['goal']}\n- For: {answers['who'].lower()}",
        "## User Stories",
        *stories,
        f"## Non-Goals\n\n{_non_goals(answers['scope'])}",
        "## Open Questions\n\n- Which names do the new things have in the code and on the screen?",
    ]
    return "\n\n".join(parts) + "\n"


def _stories(title: str, answers: Mapping[str, str]) -> list[Story]:
    whom, why = _whom(answers), _why(answers)
    said = f"As {'an' if whom[0] in 'aeio' else 'a'} {whom}, I want “{title}” so that {why}"
    return [
        Story(f"US-{place:03}", name, description.replace("{said}", said).replace("{title}", title), criteria)
        for place, (name, description, criteria) in enumerate(_layers(title, answers), 1)
    ]


def _layers(title: str, answers: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    short = title[:50].rstrip()
    if answers.get("data") != DATA.options[1] and answers["scope"] != SCOPE.options[3]:
        yield (
            f"Add the database fields for: {short}",
            "As a developer, I need “{title}” to have its place in the database schema.",
            ("A migration adds the fields or tables, and its reverse takes them away again",
             "Existing rows are unchanged after the migration"),
        )  # fmt: skip  # what, why, proof
    if answers["scope"] != SCOPE.options[3]:
        yield (
            f"Add the backend logic for: {short}",
            "{said}. This is the server side of “{title}”.",
            ("A test calls it with valid input and checks the result", "A test calls it with invalid input and checks "
             "that it is refused with a message"),
        )  # fmt: skip  # as above
    unseen = answers["scope"] == SCOPE.options[2] or answers["who"] == WHO.options[3]
    if answers["scope"] == SCOPE.options[3] or not unseen:
        yield (
            f"Show it on a page: {short}",
            "{said}. This is what a person sees of “{title}”.",
            ("The page shows the result of the action without a reload",
             "The page shows a message when the action is refused"),
        )  # fmt: skip  # as above
    if answers.get("proof") != PROOF.options[0]:
        yield (
            f"Add a summary view for: {short}",
            "As an administrator, I want the numbers of “{title}” so that I see whether it is used.",
            ("The summary view shows how often it was used in the last 7 and 30 days", "Without any use it shows 0"),
        )


def _section(story: Story) -> str:
    boxes = "\n".join(f"- [ ] {criterion}" for criterion in story.criteria)
    return f"### {story.id}: {story.title}\n**Description:** {story.description}\n\n**Acceptance Criteria:**\n{boxes}"


def _title(task: str) -> str:
    first = " ".join(task.strip().splitlines()[0].split()) if task.strip() else "Feature"
    return first.rstrip(".") if len(first) <= 70 else f"{first[:70].rpartition(' ')[0] or first[:70]}"


def _whom(answers: Mapping[str, str]) -> str:
    return WHOM[WHO.options.index(answers["who"])] if answers["who"] in WHO.options else answers["who"].lower()


def _why(answers: Mapping[str, str]) -> str:
    known = answers["goal"] in GOAL.options[:3]
    return WHY[GOAL.options.index(answers["goal"])] if known else answers["goal"][:1].lower() + answers["goal"][1:]


def _non_goals(scope: str) -> str:
    out = {
        SCOPE.options[0]: "- Whatever the smallest useful version can do without",
        SCOPE.options[2]: "- Anything that people see: no page, no dialog",
        SCOPE.options[3]: "- New data and new work on the server",
    }
    return out.get(scope, "- Changes to what stands already and is not named above")
