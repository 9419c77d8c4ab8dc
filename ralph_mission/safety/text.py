"""Makes untrusted text inert for the place it goes to. `detect` says whether a final text is.

`sanitise` repeats a sink's steps until nothing changes, so that no step can uncover what an earlier one looked for.
Ordinary text passes byte for byte. Changed text stays readable: `@name` becomes `@ name`, `@scope/package` becomes
`scope/package`, `fixes #3` becomes `fixes no. 3`, a link to a host that is not allowed becomes `hxxps://…`. Quoted text
is code that its content cannot end (`quote`, `inline`, `fence`), whatever the steps here overlook.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from ralph_mission.safety import detect
from ralph_mission.safety.detect import (
    as_shown,
    closing_keywords,
    decode_entities,
    mentions,
    shows_nothing,
)
from ralph_mission.safety.markdown import prose, replace, without_controls, without_invisible
from ralph_mission.values import compile_regex

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
"""Hosts that links may lead to."""
SCOPED = compile_regex(r"[A-Za-z0-9][\w.~-]*/[A-Za-z0-9]")
"""The part after the @ of a scoped package."""
UNSAFE_TEXT = "(text withheld: it could not be made safe)"
ROUNDS = 60


Step = Callable[[str, bool], str]
"""A step: (text, whether it has no code) to the changed text."""


def sanitise(text: str, sink: str, *, limit: int = 0) -> str:
    """Make `text` harmless in `sink` (issue, pr, commit, post, summary, log, prompt), at most `limit` characters.

    Idempotent. Raises KeyError for a sink it does not know.
    """
    return _sanitise(text, limit or LIMITS[sink], sink)


@lru_cache(maxsize=256)  # the same titles and comments are sanitised again and again
def _sanitise(text: str, length: int, sink: str) -> str:
    everywhere = sink not in MARKDOWN
    for _ in range(ROUNDS):
        cleaned = truncate(text, length)
        for step in STEPS[sink]:
            cleaned = step(cleaned, everywhere)
        if cleaned == text and not _is_live(text, sink):
            return text
        text = cleaned if cleaned != text else _without_markup(text, everywhere)
    return truncate(UNSAFE_TEXT, length)


def _is_live(text: str, sink: str) -> bool:
    # Words and titles become part of a markdown text, so they are read in both ways.
    readings = (True,) if sink in MARKDOWN else (True, False)
    live = (closing_keywords(text, markdown) or mentions(text, markdown) for markdown in readings)
    return sink in FORGE and any(live)


def _without_markup(text: str, everywhere: bool) -> str:
    """The text without mark-up that hides a live word; if something else hides it, the text as readers see it."""
    texts = (prose(text), text) if everywhere else (prose(text),)
    dropped = {at for one in texts for at in _find_markup(one)}
    return "".join(letter for at, letter in enumerate(text) if at not in dropped) if dropped else as_shown(text)


def _find_markup(text: str) -> Iterator[int]:
    """The places of mark-up within a live word; all other mark-up is harmless."""
    marks = {at for match in detect.MARKUP.finditer(text) for at in range(*match.span())}
    places = [at for at in range(len(text)) if at not in marks]
    bare = "".join(text[at] for at in places)
    for match in (*detect.CLOSING.finditer(bare), *detect.NAMED.finditer(bare)):
        yield from marks.intersection(range(places[match.start()], places[match.end() - 1]))


def truncate(text: str, limit: int) -> str:
    """Cut to `limit` characters, with an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip("…") + "…"


def inline(text: str, limit: int = 200) -> str:
    """Untrusted text as a one-line code span that it cannot end."""
    words = " ".join(sanitise(text, "quotation", limit=LIMITS["log"]).split())
    line = sanitise(words, "quotation", limit=limit) or "(empty)"
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def inline_words(text: str, limit: int = 1_000) -> str:
    """Untrusted words as one line within a markdown text, where code spans may not survive."""
    line = " ".join(sanitise(text, "words", limit=LIMITS["log"]).split())
    return " ".join(sanitise(line, "words", limit=limit).split())


def quote(text: str, limit: int = 4_000) -> str:
    """Untrusted text as a code block that it cannot end. No trailing newline."""
    return fence(text.strip("\r\n"), limit)


def fence(text: str, limit: int, language: str = "text") -> str:
    """As `quote`, line ends kept, highlighted as `language`."""
    body = sanitise(text, "quotation", limit=limit).rstrip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


# --- the steps ------------------------------------------------------------------------


def _controls(text: str, _: bool) -> str:
    return without_controls(text)


def _invisible(text: str, _: bool) -> str:
    return without_invisible(text)


def _entities(text: str, everywhere: bool) -> str:
    return replace(detect.ENTITY, _entity, text, everywhere)


