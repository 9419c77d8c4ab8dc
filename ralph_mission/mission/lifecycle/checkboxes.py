"""The boxes of the dashboard, and what a person orders by ticking one. Pure.

A box has its order in an HTML comment after its text, with the hash of the text or the commit that it was shown for. A
tick is a person's edit of the dashboard, and counts as that person's comment in the thread at that time: `/ralph
approve` with that hash, or an approving review of that commit. The same people are authorised. After its order was
obeyed, a box is removed or gets another hash, so a tick is obeyed once.
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
THREAD_ORDERS = frozenset({"approve", "reject", "park", "retry"})
"""Orders about a thread; all others are about Ralph itself."""
ONCE = frozenset({"run", "pause"})
"""Orders that are obeyed once, then offered again under the next number."""


def box(words: str, order: str) -> str:
    """A check box as a list item. `order` is its verb, subject and hash.

    An order of another form can only come from an edited memory file: it gets no box, since it could contain one.
    """
    return f"- [ ] {words} <!-- ralph:box {order} -->" if ORDER.fullmatch(order) else f"- {words}"


def find_boxes(page: str) -> frozenset[str]:
    """The orders of a page's boxes."""
    return frozenset(found[4] for found in BOX.finditer(page))


def find_ticked(page: str) -> frozenset[str]:
    """The orders of a page's ticked boxes."""
    return frozenset(found[4] for found in BOX.finditer(page) if found[2] != " ")


def tick(page: str, boxes: Collection[str]) -> str:
    """The page with exactly these boxes ticked."""
    return BOX.sub(lambda found: f"{found[1]}{'x' if found[4] in boxes else ' '}{found[3]}", page)


def explain(page: str, why: Mapping[str, str]) -> str:
    """The page with an explanation after the text of each of these boxes."""
    return BOX.sub(
        lambda found: found[0].replace(" <!--", f" ({why[found[4]]}) <!--") if found[4] in why else found[0], page
    )


def without_boxes(page: str) -> str:
    """The page without boxes, for places where nothing can be ticked."""
    return re.sub(r"\n{3,}", "\n\n", BOX.sub("", page).replace("\n\n\n", "\n\n"))


def attribute(page: str, versions: Iterable[BodyVersion], us: int) -> tuple[Tick, ...]:
    """The ticked boxes of a page with their editors, from its edit history.

    Only a person's edit ticks or clears a box: our own update that crossed a tick clears nothing, but a box that it
    removed is gone. A tick counts for its editor only if the rest of the page is as we wrote it: otherwise somebody
    could move an order to another text and have others tick it. Other ticks, and ticks after a gap in the history, have
    no known actor. A version that is not in the history yet has no ticks yet.
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
            ticks = {one: entry for one, entry in ticks.items() if one in now or one not in before}
        if version.editor.id == us:
            ours.add(cleared)
            ticks = {one: entry for one, entry in ticks.items() if one in find_boxes(version.text)}
        before, unclear = now, None
    if unclear:
        ticks |= {one: Tick(one, None, unclear) for one in find_ticked(page) - ticks.keys()}
    return tuple(ticks[one] for one in sorted(ticks.keys() & find_boxes(page)))


def _cleared(page: str) -> str:
    return tick(page.replace("\r\n", "\n"), ()).rstrip()


def hear_in_issue(issue: Issue, ticks: Iterable[Tick]) -> Issue:
    """The issue with its ticks as comments."""
    comments = tuple(_remark(one, one.actor) for one in _about(issue.number, ticks) if one.actor)
    return replace(issue, remarks=(*issue.remarks, *comments)) if comments else issue


def hear_in_pull(pull: Pull, ticks: Iterable[Tick]) -> Pull:
    """The pull request with its ticks as comments; an approval is a review of the commit that was shown."""
    by_actor = [(one, one.actor) for one in _about(pull.number, ticks) if one.actor]
    reviews = [Review(actor, "approved", "", _bound(one), one.at) for one, actor in by_actor if _is_review(one)]
    comments = [_remark(one, actor) for one, actor in by_actor if not _is_review(one)]
    return replace(pull, reviews=(*pull.reviews, *reviews), remarks=(*pull.remarks, *comments)) if by_actor else pull


def is_untold(facts: MissionFacts, ticks: Iterable[Tick]) -> bool:
    """Whether a box of this mission is ticked by an unknown actor."""
    numbers = {thing.number for thing in (facts.issue, facts.pull) if thing}
    return any(one.actor is None and any(_about(number, (one,)) for number in numbers) for one in ticks)


def _about(number: int, ticks: Iterable[Tick]) -> list[Tick]:
    return [one for one in ticks if one.box.split(" ")[1] == str(number) and one.box.split(" ")[0] in THREAD_ORDERS]


def _is_review(one: Tick) -> bool:
    return one.box.startswith("approve ") and COMMIT.fullmatch(_bound(one)) is not None


def _bound(one: Tick) -> str:
    return [*one.box.split(" "), ""][2]


def _remark(one: Tick, actor: Actor) -> ThreadComment:
    verb = one.box.split(" ")[0]
    text = f"/ralph {verb} {_bound(one)}".rstrip() if verb == "approve" else f"/ralph {verb}"
    return ThreadComment(0, actor, text, one.at, one.at)
