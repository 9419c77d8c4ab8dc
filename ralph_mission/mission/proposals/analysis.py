"""The analysis in a proposal: what was seen, a model's words about it, what ends it. Text in, text out.

Rules say what was seen, what ends it and what approval does, without generalities. A thinker's words may stand below
the headings in `WRITABLE`. Short, as it is read on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping

from ralph_mission.mission.findings.ranking import days
from ralph_mission.mission.model.mission import Finding
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
