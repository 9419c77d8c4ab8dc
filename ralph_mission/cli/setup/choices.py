"""What a repository is to be looked after for: what its files suggest, what a preset takes of that, what a person says.

`--preset explorer` is for a site about data that others produce, such as an explorer of chains: a database is watched,
figures are posted, agents do the work. Networks and agents are off until their secrets are there.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click

from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.adapters.observers.database.proposing import ProposedWatch, propose_watches
from ralph_mission.adapters.projects.detection import DetectedProject
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

PRESETS = ("explorer",)
NETWORKS = ("twitter", "telegram", "discord")
AGENTS = ("none", "claude", "codex")
WEIGHTS = "{feature: 3, content: 2, ts-ignore: 2, stale-issue: 0.5}"
README = ("README.md", "readme.md", "README.rst", "README")
_ADDRESS = compile_regex(r"https://(?:www\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:/([A-Za-z0-9_]*))?")
_MODEL = compile_regex(r"[A-Za-z0-9._-]+:[A-Za-z0-9._/:-]+")
OWN = ("x.com", "twitter.com")
VERIFYING = ("lint", "types", "test")
"""Checks of a project that a change has to pass; a build takes long and says little more."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What files say besides how the project is built: its Prisma schema and what can be watched by it, where its site
    is, and what it is called on X; "" for what nobody says."""

    schema: str = ""
    watches: tuple[ProposedWatch, ...] = ()
    site: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """What `ralph.yml` is to hold besides its defaults. `preset`: also what that one brings. `checks`: the commands
    that must pass before a change is proposed, None for those that the project names."""

    preset: str = ""
    watches: tuple[ProposedWatch, ...] = ()
    agent: str = ""
    model: str = ""
    networks: tuple[str, ...] = ()
    checks: tuple[str, ...] | None = None


def verifying(project: DetectedProject) -> tuple[str, ...]:
    """The checks that the project names itself, that say whether a change is right, and whose program is there or
    comes with the project's packages."""
    able = (check for check in project.checks if all(shutil.which(program) for program in check.needs))
    return tuple(dict.fromkeys(check.line for check in able if check.name in VERIFYING))


def survey(paths: Collection[str], read: Callable[[str], str], name: str) -> Surroundings:
    """What stands in a repository called `name` with the files `paths`."""
    schemas = sorted((path for path in paths if path.endswith(".prisma")), key=lambda path: (path.count("/"), path))
    schemas = [path for path in schemas if re.search(r"^model\s", read(path), re.MULTILINE)]
    folder = posixpath.dirname(schemas[0]) if schemas else ""
    beside = [path for path in schemas if posixpath.dirname(path) == folder]
    place = folder if len(beside) > 1 and folder else (schemas[0] if schemas else "")
    try:
        watches = propose_watches(parse({path: read(path) for path in beside}, place)) if beside else ()
    except UserError:  # `ralph doctor` says what is wrong with it
        watches = ()
    text = next((read(readme) for readme in README if readme in paths), "")
    found = [(match[1], match[2] or "") for match in _ADDRESS.finditer(text)]
    site = next((host for host, _ in found if host.partition(".")[0] == name.lower()), "")
    account = next((path for host, path in found if host in OWN and path not in ("", "intent", "share", "home")), "")
    return Surroundings(place if watches else "", watches, site, account)


def preset_choices(preset: str, found: Surroundings) -> Choices:
    """What a preset takes unasked; of none, the defaults."""
    return Choices(preset, found.watches, "claude", "", NETWORKS) if preset else Choices()


def ask(found: Surroundings, project: DetectedProject, chosen: Choices) -> Choices:
    """What a person at a terminal wants, with `chosen` as what is taken by return."""
    click.echo(f"packages: {', '.join(project.tools) or 'none that are known'}")
    checks = click.prompt(
        "Checks that must pass before a change is proposed, separated by ; (- for none)",
        "; ".join(verifying(project)) or "-",
        value_proc=_checks,
    )
    watches: tuple[ProposedWatch, ...] = ()
    if found.watches:
        click.echo(f"Possible watches of the database at DATABASE_URL, by {found.schema}:")
        for one in found.watches:
            click.echo(f"  {one.name}: {one.why}")
        watches = found.watches if click.confirm("Write these watches?", default=True) else ()
    agent = click.prompt(
        "Agent for approved missions (for any other, edit hands.agent later)",
        type=click.Choice(AGENTS),
        default=chosen.agent or AGENTS[0],
        show_choices=True,
    )
    model = click.prompt(
        "Model to rank findings, e.g. anthropic:claude-sonnet-4-5 (Enter: use rules)",
        chosen.model,
        False,
        value_proc=_model,
    )
    networks = click.prompt(
        f"Networks to post figures to: {', '.join(NETWORKS)} (Enter: {' '.join(chosen.networks) or 'none'})",
        " ".join(chosen.networks),
        show_default=False,
        value_proc=_networks,
    )
    return Choices(chosen.preset, watches, "" if agent == AGENTS[0] else agent, model, tuple(networks), checks)


