"""The elements of our HTML pages, each a single file without external resources or scripts.

`element` escapes strings as text, made harmless, and only accepts its own results as markup. Colours follow the
reader's light or dark scheme; each pair meets WCAG 2 AA.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate

from markupsafe import Markup

from ralph_mission.adapters.report.progress import shorten
from ralph_mission.safety.text import sanitise
from ralph_mission.values import dataclass

LONGEST = 640  # characters of one piece of text
WIDTH, HEIGHT = 720, 110  # of a picture, in its own units: it scales to the page
STYLE = Markup("""
:root{color-scheme:light dark;--good:#1a7f37;--warn:#8f5500;--amber:#c98a00;--bad:#c4232c;--accent:#0860ca;
--other:#6e7781;--line:#d9dee4;--ink:#1f2328;--quiet:#57606a;--card:#fff;--ground:#f6f7f9}
@media(prefers-color-scheme:dark){:root{--good:#4ac26b;--warn:#e0a53a;--amber:#e0a53a;--bad:#ff7b72;--accent:#6cb0ff;
--other:#8b949e;--line:#30363d;--ink:#e6edf3;--quiet:#9da7b1;--card:#161b22;--ground:#0d1117}}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--ground);
margin:0;overflow-wrap:anywhere}
.page{max-width:68rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.75rem;line-height:1.2;letter-spacing:-.015em;margin:.1rem 0 .4rem;text-wrap:balance}
h2{font-size:1.15rem;letter-spacing:-.01em;margin:0 0 .8rem}h3{font-size:1rem;margin:0}
.above{margin:0;color:var(--accent);font-size:.875rem;font-weight:600}
p{margin:.4rem 0}a{color:var(--accent);text-underline-offset:.15em}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
small,.quiet{color:var(--quiet);font-size:.875rem}
code,pre{font:.875em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{border:1px solid var(--line);border-radius:8px;background:var(--ground);padding:.7rem;margin:.5rem 0;
white-space:pre-wrap}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.1rem 1.2rem;margin:1rem 0}
section>:last-child{margin-bottom:0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin:1.2rem 0;padding:0}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:.7rem .9rem}
.figures dt{color:var(--quiet);font-size:.875rem}.figures dd{margin:0;font-size:1.45rem;font-weight:600}
@media(max-width:40rem){.figures{grid-template-columns:1fr 1fr}
.figures div:last-child:nth-child(odd){grid-column:span 2}}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
caption{text-align:left;color:var(--quiet);padding-bottom:.3rem}
th,td{text-align:left;padding:.4rem 1rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top;
overflow-wrap:normal}
th{font-weight:600}tbody tr:last-child>*{border-bottom:0}tbody th{font-weight:400}
.n{text-align:right;font-variant-numeric:tabular-nums}.t{overflow-wrap:anywhere;min-width:min(12rem,34vw)}
figure{margin:0}svg{display:block;width:100%;height:auto}
.axis{display:flex;justify-content:space-between;gap:1rem;white-space:nowrap}
svg.meter{min-width:4rem;height:.6rem;margin-top:.45rem;border-radius:.3rem}
.key{display:inline-block;margin-right:.4rem}.key svg{display:inline-block;width:.7rem;height:.7rem;border-radius:.2rem}
time{white-space:nowrap}
.good{fill:var(--good)}.warn{fill:var(--amber)}.bad{fill:var(--bad)}.accent{fill:var(--accent)}.other{fill:var(--other)}
b.good{color:var(--good)}b.warn{color:var(--warn)}b.bad{color:var(--bad)}b.accent{color:var(--accent)}
b.other{color:var(--quiet)}
.line{stroke:var(--line);fill:none}rect.empty{fill:var(--line)}
@media print{body{background:none}section{break-inside:avoid}}
""")

Child = str | Markup | None
VOID = frozenset({"input"})  # elements without an end tag
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def element(tag: str, *children: Child, **attributes: str | float | None) -> Markup:
    """One element. A string child is text; None omits a child or an attribute.

    `class_` and `aria_label` stand for `class` and `aria-label`.
    """
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    rendered = Markup("").join(
        Markup(' {}="{}"').format(name, harmless(str(value))) for name, value in named if value is not None
    )
    end = "" if tag in VOID else Markup("</{}>").format(tag)
    return Markup("<{0}{1}>").format(tag, rendered) + join(*children) + end


def join(*children: Child) -> Markup:
    """Markup and text, concatenated."""
    return Markup("").join(one if isinstance(one, Markup) else harmless(one) for one in children if one is not None)


def harmless(text: str) -> str:
    """Untrusted text without invisible and terminal control characters, shortened. Not escaped yet."""
    return shorten(sanitise(text, "log"), LONGEST)


def link(text: Child, address: str) -> Markup:
    """A link, or only the text if the URL is not a web URL."""
    return element("a", text, href=address) if address.startswith(("https://", "http://")) else join(text)


def titled(title: str) -> Markup:
    """A title, with code between backticks."""
    parts = title.split("`")
    unclosed = len(parts) % 2 == 0  # one that opens and never closes
    return join(title) if unclosed else join(*(element("code", p) if n % 2 else p for n, p in enumerate(parts)))


def moment(when: datetime) -> Markup:
    """A time for people and machines, in UTC."""
    utc = when.astimezone(UTC)
    return element("time", f"{utc:%Y-%m-%d %H:%M}", datetime=f"{utc:%Y-%m-%dT%H:%M:%SZ}")


def day(when: datetime) -> Markup:
    """The day of a time, in UTC."""
    return element("time", f"{when.astimezone(UTC):%Y-%m-%d}")


def document(title: str, *parts: Child, style: str = "", policy: str = POLICY) -> str:
    """The whole file; `style`: this page's own rules; `policy`: its content security policy."""
    whole = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="{}">'
        "<title>{}</title><style>{}</style></head>\n<body>{}</body></html>\n"
    ).format(policy, harmless(title), STYLE + Markup(style), element("main", *parts, class_="page"))
    return str(whole)  # plain text, which other code may escape


