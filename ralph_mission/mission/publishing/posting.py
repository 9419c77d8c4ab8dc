"""Posts: what is sent of a finding or an approved issue, once for each network, and the steps of a mission of texts.

Every network gets a post at most once. What certainly did not get through may be tried again, `TRIES` times within
`STANDS` of the first attempt. A finding is known once nothing of it is left to post.

A mission's text is read from the issue as approved; memory only records what was sent before. Each network gets one
post per mission, whatever was edited since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeGuard

from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.lifecycle.step_builder import TICK, StepBuilder, build_step, tell_once, wait_step
from ralph_mission.mission.lifecycle.table import PUBLISHED, advance
from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.cycle import Interpretation, MissionEvent, MissionFacts, MissionStep, StepContext
from ralph_mission.mission.model.effects import Comment, EditComment, Effect, Label, Publish, Receipt, marker
from ralph_mission.mission.model.forge import Chart, Measured, Post, Posted, ThreadComment, Wording
from ralph_mission.mission.model.ledger import KEPT_POSTS, SETTLED, EffectRecord, Record, key_of, settle
from ralph_mission.mission.model.mission import Action, FailureReason, Finding, Mission, Status
from ralph_mission.mission.model.proposal import Proposal, RankedFinding
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import content, posting
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words

TRIES = 3
SENT_AGAIN = (FailureReason.NOT_ATTEMPTED, FailureReason.LATER)
STANDS = timedelta(hours=24)  # older news is not posted
Key = tuple[str, str]  # a finding's fingerprint and occurrence
REVIEW = "content:review"


def subject(finding: Finding) -> str:
    """The key of the action that posts this instance."""
    return key_of("publish", finding.kind, finding.fingerprint, finding.signal.occurrence)


def data_post(ranked: RankedFinding, finding: Finding, effects: Iterable[Publish]) -> Proposal:
    """The proposal to post the owner's template for a finding."""
    return Proposal(
        subject(finding),
        Action.PUBLISH,
        finding.kind,
        f"Post: {finding.title}",
        tuple(effects),
        (finding,),
        why=ranked.why,
        score=ranked.score,
    )


def publishing(subject: str, posts: Iterable[Post], about: Key = ("", "")) -> tuple[Publish, ...]:
    """One effect for each network; `about`: the finding they are about, if any."""
    return tuple(Publish(key_of(subject, "publish", post.network), post, *about) for post in posts)


def effects_of(finding: Finding, wording: Wording) -> tuple[Publish, ...]:
    """All posts of the wording, on every network."""
    return publishing(subject(finding), wording.posts, (finding.fingerprint, finding.signal.occurrence))


# --- what may still be sent -------------------------------------------------------------


def sendable_effects(effects: Iterable[Publish], records: Mapping[str, Record], now: datetime) -> tuple[Publish, ...]:
    """The effects that may be sent now: never sent before, or certainly failed and worth another try."""
    return tuple(effect for effect in effects if may_send(records.get(effect.key), now))


def may_send(record: Record | None, now: datetime) -> bool:
    """Whether a post with this record may be sent now."""
    return is_left(record, now) and not waits(record, now)


def waits(record: Record | None, now: datetime) -> bool:
    """Whether its network asked us to wait, still."""
    receipt = record.receipt if isinstance(record, EffectRecord) else None
    return receipt is not None and receipt.not_before is not None and now < receipt.not_before


def is_left(record: Record | None, now: datetime) -> bool:
    """Whether a post with this record is still to be sent, now or later."""
    if not isinstance(record, EffectRecord):
        return True
    reason = record.receipt.reason if record.receipt else None
    if record.state != "failed" or now - record.at >= STANDS:
        return False
    return reason is FailureReason.NOT_ATTEMPTED or (reason is FailureReason.LATER and record.tries < TRIES)


