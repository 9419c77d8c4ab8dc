"""What can be configured: frozen models, a default and a description for every key.

Limits may be tightened: the defaults of `model.mission.Limits` are the ceilings, unless an owner says otherwise.
Secrets of networks and of the chat stand in the environment alone.

The modules of settings do without `from __future__ import annotations`: pydantic would compile every annotation again
at each start.
"""

import re
from datetime import time, timedelta
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from ralph_mission.config.database import DatabaseSettings as Database
from ralph_mission.config.fields import OLD_LIMIT, Duration, SettingsSection, Slug, at_most
from ralph_mission.config.loop import (
    Cli,
    CoderSettings,
    Completion,
    Core,
    Cost,
    EventLoop,
    HatKeys,
    LoopSettings,
    MemoryKeys,
    WorkSettings,
)
from ralph_mission.config.loop import ThinkerSettings as Thinker
from ralph_mission.config.observers import BriefSettings as Briefs
from ralph_mission.config.observers import CiSettings as Ci
from ralph_mission.config.observers import CodeSettings as Code
from ralph_mission.config.observers import CommandSettings as Command
from ralph_mission.config.observers import DependencySettings as Dependencies
from ralph_mission.config.observers import DocsSettings as Docs
from ralph_mission.config.observers import ExploreSettings as Explore
from ralph_mission.config.observers import ForgeSettings as ForgeWatch
from ralph_mission.config.observers import ReleaseSettings as Releases
from ralph_mission.config.observers import ScannerSettings as Scanners
from ralph_mission.config.observers import SocialSettings as Social
from ralph_mission.config.observers import WebSettings as Web
from ralph_mission.config.shared import pinned
from ralph_mission.mission.memory import ARCHIVE, DASHBOARD, JOURNAL, LEDGER
from ralph_mission.mission.model.ledger import Rhythm
from ralph_mission.mission.model.mission import Limits
from ralph_mission.safety.front_matter import Path

NETWORKS = ("twitter", "telegram", "discord", "outbox")
"""The order in which a post goes out."""
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
CEILING = Limits()
Named = TypeVar("Named", Command, Web)
GONE_WAKE = "environment"
PATIENCE = timedelta(minutes=5)
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=366)


def _hours(interval: str) -> str:
    hours = r"([01]\d|2[0-3]):[0-5]\d"
    if not re.fullmatch(f"{hours}-{hours}", interval) or interval[:5] == interval[6:]:
        raise ValueError("two times of the day in UTC, such as 22:00-07:00")
    return interval


def _below(path: str) -> str:
    place = PurePosixPath(path)
    if not place.parts or place.is_absolute() or ".." in place.parts or ".git" in place.parts or "\\" in path:
        raise ValueError("a folder of the repository, such as .ralph/outbox")
    return path


def _sound(templates: dict[str, str]) -> dict[str, str]:
    if templates:
        from ralph_mission.mission.publishing.templates import check  # takes a while to load

        for name, source in templates.items():
            check(name, source)
    return templates


Template = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class TwitterSettings(SettingsSection):
    """X. It needs `TWITTER_API_KEY`, `_API_SECRET`, `_ACCESS_TOKEN` and `_ACCESS_TOKEN_SECRET`."""


class TelegramSettings(SettingsSection):
    """A channel or a group of Telegram. It needs `TELEGRAM_BOT_TOKEN` and `TELEGRAM_CHANNEL_ID`."""


class DiscordSettings(SettingsSection):
    """A channel of Discord. It needs `DISCORD_WEBHOOK_URL`."""


