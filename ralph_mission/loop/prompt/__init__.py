"""What a session is told."""
