"""The picture of ARCHITECTURE.md: the layers of import-linter's contracts in pyproject.toml as boxes and arrows.

`python -m tools.layers` (part of `make pictures`) writes it in light and dark. A layer without a line in `SAYS` fails.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs/images"
SAYS = {
    "cli": "parses commands, prints results",
    "app": "builds the ports from settings",
    "adapters": "all I/O, one folder per port",
    "config": "ralph.yml as a frozen value",
    "mission": "the cycle and its rules: pure",
    "loop": "larger work by agents: pure",
    "safety": "patches, texts, secrets: pure",
    "extras": "optional packages",
    "errors": "who must act, and how",
    "words": "numbers and times in words",
    "values": "frozen dataclasses",
}
COLOURS = {  # ground, line, text, faint text, adapters, pure layers
    "light": ("#ffffff", "#57606a", "#1f2328", "#59636e", "#eef4fb", "#eaf6ec"),
    "dark": ("#0d1117", "#9198a1", "#f0f6fc", "#b1bac4", "#13233a", "#12261a"),
}
WIDTH, EDGE, GAP, HEIGHT = 390, 8, 16, 34  # units of the picture, pixels on a phone
SMALL, CHARACTER = 24, 7.3  # height of an adapter's box; width of a letter of 12 units in a monospaced font
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"


def layers() -> tuple[list[str], list[list[str]]]:
    """The top layers and those of the adapters, highest first, with the siblings of each."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    by_container = {one["containers"][0]: one["layers"] for one in contracts if one["type"] == "layers"}
    adapters = [layer.split(" | ") for layer in by_container["ralph_mission.adapters"]]
    return [layer.strip("()") for layer in by_container["ralph_mission"]], adapters


def draw(scheme: str) -> str:
    """The picture as SVG, in the colours of a scheme."""
    ground, line, text, faint, outer, pure = COLOURS[scheme]
    top, adapters = layers()
    parts: list[str] = []
    y: float = EDGE
    for name in top:
        if parts:
            parts.append(_arrow(y))
            y += GAP
        inside, bottom = _siblings(adapters, y + HEIGHT, scheme) if name == "adapters" else ([], y + HEIGHT)
        fill = outer if inside else pure if "pure" in SAYS[name] else ground
        parts += [_box(EDGE, y, WIDTH - 2 * EDGE, bottom - y, fill), _text(EDGE + 12, y + 22, name, 14, text, "700")]
        parts += [_text(EDGE + 100, y + 22, SAYS[name], 12, faint), *inside]
        y = bottom
    body = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + EDGE}" font-family="{FONT}" role="img">
<title>The layers of Ralph: imports only go down</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="{line}"/></marker></defs>
<g stroke="{line}" fill="none">
<rect width="{WIDTH}" height="{y + EDGE}" fill="{ground}" stroke="none"/>
{body}
</g>
</svg>
"""


def _siblings(groups: Sequence[Sequence[str]], y: float, scheme: str) -> tuple[list[str], float]:
    """Layers within a layer, in rows of boxes from `y` down, and where they end."""
    ground, _, text, *_ = COLOURS[scheme]
    parts: list[str] = []
    for group in groups:
        if parts:
            parts.append(_arrow(y))
            y += GAP
        for row in _rows(group):
            x = (WIDTH - sum(_wide(one) + 6 for one in row) + 6) / 2
            for one in row:
                parts += [_box(x, y, _wide(one), SMALL, ground), _text(x + 8, y + 16, one, 12, text)]
                x += _wide(one) + 6
            y += SMALL + 4
        y -= 4
    return parts, y + EDGE


def _rows(names: Sequence[str]) -> Iterator[list[str]]:
    """Names in as many rows as they need."""
    row: list[str] = []
    for name in names:
        if sum(_wide(one) + 6 for one in (*row, name)) > WIDTH - 4 * EDGE:
            yield row
            row = []
        row.append(name)
    yield row


def _wide(name: str) -> int:
    return round(len(name) * CHARACTER) + 16


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}"/>'


def _text(x: float, y: float, text: str, size: int, colour: str, weight: str = "400") -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{colour}" stroke="none"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{text}</text>'


def _arrow(y: float) -> str:
    return f'<path d="M{WIDTH / 2:g} {y:g}v{GAP}" marker-end="url(#head)"/>'


def main() -> None:
    """Write the picture."""
    for scheme in COLOURS:
        (IMAGES / f"layers-{scheme}.svg").write_text(draw(scheme))


if __name__ == "__main__":
    main()
