"""Checks and orders stories for independent sessions.

`lint_prd` only reports certain problems of unfinished stories, for people; `review_prd` also advises the planner who is
still writing the list: each story small enough for one session, after what it needs, with criteria. Rule ids never
change. The examples of too big and of vague are snarktank/ralph's; the limits on criteria and sentences are below.

The order is snarktank/ralph's: storage, logic, user interface, summaries. Words decide, so a story may be assigned to
the wrong layer; a person or an agent has the last word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from ralph_mission.loop.model.state import Prd, UserStory
from ralph_mission.values import compile_regex, dataclass

SCHEMA, BACKEND, UI, DASHBOARD = "schema", "backend", "ui", "dashboard"
LAYERS = (SCHEMA, BACKEND, UI, DASHBOARD)

_WORDS = {
    SCHEMA: "schema|databases?|migrations?|migrate|tables?|columns?|fields?|data ?models?|enums?|foreign keys?|index",
    BACKEND: "endpoints?|apis?|routes?|services?|servers?|server actions?|backend|quer(?:y|ies)|mutations?|handlers?|"
    "controllers?|middleware|workers?|jobs?|webhooks?|(?-i:GET|POST|PUT|PATCH|DELETE)|validat(?:e|ion)|business logic|"
    "cli|commands?",
    UI: "ui|pages?|screens?|buttons?|modals?|dialogs?|dropdowns?|badges?|forms?|components?|views?|display|show|filter|"
    "toggles?|selectors?|cards?|headers?|icons?|sidebars?|menus?|panels?|layouts?|frontend|tooltips?|tabs?|banners?",
    DASHBOARD: "dashboards?|summary|summaries|overview|reports?|statistics|analytics|charts?",
}
_KNOWN = {layer: compile_regex(rf"\b(?:{words})\b", re.IGNORECASE) for layer, words in _WORDS.items()}
_SHOWS = compile_regex(r"^(?:display|show|render|style|hide)\b", re.IGNORECASE)
_STORES = compile_regex(r"^(?:store|persist|save|migrate)\b", re.IGNORECASE)
_WHY = compile_regex(r"\bso that\b.*", re.IGNORECASE | re.DOTALL)  # its purpose is for later stories
_BROWSER = compile_regex(r"\bbrowser\b", re.IGNORECASE)
_NEEDS = compile_regex(
    r"\b(?:depends? on|requires?|needs?|after|blocked by|builds? on|uses?|once)\b([^.;\n]{0,80})", re.IGNORECASE
)
_NAME = compile_regex(r"\w[\w-]*")


def layer_of(story: UserStory) -> str:
    """One of LAYERS, or "". The title counts more than the rest."""
    if _SHOWS.match(story.title):
        return DASHBOARD if _KNOWN[DASHBOARD].search(story.title) else UI
    if _STORES.match(story.title):
        return SCHEMA
    found = _most(story.title) or _most(" ".join((_WHY.sub("", story.description), *story.criteria)))
    browser = any(_BROWSER.search(criterion) for criterion in story.criteria)
    return UI if browser and found not in (UI, DASHBOARD) else found


def is_ui(story: UserStory) -> bool:
    """Whether the story changes the user interface, so that it needs a look in a browser."""
    return layer_of(story) in (UI, DASHBOARD)


def needs(story: UserStory, names: Container[str]) -> tuple[str, ...]:
    """The stories among `names` that its own text says it depends on."""
    text = "\n".join((story.description, *story.criteria))
    words = (word for found in _NEEDS.finditer(text) for word in _NAME.findall(found[1]))
    return tuple(dict.fromkeys(word for word in words if word != story.id and word in names))


def order_by_layer(stories: Sequence[UserStory]) -> tuple[UserStory, ...]:
    """Order by stated needs, then by layer, then as before. A story without a layer follows its predecessor.

    Stories that need each other in a cycle are ordered by layer alone.
    """
    ranks = _order_ranks(stories)
    places = {story.id: place for place, story in enumerate(stories)}
    graph = TopologicalSorter(
        {place: {places[name] for name in needs(story, places)} for place, story in enumerate(stories)}
    )
    try:
        graph.prepare()
    except CycleError:
        return tuple(stories[place] for place in sorted(range(len(stories)), key=lambda place: ranks[place]))
    return tuple(stories[place] for place in _drain(graph, ranks))


def _drain(graph: TopologicalSorter[int], ranks: Sequence[int]) -> list[int]:
    done: list[int] = []
    ready = [(ranks[place], place) for place in graph.get_ready()]
    heapify(ready)
    while ready:
        _, following = heappop(ready)
        done.append(following)
        graph.done(following)
        for place in graph.get_ready():
            heappush(ready, (ranks[place], place))
    return done


def _order_ranks(stories: Sequence[UserStory]) -> list[int]:
    ranks: list[int] = []
    for story in stories:
        found = layer_of(story)
        ranks.append(LAYERS.index(found) if found else (ranks[-1] if ranks else 0))
    return ranks


def _most(text: str) -> str:
    counts = {name: len(known.findall(text)) for name, known in _KNOWN.items()}
    best = max(counts.values())
    return next(name for name in (DASHBOARD, UI, BACKEND, SCHEMA) if counts[name] == best) if best else ""


MAX_SENTENCES = 3
"""The original tools' rule of thumb: what two or three sentences cannot describe is too big."""
MAX_CRITERIA = 8
"""Our own number: twice that of the original examples, without the two standard criteria."""

