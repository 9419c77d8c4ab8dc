"""From a finding to a post: one action, one effect for each network, each with its own key.

Every network gets a post at most once. What certainly did not get through may be tried again, `TRIES` times within
`STANDS` of the first attempt. A finding is known once nothing of it is left to post.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeGuard

from ralph_mission.mission.model.effects import Effect, Publish, Receipt
from ralph_mission.mission.model.forge import Measured, Post, Posted, Wording
from ralph_mission.mission.model.ledger import KEPT_POSTS, SETTLED, EffectRecord, Record, key_of, settle
from ralph_mission.mission.model.mission import Action, FailureReason, Finding
from ralph_mission.mission.model.proposal import Proposal, RankedFinding

TRIES = 3
SENT_AGAIN = (FailureReason.NOT_ATTEMPTED, FailureReason.LATER)
STANDS = timedelta(hours=24)  # older news is not posted
Key = tuple[str, str]  # a finding's fingerprint and occurrence


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
