"""Output for people and machines: progress during a cycle, the summary after it, the dashboard in between."""
