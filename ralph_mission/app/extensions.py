"""Third-party adapters: named under `extensions` in ralph.yml, found in installed packages, only imported if named.

The mechanism is the same for observers, thinkers, forges, fixers and publishers. A name is an entry point of the group
`ralph_mission.observers` (and so on), or `package.module:object`. The object is called with its settings and its kind's
arguments, and returns an implementation of its port. It is code that the owner chose, and runs with our rights; code in
the observed repository is never used.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from ralph_mission.adapters.fixers.fixer import Fixer
from ralph_mission.adapters.publishers.channel import Channel
from ralph_mission.config.settings import Config, Extension
from ralph_mission.errors import UserError
from ralph_mission.mission.ports import Forge, Observer, Thinker

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Build = Callable[..., Any]
PORTS: Mapping[str, type[Any]] = {
    "observer": Observer,
    "thinker": Thinker,
    "forge": Forge,
    "fixer": Fixer,
    "publisher": Channel,
}
"""The port that an extension of a kind must implement."""


def build_extensions(settings: Config, kind: str, checkout: Path | None, *arguments: object) -> Iterator[Any]:
    """The extensions of a kind in ralph.yml. `checkout`: the observed repository. Raises UserError."""
    for chosen in settings.extensions:
        if chosen.kind == kind:
            yield _build(chosen, checkout, arguments)


def find_extension(chosen: Extension, checkout: Path | None) -> EntryPoint:
    """Its location, without importing it. Raises UserError if no package has it, or if the checkout does."""
    entry = _written(chosen) if ":" in chosen.use else _registered(chosen)
    top = entry.module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # for modules without a file, such as __main__
        spec = None
    if spec is None:
        raise UserError(f"extension {chosen.use}: no package {top} is installed", _install(chosen))
    places = [*(spec.submodule_search_locations or ()), *filter(None, [spec.origin])]
    if checkout is not None and any(_belongs_to(Path(place), checkout) for place in places):
        raise UserError(
            f"extension {chosen.use} is code of the repository that is looked at",
            "install its package where ralph is, and not as editable",
        )
    return entry


def _build(chosen: Extension, checkout: Path | None, arguments: tuple[object, ...]) -> Any:
    build = _import(chosen, find_extension(chosen, checkout))
    settings = _read_settings(chosen, getattr(build, "Settings", None))
    try:
        extension = build(settings, *arguments)
    except UserError as problem:
        raise UserError(f"extension {chosen.use}: {problem.what}", problem.next_step, problem.who) from None
    except Exception as error:
        raise UserError(f"extension {chosen.use} did not start ({type(error).__name__})", _tell(chosen)) from error
    members = [name for name in vars(PORTS[chosen.kind]) if not name.startswith("_")]
    missing = [name for name in members if not hasattr(extension, name)]
    if missing:
        raise UserError(f"extension {chosen.use} is no {chosen.kind}: it lacks {', '.join(missing)}", _tell(chosen))
    return extension


def _written(chosen: Extension) -> EntryPoint:
    from importlib.metadata import EntryPoint

    return EntryPoint(name=chosen.use, value=chosen.use, group=_group(chosen))


def _registered(chosen: Extension) -> EntryPoint:
    from importlib.metadata import entry_points

    known = entry_points(group=_group(chosen))
    found = {entry.value: entry for entry in known if entry.name == chosen.use}
    if not found:
        names = ", ".join(sorted({entry.name for entry in known})) or "none"
        what = f"no installed package has the {chosen.kind} {chosen.use}"
        raise UserError(what, f"{_install(chosen)}; installed here: {names}")
    if len(found) > 1:
        raise UserError(f"several packages have the {chosen.kind} {chosen.use}", f"write one of {', '.join(found)}")
    return next(iter(found.values()))


def _import(chosen: Extension, entry: EntryPoint) -> Build:
    try:
        build: Build = entry.load()
    except Exception as error:  # third-party code may raise anything
        raise UserError(f"extension {chosen.use} cannot be imported ({type(error).__name__})", _tell(chosen)) from error
    if not callable(build):
        raise UserError(f"extension {chosen.use} is nothing that can be called", _tell(chosen))
    return build


def _read_settings(chosen: Extension, model: type[BaseModel] | None) -> BaseModel | Mapping[str, Any]:
    if model is None:
        return dict(chosen.settings)
    try:
        return model.model_validate(dict(chosen.settings))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, ("settings", *first["loc"])))
        raise UserError(f"extension {chosen.use}: {place}: {first['msg']}", "fix ralph.yml", usage=True) from None


def _belongs_to(place: Path, checkout: Path) -> bool:
    """Packages in our own environment do not count as the checkout's files, even inside it."""
    inner = place.resolve()
    return inner.is_relative_to(checkout.resolve()) and not any(map(inner.is_relative_to, _installed_below()))


def _installed_below() -> tuple[Path, ...]:
    """The package folders of the running Python: another folder with such a name does not count."""
    return tuple(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib"))


def _group(chosen: Extension) -> str:
    return f"ralph_mission.{chosen.kind}s"


def _install(chosen: Extension) -> str:
    return f"install the package that contains it beside ralph, or take {chosen.use} out of extensions in ralph.yml"


def _tell(chosen: Extension) -> str:
    return f"look at the package's own documentation, or take {chosen.use} out of extensions in ralph.yml"
