"""Every title, body, message and comment, rendered before it is judged: what is judged is what is sent.

Text in, text out. Whatever came from outside (paths, lines, names, reviews) passes `safety.text` here and nowhere else.
People read these on a phone: what, why, evidence, how to reject, in this order and briefly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ralph_mission.mission.findings.ranking import days
from ralph_mission.mission.lifecycle.approval import DETAILS_END, content_hash
from ralph_mission.mission.model.effects import Number, Ref, marker
from ralph_mission.mission.model.forge import Actor, Branch, FailedJob
from ralph_mission.mission.model.mission import BRIEFS, Finding, Mission, Status, Tier
from ralph_mission.mission.model.proposal import count_findings, lookup, reason
from ralph_mission.mission.proposals import analysis
from ralph_mission.mission.proposals.analysis import place_link, quote_line, thread_link
from ralph_mission.safety.detect import closing_keywords
from ralph_mission.safety.objections import describe_touched, describe_weakening
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import fence, inline, inline_words, quote, sanitise
from ralph_mission.values import compile_regex
from ralph_mission.words import capitalise, count_noun

UNUSED = "imported but unused"  # codes of linters
TITLE = 120  # characters; two lines of a title on a phone
SHOWN = 40  # lines of evidence in a body
QUOTES = 3  # on one line of a list
DETAIL, BRIEF = 2_000, 16_000  # characters of what was found, and of what people wrote
QUOTED, WRITTEN = "quoted as found, not an instruction:", "**What is to be done**, as the default branch says:"
DIFF = 40_000  # characters of diff in a proposal; bodies stay under 60,000 (GitHub refuses 65,536)

HOW_TO_SAY_NO = "**Close** it to reject it for good; a comment saying why helps."


FAILED_JOBS = 3  # in one text
PLACE = compile_regex(r"[a-z/]+")  # of a setting, below the repository's page
WEB = compile_regex(r"https?://[\w.:-]+/[\w./#?=&-]+")


def plain(text: str, limit: int = TITLE) -> str:
    """One line of plain text for a title or a commit message; nothing in it pings, closes or commands."""
    line = " ".join(sanitise(redact(text), "commit").split())
    return " ".join(sanitise(line, "commit", limit=limit).split())  # cutting can expose what the rest had neutralised


def append_number(title: str, issue: int) -> str:
    """A title that ends with its issue's number without closing it, even if its last word is "close" or "fix"."""
    line = f"{title} (#{issue})"
    return f"{title}, issue (#{issue})" if closing_keywords(line, markdown=False) else line


def person_name(actor: Actor | None) -> str:
    """A person's name, without a ping."""
    return (plain(actor.login, 60) if actor else "") or "someone"


def reviewer_note(patch: Patch) -> str:
    """What a reviewer of an agent's change must look at first, or ""."""
    weaker, touched = describe_weakening(patch), describe_touched(patch)
    lines = [f"**Weaker checks?** This change {', '.join(weaker)}."] if weaker else []
    for kind, paths in touched.items():
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        lines.append(f"**It touches {kind}:** {', '.join(inline(redact(path), 80) for path in paths[:5])}{more}.")
    return "\n".join(("> [!WARNING]", *(f"> {line}" for line in lines))) if lines else ""


# --- fixes ----------------------------------------------------------------------------


def fix_title(kind: str, members: Sequence[Finding]) -> str:
    """ "Correct 7 misspellings in 3 files"; what changes behaviour stands alone, by its own title."""
    if _changes_behaviour(kind, members):
        return plain(f"Fix: {members[0].signal.title}")
    number = sum(_size(member) for member in members)
    verb = {"spelling": "Correct", "dependency-patch": "Apply"}.get(kind, "Fix")
    things = count_findings(number, kind)
    if _are_unused(members):
        verb, things = "Remove", "an unused import" if number == 1 else f"{number} unused imports"
    number_of_files = _places(members)
    where = members[0].signal.path if number_of_files == 1 else count_noun(number_of_files, "file")
    return plain(f"{verb} {things} in {where}")


def _changes_behaviour(kind: str, members: Sequence[Finding]) -> bool:
    return lookup(kind).tier is Tier.HIGH and len(members) == 1


def _are_unused(members: Sequence[Finding]) -> bool:
    """Whether all fixes are unused imports."""
    texts = [text.text for member in members for text in member.signal.quotes]
    return bool(texts) and all(text.endswith(UNUSED) for text in texts)


