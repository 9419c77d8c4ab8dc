"""A repository's caretaker: the model proposes, code disposes.

`RalphLoop`, `Hat`, `HatOutput` and `get_hat_prompt` are for other programs (docs/hats.md); they are imported when asked
for, so that commands which do not need them start without them.
"""

TYPE_CHECKING = False  # as typing has it, whose import costs more than the rest of `ralph task`
if TYPE_CHECKING:
    from ralph_mission.app.embedding import RalphLoop as RalphLoop
    from ralph_mission.app.embedding import get_hat_prompt as get_hat_prompt
    from ralph_mission.loop.model.state import Hat as Hat
    from ralph_mission.loop.model.state import HatOutput as HatOutput

__version__ = "0.1.0"
__all__ = ["Hat", "HatOutput", "RalphLoop", "__version__", "get_hat_prompt"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ralph_mission.app import embedding

    return getattr(embedding, name)