def _entity(match: re.Match[str]) -> str:
    decoded, follows = decode_entities(match.group()), match.string[match.end() : match.end() + 1]
    disguised = shows_nothing(decoded) or re.fullmatch(r"[A-Za-z0-9@/:.!-]+", decoded)
    return decoded if disguised or (decoded == "#" and (follows.isalnum() or follows == "{")) else match.group()


def _comments(text: str, everywhere: bool) -> str:
    for match in reversed(list(detect.COMMENT.finditer(text if everywhere else prose(text)))):
        text = text[: match.start()] + text[match.end() :]
    return text


def _mentions(text: str, everywhere: bool) -> str:
    return _bots(replace(detect.MENTION, _unaddressed, text, everywhere), everywhere)


def _unaddressed(match: re.Match[str]) -> str:
    """A name without the mention; the rest of a scoped package or a team stays."""
    return "" if SCOPED.match(match.string, match.end()) else "@ "


def _bots(text: str, _: bool) -> str:
    return detect.BOTS.sub("@ ", text)


def _closing(text: str, everywhere: bool) -> str:
    return replace(detect.CLOSING, _number, text, everywhere)


def _number(match: re.Match[str]) -> str:
    place = (match["place"] or match["home"] or "").replace("\\", "")
    gap = match["gap"] if match["gap"].strip(":\\") else match["gap"] + " "
    return f"{match['word']}{gap}{place + ' ' if place else ''}no. {match['number']}"


def _skip_marks(text: str, _: bool) -> str:
    text = detect.SKIP_CI.sub(lambda match: f"({match['mark'] or 'NO_CI'})", text)
    return detect.SKIP_CHECKS.sub(lambda match: f"{match['word']} is", text)


def _trailers(text: str, _: bool) -> str:
    return detect.TRAILER.sub(lambda match: f"{match['lead']}{match['word']} -", text)


def _commands(text: str, _: bool) -> str:
    text = detect.COMMAND.sub(lambda match: f"{match['lead']}/ ", text)
    return detect.BORS.sub(lambda match: f"{match['lead']},", text)


def _ours(text: str, _: bool) -> str:
    """Neutralise markers and seals in quoted text, including code: only we may write them."""
    return detect.SEAL.sub("[quoted] ", detect.SIGNATURE.sub("ralph: v", text))


def _ticks(text: str, _: bool) -> str:
    """Shorten long runs of backticks, as a fence must be longer than every run within."""
    return re.sub("`{12,}", "`" * 10 + "…", text)


def _workflow(text: str, everywhere: bool) -> str:
    def answer(match: re.Match[str]) -> str:
        return " [" if match.group() == "[" else f"{match['lead']}: :"

    return replace(detect.WORKFLOW, answer, text, everywhere)


def _expressions(text: str, _: bool) -> str:
    return detect.EXPRESSION.sub("$ {{", text)


def _tags(text: str, everywhere: bool) -> str:
    return replace(detect.TAG, lambda _: "&lt;", text, everywhere)


def _hosts(text: str, everywhere: bool) -> str:
    text = replace(detect.HOST, _address, text, everywhere)
    return replace(detect.BARE_HOST, _www, text, everywhere)


def _links(text: str, _: bool) -> str:
    return detect.LINK.sub("] ", text)


def _address(match: re.Match[str]) -> str:
    scheme = match["scheme"].lower()
    if scheme == "https" and match["slashes"] == "//" and match["colon"] == ":" and _host(match["host"]) in HOSTS:
        return match.group()
    return f"hxx{'ps' if scheme.endswith('s') else 'p'}://{match['host']}"


def _www(match: re.Match[str]) -> str:
    return match.group() if _host(match.group()) in HOSTS else match.group().replace(".", "[.]")


def _host(authority: str) -> str:
    """The host of an authority; one with a user never counts as known."""
    return authority if "@" in authority else authority.casefold().rstrip(".").removesuffix(":443")


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


_UNHIDE: tuple[Step, ...] = (_controls, _invisible, _entities)
_SHOWN: tuple[Step, ...] = (_controls, _invisible, _ticks, _ours)
_FORGE: tuple[Step, ...] = (_ours, _mentions, _closing, _skip_marks, _trailers, _commands, _workflow, _expressions)
_PAGE: tuple[Step, ...] = (*_UNHIDE, _comments, _tags, _hosts, *_FORGE)
_LINE: tuple[Step, ...] = (*_UNHIDE, _comments, _hosts, *_FORGE)
STEPS: dict[str, tuple[Step, ...]] = {
    "issue": _PAGE,
    "pr": _PAGE,
    "summary": _PAGE,
    "commit": _LINE,
    "post": _LINE,
    "words": (*_UNHIDE, _comments, _tags, _hosts, _links, *_FORGE),
    "log": (_controls, _invisible, _workflow, _expressions),
    "quotation": (*_SHOWN, _workflow, _bots, _commands, _trailers, _skip_marks),
    "prompt": (*_UNHIDE, _comments),
}