def fix_issue(
    kind: str,
    members: Sequence[Finding],
    why: str,
    patch: Patch,
    refused: str,
    key: str,
    facts: dict[str, str],
    named: str = "",
    page: str | None = None,
) -> str:
    """The issue of a fix whose pull request the forge refused: what was found, why there is none, and the change,
    folded. `named`: the line that binds us to exactly this change. `page`: the repository's address where only a person
    can lift the refusal; then the issue begins with how."""
    change = (named, fence(redact(diff(patch)), DIFF, "diff"))
    way = f"**What is in the way:** {inline_words(redact(refused), 300)}. The next cycle tries again."
    summary = f"**{_counted(kind, members)}**: the fix is ready, but its pull request could not be opened."
    return "\n\n".join(
        [
            *([summary, way] if page is None else [_needs_person(refused, page), summary]),
            f"{_why(kind)}\n\n{_evidence(members)}",
            HOW_TO_SAY_NO,
            _folded("Details", *change, _ranking_line(why)),
            marker(key, **facts),
        ]
    )


def _needs_person(refused: str, page: str) -> str:
    """What a person has to change, with a link if that is one of this repository's pages."""
    words, found, place = refused.partition(f" ({page}/")
    place = place.removesuffix(")")
    link = f" ([open it]({page}/{place}))" if page and found and PLACE.fullmatch(place) else ""
    return f"**Needs a person.** {retry_after(inline_words(redact(words if link else refused), 300) + link)}."


def retry_after(refused: str) -> str:
    """What a person has to do about a refusal that only a person can lift."""
    return f"{refused}. Once that is fixed, comment `/ralph retry`"


def fix_pull(
    kind: str,
    members: Sequence[Finding],
    why: str,
    issue: Number,
    key: str,
    facts: dict[str, str],
    page: str = "",
    checks: tuple[Sequence[str], Sequence[str]] | None = None,
) -> str:
    """The text of a fix's pull request, with an issue or (0) without. `checks`: those that passed with it, and those
    that still fail; None if it was not checked."""
    part = f" Part of {_number(issue)}." if issue else ""
    head = f"**{_counted(kind, members)}**; nothing else changes.{part} {_why(kind)}"
    alone = _changes_behaviour(kind, members)
    detail = _said_besides(members[0]) if alone else ""
    return "\n\n".join(
        [
            f"**{plain(members[0].signal.title)}.** {_why(kind)}{part}" if alone else head,
            _evidence(members, page),
            *([f"{capitalise(QUOTED)}\n\n{quote(redact(detail), DETAIL)}"] if detail else ()),
            *(_checks_note(*checks) if checks and (any(checks) or not detail) else ()),
            f"**Approve** it to merge exactly this commit once its checks are green. {HOW_TO_SAY_NO}",
            _folded("Details", _ranking_line(why)),
            marker(key, **facts),
        ]
    )


def _checks_note(green: Sequence[str], standing: Sequence[str]) -> Iterator[str]:
    """What was run on a fix before it was proposed."""
    if green:
        yield f"**Passed with it:** {', '.join(inline(command, 100) for command in green)}."
    if standing:
        yield standing_note(standing)
    if not (green or standing):
        yield "No check was run on it: `hands.verify` names none."


def commit_message(title: str, kind: str, members: Sequence[Finding], issue: Number) -> str:
    """Subject and body of the single commit on our branch."""
    lines = [plain(f"{m.signal.path}: {_first_line(m.signal.detail)}", 300) for m in members[:SHOWN]]
    evidence = "\n".join(f"- {line}" for line in lines)
    part = f"Part of {_number(issue)}.\n" if issue else ""
    end = f"{part}To reject: close its pull request; once merged, revert this commit.\n"
    return "\n\n".join([title, f"Why: {reason(kind)}.", evidence, end])


FIX_OPENED = ("opened a pull request with the fix", "A person reviews it.")
"""Last action and next step of a fix whose pull request is open."""
OURS = compile_regex(
    r"^To reject: (?:revert this commit|close its pull request; once merged, revert this commit)\.$"
    r"|\AMerge pull request #\d+ from [^/\s]+/ralph/",
    re.MULTILINE,
)


def is_ours(message: str) -> bool:
    """Whether a commit's message is one of ours, or that of a merge of one of our branches."""
    return bool(OURS.search(message))


def merge_message(mission: Mission, who: str, unchecked: bool = False) -> str:
    """Subject and body of the commit that merges an approved pull request; `unchecked`: no check ran on it."""
    part = f" Part of #{mission.issue}." if mission.issue else ""
    part = f"{part} No check ran on it." if unchecked else part
    return (
        f"{mission.title}\n\nWhy: {reason(mission.kind)}.\n\n"
        f"Approved by {who} at {mission.head_sha[:12]} in #{mission.pull}.{part}\n"
        "To reject: revert this commit.\n"
    )


