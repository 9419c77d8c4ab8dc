"""A definite no: nothing was done, and why. The bot gets it as a failed receipt, a person as Trouble."""

from __future__ import annotations


class ForgeRefused(Exception):
    """`what` is a rule's id or a line for people; `mend` says what would help, "" where nothing does."""

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(f"{what}: {mend}" if mend else what)
        self.what, self.mend = what, mend
