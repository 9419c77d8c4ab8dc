"""A repository's caretaker: the model proposes, code disposes.

`run` and `RalphLoop` and what they give are for other programs (docs/extending.md); they are imported when asked for,
so that commands which do not need them start without them.
"""

TYPE_CHECKING = False  # as typing has it, whose import costs more than the rest of `ralph agent task`
if TYPE_CHECKING:
    from ralph_mission.app.embedding import RalphLoop as RalphLoop
    from ralph_mission.app.embedding import RunHandle as RunHandle
    from ralph_mission.app.embedding import get_hat_prompt as get_hat_prompt
    from ralph_mission.app.embedding import run as run
    from ralph_mission.errors import UserError as UserError
    from ralph_mission.loop.model.spec import RunEvent as RunEvent
    from ralph_mission.loop.model.spec import RunResult as RunResult
    from ralph_mission.loop.model.state import Hat as Hat
    from ralph_mission.loop.model.state import HatOutput as HatOutput
    from ralph_mission.loop.model.state import LoopEvent as LoopEvent
    from ralph_mission.loop.model.state import ReviewIssue as ReviewIssue

__version__ = "1.0.0"
_PLACES = {
    "app.embedding": ("RalphLoop", "RunHandle", "get_hat_prompt", "run"),
    "errors": ("UserError",),
    "loop.model.spec": ("RunEvent", "RunResult"),
    "loop.model.state": ("Hat", "HatOutput", "LoopEvent", "ReviewIssue"),
}
__all__ = [
    "Hat", "HatOutput", "LoopEvent", "RalphLoop", "ReviewIssue", "RunEvent", "RunHandle", "RunResult", "UserError",
    "__version__", "get_hat_prompt", "run",
]  # fmt: skip  # one list


def __getattr__(name: str) -> object:
    place = next((place for place, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{place}"), name)
