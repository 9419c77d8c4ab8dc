"""Boxes of the dashboard: how they are written, who ticked which, and what a tick says where it belongs. Pure.

A box carries its order in a comment behind its words, with what it is bound to: the hash of the text or the commit that
was shown. A tick is a person's edit of the dashboard, and counts as if that person had said it in the thread, at that
time: `/ralph approve` with that hash, or an approving review of that commit. Whether they may is decided as for those.
A box whose order was obeyed is no longer offered, or is bound to something else: so a tick is obeyed once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission.model.cycle import MissionFacts
from ralph_mission.mission.model.forge import Actor, BodyVersion, Issue, Pull, Review, ThreadComment, Tick
from ralph_mission.values import compile_regex

_ORDER = r"[a-z]+ [\w.:-]+(?: [0-9a-f]+)?"
ORDER = compile_regex(_ORDER)
BOX = compile_regex(rf"^([ \t]*- \[)([ xX])(\] .*<!-- ralph:box ({_ORDER}) -->[ \t]*\r?)$", re.M)
COMMIT = compile_regex(r"[0-9a-f]{40,64}")
SAID = frozenset({"approve", "reject", "park", "retry"})
"""What is said in a thread; all else is about Ralph itself."""
ONCE = frozenset({"run", "pause"})
"""What is obeyed once, and then offered anew under the next number."""


def box(words: str, order: str) -> str:
    """A box to tick, as a line of a list. `order` is its verb, what it is about and what it is bound to.

    What memory alone can have made so, an order of another form, is none: it could hold another box.
    """
    return f"- [ ] {words} <!-- ralph:box {order} -->" if ORDER.fullmatch(order) else f"- {words}"


def find_boxes(page: str) -> frozenset[str]:
    """The orders that a page offers."""
    return frozenset(found[4] for found in BOX.finditer(page))


def find_ticked(page: str) -> frozenset[str]:
    """Those of them that are ticked."""
    return frozenset(found[4] for found in BOX.finditer(page) if found[2] != " ")


def tick(page: str, boxes: Collection[str]) -> str:
    """The page with these of its boxes ticked, and no others."""
    return BOX.sub(lambda found: f"{found[1]}{'x' if found[4] in boxes else ' '}{found[3]}", page)


def explain(page: str, why: Mapping[str, str]) -> str:
    """The page with these words behind those of a box, as one line of Markdown."""
    return BOX.sub(
        lambda found: found[0].replace(" <!--", f" ({why[found[4]]}) <!--") if found[4] in why else found[0], page
    )


def without_boxes(page: str) -> str:
    """The page for where nothing can be ticked."""
    return re.sub(r"\n{3,}", "\n\n", BOX.sub("", page).replace("\n\n\n", "\n\n"))


def attribute(page: str, versions: Iterable[BodyVersion], us: int) -> tuple[Tick, ...]:
    """What of a page's boxes people ticked, by all known versions of it.

    Only a person's own edit ticks or clears a box: a page of ours that crossed a tick takes nothing back, but what it
    offers no more is done with. A tick counts for its editor where everything else in the page is as we wrote it: who
    moved an order behind other words would have others say it. Of any other tick, and of a box that stands ticked
    after a gap in the history, nobody can tell who meant it. A page that history does not reach yet has no ticks yet.
    """
    ticks, ours = dict[str, Tick](), set[str]()
    before: frozenset[str] | None = None
    unclear: datetime | None = None
    for version in sorted(versions, key=lambda one: one.at):
        if version.text is None:
            before, unclear = None, version.at
            continue
        now, cleared = find_ticked(version.text), _cleared(version.text)
        if before is None:
            ticks |= {one: Tick(one, None, version.at) for one in now - ticks.keys()}
        elif version.editor.id != us:
            who = version.editor if cleared in ours else None
            ticks |= {one: Tick(one, who, version.at) for one in now - before}
            ticks = {one: told for one, told in ticks.items() if one in now or one not in before}
        if version.editor.id == us:
            ours.add(cleared)
            ticks = {one: told for one, told in ticks.items() if one in find_boxes(version.text)}
        before, unclear = now, None
    if unclear:
        ticks |= {one: Tick(one, None, unclear) for one in find_ticked(page) - ticks.keys()}
    return tuple(ticks[one] for one in sorted(ticks.keys() & find_boxes(page)))


def _cleared(page: str) -> str:
    return tick(page.replace("\r\n", "\n"), ()).rstrip()


def hear_in_issue(issue: Issue, ticks: Iterable[Tick]) -> Issue:
    """The issue with what was ticked for it, as if it had been said there."""
    said = tuple(_remark(one, one.actor) for one in _about(issue.number, ticks) if one.actor)
    return replace(issue, remarks=(*issue.remarks, *said)) if said else issue


def hear_in_pull(pull: Pull, ticks: Iterable[Tick]) -> Pull:
    """The same of a pull request; a yes is an approving review of the commit that was shown."""
    told = [(one, one.actor) for one in _about(pull.number, ticks) if one.actor]
    reviews = [Review(actor, "approved", "", _bound(one), one.at) for one, actor in told if _is_review(one)]
    said = [_remark(one, actor) for one, actor in told if not _is_review(one)]
    return replace(pull, reviews=(*pull.reviews, *reviews), remarks=(*pull.remarks, *said)) if told else pull


def is_untold(facts: MissionFacts, ticks: Iterable[Tick]) -> bool:
    """Whether a box of this mission is ticked, and nobody can tell by whom."""
    numbers = {thing.number for thing in (facts.issue, facts.pull) if thing}
    return any(one.actor is None and any(_about(number, (one,)) for number in numbers) for one in ticks)


def _about(number: int, ticks: Iterable[Tick]) -> list[Tick]:
    return [one for one in ticks if one.box.split(" ")[1] == str(number) and one.box.split(" ")[0] in SAID]


def _is_review(one: Tick) -> bool:
    return one.box.startswith("approve ") and COMMIT.fullmatch(_bound(one)) is not None


def _bound(one: Tick) -> str:
    return [*one.box.split(" "), ""][2]


def _remark(one: Tick, actor: Actor) -> ThreadComment:
    verb = one.box.split(" ")[0]
    text = f"/ralph {verb} {_bound(one)}".rstrip() if verb == "approve" else f"/ralph {verb}"
    return ThreadComment(0, actor, text, one.at, one.at)
