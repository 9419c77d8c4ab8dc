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

from tests.guards.guard import Guard, Stale, read_guards

BROKEN = 9
"""The exit code when a test failed for what a clumsy replacement raises: that says nothing of the guard."""
BREAKS = pytest.StashKey[bool]()
CLUMSY = (ImportError, SyntaxError, NameError, AttributeError, TypeError)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--guard-off", metavar="NAME", help="the guard of tests/guards/rows to do without")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before anything is collected, so that nobody holds the guard as it was."""
    if (name := early_config.known_args_namespace.guard_off) and read_guards()[name].module:
        switch_off(read_guards()[name])


def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.excinfo and is_broken(call.excinfo.value, call.when):
        node.config.stash[BREAKS] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash.get(BREAKS, False):
        session.exitstatus = BROKEN


def is_broken(error: BaseException, when: str) -> bool:
    """Whether a failure is neither a test's own word nor the product's reaction."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_broken(one, when) for one in error.exceptions)
    return isinstance(error, CLUMSY) or when != "call"


def switch_off(guard: Guard) -> GuardOffFinder:
    """From here on the guard's module is another. Raises Stale when it is too late, or the text has changed."""
    if guard.module in sys.modules:
        raise Stale(f"{guard.module} was imported before {guard.name} could be switched off")
    finder = GuardOffFinder(guard.module, guard.switched_off())
    sys.meta_path.insert(0, finder)
    return finder


class GuardOffFinder(MetaPathFinder):
    """Finds one module with a source of its own."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise Stale(f"{fullname} is not to be found")
        spec.loader = _SourceLoader(fullname, spec.origin, self.source)
        return spec


class _SourceLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)
