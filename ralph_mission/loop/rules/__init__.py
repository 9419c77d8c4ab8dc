"""The rules of a loop: completion, limits, verdicts, routing, scope, tasks."""
