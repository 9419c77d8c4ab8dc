"""The world around the runners: what it answers, and everything that may happen next in a state of it.

A step of a runner is all its reads up to its next write (or each read for itself, where the world is `fine`), or one
write. Between two steps another runner may take its own, people may do what they like, and any runner may die.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.errors import Lost, Missing, UserError
from ralph_mission.mission.model.ledger import OpenState
from tests.protocol import model_effects
from tests.protocol.moves import MOVES
from tests.protocol.ports import Setting
from tests.protocol.register import History
from tests.protocol.runner import Ask, End, Moment, Runner, Said
from tests.protocol.server import Server

NO_ANSWER = UserError("no answer", "try again", who="network")


@dataclass(frozen=True)
class Config:
    """How large a world is searched: how many runners, and how often each thing may happen at most."""

    name: str
    setting: Setting
    runners: int = 2
    cycles: int = 2
    crashes: int = 0
    doubts: int = 0  # answers that get lost, of what was done and of what was not
    late: int = 0  # times that lists do not show what was just made
    moves: tuple[str, ...] = ()  # what people do, each once at most
    fine: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """Everything at one moment. `server` is a number of `World.servers`, `head` an id of its history.

    `grace`: effects that each runner may still send after a stop, which is the one it was at; None: nothing stops.
    """

    server: int = 0
    head: str = ""
    runners: tuple[Moment | None, ...] = ()
    began: int = 0
    crashes: int = 0
    doubts: int = 0
    late: int = 0
    moved: tuple[str, ...] = ()
    killed: bool = False
    grace: tuple[int, ...] | None = None

    @property
    def idle(self) -> bool:
        return not any(self.runners)


@dataclass(frozen=True)
class Sent:
    """An effect that reaches the server, for the laws to look at."""

    runner: int
    holder: str
    ask: Ask


@dataclass(frozen=True)
class Step:
    """One thing that happens: in words, what comes of it, and the effect that was sent or the commit that was made."""

    told: str
    after: State
    sent: Sent | None = None
    committed: bool = False


@dataclass
class World:
    """One configuration, with all servers and commits it ever came to."""

    config: Config
    history: History = field(default_factory=History)
    servers: list[Server] = field(default_factory=list)
    numbers: dict[Server, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runner = Runner(self.config.setting, self.history)
        self.number(Server())

    def number(self, server: Server) -> int:
        """The number of a server."""
        if server not in self.numbers:
            self.numbers[server] = len(self.servers)
            self.servers.append(server)
        return self.numbers[server]

    @property
    def start(self) -> State:
        return State(runners=(None,) * self.config.runners)

    def server(self, state: State) -> Server:
        return self.servers[state.server]

    def open_state(self, state: State) -> OpenState:
        """What memory says is open."""
        return self.history.commits[state.head].state if state.head else OpenState()

    # --- what happens next

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that may happen."""
        for index, moment in enumerate(state.runners):
            if moment is None:
                yield from self._begins(state, index)
            else:
                yield from self._goes_on(state, index, moment)
        for name in self.config.moves:
            if name not in state.moved and (after := MOVES[name](self, state)):
                yield Step(f"a person: {name}", replace(after, moved=tuple(sorted((*state.moved, name)))))
        if self.server(state).hidden:
            shown = self.number(replace(self.server(state), hidden=frozenset()))
            yield Step("lists show everything", replace(state, server=shown))

    def _begins(self, state: State, index: int) -> Iterable[Step]:
        if state.began == self.config.cycles:
            return
        moment = self.runner.begin(f"run-{state.began}")
        grace = _put(state.grace, index, 0) if state.grace is not None else None
        began = _at(replace(state, began=state.began + 1, grace=grace), index, moment)
        yield from self._reads(began, index, moment, "begins and ")

    def _goes_on(self, state: State, index: int, moment: Moment) -> Iterable[Step]:
        ask = self.runner.next_of(moment)
        if isinstance(ask, Ask) and ask.writes:
            yield from self._writes(state, index, moment, ask)
        else:
            yield from self._reads(state, index, moment)
        if moment.told and state.crashes < self.config.crashes:
            died = replace(state, crashes=state.crashes + 1)
            yield Step(f"{moment.holder} dies before: {ask}", _at(died, index, None))

    def _reads(self, state: State, index: int, moment: Moment, words: str = "") -> Iterable[Step]:
        there = self.runner.at_next(moment, self._live(state))
        if isinstance(there.next, End):
            yield Step(f"{moment.holder} {words}ends: {there.next.outcome}", _at(state, index, None))
        else:
            yield Step(f"{moment.holder} {words}reads, up to: {there.next}", _at(state, index, there))

    def _live(self, state: State):
        """Answers reads; where the world is fine, only the next one."""
        left = [1 if self.config.fine else -1]

        def live(ask: Ask) -> Said | None:
            if ask.writes or not left[0]:
                return None
            left[0] -= 1
            return self.answer(state, ask)

        return live

    def _writes(self, state: State, index: int, moment: Moment, ask: Ask) -> Iterable[Step]:
        told = f"{moment.holder}: {ask}"
        to = partial(self._told, index, moment)
        if ask.name == "show_dashboard":
            server = replace(self.server(state), anchor=ask.arguments[0])
            yield Step(told, to(replace(state, server=self.number(server)), Said()))
        elif ask.name == "commit":
            yield from self._commits(state, ask, told, to)
        else:
            yield from self._sends(state, index, moment, ask, told, to)

    def _told(self, index: int, moment: Moment, state: State, said: Said) -> State:
        return _at(state, index, moment.after(said))

    def _commits(self, state: State, ask: Ask, told: str, to) -> Iterable[Step]:
        try:
            new = self.history.advance(state.head, *ask.arguments)
        except (Lost, UserError) as no:
            yield Step(f"{told}: {type(no).__name__}", to(state, Said(error=no)))
            return
        moved = replace(state, head=new.oid)
        yield Step(told, to(moved, Said(new)), committed=True)
        if state.doubts < self.config.doubts:
            doubts, lost = state.doubts + 1, Said(error=NO_ANSWER)
            yield Step(f"{told}, and its answer is lost", to(replace(moved, doubts=doubts), lost), committed=True)
            yield Step(f"{told} is lost", to(replace(state, doubts=doubts), lost))

    def _sends(self, state: State, index: int, moment: Moment, ask: Ask, told: str, to) -> Iterable[Step]:
        sent = Sent(index, moment.holder, ask)
        before = self.server(state)
        state = replace(state, grace=_put(state.grace, index, state.grace[index] - 1) if state.grace else None)
        try:
            server, receipt = model_effects.do(ask.arguments[0], before)
        except (ForgeRefused, Missing) as no:
            yield Step(f"{told}: {no}", to(state, Said(error=no)), sent)
            return
        done = replace(state, server=self.number(server))
        yield Step(told, to(done, Said(receipt)), sent)
        if state.doubts < self.config.doubts:
            doubts = state.doubts + 1
            yield Step(f"{told}, and its answer is lost", to(replace(done, doubts=doubts), Said()), sent)
            yield Step(f"{told} is lost", to(replace(state, doubts=doubts), Said()), sent)
        if (made := _made(before, server)) and state.late < self.config.late:
            hidden = self.number(replace(server, hidden=server.hidden | made))
            late = replace(done, server=hidden, late=state.late + 1)
            yield Step(f"{told}, not listed yet", to(late, Said(receipt)), sent)
            if state.doubts < self.config.doubts:
                lost = replace(late, doubts=state.doubts + 1)
                yield Step(f"{told}, not listed yet, and its answer is lost", to(lost, Said()), sent)

    # --- what it answers

    def answer(self, state: State, ask: Ask) -> Said:
        """What a runner is told that only asks."""
        try:
            return Said(self._answered(state, ask.name, ask.arguments))
        except (ForgeRefused, UserError) as no:
            return Said(error=no)

    def _answered(self, state: State, name: str, arguments: tuple):
        server = self.server(state)
        match name:
            case "recall":
                return self.history.recall(state.head)
            case "paused":
                return bool(state.head) and self.history.commits[state.head].memory.header.paused
            case "switch":
                return state.killed
            case "proven_dead":
                return not any(moment and moment.holder == arguments[0] for moment in state.runners)
            case "issues" | "pulls":
                return server.listed(getattr(server, name), *arguments)
            case "issue" | "pull" | "branch":
                return getattr(server, name)(*arguments)
            case "default_branch":
                return server.default
            case "anchor":
                return server.anchor
            case "has_our_work":
                return bool(server.keys)
            case "find":
                return model_effects.found(arguments[0], server)
            case "find_unlisted":
                return model_effects.found(arguments[0], replace(server, hidden=frozenset()))
        raise model_effects.NotModelled(f"the model does not know {name}")


def _at(state: State, index: int, moment: Moment | None) -> State:
    return replace(state, runners=_put(state.runners, index, moment))


def _put(values: tuple, index: int, value) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


def _made(before: Server, after: Server) -> frozenset[int]:
    """The numbers of threads and remarks that came to be."""
    return _numbers(after) - _numbers(before)


def _numbers(server: Server) -> frozenset[int]:
    threads = (*server.issues, *server.pulls)
    return frozenset(t.number for t in threads) | {r.id for t in threads for r in t.remarks}
