"""The stories of a task, written by planner sessions: until the list is one that a run can work through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.loop import playing, prd_lint, progress
from ralph_mission.loop.model import Hat, HatOutput, Prd, State
from ralph_mission.loop.order import Order, Preset
from ralph_mission.loop.ports import Ports
from ralph_mission.trouble import Trouble

Read = Callable[[], tuple[Prd | None, str]]
ATTEMPTS = 3
PLANNER = Hat(
    "planner",
    publishes=("plan.complete",),
    default_publishes="plan.complete",
    description="turns a task into user stories that each fit into one session",
    instructions="""\
Read the code that the task touches. Then write `prd.json` in the root of the work tree and nothing else:

    {"project": "NAME", "branchName": "ralph/SHORT-NAME", "description": "one sentence",
     "userStories": [{"id": "US-001", "title": "…", "description": "As a …, I want … so that …",
                      "acceptanceCriteria": ["…", "Typecheck passes"], "priority": 1, "passes": false, "notes": ""}]}

- A story is done in one session: what it does can be said in two or three sentences. Split what cannot.
- What others build on comes first: schema, then backend, then the user interface, then overviews. `priority` says so.
- A criterion can be checked: it names what is seen, returned or refused. Words such as "works well" do not count.
- Every story ends with "Typecheck passes"; one of the user interface also with "Verify in browser".""",
    write_allowed=("prd.json",),
)  # fmt: skip  # its text as it stands in the prompt


def order(objective: str, usual: Order) -> Order:
    """The order of a planning: the run's limits and model, no stories yet."""
    limits = replace(usual.limits, iterations=ATTEMPTS)
    return replace(usual, objective=objective, preset=Preset("plan", limits, "PLAN_COMPLETE"), persistent=False)


def plan(wanted: Order, ports: Ports, read: Read) -> tuple[Prd, tuple[HatOutput, ...]]:
    """The stories that a planner wrote, and its sessions. `read` gives what stands in the file now, and a complaint.

    Raises Trouble when three sessions wrote none that can be run, and when the checkout is taken.
    """
    with ports.desk.exclusive(wanted):
        state = ports.desk.open(wanted, ports.clock.now())
        outputs: list[HatOutput] = []
        wrong = ""
        for _ in range(ATTEMPTS):
            state, output = _session(wanted, state, ports)
            outputs.append(output)
            prd, complaint = read()
            wrong = complaint or found(prd)
            if prd and not wrong:
                return prd, tuple(outputs)
            told = filter(None, (state.feedback, f"The stories cannot be run:\n{wrong}"))
            state = replace(state, feedback="\n".join(told))
            if ports.desk.signal() or output.failure == "missing":
                break
        reason = outputs[-1].reason or wrong.splitlines()[0]
        what = f"no stories after {len(outputs)} sessions: {reason}"
        raise Trouble(what, "write them with ralph prd new, then ralph prd convert")


def found(prd: Prd | None) -> str:
    """What is wrong with the stories, one line each; "" when a run can work through them."""
    if prd is None or not prd.stories:
        return "prd.json is not there, or it holds no userStories"
    return "\n".join(f"- {finding.story or 'all'}: {finding.what}" for finding in prd_lint.lint(prd)[:20])


def _session(wanted: Order, state: State, ports: Ports) -> tuple[State, HatOutput]:
    board = ports.desk.board()
    ports.voice.session(wanted, state, PLANNER.name, board)
    output = playing.play(wanted, state, board, PLANNER, ports)
    state = progress.advance(wanted, state, output, state.elapsed + output.usage.seconds)
    ports.desk.keep(state, output)
    ports.voice.output(wanted, state, output)
    return state, output
