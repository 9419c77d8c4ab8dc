"""The door for adapters that others wrote: opened by a name in ralph.yml, to installed packages and nothing else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app.extensions import build_extensions, find_extension
from ralph_mission.app.hosting import QuietProgress, SystemClock, choose_hosting
from ralph_mission.app.ports import thinker
from ralph_mission.config.reading import load
from ralph_mission.errors import UserError
from tests.conftest import ROOT
from tests.helpers import cli_here, make_repo

BLOCKS = dict(re.findall(r"^```(yaml|toml|python)\n(.*?)^```", (ROOT / "docs/extending.md").read_text(), re.M | re.S))
OTHERS = """
from ralph_mission.errors import UserError

def lazy(settings, *given):
    return object()

def unwilling(settings, *given):
    raise UserError("no key is set", "set ACME_KEY")

def broken(settings, *given):
    return 1 / 0

class Echo:
    network, measure = "echo", (5, len)
    def __init__(self, settings, environment): ...
    def publish(self, key, post): ...
    def find(self, key): ...
    def check(self): return "echo"

from ralph_mission.adapters.fixers.fixer import Fixer
from ralph_mission.adapters.forges.local import LocalForge

class Hub(LocalForge):
    def __init__(self, settings, git, now):
        super().__init__(git, now=now)

class Ranker:
    def __init__(self, settings, rules): ...
    def think(self, brief): ...

def tidy(settings):
    return Fixer("tidy", "spelling", lambda: "1", lambda tree: ())

number = 3
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """A package as pip leaves it, on the path of this process."""

    def put(folder: Path = tmp_path / "site-packages", name: str = "acme_uptime", **modules: str) -> Path:
        for file, text in {f"{name}.py": BLOCKS["python"], **{f"{k}.py": v for k, v in modules.items()}}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        facts = folder / f"{name}-1.0.dist-info"
        facts.mkdir(exist_ok=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = re.sub(r"^\[.*\]", "[ralph_mission.observers]", BLOCKS["toml"]).replace('"', "")
        (facts / "entry_points.txt").write_text(lines.replace("acme_uptime", name))
        monkeypatch.syspath_prepend(str(folder))
        return folder

    before = set(sys.modules)
    yield put
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]


def settings(use: str, kind: str = "observer", told: str = "{}"):
    return load(f"extensions:\n  - {{kind: {kind}, use: '{use}', settings: {told}}}\n")


def refuse(use: str, kind: str = "observer", told: str = "{}", checkout: Path | None = None) -> UserError:
    with pytest.raises(UserError) as caught:
        list(build_extensions(settings(use, kind, told), kind, checkout, None))
    return caught.value


@pytest.mark.parametrize("use", ["uptime", "acme_uptime:UptimeObserver"])
def test_the_observer_of_the_document_takes_part_in_a_cycle(install, tmp_path: Path, use: str) -> None:
    install()
    repo = make_repo(tmp_path / "repo", {"ralph.yml": BLOCKS["yaml"].replace("use: uptime", f"use: {use}")})
    done = cli_here("cycle", "--force", "--json", repo=repo)
    assert done.code == 0
    assert "shop was down" in done.out
    found = cli_here("doctor", "--json", repo=repo).json["checks"]
    assert [(one["status"], one["found"]) for one in found if one["name"].startswith("extension")] == [
        ("ok", "observer, acme_uptime:UptimeObserver")
    ]


def test_nothing_is_imported_that_is_not_named(install, tmp_path: Path) -> None:
    install(acme_other="raise RuntimeError")
    cli_here("cycle", "--force", repo=make_repo(tmp_path / "repo", {}))
    assert not {"acme_uptime", "acme_other"} & set(sys.modules)
    find_extension(settings("uptime").extensions[0], None)
    assert "acme_uptime" not in sys.modules


def test_who_must_act_is_named(install) -> None:
    install(acme_others=OTHERS, acme_broken="raise RuntimeError('sesame')")
    for told, said in (
        (refuse("downtime"), "no installed package has the observer downtime"),
        (refuse("nowhere:Thing"), "no package nowhere is installed"),
        (refuse("acme_broken:Thing"), r"cannot be imported \(RuntimeError\)"),
        (refuse("acme_others:Thing"), r"cannot be imported \(AttributeError\)"),
        (refuse("acme_others:number"), "nothing that can be called"),
        (refuse("acme_others:lazy"), "is no observer: it lacks name, observe"),
        (refuse("acme_others:lazy", "thinker"), "is no thinker: it lacks think"),
        (refuse("acme_others:unwilling"), "no key is set"),
        (refuse("acme_others:broken"), r"did not start \(ZeroDivisionError\)"),
        (refuse("uptime", told="{sight: shop}"), r"settings\.site: Field required"),
    ):
        assert re.search(said, told.what) and told.next_step and "sesame" not in str(told)
    assert "installed here: uptime" in refuse("downtime").next_step


