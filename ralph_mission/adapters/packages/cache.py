"""Keeps what a server said, by its address: a few facts, its ETag and when it was asked. Loss costs a request."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from ralph_mission.adapters import files
from ralph_mission.values import dataclass

KEPT = 3_000
"""Answers that stay; a lock file has some hundred packages."""
CAP = 16_000_000  # bytes of one of them


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """`facts` are plain JSON; `asked` is when the server last vouched for them."""

    facts: Any
    asked: datetime
    etag: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A folder of such answers; None keeps nothing."""

    folder: Path | None

    def get(self, question: str) -> CachedAnswer | None:
        """What was kept; None when there is nothing that can be read."""
        with suppress(ValueError, TypeError, KeyError):
            if self.folder is not None:
                found = files.read_json(self._file(self.folder, question), CAP)
                return CachedAnswer(**{**found, "asked": datetime.fromisoformat(found["asked"])})
        return None

    def put(self, question: str, kept: CachedAnswer) -> None:
        """Keep it. A folder that cannot be written is no error."""
        with suppress(OSError):
            if self.folder is not None:
                content = json.dumps({**asdict(kept), "asked": kept.asked.isoformat()}).encode()
                files.write(self._file(files.own(self.folder), question), content, lasting=False)

    def tidy(self) -> None:
        """Forget the oldest."""
        with suppress(OSError):
            if self.folder is not None:
                found = files.own(self.folder).glob("*.json")
                for old in sorted(found, key=lambda file: file.stat().st_mtime_ns)[:-KEPT]:
                    old.unlink(missing_ok=True)

    def _file(self, folder: Path, question: str) -> Path:
        return folder / f"{hashlib.sha256(question.encode()).hexdigest()[:40]}.json"
