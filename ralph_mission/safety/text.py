"""Makes untrusted text inert for the place it goes to. `detect` says whether a final text is.

`sanitise` runs every step of a sink again until nothing changes any more, so that no step can
uncover what an earlier one looked for. Ordinary text passes byte for byte. What is changed
stays readable: `@name` becomes `@ name`, `fixes #3` becomes `fixes no. 3`, a link to a host
that is not allowed becomes `hxxps://…`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ralph_mission.safety import grammar
from ralph_mission.safety.detect import (
    as_shown,
    closing_keywords,
    commands,
    decoded,
    hidden,
    mentions,
    shows_nothing,
    unused_definitions,
    workflow_commands,
)
from ralph_mission.safety.hidden import without_controls, without_invisible
from ralph_mission.safety.markdown import prose, replace

__all__ = [
    "HOSTS",
    "LIMITS",
    "closing_keywords",
    "commands",
    "cut",
    "fenced",
    "hidden",
    "inline",
    "mentions",
    "quote",
    "said",
    "sanitise",
    "workflow_commands",
]

LIMITS = {
    "issue": 60_000,
    "pr": 60_000,
    "commit": 10_000,
    "post": 4_000,
    "summary": 500_000,
    "log": 20_000,
    "prompt": 60_000,
}
"""Characters per sink. GitHub takes 65,536 in a body, 1 MiB in a step summary; a network cuts its posts again."""
MARKDOWN = frozenset({"issue", "pr", "summary"})
"""Sinks where code spans are code. Titles go through `commit`: they have no mark-up."""
FORGE = MARKDOWN | {"commit", "words"}
"""Sinks where a text can close issues and notify people."""
HOSTS = frozenset({"github.com", "www.github.com", "docs.github.com"})
"""Hosts that links may lead to unless the caller names its own."""
WITHHELD = "(text withheld: it could not be made safe)"
ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Context:
    """What a step may need to know: the sink, and the hosts that links may lead to."""

    sink: str
    hosts: frozenset[str]

    @property
    def everywhere(self) -> bool:
        """Whether there is no such thing as code here."""
        return self.sink not in MARKDOWN


Step = Callable[[str, Context], str]


def sanitise(text: str, sink: str, *, hosts: frozenset[str] = HOSTS, limit: int = 0) -> str:
    """`text`, harmless in `sink` (issue, pr, commit, post, summary, log, prompt), at most `limit` characters.

    Idempotent. Raises KeyError for a sink it does not know.
    """
    return _sanitise(text, limit or LIMITS[sink], Context(sink, hosts))


@lru_cache(
    maxsize=256
)  # the same titles and remarks are worded again and again, and what is at rest is asked once more
def _sanitise(text: str, length: int, context: Context) -> str:
    sink = context.sink
    for _ in range(ROUNDS):
        calm = cut(text, length)
        for step in STEPS[sink]:
            calm = step(calm, context)
        if calm == text and not _is_live(text, context):
            return text
        text = calm if calm != text else _undisguised(text, context)
    return cut(WITHHELD, length)


def _is_live(text: str, context: Context) -> bool:
    # Words and titles are put within a markdown text, so they are read in both ways.
    readings = (True, False) if context.everywhere else (True,)
    live = (closing_keywords(text, markdown) or mentions(text, markdown) for markdown in readings)
    return context.sink in FORGE and any(live)


def _undisguised(text: str, context: Context) -> str:
    """The text without the mark-up that hides a live word; where something else does, all as its reader sees it."""
    seen = (prose(text), text) if context.everywhere else (prose(text),)
    dropped = {at for one in seen for at in _disguise(one)}
    return "".join(letter for at, letter in enumerate(text) if at not in dropped) if dropped else as_shown(text)


def _disguise(text: str) -> Iterator[int]:
    """Where mark-up stands within a live word; all other mark-up of the text is innocent."""
    marks = {at for match in grammar.MARKUP.finditer(text) for at in range(*match.span())}
    left = [at for at in range(len(text)) if at not in marks]
    bare = "".join(text[at] for at in left)
    for match in (*grammar.CLOSING.finditer(bare), *grammar.NAMED.finditer(bare)):
        yield from marks.intersection(range(left[match.start()], left[match.end() - 1]))


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; what was cut off shows as an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip("…") + "…"


def inline(text: str, limit: int = 200) -> str:
    """One line of untrusted text as a code span that it cannot leave."""
    words = " ".join(sanitise(text, "quotation", limit=LIMITS["log"]).split())
    line = sanitise(words, "quotation", limit=limit) or "(nothing)"
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def said(text: str, limit: int = 1_000) -> str:
    """One line of untrusted words to stand within a markdown text: what would be code elsewhere may be none there."""
    line = " ".join(sanitise(text, "words", limit=LIMITS["log"]).split())
    return " ".join(sanitise(line, "words", limit=limit).split())


def quote(text: str, limit: int = 4_000) -> str:
    """Untrusted text as a code block that it cannot leave. Ends without a newline."""
    return fenced(text.strip("\r\n"), limit)


def fenced(text: str, limit: int, language: str = "text") -> str:
    """As `quote`, line ends kept, highlighted as `language`."""
    body = sanitise(text, "quotation", limit=limit).rstrip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


# --- the steps ------------------------------------------------------------------------


def _controls(text: str, _: Context) -> str:
    return without_controls(text)


def _invisible(text: str, _: Context) -> str:
    return without_invisible(text)


def _entities(text: str, context: Context) -> str:
    return replace(grammar.ENTITY, _entity, text, context.everywhere)


def _entity(match: re.Match[str]) -> str:
    shown, follows = decoded(match.group()), match.string[match.end() : match.end() + 1]
    disguised = shows_nothing(shown) or re.fullmatch(r"[A-Za-z0-9@/:.!-]+", shown)
    return shown if disguised or (shown == "#" and (follows.isalnum() or follows == "{")) else match.group()


def _comments(text: str, context: Context) -> str:
    return _without(text, grammar.COMMENT.finditer(text if context.everywhere else prose(text)))


def _definitions(text: str, context: Context) -> str:
    return _without(text, unused_definitions(text if context.everywhere else prose(text)))


def _without(text: str, matches: Iterable[re.Match[str]]) -> str:
    for match in reversed(list(matches)):
        text = text[: match.start()] + text[match.end() :]
    return text


def _mentions(text: str, context: Context) -> str:
    return _bots(replace(grammar.MENTION, lambda _: "@ ", text, context.everywhere), context)


def _bots(text: str, _: Context) -> str:
    return grammar.BOTS.sub("@ ", text)


def _closing(text: str, context: Context) -> str:
    return replace(grammar.CLOSING, _number, text, context.everywhere)


def _number(match: re.Match[str]) -> str:
    place = (match["place"] or match["home"] or "").replace("\\", "")
    gap = match["gap"] if match["gap"].strip(":\\") else match["gap"] + " "
    return f"{match['word']}{gap}{place + ' ' if place else ''}no. {match['number']}"


def _skip_marks(text: str, _: Context) -> str:
    text = grammar.SKIP_CI.sub(lambda match: f"({match['mark'] or 'NO_CI'})", text)
    return grammar.SKIP_CHECKS.sub(lambda match: f"{match['word']} is", text)


def _trailers(text: str, _: Context) -> str:
    return grammar.TRAILER.sub(lambda match: f"{match['lead']}{match['word']} -", text)


def _commands(text: str, _: Context) -> str:
    text = grammar.COMMAND.sub(lambda match: f"{match['lead']}/ ", text)
    return grammar.BORS.sub(lambda match: f"{match['lead']},", text)


def _ours(text: str, _: Context) -> str:
    """Only we sign and seal: what is quoted, code too, must not look as if we had."""
    return grammar.SEAL.sub("[quoted] ", grammar.SIGNATURE.sub("ralph: v", text))


def _ticks(text: str, _: Context) -> str:
    """A fence is longer than every run within, so a hostile run must not make the text three times as long."""
    return re.sub("`{12,}", "`" * 10 + "…", text)


def _workflow(text: str, context: Context) -> str:
    def answer(match: re.Match[str]) -> str:
        return " [" if match.group() == "[" else f"{match['lead']}: :"

    return replace(grammar.WORKFLOW, answer, text, context.everywhere)


def _expressions(text: str, context: Context) -> str:
    return replace(grammar.EXPRESSION, lambda _: "$ {{", text, context.sink == "summary" or context.everywhere)


def _tags(text: str, context: Context) -> str:
    pattern = grammar.TAG if context.sink in ("summary", "words") else grammar.LIVE_TAG
    return replace(pattern, lambda _: "&lt;", text, context.everywhere)


def _links(text: str, context: Context) -> str:
    def answer(match: re.Match[str]) -> str:
        return match["lead"] + _target(match["target"], context.hosts)

    text = replace(grammar.HOST, lambda match: _address(match, context.hosts), text, context.everywhere)
    text = replace(grammar.BARE_HOST, lambda match: _www(match, context.hosts), text, context.everywhere)
    return replace(grammar.TARGET, answer, text, context.everywhere)


def _address(match: re.Match[str], hosts: frozenset[str]) -> str:
    scheme = match["scheme"].lower()
    if scheme == "https" and match["slashes"] == "//" and match["colon"] == ":" and _host(match["host"]) in hosts:
        return match.group()
    return f"hxx{'ps' if scheme.endswith('s') else 'p'}://{match['host']}"


def _www(match: re.Match[str], hosts: frozenset[str]) -> str:
    return match.group() if _host(match.group()) in hosts else match.group().replace(".", "[.]")


def _target(target: str, hosts: frozenset[str]) -> str:
    """A link's target: relative, mailto, or an allowed host; anything else can no longer be followed."""
    meant = re.sub(r"[\0-\x20]", "", grammar.ESCAPED.sub(r"\1", decoded(target)))  # browsers leave these out
    scheme = grammar.SCHEME.match(meant)
    if meant.startswith(("//", "\\", "/\\")):
        return "hxxps://" + meant.lstrip("/\\")
    if not scheme or scheme["scheme"].lower() in ("mailto", "hxxp", "hxxps") or scheme["scheme"].startswith("unsafe-"):
        return target
    authority = re.split(r"[/?#\\]", meant[8:])[0] if meant[:8].lower() == "https://" else ""
    return target if _host(authority) in hosts else "unsafe-" + meant


