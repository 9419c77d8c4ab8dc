"""What may still be sent, and what is remembered of what was."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.findings import identity
from ralph_mission.mission.model.effects import Publish, Receipt
from ralph_mission.mission.model.forge import Measured, Post, Posted, Wording
from ralph_mission.mission.model.ledger import KEPT_POSTS, EffectRecord, FinishedMission
from ralph_mission.mission.model.mission import Action, Status
from ralph_mission.mission.model.proposal import RankedFinding
from ralph_mission.mission.proposals.draft import draft_all
from ralph_mission.mission.publishing import posting
from tests.mission.build import NOW, finding, make_failure, mission
from tests.mission.proposals.test_draft import store

POST = Post("twitter", ("Osmosis +45%",), (12,), 280)
EFFECT = Publish("k1", POST)


def record(state: str, detail: str = "", tries: int = 1, age: timedelta = timedelta(0)) -> EffectRecord:
    receipt = make_failure("k1", detail) if state == "failed" else None
    return EffectRecord("k1", "a", Action.PUBLISH, "anomaly", state, EFFECT, 1, NOW - age, 0, receipt, tries)


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        (None, True),
        (record("intended"), False),
        (record("done"), False),
        (record("adopted"), False),
        (record("unknown"), False),
        (record("failed", "401"), False),
        (record("failed", "later: 429"), True),
        (record("failed", "later: 429", tries=2), True),
        (record("failed", "later: 429", tries=3), False),
        (record("failed", "later: 429", age=timedelta(hours=24)), False),
        (record("failed", "not attempted: stopped by the kill switch", tries=9), True),
        (record("failed", "not attempted: stopped by the kill switch", age=timedelta(hours=24)), False),
    ],
)
def test_only_what_certainly_did_not_get_through_is_sent_again(before, sent):
    assert posting.may_send(before, NOW) is sent
    assert bool(posting.sendable_effects([EFFECT], {"k1": before} if before else {}, NOW)) is sent


def test_a_try_counts_only_where_the_network_was_asked_and_the_clock_runs_from_the_first():
    hour = timedelta(hours=1)
    anew = posting.tried_again(record("intended"), record("failed", "later: 429", tries=2, age=hour))
    assert (anew.tries, anew.at) == (3, NOW - hour)
    assert posting.tried_again(record("intended"), record("failed", "not attempted: stopped", tries=2)).tries == 2
    assert posting.tried_again(record("intended"), None) == record("intended")


def test_one_post_on_all_networks_is_one_action_with_a_key_for_each():
    found = finding(kind="anomaly", occurrence="w1")
    posts = (POST, replace(POST, network="discord"))
    words = Wording(found.fingerprint, "w1", posts, ready=True)
    ranked = RankedFinding((found.fingerprint,), "anomaly", 1.0, "because")
    at = store(wordings={(found.fingerprint, "w1"): words})
    (proposal,) = draft_all([ranked], [found], at)
    assert (proposal.action, proposal.networks) == (Action.PUBLISH, ("twitter", "discord"))
    first, second = proposal.effects
    assert first.key != second.key
    assert isinstance(first, Publish)
    assert (first.finding, first.occurrence) == (found.fingerprint, "w1")
    done = {first.key: replace(record("done"), key=first.key)}
    assert draft_all([ranked], [found], replace(at, records=done))[0].effects == (second,)
    assert draft_all([ranked], [found], replace(at, hushed=True)) == ()
    assert draft_all([replace(ranked, ask=True)], [found], at)[0].action is Action.OPEN_PROPOSAL


def test_nothing_but_a_post_is_made_of_a_finished_mission():
    (found,) = identity.finished_findings([FinishedMission(1, "m1", "spelling", 4, NOW)])
    ranked = RankedFinding((found.fingerprint,), "completed", 1.0, "because")
    assert draft_all([ranked], [found], store()) == ()


def test_only_merged_missions_of_the_kinds_that_were_asked_for_are_announced():
    ended = mission(status=Status.COMPLETED, outcome="merged", started_at=NOW - timedelta(days=3))
    (news,) = identity.list_announceable([ended], {"spelling"}, 5, NOW)
    assert (news.days, news.cycles, news.pull) == (3, 5, 4)
    for other in (
        replace(ended, outcome="done by a person"),
        replace(ended, status=Status.REJECTED),
        replace(ended, kind="bug"),
    ):
        assert identity.list_announceable([other], {"spelling"}, 5, NOW) == ()


def test_an_announcement_waits_a_week_and_no_longer():
    news = FinishedMission(1, "m1", "spelling", 4, NOW)
    waiting = {identity.finished_findings([news])[0].fingerprint}
    assert identity.still_waiting([news], waiting, NOW + timedelta(days=6)) == (news,)
    assert identity.still_waiting([news], waiting, NOW + timedelta(days=7)) == ()
    assert identity.still_waiting([news], set(), NOW) == ()


def test_what_went_out_is_remembered_with_its_id_newest_first():
    receipt = Receipt("k1", "done", url="https://x.test/7", detail="2 parts id=7")
    assert posting.to_posted(EFFECT, receipt, "anomaly", NOW) == Posted(
        "k1", "twitter", "anomaly", NOW, "7", "https://x.test/7"
    )
    for status in ("failed", "unknown", "staged"):
        assert posting.to_posted(EFFECT, Receipt("k1", status), "anomaly", NOW) is None  # type: ignore[arg-type]  # a status
    posts = [Posted(f"k{n}", "twitter", "anomaly", NOW + timedelta(minutes=n)) for n in range(KEPT_POSTS + 5)]
    kept = posting.remember_posts(posts[:100], posts[100:], (Measured(posts[-1].key, 4, 9),), NOW)
    assert len(kept) == KEPT_POSTS
    assert (kept[0].key, kept[0].reactions, kept[0].views, kept[0].measured_at) == (posts[-1].key, 4, 9, NOW)
    assert posting.remember_posts(kept, kept[:3]) == kept


def test_posts_are_counted_by_the_day_of_the_clock():
    late = NOW.replace(hour=23, minute=59)
    posts = [Posted("a", "twitter", "x", late), Posted("b", "twitter", "x", NOW), Posted("c", "discord", "x", NOW)]
    assert posting.on_day(posts, NOW) == {"twitter": 2, "discord": 1}
    assert posting.on_day(posts, late + timedelta(minutes=1)) == {}
    doubt = {"d": record("unknown"), "f": record("failed", "401"), "y": record("unknown", age=timedelta(days=1))}
    assert posting.on_day(posts, NOW, doubt) == {"twitter": 3, "discord": 1}


def test_a_pause_counts_what_went_out_within_it_and_what_may_have():
    hour, posts = timedelta(hours=1), [Posted("a", "twitter", "x", NOW - timedelta(minutes=59))]
    doubt = {"d": replace(record("unknown", age=2 * hour), receipt=Receipt("d", "unknown", at=NOW))}
    assert posting.within(hour, posts, NOW) == {"twitter": 1}
    assert posting.within(hour, posts, NOW, doubt) == {"twitter": 2}
    assert posting.within(hour, posts, NOW + hour) == posting.within(timedelta(0), posts, NOW) == {}


def test_what_is_sent_after_midnight_counts_on_the_day_it_was_sent():
    late, sent = NOW.replace(hour=23, minute=59), NOW.replace(hour=0) + timedelta(days=1, minutes=5)
    post = posting.to_posted(EFFECT, Receipt("k1", "done", at=sent), "anomaly", late)
    assert post is not None
    assert (posting.on_day([post], late), posting.on_day([post], sent)) == ({}, {"twitter": 1})
    doubt = {"k1": replace(record("unknown"), at=late, receipt=Receipt("k1", "unknown", at=sent))}
    assert (posting.on_day([], late, doubt), posting.on_day([], sent, doubt)) == ({}, {"twitter": 1})


def test_a_network_that_wants_to_be_left_alone_is_waited_for_and_what_is_left_for_it_is_not_over():
    limited = record("failed", "later: X asks to wait 900 s")
    limited = replace(limited, receipt=replace(make_failure("k1", "later: X asks to wait 900 s"), at=NOW, wait=900))
    soon, then = NOW + timedelta(minutes=14), NOW + timedelta(minutes=15)
    assert [posting.may_send(limited, at) for at in (NOW, soon, then)] == [False, False, True]
    assert posting.is_left(limited, soon)
    found = finding(kind="anomaly", occurrence="w1")
    words = Wording(found.fingerprint, "w1", (POST,), ready=True)
    (effect,) = posting.effects_of(found, words)
    assert posting.fully_posted([found], [words], {effect.key: limited}, {}, soon) == ()


def test_news_that_waited_for_a_day_and_was_never_tried_is_over():
    old = replace(finding(kind="anomaly", occurrence="w1"), seen_at=NOW - timedelta(hours=24))
    words = Wording(old.fingerprint, "w1", (POST,), ready=True)
    at = store(wordings={(old.fingerprint, "w1"): words})
    ranked = RankedFinding((old.fingerprint,), "anomaly", 1.0, "because")
    assert draft_all([ranked], [old], at) == ()
    assert posting.fully_posted([old], [words], {}, {}, NOW) == (old,)
    young = replace(old, seen_at=NOW - timedelta(hours=23))
    (proposal,) = draft_all([ranked], [young], at)
    assert posting.fully_posted([young], [words], {}, {}, NOW) == ()
    begun = {proposal.effects[0].key: record("failed", "later: out of reach")}
    assert draft_all([ranked], [old], replace(at, records=begun))[0].effects == proposal.effects
