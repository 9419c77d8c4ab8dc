"""Whether stories can be worked through by sessions that know nothing of each other.

Each is small enough for one session, stands behind what it needs, and says by what it is proven. Rule ids are for
ever. The examples of too big and of vague are snarktank/ralph's; the numbers of criteria and sentences are below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ralph_mission.loop import prd_layers
from ralph_mission.loop.model import Prd, UserStory

MAX_SENTENCES = 3
"""The originals' rule of thumb: what two or three sentences cannot describe is too big."""
MAX_CRITERIA = 8
"""Our own number: twice what the originals' examples have, the two standing ones not counted."""

RULES = {
    "size-scope": "a story is a part of something, never the whole of it",
    "size-sentences": "two or three sentences describe a story that fits a session",
    "size-criteria": "many criteria are many stories",
    "order-layer": "schema, then backend, then UI, then dashboard",
    "order-needs": "no story needs a later one",
    "criteria-missing": "a story says by what it is proven",
    "criteria-vague": "a criterion can be checked",
    "criteria-typecheck": "every story ends with a check that a machine does",
    "criteria-browser": "what a person sees is looked at in a browser",
    "description-missing": "a session knows of a story what its description says",
    "control-character": "a title is one line of text that a commit can have",
    "placeholder": "a template is filled in before it is built",
    "id-duplicate": "a story is known by its id",
    "priority-duplicate": "one story is next",
    "branch-missing": "runs are told apart by their branch",
    "stories-missing": "there is something to build",
}

TYPECHECK = re.compile(r"\btype[- ]?check|\btypes? (?:check|pass)|\b(?:tsc|mypy|pyright|compiles?)\b", re.IGNORECASE)
BROWSER = re.compile(r"\bbrowser\b", re.IGNORECASE)

_WHOLE = re.compile(
    r"\b(?:entire|whole|complete|full)[- ](?:\w+[- ]){0,2}?(?:system|app|application|dashboard|api|backend|frontend|"
    r"site|website|project|product|platform|codebase|feature|flow|stack)\b|\beverything\b|\bfrom scratch\b|"
    r"\bend[- ]to[- ]end (?:system|feature|flow)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^(?:add|build|create|implement|refactor|rewrite|redesign|migrate|set up)\s+(?:an?\s+|the\s+|our\s+)?(?:user\s+)?"
    r"(?:authentication|authori[sz]ation|auth|accounts?|log ?in system|dashboard|api|rest api|backend|frontend|ui|"
    r"database|app|application|codebase|payments?|billing|notifications?|notification system|search|settings|admin"
    r"|admin panel|reporting|internationali[sz]ation)(?:\s+system)?\W*$",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:works?|functions?|behaves?|runs?)\s+(?:correctly|properly|well|fine|as (?:expected|intended|it should)"
    r"|smoothly|great)\b|\b(?:good|nice|great|better|clean|beautiful|modern|intuitive|polished)\s+"
    r"(?:\w+\s+)?(?:ux|ui|design|experience|look|performance|quality|code)\b|\bhandles?\s+(?:all\s+)?(?:the\s+)?"
    r"(?:edge|corner|error)\s+cases?\s*(?:gracefully|properly|correctly)?\W*$|\beasi(?:ly|er)\b|"
    r"\beasy to\b|\buser[- ]friendly\b|\bintuitive\b|\bas (?:needed|appropriate)\b|\bproperly\b|\bgracefully\b|"
    r"\b(?:looks?|feels?)\s+(?:good|nice|great|right)\b|\betc\b|\band so on\b|\brobust\b|\bseamless(?:ly)?\b|"
    r"^(?:is\s+)?(?:fast|performant|scalable|responsive|secure|reliable|maintainable|high quality)\W*$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"(?<![\w\])])\[(?:(?:title|name|user|feature|benefit|criterion|description|specify|fill in|your)\b[^\]]{0,60}"
    r"|[A-Za-z]+ (?:title|name|here)|\.\.\.|…)\](?!\()|\bTBD\b",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z\"'(`]|\s*$)|\n\s*(?:[-*]|\d+\.)\s")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|no|v\d+)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PrdFinding:
    """One thing to mend before a run; `story` is "" for what concerns the whole list."""

    rule: str
    story: str
    what: str


def lint_prd(prd: Prd) -> tuple[PrdFinding, ...]:
    """Everything found, first of the list as a whole, then story by story in the order of the file."""
    return (*_list(prd), *(finding for story in prd.stories for finding in _story(story)))


