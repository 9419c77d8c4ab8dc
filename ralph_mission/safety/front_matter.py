"""Texts with front matter: strict YAML between two lines `---`, and below it a text that is kept byte for byte.

By python-frontmatter, with a handler of our own: its usual one strips the text, and takes a text whose front matter
cannot be read for one without any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ralph_mission.safety import strict_yaml

FENCE = "---"
BOUNDARY = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
Export = Callable[[Mapping[str, Any]], str]
"""The lines between the fences, each ended by a newline."""


class FrontMatterError(ValueError):
    """The text has no front matter that can be read. `line` is 1-based, 0 when it concerns the whole text."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands in a front matter, the line of the text (1-based) that each key stands on, and what follows."""

    value: object
    lines: Mapping[str, int]
    body: str
    body_line: int


def parse_front_matter(text: str) -> FrontMatter:
    """The two parts of a text. Raises FrontMatterError; aliases, tags and duplicate keys are errors too."""
    handler = _handler_class()()
    if not handler.detect(text):
        raise FrontMatterError(f"must begin with a line {FENCE}", 1)
    try:
        front, body = handler.split(text)
    except ValueError:
        raise FrontMatterError(f"the front matter has no end: a line {FENCE} is missing", 1) from None
    try:
        document = handler.load(front)
    except strict_yaml.YamlError as error:
        raise FrontMatterError(error.what, error.line + 1 if error.line else 0) from None
    lines = {str(path[0]): line + 1 for path, line in document.lines.items() if len(path) == 1}
    return FrontMatter(document.value, lines, body, text.count("\n", 0, len(text) - len(body)) + 1)


def render_front_matter(metadata: Mapping[str, Any], body: str, export: Export) -> str:
    """The text that `parse_front_matter` takes apart."""
    import frontmatter

    post = frontmatter.Post(body)
    post.metadata = dict(metadata)
    return frontmatter.dumps(post, handler=_handler_class()(export))


@cache
def _handler_class() -> Any:
    """Loaded when the first text is read or written, with python-frontmatter."""
    from frontmatter.default_handlers import BaseHandler

    class StrictHandler(BaseHandler):
        """Refuses what is clever, and adds and strips nothing."""

        FM_BOUNDARY = BOUNDARY

        def __init__(self, export: Export | None = None) -> None:
            super().__init__()
            self._export = export

        def load(self, fm: str) -> Any:
            return strict_yaml.parse(fm)

        def export(self, metadata: Mapping[str, Any], **_: object) -> str:
            return self._export(metadata) if self._export else ""

        def format(self, post: Any, **_: object) -> str:
            return f"{FENCE}\n{self.export(post.metadata)}{FENCE}\n{post.content}"

    return StrictHandler