class OutboxSettings(SettingsSection):
    """A folder of files for a person to send."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_below)] = Field(
        ".ralph/outbox", description="The folder, inside the repository; git ignores it."
    )


class Publishers(SettingsSection):
    """Where, what and when to post."""

    twitter: TwitterSettings | None = Field(None, description="X; `{}` enables it.")
    telegram: TelegramSettings | None = Field(None, description="Telegram; `{}` enables it.")
    discord: DiscordSettings | None = Field(None, description="Discord; `{}` enables it.")
    outbox: OutboxSettings | None = Field(None, description="Files for a person to send; used if no network is.")
    templates: Annotated[dict[Slug, Template], AfterValidator(_sound)] = Field(
        {}, description="By kind of finding or watch: a Jinja2 template, posted at once."
    )
    announce: tuple[Slug, ...] = Field((), description="Kinds of missions that are announced when merged.")
    quiet_hours: Annotated[str, AfterValidator(_hours)] | None = Field(
        None, description="Hours (UTC) without posts, such as 22:00-07:00."
    )
    per_day: Annotated[int, Field(strict=True, ge=0, le=CEILING.posts_per_day)] = Field(
        CEILING.posts_per_day, description="Posts per network and day; the default is the ceiling."
    )
    pause: Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,2}[mhd]$")] | None = Field(
        None, description="Shortest time between two posts on one network."
    )
    charts: bool = Field(True, description="Whether posts get a chart if their watch has the values.")

    @property
    def apart(self) -> timedelta:
        """The minimum time between two posts on one network."""
        return int(self.pause[:-1]) * _UNITS[self.pause[-1]] if self.pause else timedelta(0)

    @property
    def quiet(self) -> tuple[time, time] | None:
        """The hours without posts, in UTC."""
        if self.quiet_hours is None:
            return None
        start, end = (time.fromisoformat(one) for one in self.quiet_hours.split("-"))
        return start, end


ChatId = Annotated[int, Field(strict=True, ge=-(2**53), le=2**53)]
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]


class TelegramControl(SettingsSection):
    """The chat as a control plane. The bot's token is TELEGRAM_BOT_TOKEN of the environment, and nowhere else."""

    chats: tuple[ChatId, ...] = Field(
        (), description="Ids of chats that may give commands; a private one is a person's."
    )
    users: tuple[ChatId, ...] = Field((), description="Ids of people who may give them, in private and in `chats`.")
    timeout_seconds: Seconds = Field(600, description="How long an agent's question waits.")
    checkin_interval_seconds: ClassVar[int] = 300
    """How often `ralph agent telegram` reports how a loop is doing."""


def _sensible(value: timedelta) -> timedelta:
    if not SHORTEST <= value <= LONGEST:
        raise ValueError(f"choose a duration between 1m and {LONGEST.days}d")
    return value


def _memory_path(path: str) -> str:
    strange = {"", ".", "..", ".git"} & set(path.split("/"))
    if strange or not re.fullmatch(r"[A-Za-z0-9._/-]{1,200}\.md", path):
        raise ValueError("write a relative path that ends in .md, such as memory/ralph-log.md")
    if path == DASHBOARD or path.startswith((f"{ARCHIVE}/", f"{JOURNAL}/", f"{LEDGER}/")):
        raise ValueError("ralph keeps something else there; the usual place is memory/ralph-log.md")
    return path


def _memory_branch(name: str) -> str:
    if name == "HEAD" or name == "ralph" or name.startswith("ralph/"):
        raise ValueError("ralph's changes are proposed on branches like that; the usual one is ralph-memory")
    return name


def _distinct(named: tuple[Named, ...]) -> tuple[Named, ...]:
    if len({one.name for one in named}) < len(named):
        raise ValueError("give each one a name of its own")
    return named


def _known_wake(value: object) -> object:
    """Older versions' values still load; `reading` warns about them."""
    return "auto" if value == GONE_WAKE else value


Pause = Annotated[Duration, AfterValidator(_sensible)]
"""A duration that a cycle can wait."""

Login = Annotated[str, StringConstraints(pattern=r"^[^\s@,]{1,64}$")]
BranchName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9_-]+)*$", max_length=100)]
Count = Annotated[int, Field(strict=True)]
Money = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Schedule(SettingsSection):
    """How soon to look again, by urgency, and what does the waking."""

    low: Pause = Field(Rhythm().low, description="Nothing new.")
    medium: Pause = Field(Rhythm().medium, description="An opportunity or an anomaly.")
    high: Pause = Field(Rhythm().high, description="A bug, an error or a vulnerability.")
    wake: Annotated[Literal["auto", "timer", "heartbeat"], BeforeValidator(_known_wake)] = Field(
        "auto",
        description="What wakes the next cycle; auto: the best that is set up.",
    )
    review: Annotated[Literal["auto", "always", "never"], OLD_LIMIT] = "auto"
    """never: no dispatch wakes the review of our pull requests."""

    def rhythm(self) -> Rhythm:
        """The pauses for `mission.memory.schedule`."""
        return Rhythm(self.low, self.medium, self.high)