TYPECHECK = compile_regex(r"\btype[- ]?check|\btypes? (?:check|pass)|\b(?:tsc|mypy|pyright|compiles?)\b", re.IGNORECASE)
BROWSER = compile_regex(r"\bbrowser\b", re.IGNORECASE)

_WHOLE = compile_regex(
    r"\b(?:entire|whole|complete|full)[- ](?:\w+[- ]){0,2}?(?:system|app|application|dashboard|api|backend|frontend|"
    r"site|website|project|product|platform|codebase|feature|flow|stack)\b|\beverything\b|\bfrom scratch\b|"
    r"\bend[- ]to[- ]end (?:system|feature|flow)\b",
    re.IGNORECASE,
)
_BARE = compile_regex(
    r"^(?:add|build|create|implement|refactor|rewrite|redesign|migrate|set up)\s+(?:an?\s+|the\s+|our\s+)?(?:user\s+)?"
    r"(?:authentication|authori[sz]ation|auth|accounts?|log ?in system|dashboard|api|rest api|backend|frontend|ui|"
    r"database|app|application|codebase|payments?|billing|notifications?|notification system|search|settings|admin"
    r"|admin panel|reporting|internationali[sz]ation)(?:\s+system)?\W*$",
    re.IGNORECASE,
)
_VAGUE = compile_regex(
    r"\b(?:works?|functions?|behaves?|runs?)\s+(?:correctly|properly|well|fine|as (?:expected|intended|it should)"
    r"|smoothly|great)\b|\b(?:good|nice|great|better|clean|beautiful|modern|intuitive|polished)\s+"
    r"(?:\w+\s+)?(?:ux|ui|design|experience|look|performance|quality|code)\b|\bhandles?\s+(?:all\s+)?(?:the\s+)?"
    r"(?:edge|corner|error)\s+cases?\s*(?:gracefully|properly|correctly)?\W*$|\beasi(?:ly|er)\b|"
    r"\beasy to\b|\buser[- ]friendly\b|\bintuitive\b|\bas (?:needed|appropriate)\b|\bproperly\b|\bgracefully\b|"
    r"\b(?:looks?|feels?)\s+(?:good|nice|great|right)\b|\betc\b|\band so on\b|\brobust\b|\bseamless(?:ly)?\b|"
    r"^(?:is\s+)?(?:fast|performant|scalable|responsive|secure|reliable|maintainable|high quality)\W*$",
    re.IGNORECASE,
)
# Only whole texts: “shows [name]” and “TBD” within a sentence may be content.
_PLACEHOLDER = compile_regex(r"^\[[^\]\n]{1,60}\](?!\()\W*$|^(?:TBD|TODO)\W*$|^As an? \[[^\]\n]{1,60}\]", re.IGNORECASE)
_DIGITS = compile_regex(r"[0-9]+")
_CONTROL = compile_regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SENTENCE = compile_regex(r"[.!?](?=\s+[A-Z\"'(`]|\s*$)|\n\s*(?:[-*]|\d+\.)\s")
_SHORT = compile_regex(r"\b(?:e\.g|i\.e|etc|vs|approx|no|v\d+)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PrdFinding:
    """A problem to fix before a run; `story` is "" for the whole list."""

    rule: str
    story: str
    what: str


def lint_prd(prd: Prd) -> tuple[PrdFinding, ...]:
    """The certain problems of stories that do not pass yet, starting with the list as a whole."""
    open_ids = {story.id for story in prd.todo}
    return tuple(_find_faults(prd, open_ids))


def find_circle(prd: Prd) -> tuple[str, ...]:
    """Open stories that need each other in a circle, or ()."""
    waits = {story.id: {*story.needs} & {other.id for other in prd.todo} - {story.id} for story in prd.todo}
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as cycle:
        return tuple(cycle.args[1][1:])
    return ()


def review_prd(prd: Prd) -> tuple[PrdFinding, ...]:
    """All problems and suggestions, in the file's order."""
    return (*lint_prd(prd), *_review_list(prd), *(one for story in prd.stories for one in _review_story(story)))


def sentences(text: str) -> int:
    """How many sentences and listed points `text` has."""
    bare = _SHORT.sub("", text.strip())
    return max(len(_SENTENCE.findall(bare)), 1) if bare else 0


def vague(criterion: str) -> str:
    """The words of a criterion that cannot be checked, or ""."""
    found = _VAGUE.search(criterion)
    return found[0].strip() if found else ""


def _find_faults(prd: Prd, open_ids: Collection[str]) -> Iterator[PrdFinding]:
    if not prd.stories:
        yield PrdFinding("stories-missing", "", "no stories")
    for name, count in Counter(story.id for story in prd.stories).items():
        if count > 1 and name in open_ids:
            yield PrdFinding("id-duplicate", name, f"{count} stories have this id")
    if bare := [story.id for story in prd.todo if not story.criteria]:
        more = f" and {len(bare) - 5} more" if len(bare) > 5 else ""
        what = f"no acceptance criteria: {', '.join(bare[:5])}{more}; only the project's checks tell whether it is done"
        yield PrdFinding("criteria-missing", "", what)
    ordered = sorted(prd.stories, key=lambda story: story.priority)
    places = {story.id: place for place, story in enumerate(ordered)}
    for place, story in enumerate(ordered):
        later = [name for name in needs(story, places) if places[name] > place and name in open_ids]
        if later and not story.passes:
            yield PrdFinding("order-needs", story.id, f"needs {', '.join(later)}, which comes later")
    yield from _find_wrong_needs(prd)
    yield from (PrdFinding(rule, story.id, what) for story in prd.todo for rule, what in _check_words(story))


def _find_wrong_needs(prd: Prd) -> Iterator[PrdFinding]:
    """Stated needs that a run ignores. Only what looks like an id of this list was meant as one."""
    known = {story.id for story in prd.stories}
    shapes = {_DIGITS.sub("0", name) for name in known}
    for story in prd.todo:
        unknown = [name for name in story.needs if name not in known and _DIGITS.sub("0", name) in shapes]
        if unknown:
            yield PrdFinding("needs-unknown", story.id, f"needs {', '.join(unknown)}, which is not in the list")
    if circle := find_circle(prd):
        yield PrdFinding("needs-cycle", circle[-1], f"wait for each other, so none waits: {', '.join(circle)}")


def _review_list(prd: Prd) -> Iterator[PrdFinding]:
    if not prd.branch:
        yield PrdFinding("branch-missing", "", "no branchName: the previous run is archived when it changes")
    for priority, stories in _shared_priorities(prd.stories):
        yield PrdFinding("priority-duplicate", stories[1], f"priority {priority} is shared by {', '.join(stories)}")
    yield from _review_layers(sorted(prd.stories, key=lambda story: story.priority))


def _shared_priorities(stories: Iterable[UserStory]) -> Iterator[tuple[int, list[str]]]:
    by_priority: dict[int, list[str]] = {}
    for story in stories:
        by_priority.setdefault(story.priority, []).append(story.id)
    return ((priority, names) for priority, names in by_priority.items() if len(names) > 1)


def _review_layers(stories: list[UserStory]) -> Iterator[PrdFinding]:
    furthest, above = "", ""
    for story in stories:
        layer = layer_of(story)
        if layer and furthest and LAYERS.index(layer) < LAYERS.index(furthest):
            yield PrdFinding("order-layer", story.id, f"{layer} work behind {above}, which is {furthest} work")
        elif layer:
            furthest, above = layer, story.id


def _review_story(story: UserStory) -> Iterator[PrdFinding]:
    if not story.description:
        yield PrdFinding("description-missing", story.id, "no description: say for whom and why in a sentence")
    yield from (PrdFinding(rule, story.id, what) for rule, what in (*_check_size(story), *_review_criteria(story)))


def _check_size(story: UserStory) -> Iterator[tuple[str, str]]:
    whole = _BARE.search(story.title) or _WHOLE.search(story.title) or _WHOLE.search(story.description)
    if whole:
        yield "size-scope", f"“{whole[0].strip()}” is more than one session: split it by layer or by part"
    count = sentences(story.description)
    if count > MAX_SENTENCES:
        yield "size-sentences", f"its description takes {count} sentences; {MAX_SENTENCES} is what a session can hold"
    own = [
        criterion for criterion in story.criteria if not TYPECHECK.search(criterion) and not BROWSER.search(criterion)
    ]
    if len(own) > MAX_CRITERIA:
        yield "size-criteria", f"{len(own)} criteria; more than {MAX_CRITERIA} are several stories"


def _check_words(story: UserStory) -> Iterator[tuple[str, str]]:
    if found := _CONTROL.findall(f"{story.id}{story.title}"):
        named = ", ".join(dict.fromkeys(f"U+{ord(one):04X}" for one in found))
        yield "control-character", f"its id or title holds {named}: leave that out"
    open_ends = [match[0] for text in (story.title, story.description, *story.criteria)
                 if (match := _PLACEHOLDER.search(text))]  # fmt: skip  # one list
    if open_ends:
        yield "placeholder", f"still to be filled in: {', '.join(open_ends[:3])}"


def _review_criteria(story: UserStory) -> Iterator[tuple[str, str]]:
    for criterion in story.criteria:
        if words := vague(criterion):
            yield "criteria-vague", f"“{words}” cannot be checked: say what is seen or measured ({criterion[:80]})"
    if not any(TYPECHECK.search(one) for one in story.criteria):
        yield "criteria-typecheck", "no criterion like “Typecheck passes”"
    if is_ui(story) and not any(BROWSER.search(one) for one in story.criteria):
        yield "criteria-browser", "it changes what a person sees: add “Verify in browser”"
