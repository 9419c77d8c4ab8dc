"""Observes issues, pull requests and how the project is doing."""
