"""Observes dependencies: what is behind, what is vulnerable."""
