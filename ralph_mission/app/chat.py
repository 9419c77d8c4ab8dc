"""The chat for owners' orders: from configuration and environment to an inbox and a loop's attendant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters.chat import ADDRESS, API, TOKEN, Bot, TelegramInbox
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.ports import Seal
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.mission.operations.inbox import Attendant

SETUP = f"set {TOKEN}, and list your chat in telegram.chats of ralph.yml: docs/publishing.md#telegram"


def inbox(
    settings: Config, environ: Mapping[str, str], now: Callable[[], datetime], wait: int = 0
) -> TelegramInbox | None:
    """The inbox; None if no owner is listed, RObot is switched off, or the environment has no bot.

    `wait`: seconds that an empty answer may take.
    """
    telegram, bot = settings.telegram, bot_of(environ)
    if bot is None or not (telegram.chats or telegram.users):
        return None
    first = (*telegram.chats, *telegram.users)[0]
    return TelegramInbox(bot, frozenset(telegram.chats), frozenset(telegram.users), wait, first, now=now)


def bot_of(environ: Mapping[str, str]) -> Bot | None:
    """The bot of the environment."""
    token = environ.get(TOKEN, "")
    return Bot(token, environ.get(ADDRESS) or API) if token else None


def seal(settings: Config, environ: Mapping[str, str]) -> Seal | None:
    """The seal that proves orders in memory are genuine; None if no orders are accepted."""
    telegram, bot = settings.telegram, bot_of(environ)
    return bot.seal if bot and (telegram.chats or telegram.users) else None


def patience(settings: Config) -> tuple[int, int]:
    """Seconds that a question waits for a person, and between two progress messages of a loop."""
    return settings.telegram.timeout_seconds, settings.telegram.checkin_interval_seconds


@contextmanager
def attendant(repo: Path, config: Path | None, wait: int, say: Callable[[str], None]) -> Iterator[Attendant]:
    """The attendant of a checkout's loop. Raises UserError if nothing is set up, or one is already running."""
    from ralph_mission.adapters.storage.loop import run_files
    from ralph_mission.adapters.storage.loop.inbox import Beside, Questions
    from ralph_mission.app.cycle import build_app
    from ralph_mission.mission.operations.inbox import Attendant

    app = build_app(repo, config)
    chat, root = inbox(app.config, os.environ, app.clock.now, wait), app.git.work_tree
    if chat is None:
        raise UserError("no one may give commands here", SETUP, usage=True)
    if root is None:
        raise UserError(f"{repo} has no work tree", "name a checkout with --repo DIR", usage=True)
    waits, checkin = (timedelta(seconds=seconds) for seconds in patience(app.config))
    run_files.prepare(root / ".ralph")
    with Questions(root / ".ralph").attended() as ours:
        if not ours:
            raise UserError("ralph agent telegram runs here already", "end the other one first")
        yield Attendant(
            chat, app.ports, app.store, app.settings.limits, app.secrets,
            Beside(root, app.git.git_dir, waits), CursorFile(app.git.git_dir / "ralph-telegram"),
            chat.chat, checkin, say,
        )  # fmt: skip  # one value


@dataclass(frozen=True, slots=True)
class CursorFile:
    """`chat.attendant.Note`: one line in a file, beside the lock of loops: sessions work in `.ralph/`."""

    path: Path

    def read(self) -> str:
        """The stored text, or ""."""
        from ralph_mission.adapters.storage.loop import run_files

        return (run_files.read(self.path, 200) or b"").decode(errors="replace").strip()

    def keep(self, cursor: str) -> None:
        """Store it."""
        from ralph_mission.adapters.storage.loop import run_files

        run_files.write(self.path, f"{cursor}\n".encode())
