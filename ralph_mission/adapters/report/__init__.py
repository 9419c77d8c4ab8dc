"""What people and machines read: the voice while it runs, the summary after, the dashboard in between."""