def catch_up_message(mission: Mission, base: Branch) -> str:
    """Subject and body of the commit that merges the base into our branch."""
    return (
        f"Merge {plain(base.name)} into {mission.branch}\n\n"
        f"Why: the base moved on to {base.sha[:12]}, and asks for branches that hold it.\n\n"
        f"Part of #{mission.thread}.\nTo reject: close the pull request.\n"
    )


# --- proposals ------------------------------------------------------------------------


def proposal_title(finding: Finding) -> str:
    """The finding's own title, sanitised."""
    return plain(finding.title) or f"A {lookup(finding.kind).noun} without a title"


def together(members: Sequence[Finding]) -> Finding:
    """The first of some findings that say the same, with the lines of all and their number."""
    first, more = members[0], len(members) - 1
    quotes = tuple(dict.fromkeys(one for member in members for one in member.signal.quotes))
    title = f"{first.signal.title} (and in {count_noun(more, 'other place')})"
    return replace(first, signal=replace(first.signal, title=title, quotes=quotes))


def proposal_body(
    finding: Finding,
    why: str,
    patch: Patch | None,
    named: str = "",
    sections: analysis.Sections = (),
    agent: str = "",
    page: str = "",
) -> str:
    """The text of a proposal, without the line that names its hash.

    `named`: the line that binds us to exactly this patch. `sections`: a thinker's words for the analysis. `page`: the
    repository's URL. Without a patch and an `agent`, approval would have no effect, so it is not asked for.
    """
    quotes, detail = finding.signal.quotes, _said_besides(finding)
    where = f" in {_place(finding)}" if finding.signal.path and not quotes else ""
    written = finding.signal.observer == BRIEFS
    parts = [f"**{capitalise(lookup(finding.kind).noun)}**{where}. {_why(finding.kind)}"]
    parts += ["\n".join(f"- {quote_line(page, one)}" for one in quotes[:SHOWN])] if quotes else []
    details = f"{WRITTEN if written else capitalise(QUOTED)}\n\n{quote(redact(detail), BRIEF if written else DETAIL)}"
    parts += [details] if detail and (written or not quotes) else []
    folded = [details] if detail and quotes and not written else []
    folded.append(f"Found by the {inline(finding.signal.observer, 60)} observer. {_ranking_line(why)}")
    if patch:
        parts += ["**The change:**", fence(redact(diff(patch)), DIFF, "diff")]
        folded.append(named)
    else:
        parts += [text for text in [analysis.body(finding, sections)] if text]
    ask = f"{_question(patch, agent)} " if patch or agent else f"It closes once {analysis.check_of(finding.kind)}. "
    return "\n\n".join([*parts, f"{ask}{HOW_TO_SAY_NO}", _folded("Details", *folded)])


def fixes_question(kind: str, members: Sequence[Finding], why: str, patch: Patch, named: str, page: str = "") -> str:
    """The text of a proposal to make several small fixes of one kind in one change."""
    parts = [
        f"**{_counted(kind, members)}**. {_why(kind)}",
        _evidence(members, page),
        "**The change:**",
        fence(redact(diff(patch)), DIFF, "diff"),
        f"{_question(patch, '')} {HOW_TO_SAY_NO}",
        _folded("Details", _ranking_line(why), named),
    ]
    return "\n\n".join(parts)


def _question(patch: Patch | None, agent: str) -> str:
    """What approval does, and how to give it."""
    then = "a pull request with this change" if patch else f"{plain(agent, 40)} to make a change that you review"
    return f"**Go ahead?** Label this `ralph:approved` or comment `/ralph approve`, for {then}."


def seal_proposal(title: str, body: str, key: str, facts: dict[str, str]) -> tuple[str, str]:
    """A proposal's final text, and the hash that approval is bound to."""
    return f"{seal(title, body)}\n\n{marker(key, **facts)}", content_hash(title, body)


def seal(title: str, body: str) -> str:
    """The text with the line that names it: at the end of its details, else at its own end."""
    text = body.removesuffix(DETAILS_END)
    return f"{text}\n\n{seal_line(content_hash(title, body))}{body[len(text) :]}"


def seal_line(digest: str) -> str:
    """The line that approvals must be newer than."""
    return f"proposal is now `{digest}`"