def _within_ceiling(value: float, info: ValidationInfo) -> float:
    ceiling = getattr(CEILING, info.field_name or "")
    if value > ceiling and not info.data.get("above_ceilings"):
        raise PydanticCustomError("less_than_equal", "less than or equal to {le}", {"le": ceiling})
    return value


Bounded = Annotated[Count, AfterValidator(_within_ceiling)]
BoundedMoney = Annotated[Money, AfterValidator(_within_ceiling)]


class Ceilings(SettingsSection):
    """What a cycle may do at most, and when. The defaults are the ceilings, which only `above_ceilings` lifts."""

    above_ceilings: Annotated[bool, Field(strict=True)] = Field(
        False, description="true: the limits may exceed their ceilings."
    )
    active_missions: Bounded = Field(CEILING.active_missions, ge=1, description="Missions at a time.")
    actions_per_cycle: Bounded = Field(CEILING.actions_per_cycle, ge=1, description="Actions in one cycle.")
    auto_prs_per_cycle: Bounded = Field(
        CEILING.auto_prs_per_cycle,
        ge=0,
        description="Pull requests opened unasked in one cycle; 0: always ask.",
    )
    auto_pr_lines: Bounded = Field(
        CEILING.auto_pr_lines,
        ge=1,
        description="Its changed lines, added and deleted.",
    )
    threads_per_week: Count = Field(
        CEILING.threads_per_week,
        ge=0,
        le=50,
        description="Issues and pull requests opened unasked in seven days; as many may lack an answer.",
    )
    dispatches_per_day: Bounded = Field(CEILING.dispatches_per_day, ge=0, description="Wakes sent in a day.")
    usd_per_cycle: BoundedMoney = Field(CEILING.usd_per_cycle, ge=0, description="USD spent on models in a cycle.")
    usd_per_day: BoundedMoney = Field(CEILING.usd_per_day, ge=0, description="The same in a day.")

    def limits(self) -> Limits:
        """The limits for policy; those that cannot be configured keep their built-in value."""
        return Limits(**{name: value for name, value in self if name != "above_ceilings"})


class MemoryPlace(SettingsSection):
    """Where memory is kept: one branch, one file that people read and edit."""

    path: Annotated[str, AfterValidator(_memory_path)] = Field("memory/ralph-log.md", description="The file.")
    branch: Annotated[BranchName, AfterValidator(_memory_branch)] = Field(
        "ralph-memory", description="The branch; it holds nothing else."
    )


class ForgeChoice(SettingsSection):
    """Where issues and pull requests live."""

    kind: Literal["auto", "local", "github"] = Field(
        "auto", description="auto: GitHub under GitHub Actions, else files."
    )
    merge_method: Literal["squash", "merge"] = Field("squash", description="How pull requests are merged.")
    stale_after: Pause = Field(timedelta(days=14), description="When an inactive issue is stale.")


class MergeSettings(SettingsSection):
    """When an approved pull request is merged."""

    checks: Literal["all", "required"] = Field(
        "all", description="Checks of its head that must have ended well: all that ran, or those GitHub requires."
    )


class Observers(SettingsSection):
    """What Ralph observes."""

    patience: Annotated[Pause, at_most(PATIENCE), OLD_LIMIT] = PATIENCE
    """How long each observer may take, unless its commands may take longer; all look at the same time."""
    briefs: Annotated[Briefs, OLD_LIMIT] = Briefs.model_construct()
    ci: Ci = Field(Ci.model_construct(), description="Workflows that fail on the default branch.")
    code: Code = Field(Code.model_construct(), description="Markers left in the code.")
    commands: Annotated[tuple[Command, ...], AfterValidator(_distinct)] = Field((), description="Your own checks.")
    database: Database | None = Field(
        None, description="Rows of a database: what changed, what is new, what is out of bounds."
    )
    dependencies: Dependencies | None = Field(
        Dependencies.model_construct(updates=False),
        description="Vulnerable packages, by OSV; `{}` also asks registries for newer releases.",
    )
    docs: Docs = Field(Docs.model_construct(), description="Dead links, and commands that do not exist, in Markdown.")
    explore: Explore | None = Field(None, description="Bugs that hands.agent finds and proves by tests.")
    forge: Annotated[ForgeWatch, OLD_LIMIT] = ForgeWatch.model_construct()
    releases: Releases = Field(Releases.model_construct(), description="What waits for a release.")
    scanners: Scanners = Field(
        Scanners.model_construct(), description="Well-known scanners, each where it fits and is installed."
    )
    social: Social | None = Field(None, description="Social networks; `{}` looks once a day.")
    web: Annotated[tuple[Web, ...], AfterValidator(_distinct)] = Field(
        (), description="Feeds, JSON documents, pages and searches."
    )


