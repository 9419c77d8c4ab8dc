"""What a death or a disk may leave of a runner's clone: files that are torn, gone, old, or in the way."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.integration.hub import Hub


def kept(hub: Hub) -> Path:
    """What this clone remembers."""
    return hub.clone / ".git" / "ralph"


def tear(name: str, hub: Hub) -> None:
    place = kept(hub) / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b'{"version": 2, "scope": "http')


def remove(name: str, hub: Hub) -> None:
    (kept(hub) / name).unlink(missing_ok=True)


def half_an_anchor_beside_it(hub: Hub) -> None:
    (kept(hub) / ".anchor.json.4711").write_bytes(b'{"lineage": "abc')


def half_a_cache_beside_it(hub: Hub) -> None:
    (kept(hub) / ".github.json.4711").write_bytes(b"{")


def forgotten(hub: Hub) -> None:
    """All that was remembered, but for the clone's own name, under which it holds its claim."""
    for path in kept(hub).iterdir():
        if path.name != "clone":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def scratch_left(hub: Hub) -> None:
    place = kept(hub) / "scratch-4711"
    place.mkdir()
    (place / "half.py").write_text("x =")


def objects_half_written(hub: Hub) -> None:
    (hub.clone / ".git" / "objects" / "tmp_obj_a1b2c3").write_bytes(b"x\x01")


def changed_checkout(hub: Hub) -> None:
    (hub.clone / "README.md").write_text("half a sen")


def index_locked(hub: Hub) -> None:
    (hub.clone / ".git" / "index.lock").touch()


HEALED: Mapping[str, Callable[[Hub], None]] = {
    "the cache of answers is torn": partial(tear, "github.json"),
    "the cache of answers is gone": partial(remove, "github.json"),
    "the file of what is owed is torn": partial(tear, "owed.json"),
    "the file of what is owed is gone": partial(remove, "owed.json"),
    "half a position lies beside the whole one": half_an_anchor_beside_it,
    "half a cache lies beside the whole one": half_a_cache_beside_it,
    "nothing is remembered any more": forgotten,
    "a scratch folder was left": scratch_left,
    "half an object of git's was left": objects_half_written,
    "a file of the checkout is half written": changed_checkout,
    "the index is locked for ever": index_locked,
}
"""What the next cycle goes on in spite of."""


def torn_anchor(hub: Hub) -> None:
    """A position that is half there says nothing for sure, and is never guessed."""
    (kept(hub) / "anchor.json").write_bytes(b'{"lineage": "abc')