def ask_again(digest: str, key: str, extra: str = "") -> str:
    """The comment after an edit: what is asked now. `extra` precedes our line."""
    return "\n\n".join(
        [
            "The text above was edited, so approve it again: set the label `ralph:approved` again or comment "
            "`/ralph approve`.",
            *([extra] if extra else []),
            seal_line(digest),
            marker(key),
        ]
    )


# --- monitoring -----------------------------------------------------------------------


def monitor_title(kind: str) -> str:
    """The permanent title of a kind's list."""
    return f"Watching: {plain(lookup(kind).plural)}" if lookup(kind).noun != "finding" else f"Watching: {plain(kind)}"


def monitor_line(finding: Finding, page: str = "") -> str:
    """One line of a list; `page`: the repository's URL."""
    signal = finding.signal
    number = f"#{signal.reference}"
    thread = f"{thread_link(page, signal.reference)} " if signal.reference and page else ""
    title = signal.title.removeprefix(number).lstrip(": ") if thread else signal.title
    where = f" {_place(finding)}" if signal.path and signal.path not in signal.title and not signal.quotes else ""
    who = f", by {inline(redact(signal.author), 40)}" if signal.author else ""
    age = f", {days(signal.age_days)} old" if signal.age_days >= 1 else ""
    if signal.quotes and (signal.quotes[0].path, signal.quotes[0].line) == (signal.path, signal.line):
        title = title.removesuffix(f" in {signal.path}:{signal.line}")  # the quote says it
    quotes = (replace(one, reference=0) if one.reference == signal.reference else one for one in signal.quotes[:QUOTES])
    lines = "".join(f"; {quote_line(page, one)}" for one in quotes)
    return f"- {thread}{inline(redact(title), 160)}{where}{who}{age}{lines}"


# --- a mission's story ----------------------------------------------------------------


STANDS = {
    Status.DISCOVERED: "Waiting for an answer",
    Status.PLANNED: "Approved",
    Status.EXECUTING: "Under way",
    Status.IN_REVIEW: "In review",
    Status.FIXING: "Being changed",
    Status.COMPLETED: "Done",
    Status.REJECTED: "Rejected",
    Status.ESCALATED: "Needs a person",
    Status.PARKED: "Set aside",
}
"""How a mission stands, for people."""


def story(mission: Mission, key: str, extra: str = "") -> str:
    """The standing comment on a mission's thread, edited as the mission continues."""
    head = f"**{STANDS[mission.status]}.** {mission.next_step}".rstrip()
    history = "\n".join(f"- {inline_words(redact(line))}" for line in mission.story[-SHOWN:])
    return "\n\n".join([head, *([extra] if extra else []), _folded("History", history), marker(key)])


def failed_checks(jobs: Sequence[FailedJob], key: str) -> str:
    """Which step of which job failed on our pull request, with the end of its log."""
    return f"**A check of this pull request failed.**\n\n{list_failed(jobs)}\n\n{marker(key)}"


def passed_checks(key: str) -> str:
    """What that comment says once they passed after all."""
    return f"**A check of this pull request failed, and passed when it ran again.**\n\n{marker(key)}"


def list_failed(jobs: Sequence[FailedJob]) -> str:
    """Each failed job with its step and the log lines that say why, quoted."""
    return "\n\n".join(map(_failed_job, jobs[:FAILED_JOBS]))


def _failed_job(job: FailedJob) -> str:
    place = f"step {inline(job.step, 80)} of job {inline(job.name, 80)}" if job.step else inline(job.name, 80)
    where = f" ([{'log' if job.step else 'page'}]({job.url}))" if WEB.fullmatch(job.url) else ""
    log = f":\n\n{fence(redact(job.log), 2_000)}" if job.log.strip() else "."
    return f"Failed: {place}{where}{log}"


def nobody_merges(why: str, key: str) -> str:
    """The last comment on the pull request of a mission that ended in its issue."""
    rest = "It was not merged. To merge it yourself, restore its branch and reopen it."
    return f"**Closed: {why}.** {rest}\n\n{marker(key)}"


def left_to_people(key: str) -> str:
    """The answer to a rejected pull request that is open again."""
    return f"This was rejected, so Ralph no longer follows it. Merge it yourself, or close it.\n\n{marker(key)}"


def escalation(owners: Sequence[str], words: str, reviewer: str) -> str:
    """Who must act now, and why; quotes the reviewer."""
    whom = ", ".join(f"@{owner}" for owner in owners)
    quoted = f"Review by {inline_words(reviewer, 80)}:\n\n{quote(redact(words), 1_500)}" if words and reviewer else ""
    return "\n\n".join(part for part in (f"{whom}: please decide." if whom else "", quoted) if part)