def test_two_packages_of_one_name_are_told_apart_by_their_modules(install, tmp_path: Path) -> None:
    install()
    install(tmp_path / "more" / "site-packages", "acme_second")
    told = refuse("uptime", told="{site: shop}")
    assert "several packages" in told.what and "acme_second:UptimeObserver" in told.next_step


@pytest.mark.parametrize("use", ["uptime", "acme_uptime:UptimeObserver"])
def test_code_of_the_checkout_is_none(install, tmp_path: Path, use: str) -> None:
    install(make_repo(tmp_path / "repo", {}))
    assert "code of the repository" in refuse(use, told="{site: shop}", checkout=tmp_path / "repo").what
    assert "acme_uptime" not in sys.modules


@pytest.mark.parametrize("use", ["uptime", "acme_uptime:UptimeObserver"])
def test_a_folder_of_the_checkout_that_is_called_as_one_of_packages_is_none(install, tmp_path: Path, use: str) -> None:
    repo = make_repo(tmp_path / "repo", {})
    install(repo / "site-packages")
    assert "code of the repository" in refuse(use, told="{site: shop}", checkout=repo).what
    assert "acme_uptime" not in sys.modules


def test_what_is_no_module_of_a_file_is_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    assert "no package __main__ is installed" in refuse("__main__:main").what


def test_our_environment_in_the_checkout_is_no_code_of_it(
    install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo", {})
    place = install(repo / ".venv" / "lib" / "site-packages")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(place))
    (made,) = build_extensions(settings("uptime", told="{site: shop}"), "observer", repo, None)
    assert made.name == "uptime"


def test_on_github_no_checkout_says_what_is_loaded(install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a workflow says that issues are files, its checkout may be a pull's."""
    install()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/shop")
    repo = make_repo(tmp_path / "repo", {"ralph.yml": BLOCKS["yaml"]})
    for config in (None, repo / "ralph.yml"):
        with pytest.raises(UserError, match="taken from the default branch alone"):
            choose_hosting(Git.open(repo), config, "local", SystemClock(), QuietProgress())
    assert "acme_uptime" not in sys.modules


def test_each_kind_comes_to_its_place(install, tmp_path: Path) -> None:
    install(acme_others=OTHERS)
    git = Git.open(make_repo(tmp_path / "repo", {}))
    assert type(thinker(settings("acme_others:Ranker", "thinker"), tmp_path)).__name__ == "Ranker"
    assert type(thinker(settings("acme_others:Ranker", "thinker"), None)).__name__ == "RulesThinker"
    (git.work_tree / "ralph.yml").write_text("extensions: [{kind: forge, use: 'acme_others:Hub'}]\n")
    host = choose_hosting(git, None, "auto", SystemClock(), QuietProgress())
    assert type(host.forge).__name__ == "Hub"
    (made,) = build_extensions(settings("acme_others:tidy", "fixer"), "fixer", None)
    assert made.name == "tidy"


def test_a_network_says_itself_what_it_takes(install, tmp_path: Path) -> None:
    from ralph_mission.app.ports import build_publishers

    install(acme_others=OTHERS)
    repo = Git.open(make_repo(tmp_path / "repo", {}))
    publisher = build_publishers(settings("acme_others:Echo", "publisher"), repo, SystemClock(), print, {})
    assert publisher.networks == ("echo",)
    assert publisher.measure("echo", ("hello",)).limit == 5
    with pytest.raises(UserError, match="part 1 for echo has 6 of 5"):
        publisher.measure("echo", ("hello!",))


@pytest.mark.parametrize(
    "text",
    [
        "extensions: [{kind: rule, use: a}]",
        "extensions: [{kind: observer, use: '../a.py'}]",
        "extensions: [{kind: forge, use: a}, {kind: forge, use: b}]",
    ],
)
def test_what_is_no_extension_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="extensions"):
        load(text)
