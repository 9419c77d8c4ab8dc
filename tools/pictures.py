"""Make docs/images again: what people see after some cycles on the sample, in a browser and in a terminal.

    .venv/bin/python -m tools.pictures [github-markdown.css]

It needs Chromium and, for GitHub's style sheet, npm on the path, and Pillow (of `make install-dev`). Texts are those of
the local forge, so lines have no addresses: on GitHub places and numbers are links.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from markdown_it import MarkdownIt
from PIL import Image, ImageChops
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

from tools import layers, site

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs/images"
WIDE, NARROW, SHORT = 1280, 390, 844  # pixels; the last: how much of a page a phone shows at once
SCREENS = ((NARROW, SHORT), (WIDE, 800), (1600, 1000))
"""Width and height of a phone, a laptop and a desktop."""
SCHEMES = ("light", "dark")
PART = 960  # of a page that needs no more
HIGHEST = 2600
FLEET = ("slackwater", "tidebook", "lightship", "moorings")  # the first two with an answer of a person
COLUMNS = 88
WAITING, READING = 2.0, 6.0  # seconds at most for a cycle, and to read what it printed
RALPH = str(ROOT / ".venv/bin/ralph")
RECORDED = (
    ("signals", "journal show 1"),
    ("doctor", "config show", "doctor"),
    ("due", "due", "status"),
    ("team", "agent simulate --pattern team"),
    ("ralplan", "agent simulate --pattern ralplan"),
    ("simulate", "agent simulate --pattern plan-build-review"),
)
"""Commands on the sample after two cycles, by the name of the picture."""
DRAFT = """---
title: Six harbours
networks: [twitter, telegram]
---
The tide tables cover 6 harbours now.
"""
FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><style>body {{ margin: 0; }}
iframe {{ border: 0; width: {width}px; height: {height}px; display: block; }}</style><iframe src="{page}"></iframe>"""
LIFE = ("", "", "", "pr approve 8", "pr close 9", "", "")  # what a person did before each cycle, half a day apart
PAGE = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><style>{css}
:root {{ --line: #d1d9e0; --head: #f6f8fa; --faint: #59636e; --ground: #fff; --ink: #1f2328; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --line: #3d444d; --head: #151b23; --faint: #9198a1; --ground: #0d1117; --ink: #f0f6fc; }}
}}
body {{ background: var(--ground); color: var(--ink); margin: 0; }}
main {{ box-sizing: border-box; max-width: 1180px; margin: 0 auto; padding: 16px; }}
h1 {{ font: 400 26px/1.25 "Liberation Sans", sans-serif; margin: 4px 0 14px; }}
h1 i {{ color: var(--faint); font-style: normal; }}
article {{ border: 1px solid var(--line); border-radius: 6px; }}
header {{ background: var(--head); border-bottom: 1px solid var(--line); border-radius: 6px 6px 0 0; padding: 8px 16px;
  font: 14px "Liberation Sans", sans-serif; color: var(--faint); }}
