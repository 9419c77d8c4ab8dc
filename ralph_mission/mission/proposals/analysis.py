"""The analysis in an issue that asks: what was seen, what could be done, what nobody knows yet. Text in, text out.

Rules fill every section from the finding's own evidence. A thinker's words may stand in those of `WRITABLE`; what was
seen, how sure that is and what a yes does are ours alone. Short, since it is read on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping

from ralph_mission.mission.findings.ranking import days, effort
from ralph_mission.mission.model.mission import Finding
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline, inline_words
from ralph_mission.values import compile_regex, dataclass

Sections = tuple[tuple[str, str], ...]

OPTIONS, RISKS, UNKNOWN, CHECK = "Options", "Risks", "What is not known", "How it would be checked"
WRITABLE = (OPTIONS, RISKS, UNKNOWN, CHECK)
"""The headings that a thinker may write under."""
WORDS = 600  # characters of a thinker's words in one section
SCOPED = compile_regex(r"@[a-z0-9][a-z0-9._~-]{0,40}/[a-z0-9][a-z0-9._~-]{0,40}")
FACTS = 8  # rows of evidence; a phone shows no more of them at once


@dataclass(frozen=True, slots=True)
class AnalysisForm:
    """What rules know of a kind: which analysis it needs, what there is to choose from, and what to ask.

    Each option is what would be done, its effort ("" is the finding's own) and its risk. `doing` and `leaving` are what
    the whole of it risks.
    """

    name: str
    options: tuple[tuple[str, str, str], ...]
    doing: str
    leaving: str
    unknown: str
    check: str


ANALYSIS_FORMS: dict[str, AnalysisForm] = {
    "broken-build": AnalysisForm(
        "Research",
        (
            ("fix the cause", "", "what relies on the change may notice"),
            ("revert the commit that broke it", "minutes of work", "what else it did is gone, too"),
            ("run it again", "none", "it comes back, unless it failed by chance"),
        ),
        "its cause may lie elsewhere",
        "the next failure hides behind this one, and nothing can be released with trust",
        "whether it fails on a machine of yours, too",
        "the workflow passes on the default branch",
    ),
    "bug": AnalysisForm(
        "Research",
        (
            ("find the cause and fix it", "", "what relied on the fault may notice"),
            ("only list it", "none", "it keeps failing"),
        ),
        "its cause may lie elsewhere",
        "people who run into it have to find out alone",
        "since which change it happens, and who runs into it",
        "the check that found it finds it no more, and a test fails without the change",
    ),
    "overdue-marker": AnalysisForm(
        "Research",
        (
            ("do what the marker says", "", "something may rely on how it is"),
            ("drop the marker, where it is meant to stay", "minutes of work", "none"),
        ),
        "something may rely on how it is by now",
        "what was meant for a while stays for good",
        "whether anything else still needs it",
        "the marker is gone, and the project's own checks pass",
    ),
    "vulnerability": AnalysisForm(
        "Research",
        (
            ("update or fix it", "", "an update may change behaviour"),
            ("shield it where it is used", "depends", "easily forgotten"),
        ),
        "it is for nothing where the vulnerable part is not used",
        "people who know of it may exploit it",
        "whether the vulnerable part is reached here at all",
        "its source no longer names what is used here, and the tests pass",
    ),
    "anomaly": AnalysisForm(
        "Research",
        (
            ("look for the cause", "", "time, if it was chance"),
            ("wait for the next values", "none", "a real fault remains"),
        ),
        "its cause may lie elsewhere",
        "what is wrong gets worse, if something is",
        "whether the world changed, or what is measured, or how",
        "the value is back in its usual range, or the new range is explained",
    ),
    "security-alert": AnalysisForm(
        "Research",
        (
            ("fix the cause, or revoke the secret", "", "what relied on it may stop working"),
            ("dismiss the alert with a reason", "minutes of work", "the reason may turn out wrong"),
        ),
        "it is for nothing if the alert is a false one",
        "whoever finds it, too, can use it",
        "whether it was used already, and by whom",
        "the alert is closed",
    ),
    "workflow-risk": AnalysisForm(
        "Research",
        (
            ("change the workflow", "", "a job may need what is taken away"),
            ("mark it as intended", "minutes of work", "the next reader trusts the mark"),
        ),
        "a release may fail for want of a permission",
        "whoever gets a text or a step into the workflow acts with its token",
        "who can trigger it, and what its token may do here",
        "the scanner no longer finds it, and the workflow still runs",
    ),
    "workflow-fix": AnalysisForm(
        "Research",
        (("make the change", "", "none that is known"), ("leave it", "none", "the scanner goes on reporting it")),
        "the scanner may not know the reason for it",
        "it stays as it is, and is reported by others",
        "whether it was meant to be so",
        "the scanner no longer finds it",
    ),
    "update-bot": AnalysisForm(
        "Research",
        (("let a bot propose updates", "", "a pull request or two a week"), ("update by hand", "", "easily forgotten")),
        "its pull requests have to be read",
        "each step gets larger, and fixes of vulnerabilities come late",
        "whether updates are made by hand on purpose",
        "the bot's first pull requests pass the project's own checks",
    ),
    "dependency-minor": AnalysisForm(
        "Research",
        (("update it", "", "new behaviour by default"), ("stay", "none", "the next step gets larger")),
        "something may rely on what changed",
        "fixes come only for newer ones one day",
        "which of its new features and deprecations concern the project",
        "the project's own checks pass with it",
    ),
    "dependency-major": AnalysisForm(
        "Research",
        (
            ("update it", "", "it may break what relies on it"),
            ("replace it", "real work", "another one to get to know"),
            ("stay", "none", "no fixes one day"),
        ),
        "it may take longer than it looks",
        "the step gets larger, and holes stay open",
        "which of its breaking changes concern the project",
        "the project's own checks pass with it, and its change log was read",
    ),
    "feature": AnalysisForm(
        "Research",
        (
            ("build the smallest useful part", "", "it has to be maintained"),
            ("ask who would use it", "minutes of work", "time"),
        ),
        "few may use it",
        "people who want it go without, or elsewhere",
        "how many people would use it, and what they do today",
        "people who asked for it use it",
    ),
    "architecture": AnalysisForm(
        "Design",
        (
            ("change it in steps", "", "two shapes side by side meanwhile"),
            ("change it at once", "real work", "a large review"),
        ),
        "it may take longer than it looks",
        "what is built meanwhile rests on the present shape",
        "what else relies on the present shape",
        "the project's own checks pass after each step, and the new shape is written down",
    ),
    "integration": AnalysisForm(
        "Feasibility and integration analysis",
        (
            ("try it out apart", "", "time, if it comes to nothing"),
            ("build it in", "real work", "one more thing to rely on"),
        ),
        "its operator may change it or end it",
        "the project continues without it",
        "its limits, its price, its terms, and how long it will be there",
        "a trial reads or writes what is needed, and the project still works without it",
    ),
    "content": AnalysisForm(
        "Content",
        (
            ("publish it", "", "it cannot be taken back from everyone who saw it"),
            ("change the text first", "minutes of work", "it gets late"),
        ),
        "it may be read in another way than it was meant",
        "nobody hears about it",
        "who reads it, and whether it is still true when they do",
        "its numbers are those of the evidence above",
    ),
}
OTHER = AnalysisForm(
    "Research",
    (("take it up", "", "time, if it comes to nothing"), ("leave it", "none", "it stays as it is")),
    "something may rely on how it is",
    "it stays as it is",
    "what it is worth",
    "whatever found it finds it no more",
)


def body(finding: Finding, written: Sections = ()) -> str:
    """All sections of the analysis that a proposal of this kind needs."""
    form, words = ANALYSIS_FORMS.get(finding.kind, OTHER), _usable(written)
    by = " Sections marked with * were written by a model: check them." if words else ""
    sections = {
        OPTIONS: _options(form, finding),
        RISKS: _risks(form, finding),
        UNKNOWN: f"{form.unknown.capitalize()}.",
        CHECK: f"{form.check.capitalize()}.",
    }
    parts = [f"### {form.name}", f"{_since(finding)}{by}", _facts_table(finding)]
    parts += [_section(heading, text, words) for heading, text in sections.items()]
    return "\n\n".join([part for part in parts if part] + [_yes()])


def _usable(written: Sections) -> Mapping[str, str]:
    """A thinker's words by heading; what stands under any other heading than ours is dropped."""
    words = ((name, inline_words(redact(text), WORDS)) for name, text in written if name in WRITABLE)
    return {name: text for name, text in words if text}


def _section(heading: str, ours: str, words: Mapping[str, str]) -> str:
    if heading not in words:
        return f"**{heading}.** {ours}" if "\n" not in ours else f"**{heading}**\n\n{ours}"
    table = f"\n\n{ours}" if heading == OPTIONS else ""  # what rules can weigh stays in sight
    return f"**{heading}** \\*: {words[heading]}{table}"


def _since(finding: Finding) -> str:
    """How sure and how bad it is stands above, where the ranking says what it rests on."""
    signal = finding.signal
    since = f"There for {days(signal.age_days)}" if signal.age_days >= 1 else "Seen by this cycle"
    return f"{since}."


def _facts_table(finding: Finding) -> str:
    """The facts as the observer measured them, units and windows in their names; "" when it has none."""
    facts = [(name, value) for name, value in finding.signal.facts if name not in ("file", "count")][:FACTS]
    rows = [f"| {_cell(name)} | {_cell(str(value))} |" for name, value in facts]
    return "\n".join(["| seen | |", "|---|---|", *rows]) if rows else ""


def _cell(text: str) -> str:
    """One cell of a table, which nothing in it can end. The name of a package with a scope stands as code, whole."""
    plain = redact(text).replace("|", "/").replace("`", "'")
    return inline(plain, 80) if SCOPED.fullmatch(plain) else inline_words(plain, 80) or "-"


def _options(form: AnalysisForm, finding: Finding) -> str:
    own = effort(finding.signal.effort)
    rows = [f"| {what} | {work or own} | {risk} |" for what, work, risk in form.options]
    return "\n".join(["| what | effort | risk |", "|---|---|---|", *rows])


def _risks(form: AnalysisForm, finding: Finding) -> str:
    doubt = "what was seen may be nothing, and " if finding.signal.confidence < 0.8 else ""
    return f"Of doing it: {doubt}{form.doing}. Of leaving it: {form.leaving}."


def _yes() -> str:
    return (
        "**What approval does.** It is planned, which alone changes nothing; where an agent is set up, it then "
        "proposes a change for review. An agent of your choice begins when a person sets `agent:claude`."
    )
