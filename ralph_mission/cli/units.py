"""The systemd units that `ralph init` writes: a timer that wakes GitHub's loop, a service that watches on its own.

Templates: the instance is the repository's path, so `%f` is where it stands, and one set of units serves every
repository of a host. Credentials stand beside each repository's state, readable by their owner only, never in a unit.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ralph_mission.cli.template import filled
from ralph_mission.trouble import Trouble
from ralph_mission.wakers.timer import instance

ENVIRONMENT = ".ralph/ralph.env"  # in the work tree
FOLDER = ".ralph/units"  # in the work tree, unless another one is named


def program() -> str:
    """The absolute path of this very `ralph`: a unit knows no other PATH."""
    beside = Path(sys.executable).with_name("ralph")
    return str(beside) if beside.exists() else shutil.which("ralph") or str(beside)


def timer() -> dict[str, str]:
    """File name -> text: what asks every minute and dispatches when a cycle is due."""
    return {"ralph-wake@.service": filled(WAKE, _words()), "ralph-wake@.timer": TIMER}


def service() -> dict[str, str]:
    """File name -> text: `ralph watch` for as long as the host is up."""
    return {"ralph-watch@.service": filled(WATCH, _words())}


def commands(files: Mapping[str, str], folder: Path, repo: Path) -> tuple[str, str]:
    """What a person types to install them for their own user: link (once a host), then switch on."""
    units = [shlex.quote(str(folder / name)) for name in files]
    unit = "ralph-wake@{}.timer" if "ralph-wake@.timer" in files else "ralph-watch@{}.service"
    name = shlex.quote(unit.format(instance(repo)))
    return f"systemctl --user link {' '.join(units)}", f"systemctl --user enable --now {name}"


def _words() -> dict[str, str]:
    return {"PROGRAM": _word(program()), "CREDENTIALS": f"%f/{ENVIRONMENT}"}


def _word(path: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise Trouble("the path of ralph holds a control character", "install it elsewhere", usage=True)
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


WAKE = """\
# Asks whether a cycle is due and, when one is, wakes the loop on GitHub. Started by ralph-wake@.timer.
[Unit]
Description=Wake Ralph for %f when a cycle is due
Documentation=man:systemd.timer(5)
After=network-online.target

[Service]
Type=oneshot
# GITHUB_REPOSITORY and GITHUB_TOKEN; readable by its owner only.
EnvironmentFile=CREDENTIALS
ExecStart=PROGRAM wake --repo %f
# 10: not due. That is the usual answer.
SuccessExitStatus=10
TimeoutStartSec=5min
NoNewPrivileges=yes
UMask=0077
"""

TIMER = """\
# Every minute: the gate turns away what comes too early, and one wake is sent for each due time.
[Unit]
Description=Ask every minute whether Ralph is due for %f

[Timer]
OnCalendar=minutely
AccuracySec=5s

[Install]
WantedBy=timers.target
"""

WATCH = """\
# Runs Ralph's cycles when they are due, without GitHub Actions.
[Unit]
Description=Ralph watches over %f
After=network-online.target

[Service]
Type=exec
# Tokens and keys of what you use; readable by its owner only.
EnvironmentFile=CREDENTIALS
ExecStart=PROGRAM watch --repo %f
# 130: it was asked to stop, and did. 2: a mistake in the settings, which a restart does not mend.
SuccessExitStatus=130
Restart=on-failure
RestartSec=60
RestartPreventExitStatus=2
TimeoutStopSec=2min
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""

CREDENTIALS = """\
# Credentials for Ralph's units: NAME=value, one a line. Keep this file at mode 0600, and out of git.
# Waking needs a token with `contents: write` for this one repository (a fine-grained one is enough).
# GITHUB_REPOSITORY=owner/name
# GITHUB_TOKEN=
# ANTHROPIC_API_KEY=
"""