class Extension(SettingsSection):
    """One adapter that somebody else wrote, from a package that is installed beside ralph."""

    kind: Literal["observer", "thinker", "forge", "fixer", "publisher"] = Field(description="What it is.")
    use: Annotated[
        str, StringConstraints(pattern=r"^([a-z][a-z0-9_-]{0,79}|[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*)$", max_length=200)
    ] = Field(description="An entry point of ralph_mission.KINDs, or package.module:object.")
    settings: dict[str, Any] = Field({}, description="Its settings, as the extension defines them.")


def _one_decider(chosen: tuple[Extension, ...]) -> tuple[Extension, ...]:
    for kind in ("thinker", "forge"):
        if sum(one.kind == kind for one in chosen) > 1:
            raise ValueError(f"name one {kind}")
    return chosen


class Config(SettingsSection):
    """Settings of one repository. Every key is optional."""

    extends: Annotated[str, StringConstraints(max_length=400), AfterValidator(pinned)] = Field(
        "", description="A file to add to: OWNER/REPO//PATH@COMMIT, or a path from here."
    )
    schedule: Schedule = Field(Schedule.model_construct(), description="When the next cycle is due.")
    limits: Ceilings = Field(Ceilings.model_construct(), description="What a cycle may do at most.")
    memory: MemoryPlace = Field(MemoryPlace.model_construct(), description="Where memory is kept.")
    owners: tuple[Login, ...] = Field((), description="Logins of those who decide; empty: everyone with write access.")
    forge: ForgeChoice = Field(ForgeChoice.model_construct(), description="Where issues and pull requests live.")
    merge: MergeSettings = Field(
        MergeSettings.model_construct(), description="When an approved pull request is merged."
    )
    observers: Observers = Field(Observers.model_construct(), description="What Ralph observes.")
    thinker: Thinker = Field(Thinker.model_construct(), description="How findings are ranked.")
    hands: CoderSettings = Field(
        CoderSettings.model_construct(), description="What changes files, and how changes are checked."
    )
    completion: Completion = Field(Completion.model_construct(), description="When a loop counts as complete.")
    cost: Cost = Field(Cost.model_construct(), description="What models cost.")
    loop: LoopSettings = Field(LoopSettings.model_construct(), description="How `ralph run` works here.")
    work: WorkSettings = Field(WorkSettings.model_construct(), description="Limits of `ralph work`.")
    hats: dict[str, HatKeys] = Field({}, description="As in ralph-orchestrator: which event calls which hat.")
    event_loop: EventLoop = Field(
        EventLoop.model_construct(), description="As in ralph-orchestrator: when a loop starts and ends."
    )
    cli: Cli = Field(Cli.model_construct(), description="As in ralph-orchestrator: which agent.")
    core: Core = Field(Core.model_construct(), description="As in ralph-orchestrator: instructions for every session.")
    memories: MemoryKeys = Field(
        MemoryKeys.model_construct(), description="As in ralph-orchestrator: what is remembered between runs."
    )
    publishers: Publishers = Field(Publishers.model_construct(), description="Where, what and when to post.")
    telegram: TelegramControl = Field(
        TelegramControl.model_construct(), description="Who may give commands by Telegram."
    )
    extensions: Annotated[tuple[Extension, ...], AfterValidator(_one_decider)] = Field(
        (), description="Parts from other packages."
    )
    _warnings: tuple[str, ...] = PrivateAttr(())
    _origins: tuple[tuple[Path, Any, str], ...] = PrivateAttr(())

    @property
    def origins(self) -> tuple[tuple[Path, Any, str], ...]:
        """Path, written value, and file of each setting other than the default."""
        return self._origins

    @property
    def warnings(self) -> tuple[str, ...]:
        """Accepted keys without effect, one line each."""
        return self._warnings
