"""What an earlier job may leave on a runner for git to obey: in the repository of the workspace, and in the home."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.helpers import git, make_repo
from tests.hygiene.site import FILES, Site

Leave = Callable[[Site], None]
EVIL = {name: f"# changed\n{text}" for name, text in FILES.items()}


def _set(file: Path, *pairs: tuple[str, str], harm: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    for key, value in pairs:
        value = value.replace("HARM", shlex.quote(harm))
        subprocess.run(["git", "config", "--file", str(file), "--add", key, value], check=True)


def _hooks(folder: Path, harm: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(harm, folder / name)


def _local(*pairs: tuple[str, str]) -> Leave:
    return lambda site: _set(site.workspace / ".git" / "config", *pairs, harm=site.harm)


def _user(*pairs: tuple[str, str]) -> Leave:
    return lambda site: _set(site.home / ".gitconfig", *pairs, harm=site.harm)


def _another(site: Site) -> Path:
    place = site.root / "another"
    return place if place.exists() else make_repo(place, EVIL)


def _diverted(site: Site) -> tuple[str, str]:
    """A setting that has git talk to another server."""
    return f"url.{_another(site)}.insteadOf", str(site.source)


def _hooks_of_the_clone(site: Site) -> None:
    _hooks(site.workspace / ".git" / "hooks", site.harm)


def _folder_of_hooks(site: Site) -> None:
    _hooks(site.root / "hooks", site.harm)
    _local(("core.hooksPath", str(site.root / "hooks")))(site)


def _filter(site: Site) -> None:
    _local(("filter.x.smudge", "HARM; cat"))(site)
    (site.workspace / ".git" / "info").mkdir(exist_ok=True)
    (site.workspace / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (site.workspace / "tide.py").unlink()


def _other_server(site: Site) -> None:
    _local(_diverted(site))(site)


def _other_work_tree(site: Site) -> None:
    (site.root / "elsewhere").mkdir()
    (site.workspace / "tide.py").write_text(EVIL["tide.py"])
    _local(("core.worktree", str(site.root / "elsewhere")))(site)


def _included(site: Site) -> None:
    _set(site.root / "more", ("core.fsmonitor", "HARM"), harm=site.harm)
    _local(("include.path", str(site.root / "more")))(site)


def _settings_of_the_work_tree(site: Site) -> None:
    _local(("extensions.worktreeConfig", "true"))(site)
    _set(site.workspace / ".git" / "config.worktree", _diverted(site))


def _shared_folder(site: Site) -> None:
    shared = site.root / "shared"
    shutil.copytree(site.workspace / ".git", shared)
    _set(shared / "config", _diverted(site))
    (site.workspace / ".git" / "commondir").write_text(f"{shared}\n")


def _elsewhere(how: Callable[[Path, Path], None]) -> Leave:
    def leave(site: Site) -> None:
        place = site.root / "elsewhere"
        shutil.move(site.workspace / ".git", place)
        _set(place / "config", _diverted(site))
        how(site.workspace / ".git", place)

    return leave


def _hidden_change(site: Site) -> None:
    git(site.workspace, "update-index", "--skip-worktree", "ralph.yml")
    (site.workspace / "ralph.yml").write_text(EVIL["ralph.yml"])


def _replaced(site: Site) -> None:
    was = git(site.workspace, "rev-parse", "HEAD:ralph.yml")
    now = git(site.workspace, "hash-object", "-w", "--stdin", stdin=EVIL["ralph.yml"])
    git(site.workspace, "update-ref", f"refs/replace/{was}", now)
    (site.workspace / "ralph.yml").unlink()


def _sparse(site: Site) -> None:
    _local(("core.sparseCheckout", "true"))(site)
    (site.workspace / ".git" / "info").mkdir(exist_ok=True)
    (site.workspace / ".git" / "info" / "sparse-checkout").write_text("/tide.py\n")
    (site.workspace / ".git" / "index").unlink()


def _template(site: Site) -> None:
    _hooks(site.root / "template" / "hooks", site.harm)
    _user(("init.templateDir", str(site.root / "template")))(site)
    shutil.rmtree(site.workspace / ".git")


def _home_hooks(site: Site) -> None:
    _hooks(site.root / "hooks", site.harm)
    _user(("core.hooksPath", str(site.root / "hooks")))(site)


def _home_attributes(site: Site) -> None:
    (site.home / "attributes").write_text("* filter=x\n")
    _user(("filter.x.smudge", "HARM; cat"), ("core.attributesFile", str(site.home / "attributes")))(site)
    (site.workspace / "tide.py").unlink()


def _home_server(site: Site) -> None:
    _user(_diverted(site))(site)


def _home_xdg(site: Site) -> None:
    _set(site.home / ".config" / "git" / "config", ("core.fsmonitor", "HARM"), harm=site.harm)


def _named(place: Path, evil: Path) -> None:
    place.write_text(f"gitdir: {evil}\n")


def _linked(place: Path, evil: Path) -> None:
    os.symlink(evil, place)


IN_THE_CLONE: dict[str, Leave] = {
    "hooks": _hooks_of_the_clone,
    "another folder of hooks": _folder_of_hooks,
    "a file system monitor": _local(("core.fsmonitor", "HARM")),
    "a filter": _filter,
    "a program for fetching": _local(("remote.origin.uploadpack", "HARM; git-upload-pack")),
    "another server": _other_server,
    "another work tree": _other_work_tree,
    "included settings": _included,
    "settings of the work tree": _settings_of_the_work_tree,
    "another common folder": _shared_folder,
    "a repository elsewhere": _elsewhere(_named),
    "a link to another repository": _elsewhere(_linked),
    "a change that is skipped": _hidden_change,
    "an object in the place of another": _replaced,
    "a sparse checkout": _sparse,
}
IN_THE_HOME: dict[str, Leave] = {
    "a folder of hooks": _home_hooks,
    "a file system monitor": _user(("core.fsmonitor", "HARM")),
    "a template with hooks": _template,
    "a filter": _home_attributes,
    "another server": _home_server,
    "a program for fetching": _user(("remote.origin.uploadpack", "HARM; git-upload-pack")),
    "settings below .config": _home_xdg,
}
