"""`ralph.yml` as a frozen value, composed from each adapter's own Settings, and its JSON Schema.

`settings` says what can be configured, `reading` turns a file into it or explains what is wrong with the file.
"""

from __future__ import annotations

from ralph_mission.config.reading import NAME, load, read, schema
from ralph_mission.config.settings import Config

__all__ = ["NAME", "Config", "load", "read", "schema"]