.markdown-body {{ padding: 16px; font-family: "Liberation Sans", sans-serif; }}
li:has(> input), li:has(> p > input) {{ list-style: none; margin-left: -1.4em; }}
</style><main><h1>{title} <i>#{number}</i></h1><article><header><b>ralph</b> bot</header>
<div class="markdown-body">{body}</div></article></main>"""


def main(css: Path | None = None) -> None:
    """Run the cycles and write the pictures."""
    layers.main()
    with tempfile.TemporaryDirectory() as folder:
        css = css or fetch_style(Path(folder))
        sample = Path(folder) / "slackwater"
        run(sys.executable, str(ROOT / "examples/unpack.py"), str(sample))
        for _ in range(3):
            run(RALPH, "cycle", "--repo", str(sample), "--force")
        IMAGES.mkdir(exist_ok=True)
        for name, title, number, text in texts(sample / ".ralph/forge"):
            page = write_page(Path(folder), css, title, number, text)
            for scheme in SCHEMES:
                shoot_page(Path(folder), page, WIDE, scheme, IMAGES / f"{name}-{scheme}.png")
            if name == "dashboard":
                shoot_screens(Path(folder), page, name)
            else:
                shoot_page(Path(folder), page, NARROW, "light", IMAGES / f"{name}-{NARROW}-light.png", SHORT)
        page = report(Path(folder) / "later" / "slackwater")
        for scheme in SCHEMES:
            shoot_page(Path(folder), page, WIDE, scheme, IMAGES / f"report-{scheme}.png")
        shoot_screens(Path(folder), page, "report")
        run(RALPH, "backtest", "--repo", str(sample), "--output", str(Path(folder) / "backtest.html"))
        for scheme in SCHEMES:
            place = IMAGES / f"backtest-{scheme}.png"
            shoot_page(Path(folder), Path(folder) / "backtest.html", PART, scheme, place, 1110)
        page = fleet(Path(folder) / "fleet")
        for scheme in SCHEMES:
            shoot_page(Path(folder), page, PART, scheme, IMAGES / f"fleet-{scheme}.png")
        site.main("OWNER/NAME")
        shoot_screens(Path(folder), ROOT / "site/github.html", "site")
        fresh = Path(folder) / "recorded/sample/slackwater"
        run(sys.executable, str(ROOT / "examples/unpack.py"), str(fresh))
        cycle = ("make run", ("cycle", "--repo", "sample/slackwater", "--force"))
        draw_terminal(record(fresh.parents[1], cycle, cycle), "make-run")
        for name, *lines in RECORDED:
            draw_terminal(record(fresh, *((f"ralph {line}", shlex.split(line)) for line in lines)), name)
        page = write_page(Path(folder), css, *draft(fresh))
        for scheme in SCHEMES:
            shoot_page(Path(folder), page, PART, scheme, IMAGES / f"draft-{scheme}.png")


def fetch_style(folder: Path) -> Path:
    """How GitHub shows Markdown."""
    run("npm", "pack", "--silent", "--pack-destination", str(folder), "github-markdown-css")
    run("tar", "--extract", "--directory", str(folder), "--file", *map(str, folder.glob("*.tgz")))
    return folder / "package/github-markdown.css"


def texts(forge: Path) -> Iterator[tuple[str, str, int, str]]:
    """Name, title, number and text of each."""
    yield "dashboard", "Ralph", 10, (forge / "dashboard.md").read_text(encoding="utf-8")
    for name, path in (("proposal", "issues/0007.md"), ("pull-request", "pulls/0008.md")):
        yield name, *thread(forge / path)


def thread(path: Path) -> tuple[str, int, str]:
    """Title, number and text of an issue or pull request."""
    head, _, text = path.read_text(encoding="utf-8")[4:].partition("\n---\n")
    title = re.search(r"^title: '?(.*?)'?$", head, re.MULTILINE)
    assert title
    return title[1], int(path.stem), text.partition("\n=====")[0]


def draft(sample: Path) -> tuple[str, int, str]:
    """Title, number and text of the issue in which a text waits for approval."""
    (sample / "content").mkdir()
    (sample / "content/harbours.md").write_text(DRAFT)
    (sample / "ralph.yml").write_text("publishers: {outbox: {}}\n")
    run("git", "-C", str(sample), "add", "--all")
    run("git", "-C", str(sample), "commit", "--quiet", "--message", "Draft a post")
    run(RALPH, "cycle", "--repo", str(sample), "--force")
    found = max(path for path in (sample / ".ralph/forge/issues").glob("*.md") if "content:review" in path.read_text())
    return thread(found)


def report(sample: Path) -> Path:
    """The page of a repository after a few days."""
    run(sys.executable, str(ROOT / "examples/unpack.py"), str(sample))
    start = datetime.now(UTC) - timedelta(hours=12 * len(LIFE))
    for place, action in enumerate(LIFE):
        if action:
            run(RALPH, *action.split(), "--repo", str(sample))
        now = (start + timedelta(hours=12 * place)).isoformat(timespec="seconds")
        run(RALPH, "cycle", "--repo", str(sample), "--force", "--now", now)
    page = sample.parent / "report.html"
    path = f"{Path(RALPH).parent}{os.pathsep}{os.environ['PATH']}"  # where commands are short, as for most people
    environment = {**os.environ, "PATH": path}
    subprocess.run(["ralph", "report", "--output", str(page)], cwd=sample, env=environment, check=True)
    return page


def fleet(folder: Path) -> Path:
    """The page of some repositories, two of which a person has answered."""
    for name in FLEET:
        run(sys.executable, str(ROOT / "examples/unpack.py"), str(folder / name))
    (folder / "fleet.yml").write_text("repositories: [./*]\n")
    for name in FLEET[:2]:
        for _ in range(2):
            run(RALPH, "cycle", "--repo", str(folder / name), "--force")
        run(RALPH, "pr", "approve", "8", "--repo", str(folder / name))
    for _ in range(2):
        run(RALPH, "fleet", "run", "--repo", str(folder))
    return folder / ".ralph/fleet.html"


def shoot_page(folder: Path, page: Path, width: int, scheme: str, picture: Path, most: int = HIGHEST) -> None:
    """A page of ours as it is, or the top of it; in a frame, because no window is as narrow as a phone."""
    frame, raw = folder / "frame.html", folder / "raw.png"
    frame.write_text(FRAME.format(width=width, height=HIGHEST, page=page.as_uri()))
    look = f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}"
    size = f"--window-size={max(width, 500)},{HIGHEST}"
    run(
        "chromium", "--headless", "--no-sandbox", "--hide-scrollbars", look, size, f"--screenshot={raw}", frame.as_uri()
    )
    shown = Image.open(raw).convert("RGB").crop((0, 0, width, HIGHEST))
    ground = Image.new("RGB", shown.size, shown.getpixel((2, HIGHEST - 2)))
    seen = ImageChops.difference(shown, ground).getbbox()
    assert seen
    shown.crop((0, 0, width, min(seen[3] + 16, most))).quantize(160).save(picture, optimize=True)


def shoot_screens(folder: Path, page: Path, name: str) -> None:
    """The top of a page as each screen shows it, light and dark."""
    for width, height in SCREENS:
        for scheme in SCHEMES:
            shoot_page(folder, page, width, scheme, IMAGES / f"{name}-{width}-{scheme}.png", height)


def write_page(folder: Path, css: Path, title: str, number: int, text: str) -> Path:
    """A thread as a forge shows it."""
    body = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    body = body.replace("[ ] ", '<input type="checkbox" disabled> ')
    title = re.sub(r"`([^`]+)`", r"<code>\1</code>", title)
    page = folder / "page.html"
    page.write_text(PAGE.format(css=css.read_text(), title=title, number=number, body=body))
    return page


def record(folder: Path, *calls: tuple[str, Sequence[str]]) -> list[tuple[float, str]]:
    """What each call prints, as a person types it and as Ralph gets it: line by line, each with its second.

    Long waits are cut short.
    """
    path = f"{Path(RALPH).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    lines, begun = [], 0.0
    for typed, arguments in calls:
        lines += [(begun, f"\x1b[1m$ {typed}\x1b[0m")]
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        start = time.monotonic()
        command = ["ralph", *arguments]
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL):
            os.close(theirs)
            with contextlib.suppress(OSError), open(ours, encoding="utf-8", newline="\n") as terminal:
                for line in terminal:  # until the terminal is gone, which is an error
                    lines.append((begun + min(time.monotonic() - start, WAITING), line.rstrip("\r\n")))
        begun = lines[-1][0] + READING
        lines.append((begun, ""))
    return lines[:-1]


def draw_terminal(lines: Sequence[tuple[float, str]], name: str) -> None:
    """A terminal in which each line comes at its time, again and again; where nothing moves, all of it stands there."""
    for theme, suffix in ((DEFAULT_TERMINAL_THEME, "light"), (SVG_EXPORT_THEME, "dark")):
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        for _, line in lines:
            console.print(Text.from_ansi(line), no_wrap=True, overflow="ellipsis")
        drawn = console.export_svg(title="ralph", theme=theme, unique_id="ralph")
        (IMAGES / f"{name}-{suffix}.svg").write_text(animated(drawn, lines))


def animated(drawn: str, lines: Sequence[tuple[float, str]]) -> str:
    """The picture of a terminal whose lines appear one after the other."""
    whole = lines[-1][0] + READING
    parts = {at: 100 * when / whole for at, (when, _) in enumerate(lines) if when}
    hidden = "@keyframes l{}{{0%,{:.1f}%{{opacity:0}}{:.1f}%,100%{{opacity:1}}}}"
    shown = "".join(hidden.format(at, part, part + 0.1) for at, part in parts.items())
    drawn = re.sub(r"@font-face {.*?}", "", drawn, flags=re.DOTALL)  # which it would load from elsewhere
    drawn = drawn.replace("</style>", f"@media (prefers-reduced-motion: no-preference){{{shown}}}</style>", 1)
    moving = rf'style="animation:l\1 {whole:.1f}s step-end infinite" clip-path="url(#ralph-line-\1)"'
    return re.sub(r'clip-path="url\(#ralph-line-(\d+)\)"', moving, drawn)


def run(*command: str) -> None:
    """A program that has to succeed."""
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
