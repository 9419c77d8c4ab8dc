"""The front matter of standing briefs (`missions/*.md`) and of texts to publish (`content/*.md`)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from ralph_mission.config.fields import Duration, SettingsSection, Slug
from ralph_mission.errors import UserError
from ralph_mission.safety.address import parse_address

DAY = timedelta(days=1)


def _whole_days(every: timedelta) -> timedelta:
    if every % DAY:
        raise ValueError("write whole days, such as 7d")
    return every


def _source(address: str) -> str:
    try:
        parse_address(address)
    except (UserError, ValueError) as error:
        raise ValueError(f"an address of the web ({error})") from None
    return address


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\n]+$")]
Period = Annotated[Duration, AfterValidator(_whole_days)]
Networks = Annotated[tuple[Slug, ...], Field(max_length=10)]


class BriefHeader(SettingsSection):
    """Of a standing brief: work that people want done, once or again and again."""

    title: Line = Field(description="What is to be done, in one line.")
    every: Period | None = Field(None, description="How often, in whole days; without it once.")
    after: date | None = Field(None, description="Not before this day (UTC); periods are counted from it.")
    kind: Literal["brief", "architecture", "integration", "feature"] = Field(
        "brief", description="The kind of finding it is; a person is asked about each."
    )
    sources: tuple[Annotated[str, StringConstraints(max_length=500), AfterValidator(_source)], ...] = Field(
        (), max_length=20, description="Addresses to begin with."
    )
    networks: Networks = Field((), description="Where a text that comes of it is to be published.")
    done_when: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = Field(
        "", description="How to tell that it is done."
    )


class TextHeader(SettingsSection):
    """Of a text that is to be published, once a person approved it."""

    title: Line = Field(description="What it is, in one line; it is not published.")
    networks: Networks = Field(min_length=1, description="Where it is to be published.")
    every: Period | None = Field(None, description="How often, in whole days; without it once.")
    after: date | None = Field(None, description="Not before this day (UTC); periods are counted from it.")
