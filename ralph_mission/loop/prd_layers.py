"""Where a story belongs among schema, backend, UI and dashboard, and the order that follows from it.

The four steps are snarktank/ralph's: what is stored, what works on it, what shows it, what sums it up. Words decide,
so a story may be taken for another layer; a person or an agent has the last word on the order.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from ralph_mission.loop.model import UserStory

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
_KNOWN = {layer: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for layer, words in _WORDS.items()}
_SHOWS = re.compile(r"^(?:display|show|render|style|hide)\b", re.IGNORECASE)
_STORES = re.compile(r"^(?:store|persist|save|migrate)\b", re.IGNORECASE)
_WHY = re.compile(r"\bso that\b.*", re.IGNORECASE | re.DOTALL)  # what it is good for is later stories' work
_BROWSER = re.compile(r"\bbrowser\b", re.IGNORECASE)
_NEEDS = re.compile(
    r"\b(?:depends? on|requires?|needs?|after|blocked by|builds? on|uses?|once)\b([^.;\n]{0,80})", re.IGNORECASE
)
_NAME = re.compile(r"\w[\w-]*")


def layer_of(story: UserStory) -> str:
    """One of LAYERS, "" when no word tells. The title weighs more than the rest."""
    if _SHOWS.match(story.title):
        return DASHBOARD if _KNOWN[DASHBOARD].search(story.title) else UI
    if _STORES.match(story.title):
        return SCHEMA
    found = _most(story.title) or _most(" ".join((_WHY.sub("", story.description), *story.criteria)))
    seen = any(_BROWSER.search(criterion) for criterion in story.criteria)
    return UI if seen and found not in (UI, DASHBOARD) else found


def is_ui(story: UserStory) -> bool:
    """Whether a person sees what the story changes, so that a browser has to look at it."""
    return layer_of(story) in (UI, DASHBOARD)


def needs(story: UserStory, names: Container[str]) -> tuple[str, ...]:
    """Which of the stories `names` its own words say it depends on."""
    text = "\n".join((story.description, *story.criteria))
    words = (word for found in _NEEDS.finditer(text) for word in _NAME.findall(found[1]))
    return tuple(dict.fromkeys(word for word in words if word != story.id and word in names))


def order_by_layer(stories: Sequence[UserStory]) -> tuple[UserStory, ...]:
    """By what they say they need, then by layer, then as they stood. A story that tells no layer stays with the last.

    Stories that need each other in a circle stand by layer alone.
    """
    ranks = _ranks(stories)
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


def _ranks(stories: Sequence[UserStory]) -> list[int]:
    ranks: list[int] = []
    for story in stories:
        found = layer_of(story)
        ranks.append(LAYERS.index(found) if found else (ranks[-1] if ranks else 0))
    return ranks


def _most(text: str) -> str:
    counts = {name: len(known.findall(text)) for name, known in _KNOWN.items()}
    best = max(counts.values())
    return next(name for name in (DASHBOARD, UI, BACKEND, SCHEMA) if counts[name] == best) if best else ""
