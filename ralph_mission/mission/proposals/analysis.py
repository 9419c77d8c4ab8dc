"""The parts of a proposal's text: its analysis, and links to the forge. Text in, text out.

The analysis says what was seen, what ends it, and has a model's words about it.
Rules say what was seen, what ends it and what approval does, without generalities. A thinker's words may stand below
the headings in `WRITABLE`. Short, as it is read on a phone.

A link leads to a line of a file at a commit, a commit, a run, an issue or a pull request. Paths are untrusted: every
character that could mean anything in Markdown, or to a bot, is encoded. A link to a person's issue leaves no trace
there: GitHub notes "mentioned in …" on whatever a text links to, except through the host it offers bots for this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote as encode

from ralph_mission.mission.findings.ranking import days
from ralph_mission.mission.model.mission import Finding, Quote
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words
from ralph_mission.values import compile_regex, dataclass

Sections = tuple[tuple[str, str], ...]

OPTIONS, RISKS, UNKNOWN, CHECK = "Options", "Risks", "What is not known", "How it would be checked"
WRITABLE = (OPTIONS, RISKS, UNKNOWN, CHECK)
"""The headings a thinker may write under."""
WORDS = 600  # characters of a thinker's words in one section
SCOPED = compile_regex(r"@[a-z0-9][a-z0-9._~-]{0,40}/[a-z0-9][a-z0-9._~-]{0,40}")
FACTS = 8  # rows of evidence; a phone shows no more at once
PAGE = compile_regex(r"https?://[\w.:-]+(?:/[\w.-]+)+")
COMMIT = compile_regex(r"[0-9a-f]{40,64}")
QUOTED = 160  # characters of a line
PLAIN_URL = compile_regex(r"https://[\w.-]+(?:/[\w./-]*)?")
"""An encoded URL that does nothing but lead to its target."""


@dataclass(frozen=True, slots=True)
class AnalysisForm:
    """What rules know about a kind: which analysis it needs, and when it is done."""

    name: str
    check: str


ANALYSIS_FORMS: dict[str, AnalysisForm] = {
    "broken-build": AnalysisForm("Research", "the workflow is green on the default branch"),
    "brief": AnalysisForm("Research", "it is done, or somebody decides against it"),
    "bug": AnalysisForm("Research", "the check that found it passes"),
    "overdue-marker": AnalysisForm("Research", "the marker is gone: what it says is done, or it is meant to stay"),
    "vulnerability": AnalysisForm("Research", "nothing that is used here has it now"),
    "anomaly": AnalysisForm("Research", "the value is back in its usual range, or somebody explains the new one"),
    "security-alert": AnalysisForm("Research", "the alert is closed"),
    "workflow-risk": AnalysisForm("Research", "the scanner finds it no more, or it is marked as intended"),
    "workflow-fix": AnalysisForm("Research", "the scanner finds it no more, or it is marked as intended"),
    "update-bot": AnalysisForm("Research", "an update bot is set up, or somebody decides against it"),
    "dependency-minor": AnalysisForm("Research", "the update is made, or somebody decides against it"),
    "dependency-major": AnalysisForm("Research", "the update is made, or somebody decides against it"),
    "feature": AnalysisForm("Research", "it is built, or somebody decides against it"),
    "architecture": AnalysisForm("Design", "the new shape is built and written down, or somebody decides against it"),
    "integration": AnalysisForm("Feasibility and integration analysis", "a trial works, or somebody says no"),
    "content": AnalysisForm("Content", "it is published, or somebody decides against it"),
}
OTHER = AnalysisForm("Research", "whatever found it finds it no more")


def body(finding: Finding, written: Sections = ()) -> str:
    """The measured facts and a thinker's words, or ""."""
    form, words = ANALYSIS_FORMS.get(finding.kind, OTHER), _usable(written)
    by = " Sections marked with * were written by a model: check them." if words else ""
    measured = [fact for fact in [_facts_table(finding)] if fact and not finding.signal.quotes]
    measured += [f"**{heading}** \\*: {words[heading]}" for heading in WRITABLE if heading in words]
    return "\n\n".join([f"### {form.name}", f"{_since(finding)}{by}", *measured]) if measured else ""


def check_of(kind: str) -> str:
    """What ends a finding of this kind."""
    return ANALYSIS_FORMS.get(kind, OTHER).check


def _usable(written: Sections) -> Mapping[str, str]:
    """A thinker's words by heading; other headings are dropped."""
    words = ((name, inline_words(redact(text), WORDS)) for name, text in written if name in WRITABLE)
    return {name: text for name, text in words if text}


def _since(finding: Finding) -> str:
    """Confidence and severity are shown above, in the reason for the ranking."""
    signal = finding.signal
    since = f"There for {days(signal.age_days)}" if signal.age_days >= 1 else "Seen by this cycle"
    return f"{since}."


def _facts_table(finding: Finding) -> str:
    """The facts as the observer measured them, with units and windows in their names; "" if there are none."""
    facts = [(name, value) for name, value in finding.signal.facts if name not in ("file", "count")][:FACTS]
    rows = [f"| {_cell(name)} | {_cell(str(value))} |" for name, value in facts]
    return "\n".join(["| seen | |", "|---|---|", *rows]) if rows else ""


def _cell(text: str) -> str:
    """A table cell that its content cannot end. The name of a scoped package is shown as code, whole."""
    plain = redact(text).replace("|", "/").replace("`", "'")
    return inline(plain, 80) if SCOPED.fullmatch(plain) else inline_words(plain, 80) or "-"


def thread_link(page: str, number: int) -> str:
    """`#12` as a link to the issue or pull request (GitHub redirects); plain for a forge without URLs."""
    if not PAGE.fullmatch(page):
        return f"#{number}"
    quiet = re.sub(r"^https://github\.com/", "https://redirect.github.com/", page)
    return f"[#{number}]({quiet}/issues/{number})"


def place_link(page: str, quote: Quote) -> str:
    """`path:12` as code, linking to that line at that commit; plain for a forge without URLs."""
    label = inline(redact(f"{quote.path}:{quote.line}" if quote.line else quote.path), 200)
    if not PAGE.fullmatch(page) or not COMMIT.fullmatch(quote.commit):
        return label
    line = f"#L{quote.line}" if quote.line else ""
    return f"[{label}]({page}/blob/{quote.commit}/{encode(quote.path, safe='/', errors='replace')}{line})"


def run_link(page: str, number: int) -> str:
    """`run 12`, linking to the workflow run; plain for a forge without URLs."""
    return f"[run {number}]({page}/actions/runs/{number})" if PAGE.fullmatch(page) else f"run {number}"


def commit_link(page: str, commit: str) -> str:
    """The short id, linking to the commit; plain for a forge without URLs."""
    label = inline(commit[:12], 12)
    return f"[{label}]({page}/commit/{commit})" if PAGE.fullmatch(page) and COMMIT.fullmatch(commit) else label


def quote_line(page: str, quote: Quote) -> str:
    """A line's place and its text."""
    place = ""
    if quote.path:
        place = place_link(page, quote)
    elif quote.reference:
        place = thread_link(page, quote.reference)
    elif quote.run:
        place = run_link(page, quote.run)
    elif quote.commit:
        place = commit_link(page, quote.commit)
    elif quote.url:
        place = f"<{quote.url}>" if PLAIN_URL.fullmatch(quote.url) else inline(quote.url, QUOTED)
    text = inline(redact(quote.text.strip()), 2 * QUOTED if quote.url else QUOTED)
    return f"{place}: {text}" if place else text
