"""The systemd units that `ralph init` writes: a timer that wakes GitHub's loop, a service that watches on its own, and
for a host of yours a tunnel to the database and GitHub's runner.

Units are templates: the instance is the repository's path (the runner's folder), so `%f` is where it stands, and one
set serves every repository of a host. Credentials stand beside each repository's state, readable by their owner only.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph_mission.adapters.wakers.ways import instance
from ralph_mission.cli.setup_files import render_template
from ralph_mission.errors import UserError

ENVIRONMENT = ".ralph/ralph.env"  # in the work tree
FOLDER = ".ralph/units"  # in the work tree, unless another one is named
TUNNEL_SETTINGS = ".ralph/tunnel.env"  # in the work tree
TUNNEL, RUNNER, READER = "ralph-tunnel@.service", "ralph-runner@.service", "ralph-reader.sql"
ROLE = "ralph_reader"


def program() -> str:
    """The absolute path of this very `ralph`: a unit knows no other PATH."""
    beside = Path(sys.executable).with_name("ralph")
    return str(beside) if beside.exists() else shutil.which("ralph") or str(beside)


def timer() -> dict[str, str]:
    """File name -> text: what asks every minute and dispatches when a cycle is due."""
    service, clock = "ralph-wake@.service", "ralph-wake@.timer"
    return {service: render_template(service, PROGRAM=_word(program())), clock: render_template(clock)}


def service() -> dict[str, str]:
    """File name -> text: `ralph watch` for as long as the host is up."""
    name = "ralph-watch@.service"
    return {name: render_template(name, PROGRAM=_word(program()))}


def host() -> dict[str, str]:
    """File name -> text: the tunnel to a database, a role there that only reads, the runner."""
    return {name: render_template(name) for name in (TUNNEL, RUNNER, READER)}


def commands(files: Mapping[str, str], folder: Path, repo: Path) -> tuple[str, str]:
    """What a person types to install them for their own user: link (once a host), then switch on."""
    units = [shlex.quote(str(folder / name)) for name in files]
    unit = "ralph-wake@{}.timer" if "ralph-wake@.timer" in files else "ralph-watch@{}.service"
    name = shlex.quote(unit.format(instance(repo)))
    return f"systemctl --user link {' '.join(units)}", f"systemctl --user enable --now {name}"


def host_steps(folder: Path, repo: Path) -> Iterator[str]:
    """What only a person can do for `host`, in order, one line each; docs/server.md says more."""
    tunnel, runner, reader = (shlex.quote(str(folder / name)) for name in (TUNNEL, RUNNER, READER))
    yield f"where the database is, as its superuser: psql -v ON_ERROR_STOP=1 -d NAME -f {reader}"
    yield f"then give the role a password, in psql: \\password {ROLE}"
    yield f"name that host in {repo / TUNNEL_SETTINGS}, and let ssh know its key: ssh USER@HOST true"
    yield f"systemctl --user link {tunnel} {runner}"
    yield f"systemctl --user enable --now {shlex.quote(f'ralph-tunnel@{instance(repo)}.service')}"
    yield f"set DATABASE_URL to postgresql://{ROLE}:PASSWORD@127.0.0.1:5432/NAME where the runner keeps secrets"
    yield "configure GitHub's runner in a folder of its own (docs/server.md), then:"
    yield 'systemctl --user enable --now "ralph-runner@$(systemd-escape --path FOLDER).service"'


def _word(path: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise UserError("the path of ralph holds a control character", "install it elsewhere", usage=True)
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