# --- pieces ---------------------------------------------------------------------------


def diff(patch: Patch) -> str:
    """A unified diff for people (never measured by, never applied)."""
    return "".join(_file_diff(change) for change in patch.changes)


def _file_diff(change: FileChange) -> str:
    old, new = ((side or b"").decode(errors="replace").splitlines(keepends=True) for side in (change.old, change.new))
    path = " ".join(change.path.splitlines())
    import difflib  # omitted if it would show no change

    lines = list(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=2))
    head = "" if lines and change.old_mode == change.new_mode else f"{path}: {_modes(change)}\n"
    return head + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _modes(change: FileChange) -> str:
    """What lines do not show: that a file is new, deleted, empty, a link, or executable."""
    if change.old_mode and change.new_mode:
        return f"mode {change.old_mode} to {change.new_mode}"
    return f"new, mode {change.new_mode}" if change.new_mode else f"deleted, mode was {change.old_mode}"


def _why(kind: str) -> str:
    return f"{capitalise(reason(kind))}."


def _ranking_line(why: str) -> str:
    """A thinker's reason, which is untrusted text."""
    return f"Ranked by: {inline_words(redact(why))}."


def _evidence(members: Sequence[Finding], page: str = "") -> str:
    """The fixes, each with its line; `page`: the repository's URL."""
    lines = [line for member in members for line in _places_of(member, page)]
    more = [f"- … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join([*lines[:SHOWN], *more])


def _places_of(member: Finding, page: str) -> list[str]:
    if _are_unused((member,)) and _size(member) == len(member.signal.quotes):  # only the names, line by line
        names: dict[str, list[str]] = {}
        for one in member.signal.quotes:
            name = inline(redact(one.text.removesuffix(UNUSED).strip(" `")), 100)
            names.setdefault(place_link(page, one), []).append(name)
        return [f"- {place}: {', '.join(those)}" for place, those in names.items()]
    if quotes := member.signal.quotes:
        omitted = _size(member) - len(quotes)
        more = [f"- … and {omitted} more in {inline(redact(member.signal.path), 160)}"] if omitted > 0 else []
        return [*(f"- {quote_line(page, one)}" for one in quotes), *more]
    return [f"- {inline(redact(member.signal.path), 160)}: {_short(member)}"]


def _said_besides(finding: Finding) -> str:
    """The observer's text, besides the quoted lines."""
    quotes = {one.text.strip() for one in finding.signal.quotes}
    return "\n".join(
        line for line in finding.signal.detail.splitlines() if not line.strip() or line.strip() not in quotes
    )


def _folded(summary: str, *parts: str) -> str:
    """Details for the curious, folded."""
    content = "\n\n".join(part for part in parts if part)
    return f"<details><summary>{summary}</summary>\n\n{content}{DETAILS_END}"


def _number(issue: Number) -> str:
    return issue.token if isinstance(issue, Ref) else f"#{issue}"


def _counted(kind: str, members: Sequence[Finding]) -> str:
    """ "3 misspellings in 2 files"."""
    if _are_unused(members):
        number = sum(_size(member) for member in members)
        return f"{number} unused import{'s'[: number - 1]} in {count_noun(_places(members), 'file')}"
    return f"{count_findings(sum(_size(member) for member in members), kind)} in {count_noun(_places(members), 'file')}"


def _short(finding: Finding) -> str:
    lines = [line for line in finding.signal.detail.splitlines() if line.strip()]
    text = "; ".join(inline(redact(line.strip()), 100) for line in lines[:5])
    return f"{text}; …" if len(lines) > 5 else text


def _first_line(detail: str) -> str:
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    return "; ".join(lines[:3]) + ("; …" if len(lines) > 3 else "")


def _place(finding: Finding) -> str:
    signal = finding.signal
    path = redact(signal.path)
    return inline(f"{path}:{signal.line}" if signal.line else path, 200)


def _size(finding: Finding) -> int:
    """How many items a finding stands for, by the facts of a fixer's signal."""
    count = dict(finding.signal.facts).get("count", 1)
    return count if isinstance(count, int) else 1


def _places(members: Sequence[Finding]) -> int:
    """How many files a change of all of them touches."""
    return len({path for member in members for path in member.signal.paths})


def standing_note(failing: Sequence[str]) -> str:
    """The note in a pull request about checks that failed before and still do, or ""."""
    named = ", ".join(inline(command, 100) for command in failing)
    whose = "its" if len(failing) == 1 else "their"
    return f"**Still failing:** {named}, as on the base commit; {whose} output names no new failure." if failing else ""
