"""A plugin of pytest that switches one guard off: `-p tests.guards.off --guard-off NAME`.

The product has no switch. Its module is compiled from its source with the guard's text replaced, in this process alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

import pytest

from tests.guards.guard import Guard, Stale


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--guard-off", metavar="NAME", help="the guard of tests/guards/registry.py to do without")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before anything is collected, so that nobody holds the guard as it was."""
    if name := early_config.known_args_namespace.guard_off:
        from tests.guards.registry import by_name

        switch_off(by_name(name))


def switch_off(guard: Guard) -> Finder:
    """From here on the guard's module is another. Raises Stale when it is too late, or the text has changed."""
    if not guard.module:
        raise Stale(f"{guard.name} is no module: it is switched off in a copy of the checkout")
    if guard.module in sys.modules:
        raise Stale(f"{guard.module} was imported before {guard.name} could be switched off")
    finder = Finder(guard.module, guard.without())
    sys.meta_path.insert(0, finder)
    return finder


class Finder(MetaPathFinder):
    """Finds one module with a source of its own. `used`: whether anybody imported it."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source, self.used = module, source, False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise Stale(f"{fullname} is not to be found")
        self.used = True
        spec.loader = _Loader(fullname, spec.origin, self.source)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)
