"""Observes the web: feeds, JSON documents, pages and searches, each a source of its own with its own pace.

What comes is read by a program of its own (`reading`) and told as quotations; the guard is `adapters/http/guard.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ralph_mission.adapters.observers.web.observer import Source
from ralph_mission.adapters.observers.web.state import Errands, SearchUnset
from ralph_mission.config.observers import WebSettings

__all__ = ["ALLOW", "ENDPOINT", "Errands", "SearchUnset", "Source", "WebSettings", "build"]

ENDPOINT = "SEARCH_URL"
"""The environment's name for where a search goes: a SearXNG instance, or any URL with `{query}` in it."""
ALLOW = "RALPH_WEB_ALLOW"
"""The environment's list of hosts (or host:port) that may be private. A repository's files cannot add to it."""


def build(
    settings: WebSettings,
    cache: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    errands: Errands | None = None,
) -> Source:
    """The observer of one source; `cache` is a folder for what it said before, None for no keeping.

    Sources that are given the same `errands` ask a host for its robots.txt once in a look, and say once what they lack.
    """
    allow = tuple(filter(None, re.split(r"[,\s]+", environment.get(ALLOW, ""))))
    folder = cache / "web" / settings.name if cache else None
    common = errands or Errands()
    speaks = common.speaks(settings.kind, settings.name)
    return Source(settings, environment.get(ENDPOINT, ""), allow, folder, errands=common, speaks=speaks)
