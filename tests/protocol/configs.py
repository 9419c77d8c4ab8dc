"""The worlds that are searched: small ones always, larger ones by `make crash`."""

from __future__ import annotations

from ralph_mission.mission.model.cycle import CycleSettings
from ralph_mission.mission.model.mission import Limits
from tests.protocol.ports import Setting
from tests.protocol.world import Config

FIX = Setting(CycleSettings())  # a branch and a pull request, which are found again by name
QUESTION = Setting(CycleSettings(), spelling=0, bugs=1)  # an issue, which is found again by its marker alone
BOTH = Setting(CycleSettings(), bugs=1)
ASKED = Setting(CycleSettings(limits=Limits(auto_prs_per_cycle=0)))  # a person is asked about every change
FIVE = Setting(CycleSettings(), spelling=0, bugs=5)  # one more than a week has room for
LISTED = Setting(CycleSettings(), spelling=0, todos=2)
HERE = Setting(CycleSettings(), spelling=0, todos=2, lists_at_once=True)  # one clone on one machine

SMALL = {
    one.name: one
    for one in (
        Config("a fix, one death, two runners", FIX, crashes=1),
        Config("a fix, lists are late", FIX, runners=1, crashes=1, late=1),
        Config("a fix, answers get lost", FIX, runners=1, doubts=1),
        Config("a question, lists are late", QUESTION, runners=1, crashes=1, late=1),
        Config("a question, answers get lost", QUESTION, runners=1, doubts=1, late=1),
        Config("a list here, two deaths", HERE, runners=1, crashes=2),
        Config("a fix, every read for itself", FIX, fine=True),
        Config(
            "a fix, a death and a push of a person's",
            FIX,
            runners=1,
            cycles=1,
            crashes=1,
            moves=("pushes to the branch",),
        ),
        Config("a fix, two deaths", FIX, cycles=3, crashes=2),
        Config("a person merges", FIX, runners=1, cycles=3, crashes=1, moves=("approves the pull", "merges the pull")),
        Config("a fix, a stop", FIX, runners=1, crashes=1, moves=("throws the kill switch",)),
    )
}
"""Each in seconds at most."""

LARGE = {
    one.name: one
    for one in (
        Config("a fix, everything goes wrong", FIX, crashes=1, doubts=1, late=1),
        Config("a fix, three runners", FIX, runners=3, cycles=3, crashes=1),
        Config("a fix, every read and a death", FIX, crashes=1, fine=True),
        Config("a fix is approved", FIX, cycles=3, crashes=1, moves=("approves the pull",)),
        Config(
            "an approval is taken back",
            FIX,
            runners=1,
            cycles=3,
            crashes=1,
            doubts=1,
            moves=("approves the pull", "takes the approval back"),
        ),
        Config("a person closes", FIX, runners=1, cycles=3, crashes=1, moves=("closes the pull", "closes the issue")),
        Config(
            "a person pushes", FIX, runners=1, cycles=3, crashes=1, moves=("approves the pull", "pushes to the branch")
        ),
        Config(
            "the kill switch, two runners",
            FIX,
            crashes=1,
            moves=("throws the kill switch", "takes the kill switch back"),
        ),
        Config("memory is paused", FIX, crashes=1, moves=("pauses", "resumes")),
        Config("a yes", ASKED, runners=1, cycles=3, crashes=1, doubts=1, late=1, moves=("says yes",)),
        Config("a yes and a no", ASKED, cycles=3, crashes=1, moves=("says yes", "says no")),
        Config("five questions, room for four", FIVE, runners=1, cycles=6, crashes=1),
        Config("five questions, two runners", FIVE, cycles=5, crashes=1),
        Config("a list, everything goes wrong", LISTED, crashes=1, doubts=1, late=1),
    )
}
"""Each in minutes at most."""
