"""The life of a mission: its table, approvals, what is ours, and the next step."""
