"""A day of an explorer of chains, by the watches that its Prisma schema suggests, on a real PostgreSQL.

With `VALIDATORINFO=DIR` in the environment, a clone of validatorinfo, its own schema and all its migrations.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.database import build
from ralph_mission.adapters.observers.database.proposing import propose_watches
from ralph_mission.adapters.observers.database.results import ROOM
from ralph_mission.config.database import DatabaseSettings
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.explorer_world import BAD_DAY, ExplorerDatabase, beginnings, schema_text
from tests.helpers import git, make_repo

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def rows(postgres) -> ExplorerDatabase:
    made = ExplorerDatabase(postgres, "explorer_day", NOW)
    made.build()
    return made


@pytest.fixture
def look(tmp_path, rows):
    repo = make_repo(tmp_path / "repo", {"prisma/schema.prisma": schema_text()})
    head = Branch("main", git(repo, "rev-parse", "HEAD").strip())
    watches = [dict(one.settings) for one in propose_watches(parse({"p": schema_text()}, "p"))]
    settings = DatabaseSettings.model_validate({"prisma_schema": "prisma/schema.prisma", "watches": watches})
    observer = build(settings, Git.open(repo), {"DATABASE_URL": rows.url})

    def taken(cursor: str, now: datetime) -> Observation:
        return observer.observe(ObservationContext(head, now, None, cursor, str(tmp_path)))

    return taken


@pytest.mark.long  # two days of a whole explorer
def test_day_one_says_nothing_and_day_two_each_event_once_by_name(look, rows):
    first = look("", NOW)
    assert (first.status, first.signals) == ("ok", ()), first.detail
    assert len(first.cursor) < ROOM
    calm = look(first.cursor, NOW + 6 * HOUR)
    assert calm.signals == () and "not judged" not in calm.detail
    rows.bad_day(NOW + 30 * HOUR)
    second = look(calm.cursor, NOW + 30 * HOUR)
    assert beginnings([one.title for one in second.signals]) == BAD_DAY
    third = look(second.cursor, NOW + 31 * HOUR)
    old = {(one.essence, one.occurrence) for one in second.signals}
    assert {(one.essence, one.occurrence) for one in third.signals} <= old
    rows.hours("prices", 31, 31)
    fourth = look(third.cursor, NOW + 32 * HOUR)
    assert not [one for one in fourth.signals if one.essence[1] == "price-feed"]
    assert ("database", "price-feed", "") in fourth.gone  # an alarm that nobody was told of yet is withdrawn
