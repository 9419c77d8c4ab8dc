"""Observes through the repository's own checks."""