def tried_again(record: EffectRecord, before: Record | None) -> EffectRecord:
    """The record of an effect that is intended again, with the first attempt's time and the number of attempts."""
    if not isinstance(before, EffectRecord):
        return record
    if not isinstance(record.effect, Publish):
        tried = before.receipt is not None and before.state == "failed" and not before.receipt.not_attempted
        return replace(record, tries=before.tries + tried)
    tried = before.receipt is not None and before.receipt.reason is FailureReason.LATER
    return replace(record, at=before.at, tries=before.tries + tried)


def after(
    effects: Iterable[Publish], records: Mapping[str, Record], receipts: Mapping[str, Receipt], now: datetime
) -> dict[str, Record]:
    """The records of these effects after their receipts."""
    known = {effect.key: record for effect in effects if (record := records.get(effect.key))}
    for effect in effects:
        if receipt := receipts.get(effect.key):
            intended = EffectRecord(effect.key, "", Action.PUBLISH, "", "intended", effect, 0, now)
            known[effect.key] = settle(tried_again(intended, records.get(effect.key)), receipt)
    return known


def fully_posted(
    findings: Iterable[Finding],
    wordings: Iterable[Wording],
    records: Mapping[str, Record],
    receipts: Mapping[str, Receipt],
    now: datetime,
    hushed: bool = False,
) -> tuple[Finding, ...]:
    """Findings with a template of which nothing is left to post."""
    ready = {(one.fingerprint, one.occurrence): one for one in wordings if one.ready and one.posts}
    over = []
    for finding in findings:
        wording = ready.get((finding.fingerprint, finding.signal.occurrence))
        if wording is None:
            continue
        effects = effects_of(finding, wording)
        known = after(effects, records, receipts, now)
        if hushed or is_old(finding, effects, known, now) or not any(is_left(known.get(e.key), now) for e in effects):
            over.append(finding)
    return tuple(over)


def is_old(finding: Finding, effects: Iterable[Publish], records: Mapping[str, Record], now: datetime) -> bool:
    """Whether it waited too long, on no network, to still be news."""
    waited = finding.seen_at is not None and now - finding.seen_at >= STANDS
    return waited and not any(effect.key in records for effect in effects)


def in_doubt(
    records: Mapping[str, Record], receipts: Iterable[tuple[Effect, Receipt]], now: datetime
) -> frozenset[Key]:
    """Findings whose posts are in doubt: a person may still say that they were not sent."""
    doubtful = [record.effect for record in records.values() if _fresh_doubt(record, now)]
    doubtful += [effect for effect, receipt in receipts if receipt.status == "unknown"]
    return frozenset((effect.finding, effect.occurrence) for effect in doubtful if isinstance(effect, Publish))


def _fresh_doubt(record: Record, now: datetime) -> TypeGuard[EffectRecord]:
    return isinstance(record, EffectRecord) and record.state == "unknown" and now - record.at < STANDS


# --- what went out ----------------------------------------------------------------------


def to_posted(effect: Effect, receipt: Receipt, kind: str, at: datetime) -> Posted | None:
    """The record of a post; None if it was not sent. Its id is in the receipt's detail, `id=…`.

    `at` is used if the receipt has no time.
    """
    if not isinstance(effect, Publish) or receipt.status not in SETTLED:
        return None
    words = (word.removeprefix("id=") for word in receipt.detail.split() if word.startswith("id="))
    return Posted(effect.key, effect.network, kind, receipt.at or at, next(words, ""), receipt.url)


def remember_posts(
    before: Iterable[Posted], new: Iterable[Posted], measured: Iterable[Measured] = (), now: datetime | None = None
) -> tuple[Posted, ...]:
    """All posts, newest first, updated with the latest metrics; each once."""
    posts = {post.key: post for post in sorted((*before, *new), key=lambda post: post.at, reverse=True)}
    for metrics in measured:
        if post := posts.get(metrics.key):
            posts[metrics.key] = replace(post, reactions=metrics.reactions, views=metrics.views, measured_at=now)
    return tuple(posts.values())[:KEPT_POSTS]


