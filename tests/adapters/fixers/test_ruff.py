"""Only fixes that change nothing for anybody: in doubt a file stays as it is."""

from __future__ import annotations

import sys

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.proposal import count_findings
from tests.helpers import make_repo

UNUSED = "import os\nimport sys\n\nprint(sys.argv)\n"
USED = "import sys\n\nprint(sys.argv)\n"


def fixed(observation) -> dict[str, str]:
    return {change.path: change.new.decode() for signal in observation.signals for change in signal.patch.changes}


def test_an_unused_import_of_the_standard_library_goes(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": UNUSED})
    seen = look(repo, "ruff")
    assert fixed(seen) == {"a.py": USED}
    assert seen.signals[0].title == f"{count_findings(1, 'lint-fix')} in a.py" and seen.signals[0].kind == "lint-fix"
    assert seen.signals[0].detail == "line 1: F401 `os` imported but unused"


def test_an_f_string_of_nothing_and_is_with_a_literal_are_put_right(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": 'x = f"plain"\ny = x is "plain"\n'})
    assert fixed(look(repo, "ruff")) == {"a.py": 'x = "plain"\ny = x == "plain"\n'}


def test_line_ends_stay_as_they_are(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": UNUSED.replace("\n", "\r\n").encode()})
    assert fixed(look(repo, "ruff")) == {"a.py": USED.replace("\n", "\r\n")}


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/__init__.py": UNUSED},
        {"pkg/__init__.py": "", "pkg/a.py": UNUSED, "pkg/b.py": "from pkg.a import os\n\nprint(os)\n"},
        {"pkg/__init__.py": "", "pkg/a.py": UNUSED, "pkg/b.py": "from .a import (\n    sys,\n    os,\n)\n"},
        {"a.py": UNUSED, "b.py": "import a\n\nprint(a.os.name)\n"},
        {"a.py": UNUSED, "b.py": "from a import *\n\nprint(os)\n"},
        {"a.py": UNUSED, "b.py": "from a import *\n\nprint(vars())\n"},
        {"a.py": UNUSED, "b.py": "from a import  *\n\nprint(vars())\n"},
        {"*.py": UNUSED, "b.py": "X = [a*b, x.os, y.sys]\n"},
        {"a-b.py": UNUSED, "c.py": "PATCHED = 'a-b.os.getcwd'\n"},
        {"a.py": UNUSED, "tests/test_a.py": 'PATCHED = "a.os.getcwd"\n'},
        {"a.py": "import requests\n"},
        {"a.py": "from . import signals\n"},
        {"a.py": "import app.plugins\n"},
        {"a.py": "import readline\n\ninput()\n"},
        {"a.py": "import this\n"},
        {"a.py": "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\n"},
        {"a.py": "try:\n    import tomllib\nexcept ImportError:\n    pass\n"},
        {"a.py": "from typing import List\n\nx = []  # type: List[int]\n"},
        {"a.py": 'import math\n\nX = """\n>>> math.pi\n"""\n'},
        {"a.py": "import os  # noqa: F401\n"},
        {"a.py": "import os\n\n__all__ = ['os']\n"},
        {"a.py": "import os as os\n"},
        {"a.pyi": UNUSED},
        {"conftest.py": UNUSED},
        {"setup.py": UNUSED},
        {"tests/fixtures/a.py": UNUSED},
        {"tests/data/a.py": UNUSED},
        {"vendor/a.py": UNUSED},
        {"a_pb2.py": UNUSED},
        {"a.py": "# @generated\n" + UNUSED},
        {"a.py": "import os\ndef broken(:\n"},
        {"a.py": UNUSED.encode() + b"# \xe9\n"},
        {"a.txt": UNUSED},
        {"a.py": "print(f'{1}')\n"},
    ],
)
def test_a_fix_that_somebody_could_miss_is_not_offered(tmp_path, look, files):
    assert fixed(look(make_repo(tmp_path / "repo", files), "ruff")) == {}


def test_one_import_in_doubt_keeps_its_file_and_no_other(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": "import os\nimport requests\n", "b.py": UNUSED})
    assert fixed(look(repo, "ruff")) == {"b.py": USED}


@pytest.mark.parametrize(
    "file",
    [
        {"ruff.toml": "[lint]\nselect = ['E711']\n"},
        {".ruff.toml": "[lint]\nselect = ['E711']\n"},
        {"pyproject.toml": "[tool.ruff.lint]\nselect = ['UP004']\n"},
    ],
)
def test_the_repository_s_own_rules_replace_ours(tmp_path, look, file):
    repo = make_repo(tmp_path / "repo", {"a.py": UNUSED + "\n\nclass A(object):\n    pass\n", **file})
    new = fixed(look(repo, "ruff")).get("a.py", UNUSED)
    assert "import os" in new and ("class A:" in new) == ("pyproject.toml" in file)


def test_the_order_of_imports_stays_and_the_rest_of_the_repository_s_choice_holds(tmp_path, look):
    rules = "[lint]\nselect = ['I', 'F541', 'F632']\nignore = ['F541']\n"
    files = {"a.py": "import sys\nimport os\n", "b.py": 'x = f"plain"\ny = x is "plain"\n', "ruff.toml": rules}
    assert fixed(look(make_repo(tmp_path / "repo", files), "ruff")) == {"b.py": 'x = f"plain"\ny = x == "plain"\n'}


def test_a_repository_that_has_ruff_fix_by_default_gets_its_fixes(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": UNUSED, "pyproject.toml": "[tool.ruff]\nfix = true\n"})
    assert fixed(look(repo, "ruff")) == {"a.py": USED}


def test_source_that_is_newer_than_our_python_keeps_its_imports(tmp_path, look):
    files = {"a.py": "import os\n\ntype Pair[T] = tuple[T, T]\nx = f'{'nested'}'\n", "b.py": UNUSED}
    seen = fixed(look(make_repo(tmp_path / "repo", {**files, "ruff.toml": "target-version = 'py314'\n"}), "ruff"))
    assert seen["b.py"] == USED and (sys.version_info >= (3, 12) or "a.py" not in seen)


def test_unsafe_fixes_are_never_made_whatever_the_repository_asks_for(tmp_path, look):
    rules = "unsafe-fixes = true\n[lint]\nselect = ['F841']\n"
    repo = make_repo(tmp_path / "repo", {"a.py": "def f():\n    x = g()\n", "ruff.toml": rules})
    assert fixed(look(repo, "ruff")) == {}


def test_a_configuration_that_ruff_refuses_is_trouble_with_its_reason(tmp_path, look):
    repo = make_repo(tmp_path / "repo", {"a.py": UNUSED, "ruff.toml": "nonsense = 1\n"})
    with pytest.raises(UserError, match="ruff cannot check this repository"):
        look(repo, "ruff")


def test_a_repository_without_python_starts_nothing(tmp_path, look, monkeypatch):
    monkeypatch.setattr("ralph_mission.adapters.fixers.ruff.run_foreign", lambda *_, **__: pytest.fail("started ruff"))
    assert look(make_repo(tmp_path / "repo"), "ruff").signals == ()
