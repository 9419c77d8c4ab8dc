"""Stories that need more than a cycle, over ports only."""