def on_day(posts: Iterable[Posted], now: datetime, records: Mapping[str, Record] = {}) -> dict[str, int]:
    """How many posts each network got on the day of `now` (UTC), including those in doubt."""
    return dict(Counter(network for network, at in _sent_times(posts, records) if at.date() == now.date()))


def within(
    pause: timedelta, posts: Iterable[Posted], now: datetime, records: Mapping[str, Record] = {}
) -> dict[str, int]:
    """How many posts each network got less than `pause` ago, including those in doubt."""
    return dict(Counter(network for network, at in _sent_times(posts, records) if now - at < pause))


def _sent_times(posts: Iterable[Posted], records: Mapping[str, Record]) -> Iterator[tuple[str, datetime]]:
    """When each network got a post, or may have."""
    yield from ((post.network, post.at) for post in posts)
    for record in records.values():
        if isinstance(record, EffectRecord) and record.state == "unknown" and isinstance(record.effect, Publish):
            sent = record.receipt.at if record.receipt else None
            yield record.effect.network, sent or record.at


def follow(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """The steps if nothing new happened: send what is left, report it, revise the draft, or ask again."""
    if request := content.find_request(mission, facts):
        return _answer_request(mission, facts, request, context)
    if mission.status in (Status.PLANNED, Status.EXECUTING):
        return _go_on(mission, facts, context)
    return _ask_again(mission, facts, context) if _was_edited(mission, facts) else wait_step(mission)


def release_posts(mission: Mission, facts: MissionFacts, context: StepContext, who: str) -> MissionStep:
    """`who` approved the issue's text: send it to every network that does not have it yet."""
    if facts.shown.wrong:
        return _unsayable(mission, facts, context)
    unsent = _posts_left(mission, facts, context)
    known = (_record(mission, post.network, context) for post in facts.shown.posts)
    if not unsent and any(posting.waits(record, context.now) for record in known):
        return wait_step(mission)
    if not unsent:
        return over(mission, facts, Interpretation(), context)
    effects = posting.publishing(mission.key, unsent)
    step, networks = _begin_publishing(mission, context), ", ".join(post.network for post in unsent)
    step = step.tell(f"approved by {who}; goes to {networks}", "The networks' receipts follow.")
    step = step.change(pending=tuple(dict.fromkeys((*mission.pending, *(effect.key for effect in effects)))))
    key = key_of(mission.key, Action.PUBLISH, mission.question.proposal_hash, *(effect.key for effect in effects))
    step = step.send(*effects).teach("accepted")
    return replace(step.propose(Action.PUBLISH, who, key=key, interim=step.after, approved=True), mission=mission)


def over(mission: Mission, facts: MissionFacts, reading: Interpretation, context: StepContext) -> MissionStep:
    """Every network answered: the receipts in one comment, the labels, and closing the issue."""
    receipts = tuple(_receipts(mission, facts, context))
    step = build_step(mission, context).advance(MissionEvent.PUBLISHED).tell("published", "Nothing is left to do.")
    went = ", ".join(network for network, record in receipts if _state(record) in SETTLED)
    step = step.finish("published", f"published on {went}" if went else "published").teach("accepted")
    label = Label(key_of(mission.key, "label", PUBLISHED), mission.issue, add=(PUBLISHED,), remove=(REVIEW,))
    lines = "\n".join(_line(network, record) for network, record in receipts)
    return step.send_story(lines).send(label).close_issue(facts.issue, "completed").propose(Action.FINISH)


def refused_everywhere(mission: Mission, facts: MissionFacts, context: StepContext) -> str:
    """Why a person has to act: every network refused it for good. Else ""."""
    records = [record for _, record in _receipts(mission, facts, context)]
    if mission.status is not Status.EXECUTING or not records or any(_may_go(record) for record in records):
        return ""
    if any(_state(record) != "failed" for record in records):
        return ""
    reasons = dict.fromkeys(wording.plain(_detail(record), 100) for record in records)
    return f"no network took it: {'; '.join(reasons)}"


# --- what is left ---------------------------------------------------------------------


def _go_on(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    if not _open(mission, facts, context):
        return over(mission, facts, Interpretation(), context)
    if _was_edited(mission, facts):
        return _ask_again(advance(mission, MissionEvent.OFFERED, context.now), facts, context)
    who = said_yes(mission, facts)
    return release_posts(mission, facts, context, who) if who else _taken_back(mission, context)


def _taken_back(mission: Mission, context: StepContext) -> MissionStep:
    """The approval was withdrawn before every network had its post: the others wait for another approval."""
    step = build_step(mission, context).advance(MissionEvent.OFFERED).change(waiting_since=context.now)
    step = step.tell("the approval was withdrawn", "A person approves or rejects the texts that are left.")
    return step.send_story().propose(Action.ANSWER)


def _begin_publishing(mission: Mission, context: StepContext) -> StepBuilder:
    """The mission in the state of executing, from any state it was approved in."""
    step = build_step(mission, context)
    if mission.status is Status.DISCOVERED:
        step = step.advance(MissionEvent.APPROVED)
    return step.advance(MissionEvent.STARTED) if step.after.status is Status.PLANNED else step


def _open(mission: Mission, facts: MissionFacts, context: StepContext) -> bool:
    """Whether any network, asked before or shown in the issue, may still get it."""
    keys = {*mission.pending, *(_key(mission, post.network) for post in facts.shown.posts)}
    again = mission.status is not Status.EXECUTING
    return any(_may_go(context.records.get(key), again) for key in keys)


def _posts_left(mission: Mission, facts: MissionFacts, context: StepContext) -> tuple[Post, ...]:
    """The posts for networks without one. A network that refused only gets it after a new approval."""
    again = mission.status is not Status.EXECUTING
    known = ((post, _record(mission, post.network, context)) for post in facts.shown.posts)
    posts = (post for post, record in known if _may_go(record, again) and not posting.waits(record, context.now))
    return tuple(replace(post, chart=_chart(mission, post.network, facts, context)) for post in posts)


def _may_go(record: Record | None, again: bool = False) -> bool:
    if _state(record) in ("", "planned", "intended"):
        return True
    if not isinstance(record, EffectRecord) or record.state != "failed":
        return False
    return again or (record.receipt is not None and record.receipt.reason in posting.SENT_AGAIN)


def _chart(mission: Mission, network: str, facts: MissionFacts, context: StepContext) -> Chart | None:
    """The stored chart of this post, if the issue's text names exactly that one."""
    record = _record(mission, network, context)
    effect = record.effect if isinstance(record, EffectRecord) else None
    chart = effect.post.chart if isinstance(effect, Publish) else None
    named = content.charts(facts.issue.body) if facts.issue else frozenset()
    return chart if chart and (network, content.chart_digest(chart)) in named else None


def _record(mission: Mission, network: str, context: StepContext) -> Record | None:
    return context.records.get(_key(mission, network))


def _key(mission: Mission, network: str) -> str:
    """The key of `posting.publishing`: it names mission and network, never the text."""
    return key_of(mission.key, "publish", network)


def _state(record: Record | None) -> str:
    return record.state if isinstance(record, EffectRecord) else ""


def _detail(record: Record | None) -> str:
    return record.receipt.detail if isinstance(record, EffectRecord) and record.receipt else ""


def _receipts(mission: Mission, facts: MissionFacts, context: StepContext) -> Iterator[tuple[str, Record | None]]:
    """Each network's result; one whose text was removed from the issue since is not named."""
    names = {_key(mission, post.network): post.network for post in facts.shown.posts}
    for key in dict.fromkeys((*names, *mission.pending)):
        record = context.records.get(key)
        if _state(record) not in ("", "planned"):
            yield names.get(key, "another network"), record


def _line(network: str, record: Record | None) -> str:
    if not isinstance(record, EffectRecord):
        return content.receipt_line(network, "", None)
    return content.receipt_line(network, record.key, record.receipt)


# --- another draft --------------------------------------------------------------------


def _answer_request(mission: Mission, facts: MissionFacts, request: ThreadComment, context: StepContext) -> MissionStep:
    """Show the new draft and ask for approval, or say in one line why there is none. Earlier approvals are void."""
    result = context.results.get(mission.id)
    why = content.why_not_revised(mission, facts, request)
    if not why and (result is None or result.outcome == "held"):
        return wait_step(mission)
    step = build_step(mission, context).change(answered_at=request.created_at, waiting_since=context.now)
    if not why:
        step = step.change(rounds=mission.review.rounds + 1)
    if result is None or result.outcome != "made":
        key = key_of(mission.key, "comment", "revise", str(request.id))
        sentence = f"The text stays as it is: {inline_words(redact(why or (result.reason if result else '')), 400)}."
        return step.send(Comment(key, mission.issue, f"{sentence}\n\n{marker(key)}")).propose(Action.ANSWER)
    return _show_draft(step, facts, request, result)


def _show_draft(step: StepBuilder, facts: MissionFacts, request: ThreadComment, result: AgentResult) -> MissionStep:
    assert facts.issue is not None
    mission, who = step.before, wording.person_name(request.author)
    bound = approval.about(step.after, facts.issue.title, result.words)
    step = replace(step, after=bound).change(proposal_at=facts.issue.updated_at + TICK)
    line = f"rewritten as {who} asked (round {bound.review.rounds} of {content.ROUNDS})"
    key = key_of(mission.key, "comment", "revise", str(request.id))
    text = "\n\n".join((f"This was {line}.", wording.seal_line(bound.question.proposal_hash), marker(key)))
    edit = EditComment(key_of(mission.key, "edit_comment", result.words), mission.issue, 0, result.words)
    stale = tuple(sorted(facts.issue.labels & {*approval.yes_labels(mission, facts.issue)}))
    off = (Label(key_of(key, "label"), mission.issue, remove=stale),) if stale else ()
    return step.send(*off, edit, Comment(key, mission.issue, text)).propose(Action.ANSWER)


# --- words that wait for a person -----------------------------------------------------


def said_yes(mission: Mission, facts: MissionFacts) -> str:
    """Who approved the current text, or ""."""
    if facts.issue is None:
        return ""
    verdict = approval.on_issue(
        facts.issue, mission, facts.authorised, facts.offered_at, facts.yes, facts.edited_at
    )  # fmt: skip  # one question
    return wording.person_name(verdict.actor) if verdict.state == "approved" else ""


def _unsayable(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """Approved, but a network or rule would refuse it: say so once, and send nothing."""
    line = f"nothing is published: {'; '.join(facts.shown.wrong)}"
    return tell_once(mission, context, line, "Edit the text, then approve it again.")


def _was_edited(mission: Mission, facts: MissionFacts) -> bool:
    issue = facts.issue
    return issue is not None and not approval.stands(issue, mission)


def _ask_again(mission: Mission, facts: MissionFacts, context: StepContext) -> MissionStep:
    """The text was edited: show its measurements and ask again; earlier approvals were for another text."""
    assert facts.issue is not None
    bound = approval.about(mission, facts.issue.title, facts.issue.body)
    asked_before = mission.question  # an earlier text may come back, and is asked about again
    since = f"{asked_before.proposal_hash} {asked_before.proposal_at}"
    key = key_of(mission.key, "comment", bound.question.proposal_sha256, since)
    asked_at = facts.issue.updated_at + TICK
    step = replace(build_step(mission, context), after=bound)
    step = step.change(proposal_at=asked_at, waiting_since=context.now)
    stale = tuple(sorted(facts.issue.labels & {*approval.yes_labels(mission, facts.issue)}))
    unlabel = key_of(mission.key, "label", "asked", bound.question.proposal_sha256, since)
    off = (Label(unlabel, mission.issue, remove=stale),) if stale else ()
    comment = Comment(
        key, mission.issue, wording.ask_again(bound.question.proposal_hash, key, content.as_it_stands(facts.shown))
    )
    return step.send(*off, comment).propose(Action.ANSWER)