def _host(authority: str) -> str:
    """The host of an authority; one with a user in it is never known."""
    return authority if "@" in authority else authority.casefold().rstrip(".").removesuffix(":443")


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


_SEEN: tuple[Step, ...] = (_controls, _invisible, _entities)
_SHOWN: tuple[Step, ...] = (_controls, _invisible, _ticks, _ours)
_FORGE: tuple[Step, ...] = (_ours, _mentions, _closing, _skip_marks, _trailers, _commands, _workflow, _expressions)
STEPS: dict[str, tuple[Step, ...]] = {
    "issue": (*_SEEN, _comments, _definitions, _tags, _links, *_FORGE),
    "pr": (*_SEEN, _comments, _definitions, _tags, _links, *_FORGE),
    "summary": (*_SEEN, _comments, _definitions, _tags, _links, *_FORGE),
    "commit": (*_SEEN, _comments, _links, *_FORGE),
    "words": (*_SEEN, _comments, _tags, _links, *_FORGE),
    "post": (*_SEEN, _comments, _links, _mentions, _skip_marks, _commands, _workflow, _expressions),
    "log": (_controls, _invisible, _workflow, _expressions),
    "quotation": (*_SHOWN, _workflow, _expressions, _bots, _commands, _trailers, _skip_marks),
    "prompt": (*_SEEN, _comments, _definitions),
}
