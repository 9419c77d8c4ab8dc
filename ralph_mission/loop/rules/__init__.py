"""What a loop decides by: completion, limits, verdicts, routing, scope, tasks."""