def _checks(text: str) -> tuple[str, ...]:
    parts = [text] if "'" in text or '"' in text else text.split(";")  # a quoted one may hold a semicolon
    return tuple(line for part in parts if (line := part.strip()) not in ("", "-"))


def _model(text: str) -> str:
    if text.strip() and not _MODEL.fullmatch(text.strip()):
        raise click.BadParameter("expected PROVIDER:MODEL, e.g. anthropic:claude-sonnet-4-5")
    return text.strip()


def _networks(text: str | Sequence[str]) -> tuple[str, ...]:
    words = text.replace(",", " ").split() if isinstance(text, str) else [*text]
    if unknown := [word for word in words if word not in NETWORKS]:
        raise click.BadParameter(f"{unknown[0]} is not one of them")
    return tuple(words)


# --- as ralph.yml has it --------------------------------------------------------------


def sections(chosen: Choices, found: Surroundings) -> dict[str, str]:
    """By the words of the template, what stands there."""
    explorer = chosen.preset == "explorer"
    return {
        "DEPENDENCIES": "dependencies: {}" if explorer else "# dependencies: {updates: false}",
        "DATABASE": "\n  ".join(_database(chosen, found)),
        "OUTSIDE": "\n  ".join(_outside(found)) if explorer else "# web: []",
        "AGENT": f"agent: {{kind: {chosen.agent}}}" if chosen.agent else "# agent: {kind: claude}",
        "THINKER": _thinker(chosen, explorer),
        "PUBLISHERS": "\n".join(_publishers(chosen, found)),
    }


def _database(chosen: Choices, found: Surroundings) -> list[str]:
    if not found.watches:
        return ["# database: {watches: [{name: price-feed, model: prices, at: created_at, missing: 2h}]}"]
    lines = ["database:", f"  prisma_schema: {found.schema}", "  watches:"]
    for one in chosen.watches or found.watches:
        lines += [f"    # {one.why}", f"    - {_flow(one.settings)}"]
    return lines if chosen.watches else [f"# {line}" for line in lines]


def _outside(found: Surroundings) -> list[str]:
    social = (
        f"social: {{account: {found.account}, trends: 1}}" if found.account else "# social: {account: NAME, trends: 1}"
    )
    return [
        "# What others in your field publish: name their feeds, or searches (SEARCH_URL, docs/observers.md).",
        "# web:",
        "#   - {name: rivals, kind: feed, url: 'https://example.org/feed', finding: feature, every: 6h}",
        "#   - {name: ideas, kind: search, query: 'explorer new feature', finding: feature, every: 1d}",
        "# Reactions to your posts; off without TWITTER_BEARER_TOKEN.",
        social if found.account else f"# {social}",
    ]


def _thinker(chosen: Choices, explorer: bool) -> str:
    kind = f"kind: llm, model: '{chosen.model}'" if chosen.model else "kind: rules"
    if explorer:
        return f"thinker: {{{kind}, weights: {WEIGHTS}}}"
    return f"thinker: {{{kind}}}" if chosen.model else "# thinker: {kind: rules}"


def _publishers(chosen: Choices, found: Surroundings) -> list[str]:
    if not chosen.networks:
        return ["# publishers: {telegram: {}}"]
    lines = ["publishers:", *(f"  {network}: {{}}" for network in chosen.networks)]
    tvl = next((one for one in chosen.watches if one.name == "tvl"), None)
    if tvl:
        way = '{{ "surges" if direction == "up" else "falls" }}'
        more = f" Full metrics at {found.site}" if found.site else ""
        text = f"{{{{ about }}}} TVL {way} {{{{ change_percent | abs | percent }}}} this week.{more}"
        lines += ["  templates:", f"    tvl: '{text}'"]
    return [*lines, "  announce: [bug, feature, anomaly]"]


def _flow(settings: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(settings), default_flow_style=True, sort_keys=False, width=10_000).strip()
