"""What `ralph init --server` writes for a host of yours: a tunnel to the database, a role that only reads, a runner.

Units are templates as in `units.py`: the tunnel's instance is the repository, the runner's is the runner's folder.
Nothing secret is in any of them; the tunnel's own settings stand beside the repository's state, for their owner only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from ralph_mission.cli.template import filled
from ralph_mission.wakers.timer import instance

SETTINGS = ".ralph/tunnel.env"  # in the work tree
ROLE = "ralph_reader"
SQL = "ralph-reader.sql"
TUNNEL, RUNNER = "ralph-tunnel@.service", "ralph-runner@.service"


def files() -> dict[str, str]:
    """File name -> text."""
    return {TUNNEL: filled(TUNNEL_UNIT, {"SETTINGS": f"%f/{SETTINGS}"}), RUNNER: RUNNER_UNIT, SQL: READER}


def steps(folder: Path, repo: Path) -> Iterator[str]:
    """What only a person can do, in order, one line each; docs/server.md says more."""
    place = {name: shlex.quote(str(folder / name)) for name in files()}
    yield f"where the database is, as its superuser: psql -v ON_ERROR_STOP=1 -d NAME -f {place[SQL]}"
    yield f"then give the role a password, in psql: \\password {ROLE}"
    yield f"name that host in {repo / SETTINGS}, and let ssh know its key: ssh USER@HOST true"
    yield f"systemctl --user link {place[TUNNEL]} {place[RUNNER]}"
    yield f"systemctl --user enable --now {shlex.quote(f'ralph-tunnel@{instance(repo)}.service')}"
    yield f"set DATABASE_URL to postgresql://{ROLE}:PASSWORD@127.0.0.1:5432/NAME where the runner keeps secrets"
    yield "configure GitHub's runner in a folder of its own (docs/server.md), then:"
    yield 'systemctl --user enable --now "ralph-runner@$(systemd-escape --path FOLDER).service"'


TUNNEL_UNIT = """\
# Keeps a database of another host reachable at a port of this one, for as long as the host is up.
[Unit]
Description=A tunnel to the database that Ralph watches for %f
Documentation=man:autossh(1) man:ssh_config(5)
After=network-online.target
# It tries for ever: the other host may be away for days.
StartLimitIntervalSec=0

[Service]
Type=exec
# TUNNEL_HOST and TUNNEL_FORWARD; readable by its owner only.
EnvironmentFile=SETTINGS
# No first attempt is final, and ssh itself tells when the other side is gone.
Environment=AUTOSSH_GATETIME=0
ExecStart=/usr/bin/autossh -M 0 -N -T -o BatchMode=yes -o ExitOnForwardFailure=yes -o ServerAliveInterval=15 \\
    -o ServerAliveCountMax=3 -o StrictHostKeyChecking=yes -L ${TUNNEL_FORWARD} ${TUNNEL_HOST}
Restart=always
RestartSec=10
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""

TUNNEL_SETTINGS = """\
# Where the database is: NAME=value, one a line. Keep this file at mode 0600, and out of git.
# The user there needs no shell, only permitopen for that port (docs/server.md).
TUNNEL_HOST=ralph@db.example.org
# This host's address and port, then the database's as the other host sees it.
TUNNEL_FORWARD=127.0.0.1:5432:127.0.0.1:5432
"""

RUNNER_UNIT = """\
# GitHub's self-hosted runner as a service of your own user. %f is the folder it was unpacked and configured in.
[Unit]
Description=GitHub Actions runner in %f
After=network-online.target

[Service]
Type=exec
WorkingDirectory=%f
# Told to end, it passes the word on, so that a job that runs is let finish.
Environment=RUNNER_MANUALLY_TRAP_SIG=1
ExecStart=/bin/bash run.sh
KillMode=process
TimeoutStopSec=5min
Restart=always
RestartSec=60
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""

READER = """\
-- A role that reads and can do nothing else: psql -v ON_ERROR_STOP=1 -d NAME -f ralph-reader.sql
-- Run it as a superuser, in the database that is watched; a second time changes nothing.
-- It has no password yet, so nobody can log in: \\password ralph_reader
-- Watched tables are in other schemas than public? Name them in the list below.
BEGIN;

DO $$
DECLARE
  place text;
  owner text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ralph_reader') THEN
    CREATE ROLE ralph_reader LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 5;
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO ralph_reader', current_database());
  FOREACH place IN ARRAY ARRAY['public'] LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO ralph_reader', place);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO ralph_reader', place);
    -- Tables that their owners make later can be read too.
    FOR owner IN SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = place LOOP
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT ON TABLES TO ralph_reader',
        owner, place);
    END LOOP;
  END LOOP;
END $$;

-- Habits, not walls: the walls are the grants above.
ALTER ROLE ralph_reader SET default_transaction_read_only = on;
ALTER ROLE ralph_reader SET statement_timeout = '30s';
ALTER ROLE ralph_reader SET lock_timeout = '1s';
ALTER ROLE ralph_reader SET idle_in_transaction_session_timeout = '60s';

-- Before PostgreSQL 15 everyone may make tables in public, and so may this role. When nobody else needs that:
-- REVOKE CREATE ON SCHEMA public FROM PUBLIC;

COMMIT;
"""
