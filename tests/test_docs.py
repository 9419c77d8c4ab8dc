"""Documents say what is so: commands that exist, settings that load, links that lead somewhere, and plain words."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ralph_mission.adapters.observers.docs import anchors
from ralph_mission.cli.app import run
from ralph_mission.config.fleet import load_fleet
from ralph_mission.config.reading import load
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.extras import EXTRAS
from tools import docs, layers, site

ROOT = docs.ROOT
PAGES = sorted(
    [*ROOT.glob("*.md"), *docs.DOCS.rglob("*.md"), *map(ROOT.joinpath, ("memory/README.md", "examples/README.md"))]
)
OURS = set(Config.model_fields) | {field.alias for field in Config.model_fields.values()}
SHELL = ("", "sh", "console")
OF_THEIRS = ("hats", "event_loop", "cli", "core", "memories", "tasks", "RObot")
"""Sections of ralph-orchestrator's `ralph.yml`."""
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def fences(*languages: str) -> Iterator[tuple[Path, Token]]:
    for page in PAGES:
        for token in tokens(page):
            if token.type == "fence" and token.info.strip() in languages:
                yield page, token


def named(page: Path, token: Token) -> str:
    return f"{page.relative_to(ROOT)}:{(token.map or [0])[0] + 1}"


def commands() -> Iterator[tuple[str, str]]:
    """Every line of an example that calls Ralph, without what is told of it beside it."""
    for page, token in fences(*SHELL):
        for line in token.content.replace("\\\n", " ").splitlines():
            told = re.split(r"\s#|(?<=\S)\s{2,}(?=[^-\s])", line.strip().removeprefix("$ "))[0]
            for part in re.split(r"&&|;|\|", told):
                found = re.match(r"(?:[\w/*]+=?\S*\s+){0,5}?(?:\.venv/bin/)?ralph (?!looks)(.*)", part.strip())
                if found and re.match(r"(?:\S+=\S*\s+|\*/\d+ (?:\* ){4}\s*)*(?:\.venv/bin/)?ralph ", part.strip()):
                    yield named(page, token), found[1]


@pytest.fixture
def parsed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that do nothing: their line alone is read."""
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: 0)


@pytest.mark.usefixtures("parsed_alone")
def test_each_command_of_an_example_is_one_that_ralph_reads() -> None:
    wrong = []
    seen = list(commands())
    for place, line in seen:
        try:
            run(shlex.split(line))
        except (UserError, ValueError) as error:
            wrong.append(f"{place}: ralph {line}: {error}")
    assert len(seen) > 40 and wrong == []


def test_each_example_of_settings_loads() -> None:
    wrong = []
    for page, token in fences("yaml"):
        value = yaml.safe_load(token.content)
        text = token.content
        if isinstance(value, list):
            text = yaml.safe_dump({"observers": {"commands": value}})
        elif text.startswith("# .github/"):
            continue
        elif text.startswith("# fleet.yml"):
            load_fleet(text)
            continue
        elif not isinstance(value, dict) or not set(value) <= OURS:
            wrong.append(f"{named(page, token)}: not ralph.yml")
            continue
        try:
            wrong += [f"{named(page, token)}: {said}" for said in load(text).warnings]
        except UserError as error:
            wrong.append(f"{named(page, token)}: {error}")
    assert wrong == []


def test_each_other_example_can_be_read() -> None:
    for _, token in fences("json"):
        json.loads(token.content)
    for _, token in fences("toml"):
        tomllib.loads(token.content)
    for page, token in fences("python"):
        compile(token.content, str(page), "exec")


def test_each_link_leads_to_a_file_and_a_heading() -> None:
    wrong = []
    for page in PAGES:
        for token in tokens(page):
            for child in token.children or ():
                target = child.attrGet("href") or child.attrGet("src") or ""
                if isinstance(target, str) and not urlsplit(target).scheme and not _leads(page, target):
                    wrong.append(f"{page.relative_to(ROOT)}: {target}")
        shown = re.findall(r'\bsrc(?:set)?="([^"]+)"', page.read_text())
        wrong += [f"{page.relative_to(ROOT)}: {path}" for path in shown if not _leads(page, path)]
    assert wrong == []


def _leads(page: Path, target: str) -> bool:
    path, _, fragment = unquote(target).partition("#")
    place = (page.parent / path).resolve() if path else page
    if not fragment or place.suffix != ".md":
        return place.exists()
    return place.is_file() and fragment.lower() in {anchor.lower() for anchor in anchors(place.read_text())}


def test_each_page_is_reached_from_the_site_and_from_no_dead_end() -> None:
    pages = {path.name for path in docs.DOCS.glob("*.md")}
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    assert sorted(re.findall(r"[\w-]+\.md", json.dumps(navigation))) == sorted({*pages, *site.TOP})


def test_what_is_generated_is_what_the_code_says() -> None:
    stale = [page.name for page in docs.DOCS.glob("*.md") if page.read_text() != docs.written(page.read_text())]
    assert stale == [], "write them anew: .venv/bin/python -m tools.docs"
    used = {name for page in docs.DOCS.glob("*.md") for _, name, _ in docs.MARK.findall(page.read_text())}
    assert used == docs.PARTS.keys()


def test_each_key_of_another_tool_that_is_read_is_named() -> None:
    text = (docs.DOCS / "files.md").read_text()
    assert [key for key in OF_THEIRS if f"`{key}" not in text] == []


def test_each_extra_is_listed() -> None:
    part = (docs.DOCS / "configuration.md").read_text().partition("\n## Extras\n")[2]
    assert re.findall(r"^- `([a-z]+)` ", part, re.MULTILINE) == sorted(EXTRAS)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1200


LONG_TEXT = re.compile(r'[=(,] *f?"""')
"""Where a text of several lines begins that is no docstring."""
SHORT_TEXT = re.compile(r"""(?<!")"(?!")[^"]* [^"]*"|'[^']* [^']*'""")
"""A text of several words on one line."""


