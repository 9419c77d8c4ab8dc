"""Make docs/images again: what people see after some cycles on the sample, in a browser on a desk and a phone.

    npm pack github-markdown-css && tar xzf github-markdown-css-*.tgz
    .venv/bin/python -m tools.pictures package/github-markdown.css

It needs Chromium on the path, and Pillow (of `make install-dev`). Texts are those of the local forge, so lines have no
addresses: on GitHub places and numbers are links.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from markdown_it import MarkdownIt
from PIL import Image, ImageChops

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs/images"
WIDTHS = {"desktop": 1280, "phone": 390}
HIGHEST = 2600
RALPH = str(ROOT / ".venv/bin/ralph")
FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><style>body {{ margin: 0; }}
iframe {{ border: 0; width: {width}px; height: {height}px; display: block; }}</style><iframe src="{page}"></iframe>"""
LIFE = ("", "", "", "pr approve 8", "pr close 9", "", "")  # what a person did before each cycle, half a day apart
PAGE = """<!doctype html><meta charset="utf-8"><style>{css}
body {{ background: #fff; margin: 0; }}
main {{ box-sizing: border-box; max-width: 960px; width: {width}px; margin: 0 auto; padding: 16px; }}
h1 {{ font: 400 26px/1.25 "Liberation Sans", sans-serif; margin: 4px 0 14px; }}
h1 i {{ color: #59636e; font-style: normal; }}
article {{ border: 1px solid #d1d9e0; border-radius: 6px; }}
header {{ background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; padding: 8px 16px;
  font: 14px "Liberation Sans", sans-serif; color: #59636e; }}
.markdown-body {{ padding: 16px; font-family: "Liberation Sans", sans-serif; }}
li:has(> input), li:has(> p > input) {{ list-style: none; margin-left: -1.4em; }}
</style><main><h1>{title} <i>#{number}</i></h1><article><header><b>ralph</b> bot</header>
<div class="markdown-body">{body}</div></article></main>"""


def main(css: Path) -> None:
    """Run the cycles and write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "slackwater"
        run(sys.executable, str(ROOT / "examples/unpack.py"), str(sample))
        for _ in range(3):
            run(RALPH, "cycle", "--repo", str(sample), "--force")
        IMAGES.mkdir(exist_ok=True)
        for name, title, number, text in texts(sample / ".ralph/forge"):
            for device, width in WIDTHS.items():
                shoot(Path(folder), css, width, title, number, text, IMAGES / f"{name}-{device}.png")
        page = report(Path(folder) / "later" / "slackwater")
        shoot_page(Path(folder), page, 1280, "light", IMAGES / "report-light.png")
        shoot_page(Path(folder), page, 390, "dark", IMAGES / "report-dark.png")


def texts(forge: Path) -> Iterator[tuple[str, str, int, str]]:
    """Name, title, number and text of each."""
    yield "dashboard", "Ralph", 10, (forge / "dashboard.md").read_text(encoding="utf-8")
    for name, path in (("proposal", "issues/0007.md"), ("pull-request", "pulls/0008.md")):
        head, _, text = (forge / path).read_text(encoding="utf-8")[4:].partition("\n---\n")
        title = re.search(r"^title: '?(.*?)'?$", head, re.MULTILINE)
        assert title
        yield name, title[1], int(Path(path).stem), text.partition("\n=====")[0]


def report(sample: Path) -> Path:
    """The page of a repository after a few days."""
    run(sys.executable, str(ROOT / "examples/unpack.py"), str(sample))
    start = datetime.now(UTC) - timedelta(hours=12 * len(LIFE))
    for place, deed in enumerate(LIFE):
        if deed:
            run(RALPH, *deed.split(), "--repo", str(sample))
        now = (start + timedelta(hours=12 * place)).isoformat(timespec="seconds")
        run(RALPH, "cycle", "--repo", str(sample), "--force", "--now", now)
    page = sample.parent / "report.html"
    path = f"{Path(RALPH).parent}{os.pathsep}{os.environ['PATH']}"  # where commands are short, as for most people
    environment = {**os.environ, "PATH": path}
    subprocess.run(["ralph", "report", "--output", str(page)], cwd=sample, env=environment, check=True)
    return page


def shoot_page(folder: Path, page: Path, width: int, scheme: str, picture: Path) -> None:
    """A page of ours as it is; in a frame, because no window is as narrow as a phone."""
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
    shown.crop((0, 0, width, min(seen[3] + 16, HIGHEST))).quantize(160).save(picture, optimize=True)


def shoot(folder: Path, css: Path, width: int, title: str, number: int, text: str, picture: Path) -> None:
    """One picture, cut to what there is to see, with few colours."""
    body = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    body = body.replace("[ ] ", '<input type="checkbox" disabled> ')
    title = re.sub(r"`([^`]+)`", r"<code>\1</code>", title)
    page = folder / "page.html"
    page.write_text(PAGE.format(css=css.read_text(), width=min(width, 960), title=title, number=number, body=body))
    raw = folder / "raw.png"
    size = f"--window-size={max(width, 500)},{HIGHEST}"
    run("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", size, f"--screenshot={raw}", page.as_uri())
    shown = Image.open(raw).convert("RGB")
    left = (shown.width - width) // 2
    shown = shown.crop((left, 0, left + width, shown.height))
    seen = ImageChops.difference(shown, Image.new("RGB", shown.size, "white")).getbbox()
    assert seen
    shown.crop((0, 0, width, min(seen[3] + 16, shown.height))).quantize(48).save(picture, optimize=True)


def run(*command: str) -> None:
    """A program that has to succeed."""
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
