"""Rulesets, as they come to bear on one branch."""

from __future__ import annotations

from tests.fakes.github.faults import Response
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.rules import render_rules


@route("GET", REPO + "/rules/branches/{branch:path}", role="read", paged=True)
def list_rules(call: Call) -> Response:
    """Every active rule for a branch of that name, there or not."""
    rulesets = call.world.rulesets_of(call.parts["branch"])
    return call.page([rule for rules in rulesets for rule in render_rules(call.world, rules)], lambda world, rule: rule)