@cache
def words() -> tuple[str, ...]:
    """The words that contributors are told not to write."""
    part = CONTRIBUTING.read_text().partition("\n## Words we avoid\n")[2]
    rows = re.findall(r"^\| (.+?) \| ", part, re.MULTILINE)[1:]
    return tuple(word.strip() for row in rows for word in row.split(","))


@cache
def avoided() -> re.Pattern[str]:
    assert len(words()) > 10
    return re.compile(rf"(?<![\w/.`\"-])(?:{'|'.join(map(re.escape, words()))})(?![\w/`\"-])", re.IGNORECASE)


def test_the_picture_of_the_layers_is_current() -> None:
    shown = {scheme: (layers.IMAGES / f"layers-{scheme}.svg").read_text() for scheme in layers.COLOURS}
    assert shown == {scheme: layers.draw(scheme) for scheme in layers.COLOURS}, "run python -m tools.layers"


def test_documents_use_plain_words() -> None:
    pages = [*PAGES, *(ROOT / "changelog.d").glob("*.md"), *(ROOT / "ralph_mission/cli/setup_templates").iterdir()]
    texts = {page: page.read_text().partition("\n## Words we avoid\n")[0] for page in pages}
    wrong = [f"{page.relative_to(ROOT)}: {hit[0]}" for page, text in texts.items() for hit in avoided().finditer(text)]
    assert wrong == []


def test_what_the_product_prints_uses_plain_words() -> None:
    wrong = []
    for path in (ROOT / "ralph_mission").rglob("*.py"):
        text = path.read_text()
        lines = [line for line in text.splitlines() if any(map(line.__contains__, words()))]
        shown = [said for line in lines for said in SHORT_TEXT.findall(line) if avoided().search(said)]
        if shown or (LONG_TEXT.search(text) and any(map(avoided().search, lines))):  # to parse them all takes seconds
            wrong += [f"{path.relative_to(ROOT)}: {hit[0]}: {said}" for said in _texts(ast.parse(text))
                      for hit in avoided().finditer(said)]  # fmt: skip  # one loop
    assert wrong == []


def _texts(tree: ast.Module) -> Iterator[str]:
    """What a module says to people: texts with a space in them, docstrings of commands included, others not."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and " " in value and id(node) not in silent:
            yield value
