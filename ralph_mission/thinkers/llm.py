"""A model that ranks and describes. It orders what rules found; whatever keeps it from answering, rules answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ralph_mission.mission import coding
from ralph_mission.mission.model import Finding, Usage
from ralph_mission.mission.opinion import apply_model_rankings
from ralph_mission.mission.ports import Brief, Plan, Thinker
from ralph_mission.mission.spending import spent_today
from ralph_mission.safety.secrets import find_secrets, redact
from ralph_mission.thinkers import briefing, remembered
from ralph_mission.thinkers.answer import ModelAnswer, opinions, wrong
from ralph_mission.thinkers.asking import Ask, Bill, ModelQuestion, Reply
from ralph_mission.thinkers.kept import KeptReply, load, save
from ralph_mission.thinkers.remembered import Remembered
from ralph_mission.thinkers.settings import ThinkerSettings

NAME = re.compile(r"[0-9a-f]{8,64}")
STAGED = "a staged cycle asks no model"


@dataclass(frozen=True, slots=True)
class LlmThinker:
    """`ask` None: nothing may be asked, what is remembered still counts. `nonce` gives what nobody could know.

    `folder` is where replies are kept until memory has them; None keeps nothing.
    """

    settings: ThinkerSettings
    rules: Thinker
    ask: Ask | None
    bill: Bill
    nonce: Callable[[], str]
    secrets: tuple[str, ...] = field(default=(), repr=False)
    folder: Path | None = None

    def think(self, brief: Brief) -> Plan:
        """The rules' ranking, rearranged by the model where it may be asked and answers well."""
        plan = self.rules.think(brief)
        chosen = _best(plan, brief.findings, self.settings.max_findings)
        if not chosen:
            return plan
        booked = remembered.read(brief).paid
        kept = load(self.folder, brief.memory.header, booked)
        made, paid = self._thought(plan, brief, chosen, kept)
        return _book_earlier(made, kept, brief, paid)

    def _thought(self, plan: Plan, brief: Brief, chosen: Sequence[Finding], kept: KeptReply) -> tuple[Plan, str]:
        """The plan, and what is to be remembered, of this time alone; and the name of money that waits, "" for none."""
        before, basis = remembered.read(brief, kept.cursor), remembered.basis_of(brief, self.settings.model)
        former = _apply_answer(plan, before.answer, brief.findings, self.secrets)
        if before.covers(basis, chosen):
            return former, kept.paid
        question = self._question(brief, chosen)
        if reason := self._may_not(question, brief, kept.usd):
            return replace(former, remark=_instead(reason)), kept.paid
        assert self.ask is not None
        reply = self.ask(question)
        made = self._concluded(plan, former, reply, question, _Asked(basis, chosen, brief.findings))
        after = kept.spent_more(made.usage.cost_usd, made.cursor, remembered.payment(brief, self.nonce()))
        save(self.folder, after)
        return made, after.paid

    def _question(self, brief: Brief, chosen: Sequence[Finding]) -> ModelQuestion:
        text = briefing.render_brief(brief, chosen, self.settings.max_memory_chars, self.nonce(), self.secrets)
        return ModelQuestion(
            briefing.ORDER, text, {finding.fingerprint: briefing.kind_of(finding) for finding in chosen}
        )

    def _may_not(self, question: ModelQuestion, brief: Brief, unbooked: float) -> str:
        """Why nothing is asked, "" when something may be."""
        if self.ask is None:
            return STAGED
        today = spent_today(brief.memory.header, brief.now) + unbooked
        left = coding.purse(brief.limits, unbooked, today, 0.0).usd
        most = self.bill.most(question) * self.settings.tries
        if most <= min(left, self.settings.usd):
            return ""
        told = "" if self.bill.known else " (no price is known for it: set cost.prices in ralph.yml)"
        if most > left:
            return f"it may cost ${most:.2f}{told} and ${left:.2f} are left of this cycle's and today's money"
        return f"it may cost ${most:.2f}{told}, and thinker.usd in ralph.yml allows ${self.settings.usd:.2f}"

    def _concluded(self, plan: Plan, former: Plan, reply: Reply, question: ModelQuestion, asked: _Asked) -> Plan:
        usage = self.bill.usage(reply, question)
        careful = self._careful(reply, usage)
        if reply.answer is None:
            remark = "; ".join(filter(None, (_instead(reply.trouble), careful)))
            cursor = asked.cursor(ModelAnswer(ranking=())) if reply.final else ""
            return replace(former, usage=usage, remark=remark, cursor=cursor)
        used = _apply_answer(plan, reply.answer, asked.findings, self.secrets)
        return replace(used, usage=usage, remark=careful, cursor=asked.cursor(reply.answer, self.secrets))

    def _careful(self, reply: Reply, usage: Usage) -> str:
        """What is said of money that is only assumed."""
        if reply.doubtful and usage.cost_usd:
            return f"nobody knows what it cost, so ${usage.cost_usd:.2f} count as spent"
        if reply.requests and not self.bill.known:
            unknown = f"no price is known for {self.settings.model}: set cost.prices in ralph.yml"
            return f"{unknown}; ${usage.cost_usd:.2f} count as spent"
        return ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked: on which basis, about which findings, of which there are."""

    basis: str
    chosen: Sequence[Finding]
    findings: Sequence[Finding]

    def cursor(self, answer: ModelAnswer, secrets: tuple[str, ...] = ()) -> str:
        """This and its answer, as memory keeps it: without its words where they hold a secret, which memory refuses."""
        asked = tuple(sorted({remembered.identity(finding) for finding in self.chosen}))
        whole = Remembered(basis=self.basis, asked=asked, answer=answer)
        return whole.without_words().written() if find_secrets(whole.written(), secrets) else whole.written()


def _book_earlier(made: Plan, kept: KeptReply, brief: Brief, paid: str) -> Plan:
    """With what an earlier run spent and could not write down, what came of it, and the name under which it is booked.

    Memory takes money and name at once, so that nothing is booked twice or never.
    """
    usage = replace(made.usage, cost_usd=round(made.usage.cost_usd + kept.usd, 6))
    cursor = made.cursor or kept.cursor
    if paid:
        cursor = remembered.read(brief, cursor).with_paid(remembered.read(brief).paid, paid).written()
    return replace(made, usage=usage, cursor=cursor)


def _best(plan: Plan, findings: Sequence[Finding], most: int) -> tuple[Finding, ...]:
    """The findings that rules would begin with; one that memory gave no name of ours is for rules alone."""
    by_fingerprint = {finding.fingerprint: finding for finding in findings}
    order = dict.fromkeys(member for thought in plan.thoughts for member in thought.members)
    return tuple(by_fingerprint[member] for member in order if NAME.fullmatch(member))[:most]


def _apply_answer(plan: Plan, answer: ModelAnswer, findings: Sequence[Finding], secrets: tuple[str, ...]) -> Plan:
    """The plan in the order of an answer, as far as it is about what is there now.

    A secret goes out of its words before they stand beside the rules' own reason, which would be withheld with it.
    """
    kinds = {finding.fingerprint: briefing.kind_of(finding) for finding in findings}
    known = ModelAnswer(ranking=tuple(one for one in answer.ranking if kinds.get(one.fingerprint) == one.kind))
    if not known.ranking or wrong(known, kinds):
        return plan
    calm = (replace(opinion, why=redact(opinion.why, secrets)) for opinion in opinions(known))
    return replace(plan, thoughts=apply_model_rankings(plan.thoughts, calm))


def _instead(reason: str) -> str:
    return f"ranked by rules, not by the model: {reason}"