def sentences(text: str) -> int:
    """How many sentences and listed points `text` has."""
    bare = _SHORT.sub("", text.strip())
    return max(len(_SENTENCE.findall(bare)), 1) if bare else 0


def vague(criterion: str) -> str:
    """The words of a criterion that nobody can check, "" when there are none."""
    found = _VAGUE.search(criterion)
    return found[0].strip() if found else ""


def _list(prd: Prd) -> Iterator[PrdFinding]:
    if not prd.stories:
        yield PrdFinding("stories-missing", "", "no stories")
    if not prd.branch:
        yield PrdFinding("branch-missing", "", "no branchName: the previous run is archived when it changes")
    for name, count in Counter(story.id for story in prd.stories).items():
        if count > 1:
            yield PrdFinding("id-duplicate", name, f"{count} stories have this id")
    for priority, stories in _shared_priorities(prd.stories):
        yield PrdFinding("priority-duplicate", stories[1], f"priority {priority} is shared by {', '.join(stories)}")
    yield from _order(sorted(prd.stories, key=lambda story: story.priority))


def _shared_priorities(stories: Iterable[UserStory]) -> Iterator[tuple[int, list[str]]]:
    by_priority: dict[int, list[str]] = {}
    for story in stories:
        by_priority.setdefault(story.priority, []).append(story.id)
    return ((priority, names) for priority, names in by_priority.items() if len(names) > 1)


def _order(stories: list[UserStory]) -> Iterator[PrdFinding]:
    places = {story.id: place for place, story in enumerate(stories)}
    furthest, above = "", ""
    for place, story in enumerate(stories):
        later = [name for name in prd_layers.needs(story, places) if places[name] > place]
        if later:
            yield PrdFinding("order-needs", story.id, f"needs {', '.join(later)}, which comes later")
        layer = prd_layers.layer_of(story)
        if layer and furthest and prd_layers.LAYERS.index(layer) < prd_layers.LAYERS.index(furthest):
            yield PrdFinding("order-layer", story.id, f"{layer} work behind {above}, which is {furthest} work")
        elif layer:
            furthest, above = layer, story.id


def _story(story: UserStory) -> Iterator[PrdFinding]:
    yield from (PrdFinding(rule, story.id, what) for rule, what in (*_size(story), *_words(story), *_criteria(story)))


def _size(story: UserStory) -> Iterator[tuple[str, str]]:
    whole = _BARE.search(story.title) or _WHOLE.search(story.title) or _WHOLE.search(story.description)
    if whole:
        yield "size-scope", f"“{whole[0].strip()}” is more than one session: split it by layer or by part"
    count = sentences(story.description)
    if count > MAX_SENTENCES:
        yield "size-sentences", f"its description takes {count} sentences; {MAX_SENTENCES} is what a session can hold"
    own = [one for one in story.criteria if not TYPECHECK.search(one) and not BROWSER.search(one)]
    if len(own) > MAX_CRITERIA:
        yield "size-criteria", f"{len(own)} criteria; more than {MAX_CRITERIA} are several stories"


def _words(story: UserStory) -> Iterator[tuple[str, str]]:
    if not story.description:
        yield "description-missing", "no description: say for whom and why in a sentence"
    if found := _CONTROL.findall(f"{story.id}{story.title}"):
        named = ", ".join(dict.fromkeys(f"U+{ord(one):04X}" for one in found))
        yield "control-character", f"its id or title holds {named}: leave that out"
    open_ends = [left[0] for text in (story.title, story.description, *story.criteria)
                 if (left := _PLACEHOLDER.search(text))]  # fmt: skip  # one list
    if open_ends:
        yield "placeholder", f"still to be filled in: {', '.join(open_ends[:3])}"


def _criteria(story: UserStory) -> Iterator[tuple[str, str]]:
    if not story.criteria:
        yield "criteria-missing", "no acceptance criteria: nothing can prove it done"
    for criterion in story.criteria:
        if words := vague(criterion):
            yield "criteria-vague", f"“{words}” cannot be checked: say what is seen or measured ({criterion[:80]})"
    if not any(TYPECHECK.search(one) for one in story.criteria):
        yield "criteria-typecheck", "no criterion like “Typecheck passes”"
    if prd_layers.is_ui(story) and not any(BROWSER.search(one) for one in story.criteria):
        yield "criteria-browser", "it changes what a person sees: add “Verify in browser”"
