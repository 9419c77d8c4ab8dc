"""Errors that name who must act and what to do next. Anything else that is raised is our bug."""

from __future__ import annotations

INTERRUPTED = 130  # the exit code of what a person stopped: 128 + SIGINT, as shells report it


class UserError(Exception):
    """Something a person can fix. `who` is you, forge, network or bug; never a traceback."""

    def __init__(self, what: str, next_step: str, who: str = "you", usage: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
        self.who = who
        self.exit_code = 2 if usage else 1


class Unset(UserError):
    """The environment says nothing of a source or network: it is not set up, which is no fault of its settings."""


class Missing(UserError):
    """The forge answered, and there certainly is no such thing: it was deleted, moved away, or never there."""


class Damaged(UserError):
    """Something that ralph itself wrote there cannot be read any more; `memory recover` goes on without it."""


class Stopped(KeyboardInterrupt):
    """Somebody asked it to stop, from another terminal: `ralph stop`."""


class Lost(Exception):
    """Another runner's claim got there first. Not an error: leave quietly."""
