"""Strict YAML as plain data, and front matter: such YAML between two lines `---`, above a text that is kept byte for
byte.

Only what a person writes in a settings file: no anchors, aliases, tags, duplicate keys or second documents; size and
depth are bounded, so parsing takes linear time. Text in, values with line numbers out.

Front matter is split by python-frontmatter with our own handler: the usual one strips the text, and treats a text with
unreadable front matter as one without any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from ralph_mission.values import compile_regex, dataclass

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

Path = tuple[str | int, ...]
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Not plain YAML, or unreadable front matter. `line` is 1-based, 0 for the whole text."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a YAML text, and the 1-based line of each of its paths."""

    value: object
    lines: dict[Path, int]


def parse(text: str) -> Document:
    """Parse the only document of `text`; None if it is empty. Raises YamlError."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(f"longer than {MAX_BYTES // 1024} KiB")
    try:
        _refuse_indirection(text)
        return _build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(_one_line(error.problem or error.context or "not YAML"), mark.line + 1 if mark else 0) from None
    except (yaml.YAMLError, UnicodeError):
        raise YamlError("holds a character that YAML does not allow") from None


def _refuse_indirection(text: str) -> None:
    # On events, not nodes: an event costs its own length, a node may cost its aliases'.
    depth = documents = 0
    for event in yaml.parse(text, LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        tag = getattr(event, "tag", None)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors and aliases are not supported", line)
        if tag:
            raise YamlError(f"tags are not supported: {_one_line(tag)}", line)
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} deep", line)
        if documents > 1:
            raise YamlError("holds more than one document", line)


def _build(text: str) -> Document:
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        lines: dict[Path, int] = {(): 1}
        return Document(_value(loader, node, (), lines) if node else None, lines)
    finally:
        loader.dispose()


def _value(loader: yaml.SafeLoader, node: yaml.Node, path: Path, lines: dict[Path, int]) -> object:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return {key: _value(loader, child, (*path, key), lines) for key, child in _pairs(node, path, lines)}
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child, (*path, index), lines) for index, child in enumerate(node.value)]
    try:
        return loader.construct_object(node)
    except ValueError:  # a date or a number that cannot exist
        raise YamlError(f"cannot be read: {_one_line(node.value)}", node.start_mark.line + 1) from None


def _pairs(node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> Iterator[tuple[str, yaml.Node]]:
    keys = set()
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise YamlError("a key must be a plain word", line)
        if key.value in keys:
            raise YamlError(f"the key {_one_line(key.value)} stands here twice", line)
        keys.add(key.value)
        lines[(*path, key.value)] = line
        yield key.value, child


def _one_line(text: str) -> str:
    return " ".join(text.split())[:80]


FENCE = "---"
BOUNDARY = compile_regex(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
Export = Callable[[Mapping[str, Any]], str]
"""The lines between the fences, each with its newline."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The value of a front matter, the 1-based line of each key, and the text below."""

    value: object
    lines: Mapping[str, int]
    body: str
    body_line: int


def parse_front_matter(text: str) -> FrontMatter:
    """Split and parse a text. Raises YamlError, also for aliases, tags and duplicate keys."""
    handler = _handler_class()()
    if not handler.detect(text):
        raise YamlError(f"must begin with a line {FENCE}", 1)
    try:
        front, body = handler.split(text)
    except ValueError:
        raise YamlError(f"the front matter has no end: a line {FENCE} is missing", 1) from None
    try:
        document = handler.load(front)
    except YamlError as error:
        raise YamlError(error.what, error.line + 1 if error.line else 0) from None
    lines = {str(path[0]): line + 1 for path, line in document.lines.items() if len(path) == 1}
    return FrontMatter(document.value, lines, body, text.count("\n", 0, len(text) - len(body)) + 1)


def render_front_matter(metadata: Mapping[str, Any], body: str, export: Export) -> str:
    """The inverse of `parse_front_matter`."""
    import frontmatter

    post = frontmatter.Post(body)
    post.metadata = dict(metadata)
    return frontmatter.dumps(post, handler=_handler_class()(export))


@cache
def _handler_class() -> Any:
    """Our handler; imports python-frontmatter on first use."""
    from frontmatter.default_handlers import BaseHandler

    class StrictHandler(BaseHandler):
        """Strict YAML that neither adds nor strips anything."""

        FM_BOUNDARY = BOUNDARY

        def __init__(self, export: Export | None = None) -> None:
            super().__init__()
            self._export = export

        def load(self, fm: str) -> Any:
            return parse(fm)

        def export(self, metadata: Mapping[str, Any], **_: object) -> str:
            return self._export(metadata) if self._export else ""

        def format(self, post: Any, **_: object) -> str:
            return f"{FENCE}\n{self.export(post.metadata)}{FENCE}\n{post.content}"

    return StrictHandler
