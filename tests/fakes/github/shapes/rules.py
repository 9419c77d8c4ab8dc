"""The rules of a ruleset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakes.github.nouns import Ruleset
from tests.fakes.github.state import World

QUEUE = {
    "check_response_timeout_minutes": 60,
    "grouping_strategy": "ALLGREEN",
    "max_entries_to_build": 5,
    "max_entries_to_merge": 5,
    "merge_method": "SQUASH",
    "min_entries_to_merge": 1,
    "min_entries_to_merge_wait_minutes": 5,
}


def render_rules(world: World, rules: Ruleset) -> Iterator[dict[str, Any]]:
    """Each rule with where it comes from."""
    source = {"ruleset_source_type": "Repository", "ruleset_source": world.full_name, "ruleset_id": rules.id}
    for kind, parameters in _kinds(rules):
        yield {"type": kind, **({"parameters": parameters} if parameters else {}), **source}


def _kinds(rules: Ruleset) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((kind, {}) for kind in rules.forbidden)
    if rules.required_signatures:
        yield "required_signatures", {}
    if rules.merge_queue:
        yield "merge_queue", QUEUE
    if rules.by_pull:
        yield "pull_request", _pull_request(rules)
    if rules.required_checks or rules.strict:
        yield "required_status_checks", _status_checks(rules)


def _pull_request(rules: Ruleset) -> dict[str, Any]:
    return {
        "required_approving_review_count": rules.required_reviews,
        "dismiss_stale_reviews_on_push": rules.dismiss_stale,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_review_thread_resolution": False,
        "allowed_merge_methods": ["merge", "squash", "rebase"],
    }


def _status_checks(rules: Ruleset) -> dict[str, Any]:
    return {
        "strict_required_status_checks_policy": rules.strict,
        "do_not_enforce_on_create": False,
        "required_status_checks": [{"context": name} for name in rules.required_checks],
    }
