"""What has to outlive a crash of the machine, and not of the process alone."""

from __future__ import annotations

import os
from pathlib import Path


def sync(folder: Path) -> None:
    """Have the disk know the names in a folder: renaming and making files is safe only then. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
