"""Which modules of the product need a guard among the rows, and which of them have none, and why.

A module that refuses, bounds, locks or cleans something needs one. All others are data, words, or put parts together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from tests.guards.guard import ROOT

CALLED = frozenset({"find_secrets", "flock", "redact", "run_foreign", "sanitise", "setrlimit", "unsafe_path"})
NAMED = frozenset({"O_EXCL", "O_NOFOLLOW"})
LIKELY = re.compile("|".join((r"\braise \S", "timeout=", *sorted(CALLED | NAMED))))
"""Without any of these a text need not be parsed: that takes longer than all else here."""
PRODUCT = "ralph_mission"


def refuses(source: str) -> bool:
    """Whether a module's text raises, bounds the time of something, locks it, follows no link or cleans a text."""
    return bool(LIKELY.search(source)) and any(map(_is_sign, ast.walk(ast.parse(source))))


def _is_sign(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return node.exc is not None
    if isinstance(node, ast.Call):
        return _name(node.func) in CALLED or any(word.arg == "timeout" for word in node.keywords)
    return isinstance(node, ast.Attribute) and node.attr in NAMED


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


@cache
def refusing() -> frozenset[str]:
    """The modules that need a guard."""
    paths = (path for path in (ROOT / PRODUCT).rglob("*.py") if refuses(path.read_text(encoding="utf-8")))
    return frozenset(path.relative_to(ROOT).as_posix() for path in paths)


def unguarded(needing: Iterable[str], guarded: Collection[str], without: Mapping[str, Iterable[str]]) -> set[str]:
    """Those that have neither a guard nor a reason."""
    return set(needing) - set(guarded) - {f"{PRODUCT}/{name}" for names in without.values() for name in names}


def outdated(needing: Collection[str], guarded: Collection[str], without: Mapping[str, Iterable[str]]) -> set[str]:
    """Names that have a reason and need none: there is no such module, it refuses nothing, or has a guard by now."""
    named = (name for names in without.values() for name in names)
    return {name for name in named if f"{PRODUCT}/{name}" not in needing or f"{PRODUCT}/{name}" in guarded}


WITHOUT: dict[str, tuple[str, ...]] = {
    "refuses what a person typed, before anything is done; nothing untrusted comes here": (
        "agents/scripted.py", "bootstrap/asked.py", "bootstrap/order.py", "bootstrap/orders.py", "cli/app.py",
        "cli/cancel.py", "cli/chores.py", "cli/cost.py", "cli/doctor.py", "cli/guidance.py", "cli/init.py",
        "cli/journal.py", "cli/local.py", "cli/memory.py", "cli/moment.py", "cli/plan.py", "cli/policy.py",
        "cli/prd.py", "cli/restart.py", "cli/sanitize.py", "cli/simulate.py", "cli/status.py", "cli/telegram.py",
        "cli/units.py", "cli/wake.py", "cli/watch.py", "cli/wiring.py", "cli/work.py", "cli/workflow.py",
        "forges/local/identity.py", "forges/local/people.py", "loop/cost.py", "loop/patterns.py", "loop/prd_new.py",
        "loop/presets.py",
    ),
    "settings of an owner, told what is wrong with them; ceilings hold in policy, limits and the ports": (
        "config/reading.py", "config/settings.py", "loop/hats.py", "observers/code.py",
        "observers/database/settings.py", "observers/items.py", "observers/settings.py", "observers/web/settings.py",
        "publishers/figures.py", "thinkers/settings.py",
    ),
    "puts parts together and says what is missing; what each part may do is decided in the part": (
        "__init__.py", "bootstrap/coding.py", "bootstrap/ground.py", "bootstrap/hosting.py",
        "bootstrap/loop.py", "bootstrap/review.py", "bootstrap/teams.py", "bootstrap/work.py", "embedding.py",
        "forges/github/__init__.py", "gateways/database/opening.py", "mission/ports.py", "publishers/channel.py",
    ),
    "a reader that refuses what it does not understand; scope, policy or a person judges what was read": (
        "forges/github/reading.py", "forges/local/documents.py", "forges/local/front_matter.py",
        "gateways/database/address.py", "gateways/database/cells.py", "gateways/database/prisma_address.py",
        "gateways/database/prisma_questions.py", "gateways/database/prisma_schema.py",
        "gateways/database/prisma_text.py", "gateways/database/shapes.py", "gateways/packages/node.py",
        "gateways/wire.py", "hands/ignores.py", "loop/assignments.py", "loop/critique.py", "loop/handoff.py",
        "loop/prd.py", "loop/prd_convert.py", "loop/reviewing.py", "loop/shell_words.py", "loop/verdicts.py",
        "observers/database/schema_files.py", "observers/database/state.py", "observers/forge_turns.py",
        "observers/sarif.py", "stores/codec.py", "stores/layout.py",
        "stores/loop/tasks_text.py",
    ),
    "asks a service; bounds, redirects and addresses are those of gateways/web and its wire": (
        "cli/checks_github.py", "gateways/packages/advisories.py", "gateways/packages/audits.py",
        "gateways/packages/indexes.py", "gateways/packages/managers.py", "gateways/packages/registries.py",
        "gateways/web_robots.py", "observers/dependencies.py", "observers/dependencies_asking.py",
        "observers/social/telegram.py", "observers/social/x.py", "observers/web/asking.py",
        "observers/web/errands.py",
    ),
    "asks a database; what a role may do is refused there, by way of sessions, role and statements": (
        "gateways/database/prisma.py", "gateways/database/prisma_process.py", "gateways/database/prisma_tools.py",
        "gateways/database/sql.py", "gateways/database/tunnel.py", "observers/database/observer.py",
        "observers/database/targets.py",
    ),
    "a look that is given up when its time is over, so that the cycle goes on without it": (
        "observers/blame.py", "observers/commands.py", "observers/lines.py", "observers/markers.py",
        "observers/together.py",
    ),
    "tells what a forge refused; what may be done there was decided in policy and acting": (
        "forges/commits.py", "forges/github/anchor.py", "forges/github/deeds.py", "forges/github/forge.py",
        "forges/github/threads.py", "forges/local/branches.py", "forges/local/checkouts.py", "forges/local/deeds.py",
        "forges/local/forge.py", "forges/local/merging.py", "forges/local/pushing.py", "forges/performing.py",
    ),
    "a story over the same gate (acting, policy, ledger), which holds for each of its effects": (
        "flows/carrying.py", "flows/control.py", "flows/publish.py", "flows/recover.py", "flows/review.py",
        "flows/review_end.py", "flows/strokes.py", "flows/work_end.py", "mission/content.py",
    ),
    "how a loop takes its turns, and that it ends; scope, limits, completion and routing hold for all of them": (
        "agents/crew.py", "loop/prompt.py", "loop/stage.py", "loop/tasks.py", "loop/team.py", "loop/ultrawork.py",
    ),
    "words for people or agents, cleaned once more by acting, framing or a voice, which have guards": (
        "mission/analysis.py", "mission/coding_text.py", "mission/content_text.py", "mission/hearing.py",
        "mission/verifying.py", "observers/web/telling.py",
    ),
    "makes or reads files of a checkout for the modules beside it, whose guards compare and put back": (
        "gateways/checkout_checks.py", "gateways/landing.py", "gateways/steering.py",
    ),
    "tries out or sets up what isolation and process then hold, each level tried by running something in it": (
        "agents/command.py", "agents/registry.py", "gateways/isolation_bwrap.py", "gateways/isolation_lending.py",
        "gateways/isolation_probe.py", "gateways/isolation_relay.py",
    ),
    "a fixer: what it made is measured by objections and tried by checks before it is proposed": (
        "hands/bumps.py", "hands/codespell.py", "hands/ruff.py", "hands/verify.py",
    ),
    "files of one loop, written through stores/loop/files, whose locks, links and bounds have the guards": (
        "bootstrap/obeyed.py", "stores/loop/place.py", "stores/loop/questions.py", "stores/loop/verdicts.py",
    ),
    "what is left of a memory or of a cycle, for a person who asks; position and provenance say what may be believed": (
        "stores/salvage.py",
    ),
    "a model's words, checked by thinkers/answer, and only an order of what rules found": (
        "thinkers/models.py", "thinkers/wire.py",
    ),
    "reads what strangers wrote in a process of its own, which gateways/process ends": (
        "observers/web/reading.py", "observers/web/source.py",
    ),
}  # fmt: skip  # one table
"""By reason: the modules (below the product's folder) that refuse or bound something and have no guard of their own."""