def section(title: str, *parts: Child, id: str | None = None) -> Markup:
    """A part of the page below its heading, on its own line."""
    return element("section", element("h2", title), *parts, id=id) + "\n"


def figures(every: Iterable[tuple[str, str]]) -> Markup:
    """The key figures: what is counted, and how many."""
    cells = (element("div", element("dt", what), element("dd", number)) for what, number in every)
    return element("dl", *cells, class_="figures")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Child]], numbers: Iterable[int] = (), texts: int = -1, name: str = ""
) -> Markup:
    """A table. `numbers`: the numeric columns; `texts`: the column that may be long; `name`: for screen readers. On a
    phone it scrolls, also by keyboard."""
    kinds = {**dict.fromkeys(numbers, "n"), texts: "t"}
    top = (
        element("th", cell, scope="col", class_=kinds.get(place)) if cell else element("td")
        for place, cell in enumerate(head)
    )
    body = (
        element("tr", *(element("td", cell, class_=kinds.get(place)) for place, cell in enumerate(row))) for row in rows
    )
    whole = element("table", element("thead", element("tr", *top)), element("tbody", *body))
    return element("div", whole, class_="wide", role="region", tabindex=0, aria_label=name or head[0])


# --- pictures -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """A chart's column: its tooltip, its parts from the bottom up as (class, number), and its dots."""

    tooltip: str
    parts: tuple[tuple[str, float], ...]
    dots: int = 0


def column_chart(columns: Sequence[ChartColumn], ends: tuple[str, str], label: str, most: str = "") -> Markup:
    """Columns side by side in order of time. `ends`: the first and the last time; `label`: a description in words;
    `most`: the height of the highest column."""
    highest = max([1e-9, *(sum(number for _, number in column.parts) for column in columns)])
    step = WIDTH / max(len(columns), 1)
    dots = 24 if any(column.dots for column in columns) else 2
    picture = element(
        "svg",
        *(_column(column, place * step, min(step * 0.8, 48), HEIGHT / highest) for place, column in enumerate(columns)),
        element("line", x1=0, y1=HEIGHT, x2=WIDTH, y2=HEIGHT, class_="line"),
        viewBox=f"0 0 {WIDTH} {HEIGHT + dots}",
        role="img",
        aria_label=label,
    )
    top = element("small", most) if most else None
    return element("figure", top, picture, axis(ends))


def axis(labels: Iterable[str]) -> Markup:
    """The labels below a picture, from left to right. The picture also has a text description."""
    return element("div", *(element("small", one) for one in labels), class_="axis", aria_hidden="true")


def _column(column: ChartColumn, x: float, width: float, scale: float) -> Markup:
    children: list[Child] = [element("title", column.tooltip)]
    y = float(HEIGHT)
    for kind, number in column.parts:
        height = number * scale
        y -= height
        if number:
            sizes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
            children.append(element("rect", class_=kind, **sizes))
    children += [
        element("circle", class_="other", cx=f"{x + width / 2:.1f}", cy=HEIGHT + 8 + 5 * number, r=2)
        for number in range(column.dots)
    ]
    return element("g", *children)


def meter(*parts: tuple[str, float]) -> Markup:
    """A bar whose parts are shares of 1, as (class, share): it only repeats the number beside it."""
    ends = list(accumulate(share for _, share in parts))
    return strip([(kind, end - share, end) for (kind, share), end in zip(parts, ends, strict=True)])


def strip(parts: Iterable[tuple[str, float, float]]) -> Markup:
    """A line of coloured pieces between shares of 1, as (class, start, end), each wide enough to see."""
    pieces = (
        element("rect", class_=kind, x=f"{100 * start:.2f}", width=f"{max(100 * (end - start), 0.7):.2f}", height=10)
        for kind, start, end in parts
    )
    empty = element("rect", class_="empty", width=100, height=10)
    attributes = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return element("svg", empty, *pieces, class_="meter", **attributes)


def legend(keys: Iterable[tuple[str, str]], before: str = "", after: str = "") -> Markup:
    """The meaning of a picture's colours, as (class, what)."""
    boxes = (
        join(
            element(
                "svg",
                element("rect", class_=kind, width=10, height=10),
                viewBox="0 0 10 10",
                aria_hidden="true",
            ),
            f" {what}",
        )
        for kind, what in keys
    )
    spans = (join(element("span", box, class_="key"), " ") for box in boxes)  # a colour and its word on one line
    return element("p", element("small", before, *spans, after))
